#!/bin/sh
#SBATCH --job-name=autobatch
#SBATCH --array=0-15
#SBATCH --cpus-per-task=4
#SBATCH --mem-per-cpu=2G
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --signal=B:TERM@120
# A run of CHAINS chains as a job array, LANES of them in each task; `--array` counts from 0 to CHAINS / LANES - 1.
#
#     sbatch examples/cluster/slurm.sh model.stan data.json run.zarr
#     sbatch --dependency=afterok:JOB --wrap "autobatch merge run.zarr"
#
# With POOLED=1 the chains learn a metric together: tasks wait for one another, so that all of them must run at a time.
# A task that is run again, after its time or a node that went down, goes on where its chains were.
set -eu
model=$1 data=$2 store=$3
chains=${CHAINS:-4096} lanes=${LANES:-256}
first=$((SLURM_ARRAY_TASK_ID * lanes))
end=$((first + lanes))
[ "$end" -le "$chains" ] || end=$chains
[ -z "${POOLED:-}" ] || set -- --pooled-warmup --wait 3600
[ -n "${POOLED:-}" ] || set --
exec autobatch sample "$model" --data "$data" --chains "$chains" --warmup "${WARMUP:-1000}" --draws "${DRAWS:-1000}" \
    --seed "${SEED:-1}" --store "$store" --lanes "$first..$end" --threads "${SLURM_CPUS_PER_TASK:-1}" "$@"
