// The transforms of constrained parameters as functions, of one value or an array of them.
functions {
  vector positive_jacobian(vector u) {
    return lower_bound_jacobian(u, 0.5);
  }
}
parameters {
  vector[3] u;
  array[2] vector[3] us;
  matrix[2, 2] m;
}
transformed parameters {
  vector[3] above = positive_jacobian(u);
  vector[3] below = upper_bound_jacobian(u, [1, 2, 3]');
  real between = lower_upper_bound_jacobian(u[1], -1, 2);
  vector[3] scaled = offset_multiplier_jacobian(u, 1.0, 2.5);
  array[2] vector[3] ordered_ones = ordered_jacobian(us);
  vector[3] positive = positive_ordered_jacobian(u);
  array[2] vector[4] simplexes = simplex_jacobian(us);
  vector[3] unit = unit_vector_jacobian(u + 0.5);
  vector[4] zero = sum_to_zero_jacobian(u);
  matrix[3, 3] zeros = sum_to_zero_jacobian(m);
  matrix[2, 3] rows_of_one = stochastic_row_jacobian(m);
  matrix[3, 2] columns_of_one = stochastic_column_jacobian(m);
  array[2] matrix[3, 3] factors = cholesky_factor_corr_jacobian(us, 3);
  matrix[2, 2] factor = cholesky_factor_cov_jacobian(u, 2, 2);
  matrix[3, 3] correlations = corr_matrix_jacobian(u, 3);
  matrix[2, 2] covariance = cov_matrix_jacobian(u, 2);
  vector[3] plain = lower_bound_constrain(u, 1);
}
model {
  target += -dot_self(u) - dot_self(us[1]) - dot_self(us[2]) - sum(square(m));
  target += -sum(above) + sum(below) - between + sum(zero) + sum(zeros[1]) + rows_of_one[1, 1] - factors[2][3, 1];
}
generated quantities {
  vector[3] free_above = lower_bound_unconstrain(above, 0.5);
  real free_between = lower_upper_bound_unconstrain(between, -1, 2);
  vector[3] free_scaled = offset_multiplier_unconstrain(scaled, 1.0, 2.5);
  array[2] vector[3] free_simplexes = simplex_unconstrain(simplexes);
  vector[3] free_ordered = ordered_unconstrain(ordered_ones[1]);
  matrix[2, 2] free_zeros = sum_to_zero_unconstrain(zeros);
  matrix[2, 2] free_rows = stochastic_row_unconstrain(rows_of_one);
  vector[3] free_correlations = corr_matrix_unconstrain(correlations);
  vector[3] free_covariance = cov_matrix_unconstrain(covariance);
  array[2] vector[3] free_factors = cholesky_factor_corr_unconstrain(factors);
  vector[3] free_factor = cholesky_factor_cov_unconstrain(factor);
  vector[3] known = simplex_constrain([0.5, -0.2]');
}
