// Cut points and probabilities that lanes compute are looked at: Stan rejects such points.
// run: log-prob $MODEL --points '[[1, 0, 0.5, 0.5], [0, 1, 0.5, 0.6], [0, 0, 0.5, 0.5], [0, 1, 0.5, 0.5]]'
// data: {"N": 2, "y": [1, 3], "k": [2, 1]}
// says: rejected: ordered_logistic_lpmf: Cut-points must be in increasing order (in 'cut_points.stan', line 17
// says: rejected: categorical_lpmf: Probabilities parameter must be a simplex: sum to 1 (in 'cut_points.stan', line 18
// says: rejected: ordered_logistic_lpmf: Cut-points must be in increasing order (in 'cut_points.stan', line 17
// says: lp =
data {
  int N;
  array[N] int y, k;
}
parameters {
  vector[2] c;
  vector[2] theta;
}
model {
  y ~ ordered_logistic(rep_vector(0, N), c);
  k ~ categorical(theta);
}
