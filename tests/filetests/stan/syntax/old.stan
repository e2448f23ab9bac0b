# a comment of old
functions {
  real[] doubled(real[] x, int[,] k, vector[] v) {
    real y[size(x)];
    y <- x;
    for (i in 1:size(x))
      y[i] <- 2 * x[i];
    return y;
  }
  real mine_log(real y, real mu) {
    return normal_log(y, mu, 1);
  }
}
data {
  int N;
  real y[N], z;
  int<lower=0> k[N, 2];
  vector[3] v[N]; # after a declaration
}
parameters {
  real mu;
}
model {
  real s;
  s <- if_else(mu > 0, 1, fabs(-1));
  y ~ normal(mu, s);
  mu ~ mine(0);
  increment_log_prob(mine_log(mu, 1));
  increment_log_prob(poisson_log(k[1, 1], 2) + normal_cdf_log(mu, 0, 1));
  increment_log_prob(multiply_log(2, 3) + binomial_coefficient_log(4, 2));
  if (s < -1) print(get_lp());
}
