//! `autobatch bench`: the form of what it writes, the protocol with peers, and what it refuses. Nothing here looks at speed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A folder of its own for a test, removed at the end.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("autobatch-bench-test-{test}-{}", std::process::id()));
        std::fs::create_dir_all(path.join("bin")).unwrap();
        Self(path)
    }
    pub(super) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
    /// Installs a shell script as the peer `nuts-rs`.
    #[cfg(unix)]
    pub(super) fn install(&self, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.0.join("bin/nuts-rs-peer");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    /// Installs a shell script as the Python of a peer that is a script.
    #[cfg(unix)]
    fn install_python(&self, peer: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = self.0.join(peer).join("bin");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("python"), format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(folder.join("python"), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_autobatch"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("AUTOBATCH_PEERS");
    command.arg("bench").args(arguments).output().unwrap()
}

/// What a comparison gives as JSON.
fn report(arguments: &[&str]) -> Value {
    let output = bench(&[arguments, &["--format", "json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What it says when it refuses.
pub(super) fn refusal(arguments: &[&str]) -> String {
    let output = bench(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(1 | 2)), "{arguments:?}: {said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

/// Small and quick.
const SMALL: [&str; 10] =
    ["--model", "eight_schools", "--chains", "2", "--draws", "4", "--repetitions", "2", "--codegen", "off"];

/// Speaks the protocol, and gives 100 gradients in half a second each time.
pub(super) const FAKE: &str = r#"read -r job
case "$job" in *'"model":"eight_schools"'*'"chains":1,'*'"precision":"f64"'*'"max_treedepth":10'*) ;; *) echo '{"error":"another job"}'; exit ;; esac
echo 'not for the harness' >&2
echo '{"ready":{"version":"fake 1.0"}}'
while read -r request; do
    case "$request" in *'"draws":4,'*) echo '{"done":{"useful":100,"issued":125.0,"seconds":0.5,"draws":4}}' ;; *) echo '{"error":"another request"}' ;; esac
done"#;

#[cfg(unix)]
#[test]
fn the_json_has_a_row_for_each_series() {
    let folder = Folder::new("json");
    folder.install(FAKE);
    let report = report(&[&SMALL[..], &["--against", "nuts-rs", "--peers", folder.path()]].concat());
    assert!(report["machine"]["cores"].as_u64().unwrap() >= 1);
    assert!(report["void"].is_boolean());
    assert_eq!(report["bound"], Value::Array(vec![]), "only the logistic regression has one");
    assert_eq!(report["systems"]["nuts-rs"], "fake 1.0");
    let rows = report["results"].as_array().unwrap();
    let series: Vec<String> =
        rows.iter().map(|r| format!("{} {} {}", r["system"], r["engine"], r["fusion"]).replace('"', "")).collect();
    let expected = [
        "autobatch pc true",
        "autobatch pc false",
        "autobatch local true",
        "autobatch local false",
        "autobatch scalar null",
        "nuts-rs native gradient null",
    ];
    assert_eq!(series, expected);
    for row in rows {
        let rate = &row["gradients_per_second"];
        let [min, median, max] = ["min", "median", "max"].map(|k| rate[k].as_f64().unwrap());
        assert!(0.0 < min && min <= median && median <= max, "{row}");
        assert_eq!(row["chains"], 2);
        assert_eq!(row["draws"], 4);
    }
    // All of our engines take the same steps.
    let useful: Vec<&Value> = rows[..5].iter().map(|r| &r["useful"]).collect();
    assert!(useful.iter().all(|u| *u == useful[0]), "{useful:?}");
    let fake = &rows[5];
    assert_eq!(fake["gradients_per_second"]["median"], 200.0);
    assert_eq!(fake["useful"], 200);
    assert_eq!(fake["utilization"], 0.8);
}

/// A program of the user: its warmup is made here, and peers are told the program, the data, and what was learnt.
#[cfg(unix)]
#[test]
fn a_stan_program_is_compared_with_what_its_warmup_learnt() {
    let folder = Folder::new("stan");
    let program = folder.0.join("two.stan");
    let text = "data { int n; vector[n] y; } parameters { real mu; real<lower=0> sigma; }
        model { mu ~ normal(0, 1); sigma ~ lognormal(0, 0.1); y ~ normal(mu, sigma); }";
    std::fs::write(&program, text).unwrap();
    std::fs::write(folder.0.join("two.json"), r#"{"n": 3, "y": [0.5, -1, 2]}"#).unwrap();
    let job = folder.0.join("job");
    folder.install_python(
        "stanli",
        &format!(
            r#"read -r job; echo "$job" > {}
echo '{{"ready":{{"version":"fake 2.0"}}}}'
while read -r request; do echo '{{"done":{{"useful":100,"seconds":0.5,"draws":4}}}}'; done"#,
            job.display()
        ),
    );
    let [program, data] = [program, folder.0.join("two.json")].map(|path| path.display().to_string());
    let small = ["--chains", "2", "--draws", "4", "--repetitions", "2", "--codegen", "off"];
    let asked = ["--stan", &program, "--data", &data, "--against", "stanli,numpyro", "--peers", folder.path()];
    let report = report(&[&small[..], &["--warmup", "300"], &asked].concat());
    let rows = report["results"].as_array().unwrap();
    let series: Vec<&str> = rows.iter().map(|r| r["engine"].as_str().unwrap()).collect();
    assert_eq!(series, ["pc", "interpreter"]);
    assert!(rows.iter().all(|row| row["model"] == "two"));
    assert!(rows[0]["effective_samples_per_second"]["median"].as_f64().unwrap() > 0.0);
    let why = report["skipped"].as_array().unwrap().iter().find(|s| s["system"] == "numpyro").unwrap();
    assert!(why["reason"].as_str().unwrap().contains("runs no Stan programs"), "{why}");
    let job: Value = serde_json::from_str(&std::fs::read_to_string(job).unwrap()).unwrap();
    assert_eq!(job["program"]["file"], program.as_str());
    assert_eq!(job["program"]["data"], data.as_str());
    assert_eq!((job["chains"].as_u64(), job["dimension"].as_u64()), (Some(1), Some(2)));
    // The posterior is not far from normal, with deviations of 0.5 and 0.1 or so.
    let metric: Vec<f64> =
        job["program"]["inv_metric"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    assert!(metric.len() == 2 && (0.05..0.6).contains(&metric[0]) && (0.003..0.03).contains(&metric[1]), "{metric:?}");
    assert!((0.3..2.0).contains(&job["stepsize"].as_f64().unwrap()), "{job}");
}

#[test]
fn a_stan_program_that_cannot_be_measured_is_told() {
    let said = refusal(&["--stan", "no/such.stan"]);
    assert!(said.contains("cannot read no/such.stan"), "{said}");
    assert!(refusal(&["--stan", "a.stan", "--model", "logistic"]).contains("cannot be used with"));
}

#[test]
fn generated_code_is_a_series_of_its_own() {
    if crate::tools::observed::codegen() == autobatch::program::Codegen::Off {
        return;
    }
    let arguments =
        ["--model", "eight_schools", "--chains", "2", "--draws", "4", "--repetitions", "1", "--fusion", "on"];
    let report = report(&arguments);
    let rows = report["results"].as_array().unwrap();
    let engines: Vec<&str> = rows.iter().map(|r| r["engine"].as_str().unwrap()).collect();
    assert_eq!(engines, ["pc", "pc cc", "pc auto", "local", "local cc", "local auto", "scalar", "scalar cc"]);
    assert!(rows.iter().all(|r| r["useful"] == rows[0]["useful"]), "all take the same steps");
}

#[test]
fn each_optimisation_of_the_paper_is_switched_off_by_itself() {
    let arguments = ["--ablate", "--model", "eight_schools", "--chains", "3", "--draws", "2", "--repetitions", "1"];
    let report = report(&arguments);
    let rows = report["results"].as_array().unwrap();
    let five = ["save-live", "temporaries", "storage", "cached-tops", "pop-push-fusion"];
    let mut expected: Vec<Vec<&str>> = vec![vec![]];
    expected.extend(five.iter().map(|name| vec![*name]));
    expected.push(five.to_vec());
    let without: Vec<Vec<&str>> = rows
        .iter()
        .map(|r| r["ablation"]["without"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect())
        .collect();
    assert_eq!(without, expected);
    assert!(rows.iter().all(|r| r["useful"] == rows[0]["useful"]), "all take the same steps: {report}");
    assert_eq!(rows[0]["ablation"]["ratio"]["median"], 1.0);
    let pushed = |i: usize| rows[i]["bytes_pushed"].as_f64().unwrap();
    assert!(pushed(1) > 2.0 * pushed(0), "saving everything pushes more: {} and {}", pushed(1), pushed(0));
    assert!(pushed(6) >= pushed(1));
    for row in rows {
        assert!(
            row["supersteps"].as_u64().unwrap() > 0 && row["ablation"]["seconds"]["median"].as_f64().unwrap() > 0.0
        );
    }
    let text = bench(&arguments).stdout;
    let text = String::from_utf8(text).unwrap();
    for line in ["| 3 | nothing: all on |", "| 3 | cached-tops |", "pushed B a gradient | supersteps a run |"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let folder = Folder::new("ablate");
    let figure = bench(&[&arguments[..], &["--report", folder.path()]].concat());
    assert!(figure.status.success());
    assert!(folder.read("eight_schools-f64-1-ablation.svg").contains("without save-live"));
    assert!(folder.read("report.html").contains("times all on"));
    assert!(refusal(&["--ablate", "--engine", "local"]).contains("cannot be used with"));
    assert!(refusal(&["--ablate", "--device", "cpu,cpu"]).contains("--ablate is of one --device"));
}

#[cfg(unix)]
#[test]
fn a_peer_that_fails_is_left_out_with_the_reason() {
    let scripts = [
        ("read -r job; echo '{\"error\":\"no licence\"}'", "no licence"),
        ("read -r job; echo hello", "`hello` is not of the protocol"),
        ("echo 'a library is missing' >&2", "a library is missing"),
        ("read -r job; echo '{\"done\":{\"useful\":1,\"seconds\":1,\"draws\":1}}'", "answered a job with"),
        ("read -r job; echo '{\"ready\":{\"version\":\"1\"}}'", "ended"),
        ("read -r job; exec sleep 600", "no answer within 0.5 seconds"),
    ];
    for (i, (script, reason)) in scripts.into_iter().enumerate() {
        let folder = Folder::new(&format!("failing-{i}"));
        folder.install(script);
        let arguments = ["--engine", "pc", "--fusion", "on", "--against", "nuts-rs", "--peers", folder.path()];
        let patience = if reason.starts_with("no answer") { "0.5" } else { "600" };
        let report = report(&[&SMALL[..], &arguments, &["--patience", patience]].concat());
        assert_eq!(report["results"].as_array().unwrap().len(), 1);
        let said = report["skipped"][0]["reason"].as_str().unwrap();
        assert!(said.contains(reason), "{said}");
    }
}

/// A peer that lasts too long is ended with what it has started.
#[cfg(target_os = "linux")]
#[test]
fn nothing_of_a_peer_is_left_when_patience_ends() {
    let folder = Folder::new("descendants");
    let held = format!("{}/held", folder.path());
    assert!(Command::new("mkfifo").arg(&held).status().unwrap().success());
    folder.install(&format!("exec 3> {held}; read -r job; sleep 600 & wait"));
    // A pipe has an end when nobody is left that could write to it.
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || ended.send(std::fs::read(held).is_ok()));
    let arguments = ["--engine", "pc", "--fusion", "on", "--against", "nuts-rs", "--peers", folder.path()];
    let report = report(&[&SMALL[..], &arguments, &["--patience", "2"]].concat());
    assert!(report["skipped"][0]["reason"].as_str().unwrap().contains("no answer within 2 seconds"), "{report}");
    assert_eq!(end.recv_timeout(crate::tools::running::PATIENCE), Ok(true), "it still runs");
}

#[test]
fn what_is_not_there_is_named_with_the_command_that_installs_it() {
    let folder = Folder::new("missing");
    let against = ["--engine", "pc", "--fusion", "on", "--against", "stan:plain,nuts-rs", "--peers", folder.path()];
    let report = report(&[&SMALL[..], &against].concat());
    let skipped = report["skipped"].as_array().unwrap();
    assert_eq!(skipped.len(), 2);
    for (skipped, name) in skipped.iter().zip(["stan", "nuts-rs"]) {
        let reason = skipped["reason"].as_str().unwrap();
        let command = format!("AUTOBATCH_PEERS={} benches/compare/install {name}", folder.path());
        assert!(reason.contains(&command), "{reason}");
    }
    let list = String::from_utf8(bench(&["--list", "--peers", folder.path()]).stdout).unwrap();
    for name in ["eight_schools", "collatz", "stan", "glm-native", "auto-batching-graph", "benches/compare/install tfp"]
    {
        assert!(list.contains(name), "{list}");
    }
}

#[test]
fn control_programs_are_counted_in_their_own_units() {
    let arguments =
        ["--model", "collatz,fib", "--chains", "1,3", "--draws", "1", "--repetitions", "1", "--codegen", "off"];
    let report = report(&arguments);
    let rows = report["results"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 2 * 5);
    for row in rows {
        let key = if row["model"] == "fib" { "calls_per_second" } else { "iterations_per_second" };
        assert!(row[key]["median"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["effective_samples_per_second"].is_null());
    }
}

/// The figure of the logistic regression, with fewer observations, has the bound.
#[test]
fn figures_and_page_are_well_formed() {
    let folder = Folder::new("report");
    let data = folder.0.join("data.json");
    let (n, d) = (40, 100);
    let x: Vec<Vec<f64>> =
        (0..n).map(|i| (0..d).map(|j| f64::from((i * 31 + j * 17) % 23) / 11.0 - 1.0).collect()).collect();
    let y: Vec<i32> = (0..n).map(|i| i % 2).collect();
    std::fs::write(&data, serde_json::json!({ "x": x, "y": y }).to_string()).unwrap();
    let arguments = ["--chains", "1,3", "--draws", "20", "--repetitions", "2", "--engine", "pc,local"];
    let files = ["--data", data.to_str().unwrap(), "--stepsize", "0.05", "--report", folder.path()];
    let report = report(&[&arguments[..], &files].concat());
    assert_eq!(report["bound"].as_array().unwrap().len(), 2);
    assert!(report["results"][0]["bound"].as_f64().unwrap() > 0.0);
    assert!(report["results"][0]["effective_samples_per_second"]["median"].as_f64().unwrap() > 0.0);
    let again: Value = serde_json::from_str(&folder.read("results.json")).unwrap();
    assert_eq!(again, report);
    let svg = folder.read("logistic-f64-1.svg");
    well_formed(&svg);
    for text in ["autobatch pc", "autobatch local, no fusion", "bound:", "chains", "gradients / s"] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(report["bound"][0]["tiling"].as_str().unwrap().contains("40 observations"), "{}", report["bound"][0]);
    let page = folder.read("report.html");
    well_formed(page.strip_prefix("<!DOCTYPE html>").unwrap());
    for text in [
        "<svg",
        "autobatch local, no fusion",
        "its bound",
        "bytes pushed",
        "fewer than 5 repetitions",
        "step size 0.05",
    ] {
        assert!(page.contains(text), "{text}");
    }
    // Each bound before the rows of its number of chains.
    let series = |n: &str, name: &str| format!("<td>{n}</td><td class=\"name\">{name}</td>");
    let places = [series("1", "bound"), series("1", "autobatch pc"), series("3", "bound"), series("3", "autobatch pc")];
    let places: Vec<usize> = places.iter().map(|cell| page.find(cell).unwrap_or_else(|| panic!("{cell}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
}

/// Every tag is closed, and attributes are quoted.
pub(crate) fn well_formed(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains('>'), "a stray > before {}", &rest[start..rest.len().min(start + 40)]);
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closed");
        } else if !tag.ends_with('/') && !tag.starts_with(['!', '?']) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} are open");
}

#[test]
fn wrong_requests_are_refused() {
    let cases: [(&[&str], &str); 32] = [
        (&["--against", "pymc"], "no system `pymc`: there is stan, stanli, numpyro"),
        (&["--against", "stan:fast"], "`stan` has no `fast`: there is plain, plain-native, glm, glm-native"),
        (&["--model", "nine_schools"], "no model `nine_schools`: there is logistic, eight_schools"),
        (&["--chains", "10,0"], "--chains 0"),
        (&["--threads", "0"], "--threads 0"),
        (&["--device", "abacus"], "there is no device `abacus`: there is cpu"),
        (&["--precision", "f16"], "f16"),
        (&["--repetitions", "0"], "1 or more"),
        (&["--draws", "0"], "1 or more"),
        (&["--stan", "a.stan", "--warmup", "0"], "--warmup 0: the metric"),
        (&["--warmup", "100"], "--stan"),
        (&["--model", "bisection", "--precision", "f32"], "`bisection` is compared with a twin in doubles"),
        (&["--seconds=-1"], "a run must take some time"),
        (&["--model", "logistic,fib", "--stepsize", "0.1"], "for one model"),
        (&["--model", "normal10", "--stepsize=-0.1"], "the step size must be a positive number"),
        (&["--model", "normal10", "--stepsize", "-0.1"], "the step size must be a positive number"),
        (&["--model", "logistic", "--data", "missing.json"], "missing.json"),
        (&["--seconds", "1e300"], "a day at most"),
        (&["--patience", "0"], "--patience 0: a peer must have some time"),
        (&["--model", "fib", "--stepsize", "0.1"], "`fib` is a program of control flow"),
        (&["--model", "fib", "--data", "nuts/data/eight_schools.json"], "`fib` takes no data"),
        (&["--model", "normal10", "--data", "nuts/data/eight_schools.json"], "`normal10` takes no data"),
        (&["--engine", "pc", "--codegen", "cc", "--fusion", "off"], "leaves no engine"),
        (&["--engine", "pc", "--codegen", "cc", "--exec", "mask"], "leaves no engine"),
        (&["--schedule", "latest"], "expected earliest, most-lanes, cost"),
        (&["--leaf-steps", "1,0"], "numbers from 1 to 1000"),
        (&["--leaf-steps", "2", "--model", "fib"], "--leaf-steps: `fib` is a program of control flow"),
        (&["--figures", "report", "--engine", "pc"], "cannot be used with"),
        (&["--figures", "report", "--device", "cpu,cpu"], "--figures is of one --device"),
        (&["--from", "results.json"], "--report"),
        (&["--model", "collatz", "--chains", "100000000000"], "the largest batch that fits is"),
        (&["--model", "eight_schools", "--chains", "100000000000"], "the largest batch that fits is"),
    ];
    for (arguments, expected) in cases {
        let said = refusal(arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn outside_of_a_checkout_it_says_what_is_missing() {
    let folder = Folder::new("elsewhere");
    // The program itself lies in the checkout: a copy does not.
    let program = folder.0.join("autobatch");
    std::fs::copy(Path::new(env!("CARGO_BIN_EXE_autobatch")), &program).unwrap();
    let output = Command::new(&program).current_dir(&folder.0).args(["bench", "--chains", "1"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no benches/compare/README.md above the current folder"), "{said}");
    let list = Command::new(&program).current_dir(&folder.0).args(["bench", "--list"]).output().unwrap();
    let list = String::from_utf8_lossy(&list.stdout);
    assert_eq!(list.matches("no benches/compare/README.md").count(), 1, "told once: {list}");
}

/// The keys that say under which conditions figures were measured.
#[test]
fn the_report_says_what_was_asked_for() {
    let report = report(&[&SMALL[..], &["--engine", "pc,scalar", "--fusion", "on", "--seed", "7"]].concat());
    let comparison = &report["comparison"];
    let command = comparison["command"].as_str().unwrap();
    assert!(command.starts_with("autobatch bench --model eight_schools --chains 2"), "{command}");
    assert_eq!(comparison["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(comparison["repetitions"], 2);
    assert_eq!((&comparison["draws"], &comparison["seconds"]), (&4.into(), &Value::Null));
    assert_eq!((&comparison["seed"], &comparison["max_treedepth"]), (&7.into(), &10.into()));
    assert_eq!(comparison["interrupted"], false);
    let model = &comparison["models"]["eight_schools"];
    assert_eq!((&model["stepsize"], &model["dimension"]), (&0.55.into(), &10.into()));
    assert_eq!(model["data"], "nuts/data/eight_schools.json");
    assert!(report["results"].as_array().unwrap().iter().all(|row| row["repetitions"] == 2));
}

#[test]
fn rows_say_how_many_chains_ran_and_nothing_is_measured_twice() {
    let arguments = ["--model", "eight_schools,eight_schools", "--chains", "6,6", "--draws", "4", "--repetitions", "1"];
    let more = ["--codegen", "off,off", "--fusion", "on", "--engine", "pc,scalar,pc", "--threads", "2"];
    let report = report(&[&arguments[..], &more].concat());
    let rows: Vec<_> = report["results"].as_array().unwrap().iter().map(|r| (&r["engine"], &r["chains_run"])).collect();
    assert_eq!(rows, [(&"pc".into(), &6.into()), (&"scalar".into(), &4.into())]);
    assert!(report["results"].as_array().unwrap().iter().all(|row| row["chains"] == 6 && row["threads"] == 2));
}

#[test]
fn the_dimension_is_that_of_the_data() {
    let folder = Folder::new("dimension");
    let data = folder.0.join("data.json");
    let x: Vec<Vec<f64>> = (0..30).map(|i| (0..3).map(|j| f64::from((i * 7 + j) % 5) - 2.0).collect()).collect();
    let y: Vec<i32> = (0..30).map(|i| i % 2).collect();
    std::fs::write(&data, serde_json::json!({ "x": x, "y": y }).to_string()).unwrap();
    let arguments = ["--data", data.to_str().unwrap(), "--stepsize", "0.2", "--engine", "pc", "--fusion", "on"];
    let sizes = ["--codegen", "off", "--chains", "2", "--draws", "2", "--repetitions", "1"];
    let report = report(&[&arguments[..], &sizes].concat());
    let model = &report["comparison"]["models"]["logistic"];
    assert_eq!(model["dimension"], 3);
    assert_eq!(model["data"], data.to_str().unwrap());
    assert_eq!(report["results"].as_array().unwrap().len(), 1);
}

#[test]
fn what_does_not_run_is_named() {
    let folder = Folder::new("combinations");
    let one = ["--engine", "pc", "--fusion", "on", "--codegen", "off", "--chains", "2", "--draws", "1"];
    let against = ["--repetitions", "1", "--against", "stan:plain,nuts-rs", "--peers", folder.path()];
    let skipped = |more: &[&str]| -> Vec<String> {
        let report = report(&[&one[..], &against, more].concat());
        let told =
            |s: &Value| format!("{} {} {} {}", s["system"], s["model"], s["precision"], s["reason"]).replace('"', "");
        report["skipped"].as_array().unwrap().iter().map(told).collect()
    };
    let control = skipped(&["--model", "fib"]);
    assert_eq!(control.len(), 2, "{control:?}");
    assert_eq!(control[0], "stan fib null this model is not written for it");
    let single = skipped(&["--model", "normal10", "--precision", "f32"]);
    assert_eq!(single[1], "nuts-rs normal10 f32 it does not run in f32");
}

#[cfg(unix)]
#[test]
fn a_comparison_goes_on_without_what_fails() {
    let folder = Folder::new("broken-compiler");
    folder.install("case \"$1\" in --version) echo broken 1.0 ;; *) echo 'error: out of order' >&2; exit 1 ;; esac");
    let compiler = folder.0.join("bin/nuts-rs-peer");
    let bench = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_autobatch"));
        command.current_dir(env!("CARGO_MANIFEST_DIR")).env("AUTOBATCH_CC", &compiler);
        command.env("AUTOBATCH_CACHE", folder.0.join("cache"));
        command.args(["bench", "--format", "json"]).args(arguments).output().unwrap()
    };
    let one = ["--engine", "pc", "--fusion", "on", "--draws", "1", "--repetitions", "1"];
    let output = bench(&[&one[..], &["--model", "normal10,fib", "--chains", "2,3"]].concat());
    assert!(output.status.success());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["results"].as_array().unwrap().len(), 8, "without generated code, and where it may come");
    let [skipped] = &report["skipped"].as_array().unwrap()[..] else { panic!("{}", report["skipped"]) };
    assert_eq!((&skipped["engine"], &skipped["model"]), (&"pc cc".into(), &Value::Null));
    assert!(skipped["reason"].as_str().unwrap().contains("error: out of order"), "{skipped}");
    // Nothing else is asked for.
    let output = bench(&[&one[..], &["--model", "fib", "--chains", "2", "--codegen", "cc"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["skipped"][0]["engine"], "pc cc");
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing was measured"));
}

/// A peer hangs in the second cell: the first one is kept.
#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_is_measured() {
    let folder = Folder::new("interrupted");
    let hangs = "*'\"model\":\"normal10\"'*) exec sleep 600 ;;";
    folder.install(&FAKE.replace("case \"$job\" in ", &format!("case \"$job\" in {hangs} ")));
    let mut command = Command::new(env!("CARGO_BIN_EXE_autobatch"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args([
        "bench",
        "--model",
        "eight_schools,normal10",
        "--chains",
        "2",
    ]);
    command.args(["--draws", "4", "--repetitions", "2", "--engine", "pc", "--fusion", "on", "--codegen", "off"]);
    command.args(["--against", "nuts-rs", "--format", "json", "--peers", folder.path(), "--report", folder.path()]);
    let mut running = crate::tools::running::Running::start(command);
    running.wait_for("normal10, 2 chains, f64, 1 thread: nuts-rs native gradient compiles");
    running.signal("INT");
    let (output, said) = running.end();
    assert_eq!(output.status.code(), Some(130), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["comparison"]["interrupted"], true);
    let models: Vec<&Value> = report["results"].as_array().unwrap().iter().map(|row| &row["model"]).collect();
    assert_eq!(models, [&Value::from("eight_schools"), &"eight_schools".into()]);
    let kept: Value = serde_json::from_str(&folder.read("results.json")).unwrap();
    assert_eq!(kept["results"], report["results"]);
}
