// Regressions without observations: they say nothing, and leave nothing out.
data {
  int N;
  int K;
  matrix[N, K] x;
  array[N] int y;
  vector[N] z;
}
parameters {
  real a;
  vector[K] b;
  real<lower=0> s;
}
model {
  y ~ poisson_log_glm(x, a, b);
  y ~ bernoulli_logit_glm(x, a, b);
  z ~ normal_id_glm(x, a, b, s);
  y ~ neg_binomial_2_log_glm(x, a, b, s);
  z ~ normal(a, s);
  y ~ poisson(s);
  a ~ normal(0, 1);
  b ~ normal(0, 1);
  s ~ exponential(1);
}
