data {
  int N;
  array[N] real y;
}
transformed data {
  matrix[3, 3] A;
  array[2, 2] int T = {{1, 2}, {3, 4}};
  for (i in 1 : 3)
    for (j in 1 : 3)
      A[i, j] = i == j ? 1 : 0;
  for (row in T) {
    print(row);
    continue;
  }
  while (A[1, 1] < 10) {
    A[1, 1] += 1;
    if (A[1, 1] > 5)
      break;
    else if (A[1, 1] > 4) {
      A[1] = A[2];
    } else
      A[1, 2 : ] *= 2;
  }
  if (N > 1)
    if (N > 2)
      print("large");
    else
      print("two");
  T[1, 2] -= 1;
  A .*= A;
  A ./= 2;
  A /= 3;
  (A[1, 1], T[1, 1]) = (1.5, 2);
  { }
  {
    int k = 1;
    ;
  }
  profile("sums") {
    real s = sum(A);
  }
  fatal_error("never ", N, "!");
}
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  y ~ normal(mu, sigma);
  mu ~ normal(0, 1) T[-1, 1];
  sigma ~ cauchy(0, 1) T[0, ];
  y[1] ~ normal(0, 1) T[, 2];
  target += std_normal_lpdf(y);
  T[1] ~ poisson(1);
  -mu ~ normal(0, 1);
}
generated quantities {
  array[N] real y_rep;
  for (n in 1 : N) {
    y_rep[n] = normal_rng(mu, sigma);
  }
}
