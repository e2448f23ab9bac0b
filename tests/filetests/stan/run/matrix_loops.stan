// Loops over matrices go row by row; dot products of columns and rows of vectors.
data {
  matrix[2, 3] a;
}
parameters {
  matrix[2, 2] m;
  vector[3] v;
}
model {
  real n = 0;
  for (e in m) {
    n += 1;
    target += -n * square(e);
  }
  for (e in a) {
    n += 1;
    target += n * e * v[1];
  }
  target += -sum(columns_dot_self(v)) + 0.5 * columns_dot_product(v, v)[1] - 0.1 * columns_dot_self(v')[2];
  target += 0.1 * sum(rows_dot_product(v, 2 * v)) - rows_dot_self(v')[1];
  target += -trace_dot(m, [[2, 1], [0.5, 1]]) - trace_quad_form([[2, 1], [0.5, 1]], v[1:2]);
  target += -sum(columns_dot_product(m, m)) - rows_dot_self(m)[2] - dot_self(v);
}
generated quantities {
  array[2] real q = quantile([3, 1, 2, 7]', {0.3, 0.9});
  array[1] real one = quantile({3, 1, 2}, {0.5});
  real row = quantile([3, 1, 2], 0.25);
  array[5] int ties = sort_indices_desc({1, 2, 1, 2, 1});
  array[2] int pair = sort_indices_desc({1, 1});
  array[5] int ties_asc = sort_indices_asc({1, 2, 1, 2, 1.0});
  array[4] int steps = linspaced_int_array(4, 1, 12);
  array[5] int repeated = linspaced_int_array(5, 2, 4);
  array[1] int only = linspaced_int_array(1, 3, 9);
  vector[3] hot = one_hot_vector(3, 2);
  row_vector[3] hot_row = one_hot_row_vector(3, 1);
  array[2] int hot_ints = one_hot_int_array(2, 2);
  array[2] real hot_reals = one_hot_array(2, 1);
  vector[4] alike = uniform_simplex(4);
}
