data {
  int<lower=1> D;
  vector[D] mean;
  matrix[D, D] precision;
}
parameters {
  vector[D] q;
}
model {
  // Without the determinant, which multi_normal_prec would compute again and again.
  vector[D] centred = q - mean;
  target += -0.5 * dot_product(centred, precision * centred);
}
