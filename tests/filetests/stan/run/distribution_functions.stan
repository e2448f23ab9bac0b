// Distribution functions of containers: the probability that all lie there.
data {
  array[2] int k;
  array[2] int n;
  vector[2] y;
}
parameters {
  vector<lower=0.2, upper=0.8>[2] p;
  vector<lower=0.5, upper=4>[2] a;
  real<lower=0.5, upper=4> b;
}
model {
  target += bernoulli_cdf({0, 1} | p) + bernoulli_lcdf(0 | p) + bernoulli_lccdf({0, 0} | p[1]);
  target += binomial_cdf(k | n, p) + binomial_lcdf(k | 7, p[1]) + binomial_lccdf(1 | n, p);
  target += beta_cdf(p | a, b) + beta_lcdf(p[1] | a, b) + beta_lccdf(p | 2, a);
  target += beta_binomial_cdf(k | n, a, b) + beta_binomial_lcdf(k | n, a, 2) + beta_binomial_lccdf(1 | 6, a, b);
  target += beta_proportion_lcdf(p | p[1], a) + beta_proportion_lccdf(p | 0.4, b);
  target += discrete_range_cdf(k | 0, n) + discrete_range_lcdf(k | 0, n) + discrete_range_lccdf(k | 0, 9);
  target += gamma_lcdf(y | 2, a);
  target += inv_chi_square_lccdf(y | 3);
  target += inv_gamma_cdf(a | y, b) + inv_gamma_lccdf(y' | 2, b);
  target += neg_binomial_cdf(k | a, b) + neg_binomial_lcdf(k | a, 2) + neg_binomial_lccdf(1 | a, b);
  target += neg_binomial_2_cdf(k | a, b) + neg_binomial_2_lcdf(2 | a, b) + neg_binomial_2_lccdf(k | b, a);
  target += poisson_cdf(k | a) + poisson_lcdf(k | b) + poisson_lccdf(2 | a);
  target += scaled_inv_chi_square_lccdf(y | 3, a);
  target += skew_normal_cdf(y | a, b, 0.5) + skew_normal_lcdf(y | 0, a, b) + skew_normal_lccdf(1 | a, b, {1, -1});
  target += student_t_cdf(y | 4, a, b) + student_t_lcdf(y | a, 0, b) + student_t_lccdf(1 | 3, a, b);
  target += von_mises_cdf({0.5, 1} | a, b) + von_mises_lcdf({0.5, 1} | 0.3, a) + von_mises_lccdf(1 | a, b);
  target += yule_simon_cdf(k | a) + yule_simon_lcdf(3 | a) + yule_simon_lccdf(k | b);
}
generated quantities {
  real normal_all = normal_cdf(y | a, b);
  real exponential_all = exponential_cdf(y | 0.3);
  real odds = loglogistic_cdf(y | a, b);
  real known = weibull_cdf(y | 2, {1, 2});
  real none = normal_cdf(y[1:0] | 0, 1) + normal_lcdf(y[1:0] | 0, 1);
}
