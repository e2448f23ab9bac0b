// Indices that parameters decide: counted from 1, at the place in this file, of the array by its name here.
// run: log-prob $MODEL --points '[[-1, 0, 1, 1], [1, 0, 1, 1], [-3, 9, 9, 0], [-1, 8, 1, 1]]'
// says: lp = inf
// says: rejected: `x` has no index 5: they go from 1 to 4 (in 'indices.stan', line 19, column 14 to column 18)
// says: lp = 496.4508
// says: rejected: `m` has no index 0: they go from 1 to 2 (in 'indices.stan', line 23, column 14 to column 21)
// run: sample $MODEL --chains 1 --warmup 1 --draws 1
// says: draw 0 of chain 0: `v` has no index 3: they go from 1 to 2 (in 'indices.stan', line 32, column 11 to column 15)
parameters {
  vector[4] x;
}
transformed parameters {
  matrix[2, 2] m = [[x[1], x[2]], [x[3], x[4]]];
}
model {
  x ~ normal(0, 1);
  for (i in 1 : 3) {
    int k = x[1] > 0 ? 5 : i;
    target += x[k] + lgamma(square(x[i]));
  }
  {
    int j = x[2] > 7 && x[1] > -2 ? 0 : 2;
    target += m[1, j];
  }
}
generated quantities {
  real r = 0;
  {
    vector[2] v = [x[1], 2]';
    for (i in 1 : 2) {
      int k = x[1] < 1e10 ? i + 1 : 1;
      r += v[k];
    }
  }
}
