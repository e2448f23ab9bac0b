// tolerance: 1e-5 (the derivative of Stan's normal_lcdf is an approximation: that of normal_lccdf(2 | 0.1, exp(0.2)) by its
// location is 1.62606428…, Stan gives 1.62606393)
// Truncated statements, cumulative ones, and what is censored.
data {
  int<lower=0> N;
  vector<lower=-1, upper=3>[N] y;
  int<lower=0> k;
}
parameters {
  real mu;
  real<lower=0> sigma;
  real<lower=0, upper=2> z;
  real<lower=0> rate;
}
model {
  for (n in 1 : N)
    y[n] ~ normal(mu, sigma) T[-1, 3];
  y[1] ~ normal(mu, sigma) T[ , 3];
  y[2] ~ student_t(4, mu, sigma) T[-1, ];
  mu ~ normal(0, 2) T[-20, ];
  sigma ~ cauchy(0, 1) T[0, ];
  z ~ exponential(rate) T[ , 2];
  rate ~ gamma(2, 3) T[0, 30];
  k ~ poisson(rate) T[1, ];
  k ~ neg_binomial_2(rate, sigma) T[ , 9];
  z ~ lognormal(mu, sigma) T[0, 2];
  z ~ weibull(1.5, sigma) T[0.0, ];
  target += normal_lccdf(2 | mu, sigma) + normal_lcdf(y | mu, sigma);
  target += log_diff_exp(normal_lcdf(1 | mu, sigma), normal_lcdf(0 | mu, sigma));
  target += exponential_lccdf(z | rate) + poisson_lcdf(k | rate) + logistic_lcdf(0.3 | mu, sigma);
  target += log(normal_cdf(0.5 | mu, sigma)) + weibull_lccdf(1.5 | 2, sigma) + lognormal_lccdf(z | mu, sigma);
}
