"""Stan's NUTS: one chain a thread, each a process, compiled by the Stan of the wheel httpstan, or by a CmdStan that the environment
variable CMDSTAN names. It runs the models of the folder stan, two of nuts/models, and any Stan program that a job brings, with a diagonal metric then. `native` models are compiled with -O3 -march=native, the others with Stan's own -O3.
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys

from protocol import data, fail, job, serve

import numpy as np

HERE = pathlib.Path(__file__).parent / "stan"
SHIPPED = pathlib.Path(__file__).parents[2] / "nuts/models"
BUILT = pathlib.Path(sys.prefix) / "models"
WHEEL = pathlib.Path(sys.prefix) / "wheel"


def stan_file():
    if job.program:
        return pathlib.Path(job.program["file"])
    shipped = {"kidscore": "kidscore_momiq.stan", "wells": "logistic_wells.stan"}.get(job.model)
    if shipped:
        return SHIPPED / shipped
    form = job.engine.split()[0]
    name = {"normal10": "normal", "normal100": "normal", "correlated10": "correlated", "correlated100": "correlated"}.get(job.model, job.model)
    return HERE / (f"{name}_{form}.stan" if name == "logistic" else f"{name}.stan")


def toolchain():
    """Compiler of models, flags of the C++ compiler, and the version."""
    flags = ["-std=c++17", "-O3", "-DBOOST_DISABLE_ASSERTS", "-DBOOST_PHOENIX_NO_VARIADIC_EXPRESSION", "-D_REENTRANT", "-Wno-sign-compare", "-w"]
    cmdstan = os.environ.get("CMDSTAN")
    if cmdstan:
        root = pathlib.Path(cmdstan)
        math = root / "stan/lib/stan_math"
        includes = [root / "stan/src", math, root / "stan/lib/rapidjson_1.1.0"]
        includes += [path for pattern in ("eigen_*", "boost_*", "sundials_*/include", "tbb_*/include") for path in (math / "lib").glob(pattern)]
        libraries = math / "lib/tbb"
        stanc = root / "bin/stanc"
    else:
        root = WHEEL / "httpstan"
        includes, libraries, stanc = [root / "include"], root / "lib", root / "stanc"
        flags.append("-D_GLIBCXX_USE_CXX11_ABI=0")
    flags += [f"-I{path}" for path in includes]
    link = [f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-ltbb"]
    if "native" in job.engine:
        flags.append("-march=native")
    return stanc, flags, link


def solvers(text):
    """What a program is linked with whose C++ calls the solvers of SUNDIALS."""
    if not any(name in text for name in ("_bdf", "_adams", "dae", "algebra_solver", "solve_newton", "kinsol")):
        return []
    cmdstan = os.environ.get("CMDSTAN")
    folders = (pathlib.Path(cmdstan) / "stan/lib/stan_math/lib").glob("sundials_*/lib") if cmdstan else [WHEEL / "httpstan/lib"]
    return [str(library) for folder in folders for library in sorted(folder.glob("libsundials_*.a"))]


def version():
    header = subprocess.run(["g++", *toolchain()[1], "-E", "-dM", "-include", "stan/version.hpp", "-x", "c++", os.devnull], capture_output=True, text=True).stdout
    numbers = dict(line.split()[1:3] for line in header.splitlines() if line.startswith("#define STAN_M") or line.startswith("#define STAN_PATCH"))
    compiler = subprocess.run(["g++", "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    source = "CmdStan" if os.environ.get("CMDSTAN") else next(WHEEL.glob("httpstan-*.dist-info")).stem.replace("-", " ")
    return f"Stan {numbers.get('STAN_MAJOR')}.{numbers.get('STAN_MINOR')}.{numbers.get('STAN_PATCH')} ({source}), {compiler}, -O3 and, where native, -march=native"


def build():
    """The program of a model; built once."""
    stanc, flags, link = toolchain()
    source = stan_file()
    include = [f"--include-paths={','.join(job.program['include'])}"] if job.program and job.program["include"] else []
    BUILT.mkdir(exist_ok=True)
    translated = folder / f"stan-{os.getpid()}.cpp"
    done = subprocess.run([stanc, *include, "--name", "model_peer", f"--o={translated}", source], capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"stanc: {done.stderr}")
    # What stanc makes has the text of included files in it.
    translation = translated.read_text()
    link += solvers(translation)
    text = translation + (HERE / "chain.hpp").read_text() + " ".join([str(stanc), *flags, *link])
    program = BUILT / f"{source.stem}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if program.exists():
        return program
    made = program.with_suffix(".cpp")
    made.write_text(translation + f'\n#include "{HERE / "chain.hpp"}"\n')
    partial = program.with_suffix(f".{os.getpid()}")
    done = subprocess.run(["g++", *flags, made, "-o", partial, *link], capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"g++: {done.stderr[-2000:]}")
    partial.rename(program)
    return program


def whole(value):
    """The value with integers where it has whole numbers only, as Stan's data wants them; a real may be one."""
    array = np.asarray(value, dtype=float)
    return (array.astype(int) if np.all(array == np.round(array)) else array).tolist()


folder = pathlib.Path(job.folder)
given = data()
starts = np.asarray(given.pop("starts"), dtype=float)
if job.program:
    data_file = job.program["data"]
    metric_file = folder / f"stan-{os.getpid()}.metric"
    metric_file.write_text(" ".join(repr(x) for x in job.program["inv_metric"]))
    metric = [metric_file]
else:
    if "x" in given:
        given["N"], given["D"] = len(given["x"]), len(given["x"][0])
        given["y"] = [int(y) for y in given["y"]]
    elif job.model in ("kidscore", "wells"):
        given = {name: whole(value) for name, value in given.items()}
    else:
        given["D"] = job.dimension
    if job.model == "eight_schools":
        given["J"] = len(given["y"])
    data_file = folder / f"stan-{os.getpid()}.json"
    data_file.write_text(json.dumps(given))
    metric = []
program = build()
chains = []
for chain in range(job.chains):
    start_file = folder / f"stan-{os.getpid()}-{chain}.start"
    start_file.write_text(" ".join(repr(float(x)) for x in starts[chain]))
    arguments = [data_file, start_file, repr(job.stepsize), str(job.max_treedepth), str(chain + 1), *metric]
    chains.append(subprocess.Popen([program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))


def repeat(draws, seed, keep):
    files = [folder / f"stan-{os.getpid()}-{chain}.draws" if keep else "-" for chain in range(job.chains)]
    for process, file in zip(chains, files):
        process.stdin.write(f"{draws} {seed} {file}\n")
        process.stdin.flush()
    answers = [process.stdout.readline().split() for process in chains]
    if any(len(answer) != 2 for answer in answers):
        fail("a chain ended")
    done = {"useful": sum(int(n) for n, _ in answers), "seconds": max(float(s) for _, s in answers), "draws": draws}
    if keep:
        done["states"] = np.stack([np.fromfile(file).reshape(draws, job.dimension) for file in files])
    return done


repeat(10, 0, False)
serve(version(), repeat)
for process in chains:
    process.stdin.close()
    process.wait()
