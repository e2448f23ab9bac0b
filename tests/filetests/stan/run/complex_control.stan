// Complex numbers where parameters decide: branches, loops, recursion, tuples, solvers.
functions {
  // Turns of z² + c until it is far away.
  complex escape(complex c) {
    complex z = c;
    int n = 0;
    while (norm(z) < 9) {
      z = z ^ 2 + c;
      n += 1;
    }
    return z + n;
  }
  complex halved(complex z, int depth) {
    if (norm(z) < 1) {
      return z * depth;
    }
    return halved(z * (0.4 + 0.3i), depth + 1);
  }
  complex_vector halves(complex_vector z) {
    if (norm(z[1]) < 1) {
      return z;
    }
    return halves(z * 0.5i);
  }
  complex early(complex_vector v, real x) {
    complex s = 0;
    for (i in 1 : size(v)) {
      s += v[i];
      if (get_real(s) > x) {
        return s * 2i;
      }
    }
    return 1;
  }
  tuple(complex, real) both(complex z) {
    return (z * z, abs(z + 3));
  }
  vector turn(real t, vector y, vector by) {
    complex rate = to_complex(by[1], by[2]);
    complex dz = rate * to_complex(y[1], y[2]);
    return [get_real(dz), get_imag(dz)]';
  }
  complex pick(complex z, real x) {
    if (x > 0) {
      return z;
    } else {
      return x;
    }
  }
  real overloaded(real x) {
    return 1;
  }
  real overloaded(complex x) {
    return 2;
  }
}
data {
  complex_vector[3] k;
}
parameters {
  complex z;
  complex_vector[3] v;
  real x;
}
transformed parameters {
  array[2] tuple(complex, real) t;
  complex chosen;
  t[1] = both(z);
  t[2] = both(v[1] + 2);
  t[2].1 += 1i;
  if (x > 0) {
    chosen = z;
  } else {
    chosen = x + 2;
  }
}
model {
  complex total = escape(z * 0.5 + 1.5);
  complex_vector[3] u = v;
  int i = x > 0.5 ? 3 : 1;
  complex state = 0;
  array[2] vector[2] path = ode_rk45(
    turn,
    [1, 0]',
    0,
    {0.5, 1.0},
    [get_real(z) * 0.3, get_imag(z) * 0.3 + 0.1]'
  );
  u[i] = u[i] * 2 + 1i;
  total += halved(z * 3 + 2, 1) + sum(halves(v + 2)) + early(v, x) + pick(z, x);
  total += x > 0 ? z : k[2];
  total += x < 0.3 ? 2i * x : 1;
  for (j in 1 : 3) {
    if (get_real(v[j]) > x) {
      continue;
    }
    state += v[j] * k[j];
    if (abs(state + 5) > 7) {
      break;
    }
  }
  total += state + sum(u) * 0.5 + t[1].1 * 0.1i + t[2].1 + t[1].2 * 0.2;
  target += 0.1 * get_real(total)
    - 0.05 * get_imag(total)
    + sum(path[2])
    + get_imag(chosen);
  target += overloaded(z) + overloaded(x) + overloaded(1) + t[2].2;
  target += -0.5 * (norm(z) + x ^ 2 + sum(square(abs(v + 3))));
}
generated quantities {
  tuple(complex_vector[2], array[2] complex) parts = (v[1 : 2], {z, 1});
  array[2] tuple(complex, int) listed = {(z, 1), (2, 2)};
  complex escaped = escape(z * 0.5 + 1.5);
  complex deep = halved(z * 3 + 2, 1);
  complex_vector[3] many = halves(v + 2);
  complex soon = early(v, x);
  real which = overloaded(x > 0 ? z : 1);
}
