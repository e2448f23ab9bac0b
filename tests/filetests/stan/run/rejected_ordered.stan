// A transformed parameter that is not ordered.
parameters {
  real a;
}
transformed parameters {
  ordered[2] s = [0.5 - a, 0.5 + 2 * a + 1]';
}
model {
  a ~ normal(0, 1);
}
