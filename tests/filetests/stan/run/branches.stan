// Conditions on data and on parameters, and ternaries.
data {
  int<lower=0, upper=1> wide;
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real a;
  real b;
  real<lower=0> s;
}
model {
  real centre;
  real spent = 0;
  int turns = 0;
  a ~ normal(0, wide ? 5 : 1);
  b ~ normal(0, wide == 0 ? 5.0 : 2.0);
  s ~ normal(0, 2);
  if (a > b) {
    centre = a;
  } else if (a > b - 1) {
    centre = 0.5 * (a + b);
  } else {
    centre = b;
  }
  for (n in 1 : N) {
    if (y[n] < a && !(b > 1)) {
      target += normal_lpdf(y[n] | centre, s);
    } else {
      target += student_t_lpdf(y[n] | 3, b, s);
    }
  }
  for (n in 1 : N) {
    spent += square(y[n] - a);
    turns += 1;
    target += -0.25 * spent;
  }
  target += (a > 0 || b > 0 ? sin(a) : cos(b)) * turns;
  if (s > 1e10)
    reject("far too wide: ", s);
  if (N == 0) {
    target += negative_infinity();
  }
}
generated quantities {
  int bigger = a > b;
  int both = (a > 0) && (b > 0);
  real least = a < b ? a : b;
  real signs = (a > 0) + 2 * (b > 0);
}
