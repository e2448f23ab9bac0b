// Programs that are accepted, with a word of warning.
functions {
  real ahead(real x);
  real ahead(real x) {
    return x;
    print("never");
  }
  real moved_lp(real x) {
    target += x;
    return x;
  }
}
data {
  int n;
  matrix[2, 2] m;
  real x;
}
transformed data {
  real half = n / 2;
  real third = 1 / n;
  matrix[2, 2] squared = m ^ 2;
  int inside = 0 < n <= 3;
  real self = self + 1;
  half = half;
}
parameters {
  real k;
  cov_matrix[2] S;
}
transformed parameters {
  real a = moved_lp(k);
  real b = lower_bound_jacobian(x, 0);
}
model {
  S ~ lkj_cov([0, 0]', [1, 1]', 1);
  for (i in 1 : n) {
    continue;
    print(i);
  }
}
