#!/usr/bin/env python3
"""All that is to know of a GPU, in one go: whether it gives the bits of the interpreter, what NVIDIA's sanitizer finds, and how
fast programs run. It needs NumPy; `--peers` needs a Python with JAX and NumPyro.

    python3 benches/gpu/measure.py --autobatch target/release/autobatch --tests target/release/deps/it-… --out DIR

`--device cuda-host --tiny` rehearses it without a GPU. What it prints goes to DIR/measured.txt, too.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--autobatch", default="target/release/autobatch")
    parser.add_argument("--tests", help="the test program `it`, built in release")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=Path("target/gpu"))
    parser.add_argument("--parts", default="correct,sanitize,rates,peers")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--chains", default="100,1000,10000,100000")
    parser.add_argument("--types", default="f32,f64")
    parser.add_argument("--arch", default="sm_90", help="for the part `compile`: the kind of GPU")
    parser.add_argument("--seconds", type=float, default=0.4, help="how long the GPU should be busy in a run")
    parser.add_argument("--limit", type=float, default=60, help="seconds after which one command is given up")
    parser.add_argument("--differential", default="50", help="percent of the random programs that run on the GPU")
    parser.add_argument("--programs", default="fib,collatz,meets,eight_schools,correlated100,wells", help="of `sanitize`")
    parser.add_argument("--filters", default="file_tests,gpu,differential", help="the tests of `correct`")
    parser.add_argument("--peers", default="logistic:1000,logistic:10000,correlated100:10000,eight_schools:10000,eight_schools:100000")
    parser.add_argument("--tiny", action="store_true", help="a rehearsal: few lanes, small data, no seconds")
    return parser.parse_args()


# Of so many draws one is kept. It is part of the programs, so all of them have the same.
THIN = 32

# By model: its file, its data, and the step size.
MODELS = {
    "eight_schools": ("eight_schools", "eight_schools", 0.55),
    "normal10": ("standard_normal", "normal10", 0.87),
    "normal100": ("standard_normal", "normal100", 0.5),
    "correlated10": ("correlated_gaussian", "correlated10", 0.3),
    "correlated100": ("correlated_gaussian", "correlated100", 0.2),
    "logistic": ("logistic_synthetic", "logistic", 0.0265),
    "wells": ("logistic_wells", "wells", 0.001),
}


class Measuring:
    def __init__(self, options):
        self.options = options
        options.out.mkdir(parents=True, exist_ok=True)
        self.file = open(options.out / "measured.txt", "a", buffering=1)
        self.autobatch = str(Path(options.autobatch).resolve())
        self.making = threading.Lock()

    def say(self, text):
        print(text, flush=True)
        self.file.write(text + "\n")

    def run(self, command, limit=None, **environment):
        """The exit status, what a command printed, and the seconds that it took."""
        started = time.perf_counter()
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=limit or self.options.limit,
                text=True,
                errors="replace",
            )
            status, text = done.returncode, done.stdout
        except subprocess.TimeoutExpired as error:
            text = error.stdout or b""
            status, text = 124, text.decode(errors="replace") if isinstance(text, bytes) else text
        return status, text, time.perf_counter() - started

    def data(self, name):
        """The file of the data of a model, made where it is not one of the repository."""
        files = {"eight_schools": "nuts/data/eight_schools.json", "wells": "nuts/data/wells_data.json"}
        if name in files:
            return str(ROOT / files[name])
        path = self.options.out / f"{name}.json"
        with self.making:
            if not path.exists():
                path.write_text(json.dumps(self.made_data(name)))
        return str(path)

    def made_data(self, name):
        random = np.random.default_rng(20200305)
        if name.startswith("logistic") or name == "meets":
            n, d = {"logistic": (10_000, 100), "meets": (700, 40)}[name]
            n, d = (600, 20) if self.options.tiny else (n, d)
            x = random.standard_normal((n, d))
            y = random.random(n) < 1 / (1 + np.exp(-x @ random.standard_normal(d)))
            data = {"x": x.tolist(), "y": y.astype(float).tolist()}
        elif name.startswith("correlated"):
            d = int(name.removeprefix("correlated"))
            at = np.arange(d)
            precision = np.linalg.inv(0.9 ** np.abs(at[:, None] - at))
            data = {"mean": [0.0] * d, "precision": (0.5 * (precision + precision.T)).tolist()}
        else:
            data = {}
        return data

    def sample(self, model, chains, real, kept, device=None):
        """The command for so many draws that are kept, of THIN times as many: what is kept must not be the limit."""
        file, data, stepsize = MODELS[model]
        path = f"nuts/models/{file}.ab"
        if model.startswith("normal"):
            path = self.options.out / f"{model}.ab"
            path.write_text(f"model {model}(x: real[{model.removeprefix('normal')}]) {{ -0.5 * dot(x, x) }}\n")
        command = [self.autobatch, "sample", str(path), "--data", self.data(data), "--warmup", "0"]
        command += ["--stepsize", str(stepsize), "--chains", str(chains), "--draws", str(kept * THIN), "--thin", str(THIN)]
        return command + ["--seed", "1", "--device", device or self.options.device, "--real", real]

    def machine(self):
        for command in (["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,memory.used", "--format=csv,noheader"], [self.autobatch, "devices"]):
            if shutil.which(command[0]):
                self.say(f"{Path(command[0]).name}: {self.run(command)[1].strip()}")

    def correct(self):
        """Every test of engines, and whole runs of samplers against those on the CPU."""
        options = self.options
        if options.tests:
            tests = str(Path(options.tests).resolve())
            for name in [["gpu"]] if options.tiny else [[name] for name in options.filters.split(",")]:
                status, text, seconds = self.run(
                    [tests, *name],
                    limit=3 * options.limit,
                    AUTOBATCH_TEST_DEVICE=options.device,
                    AUTOBATCH_TESTS="all",
                    AUTOBATCH_DIFFERENTIAL_GPU=options.differential,
                )
                (options.out / f"tests_{name[0]}.txt").write_text(text)
                results = re.findall(r"test result:.*|.*FAILED|.*panicked at.*", text)
                self.say(f"tests {name[0]}: status {status}, {seconds:.0f} s: {'; '.join(results)[:600]}")
        same = {"eight_schools": 2000, "normal10": 500, "correlated100": 200, "wells": 200, "logistic": 40}
        jobs = [(model, chains, real) for model, chains in same.items() for real in options.types.split(",")]

        def digest(job, device):
            model, chains, real = job
            to = options.out / f"{model}_{real}_{device}.npz"
            command = self.sample(model, 4 if options.tiny else chains, real, 2, device)
            status, text, seconds = self.run([*command, "--output", str(to)], limit=3 * options.limit)
            made = hashlib.md5()
            if status == 0:
                with np.load(to) as arrays:
                    for name in sorted(arrays.files):
                        made.update(name.encode() + arrays[name].tobytes())
            return status, made.hexdigest(), seconds, text

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            runs = [(job, pool.submit(digest, job, "cpu"), pool.submit(digest, job, options.device)) for job in jobs]
            for job, cpu, gpu in runs:
                cpu, gpu = cpu.result(), gpu.result()
                found = "the same" if cpu[:2] == gpu[:2] and cpu[0] == 0 else f"DIFFERENT {cpu[:2]} {gpu[:2]}\n{gpu[3][-600:]}"
                self.say(f"sample {job[0]} {job[2]}: {found}; {cpu[2]:.1f} s and {gpu[2]:.1f} s")

    def sanitize(self):
        """NVIDIA's compute-sanitizer: memory, races within blocks, barriers, memory that nobody has set."""
        options = self.options
        sanitizer = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        if not Path(sanitizer).exists():
            return self.say("compute-sanitizer: not here")
        w = self.options.out / "w.npy"
        np.save(w, np.random.default_rng(2).standard_normal((70, 40)) * 0.1)
        np.save(self.options.out / "steps.npy", np.arange(70) % 4)
        device = ["--device", self.options.device]
        programs = {
            "fib": [self.autobatch, "run", "examples/fib.ab", "--entry", "fib", "--input", "n=[1,5,9,12,3]", *device],
            "collatz": [self.autobatch, "run", "examples/collatz.ab", "--entry", "collatz", "--input", "n=[27,5,9,12,3]", *device],
            "meets": [self.autobatch, "run", "benches/gpu/meets.ab", "--data", self.data("meets"), "--input", f"w=@{w}"]
            + ["--input", f"steps=@{self.options.out / 'steps.npy'}", "--stats", *device],
            "eight_schools": self.sample("eight_schools", 300, "f64", 1),
            "correlated100": self.sample("correlated100", 40, "f32", 1),
            "wells": self.sample("wells", 40, "f64", 1),
        }
        tools = ["memcheck", "racecheck", "synccheck", "initcheck"]

        def check(job):
            name, tool = job
            command = [sanitizer, "--tool", tool, *programs[name]]
            return job, self.run(command, limit=2 * self.options.limit)

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            for (name, tool), (status, text, seconds) in pool.map(check, [(p, t) for t in tools for p in options.programs.split(",")]):
                (self.options.out / f"{tool}_{name}.txt").write_text(text)
                summary = re.findall(r"=+ (ERROR SUMMARY.*|RACECHECK SUMMARY.*)", text)
                self.say(f"{tool} {name}: status {status}, {seconds:.0f} s: {summary or text[-300:]}")

    def busy(self, text):
        """Of a run: gradients told, seconds that the device was busy, seconds of the run, lanes at a time."""
        gradients = re.search(r"([\d,]+) gradients in ([\d.]+) s", text)
        busy = re.search(r"([\d,]+) lanes at a time, .*busy for ([\d.]+) s", text)
        if not gradients or not busy:
            return None
        number = lambda found: float(found.replace(",", ""))
        return number(gradients[1]), number(busy[2]), number(gradients[2]), int(number(busy[1]))

    def rates(self):
        """Gradients a second, by model, number of chains and type: of draws one of many is kept, so that the GPU is the limit."""
        options = self.options
        types = options.types.split(",")
        models = options.models.split(",")
        self.say("| model | real | chains | kept of draws | gradients a draw | busy s | run s | lanes at a time | gradients/s, busy |")
        for model in models:
            for chains in [3] if options.tiny else [int(chains) for chains in options.chains.split(",")]:
                for real in types:
                    self.rate(model, chains, real)

    def rate(self, model, chains, real):
        kept = 1
        for _ in range(3):
            status, text, _ = self.run(self.sample(model, chains, real, kept))
            found = self.busy(text)
            if status != 0 or not found:
                return self.say(f"| {model} | {real} | {chains} | status {status}: {text[-400:]!r} |")
            gradients, busy, seconds, lanes = found
            more = int(kept * self.options.seconds / max(busy, 1e-4))
            if self.options.tiny or more < 2 * kept:
                break
            kept = min(more, 64 * kept)
        rate = gradients * THIN / busy
        self.say(
            f"| {model} | {real} | {chains} | {kept} of {kept * THIN} | {gradients / chains / kept:.1f} | {busy:.4f} |"
            f" {seconds:.2f} | {lanes} | {rate:.4g} |"
        )

    def compile(self):
        """The machine code of all that is measured, where there may be no GPU: AUTOBATCH_CACHE says where it goes."""
        for model in self.options.models.split(","):
            for real in self.options.types.split(","):
                command = self.sample(model, 2, real, 1, f"cuda-code:{self.options.arch}")
                status, text, seconds = self.run(command, limit=5 * self.options.limit)
                self.say(f"{model} {real}: status {status}, {seconds:.1f} s: {text.strip().splitlines()[-1:]}")

    def peers(self):
        """The same models beside NumPyro on the same card, in turns, with every draw recorded."""
        peers = self.options.out / "peers"
        python = shutil.which("python3")
        for name in ("jax", "numpyro"):
            (peers / name / "bin").mkdir(parents=True, exist_ok=True)
            link = peers / name / "bin" / "python"
            link.exists() or link.write_text(f'#!/bin/sh\nexec {python} "$@"\n')
            link.chmod(0o755)
        for precision in self.options.types.split(","):
            for model, chains in [config.split(":") for config in self.options.peers.split(",")]:
                command = [self.autobatch, "bench", "--model", model, "--engine", "pc", "--device", self.options.device]
                command += ["--fusion", "on", "--codegen", "off", "--precision", precision, "--against", "numpyro"]
                command += ["--peers", str(peers), "--chains", "3" if self.options.tiny else chains]
                command += ["--seconds", str(self.options.seconds), "--repetitions", "2", "--threads", str(os.cpu_count())]
                environment = {"JAX_PLATFORMS": "cuda", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
                status, text, seconds = self.run(
                    command, limit=3 * self.options.limit, JAX_DEFAULT_MATMUL_PRECISION="highest", **environment
                )
                rows = [line for line in text.splitlines() if line.startswith("|")] or [text[-500:]]
                self.say(f"{model} {precision}, status {status}, {seconds:.0f} s:\n" + "\n".join(rows))


def main():
    options = arguments()
    measuring = Measuring(options)
    measuring.say(f"== {' '.join(sys.argv[1:])}")
    measuring.machine()
    for part in options.parts.split(","):
        started = time.perf_counter()
        getattr(measuring, part)()
        measuring.say(f"-- {part}: {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
