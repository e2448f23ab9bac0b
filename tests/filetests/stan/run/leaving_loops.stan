// `break`, `continue` and `return` where parameters say so: in loops of all kinds, in one another, in functions.
functions {
  // The first that is larger, or a sum.
  real first_above(vector x, real t) {
    for (i in 1 : num_elements(x)) {
      if (x[i] > t)
        return x[i] * i;
    }
    return sum(x);
  }
  // Returns out of two loops.
  real two_deep(matrix m, real t) {
    real so_far = 0;
    for (i in 1 : rows(m)) {
      for (j in 1 : cols(m)) {
        if (m[i, j] < -10)
          return -1;
        if (so_far > 6 * t)
          break;
        if (m[i, j] < 0)
          continue;
        so_far += m[i, j] * t;
        if (so_far > 9.5 + t)
          return so_far * (i + 0.1 * j);
      }
      so_far += 0.1;
    }
    return so_far;
  }
  // A vector, out of a loop that never ends by itself.
  vector climbed(vector x, real t) {
    vector[num_elements(x)] u = x;
    while (1) {
      u = 1.1 * u + 0.1;
      if (sum(u) > t)
        return u;
    }
    return x;
  }
  // Leaves a void function.
  void some_terms_lp(vector x, real t) {
    for (v in x) {
      if (v > t)
        return;
      target += -square(v - t);
    }
    target += t;
  }
  // Many turns: a loop of the text.
  int passed(vector steps, real t) {
    real sum_so_far = 0;
    for (i in 1 : num_elements(steps)) {
      sum_so_far += steps[i];
      if (sum_so_far > t)
        return i;
    }
    return num_elements(steps);
  }
}
data {
  int<lower=0> N;
  vector[N] y;
}
transformed data {
  vector[400] steps;
  matrix[2, 3] grid = [[1.5, -1, 2], [0.5, 3, 2.5]];
  for (i in 1 : 400)
    steps[i] = 0.013 + 0.001 * sin(i);
}
parameters {
  real a;
  real<lower=0> s;
  vector[4] v;
}
model {
  real spent = 0;
  int last = 0;
  a ~ normal(0, 1);
  s ~ normal(0, 1);
  v ~ normal(0, 1);
  for (n in 1 : N) {
    spent += square(y[n] - a);
    if (spent > 4 * s)
      break;
    last = n;
    if (y[n] > a)
      continue;
    y[n] ~ normal(0.25 * spent, 1 + s);
  }
  target += 0.3 * last - 0.1 * spent;
  target += first_above(v, a - 0.123);
  target += -0.1 * two_deep(grid, s);
  target += -0.001 * dot_self(climbed(v, 20.3 + a));
  target += 0.001 * passed(steps, 1.2345 + s);
  some_terms_lp(v, 0.789);
  // A while loop with everything in it.
  {
    real x = 0.1 + s;
    int k = 0;
    while (x < 30.07) {
      k += 1;
      x *= 1.37;
      if (k == 2)
        continue;
      for (i in 1 : 4) {
        if (v[i] > 0.345 * k)
          break;
        x += 0.2 * exp(0.1 * v[i]);
      }
      if (k * a > 5.01)
        break;
      target += -0.002 * x;
    }
    target += -0.01 * x + 0.02 * k;
  }
  // A recurrence that lanes leave, with a loop before they do.
  {
    vector[12] z;
    real level = 0.2 + 0.1 * inv_logit(a);
    z[1] = s;
    for (n in 2 : 12) {
      z[n] = 0.75 * z[n - 1] + 0.01 * v[1 + n % 4];
      if (z[n] < level) {
        target += -0.001 * n * z[n];
        for (m in n : 12)
          z[m] = level;
        break;
      }
      target += 0.001 * z[n];
    }
    target += 0.01 * sum(z);
  }
  // What is broken out of in each turn of a loop around.
  for (i in 1 : 3) {
    for (w in v) {
      if (w * i > 1.01)
        break;
      target += 0.1 * w * i;
    }
  }
}
generated quantities {
  int where = N + 1;
  real after = 0;
  int hits = 0;
  for (n in 1 : N) {
    if (y[n] < a)
      continue;
    where = n;
    break;
  }
  for (i in 1 : 2) {
    for (j in 1 : 3) {
      if (grid[i, j] > s + 1.5) {
        after += 10 * i + j;
        break;
      }
      after += 0.5;
    }
  }
  // Draws until enough of them are what all of them are.
  while (hits < 5) {
    real u = uniform_rng(0, 1 + s);
    if (u < 0)
      continue;
    hits += 1;
    if (u > 1 + s)
      break;
  }
}
