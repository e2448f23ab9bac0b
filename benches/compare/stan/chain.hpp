// One chain of Stan's NUTS with the unit metric and a step size that stays, without the writing of draws as text. The file that
// stanc makes of a model is compiled with this one after it.
//
//   chain DATA.json STARTS STEPSIZE MAX_DEPTH CHAIN
//
// STARTS holds the unconstrained state to start from. Every line "DRAWS SEED FILE" on standard input makes that many draws from there;
// the answer is "LEAPFROGS SECONDS". FILE gets the unconstrained states as they lie in memory; "-" keeps none.

#include <chrono>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <stan/callbacks/logger.hpp>
#include <stan/io/json/json_data.hpp>
#include <stan/mcmc/hmc/nuts/unit_e_nuts.hpp>
#include <stan/services/util/create_rng.hpp>

int main(int argc, char **argv) {
  if (argc != 6) return 2;
  std::ifstream file(argv[1]);
  stan::json::json_data data(file);
  stan::model::model_base &model = new_model(data, 1, &std::cerr);
  std::vector<double> start;
  std::ifstream starts(argv[2]);
  for (double x; starts >> x;) start.push_back(x);
  if (start.size() != model.num_params_r()) {
    std::cerr << start.size() << " coordinates for " << model.num_params_r() << "\n";
    return 1;
  }
  stan::callbacks::logger logger;
  long draws, seed;
  std::string keep;
  while (std::cin >> draws >> seed >> keep) {
    auto rng = stan::services::util::create_rng(seed, std::stoi(argv[5]));
    stan::mcmc::unit_e_nuts<stan::model::model_base, decltype(rng)> sampler(model, rng);
    sampler.set_nominal_stepsize(std::stod(argv[3]));
    sampler.set_stepsize_jitter(0);
    sampler.set_max_depth(std::stoi(argv[4]));
    stan::mcmc::sample sample(Eigen::Map<Eigen::VectorXd>(start.data(), start.size()), 0, 0);
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
