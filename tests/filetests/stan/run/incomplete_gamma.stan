// Derivatives of the incomplete gamma function by its shape, in distribution functions: Stan's are sums that end early, off by
// up to 4e-4 here, where its values agree. By mpmath, tests/scripts/instead.py:
// instead: 0 -16.094505613834062 [1.8519449595826818, 1.5928818154098663, -4.3082550694023102]
// instead: 1 -24.153340108803202 [3.3509375061550824, 0.02354208131217152, -4.5033308473034852]
// instead: 2 -17.589240710667469 [2.7944394937955346, 1.4490393333460419, -4.441851672949859]
data {
  vector[2] y;
}
parameters {
  vector<lower=0.5, upper=4>[2] a;
  real<lower=0.5, upper=4> b;
}
model {
  target += chi_square_cdf(y | a) + chi_square_lcdf(y | b) + chi_square_lccdf(2.5 | a);
  target += gamma_cdf(y | a, b) + gamma_lccdf(1.5 | a, b) + inv_gamma_lcdf(y | a, b);
  target += inv_chi_square_cdf(y | a) + inv_chi_square_lcdf(y | b);
  target += scaled_inv_chi_square_cdf(y | a, b) + scaled_inv_chi_square_lcdf(y | b, 2);
}
