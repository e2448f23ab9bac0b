// What lanes compute is looked at where a block ends that says what it must be.
// run: log-prob $MODEL --points '[[0.5], [1.5]]'
// says: lp = -
// says: rejected: rows, row 1, must be a simplex: nothing negative
// run: log-prob $MODEL --points '[[0.25], [0.125]]'
// says: rejected: columns, column 2, must be a simplex: sum to 1
// says: rejected: zeros must sum to 0 in every row and column
parameters {
  real a;
}
transformed parameters {
  row_stochastic_matrix[2, 2] rows = [[a, 1 - a], [0.5, 0.5]];
  column_stochastic_matrix[2, 2] columns = [[a, 0.5], [1 - a, a == 0.25 ? 0.25 : 0.5]];
  sum_to_zero_matrix[2, 2] zeros = [[a, -a], [-a, a == 0.125 ? 0 : a]];
}
model {
  a ~ normal(0, 1);
}
