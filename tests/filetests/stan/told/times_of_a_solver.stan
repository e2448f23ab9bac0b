// Times that a solver cannot have are told before the run.
// data: {"t0": 0, "ts": [1, 0.5]}
// run: log-prob $MODEL --points '[[0]]'
// status: 1
// says: ode_bdf: times is not a valid sorted vector. The element at 2 is 0.5, but should be greater than or equal to the previous element, 1
// run: log-prob $MODEL --points '[[0]]' --shared 't0=1' --shared 'ts=[1,2]'
// status: 1
// says: ode_bdf: initial time is 1, but must be less than 1
functions {
  vector f(real t, vector y, real a) {
    return -a * y;
  }
}
data {
  real t0;
  array[2] real ts;
}
parameters {
  real<lower=0> a;
}
model {
  array[2] vector[1] z = ode_bdf(f, [1.0]', t0, ts, a);
  target += z[1, 1];
}
