//! Sampling that is stopped by a signal: what was done is kept, and nothing is made up.

use std::path::Path;
use std::process::Command;

use crate::project::cli::{Folder, autobatch};
use crate::tools::running::Running;

/// On kernels: with code that is there at once, a run is over before it is looked at for the first time.
const MODEL: [&str; 6] =
    ["sample", "nuts/models/eight_schools.ab", "--data", "nuts/data/eight_schools.json", "--codegen", "off"];

fn hidden_files(folder: &Path) -> usize {
    let names = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with('.')).count()
}

#[test]
fn stopped_in_warmup_nothing_is_said_to_be_drawn() {
    let folder = Folder::new("stopped-warmup");
    let file = folder.0.join("draws.npz").display().to_string();
    let run = [&MODEL[..], &["--chains", "3", "--warmup", "400000", "--draws", "10", "--output", &file]].concat();
    let mut running = Running::start(autobatch(&run));
    running.wait_for("warmup: chains are at iterations ");
    running.signal("INT");
    let (output, said) = running.end();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(said.contains("stopped in warmup, nothing was drawn: the chains were at iterations "), "{said}");
    assert!(said.contains(" of 400000 of their warmup") && said.contains("draws.npz is not written"), "{said}");
    assert!(!said.contains("interrupted (function") && !said.contains("written to") && !said.contains("not numbers"));
    assert!(!Path::new(&file).exists() && hidden_files(&folder.0) == 0);
}

#[test]
fn a_fatal_error_of_the_program_loses_no_draws() {
    let folder = Folder::new("stopped-fatal");
    let program = folder.0.join("fatal.stan").display().to_string();
    let text = "parameters { real x; } model { x ~ normal(0, 1); if (x > 3.2) fatal_error(\"too far: \", x); }";
    std::fs::write(&program, text).expect("a file can be written");
    let file = folder.0.join("draws.csv").display().to_string();
    let sizes = ["--chains", "4", "--warmup", "0", "--stepsize", "0.5", "--draws", "30000"];
    let how = ["--seed", "2", "--threads", "1", "--codegen", "off"];
    let run = [&["sample", &program, "--output", &file], &sizes[..], &how].concat();
    let output = autobatch(&run).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("draws of each chain are kept") && said.contains("draws written to"), "{said}");
    assert!(said.contains("\nerror: fatal_error: too far: 3."), "{said}");
    let chain = std::fs::read_to_string(folder.0.join("draws_1.csv")).expect("the chain has a file");
    assert!(chain.lines().filter(|line| line.starts_with(['-', '0'])).count() > 20, "{chain}");
    // A store can be read.
    let store = folder.0.join("fatal.zarr").display().to_string();
    let often = ["--set", "checkpoint_every=20"];
    let run = [&["sample", &program, "--store", &store], &sizes[..], &how, &often].concat();
    let output = autobatch(&run).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("error: fatal_error: too far: 3."), "{said}");
    let summary = autobatch(&["summary", &store]).output().expect("it runs");
    let table = String::from_utf8_lossy(&summary.stdout);
    assert!(summary.status.success() && table.lines().any(|line| line.starts_with("x ")), "{table}");
}

#[test]
fn a_fatal_error_of_generated_quantities_loses_those_of_its_draw() {
    let folder = Folder::new("stopped-fatal-quantities");
    let program = folder.0.join("fatal.stan").display().to_string();
    let text = "parameters { real x; } model { x ~ normal(0, 1); }
        generated quantities { real y = 2 * x; if (x > 2.5) fatal_error(\"too far: \", x); }";
    std::fs::write(&program, text).expect("a file can be written");
    let [file, quantities] = ["draws.json", "quantities.json"].map(|name| folder.0.join(name).display().to_string());
    let sizes = ["--chains", "4", "--warmup", "100", "--draws", "300", "--seed", "1", "--codegen", "off"];
    let again = ["generate-quantities", &program, "--draws", &file, "--output", &quantities];
    for (run, written) in
        [(&[&["sample", &program, "--output", &file][..], &sizes].concat()[..], &file), (&again, &quantities)]
    {
        let output = autobatch(run).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let last = said.lines().last().expect("it says something");
        assert!(last.starts_with("error: fatal_error: too far: "), "{said}");
        let values = |file: &str, name: &str| -> Vec<Option<f64>> {
            let text = std::fs::read_to_string(file).expect("it is written");
            let file: serde_json::Value = serde_json::from_str(&text).expect("an object");
            let chains = file[name].as_array().expect("chains").iter();
            chains.flat_map(|chain| chain.as_array().expect("draws").iter().map(|x| x.as_f64())).collect()
        };
        let (x, y) = (values(&file, "x"), values(written, "y"));
        assert_eq!((x.len(), y.len()), (1200, 1200));
        let of = |x: f64| (x <= 2.5).then_some(2.0 * x);
        assert!(x.iter().any(|x| x.expect("a number") > 2.5));
        assert!(x.iter().zip(&y).all(|(x, y)| of(x.expect("a number")) == *y), "{said}");
    }
    // What looks for modes writes what there is, too.
    let anywhere = folder.0.join("anywhere.stan").display().to_string();
    std::fs::write(&anywhere, text.replace("x > 2.5", "x > -100")).expect("a file can be written");
    for command in ["optimize", "laplace", "pathfinder"] {
        let file = folder.0.join(format!("{command}.csv")).display().to_string();
        let output = autobatch(&[command, &anywhere, "--seed", "1", "--output", &file]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        assert!(said.lines().last().is_some_and(|last| last.starts_with("error: fatal_error: too far: ")), "{said}");
        let csv = std::fs::read_to_string(&file).expect("it is written");
        assert!(csv.lines().last().is_some_and(|row| row.ends_with(",nan")), "{command}: {csv}");
    }
    // A store has all draws, too, and is done.
    let store = folder.0.join("draws.zarr").display().to_string();
    let run = [&["sample", &program, "--store", &store][..], &sizes].concat();
    let output = autobatch(&run).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("error: fatal_error: too far: "), "{said}");
    for run in [&["summary", &store][..], &["resume", &store]] {
        let output = autobatch(run).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{run:?}: {said}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("1200 draws"), "{run:?}");
    }
    // A state of warmup says as much.
    let far = "parameters { real x; } model { x ~ normal(0, 1); }
        generated quantities { if (x > 50) fatal_error(\"too far\"); }";
    std::fs::write(&program, far).expect("a file can be written");
    let init = folder.0.join("start.json").display().to_string();
    std::fs::write(&init, "{\"x\": 60}").expect("a file can be written");
    let start =
        ["--save-warmup", "--init", &init, "--chains", "1", "--warmup", "50", "--draws", "10", "--stepsize", "0.1"];
    let output = autobatch(&[&["sample", &program][..], &start].concat()).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("error: fatal_error: too far"), "{said}");
}

#[test]
fn a_batch_system_gets_what_was_drawn() {
    let folder = Folder::new("stopped-term");
    let file = folder.0.join("draws.json").display().to_string();
    let run = [&MODEL[..], &["--chains", "2", "--warmup", "5", "--draws", "40000", "--output", &file]].concat();
    let mut running = Running::start(autobatch(&run));
    running.wait_for("8000 of 80000 draws");
    running.signal("TERM");
    let (output, said) = running.end();
    assert_eq!(output.status.code(), Some(143), "{said}");
    assert!(said.contains("draws of each chain are kept") && said.contains("draws written to"), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("r_hat"));
    let kept: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).expect("an object");
    assert_eq!(kept["lp"].as_array().map(Vec::len), Some(2));
    assert_eq!(hidden_files(&folder.0), 0);
}

#[test]
fn a_hangup_stops_what_does_not_ignore_it() {
    // So many that a machine is not done with them while a signal is on its way.
    let run = [&MODEL[..], &["--chains", "2", "--warmup", "5", "--draws", "100000"]].concat();
    let mut running = Running::start(autobatch(&run));
    running.wait_for("20000 of 200000 draws");
    running.signal("HUP");
    assert_eq!(running.end().0.status.code(), Some(129));
    // As under nohup.
    let mut shell = Command::new("sh");
    shell.current_dir(env!("CARGO_MANIFEST_DIR"));
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_autobatch")]).args(&run);
    let mut running = Running::start(shell);
    running.wait_for("20000 of 200000 draws");
    running.signal("HUP");
    running.wait_for("40000 of 200000 draws");
    running.signal("TERM");
    assert_eq!(running.end().0.status.code(), Some(143));
}

/// Of chains that run one after the other, those that are done are kept, whatever the others had come to.
#[test]
fn chains_that_are_done_are_kept_though_others_had_not_begun() {
    let folder = Folder::new("stopped-scalar");
    let file = folder.0.join("draws.json").display().to_string();
    let how = ["--chains", "4", "--warmup", "5", "--draws", "3000", "--engine", "scalar", "--output", &file];
    let mut running = Running::start(autobatch(&[&MODEL[..], &how].concat()));
    running.wait_for("3600 of 12000 draws");
    running.signal("INT");
    let (output, said) = running.end();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("had made fewer draws when the run was stopped") && said.contains("draws written"), "{said}");
    let kept: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).expect("an object");
    let draws = kept["lp"][0].as_array().map_or(0, Vec::len);
    assert!(draws > 1000 && kept["chain"][0] == 0, "{draws} {}", kept["chain"]);
}

/// Rows of a file before and after the comment that tells the end of warmup.
fn rows(path: &Path) -> (usize, usize) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rows = |text: &str| text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', 'l'])).count();
    let (before, after) = text.split_once("# Adaptation terminated").unwrap_or((&text, ""));
    (rows(before), rows(after))
}

fn told(path: &Path, name: &str) -> usize {
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("#     {name} = "))).expect("it is told");
    line.split(' ').next().and_then(|n| n.parse().ok()).expect("a number")
}

#[test]
fn states_of_warmup_are_kept_where_they_are_asked_for() {
    let folder = Folder::new("stopped-states");
    let file = folder.0.join("draws.csv").display().to_string();
    let how = ["--chains", "2", "--warmup", "400000", "--save-warmup", "--thin", "3", "--output", &file];
    let mut running = Running::start(autobatch(&[&MODEL[..], &how].concat()));
    running.wait_for("warmup: chains are at iterations ");
    running.signal("INT");
    let (output, said) = running.end();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("nothing was drawn") && said.contains("states of warmup written to "), "{said}");
    for chain in 1..=2 {
        let path = folder.0.join(format!("draws_{chain}.csv"));
        let (states, draws) = rows(&path);
        assert!(states > 100 && draws == 0, "{states} {draws}");
        assert_eq!((told(&path, "num_samples"), told(&path, "num_warmup")), (0, 3 * states));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("Adaptation terminated") && !text.contains("Elapsed Time: 0 seconds"), "{text}");
    }
}

/// Of chains that run one after the other.
#[test]
fn every_chain_has_a_file_with_all_its_draws() {
    let folder = Folder::new("stopped-csv");
    let file = folder.0.join("draws.csv").display().to_string();
    let how = ["--chains", "2", "--warmup", "5", "--draws", "3000", "--engine", "scalar", "--output", &file];
    let mut running = Running::start(autobatch(&[&MODEL[..], &how, &["--threads", "1"]].concat()));
    running.wait_for("3600 of 6000 draws");
    running.signal("INT");
    let (output, said) = running.end();
    assert_eq!(output.status.code(), Some(130), "{said}");
    let counts = [1, 2].map(|chain| {
        let path = folder.0.join(format!("draws_{chain}.csv"));
        let draws = rows(&path).1;
        assert_eq!(told(&path, "num_samples"), draws, "{said}");
        draws
    });
    assert!(counts[0].max(counts[1]) == 3000 && counts[0].min(counts[1]) >= 100, "{counts:?}");
}

#[test]
fn what_looks_for_modes_gives_what_it_has_found() {
    let folder = Folder::new("stopped-modes");
    // Some starts end at once, the others never; one runs after the other.
    let model = folder.file(
        "slow.ab",
        "pub fn log_density(q: real[1]) -> real {
    let mut x = q[0];
    if x < -0.5 { print(\"slow\"); while x < 0.0 { x = x - 1.0e-9; } }
    -0.5 * q[0] * q[0]
}
",
    );
    let file = folder.0.join("modes.csv").display().to_string();
    let how = ["--starts", "40", "--init", "1", "--shard-lanes", "1", "--threads", "1", "--output", &file];
    let run = [&["optimize", &model][..], &how].concat();
    let mut running = Running::start(autobatch(&run));
    running.wait_for("slow");
    running.signal("INT");
    let (output, said) = running.end();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains(" starts had not come to an end") && said.contains("written to "), "{said}");
    assert!(rows(Path::new(&file)).0 > 0);
}
