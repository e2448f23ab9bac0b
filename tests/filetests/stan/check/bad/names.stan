// Names: unknown, taken, misspelt, from other blocks.
functions {
  real scale_it(real x, real x) {
    return x * sgima;
  }
}
data {
  int n;
  vector[n] y;
  real normal__;
}
transformed data {
  real n = 2;
  y[1] = 3;
}
parameters {
  real mu;
  vector[mu > 0 ? 1 : 2] theta;
}
model {
  real local = 1;
  y ~ normale(mu, 1);
  target += scaleit(local, 2) + nromal_lpdf(y | mu, 1) + poisson_lpdf(3 | 2) + normal(y, mu, 1);
  for (i in 1:n) {
    i += 1;
    missing[i] = 2;
  }
}
generated quantities {
  real z = local;
  mu = 3;
}
