// Sizes that do not fit are errors, not panics.
// run: log-prob $MODEL --points '[[0, 0, 0, 0, 0, 0]]'
// status: 1
// says: `wishart_lpdf` takes real[n, n] for `scale`, found real[2, 2]
// says: sizes_differ.stan:10:3 ]
parameters {
  cov_matrix[3] S;
}
model {
  S ~ wishart(5, identity_matrix(2));
}
