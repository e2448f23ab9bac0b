//! Straight code (`--engine scalar --codegen cc`) gives every lane the bits of the steps, whatever stands between two
//! blocks: calls, stacks, tapes, draws, attempts, traps, blocks that no function does, and limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use autobatch::backend::cpu::codegen::{Code, Generated, Native, Turns};
use autobatch::backend::cpu::pc;
use autobatch::parts::StreamId;
use autobatch::program::{Codegen, Engine, Inputs, Options, Program};
use autobatch::run::{NoMemory, Outcome, Record, Settings, Sink, TrapKind};
use autobatch::types::Precision;

use super::change_over;
use super::machine::{Said, essence};
use crate::tools::observed;

const SOURCE: &str = "
/// Attempts in a recursion, each with stacks of its own, some of which fail deep down.
pub fn tried(n: int) -> real { climb(n, 0.5 * n) }
fn climb(n: int, x: real) -> real {
    if n <= 0 { return x; }
    let below = attempt(|k: int| {
        let u = random_uniform();
        let deep = climb(k - 1, x + u);
        assert(deep < 3.5 + u, \"too high\");
        deep + u
    })(n);
    let own = if is_nan(below) { -1.0 * n } else { below };
    own + 0.5 * x
}

/// Records and prints, which no function writes, between blocks that one does, and messages with values.
pub fn told(n: int) -> real {
    let mut x = 0.25 * n;
    for i in 0..n {
        x = x + visit(i, x);
        if i % 3 == 1 { emit step(i, x); }
        if i % 4 == 2 { print(\"at {i}: {x}\"); }
        assert(x < 60.0, \"{x} is too large\");
    }
    x
}
fn visit(i: int, x: real) -> real { if i <= 0 { random_normal() } else { 0.5 * visit(i - 2, x) + visit(i - 3, -x) } }

/// Functions of many elements, of arrays that the function has, of shared ones, and of one element for all; in place too.
pub fn mapped(n: int) -> real {
    let same = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5];
    let mut v = [0.1 * n + 0.3 * i for i in 0..7];
    for i in 0..n {
        v = exp(-v) + v ^ same + (0.5 + 0.1 * i) ^ v;
        let w = log(v);
        v = log1p(lgamma(same + w) ^ 2.0) + w;
    }
    grad(|x| sum(x ^ same + sin(x) * log_inv_logit(x)))(v)[n % 7] + sum(v)
}

/// Products of many small matrices, unrolled: the C compiler makes vectors of one lane's elements.
pub fn multiplied(n: int) -> real {
    let all = [
        {
            let mut a = [1.0 / (1 + i + 3 * j + n + k) for i in 0..3, j in 0..3];
            let mut rest = n;
            while rest > 0 {
                a = a @ a;
                rest = rest / 2;
            }
            (3 + k) * sum(reshape(a, 9))
        }
        for k in 0..9
    ];
    all[n % 9] - 0.5 * sum(all)
}

/// Messages with values of each kind, in lanes that trap and in attempts.
pub fn refused(n: int) -> real {
    let v = [0.25 * n, -1.0 / 3.0 * n];
    let tried = attempt(|k: int| {
        assert(k < 4, \"{k} of {v}, and {2 * k}\");
        1.0 * k
    })(n);
    let x = if is_nan(tried) { 0.5 } else { tried };
    assert(n != 6, \"{n} at {x}: {v[1]} is refused, of {[n, 2 * n, 3]}\");
    x + sum(v)
}

/// Factors, triangular solves and products of matrices, and their derivatives, which kernels of the machine compute.
pub fn factored(n: int) -> real {
    let f = |x: real[6]| {
        let a = [(if i == j { 7.0 } else { 0.0 }) + exp(-(x[i] - x[j]) ^ 2.0) for i in 0..6, j in 0..6];
        let l = cholesky_factor(a);
        let b = [sin(x[i] + 0.3 * j) for i in 0..6, j in 0..9];
        let z = solve_lower(l, l @ b) + transpose(l) @ solve_lower(l, b);
        sum(reshape(z, 54)) + dot(x, solve_lower(l, x)) + l[n % 6, 0]
    };
    let mut x = [0.1 * n + 0.2 * i for i in 0..6];
    for i in 0..n % 4 {
        let slope = grad(f)(x);
        x = x + 0.01 * slope + 0.001 * jvp(f)(x, slope).1;
    }
    f(x) + sum(x)
}

/// Derivatives by an array of one number, of which a place is replaced and added to.
pub fn single(n: int) -> real {
    let mut y = [0.1 * n + 0.3];
    for i in 0..n {
        let slope = jacobian(|v: real[1]| [v[0] * v[0] * exp(-v[0])])(y);
        y = y - 0.1 * (slope @ y) + grad(|v: real[1]| sin(v[0]) * v[0])(y);
    }
    y[0]
}

/// Arrays that stay in buffers, elements at indices of the lane, and indices out of range.
pub fn moved(n: int) -> real {
    let mut v = [0.5 * i for i in 0..300];
    let mut w = [1, 2, 3, 4, 5];
    let mut i = n;
    while i < 300 {
        v[i] = v[(i * 7) % 300] + 1.0;
        w[i % 5] = w[(i + n) % 5] + i;
        i += 1 + w[0] % 7;
    }
    v[299 - n] + sum(v) + 1.0 * w[n]
}

/// Sums and dot products of a part of a block, of one, of some and of many, several of each, which are added up late: of
/// arrays that change after them, and of parts of arrays.
pub fn added(n: int) -> real {
    let x = [sin(0.37 * i + n) for i in 0..700];
    let y = [0.5 + 0.01 * i for i in 0..700];
    let part = x[30..70];
    let f = |b: real[3]| {
        let z = (y - b[0] - b[1] * x) / exp(b[2]);
        let near = sum(part * b[0]) + dot(part, x[100..140]) - sum(x[0..256] * b[2]);
        near - 0.5 * dot(z, z) - 700.0 * b[2] + sum(z * x) + dot(x[1..257], z[3..259]) + dot(x[1..258], z[3..260])
    };
    let mut b = [0.1, 0.2, 0.3];
    for i in 0..n { b = b + 0.0001 * grad(f)(b); }
    let mut w = x;
    let before = sum(w);
    w[3] = 10.0 * n;
    let after = sum(w);
    w = 2.0 * w;
    let long = [0.1 * i - 3.0 * b[i % 3] for i in 0..2600];
    let longer = [0.3 - 0.001 * i * b[1] for i in 0..4096];
    let many = sum(long) + dot(long, long) + sum(longer) - dot(longer, longer) + sum(longer * longer * longer);
    f(b) + before * after + dot(w, y) + b[n % 3] + many
}

/// Two functions of the same numbers, in either order, of few and of many.
pub fn classified(n: int) -> real {
    let x = [sin(0.37 * i + n) for i in 0..300];
    let f = |b: real[2]| {
        let z = b[0] + b[1] * x;
        let few = [b[0], b[1], 2.0, b[0] * b[1], 0.1, -5.0, 30.0];
        sum(0.3 * z - log1p_exp(z)) + sum(inv_logit(few) * log1p_exp(few))
    };
    let mut b = [0.1, 0.2];
    for i in 0..n { b = b + 0.001 * grad(f)(b); }
    f(b)
}

/// Sums of logarithms, with the slopes of one of them at once, of many elements and of few.
pub fn multiplied_out(n: int) -> real {
    let x = [sin(0.37 * i + n) for i in 0..300];
    let f = |b: real[2]| {
        let z = b[0] + b[1] * x;
        sum_log1p_exp(z) - sum_log(1.5 + b[1] * x) + sum_log([b[0] + 3.0, 2.0, b[1] + 1.0]) + sum_log1p_exp(b)
    };
    let mut b = [0.1, 0.2];
    let mut total = 0.0;
    for i in 0..n {
        let (value, slopes) = value_and_grad(f)(b);
        total += value;
        b = b - 0.001 * slopes;
    }
    total + f(b)
}

/// A matrix that is multiplied from both sides.
pub fn fitted(n: int) -> real {
    let x = [sin(0.1 * i * (j + 1)) for i in 0..600, j in 0..5];
    let f = |b: real[5]| {
        let z = 0.5 - x @ b;
        -0.5 * dot(z, z)
    };
    let mut b = [0.1 * n, 0.2, 0.3, 0.4, 0.5];
    for i in 0..n { b = b + 0.0001 * grad(f)(b); }
    f(b) + sum(x @ b)
}

/// Arrays of draws of both kinds, longer than what is made at once, and a draw behind them.
pub fn drawn_many(n: int) -> real {
    let mut x = 0.0;
    for k in 0..n + 2 {
        let z = [random_normal() for i in 0..130];
        let u = [random_uniform() for i in 0..7];
        let last = random_uniform();
        x = 0.5 * x + sum(z[i] * (i + n) for i in 0..130) + z[64] * z[129] - u[6] * u[0] + last;
        assert(x != n);
    }
    x
}

/// Elements at many places, one of which is out of range for some lanes.
pub fn placed(n: int) -> real {
    let mut v = [0.5 * i + n for i in 0..40];
    let at = [(7 * i) % 40 for i in 0..100];
    let f = |x: real[40]| sum(x[at[i]] * x[at[i]] for i in 0..100) + x[3];
    for i in 0..n { v = v + 0.1 * grad(f)(v); }
    let mut beyond = at;
    if n == 4 { beyond[61] = 40; beyond[70] = -1; }
    f(v) + sum([v[beyond[i]] for i in 0..100])
}
";

/// Runs a function by steps and by straight code, on one thread and two; the outcomes of the steps.
fn agree(source: &str, name: &str, most: i64, change: impl Fn(Settings) -> Settings) -> Option<Outcome> {
    if observed::codegen() == Codegen::Off {
        return None;
    }
    let program = Program::compile(source).expect("it compiles");
    let mut last = None;
    for precision in [Precision::F64, Precision::F32] {
        let options = Options::default().precision(precision).seed(3).codegen(Codegen::Off);
        let inputs = Inputs::new().lane("n", (0..13).map(|lane| lane * 5 % most).collect::<Vec<i64>>());
        let bound = program.function(name).unwrap().bind(&inputs, &options).expect("it binds");
        let compiled = bound.compiled();
        let code = Code::straight(&compiled.units, &compiled.plan);
        assert!(code.straight.is_some(), "{name}: {}", code.text);
        let native = Native::new(code, precision, None).expect("the generated C compiles");
        for (threads, width) in [(1, 1), (2, 1), (1, 5), (2, 5)] {
            let settings = change(options.get_settings().clone().threads(threads).shard_lanes(width));
            let run = |generated| {
                let said = Said::default();
                let outcome = pc::run_with(&compiled.plan, generated, bound.inputs(), &settings, &said);
                (outcome, said.take())
            };
            // A lane of several moves to a shard of its own and back, visit after visit.
            let turns = Turns::new(None, &native, [1, 1]);
            let generated = if width == 1 { Generated::Now(&native) } else { Generated::InTurns(&turns) };
            let (steps, straight) = (run(Generated::Nothing), run(generated));
            assert_eq!(essence(&straight), essence(&steps), "{name}, {settings:?}");
            let ran =
                if width == 1 { straight.0.stats.supersteps < steps.0.stats.supersteps } else { turns.changes() > 0 };
            assert!(ran, "{name}: straight code did not run");
            last = Some(steps.0);
        }
    }
    last
}

#[test]
fn straight_code_has_the_bits_of_the_steps() {
    for (name, most) in [("fib", 9), ("collatz", 11), ("saved", 8), ("gradient", 7)] {
        agree(change_over::SOURCE, name, most, |settings| settings);
    }
    for (name, most) in [
        ("tried", 9),
        ("told", 12),
        ("mapped", 8),
        ("multiplied", 6),
        ("single", 7),
        ("refused", 9),
        ("factored", 9),
        ("moved", 7),
        ("added", 5),
        ("classified", 6),
        ("multiplied_out", 6),
        ("fitted", 6),
        ("placed", 6),
        ("drawn_many", 3),
    ] {
        agree(SOURCE, name, most, |settings| settings);
    }
}

#[test]
fn all_blocks_have_a_text() {
    let program = Program::compile(SOURCE).expect("it compiles");
    for name in [
        "multiplied",
        "single",
        "refused",
        "factored",
        "moved",
        "added",
        "classified",
        "multiplied_out",
        "fitted",
        "placed",
        "drawn_many",
    ] {
        let inputs = Inputs::new().lane("n", vec![1_i64]);
        let bound = program.function(name).unwrap().bind(&inputs, &Options::default()).expect("it binds");
        let compiled = bound.compiled();
        let code = Code::straight(&compiled.units, &compiled.plan);
        let blocks = code.straight.expect("there is a function").region.blocks.len();
        assert_eq!(blocks, compiled.plan.body.blocks.len(), "{name}: {}", code.text);
        for (of, call) in [
            ("classified", "c->twins("),
            ("multiplied_out", "c->sum_and_map("),
            ("fitted", "c->kernel("),
            ("drawn_many", "c->random("),
        ] {
            assert!(of != name || code.text.contains(call), "{name}: {}", code.text);
        }
    }
}

#[test]
fn limits_trap_the_same_lanes() {
    let trapped = |outcome: Option<Outcome>, kind| {
        let traps = outcome.map(|outcome| outcome.traps.iter().filter(|trap| trap.kind == kind).count());
        assert_ne!(traps, Some(0), "{kind:?}: no lane traps");
    };
    let few_calls = |settings: Settings| settings.max_stack_depth(3);
    trapped(agree(change_over::SOURCE, "fib", 9, few_calls), TrapKind::StackLimit);
    trapped(agree(SOURCE, "tried", 9, few_calls), TrapKind::StackLimit);
    let short_tapes = |settings: Settings| settings.max_tape_depth(3);
    trapped(agree(change_over::SOURCE, "gradient", 7, short_tapes), TrapKind::TapeLimit);
}

/// Stops the run as soon as a lane prints.
struct Stopper(Arc<AtomicBool>);

impl Sink for Stopper {
    fn emit(&self, _: usize, _: StreamId, _: &dyn Record) -> Result<(), NoMemory> {
        Ok(())
    }
    fn print(&self, _: usize, _: String) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn straight_code_hears_that_it_is_to_stop() {
    if observed::codegen() == Codegen::Off {
        return;
    }
    // Neither comes to an end in the time of a test: a loop, which jumps back, and a recursion, which only calls.
    let program = Program::compile(
        "
        pub fn looped(n: int) -> int {
            print(\"it runs\");
            let mut m = n;
            while m >= 0 { m = (7 * m + 1) % 1000; }
            m
        }
        pub fn called(n: int) -> int { print(\"it runs\"); branched(n + 90) }
        fn branched(n: int) -> int { if n < 3 { 1 } else { (branched(n - 1) + branched(n - 2)) % 1000 } }
        ",
    );
    let program = program.expect("it compiles");
    for name in ["looped", "called"] {
        let options = Options::default().seed(3).codegen(Codegen::Off);
        let inputs = Inputs::new().lane("n", vec![7_i64, 8]);
        let bound = program.function(name).unwrap().bind(&inputs, &options).expect("it binds");
        let code = Code::straight(&bound.compiled().units, &bound.compiled().plan);
        let native = Native::new(code, Precision::F64, None).expect("the generated C compiles");
        // One is alone, and the other waits, or was not begun.
        let turns = [0, 1].map(|groups| Turns::new(None, &native, [groups, usize::MAX]));
        let [first, later] = turns.each_ref().map(|turns| (Generated::InTurns(turns), 2));
        for (generated, width) in [(Generated::Now(&native), 1), first, later] {
            let stop = Arc::new(AtomicBool::new(false));
            let settings = options.get_settings().clone().stop(Arc::clone(&stop)).threads(1).shard_lanes(width);
            let sink = Stopper(stop);
            let outcome = pc::run_with(&bound.compiled().plan, generated, bound.inputs(), &settings, &sink);
            let kinds: Vec<TrapKind> = outcome.traps.iter().map(|trap| trap.kind).collect();
            assert_eq!(kinds, [TrapKind::Interrupted; 2], "{name}");
        }
    }
}

#[test]
fn a_run_that_counts_says_that_straight_code_does_not() {
    if observed::codegen() == Codegen::Off {
        return;
    }
    let program =
        Program::compile("pub fn f(n: int) -> int { if n < 1 { 1 } else { f(n - 1) } }").expect("it compiles");
    let options = Options::default().codegen(Codegen::Cc).engine(Engine::Scalar);
    let run = |options: &Options| {
        let run = program.function("f").unwrap().run(&Inputs::new().lane("n", vec![3_i64]), options).expect("it runs");
        run.stats().code.as_ref().map(ToString::to_string)
    };
    assert_eq!(run(&options), None);
    let said = run(&options.stats(true)).expect("it says so");
    assert!(said.contains("straight code counts nothing"), "{said}");
}
