// Functions of one and of several numbers, alone and over containers.
data {
  vector<lower=0, upper=1>[3] p;
}
transformed data {
  real constants = pi() + e() + sqrt2() + log2() + log10() + machine_precision();
  vector[3] nothing = rep_vector(not_a_number(), 3);
  int missing = is_nan(nothing[2]) + is_inf(positive_infinity());
}
parameters {
  real x;
  real<lower=0> y;
  vector[3] v;
  array[2, 2] real a;
  real<lower=0, upper=1> q;
}
model {
  x ~ normal(constants, missing);
  v ~ normal(0, 1);
  to_array_1d(a) ~ normal(0, 1);
  y ~ lognormal(0, 0.5);
  target += exp(x * 0.1) + expm1(x * 0.1) + exp2(x) * 0.1 + log(y) + log1p(y) + log2(y) + log10(y) + sqrt(y) + cbrt(y);
  target += square(x) * -0.1 + inv(y + 1) + inv_sqrt(y + 1) + inv_square(y + 1) + pow(y, 1.5) * -0.1 + x ^ 2 * -0.1;
  target += sin(x) + cos(x) + tan(q) + asin(q) + acos(q) + atan(x) + atan2(x, y) + sinh(q) + cosh(q) + tanh(x);
  target += asinh(x) + acosh(y + 1) + atanh(q) + hypot(x, y) * -0.1 + abs(x) * -0.1 + fdim(x, y) + fmax(x, y) + fmin(x, y);
  target += inv_logit(x) + logit(q) + inv_cloglog(x) + Phi(x) + Phi_approx(x) + erf(x) + erfc(x) + inv_Phi(q);
  target += log_inv_logit(x) + log1m_inv_logit(x) + log1p_exp(x) * -0.1 + log1m(q) + log1m_exp(-y);
  target += log_sum_exp(x, y) * -0.1 + log_diff_exp(y + x, x) + log_mix(q, x, y) + log1m_exp(-q) + q * log(y) + lmultiply(y, q);
  target += lgamma(y + 1) * -0.1 + tgamma(q + 1) + digamma(y + 0.5) + trigamma(y + 1) * -0.1 + lbeta(y, q) + beta(y + 1, q + 1);
  target += lchoose(y + 5, q) + falling_factorial(y + 5, 2) * -0.01 + rising_factorial(y, 2) * -0.01;
  target += fma(x, y, q) * -0.1 + log_falling_factorial(y + 5, 2) + log_rising_factorial(y + 1, 3) + lambert_w0(y);
  target += gamma_p(2, y) + gamma_q(1.5, y + 1) + bessel_first_kind(1, y) + modified_bessel_first_kind(1, q);
  target += owens_t(x, 0.5) + floor(x) + ceil(y) + round(q) + trunc(x) + step(x) + lmgamma(2, y + 2) * -0.1 + fmod(x, 2.5);
  target += sum(exp(v * 0.1)) + sum(inv_logit(v)) + sum(log1p_exp(v)) * -0.1 + sum(square(v)) * -0.1 + sum(Phi(v));
  target += sum(to_vector(to_array_1d(tanh(a)))) + sum(pow(p, 2) .* v) + sum(fmax(v, 0)) + sum(abs(v)) * -0.1;
  target += log_mix(p[1], v[1], v[2]) + log_mix([0.2, 0.3, 0.5]', v) + log_sum_exp(a[1]) + log_sum_exp({x, y, q});
}
