// Draws with arguments that Stan refuses: the draw of the chain has no generated quantities, and it is told how many have
// none, which function it was, which argument, and where.
// run: sample $MODEL --chains 2 --warmup 20 --draws 20 --seed 1 --shared k=1
// says: of 40 draws, for which they are NaN and left out of the table; the first is draw 0 of chain 1: normal_rng: Scale parameter is -
// run: sample $MODEL --chains 2 --warmup 20 --draws 20 --seed 1 --shared k=2
// says: multinomial_rng: Probabilities parameter must be a simplex: nothing negative (in 'arguments_of_draws.stan', line 35
// run: sample $MODEL --chains 2 --warmup 20 --draws 20 --seed 1 --shared k=3
// says: ordered_logistic_rng: Cut points parameter must be in increasing order (in 'arguments_of_draws.stan', line 37
// run: sample $MODEL --chains 2 --warmup 20 --draws 20 --seed 1 --shared k=4
// says: multi_normal_cholesky_rng: Cholesky factor of covariance matrix must have a positive diagonal (in 'arguments_of_draws.stan', line 39
// run: sample $MODEL --chains 2 --warmup 20 --draws 20 --seed 1 --shared k=5
// says: binomial_rng: Probability parameter has -
// run: sample $MODEL --chains 2 --warmup 20 --draws 20 --seed 1 --shared k=6
// says: uniform_rng: Upper bound parameter is -
// run: sample $MODEL --chains 2 --warmup 20 --draws 20 --seed 1 --shared k=7
// says: hmm_latent_rng: Gamma[1, ] must be a simplex: nothing negative (in 'arguments_of_draws.stan', line 45
// run: sample $MODEL --chains 2 --warmup 20 --draws 20 --seed 1 --shared k=8
// status: 1
// says: normal_rng: Scale parameter is -1, but must be positive finite!
data {
  int k;
}
parameters {
  real a;
  real b;
}
model {
  [a, b] ~ normal(0, 1);
}
generated quantities {
  real z = 0;
  if (k == 1) {
    z = normal_rng(a, b);
  } else if (k == 2) {
    z = multinomial_rng([b, 1 - b]', 3)[1];
  } else if (k == 3) {
    z = ordered_logistic_rng(a, [b, 0]');
  } else if (k == 4) {
    z = multi_normal_cholesky_rng([a, b]', [[1, 0], [0.5, b]])[1];
  } else if (k == 5) {
    z = binomial_rng({3, 4}, {0.5, b})[2];
  } else if (k == 6) {
    z = uniform_rng(a, b);
  } else if (k == 7) {
    z = hmm_latent_rng([[-1, -2], [-2, -1]], [[b, 1 - b], [0.5, 0.5]], [0.5, 0.5]')[1];
  } else {
    z = normal_rng(0, -1);
  }
}
