// Values and log Jacobians of Stan's transforms, for tests/filetests/run/constraints.ab: its `run:` lines are printed here.
// g++ -std=c++17 -O1 -w -D_REENTRANT -DBOOST_DISABLE_ASSERTS -I include -o constraints stan_constraints.cpp, with the headers of Stan 2.39 (the wheel of
// httpstan 4.17.0 on PyPI has them in httpstan/include).
#include <stan/math/prim.hpp>

#include "lines.hpp"

using namespace stan::math;

// Unconstrained numbers that are neither regular nor small.
static V numbers(int n, double phase) {
  V u(n);
  for (int i = 0; i < n; ++i) u[i] = 1.3 * std::sin(2.7 * i + phase) + 0.2 * phase;
  return u;
}

template <class U, class X>
static void line(const char* entry, const U& u, const X& x, double lp) {
  std::printf("// run: --entry %s --input u=[%s] --input x=[%s] --input lp=[%s]\n// expect: result = [true]\n", entry,
              text(u).c_str(), text(x).c_str(), number(lp).c_str());
}

int main() {
  const double inf = INFTY;
  std::string u, lb, ub, x, lp, trues;
  for (double v : {-3.0, 0.4, 40.0, -40.0})
    for (auto b : {std::pair<double, double>{-inf, inf}, {-inf, 2.5}, {-1.5, inf}, {-1.5, 2.5}}) {
      double l = 0;
      const char* comma = u.empty() ? "" : ",";
      x += comma + number(lub_constrain(v, b.first, b.second, l));
      u += comma + number(v), trues += std::string(comma) + "true", lb += comma + number(b.first), ub += comma + number(b.second), lp += comma + number(l);
    }
  std::printf("// run: --entry bounds --input u=[%s] --input lb=[%s] --input ub=[%s] --input x=[%s] --input lp=[%s]\n"
              "// expect: result = [%s]\n",
              u.c_str(), lb.c_str(), ub.c_str(), x.c_str(), lp.c_str(), trues.c_str());

  {
    double l = 0;
    V a = numbers(3, 0.3), m = numbers(3, 1.1), s = numbers(3, 2.0).array().exp().matrix();
    V y = offset_multiplier_constrain(a, m, s, l);
    std::printf("// run: --entry scaled --input u=[%s] --input m=[%s] --input s=[%s] --input x=[%s] --input lp=[%s]\n"
                "// expect: result = [true]\n",
                text(a).c_str(), text(m).c_str(), text(s).c_str(), text(y).c_str(), number(l).c_str());
  }
  for (int n : {1, 4}) {
    V a = numbers(n, 0.2);
    double l = 0;
    V y = ordered_constrain(a, l);
    line("ordered", a, y, l);
    l = 0;
    y = positive_ordered_constrain(a, l);
    line("positive_ordered", a, y, l);
    l = 0;
    y = unit_vector_constrain(a, l);
    line("unit_vector", a, y, l);
  }
  for (int n : {1, 2, 4, 70}) {
    V a = numbers(n, 0.7);
    double l = 0;
    V y = simplex_constrain(a, l);
    line("simplex", a, y, l);
    if (n > 4) continue;
    y = sum_to_zero_constrain(a);
    line("sum_to_zero", a, y, 0);
  }
  {
    M a(2, 3);
    a << 0.3, -1.2, 0.8, 2.0, 0.1, -0.7;
    double l = 0;
    M y = sum_to_zero_constrain(a);
    line("sum_to_zero_matrix", a, y, 0);
    y = stochastic_row_constrain(a, l);
    line("stochastic_row", a, y, l);
    l = 0;
    y = stochastic_column_constrain(a, l);
    line("stochastic_column", a, y, l);
  }
  for (int k : {1, 2, 4}) {
    V a = numbers(k * (k - 1) / 2, 0.5);
    double l = 0;
    M y = cholesky_corr_constrain(a, k, l);
    line("cholesky_factor_corr", a, y, l);
    l = 0;
    y = corr_matrix_constrain(a, k, l);
    line("corr_matrix", a, y, l);
    a = numbers(k * (k + 1) / 2, 0.9);
    l = 0;
    y = cov_matrix_constrain(a, k, l);
    line("cov_matrix", a, y, l);
    for (int m : {k, k + 2}) {
      a = numbers(k * (k + 1) / 2 + (m - k) * k, 0.9);
      l = 0;
      y = cholesky_factor_constrain(a, m, k, l);
      line("cholesky_factor_cov", a, y, l);
    }
  }
}
