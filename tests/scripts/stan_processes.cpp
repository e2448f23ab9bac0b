// Values of Stan's covariance functions and hidden Markov models, for tests/filetests/run/gaussian_processes.ab and
// hidden_markov.ab: the `run:` lines with numbers are printed here. Built as stan_constraints.cpp.
#include <stan/math/prim.hpp>

#include "lines.hpp"

using namespace stan::math;

static std::vector<V> points(int n, int d, double phase) {
  std::vector<V> x(n, V(d));
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < d; ++j) x[i][j] = 1.5 * std::sin(1.7 * i + 2.3 * j * j + phase);
  return x;
}

static M rows(const std::vector<V>& x) {
  M m(x.size(), x[0].size());
  for (size_t i = 0; i < x.size(); ++i) m.row(i) = x[i];
  return m;
}

static void covariances(const char* entry, const M& a, const M& b) {
  std::printf(" --input %s=[%s]", entry, text(a).c_str());
  std::printf(" --input %s_cross=[%s]", entry, text(b).c_str());
}

int main() {
  for (int d : {1, 3}) {
    auto x = points(4, d, 0.4), y = points(2, d, 1.3);
    x[3] = x[1];
    double sigma = 1.3, l = 0.8, p = 1.7;
    std::printf("// run: --entry covariances --input x=[%s] --input y=[%s]", text(rows(x)).c_str(), text(rows(y)).c_str());
    covariances("exp_quad", gp_exp_quad_cov(x, sigma, l), gp_exp_quad_cov(x, y, sigma, l));
    covariances("matern32", gp_matern32_cov(x, sigma, l), gp_matern32_cov(x, y, sigma, l));
    covariances("matern52", gp_matern52_cov(x, sigma, l), gp_matern52_cov(x, y, sigma, l));
    covariances("exponential", gp_exponential_cov(x, sigma, l), gp_exponential_cov(x, y, sigma, l));
    covariances("periodic", gp_periodic_cov(x, sigma, l, p), gp_periodic_cov(x, y, sigma, l, p));
    covariances("dot_prod", gp_dot_prod_cov(x, sigma), gp_dot_prod_cov(x, y, sigma));
    std::printf("\n// expect: result = [true]\n");
  }
  for (int n : {1, 6}) {
    M log_omegas(3, n), gamma(3, 3);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < n; ++j) log_omegas(i, j) = 2.0 * std::sin(1.1 * i + 0.7 * j * j) - 1.0;
    gamma << 0.7, 0.2, 0.1, 0.05, 0.8, 0.15, 0.3, 0.3, 0.4;
    V rho(3);
    rho << 0.5, 0.2, 0.3;
    std::printf("// run: --entry hidden --input log_omegas=[%s] --input gamma=[%s] --input rho=[%s] --input lp=[%s] --input "
                "probabilities=[%s]\n// expect: result = [true]\n",
                text(log_omegas).c_str(), text(gamma).c_str(), text(rho).c_str(),
                number(hmm_marginal(log_omegas, gamma, rho)).c_str(),
                text(M(hmm_hidden_state_prob(log_omegas, gamma, rho))).c_str());
  }
}
