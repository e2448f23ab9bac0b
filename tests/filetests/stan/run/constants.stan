// What `~` leaves out of densities that are seldom used, with data and with parameters as arguments.
data {
  int<lower=1> N;
  int<lower=1> K;
  array[N] int<lower=1> n;
  vector<lower=0, upper=1>[N] p;
  matrix[N, K] X;
  matrix[K, K] W;
}
transformed data {
  cov_matrix[K] S = tcrossprod(W) + identity_matrix(K);
  cholesky_factor_cov[K] L = cholesky_decompose(S);
  vector[N] ones = rep_vector(1.5, N);
  array[N] int twelve = rep_array(12, N);
}
parameters {
  real x;
  real<lower=0> y;
  vector<lower=0>[N] s;
  vector[K] beta;
  vector[K] mu;
  real<lower=0.2, upper=0.8> q;
  cholesky_factor_cov[K] F;
  cov_matrix[K] C;
}
model {
  n ~ beta_neg_binomial(y, 2, 3);
  n ~ yule_simon(y);
  n ~ neg_binomial(2.5, y);
  n ~ neg_binomial(s, 0.5);
  p ~ beta_proportion(q, 4);
  p ~ beta_proportion(0.4, y);
  s ~ loglogistic(2, 3);
  s ~ loglogistic(y, 3);
  s ~ rayleigh(2);
  p ~ rayleigh(y);
  s ~ skew_double_exponential(x, 2, 0.3);
  p ~ skew_double_exponential(0, y, q);
  n ~ neg_binomial_2_log_glm(X, x, beta, 2.5);
  n ~ neg_binomial_2_log_glm(X, x, beta, y);
  n ~ binomial_logit_glm(twelve, X, x, beta);
  mu ~ multi_student_t(3, beta, S);
  mu ~ multi_student_t_cholesky(4, beta, L);
  mu ~ multi_student_t(y, beta, C);
  mu ~ multi_student_t_cholesky(y, beta, F);
  X ~ multi_gp(C, ones);
  X' ~ multi_gp(diag_matrix(s), rep_vector(2, K));
  X ~ multi_gp_cholesky(F, s);
  F ~ wishart_cholesky(4.5, L);
  F ~ inv_wishart_cholesky(5, L);
  L ~ wishart_cholesky(4 + y, F);
  n ~ multinomial_logit(to_vector(s));
  n ~ dirichlet_multinomial(s);
  C ~ lkj_cov(rep_vector(0.1, K), rep_vector(1.5, K), 2);
  beta ~ normal(0, 1);
}
