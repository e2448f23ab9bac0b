//! Tapes on every engine: phases of pushing and popping, recursion, limits, and random programs whose values go over
//! tapes.

use std::sync::Arc;

use autobatch::backend::cpu::{MACHINE, local, pc};
use autobatch::base::IdVec;
use autobatch::cfg::{self, Block, BlockId, Inst, InstKind, Operand, SideEffect, Tape, TapeId, Terminator, VarId};
use autobatch::interp;
use autobatch::lower::to_plan::{calls_to_plan, units_to_plan};
use autobatch::lower::to_unit::cfg_to_units;
use autobatch::pipeline::{Compiled, Passes, from_cfg, specialise};
use autobatch::plan::estimate;
use autobatch::program::{Engine, Program};
use autobatch::run::{MemoryBudget, RunInputs, Settings, Storage, TrapKind};
use autobatch::stack;
use autobatch::types::{Array, Type};
use indexmap::IndexMap;

use crate::engines::differential::Case;
use crate::engines::machine::{
    MAKING, Outcomes, Said, agree, all_settings, essence, inputs, ints, plans, run_pc, text,
};
use crate::tools::effort;
use crate::tools::observed::Configuration;
use crate::tools::random_programs::{Rng, generate};

fn reals(values: impl IntoIterator<Item = f64>) -> Array {
    let values: Vec<f64> = values.into_iter().collect();
    Array::real([values.len()], values)
}

#[test]
fn what_a_loop_pushes_comes_back_in_reverse() {
    let lanes = 29;
    let n: Vec<i64> = (0..lanes).map(|l| l * 5 % 13).collect();
    let x = (0..2 * lanes).map(|i| i as f64 * 0.25).collect();
    let mut given = inputs(vec![ints(n.clone()), Array::real([lanes as usize, 2], x)]);
    given.shared = vec![Array::real([2], vec![2.0, 0.5])].into();
    let (outcome, said) = agree("tape_loop.cfg", &given, |s| s);
    assert!(outcome.traps.is_empty(), "{:?}", outcome.traps);
    let digests = n.iter().map(|n| (1..=*n).rev().fold(0, |d, i| d * 3 % 1_000_003 + i));
    assert_eq!(outcome.outputs[0], ints(digests));
    // lane 3 has n = 2 and x = [1.5, 1.75]
    assert_eq!(outcome.outputs[1].as_real().unwrap()[3], (1.5 * 2.0 + 1.75 * 0.5) * 0.25 + 1.5 + 1.75);
    assert_eq!(said[&3].len(), 2);
    assert_eq!(said.get(&0), None);
}

#[test]
fn tapes_outlive_calls_and_recursion() {
    let n: Vec<i64> = (0..24).map(|l| l % 7).collect();
    let x: Vec<f64> = (0..24).map(|l| 0.1 + 0.06 * f64::from(l)).collect();
    let given = inputs(vec![ints(n.clone()), reals(x.clone())]);
    let (outcome, _) = agree("tape_tree.cfg", &given, |s| s);
    assert!(outcome.traps.is_empty(), "{:?}", outcome.traps);
    let slopes = outcome.outputs[1].as_real().unwrap();
    for ((n, x), slope) in n.iter().zip(x).zip(slopes) {
        let h = 1e-5;
        let difference = (tree(*n, x + h) - tree(*n, x - h)) / (2.0 * h);
        assert!((difference - slope).abs() < 1e-9 * (10.0 + slope.abs()), "n {n} x {x}: {slope}, not {difference}");
    }
}

/// What `tape_tree.cfg` computes, with the shape that the tree has at `x`.
fn tree(n: i64, x: f64) -> f64 {
    if n < 1 || x > 1.5 { x.sin() } else { tree(n - 1, 0.9 * x) * tree(n - 2, 1.1 * x) + 0.5 }
}

#[test]
fn empty_and_full_tapes_stop_their_lane_at_its_line() {
    let pushes = ints([3, 0, 9, 4, 2, 5, 0]);
    let pops = ints([2, 1, 0, 6, 2, 5, 0]);
    let given = inputs(vec![pushes, pops]);
    let (outcome, _) = agree("tape_rest.cfg", &given, |s| s.max_tape_depth(5));
    let traps: Vec<_> = outcome.traps.iter().map(|t| (t.position, t.kind, t.loc.line)).collect();
    let (empty, full) = (TrapKind::EmptyTape, TrapKind::TapeLimit);
    assert_eq!(traps, [(1, empty, 5), (2, full, 3), (3, empty, 5)]);
    assert_eq!(outcome.outputs, [ints([1 + 4, 0, 0, 0, 1 + 4, 1 + 4 + 9 + 16 + 25, 0])]);
}

#[test]
fn a_tape_without_memory_stops_its_lane_and_not_the_run() {
    let given = inputs(vec![ints([10, 100_000, 5]), ints([10, 0, 2])]);
    let change = |s: Settings| {
        let memory = Arc::new(MemoryBudget::new(1 << 13));
        s.memory(memory).shard_lanes(1).threads(1).max_supersteps(1_000_000)
    };
    let (outcome, _) = agree("tape_rest.cfg", &given, change);
    let traps: Vec<_> = outcome.traps.iter().map(|t| (t.position, t.kind, t.loc.line)).collect();
    assert_eq!(traps, [(1, TrapKind::MemoryLimit, 3)]);
    assert_eq!(outcome.outputs, [ints([385, 0, 1 + 4])]);
}

#[test]
fn a_lane_that_takes_a_slot_finds_empty_tapes() {
    let n = 40;
    let given = inputs(vec![ints((0..n).map(|l| l % 4)), ints((0..n).map(|l| l % 3))]);
    let (outcome, _) = agree("tape_rest.cfg", &given, |s| s);
    let trapped: Vec<i64> = outcome.traps.iter().map(|t| t.position as i64).collect();
    let wanted: Vec<i64> = (0..n).filter(|l| l % 3 > l % 4).collect();
    assert_eq!(trapped, wanted);
    assert!(outcome.traps.iter().all(|t| t.kind == TrapKind::EmptyTape));
}

#[test]
fn no_lanes_push_nothing() {
    let (outcome, _) = agree("tape_tree.cfg", &inputs(vec![ints([]), reals([])]), |s| s);
    assert_eq!(outcome.outputs, [reals([]), reals([])]);
}

#[test]
fn loops_with_tapes_can_be_regions() {
    let program = cfg::read(&text("tape_region.cfg")).unwrap();
    let n: Vec<i64> = (0..20).map(|l| l * 7 % 5).collect();
    let x: Vec<f64> = (0..20).map(|l| 1.0 + f64::from(l)).collect();
    let given = inputs(vec![ints(n.clone()), reals(x.clone())]);
    let compiled = from_cfg(program, &Passes::default(), MACHINE);
    let stack = compiled.stack.as_ref().expect("it was lowered");
    assert!(!stack.regions.is_empty(), "{stack}");
    let inside = stack.regions.iter().flat_map(|r| &r.blocks);
    let pops = inside.flat_map(|b| &stack.blocks[*b].insts);
    assert!(
        pops.into_iter().any(|i| matches!(i.kind, stack::InstKind::Effect(stack::SideEffect::TapePop { .. }))),
        "{stack}"
    );
    // the last that was pushed, x / 16, first
    let totals = x.iter().map(|x| (0..5).rev().fold(0.0, |t, i| t * 3.0 + x * 0.5_f64.powi(i)));
    let rests = n.iter().zip(&x).map(|(n, x)| *n as f64 * x);
    let wanted = [reals(totals), reals(rests)];
    for settings in all_settings() {
        let (outcome, _) = run_pc(&compiled.plan, &given, &settings);
        assert_eq!(outcome.outputs, wanted, "{settings:?}");
    }
    agree("tape_region.cfg", &given, |s| s);
}

#[test]
fn tapes_are_in_statistics_and_in_the_estimate_of_memory() {
    let (plan, calls) = plans("tape_loop.cfg");
    let mut given = inputs(vec![ints([3, 5, 0]), Array::real([3, 2], vec![1.0; 6])]);
    given.shared = vec![Array::real([2], vec![2.0, 0.5])].into();
    let settings = Settings::default().stats(true).threads(1);
    for outcome in
        [pc::run(&plan, &given, &settings, &Said::default()), local::run(&calls, &given, &settings, &Said::default())]
    {
        let tapes = outcome.stats.variables.iter().filter(|v| v.storage == Storage::Tape);
        let tapes: Vec<_> = tapes.map(|v| (v.name.as_str(), v.pushes, v.max_stack_depth)).collect();
        assert_eq!(tapes, [("steps", 8, 5), ("states", 8, 5), ("odd", 8, 5), ("constants", 8, 5)]);
    }
    let bytes = estimate(&plan, 1, &settings).tape_level_bytes;
    assert_eq!(bytes, 8 + 16 + 1 + 8);
    assert_eq!(estimate(&plans("fib.cfg").0, 1, &settings).tape_level_bytes, 0);
}

/// Lets values go over tapes: a primitive's result is pushed and popped at once, and what a call is given is pushed before
/// the call and popped after it. Nothing else changes.
struct Detours<'a> {
    rng: Rng,
    tapes: &'a mut IdVec<TapeId, Tape>,
}

impl Detours<'_> {
    /// One of the two tapes for values of this type.
    fn tape(&mut self, ty: &Type) -> TapeId {
        let name = format!("{ty} {}", self.rng.below(2));
        let found = self.tapes.iter().find(|(_, t)| t.name == name).map(|(id, _)| id);
        found.unwrap_or_else(|| self.tapes.push(Tape { name, ty: ty.clone() }))
    }

    fn function(&mut self, func: &mut cfg::Func) {
        for id in func.blocks.ids() {
            let types = &func.vars;
            let old = std::mem::take(&mut func.blocks[id].insts);
            let mut insts = vec![];
            for inst in old {
                let (dst, loc) = (inst.kind.dst(), inst.loc.clone());
                insts.push(inst);
                if let Some(dst) = dst.filter(|_| self.rng.percent(40)) {
                    let tape = self.tape(&types[dst].ty);
                    let push = InstKind::Effect(SideEffect::TapePush { tape, value: Operand::Var(dst) });
                    let pop = InstKind::Effect(SideEffect::TapePop { dst, tape });
                    insts.extend([push, pop].map(|kind| Inst { kind, loc: loc.clone() }));
                }
            }
            func.blocks[id].insts = insts;
            self.call(func, id);
        }
    }

    fn call(&mut self, func: &mut cfg::Func, id: BlockId) {
        let Terminator::Call { args, dsts, next, loc, .. } = func.blocks[id].term.clone() else {
            return;
        };
        let mut kept: Vec<VarId> = args.iter().filter_map(|a| a.var()).filter(|v| !dsts.contains(v)).collect();
        kept.dedup();
        let mut after = Block { insts: vec![], term: Terminator::Jump(next), loc: loc.clone() };
        for v in kept {
            let tape = self.tape(&func.vars[v].ty);
            let push = InstKind::Effect(SideEffect::TapePush { tape, value: Operand::Var(v) });
            func.blocks[id].insts.push(Inst { kind: push, loc: loc.clone() });
            after.insts.push(Inst { kind: InstKind::Effect(SideEffect::TapePop { dst: v, tape }), loc: loc.clone() });
        }
        after.insts.reverse();
        let detour = func.blocks.push(after);
        func.blocks[id].term.for_each_successor_mut(|b| *b = detour);
    }
}

/// A random program with its inputs, as a CFG program, and its shared inputs by name: passes may add shared values.
fn random(seed: u64) -> (cfg::Program, RunInputs, IndexMap<String, Array>) {
    let case = Case::new(seed, &generate(seed).0);
    let program = Program::compile(case.text()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let function = program.function("entry").unwrap();
    let arrays: Vec<(bool, String, Array)> =
        (function.signature().ports.iter()).map(|port| (port.shared, port.name.clone(), case.array(port))).collect();
    let types: Vec<Type> = arrays
        .iter()
        .map(|(shared, _, a)| Type::new(a.dtype(), a.shape[usize::from(!shared)..].iter().copied()))
        .collect();
    let entry = program.hir().exports["entry"];
    let program =
        specialise(program.hir(), program.sources(), entry, &types.into(), &Passes::default()).unwrap().program;
    let shared: IndexMap<String, Array> =
        arrays.iter().filter(|a| a.0).map(|(_, name, array)| (name.clone(), array.clone())).collect();
    let given = RunInputs::new(
        case.lanes().to_vec(),
        arrays.into_iter().filter(|a| !a.0).map(|a| a.2).collect(),
        interp::shared_values(&program.shared, &shared, Settings::default().get_precision()).unwrap(),
    );
    (program, given, shared)
}

/// What passes do not change: an inlined call is no active call.
fn without_depths(mut outcomes: Outcomes) -> String {
    outcomes.0.traps.iter_mut().for_each(|t| t.call_depth = 0);
    essence(&outcomes)
}

#[test]
fn values_that_go_over_tapes_are_the_same_values() {
    let settings = Settings::default().max_supersteps(5000).max_stack_depth(200);
    let mut compared = 0;
    for seed in 0..effort::part(20, 60) {
        let (program, given, shared) = random(seed);
        let said = Said::default();
        let outcome = interp::run(&program, &given, &settings, &said);
        if outcome.traps.iter().any(|t| matches!(t.kind, TrapKind::StepLimit | TrapKind::StackLimit)) {
            continue;
        }
        let wanted = without_depths((outcome, said.take()));
        let mut taped = program.clone();
        let mut detours = Detours { rng: Rng::new(seed), tapes: &mut taped.tapes };
        taped.funcs.values_mut().for_each(|f| detours.function(f));
        assert_eq!(cfg::verify(&taped), [], "seed {seed}");
        assert_eq!(cfg::read(&taped.to_string()).as_ref(), Ok(&taped), "seed {seed}");
        let mut rng = Rng::new(seed ^ 0x7a9e);
        for engine in [Engine::Scalar, Engine::Local, Engine::Pc, Engine::Pc, Engine::Pc] {
            let room = settings.clone().max_supersteps(0).max_stack_depth(2000);
            let base = autobatch::program::Options::default().settings(room);
            let options = Configuration::random(&base, &mut rng).options;
            let mut compiled = from_cfg(taped.clone(), options.get_passes(), MACHINE);
            let values = |compiled: &Compiled| {
                let program = compiled.cfg.as_ref().unwrap();
                interp::shared_values(&program.shared, &shared, settings.get_precision())
            };
            // As binding does: what traps before the lanes start is left to those that come to it.
            if values(&compiled).is_err() {
                let mut passes = options.get_passes().clone();
                passes.switch_off("shared-code");
                compiled = from_cfg(taped.clone(), &passes, MACHINE);
            }
            let shared = values(&compiled).unwrap();
            let settings = options.get_settings().clone().precision(base.get_settings().get_precision());
            let said = Said::default();
            let program = compiled.cfg.as_ref().unwrap();
            let given = given.clone().with_shared(shared);
            let outcome = match engine {
                Engine::Scalar => interp::run(program, &given, &settings, &said),
                Engine::Local => local::run(&calls_to_plan(&cfg_to_units(program), MAKING), &given, &settings, &said),
                Engine::Pc => pc::run(&units_to_plan(&compiled.units, MAKING), &given, &settings, &said),
            };
            let found = without_depths((outcome, said.take()));
            assert_eq!(
                found,
                wanted,
                "seed {seed} {engine:?} {settings:?} {:?}\n{}",
                options.get_passes(),
                compiled.units
            );
            compared += 1;
        }
    }
    assert!(compared > effort::part(60, 200), "{compared}");
}
