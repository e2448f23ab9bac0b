// A matrix whose rows and columns sum to zero.
parameters {
  sum_to_zero_matrix[2, 3] table;
}
model {
  to_vector(table) ~ normal(0, 2);
  target += square(table[1, 2]) * 0.1;
}
