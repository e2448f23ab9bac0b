// Containers whose elements come from all over: data say from where, many are the same, some are known.
data {
  int<lower=1> N;
  array[N, 4] int<lower=0, upper=1> caught;
  array[N] int<lower=0> count;
}
parameters {
  real<lower=0, upper=1> p;
  real<lower=0, upper=1> c;
  vector[3] a;
  real b;
}
transformed parameters {
  array[N] vector<lower=0, upper=1>[4] chance;
  vector[2 * N] eta;
  array[N] vector[3] steps;
  for (i in 1 : N) {
    chance[i, 1] = p;
    for (t in 2 : 4) {
      chance[i, t] = (1 - caught[i, t - 1]) * p + caught[i, t - 1] * c;
    }
    steps[i] = [a[3] * i, 1.5, exp(a[1] - i)]';
    if (count[i] == 0) {
      eta[2 * i - 1] = a[1 + i % 3];
      eta[2 * i] = 0.25;
    } else {
      eta[2 * i - 1] = sin(b) * count[i];
      eta[2 * i] = count[i] > 2 ? -1.0 : a[2] + b;
    }
  }
}
model {
  a ~ normal(0, 1);
  b ~ normal(0, 1);
  for (i in 1 : N) {
    caught[i] ~ bernoulli(chance[i]);
  }
  eta ~ logistic(0.1, 1.2);
  target += -0.1 * dot_self(eta) + log_sum_exp(eta);
  for (i in 1 : N) {
    for (j in 1 : N) {
      target += 0.01 * dot_product(steps[i], steps[j]);
    }
  }
}
generated quantities {
  array[N] int<lower=0, upper=9> seen;
  array[N, 2] int flags;
  for (i in 1 : N) {
    seen[i] = count[i] > 1 ? count[i] : (a[1] > 0) + 2 * (b > 0);
    flags[i] = {count[i], a[2] > i ? 1 : 0};
  }
}
