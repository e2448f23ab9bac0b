"""The log densities in JAX, in the precision of the job. Import after `protocol`."""

import os

from protocol import data, job

# Before JAX is imported: what it does with several threads is its own choice, within the cores it may use.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", job.precision == "f64")
REAL = np.float64 if job.precision == "f64" else np.float32


def _load():
    given = {name: np.asarray(value) for name, value in data().items()}
    return given, given.pop("starts", np.zeros((job.chains, 0))).astype(REAL)


given, starts = _load()


def _array(name):
    return jnp.asarray(given[name].astype(REAL))


def _logistic():
    x, y = _array("x"), _array("y")

    def log_density(q):
        eta = x @ q
        return y @ eta - jnp.sum(jnp.logaddexp(0.0, eta)) - 0.5 * q @ q

    return log_density


def _eight_schools():
    y, sigma = _array("y"), _array("sigma")

    def log_density(q):
        theta_trans, mu, log_tau = q[:-2], q[-2], q[-1]
        tau = jnp.exp(log_tau)
        residual = (y - (mu + tau * theta_trans)) / sigma
        return (
            -0.5 * theta_trans @ theta_trans
            - 0.5 * residual @ residual
            - 0.5 * (mu / 5.0) ** 2
            - jnp.log1p((tau / 5.0) ** 2)
            + log_tau
        )

    return log_density


def _normal():
    return lambda q: -0.5 * q @ q


def _correlated():
    mean, precision = _array("mean"), _array("precision")

    def log_density(q):
        centred = q - mean
        return -0.5 * centred @ (precision @ centred)

    return log_density


_MODELS = {
    "logistic": _logistic,
    "eight_schools": _eight_schools,
    "normal10": _normal,
    "normal100": _normal,
    "correlated10": _correlated,
    "correlated100": _correlated,
}


def log_density():
    """Of one state of `dimension` reals."""
    return _MODELS[job.model]()


def chunk_length():
    """Draws of one call: few enough that they take little memory, so many that calls cost nothing."""
    return int(np.clip(2**20 // (job.chains * job.dimension), 16, 1024))


def serve_chains(version, start, step):
    """Answers requests with chains that go on together, draw after draw.

    `start(key)` gives the state of all chains at their starting points, `step(state)` the next with the states of the chains,
    chain x dimension, and the leapfrog steps of each. The number of draws of a call is not compiled in.
    """
    from protocol import Clock, serve

    length = chunk_length()

    @jax.jit
    def run(state, count):
        def body(i, carry):
            state, draws, steps = carry
            state, q, n = step(state)
            return state, draws.at[i].set(q), steps.at[i].set(n)

        draws = jnp.zeros((length, job.chains, job.dimension), REAL)
        steps = jnp.zeros((length, job.chains), jnp.int32)
        return jax.lax.fori_loop(0, count, body, (state, draws, steps))

    def repeat(draws, seed, keep):
        state = jax.block_until_ready(start(jax.random.PRNGKey(seed)))
        parts = []
        clock = Clock()
        for first in range(0, draws, length):
            state, q, steps = run(state, min(length, draws - first))
            parts.append((q, steps, min(length, draws - first)))
        jax.block_until_ready(parts[-1])
        seconds = clock.seconds()
        steps = np.concatenate([np.asarray(s)[:n] for _, s, n in parts]).astype(np.int64)
        done = {
            "useful": int(steps.sum()),
            # Every draw takes as long as that of the longest tree.
            "issued": float(steps.max(axis=1).sum() * job.chains),
            "seconds": seconds,
            "draws": draws,
        }
        if keep:
            done["states"] = np.concatenate([np.asarray(q)[:n] for q, _, n in parts]).transpose(1, 0, 2)
        return done

    repeat(2, 0, False)
    serve(version, repeat)
