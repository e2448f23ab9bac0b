//! The control programs as one would write them for one input, in Rust and in C: lanes one after the other, a part for each
//! thread.

#[path = "../../protocol.rs"]
mod protocol;

use std::hint::black_box;
use std::time::Instant;

use protocol::{Done, Job, fail, numbers, serve};

unsafe extern "C" {
    safe fn collatz_c(n: i64) -> i64;
    safe fn fib_c(n: i64) -> i64;
}

fn collatz(n: i64) -> i64 {
    let (mut x, mut steps) = (n, 0);
    while x != 1 {
        x = if x % 2 == 0 { x / 2 } else { 3 * x + 1 };
        steps += 1;
    }
    steps
}

fn fib(n: i64) -> i64 {
    if n < 3 { 1 } else { fib(n - 1) + fib(n - 2) }
}

fn main() {
    let job = Job::read();
    let lanes: Vec<i64> = numbers(&job.data()["n"]).into_iter().map(|n| n as i64).collect();
    let threads = job.count("threads");
    let engine = job.text("engine").to_owned();
    let work = |part: &[i64], runs: usize| match (job.text("model"), engine.as_str()) {
        ("collatz", "rust") => run(part, runs, collatz),
        ("collatz", "c") => run(part, runs, |n| collatz_c(n)),
        ("fib", "rust") => run(part, runs, fib),
        ("fib", "c") => run(part, runs, |n| fib_c(n)),
        (model, engine) => fail(&format!("`{model}` is not written in `{engine}` here")),
    };
    let repeat = |runs: usize| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for part in lanes.chunks(lanes.len().div_ceil(threads).max(1)) {
                scope.spawn(|| work(part, runs));
            }
        });
        start.elapsed().as_secs_f64()
    };
    repeat(1);
    // The harness knows how much work the inputs are.
    let version = concat!(
        "native Rust -O3 -C target-cpu=native by ",
        env!("RUST_COMPILER"),
        ", C -O2 -fno-inline by ",
        env!("C_COMPILER")
    );
    serve(version, |runs, _| Done { useful: 0, seconds: repeat(runs), states: None });
}

fn run(part: &[i64], runs: usize, of: impl Fn(i64) -> i64) {
    for _ in 0..runs {
        for n in part {
            black_box(of(black_box(*n)));
        }
    }
}
