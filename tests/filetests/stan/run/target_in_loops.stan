// Loops that parameters decide about read the log density before they add to it, and hand what they read on.
functions {
  real swapped_lp(real a0, real b0, real x) {
    real y = x;
    real a = a0;
    real b = b0;
    while (y > 0.5) {
      y *= 0.5;
      a += target();
      target += b;
      real c = a;
      a = b;
      b = c;
    }
    return a;
  }
  real returned_lp(real x) {
    real y = x;
    while (y > 0.1) {
      y *= 0.5;
      real now = target();
      target += 1;
      if (y < 0.5) {
        return now;
      }
    }
    return y;
  }
  real until_lp(real x) {
    int n = 0;
    while (target() < 20 * x && n < 50) {
      target += 0.7 * x;
      n += 1;
    }
    return n;
  }
}
parameters {
  real<lower=0> x;
}
model {
  target += swapped_lp(0.5, x, x);
  target += returned_lp(x);
  target += until_lp(x) * 0.1;
}
