// QR factors of matrices with more columns than rows, with as many, and with more rows.
data {
  matrix[2, 4] A;
  matrix[4, 2] B;
}
parameters {
  matrix[2, 3] x;
}
transformed parameters {
  matrix[2, 2] q = qr_thin_Q(x);
  matrix[2, 3] r = qr_thin_R(x);
}
model {
  to_vector(x) ~ std_normal();
  target += q[1, 2] + dot_self(to_vector(r)) * r[1, 3] + qr_R(x)[2, 3];
}
generated quantities {
  matrix[2, 2] thin_q = qr_thin_Q(A);
  matrix[2, 4] thin_r = qr_thin_R(A);
  matrix[2, 2] whole_q = qr_Q(A);
  matrix[2, 4] whole_r = qr_R(A);
  matrix[4, 2] tall_q = qr_thin_Q(B);
  matrix[2, 2] tall_r = qr_thin_R(B);
  tuple(matrix[2, 2], matrix[2, 3]) both = qr_thin(x);
}
