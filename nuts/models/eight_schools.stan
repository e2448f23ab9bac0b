// Eight schools, non-centered; eight_schools.ab is the same in autobatch's language.
data {
  int<lower=0> J;
  vector[J] y; // effects as estimated
  vector<lower=0>[J] sigma; // and their standard errors
}
parameters {
  vector[J] theta_trans;
  real mu;
  real<lower=0> tau;
}
transformed parameters {
  vector[J] theta = mu + tau * theta_trans;
}
model {
  theta_trans ~ std_normal();
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
  y ~ normal(theta, sigma);
}
