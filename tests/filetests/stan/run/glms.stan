// Densities of generalised linear models.
data {
  int<lower=0> N;
  int<lower=0> P;
  matrix[N, P] X;
  vector[N] y;
  array[N] int<lower=0, upper=1> hits;
  array[N] int<lower=0> n;
  array[N] int<lower=1, upper=3> grade;
  array[N] int<lower=0> trials;
}
parameters {
  real alpha;
  vector[N] offsets;
  vector[P] beta;
  vector[3] a;
  ordered[2] c;
  real<lower=0> sigma;
}
model {
  offsets ~ normal(0, 1);
  beta ~ normal(0, 1);
  a ~ normal(0, 1);
  c ~ normal(0, 2);
  sigma ~ exponential(1);
  alpha ~ normal(0, 2);
  y ~ normal_id_glm(X, alpha, beta, sigma);
  y ~ normal_id_glm(X, offsets, beta, sigma);
  hits ~ bernoulli_logit_glm(X, alpha, beta);
  hits ~ bernoulli_logit_glm(X, offsets, beta);
  n ~ poisson_log_glm(X, alpha, beta);
  n ~ neg_binomial_2_log_glm(X, offsets, beta, sigma);
  grade ~ categorical_logit(a);
  grade ~ categorical(softmax(a));
}
