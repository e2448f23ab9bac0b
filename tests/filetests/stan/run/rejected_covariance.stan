// A transformed parameter that is no covariance matrix, or no correlation matrix.
parameters {
  real a;
}
transformed parameters {
  cov_matrix[2] S = [[1, 0.7 * a], [0.7 * a, 1]];
}
model {
  a ~ normal(0, 1);
}
