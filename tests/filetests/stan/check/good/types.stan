// Promotion, containers, tuples, complex numbers, and indices of every kind.
data {
  int<lower=1> n;
  int<lower=1> k;
  array[n] int<lower=1, upper=k> group;
  matrix[n, k] X;
  array[n, k] vector[3] cube;
  tuple(int, array[2] real, vector[n]) packed;
  complex z;
}
transformed data {
  array[2] real numbers = {1, 2};
  array[2, 2] complex corners = {{1, 2}, {3.5, 4}};
  row_vector[3] row = [1, 2.5, 3];
  matrix[2, 3] rows_of = [row, row];
  complex_matrix[2, 2] cm = [[1, z], [z, 1]];
  vector[n] first = X[ : , 1];
  matrix[n, 2] some = X[ : , {1, 2}];
  row_vector[k] one = X[1];
  row_vector[2] part = X[1, 1 : 2];
  matrix[2, k] top = X[ : 2];
  array[2] vector[3] slice = cube[1 : 2, 1];
  array[n] real picked = cube[ : , 1, 2];
  vector[n] by_group = to_vector(group)[group];
  int i = packed.1;
  real second = packed.2[2];
  int a;
  real b;
  tuple(real, array[2] real) pair = (1, {1, 2});
  (pair.1, pair.2[1]) = (3, 4);
  real mixed = n > 2 ? 1 : 2.5;
  int q = n %/% 2 + n % 2;
  int inside = (1 < n) && n < 10 || !k;
  real power = 2 ^ n;
  vector[n] scaled = 2 * first .* first ./ 3 - 1;
  real dot = first' * first;
  matrix[n, n] outer = first * first';
  matrix[n, k] copy = X;
  (a, b) = (1, 2);
  first[1] += 1;
  copy[1, 2] *= 2;
  copy[ : , 1] = first;
  copy[1 : 2, 1 : 2] = rep_matrix(0, 2, 2);
}
