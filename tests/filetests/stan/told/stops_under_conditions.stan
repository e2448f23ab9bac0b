// A function that refuses its arguments refuses those points, and those draws, that come to it.
// run: log-prob $MODEL --points '[[-1, -1], [-1, 1], [1, 1], [-1, 2], [-1, -2], [1, -2]]'
// says: gradient = [1, 1]
// says: rejected: cholesky_decompose: the matrix is not positive definite (pivot 0 is -1) (in 'stops_under_conditions.stan', line 24
// says: gradient = [-0.5, -1]
// says: rejected: cholesky_decompose: the matrix is not positive definite (pivot 0 is -1) (in 'stops_under_conditions.stan', line 26
// says: rejected: negative rate (in 'stops_under_conditions.stan', line 13
// says: gradient = [-1.36787
// run: sample $MODEL --chains 2 --warmup 50 --draws 50 --seed 1 --progress none
// silent: failed for
functions {
  vector f(real t, vector y, real k) {
    if (k < 0) reject("negative rate");
    return -k * y;
  }
}
parameters {
  real a;
  real b;
}
model {
  [a, b] ~ normal(0, 1);
  if (b > 0 && b < 1.5) {
    target += sum(cholesky_decompose([[a, 0], [0, 1]])) - 1;
  } else if (b > 1.5 && b < 5) {
    target += inverse_spd([[a, 0], [0, 1]])[1, 1];
  } else if (b < -1.5) {
    target += ode_rk45(f, [1.0]', 0, {1.0}, a)[1, 1];
  }
}
generated quantities {
  int count = a > 0 ? poisson_rng(a) : -1;
  int category = 0;
  real draw = 0;
  matrix[2, 2] root = identity_matrix(2);
  if (b > 0) {
    category = categorical_rng([b / (1 + b), 1 / (1 + b)]');
    draw = multi_normal_rng([a, 0]', [[b, 0], [0, 1]])[1];
    root = cholesky_decompose([[b, 0], [0, 1]]);
  } else {
    category = binomial_rng(3, exp(b));
  }
}
