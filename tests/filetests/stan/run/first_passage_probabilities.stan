// tolerance: 2e-8 (Stan's integrals have a relative error of up to the precision that is asked for)
// Probabilities of first passage, without and with drifts, starts and lost times that vary, of numbers and of
// vectors; lost times that may be longer than what was observed.
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
  target += wiener_lcdf_unnorm(y, alpha * ones, tau * ones, beta * ones, delta * ones, 1e-8);
  target += wiener_lccdf_unnorm(y, alpha * ones, tau * ones, beta * ones, delta * ones);
  target += wiener_lccdf_unnorm(y[1], alpha, tau, beta, delta, sv, sw, st, 1e-6);
  target += wiener_lcdf_unnorm(y[1:1], [alpha]', [tau]', [beta]', [delta]', [sv]', [sw]', [st]', 1e-6);
  target += wiener_lpdf(y[1] | alpha, tau, beta, delta, sv, 0, 10 * st, 1e-8);
}
