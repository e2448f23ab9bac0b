"""BlackJAX's NUTS under vmap."""

import protocol  # noqa: F401  first of all
from protocol import job

from jax_models import jax, jnp, log_density, serve_chains, starts

import blackjax

kernel = blackjax.nuts(
    log_density(),
    step_size=job.stepsize,
    inverse_mass_matrix=jnp.ones(job.dimension, starts.dtype),
    max_num_doublings=job.max_treedepth,
)


def start(key):
    return key, jax.vmap(kernel.init)(jnp.asarray(starts))


def step(carry):
    key, state = carry
    key, now = jax.random.split(key)
    state, info = jax.vmap(kernel.step)(jax.random.split(now, job.chains), state)
    return (key, state), state.position, info.num_integration_steps


serve_chains(f"blackjax {blackjax.__version__}, jax {jax.__version__}", start, step)
