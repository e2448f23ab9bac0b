//! Compile time by criterion, from the text to the plan, in groups named `compile/<family>`: programs that grow in one
//! way, each twice as large as the one before, and generated programs of 5,000 lines; the value and its gradient.
//! `cargo bench --bench compile -- chain` runs one. `tests/it/compiler/compile_time.rs` holds how it grows to n log n,
//! by counts.

mod families;

use std::hint::black_box;
use std::time::Duration;

use autobatch::pipeline::Passes;
use autobatch::program::Program;
use autobatch::types::{DType, Type};
use criterion::{BenchmarkId, Criterion, SamplingMode, criterion_group, criterion_main};
use families::{Family, GRADIENT, VALUE};

/// Each with the largest size. A line is what it grows by, but for functions.
const FAMILIES: &[(Family, usize)] = &[
    (("assignments", families::assignments), 4_000),
    (("lets", families::lets), 4_000),
    (("branches", families::branches), 2_000),
    (("else ifs", families::else_ifs), 2_000),
    (("terms", families::terms), 2_000),
    (("loops", families::loops), 1_000),
    (("chain", families::chain), 800),
    (("chain, plain", families::plain_chain), 4_000),
    (("recursion over dimensions", families::dimensions), 1_000),
    (("functions of arrays", families::arrays), 400),
    (("rows", families::rows), 1_000),
    (("sums over rows", families::row_sums), 1_000),
    (("arguments", families::arguments), 1_000),
    (("comprehension", families::comprehension), 1_000),
];

/// Generated programs of about 5,000 lines.
const LARGE: &[(Family, usize)] = &[
    (("assignments", families::assignments), 5_000),
    (("branches", families::branches), 5_000),
    (("loops", families::loops), 5_000),
    (("chain", families::chain), 800),
    (("chain, plain", families::plain_chain), 5_000),
    (("functions of arrays", families::arrays), 400),
    (("mixed", families::mixed), 5_000),
];

/// From the text to the plan.
fn compile(text: &str) -> usize {
    let program = Program::compile(text).expect("a program");
    let function = program.function("main").expect("it has one");
    let types = [DType::Real, DType::Real, DType::Int].map(Type::scalar).to_vec();
    let compiled = function.compile(types, &Passes::default()).expect("it compiles");
    compiled.plan.body.blocks.len()
}

fn measure(c: &mut Criterion, group: &str, made: fn(usize) -> String, sizes: &[usize]) {
    let mut group = c.benchmark_group(group);
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_secs(1));
    for (what, main) in [("value", VALUE), ("gradient", GRADIENT)] {
        for size in sizes {
            let text = made(*size) + main;
            group.bench_function(BenchmarkId::new(what, size), |b| b.iter(|| black_box(compile(&text))));
        }
    }
    group.finish();
}

fn growing(c: &mut Criterion) {
    for ((name, made), most) in FAMILIES {
        measure(c, &format!("compile/{name}"), *made, &[most / 4, most / 2, *most]);
    }
}

fn large(c: &mut Criterion) {
    for ((name, made), size) in LARGE {
        measure(c, &format!("compile/5,000 lines/{name}"), *made, &[*size]);
    }
}

criterion_group!(benches, large, growing);
criterion_main!(benches);
