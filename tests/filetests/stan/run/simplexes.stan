// Vectors that sum to one, to zero, or whose squares do.
data {
  int<lower=2> K;
  array[K] int<lower=0> counts;
  vector<lower=0>[K] alpha;
}
parameters {
  simplex[K] theta;
  array[2] simplex[3] several;
  unit_vector[3] direction;
  sum_to_zero_vector[K] effects;
  array[2] sum_to_zero_vector[2] pairs;
}
model {
  theta ~ dirichlet(alpha);
  counts ~ multinomial(theta);
  several[1] ~ dirichlet([1.5, 2, 0.5]');
  several[2] ~ dirichlet(rep_vector(2, 3));
  direction[1] ~ normal(0.5, 0.7);
  effects ~ normal(0, 1.5);
  for (pair in pairs)
    pair ~ normal(0, 0.5);
}
generated quantities {
  real entropy = -dot_product(theta, log(theta));
  real length = dot_self(direction);
}
