//! What a GPU does that no other back end does: lanes that are taken up one after the other, stacks without room, records
//! for which lanes wait, and what it refuses. That every program gives the same bits there is tested where programs are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use autobatch::program::{Codegen, Engine, Inputs, Options, Program, device};
use autobatch::run::{NoSink, Settings, TrapKind};

use crate::tools::observed::{Configuration, difference, gpu};

fn on_gpu(options: &Options) -> Option<Options> {
    Some(options.clone().engine(Engine::Pc).codegen(Codegen::Off).backend(gpu()?))
}

/// Runs `main` on the interpreter and on a GPU; gives how often it was started there.
fn agree(source: &str, inputs: &Inputs) -> Option<u64> {
    let program = Program::compile(source).unwrap();
    let function = program.function("main").unwrap();
    let options = on_gpu(&Options::default())?;
    let bound = function.bind(inputs, &options).unwrap();
    let wanted = Configuration::scalar(&Options::default()).observe(&function, inputs).unwrap();
    let found = Configuration::observe_bound(&bound, &options).unwrap();
    if let Some(why) = difference(&wanted, &found) {
        panic!("{why}");
    }
    let device = bound.run(&options, &NoSink).unwrap().stats().device.clone().expect("a GPU tells what it did");
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
    assert!(agree(source, &inputs).is_none_or(|launches| launches > 1), "they did not wait");
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
    assert!(agree(source, &inputs).is_none_or(|launches| launches > 1), "they did not wait");
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
    assert_eq!(traps, [(0, TrapKind::Interrupted), (2, TrapKind::Interrupted)]);
    assert_eq!(results.outputs()["result"].as_int().unwrap()[1], -1);
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
fn programs_for_a_gpu_spill_nothing() {
    use autobatch::backend::{Units, cuda};
    use autobatch::types::Precision;
    let _alone = NVRTC.lock();
    let limits = include_str!("gpu_limits.txt").lines().filter(|line| !line.starts_with('#'));
    for line in limits {
        let [file, entry, registers] = line.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{line}") };
        let program = Program::load(concat!(env!("CARGO_MANIFEST_DIR"), "/").to_owned() + file).unwrap();
        let inputs = Inputs::new().lane("n", vec![1_i64]);
        let bound = program.function(entry).unwrap().bind(&inputs, &Options::default()).unwrap();
        let compiled = bound.compiled();
        let units = Units::Machine(Arc::clone(&compiled.units), Arc::clone(&compiled.plan));
        match cuda::report(units, Precision::F64, "sm_90") {
            Ok(logs) => {
                for log in logs {
                    assert!(log.contains(" 0 bytes spill stores"), "{file}: {log}");
                    let used = log.split("Used ").nth(1).and_then(|rest| rest.split(' ').next());
                    let used = used.expect("it tells registers").parse::<u32>().unwrap();
                    let most = registers.parse::<u32>().unwrap();
                    assert!(used <= most, "{file}: {used} registers, and {most} are the limit");
                }
            }
            Err(why) => return eprintln!("machine code for a GPU is not tested: {why}"),
        }
    }
}
