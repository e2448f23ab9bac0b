#!/usr/bin/env python3
"""What Stan's own chains do: for each chain its seconds, mean log density, leapfrog steps and divergent transitions.

    stan_chains.py V/httpstan PROGRAM.stan --data DATA.json --chains 32      # V as in stan_values.py

NUTS with Stan's defaults from starts within 2 of 0, one chain after the other, `--seed` and the numbers of the chains as
CmdStan has them. benches/posteriordb.md quotes it.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

from stan_values import FLAGS, build, name_of

# A writer of draws that sums their columns; what else a sampler tells goes to standard output.
SUMS = r"""
#include <stan/callbacks/interrupt.hpp>
#include <stan/callbacks/logger.hpp>
#include <stan/callbacks/writer.hpp>
#include <stan/io/empty_var_context.hpp>
#include <stan/io/json/json_data.hpp>
#include <stan/services/sample/hmc_nuts_diag_e_adapt.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

struct Sums : stan::callbacks::writer {
  std::vector<std::string> names;
  std::vector<double> sums;
  int draws = 0;
  using stan::callbacks::writer::operator();
  void operator()(const std::vector<std::string>& all) override { names = all; sums.assign(all.size(), 0); }
  void operator()(const std::vector<double>& row) override {
    for (size_t i = 0; i < names.size(); i++) sums[i] += row[i];
    draws++;
  }
  void operator()(const std::string& text) override { std::printf("# %s\n", text.c_str()); }
  double of(const std::string& name) const {
    for (size_t i = 0; i < names.size(); i++)
      if (names[i] == name) return sums[i];
    return 0;
  }
};
"""
DRIVER = SUMS + r"""

template <class M>
static void run(M& model, unsigned seed, int chains, int warmup, int draws) {
  for (int chain = 1; chain <= chains; chain++) {
    stan::io::empty_var_context init;
    stan::callbacks::interrupt interrupt;
    stan::callbacks::logger logger;
    stan::callbacks::writer nothing;
    Sums sums;
    auto begin = std::chrono::steady_clock::now();
    int failed = stan::services::sample::hmc_nuts_diag_e_adapt(
        model, init, seed, chain, 2.0, warmup, draws, 1, false, 0, 1.0, 0.0, 10, 0.8, 0.05, 0.75, 10.0, 75, 50, 25,
        interrupt, logger, nothing, sums, nothing);
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("%d %d %.3f %.6g %.6g %.0f\n", chain, failed, seconds, sums.of("lp__") / sums.draws,
                sums.of("n_leapfrog__") / sums.draws, sums.of("divergent__"));
    std::fflush(stdout);
  }
}

int main(int, char** argv) {
  std::string name = argv[1];
  std::ifstream file(argv[2]);
  stan::json::json_data data(file);
  unsigned seed = std::stoul(argv[3]);
  int chains = std::stoi(argv[4]), warmup = std::stoi(argv[5]), draws = std::stoi(argv[6]);
  auto run = [&](auto& model) { ::run(model, seed, chains, warmup, draws); };
  MODELS
}
"""


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("folder", help="of the unpacked wheel: has stanc, include and lib")
    ap.add_argument("program")
    ap.add_argument("--data", required=True)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--chains", type=int, default=4)
    ap.add_argument("--warmup", type=int, default=1000)
    ap.add_argument("--draws", type=int, default=250)
    ap.add_argument("--work", help="a folder that keeps what was built")
    ap.add_argument("--cxx", default="g++")
    a = ap.parse_args()
    flags = ["-O3" if flag == "-O0" else flag for flag in FLAGS] + ["-march=native"]
    with tempfile.TemporaryDirectory() as temporary:
        work = a.work or temporary
        os.makedirs(work, exist_ok=True)
        exe = build(a.folder, [a.program], work, a.cxx, DRIVER, flags)
        numbers = [str(n) for n in (a.seed, a.chains, a.warmup, a.draws)]
        run = subprocess.Popen([exe, name_of(a.program), a.data, *numbers], stdout=subprocess.PIPE, text=True)
        print("chain  seconds     mean lp__  leapfrogs  divergent", flush=True)
        densities, divergent = [], 0
        for line in run.stdout:
            if line.startswith("#"):
                continue
            chain, failed, seconds, lp, leapfrogs, diverged = line.split()
            if int(failed):
                print(f"{chain:>5}  failed to start")
                continue
            densities.append(float(lp))
            divergent += int(diverged)
            print(f"{chain:>5} {seconds:>8} {lp:>13} {leapfrogs:>10} {diverged:>10}", flush=True)
        if run.wait():
            sys.exit(f"{a.program}: the chains ended with {run.returncode}")
    if densities:
        part = divergent / (len(densities) * a.draws)
        print(f"median of the means {statistics.median(densities):.6g}, divergent transitions {100 * part:.2f} %")


if __name__ == "__main__":
    main()
