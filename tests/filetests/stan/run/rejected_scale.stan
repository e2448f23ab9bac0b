// Arguments that a distribution does not take.
parameters {
  real a;
}
model {
  target += normal_lpdf(0.5 | 0, a + 1.4);
}
