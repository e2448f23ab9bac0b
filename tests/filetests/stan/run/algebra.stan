// Products, divisions and functions of vectors and matrices.
data {
  int<lower=1> K;
  matrix[K, K] A;
  vector[K] b;
  matrix[4, K] X;
}
transformed data {
  matrix[K, K] S = crossprod(X) + identity_matrix(K);
  matrix[K, K] LS = cholesky_decompose(S);
  real ld = log_determinant(S);
}
parameters {
  vector[K] v;
  row_vector[K] r;
  matrix[K, K] M;
  vector<lower=0>[K] d;
}
transformed parameters {
  matrix[K, K] P = tcrossprod(M) + diag_matrix(d + 0.5);
  vector[K] solved = P \ v;
}
model {
  matrix[K, K] L = cholesky_decompose(P);
  v ~ normal(0, 1);
  r ~ normal(0, 1);
  to_vector(M) ~ normal(0, 1);
  d ~ normal(0, 1);
  target += dot_product(v, b) + r * v + dot_self(r) * -0.1 + quad_form(A, v) * 0.01;
  target += sum(M * A) + sum(A' * M) - 0.1 * sum(M .* M) + sum(M ./ (1 + square(A))) + trace(M * X' * X) * 0.01;
  target += -0.5 * log_determinant(P) - log_determinant_spd(P) + log(abs(determinant(A + M' * M)));
  target += sum(mdivide_left_tri_low(L, v)) + sum(mdivide_right_tri_low(r, L)) + sum(mdivide_left_spd(S, v));
  target += sum(solved) - sum(r / P) + sum(inverse(P)) + sum(inverse_spd(P)) + sum(A \ v) + sum(M / S);
  target += - sum(quad_form_sym(S, M)) * 0.01 + sum(quad_form_diag(A, d));
  target += sum(diag_pre_multiply(d, A)) + sum(diag_post_multiply(A, d)) + sum(diagonal(M) ./ (d + 1)) + ld;
  target += mean(v) + variance(v) + sd(b' + r) + min(b + v) + max(b' + r) + prod(1 + d) + norm2(b + v) + norm1(b' + r) + distance(v, b);
  target += squared_distance(v, r) + log_sum_exp(v) + sum(softmax(v) .* b) + sum(log_softmax(v)) * 0.1;
  target += sum(cumulative_sum(v)) + sum(reverse(v) .* b) + sum(append_row(v, d));
  target += sum(append_col(M, A) * rep_vector(0.1, 2 * K)) + sum(block(M, 1, 2, 2, 2)) + sum(head(v, 2)) + sum(tail(r, 1));
  target += sum(sub_col(M, 2, 1, 2)) + sum(sub_row(M, 2, 1, 2)) + sum(segment(v, 2, 2)) + sum(row(M, 1) - col(M, 2)');
  target += sum(add_diag(M, d)) + sum(to_matrix(v, 1, K)) + sum(to_row_vector(v) * LS);
  target += sum(M - A) + sum(-M) + sum(M + 1) + sum(2 * M) + sum(M / 2) + sum(v * r) + sum(1 ./ (1 + d)) + sum(v .* d);
  target += sum(to_matrix(to_vector(M), K, K) .* A) + sum(to_vector(M') .* to_vector(A)) + sum(d .^ 1.5) - sum(2 .^ d);
}
generated quantities {
  vector[K] in_order = sort_asc(b);
  vector[K] e = eigenvalues_sym(P);
  matrix[K, K] low = tcrossprod(LS);
}
