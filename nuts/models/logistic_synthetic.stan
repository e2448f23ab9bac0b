// Logistic regression on synthetic data; logistic_synthetic.ab is the same in autobatch's language, and
// synthetic_logistic_data.ab makes the data.
data {
  int<lower=0> n;
  int<lower=0> d;
  matrix[n, d] x;
  array[n] int<lower=0, upper=1> y;
}
parameters {
  vector[d] w;
}
model {
  w ~ std_normal();
  y ~ bernoulli_logit_glm(x, 0, w);
}
