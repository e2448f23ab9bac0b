//! What can be seen of a run, lane by lane, and the ways to run a program that must all show the same.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock, Mutex};

use autobatch::backend::cpu::codegen::compiler::Compiler;
use autobatch::parts::StreamId;
use autobatch::pipeline::{Passes, all_passes};
use autobatch::program::{Bound, Codegen, Engine, Function, Inputs, Options, cuda_text, device};
use autobatch::run::{self, Execution, Record, Schedule, Sink, TrapKind};
use autobatch::types::{Array, ArrayData, Precision, Scalar};

use crate::tools::effort;
use crate::tools::random_programs::Rng;
use crate::tools::toy::Toy;

/// What one lane did.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Lane {
    /// Its outputs with all their bits; nothing when it trapped.
    pub(crate) outputs: Vec<String>,
    /// Kind, place and message of its trap.
    pub(crate) trap: Option<(TrapKind, String)>,
    /// How many traps attempts caught, with kind, place and message of the first.
    pub(crate) caught: Option<(u64, TrapKind, String)>,
    /// What it printed and emitted, in order.
    pub(crate) said: Vec<String>,
}

/// What all lanes did, by their numbers.
pub(crate) type Observed = BTreeMap<u64, Lane>;

/// A way to run a program.
#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    pub(crate) options: Options,
    /// Lanes that run at a time; 0 for all.
    pub(crate) batch: usize,
    /// Seed of the order of the lanes.
    pub(crate) order: Option<u64>,
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.options.get_settings();
        write!(
            f,
            "{:?} {:?} {:?} {:?} shard_lanes={} threads={} batch={} order={:?} {:?}",
            self.options.get_engine(),
            s.get_schedule(),
            s.get_execution(),
            s.get_precision(),
            s.get_shard_lanes(),
            s.get_threads(),
            self.batch,
            self.order,
            self.options.get_passes()
        )
    }
}

struct Said(Vec<Mutex<Vec<String>>>);

impl Sink for Said {
    fn emit(&self, position: usize, stream: StreamId, record: &dyn Record) -> Result<(), autobatch::run::NoMemory> {
        let fields: Vec<String> = record.arrays().iter().map(|a| bits(a, 0, 1)).collect();
        self.0[position].lock().expect("no panic").push(format!("{stream:?} {}", fields.join(" ")));
        Ok(())
    }
    fn print(&self, position: usize, line: String) {
        self.0[position].lock().expect("no panic").push(format!("print {line}"));
    }
}

/// Row `row` of `rows` of an array; all NaNs are one.
fn bits(array: &Array, row: usize, rows: usize) -> String {
    let each = array.len() / rows.max(1);
    let words = (row * each..(row + 1) * each).map(|i| match array.get(i) {
        Scalar::Real(r) if r.is_nan() => "nan".to_owned(),
        Scalar::Real(r) => format!("{r:?}={:x}", r.to_bits()),
        other => other.to_string(),
    });
    let words: Vec<String> = words.collect();
    format!(
        "{:?}[{}]",
        &array.shape.get(usize::from(rows > 0 && array.shape.first() == Some(&rows))..),
        words.join(" ")
    )
}

/// Some rows of the inputs.
fn select(inputs: &run::RunInputs, rows: &[usize]) -> run::RunInputs {
    let total = inputs.lanes.len();
    let values = inputs.values.iter().map(|array| {
        let each = array.len() / total.max(1);
        let index = || rows.iter().flat_map(move |r| r * each..(r + 1) * each);
        let data = match &array.data {
            ArrayData::Bool(v) => ArrayData::Bool(index().map(|i| v[i]).collect()),
            ArrayData::Int(v) => ArrayData::Int(index().map(|i| v[i]).collect()),
            ArrayData::Real(v) => ArrayData::Real(index().map(|i| v[i]).collect()),
        };
        let mut shape = array.shape.clone();
        shape[0] = rows.len();
        Array::new(shape, data)
    });
    run::RunInputs::new(rows.iter().map(|r| inputs.lanes[*r]).collect(), values.collect(), inputs.shared.clone())
}

/// What all lanes do on the toy, which runs units.
pub(crate) fn observe_toy(bound: &Bound, options: &Options) -> Observed {
    let options = options.clone().backend(Arc::new(Toy)).engine(Engine::Pc);
    Configuration::observe_bound(bound, &options).expect("the toy refuses nothing")
}

fn run_part(mut bound: Bound, rows: &[usize], options: &Options, observed: &mut Observed) -> Result<(), String> {
    *bound.inputs_mut() = select(bound.inputs(), rows);
    let said = Said(rows.iter().map(|_| Mutex::default()).collect());
    let results = bound.run(options, &said).map_err(|e| e.to_string())?;
    let mut said = said.0.into_iter().map(|m| m.into_inner().expect("no panic"));
    for (position, number) in results.lanes().iter().enumerate() {
        let trap = results.traps().iter().find(|t| t.position == position);
        let trap = trap.map(|t| (t.kind, format!("{} {}", t.loc, t.message)));
        let caught = results.caught().iter().find(|c| c.first.position == position);
        let caught = caught.map(|c| (c.count, c.first.kind, format!("{} {}", c.first.loc, c.first.message)));
        let outputs = match trap {
            Some(_) => Vec::new(),
            None => results
                .outputs()
                .iter()
                .map(|(name, a)| format!("{name} = {}", bits(a, position, rows.len())))
                .collect(),
        };
        let lane = Lane { outputs, trap, caught, said: said.next().expect("one list a lane") };
        observed.insert(*number, lane);
    }
    Ok(())
}

impl Configuration {
    /// Runs what is bound for all lanes at once.
    pub(crate) fn observe_bound(bound: &Bound, options: &Options) -> Result<Observed, String> {
        let rows: Vec<usize> = (0..bound.lanes()).collect();
        let mut observed = Observed::new();
        run_part(bound.clone(), &rows, options, &mut observed)?;
        Ok(observed)
    }

    /// Runs the function for all lanes. An error of the library, or a panic in it, is an `Err`.
    pub(crate) fn observe(&self, function: &Function<'_>, inputs: &Inputs) -> Result<Observed, String> {
        let run = || {
            let bound = function.bind(inputs, &self.options).map_err(|e| e.to_string())?;
            let options = &if is_left_to_a_gpu(&bound, &self.options) {
                self.options.clone().backend(device("cpu").expect("there is a CPU"))
            } else {
                self.options.clone()
            };
            let mut rows: Vec<usize> = (0..bound.lanes()).collect();
            if let Some(seed) = self.order {
                Rng::new(seed).shuffle(&mut rows);
            }
            let batch = if self.batch == 0 { rows.len().max(1) } else { self.batch };
            let mut observed = Observed::new();
            for part in rows.chunks(batch) {
                run_part(bound.clone(), part, options, &mut observed)?;
            }
            Ok(observed)
        };
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Err(format!("panicked: {}", text.unwrap_or_default()))
        })
    }

    /// The reference: one lane at a time.
    pub(crate) fn scalar(base: &Options) -> Configuration {
        Configuration { options: base.clone().engine(Engine::Scalar), batch: 0, order: None }
    }

    /// A random one.
    pub(crate) fn random(base: &Options, rng: &mut Rng) -> Configuration {
        let engines = [Engine::Pc, Engine::Pc, Engine::Pc, Engine::Local, Engine::Local, Engine::Scalar];
        let mut options = base
            .clone()
            .codegen(Codegen::Off)
            .engine(*rng.choose(&engines))
            .schedule(*rng.choose(&SCHEDULES))
            .execution(*rng.choose(&EXECUTIONS))
            .shard_lanes(*rng.choose(&[64, 1, 7, 0]))
            .threads(1 + rng.below(2))
            .stats(rng.percent(20))
            .precision(if rng.percent(25) { Precision::F32 } else { Precision::F64 });
        let passes: Vec<&str> = all_passes().map(|(name, _)| name).collect();
        match rng.below(10) {
            0..3 => options = options.passes(Passes::none()),
            3..6 if !passes.is_empty() => {
                let name = *rng.choose::<&str>(&passes);
                options = options.without_pass(name).expect("there is such a pass");
            }
            _ => {}
        }
        let order = rng.percent(30).then(|| rng.bits());
        if rng.percent(codegen_percent()) {
            options = options.codegen(codegen());
        }
        if rng.percent(gpu_percent())
            && let Some(gpu) = Self::on_a_gpu(&options, options.get_passes().clone())
        {
            options = gpu.options;
        }
        // Without it generated code does not run.
        if options.get_codegen() != Codegen::Off || rng.percent(50) {
            options = options.with_pass("cached-tops").expect("there is such a pass");
        }
        Configuration { options, batch: *rng.choose(&[0, 0, 1, 7, 64]), order }
    }

    /// Those that every file test runs on: each engine, policy and way of execution, with passes and without, and generated
    /// code.
    pub(crate) fn systematic(base: &Options) -> Vec<Configuration> {
        let mut all = Vec::new();
        for (engine, passes) in [
            (Engine::Scalar, Passes::none()),
            (Engine::Local, Passes::default()),
            (Engine::Local, Passes::none()),
            (Engine::Pc, Passes::default()),
            (Engine::Pc, Passes::none()),
        ] {
            let schedules = if engine == Engine::Pc { &SCHEDULES[..] } else { &SCHEDULES[..1] };
            let executions = if engine == Engine::Scalar { &EXECUTIONS[..1] } else { &EXECUTIONS[..] };
            for (i, schedule) in schedules.iter().enumerate() {
                for (j, execution) in executions.iter().enumerate() {
                    let mut options = base
                        .clone()
                        .codegen(Codegen::Off)
                        .engine(engine)
                        .passes(passes.clone())
                        .schedule(*schedule)
                        .execution(*execution)
                        .shard_lanes([64, 7, 1, 0][(i + j) % 4])
                        .threads(1 + (i + j) % 2);
                    if (i + j) % 2 == 1 {
                        options = options.with_pass("cached-tops").expect("there is such a pass");
                    }
                    all.push(Configuration {
                        options,
                        batch: [0, 7, 1][(i + 2 * j) % 3],
                        order: (j == 1).then_some(1),
                    });
                }
            }
        }
        let generated = base.clone().codegen(codegen());
        if effort::all() {
            // The C compiler takes about a second for each program.
            let options = generated.clone().engine(Engine::Scalar);
            all.push(Configuration { options, batch: 0, order: None });
        }
        all.push(Configuration { options: generated.shard_lanes(7), batch: 0, order: None });
        all.extend(Self::on_a_gpu(base, Passes::default()));
        all
    }

    /// On a GPU, or on the text for one: see [`gpu`]; not what it does not do.
    pub(crate) fn on_a_gpu(base: &Options, passes: Passes) -> Option<Configuration> {
        let refused = base.get_settings().get_check_nan() || base.get_settings().get_profile();
        let options = base.clone().codegen(Codegen::Off).engine(Engine::Pc).passes(passes).backend(gpu()?);
        let options = options.with_pass("cached-tops").expect("there is such a pass");
        (!refused).then_some(Configuration { options, batch: 0, order: None })
    }
}

/// Generated code, where there is a C compiler.
pub(crate) fn codegen() -> Codegen {
    static FOUND: LazyLock<bool> = LazyLock::new(|| {
        let found = Compiler::find();
        if let Err(error) = &found {
            eprintln!("generated code is not tested: {error}");
        }
        found.is_ok()
    });
    if *FOUND { Codegen::Cc } else { Codegen::Off }
}

/// The device that stands for a GPU: that of the name in `AUTOBATCH_TEST_DEVICE`, else the host with the text for a GPU,
/// where there is a C compiler.
pub(crate) fn gpu() -> Option<Arc<dyn autobatch::backend::Backend>> {
    let named = std::env::var("AUTOBATCH_TEST_DEVICE").ok();
    if named.is_none() && codegen() == Codegen::Off {
        return None;
    }
    let name = named.as_deref().unwrap_or("cuda-host");
    Some(device(name).expect("AUTOBATCH_TEST_DEVICE names a device"))
}

/// Whether a program is left to a machine with a GPU: a C compiler takes minutes for a long text for one, which is one
/// function.
fn is_left_to_a_gpu(bound: &Bound, options: &Options) -> bool {
    const LONGEST: usize = 80_000;
    options.get_backend().name() != "cpu"
        && std::env::var_os("AUTOBATCH_TEST_DEVICE").is_none()
        && cuda_text(bound.compiled(), Precision::F64).is_ok_and(|text| text.len() > LONGEST)
}

/// How often random configurations generate code: seldom, since a C compiler takes its time, or as often as
/// `AUTOBATCH_DIFFERENTIAL_CODEGEN` says, in percent.
fn codegen_percent() -> usize {
    static PERCENT: LazyLock<usize> = LazyLock::new(|| {
        let given = std::env::var("AUTOBATCH_DIFFERENTIAL_CODEGEN").ok();
        given.and_then(|p| p.parse().ok()).unwrap_or(2)
    });
    *PERCENT
}

/// The same of the device that stands for a GPU, by `AUTOBATCH_DIFFERENTIAL_GPU`.
fn gpu_percent() -> usize {
    static PERCENT: LazyLock<usize> = LazyLock::new(|| {
        let given = std::env::var("AUTOBATCH_DIFFERENTIAL_GPU").ok();
        given.and_then(|p| p.parse().ok()).unwrap_or(2)
    });
    *PERCENT
}

const SCHEDULES: [Schedule; 5] = [
    Schedule::Earliest,
    Schedule::MostLanes,
    Schedule::CostAware { theta: 0.0 },
    Schedule::CostAware { theta: 0.5 },
    Schedule::CostAware { theta: 1.0 },
];
const EXECUTIONS: [Execution; 3] = [Execution::Mask, Execution::Gather, Execution::Auto];

/// The first difference, in words.
pub(crate) fn difference(wanted: &Observed, found: &Observed) -> Option<String> {
    if wanted.len() != found.len() {
        return Some(format!("{} lanes are wanted, {} found", wanted.len(), found.len()));
    }
    let (number, lane) = wanted.iter().find(|(number, lane)| found.get(number) != Some(lane))?;
    Some(format!("lane {number}:\n  wanted {lane:?}\n  found  {:?}", found.get(number)))
}
