// A density that is no finite number is told by the statement that makes it one, in Stan's words where an argument is
// outside of what the density takes.
// data: {"y": [1, 2, -3]}
// run: log-prob $MODEL --points '[[0, 1, 1], [0, -1, 1], [1, 1, -1], [5, 1, 1], [-3, 1, 1]]'
// says: lp = -
// says: rejected: the log density is NaN: normal_lpdf: Scale parameter is -1, but must be positive! (in 'supports.stan', line 27, column 2 to column 19)
// says: rejected: the log density is NaN: exponential_lpdf: Inverse scale parameter is -1, but must be positive finite! (in 'supports.stan', line 30, column 14 to column 39)
// says: lp = -inf
// says: rejected: the log density is NaN: what is added to the target here is NaN: `sqrt(x + 2)` (in 'supports.stan', line 33, column 12 to column 23)
// says: note: point 3: the log density is -inf: what is added to the target here is -inf: `log(x < 4)` (in 'supports.stan', line 32, column 12 to column 22)
// run: sample $MODEL --chains 1 --warmup 1 --draws 1 --init-radius 0
// status: 1
// says: chain 0: assert failed: 
// says: tries: the log density is NaN: normal_lpdf: Scale parameter is 0, but must be positive! (in 'supports.stan', line 27, column 2 to column 19)
// run: optimize $MODEL --init 0
// status: 1
// says: normal_lpdf: Scale parameter is 0, but must be positive! (in 'supports.stan', line 27, column 2 to column 19)
data {
  vector[3] y;
}
parameters {
  real x;
  real s;
  real r;
}
model {
  y ~ normal(x, s);
  for (i in 1 : 3) {
    real m = i * r;
    target += exponential_lpdf(0.5 | m);
  }
  target += log(x < 4);
  target += sqrt(x + 2);
}
