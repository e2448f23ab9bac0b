"""NumPyro's NUTS with vectorised chains: one program that makes the draws of all chains together."""

import protocol  # noqa: F401  first of all
from protocol import job

from jax_models import jax, jnp, log_density, serve_chains, starts

import jaxlib
import numpyro
from numpyro.infer import NUTS

density = log_density()
kernel = NUTS(
    potential_fn=lambda q: -density(q),
    step_size=job.stepsize,
    adapt_step_size=False,
    adapt_mass_matrix=False,
    max_tree_depth=job.max_treedepth,
)


def start(key):
    # A leading axis of keys makes it vectorised.
    keys = jax.random.split(key, job.chains)
    return kernel.init(keys, 0, init_params=jnp.asarray(starts), model_args=(), model_kwargs={})


def step(state):
    state = kernel.sample(state, (), {})
    return state, state.z, state.num_steps


version = f"numpyro {numpyro.__version__}, jax {jax.__version__}, jaxlib {jaxlib.__version__}"
serve_chains(version, start, step)
