// Rows of computed numbers sum to 1 but for the rounding of the precision of the run.
// run: sample $MODEL --real f32 --chains 4 --warmup 100 --draws 50 --seed 2 --progress none
// says: 4 chains, 200 draws, 0 divergent transitions
// silent: rejected
parameters {
  array[2] vector[3] x;
}
transformed parameters {
  row_stochastic_matrix[2, 3] p;
  for (i in 1:2) {
    p[i] = softmax(x[i])';
  }
}
model {
  for (i in 1:2) {
    x[i] ~ normal(0, 1);
  }
}
