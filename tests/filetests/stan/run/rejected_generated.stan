// Quantities that reject where the density does not.
parameters {
  real a;
}
model {
  a ~ normal(0, 1);
}
generated quantities {
  real<lower=-1> g = a;
}
