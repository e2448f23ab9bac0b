"""TensorFlow Probability: its own auto-batching (program counter under XLA, or, `graph`, as a graph of TensorFlow), and its iterative
NUTS under XLA.
"""

import os

from protocol import Clock, data, job, serve

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from tensorflow_probability.python.experimental import auto_batching as ab
from tensorflow_probability.python.experimental.auto_batching import instructions
from tensorflow_probability.python.experimental.mcmc import nuts_autobatching

REAL = np.float64 if job.precision == "f64" else np.float32
given = {name: np.asarray(value) for name, value in data().items()}
XLA = "graph" not in job.engine


def real(name):
    return tf.constant(given[name].astype(REAL))


def logistic():
    x, y = real("x"), real("y")

    def log_density(q):
        eta = tf.linalg.matmul(q, x, transpose_b=True)
        return tf.linalg.matvec(eta, y) - tf.reduce_sum(tf.math.softplus(eta), -1) - 0.5 * tf.reduce_sum(q * q, -1)

    return log_density


def eight_schools():
    y, sigma = real("y"), real("sigma")

    def log_density(q):
        theta_trans, mu, log_tau = q[..., :-2], q[..., -2], q[..., -1]
        tau = tf.exp(log_tau)
        residual = (y - (mu[..., None] + tau[..., None] * theta_trans)) / sigma
        return (
            -0.5 * tf.reduce_sum(theta_trans**2, -1)
            - 0.5 * tf.reduce_sum(residual**2, -1)
            - 0.5 * (mu / 5.0) ** 2
            - tf.math.log1p((tau / 5.0) ** 2)
            + log_tau
        )

    return log_density


def normal():
    return lambda q: -0.5 * tf.reduce_sum(q * q, -1)


def correlated():
    mean, precision = real("mean"), real("precision")

    def log_density(q):
        centred = q - mean
        return -0.5 * tf.reduce_sum(centred * tf.linalg.matmul(centred, precision), -1)

    return log_density


MODELS = {
    "logistic": logistic,
    "eight_schools": eight_schools,
    "normal10": normal,
    "normal100": normal,
    "correlated10": correlated,
    "correlated100": correlated,
}


def version():
    return f"tensorflow-probability {tfp.__version__}, tensorflow {tf.__version__}, {'XLA' if XLA else 'graph'}"


def rounds(draws, length):
    return -(-draws // length)


def auto_batching():
    """Several trajectories in one run of the virtual machine, so that gradients of different draws run together: its best; fewer
    where they take long. Of their states it gives only the last, so that there are no effective sample sizes.
    """
    starts = tf.constant(given["starts"].astype(REAL))
    length = 10 if job.chains * job.dimension < 50_000 else 4
    kernel = nuts_autobatching.NoUTurnSampler(
        MODELS[job.model](),
        step_size=REAL(job.stepsize),
        max_tree_depth=job.max_treedepth,
        num_trajectories_per_step=length,
        backend=ab.TensorFlowBackend(while_parallel_iterations=1, safety_checks=False),
        seed=1,
    )

    @tf.function(jit_compile=XLA)
    def step(state, leapfrogs):
        results = kernel.bootstrap_results(state)
        state, after = kernel.one_step(state, results)
        return state, leapfrogs + after.leapfrogs_taken

    def repeat(draws, seed, keep):
        state, leapfrogs = starts, tf.zeros(job.chains, tf.int64)
        clock = Clock()
        for _ in range(rounds(draws, length)):
            state, leapfrogs = step(state, leapfrogs)
        useful = int(leapfrogs.numpy().sum())
        return {"useful": useful, "seconds": clock.seconds(), "draws": rounds(draws, length) * length}

    return repeat


def iterative():
    starts = tf.constant(given["starts"].astype(REAL))
    length = int(np.clip(2**18 // (job.chains * job.dimension), 4, 256))
    kernel = tfp.mcmc.NoUTurnSampler(MODELS[job.model](), step_size=REAL(job.stepsize), max_tree_depth=job.max_treedepth)

    @tf.function(jit_compile=True)
    def chunk(state, seed):
        states, leapfrogs = tfp.mcmc.sample_chain(
            num_results=length,
            current_state=state,
            kernel=kernel,
            trace_fn=lambda _, results: results.leapfrogs_taken,
            seed=seed,
        )
        return states, leapfrogs

    def repeat(draws, seed, keep):
        state, parts = starts, []
        clock = Clock()
        for i in range(rounds(draws, length)):
            states, leapfrogs = chunk(state, tf.constant([seed, i], tf.int32))
            state = states[-1]
            parts.append((states, leapfrogs))
        steps = np.concatenate([leapfrogs.numpy() for _, leapfrogs in parts]).astype(np.int64)
        seconds = clock.seconds()
        done = {
            "useful": int(steps.sum()),
            # Every draw takes as long as that of the longest tree.
            "issued": float(steps.max(axis=1).sum() * job.chains),
            "seconds": seconds,
            "draws": len(steps),
        }
        if keep:
            done["states"] = np.concatenate([states.numpy() for states, _ in parts]).transpose(1, 0, 2)
        return done

    return repeat


def control():
    # Each a program of its own: what one does not reach would have no types.
    fib_context, collatz_context = ab.Context(), ab.Context()
    truthy = ab.truthy

    def int_type(args):
        return instructions.TensorType(np.int64, ())

    @fib_context.batch(type_inference=int_type)
    def fib(n):
        if truthy(n < 3):
            result = tf.ones_like(n)
        else:
            left = fib(n - 1)
            right = fib(n - 2)
            result = left + right
        return result

    @collatz_context.batch(type_inference=int_type)
    def collatz(n, steps):
        if truthy(tf.equal(n, 1)):
            result = steps
        else:
            result = collatz(tf.where(tf.equal(n % 2, 0), n // 2, 3 * n + 1), steps + 1)
        return result

    lanes = tf.constant(given["n"].astype(np.int64))
    backend = ab.TensorFlowBackend(while_parallel_iterations=1, safety_checks=False)

    @tf.function(jit_compile=XLA)
    def run(n):
        if job.model == "fib":
            return fib(n, max_stack_depth=20, backend=backend)
        return collatz(n, tf.zeros_like(n), max_stack_depth=600, backend=backend)

    def repeat(runs, seed, keep):
        clock = Clock()
        for _ in range(runs):
            run(lanes).numpy()
        # The harness knows how much work the inputs are.
        return {"useful": 0, "seconds": clock.seconds(), "draws": runs}

    return repeat


if job.model in ("collatz", "fib"):
    repeat = control()
elif job.engine == "iterative":
    repeat = iterative()
else:
    repeat = auto_batching()
repeat(1, 0, False)
serve(version(), repeat)
