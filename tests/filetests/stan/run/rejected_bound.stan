// A transformed parameter outside its bounds.
parameters {
  real a;
}
transformed parameters {
  real<lower=-0.5> r = a;
  vector<upper=1.5>[2] w = [a, 2 * a]';
}
model {
  a ~ normal(0, 1);
}
