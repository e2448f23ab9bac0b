// What an operation refuses, where it stands: in functions of the program, in loops whose turns
// parameters decide, in the middle of a line.
// run: log-prob $MODEL --points '[[0.5], [-0.5], [1.5], [2.5]]'
// says: lp = 
// says: rejected: division by zero (in 'operations.stan', line 12, column 20 to column 27)
// says: rejected: integer overflow (in 'operations.stan', line 23, column 14 to column 29)
// says: rejected: `v` has no index 4: they go from 1 to 3 (in 'operations.stan', line 29, column 14 to column 30)
// run: dump $MODEL --stage cfg
// says: n = select t1, 1, 0 @log_density:19
functions {
  int divided(int n) {
    return 1 + n + (7 %/% n);
  }
}
parameters {
  real x;
}
model {
  int n = x > 0 ? 1 : 0;
  target += divided(n);
  if (x > 1 && x < 2) {
    int big = x > 1 ? 2000000000 : 1;
    target += big * big * big;
  }
  vector[3] v = [x, x, x]';
  int k = 1;
  while (k < x + 1) {
    k += 1;
    target += v[k > 3 ? 4 : k];
  }
  x ~ normal(0, 1);
}
