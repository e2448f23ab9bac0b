//! The arguments of the command line.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::pipeline::{Deny, Passes};
use crate::program::{Codegen, Engine, Error, ErrorKind, Options, Prints, device};
use crate::run::{Costs, Execution, MemoryBudget, Schedule, Settings};
use crate::types::Precision;

#[cfg(feature = "bench")]
use super::bench_args::BenchArgs;
#[cfg(feature = "codegen")]
use super::compile::CompileArgs;
use super::generated::GenerateArgs;
use super::init::InitArgs;
use super::laplace::LaplaceArgs;
use super::model::{DataArgs, IncludeArgs};
use super::note;
use super::optimize::OptimizeArgs;
use super::page::ReportArgs;
use super::pathfinder::PathfinderArgs;
use super::quantities::QuantitiesArgs;
use super::sample_args::{ChainArgs, DrawsFileArgs};
use super::sbc::SbcArgs;
use super::store::{MergeArgs, ResumeArgs, ShownArgs, StoreArgs};
use super::trace::TraceArgs;

/// Program-counter autobatching: single-example programs with loops, branches and recursion, run for many lanes at once.
#[derive(Debug, Parser)]
#[command(name = "autobatch", version, max_term_width = 100)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
    /// Print to standard error what each pass of the compiler took, and how many instructions it left
    #[arg(long, global = true)]
    pub(super) time_passes: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run a function of a program for many lanes
    Run(RunArgs),
    /// List what programs can run on: the names for `--device`
    Devices,
    /// Make the machine code of a command for a kind of GPU, on a machine that has none
    #[cfg(feature = "codegen")]
    Compile(CompileArgs),
    /// Apply a function to every row of arrays: the vectorized map
    Map(MapArgs),
    /// Print the value and the gradient of a function, and check them against differences
    Grad(GradArgs),
    /// Draw from a posterior with NUTS, or with another sampler written in the language
    Sample(Box<SampleArgs>),
    /// Go on with a run whose draws are in a store, where it was stopped or killed; or ask for more draws
    Resume(Box<ResumeArgs>),
    /// End a store whose chains several processes have run
    Merge(MergeArgs),
    /// Check a model and a sampler by simulation: whether what is drawn from the prior has uniform ranks in its posteriors
    Sbc(Box<SbcArgs>),
    /// Print the table of CmdStan's stansummary, of the chains of a run: Stan CSV, arrays, or a Zarr store
    Summary(SummaryArgs),
    /// Say what to worry about in the chains of a run, as CmdStan's diagnose; or test the gradient of a model
    Diagnose(DiagnoseArgs),
    /// Show a run on one page: findings, tables and pictures, in a file that needs nothing else
    Report(ReportArgs),
    /// Print the log density of a model and its gradient at unconstrained points
    #[command(name = "log-prob", visible_alias = "log_prob")]
    LogProb(LogProbArgs),
    /// Find the maximum of a log density, by L-BFGS, BFGS or Newton's method, from many starts at once
    Optimize(Box<OptimizeArgs>),
    /// Draw from the normal approximation at a mode
    Laplace(Box<LaplaceArgs>),
    /// Draw from the best normal approximations along paths to modes
    Pathfinder(Box<PathfinderArgs>),
    /// Compute the generated quantities of draws that are there
    #[command(name = "generate-quantities", visible_alias = "generate_quantities")]
    GenerateQuantities(QuantitiesArgs),
    /// Print the program of the language that a Stan program with its data becomes
    Translate(TranslateArgs),
    /// Measure the engines against one another and against other systems
    #[cfg(feature = "bench")]
    Bench(BenchArgs),
    /// Print a program at a stage of the compiler
    Dump(DumpArgs),
    /// Check programs and say what is wrong with them
    Check(CheckArgs),
    /// Format programs
    Fmt(FmtArgs),
    /// Serve an editor by the language server protocol, over standard input and output
    Lsp {
        /// What editors say that start servers of many kinds; there is no other way
        #[arg(long, hide = true)]
        stdio: bool,
    },
    /// Begin with a model or a program in a folder of its own
    Init(InitArgs),
    /// Explain the code of a diagnostic, such as E0304
    Explain {
        /// The code
        code: String,
    },
    /// Measure what the cost model reckons with (`--costs`) on this machine; takes a few seconds
    #[command(hide = true)]
    Calibrate,
    /// Write completions of shells and pages of the manual, for packages
    #[command(hide = true)]
    Generate(GenerateArgs),
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The program: .ab, or the text of an IR: .cfg, .stack, .unit
    pub(super) file: PathBuf,
    /// The function to run
    #[arg(long, default_value = "main")]
    pub(super) entry: String,
    #[command(flatten)]
    pub(super) inputs: InputArgs,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
    /// Write the outputs and streams to this file
    #[arg(long, value_name = "FILE.npz|.json")]
    pub(super) output: Option<PathBuf>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
    /// Count supersteps, lanes, primitives and pushes, and print them
    #[arg(long)]
    pub(super) stats: bool,
    /// Write to this file where the time went: by activity, block and line
    #[arg(long, value_name = "FILE.json")]
    pub(super) profile: Option<PathBuf>,
    #[command(flatten)]
    pub(super) trace: TraceArgs,
}

#[derive(Debug, Args)]
pub(super) struct MapArgs {
    /// The program
    pub(super) file: PathBuf,
    /// The function that each row goes through
    #[arg(long, default_value = "main")]
    pub(super) entry: String,
    /// Arrays with a row for each lane (`--input x=@rows.npy`), and what is the same for all rows
    #[command(flatten)]
    pub(super) inputs: InputArgs,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
    /// Write the outputs to this file; else a JSON object for each row goes to standard output
    #[arg(long, value_name = "FILE.npy|.npz|.json")]
    pub(super) output: Option<PathBuf>,
    /// Rows that are in memory at one time; 0 chooses
    #[arg(long, default_value_t = 0)]
    pub(super) rows_at_once: usize,
    /// Apply it to these rows only, from A up to B, which is excluded: each has the random numbers that it has among all
    #[arg(long, value_name = "A..B", value_parser = range)]
    pub(super) rows: Option<Range<usize>>,
}

#[derive(Debug, Args)]
pub(super) struct GradArgs {
    /// The program
    pub(super) file: PathBuf,
    /// The function: it gives a real
    #[arg(long, default_value = "main")]
    pub(super) entry: String,
    /// With respect to this parameter; may stand several times; by default to all that vary between lanes and are real
    #[arg(long, value_name = "NAME")]
    pub(super) wrt: Vec<String>,
    #[command(flatten)]
    pub(super) inputs: InputArgs,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
    /// How to print the results
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
}

#[derive(Debug, Args, Default)]
pub(super) struct InputArgs {
    /// A lane input, one value a lane along the leading axis: JSON, or @file.json, @file.npy, @file.npz
    #[arg(long = "input", value_name = "NAME=VALUE")]
    pub(super) input: Vec<String>,
    /// A shared input, the same for all lanes: JSON or @file
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) shared: Vec<String>,
    /// Shared inputs in Stan's JSON data format, one for each key; those that the program does not take are left alone
    #[arg(long, value_name = "FILE.json")]
    pub(super) data: Option<PathBuf>,
    /// Number of lanes, where no lane input tells
    #[arg(long)]
    pub(super) lanes: Option<usize>,
}

#[derive(Debug, Args)]
pub(super) struct EngineArgs {
    /// What runs the program
    #[arg(long, value_enum, default_value_t = EngineName::Pc)]
    pub(super) engine: EngineName,
    /// What the engine `pc` runs on: `cpu`, a GPU (`cuda`, `cuda:1`), several (`cuda:0,1`, `cuda:all`), or `cuda-host`, the text for a GPU on the CPU
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    pub(super) device: String,
    /// Which waiting block runs next: earliest, most-lanes, cost, cost:θ
    #[arg(long, default_value = "cost", value_parser = parse_schedule)]
    pub(super) schedule: Schedule,
    /// How a block runs whose lanes are not all active
    #[arg(long, value_enum, default_value_t = ExecName::Auto)]
    pub(super) exec: ExecName,
    /// What the cost model reckons with, such as gather=0.8,blend=0.2 (`calibrate` measures it)
    #[arg(long, value_name = "NAME=NS,…", value_parser = Costs::parse, default_value_t = Costs::default())]
    pub(super) costs: Costs,
    /// Width of `real`
    #[arg(long, value_enum, default_value_t = RealName::F64)]
    pub(super) real: RealName,
    /// Whether blocks run as generated code: `cc` compiles them with the system's C compiler before the run, `auto` beside it, where that may pay. With the engine `scalar`, `cc` makes one function of all, for few lanes
    #[arg(long, value_enum, default_value_t = CodegenName::Auto)]
    pub(super) codegen: CodegenName,
    /// Worker threads; 0 takes one a core
    #[arg(long, default_value_t = 0)]
    pub(super) threads: usize,
    /// Lanes a shard; 0 lets the plan choose
    #[arg(long, default_value_t = 0)]
    pub(super) shard_lanes: usize,
    /// Seed of all random streams
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,
    /// Calls that may be active in a lane at one time
    #[arg(long, default_value_t = 10_000)]
    pub(super) max_stack_depth: usize,
    /// Values that one tape of a lane may hold (tapes keep what a gradient needs)
    #[arg(long, default_value_t = 1 << 24)]
    pub(super) max_tape_depth: usize,
    /// Blocks that one lane may run; 0 is no limit
    #[arg(long, default_value_t = 0)]
    pub(super) max_supersteps: u64,
    /// What else stops a lane
    #[arg(long, value_enum)]
    pub(super) check: Option<CheckName>,
    /// Memory that a run may take, in MiB; by default what can be had, looked at again as the run grows
    #[arg(long, value_name = "MIB")]
    pub(super) memory_limit: Option<u64>,
    /// Memory that a run may take on each GPU of --device, in MiB; by default what is free there
    #[arg(long, value_name = "MIB")]
    pub(super) device_memory: Option<u64>,
    /// Switch off a compiler pass (`all` for every one); `autobatch dump --passes` lists them
    #[arg(long = "no-pass", value_name = "PASS")]
    pub(super) no_pass: Vec<String>,
    /// Off: every primitive runs by itself, over the whole batch in one shard
    #[arg(long, value_enum, default_value_t = Switch::On)]
    pub(super) fusion: Switch,
    /// Take a warning about speed as an error: `fallback` for W0101, `loops` for W0102
    #[arg(long, value_name = "NAME", value_parser = parse_deny)]
    pub(super) deny: Vec<Deny>,
}

#[derive(Debug, Args)]
pub(super) struct SampleArgs {
    /// The model: exports `log_density`, and `parameters` for its constrained parameters
    #[arg(required_unless_present = "list_settings")]
    pub(super) model: Option<PathBuf>,
    #[command(flatten)]
    pub(super) data: DataArgs,
    /// Data of which each data set has its own, with an axis over the data sets before their own: --chains are those of each,
    /// one after the other
    #[arg(long, value_name = "FILE.json|.npz")]
    pub(super) lane_data: Option<PathBuf>,
    /// The sampler: a program that exports `transition`, or std/hmc.ab, std/slice_nuts.ab; std/nuts.ab by default
    #[arg(long, value_name = "FILE.ab")]
    pub(super) sampler: Option<PathBuf>,
    /// Number of chains
    #[arg(long, visible_alias = "num-chains", default_value_t = 4, allow_negative_numbers = true, value_parser = count)]
    pub(super) chains: usize,
    /// Warmup iterations of each chain
    #[arg(long, visible_alias = "num-warmup", default_value_t = 1000, allow_negative_numbers = true, value_parser = count)]
    pub(super) warmup: usize,
    /// Iterations of each chain after warmup
    #[arg(long, visible_alias = "num-samples", default_value_t = 1000, allow_negative_numbers = true, value_parser = count)]
    pub(super) draws: usize,
    /// Sets something of the sampler, such as target_accept=0.95 or max_treedepth=12; may be given several times
    #[arg(long, value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub(super) set: Vec<String>,
    /// List what --set can set of the sampler, with the values it has otherwise, and stop
    #[arg(long)]
    pub(super) list_settings: bool,
    #[command(flatten)]
    pub(super) chain: ChainArgs,
    /// What stands along axes, by their names: {"school": ["Choate", …]}, or with names for the axes of variables
    /// {"coords": {…}, "dims": {"theta": ["school"]}}. Tables show theta[Choate], and a store has the coordinates
    #[arg(long, value_name = "FILE.json")]
    pub(super) coords: Option<PathBuf>,
    #[command(flatten)]
    pub(super) shown: ShownArgs,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
    #[command(flatten)]
    pub(super) draws_file: DrawsFileArgs,
    #[command(flatten)]
    pub(super) store: StoreArgs,
    /// Write to this file where the time went: by activity, block and line
    #[arg(long, value_name = "FILE.json")]
    pub(super) profile: Option<PathBuf>,
    #[command(flatten)]
    pub(super) trace: TraceArgs,
    /// Write what there is to see of the run to this page, as `autobatch report` does
    #[arg(long, value_name = "FILE.html")]
    pub(super) report: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct SummaryArgs {
    /// The files of the chains of a run, or the one that has all
    #[arg(required = true, value_name = "FILE.csv|.npz|.json|.zarr|.zarr.zip")]
    pub(super) files: Vec<PathBuf>,
    /// Of a run with many data sets: only this one, counted from 0
    #[arg(long, value_name = "K")]
    pub(super) data_set: Option<usize>,
    /// Significant digits
    #[arg(short, long, visible_alias = "sig_figs", value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=18))]
    pub(super) sig_figs: u64,
    /// Quantiles that are shown, in percent
    #[arg(short, long, value_name = "P,…", value_delimiter = ',', default_values_t = [5.0, 50.0, 95.0], value_parser = percent)]
    pub(super) percentiles: Vec<f64>,
    /// Write the table to this file, too, as CSV
    #[arg(short, long, visible_alias = "csv_filename", value_name = "FILE.csv")]
    pub(super) csv_filename: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct DiagnoseArgs {
    /// The files of the chains of a run; or a model, whose gradient is compared with differences at a random point
    #[arg(required = true, value_name = "FILE.csv|.npz|.json|.zarr|.zarr.zip|MODEL")]
    pub(super) files: Vec<PathBuf>,
    /// Of a run with many data sets: the one to look at, counted from 0
    #[arg(long, value_name = "K")]
    pub(super) data_set: Option<usize>,
    /// Exit with 1 where there is something to look at
    #[arg(long)]
    pub(super) strict: bool,
    #[command(flatten)]
    pub(super) data: DataArgs,
    /// Of a model: the point is uniform within this distance of 0 in every unconstrained coordinate
    #[arg(long, value_name = "RADIUS", default_value_t = 2.0)]
    pub(super) init: f64,
    /// Of a model: the step of the differences
    #[arg(long, value_name = "STEP", default_value_t = 1e-6)]
    pub(super) epsilon: f64,
    /// Of a model: the largest error that is none
    #[arg(long, value_name = "ERROR", default_value_t = 1e-6)]
    pub(super) error: f64,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
}

#[derive(Debug, Args)]
pub(super) struct LogProbArgs {
    /// The model: exports `log_density`
    pub(super) model: PathBuf,
    #[command(flatten)]
    pub(super) data: DataArgs,
    /// The points, unconstrained: a list of lists as JSON, or a file of one, a row for each; CmdStan's `unconstrained_params`
    #[arg(long, value_name = "FILE.json|.npy|JSON", required_unless_present = "constrained")]
    pub(super) points: Option<String>,
    /// In their place a point by the values of all parameters, as `sample --init` has it; CmdStan's `constrained_params`
    #[arg(long, value_name = "FILE.json", conflicts_with = "points")]
    pub(super) constrained: Option<PathBuf>,
    /// Of a Stan program: with the addends that do not depend on the parameters, which `~` leaves out
    #[arg(long)]
    pub(super) full: bool,
    /// Of a Stan program or a `model`: without the Jacobian of the transforms of constrained parameters
    #[arg(long, conflicts_with = "jacobian")]
    pub(super) no_jacobian: bool,
    /// The same as CmdStan has it: 0 leaves the Jacobian out
    #[arg(long, value_name = "0|1", value_parser = yes_or_no)]
    pub(super) jacobian: Option<bool>,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
    /// How to print the results
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
}

#[derive(Debug, Args)]
pub(super) struct TranslateArgs {
    /// The Stan program
    pub(super) model: PathBuf,
    #[command(flatten)]
    pub(super) data: DataArgs,
    /// Write the program to this file, and its data beside it: FILE.json has all that it takes
    #[arg(long, value_name = "FILE.ab")]
    pub(super) output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

#[derive(Debug, Args)]
pub(super) struct DumpArgs {
    /// The program: .ab, .stan, or the text of an IR: .cfg, .stack, .unit
    #[arg(required_unless_present = "passes")]
    pub(super) file: Option<PathBuf>,
    /// The function, for stages after `hir`; of a Stan program `log_density` or `parameters`
    #[arg(long, default_value = "main")]
    pub(super) entry: String,
    /// Which stage
    #[arg(long, value_enum, default_value_t = Stage::Stack)]
    pub(super) stage: Stage,
    /// Of the stages `unit`, `plan` and `c`, those of which engine; `scalar` has the stage `c` alone
    #[arg(long, value_enum, default_value_t = EngineName::Pc)]
    pub(super) engine: EngineName,
    /// Say of each variable why it is stored as it is, and of a plan what is gained by tiles
    #[arg(long)]
    pub(super) explain: bool,
    /// Values or shapes of the inputs, for functions with dimensions: they tell the shapes
    #[command(flatten)]
    pub(super) inputs: InputArgs,
    /// The event shape of an input, such as `x=10,2`, instead of a value
    #[arg(long, value_name = "NAME=N,M")]
    pub(super) shape: Vec<String>,
    /// Switch off a compiler pass (`all` for every one)
    #[arg(long = "no-pass", value_name = "PASS")]
    pub(super) no_pass: Vec<String>,
    /// Take a warning about speed as an error: `fallback` for W0101, `loops` for W0102
    #[arg(long, value_name = "NAME", value_parser = parse_deny)]
    pub(super) deny: Vec<Deny>,
    /// List the compiler passes and stop
    #[arg(long)]
    pub(super) passes: bool,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// The programs
    #[arg(required = true)]
    pub(super) files: Vec<PathBuf>,
    /// Take warnings as errors
    #[arg(long)]
    pub(super) deny_warnings: bool,
    #[command(flatten)]
    pub(super) includes: IncludeArgs,
}

#[derive(Debug, Args)]
pub(super) struct FmtArgs {
    /// The programs; `-` reads standard input and writes standard output
    #[arg(required = true)]
    pub(super) files: Vec<PathBuf>,
    /// What standard input is called in messages; a name that ends in .stan makes it a Stan program
    #[arg(long, value_name = "FILE")]
    pub(super) stdin_name: Option<PathBuf>,
    /// Change nothing; fail when a file is not formatted
    #[arg(long)]
    pub(super) check: bool,
    /// Rewrite Stan programs as they are written today, too: all of `deprecations`, `parentheses`, `braces` and
    /// `includes`, or those that are named
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        value_delimiter = ',',
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "deprecations,parentheses,braces,includes"
    )]
    pub(super) canonicalize: Vec<Canonicalization>,
    #[command(flatten)]
    pub(super) includes: IncludeArgs,
}

/// What `fmt --canonicalize` rewrites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Canonicalization {
    /// Old syntax and old names of functions
    Deprecations,
    /// Parentheses that change nothing
    Parentheses,
    /// Bodies without braces
    Braces,
    /// Included files
    Includes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum EngineName {
    Scalar,
    Local,
    Pc,
}

impl From<EngineName> for Engine {
    fn from(name: EngineName) -> Self {
        match name {
            EngineName::Scalar => Engine::Scalar,
            EngineName::Local => Engine::Local,
            EngineName::Pc => Engine::Pc,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum CodegenName {
    Off,
    Cc,
    Auto,
}

impl From<CodegenName> for Codegen {
    fn from(name: CodegenName) -> Self {
        match name {
            CodegenName::Off => Codegen::Off,
            CodegenName::Cc => Codegen::Cc,
            CodegenName::Auto => Codegen::Auto,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum ExecName {
    Mask,
    Gather,
    Auto,
}

impl From<ExecName> for Execution {
    fn from(name: ExecName) -> Self {
        match name {
            ExecName::Mask => Execution::Mask,
            ExecName::Gather => Execution::Gather,
            ExecName::Auto => Execution::Auto,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum RealName {
    F64,
    F32,
}

impl From<RealName> for Precision {
    fn from(name: RealName) -> Self {
        match name {
            RealName::F64 => Precision::F64,
            RealName::F32 => Precision::F32,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CheckName {
    /// The birth of a NaN
    Nan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Stage {
    Tokens,
    Ast,
    Hir,
    Cfg,
    Stack,
    Unit,
    Plan,
    C,
    Cuda,
}

/// A quantile in percent.
fn percent(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("a quantile is a number of percent, from 0 to 100".to_owned()),
    }
}

/// A switch as CmdStan has it.
pub(super) fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err("expected 0 or 1".to_owned()),
    }
}

/// A number of things.
pub(super) fn count(text: &str) -> Result<usize, String> {
    let n = text.trim().parse::<usize>();
    n.map_err(|_| "expected a whole number from 0 on".to_owned())
}

fn parse_deny(text: &str) -> Result<Deny, String> {
    let names = || Deny::ALL.map(Deny::name).join(", ");
    Deny::from_name(text).ok_or_else(|| format!("there is {}", names()))
}

pub(super) fn parse_schedule(text: &str) -> Result<Schedule, String> {
    match text {
        "earliest" => Ok(Schedule::Earliest),
        "most-lanes" => Ok(Schedule::MostLanes),
        "cost" => Ok(Schedule::default()),
        _ => match text.strip_prefix("cost:").map(str::parse::<f64>) {
            Some(Ok(theta)) if (0.0..=1.0).contains(&theta) => Ok(Schedule::CostAware { theta }),
            Some(_) => Err("θ must be a number from 0 to 1, as in cost:0.5".to_owned()),
            None => Err("expected earliest, most-lanes, cost or cost:θ".to_owned()),
        },
    }
}

/// The passes that stay on.
///
/// # Errors
/// For a name that no pass has.
pub(super) fn passes(no_pass: &[String]) -> Result<Passes, Error> {
    let mut passes = Passes::default();
    for name in no_pass {
        if name == "all" {
            passes = Passes::none();
        } else if !passes.switch_off(name) {
            return Err(crate::program::no_pass(name));
        }
    }
    Ok(passes)
}

impl EngineArgs {
    /// Why generated code does not run though it is asked for.
    fn runs_no_code(&self, passes: &Passes, stats: bool) -> Option<&'static str> {
        match (self.codegen, self.engine, self.exec, self.check) {
            (CodegenName::Off | CodegenName::Auto, ..) => None,
            (_, EngineName::Pc | EngineName::Scalar, ..) if !passes.is_on("cached-tops") => {
                Some("generated code keeps the tops of stacks in registers, and the pass `cached-tops` is off")
            }
            (_, EngineName::Scalar, ..) if stats => {
                Some("--stats counts supersteps, which the engine `pc` runs instead")
            }
            (_, EngineName::Scalar, ..) if self.max_supersteps > 0 => {
                Some("--max-supersteps counts blocks, which the engine `pc` runs instead")
            }
            (_, _, ExecName::Gather, _) => Some("--exec gather runs the steps on the active lanes alone"),
            (_, _, _, Some(CheckName::Nan)) => Some("--check nan looks at the result of every step"),
            _ => None,
        }
    }

    /// The flags that change nothing of a run with this engine, and why.
    fn ignored(&self) -> Option<(Vec<&'static str>, &'static str)> {
        let schedule = ("--schedule", self.schedule != Schedule::default());
        let (flags, why) = match self.engine {
            _ if self.device_memory.is_some() && !self.device.starts_with("cuda") => {
                (vec![("--device-memory", true)], "it is of GPUs, and none is asked for")
            }
            EngineName::Pc if !self.device.starts_with("cuda") => return None,
            EngineName::Pc => {
                let flags = vec![
                    ("--exec", !matches!(self.exec, ExecName::Auto)),
                    ("--costs", self.costs != Costs::default()),
                    ("--threads", self.threads != 0),
                    ("--shard-lanes", self.shard_lanes != 0),
                    ("--codegen", matches!(self.codegen, CodegenName::Cc)),
                ];
                (flags, "a GPU has a lane for each of its threads, and runs nothing but its own code")
            }
            EngineName::Local => (vec![schedule], "the engine `local` always runs the earliest block of a call"),
            EngineName::Scalar => {
                let compiled = matches!(self.codegen, CodegenName::Cc);
                let flags = vec![
                    schedule,
                    ("--exec", !compiled && !matches!(self.exec, ExecName::Auto)),
                    ("--costs", self.costs != Costs::default()),
                    ("--threads", !compiled && self.threads != 0),
                    ("--shard-lanes", self.shard_lanes != 0),
                    ("--fusion", !compiled && self.fusion == Switch::Off),
                ];
                (flags, "the engine `scalar` runs one lane after the other, each by itself")
            }
        };
        let given: Vec<&str> = flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag).collect();
        (!given.is_empty()).then_some((given, why))
    }

    /// As the library wants them. Says what is asked for in vain.
    ///
    /// # Errors
    /// For a pass that there is not, and for generated code without fusion.
    pub(super) fn options(&self, stats: bool) -> Result<Options, Error> {
        let mut passes = passes(&self.no_pass)?;
        if let Some(why) = self.runs_no_code(&passes, stats) {
            note(&format!("note: --codegen cc does nothing here: {why}"));
        } else if matches!(self.codegen, CodegenName::Cc) && self.fusion == Switch::Off {
            let message = "--fusion off runs every primitive by itself, and --codegen cc makes one function of many";
            return Err(Error::new(ErrorKind::Option, message));
        }
        if let Some((flags, why)) = self.ignored() {
            let does = if flags.len() == 1 { "does" } else { "do" };
            note(&format!("note: {} {does} nothing here: {why}", flags.join(", ")));
        }
        let mut shard_lanes = self.shard_lanes;
        if self.fusion == Switch::Off {
            passes.without_fusion();
            if shard_lanes == 0 {
                shard_lanes = usize::MAX;
            }
        }
        Ok(Options {
            engine: self.engine.into(),
            backend: device(&self.device)?,
            settings: Settings {
                schedule: self.schedule,
                execution: self.exec.into(),
                costs: self.costs,
                precision: match self.real {
                    RealName::F64 => Precision::F64,
                    RealName::F32 => Precision::F32,
                },
                threads: self.threads,
                shard_lanes,
                seed: self.seed,
                max_stack_depth: self.max_stack_depth,
                max_tape_depth: self.max_tape_depth,
                memory: Arc::new(MemoryBudget::unlimited()),
                max_supersteps: self.max_supersteps,
                device_memory: self
                    .device_memory
                    .map_or(usize::MAX, |mib| usize::try_from(mib).unwrap_or(usize::MAX).saturating_mul(1 << 20)),
                check_nan: self.check == Some(CheckName::Nan),
                stats,
                profile: false,
                trace: None,
                stop: None,
                ended: None,
            },
            passes,
            first_lane: 0,
            memory_limit: self.memory_limit.map(|mib| mib.saturating_mul(1 << 20)),
            deny: self.deny.clone(),
            codegen: self.codegen.into(),
            prints: Prints::default(),
        })
    }
}

/// `A..B`, which is not empty.
pub(super) fn range(text: &str) -> Result<Range<usize>, String> {
    let ends = text.split_once("..").and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
    match ends {
        Some((a, b)) if a < b => Ok(a..b),
        Some((a, b)) => Err(format!("{a}..{b} is empty: the second number is the first that is left out")),
        None => Err("two numbers with `..` between them: 0..256".to_owned()),
    }
}
