//! Derivatives of random programs: the value stays what it was, forward and reverse mode agree (the tangent weighted by the
//! cotangents is the gradient weighted by the direction), all engines give the same bits, and central differences agree
//! where two of them, of different steps, agree with each other: the programs are full of jumps.
//!
//! A long run: `AUTOBATCH_DERIVATIVE_PROGRAMS=20000 cargo test --release --test it derivative_random -- --nocapture`; programs
//! are those of the differential test, and `AUTOBATCH_DIFFERENTIAL_SEED` says where they start.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use autobatch::backend::cpu::{self, MACHINE};
use autobatch::cfg;
use autobatch::interp;
use autobatch::pipeline::{Passes, from_cfg};
use autobatch::program::Program;
use autobatch::run::{NoSink, Outcome, RunInputs, Settings, TrapKind};
use autobatch::transform::derivative::Mode;
use autobatch::types::{Array, ArrayData, DType, Type};
use indexmap::IndexMap;

use crate::compiler::derivative::{normal, try_derive};
use crate::engines::differential::{Case, from_environment, options};
use crate::tools::effort;
use crate::tools::random_programs::{Rng, generate, minimise};

/// Programs of the default run.
const PROGRAMS: u64 = 60;
/// Those of them that are tried without `AUTOBATCH_TESTS=all`.
const SOME_PROGRAMS: u64 = 20;

/// What a program is run with.
struct Given {
    lanes: Vec<Array>,
    shared: IndexMap<String, Array>,
    count: usize,
}

impl Given {
    /// For each lane, whether its values are of moderate size: with others, sums cancel to nothing in one mode and not in
    /// the other.
    fn tame(&self) -> Vec<bool> {
        const LARGEST: f64 = 1e4;
        let moderate = |array: &Array, at: std::ops::Range<usize>| match &array.data {
            ArrayData::Real(v) => v[at].iter().all(|x| x.abs() <= LARGEST),
            ArrayData::Int(v) => v[at].iter().all(|x| (*x as f64).abs() <= LARGEST),
            ArrayData::Bool(_) => true,
        };
        let shared = self.shared.values().all(|a| moderate(a, 0..a.len()));
        let lane = |lane: usize| {
            let each = |a: &Array| a.len() / self.count;
            self.lanes.iter().all(|a| moderate(a, lane * each(a)..(lane + 1) * each(a)))
        };
        (0..self.count).map(|l| shared && lane(l)).collect()
    }

    fn inputs(&self, program: &cfg::Program, more: &[Array], settings: &Settings) -> RunInputs {
        let shared = interp::shared_values(&program.shared, &self.shared, settings.get_precision());
        RunInputs::new(
            (0..self.count as u64).collect(),
            self.lanes.iter().chain(more).cloned().collect(),
            shared.expect("shared values"),
        )
    }
}

/// Moderate reals moved a little: many stand on whole numbers, where roundings jump and extrema are equal.
fn off_the_grid(array: &Array) -> Array {
    let mut array = array.clone();
    if let ArrayData::Real(values) = &mut array.data {
        for (i, x) in values.iter_mut().enumerate().filter(|(_, x)| x.abs() <= 1e4) {
            *x += 0.0123 + 0.000_71 * (i % 17) as f64;
        }
    }
    array
}

fn random(ty: &Type, count: usize, rng: &mut Rng) -> Array {
    let data = (0..ty.elements() * count).map(|_| (rng.below(2000) as f64 - 1000.0) / 700.0).collect();
    Array::new(std::iter::once(count).chain(ty.shape.iter().copied()), ArrayData::Real(data))
}

/// The reals of each lane in these arrays.
fn by_lane(arrays: &[Array], count: usize) -> Vec<Vec<f64>> {
    let mut lanes = vec![Vec::new(); count];
    for array in arrays {
        if let ArrayData::Real(values) = &array.data {
            let each = values.len() / count.max(1);
            for (lane, all) in lanes.iter_mut().enumerate() {
                all.extend_from_slice(&values[lane * each..(lane + 1) * each]);
            }
        }
    }
    lanes
}

fn essence(outcome: &Outcome) -> String {
    let traps: Vec<String> = outcome.traps.iter().map(|t| format!("{} {} {}", t.position, t.kind, t.loc)).collect();
    let dead: Vec<usize> = outcome.traps.iter().map(|t| t.position).collect();
    let outputs = outcome.outputs.iter().map(|array| {
        let bits = normal(array);
        let each = bits.len().checked_div(array.shape[0]).unwrap_or(0);
        let alive = (0..array.shape[0]).filter(|lane| !dead.contains(lane));
        alive.map(|lane| format!("{:?}", &bits[lane * each..(lane + 1) * each])).collect::<Vec<_>>()
    });
    format!("{traps:?} {:?}", outputs.collect::<Vec<_>>())
}

/// How many lanes had their derivatives compared; nothing for a program without any, an error for one that fails.
fn judge(case: &Case) -> Result<Option<usize>, String> {
    let program = Program::compile(&case.text).map_err(|e| format!("does not compile: {e}"))?;
    // a reverse derivative makes an attempt twice: it may not draw
    if case.text.contains("attempt(") && ["_rng(", "random_"].iter().any(|draw| case.text.contains(draw)) {
        return Ok(None);
    }
    let function = program.function("entry").expect("every program has one");
    let ports = &function.signature().ports;
    let arrays: Vec<Array> = ports.iter().map(|p| case.array(p)).collect();
    let event = |a: &Array, shared: bool| Type::new(a.ty().dtype, a.shape.iter().copied().skip(usize::from(!shared)));
    let types: Vec<Type> = ports.iter().zip(&arrays).map(|(p, a)| event(a, p.shared)).collect();
    let compiled = function.compile(types, &Passes::none()).map_err(|e| format!("does not compile: {e}"))?;
    let cfg = compiled.cfg.as_ref().expect("made of a program");
    let pairs = || ports.iter().zip(&arrays);
    let given = Given {
        lanes: pairs().filter(|(p, _)| !p.shared).map(|(_, a)| off_the_grid(a)).collect(),
        shared: pairs().filter(|(p, _)| p.shared).map(|(p, a)| (p.name.clone(), a.clone())).collect(),
        count: case.lanes.len(),
    };
    let settings = options(0).get_settings().clone().max_supersteps(4000).max_stack_depth(150);
    let long = settings.clone().max_supersteps(200_000).max_stack_depth(2000);
    let entry = &cfg.funcs[cfg.entry];
    let wrt: Vec<bool> = entry.params.iter().map(|p| entry.vars[*p].ty.dtype == DType::Real).collect();
    let reals: Vec<Type> = entry.results.iter().filter(|ty| ty.dtype == DType::Real).cloned().collect();
    if !wrt.contains(&true) || reals.is_empty() {
        return Ok(None);
    }
    let value = interp::run(cfg, &given.inputs(cfg, &[], &settings), &settings, &NoSink);
    // what has no value has no differences
    if !value.caught.is_empty() {
        return Ok(None);
    }
    let limit = |kind| matches!(kind, TrapKind::StepLimit | TrapKind::StackLimit);
    if value.traps.iter().any(|t| limit(t.kind)) {
        return Ok(None);
    }
    let mut rng = Rng::new(17);
    let cotangents: Vec<Array> = reals.iter().map(|ty| random(ty, given.count, &mut rng)).collect();
    let wanted = entry.params.iter().zip(&wrt).filter(|(_, w)| **w).map(|(p, _)| &entry.vars[*p].ty);
    let directions: Vec<Array> = wanted.map(|ty| random(ty, given.count, &mut rng)).collect();
    let mut found = Vec::new();
    for (mode, more) in [(Mode::Reverse, &cotangents), (Mode::Forward, &directions)] {
        let derived = try_derive(cfg, mode, &wrt).map_err(|e| format!("{mode:?}: {}", e.message))?;
        let outcome = interp::run(&derived, &given.inputs(&derived, more, &long), &long, &NoSink);
        let mut before = outcome.clone();
        before.outputs.truncate(entry.results.len());
        if essence(&before) != essence(&value) {
            return Err(format!("{mode:?}: the value changed: {} to {}", essence(&value), essence(&before)));
        }
        for passes in [Passes::none(), Passes::default()] {
            let mut compiled = from_cfg(derived.clone(), &passes, MACHINE);
            // As binding does: what traps before the lanes start is left to those that come to it.
            let shared = &compiled.cfg.as_ref().expect("of a CFG program").shared;
            if interp::shared_values(shared, &given.shared, long.get_precision()).is_err() {
                let mut passes = passes.clone();
                passes.switch_off("shared-code");
                compiled = from_cfg(derived.clone(), &passes, MACHINE);
            }
            let inputs = given.inputs(compiled.cfg.as_ref().expect("of a CFG program"), more, &long);
            let pc = cpu::pc::run(&compiled.plan, &inputs, &long, &NoSink);
            let local = cpu::local::run(compiled.calls.as_ref().expect("a plan"), &inputs, &long, &NoSink);
            for (engine, other) in [("pc", pc), ("local", local)] {
                if essence(&other) != essence(&outcome) {
                    return Err(format!("{mode:?}: {engine} differs: {} from {}", essence(&other), essence(&outcome)));
                }
            }
        }
        found.push((outcome.traps, by_lane(&outcome.outputs[entry.results.len()..], given.count)));
    }
    let tame = given.tame();
    let steps = [1e-4, 3e-5].map(|h| difference(cfg, &given, &wrt, &directions, h, &settings));
    let weights = by_lane(&cotangents, given.count);
    for lane in 0..given.count {
        let dot = |of: &[f64]| of.iter().zip(&weights[lane]).map(|(a, b)| a * b).sum::<f64>();
        let [Some(wide), Some(narrow)] = [&steps[0][lane], &steps[1][lane]].map(|d| d.as_ref().map(|d| dot(d))) else {
            continue;
        };
        let found = dot(&found[1].1[lane]);
        let size = 1.0 + wide.abs() + narrow.abs();
        let smooth = (wide - narrow).abs() <= 1e-5 * size;
        if tame[lane] && smooth && found.is_finite() && (found - narrow).abs() > 1e-3 * size {
            return Err(format!("difference: lane {lane}: {wide} and {narrow} by differences, {found} found"));
        }
    }
    compare(&found, &tame, &by_lane(&cotangents, given.count), &by_lane(&directions, given.count)).map(Some)
}

/// The central difference of the real results along a direction, by lane; nothing for a lane that traps, and none where the
/// differences to both sides disagree: inputs often stand exactly where a minimum or an absolute value has its kink.
fn difference(
    cfg: &cfg::Program,
    given: &Given,
    wrt: &[bool],
    directions: &[Array],
    h: f64,
    settings: &Settings,
) -> Vec<Option<Vec<f64>>> {
    let side = |by: f64| {
        let mut moved = given.inputs(cfg, &[], settings);
        let changed = moved.values.iter_mut().zip(wrt).filter(|(_, w)| **w);
        for ((value, _), direction) in changed.zip(directions) {
            if let (ArrayData::Real(x), ArrayData::Real(v)) = (&mut value.data, &direction.data) {
                x.iter_mut().zip(v).for_each(|(x, v)| *x += by * v);
            }
        }
        let outcome = interp::run(cfg, &moved, settings, &NoSink);
        let dead: Vec<usize> = outcome.traps.iter().map(|t| t.position).collect();
        (by_lane(&outcome.outputs, given.count), dead)
    };
    let ((up, dead_up), (at, _), (down, dead_down)) = (side(h), side(0.0), side(-h));
    (0..given.count)
        .map(|lane| {
            let dead = dead_up.contains(&lane) || dead_down.contains(&lane);
            let kink = (up[lane].iter().zip(&at[lane]).zip(&down[lane])).any(|((up, at), down)| {
                let (after, before) = ((up - at) / h, (at - down) / h);
                (after - before).abs() > 1e-2 * (after.abs() + before.abs()) + 1e-3
            });
            let central = || up[lane].iter().zip(&down[lane]).map(|(a, b)| (a - b) / (2.0 * h)).collect();
            (!dead && !kink).then(central)
        })
        .collect()
}

type Found = Vec<(Vec<autobatch::run::Trap>, Vec<Vec<f64>>)>;

/// The tangents weighted by the cotangents against the gradient weighted by the direction, in every lane that is tame.
fn compare(found: &Found, tame: &[bool], cotangents: &[Vec<f64>], directions: &[Vec<f64>]) -> Result<usize, String> {
    let [(dead, gradients), (_, tangents)] = &found[..] else { unreachable!("two modes") };
    let mut compared = 0;
    for lane in 0..cotangents.len() {
        let terms = |a: &[f64], b: &[f64]| -> (f64, f64) {
            a.iter().zip(b).fold((0.0, 0.0), |(sum, size), (x, y)| (sum + x * y, size + (x * y).abs()))
        };
        let (reverse, size) = terms(&gradients[lane], &directions[lane]);
        let (forward, other) = terms(&tangents[lane], &cotangents[lane]);
        if !tame[lane] || dead.iter().any(|t| t.position == lane) || !reverse.is_finite() || !forward.is_finite() {
            continue;
        }
        compared += 1;
        if (reverse - forward).abs() > 1e-6 * (size + other) + 1e-9 {
            return Err(format!(
                "lane {lane}: reverse {reverse}, forward {forward}; gradient {:?}, direction {:?}, tangent {:?}, cotangent {:?}",
                gradients[lane], directions[lane], tangents[lane], cotangents[lane]
            ));
        }
    }
    Ok(compared)
}

fn small(seed: u64, why: &str) -> String {
    let kind = |why: &str| why.split(':').next().unwrap_or_default().to_owned();
    let (program, _) = generate(seed);
    let case = Case::new(seed, &program);
    let until = Instant::now() + Duration::from_secs(60);
    let small = minimise(program, until, &mut |program| {
        let case = Case { text: program.to_string(), ..case.clone() };
        judge(&case).is_err_and(|found| kind(&found) == kind(why))
    });
    let text = small.to_string();
    let found = judge(&Case { text: text.clone(), ..case });
    format!("seed {seed}: {found:?}\n{text}")
}

#[test]
fn derivatives_of_random_programs_agree() {
    let programs = from_environment("AUTOBATCH_DERIVATIVE_PROGRAMS", effort::part(SOME_PROGRAMS, PROGRAMS));
    let first = from_environment("AUTOBATCH_DIFFERENTIAL_SEED", 0);
    let next = AtomicU64::new(first);
    let (derived, compared) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failures = Mutex::new(Vec::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + programs || failures.lock().expect("no panic").len() > 2 {
                return;
            }
            let found = std::panic::catch_unwind(|| judge(&Case::new(seed, &generate(seed).0)));
            match found {
                Ok(Ok(None)) => {}
                Ok(Ok(Some(lanes))) => {
                    derived.fetch_add(1, Ordering::Relaxed);
                    compared.fetch_add(lanes, Ordering::Relaxed);
                }
                Ok(Err(why)) => {
                    eprintln!("seed {seed} fails, being made small: {why}");
                    failures.lock().expect("no panic").push(small(seed, &why));
                }
                Err(_) => failures.lock().expect("no panic").push(format!("seed {seed} panics")),
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
    let (derived, compared) = (derived.into_inner(), compared.into_inner());
    println!("{derived} programs had derivatives, compared in {compared} lanes");
    assert!(programs < 30 || derived as u64 * 3 > programs, "only {derived} of {programs} programs had derivatives");
}
