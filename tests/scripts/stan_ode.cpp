// Solutions of initial value problems, and their derivatives, by Stan's solvers, for tests/filetests/run/ode.ab: the `run:`
// lines with numbers are printed here. Built as stan_constraints.cpp, and linked with the libraries of httpstan/lib (-ltbb and,
// for ode_bdf and ode_adams, -lsundials_cvodes -lsundials_nvecserial and their like).
#include <stan/math.hpp>

#include "lines.hpp"

using namespace stan::math;
using std::vector;

struct predators {
  template <typename Y, typename P>
  Eigen::Matrix<stan::return_type_t<Y, P>, -1, 1> operator()(double t, const Eigen::Matrix<Y, -1, 1>& y, std::ostream*,
                                                             const vector<P>& p) const {
    Eigen::Matrix<stan::return_type_t<Y, P>, -1, 1> d(2);
    d << (p[0] - p[1] * y[1]) * y[0], (-p[2] + p[3] * y[0]) * y[1];
    return d;
  }
};

// One that is stiff (Robertson), with a forcing that asks for the time.
struct reaction {
  template <typename Y, typename P>
  Eigen::Matrix<stan::return_type_t<Y, P>, -1, 1> operator()(double t, const Eigen::Matrix<Y, -1, 1>& y, std::ostream*,
                                                             const vector<P>& p) const {
    Eigen::Matrix<stan::return_type_t<Y, P>, -1, 1> d(3);
    d[0] = -p[0] * y[0] + 1e4 * p[1] * y[1] * y[2] + 0.01 * std::sin(t);
    d[2] = 1e7 * p[2] * y[1] * y[1];
    d[1] = -d[0] - d[2] + 0.01 * std::sin(t);
    return d;
  }
};

// Weights as in `weighed` of tests/filetests/run/support/checks.ab.
static double weight(int i) { return 0.3 + 0.1 * i + 0.01 * i * i; }

template <class Solve>
static void line(const char* entry, const V& y0, const vector<double>& ts, const vector<double>& p, bool start, double rtol,
                 double atol, Solve solve) {
  nested_rev_autodiff nested;
  Eigen::Matrix<var, -1, 1> y = y0.cast<var>();
  vector<var> theta(p.begin(), p.end());
  vector<Eigen::Matrix<var, -1, 1>> states;
  if (start) {
    states = solve(y, theta);
  } else {
    states = solve(y0, theta);
  }
  M values(states.size(), y0.size());
  var sum = 0;
  for (size_t i = 0; i < states.size(); ++i)
    for (int j = 0; j < y0.size(); ++j) {
      values(i, j) = states[i][j].val();
      sum += weight(i * y0.size() + j) * states[i][j];
    }
  sum.grad();
  V by_y0 = start ? V(y.adj()) : V::Zero(y0.size());
  V by_theta(p.size()), times(ts.size()), parameters(p.size());
  for (size_t i = 0; i < p.size(); ++i) by_theta[i] = theta[i].adj(), parameters[i] = p[i];
  for (size_t i = 0; i < ts.size(); ++i) times[i] = ts[i];
  std::printf("// run: --entry %s --input y0=[%s] --input ts=[%s] --input theta=[%s] --input rtol=[%s] --input atol=[%s] "
              "--input is=[%s] --input by_y0=[%s] --input by_theta=[%s]\n// expect: result = [true]\n",
              entry, text(y0).c_str(), text(times).c_str(), text(parameters).c_str(), number(rtol).c_str(),
              number(atol).c_str(), text(values).c_str(), text(by_y0).c_str(), text(by_theta).c_str());
}

int main() {
  V y0(2);
  y0 << 33.956, 5.933;
  vector<double> p{0.545, 0.028, 0.803, 0.024};
  vector<double> ts{1, 2, 4.5, 4.6, 8};
  for (double tolerance : {1e-5, 1e-9}) {
    double rtol = tolerance, atol = tolerance == 1e-5 ? 1e-3 : tolerance;
    line("predators", y0, ts, p, true, rtol, atol,
         [&](auto& y, auto& theta) { return ode_rk45_tol(predators(), y, 0.0, ts, rtol, atol, 500l, nullptr, theta); });
    if (tolerance < 1e-5) continue;
    line("predators_of_data", y0, ts, p, false, rtol, atol,
         [&](auto& y, auto& theta) { return ode_rk45_tol(predators(), y, 0.0, ts, rtol, atol, 500l, nullptr, theta); });
    line("predators_ckrk", y0, ts, p, true, rtol, atol,
         [&](auto& y, auto& theta) { return ode_ckrk_tol(predators(), y, 0.0, ts, rtol, atol, 500l, nullptr, theta); });
  }
  ts = {0.05};
  line("predators", y0, ts, p, true, 1e-5, 1e-3,
       [&](auto& y, auto& theta) { return ode_rk45_tol(predators(), y, 0.0, ts, 1e-5, 1e-3, 500l, nullptr, theta); });
  V r0(3);
  r0 << 1, 0, 0;
  vector<double> q{0.04, 1, 3};
  ts = {0.4, 4, 40};
  line("reaction", r0, ts, q, true, 1e-10, 1e-14,
       [&](auto& y, auto& theta) { return ode_bdf_tol(reaction(), y, 0.0, ts, 1e-10, 1e-14, 100000l, nullptr, theta); });
}
