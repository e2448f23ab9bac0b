// `fatal_error` ends the run, where `reject` would reject the point.
// run: log-prob $MODEL --points '[[0], [3]]'
// status: 1
// says: error: fatal_error: x is 3 (in 'fatal.stan', line 21, column 6 to column 30)
// run: sample $MODEL --chains 4 --warmup 100 --draws 100
// status: 1
// says: error: fatal_error: x is 
// silent: r_hat
// run: sample $MODEL --chains 4 --warmup 100 --draws 100 --engine scalar
// status: 1
// says: error: fatal_error: x is 
// run: optimize $MODEL
// status: 1
// says: error: fatal_error: x is 
parameters {
  real x;
}
model {
  if (x > 1) {
    {
      fatal_error("x is ", x);
    }
  }
  x ~ normal(1, 1);
}
