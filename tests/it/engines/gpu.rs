//! What a GPU does that no other back end does: lanes that are taken up one after the other, stacks without room, records
//! for which lanes wait, and what it refuses. That every program gives the same bits there is tested where programs are.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use autobatch::mcmc::sampling::{Job, Sampling};
use autobatch::program::{Codegen, Engine, Inputs, Options, Program, device};
use autobatch::run::{NoSink, Settings, TrapKind};
use autobatch::types::{Array, Precision};

use crate::tools::data::shared_inputs;
use crate::tools::observed::{Configuration, difference, gpu};

fn on_gpu(options: &Options) -> Option<Options> {
    Some(options.clone().engine(Engine::Pc).codegen(Codegen::Off).backend(gpu()?))
}

/// Whether there is a GPU, where the log of records holds all that is said here.
fn has_room() -> bool {
    std::env::var_os("AUTOBATCH_TEST_DEVICE").is_some()
}

/// Runs `main` on the interpreter, on a GPU, and on three that share the lanes; gives how often it was started on one.
fn agree(source: &str, inputs: &Inputs) -> Option<u64> {
    let program = Program::compile(source).unwrap();
    let function = program.function("main").unwrap();
    let one = on_gpu(&Options::default())?;
    let several = one.clone().backend(device(if has_room() { "cuda:all" } else { "cuda-host:3" }).unwrap());
    let wanted = Configuration::scalar(&Options::default()).observe(&function, inputs).unwrap();
    for options in [&one, &several] {
        let bound = function.bind(inputs, options).unwrap();
        let found = Configuration::observe_bound(&bound, options).unwrap();
        if let Some(why) = difference(&wanted, &found) {
            panic!("{}: {why}", options.get_backend().name());
        }
    }
    let bound = function.bind(inputs, &one).unwrap();
    let device = bound.run(&one, &NoSink).unwrap().stats().device.clone().expect("a GPU tells what it did");
    Some(device.launches)
}

#[test]
fn lanes_take_their_turns() {
    let source = "pub fn main(n: int) -> int {
        let mut m = n; let mut steps = 0;
        while m > 1 { if m % 2 == 0 { m = m / 2; } else { m = 3 * m + 1; } steps += 1; }
        steps
    }";
    let inputs = Inputs::new().lane("n", (1..=1000).collect::<Vec<i64>>());
    assert!(agree(source, &inputs).is_none_or(|launches| launches == 1));
}

#[test]
fn what_was_said_before_a_stack_was_full_is_said_once() {
    // Calls are 300 deep, far more than stacks have room for to begin with.
    let source = "fn down(n: int) -> int {
        emit said(depth: n);
        if n % 50 == 0 { print(\"at {n}\"); }
        if n == 0 { 0 } else { let below = down(n - 1); below + n % 7 }
    }
    pub fn main(n: int) -> int { down(n) }";
    agree(source, &Inputs::new().lane("n", vec![0_i64, 3, 31, 32, 33, 300, 170]));
}

#[test]
fn lanes_wait_until_their_records_are_taken() {
    let source = "pub fn main(n: int) -> real {
        let mut x = zeros(8); let mut i = 0;
        while i < n { x[i % 8] = random_normal(); emit walk(at: x, step: i); i += 1; }
        sum(x)
    }";
    let inputs = Inputs::new().lane("n", (0..400).map(|lane| 60 + lane % 37).collect::<Vec<i64>>());
    assert!(agree(source, &inputs).is_none_or(|launches| launches > 1 || has_room()), "they did not wait");
}

#[test]
fn lanes_wait_within_loops_whose_turns_are_known() {
    let source = "pub fn main(n: int) -> real {
        let mut x = zeros(4);
        for i in 0..90 {
            x[i % 4] = random_normal();
            let y = [x[j] + real(i * n) for j in 0..4];
            emit walk(at: y, step: i);
            x[(i + 1) % 4] = y[0];
        }
        sum(x)
    }";
    let inputs = Inputs::new().lane("n", (0..400).collect::<Vec<i64>>());
    assert!(agree(source, &inputs).is_none_or(|launches| launches > 1 || has_room()), "they did not wait");
}

#[test]
fn a_run_on_a_gpu_can_be_stopped() {
    let program = Program::compile("pub fn main(n: int) -> int { let mut m = n; while m > 0 { m = m % 5 + 1; } m }");
    let program = program.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let settings = Settings::default().stop(Arc::clone(&stop));
    let Some(options) = on_gpu(&Options::default().settings(settings)) else { return };
    let inputs = Inputs::new().lane("n", vec![1_i64, -1, 2]);
    let bound = program.function("main").unwrap().bind(&inputs, &options).unwrap();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::Relaxed);
    });
    let results = bound.run(&options, &NoSink).unwrap();
    stopper.join().unwrap();
    let traps: Vec<_> = results.traps().iter().map(|trap| (trap.position, trap.kind)).collect();
    // In a warp of the others, which never end, the second lane may never have its turn.
    let [first, third] = [0, 2].map(|lane| (lane, TrapKind::Interrupted));
    if traps != [first, (1, TrapKind::Interrupted), third] || !has_room() {
        assert_eq!(traps, [first, third]);
        assert_eq!(results.outputs()["result"].as_int().unwrap()[1], -1);
    }
}

#[test]
fn lanes_of_several_gpus_have_their_own_numbers_draws_and_traps() {
    let source = "fn draw(n: int) -> real { assert(n % 5 != 3, \"{n} is caught\"); random_normal() }
    pub fn main(n: int, w: real[2]) -> (real, int[2]) {
        assert(n % 29 != 17, \"lane of {n}\");
        let drawn = attempt(draw)(n);
        let x = if is_nan(drawn) { -1.0 } else { drawn };
        if n % 31 == 0 { print(\"{n}: {x}\"); }
        emit drawn(at: x + w[1], number: n);
        (x * w[0], [n, n + 1])
    }";
    let lanes = 0..700_i64;
    let w = Array::real([700, 2], lanes.clone().flat_map(|lane| [lane as f64, 0.5 - lane as f64]).collect());
    agree(source, &Inputs::new().lane("n", lanes.collect::<Vec<i64>>()).lane("w", w));
}

#[test]
fn names_of_gpus_are_lists_of_different_numbers() {
    for (name, known) in [
        ("cuda", "cuda"),
        ("cuda:0", "cuda"),
        ("cuda:00", "cuda"),
        ("cuda:3", "cuda:3"),
        ("cuda:0,2", "cuda:0,2"),
        ("cuda:2,0", "cuda:2,0"),
        ("cuda:all", "cuda:all"),
        ("cuda-host", "cuda-host"),
        ("cuda-host:4", "cuda-host:4"),
    ] {
        assert_eq!(device(name).unwrap().name(), known);
    }
    for name in ["cuda:", "cuda:0,0", "cuda:0,", "cuda:,1", "cuda:-1", "cuda:+1", "cuda:256", "cuda:1:2", "cuda-host:0"]
    {
        let error = device(name).unwrap_err().to_string();
        assert!(error.contains(&format!("there is no device `{name}`")), "{error}");
    }
}

#[test]
fn no_lanes_are_no_work() {
    let inputs = Inputs::new().lane("n", Vec::<i64>::new());
    agree("pub fn main(n: int) -> int { n + 1 }", &inputs);
}

#[test]
fn what_a_gpu_does_not_do_is_told() {
    let program = Program::compile("pub fn main(x: real) -> real { x / x }").unwrap();
    let inputs = Inputs::new().lane("x", vec![1.0]);
    let refused = |options: &Options| {
        let bound = program.function("main").unwrap().bind(&inputs, options).unwrap();
        bound.run(options, &NoSink).unwrap_err().to_string()
    };
    let Some(options) = on_gpu(&Options::default()) else { return };
    let nan = options.clone().settings(Settings::default().check_nan(true));
    assert!(refused(&nan).contains("`--check nan` looks at every step, which a GPU does not do"), "{}", refused(&nan));
    let local = refused(&options.clone().engine(Engine::Local));
    assert!(local.contains("the engine `local` does not run on a GPU"), "{local}");
    assert!(device("cuda:x").unwrap_err().to_string().contains("there is no device `cuda:x`"));
    // Where there is no GPU, what is missing.
    if autobatch::backend::cuda::gpus().is_err() {
        let why = refused(&options.backend(device("cuda").unwrap()));
        assert!(why.contains("NVIDIA driver") && why.contains("--device cpu"), "{why}");
    }
}

/// NVRTC serves one compilation at a time in this test.
static NVRTC: Mutex<()> = Mutex::new(());

#[test]
fn programs_for_a_gpu_keep_within_their_limits() {
    use autobatch::backend::{Units, cuda};
    let _alone = NVRTC.lock();
    let here = |file: &str| concat!(env!("CARGO_MANIFEST_DIR"), "/").to_owned() + file;
    let (mut found, mut wrong) = (String::new(), Vec::new());
    for line in include_str!("gpu_limits.txt").lines().filter(|line| !line.starts_with('#')) {
        let [file, of, real, ref limits @ ..] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let limits: Vec<usize> = limits.iter().map(|limit| limit.parse().unwrap()).collect();
        let precision = if real == "f32" { Precision::F32 } else { Precision::F64 };
        let bound = if of.ends_with(".json") {
            let file = here(file);
            let job = Job { chains: 64, warmup: 10, draws: 10, ..Job::new(Path::new(&file)) };
            let sampling = Sampling::new(&job, |function| shared_inputs(function, &here(of))).unwrap();
            sampling.bound(&Options::default()).unwrap()
        } else {
            let inputs = Inputs::new().lane("n", vec![1_i64]);
            let program = Program::load(here(file)).unwrap();
            program.function(of).unwrap().bind(&inputs, &Options::default()).unwrap()
        };
        let compiled = bound.compiled();
        let units = Units::Machine(Arc::clone(&compiled.units), Arc::clone(&compiled.plan));
        let codes = match cuda::report(units, precision, "sm_90") {
            Ok(codes) => codes,
            Err(why) if std::env::var_os("AUTOBATCH_NVRTC").is_some() => panic!("{file}: {why}"),
            Err(why) => return eprintln!("machine code for a GPU is not tested: {why}"),
        };
        let most = |of: fn(&cuda::MachineCode) -> usize| codes.iter().map(of).max().expect("there is code");
        let takes = [most(|code| code.registers), most(|code| code.spilled), most(|code| code.bytes)];
        found += &format!("{file} {of} {real} {} {} {}\n", takes[0], takes[1], takes[2]);
        // Another release of the compiler differs by a little.
        if takes[..2].iter().zip(&limits).any(|(takes, most)| takes > most) || takes[2] > limits[2] / 20 * 21 {
            wrong.push(file);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?} take more than tests/it/engines/gpu_limits.txt allows; all take\n{found}");
}

/// Runs `main` of so many lanes, of which each has a vector, with shared arrays of so many rows and columns, on the device
/// that stands for a GPU.
fn meets(source: &str, (rows, columns): (usize, usize), special: &[(usize, f64)], lanes: usize, options: &Options) {
    if let Some(gpu) = on_gpu(options) {
        meets_on(&gpu, source, (rows, columns), special, lanes, options);
    }
}

/// The same on the device of these options.
fn meets_on(
    gpu: &Options,
    source: &str,
    (rows, columns): (usize, usize),
    special: &[(usize, f64)],
    lanes: usize,
    options: &Options,
) {
    let program = Program::compile(source).unwrap();
    let function = program.function("main").unwrap();
    let mut seed = 1_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    };
    let mut x: Vec<f64> = (0..rows * columns).map(|_| next()).collect();
    special.iter().for_each(|(at, value)| x[*at] = *value);
    let y: Vec<f64> = (0..rows).map(|_| f64::from(u8::from(next() > 0.0))).collect();
    let w: Vec<f64> = (0..lanes * columns).map(|_| next()).collect();
    let array = |shape: &[usize], values: Vec<f64>| Array::real(shape.iter().copied(), values);
    let inputs = Inputs::new()
        .shared("x", array(&[rows, columns], x))
        .shared("y", array(&[rows], y))
        .lane("w", array(&[lanes, columns], w))
        .lane("steps", (0..lanes as i64).map(|lane| lane % 7).collect::<Vec<i64>>());
    let bound = function.bind(&inputs, gpu).unwrap();
    let wanted = Configuration::scalar(options).observe(&function, &inputs).unwrap();
    let found = Configuration::observe_bound(&bound, gpu).unwrap();
    if let Some(why) = difference(&wanted, &found) {
        panic!("{rows} x {columns}, {lanes} lanes: {why}");
    }
    let compiled = bound.compiled();
    let units = autobatch::backend::Units::Machine(Arc::clone(&compiled.units), Arc::clone(&compiled.plan));
    let text = autobatch::backend::cuda::text(units, Precision::F64).unwrap();
    assert!(text.contains("ab_meet(here"), "lanes do not meet");
}

/// Ascends the posterior of a logistic regression; lanes do so different numbers of times.
const ASCENT: &str = include_str!("../../../benches/gpu/meets.ab");

#[test]
fn lanes_meet_for_what_goes_row_by_row() {
    for (rows, columns) in [(512, 3), (700, 40), (1030, 129)] {
        for lanes in [1, 5, 70] {
            meets(ASCENT, (rows, columns), &[], lanes, &Options::default());
        }
    }
    meets(ASCENT, (700, 40), &[], 70, &Options::default().precision(Precision::F32));
}

#[test]
fn zeros_win_over_what_is_no_number_where_lanes_meet() {
    // Rows of infinities and of numbers that are none: what is multiplied with 0 in a gradient is 0.
    let inf = f64::INFINITY;
    for special in [[(3 * 40 + 5, inf), (600 * 40, -inf)], [(3 * 40, f64::NAN), (690 * 40 + 39, inf)]] {
        meets(ASCENT, (700, 40), &special, 9, &Options::default());
    }
}

/// Several meetings of one block: products by themselves, of either side, with what traps and says something in between, and
/// a recursion around.
const SEVERAL: &str = "
    fn round[n, d](w: real[d], depth: int, shared x: real[n, d], shared y: real[n]) -> (real[d], real) {
        let scale = random_normal();
        let p = x @ w;
        assert(p[0] < 2.0, \"too much: {p[0]}\");
        emit rows(first: p[1], scale: scale);
        let q = (p - y) @ x;
        print(\"at {depth}\");
        let r = x @ (0.001 * q) + scale;
        assert(q[1] < 1000.0 && r[0] == r[0], \"more\");
        let next = 0.1 * (r @ x) + w;
        if depth > 0 {
            let (below, total) = round(next, depth - 1, x, y);
            (below + w, total + sum(p))
        } else {
            (next, sum(exp(r)) + dot(p, r))
        }
    }
    pub fn main[n, d](w: real[d], steps: int, shared x: real[n, d], shared y: real[n]) -> (real[d], real, real) {
        let (next, total) = round(w, steps, x, y);
        let kept = x @ next;
        (next, total, kept[n - 1] + sum(kept))
    }";

#[test]
fn lanes_meet_several_times_in_a_block() {
    for (rows, columns) in [(48, 40), (300, 40), (600, 20)] {
        meets(SEVERAL, (rows, columns), &[], 31, &Options::default());
    }
}

#[test]
fn what_may_trap_keeps_its_order_where_lanes_meet() {
    // The first row makes some lanes trap at the first assertion.
    let large: Vec<(usize, f64)> = (0..40).map(|at| (at, 9.0 * (at % 3) as f64)).collect();
    meets(SEVERAL, (48, 40), &large, 31, &Options::default());
    meets(SEVERAL, (48, 40), &[(47 * 40, f64::NAN)], 31, &Options::default());
}

/// Options for threads of the processor in the place of those of a GPU, where there is a C++ compiler.
fn on_threads(options: &Options) -> Option<Options> {
    on_gpu(options)?;
    let named = std::env::var("AUTOBATCH_CC").unwrap_or_else(|_| "cc".to_owned());
    let mut words = named.split_whitespace();
    let mut compiler = std::process::Command::new(words.next().unwrap_or("cc"));
    compiler.args(words).args(["-x", "c++", "-std=gnu++17", "-fsyntax-only", "-"]).stdin(std::process::Stdio::null());
    if !compiler.output().is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: `{named}` compiles no C++");
        return None;
    }
    Some(options.clone().engine(Engine::Pc).codegen(Codegen::Off).backend(device("cuda-threads").unwrap()))
}

#[test]
fn threads_of_a_block_do_together_what_lanes_want() {
    // Blocks of 64 threads with 14 lanes each, and tiles of 24 columns; then blocks full of lanes, which take two passes.
    for (lanes, precision) in [(40, Precision::F64), (40, Precision::F32), (150, Precision::F64)] {
        let options = Options::default().precision(precision);
        let Some(threads) = on_threads(&options) else { return };
        let source = ASCENT.replace("0..steps", "0..steps % 3");
        meets_on(&threads, &source, (600, 20), &[(45, f64::INFINITY)], lanes, &options);
    }
    let options = Options::default();
    let Some(threads) = on_threads(&options) else { return };
    meets_on(&threads, SEVERAL, (48, 40), &[(47 * 40, f64::NAN)], 31, &options);
}

#[test]
fn threads_of_warps_and_blocks_are_scheduled_as_lanes_are() {
    // Few lanes are in warps with a scheduler each, many in blocks that have one; lanes wait for records, and for stacks.
    let source = "fn down(n: int) -> int {
        if n % 3 == 0 { emit said(depth: n, at: random_uniform()); }
        if n < 2 { n } else { let below = down(n - 1) + down(n / 3); below % 1000 + n % 7 }
    }
    pub fn main(n: int) -> int { down(n % 40) }";
    let program = Program::compile(source).unwrap();
    let function = program.function("main").unwrap();
    let options = Options::default();
    let Some(threads) = on_threads(&options) else { return };
    for lanes in [5, 700] {
        let inputs = Inputs::new().lane("n", (0..lanes).map(|lane| lane * 7 % 43).collect::<Vec<i64>>());
        let bound = function.bind(&inputs, &threads).unwrap();
        let wanted = Configuration::scalar(&options).observe(&function, &inputs).unwrap();
        let found = Configuration::observe_bound(&bound, &threads).unwrap();
        if let Some(why) = difference(&wanted, &found) {
            panic!("{lanes} lanes: {why}");
        }
    }
}

/// A linear regression, whose scale is a parameter: derivatives by rows need what is made of all of them.
const REGRESSION: &str = "
    fn density[n, d](w: real[d], u: real, shared x: real[n, d], shared y: real[n]) -> real {
        let sigma = exp(u);
        let r = y - x @ w;
        -0.5 * dot(r, r) / (sigma * sigma) - 3.0 * u
    }
    pub fn main[n, d](w: real[d], steps: int, shared x: real[n, d], shared y: real[n]) -> (real, real[d], real) {
        let mut q = w;
        let mut u = 0.1;
        let mut lp = 0.0;
        for i in 0..steps % 4 {
            let (value, (gq, gu)) = value_and_grad(density, wrt = (w, u))(q, u, x, y);
            lp = value;
            q = q + 0.001 * gq;
            u = u + 0.0001 * gu;
        }
        (lp, q, u)
    }";

#[test]
fn what_follows_a_meeting_is_not_done_in_it() {
    for (rows, columns) in [(600, 20), (48, 30)] {
        meets(REGRESSION, (rows, columns), &[], 23, &Options::default());
    }
    // The second product needs what stands behind an assertion about the first.
    let source =
        "pub fn main[n, d](w: real[d], steps: int, shared x: real[n, d], shared y: real[n]) -> (real, real[n]) {
        let p = x @ w;
        assert(p[0] < 0.4, \"{p[0]} of {steps}\");
        let v = 2.0 * w;
        (sum(p), x @ v)
    }";
    meets(source, (600, 20), &[], 23, &Options::default());
}

#[test]
fn matrices_of_all_shapes_are_met_for() {
    // One that is only read transposed; a square one that is multiplied by what is made row by row; a flat one.
    let transposed = "pub fn main[n, d](w: real[d], steps: int, shared x: real[n, d], shared y: real[n]) -> real[d] {
        let u = [y[i] + w[0] for i in 0..n];
        transpose(x) @ u
    }";
    meets(transposed, (600, 20), &[], 9, &Options::default());
    meets(transposed, (70, 20), &[], 9, &Options::default());
    let square = "pub fn main[n](w: real[n], steps: int, shared x: real[n, n], shared y: real[n]) -> (real, real[n]) {
        let z = w - y;
        (quad_form_sym(x, z), x @ z)
    }";
    meets(square, (520, 520), &[], 3, &Options::default());
    let flat =
        "pub fn main[n, d](w: real[d], steps: int, shared x: real[n, d], shared y: real[n]) -> real[n] { x @ w }";
    meets(flat, (7, 1000), &[], 9, &Options::default());
}

#[test]
fn many_traps_are_told_where_nothing_else_is() {
    let source = "fn inner(n: int) -> int { assert(n % 7 > 0, \"no {n}\"); n }
        pub fn main(n: int) -> int { if n % 3 == 0 { inner(n * 7) } else { inner(n * 7 + 1) } }";
    let inputs = Inputs::new().lane("n", (0..60_000).collect::<Vec<i64>>());
    assert!(agree(source, &inputs).is_none_or(|launches| launches > 1 || has_room()), "they had room");
}

#[test]
fn what_cannot_be_compiled_for_a_gpu_is_told() {
    let refused = |words: &[&str]| {
        let folder = std::env::temp_dir().join("autobatch-compiled-for-no-gpu");
        let done = std::process::Command::new(env!("CARGO_BIN_EXE_autobatch"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(["compile", "--output"])
            .arg(&folder)
            .args(words)
            .env("AUTOBATCH_NVRTC", "/there/is/no/such/file")
            .output()
            .unwrap();
        let _ = std::fs::remove_dir_all(&folder);
        assert!(!done.status.success() && done.stdout.is_empty(), "{words:?} is compiled");
        String::from_utf8(done.stderr).unwrap()
    };
    let fib = ["run", "examples/fib.ab", "--entry", "fib", "--input", "n=[3]"];
    for (arch, more, why) in [
        ("sm_70", &[][..], "GPUs of compute capability 8.0 and newer run programs"),
        ("h100", &[], "a kind of GPU is `sm_` and a number"),
        ("sm_90", &["--device", "cpu"], "has no --device of its own"),
        ("sm_90", &[], "AUTOBATCH_NVRTC"),
    ] {
        let words: Vec<&str> = ["--arch", arch].iter().chain(&fib).chain(more).copied().collect();
        let said = refused(&words);
        assert!(said.contains(why), "{words:?}: {said}");
    }
    assert!(refused(&["--arch", "sm_90", "check", "examples/fib.ab"]).contains("possible values: run, map"));
}

#[test]
fn lanes_meet_for_products_alone_where_rows_have_no_room() {
    // Each sum wants a tile, and no block has so much shared memory.
    let sums = |count: usize| {
        let sums: String = (1..=count).map(|k| format!("total += dot(exp(0.0{k:02} * p), y);\n")).collect();
        format!(
            "pub fn main[n, d](w: real[d], steps: int, shared x: real[n, d], shared y: real[n]) -> (real, real[n]) {{
                let p = x @ w;
                let mut total = 0.0;
                {sums}
                (total, p)
            }}"
        )
    };
    let rows = |source: &str| {
        let program = Program::compile(source).unwrap();
        let inputs = Inputs::new()
            .shared("x", Array::real([600, 20], vec![0.5; 12_000]))
            .shared("y", Array::real([600], vec![1.0; 600]))
            .lane("w", Array::real([1, 20], vec![0.5; 20]))
            .lane("steps", vec![1_i64]);
        let bound = program.function("main").unwrap().bind(&inputs, &Options::default()).unwrap();
        let compiled = bound.compiled();
        let units = autobatch::backend::Units::Machine(Arc::clone(&compiled.units), Arc::clone(&compiled.plan));
        autobatch::backend::cuda::text(units, Precision::F64).unwrap().contains("AB_EACH(r, column, rows) {")
    };
    for (count, by_rows) in [(3, true), (40, false)] {
        let source = sums(count);
        assert_eq!(rows(&source), by_rows, "{count} sums");
        meets(&source, (600, 20), &[], 9, &Options::default());
    }
}
