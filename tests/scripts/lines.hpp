// How the programs beside this file print numbers into `run:` lines.
#include <Eigen/Dense>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

using V = Eigen::VectorXd;
using M = Eigen::MatrixXd;

static std::string number(double x) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x > 0 ? "Inf" : "-Inf";
  char b[40];
  std::snprintf(b, sizeof b, "%.15g", x);
  if (std::strtod(b, nullptr) != x) std::snprintf(b, sizeof b, "%.17g", x);
  std::string s = b;
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

static std::string text(double x) { return number(x); }
static std::string text(const V& v) {
  std::string s = "[";
  for (int i = 0; i < v.size(); ++i) s += (i ? "," : "") + number(v[i]);
  return s + "]";
}
static std::string text(const M& m) {
  std::string s = "[";
  for (int i = 0; i < m.rows(); ++i) s += (i ? "," : "") + text(V(m.row(i)));
  return s + "]";
}
