//! The two batching engines on programs in the text form of the IRs: results under every schedule, mode and cut of the
//! batch, traps, effects, limits and statistics.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use autobatch::backend::cpu::codegen::{Code, Generated, Native};
use autobatch::backend::cpu::{MACHINE, local, pc};
use autobatch::lower::cfg_to_stack;
use autobatch::lower::cfg_to_stack::Saves;
use autobatch::lower::to_plan::{Making, calls_to_plan, units_to_plan};
use autobatch::lower::to_unit::{Stores, cfg_to_units, stack_to_units};
use autobatch::parts::StreamId;
use autobatch::plan::{CallPlan, Plan, estimate};
use autobatch::program::Codegen;
use autobatch::run::{Execution, Outcome, Record, RunInputs, Schedule, Settings, Sink, TrapKind};
use autobatch::types::{Array, Precision};
use autobatch::{cfg, interp, stack, unit};

/// For this processor, with tiles.
pub(crate) const MAKING: Making = Making { machine: MACHINE, tile_rows: true };

pub(crate) fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/machine");
    std::fs::read_to_string(path.join(name)).unwrap()
}

/// The units of a stack program.
fn stack_units(name: &str) -> unit::Program {
    let program = stack::read(&text(name)).unwrap();
    let errors = stack::verify(&program);
    assert!(errors.is_empty(), "{errors:?}");
    stack_to_units(&program, Stores::Live)
}

fn stack_plan(name: &str) -> Plan {
    units_to_plan(&stack_units(name), MAKING)
}

fn cfg_program(name: &str) -> cfg::Program {
    let program = cfg::read(&text(name)).unwrap();
    let errors = cfg::verify(&program);
    assert!(errors.is_empty(), "{errors:?}");
    program
}

/// The units of a CFG program for `pc`.
fn cfg_units(name: &str) -> unit::Program {
    let lowered = cfg_to_stack::lower(&cfg_program(name), Saves::Live);
    let errors = stack::verify(&lowered);
    assert!(errors.is_empty(), "{errors:?}\n{lowered}");
    stack_to_units(&lowered, Stores::Live)
}

/// A CFG program for both engines.
pub(crate) fn plans(name: &str) -> (Plan, CallPlan) {
    let calls = calls_to_plan(&cfg_to_units(&cfg_program(name)), MAKING);
    (units_to_plan(&cfg_units(name), MAKING), calls)
}

pub(crate) fn inputs(values: Vec<Array>) -> RunInputs {
    let lanes = values[0].shape[0];
    RunInputs::new((0..lanes as u64).collect(), values, Vec::new())
}

pub(crate) fn ints(values: impl IntoIterator<Item = i64>) -> Array {
    let values: Vec<i64> = values.into_iter().collect();
    Array::int([values.len()], values)
}

/// Every schedule, mode and cut of the batch.
pub(crate) fn all_settings() -> Vec<Settings> {
    let mut all = Vec::new();
    for schedule in [Schedule::Earliest, Schedule::MostLanes, Schedule::CostAware { theta: 0.75 }] {
        for execution in [Execution::Mask, Execution::Gather, Execution::Auto] {
            for (shard_lanes, threads) in [(0, 1), (1, 1), (3, 2), (7, 1), (64, 2)] {
                all.push(
                    Settings::default()
                        .schedule(schedule)
                        .execution(execution)
                        .shard_lanes(shard_lanes)
                        .threads(threads)
                        .seed(5),
                );
            }
        }
    }
    all
}

/// What lanes said, each in its order.
#[derive(Default, Debug)]
pub(crate) struct Said(Mutex<BTreeMap<usize, Vec<String>>>);

impl Said {
    fn say(&self, position: usize, what: String) {
        self.0.lock().unwrap().entry(position).or_default().push(what);
    }
    pub(crate) fn take(self) -> BTreeMap<usize, Vec<String>> {
        self.0.into_inner().unwrap()
    }
}

impl Sink for Said {
    fn emit(&self, position: usize, stream: StreamId, record: &dyn Record) -> Result<(), autobatch::run::NoMemory> {
        self.say(position, format!("{stream} {:?}", record.arrays()));
        Ok(())
    }
    fn print(&self, position: usize, line: String) {
        self.say(position, line);
    }
}

pub(crate) type Outcomes = (Outcome, BTreeMap<usize, Vec<String>>);

pub(crate) fn run_pc(plan: &Plan, inputs: &RunInputs, settings: &Settings) -> Outcomes {
    let said = Said::default();
    let outcome = pc::run(plan, inputs, settings, &said);
    (outcome, said.take())
}

/// With generated code, where there is a C compiler.
fn run_generated(units: &unit::Program, inputs: &RunInputs, settings: &Settings) -> Option<Outcomes> {
    let plan = units_to_plan(units, MAKING);
    let code = Code::of_units(units, &plan);
    let native = (crate::tools::observed::codegen() == Codegen::Cc)
        .then(|| Native::new(code, settings.get_precision(), None).expect("the generated C compiles"))?;
    let said = Said::default();
    let outcome = pc::run_with(&plan, Generated::Now(&native), inputs, settings, &said);
    Some((outcome, said.take()))
}

fn run_local(plan: &CallPlan, inputs: &RunInputs, settings: &Settings) -> Outcomes {
    let said = Said::default();
    let outcome = local::run(plan, inputs, settings, &said);
    (outcome, said.take())
}

/// Bits of outputs, traps and effects: what must not depend on how the program is run.
pub(crate) fn essence((outcome, said): &Outcomes) -> String {
    format!("{:?}\n{:?}\n{said:?}", outcome.outputs, outcome.traps)
}

/// Runs on both engines under all settings; all agree with the reference interpreter.
pub(crate) fn agree(name: &str, inputs: &RunInputs, change: impl Fn(Settings) -> Settings) -> Outcomes {
    let (plan, calls) = plans(name);
    let settings = change(Settings::default().seed(5));
    let said = Said::default();
    let outcome = interp::run(&cfg::read(&text(name)).unwrap(), inputs, &settings, &said);
    let first = (outcome, said.take());
    if let Some(generated) = run_generated(&cfg_units(name), inputs, &settings) {
        assert_eq!(essence(&generated), essence(&first), "generated code");
    }
    for settings in all_settings() {
        let settings = change(settings);
        let pc = run_pc(&plan, inputs, &settings);
        assert_eq!(essence(&pc), essence(&first), "pc {settings:?}");
        let local = run_local(&calls, inputs, &settings);
        assert_eq!(essence(&local), essence(&first), "local {settings:?}");
    }
    first
}

#[test]
fn stacks_that_tiled_groups_push_are_not_taken_to_be_equally_high() {
    let plan = stack_plan("tiled_pushes.stack");
    // More lanes than the padding of a stack, and the sums of a row of ones.
    let n = (0..80).map(|lane| lane % 4);
    let inputs = inputs(vec![ints(n.clone()), Array::real([80, 600], vec![1.0; 80 * 600])]);
    // Depth by depth, from the innermost: 1800 for `c`, 1200 for `a`; what `c` was before the first push is 0.
    let expected = Array::real([80], n.map(|n| 3000.0 * n as f64).collect::<Vec<_>>());
    let settings = Settings::default().shard_lanes(80);
    let (outcome, _) = run_pc(&plan, &inputs, &settings);
    assert_eq!(outcome.outputs, [expected]);
    if let Some((generated, _)) = run_generated(&stack_units("tiled_pushes.stack"), &inputs, &settings) {
        assert_eq!(generated.outputs, outcome.outputs);
    }
}

#[test]
fn fibonacci_by_hand_and_lowered() {
    let n = inputs(vec![ints([1, 12, 3, 7, 2, 10, 10, 5, 6, 8, 9, 0])]);
    let expected = ints([1, 144, 2, 13, 1, 55, 55, 5, 8, 21, 34, 1]);
    let by_hand = stack_plan("fib.stack");
    for settings in all_settings() {
        let (outcome, _) = run_pc(&by_hand, &n, &settings);
        assert_eq!(outcome.outputs, std::slice::from_ref(&expected), "{settings:?}");
        assert!(outcome.traps.is_empty());
    }
    let (outcome, _) = agree("fib.cfg", &n, |s| s);
    assert_eq!(outcome.outputs, [expected]);
}

#[test]
fn tail_calls_use_no_stack_and_swapped_arguments_work() {
    let n = inputs(vec![ints([7, 12, 49, 4_000, 9]), ints([9, 9, 56, 3_000, 0])]);
    let (outcome, _) = agree("even.cfg", &n, |s| s.max_stack_depth(1));
    let even = Array::bool([5], vec![false, true, false, true, false]);
    assert_eq!(outcome.outputs, [even, ints([1, 3, 7, 1_000, 9])]);
}

#[test]
fn effects_and_traps_do_not_depend_on_how_a_program_is_run() {
    let n = 23;
    let depths = ints((0..n).map(|l| l % 11));
    let x = (0..3 * n).map(|i| i as f64 * 0.1).collect();
    let walk = inputs(vec![depths, Array::real([n as usize, 3], x)]);
    let (outcome, said) = agree("effects.cfg", &walk, |s| s);
    let kinds: Vec<(usize, TrapKind)> = outcome.traps.iter().map(|t| (t.position, t.kind)).collect();
    // n = 3 and 7 set the element past the end; n = 9 and 10 assert.
    assert!(kinds.contains(&(3, TrapKind::IndexOutOfRange)));
    assert!(kinds.contains(&(9, TrapKind::AssertFailed)));
    assert!(!kinds.iter().any(|(p, _)| *p % 11 < 3));
    let failed = &outcome.traps.iter().find(|t| t.position == 9).unwrap();
    assert_eq!(failed.message, "n is 9 in [2.7, 2.8000000000000003, 2.9000000000000004]");
    assert_eq!((failed.call_depth, failed.loc.line), (0, 4));
    let deep = &outcome.traps.iter().find(|t| t.position == 5).unwrap();
    assert!(deep.call_depth > 0);
    assert_eq!(said[&0], ["end [0, 0.1, 0.2]"]);
    assert_eq!(said[&2].len(), 2 + 1 + 1 + 1, "{:?}", said[&2]);
    let zero = outcome.outputs[1].as_int().unwrap()[9];
    assert_eq!(zero, 0, "outputs of trapped lanes are zeros");
}

#[test]
fn f32_runs_agree_too() {
    let x = Array::real([9, 3], (0..27).map(|i| i as f64 * 0.1).collect());
    let walk = inputs(vec![ints((0..9).map(|l| l % 3)), x]);
    agree("effects.cfg", &walk, |s| s.precision(Precision::F32));
}

#[test]
fn the_leaf_of_pea_nuts_runs_as_often_as_the_lane_that_needs_it_most() {
    let lanes = 64;
    let (plan, calls) = plans("pea_nuts.cfg");
    let x = inputs(vec![Array::real([lanes], vec![1.5; lanes])]);
    for seed in 1..4 {
        let settings = Settings::default().stats(true).threads(1).seed(seed);
        let leaves = |o: &Outcome| {
            let leaf = o.stats.blocks.iter().filter(|b| &*b.loc.function == "leaf");
            leaf.map(|b| b.executions).max().unwrap()
        };
        // Each lane alone runs its leaf as often as it needs.
        let needed = (0..lanes).map(|l| {
            let one = RunInputs::new(vec![l as u64], vec![Array::real([1], vec![1.5])], Vec::new());
            leaves(&pc::run(&plan, &one, &settings, &Said::default()))
        });
        let bound = needed.max().unwrap();
        let pc = leaves(&pc::run(&plan, &x, &settings, &Said::default()));
        let local = leaves(&local::run(&calls, &x, &settings, &Said::default()));
        assert!(pc as f64 <= 1.05 * bound as f64, "pc {pc}, bound {bound}");
        assert!(local >= 3 * pc, "local {local}, pc {pc}");
    }
}

#[test]
fn uniform_loops_run_as_one_superstep() {
    let plan = stack_plan("region.stack");
    let xs = inputs(vec![Array::real([4], vec![1.0, 2.0, -1.0, 0.5]), ints([1, 2, 3, 1])]);
    for settings in all_settings() {
        let settings = settings.stats(true);
        let (outcome, _) = run_pc(&plan, &xs, &settings);
        let expected = Array::real([4], vec![1.0, 1024.0, -1.0, 0.03125]);
        assert_eq!(outcome.outputs, [expected]);
    }
    let settings = Settings::default().stats(true).threads(1);
    let (outcome, _) = run_pc(&plan, &xs, &settings);
    let region = outcome.stats.blocks.iter().find(|b| b.block == "b1").unwrap();
    assert_eq!((region.executions, region.lanes_useful), (3, 7));
    assert_eq!(outcome.stats.prims["mul"], 15);
}

#[test]
fn limits_stop_one_lane_and_not_the_others() {
    let n = inputs(vec![ints([3, 30, 5])]);
    let (outcome, _) = agree("fib.cfg", &n, |s| s.max_stack_depth(4));
    assert_eq!(outcome.outputs, [ints([2, 0, 5])]);
    let trap = &outcome.traps[0];
    assert_eq!((trap.position, trap.kind, trap.call_depth), (1, TrapKind::StackLimit, 4));

    let settings = Settings::default().max_supersteps(200);
    let (outcome, _) = run_pc(&plans("fib.cfg").0, &n, &settings);
    assert_eq!(outcome.outputs, [ints([2, 0, 5])]);
    assert_eq!(outcome.traps[0].kind, TrapKind::StepLimit);
}

#[test]
fn a_stopped_run_reports_every_lane_that_is_not_done() {
    let n = inputs(vec![ints((0..100).map(|i| i % 20))]);
    let stop = Arc::new(AtomicBool::new(false));
    stop.store(true, Ordering::Relaxed);
    let settings = Settings::default().stop(stop).shard_lanes(7).threads(2);
    let (plan, calls) = plans("fib.cfg");
    for (outcome, _) in [run_pc(&plan, &n, &settings), run_local(&calls, &n, &settings)] {
        assert_eq!(outcome.traps.len(), 100);
        assert!(outcome.traps.iter().enumerate().all(|(i, t)| t.position == i));
        assert!(outcome.traps.iter().all(|t| t.kind == TrapKind::Interrupted));
    }
}

#[test]
fn no_lanes_give_empty_outputs_of_the_right_shape() {
    let none = inputs(vec![ints([]), Array::real([0, 3], Vec::new())]);
    let (outcome, _) = agree("effects.cfg", &none, |s| s);
    assert_eq!(outcome.outputs, [Array::real([0, 3], Vec::new()), ints([])]);
}

#[test]
fn finished_lanes_make_room_for_waiting_ones() {
    let n = inputs(vec![ints((0..500).map(|i| i * 7 % 13))]);
    let plan = stack_plan("fib.stack");
    let settings = |shard_lanes| Settings::default().stats(true).threads(1).shard_lanes(shard_lanes);
    let (whole, _) = run_pc(&plan, &n, &settings(500));
    let (refilled, _) = run_pc(&plan, &n, &settings(10));
    assert_eq!(whole.outputs, refilled.outputs);
    assert!(refilled.stats.utilization() > 0.5, "{}", refilled.stats.utilization());
}

#[test]
fn the_birth_of_a_nan_can_trap() {
    let program = "program root entry b0\ninputs x: x\noutputs result: x\nvar x: real register\n\nb0: @root:1\n  prim x = sqrt x\n  halt\n";
    let plan = units_to_plan(&stack_to_units(&stack::read(program).unwrap(), Stores::Live), MAKING);
    let x = inputs(vec![Array::real([3], vec![4.0, -1.0, f64::NAN])]);
    let (outcome, _) = run_pc(&plan, &x, &Settings::default().check_nan(true));
    assert_eq!(outcome.traps.len(), 1);
    assert_eq!((outcome.traps[0].position, outcome.traps[0].kind), (1, TrapKind::Nan));
    let (outcome, _) = run_pc(&plan, &x, &Settings::default());
    assert!(outcome.traps.is_empty());
}

#[test]
fn memory_is_linear_in_lanes() {
    let plan = stack_plan("fib.stack");
    let settings = Settings::default().shard_lanes(1_000_000);
    let [a, b, c] = [1000, 2000, 3000].map(|n| estimate(&plan, n, &settings).total());
    assert_eq!(b - a, c - b);
    let estimate = estimate(&plan, 1000, &settings);
    let fits = estimate.largest_batch(1 << 20);
    assert!(fits > 1000 && fits < (1 << 20) / 16, "{fits}");
}

#[test]
fn plans_print() {
    let (plan, calls) = plans("effects.cfg");
    let (plan, calls) = (plan.to_string(), calls.to_string());
    assert!(plan.contains("set_index") && plan.contains("changes"), "{plan}");
    assert!(calls.contains("func walk(v0, v1) -> (real[3], int)"), "{calls}");
}

#[test]
fn reshapes_need_no_step_where_the_array_keeps_its_value() {
    let x: Vec<f64> = (0..30).map(|i| f64::from(i) + 0.5).collect();
    let given = inputs(vec![Array::real([5, 2, 3], x), ints([0, 1, 3, 2, 0])]);
    agree("reshape.cfg", &given, |s| s);
    let (plan, _) = plans("reshape.cfg");
    let text = plan.to_string();
    // Kept are `late`, whose array is set before it is read, and those that set registers.
    let (first, _) = text.split_once("b1: #").expect("a second block");
    assert_eq!(first.matches("reshape").count(), 1, "{text}");
}
