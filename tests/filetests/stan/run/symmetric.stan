// Matrices that are symmetric by what they are made of, and one between two sets of points that is not, at two of the
// points of the test: there Stan rejects.
data {
  array[3] real x;
  matrix[3, 3] D;
}
parameters {
  real<lower=0.1> s;
  real shift;
}
transformed parameters {
  real r = 0;
  {
    matrix[3, 3] K = add_diag(gp_exp_quad_cov(x, s, 1.5), 0.1) + diag_matrix(rep_vector(s, 3));
    matrix[3, 3] E = add_diag(square(s) * exp(-D / (2 * s)), 0.2);
    matrix[3, 3] B;
    for (i in 1 : 3) {
      B[i, i] = s + 2;
      for (j in 1 : (i - 1)) {
        B[i, j] = s / (i + j);
        B[j, i] = B[i, j];
      }
    }
    r += sum(cholesky_decompose(K)) + sum(cholesky_decompose(E));
    r += sum(cholesky_decompose(-(-B) + K .* E));
    array[3] real other = {x[1] + shift, x[2], x[3]};
    r += cholesky_decompose(add_diag(gp_exp_quad_cov(x, other, s, 1.5), s))[3, 3];
  }
}
model {
  s ~ exponential(1);
  shift ~ normal(0, 1);
  target += r;
}
