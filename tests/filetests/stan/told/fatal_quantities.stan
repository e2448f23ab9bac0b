// `fatal_error` in generated quantities ends the command, too.
// run: sample $MODEL --chains 2 --warmup 10 --draws 10
// status: 1
// says: error: fatal_error: at 
// silent: mean
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
