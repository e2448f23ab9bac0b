// Indices that lanes choose, beside ranges and several of them, read and written; the numbers are those of the same sums
// written out in Python. Of equal places that are written the last stays.
// run: log-prob $MODEL --points '[[-2.0, 0.1, 0.2, -0.3, 0.4, 0.5, -0.6, 0.7, 0.8, -0.9, 1.0, 1.1, -1.2, 1.3, 1.4, -1.5, 1.6, 1.7, -1.8, 1.9, 2.0, -2.1], [0.3, 0.1, 0.2, -0.3, 0.4, 0.5, -0.6, 0.7, 0.8, -0.9, 1.0, 1.1, -1.2, 1.3, 1.4, -1.5, 1.6, 1.7, -1.8, 1.9, 2.0, -2.1], [1.5, 0.1, 0.2, -0.3, 0.4, 0.5, -0.6, 0.7, 0.8, -0.9, 1.0, 1.1, -1.2, 1.3, 1.4, -1.5, 1.6, 1.7, -1.8, 1.9, 2.0, -2.1]]'
// says: lp = -2764.255243733418
// says: lp = -1758.710098200269
// says: lp = 99988.0957857327
parameters {
  real<lower=0, upper=3> u;
  vector[3] v;
  matrix[3, 4] M;
  array[2] vector[3] a;
}
model {
  int z = 1;
  while (z < u)
    z += 1;
  array[2] int zz = {z, 1};
  target += sum(M[ : , z])
    + 2 * sum(M[z, 1 : 2])
    + 3 * sum(a[1 : 2, z])
    + 5 * sum(v[zz])
    + 7 * sum(M[zz, {2, 4}])
    + 11 * sum(col(M, z))
    + 13 * sum(row(M, z))
    + 17 * sum(a[1, zz])
    + 19 * M[zz][1, 3];
  vector[3] w = v;
  w[zz] = [10, 20]';
  target += w[1] + 100 * w[2] + 10000 * w[3];
  matrix[3, 4] Q = M;
  Q[z, {1, 3}] *= 2;
  Q[zz, 2] = [1, 2]';
  Q[2 : 3, z] += 1;
  target += dot_product(to_vector(Q), linspaced_vector(12, 1, 12));
}
