#!/usr/bin/env python3
"""What Stan's warmup does: writes tests/data/stan_adaptation.json, which the tests of our warmup read.

    stan_adaptation.py V/httpstan --out tests/data/stan_adaptation.json      # V as in stan_values.py

`windows` has for numbers of warmup iterations, and for lengths of the buffers and of the first window, the iterations
(counted from 0) after which the metric is learnt; in warmups that are too short for all of it, that after which Stan
announces that it does, and forgets to (stan#3380). `models` has of NUTS with Stan's defaults, for each model that ships, the
means and standard deviations over the chains of what 1,000 iterations of warmup end with: the logarithms of the step size
and of the inverse metric's diagonal; and of the mean acceptance statistic and the mean of leapfrog steps of 250 draws.
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile

from stan_chains import SUMS
from stan_values import FLAGS, build, name_of, version_of

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "nuts")
MODELS = {
    "standard_normal": '{"d": 10}',
    "correlated_gaussian": "correlated_gaussian.json",
    "eight_schools": "eight_schools.json",
    "kidscore_momiq": "kidiq.json",
    "logistic_wells": "wells_data.json",
}
# Warmup iterations, first buffer, last buffer, first window.
PLANS = [(n, 75, 50, 25) for n in [*range(18, 200), *range(200, 1200, 7), 1000, 2000, 5000]]
PLANS += [(1000, 10, 20, 30), (500, 75, 50, 200), (1000, 0, 0, 25), (400, 100, 100, 50), (1000, 75, 50, 1)]

DRIVER = SUMS + r"""
#include <stan/mcmc/windowed_adaptation.hpp>

// As the adaptation of a metric goes through its windows (stan/mcmc/var_adaptation.hpp).
struct Windows : stan::mcmc::windowed_adaptation {
  Windows() : windowed_adaptation("windows") {}
  void print(unsigned warmup, unsigned start, unsigned end, unsigned window) {
    stan::callbacks::logger logger;
    restart();
    set_window_params(warmup, start, end, window, logger);
    // The one window of a short warmup is announced, and its end forgotten (stan#3380).
    if (num_warmup_ > 0 && adapt_window_size_ == 0) adapt_next_window_ = adapt_init_buffer_ + adapt_base_window_ - 1;
    for (unsigned i = 0; i < warmup; i++) {
      if (end_adaptation_window()) {
        std::printf("%u ", i);
        compute_next_window();
      }
      ++adapt_window_counter_;
    }
    std::printf("\n");
  }
};

template <class M>
static void run(M& model, int chains) {
  for (int chain = 1; chain <= chains; chain++) {
    stan::io::empty_var_context init;
    stan::callbacks::interrupt interrupt;
    stan::callbacks::logger logger;
    stan::callbacks::writer nothing;
    Sums sums;
    std::printf("chain\n");
    stan::services::sample::hmc_nuts_diag_e_adapt(model, init, 1, chain, 2.0, 1000, 250, 1, false, 0, 1.0, 0.0, 10, 0.8,
                                                  0.05, 0.75, 10.0, 75, 50, 25, interrupt, logger, nothing, sums, nothing);
    for (const char* name : {"accept_stat__", "n_leapfrog__"}) std::printf("%s %.17g\n", name, sums.of(name) / sums.draws);
  }
}

int main(int, char** argv) {
  std::string name = argv[1];
  if (name == "windows") {
    unsigned n, start, end, window;
    while (std::cin >> n >> start >> end >> window) Windows().print(n, start, end, window);
    return 0;
  }
  std::ifstream file(argv[2]);
  stan::json::json_data data(file);
  int chains = std::stoi(argv[3]);
  auto run = [&](auto& model) { ::run(model, chains); };
  MODELS
}
"""


def moments(values):
    return {"mean": statistics.fmean(values), "sd": statistics.stdev(values)}


def learnt(text):
    """Of the chains of a model, what `run` printed."""
    chains = text.split("chain\n")[1:]
    steps = [math.log(float(re.search(r"# Step size = (\S+)", c)[1])) for c in chains]
    metrics = [re.search(r"# Diagonal elements of inverse mass matrix:\n# (.*)", c)[1].split(",") for c in chains]
    of = lambda name: moments([float(re.search(rf"^{name} (\S+)", c, re.M)[1]) for c in chains])
    return {
        "chains": len(chains),
        "log_stepsize": moments(steps),
        "log_inv_metric": [moments([math.log(float(x)) for x in column]) for column in zip(*metrics)],
        "accept_stat": of("accept_stat__"),
        "n_leapfrog": of("n_leapfrog__"),
    }


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("folder", help="of the unpacked wheel: has stanc, include and lib")
    ap.add_argument("--out", required=True)
    ap.add_argument("--chains", type=int, default=100)
    ap.add_argument("--work", help="a folder that keeps what was built")
    ap.add_argument("--cxx", default="g++")
    a = ap.parse_args()
    version = version_of(a.folder)
    flags = ["-O2" if flag == "-O0" else flag for flag in FLAGS]
    told = {"stan": version, "windows": [], "models": {}}
    with tempfile.TemporaryDirectory() as temporary:
        work = os.path.abspath(a.work or temporary)
        os.makedirs(work, exist_ok=True)
        for name, data in MODELS.items():
            path = os.path.join(ROOT, "models", name + ".stan")
            exe = build(os.path.abspath(a.folder), [path], work, a.cxx, DRIVER, flags)
            if not told["windows"]:
                lines = "\n".join(" ".join(map(str, plan)) for plan in PLANS)
                ends = subprocess.run([exe, "windows"], input=lines, capture_output=True, text=True, check=True)
                for plan, line in zip(PLANS, ends.stdout.splitlines(), strict=True):
                    told["windows"].append([*plan, list(map(int, line.split()))])
            if data.startswith("{"):
                file = os.path.join(work, "data.json")
                with open(file, "w") as f:
                    f.write(data)
            else:
                file = os.path.join(ROOT, "data", data)
            done = subprocess.run([exe, name_of(path), file, str(a.chains)], capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{path}: {done.stderr}")
            told["models"][name] = learnt(done.stdout)
            print(name, flush=True)
    with open(a.out, "w") as f:
        windows = ",\n".join(json.dumps(plan) for plan in told["windows"])
        models = ",\n".join(f'"{name}": {json.dumps(model)}' for name, model in told["models"].items())
        f.write(f'{{"stan": "{version}", "windows": [\n{windows}\n], "models": {{\n{models}\n}}}}\n')


if __name__ == "__main__":
    main()
