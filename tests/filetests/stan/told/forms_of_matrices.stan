// What functions demand of the form of a matrix, of data and of what lanes compute, is told as in Stan.
// data: {"W": [[1, 2], [2, 1]], "L": [[1, 2], [0, 1]], "M": [[1, 0], [0, 1]], "n": 7}
// run: log-prob $MODEL --points '[[0.5, 0.25], [0.5, 0.5], [0.5, -1]]'
// says: lp = -
// says: lp = -
// says: rejected: gaussian_dlm_obs_lpdf: W is not positive semi-definite. (in 'forms_of_matrices.stan', line 43
// run: log-prob $MODEL --points '[[2, 1.25]]'
// says: gaussian_dlm_obs_lpdf: W is not positive semi-definite. (in 'forms_of_matrices.stan', line 47
// run: log-prob $MODEL --points '[[3, 2.25]]'
// says: chol2inv: L is not lower triangular; L[1,2]=2 (in 'forms_of_matrices.stan', line 49
// run: log-prob $MODEL --points '[[4, 3.25]]'
// says: rejected: chol2inv: L must be lower triangular (in 'forms_of_matrices.stan', line 51
// run: log-prob $MODEL --points '[[5, 4.25]]'
// says: matrix_power: M[row=1, col=2] is inf, but must be finite! (in 'forms_of_matrices.stan', line 53
// run: log-prob $MODEL --points '[[6, 5.25]]'
// says: hypergeometric_lpmf: Draws parameter minus successes variable is 6, but must be in the interval [0, 4] (in 'forms_of_matrices.stan', line 55
// run: log-prob $MODEL --points '[[7, 6.25]]'
// says: gaussian_dlm_obs_lpdf: V[2] is -1, but must be nonnegative! (in 'forms_of_matrices.stan', line 57
// run: log-prob $MODEL --points '[[8, 7.25]]'
// says: gaussian_dlm_obs_lpdf: W is not positive semi-definite. (in 'forms_of_matrices.stan', line 59
// run: log-prob $MODEL --points '[[9, 8.25]]'
// says: lp = -
// run: log-prob $MODEL --points '[[-0.5, 9.25], [0.5, 9.25], [-0.5, 10.25], [0.5, 10.25]]'
// says: rejected: gaussian_dlm_obs_lpdf: C0 must be positive definite (in 'forms_of_matrices.stan', line 64
// says: lp = -
// says: rejected: gaussian_dlm_obs_lpdf: V must be nonnegative! (in 'forms_of_matrices.stan', line 66
// says: lp = -
data {
  matrix[2, 2] W;
  matrix[2, 2] L;
  matrix[2, 2] M;
  int n;
}
parameters {
  real a;
  real b;
}
model {
  matrix[2, 2] y = [[1, 2], [3, 4]];
  vector[2] m0 = [0, 0]';
  [a, b] ~ normal(0, 1);
  if (b < 9) {
    y ~ gaussian_dlm_obs(M, M, M, [[a, b], [b, a]] + 0 * M, m0, M);
  }
  if (b > 1 && b < 2) {
    // Data that are wrong are told where the program comes to them.
    y ~ gaussian_dlm_obs(M, M, M, W, m0, M);
  } else if (b > 2 && b < 3) {
    target += sum(chol2inv(L));
  } else if (b > 3 && b < 4) {
    target += sum(chol2inv([[a, b], [0, a]]));
  } else if (b > 4 && b < 5) {
    target += sum(matrix_power([[1, positive_infinity()], [0, 1]], 2));
  } else if (b > 5 && b < 6) {
    1 ~ hypergeometric(n, 3, 4);
  } else if (b > 6 && b < 7) {
    y ~ gaussian_dlm_obs(M, M, [1, -1]', M, m0, M);
  } else if (b > 7 && b < 8) {
    y ~ gaussian_dlm_obs(M, M, M, [[1e10, 0], [0, -50]], m0, M);
  } else if (b > 8 && b < 9) {
    // Nearly singular, and no more.
    y ~ gaussian_dlm_obs(M, M, M, [[1e-9, 1e-5], [1e-5, 1]], m0, M);
  } else if (b > 9 && b < 10) {
    [[1, 2]] ~ gaussian_dlm_obs([[1]], [[1]], [[1]], [[1]], [0]', [[a]]);
  } else if (b > 10) {
    [[1, 2]] ~ gaussian_dlm_obs([[1]], [[1]], [a]', [[2]], [0]', [[1]]);
  }
}
