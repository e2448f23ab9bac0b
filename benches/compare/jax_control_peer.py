"""The control programs in JAX: Collatz as a while loop under vmap, fib with a stack written by hand, since JAX has no recursion."""

import protocol  # noqa: F401  first of all
from protocol import Clock, job, serve

from jax_models import given, jax, jnp

import numpy as np

# Ints of 64 bits as in the other systems; the precision of reals does not matter here.
jax.config.update("jax_enable_x64", True)
lanes = jnp.asarray(np.asarray(given["n"], dtype=np.int64))
# Entries of fib's stack: one for each level of the deepest call.
DEPTH = 32


def collatz(n):
    def body(carry):
        x, steps = carry
        return jnp.where(x % 2 == 0, x // 2, 3 * x + 1), steps + 1

    return jax.lax.while_loop(lambda carry: carry[0] != 1, body, (n, jnp.int64(0)))[1]


def fib(n):
    def body(carry):
        stack, height, total = carry
        n = stack[height - 1]
        leaf = n < 3
        # A leaf is taken off and counted; another call makes way for its two calls.
        stack = stack.at[height - 1].set(jnp.where(leaf, n, n - 1))
        stack = stack.at[height].set(jnp.where(leaf, stack[height], n - 2))
        return stack, jnp.where(leaf, height - 1, height + 1), total + leaf

    stack = jnp.zeros(DEPTH, jnp.int64).at[0].set(n)
    return jax.lax.while_loop(lambda carry: carry[1] > 0, body, (stack, jnp.int64(1), jnp.int64(0)))[2]


run = jax.jit(jax.vmap({"collatz": collatz, "fib": fib}[job.model]))
jax.block_until_ready(run(lanes))


def repeat(runs, seed, keep):
    clock = Clock()
    for _ in range(runs):
        jax.block_until_ready(run(lanes))
    # The harness knows how much work the inputs are.
    return {"useful": 0, "seconds": clock.seconds(), "draws": runs}


serve(f"jax {jax.__version__}, vmap of while loops", repeat)
