// Loops whose turns parameters decide: `while` with conditions of all kinds, and `for` between bounds that lanes count.
functions {
  // The root of x^3 + x = c, by Newton's method.
  real root(real c) {
    real x = 1;
    real step = 1;
    while (abs(step) > 1e-12) {
      step = (x ^ 3 + x - c) / (3 * square(x) + 1);
      x -= step;
    }
    return x;
  }
  // How often x can be halved until it is below a bound.
  int halvings(real x, real bound) {
    int n = 0;
    real y = x;
    while (y > bound) {
      y /= 2;
      n += 1;
    }
    return n;
  }
  // Adds to the density in each turn.
  void spend_lp(real a, vector w) {
    real left = 3.3;
    int k = 1;
    while (left > 0 && k <= num_elements(w)) {
      left -= exp(a) * w[k];
      target += -0.1 * square(left);
      k += 1;
    }
  }
}
data {
  int<lower=1> N;
  vector[N] y;
  array[N] int<lower=1, upper=N> next;
}
parameters {
  real a;
  real<lower=0> s;
  vector[3] b;
}
transformed parameters {
  real r = root(a + 2);
}
model {
  int turns_needed = halvings(1 + s, 0.3);
  a ~ normal(0, 1);
  s ~ exponential(1);
  b ~ normal(0, 1);
  target += -square(r - 1);
  spend_lp(0.2 * a, to_vector({0.4, 0.3, 0.9, 1.1, 0.7, 0.2}));
  {
    // A walk along data: the place is an int of lanes.
    int at = 1;
    real seen = 0;
    real limit = 1.7 + 0.3 * inv_logit(a);
    while (seen < limit) {
      seen += 0.25 + 0.5 * square(y[at] * s / (1 + s));
      y[at] ~ normal(a * seen, s + 0.5);
      at = next[at];
    }
    target += 0.01 * at;
  }
  {
    // The state is a vector and a matrix; two variables change places.
    vector[3] u = b;
    vector[3] v = [1, 2, 3]';
    matrix[2, 2] m = identity_matrix(2);
    int i = 0;
    while (dot_self(u) < 40.3 + 0.1 * tanh(s)) {
      vector[3] w = u;
      u = v + 0.25 * u;
      v = w;
      m[1, 2] += u[1];
      m[2, 1] = m[1, 2] * 0.1;
      i += 1;
      for (k in 1 : 3) {
        if (k != i) {
          u[k] += 0.3 * s * k;
        }
      }
    }
    target += -0.01 * sum(u .* v) + log(abs(m[1, 1] + m[2, 1])) - 0.02 * i;
  }
  // Bounds that lanes count, one inside the other.
  for (i in 1 : turns_needed) {
    real inner = 0;
    for (j in i : turns_needed) {
      inner += sin(a * j) / i;
    }
    target += -0.05 * square(inner);
  }
}
generated quantities {
  int turns_needed = halvings(1 + s, 0.3);
  int steps = 0;
  array[4] real path = {0, 0, 0, 0};
  real target_like = 0;
  {
    real x = s;
    while (x < 50) {
      steps += 1;
      if (steps <= 4)
        path[steps] = x;
      x = 1.5 * x + 1;
      if (is_nan(x))
        reject("no number");
    }
  }
  for (n in steps : steps + 2) {
    target_like += n;
  }
  for (n in steps + 1 : steps) {
    target_like = -1;
  }
}
