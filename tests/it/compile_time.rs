//! How the time of compilation grows, counted in what passes and analyses look at: never by a clock.

use std::fmt::Write as _;

use autobatch::base::work;
use autobatch::pipeline::Passes;
use autobatch::program::Program;
use autobatch::types::{DType, Type};

/// A name, a program of a size, and that size.
type Shape = (&'static str, fn(usize) -> String, usize);

/// Programs that grow in one way, by name, and their size: such that a square or worse shows, twice the program still compiles
/// in a second or two without optimisation, and what is done up to a limit, such as inlining, has come to it.
const SHAPES: &[Shape] = &[
    ("assignments", assignments, 120),
    ("branches", branches, 120),
    ("loops", loops, 120),
    ("chain of functions", chain, 200),
    ("functions of arrays", arrays, 400),
];

/// Twice the program may take so much more: twice, and what a logarithm and rounding add.
const MOST_GROWTH: f64 = 2.3;

/// The body of `f` and how `main` calls it.
fn program(head: &str, line: &str, n: usize, rest: &str) -> String {
    format!("{head}\n{}{rest}", format!("    {line}\n").repeat(n))
}

fn assignments(n: usize) -> String {
    let head = "pub fn f(x: real, c: real, k: int) -> real {\n    let mut a = x;\n    let mut b = c;";
    program(head, "b = 0.5 * a + sin(b) * c;\n    a = 0.5 * b + sin(a) * c;", n, "    a + b\n}\n")
}

fn branches(n: usize) -> String {
    let head = "pub fn f(x: real, c: real, k: int) -> real {\n    let mut a = x;";
    program(head, "if a > c { a = a - log(a + 9.0); } else { a = a * 1.5 + c; }", n, "    a\n}\n")
}

fn loops(n: usize) -> String {
    let head = "pub fn f(x: real, c: real, k: int) -> real {\n    let mut a = x;";
    program(head, "for i in 0..k { a = 0.5 * a + c; if a > 3.0 { break; } }", n, "    a\n}\n")
}

fn chain(n: usize) -> String {
    let mut text = "fn f0(x: real, k: int) -> real { x }\n".to_owned();
    for i in 1..=n {
        let last = i - 1;
        let _ = write!(
            text,
            "fn f{i}(x: real, k: int) -> real {{\n    if x > 50.0 {{ return x; }}\n    let mut a = x;\n    let mut j = 0;\n    \
             while j < k {{ a = a * 0.9 + 0.1; j += 1; }}\n    f{last}(a, k) + 1.0\n}}\n"
        );
    }
    text + &format!("pub fn f(x: real, c: real, k: int) -> real {{ f{n}(x + c, k) }}\n")
}

fn arrays(n: usize) -> String {
    let mut text = String::new();
    let mut calls = String::new();
    for i in 0..n {
        let _ = write!(
            text,
            "fn g{i}(x: real[4], c: real) -> real[4] {{\n    let mut a = x;\n    let mut s = 0.0;\n    for i in 0..4 {{\n        \
             a[i] = a[i] * 0.9 + c;\n        s += a[i];\n    }}\n    if s > 3.0 {{\n        for i in 0..4 {{ a[i] = a[i] - 0.1 * s; }}\n    \
             }}\n    a\n}}\n"
        );
        let _ = writeln!(calls, "    a = g{i}(a, c);");
    }
    text + &format!(
        "pub fn f(x: real, c: real, k: int) -> real {{\n    let mut a = fill(x, 4);\n{calls}    sum(a)\n}}\n"
    )
}

const GRADIENT: &str = "pub fn main(x: real, c: real, k: int) -> real { grad(f)(x, c, k) }\n";
const VALUE: &str = "pub fn main(x: real, c: real, k: int) -> real { f(x, c, k) }\n";

/// What it takes to compile a program, its text included.
fn work_of(text: &str) -> u64 {
    let before = work::done();
    let program = Program::compile(text).expect("a program");
    let function = program.function("main").expect("it has one");
    let types = [DType::Real, DType::Real, DType::Int].map(Type::scalar).to_vec();
    function.compile(types, &Passes::default()).expect("it compiles");
    work::done() - before
}

#[test]
fn twice_the_program_takes_hardly_more_than_twice_the_work() {
    let mut told = String::new();
    let mut bad = Vec::new();
    for (name, made, size) in SHAPES {
        for (what, main) in [("value", VALUE), ("gradient", GRADIENT)] {
            // Functions that are called once are differentiated as one, in which each is copied with all below it.
            if (*name, what) == ("chain of functions", "gradient") {
                continue;
            }
            let [once, twice] = [*size, 2 * size].map(|n| work_of(&(made(n) + main)));
            let growth = twice as f64 / once as f64;
            let _ = writeln!(told, "{name}, {what}, {size}: {once}, twice that: {twice}, {growth:.2}");
            if growth > MOST_GROWTH {
                bad.push(format!("{name}, {what}"));
            }
        }
    }
    println!("{told}");
    assert!(bad.is_empty(), "more than {MOST_GROWTH} times: {bad:?}\n{told}");
}
