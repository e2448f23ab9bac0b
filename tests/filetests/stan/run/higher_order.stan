// tolerance: 1e-7 (solvers with adaptive steps agree within their tolerances)
// Functions that take functions: differential equations, a root, an integral, reduce_sum, map_rect; profile and print.
functions {
  vector decay(real t, vector y, real k, data array[] real x) {
    return [-k * y[1] + x[1], k * y[1] - 0.5 * y[2]]';
  }
  array[] real old_decay(real t, array[] real y, array[] real theta, data array[] real x_r, data array[] int x_i) {
    return {-theta[1] * y[1], theta[1] * y[1] - x_r[1] * y[2]};
  }
  vector balance(vector z, real a, vector b) {
    return [z[1] ^ 3 + a * z[1] - b[1], z[2] + exp(z[2]) - b[2] - z[1]]';
  }
  real bell(real x, real xc, array[] real theta, data array[] real x_r, data array[] int x_i) {
    return exp(-0.5 * square(x / theta[1])) * (1 + x_r[1]);
  }
  real part(array[] real slice, int from, int to, vector y, real mu, real sigma) {
    return normal_lpdf(y[from : to] | mu + to_vector(slice), sigma);
  }
  vector shard(vector phi, vector theta, data array[] real x_r, data array[] int x_i) {
    return [normal_lpdf(to_vector(x_r) | phi[1] + theta[1], exp(theta[2])) + x_i[1] * phi[2]]';
  }
}
data {
  int<lower=1> N;
  vector[N] y;
  array[N] real offsets;
  array[2] real times;
}
transformed data {
  array[2, 2] real x_r = {{0.5, 1.5}, {-1.0, 0.25}};
  array[2, 1] int x_i = {{1}, {2}};
}
parameters {
  real<lower=0> k;
  real<lower=0> sigma;
  vector[2] phi;
  array[2] vector[2] theta;
}
model {
  array[2] vector[2] smooth = ode_rk45_tol(decay, [2.0, 0.5]', 0.0, times, 1e-10, 1e-10, 10000, k, {0.25});
  array[2] vector[2] stiff = ode_bdf_tol(decay, [2.0, phi[1]]', 0.0, times, 1e-11, 1e-11, 10000, k, {0.25});
  array[2, 2] real old = integrate_ode_rk45(old_decay, {2.0, 0.5}, 0.0, times, {k}, {0.5}, {1}, 1e-10, 1e-10, 10000);
  vector[2] root = solve_newton_tol(balance, [0.5, 0.5]', 1e-3, 1e-12, 200, k + 1, [2.0, sigma]');
  real area = integrate_1d(bell, -1.0, phi[1] + 3, {sigma + 0.5}, {0.5}, {1}, 1e-10);
  k ~ lognormal(0, 0.5);
  sigma ~ lognormal(0, 0.5);
  phi ~ normal(0, 1);
  for (i in 1 : 2) {
    theta[i] ~ normal(0, 1);
    y[i] ~ normal(smooth[i, 1], sigma);
    stiff[i] ~ normal(0.5, 1);
  }
  old[2] ~ normal(0.5, 2);
  root ~ normal(1, 2);
  target += log(area);
  profile("sums") {
    target += reduce_sum(part, offsets, 2, y, phi[1], sigma);
    target += sum(map_rect(shard, phi, theta, x_r, x_i));
  }
  if (k > 1e6)
    print("large: ", k);
}
