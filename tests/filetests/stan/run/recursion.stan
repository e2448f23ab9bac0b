// Functions that call themselves as often as parameters say.
functions {
  // Until x is small: the depth is the lane's.
  real shrunk(real x) {
    if (x < 1.013)
      return x;
    return 1 + 0.5 * shrunk(0.7 * x);
  }
  // A known argument that changes, one that stays, and data.
  real weighted(real x, int depth, real rate, data vector w) {
    if (x > 5.03 || depth >= 12)
      return depth * log1p(x);
    return w[1 + depth % 3] + weighted(x * rate + 0.2, depth + 1, rate, w);
  }
  // Two calls, in a ternary.
  real tree(real x) {
    return x < 0.517 ? square(x) : tree(0.5 * x) + tree(0.4 * x) * x;
  }
  // Its own derivative by hand, of a vector of a size that stays.
  vector turned(vector u, real left) {
    if (left < 0)
      return u;
    return turned([-u[2], u[1]]' * 0.9 + [0.1, 0.2]' * left, left - 0.41);
  }
  // Sizes that become smaller.
  real folded(vector x, real t) {
    int n = num_elements(x);
    if (n == 0)
      return t;
    if (x[n] > t)
      return x[n] - t + folded(x[1 : n - 1], 0.9 * t);
    return t * folded(x[1 : n - 1], t + 0.1);
  }
  // Mutual recursion, declared ahead.
  real odd_step(real x);
  real even_step(real x) {
    if (x < 0.75)
      return x;
    return 2 * odd_step(x - 0.61);
  }
  real odd_step(real x) {
    if (x < 0.75)
      return -x;
    return 0.3 + even_step(0.8 * x);
  }
  // Adds to the density.
  void spread_lp(real x) {
    if (x > 0.105) {
      target += -0.3 * x;
      spread_lp(0.5 * x);
    }
  }
  // Reads the density, too.
  real grown_lp(real x) {
    if (x > 3.03)
      return target();
    target += 0.1 * x - 0.001 * target();
    return 0.5 * grown_lp(x + 0.37);
  }
  // Ints of lanes: Collatz.
  int collatz(int n) {
    if (n == 1)
      return 0;
    return 1 + collatz(n % 2 == 0 ? n %/% 2 : 3 * n + 1);
  }
  // With a loop inside that calls it.
  real nested(real x, int n) {
    real total = x;
    int i = 0;
    while (i < n && total < 4.04) {
      i += 1;
      total += 0.3 + nested(0.4 * x + 0.1, n - 1);
    }
    return total;
  }
  // Known depth: the host runs it.
  real power_of(real x, int n) {
    return n == 0 ? 1 : x * power_of(x, n - 1);
  }
}
data {
  vector[3] w;
}
parameters {
  real a;
  real<lower=0> s;
  vector[4] v;
}
transformed parameters {
  real sh = shrunk(5.2 + a);
  vector[2] t2 = turned([a, s]', 2.03 + 0.1 * inv_logit(a));
}
model {
  a ~ normal(0, 1);
  s ~ lognormal(0, 1);
  v ~ normal(0, 1);
  target += -0.1 * sh - 0.1 * dot_self(t2);
  target += -0.1 * weighted(s, 0, 1.15, w);
  target += 0.01 * tree(1 + s);
  target += -0.01 * square(folded(v, 0.3 * a));
  target += -0.01 * even_step(3.01 + s);
  spread_lp(2 + s);
  target += 0.01 * grown_lp(inv_logit(a));
  target += 0.1 * power_of(0.5 * a, 3);
  target += -0.01 * nested(0.3 * s, 3);
}
generated quantities {
  int start = 7 + (a > 0.01 ? 2 : 0);
  int steps = collatz(start);
  real again = weighted(1.5, 1, 0.8, w);
  real once_more = shrunk(s) + shrunk(2.5);
}
