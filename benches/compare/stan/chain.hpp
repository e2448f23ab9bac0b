// One chain of Stan's NUTS with a metric and a step size that stay, without the writing of draws as text. The file that stanc makes of a
// model is compiled with this one after it.
//
//   chain DATA.json STARTS STEPSIZE MAX_DEPTH CHAIN [METRIC]
//
// STARTS holds the unconstrained state to start from, METRIC the diagonal of the inverse metric; without it that is the unit metric.
// Every line "DRAWS SEED FILE" on standard input makes that many draws from there; the answer is "LEAPFROGS SECONDS". FILE gets the
// unconstrained states as they lie in memory; "-" keeps none.

#include <chrono>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <stan/callbacks/logger.hpp>
#include <stan/io/json/json_data.hpp>
#include <stan/mcmc/hmc/nuts/diag_e_nuts.hpp>
#include <stan/mcmc/hmc/nuts/unit_e_nuts.hpp>
#include <stan/services/util/create_rng.hpp>

using rng_type = decltype(stan::services::util::create_rng(0, 1));

static std::vector<double> numbers(const char *path) {
  std::vector<double> all;
  std::ifstream file(path);
  for (double x; file >> x;) all.push_back(x);
  return all;
}

template <class Sampler>
static void answer(Sampler &sampler, rng_type &rng, const std::vector<double> &start, char **argv) {
  sampler.set_nominal_stepsize(std::stod(argv[3]));
  sampler.set_stepsize_jitter(0);
  sampler.set_max_depth(std::stoi(argv[4]));
  stan::callbacks::logger logger;
  long draws, seed;
  std::string keep;
  while (std::cin >> draws >> seed >> keep) {
    rng = stan::services::util::create_rng(seed, std::stoi(argv[5]));
    stan::mcmc::sample sample(Eigen::Map<const Eigen::VectorXd>(start.data(), start.size()), 0, 0);
    std::vector<double> states;
    states.reserve(draws * start.size());
    long leapfrogs = 0;
    auto begin = std::chrono::steady_clock::now();
    for (long i = 0; i < draws; i++) {
      sample = sampler.transition(sample, logger);
      leapfrogs += sampler.n_leapfrog_;
      const Eigen::VectorXd &q = sample.cont_params();
      states.insert(states.end(), q.data(), q.data() + q.size());
    }
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (keep != "-") {
      std::ofstream out(keep, std::ios::binary);
      out.write(reinterpret_cast<const char *>(states.data()), states.size() * sizeof(double));
    }
    std::cout << leapfrogs << " " << seconds.count() << std::endl;
  }
}

int main(int argc, char **argv) {
  if (argc != 6 && argc != 7) return 2;
  std::ifstream file(argv[1]);
  stan::json::json_data data(file);
  stan::model::model_base &model = new_model(data, 1, &std::cerr);
  const std::vector<double> start = numbers(argv[2]);
  if (start.size() != model.num_params_r()) {
    std::cerr << start.size() << " coordinates for " << model.num_params_r() << "\n";
    return 1;
  }
  rng_type rng = stan::services::util::create_rng(0, 1);
  if (argc == 6) {
    stan::mcmc::unit_e_nuts<stan::model::model_base, rng_type> sampler(model, rng);
    answer(sampler, rng, start, argv);
  } else {
    const std::vector<double> given = numbers(argv[6]);
    const Eigen::VectorXd metric = Eigen::Map<const Eigen::VectorXd>(given.data(), given.size());
    stan::mcmc::diag_e_nuts<stan::model::model_base, rng_type> sampler(model, rng);
    sampler.set_metric(metric);
    answer(sampler, rng, start, argv);
  }
}
