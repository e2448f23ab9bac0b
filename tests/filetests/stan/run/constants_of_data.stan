// What `~` leaves out where most arguments are data, and addends that reach them all but one.
data {
  int<lower=1> N;
  array[N] int<lower=1> n;
  vector<lower=0, upper=1>[N] d;
  matrix[N, N] W;
  array[2] vector[N] locations;
}
transformed data {
  cov_matrix[N] S = tcrossprod(W) + identity_matrix(N);
  cov_matrix[N] R = quad_form_diag(S, inv_sqrt(diagonal(S)));
}
parameters {
  real<lower=0> s;
  vector[N] p;
  vector<lower=0>[N] w;
}
model {
  p ~ von_mises(d, 2.5);
  p ~ von_mises(0.5, d);
  d ~ von_mises(p[1], 1.5);
  d ~ skew_normal(0.3, 1.2, p);
  d ~ skew_normal(0.3, s, p);
  n ~ neg_binomial_2(3.5, s);
  n ~ neg_binomial_2(d, s);
  n ~ neg_binomial_2(w, 2.5);
  n ~ neg_binomial_2_log(0.5, s);
  n ~ neg_binomial_2_log(d, w);
  n ~ neg_binomial_2_log_glm(W, 0.5, d, s);
  n ~ neg_binomial_2_log_glm(W, d, d, s);
  p ~ multi_normal(locations, S);
  d ~ multi_normal(locations, s * S);
  locations ~ multi_normal(p, S);
  p ~ multi_normal_cholesky(locations, cholesky_decompose(S));
  p ~ multi_normal_prec(locations, S);
  p ~ multi_student_t(3.5, locations, S);
  S ~ wishart(s + N + 1, R);
  S ~ wishart(N + 2, (s + 0.1) * R);
  S ~ inv_wishart(s + N + 1, R);
  S ~ inv_wishart(N + 2, (s + 0.1) * R);
  (s + 0.1) * S ~ inv_wishart(N + 2, R);
  n[1] ~ ordered_probit(0.3, [-1, 0.5, 2]');
  W ~ gaussian_dlm_obs(S, R, (s + 0.1) * S, S, d, S);
  W ~ gaussian_dlm_obs(S, R, S, S, d, S);
  S ~ lkj_cov(d, [0.5, 1, 1.5]', s + 0.5);
  S ~ lkj_cov(p, [0.5, 1, 1.5]', 2);
  S ~ lkj_cov(d, w + 0.1, 2.5);
}
