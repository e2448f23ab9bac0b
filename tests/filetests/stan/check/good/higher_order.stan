// Functions that take functions.
functions {
  vector decay(real t, vector y, real rate, data array[] int shape) {
    return -rate * y;
  }
  vector decay(real t, vector y, vector rates) {
    return -rates .* y;
  }
  array[] real old_decay(real t, array[] real y, array[] real theta, data array[] real x_r, data array[] int x_i) {
    return {-theta[1] * y[1]};
  }
  vector balance(vector y, vector theta, data array[] real x_r, data array[] int x_i) {
    return y - theta;
  }
  vector root(vector y, real a) {
    return y - a;
  }
  real bump(real x, real xc, array[] real theta, data array[] real x_r, data array[] int x_i) {
    return exp(-square(x - theta[1]));
  }
  real part_sum(array[] real slice, int start, int end, vector mu) {
    return normal_lpdf(slice | mu[start : end], 1);
  }
  real part_lpmf(array[] int slice, int start, int end, real p) {
    return bernoulli_lupmf(slice | p);
  }
  vector shard(vector shared, vector own, data array[] real x_r, data array[] int x_i) {
    return [sum(shared) + sum(own)]';
  }
  real ll(vector latent, vector y) {
    return normal_lpdf(y | latent, 1);
  }
  matrix cov(data array[] vector x, real scale) {
    return gp_exp_quad_cov(x, scale, 1);
  }
}
data {
  int<lower=1> n;
  array[n] real ts;
  array[n] real obs;
  array[n] int hits;
  array[1] real x_r;
  array[1] int x_i;
  array[n] vector[1] at;
  array[2, 1] real shard_r;
  array[2, 1] int shard_i;
}
parameters {
  real<lower=0> rate;
  vector<lower=0>[2] rates;
  vector[n] mu;
  real<lower=0, upper=1> p;
  array[2] vector[1] own;
}
model {
  array[n] vector[2] a = ode_rk45(decay, [1, 2]', 0, ts, rate, x_i);
  array[n] vector[2] b = ode_bdf_tol(decay, [1, 2]', 0, ts, 1e-6, 1e-6, 1000, rates);
  array[n, 1] real c = integrate_ode_rk45(old_decay, {1.0}, 0, ts, {rate}, x_r, x_i);
  vector[1] d = algebra_solver(balance, [1]', [rate]', x_r, x_i);
  target += reduce_sum(part_sum, obs, 1, mu);
  target += laplace_marginal(ll, (to_vector(obs),), 1, cov, (at, rate));
  target += reduce_sum(part_lupmf, hits, 1, p);
}
generated quantities {
  vector[1] e = solve_newton(root, [1]', 2.0);
  real area = integrate_1d(bump, 0, 1, {0.5}, x_r, x_i);
  vector[2] all_shards = map_rect(shard, [1]', own, shard_r, shard_i);
}
