// Statements `~` in all mixes of scalars, vectors, row vectors and arrays.
data {
  int<lower=0> N;
  vector[N] y;
  row_vector[N] r;
  array[N] real x;
  array[N] int<lower=0> n;
  array[N] int<lower=0> trials;
  array[N] int<lower=0, upper=1> hits;
}
parameters {
  real mu;
  real<lower=0> sigma;
  vector[N] v;
  row_vector<lower=0>[N] w;
  array[N] real<lower=0, upper=1> p;
}
model {
  y ~ normal(mu, sigma);
  y ~ normal(v, sigma);
  y ~ normal(mu, w);
  r ~ normal(v, w);
  x ~ normal(p, w);
  mu ~ normal(y, sigma);
  v ~ normal(x, to_vector(w));
  p ~ beta(w, sigma + 1);
  x ~ student_t(4, v, sigma);
  y ~ cauchy(mu, p);
  x ~ double_exponential(v, w);
  r ~ logistic(mu, sigma);
  y ~ gumbel(mu, w);
  n ~ poisson(w);
  n ~ poisson_log(v);
  n ~ neg_binomial_2(w, sigma);
  n ~ neg_binomial_2_log(v, 2.5);
  n ~ neg_binomial(w, sigma);
  n ~ binomial(trials, p);
  n ~ binomial_logit(trials, v);
  n ~ binomial(9, p);
  hits ~ bernoulli(p);
  hits ~ bernoulli_logit(v);
  hits[1] ~ bernoulli(p[2]);
  w ~ gamma(2, w + 1);
  w ~ lognormal(v, sigma);
  w ~ weibull(2, sigma);
  w ~ inv_gamma(3, p);
  sigma ~ exponential(w);
  w ~ chi_square(sigma + 2);
  w ~ scaled_inv_chi_square(3, 0.5);
  w ~ inv_chi_square(2.5);
  w ~ rayleigh(sigma);
  w ~ frechet(2, sigma);
  p ~ uniform(0, 1);
  y ~ skew_normal(mu, sigma, v);
  y ~ exp_mod_normal(mu, w, 1.5);
  p ~ beta_proportion(0.5, w);
  n ~ beta_binomial(trials, w, sigma);
  y ~ von_mises(mu, w);
  w ~ pareto_type_2(0, 1, 2);
  target += normal_lpdf(y | 0, 2);
  target += normal_lupdf(y | 0, sigma);
  target += poisson_lupmf(n | 2.5);
}
