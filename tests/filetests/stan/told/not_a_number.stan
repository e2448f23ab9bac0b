// `--check nan` names the first operation that gives NaN, also inside of a sum over turns.
// run: log-prob $MODEL --points '[[-1, 1], [1, -1], [1, 1]]' --check nan
// says: rejected: nan (in 'not_a_number.stan', line 12, column 16 to column 26)
// says: rejected: nan (in 'not_a_number.stan', line 15, column 18 to column 33)
// says: lp = 
parameters {
  real x;
  real y;
}
model {
  x ~ normal(0, 1);
  target += 1 + log(2 * x);
  y ~ normal(0, 1);
  for (i in 1 : 3) {
    target += i * sqrt(i + 2 * y);
  }
}
