// Tuples in loops and in functions that call themselves, both where parameters decide: parts, arrays, complex numbers.
functions {
  // A tuple of numbers, changed in a loop that parameters decide; given back out of the loop.
  tuple(real, int) halvings(real x) {
    tuple(real, int) t = (x, 0);
    while (t.1 > 0.3) {
      t = (t.1 / 2, t.2 + 1);
      if (t.2 == 7) {
        return (-t.1, t.2);
      }
    }
    return t;
  }
  // Nested, with containers.
  real nested(vector v, real limit) {
    tuple(vector[2], tuple(array[2] int, real)) t = (v, ({0, 1}, 0.5));
    while (sum(t.1) > limit) {
      t.1[1] *= 0.5;
      t.1[2] -= 0.25;
      t.2.1[2] += t.2.1[1] + 1;
      t.2.1[1] += 2;
      t.2.2 += t.1[1] * t.2.1[2];
    }
    return t.2.2 + sum(t.1) + t.2.1[1];
  }
  // An array of tuples, one of them by an index of lanes.
  real several(real x) {
    array[3] tuple(real, int) all = {(x, 1), (2 * x, 2), (3 * x, 3)};
    int k = 1;
    real s = 0;
    while (s < 4) {
      all[k].1 += 0.5;
      all[k].2 += k;
      s += all[k].1 + 0.1 * all[k].2;
      k = k % 3 + 1;
    }
    return s + all[1].1 * all[2].2 - all[3].1 + all[3].2;
  }
  // Calls itself with a tuple, and gives one.
  tuple(real, vector) descend(tuple(real, int) t, vector v) {
    if (t.1 < 0.2 || t.2 > 6) {
      return (t.1 + t.2, v * 0.5);
    }
    tuple(real, vector[2]) below = descend((t.1 * 0.6, t.2 + 1), v + t.1);
    return (below.1 * 1.1 + t.1, below.2 + 1);
  }
  // Complex numbers in a tuple.
  real turned(real x) {
    tuple(complex, real) t = (to_complex(x, 0.5), 0);
    while (abs(t.1) < 2) {
      t.1 = t.1 * to_complex(1.1, x);
      t.2 += get_real(t.1);
    }
    return t.2 + get_imag(t.1);
  }
  // Tuples with what is known in them, read in a loop.
  real reads(real x, tuple(vector, real, int) t) {
    real y = x;
    int n = 0;
    while (y < t.2 && n < t.3) {
      y += dot_self(t.1) * 0.1 + 0.1;
      n += 1;
    }
    return y + n;
  }
}
data {
  vector[2] d;
}
parameters {
  real<lower=0> x;
  vector[2] v;
}
model {
  tuple(real, int) h = halvings(x);
  target += h.1 * h.2;
  target += nested(v, -1 + x);
  target += several(x);
  tuple(real, vector[2]) b = descend((x, 1), v);
  target += b.1 + 0.5 * sum(b.2);
  target += turned(x + 0.3);
  target += reads(x, (v, 3.0, 5)) + reads(x, (d, x + 2, 4));
}
generated quantities {
  tuple(real, int) h = halvings(x);
  array[2] tuple(real, int) hs = {halvings(x / 3), halvings(x * 200)};
  tuple(real, vector[2]) b = descend((x, 1), v);
}
