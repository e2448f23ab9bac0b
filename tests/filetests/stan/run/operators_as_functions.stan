// Operators by the names of functions, sparse matrices, and transforms that are called.
data {
  matrix[3, 4] a;
  int nz;
}
transformed data {
  vector[nz] w = csr_extract_w(a);
  array[nz] int v = csr_extract_v(a);
  array[4] int u = csr_extract_u(a);
}
parameters {
  vector[4] b;
  matrix[2, 2] m;
  vector[3] f;
}
transformed parameters {
  vector[3] product = csr_matrix_times_vector(3, 4, w, v, u, b);
  matrix[3, 4] dense = csr_to_dense_matrix(3, 4, w * b[1], v, u);
}
model {
  b ~ normal(0, 1);
  to_vector(m) ~ normal(0, 1);
  f ~ normal(0, 1);
  target += -sum(square(product)) - sum(dense);
  target += add(b[1], 2) + sum(subtract(m, m')) + sum(multiply(m, b[1:2])) + sum(divide(m, 2)) + divide(3, 2);
  target += sum(elt_multiply(m, m)) * 0.1 + sum(elt_divide(1.0, square(m) + 1)) + minus(b[2]) + sum(plus(m));
  target += modulus(7, 4) + logical_and(b[1] > 0, 1) + logical_or(0, b[2] > 0) + logical_lt(b[1], b[2]);
  target += logical_negation(b[1] > 0) + logical_eq(1, 1.0) + logical_gte(b[1], 0) + sum(minus({b, b})[1]);
}
