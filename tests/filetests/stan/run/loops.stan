// Loops of the host and of the lanes: while, foreach, break, continue, ragged and triangular ones.
data {
  int<lower=0> N;
  vector[N] x;
  array[3] int<lower=0> sizes;
}
transformed data {
  int odd = 0;
  int steps = 0;
  real total = 0;
  array[N] int<lower=0> place;
  {
    int n = 27;
    while (n != 1) {
      if (n % 2 == 0)
        n = n %/% 2;
      else
        n = 3 * n + 1;
      steps += 1;
    }
  }
  for (i in 1 : N) {
    if (i % 2 == 0)
      continue;
    odd += 1;
    if (odd == 3)
      break;
    total += x[i];
  }
  for (i in 1 : N)
    place[i] = N - i + 1;
}
parameters {
  real mu;
  real<lower=0> sigma;
  vector[N] beta;
}
transformed parameters {
  vector[N] running;
  matrix[N, N] triangle = rep_matrix(0, N, N);
  running[1] = beta[1];
  for (i in 2 : N)
    running[i] = running[i - 1] * 0.5 + beta[i];
  for (i in 1 : N)
    for (j in 1 : i)
      triangle[i, j] = beta[i] * x[j] / (i + j);
}
model {
  int at = 1;
  real product = 1;
  for (g in 1 : 3) {
    real s = 0;
    for (k in 1 : sizes[g]) {
      s += beta[at];
      at += 1;
    }
    target += normal_lpdf(s | mu, sigma * g);
  }
  for (b in beta) {
    product *= 1 + square(b);
    target += -0.1 * b;
  }
  for (i in 1 : N) {
    if (i == 2)
      continue;
    if (place[i] == 1)
      break;
    target += x[place[i]] * running[i];
  }
  target += -log(product);
  mu ~ normal(total, 5);
  sigma ~ lognormal(0, 0.5);
  beta ~ normal(0, 2);
  to_vector(triangle) ~ normal(0, 3);
  for (row in 1 : N)
    for (col in row + 1 : N)
      target += -square(beta[row] - beta[col]) / steps;
  while (at > 3) {
    target += -0.01 * beta[at - 1] * mu;
    at -= 2;
  }
}
