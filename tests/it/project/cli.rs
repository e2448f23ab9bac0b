//! The command line as a user meets it when something is wrong: a clear error and an exit code, never a panic, an abort or a
//! hang, and nothing lost that was done.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

#[cfg(unix)]
use crate::tools::effort;
use crate::tools::running::Running;

/// A folder of its own for a test, removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("autobatch-cli-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }
    /// A file in it, as an argument.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("a file of the test");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn autobatch(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_autobatch"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments);
    command
}

pub(crate) fn output(arguments: &[&str]) -> Output {
    autobatch(arguments).output().expect("it starts")
}

/// What it says when it fails with exit code 1.
pub(crate) fn error(arguments: &[&str]) -> String {
    let output = output(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    said
}

const FIB: &str = "examples/fib.ab";
const MODEL: [&str; 4] = ["sample", "nuts/models/eight_schools.ab", "--data", "nuts/data/eight_schools.json"];

fn fib<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["run", FIB, "--entry", "fib"], arguments].concat()
}

#[test]
fn what_does_not_fit_in_memory_is_refused_before_it_is_made() {
    for lanes in ["1000000000000", "18446744073709551615"] {
        let said = error(&fib(&["--shared", "n=5", "--lanes", lanes]));
        assert!(said.contains(lanes) && said.contains("the largest batch that fits is"), "{said}");
        let said = error(&[&MODEL[..], &["--chains", lanes]].concat());
        assert!(said.contains(lanes) && said.contains("the largest batch that fits is"), "{said}");
    }
    for draws in ["1000000000000", "18446744073709551615"] {
        let said = error(&[&MODEL[..], &["--chains", "2", "--draws", draws]].concat());
        assert!(said.contains("2 lanes need"), "{said}");
    }
    let folder = Folder::new("memory");
    let constant = folder.file("constant.ab", "pub fn main() -> real { let x = zeros(100000000000); x[5] }");
    let local = folder.file("local.ab", "pub fn main(x: real) -> real[100000000000] { [x for i in 0..100000000000] }");
    for engine in ["scalar", "local", "pc"] {
        let arguments =
            [&["run", &constant, "--engine", engine][..], &["run", &local, "--input", "x=[1]", "--engine", engine]];
        for arguments in arguments {
            let said = error(arguments);
            assert!(said.contains("1 lane needs"), "{said}");
        }
    }
    // Draws that are too many, or too large, have a remedy.
    let quantities = "parameters { real x; } model { x ~ std_normal(); }
generated quantities { matrix[1000, 1000] m = rep_matrix(x, 1000, 1000); }";
    let model = folder.file("large.stan", quantities);
    let said = error(&["sample", &model, "--draws", "1000", "--memory-limit", "1000"]);
    assert!(said.contains("MiB each") && said.contains("fewer --draws or --chains, --thin N"), "{said}");
}

#[cfg(unix)]
#[test]
fn what_is_written_and_what_not_is_told_on_a_full_disk() {
    let folder = Folder::new("full-csv");
    std::os::unix::fs::symlink("/dev/full", folder.0.join("draws_2.csv")).expect("a link");
    let file = folder.0.join("draws.csv").display().to_string();
    let how = ["--chains", "3", "--warmup", "20", "--draws", "200", "--output", &file];
    let found = output(&[&MODEL[..], &how].concat());
    let said = String::from_utf8_lossy(&found.stderr);
    assert_eq!(found.status.code(), Some(1), "{said}");
    assert!(said.contains("1 of 3 files are not written: ") && said.contains("No space left"), "{said}");
    assert!(folder.0.join("draws_1.csv").is_file() && folder.0.join("draws_3.csv").is_file(), "{said}");
    assert!(said.contains("draws written to ") && String::from_utf8_lossy(&found.stdout).contains("r_hat"), "{said}");
}

#[test]
fn files_that_are_no_such_files_are_refused() {
    let folder = Folder::new("files");
    let noise: Vec<u8> = (0..2000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8 | 0x80).collect();
    for (bytes, name) in [(&b""[..], "empty"), (b"x", "one"), (&noise, "noise")] {
        for extension in ["npy", "npz", "json"] {
            let path = folder.file(&format!("{name}.{extension}"), bytes);
            let said = error(&fib(&["--input", &format!("n=@{path}")]));
            assert!(said.starts_with("error: ") && said.contains(name), "{said}");
        }
        for extension in ["ab", "cfg", "stack"] {
            error(&["run", &folder.file(&format!("{name}.{extension}"), bytes)]);
        }
    }
    assert!(error(&["run", "no such file.ab"]).contains("cannot read no such file.ab"));
    assert!(error(&fib(&["--input", "n=@no such file.npy"])).contains("cannot read `no such file.npy`"));
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_the_run() {
    let folder = Folder::new("outputs");
    let inside = folder.0.join("none").join("x.npz").display().to_string();
    let directory = folder.0.join("folder.npz");
    std::fs::create_dir(&directory).unwrap();
    let directory = directory.display().to_string();
    for (path, why) in
        [(&inside[..], "there is no folder"), (&directory, "this is a folder"), ("x.txt", ".npz or .json")]
    {
        assert!(error(&fib(&["--input", "n=[5]", "--output", path])).contains(why));
        assert!(error(&[&MODEL[..], &["--output", path]].concat()).contains(why));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_is_not() {
    let full = || Stdio::from(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    for format in ["text", "json"] {
        let run = fib(&["--input", "n=[5]", "--format", format]);
        let output = autobatch(&run).stdout(full()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("cannot write to standard output: No space left"), "{said}");
    }
    let output = autobatch(&fib(&["--input", "n=[5]"])).stderr(full()).output().unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"result = [5]\n"[..]));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = autobatch(&fib(&["--input", "n=[5]"])).stdout(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn samplers_that_do_not_keep_to_the_rules_are_refused() {
    let folder = Folder::new("samplers");
    let copy = |file: &str| std::fs::read_to_string(format!("nuts/{file}")).unwrap();
    for file in ["nuts.ab", "hamiltonian.ab", "adapt.ab", "chain.ab"] {
        folder.file(file, copy(file));
    }
    let protocol = copy("protocol.ab");
    for (of, by, why) in [
        ("emit draw(", "if uniform_rng(0, 1) < 0 { emit draw(", "emitted 0 draws in chain 0, where 10 were asked for"),
        ("accept_stat:", "accept:", "emits no `draw` with `accept_stat: real`"),
        ("q: t.point.q", "q: 1.0", "emits no `draw` with `q: real[d]`"),
        ("emit adapted", "emit adopted", "emits no `adapted`"),
    ] {
        let changed = protocol.replace(of, by);
        let close = if by.starts_with("if") { "} }" } else { "}" };
        folder.file("protocol.ab", format!("{}{close}\n", changed.trim_end().strip_suffix('}').unwrap()));
        let path = folder.0.join("nuts.ab").display().to_string();
        let said = error(&[&MODEL[..], &["--sampler", &path, "--draws", "10", "--chains", "2"]].concat());
        assert!(said.contains(why), "{said}");
    }
    assert!(error(&[&MODEL[..], &["--sampler", FIB]].concat()).contains("has no `transition`"));
    let other = folder.file("other.ab", "pub fn transition(x: real) -> real { x }");
    let said = error(&[&MODEL[..], &["--sampler", &other]].concat());
    assert!(said.contains("do not fit together") && said.contains("nuts/README.md"), "{said}");
    assert!(error(&["sample", FIB]).contains("a model exports `pub fn log_density"));
    assert!(error(&[&MODEL[..], &["--chains", "0"]].concat()).contains("nothing to sample"));
}

/// Recursion that takes all the memory that the process may have traps the lanes, and the process goes on.
#[cfg(target_os = "linux")]
#[test]
fn calls_without_memory_trap() {
    let folder = Folder::new("calls");
    let program = folder.file(
        "deep.ab",
        "pub fn main(n: int) -> real { let x = [sqrt(real(i + n)) for i in 0..1000]; deep(x, n) }\n\
         fn deep(x: real[1000], n: int) -> real { if n == 0 { x[0] } else { deep(x + 1.0, n - 1) + x[n % 1000] } }",
    );
    for engine in ["local", "pc"] {
        let run = ["run", &program, "--shared", "n=1000000", "--lanes", "64", "--max-stack-depth", "1000000000"];
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -v 1500000 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_autobatch")]);
        let output = shell.args(run).args(["--engine", engine, "--threads", "1", "--format", "json"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{engine}: {said}");
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an object");
        assert_eq!(found["traps"][0]["kind"], "memory limit", "{engine}: {said}");
        assert_eq!(found["traps"][0]["function"], "deep", "{engine}");
        assert_eq!(found["traps"][0]["lanes"].as_array().map(Vec::len), Some(64), "{engine}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_was_done() {
    let folder = Folder::new("interrupt");
    let program = folder.file(
        "endless.ab",
        "pub fn main(n: int) -> int { print(\"{n}\"); let mut i = 0; while n > 5 && i >= 0 { i = (i + n) % 1000; } n }",
    );
    for engine in ["scalar", "local", "pc"] {
        let arguments = ["run", &program, "--input", "n=[1,7]", "--engine", engine, "--format", "json"];
        let mut running = Running::start(autobatch(&arguments));
        running.wait_for("[lane 1] 7");
        running.signal("INT");
        let output = running.end().0;
        assert_eq!(output.status.code(), Some(130));
        let text = String::from_utf8_lossy(&output.stdout);
        let found: serde_json::Value = serde_json::from_str(&text).expect("an object");
        assert_eq!(found["traps"][0]["kind"], "interrupted", "{text}");
        let lanes = found["traps"][0]["lanes"].as_array().expect("a list");
        assert!(lanes.contains(&serde_json::json!(1)), "{engine}: {text}");
    }
    let file = folder.0.join("draws.json");
    let path = file.display().to_string();
    let arguments =
        [&MODEL[..], &["--chains", "2", "--warmup", "5", "--draws", "100000", "--codegen", "off", "--output", &path]]
            .concat();
    let mut running = Running::start(autobatch(&arguments));
    running.wait_for("20000 of 200000 draws");
    running.signal("INT");
    let (output, words) = running.end();
    assert_eq!(output.status.code(), Some(130), "{words}");
    assert!(words.contains("draws of each chain are kept"), "{words}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("r_hat"));
    let kept: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).expect("an object");
    assert_eq!(kept["lp"].as_array().map(Vec::len), Some(2));
}

/// Nothing is lost before a run starts: the process does not wait for the end of what it is at.
#[cfg(unix)]
#[test]
fn ctrl_c_before_the_run_ends_the_process_at_once() {
    let folder = Folder::new("interrupt-early");
    let program = folder.file("main.ab", "pub fn main(n: int) -> int { n }");
    for command in ["run", "map"] {
        let pipe = folder.0.join(format!("{command}.json"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let input = format!("n=@{}", pipe.display());
        let child = autobatch(&[command, &program, "--input", &input]).stdout(Stdio::null()).spawn().unwrap();
        // It is open when the program has come to its inputs, which never end.
        let held = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130), "{command}");
        drop(held);
    }
}

#[test]
fn the_sampler_that_ships_warns_of_nothing_in_itself() {
    let said = output(&[&MODEL[..], &["--chains", "2", "--warmup", "5", "--draws", "5"]].concat()).stderr;
    assert!(!String::from_utf8_lossy(&said).contains("W0102"), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn what_attempts_caught_is_told() {
    let folder = Folder::new("caught");
    let source = "fn third(x: real[3], i: int) -> real { x[i] }
pub fn main(x: real[3], i: int) -> real {
    let a = attempt(third)(x, i);
    let b = attempt(third)(x, i + 1);
    select(is_nan(a), 0.0, a) + select(is_nan(b), 0.0, b)
}";
    let program = folder.file("main.ab", source);
    let inputs = ["--input", "x=[[1,2,4]]", "--input", "i=[0,2,5]"];
    let wanted = "note: attempts caught 3 traps in 2 lanes, first: index out of range: `x` has no index 3: they go from 0 to 2, \
                  at third:1 (lane 1)\n";
    for engine in ["pc", "local", "scalar"] {
        let text = output(&[&["run", &program, "--engine", engine][..], &inputs].concat());
        let said = String::from_utf8_lossy(&text.stderr);
        assert_eq!((text.status.code(), &text.stdout[..]), (Some(0), &b"result = [3, 4, 0]\n"[..]), "{said}");
        assert!(said.ends_with(wanted), "{said}");
        let json =
            output(&[&["run", &program, "--engine", engine, "--format", "json", "--stats"][..], &inputs].concat());
        let found: serde_json::Value = serde_json::from_slice(&json.stdout).expect("an object");
        assert_eq!((&found["caught"]["count"], &found["caught"]["lanes"]), (&3.into(), &serde_json::json!([1, 2])));
        assert_eq!(found["caught"]["first"]["kind"], "index out of range");
        assert_eq!(
            (&found["caught"]["first"]["function"], &found["caught"]["first"]["line"]),
            (&"third".into(), &1.into())
        );
    }
    let map = output(&[&["map", &program][..], &inputs].concat());
    assert!(
        String::from_utf8_lossy(&map.stderr).contains("caught 3 traps in 2 rows, first: index out of range"),
        "{map:?}"
    );
    let none = output(&["run", &program, "--input", "x=[[1,2,4]]", "--input", "i=[0]"]);
    assert!(!String::from_utf8_lossy(&none.stderr).contains("caught"));
}

#[test]
fn absurd_numbers_of_threads_and_shards_do_no_harm() {
    for option in [
        ["--threads", "0"],
        ["--threads", "1000000"],
        ["--shard-lanes", "0"],
        ["--shard-lanes", "18446744073709551615"],
    ] {
        let output = output(&fib(&[&["--input", "n=[5,6]"][..], &option].concat()));
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"result = [5, 8]\n"[..]), "{option:?}");
    }
}

#[test]
fn sources_nested_without_end_are_refused() {
    let folder = Folder::new("nested");
    let nested = |open: &str, inner: &str, close: &str| {
        format!("pub fn main() -> int {{ {}{inner}{} }}", open.repeat(100_000), close.repeat(100_000))
    };
    let texts = [
        nested("(", "1", ")"),
        nested("{", "1", "}"),
        nested("-", "1", ""),
        nested("1+", "1", ""),
        nested("f(", "1", ")"),
        nested("[", "1", "]"),
        nested("if true { 1 } else ", "{ 1 }", ""),
    ];
    for (i, text) in texts.iter().enumerate() {
        let path = folder.file(&format!("{i}.ab"), text);
        for command in ["check", "fmt", "run"] {
            assert!(error(&[command, &path]).contains("E0019"), "text {i}");
        }
    }
    let path = folder.file("large.ab", "pub fn main() -> int { 99999999999999999999999 }");
    assert!(error(&["run", &path]).contains("E0005"));
    assert!(error(&fib(&["--input", "n=[9223372036854775808]"])).contains("does not fit into 64 bits"));
}

/// What does not look nested to its writer is not: as many arms and terms as a generator may make.
#[test]
fn long_chains_are_no_nesting() {
    let folder = Folder::new("chains");
    let arms = |n: usize| {
        let arms: String = (0..n).map(|i| format!("if k == {i} {{ {} }} else ", 3 * i)).collect();
        format!("pub fn main(k: int) -> int {{\n    {arms}{{ -1 }}\n}}\n")
    };
    let terms = |n: usize| {
        let terms: Vec<String> = (0..n).map(|i| format!("sin(x * {i}.5)")).collect();
        format!("pub fn main(x: real) -> real {{ {} }}\n", terms.join(" + "))
    };
    let booleans = format!("pub fn main(x: real) -> bool {{ {} }}\n", ["x > 1.0"; 10_000].join(" || "));
    for (i, text) in [arms(10_000), terms(10_000), booleans].iter().enumerate() {
        let path = folder.file(&format!("{i}.ab"), text);
        for command in [&["check", &path][..], &["fmt", &path], &["dump", "--stage", "ast", &path]] {
            let found = output(command);
            assert!(found.status.success(), "text {i}, {}: {}", command[0], String::from_utf8_lossy(&found.stderr));
        }
        // An error in the last of them is found, too.
        let broken = folder.file(&format!("broken{i}.ab"), text.replace("-1", "1.5 +").replace(".5) }", ".5) + }"));
        assert!(i == 2 || output(&["check", &broken]).status.code() == Some(1), "text {i}");
    }
    let path = folder.file("arms.ab", arms(300));
    let found = output(&["run", &path, "--input", "k=[0,299,300,150]"]);
    assert!(String::from_utf8_lossy(&found.stdout).contains("result = [0, 897, -1, 450]"), "{found:?}");
}

#[test]
fn values_of_other_types_are_refused_in_the_words_of_the_parameter() {
    for value in ["5", "[5.5]", "[true]", "[[5]]", "[null]", "{}", "\"a\"", "[", "[5,]"] {
        let said = error(&fib(&["--input", &format!("n={value}")]));
        assert!(said.contains("`n`"), "{value}: {said}");
    }
    assert!(error(&fib(&[])).contains("give --lanes"));
    assert!(error(&fib(&["--input", "m=[5]"])).contains("`fib` has no input `m`"));
    assert!(error(&["run", FIB, "--entry", "nope"]).contains("there is `fib`"));
}

#[test]
fn what_goes_lane_by_lane_is_told_and_can_be_denied() {
    let folder = Folder::new("fallback");
    let file = folder.file("power.ab", "pub fn main(n: int, shared k: int) -> (int, int) { (2 ^ n, n ^ k) }");
    let arguments = ["run", &file, "--input", "n=[3,4]", "--shared", "k=2"];
    let found = output(&arguments);
    let said = String::from_utf8_lossy(&found.stderr);
    assert_eq!(String::from_utf8_lossy(&found.stdout), "result.0 = [8, 16]\nresult.1 = [9, 16]\n");
    assert_eq!(said.matches("W0101").count(), 1, "one site, told once: {said}");
    assert!(said.contains("`^` of ints goes lane by lane: the exponent `n` differs between lanes"), "{said}");
    let said = error(&[&arguments[..], &["--deny", "fallback"]].concat());
    assert!(said.contains("`--deny fallback` makes this an error"), "{said}");
    assert!(output(&[&arguments[..], &["--deny", "loops"]].concat()).status.success());
    let plan = output(&["dump", &file, "--stage", "plan", "--explain"]);
    let plan = String::from_utf8_lossy(&plan.stdout).into_owned();
    assert!(plan.contains("# lane by lane") && plan.contains("# elementwise over the lanes"), "{plan}");
}

/// The check that the matrix is symmetric runs once, as operations on the whole of it.
#[test]
fn a_quadratic_form_has_no_loop() {
    let model = ["dump", "nuts/models/correlated_gaussian.ab", "--entry", "log_density", "--stage", "plan"];
    let shapes = ["--shape", "q=3", "--shape", "mean=3", "--shape", "precision=3,3", "--deny", "loops"];
    let output = output(&[&model[..], &shapes].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn generated_code_changes_no_draw() {
    if crate::tools::observed::codegen() == autobatch::program::Codegen::Off {
        return;
    }
    let folder = Folder::new("codegen");
    let cache = folder.0.join("cache");
    let sampled = |codegen: &str, real: &str| {
        let out = folder.0.join(format!("{codegen}-{real}.json"));
        let run = ["--chains", "11", "--warmup", "40", "--draws", "20", "--seed", "3", "--shard-lanes", "9"];
        let how = ["--codegen", codegen, "--real", real, "--output"];
        let mut command = autobatch(&[&MODEL[..], &run, &how].concat());
        let output = command.arg(&out).env("AUTOBATCH_CACHE", &cache).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read_to_string(out).expect("the draws were written")
    };
    for real in &["f64", "f32"][..effort::part(1, 2)] {
        let wanted = sampled("off", real);
        assert!(sampled("cc", real) == wanted, "draws in {real} differ");
        // What is on disk now.
        assert!(sampled("auto", real) == wanted, "draws in {real} differ with --codegen auto");
    }
    assert!(std::fs::read_dir(&cache).is_ok_and(|files| files.count() > 0), "the code was kept");
}

#[test]
fn without_a_c_compiler_code_generation_says_so() {
    let mut command = autobatch(&fib(&["--input", "n=[3]", "--codegen", "cc"]));
    let output = command.env("AUTOBATCH_CC", "/nowhere/cc").output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("/nowhere/cc"), "{said}");
}

#[test]
fn without_code_a_run_goes_on_and_statistics_say_why() {
    let folder = Folder::new("no-code");
    let open = folder.0.join("open");
    std::fs::create_dir(&open).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let kept = folder.0.join("cache");
    let mut ways = vec![("/nowhere/cc", &kept, "no C compiler was found"), ("false", &kept, "no C compiler was found")];
    if cfg!(unix) && crate::tools::observed::codegen() == autobatch::program::Codegen::Cc {
        ways.push(("", &open, "other users can write to it"));
    }
    for (compiler, cache, why) in ways {
        let run = ["--chains", "3", "--warmup", "5", "--draws", "5", "--stats"];
        let mut command = autobatch(&[&MODEL[..], &run].concat());
        let output = command.env("AUTOBATCH_CC", compiler).env("AUTOBATCH_CACHE", cache).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{compiler}: {said}");
        let line =
            said.lines().find(|line| line.starts_with("generated code: none")).unwrap_or_else(|| panic!("{said}"));
        assert!(line.contains(why), "{compiler}: {line}");
    }
}

#[test]
fn a_short_run_starts_no_compiler() {
    let mut command = autobatch(&fib(&["--input", "n=[3]", "--stats"]));
    let output = command.env("AUTOBATCH_CC", "/nowhere/cc").output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("generated code: not worth it for 0.0"), "{said}");
}

#[test]
fn the_generated_code_can_be_read() {
    let said = output(&["dump", FIB, "--entry", "fib", "--stage", "c"]);
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(text.contains("void ab_0_b0(struct ab_call *c)"), "{text}");
}

/// The sums of a profile's parts are its whole, and every activity is named everywhere.
#[test]
fn a_profile_adds_up() {
    let folder = Folder::new("profile");
    let path = folder.file("profile.json", "");
    let model: Vec<&str> =
        MODEL.into_iter().chain(["--chains", "6", "--warmup", "20", "--draws", "5", "--threads", "2"]).collect();
    for arguments in [
        fib(&["--input", "n=[3, 9, 12]"]),
        fib(&["--input", "n=[3, 9, 12]", "--engine", "local"]),
        fib(&["--input", "n=[3, 9, 12]", "--exec", "gather", "--schedule", "earliest"]),
        model,
    ] {
        let sampled = arguments[0] == "sample";
        let output = output(&[&arguments[..], &["--profile", &path]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read_to_string(&path).expect("it is written");
        let profile: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        let names =
            ["scheduling", "masks", "stacks", "kernels", "contractions", "random", "native", "records"].as_slice();
        let seconds = |entry: &serde_json::Value| -> f64 {
            let activities = entry["activities"].as_object().expect("an object");
            assert!(activities.keys().eq(names), "every activity is there: {activities:?}");
            let sum: f64 = activities.values().map(|s| s.as_f64().expect("seconds")).sum();
            let whole = entry["seconds"].as_f64().expect("seconds");
            assert!((sum - whole).abs() <= 1e-9 * whole, "{sum} is {whole}");
            whole
        };
        let whole = seconds(&profile);
        assert!(whole > 0.0);
        for part in ["blocks", "lines"] {
            let sum: f64 = profile[part].as_array().expect("a list").iter().map(seconds).sum();
            assert!((sum - whole).abs() <= 1e-9 * whole, "{part}: {sum} is {whole}");
        }
        let of = |activity: &str| profile["activities"][activity].as_f64().expect("seconds");
        assert!(of("kernels") + of("native") > 0.0 && (of("records") > 0.0) == sampled);
        assert!(of("native") > 0.0 || (of("random") > 0.0) == sampled);
        for key in ["wall_seconds", "measuring_seconds", "supersteps"] {
            assert!(profile[key].is_number(), "{key}");
        }
    }
    let said = error(&fib(&["--input", "n=[3]", "--engine", "scalar", "--profile", &path]));
    assert!(said.contains("--profile"), "{said}");
}

#[test]
fn a_profile_that_cannot_be_written_is_refused_before_the_run() {
    let folder = Folder::new("profile-place");
    let draws = folder.0.join("draws.json").display().to_string();
    let same = folder.0.join(".").join("draws.json").display().to_string();
    let few = [&MODEL[..], &["--chains", "1", "--warmup", "5", "--draws", "2"]].concat();
    for (profile, why) in [("/nope/x.json", "there is no folder /nope"), (&same, "this is the file of --output")] {
        let said = error(&[&few[..], &["--output", &draws, "--profile", profile]].concat());
        assert!(said.contains("--profile") && said.contains(why), "{said}");
        let said = error(&fib(&["--input", "n=[5]", "--output", &draws, "--profile", profile]));
        assert!(said.contains("--profile") && said.contains(why), "{said}");
    }
    assert!(!Path::new(&draws).exists(), "nothing was run");
}

/// What the user did not give is asked for in the words of the command line, not in those of a program that nobody wrote.
#[test]
fn what_a_model_lacks_is_asked_for() {
    let folder = Folder::new("lacks");
    let some = folder.file("some.json", "{\"sigma\": [1, 2]}");
    let uneven = folder.file("uneven.json", "{\"sigma\": [1, 2], \"y\": [1, 2, 3]}");
    let narrow = folder.file("narrow.json", "[[1,2,3],[1,2,3]]");
    let model = MODEL[1];
    let cases: [(&[&str], &str); 5] = [
        (&["sample", model], "the model needs `y: real[J]`, `sigma: real[J]` in its data"),
        (&["sample", model, "--data", &some], "the model needs `y: real[J]` in its data"),
        (&["sample", model, "--data", &uneven], "where real[J] is expected"),
        (
            &["sample", model, "--data", MODEL[3], "--chains", "2", "--starts", &narrow],
            "--starts: rows of 3, but the state of the model has 10 coordinates",
        ),
        (
            &["sample", "nuts/models/standard_normal.ab"],
            "no data tell the dimension of the state `q: real[d]` of the model: say what `d` is in the data or by --shared, or give --starts",
        ),
    ];
    for (arguments, wanted) in cases {
        let said = error(arguments);
        assert!(said.contains(wanted) && !said.contains("driver") && !said.contains("main"), "{said}");
    }
}

#[test]
fn when_no_chain_is_left_the_cause_is_told_and_nothing_else() {
    let folder = Folder::new("no-chain");
    let schools = "[15, 10, 16, 11, 9, 11, 10, 18]";
    let data = folder.file("nan.json", format!("{{\"y\": [28, 8, -3, 7, -1, 1, 18, NaN], \"sigma\": {schools}}}"));
    let draws = folder.0.join("draws.npz").display().to_string();
    let arguments = ["sample", MODEL[1], "--data", &data, "--chains", "2", "--output", &draws];
    let found = output(&arguments);
    let said = String::from_utf8_lossy(&found.stderr);
    assert_eq!(found.status.code(), Some(1), "{said}");
    assert!(said.contains("no chain is left") && said.contains("`y` holds NaN"), "{said}");
    assert!(!said.contains("are kept") && !said.contains("the summary"), "{said}");
    assert!(found.stdout.is_empty() && !Path::new(&draws).exists());
    let starts = folder.file("starts.json", "[[1, 2], [1, NaN]]");
    let model = ["sample", "nuts/models/standard_normal.ab", "--starts", &starts, "--chains", "2", "--draws", "3"];
    let said = String::from_utf8_lossy(&output(&model).stderr).into_owned();
    assert!(said.contains("`starts` holds NaN") && said.contains("of the other chain"), "{said}");
}

#[test]
fn numbers_are_taken_as_they_are_and_told_as_people_say_them() {
    let said = error(&[&MODEL[..], &["--stepsize", "-1"]].concat());
    assert!(said.contains("the step size must be a positive number, not -1"), "{said}");
    let said = error(&fib(&["--input", "n=[5]", "--memory-limit", "0"]));
    assert!(said.contains("1 lane needs") && said.contains("not even one lane fits"), "{said}");
}

#[test]
fn flags_that_the_engine_has_no_use_for_are_told() {
    let all = ["--schedule", "earliest", "--exec", "mask", "--threads", "2", "--shard-lanes", "8", "--fusion", "off"];
    let said = |engine: &str| {
        let arguments = [&["--input", "n=[3]", "--engine", engine, "--costs", "gather=0.9"][..], &all].concat();
        String::from_utf8_lossy(&output(&fib(&arguments)).stderr).into_owned()
    };
    let scalar = said("scalar");
    assert!(
        scalar.contains("--schedule, --exec, --costs, --threads, --shard-lanes, --fusion do nothing here"),
        "{scalar}"
    );
    let local = said("local");
    assert!(local.contains("--schedule does nothing here: the engine `local`"), "{local}");
    assert!(!said("pc").contains("nothing here"));
}

#[test]
fn what_data_have_besides_is_left_alone_but_not_on_the_command_line() {
    let folder = Folder::new("spare");
    let data = folder.file("data.json", "{\"n\": 5, \"K\": [1, 2], \"names\": [\"a\"]}");
    let found = output(&fib(&["--data", &data, "--lanes", "1"]));
    assert_eq!(String::from_utf8_lossy(&found.stdout), "result = [5]\n", "{found:?}");
    assert!(error(&fib(&["--data", &data, "--lanes", "1", "--shared", "K=2"])).contains("`fib` has no input `K`"));
    let twice = folder.file("twice.json", "{\"n\": 5, \"n\": 6}");
    assert!(error(&fib(&["--data", &twice, "--lanes", "1"])).contains("the key `n` stands twice"));
    let square = folder.file("square.ab", "pub fn main[n](x: real, shared y: real[n]) -> real { x * x + sum(y) }");
    let data = folder.file("grad.json", "{\"y\": [1, 2], \"n\": 2, \"group\": [[1], [2, 3]]}");
    assert!(output(&["grad", &square, "--input", "x=[3]", "--data", &data]).status.success());
    let data = folder.file("wrong.json", "{\"y\": [1, 2], \"n\": 3}");
    let said = error(&["grad", &square, "--input", "x=[3]", "--data", &data]);
    assert!(
        said.contains("`n` is 3 by") && said.contains("wrong.json") && said.contains("`y` has 2 entries"),
        "{said}"
    );
}

/// The dimension of a state that no array has comes from an int of the data.
#[test]
fn ints_of_the_data_are_dimensions_of_the_state() {
    let folder = Folder::new("dimension");
    let text =
        "pub fn log_density[J, K](q: real[J * K + K * (K - 1) / 2], shared x: real[K]) -> real { sum(x) - dot(q, q) }";
    let model = folder.file("model.ab", text);
    let run = |more: &[&str]| {
        output(&[&["sample", &model, "--shared", "x=[1,2,3]", "--warmup", "5", "--draws", "5"], more].concat())
    };
    let found = run(&["--shared", "J=2"]);
    let shown = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(shown.contains("q[9]") && !shown.contains("q[10]"), "{found:?}");
    let said = String::from_utf8_lossy(&run(&[]).stderr).into_owned();
    assert!(said.contains("say what `J` is in the data or by --shared, or give --starts"), "{said}");
    let said = String::from_utf8_lossy(&run(&["--shared", "J=2", "--shared", "K=4"]).stderr).into_owned();
    assert!(said.contains("`K` is 4 by --shared, but `x` has 3 entries"), "{said}");
    // Starts tell it as well, and one row serves all chains.
    let starts = folder.file("starts.json", "[[0, 0, 0, 0, 0, 0]]");
    assert!(run(&["--starts", &starts]).status.success());
    let said = String::from_utf8_lossy(&run(&["--starts", &starts, "--shared", "J=2"]).stderr).into_owned();
    assert!(said.contains("--starts: rows of 6, but the state of the model has 9 coordinates"), "{said}");
}

#[test]
fn generated_code_that_does_not_run_is_not_asked_for_in_silence() {
    let stats = ["--engine", "scalar", "--stats"];
    let limited = ["--engine", "scalar", "--max-supersteps", "100"];
    for ignored in [&stats[..], &limited, &["--exec", "gather"], &["--check", "nan"]] {
        let mut command = autobatch(&fib(&[&["--input", "n=[3]", "--codegen", "cc"][..], ignored].concat()));
        let said = String::from_utf8_lossy(&command.output().expect("it starts").stderr).into_owned();
        assert!(said.contains("--codegen cc does nothing here"), "{ignored:?}: {said}");
    }
    let said = error(&fib(&["--input", "n=[3]", "--codegen", "cc", "--fusion", "off"]));
    assert!(said.contains("--fusion off runs every primitive by itself"), "{said}");
}

/// A C compiler that is a shell script: it says its version, and does this with everything else.
#[cfg(unix)]
fn with_compiler(folder: &Folder, script: &str) -> Command {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder
        .file("cc.sh", format!("#!/bin/sh\ncase \"$*\" in *--version*) echo script 1.0; exit ;; esac\n{script}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = autobatch(&fib(&["--input", "n=[3]", "--codegen", "cc"]));
    command.env("AUTOBATCH_CC", &path).env("AUTOBATCH_CACHE", folder.0.join("cache"));
    command
}

#[cfg(unix)]
#[test]
fn a_compiler_that_makes_nothing_that_can_be_loaded_is_told_with_the_reason() {
    let folder = Folder::new("no-library");
    // What is made is named behind -o.
    let junk = "while [ \"$1\" != -o ]; do shift; done; echo junk > \"$2\"";
    for (script, wanted) in
        [("exit 0", "script 1.0 ended without an error and made no file"), (junk, "could not be loaded: ")]
    {
        let output = with_compiler(&folder, script).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(wanted) && !said.contains("dlopen failed"), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_compiler_that_hangs() {
    let folder = Folder::new("hanging-compiler");
    let started = folder.0.join("started");
    assert!(Command::new("mkfifo").arg(&started).status().unwrap().success());
    let command = with_compiler(&folder, &format!("echo compiling > {}; exec sleep 600", started.display()));
    let running = Running::start(command);
    // A pipe has a text when the compiler has written it.
    assert_eq!(std::fs::read_to_string(&started).unwrap(), "compiling\n");
    running.signal("INT");
    let (output, words) = running.end();
    assert_eq!(output.status.code(), Some(130), "{words}");
    assert!(words.contains("interrupted while the C compiler ran"), "{words}");
    let left = std::fs::read_dir(folder.0.join("cache")).unwrap().count();
    assert_eq!(left, 0, "nothing is left behind");
}

#[test]
fn programs_of_stan_are_checked_and_formatted() {
    let folder = Folder::new("stan");
    let bad = folder.file("bad.stan", "data {\n  int N\n  vector[N] y;\n}\nmodel {\n  y ~ normal(0, ;\n}\n");
    let said = error(&["check", &bad]);
    assert!(said.contains("E2006") && said.contains("bad.stan', line 2, column 6 to column 7)"), "{said}");
    assert!(said.contains("E2007") && said.contains("line 6,"), "{said}");
    let old =
        "data {\n  int N;\n  real y[N]; # measured\n}\nparameters { real mu; }\nmodel {\n  y ~ normal(mu, 1);\n}\n";
    let model = folder.file("old.stan", old);
    let checked = output(&["check", &model]);
    let warned = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success() && warned.contains("W2001") && warned.contains("W2003"), "{warned}");
    assert!(error(&["check", "--deny-warnings", &model]).contains("W2001"));
    assert!(!output(&["fmt", "--check", &model]).status.success());
    assert!(output(&["fmt", "--canonicalize=deprecations", &model]).status.success());
    let wanted = "data {\n  int N;\n  array[N] real y; // measured\n}\nparameters {\n  real mu;\n}\nmodel {\n  \
                  y ~ normal(mu, 1);\n}\n";
    assert_eq!(std::fs::read_to_string(&model).expect("it is there"), wanted);
    assert!(output(&["fmt", "--check", &model]).status.success());
    assert!(output(&["check", "--deny-warnings", &model]).status.success());
    // From standard input, by its name.
    let mut piped = autobatch(&["fmt", "-", "--stdin-name", "old.stan"]);
    let mut child = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("it is piped").write_all(b"model{target+=1;}").expect("it reads");
    let formatted = child.wait_with_output().expect("it ends").stdout;
    assert_eq!(String::from_utf8_lossy(&formatted), "model {\n  target += 1;\n}\n");
    // included files are beside the program, or where the option says
    let main = folder.file("main.stan", "data {\n  #include sizes.stan\n}\n");
    assert!(error(&["check", &main]).contains("E2019"));
    std::fs::create_dir_all(folder.0.join("parts")).expect("a folder for the test");
    folder.file("parts/sizes.stan", "int N;\n");
    let parts = folder.0.join("parts").display().to_string();
    assert!(output(&["check", "--include-path", &parts, &main]).status.success());
    let ours = folder.file("own.ab", "pub fn f() -> int { 1 }\n");
    assert!(error_of_option(&["fmt", "--canonicalize", &ours]).contains("--canonicalize"));
}

/// What it says when it refuses its options.
fn error_of_option(arguments: &[&str]) -> String {
    let output = output(arguments);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}
