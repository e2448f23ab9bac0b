//! The benchmarks of Agarwal and Ganichev (*Auto-vectorizing TensorFlow graphs*, 2019), each against its own loop: `batch` is
//! the machine over all lanes, `one by one` the machine with one lane in a shard, `scalar` the reference interpreter, `loop`
//! the machine with comprehensions as loops. `cargo bench --bench pfor`; `benches/RESULTS.md` says how to read it.

use std::hint::black_box;
use std::time::Duration;

use autobatch::bench::bound::{Gradients, quickest};
use autobatch::program::{Bound, Engine, Inputs, Options, Program};
use autobatch::run::NoSink;
use autobatch::types::{Array, ArrayData};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ndarray::Array2;

const PROJECTION: &str = include_str!("pfor/projection.ab");
const MLP: &str = include_str!("pfor/mlp.ab");
const LSTM: &str = include_str!("pfor/lstm.ab");
const RAGGED: &str = include_str!("../examples/ragged_lstm.ab");

/// A fixed spread of reals in (-1, 1): no generator is needed.
fn reals(shape: &[usize], scale: f64) -> Array {
    let n = shape.iter().product::<usize>() as u64;
    let value = |i: u64| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
    Array::new(shape.iter().copied(), ArrayData::Real((1..=n).map(|i| scale * value(i)).collect()))
}

/// A fixed spread of ints in `0..below`.
fn ints(n: usize, below: u64) -> Vec<i64> {
    (1..=n as u64).map(|i| ((i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) % below) as i64).collect()
}

/// The ways of running, by name.
fn ways() -> [(&'static str, Options); 4] {
    let with = |engine: Engine, shard: usize, vectorize: bool| {
        let mut options = Options::default().engine(engine).threads(1).shard_lanes(shard);
        if !vectorize {
            options = options.without_pass("vectorize").expect("there is such a pass");
        }
        options
    };
    [
        ("batch", with(Engine::Pc, 0, true)),
        ("one by one", with(Engine::Pc, 1, true)),
        ("scalar", with(Engine::Scalar, 0, true)),
        ("loop", with(Engine::Pc, 0, false)),
    ]
}

fn bind(source: &str, entry: &str, inputs: &Inputs, options: &Options) -> Bound {
    let program = Program::compile(source).expect("the program is right");
    program.function(entry).expect("the function is there").bind(inputs, options).expect("the inputs fit")
}

fn measure(
    group: &mut BenchmarkGroup<'_, WallTime>,
    source: &str,
    entry: &str,
    sizes: &[usize],
    of: impl Fn(usize) -> Inputs,
    wanted: &[&str],
    each: u64,
) {
    group.sample_size(10).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(200));
    for lanes in sizes {
        let inputs = of(*lanes);
        group.throughput(Throughput::Elements(*lanes as u64 * each));
        for (name, options) in ways().into_iter().filter(|(name, _)| wanted.contains(name)) {
            let bound = bind(source, entry, &inputs, &options);
            group.bench_function(BenchmarkId::new(name, lanes), |b| {
                b.iter(|| {
                    let results = bound.run(&options, &NoSink).expect("the run starts");
                    assert!(results.traps().is_empty(), "no lane traps: {:?}", results.traps().first());
                    black_box(results)
                });
            });
        }
    }
}

/// 768 to 768: rows a second.
fn projection(c: &mut Criterion) {
    let mut group = c.benchmark_group("pfor/projection 768x768");
    let inputs =
        |lanes: usize| Inputs::new().lane("x", reals(&[lanes, 768], 1.0)).shared("w", reals(&[768, 768], 0.05));
    measure(&mut group, PROJECTION, "project", &[1, 128, 1024], inputs, &["batch", "one by one", "scalar"], 1);
    group.finish();
}

/// Gradients of a perceptron with 64 inputs, 64 hidden units and 10 classes: examples a second.
fn mlp(c: &mut Criterion) {
    let mut group = c.benchmark_group("pfor/mlp gradients 64-64-10");
    let inputs = |lanes: usize| {
        Inputs::new()
            .lane("x", reals(&[lanes, 64], 1.0))
            .lane("class", ints(lanes, 10))
            .shared("w1", reals(&[64, 64], 0.2))
            .shared("b1", reals(&[64], 0.1))
            .shared("w2", reals(&[10, 64], 0.2))
            .shared("b2", reals(&[10], 0.1))
    };
    measure(&mut group, MLP, "gradients", &[1, 128, 1024], inputs, &["batch", "one by one", "scalar"], 1);
    group.finish();
    // The examples inside of one lane: a comprehension over them.
    let mut group = c.benchmark_group("pfor/mlp comprehension of 128 gradients");
    let n = 128;
    let inputs = |lanes: usize| {
        let class = Array::new([lanes, n], ArrayData::Int(ints(lanes * n, 10)));
        Inputs::new()
            .lane("x", reals(&[lanes, n, 64], 1.0))
            .lane("class", class)
            .shared("w1", reals(&[64, 64], 0.2))
            .shared("b1", reals(&[64], 0.1))
            .shared("w2", reals(&[10, 64], 0.2))
            .shared("b2", reals(&[10], 0.1))
    };
    measure(&mut group, MLP, "batch", &[1, 8], inputs, &["batch", "loop", "scalar"], n as u64);
    group.finish();
}

const STEPS: usize = 16;
const UNITS: usize = 32;

fn lstm_inputs(lanes: usize) -> Inputs {
    Inputs::new()
        .lane("xs", reals(&[lanes, STEPS, UNITS], 1.0))
        .shared("start", reals(&[UNITS], 0.1))
        .shared("wx", reals(&[4 * UNITS, UNITS], 0.2))
        .shared("wh", reals(&[4 * UNITS, UNITS], 0.2))
        .shared("b", reals(&[4 * UNITS], 0.1))
}

/// 16 steps, 32 inputs and 32 units: gradients of examples, rows of the jacobian, a second.
fn lstm(c: &mut Criterion) {
    let mut group = c.benchmark_group("pfor/lstm gradients 16x32");
    let inputs = |lanes: usize| lstm_inputs(lanes).lane("target", reals(&[lanes, UNITS], 0.5));
    measure(&mut group, LSTM, "gradients", &[1, 128], inputs, &["batch", "one by one", "scalar"], 1);
    group.finish();
    let mut group = c.benchmark_group("pfor/lstm jacobian rows 16x32");
    measure(&mut group, LSTM, "jacobian_rows", &[1, 16], lstm_inputs, &["batch", "loop", "scalar"], UNITS as u64);
    group.finish();
}

/// Inference over sequences of 1 to 100 steps with 32 inputs and 32 units: steps a second that sequences have. `padded` runs all
/// sequences for 100 steps.
fn ragged(c: &mut Criterion) {
    let mut group = c.benchmark_group("pfor/ragged lstm 1..100");
    group.sample_size(10).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(200));
    // One sequence a lane of one shard; and a queue, from which lanes that are done take the next sequence.
    for (name, lanes) in [("at once", 256_usize), ("queue", 2048)] {
        let lengths: Vec<i64> = ints(lanes, 100).iter().map(|t| t + 1).collect();
        let inputs = |lengths: &[i64]| {
            Inputs::new()
                .lane("x", reals(&[lanes, 100, UNITS], 1.0))
                .lane("t", lengths.to_vec())
                .shared("wx", reals(&[4 * UNITS, UNITS], 0.2))
                .shared("wh", reals(&[4 * UNITS, UNITS], 0.2))
                .shared("b", reals(&[4 * UNITS], 0.1))
        };
        group.throughput(Throughput::Elements(lengths.iter().map(|t| *t as u64).sum()));
        let of = |engine: Engine, shard: usize| Options::default().engine(engine).threads(1).shard_lanes(shard);
        let padded = vec![100; lanes];
        let mut cases = vec![("batch", &lengths, of(Engine::Pc, 256)), ("padded", &padded, of(Engine::Pc, 256))];
        if name == "at once" {
            cases.push(("one by one", &lengths, of(Engine::Pc, 1)));
            cases.push(("scalar", &lengths, of(Engine::Scalar, 0)));
        }
        for (way, lengths, options) in cases {
            let bound = bind(RAGGED, "final_state", &inputs(lengths), &options);
            group.bench_function(BenchmarkId::new(format!("{name}, {way}"), lanes), |b| {
                b.iter(|| black_box(bound.run(&options, &NoSink).expect("the run starts")));
            });
        }
    }
    group.finish();
}

/// 10,000 observations of 100 covariates in the words of the language.
const LOGISTIC: &str = "
    fn log_density[n, d](w: real[d], shared x: real[n, d], shared y: int[n]) -> real {
        normal_lpdf(w, 0.0, 1.0) + sum(bernoulli_logit_lpmf(y[i], dot(x[i], w)) for i in 0..n)
    }
    pub fn gradient[n, d](w: real[d], shared x: real[n, d], shared y: int[n]) -> (real, real[d]) {
        value_and_grad(log_density)(w, x, y)
    }";
const ROWS: usize = 10_000;
const COLUMNS: usize = 100;

/// Gradients a second, beside the bound.
fn logistic(c: &mut Criterion) {
    let mut group = c.benchmark_group("pfor/logistic gradient 10000x100");
    let inputs = |lanes: usize| {
        Inputs::new()
            .lane("w", reals(&[lanes, COLUMNS], 0.1))
            .shared("x", reals(&[ROWS, COLUMNS], 1.0))
            .shared("y", ints(ROWS, 2))
    };
    let sizes = [1, 10, 100, 1_000];
    measure(&mut group, LOGISTIC, "gradient", &sizes, inputs, &["batch"], 1);
    measure(&mut group, LOGISTIC, "gradient", &[1, 10], inputs, &["loop", "scalar"], 1);
    let matrix = |array: Array, columns: usize| {
        let ArrayData::Real(values) = array.data else { unreachable!("reals") };
        Array2::from_shape_vec((values.len() / columns, columns), values).expect("the shape fits")
    };
    let x = matrix(reals(&[ROWS, COLUMNS], 1.0), COLUMNS);
    for lanes in sizes {
        let weights = matrix(reals(&[COLUMNS, lanes], 0.1), lanes);
        let mut bound = Gradients::new(weights.view(), quickest(&x.view(), &weights.view())[0]);
        group.throughput(Throughput::Elements(lanes as u64));
        group.bench_function(BenchmarkId::new("bound", lanes), |b| b.iter(|| bound.run(&x.view())));
    }
    group.finish();
}

criterion_group!(products, projection, logistic);
criterion_group!(networks, mlp, lstm, ragged);
criterion_main!(products, networks);
