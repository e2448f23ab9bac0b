// Functions of a program whose names begin like those of the embedded Laplace approximation.
functions {
  real laplace_mix_lpdf(real y, real m) {
    return -abs(y - m);
  }
  real laplace_step_lpmf(int n, real rate) {
    return n * log(rate) - rate;
  }
  real laplace_marginal_own(real x) {
    return 2 * x;
  }
}
parameters {
  real y;
  real<lower=0> rate;
}
model {
  y ~ laplace_mix(laplace_marginal_own(0.25));
  3 ~ laplace_step(rate);
  target += laplace_mix_lpdf(rate | y);
}
