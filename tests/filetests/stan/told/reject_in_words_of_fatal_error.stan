// What `reject` says ends no run, whatever the words are.
// run: log-prob $MODEL --points '[[1], [-1]]'
// says: rejected: reject: fatal_error: not really 1
// says: gradient = [1]
parameters {
  real m;
}
model {
  if (m > 0)
    reject("fatal_error: not really ", m);
  m ~ normal(0, 1);
}
