// Matrices whose rows or columns sum to one or to zero, and scales that are computed from data and from parameters.
data {
  int<lower=2> K;
  vector[K] y;
}
parameters {
  sum_to_zero_matrix[2, 3] effects;
  array[2] sum_to_zero_matrix[3, 2] several;
  row_stochastic_matrix[2, 3] rows;
  column_stochastic_matrix[3, 2] columns;
  array[2] row_stochastic_matrix[2, 2] chains;
  real centre;
  real<lower=0> spread;
}
transformed parameters {
  real top = centre + 2 * spread;
}
model {
  to_vector(effects) ~ normal(0, 1.5);
  effects[1, 2] ~ normal(several[2, 3, 1], 0.5);
  for (i in 1 : 2) {
    to_vector(several[i]) ~ normal(0, i);
    rows[i]' ~ dirichlet([1.5, 2, 0.5]');
    col(columns, i) ~ dirichlet([2, 1, 3]');
    chains[i, 1]' ~ dirichlet([2, i]');
    chains[i, 2]' ~ dirichlet([i, 2]');
  }
  centre ~ normal(0, 3);
  spread ~ exponential(0.5);
  y ~ normal(top * rows[1, 2], spread);
}
generated quantities {
  matrix[2, 2] product = rows * columns;
}
