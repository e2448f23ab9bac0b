// A type that has no value of a size is told by its name.
// run: log-prob $MODEL --points '[[0]]'
// data: {"N": 0}
// status: 1
// says: there is no simplex of size 0
// says: no_such_size.stan:12:
data {
  int<lower=0> N;
}
parameters {
  real x;
  simplex[N] p;
}
model {
  x ~ normal(0, 1);
}
