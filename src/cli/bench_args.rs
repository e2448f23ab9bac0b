//! The arguments of `bench`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::ArgPredicate;

use crate::run::Schedule;

use super::args::{CodegenName, EngineName, ExecName, Format, RealName, Switch, parse_schedule};
use super::model::IncludeArgs;

#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    /// Other systems: stan, stanli, numpyro, blackjax, nuts-rs, tfp, jax, native; one of their ways of running as stan:glm-native
    #[arg(long, value_name = "SYSTEM", value_delimiter = ',')]
    pub(super) against: Vec<String>,
    /// Our engine `pc` alone, by kernels: with everything on, with each of the paper's five optimisations of the stack
    /// machine off, and with all five off. By default on eight_schools and correlated100 with 100 chains
    #[arg(long, conflicts_with_all = ["against", "engine", "fusion", "codegen", "schedule", "exec", "leaf_steps"])]
    pub(super) ablate: bool,
    /// What is computed; `--list` shows all
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "logistic",
        default_value_ifs([
            ("ablate", ArgPredicate::from("true"), "eight_schools,correlated100"),
            ("figures", ArgPredicate::IsPresent, "eight_schools,correlated100"),
        ])
    )]
    pub(super) model: Vec<String>,
    /// A Stan program, with its --data, in the place of a model: all systems take the step size and the diagonal metric
    /// that a warmup here learns. By default our engine `pc`, with 4 and 64 chains
    #[arg(long, value_name = "FILE.stan", conflicts_with_all = ["model", "ablate"])]
    pub(super) stan: Option<PathBuf>,
    #[command(flatten)]
    pub(super) includes: IncludeArgs,
    /// Numbers of chains, or of lanes of a program that is no posterior
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,10,100,1000",
        default_value_ifs([
            ("ablate", ArgPredicate::from("true"), "100"),
            ("stan", ArgPredicate::IsPresent, "4,64"),
            ("figures", ArgPredicate::IsPresent, "1,4,16,64,256"),
        ])
    )]
    pub(super) chains: Vec<usize>,
    /// Widths of `real`
    #[arg(long, value_enum, value_delimiter = ',', default_value = "f64")]
    pub(super) precision: Vec<RealName>,
    /// Numbers of threads; by default 1. In --figures those of the figure by threads, by default 1, 2, 4 and so on up to the cores of
    /// the machine, and the first of them is that of the other figures
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(super) threads: Vec<usize>,
    /// Our engines
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "pc,local,scalar",
        default_value_if("stan", ArgPredicate::IsPresent, "pc")
    )]
    pub(super) engine: Vec<EngineName>,
    /// What our engines `pc` and `local` run on
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "cpu")]
    pub(super) device: Vec<String>,
    /// Whether our batching engines fuse steps
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "on,off",
        default_value_if("stan", ArgPredicate::IsPresent, "on")
    )]
    pub(super) fusion: Vec<Switch>,
    /// Whether blocks run as generated code (with fusion, and --exec auto)
    #[arg(long, value_enum, value_delimiter = ',', default_value = "off,cc,auto")]
    pub(super) codegen: Vec<CodegenName>,
    /// Which waiting block of our engine `pc` runs next: earliest, most-lanes, cost, cost:θ
    #[arg(long, value_delimiter = ',', default_value = "cost", value_parser = parse_schedule)]
    pub(super) schedule: Vec<Schedule>,
    /// How a block of our batching engines runs whose lanes are not all active. With `mask` the lanes of a thread are one
    /// shard
    #[arg(long, value_enum, value_delimiter = ',', default_value = "auto")]
    pub(super) exec: Vec<ExecName>,
    /// Leapfrog steps between the states that our NUTS considers
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1")]
    pub(super) leaf_steps: Vec<usize>,
    /// Measured runs of each series, in turns
    #[arg(long, default_value_t = 5)]
    pub(super) repetitions: usize,
    /// How long a run should take: as many draws are made. By default 1, and 0.1 in --figures
    #[arg(
        long,
        default_value = "1",
        default_value_if("figures", ArgPredicate::IsPresent, "0.1"),
        allow_negative_numbers = true
    )]
    pub(super) seconds: f64,
    /// Draws of each chain in a run, instead
    #[arg(long)]
    pub(super) draws: Option<usize>,
    /// How long another system is waited for, in seconds, for one answer: that it has compiled and is warm, and then each run. One
    /// that takes longer is left out
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "1200",
        default_value_if("figures", ArgPredicate::IsPresent, "120"),
        allow_negative_numbers = true
    )]
    pub(super) patience: f64,
    /// Data of the model in the place of its own
    #[arg(long, value_name = "FILE.json|.npz")]
    pub(super) data: Option<PathBuf>,
    /// Step size in the place of the model's; it stays, and the metric is the unit metric, or that learnt of --stan
    #[arg(long, allow_negative_numbers = true)]
    pub(super) stepsize: Option<f64>,
    /// Iterations of the warmup of 16 chains that learns the step size and the metric of --stan; the run starts where half of
    /// them get to its end first
    #[arg(long, default_value_t = 1000, requires = "stan")]
    pub(super) warmup: usize,
    /// Seed of the first repetition
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Where other systems are installed; by default $AUTOBATCH_PEERS, or target/peers of the checkout
    #[arg(long, value_name = "FOLDER")]
    pub(super) peers: Option<PathBuf>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
    /// Write results.json, a figure for each model, precision and number of threads, and report.html to this folder
    #[arg(long, value_name = "FOLDER")]
    pub(super) report: Option<PathBuf>,
    /// Measure what the paper shows and write its figures to this folder, with report.html, which has all of them and
    /// their tables, and results.json: useful work against chains, of every engine in every way and of the peers that are
    /// installed; utilization by policy; each optimisation off; threads; leaf steps. By default on eight_schools and
    /// correlated100 with 1 to 256 chains, five to ten minutes without peers. The last three are of the largest number of
    /// --chains
    #[arg(
        long,
        value_name = "FOLDER",
        conflicts_with_all = [
            "report", "ablate", "stan", "engine", "fusion", "codegen", "schedule", "exec", "leaf_steps",
        ]
    )]
    pub(super) figures: Option<PathBuf>,
    /// Draw the figures and the page of results.json of an earlier run again, into --report, and measure nothing
    #[arg(long, value_name = "FILE.json", requires = "report", conflicts_with = "figures")]
    pub(super) from: Option<PathBuf>,
    /// List the models and the systems, with what is installed, and stop
    #[arg(long)]
    pub(super) list: bool,
}
