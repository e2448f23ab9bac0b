#!/usr/bin/env python3
"""Values of Stan programs from Stan itself: writes NAME.expected.json beside each NAME.stan (data: NAME.json, if any).

    pip download --no-deps --python-version 3.12 --only-binary :all: httpstan==4.17.0           # has Stan 2.39
    unzip httpstan-4.17.0-*.whl -d V
    stan_values.py V/httpstan tests/filetests/stan/run/*.stan                        # or those that are new
    stan_values.py V/httpstan --posteriordb CHECKOUT --out values.json [NAME…]       # for the named check `posteriordb`

The wheel has stanc, the C++ headers and the libraries; g++ is needed. Several programs are one translation unit
(`--group`), so that the headers are read once. The points are unconstrained: zero, and two from Python's generator, uniform
in (-2, 2), with four decimals. At each there are `lp` (with Jacobian and all constants), `lp__` (`~` drops constants),
`gradient` (of either) and `values` (parameters, transformed parameters and generated quantities by their names in Stan's
files), or `error` and `values_error`: what Stan threw. `stan` says which Stan it was: the transforms of simplexes and of vectors that sum to
zero changed in 2.37.
"""
import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import zipfile

DRIVER = r"""
#include <stan/io/json/json_data.hpp>
#include <stan/services/util/create_rng.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

static std::string number(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", x);
  return std::isnan(x) ? "\"NaN\"" : std::isinf(x) ? (x > 0 ? "\"Inf\"" : "\"-Inf\"") : text;
}
static std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (char c : text) out += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c < 32 ? ' ' : c);
  return out + "\"";
}
template <class V> static std::string list(const V& values) {
  std::string out;
  for (Eigen::Index i = 0; i < values.size(); ++i) out += (i ? ", " : "") + number(values[i]);
  return "[" + out + "]";
}

// The points are lines of standard input; without any, only the count of coordinates is told.
static void run(stan::model::model_base& model) {
  using Vars = Eigen::Matrix<stan::math::var, -1, 1>;
  std::vector<std::string> coordinates, names;
  model.unconstrained_param_names(coordinates, false, false);
  model.constrained_param_names(names, true, true);
  std::printf("{\"dimension\": %zu, \"points\": [", coordinates.size());
  std::string line, between;
  for (; std::getline(std::cin, line); between = ",") {
    Eigen::VectorXd q(coordinates.size()), values;
    std::istringstream in(line);
    for (auto& x : q) in >> x;
    std::ostringstream messages;
    std::printf("%s{\"q\": %s", between.c_str(), list(q).c_str());
    try {
      stan::math::nested_rev_autodiff nested;
      Vars v = q.cast<stan::math::var>();
      stan::math::var full = model.log_prob_jacobian(v, &messages);
      double lp = full.val();
      stan::math::grad(full.vi_);
      Eigen::VectorXd gradient = v.adj();
      Vars w = q.cast<stan::math::var>();
      double dropped = model.log_prob_propto_jacobian(w, &messages).val();
      std::printf(", \"lp\": %s, \"lp__\": %s, \"gradient\": %s", number(lp).c_str(), number(dropped).c_str(),
                  list(gradient).c_str());
    } catch (const std::exception& e) {
      std::printf(", \"error\": %s", in_quotes(e.what()).c_str());
    }
    try {
      auto rng = stan::services::util::create_rng(1, 1);
      model.write_array(rng, q, values, true, true, &messages);
      std::printf(", \"values\": {");
      for (size_t i = 0; i < names.size(); ++i)
        std::printf("%s%s: %s", i ? ", " : "", in_quotes(names[i]).c_str(), number(values[i]).c_str());
      std::printf("}");
    } catch (const std::exception& e) {
      std::printf(", \"values_error\": %s", in_quotes(e.what()).c_str());
    }
    std::printf("}");
  }
  std::printf("]}\n");
}

int main(int, char** argv) {
  std::ifstream file(argv[2]);
  stan::json::json_data data(file);
  std::string name = argv[1];
  MODELS
}
"""
# The macro stands for "no entry points of a whole program": several programs fit into one translation unit.
FLAGS = ["-std=c++17", "-O0", "-w", "-pipe", "-ffp-contract=off", "-D_REENTRANT", "-D_GLIBCXX_USE_CXX11_ABI=0",
         "-DBOOST_DISABLE_ASSERTS", "-DBOOST_PHOENIX_NO_VARIADIC_EXPRESSION", "-DUSING_R"]


def name_of(path):
    name = re.sub(r"\W", "_", os.path.basename(path)[: -len(".stan")]) + "_model"
    return "model_" + name if name[0].isdigit() else name


def version_of(folder):
    """The version of the Stan of an unpacked wheel."""
    with open(os.path.join(folder, "include", "stan", "version.hpp")) as f:
        return ".".join(re.findall(r"#define STAN_(?:MAJOR|MINOR|PATCH) (\d+)", f.read()))


def build(folder, paths, work, cxx, driver=DRIVER, flags=FLAGS):
    """One executable for these programs; the one in the folder `work` if nothing has changed since."""
    texts = []
    for path in paths:
        with open(path) as f:
            texts.append(f.read())
    key = hashlib.sha256("\0".join([driver, *flags, *map(name_of, paths), *texts]).encode()).hexdigest()[:16]
    exe = os.path.join(work, f"values-{key}")
    if os.path.exists(exe):
        return exe
    source, runs = "#include <stan/model/model_header.hpp>\n", ""
    for path in paths:
        name = name_of(path)
        cpp = os.path.join(work, name + ".cpp")
        subprocess.run([os.path.join(folder, "stanc"), f"--o={cpp}", f"--name={name}", path], check=True)
        source += f'#define stan_model {name}_of_file\n#include "{cpp}"\n#undef stan_model\n'
        model = f"static {name}_namespace::{name} model(data, 1, &std::cerr);"
        runs += f'if (name == "{name}") {{ {model} run(model); }}\n  '
    main = exe + ".cpp"
    with open(main, "w") as f:
        f.write(source + driver.replace("MODELS", runs))
    lib = os.path.join(folder, "lib")
    libraries = sorted({found[1] for n in os.listdir(lib) if (found := re.match(r"lib(.+?)\.(?:so|a)$", n))})
    subprocess.run([cxx, *flags, "-I", os.path.join(folder, "include"), main, "-L", lib, *[f"-l{n}" for n in libraries],
                    f"-Wl,-rpath,{lib}", "-o", exe + ".part"], check=True)
    os.replace(exe + ".part", exe)
    return exe


def points_of(dimension):
    generator = random.Random(1)
    return [[0.0] * dimension] + [[round(generator.uniform(-2, 2), 4) for _ in range(dimension)] for _ in range(2)]


def values(exe, path, data, given=None):
    """What Stan computes at the points that are given, or its own choice of them."""

    def run(points):
        lines = "".join(" ".join(map(repr, p)) + "\n" for p in points)
        done = subprocess.run([exe, name_of(path), data], input=lines, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{path}: {done.stderr}")
        return json.loads(done.stdout)

    return run(given or points_of(run([])["dimension"]))["points"]


def record(exe, path, version, work, points):
    data = path[: -len(".stan")] + ".json"
    if not os.path.exists(data):
        data = os.path.join(work, "empty.json")
        with open(data, "w") as f:
            f.write("{}")
    found = values(exe, path, data, points)
    with open(path[: -len(".stan")] + ".expected.json", "w") as f:
        f.write(f'{{"stan": {json.dumps(version)}, "points": [\n' + ",\n".join(json.dumps(p) for p in found) + "\n]}\n")


def record_posteriors(a, version, work):
    """By the name of a posterior what `record` writes for a program."""
    root = os.path.join(a.posteriordb, "posterior_database")
    root = root if os.path.exists(root) else a.posteriordb
    names = a.programs or sorted(n[: -len(".json")] for n in os.listdir(os.path.join(root, "posteriors")))
    recorded = {}
    for name in names:
        with open(os.path.join(root, "posteriors", name + ".json")) as f:
            posterior = json.load(f)
        path = os.path.join(root, "models", "stan", posterior["model_name"] + ".stan")
        data = os.path.join(work, "data.json")
        with zipfile.ZipFile(os.path.join(root, "data", "data", posterior["data_name"] + ".json.zip")) as z:
            with open(data, "wb") as f:
                f.write(z.read(z.namelist()[0]))
        recorded[name] = {"stan": version, "points": values(build(a.folder, [path], work, a.cxx), path, data, a.points)}
        print(name, flush=True)
        with open(a.out, "w") as f:
            json.dump(recorded, f)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("folder", help="of the unpacked wheel: has stanc, include and lib")
    ap.add_argument("programs", nargs="*")
    ap.add_argument("--posteriordb", help="a checkout; the programs are names of posteriors then, by default all")
    ap.add_argument("--out", default="values.json")
    ap.add_argument("--group", type=int, default=6, help="programs in one translation unit")
    ap.add_argument("--work", help="a folder that keeps what was built: new data need no new build")
    ap.add_argument("--cxx", default="g++")
    ap.add_argument("--points", type=json.loads, help="unconstrained points as JSON, for a program that rejects the usual ones")
    a = ap.parse_intermixed_args()
    a.folder = os.path.abspath(a.folder)
    version = version_of(a.folder)
    with tempfile.TemporaryDirectory() as temporary:
        work = os.path.abspath(a.work or temporary)
        os.makedirs(work, exist_ok=True)
        if a.posteriordb:
            return record_posteriors(a, version, work)
        for at in range(0, len(a.programs), a.group):
            group = a.programs[at : at + a.group]
            exe = build(a.folder, group, work, a.cxx)
            for path in group:
                record(exe, path, version, work, a.points)
                print(path, flush=True)


if __name__ == "__main__":
    main()
