data {
  int<lower=1> N;
  int<lower=1> D;
  matrix[N, D] x;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  vector[D] q;
}
model {
  q ~ std_normal();
  y ~ bernoulli_logit(x * q);
}
