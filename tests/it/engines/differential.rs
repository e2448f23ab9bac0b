//! Random programs on all engines: every lane must do the same, bit for bit, whatever runs it.
//!
//! The interpreter `scalar` says what a program means. Every random program is run by a sample of the other
//! configurations: `local`, `pc` × schedules × masked, gathered × sizes of shards and batches, threads × orders of lanes ×
//! passes switched off × f64, f32.
//!
//! A long run: `AUTOBATCH_DIFFERENTIAL_PROGRAMS=100000 cargo test --release --test it differential -- --nocapture`, with
//! `AUTOBATCH_DIFFERENTIAL_SEED=n` for other programs than those of the default run (a program's own seed is printed when
//! it fails: `AUTOBATCH_DIFFERENTIAL_SEED=<it> AUTOBATCH_DIFFERENTIAL_PROGRAMS=1` runs it again).
//! A program that fails is made small and written to `tests/filetests/differential/`; the files there are run by every
//! `cargo test` (see [`crate::engines::file_tests`]), on all configurations.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use autobatch::lower::hir_to_cfg::SignaturePort;
use autobatch::program::io::JsonArray;
use autobatch::program::{Engine, Function, Inputs, Options, Program};
use autobatch::run::{Settings, TrapKind};
use autobatch::types::{Array, ArrayData, DType, Precision};

use crate::tools::effort;
use crate::tools::observed::{Configuration, Observed, difference, observe_toy};
use crate::tools::random_programs::{self, Rng, generate, minimise};

/// Programs of the default run.
const PROGRAMS: u64 = 240;
/// Those of them that are tried without `AUTOBATCH_TESTS=all`.
const SOME_PROGRAMS: u64 = 60;
/// Configurations that one program is run by.
const CONFIGURATIONS: usize = 8;
/// Extent of the entry's dimension `n`.
const EXTENT: usize = 3;

pub(crate) fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |v| v.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Limits that keep a run short. The other engines and passes count blocks and calls differently: they get more room.
pub(crate) fn options(seed: u64) -> Options {
    let settings = Settings::default().seed(seed).max_supersteps(200_000).max_stack_depth(2000);
    Options::default().settings(settings)
}

/// A random program with inputs.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) text: String,
    /// The lanes, by the number that their values are made from.
    pub(crate) lanes: Vec<u64>,
}

impl Case {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
    pub(crate) fn lanes(&self) -> &[u64] {
        &self.lanes
    }

    pub(crate) fn new(seed: u64, program: &random_programs::Program) -> Case {
        let lanes = *Rng::new(seed ^ 0x1a5e5).choose(&[1, 7, 20, 20, 64]);
        Case { seed, text: program.to_string(), lanes: (0..lanes).collect() }
    }

    /// Every value is made from the seed, the name of the input and the lane, so that fewer lanes have the same values.
    pub(crate) fn array(&self, port: &SignaturePort) -> Array {
        let shape: Vec<usize> = port.extents.iter().map(|d| d.constant as usize + EXTENT * d.terms.len()).collect();
        let each = shape.iter().product();
        let rows: &[u64] = if port.shared { &[0] } else { &self.lanes };
        let name: u64 = port.name.bytes().fold(7, |h, b| h.wrapping_mul(31).wrapping_add(u64::from(b)));
        let streams = rows.iter().map(|lane| Rng::new(self.seed ^ name.wrapping_mul(0x9e37_79b9) ^ (lane << 40)));
        let values =
            |value: &mut dyn FnMut(&mut Rng)| streams.clone().for_each(|mut r| (0..each).for_each(|_| value(&mut r)));
        let data = match port.dtype {
            DType::Bool => {
                let mut all = Vec::new();
                values(&mut |r| all.push(r.percent(50)));
                ArrayData::Bool(all)
            }
            DType::Int => {
                let mut all = Vec::new();
                values(&mut |r| all.push(random_int(r)));
                ArrayData::Int(all)
            }
            DType::Real => {
                let mut all = Vec::new();
                values(&mut |r| all.push(random_real(r)));
                ArrayData::Real(all)
            }
        };
        let leading = (!port.shared).then_some(rows.len());
        Array::new(leading.into_iter().chain(shape), data)
    }

    fn inputs(&self, function: &Function<'_>) -> Inputs {
        function.signature().ports.iter().fold(Inputs::new(), |inputs, port| {
            let value = self.array(port);
            if port.shared { inputs.shared(port.name.clone(), value) } else { inputs.lane(port.name.clone(), value) }
        })
    }

    /// The text of a file test.
    fn file(&self, why: &str) -> String {
        let mut run = format!("// run: --entry entry --seed {}", self.seed % 1000);
        if let Ok(program) = Program::compile(&self.text)
            && let Ok(function) = program.function("entry")
        {
            for port in &function.signature().ports {
                let flag = if port.shared { "shared" } else { "input" };
                let value = serde_json::to_string(&JsonArray(&self.array(port))).expect("JSON");
                run += &format!(" --{flag} {}={value}", port.name);
            }
        }
        let why: String = why.lines().take(12).map(|line| format!("// {}\n", line.trim())).collect();
        format!("{run}\n{why}\n{}", self.text)
    }
}

fn random_int(r: &mut Rng) -> i64 {
    match r.below(60) {
        0 => *r.choose(&[i64::MAX, i64::MIN, 1 << 53, -(1 << 31)]),
        1..4 => r.below(2000) as i64 - 1000,
        _ => r.below(12) as i64 - 3,
    }
}

fn random_real(r: &mut Rng) -> f64 {
    match r.below(60) {
        0 => *r.choose(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e-310, -0.0]),
        1..10 => r.below(9) as f64 - 4.0,
        _ => (r.bits() >> 11) as f64 / (1u64 << 53) as f64 * 6.0 - 3.0,
    }
}

/// What came of a case.
enum Verdict {
    /// All agree; how many lanes there were and how many of them trapped.
    Agreed { lanes: usize, trapped: usize },
    /// The reference came to a limit: the engines count differently.
    Discarded,
    /// They differ, or one of them failed.
    Failed { configuration: Box<Configuration>, why: String },
}

fn judge(case: &Case, configurations: &[Configuration]) -> Verdict {
    let base = options(case.seed % 1000);
    let failed =
        |configuration: &Configuration, why| Verdict::Failed { configuration: Box::new(configuration.clone()), why };
    let reference = Configuration::scalar(&base);
    let program = match Program::compile(&case.text) {
        Ok(program) => program,
        Err(error) => return failed(&reference, format!("does not compile: {error}")),
    };
    let function = program.function("entry").expect("every program has one");
    let inputs = case.inputs(&function);
    let mut wanted: [Option<Observed>; 2] = [None, None];
    for configuration in configurations {
        let precision = configuration.options.get_settings().get_precision();
        let known = &mut wanted[usize::from(precision == Precision::F32)];
        if known.is_none() {
            let mut reference = reference.clone();
            reference.options = reference.options.precision(precision);
            reference.options = reference.options.max_supersteps(5000);
            reference.options = reference.options.max_stack_depth(200);
            match reference.observe(&function, &inputs) {
                Ok(observed) => *known = Some(observed),
                Err(why) => return failed(&reference, why),
            }
        }
        let Some(wanted) = known else { unreachable!("just made") };
        let limit = |kind| matches!(kind, TrapKind::StepLimit | TrapKind::StackLimit);
        if wanted.values().any(|lane| lane.trap.as_ref().is_some_and(|t| limit(t.0))) {
            return Verdict::Discarded;
        }
        match configuration.observe(&function, &inputs) {
            Err(why) => return failed(configuration, why),
            Ok(mut found) => {
                if !configuration.options.get_passes().is_on("vectorize") {
                    same_traps(wanted, &mut found);
                }
                if let Some(why) = difference(wanted, &found) {
                    return failed(configuration, why);
                }
            }
        }
    }
    // The toy executor of units, in both precisions that the reference was asked for.
    for (wanted, precision) in wanted.iter().zip([Precision::F64, Precision::F32]) {
        let Some(wanted) = wanted else { continue };
        let mut toy = reference.clone();
        toy.options = toy.options.engine(Engine::Pc);
        toy.options = toy.options.precision(precision);
        let found = match function.bind(&inputs, &toy.options) {
            Ok(bound) => observe_toy(&bound, &toy.options),
            Err(why) => return failed(&toy, why.to_string()),
        };
        if let Some(why) = difference(wanted, &found) {
            return failed(&toy, format!("the toy executor of units: {why}"));
        }
    }
    let observed = wanted.into_iter().flatten().next().unwrap_or_default();
    Verdict::Agreed { lanes: observed.len(), trapped: observed.values().filter(|l| l.trap.is_some()).count() }
}

/// Whole-array code does one operation after the other for all elements, so that of several traps another one may be met
/// first than in a loop: a lane that trapped in both has trapped in the same way.
fn same_traps(wanted: &Observed, found: &mut Observed) {
    for (number, lane) in found {
        // how many draws came before another trap may differ too
        if let Some(other) = wanted.get(number).filter(|other| other.caught.is_some() && lane.caught.is_some()) {
            *lane = other.clone();
        }
        if let (Some(trap), Some(Some(other))) = (&mut lane.trap, wanted.get(number).map(|l| &l.trap)) {
            trap.clone_from(other);
        }
    }
}

/// The code of the error for which a program does not compile, if that is why.
fn error_code(why: &str) -> Option<&str> {
    why.strip_prefix("does not compile: error[")?.split(']').next()
}

/// Makes a failing case small; the failure may change its words, but not become a program that does not compile, or for another reason.
fn shrink(seed: u64, program: random_programs::Program, configuration: &Configuration, why: &str) -> (Case, String) {
    let mut case = Case::new(seed, &program);
    let code = error_code(why).map(str::to_owned);
    let mut last = why.to_owned();
    let mut fails = |case: &Case| match judge(case, std::slice::from_ref(configuration)) {
        Verdict::Failed { why, .. } if code.as_deref() == error_code(&why) => {
            last = why;
            true
        }
        _ => false,
    };
    let until = Instant::now() + Duration::from_secs(60);
    let small = minimise(program, until, &mut |program| fails(&Case { text: program.to_string(), ..case.clone() }));
    case.text = small.to_string();
    let mut i = 0;
    while i < case.lanes.len() && case.lanes.len() > 1 {
        let mut fewer = case.clone();
        fewer.lanes.remove(i);
        if fails(&fewer) { case = fewer } else { i += 1 }
    }
    fails(&case);
    (case, last)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/differential")
}

fn report(seed: u64, configuration: &Configuration, why: &str) -> String {
    let (program, _) = generate(seed);
    let (case, why) = shrink(seed, program, configuration, why);
    let name = format!("seed_{seed}.ab");
    let text = case.file(&format!("{configuration}\n{why}"));
    let path = folder().join(&name);
    let written = std::fs::create_dir_all(folder()).and_then(|()| std::fs::write(&path, &text));
    format!(
        "seed {seed} ({written:?} to {}), again with AUTOBATCH_DIFFERENTIAL_SEED={seed} AUTOBATCH_DIFFERENTIAL_PROGRAMS=1\n\
         {configuration}\n{why}\n{text}",
        path.display()
    )
}

#[test]
fn engines_agree_on_random_programs() {
    let programs = from_environment("AUTOBATCH_DIFFERENTIAL_PROGRAMS", effort::part(SOME_PROGRAMS, PROGRAMS));
    let first = from_environment("AUTOBATCH_DIFFERENTIAL_SEED", 0);
    let next = AtomicU64::new(first);
    let (agreed, alive, discarded) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let failures = Mutex::new(Vec::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + programs || failures.lock().expect("no panic").len() > 3 {
                return;
            }
            let case = Case::new(seed, &generate(seed).0);
            let mut rng = Rng::new(seed ^ 0xc0f1);
            let base = options(seed % 1000);
            let configurations: Vec<_> = (0..CONFIGURATIONS).map(|_| Configuration::random(&base, &mut rng)).collect();
            match judge(&case, &configurations) {
                Verdict::Discarded => _ = discarded.fetch_add(1, Ordering::Relaxed),
                Verdict::Agreed { lanes, trapped } => {
                    agreed.fetch_add(1, Ordering::Relaxed);
                    alive.fetch_add(usize::from(trapped < lanes), Ordering::Relaxed);
                }
                Verdict::Failed { configuration, why } => {
                    eprintln!("seed {seed} fails, being made small: {configuration}\n{why}");
                    let text = report(seed, &configuration, &why);
                    failures.lock().expect("no panic").push(text);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
    let failures = failures.into_inner().expect("no panic");
    assert!(failures.is_empty(), "{} programs fail:\n\n{}", failures.len(), failures.join("\n\n"));
    let (agreed, alive, discarded) = (agreed.into_inner(), alive.into_inner(), discarded.into_inner());
    println!("{agreed} programs agreed, {alive} of them with lanes that did not trap; {discarded} were discarded");
    if programs >= 50 {
        assert!(discarded as u64 * 10 < programs, "{discarded} of {programs} programs ran too long");
        assert!(alive as u64 * 10 > programs * 6, "in only {alive} of {programs} programs some lane did not trap");
    }
}
