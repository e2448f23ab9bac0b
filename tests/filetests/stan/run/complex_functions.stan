// Elementary functions of complex numbers: values of data and of parameters, and derivatives.
data {
  int N;
  array[N] complex x;
}
transformed data {
  array[N, 16] complex known;
  array[N] complex roots;
  array[N, 3] real sizes;
  for (n in 1 : N) {
    known[n, 1] = exp(x[n]);
    known[n, 2] = log(x[n]);
    known[n, 3] = log10(x[n]);
    known[n, 4] = sin(x[n]);
    known[n, 5] = cos(x[n]);
    known[n, 6] = tan(x[n]);
    known[n, 7] = asin(x[n]);
    known[n, 8] = acos(x[n]);
    known[n, 9] = atan(x[n]);
    known[n, 10] = sinh(x[n]);
    known[n, 11] = cosh(x[n]);
    known[n, 12] = tanh(x[n]);
    known[n, 13] = asinh(x[n]);
    known[n, 14] = acosh(x[n]);
    known[n, 15] = atanh(x[n]);
    known[n, 16] = pow(x[n], 0.5 - 1i);
    roots[n] = sqrt(x[n]);
    sizes[n] = {abs(x[n]), arg(x[n]), norm(x[n])};
  }
}
parameters {
  complex q;
  real<lower=0> s;
}
transformed parameters {
  complex z = q * 0.3 + (0.7 + 0.4i);
  complex on_axis = to_complex(s * 0.2 + 0.1);
}
model {
  complex total = 0;
  total += exp(z) * (1 + 2i);
  total += log(z) * (2 - 1i) + log10(z) * 0.5i;
  total += sqrt(z) * (0.5 + 1i);
  total += sin(z) * 1.5 + cos(z) * 0.5i + tan(z) * (1 - 0.5i);
  total += asin(z) * (0.25 + 1i) + acos(z) * (1 + 0.5i) + atan(z) * (2 + 0.5i);
  total += sinh(z) * 0.7 + cosh(z) * 0.3i + tanh(z) * (1 - 2i);
  total += asinh(z) * (0.1 + 1i)
    + acosh(z) * (1 + 0.2i)
    + atanh(z) * (0.3 + 0.5i);
  total += pow(z, 0.5) + z ^ (1 + 0.5i) + pow(2.0, z) + conj(z) * 2i + proj(z);
  total += exp(on_axis)
    + log(on_axis) * (1 + 1i)
    + sqrt(on_axis) * 1i
    + asin(on_axis * 0.1) * (1 + 1i);
  total += tanh(on_axis) + on_axis ^ 1.5;
  total += polar(s, get_real(q)) + to_complex(s, get_imag(q));
  target += get_real(total) + 0.5 * get_imag(total);
  target += abs(z) + 0.5 * arg(z) - norm(z) + abs(on_axis) + arg(z - s - 3);
  s ~ exponential(1);
}
generated quantities {
  array[N, 16] complex gknown = known;
  array[N] complex groots = roots;
  array[N, 3] real gsizes = sizes;
  array[18] complex made = {
    exp(z),
    log(z),
    log10(z),
    sqrt(z),
    sin(z),
    cos(z),
    tan(z),
    asin(z),
    acos(z),
    atan(z),
    sinh(z),
    cosh(z),
    tanh(z),
    asinh(z),
    acosh(z),
    atanh(z),
    conj(z),
    proj(z)
  };
  complex of_constants = sqrt(to_complex(-1))
    + to_complex()
    + polar(2.0, 0.5)
    + pi() * 1i;
  array[2] complex far = {sqrt(z - s - 3), log(z - s - 3)};
  complex infinite = proj(to_complex(positive_infinity(), -1));
}
