// `fatal_error` in generated quantities ends the command, too, when all draws are told of.
// run: sample $MODEL --chains 2 --warmup 10 --draws 10
// status: 1
// says: 2 chains, 20 draws
// says: generated quantities failed for 20 of 20 draws
// says: error: fatal_error: at 
parameters {
  real x;
}
model {
  x ~ normal(0, 1);
}
generated quantities {
  if (x < 100) {
    fatal_error("at ", x);
  }
}
