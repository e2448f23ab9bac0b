// Complex numbers: types, data, literals, promotion, operators, indices.
functions {
  complex weigh(complex z, complex_vector v) {
    complex s = z;
    for (i in 1 : size(v)) {
      s += v[i] * i;
    }
    return s;
  }
  real size_of(complex z) {
    return norm(z);
  }
  complex_matrix outer(complex_vector a, complex_row_vector b) {
    return a * b;
  }
  complex promoted(real x) {
    return x;
  }
}
data {
  complex c;
  int N;
  complex_vector[N] cv;
  complex_row_vector[2] cr;
  complex_matrix[2, 3] cm;
  array[2] complex ca;
  array[2] complex_vector[2] cav;
  tuple(complex, real) ct;
}
transformed data {
  complex t = 3i;
  complex u = 2 - 1.5i;
  complex from_int = 4;
  complex from_real = 4.5;
  complex_vector[2] from_vector = [1.5, -2]';
  complex_matrix[2, 2] literal = [[1 + 1i, 2], [3i, 4.5]];
  array[3] complex mixed = {1, 2.5, 0.5i};
  complex_vector[N] shifted = cv + c;
  complex quotient = u / c;
  complex power = u ^ c;
  complex square = u ^ 2;
  complex inverse = c ^ -1;
  int same = c == c && c != u;
}
parameters {
  complex z;
  complex_vector[2] v;
  complex_row_vector[3] r;
  complex_matrix[2, 3] m;
  array[2] complex a;
  array[2] complex_matrix[1, 2] am;
  tuple(complex, array[2] complex_vector[2]) pair;
  real<lower=0> s;
}
transformed parameters {
  complex w = z * c + s;
  complex_vector[2] w2 = 2 * v - from_vector;
  complex_matrix[2, 2] prod_of = m * cm';
  array[2] complex ta;
  ta[1] = a[1] * 1i;
  ta[2] = a[2] / (c + z * 0.1);
}
model {
  complex acc = z;
  complex_vector[3] filled;
  complex_matrix[2, 2] square_of = prod_of;
  complex_matrix[2, 3] cut = m;
  acc += v[1];
  acc -= s * v[2];
  acc *= 1 + 0.5i;
  acc /= u;
  filled[1 : 2] = v .* cv[1 : 2];
  filled[3] = acc;
  square_of[1, 2] += 2i;
  square_of[2] *= 0.5;
  cut[ : , 2] = v;
  cut[1, 2 : 3] = r[2 : 3];
  target += get_real(acc) - 0.5 * get_imag(acc);
  target += -0.01 * size_of(weigh(z, filled));
  target += get_real((r * cm') * v) + get_imag(r * r');
  target += get_imag(sum(m .* cm)) - get_real(sum(outer(v, r)));
  target += get_real(sum(square_of * v)) + get_imag(sum(cut));
  target += get_real(sum(v ./ cv[1 : 2])) + get_imag(v[2] / (v[1] + 3) * v[1]);
  target += get_real(promoted(s) * z) + 0.1 * get_imag(pair.1 * pair.2[2][1]);
  target += get_real(ta[1] + ta[2]) * 0.3
    + get_imag(-w)
    + get_real(am[1][1, 2] - 2 + am[2, 1, 1] * 2i);
  target += -0.1
    * (
      norm(z)
        + dot_self(get_real(v))
        + sum(square(get_imag(r)))
        + abs(a[1] + 2)
        + norm(pair.2[1, 2])
    );
  target += get_real((z + 3) ^ 2)
    + get_imag((z + 4) ^ c) * 0.01
    + get_real(2 ^ z)
    + get_real((z + 3) ^ -2);
  target += (z == z) + (z != v[1]) + (z == 0);
  s ~ exponential(1);
}
generated quantities {
  complex g = w * t / u;
  complex_vector[N] gv = shifted * s;
  complex_row_vector[2] gr = cr * literal;
  complex_matrix[2, 2] gm = literal - prod_of;
  array[3] complex gmixed = mixed;
  array[2] complex_vector[2] gav = cav;
  tuple(complex, array[2] real) gt = (ct.1 * z, {ct.2, s});
  complex from_conditional = s > 1 ? 1 : 2i;
  complex from_known = N == 2 ? 7 : 2i;
  array[2, 2] complex grid = {{from_int, from_real}, {z, quotient}};
  complex_matrix[3, 2] gtransposed = cm';
  array[2] complex powers = {power, square};
  complex ginverse = inverse;
  int gsame = same;
  complex_row_vector[2] gstacked = [z, 1];
  complex_matrix[2, 3] grows = [r, [1, 2, 3]];
  complex_vector[2] gcolumn = m[ : , 3];
  complex_row_vector[2] gcut = m[2, {3, 1}];
  complex gminus = -z;
  complex gplus = +z;
}
