// Where a solver fails Stan rejects, and says which one did.
// run: log-prob $MODEL --points '[[1, -1, -2], [1000, -1, -2], [1, 1, -2], [-1, 1, -2], [1, -1, 0.5]]' --format json
// says: [{"lp":-0.0913201669377343
// says: {"rejected":"ode_rk45: failed to integrate to the next output time in less than max_num_steps (20) steps, or with a right-hand side that is not a number (in 'solvers_that_fail.stan', line 29, column 25 to column 82)"}
// says: {"rejected":"solve_powell: maximum number of iterations (200) was exceeded in the solve
// says: {"rejected":"solve_newton_tol: maximum number of iterations (50) was exceeded in the solve
// says: {"rejected":"integrate_1d: error estimate of integral exceeds the given relative tolerance times norm of integral
// run: sample $MODEL --chains 1 --warmup 5 --draws 5 --seed 1 --init-radius 0
// status: 1
// says: integrate_1d: error estimate of integral exceeds
functions {
  vector f(real t, vector y, real a) {
    return -a * y;
  }
  vector g(vector y, real a) {
    return [square(y[1]) + a]';
  }
  real h(real x, real xc, array[] real th, array[] real xr, array[] int xi) {
    return inv(x - th[1]);
  }
}
parameters {
  real a;
  real b;
  real c;
}
model {
  [a, b, c] ~ normal(0, 1);
  array[2] vector[1] z = ode_rk45_tol(f, [1.0]', 0, {1.0, 2.0}, 1e-8, 1e-8, 20, a);
  target += z[2, 1];
  array[1] vector[1] stiff = ode_bdf_tol(f, [1.0]', 0, {1.0}, 1e-8, 1e-8, 200, a);
  target += stiff[1, 1];
  if (a > 0) {
    target += solve_powell(g, [1.0]', b)[1];
  }
  target += solve_newton_tol(g, [1.0]', 1e-3, 1e-6, 50, b)[1];
  target += integrate_1d(h, 0, 1, {c}, {0.0}, {0});
}
