// Truncation of a distribution that the program defines, whose functions differ by the ends of their names.
functions {
  real bent_lpdf(real x, real m) {
    return log_inv_logit(x - m) + log1m_inv_logit(x - m);
  }
  real bent_lcdf(real x, real m) {
    return log_inv_logit(x - m);
  }
  real bent_lccdf(real x, real m) {
    return log1m_inv_logit(x - m);
  }
}
parameters {
  real m;
  real s;
}
model {
  m ~ normal(0, 1);
  s ~ normal(0, 1);
  1.0 ~ bent(m) T[-1.0, ];
  0.5 ~ bent(s) T[, 2.5];
  1.2 ~ bent(m) T[-0.5, 3.0];
}
