// Sizes that do not fit are errors, not panics.
// run: log-prob $MODEL --points '[[0, 0, 0, 0, 0, 0]]'
// status: 1
// says: wishart_lpdf: the sizes of matrix[3, 3], int, matrix[2, 2] do not go together: it takes n × n, n × n
// says: sizes_differ.stan:10:3 ]
parameters {
  cov_matrix[3] S;
}
model {
  S ~ wishart(5, identity_matrix(2));
}
