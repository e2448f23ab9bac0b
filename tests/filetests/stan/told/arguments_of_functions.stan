// What lanes compute is looked at as Stan does, also where a number would come out: Stan rejects such points. Where Stan has
// minus infinity, so has the density.
// data: {"x": [[1, 2], [3, 4]]}
// run: log-prob $MODEL --points '[[1, 1, 0.5, 0.5], [-1, 1, 0.5, 0.5], [1, -1, 0.5, 0.5], [1, 1, 1.5, 0.5], [1, 1, 0.5, 1.5]]'
// says: lp = -
// says: rejected: gp_exp_quad_cov: magnitude is -1, but must be positive! (in 'arguments_of_functions.stan', line 30, column 16 to column 40)
// says: rejected: gp_exp_quad_cov: length scale is -1, but must be positive! (in 'arguments_of_functions.stan', line 30, column 16 to column 40)
// says: rejected: hmm_marginal: Gamma[1, ] must be a simplex: nothing negative (in 'arguments_of_functions.stan', line 31
// says: rejected: hmm_marginal: rho must be a simplex: nothing negative (in 'arguments_of_functions.stan', line 31
// run: log-prob $MODEL --points '[[1, 1, 0.5, -0.5], [10, 1, 0.5, 0.5], [11, 1, 0.5, 0.5], [12, 1, 0.5, 0.5]]' --format json
// says: {"rejected":"hmm_marginal: rho must be a simplex: nothing negative
// says: {"rejected":"gamma_lpdf: Random variable is -9, but must be positive finite! (in 'arguments_of_functions.stan', line 33, column 27 to column 51)"}
// says: {"rejected":"beta_lcdf: Random variable is 11, but must be in the interval [0, 1]
// says: {"rejected":"lkj_corr_cholesky_lpdf: Random variable must be lower triangular
// run: log-prob $MODEL --points '[[13, 1, 0.5, 0.5], [14, 1, 0.5, 0.5], [15, 1, 0.5, 0.5]]'
// says: lp = -inf
// says: rejected: multi_normal_lpdf: Covariance matrix must be symmetric
// says: rejected: exponential_lpdf: Random variable is -15, but must be nonnegative! (in 'arguments_of_functions.stan', line 43
data {
  array[2] vector[2] x;
}
parameters {
  real a;
  real b;
  real p;
  real r;
}
model {
  [a, b] ~ normal(0, 1);
  target += sum(gp_exp_quad_cov(x, a, b));
  target += hmm_marginal([[-1, -2], [-2, -1]], [[p, 1 - p], [0.5, 0.5]], [r, 1 - r]');
  if (a > 9.5 && a < 10.5) {
    target += log_mix(0.5, gamma_lpdf(1 - a | 2, 1), normal_lpdf(a | 0, 1));
  } else if (a > 10.5 && a < 11.5) {
    target += beta_lcdf(a | 2, 3);
  } else if (a > 11.5 && a < 12.5) {
    target += lkj_corr_cholesky_lpdf([[1, a], [0, 1]] | 2.0);
  } else if (a > 12.5 && a < 13.5) {
    target += uniform_lpdf(a | 0, 1);
  } else if (a > 13.5 && a < 14.5) {
    target += multi_normal_lpdf([a, 1]' | [0, 0]', [[a, b], [0.5, 1]]);
  } else if (a > 14.5) {
    -a ~ exponential(1);
  }
}
