// A transformed parameter that is no simplex.
parameters {
  real a;
}
transformed parameters {
  simplex[2] s = [0.5 + a, 0.5 - a]';
}
model {
  a ~ normal(0, 1);
}
