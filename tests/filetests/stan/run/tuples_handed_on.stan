// Tuples that loops and functions hand on where parameters decide: taken apart and put together in one statement, arrays
// of them turn by turn, and as arguments and results of a function that calls itself.
functions {
  tuple(real, real) two(real a) {
    return (a * 0.5, a - 0.1);
  }
  real f(real x) {
    tuple(real, tuple(vector[2], array[2] real)) t;
    real a = x;
    int n = 0;
    while (a > 0.2) {
      (a, t.1) = two(a);
      t.2 = ([a, n]', {t.1, a});
      n += 1;
      for (k in 1 : n) {
        t.2.2[1] += t.2.1[1] * k;
      }
    }
    return n > 0 ? t.1 + sum(t.2.1) + sum(t.2.2) : 0;
  }
  real g(array[] tuple(real, int) all, real x) {
    real s = 0;
    real left = x;
    while (left > 0) {
      for (t in all) {
        s += t.1 * t.2;
        left -= t.1 * 0.5;
        if (left < 0.3)
          break;
      }
      left -= 0.1;
    }
    return s;
  }
  array[] tuple(real, int) deeper(array[] tuple(real, int) all, real x) {
    if (x < 0.3)
      return all;
    array[2] tuple(real, int) next = all;
    next[1].1 += x;
    next[2] = (next[2].1 * x, next[2].2 + 1);
    return deeper(next, x * 0.5);
  }
  int count(tuple(array[] int, real) t) {
    if (t.2 < 1)
      return sum(t.1);
    return 1 + count((t.1, t.2 / 2));
  }
}
parameters {
  real<lower=0> x;
}
model {
  target += -f(x) - g({(0.2, 1), (x, 2), (0.5, 3)}, x);
  array[2] tuple(real, int) d = deeper({(x, 1), (0.5, 2)}, 2 * x);
  for (t in d)
    target += -t.1 * t.2;
  target += count(({1, 2}, 10 * x)) * 0.1;
}
generated quantities {
  array[2] tuple(real, int) d = deeper({(x, 1), (0.5, 2)}, 2 * x);
}
