// The embedded Laplace approximation with the likelihoods of the library. At the last point Stan stops before it is at the
// mode; mpmath has at 40 digits:
// instead: 2 -57.482006518590294 [3.370835585300778, 0.5505456617390488, 5.981312188883233]
functions {
  matrix covariance(array[] real x, real sigma, real scale) {
    return add_diag(gp_exp_quad_cov(x, sigma, scale), 0.01);
  }
}
data {
  int N;
  array[N] real x;
  array[N] int hits;
  array[N] int trials;
  array[N] int counts;
  array[N] int group;
}
parameters {
  real<lower=0.1> sigma;
  real<lower=0.2> scale;
  real mean;
}
model {
  vector[N] means = rep_vector(mean, N);
  sigma ~ normal(0, 1);
  target += laplace_marginal_tol_bernoulli_logit_lpmf(
    hits |
    trials,
    means,
    1,
    covariance,
    (x, sigma, scale),
    (rep_vector(0.1, N), 1e-13, 100, 1, 1000, 1)
  );
  target += laplace_marginal_tol_poisson_log_lpmf(
    counts |
    group,
    means,
    1,
    covariance,
    (x, sigma, scale),
    (rep_vector(0, N), 1e-13, 100, 2, 1000, 1)
  );
  counts ~ laplace_marginal_tol_poisson_log(
    group,
    rep_vector(0.3, N),
    1,
    covariance,
    (x, 1.5, 0.7),
    (rep_vector(0, N), 1e-13, 100, 2, 1000, 1)
  );
}
