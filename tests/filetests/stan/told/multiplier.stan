// A scale that leaves no room is told before the run: Stan rejects every start.
// run: log-prob $MODEL --points '[[0]]'
// data: {"s": 0}
// status: 1
// says: the multiplier of this parameter is 0, but must be positive and finite
// says: multiplier.stan:12:
data {
  real s;
}
parameters {
  // Of one that lanes compute the start is rejected.
  real<multiplier=s> x;
}
model {
  x ~ normal(0, 1);
}
