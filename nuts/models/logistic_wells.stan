// Who switches to a safe well, on the distance to it; logistic_wells.ab is the same in autobatch's language.
data {
  int<lower=0> N;
  array[N] int<lower=0, upper=1> switched;
  vector[N] dist; // in metres
}
parameters {
  vector[2] beta;
}
model {
  switched ~ bernoulli_logit(beta[1] + beta[2] * dist);
}
