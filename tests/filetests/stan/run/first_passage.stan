// tolerance: 2e-7 (Stan's integrals have a relative error of up to the precision that is asked for)
// The diffusion model of seven parameters: drifts, starts and lost times that vary, and those that do not; probabilities.
data {
  int N;
  vector[N] y;
}
parameters {
  real<lower=0.5, upper=2> alpha;
  real<lower=0.05, upper=0.2> tau;
  real<lower=0.3, upper=0.7> beta;
  real delta;
  real<lower=0.1, upper=1> sv;
  real<lower=0.05, upper=0.4> sw;
  real<lower=0.02, upper=0.15> st;
}
model {
  vector[N] ones = rep_vector(1, N);
  delta ~ normal(0, 1);
  target += wiener_lpdf(y[1] | alpha, tau, beta, delta, sv);
  y[2] ~ wiener(alpha, tau, beta, delta, sv);
  target += wiener_lpdf(y | alpha * ones, tau * ones, beta * ones, delta * ones, sv * ones, 1e-8);
  target += wiener_lpdf(y[3] | alpha, tau, beta, delta, sv, sw, 0, 1e-8);
  target += wiener_lpdf(y[2] | alpha, tau, beta, delta, sv, 0, st, 1e-8);
  target += wiener_lpdf(y[2] | alpha, tau, beta, delta, sv, sw, st, 1e-8);
  target += wiener_lcdf_unnorm(y[3], alpha, tau, beta, delta, 1e-8);
  target += wiener_lccdf_unnorm(y[2], alpha, tau, beta, delta);
  target += wiener_lcdf_unnorm(y[2], alpha, tau, beta, delta, 0, sw, 0, 1e-8);
  target += wiener_lccdf_unnorm(y[2], alpha, tau, beta, delta, 0, 0, st, 1e-8);
}
