//! What depends on shared values only is stored and computed once, loops too: memory and work do not grow with the lanes.

use autobatch::program::{Engine, Inputs, Options, Program};
use autobatch::run::TrapKind;
use ndarray::Array1;

const SOURCE: &str = "
pub fn main[n](x: real, shared data: real[n], shared m: int) -> real {
    let mut squares = data * 0.0;
    for i in 0..m {
        squares[i] = data[i] * data[i];
    }
    let mut total = 0.0;
    for i in 0..m { total = total + squares[i]; }
    x * total
}";

fn inputs(lanes: usize) -> Inputs {
    let x = Array1::from_iter((0..lanes).map(|i| i as f64));
    Inputs::new().lane("x", x).shared("data", Array1::from_elem(1000, 2.0)).shared("m", 1000)
}

fn options(engine: Engine, on: bool) -> Options {
    let mut options = Options::default().engine(engine).stats(true);
    if !on {
        options = options.without_pass("shared-code").expect("there is such a pass");
    }
    options
}

#[test]
fn a_loop_over_shared_data_takes_the_same_memory_and_work_for_any_number_of_lanes() {
    let program = Program::compile(SOURCE).unwrap();
    let function = program.function("main").unwrap();
    let on = options(Engine::Pc, true);
    let memory = |lanes| function.bind(&inputs(lanes), &on).unwrap().memory(&on);
    let (one, many) = (memory(1), memory(10_000));
    assert_eq!(one.shared_bytes, many.shared_bytes);
    // A lane has its input, its result and its place: nothing of the array of 1000.
    assert!(many.state_bytes_per_lane < 100, "{many:?}");
    let results = function.run(&inputs(10_000), &on).unwrap();
    assert_eq!(
        results.stats().prims.keys().collect::<Vec<_>>(),
        ["mul"],
        "only the product with `x` is left to the lanes"
    );
    assert!(results.stats().prims["mul"] <= 160, "one for each shard: {:?}", results.stats().prims);
}

#[test]
fn engines_agree_with_and_without_it() {
    let program = Program::compile(SOURCE).unwrap();
    let function = program.function("main").unwrap();
    for engine in [Engine::Scalar, Engine::Local, Engine::Pc] {
        for on in [true, false] {
            let results = function.run(&inputs(3), &options(engine, on)).unwrap();
            assert_eq!(results.output("result").and_then(|a| a.as_real()), Some(&[0.0, 4000.0, 8000.0][..]));
        }
    }
}

/// The loop does not end for `m` 0, but only lanes with a negative `x` come there.
#[test]
fn a_loop_that_does_not_end_stops_the_lanes_that_come_there() {
    let source = "
pub fn main(x: real, shared m: int) -> real {
    let mut left = 1;
    if x < 0.0 {
        while left > 0 {
            if m > 0 { left = 0; }
            left = left * 1;
        }
    }
    x + 0.0 * real(left)
}";
    let program = Program::compile(source).unwrap();
    let options = Options::default().max_supersteps(1000);
    let inputs = Inputs::new().lane("x", Array1::from(vec![1.0, -1.0])).shared("m", 0);
    let results = program.function("main").unwrap().run(&inputs, &options).unwrap();
    let stopped: Vec<_> = results.traps().iter().map(|t| (t.position, t.kind)).collect();
    assert_eq!(stopped, [(1, TrapKind::StepLimit)]);
    assert_eq!(results.output("result").and_then(|a| a.as_real()).map(|a| a[0]), Some(1.0));
}

/// The arms and the body depend on the lane, the condition and the number of turns do not.
#[test]
fn a_branch_and_a_loop_that_shared_values_decide_are_jumps() {
    let source = "
pub fn main(x: real, shared m: int) -> real {
    let mut s = x;
    for i in 0..m { s = s * x + real(i); }
    if m > 3 { s = exp(s) * random_uniform(); print(\"{s}\"); } else { s = 0.5 * s + random_normal(); }
    s
}";
    let program = Program::compile(source).unwrap();
    let function = program.function("main").unwrap();
    let inputs = |m: i64| Inputs::new().lane("x", Array1::from_elem(200, 0.5)).shared("m", m);
    let options = options(Engine::Pc, true).shard_lanes(256);
    let bound = function.bind(&inputs(2), &options).unwrap();
    let plan = bound.compiled().plan.to_string();
    // The counter is one number for all lanes of the region, and no part of their state.
    assert!(plan.contains("main.i: int temporary uniform"), "{plan}");
    assert!(plan.contains(": region "), "{plan}");
    let supersteps = |m| function.run(&inputs(m), &options).unwrap().stats().supersteps;
    assert_eq!(supersteps(1), supersteps(3), "the turns of a region are one superstep");
    assert!(supersteps(3) <= 4 && supersteps(9) <= 4, "no arm is run for a part of the lanes");
}

/// The counters of the way back start at their bounds, which are the same for all lanes.
#[test]
fn the_gradient_of_loops_of_known_turns_is_one_superstep() {
    let source = "
pub fn f(x: real, shared m: int) -> real {
    let mut s = x;
    for i in 0..m { for j in 0..3 { s = sin(s) * x + real(i + j); } }
    s
}
pub fn main(x: real, shared m: int) -> real { grad(f)(x, m) }";
    let program = Program::compile(source).unwrap();
    let function = program.function("main").unwrap();
    let inputs = |m: i64| Inputs::new().lane("x", Array1::from_elem(200, 0.5)).shared("m", m);
    let options = options(Engine::Pc, true).shard_lanes(256);
    let results = |m| function.run(&inputs(m), &options).unwrap();
    assert_eq!(results(5).stats().supersteps, results(2).stats().supersteps, "the turns of a region are one superstep");
    // A turn needs what `s` was; no counter is on a tape.
    assert_eq!(results(5).stats().bytes_pushed(), 200 * 5 * 3 * 8);
}

/// An element that is read and set again costs one element, also of an array that is wanted after the loop.
#[test]
fn the_gradient_of_a_recurrence_copies_no_array() {
    let source = "
pub fn f(x: real, shared y: real[50]) -> real {
    let mut e = fill(0.0, 51);
    e[0] = x;
    for t in 0..50 { e[t + 1] = y[t] - x * e[t]; }
    dot(e, e)
}
pub fn main(x: real, shared y: real[50]) -> real { grad(f)(x, y) }";
    let program = Program::compile(source).unwrap();
    let inputs = Inputs::new().lane("x", Array1::from_elem(4, 0.5)).shared("y", Array1::from_elem(50, 1.0));
    let bound = program.function("main").unwrap().bind(&inputs, &options(Engine::Pc, true)).unwrap();
    let plan = bound.compiled().plan.to_string();
    let copies = |line: &&str| line.contains("set_index %") && !line.contains("in place");
    assert_eq!(plan.lines().find(copies), None, "{plan}");
    assert!(plan.contains("set_index %") && plan.contains(": region "), "{plan}");
}
