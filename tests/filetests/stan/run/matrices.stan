// Matrices with constraints, and free ones: their coordinates are in order of columns.
data {
  int<lower=1> K;
  array[3] vector[K] y;
}
parameters {
  matrix[2, 3] free;
  array[2] matrix[2, 2] several;
  cholesky_factor_corr[K] L;
  cholesky_factor_cov[K] C;
  cholesky_factor_cov[K, 2] tall;
  corr_matrix[K] Omega;
  cov_matrix[K] Sigma;
  vector<lower=0>[K] tau;
  array[2] cholesky_factor_corr[2] Ls;
}
transformed parameters {
  cov_matrix[K] Q = quad_form_diag(Omega, tau);
}
model {
  free[1, 3] ~ normal(free[2, 1], 1.5);
  free[1] ~ normal(0, 1);
  col(free, 2) ~ normal(1, 2);
  several[1] * several[2][ : , 1] ~ normal(0, 1);
  to_vector(several[1]) ~ normal(0, 1);
  to_vector(several[2]) ~ normal(0, 1);
  L ~ lkj_corr_cholesky(2.5);
  Omega ~ lkj_corr(1.5);
  Sigma ~ wishart(K + 2.0, identity_matrix(K));
  tau ~ cauchy(0, 2);
  y[1] ~ multi_normal(rep_vector(0, K), Q);
  y[2] ~ multi_normal_cholesky(tau, C);
  y[3] ~ multi_normal_cholesky(rep_vector(1, K), diag_pre_multiply(tau, L));
  to_vector(C) ~ normal(0, 2);
  to_vector(tall) ~ normal(0, 1);
  Ls[1] ~ lkj_corr_cholesky(1);
  Ls[2] ~ lkj_corr_cholesky(4);
}
generated quantities {
  matrix[K, K] back = multiply_lower_tri_self_transpose(L);
}
