// Regressions of one row of predictors that serves for all, or of one observation; a Gaussian dynamic linear model.
data {
  array[3] int y;
  array[3] int c;
  vector[3] r;
  row_vector[2] x;
  matrix[3, 2] xs;
}
parameters {
  real a;
  vector[3] as;
  vector[2] b;
  matrix[2, 3] bs;
  ordered[2] cuts;
  real<lower=0> s;
}
model {
  target += bernoulli_logit_glm_lpmf({0, 1, 1} | x, a, b) + bernoulli_logit_glm_lpmf({0, 1, 1} | x, as, b);
  target += poisson_log_glm_lpmf(y | x, as, b) + poisson_log_glm_lpmf(y | xs, a, b);
  target += neg_binomial_2_log_glm_lpmf(y | x, a, b, s) + normal_id_glm_lpdf(r | x, as, b, s);
  target += binomial_logit_glm_lpmf(y | {5, 6, 7}, x, a, b) + normal_id_glm_lpdf(r | x, a, b, [1, 2, s]');
  target += categorical_logit_glm_lpmf(2 | x, as, bs) + categorical_logit_glm_lpmf(c | x, as, bs);
  target += categorical_logit_glm_lpmf(3 | xs, as, bs) + categorical_logit_glm_lpmf(c | xs, as, bs);
  target += ordered_logistic_glm_lpmf(2 | x, b, cuts) + ordered_logistic_glm_lpmf(c | x, b, cuts);
  target += ordered_logistic_glm_lpmf(3 | xs, b, cuts) + ordered_logistic_glm_lpmf(c | xs, b, cuts);
  target += gaussian_dlm_obs_lpdf([r'] | [[1], [0.5]], [[1, 0.1], [0, 1]], [s]', [[1, 0], [0, s]], b, [[1, 0], [0, 1]]);
  target += gaussian_dlm_obs_lpdf([r', r'] | [[1, 0], [0.5, 1]], [[1, 0.1], [0, 1]], [[s, 0.1], [0.1, 2 + s]], [[1, 0], [0, s]], b,
                                  [[1, 0], [0, 1]]);
}
