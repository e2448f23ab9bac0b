//! The memory of a run has a limit: what grows past it stops lanes or refuses the run, and never the process.

use std::ops::RangeInclusive;
use std::process::{Command, Stdio};
use std::sync::Arc;

use autobatch::program::{Bound, Codegen, Engine, Inputs, Options, Program, Results};
use autobatch::run::{NoSink, Settings, TrapKind};
use autobatch::types::Array;

use crate::project::cli::Folder;

const MIB: u64 = 1 << 20;

const DEEP: &str = "
fn deep(x: real[100], k: int) -> real {
    if k == 0 { return x[0]; }
    let mut y = x;
    y[k % 100] += 1.0;
    deep(y, k - 1) + x[1]
}
pub fn main(x: real, k: int) -> real { deep(fill(x, 100), k) }";

const TAPE: &str = "
fn steps(x: real, k: int) -> real { let mut y = x; for i in 0..k { y = sin(y) + 0.25 * y; } y }
pub fn main(x: real, k: int) -> real { grad(steps)(x, k) }";

fn bind(source: &str, options: &Options, k: &[i64]) -> Bound {
    let program = Program::compile(source).expect("the program is right");
    let x: Vec<f64> = (0..k.len()).map(|lane| 0.5 + lane as f64).collect();
    let inputs = Inputs::new().lane("x", x).lane("k", k.to_vec());
    program.function("main").and_then(|main| main.bind(&inputs, options)).expect("it fits")
}

/// Runs it; what grew took no more than the limit, and was given back.
fn run(source: &str, options: &Options, k: &[i64]) -> Results {
    let bound = bind(source, options, k);
    let budget = bound.budget(options).expect("it fits");
    let results = bound.run_within(&budget, options, &NoSink).expect("it runs");
    let limit = options.get_memory_limit().expect("the tests set it");
    assert!(budget.peak() as u64 <= limit && budget.taken() == 0, "{budget:?}");
    results
}

/// All engines, with generated code where there is a compiler.
fn ways(limit: u64) -> Vec<Options> {
    let with = |engine, codegen| {
        Options::default().engine(engine).codegen(codegen).memory_limit(limit).threads(1).shard_lanes(16)
    };
    let mut ways = Vec::new();
    for engine in [Engine::Scalar, Engine::Local, Engine::Pc] {
        ways.push(with(engine, Codegen::Off));
        if crate::tools::observed::codegen() == Codegen::Cc {
            // Straight code has one lane at a time, and so room for more.
            let limit = if engine == Engine::Scalar { limit / 2 } else { limit };
            ways.push(with(engine, Codegen::Cc).memory_limit(limit));
        }
    }
    ways
}

/// Those lanes stop that want more than there is, and the others are as in a run with room for all.
fn only_the_deep_ones_stop(source: &str, k: &[i64], limit: u64, deep: i64, lines: RangeInclusive<u32>) {
    let few: Vec<i64> = k.iter().map(|k| if *k >= deep { 0 } else { *k }).collect();
    let wanted = run(source, &Options::default().memory_limit(1 << 40), &few);
    let wanted = wanted.output("result").and_then(Array::as_real).expect("reals").to_vec();
    for options in ways(limit) {
        let found = run(source, &options, k);
        let way = format!("{:?} {:?}", options.get_engine(), options.get_codegen());
        let stopped: Vec<i64> = found.traps().iter().map(|trap| k[trap.position]).collect();
        assert!(stopped.iter().all(|k| *k >= deep), "{way}: {stopped:?}");
        assert_eq!(stopped.len(), k.iter().filter(|k| **k >= deep).count(), "{way}");
        for trap in found.traps() {
            assert_eq!(trap.kind, TrapKind::MemoryLimit, "{way}");
            assert!(lines.contains(&trap.loc.line), "{way}: {}", trap.loc);
        }
        let values = found.output("result").and_then(Array::as_real).expect("reals");
        for lane in (0..k.len()).filter(|lane| k[*lane] < deep) {
            assert_eq!(values[lane].to_bits(), wanted[lane].to_bits(), "{way}: lane {lane}");
        }
    }
}

#[test]
fn a_recursion_that_carries_arrays_stops_where_the_memory_ends() {
    let k: Vec<i64> = (0..40).map(|lane| [1, 9000, 5, 60][lane % 4]).collect();
    // Where a value is saved, or a call is made.
    only_the_deep_ones_stop(DEEP, &k, 8 * MIB, 9000, 4..=6);
}

#[test]
fn tapes_stop_where_the_memory_ends() {
    let k: Vec<i64> = (0..40).map(|lane| [1, 3_000_000, 500][lane % 3]).collect();
    only_the_deep_ones_stop(TAPE, &k, 8 * MIB, 3_000_000, 2..=2);
}

/// An array that activations hand on is there once in the interpreter, and a register in the machine.
#[test]
fn what_is_handed_on_is_counted_once() {
    let source = "
        fn down(x: real[10000], k: int) -> real { if k == 0 { return x[0]; } down(x, k - 1) + x[k % 10000] }
        pub fn main(x: real, k: int) -> real { down(fill(x, 10000), k) }";
    for engine in [Engine::Scalar, Engine::Pc] {
        let options = Options::default().engine(engine).codegen(Codegen::Off).memory_limit(16 * MIB);
        let results = run(source, &options, &[5000, 9000]);
        assert_eq!(results.traps(), [], "{engine:?}");
        assert_eq!(results.output("result"), Some(&Array::real([2], vec![0.5 * 5001.0, 1.5 * 9001.0])));
    }
}

/// Which lanes stop hangs on what other shards hold, but the values of those that go on do not.
#[test]
fn shards_that_run_at_one_time_share_the_memory() {
    let k: Vec<i64> = (0..64).map(|lane| [1, 9000, 5, 60][lane % 4]).collect();
    let few: Vec<i64> = k.iter().map(|k| k % 9000).collect();
    let room = run(DEEP, &Options::default().memory_limit(1 << 40), &few);
    let wanted = room.output("result").and_then(Array::as_real).expect("reals");
    for engine in [Engine::Local, Engine::Pc] {
        let settings = Settings::default().threads(2).shard_lanes(16);
        let found = run(
            DEEP,
            &Options::default().engine(engine).codegen(Codegen::Off).memory_limit(8 * MIB).settings(settings),
            &k,
        );
        let values = found.output("result").and_then(Array::as_real).expect("reals");
        let stopped: Vec<usize> = found.traps().iter().map(|trap| trap.position).collect();
        assert!(found.traps().iter().all(|trap| trap.kind == TrapKind::MemoryLimit));
        assert!((0..64).all(|lane| k[lane] != 9000 || stopped.contains(&lane)), "{engine:?}");
        for lane in (0..64).filter(|lane| !stopped.contains(lane)) {
            assert_eq!(values[lane].to_bits(), wanted[lane].to_bits(), "{engine:?}: lane {lane}");
        }
    }
}

/// What the tapes of lanes hold that have stopped goes to those that run after them.
#[test]
fn lanes_that_stopped_hold_no_tapes() {
    let source = "
        fn first(x: real, k: int) -> real { let mut y = x; for i in 0..k { y = sin(y) + 0.25 * y; } y }
        fn second(x: real, k: int) -> real { let mut y = x; for i in 0..k { y = cos(y) + 0.5 * y; } y }
        pub fn main(x: real, k: int) -> real {
            if k > 1000000 { grad(first)(x, k) } else { grad(second)(x, k) }
        }";
    let k = [3_000_000, 100_000];
    only_the_deep_ones_stop(source, &k, 8 * MIB, 3_000_000, 2..=2);
}

/// Shards give the memory back when they are done.
#[test]
fn many_shards_one_after_the_other_have_room() {
    let options = Options::default().codegen(Codegen::Off).memory_limit(16 * MIB).threads(1).shard_lanes(2);
    let results = run(DEEP, &options, &[2000; 60]);
    assert_eq!(results.traps(), []);
    let whole = options.shard_lanes(60);
    assert_eq!(run(DEEP, &whole, &[2000; 60]).traps().len(), 60);
}

#[test]
fn a_budget_serves_runs_one_after_the_other() {
    let options = ways(8 * MIB).pop().expect("there is a way");
    let bound = bind(DEEP, &options, &[9000; 20]);
    let budget = bound.budget(&options).expect("it fits");
    let first = bound.run_within(&budget, &options, &NoSink).expect("it runs");
    let again = bound.run_within(&Arc::clone(&budget), &options, &NoSink).expect("it runs");
    assert_eq!((first.traps(), first.traps().len()), (again.traps(), 20));
}

/// What `autobatch` says, how it ends, and the most memory that it had, in MiB.
#[cfg(target_os = "linux")]
fn observed(arguments: &[&str]) -> (String, Option<i32>, u64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_autobatch"));
    let mut child = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    // The figure is the highest so far, so nothing is missed but the last millisecond.
    while child.try_wait().expect("it is a child").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        most = most.max(kib.unwrap_or(0) / 1024);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let output = child.wait_with_output().expect("it ended");
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code(), most)
}

/// What a process takes besides, in MiB: the program itself, its compilation, results as text.
#[cfg(target_os = "linux")]
const BESIDES: u64 = 64;

#[cfg(target_os = "linux")]
#[test]
fn the_process_stays_below_the_limit() {
    let folder = Folder::new("memory-limit");
    let deep = folder.file("deep.ab", DEEP.replace("100", "1000"));
    let tape = folder.file("tape.ab", TAPE);
    let bounded = folder.file("bounded.ab", "pub fn main(x: real[t <= 100000000]) -> real { sum(x) }");
    let records = folder.file("records.ab", "pub fn main(k: int) -> int { for i in 0..k { emit s(i); } k }");
    let lanes = "--input=x=[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]";
    let runs: [(&[&str], u64, &str); 7] = [
        (&[&deep, lanes, "--input", "k=[3000]"], 50, ""),
        (&[&deep, lanes, "--input", "k=[3000]", "--engine", "local"], 50, ""),
        (&[&deep, "--input", "x=[1]", "--input", "k=[9000]", "--engine", "scalar"], 50, ""),
        (&[&tape, lanes, "--input", "k=[1000000]"], 50, ""),
        (&[&bounded, "--input", "x=[[1,2],[3]]"], 100, "100.0 MiB may be used"),
        (&[&records, "--input", "k=[4000000]"], 30, ""),
        (&[&records, "--input", "k=[4000000]", "--engine", "scalar"], 30, ""),
    ];
    for (arguments, limit, words) in runs {
        let limited = ["run", "--format", "json", "--memory-limit", &limit.to_string()].map(str::to_owned);
        let all: Vec<&str> = limited.iter().map(String::as_str).chain(arguments.iter().copied()).collect();
        let (said, code, most) = observed(&all);
        assert_eq!(code, Some(1), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert!(most <= limit + BESIDES, "{arguments:?}: {most} MiB at a limit of {limit}: {said}");
    }
}

/// A control group of memory with a limit in bytes, and a group without one in it. `None` where this process may make
/// none.
#[cfg(target_os = "linux")]
struct Group(std::path::PathBuf);

#[cfg(target_os = "linux")]
impl Group {
    fn new(limit: u64) -> Option<Self> {
        let versions = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        versions.into_iter().find_map(|(mount, file)| {
            let outer = std::path::Path::new(mount).join(format!("autobatch-test-{}", std::process::id()));
            // In a folder that is no hierarchy of this version, or without the controller, there is no such file.
            std::fs::create_dir(&outer).ok()?;
            let group = Group(outer);
            let limited = group.0.join(file).exists() && std::fs::write(group.0.join(file), limit.to_string()).is_ok();
            (limited && std::fs::create_dir(group.inner()).is_ok()).then_some(group)
        })
    }
    fn inner(&self) -> std::path::PathBuf {
        self.0.join("inner")
    }
}

#[cfg(target_os = "linux")]
impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(self.inner());
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Without `--memory-limit`, in a real control group: the lanes stop, and the system does not end the process.
#[cfg(target_os = "linux")]
#[test]
fn a_control_group_is_a_limit() {
    let Some(group) = Group::new(300 * MIB) else {
        println!("skipped: this process may make no control group of memory");
        return;
    };
    let folder = Folder::new("control-group");
    let deep = folder.file("deep.ab", DEEP.replace("100", "1000"));
    let x: Vec<String> = (0..16).map(|lane| lane.to_string()).collect();
    let procs = group.inner().join("cgroup.procs").display().to_string();
    for engine in ["pc", "local"] {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\"", &procs, env!("CARGO_BIN_EXE_autobatch")]);
        shell.args([
            "run",
            &deep,
            "--format",
            "json",
            "--input",
            &format!("x=[{}]", x.join(",")),
            "--input",
            "k=[9000]",
        ]);
        // Lanes that generated code takes one by one have room.
        let output =
            shell.args(["--engine", engine, "--codegen", "off", "--threads", "1"]).output().expect("there is a shell");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{engine}: {:?} {said}", output.status);
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an object");
        assert_eq!(found["traps"][0]["kind"], "memory limit", "{engine}");
    }
}

/// Results become text piece by piece, and files are written of the arrays that are there.
#[cfg(target_os = "linux")]
#[test]
fn results_take_what_the_estimate_says() {
    let folder = Folder::new("memory-results");
    let wide = folder.file("wide.ab", "pub fn main(x: real) -> real[1000] { [sqrt(x + real(i)) for i in 0..1000] }");
    let rows: Vec<String> = (1..=4000).map(|row| row.to_string()).collect();
    let rows = format!("x=@{}", folder.file("rows.json", format!("[{}]", rows.join(","))));
    let outputs = [Vec::new(), vec!["--output", "x.npz"], vec!["--output", "x.json"], vec!["--format", "json"]];
    for output in outputs {
        let output: Vec<String> = match output[..] {
            ["--output", name] => vec!["--output".to_owned(), folder.0.join(name).display().to_string()],
            _ => output.iter().map(|o| (*o).to_owned()).collect(),
        };
        let mut all = vec!["run", &wide, "--input", &rows, "--memory-limit", "70", "--threads", "1"];
        all.extend(output.iter().map(String::as_str));
        let (said, code, most) = observed(&all);
        assert_eq!(code, Some(0), "{output:?}: {said}");
        assert!(most <= 70 + BESIDES / 2, "{output:?}: {most} MiB: {said}");
    }
}

/// A chunk is no larger than fits; the rows of the first one are taken before that is known.
#[test]
fn map_takes_as_many_rows_at_a_time_as_fit() {
    let folder = Folder::new("map-memory");
    let program = folder.file(
        "wide.ab",
        "pub fn main(x: real) -> real { let mut y = fill(x, 2000); for i in 0..3 { y[i] = y[i + 1] + x; } sum(y) }",
    );
    let rows: Vec<String> = (0..1500).map(|row| row.to_string()).collect();
    let input = format!("x=[{}]", rows.join(","));
    let map = |limit: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_autobatch"));
        command.args(["map", &program, "--entry", "main", "--input", &input, "--threads", "1"]);
        command.args(["--memory-limit", limit]).output().expect("it starts")
    };
    let (small, large) = (map("8"), map("4000"));
    let said = String::from_utf8_lossy(&small.stderr);
    assert_eq!((small.status.code(), large.status.code()), (Some(0), Some(0)), "{said}");
    assert_eq!(small.stdout, large.stdout);
    assert_eq!(small.stdout.iter().filter(|byte| **byte == b'\n').count(), 1500);
    let none = map("0");
    let said = String::from_utf8_lossy(&none.stderr);
    assert!(none.status.code() == Some(1) && said.contains("not even one lane fits"), "{said}");
}

/// All outputs are there before a `.npz` file is written: they count.
#[test]
fn map_refuses_outputs_that_do_not_fit_together() {
    let folder = Folder::new("map-kept");
    let program = folder.file("wide.ab", "pub fn main(x: real) -> real[2000] { fill(x, 2000) }");
    let map = |name: &str| {
        let path = folder.0.join(name).display().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_autobatch"));
        command.args(["map", &program, "--input", "x=[0.5]", "--lanes", "1500", "--rows-at-once", "100"]);
        command.args(["--threads", "1", "--memory-limit", "16", "--output", &path]).output().expect("it starts")
    };
    let (whole, pieces) = (map("a.npz"), map("a.npy"));
    let said = String::from_utf8_lossy(&whole.stderr);
    let wanted =
        "the outputs of 1500 rows need 22.9 MiB, but 16.0 MiB may be used: a .npy file is written as the rows come";
    assert!(whole.status.code() == Some(1) && said.contains(wanted), "{said}");
    assert_eq!(pieces.status.code(), Some(0), "{}", String::from_utf8_lossy(&pieces.stderr));
}

/// What `parameters` makes of every draw counts from the start.
#[test]
fn constrained_parameters_that_do_not_fit_are_refused() {
    let folder = Folder::new("parameters-memory");
    let model = folder.file(
        "model.ab",
        "pub struct Wide { y: real[5000] }
         pub fn log_density(q: real[1]) -> real { -0.5 * q[0] * q[0] }
         pub fn parameters(q: real[1]) -> Wide { Wide { y: fill(q[0], 5000) } }",
    );
    let said = crate::project::cli::error(&["sample", &model, "--draws", "1000", "--memory-limit", "100"]);
    assert!(said.contains("but 100.0 MiB may be used: the largest batch that fits is 2 lanes"), "{said}");
}
