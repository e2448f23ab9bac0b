// tolerance: 1e-6 (solvers)
// The adjoint method, whose tolerances are several.
functions {
  vector decay(real t, vector y, real rate, array[] real scale) {
    return -rate * y * scale[1];
  }
}
parameters {
  real<lower=0.1, upper=2> rate;
  vector[2] y0;
}
transformed parameters {
  array[2] vector[2] path = ode_adjoint_tol_ctl(decay, y0, 0.0, {0.5, 1.5}, 1e-10, rep_vector(1e-10, 2), 1e-10,
                                                rep_vector(1e-10, 2), 1e-10, 1e-10, 100000, 100, 1, 2, 2, rate, {1.5});
}
model {
  target += -dot_self(path[2]) - dot_self(path[1]) - dot_self(y0);
}
