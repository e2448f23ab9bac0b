// Types that do not fit.
data {
  int n;
  vector[n] x;
  row_vector[n] r;
  array[n] real a;
  array[2, 3] int grid;
  matrix[n, n] m;
  complex z;
  tuple(int, real) t;
}
transformed data {
  int half = 1 / 2;
  int rounded = 2.5;
  vector[n] v = a;
  vector[n] w = x * x;
  vector[n] u = r;
  real s = x[1, 2];
  real c = n[1];
  real e = x[2.0];
  real f = t.3;
  real g = s.1;
  array[2] real h = {1, x};
  row_vector[2] k = [1, x];
  real l = n ? x : 1;
  real o = x ? 1 : 2;
  real p = a + a;
  real q = normal_lpdf(a | m, 1);
  vector[n] b = append_row(x, r);
  real big = 3000000000;
  complex<lower=0> bounded = z;
  a += 1;
  x .*= m;
  n *= 2.5;
  grid[1] = {1, 2.5, 3};
  for (i in s) {
    print(i);
  }
  for (i in 1 : 2.5) {
    print(normal_lpdf);
  }
  while (s) {
    s -= 1;
  }
}
