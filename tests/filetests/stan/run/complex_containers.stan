// Vectors and matrices of complex numbers: what moves their elements, sums and products, Fourier transforms.
data {
  int N;
  complex_vector[N] x;
  complex_matrix[3, 3] d;
}
transformed data {
  complex_vector[N] spectrum = fft(x);
  complex_vector[N] back = inv_fft(spectrum);
  complex_matrix[3, 3] spectrum2 = fft2(d);
  complex_matrix[3, 3] back2 = inv_fft2(d);
  complex of_data = dot_product(x, spectrum);
  complex of_arrays = dot_product(to_array_1d(x), to_array_1d(spectrum));
  int n = rows(x) + cols(d) + size(x) + num_elements(d);
}
parameters {
  complex_vector[6] v;
  complex_row_vector[6] r;
  complex_matrix[3, 3] m;
  real s;
}
transformed parameters {
  complex_vector[6] f = fft(v);
  complex_matrix[3, 3] f2 = fft2(m);
}
model {
  complex total = sum(v) * (1 + 1i) + sum(m) + sum(to_array_1d(r)) * 2i;
  total += prod(head(v, 2) + 1) + prod(to_array_1d(tail(r, 2)));
  total += dot_product(v, x[1 : 6])
    + 0.1 * dot_self(v)
    + 0.1 * dot_product(v, r);
  total += sum(inv_fft(v) .* v)
    + f[2] * (1 - 1i)
    + f2[2, 3] * 2i
    + sum(inv_fft2(m) * m);
  total += sum(diagonal(m))
    + trace(m) * 1i
    + sum(add_diag(m, 2i))
    + sum(m .* diag_matrix(v[1 : 3]));
  total += sum(diag_pre_multiply(v[1 : 3], m) * 0.1)
    + sum(diag_post_multiply(m, r[1 : 3]) * 0.1i);
  total += sum(columns_dot_product(m, d))
    + sum(rows_dot_product(m, d))
    + sum(rows_dot_self(m)) * 0.1;
  total += sum(columns_dot_self(m)) * 0.1
    + sum(r[1 : 3] / (d + 0.01 * m)) * 0.1;
  total += sum((d / (d + 0.01 * m)) * v[1 : 3]) * 0.1;
  total += sum(cumulative_sum(v)) + sum(reverse(v) .* v) * 0.1;
  total += sum(symmetrize_from_lower_tri(m) * v[1 : 3]);
  for (e in to_array_1d(v)) {
    total += e * e * 0.1;
  }
  target += get_real(total) + 0.5 * get_imag(total);
  target += -0.1 * sum(square(abs(r + 1)));
  s ~ normal(0, 1);
}
generated quantities {
  complex_vector[N] g_spectrum = spectrum;
  complex_vector[N] g_back = back;
  complex_matrix[3, 3] g_spectrum2 = spectrum2;
  complex_matrix[3, 3] g_back2 = back2;
  array[2] complex dots = {of_data, of_arrays};
  complex_vector[4] joined = append_row(s, append_row(v[1 : 2], 1i));
  complex_row_vector[3] beside = append_col(r[1 : 2], s);
  complex_matrix[3, 4] wide = append_col(m, v[1 : 3]);
  complex_matrix[4, 3] tall = append_row(m, r[1 : 3]);
  array[3] complex arrays = append_array({v[1]}, {r[1], 2});
  array[3] int sizes = dims({m});
  int count = n;
  complex_vector[3] same = rep_vector(1i, 3);
  complex_row_vector[2] same_row = rep_row_vector(v[1], 2);
  complex_matrix[2, 2] same_matrix = rep_matrix(v[1], 2, 2);
  complex_matrix[3, 2] columns = rep_matrix(v[1 : 3], 2);
  array[2, 2] complex same_array = rep_array(v[2], 2, 2);
  complex_matrix[2, 2] cut = block(m, 2, 1, 2, 2);
  complex_vector[2] cut_column = sub_col(m, 2, 3, 2);
  complex_row_vector[2] cut_row = sub_row(m, 2, 2, 2);
  complex_vector[3] one_column = col(m, 2);
  complex_row_vector[3] one_row = row(m, 3);
  complex_vector[2] some = segment(v, 2, 2);
  complex_matrix[3, 3] like_lower = symmetrize_from_lower_tri(m);
  complex_vector[9] flat = to_vector(m);
  complex_row_vector[6] turned = to_row_vector(v);
  complex_matrix[2, 3] shaped = to_matrix(v, 2, 3);
  complex_matrix[2, 3] shaped_rows = to_matrix(v, 2, 3, 0);
  array[3, 3] complex nested = to_array_2d(m);
  complex_matrix[3, 3] of_nested = to_matrix(nested);
  complex_vector[6] conjugates = conj(v);
  vector[6] lengths = abs(v);
  array[2] real angles = {arg(v[1] + 3), arg(r[1] - 3)};
  complex_vector[2] made = to_complex([1, 2]', s);
  complex_vector[2] made_too = to_complex(s, [1, 2]');
  array[2] complex made_array = to_complex({1.0, s}, {2.0, 3.0});
  complex_vector[3] selfs = rows_dot_self(m);
  complex self = dot_self(v);
  complex_row_vector[3] solved = r[1 : 3] / d;
  complex_vector[0] empty = fft(rep_vector(1i, 0));
  complex nothing = sum(empty) + prod(empty);
  complex_matrix[3, 3] diagonal_of = diag_matrix(v[1 : 3]);
}
