// Densities of vectors, alone and over arrays of them.
data {
  int<lower=1> K;
  array[2] vector[K] y;
  array[K] int<lower=0> counts;
  matrix[K, K] W;
}
transformed data {
  cov_matrix[K] S = tcrossprod(W) + identity_matrix(K);
  cholesky_factor_cov[K] LS = cholesky_decompose(S);
}
parameters {
  vector[K] mu;
  array[2] vector[K] mus;
  cholesky_factor_cov[K] L;
  cov_matrix[K] Sigma;
  corr_matrix[K] Omega;
  cholesky_factor_corr[K] LO;
  simplex[K] theta;
  real<lower=0> nu;
  vector<lower=0>[K] w;
}
model {
  mu ~ multi_normal(rep_vector(0, K), S);
  mus ~ multi_normal_cholesky(mu, LS);
  y ~ multi_normal(mu, Sigma);
  y ~ multi_normal_cholesky(mu, L);
  y ~ multi_normal(mus, S);
  y[1] ~ multi_normal_prec(mu, Sigma);
  y[2] ~ multi_student_t(nu + 2, mu, Sigma);
  Sigma ~ inv_wishart(K + 3.0, S);
  S ~ wishart(nu + K + 1, Sigma);
  Omega ~ lkj_corr(2);
  LO ~ lkj_corr_cholesky(1.5);
  theta ~ dirichlet(w);
  counts ~ multinomial(theta);
  w ~ gamma(2, 1);
  nu ~ exponential(0.5);
}
