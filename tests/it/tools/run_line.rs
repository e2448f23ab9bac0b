//! `run:` lines of file tests: the flags of `autobatch run`, on the library.

use autobatch::lower::hir_to_cfg::Signature;
use autobatch::pipeline::{Compiled, Passes};
use autobatch::program::io::read_argument;
use autobatch::program::{Bound, Engine, Error, Function, Inputs, Options, Program, signature_of_ir};
use autobatch::run::{Execution, Schedule};
use autobatch::types::Precision;

/// What a `run:` line says.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunLine {
    pub(crate) entry: String,
    /// `name=JSON`, and whether the value is shared.
    values: Vec<(String, bool)>,
    lanes: Option<usize>,
    pub(crate) options: Options,
    /// Whether the line names an engine; else all of them are meant.
    pub(crate) engine: Option<Engine>,
}

impl RunLine {
    /// Reads `--entry f --input n=[5, 6] --seed 3`. A flag stands at the start of the line or after a blank.
    pub(crate) fn parse(line: &str) -> RunLine {
        let mut run = RunLine { entry: "main".into(), ..RunLine::default() };
        let padded = format!(" {}", line.trim());
        for flag in padded.split(" --").skip(1) {
            let (flag, value) = flag.trim().split_once(' ').unwrap_or((flag.trim(), ""));
            run.flag(flag, value.trim());
        }
        run
    }

    fn flag(&mut self, flag: &str, value: &str) {
        let number = || value.parse::<usize>().unwrap_or_else(|_| panic!("--{flag} takes a number, not {value}"));
        let options = std::mem::take(&mut self.options);
        self.options = match flag {
            "seed" => options.seed(number() as u64),
            "threads" => options.threads(number()),
            "shard-lanes" => options.shard_lanes(number()),
            "max-stack-depth" => options.max_stack_depth(number()),
            "max-tape-depth" => options.max_tape_depth(number()),
            "max-supersteps" => options.max_supersteps(number() as u64),
            "stats" => options.stats(true),
            "check" => options.check_nan(value == "nan"),
            "real" => options.precision(if value == "f32" { Precision::F32 } else { Precision::F64 }),
            "exec" => options.execution(execution(value)),
            "schedule" => options.schedule(schedule(value)),
            "no-pass" if value == "all" => options.passes(Passes::none()),
            "no-pass" => options.without_pass(value).unwrap_or_else(|why| panic!("{why}")),
            _ => options,
        };
        match flag {
            "entry" => value.clone_into(&mut self.entry),
            "input" => self.values.push((value.to_owned(), false)),
            "shared" => self.values.push((value.to_owned(), true)),
            "lanes" => self.lanes = Some(number()),
            "engine" => self.engine = Some(engine(value)),
            "seed" | "threads" | "shard-lanes" | "max-stack-depth" | "max-tape-depth" | "max-supersteps" | "stats"
            | "check" | "real" | "exec" | "schedule" | "no-pass" => {}
            _ => panic!("unknown flag --{flag}"),
        }
    }

    /// The entry and its inputs.
    pub(crate) fn bind<'p>(&self, program: &'p Program) -> Result<(Function<'p>, Inputs), Error> {
        let function = program.function(&self.entry)?;
        let inputs = self.inputs(function.signature())?;
        Ok((function, inputs))
    }

    /// A program that was compiled of the text of an IR, with its inputs.
    pub(crate) fn bind_ir(&self, compiled: Compiled, options: &Options) -> Result<Bound, Error> {
        let inputs = self.inputs(&signature_of_ir(&compiled))?;
        Bound::of_ir(compiled, &inputs, options)
    }

    fn inputs(&self, signature: &Signature) -> Result<Inputs, Error> {
        let mut inputs = Inputs::new();
        for (argument, shared) in &self.values {
            let (name, data) = read_argument(argument)?;
            inputs.add_data(signature, &name, &data, *shared)?;
        }
        let no_lane_input = self.values.iter().all(|(_, shared)| *shared);
        let lanes = self.lanes.or(no_lane_input.then_some(1));
        Ok(if let Some(n) = lanes { inputs.lanes(n) } else { inputs })
    }
}

fn engine(name: &str) -> Engine {
    match name {
        "scalar" => Engine::Scalar,
        "local" => Engine::Local,
        "pc" => Engine::Pc,
        _ => panic!("no engine {name}"),
    }
}

fn execution(name: &str) -> Execution {
    match name {
        "mask" => Execution::Mask,
        "gather" => Execution::Gather,
        "auto" => Execution::Auto,
        _ => panic!("no execution {name}"),
    }
}

fn schedule(name: &str) -> Schedule {
    match name.split_once(':') {
        Some(("cost", theta)) => Schedule::CostAware { theta: theta.parse().expect("a number") },
        _ if name == "earliest" => Schedule::Earliest,
        _ if name == "most-lanes" => Schedule::MostLanes,
        _ => Schedule::default(),
    }
}
