//! The control programs as one would write them for one input, in Rust and in C, and the twins of `benches/ordinary`: lanes
//! one after the other, a part for each thread.

#[path = "../../protocol.rs"]
mod protocol;

use std::hint::black_box;
use std::time::Instant;

use protocol::{Done, Job, fail, numbers, serve};

/// Declares functions of C, `NAME_c`, and a table of them by their names.
macro_rules! in_c {
    ($($name:ident $function:ident),* $(,)?) => {
        unsafe extern "C" {
            $(safe fn $function(n: i64) -> i64;)*
        }
        const IN_C: &[(&str, fn(i64) -> i64)] = &[$((stringify!($name), |n| $function(n))),*];
    };
}
in_c! {
    collatz collatz_c,
    fib fib_c,
    ackermann ackermann_c,
    automaton automaton_c,
    bellman_ford bellman_ford_c,
    bisection bisection_c,
    edit_distance edit_distance_c,
    event_queue event_queue_c,
    gauss gauss_c,
    hash_table hash_table_c,
    insertion_sort insertion_sort_c,
    knapsack knapsack_c,
    life life_c,
    mandelbrot mandelbrot_c,
    merge_sort merge_sort_c,
    miller_rabin miller_rabin_c,
    queens queens_c,
    quicksort quicksort_c,
    range_queries range_queries_c,
    ray_marcher ray_marcher_c,
    rk45 rk45_c,
    sieve sieve_c,
    sudoku sudoku_c,
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
    let model = job.text("model");
    let in_c = IN_C.iter().find(|(name, _)| engine == "c" && *name == model);
    let work = |part: &[i64], runs: usize| match (model, in_c) {
        (_, Some((_, function))) => run(part, runs, function),
        ("collatz", None) if engine == "rust" => run(part, runs, collatz),
        ("fib", None) if engine == "rust" => run(part, runs, fib),
        _ => fail(&format!("`{model}` is not written in `{engine}` here")),
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
        ", C -O2 (collatz and fib -fno-inline, others -march=native) by ",
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
