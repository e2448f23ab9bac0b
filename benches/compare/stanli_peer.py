"""stanli, an interpreter of Stan programs over Stan's own kernels: its NUTS with the step size and the diagonal metric of the job, one
chain a thread. It computes the generated quantities of a program between draws, which no other system here does.
"""

from protocol import Clock, data, fail, job, serve

import numpy as np
import stanli

if not job.program:
    fail("it runs Stan programs only")
starts = np.asarray(data()["starts"], dtype=float)
inv_metric = np.asarray(job.program["inv_metric"], dtype=float)
try:
    model = stanli.Model(stan_file=job.program["file"], data=job.program["data"], include_paths=job.program["include"] or None)
except Exception as error:
    fail(str(error))
leapfrogs = stanli.SAMPLER_COLUMNS.index("n_leapfrog__")


def repeat(draws, seed, keep):
    clock = Clock()
    fit = model.sample(
        chains=job.chains,
        seed=seed,
        warmup=0,
        samples=draws,
        max_depth=job.max_treedepth,
        inits=starts,
        parallel_chains=job.threads,
        refresh=0,
        metric="diag_e",
        inv_metric=inv_metric,
        step_size=job.stepsize,
        adapt_engaged=False,
    )
    seconds = clock.seconds()
    done = {"useful": int(fit.sampler_stats[:, :, leapfrogs].sum()), "seconds": seconds, "draws": draws}
    if keep:
        # The parameters; what never moves, such as the first row of a Cholesky factor, says nothing.
        states = fit.draws()[:, :, : len(model.constrained_names)]
        done["states"] = states[:, :, states.reshape(-1, states.shape[2]).std(axis=0) > 0]
    return done


serve(f"stanli {stanli.__version__}", repeat)
