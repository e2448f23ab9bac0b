// Values of Stan's functions of matrices, for tests/filetests/run/matrices.ab and matrix_functions.ab: the `run:` lines with
// numbers are printed here. Built as stan_constraints.cpp.
#include <stan/math/prim.hpp>

#include "lines.hpp"

using namespace stan::math;

static M numbers(int n, int m, double phase) {
  M a(n, m);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < m; ++j) a(i, j) = 1.5 * std::sin(1.7 * i + 2.3 * j * j + phase + i * j);
  return a;
}

static M definite(int n, double phase) {
  M a = numbers(n, n, phase);
  return M(a * a.transpose()) + 0.5 * M::Identity(n, n);
}

static void line(const char* entry, std::initializer_list<std::pair<const char*, std::string>> inputs, std::string is) {
  std::printf("// run: --entry %s", entry);
  for (auto& [name, value] : inputs) std::printf(" --input %s=[%s]", name, value.c_str());
  std::printf(" --input is=[%s]\n// expect: result = [true]\n", is.c_str());
}

int main() {
  for (int n : {1, 3, 4}) {
    M a = numbers(n, n, 0.4), s = definite(n, 0.9), b = numbers(n, 2, 0.1);
    M l = cholesky_decompose(s);
    V v = b.col(0);
    line("inverses", {{"a", text(a)}}, text(M(inverse(a))));
    line("inverses_spd", {{"a", text(s)}}, text(M(inverse_spd(s))));
    line("determinants", {{"a", text(a)}}, text((V(2) << determinant(a), log_determinant(a)).finished()));
    line("left", {{"a", text(a)}, {"b", text(b)}}, text(M(mdivide_left(a, b))));
    line("right_side", {{"a", text(a)}, {"b", text(b)}}, text(M(mdivide_right(M(b.transpose()), a))));
    line("left_spd", {{"a", text(s)}, {"b", text(b)}}, text(M(mdivide_left_spd(s, b))));
    line("left_tri_low", {{"a", text(l)}, {"b", text(b)}}, text(M(mdivide_left_tri_low(l, b))));
    line("right_tri_low", {{"a", text(l)}, {"b", text(b)}}, text(M(mdivide_right_tri_low(M(b.transpose()), l))));
    M d = numbers(2, 2, 2.0);
    V forms(5);
    forms << trace(a), quad_form(a, v), trace_quad_form(a, b), trace_gen_quad_form(d, a, b), quad_form_sym(s, v);
    line("forms", {{"a", text(a)}, {"b", text(b)}, {"d", text(d)}, {"s", text(s)}}, text(forms));
    line("matrix_forms", {{"a", text(a)}, {"b", text(b)}},
         text(M((M(2, 4) << quad_form(a, b), quad_form_sym(M(a + a.transpose()), b)).finished())));
    M diagonals(n, 5 * n);
    diagonals << quad_form_diag(a, v), diag_pre_multiply(v, a), diag_post_multiply(a, v), add_diag(a, v),
        multiply_lower_tri_self_transpose(a);
    line("diagonals", {{"a", text(a)}, {"v", text(v)}}, text(diagonals));
    M e = matrix_exp(a);
    line("exponential", {{"a", text(a)}}, text(e));
    line("power", {{"a", text(a)}}, text(M(matrix_power(a, 5))));
  }
  M a = numbers(4, 2, 0.6), b = numbers(4, 2, 1.9);
  V products(4 + 4);
  products << V(columns_dot_product(a, b)), V(columns_dot_self(a)), V(rows_dot_product(a, b));
  line("products", {{"a", text(a)}, {"b", text(b)}}, text(products));
  line("crossed", {{"a", text(a)}}, text(M(crossprod(a))));
  line("larger_exponential", {{"t", "1.0"}, {"a", text(M(20.0 * numbers(3, 3, 0.2)))}, {"b", text(M(M::Identity(3, 3)))}},
       text(matrix_exp(M(20.0 * numbers(3, 3, 0.2)))));
  line("scaled_exponential", {{"t", "0.7"}, {"a", text(numbers(3, 3, 0.2))}, {"b", text(numbers(3, 2, 0.8))}},
       text(M(scale_matrix_exp_multiply(0.7, numbers(3, 3, 0.2), numbers(3, 2, 0.8)))));
  for (auto size : {std::pair<int, int>{1, 1}, {3, 3}, {4, 2}, {2, 4}}) {
    M c = numbers(size.first, size.second, 0.3);
    line("factors", {{"a", text(c)}}, text(M(qr_R(c))));
    line("pseudo", {{"a", text(c)}}, text(M(generalized_inverse(c))));
  }
  for (auto size : {std::pair<int, int>{1, 1}, {2, 2}, {5, 5}, {6, 3}, {4, 4}}) {
    M c = numbers(size.first, size.second, 0.3);
    line("singular", {{"a", text(c)}}, text(V(singular_values(c))));
    M s = c.transpose() * c - M::Identity(size.second, size.second);
    line("eigen", {{"a", text(s)}}, text(V(eigenvalues_sym(s))));
  }
}
