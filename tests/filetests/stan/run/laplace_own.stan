// tolerance: 1e-8 (Stan ends its search for the mode where the density grows by less than 1e-10 of it)
// The embedded Laplace approximation with likelihoods of the program: a diagonal Hessian, one of blocks, one that is not
// concave, and what they take of data and of parameters.
functions {
  real counted(vector theta, array[] int y, real phi) {
    return neg_binomial_2_log_lpmf(y | theta, phi);
  }
  real paired(vector theta, vector y, vector sigma, real pull) {
    real total = 0;
    for (i in 1 : (rows(theta) %/% 2)) {
      total += normal_lpdf(
        y[i] |
        theta[2 * i - 1] + pull * theta[2 * i],
        exp(0.3 * theta[2 * i]) * sigma[i]
      );
    }
    return total;
  }
  real robust(vector theta, vector y, real nu, real scale) {
    return student_t_lpdf(y | nu, theta, scale);
  }
  matrix covariance(array[] real x, real sigma, real scale) {
    return add_diag(gp_matern32_cov(x, sigma, scale), 0.05);
  }
  matrix diagonal_covariance(int n, real sigma) {
    return diag_matrix(rep_vector(square(sigma), n));
  }
}
data {
  int N;
  array[N] real x;
  array[N] int counts;
  vector[N] y;
}
parameters {
  real<lower=0.1> sigma;
  real<lower=0.2> scale;
  real<lower=0.5> phi;
  vector<lower=0.3>[2] width;
  real pull;
}
model {
  pull ~ normal(0, 1);
  target += laplace_marginal_tol(
    counted,
    (counts, phi),
    1,
    covariance,
    (x, sigma, scale),
    (rep_vector(0.1, N), 1e-13, 100, 1, 1000, 1)
  );
  target += laplace_marginal_tol(
    paired,
    (y[1 : 2], width, pull),
    2,
    covariance,
    (x, sigma, scale),
    (rep_vector(0.1, N), 1e-13, 100, 1, 1000, 1)
  );
  target += laplace_marginal_tol(
    paired,
    (y[1 : 2], rep_vector(0.7, 2), 0.2),
    2,
    diagonal_covariance,
    (N, sigma),
    (rep_vector(0.1, N), 1e-13, 100, 1, 1000, 1)
  );
  target += laplace_marginal_tol(
    robust,
    (y, 4 + phi, 0.5),
    1,
    covariance,
    (x, 1, 0.8),
    (rep_vector(0.1, N), 1e-13, 100, 1, 1000, 1)
  );
  target += laplace_marginal_tol(
    counted,
    (counts, 2.5),
    1,
    covariance,
    (x, 1, 0.8),
    (rep_vector(0.1, N), 1e-13, 100, 1, 1000, 1)
  );
}
