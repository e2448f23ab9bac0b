//! Speed by stage, by criterion, in groups named `<stage>/<what>`: `compile`, `dispatch`, `primitives`, `stacks`, `recursion`,
//! `nuts`; `cargo bench --bench stages -- dispatch` runs one. Where lanes or gradients are counted, criterion's throughput is
//! useful work a second, never issued work; a line before each says how many supersteps a run takes and how much of what is
//! computed is useful. `benches/RESULTS.md` says how to read them; `autobatch bench` compares with other systems.
#![allow(clippy::print_stdout, reason = "a benchmark says what it measures")]

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use autobatch::backend::cpu::MACHINE;
use autobatch::mcmc::sampling::{Job, Sampling};
use autobatch::pipeline;
use autobatch::program::{Bound, Engine, Inputs, Options, Program};
use autobatch::run::{NoSink, Stats};
use autobatch::stack;
use autobatch::types::Array;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const ENGINES: [(&str, Engine); 3] = [("scalar", Engine::Scalar), ("local", Engine::Local), ("pc", Engine::Pc)];

fn options(engine: Engine) -> Options {
    Options::default().engine(engine).threads(1)
}

fn bind(source: &str, entry: &str, inputs: &Inputs) -> Bound {
    let program = Program::compile(source).expect("the program is right");
    let function = program.function(entry).expect("the function is there");
    function.bind(inputs, &Options::default()).expect("the inputs fit")
}

fn run(bound: &Bound, options: &Options) -> u64 {
    let results = bound.run(options, &NoSink).expect("the run starts");
    assert!(results.traps().is_empty(), "no lane traps: {:?}", results.traps().first());
    results.stats().supersteps
}

/// Says what a run is made of, beside its time.
fn describe(name: &str, stats: &Stats) {
    println!("{name}: {} supersteps, utilization {:.3}", stats.supersteps, stats.utilization());
}

/// Describes a run of a bound function.
fn describe_run(name: &str, bound: &Bound, options: &Options) {
    let options = options.clone().stats(true);
    describe(name, bound.run(&options, &NoSink).expect("the run starts").stats());
}

/// A loop of one block with next to nothing to do: what a superstep costs.
fn superstep(c: &mut Criterion) {
    let source = "pub fn count(n: int) -> int { let mut i = 0; while i < n { i += 1; } i }";
    let mut group = c.benchmark_group("dispatch/superstep");
    for lanes in [1_usize, 64, 256, 1024] {
        let bound = bind(source, "count", &Inputs::new().lane("n", vec![10_000_i64; lanes]));
        let options = options(Engine::Pc).shard_lanes(lanes.next_multiple_of(64));
        describe_run(&format!("dispatch/superstep/{lanes}"), &bound, &options);
        group.throughput(Throughput::Elements(run(&bound, &options)));
        group.bench_function(BenchmarkId::from_parameter(lanes), |b| b.iter(|| black_box(run(&bound, &options))));
    }
    group.finish();
}

/// The same loop with nine blocks in it that do nothing but go on to the next: what a superstep costs with nothing to do.
fn empty_superstep(c: &mut Criterion) {
    let text = include_str!("empty_blocks.stack");
    let mut group = c.benchmark_group("dispatch/empty");
    for lanes in [1_usize, 64, 256, 1024] {
        let options = options(Engine::Pc).shard_lanes(lanes.next_multiple_of(64));
        let program = stack::read(text).expect("the program is right");
        let inputs = Inputs::new().lane("n", vec![1_000_i64; lanes]);
        let bound = Bound::of_ir(pipeline::from_stack(program, options.get_passes(), MACHINE), &inputs, &options);
        let bound = bound.expect("the inputs fit");
        describe_run(&format!("dispatch/empty/{lanes}"), &bound, &options);
        group.throughput(Throughput::Elements(run(&bound, &options)));
        group.bench_function(BenchmarkId::from_parameter(lanes), |b| b.iter(|| black_box(run(&bound, &options))));
    }
    group.finish();
}

/// Recursion to a depth and back: every level is one push and one pop of each stack variable and of the program counter.
fn push_pop(c: &mut Criterion) {
    let source = "pub fn deep(n: int, x: real) -> real { if n == 0 { x } else { x + 0.5 * deep(n - 1, x + 1.0) } }";
    let mut group = c.benchmark_group("stacks/push-pop");
    for lanes in [1_usize, 256] {
        let depth = 500;
        let inputs = Inputs::new().lane("n", vec![depth; lanes]).lane("x", vec![1.0; lanes]);
        let bound = bind(source, "deep", &inputs);
        group.throughput(Throughput::Elements(depth as u64 * lanes as u64));
        let options = options(Engine::Pc);
        describe_run(&format!("stacks/push-pop/{lanes}"), &bound, &options);
        group.bench_function(BenchmarkId::from_parameter(lanes), |b| b.iter(|| black_box(run(&bound, &options))));
    }
    group.finish();
}

const COLLATZ: &str = include_str!("../examples/collatz.ab");
const FIB: &str = include_str!("../examples/fib.ab");

/// Steps over vectors of 100 reals of each lane, 256 lanes: elements a second.
fn primitives(c: &mut Criterion) {
    const STEPS: [(&str, &str); 6] = [
        ("add", "y = y + x"),
        ("multiply-add", "y = 0.5 * y + x"),
        ("exp", "y = exp(-y)"),
        ("log1p_exp", "y = log1p_exp(y)"),
        ("sum", "y[0] = sum(y)"),
        ("product with a shared matrix", "y = 0.01 * (m @ y)"),
    ];
    const LANES: usize = 256;
    const TURNS: i64 = 100;
    let mut group = c.benchmark_group("primitives/100 reals");
    for (name, step) in STEPS {
        let source = format!(
            "pub fn step(x: real[100], shared m: real[100, 100], shared turns: int) -> real[100] {{ let mut y = x; \
             for i in 0..turns {{ {step}; }} y }}"
        );
        let x = Array::real([LANES, 100], (0..LANES * 100).map(|i| spread(i, 1_000) as f64 / 1_000.0).collect());
        let m = Array::real([100, 100], (0..10_000).map(|i| spread(i, 1_000) as f64 / 1_000.0).collect());
        let bound = bind(&source, "step", &Inputs::new().lane("x", x).shared("m", m).shared("turns", TURNS));
        let options = options(Engine::Pc);
        describe_run(&format!("primitives/100 reals/{name}"), &bound, &options);
        group.throughput(Throughput::Elements(LANES as u64 * 100 * TURNS as u64));
        group.bench_function(name, |b| b.iter(|| black_box(run(&bound, &options))));
    }
    group.finish();
}

/// A program of control flow: its stage, its text, its function, the input of each lane, and the useful work that an input makes.
struct Control {
    stage: &'static str,
    name: &'static str,
    source: &'static str,
    input: fn(usize) -> i64,
    work: fn(i64) -> u64,
}

/// Useful loop iterations or calls a second.
fn control(c: &mut Criterion, program: &Control) {
    let mut group = c.benchmark_group(format!("{}/{}", program.stage, program.name));
    group.sample_size(10).measurement_time(Duration::from_secs(3)).warm_up_time(Duration::from_millis(500));
    for lanes in [1_usize, 1_000, 100_000] {
        let values: Vec<i64> = (0..lanes).map(program.input).collect();
        group.throughput(Throughput::Elements(values.iter().map(|n| (program.work)(*n)).sum()));
        let bound = bind(program.source, program.name, &Inputs::new().lane("n", values));
        for (engine, kind) in ENGINES {
            let options = options(kind);
            describe_run(&format!("{}/{}/{engine}/{lanes}", program.stage, program.name), &bound, &options);
            group.bench_function(BenchmarkId::new(engine, lanes), |b| b.iter(|| black_box(run(&bound, &options))));
        }
    }
    group.finish();
}

/// A fixed spread of inputs in `0..below`: no generator is needed.
fn spread(i: usize, below: u64) -> i64 {
    (((i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) % below) as i64
}

fn collatz(c: &mut Criterion) {
    fn steps(mut n: i64) -> u64 {
        let mut steps = 0;
        while n != 1 {
            n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
            steps += 1;
        }
        steps
    }
    // 0 spreads to 0, and 1 is done at once
    let input = |i| 1 + spread(i + 1, 1_000_000);
    control(c, &Control { stage: "dispatch", name: "collatz", source: COLLATZ, input, work: steps });
}

fn fib(c: &mut Criterion) {
    fn calls(n: i64) -> u64 {
        if n < 3 { 1 } else { 1 + calls(n - 1) + calls(n - 2) }
    }
    control(c, &Control { stage: "recursion", name: "fib", source: FIB, input: |i| 5 + spread(i, 11), work: calls });
}

fn sampling_of(model: &str, chains: usize, draws: usize, data: &Inputs) -> Sampling {
    let plan = Job { chains, warmup: 0, draws, ..Job::new(Path::new(model)) };
    Sampling::new(&plan, |_| Ok(data.clone())).expect("the model is right")
}

/// From the text of NUTS and a model to the plan.
fn compile(c: &mut Criterion) {
    let data = Inputs::new().shared("y", vec![28.0, 8.0, -3.0]).shared("sigma", vec![15.0, 10.0, 16.0]);
    c.bench_function("compile/nuts + eight schools", |b| {
        b.iter(|| {
            let sampling = sampling_of("nuts/models/eight_schools.ab", 1, 1, &data);
            black_box(sampling.memory(&Options::default()).expect("it compiles"))
        });
    });
}

/// Gradients a second of NUTS on the paper's logistic regression, 10,000 × 100, generated from the seed.
fn nuts_logistic(c: &mut Criterion) {
    nuts(c, "nuts/logistic 10000x100", "nuts/models/logistic_synthetic.ab", 2, &synthetic_data());
}

/// Gradients a second of NUTS on eight schools.
fn nuts_eight_schools(c: &mut Criterion) {
    let y = vec![28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0];
    let sigma = vec![15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0];
    let data = Inputs::new().shared("y", y).shared("sigma", sigma);
    nuts(c, "nuts/eight schools", "nuts/models/eight_schools.ab", 20, &data);
}

fn nuts(c: &mut Criterion, name: &str, model: &str, draws: usize, data: &Inputs) {
    let mut group = c.benchmark_group(name);
    group.sample_size(10).measurement_time(Duration::from_secs(1)).warm_up_time(Duration::from_millis(1));
    for chains in [1_usize, 10, 100, 1_000] {
        for (engine, kind) in ENGINES {
            // One lane at a time takes as long for each chain, and local static batching as for its slowest chain.
            if (engine == "scalar" && chains > 10) || (engine == "local" && chains > 100) {
                continue;
            }
            let sampling = sampling_of(model, chains, draws, data);
            let options = options(kind);
            let once = || sampling.run(&options, &|| ()).expect("it runs").gradients;
            let counted = options.clone().stats(true);
            let draws = sampling.run(&counted, &|| ()).expect("it runs");
            describe(&format!("{name}/{engine}/{chains}"), &draws.stats);
            group.throughput(Throughput::Elements(once()));
            group.bench_function(BenchmarkId::new(engine, chains), |b| b.iter(|| black_box(once())));
        }
    }
    group.finish();
}

/// Every lane of the generator is a row.
fn synthetic_data() -> Inputs {
    let generator = Program::load("nuts/models/synthetic_logistic_data.ab").expect("the generator is right");
    let function = generator.function("observation").expect("the generator has it");
    let options = Options::default().seed(1);
    let results = function.run(&Inputs::new().lanes(10_000), &options).expect("it runs");
    let outputs = results.outputs().iter();
    outputs.fold(Inputs::new(), |data, (name, array): (_, &Array)| data.shared(name.clone(), array.clone()))
}

criterion_group!(machine, compile, superstep, empty_superstep, collatz, primitives, push_pop, fib);
criterion_group!(sampling, nuts_eight_schools, nuts_logistic);
criterion_main!(machine, sampling);
