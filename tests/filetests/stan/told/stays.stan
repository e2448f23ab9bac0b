// Chains that stay where they start have nothing to converge.
// run: sample $MODEL --algorithm fixed_param --chains 2 --warmup 0 --draws 20
// says: x
// silent: warning
// silent: run longer
parameters {
  real x;
}
model {
  x ~ normal(0, 1);
}
generated quantities {
  real y = normal_rng(0, 1);
}
