// Arrays of tuples and nested tuples: of data and of parameters, with constraints, in loops and as outputs.
functions {
  tuple(real, tuple(vector, int)) nested(vector x, int n) {
    return (sum(x), (2 * x, n));
  }
  real weight(array[] tuple(real, vector) all) {
    real w = 0;
    for (one in all) {
      w += one.1 * sum(one.2);
    }
    return w;
  }
}
data {
  array[3] tuple(real<lower=0>, array[2] int) given;
  tuple(int, tuple(real, vector[2])) deep;
}
transformed data {
  tuple(int, real) both = (3, given[2].1);
  matrix[2, 2] m = [[2, 0.5], [0.5, 1]];
}
parameters {
  tuple(real, real<lower=0, upper=2>, simplex[3]) p;
  array[2] tuple(real<lower=deep.1>, vector[2]) a;
  array[2] tuple(array[2] real, ordered[2]) b;
}
transformed parameters {
  array[2] tuple(real, vector[2]) moved = a;
  tuple(vector[2], real) pair;
  moved[1].1 += p.1;
  moved[2].2[1] = p.3[2];
  moved[1].2 = moved[1].2 * 2;
  pair.1 = a[2].2 + deep.2.2;
  pair.2 = deep.2.1 * p.2;
}
model {
  tuple(real, tuple(vector[2], int)) n = nested(pair.1, deep.1);
  array[2] tuple(real, vector[2]) swapped = {a[2], a[1]};
  real first;
  tuple(vector[2], int) rest;
  p.1 ~ normal(given[1].1, 1);
  p.3 ~ dirichlet([1, 2, 3]);
  for (i in 1 : 2) {
    a[i].2 ~ normal(0, given[i].1);
    a[i].1 ~ exponential(1 + given[i].2[1]);
    b[i].2 ~ normal(b[i].1[1], 1);
    b[i].1 ~ normal(i, both.1);
  }
  (first, rest) = n;
  if (p.1 > 0) {
    swapped[1] = moved[1];
    rest.1[2] = 0;
  }
  target += -0.1 * square(first) + 0.01 * weight(swapped) - 0.01 * dot_self(rest.1) * rest.2;
}
generated quantities {
  tuple(real, tuple(vector[2], int)) out = nested(moved[1].2, 3);
  tuple(matrix[2, 2], vector[2]) e = eigendecompose_sym(m * p.2);
  array[2, 2] tuple(int, real) grid;
  real lambda_max = e.2[2];
  for (i in 1 : 2) {
    for (j in 1 : 2) {
      grid[i, j] = (10 * i + j, a[i].2[j]);
    }
  }
  e.1 = abs(e.1);
}
