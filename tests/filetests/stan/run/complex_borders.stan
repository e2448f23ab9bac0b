// Complex numbers beside zeros, singularities and the axes.
data {
  int N;
  array[N] complex x;
}
transformed data {
  array[N, 4] complex known;
  array[3] complex quotients = {3.0 / to_complex(2, 0), 7 / to_complex(-4, 0), to_complex(1, 2) / to_complex(0, 2)};
  complex power = pow(to_complex(0, 0), 0.5 + 1i);
  for (n in 1 : N) {
    known[n, 1] = atanh(x[n]);
    known[n, 2] = atan(x[n]);
    known[n, 3] = tanh(x[n]);
    known[n, 4] = 2.0 / x[n];
  }
}
parameters {
  real p;
  complex q;
}
transformed parameters {
  complex of_real = 3.0 / to_complex(p + 2, 0);
  complex by_known = p / to_complex(2, 0);
  complex_vector[2] v = to_vector({p, p * 2}) / to_complex(p + 2, 0);
}
model {
  target += get_real(of_real) + get_imag(of_real) + get_imag(by_known);
  target += get_real(atanh(to_complex(p / 1e5 - 1, 1e-6))) + get_imag(atan(to_complex(1e-6, 1 - 1e-6)) * q);
  target += get_imag(v[1]) + get_real(v[2]);
  p ~ normal(0, 1);
  target += -norm(q);
}
generated quantities {
  array[N, 4] complex shown = known;
  array[3] complex divided = quotients;
  complex nothing = power;
}
