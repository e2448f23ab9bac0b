// What carries something from turn to turn: AR, GARCH, a hidden Markov model's forward algorithm, exponential smoothing.
data {
  int<lower=3> T;
  vector[T] y;
  int<lower=1> K;
}
parameters {
  real mu;
  vector<lower=-1, upper=1>[2] phi;
  real<lower=0> alpha0;
  real<lower=0, upper=1> alpha1;
  real<lower=0, upper=1 - alpha1> beta1;
  array[K] simplex[K] Gamma;
  ordered[K] level;
  real<lower=0, upper=1> smooth;
}
transformed parameters {
  vector<lower=0>[T] sigma;
  sigma[1] = 0.5;
  for (t in 2 : T)
    sigma[t] = sqrt(alpha0 + alpha1 * square(y[t - 1] - mu) + beta1 * square(sigma[t - 1]));
}
model {
  matrix[K, T] forward;
  array[K] real acc;
  real state = y[1];
  phi ~ normal(0, 0.5);
  level ~ normal(0, 2);
  for (t in 3 : T)
    y[t] ~ normal(mu + phi[1] * y[t - 1] + phi[2] * y[t - 2], sigma[t]);
  y ~ normal(mu, sigma);
  for (k in 1 : K)
    forward[k, 1] = -log(K) + normal_lpdf(y[1] | level[k], 1);
  for (t in 2 : T) {
    for (k in 1 : K) {
      for (j in 1 : K)
        acc[j] = forward[j, t - 1] + log(Gamma[j, k]) + normal_lpdf(y[t] | level[k], 1);
      forward[k, t] = log_sum_exp(acc);
    }
  }
  target += log_sum_exp(forward[ : , T]);
  for (t in 2 : T) {
    target += normal_lpdf(y[t] | state, 1.5);
    state += smooth * (y[t] - state);
  }
}
