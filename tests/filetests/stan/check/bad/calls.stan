// Calls: overloads, functions that take functions, what may be called where.
functions {
  real f(int a, real b) {
    return a + b;
  }
  real f(real a, int b) {
    return a - b;
  }
  real f(int x, real y) {
    return 1;
  }
  int sum(vector x) {
    return 1;
  }
  vector slope(real t, vector y, data real k) {
    return -k * y;
  }
  real wrong(real t, vector y) {
    return t;
  }
  void shout(real x) {
    print(x);
  }
  real missing(real x);
  real forgets(real x) {
    if (x > 0) {
      return 1;
    }
  }
  real other_lpdf(int x, real mu) {
    return mu;
  }
  int count_lpmf(int x) {
    return x;
  }
  real adds(real x) {
    target += x;
    jacobian += x;
    return normal_rng(0, 1);
  }
  real gives(real x) {
    return to_vector({x});
  }
  void stops(real x) {
    return x;
  }
  real ode_rk45(real x) {
    return x;
  }
  real twice_lupdf(real x) {
    return x;
  }
}
data {
  int n;
  array[n] real ts;
  vector[n] y;
}
parameters {
  real k;
  vector[n] v;
}
transformed parameters {
  int i;
  array[n] vector[n] a = ode_rk45(slope, y, 0, ts, k);
  array[n] vector[n] b = ode_rk45(wrong, y, 0, ts);
  array[n] vector[n] c = ode_rk45(slope, y, 0, ts, 1.0, 2);
  array[n] vector[n] d = ode_rk45(y, y, 0, ts);
  real draw = normal_rng(0, 1);
  real dropped = normal_lupdf(k | 0, 1);
  k ~ normal(0, 1);
}
model {
  real once = f(1, 2);
  real none = f(1.5, 2.5);
  real nothing = shout(1);
  f(1, 2.5);
  target += normal_lpdf(k, 0, 1);
  target += square(k | 2);
  target += y(1);
  target += f;
  target += reduce_sum(wrong, k, 1);
  k ~ normal_lpdf(0, 1);
  k ~ normal_cdf(0, 1);
  v ~ multi_normal(y, diag_matrix(y)) T[0, 1];
  break;
}
generated quantities {
  target += 1;
  return 1;
}
