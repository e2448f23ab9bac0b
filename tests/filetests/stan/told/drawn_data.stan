// What `transformed data` draws is drawn once, before there are lanes: sizes may depend on it, and all draws have it.
// run: sample $MODEL --chains 2 --warmup 5 --draws 4 --seed 3
// says: same          0       0     -
// says: sizes     1.000       0     -
// says: 1 and 1
functions {
  real two_rng(real x) {
    return normal_rng(x, 1) + normal_rng(x, 1);
  }
}
transformed data {
  int n = poisson_rng(4) + 1;
  array[n] real y = normal_rng(rep_vector(0, n), 1);
  real x = two_rng(1);
  vector[2] m = multi_normal_rng([0, 0]', identity_matrix(2));
  print(n > 0, " and ", x != m[1] && m[1] != m[2]);
}
parameters {
  array[n] real p;
}
model {
  p ~ normal(y, 1);
  target += -square(p[1] - x);
}
generated quantities {
  real same = x - x + y[n] - y[n];
  int sizes = size(p) == n;
}
