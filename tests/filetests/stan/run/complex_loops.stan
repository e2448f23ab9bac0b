// Complex numbers in loops that are rolled up: recurrences, powers and roots, matrices, conditions.
data {
  int N;
  complex_vector[N] y;
}
parameters {
  complex a;
  complex_matrix[3, 3] e;
  real<lower=0> s;
  array[4] complex_vector[3] w;
  complex_row_vector[3] r;
}
transformed parameters {
  array[4] complex_vector[3] tw;
  for (k in 1 : 4) {
    tw[k] = e * w[k] + a;
    tw[k][2] = (tw[k][1] + 1) ^ 3;
  }
}
model {
  complex z = a + 1;
  complex_matrix[3, 3] p = e;
  array[4, 3] complex grid;
  for (t in 1 : 20) {
    z = (z ^ 3 + z * y[t]) / (1 + z ^ 2) * 0.1;
    target += get_real(z);
  }
  for (t in 1 : 10) {
    p = p * e * 0.2;
    p[t % 3 + 1, 2] = sqrt(p[1, 2] + 2) * 1i;
  }
  for (i in 1 : 4)
    for (j in 1 : 3) {
      grid[i, j] = i == 1
        ? w[i, j]
        : grid[i - 1, j] * w[i, j] + (j > 1 ? grid[i, j - 1] : 2i);
    }
  target += get_real(sum(p)) + abs(grid[4, 3] + 5) + sum(get_imag(grid[4]));
  for (i in 1 : 4) {
    complex q = r * w[i];
    target += -norm(q) - dot_self(get_real(tw[i]));
    if (get_real(q) > s)
      target += get_imag(q);
  }
  for (n in 1 : N) {
    target += arg(z - y[n]) * 0.1;
  }
  s ~ exponential(1);
}
