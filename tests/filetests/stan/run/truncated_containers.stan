// tolerance: 1e-4 (the derivative of Stan's normal_lcdf is an approximation, see truncation.stan)
// Truncation of several values at once, and of values with several parameters.
data {
  vector[3] y;
  array[3] int k;
}
parameters {
  vector[3] mu;
  real<lower=0> s;
  vector<lower=0>[3] lambda;
  real<lower=0, upper=1> z;
}
model {
  y ~ normal(mu, s) T[0, 10];
  y ~ normal(1, s) T[0, ];
  y ~ logistic(mu, 2) T[, 5];
  k ~ poisson(lambda) T[1, ];
  k ~ poisson(s + 1) T[1, 9];
  k ~ binomial(9, 0.4) T[, 6];
  z ~ normal(mu, 1) T[0, 1];
  [z, 2 * z] ~ exponential(s) T[, 3];
}
