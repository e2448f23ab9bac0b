//! Runs whose draws go to a store: they have the bits of any other run, however often they are killed, and whoever runs them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use autobatch::mcmc::sampling::{PlannedJob, StoredDraws};
use autobatch::program::io::NamedValues;
use autobatch::report::{SamplerStatistics, Summary};
use autobatch::sampler::Samples;
use autobatch::store::RunStore;
use autobatch::types::Array;
use serde_json::{Value, json};

use crate::project::cli::{Folder, autobatch, output};
use crate::tools::effort;
use crate::tools::random_programs::Rng;
use crate::tools::running::{PATIENCE, Running};

const DATA: [&str; 2] = ["--data", "nuts/data/eight_schools.json"];
/// Two blocks of chains, and two chunks of draws.
const SIZES: [&str; 6] = ["--chains", "66", "--warmup", "20", "--draws", "150"];

fn run(args: &[&str]) -> (Output, String) {
    let output = autobatch(args).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

fn done(args: &[&str]) -> String {
    let (output, said) = run(args);
    assert!(output.status.success(), "{args:?}: {said}");
    said
}

fn refused(args: &[&str]) -> String {
    let (output, said) = run(args);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
    said
}

/// `sample` of eight schools with kernels, which start at once.
fn sampled<'a>(model: &'a str, store: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["sample", model, "--codegen", "off", "--store", store][..], &DATA, more].concat()
}

fn path(folder: &Folder, name: &str) -> String {
    folder.0.join(name).display().to_string()
}

/// All files of a store that readers see, with what is in them.
fn files(store: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    fn below(folder: &Path, root: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in folder.read_dir().expect("it is a folder") {
            let path = entry.expect("it can be read").path();
            let name = path.strip_prefix(root).expect("it is below").to_owned();
            if name.starts_with("_autobatch") {
                continue;
            }
            match path.is_dir() {
                true => below(&path, root, into),
                false => drop(into.insert(name, std::fs::read(&path).expect("it can be read"))),
            }
        }
    }
    let mut all = BTreeMap::new();
    below(Path::new(store), Path::new(store), &mut all);
    all
}

/// That two stores show the same to every reader.
fn same(found: &str, wanted: &str) {
    let (found, wanted) = (files(found), files(wanted));
    let names = |of: &BTreeMap<PathBuf, Vec<u8>>| of.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(&wanted));
    let differ: Vec<&PathBuf> = found.keys().filter(|name| found[*name] != wanted[*name]).collect();
    assert!(differ.is_empty(), "{differ:?}");
}

/// Waits until something is so.
fn until(holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "it never comes to that");
        std::thread::yield_now();
    }
}

fn status(store: &str) -> String {
    let root: Value = serde_json::from_slice(&std::fs::read(Path::new(store).join("zarr.json")).unwrap()).unwrap();
    root["attributes"]["status"].as_str().unwrap().to_owned()
}

/// An array of a store, of all of its chains.
fn stored(store: &str, name: &str, draws: usize) -> Array {
    let chains: Vec<usize> = (0..autobatch::store::RunPlan::read(Path::new(store)).unwrap().chains).collect();
    let mut store = RunStore::open(Path::new(store), 0..chains.len()).unwrap();
    store.read_arrays().unwrap();
    let of = store.of_draws().iter().find(|array| array.path == name).unwrap_or_else(|| panic!("{name}")).clone();
    store.read(&of, &chains, draws).unwrap()
}

#[test]
fn a_store_has_the_draws_of_any_other_run() {
    for (model, more) in [
        ("nuts/models/eight_schools.stan", &["--chains", "3", "--warmup", "40", "--draws", "25", "--seed", "5"][..]),
        ("nuts/models/eight_schools.ab", &["--chains", "66", "--warmup", "30", "--draws", "9", "--thin", "2"]),
        ("nuts/models/eight_schools.ab", &["--chains", "2", "--warmup", "60", "--draws", "9", "--metric", "dense_e"]),
        ("nuts/models/eight_schools.ab", &["--chains", "2", "--warmup", "30", "--draws", "9", "--real", "f32"]),
        ("nuts/models/eight_schools.ab", &["--chains", "2", "--warmup", "25", "--draws", "9", "--save-warmup"]),
        ("nuts/models/eight_schools.ab", &["--chains", "2", "--warmup", "20", "--draws", "9", "--algorithm", "static"]),
        // More rows than are stored at once.
        ("nuts/models/eight_schools.ab", &["--chains", "5", "--warmup", "20", "--draws", "4500", "--max-depth", "2"]),
    ] {
        let folder = Folder::new("store-same");
        let (store, file) = (path(&folder, "run.zarr"), path(&folder, "run.npz"));
        done(&sampled(model, &store, more));
        done(&[&["sample", model, "--codegen", "off", "--output", &file][..], &DATA, more].concat());
        assert_eq!(status(&store), "complete");
        let wanted = NamedValues::read(Path::new(&file)).unwrap();
        let mut compared = 0;
        for (name, data) in wanted.iter() {
            let wanted = data.to_array(name, data.guess_type()).unwrap();
            let names = [("accept_stat", "acceptance_rate"), ("stepsize", "step_size"), ("treedepth", "tree_depth")];
            let names = names.into_iter().chain([("n_leapfrog", "n_steps"), ("divergent", "diverging")]);
            let (plain, group) = match name.strip_prefix("warmup_") {
                Some(plain) => (plain, "warmup_"),
                None => (name, ""),
            };
            let name = names.into_iter().find(|(own, _)| *own == plain).map_or(plain, |(_, stored)| stored);
            let root: Value =
                serde_json::from_slice(&std::fs::read(Path::new(&store).join("zarr.json")).unwrap()).unwrap();
            let all = root["consolidated_metadata"]["metadata"].as_object().unwrap();
            let at = ["posterior", "sample_stats"].map(|kind| format!("{group}{kind}/{name}"));
            let Some(at) = at.iter().find(|at| all.contains_key(*at)) else { continue };
            assert_eq!(stored(&store, at, wanted.shape[1]), wanted, "{at} of {model} {more:?}");
            compared += 1;
        }
        assert!(compared >= 8, "{compared} arrays of {model} {more:?}");
    }
}

/// Killed at any moment, again and again, and gone on with: what is there in the end is what an uninterrupted run has.
#[test]
fn a_run_that_is_killed_goes_on_to_the_same_draws() {
    let folder = Folder::new("store-killed");
    let (whole, killed) = (path(&folder, "whole.zarr"), path(&folder, "killed.zarr"));
    let more = [&SIZES[..], &["--save-warmup", "--set", "checkpoint_every=5"]].concat();
    let began = Instant::now();
    done(&sampled("nuts/models/eight_schools.ab", &whole, &more));
    // Of no more than that: moments of the run itself.
    let most = u64::try_from(began.elapsed().as_millis()).unwrap().max(50);
    let mut rng = Rng::new(7);
    let mut moments = effort::part(6, 100);
    while moments > 0 {
        let begins = !Path::new(&killed).join("_autobatch/plan.json").exists();
        if begins {
            let _ = std::fs::remove_dir_all(&killed);
        }
        let args = match begins {
            true => sampled("nuts/models/eight_schools.ab", &killed, &more),
            false => vec!["resume", &killed, "--codegen", "off"],
        };
        let mut child =
            autobatch(&args).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(rng.below(most as usize) as u64));
        let is_over = child.try_wait().unwrap().is_some();
        let _ = child.kill();
        child.wait().unwrap();
        moments -= 1;
        if is_over && moments > 0 {
            // It came to its end: from the start again.
            same(&killed, &whole);
            std::fs::remove_dir_all(&killed).unwrap();
        }
    }
    let said = match Path::new(&killed).join("_autobatch/plan.json").exists() {
        true => done(&["resume", &killed, "--codegen", "off"]),
        false => {
            let _ = std::fs::remove_dir_all(&killed);
            done(&sampled("nuts/models/eight_schools.ab", &killed, &more))
        }
    };
    assert_eq!(status(&killed), "complete", "{said}");
    same(&killed, &whole);
}

#[test]
fn a_run_that_is_stopped_says_so_and_goes_on() {
    let folder = Folder::new("store-stopped");
    let store = path(&folder, "run.zarr");
    let more =
        ["--chains", "2", "--warmup", "10", "--draws", "1000000", "--threads", "1", "--set", "checkpoint_every=50"];
    let running = Running::start(autobatch(&sampled("nuts/models/eight_schools.ab", &store, &more)));
    // Before it could come to its end: a sign of it is that something was stored.
    until(|| Path::new(&store).join("_autobatch/state/0").exists());
    running.signal("TERM");
    let (output, said) = running.end();
    assert_eq!(output.status.code(), Some(143), "{said}");
    assert!(said.contains(&format!("stopped: `autobatch resume {store}` goes on")), "{said}");
    assert_eq!(status(&store), "interrupted");
    assert!(String::from_utf8_lossy(&output.stdout).contains("r_hat"), "{said}");
    // What all chains have is there and whole.
    let root: Value = serde_json::from_slice(&std::fs::read(Path::new(&store).join("zarr.json")).unwrap()).unwrap();
    let shape = &root["consolidated_metadata"]["metadata"]["posterior/mu"]["shape"];
    let there = shape[1].as_u64().unwrap() as usize;
    assert!((1..1_000_000).contains(&there), "{shape}");
    let mu = stored(&store, "posterior/mu", there);
    assert!(mu.as_real().unwrap().iter().all(|x| x.is_finite()));
}

#[test]
fn more_draws_are_those_of_a_longer_run() {
    let folder = Folder::new("store-more");
    let (long, short) = (path(&folder, "long.zarr"), path(&folder, "short.zarr"));
    let sizes = |draws: &'static str| ["--chains", "3", "--warmup", "40", "--draws", draws];
    done(&sampled("nuts/models/eight_schools.ab", &long, &sizes("150")));
    done(&sampled("nuts/models/eight_schools.ab", &short, &sizes("0")));
    done(&["resume", &short, "--codegen", "off", "--more-draws", "70"]);
    done(&["resume", &short, "--codegen", "off", "--more-draws", "80", "--engine", "scalar"]);
    for name in ["posterior/theta", "sample_stats/energy", "sample_stats/diverging"] {
        assert_eq!(stored(&short, name, 150), stored(&long, name, 150), "{name}");
    }
}

/// What is done to a file.
type Damage = fn(&Path);

#[test]
fn what_is_damaged_is_told_and_made_again() {
    let folder = Folder::new("store-damaged");
    let (whole, store) = (path(&folder, "whole.zarr"), path(&folder, "run.zarr"));
    done(&sampled("nuts/models/eight_schools.ab", &whole, &SIZES));
    done(&sampled("nuts/models/eight_schools.ab", &store, &SIZES));
    let damages: [(&str, Damage); 5] = [
        ("posterior/theta/c/1/1/0", |path| {
            let mut bytes = std::fs::read(path).unwrap();
            let at = bytes.len() / 2;
            bytes[at] ^= 1;
            std::fs::write(path, bytes).unwrap();
        }),
        ("sample_stats/diverging/c/0/0", |path| std::fs::remove_file(path).unwrap()),
        ("posterior/mu/c/1/0", |path| std::fs::write(path, b"").unwrap()),
        ("adaptation/step_size/c/0", |path| std::fs::write(path, b"x").unwrap()),
        ("_autobatch/state/0", |path| std::fs::write(path, b"abstate1 and no more").unwrap()),
    ];
    for (file, damage) in damages {
        damage(&Path::new(&store).join(file));
        let said = done(&["resume", &store, "--codegen", "off"]);
        let chains = if file.contains("/c/1") { "the chains 64 to 65" } else { "the chains 0 to 63" };
        assert!(said.contains(file) && said.contains(&format!("{chains} are run again from their start")), "{said}");
        same(&store, &whole);
    }
    // What metadata say is known without them, and what no state names is written again.
    for file in ["zarr.json", "posterior/mu/c/0/7"] {
        std::fs::write(Path::new(&store).join(file), b"{").unwrap();
        let said = done(&["resume", &store, "--codegen", "off"]);
        assert!(!said.contains("run again"), "{said}");
    }
    std::fs::remove_file(Path::new(&store).join("zarr.json")).unwrap();
    std::fs::remove_file(Path::new(&store).join("posterior/mu/c/0/1")).unwrap();
    assert!(done(&["resume", &store, "--codegen", "off"]).contains("posterior/mu/c/0/1 is missing"));
    same(&store, &whole);
    // Where a node went down before anything counted, and where all that tells of the chains is gone.
    for broken in [
        &["_autobatch/state/0", "_autobatch/state/1"][..],
        &["_autobatch/state/0", "_autobatch/state/1", "zarr.json"],
        &["zarr.json", "_autobatch/state/0"],
    ] {
        for file in broken {
            let path = Path::new(&store).join(file);
            match file.contains("state") && broken.len() < 3 {
                true => drop(std::fs::remove_file(path)),
                false => std::fs::write(path, b"{").unwrap(),
            }
        }
        for file in ["adaptation/step_size/c/0", "posterior/mu/c/0/0", "posterior/theta/c/0/1/0"] {
            std::fs::write(Path::new(&store).join(file), b"").unwrap();
        }
        done(&["resume", &store, "--codegen", "off"]);
        same(&store, &whole);
    }
}

/// Without the lines that tell seconds and memory, and how to run longer.
fn told(output: &Output) -> String {
    let lines = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat();
    let varies = |line: &&str| {
        !["gradients in", "memory: ", " of ", "written to", "run longer", "autobatch sample ", "autobatch resume "]
            .iter()
            .any(|word| line.contains(word))
            || line.contains("failed")
    };
    lines.lines().filter(varies).map(|line| format!("{line}\n")).collect()
}

#[test]
fn draws_whose_quantities_fail_are_told_as_of_any_run() {
    let folder = Folder::new("store-lost");
    let model = folder.file(
        "m.stan",
        "parameters { real x; } model { x ~ std_normal(); }
         generated quantities { int n; real y; if (x > 1.5) reject(\"too large: \", x); n = 3; y = x; }",
    );
    let sizes = ["--chains", "3", "--warmup", "100", "--draws", "200", "--codegen", "off", "--progress", "none"];
    let of = |more: &[&str]| run(&[&["sample", &model][..], &sizes, more].concat()).0;
    let store = path(&folder, "run.zarr");
    let (plain, stored) = (of(&[]), of(&["--store", &store]));
    let words = told(&plain);
    assert!(
        words.contains("n, y failed for ")
            && words.contains("too large")
            && words.lines().any(|line| line.starts_with("n ") && line.contains(" 3.000")),
        "{words}"
    );
    // A store has its own copy of the program.
    let copy = format!("{store}/_autobatch/program/m.stan");
    assert_eq!(told(&stored).replace(&copy, &model), words);
    // Draws are asked of the store.
    let said = String::from_utf8_lossy(&stored.stdout).into_owned();
    assert!(said.contains(&format!("autobatch resume {store} --more-draws 200")), "{said}");
    // And of its files: what is lost is no number, and the time is not told.
    let summary = autobatch(&["summary", &store]).output().unwrap();
    let table = String::from_utf8_lossy(&summary.stdout).into_owned();
    assert!(table.contains("thin=1") && !table.contains("Warmup took"), "{table}");
    assert!(table.lines().any(|line| line.starts_with("n ") && !line.contains('9')), "{table}");
}

#[test]
fn chains_that_find_no_start_are_told_as_of_any_run() {
    let folder = Folder::new("store-trapped");
    let model = folder.file(
        "m.ab",
        "pub fn log_density(q: real[1]) -> real { assert(q[0] < 50.0, \"it is {q[0]}\"); -0.5 * q[0] * q[0] }",
    );
    let starts = folder.file("starts.json", "[[0.0], [100.0], [1.0]]");
    let sizes = ["--chains", "3", "--warmup", "60", "--draws", "40", "--codegen", "off", "--progress", "none"];
    let of = |more: &[&str]| run(&[&["sample", &model, "--starts", &starts][..], &sizes, more].concat()).0;
    let store = path(&folder, "run.zarr");
    let (plain, stored) = (of(&[]), of(&["--store", &store]));
    let chain = |output: &Output| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        said.lines().find(|line| line.starts_with("chain 1: ")).map(str::to_owned).unwrap_or(said)
    };
    assert!(chain(&plain).contains("the density failed once, first: assert failed: it is 100"), "{}", chain(&plain));
    assert_eq!(chain(&stored), chain(&plain));
    assert_eq!((stored.status.code(), plain.status.code()), (Some(1), Some(1)));
    assert_eq!(status(&store), "complete");
    let samples = Samples::open(&store).unwrap();
    assert_eq!(samples.failed_chains().map(|trap| trap.position).collect::<Vec<_>>(), [1]);
    assert!(!samples.is_complete() && samples.real("q").unwrap().shape() == [2, 40, 1]);
    // A task has done what it can: who merges is told.
    let tasks = path(&folder, "tasks.zarr");
    assert!(of(&["--store", &tasks, "--lanes", "0..3"]).status.code() == Some(1));
}

#[test]
fn data_may_be_called_like_an_axis_and_variables_may_not() {
    let folder = Folder::new("store-axes");
    let store = path(&folder, "run.zarr");
    let model = folder.file(
        "m.ab",
        "pub fn log_density[n](q: real[1], shared draw: real[n]) -> real { -0.5 * q[0] * q[0] + draw[0] }\n\
         pub struct Parameters { mu: real, chain: real }\n\
         pub fn parameters(q: real[1]) -> Parameters { Parameters { mu: q[0], chain: 1.0 } }",
    );
    let of = |store: &str, more: &[&str]| {
        let args = ["sample", &model, "--store", store, "--shared", "draw=[1.0, 2.0, 3.0]", "--chains", "2"];
        run(&[&args[..], &["--warmup", "5", "--draws", "5"], more].concat())
    };
    let (output, said) = of(&store, &["--keep", "mu"]);
    assert!(output.status.success(), "{said}");
    assert!(!done(&["resume", &store]).contains("run again"));
    let other = path(&folder, "other.zarr");
    let (output, said) = of(&other, &[]);
    assert!(!output.status.success() && said.contains("a variable `chain` has no place in a store"), "{said}");
    // Before anything is made, so that what is advised can be done.
    let (output, said) = of(&other, &["--keep", "mu"]);
    assert!(output.status.success(), "{said}");
    // A folder with something else in it is none for a store, whoever fills it.
    let (output, said) = of(folder.0.to_str().unwrap(), &["--keep", "mu", "--lanes", "0..2"]);
    assert!(!output.status.success() && said.contains("is there already: give another name"), "{said}");
}

#[test]
fn axes_are_called_and_labelled_as_a_file_says() {
    let folder = Folder::new("store-coords");
    let schools =
        ["Choate", "Deerfield", "Andover", "Exeter", "Hotchkiss", "Lawrenceville", "St. Paul's", "Mt. Hermon"];
    let file = |name: &str, text: Value| folder.file(name, text.to_string());
    let (store, page, draws) = (path(&folder, "r.zarr"), path(&folder, "r.html"), path(&folder, "r.npz"));
    let named = file("named.json", json!({"coords": {"school": schools}, "dims": {"theta": ["school"]}}));
    let model = "nuts/models/eight_schools.stan";
    let short = ["--chains", "2", "--warmup", "20", "--draws", "30"];
    let of = |coords: &str, more: &[&str]| {
        run(&[&["sample", model, "--codegen", "off", "--coords", coords][..], &DATA, &short, more].concat())
    };
    let (output, told) = of(&named, &["--store", &store, "--report", &page]);
    assert!(output.status.success(), "{told}");
    let shown = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown(&output).contains("theta[St. Paul's] ") && shown(&output).contains("theta_trans[7]"));
    assert!(std::fs::read_to_string(&page).unwrap().contains("theta[Mt. Hermon]"));
    let of_store = |command: &str, args: &[&str]| shown(&run(&[&[command, &store][..], args].concat()).0);
    assert!(of_store("summary", &[]).contains("theta[St. Paul's] "));
    // The plan has them, so that a run goes on with them.
    done(&["resume", &store, "--more-draws", "5", "--codegen", "off"]);
    assert!(of_store("summary", &[]).contains("theta[Deerfield] "));
    let samples = Samples::open(&store).unwrap();
    // Both name the same.
    assert_eq!(samples.row("theta[1]").map(|row| &*row.name), Some("theta[Choate]"));
    assert!(samples.row("theta[Choate]").is_some());
    assert!(samples.row("theta[9]").is_none() && samples.row("theta").is_none());
    let (output, told) = of(&named, &["--summary", "theta[2],theta[Exeter],mu"]);
    let table = shown(&output);
    assert!(["theta[Deerfield] ", "theta[Exeter] ", "mu "].iter().all(|name| table.contains(name)), "{table}");
    assert!(!table.contains("theta[Choate]") && !told.contains("there is no parameter"), "{table} {told}");
    assert_eq!(samples.draws().axes["theta"], [Some("school".to_owned())]);
    // Without names of axes those of the model: of parameters and of data. Numbers label, too, and no store is needed.
    let years: Vec<i32> = (2001..2009).collect();
    let (output, told) = of(&file("years.json", json!({"J": years})), &["--output", &draws, "--diagnose"]);
    assert!(output.status.success(), "{told}");
    assert!(shown(&output).contains("theta[2008] ") && shown(&output).contains("theta_trans[2001] "), "{told}");

    let refuses = [
        (json!({"school": schools}), "coords are for the axis `school`, which there is not: there is `J`"),
        (json!({"J": schools[..7]}), "`theta_trans` has 8 places along `J`, and coords have 7"),
        (json!({"J": [1, 2, 3, 4, 5, 6, 7, 7]}), "coords have `7` twice along `J`"),
        (json!({"J": [0.5]}), "`J` must have a list of texts, or one of whole numbers"),
        (
            json!({"dims": {"nu": ["school"]}}),
            "dims name axes of `nu`, which there is not: there is `theta_trans`, `mu`",
        ),
        (json!({"dims": {"theta": ["a", "b"]}}), "dims give `theta` 2 names for 1 axis"),
        (
            json!({"dims": {"theta": ["chain"]}}),
            "dims call an axis of `theta` \"chain\", which stores have for something",
        ),
        (json!({"dims": {"theta": ["mu"]}}), "dims call an axis of `theta` \"mu\", which is a variable"),
        (json!({"dims": {"theta": [".."]}}), "dims call an axis of `theta` \"..\", which is no name for an axis"),
        (json!({"dims": {"theta": ["a/b"]}}), "\"a/b\", which is no name for an axis"),
        (json!({"dims": {"theta": ["zarr.json"]}}), "\"zarr.json\", which stores have for something else"),
        (json!([1]), "must be an object"),
    ];
    for (text, wanted) in refuses {
        let bad = file("bad.json", text.clone());
        for more in [&["--store", &path(&folder, "bad.zarr")][..], &[]] {
            let (output, told) = of(&bad, more);
            assert!(output.status.code() == Some(1) && told.contains(wanted), "{text}: {told}");
        }
        assert!(!folder.0.join("bad.zarr").exists());
    }
    let (output, told) = of("no/such.json", &[]);
    assert!(output.status.code() == Some(1) && told.contains("cannot read no/such.json"), "{told}");
}

#[test]
fn axes_of_complex_variables_of_data_and_of_data_sets_have_names() {
    let folder = Folder::new("store-dims");
    let file = |name: &str, text: Value| folder.file(name, text.to_string());
    let short = ["--chains", "2", "--warmup", "10", "--draws", "10", "--codegen", "off"];
    let names = |store: &str, array: &str| -> Vec<String> {
        let text = std::fs::read(Path::new(store).join(array).join("zarr.json")).unwrap();
        let metadata: Value = serde_json::from_slice(&text).unwrap();
        serde_json::from_value(metadata["dimension_names"].clone()).unwrap()
    };
    let stan = folder.file(
        "m.stan",
        "data { int N; int K; vector[N] y; matrix[N, K] x; } parameters { vector[N] a; vector[K] b; complex_vector[K] z; }\n\
         model { a ~ normal(y, 1); b ~ std_normal(); get_real(z) ~ std_normal(); get_imag(z) ~ std_normal(); }",
    );
    let data = file("d.json", json!({"N": 2, "K": 3, "y": [1.0, 2.0], "x": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]}));
    let coords =
        json!({"coords": {"part": ["u", "v,w", "x"], "row": [7, 8]}, "dims": {"z": ["part"], "x": ["row", "K"]}});
    let store = path(&folder, "m.zarr");
    let of = |coords: Value, store: &str| {
        let coords = file("c.json", coords);
        run(&[&["sample", &stan, "--data", &data, "--coords", &coords, "--store", store][..], &short].concat())
    };
    // `K` is a datum, so that no axis of the data has this name.
    let (output, said) = of(coords, &store);
    assert!(!output.status.success() && said.contains("dims call an axis of `x` \"K\", which is a variable"), "{said}");
    let coords =
        json!({"coords": {"part": ["u", "v,w", "x"], "row": [7, 8]}, "dims": {"z": ["part"], "x": ["row", "of_x"]}});
    let (output, said) = of(coords, &store);
    assert!(output.status.success(), "{said}");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("z[\"v,w\",imag]"),
        "the parts have the labels of the whole"
    );
    assert_eq!(names(&store, "observed_data/x"), ["row", "of_x"]);
    assert_eq!(names(&store, "posterior/b"), ["chain", "draw", "K"]);
    assert!(
        Path::new(&store).join("observed_data/row/c/0").exists() && !Path::new(&store).join("posterior/row").exists()
    );
    let (output, said) = of(json!({"dims": {"a": ["s"], "b": ["s"]}}), &path(&folder, "other.zarr"));
    assert!(
        !output.status.success() && said.contains("dims call axes of `a` and `b` `s`, which have 2 and 3 places"),
        "{said}"
    );

    let model = folder.file("m.ab", "model m[J](a: real, shared y: real[J]) { -0.5 * dot(y - a, y - a) }");
    let sets = file("sets.json", json!({"y": [[1.0, 2.0], [3.0, 4.0]]}));
    let coords = file("sets_coords.json", json!({"coords": {"who": ["x", "y"]}, "dims": {"y": ["who"]}}));
    let store = path(&folder, "sets.zarr");
    let args = ["sample", &model, "--lane-data", &sets, "--coords", &coords, "--store", &store];
    done(&[&args[..], &short].concat());
    assert_eq!(names(&store, "observed_data/y"), ["data_set", "who"]);
    // Brackets keep a name with commas together.
    let said = done(&["resume", &path(&folder, "m.zarr"), "--summary", "z[\"v,w\",imag],a", "--codegen", "off"]);
    assert!(!said.contains("warning"), "{said}");
}

/// A limit of the size of a file stands for a disk that is full: writing fails in the middle of the run.
#[test]
fn a_disk_that_is_full_ends_the_run_and_loses_nothing() {
    let folder = Folder::new("store-full");
    let (whole, store) = (path(&folder, "whole.zarr"), path(&folder, "run.zarr"));
    done(&sampled("nuts/models/eight_schools.ab", &whole, &SIZES));
    let mut shell = Command::new("sh");
    shell.current_dir(env!("CARGO_MANIFEST_DIR"));
    // Blocks of 512 bytes: chunks of scalars fit, and those of theta do not.
    shell.args(["-c", "trap '' XFSZ; ulimit -f 200; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_autobatch")]);
    let output = shell.args(sampled("nuts/models/eight_schools.ab", &store, &SIZES)).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write") && said.contains("posterior/theta"), "{said}");
    assert_eq!(status(&store), "running");
    done(&["resume", &store, "--codegen", "off"]);
    same(&store, &whole);
}

#[test]
fn several_processes_fill_a_store_together() {
    let folder = Folder::new("store-lanes");
    let (whole, store) = (path(&folder, "whole.zarr"), path(&folder, "run.zarr"));
    let sizes = ["--chains", "130", "--warmup", "30", "--draws", "20", "--seed", "3"];
    let part = |lanes: &'static str| {
        sampled("nuts/models/eight_schools.stan", &store, &[&sizes[..], &["--lanes", lanes]].concat())
    };
    done(&sampled("nuts/models/eight_schools.stan", &whole, &sizes));
    let said = done(&part("64..128"));
    assert!(said.contains("the chains 64..128 are in"), "{said}");
    done(&part("128..130"));
    let said = refused(&["merge", &store]);
    assert!(said.contains("64 of 130 chains lack draws") && said.contains("--lanes 0..64"), "{said}");
    // Twice is no harm: the bytes are the same.
    for _ in 0..2 {
        done(&part("0..64"));
    }
    done(&["merge", &store]);
    same(&store, &whole);

    let other = [&sizes[..4], &["--draws", "21", "--lanes", "0..64"]].concat();
    let said = refused(&sampled("nuts/models/eight_schools.stan", &store, &other));
    assert!(said.contains("is the store of another run: `seed` is 3 there, and 0 here"), "{said}");
    for (lanes, why) in [
        ("0..65", "must start and end at multiples of 64"),
        ("1..64", "must start and end at multiples of 64"),
        ("64..192", "the store has the chains 0..130"),
    ] {
        let said = refused(&["resume", &store, "--lanes", lanes]);
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_store_is_written_by_one_process_at_a_time() {
    let folder = Folder::new("store-two");
    let store = path(&folder, "run.zarr");
    let more = ["--chains", "2", "--warmup", "10", "--draws", "1000000"];
    let running = Running::start(autobatch(&sampled("nuts/models/eight_schools.ab", &store, &more)));
    until(|| Path::new(&store).join("_autobatch/state/0").exists());
    let said = refused(&["resume", &store]);
    assert!(said.contains("another process writes to"), "{said}");
    let said = refused(&sampled("nuts/models/eight_schools.ab", &store, &more));
    assert!(said.contains("is there already: go on with it by `autobatch resume"), "{said}");
    running.signal("KILL");
    running.end();
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_made() {
    let folder = Folder::new("store-refused");
    let store = path(&folder, "run.zarr");
    let plain = folder.file("there.txt", "something");
    for (args, why) in [
        (vec!["resume", &store[..]], "cannot read"),
        (vec!["resume", folder.0.to_str().unwrap()], "is no store of a run of autobatch"),
        (vec!["merge", folder.0.to_str().unwrap()], "is no store of a run of autobatch"),
        (
            sampled("nuts/models/eight_schools.ab", folder.0.to_str().unwrap(), &[]),
            "is there already: give another name",
        ),
        (sampled("nuts/models/eight_schools.ab", &plain, &[]), "cannot make"),
        (sampled("nuts/models/eight_schools.ab", &store, &["--output", "x.npz"]), "leave --output and --format out"),
        (sampled("nuts/models/eight_schools.ab", &store, &["--chains", "0"]), "there is nothing to sample"),
        (
            sampled("nuts/models/eight_schools.ab", &store, &["--keep", "mu,nu"]),
            "the model has no `nu`, but `theta_trans`, `mu`",
        ),
    ] {
        let said = refused(&args);
        assert!(said.contains(why), "{args:?}: {said}");
    }
    // Of another version.
    let store = path(&folder, "other.zarr");
    done(&sampled("nuts/models/eight_schools.ab", &store, &["--chains", "1", "--warmup", "5", "--draws", "5"]));
    let plan = Path::new(&store).join("_autobatch/plan.json");
    let text = std::fs::read_to_string(&plan).unwrap();
    std::fs::write(&plan, text.replace("\"form\": 1", "\"form\": 2")).unwrap();
    let said = refused(&["resume", &store]);
    assert!(said.contains("(form 2)") && said.contains("which may draw other numbers"), "{said}");
    std::fs::write(&plan, &text[..40]).unwrap();
    assert!(refused(&["resume", &store]).contains("is damaged"));
}

#[test]
fn only_what_is_kept_is_stored() {
    let folder = Folder::new("store-keep");
    let store = path(&folder, "run.zarr");
    let more = ["--chains", "2", "--warmup", "20", "--draws", "10", "--keep", "tau,q"];
    done(&sampled("nuts/models/eight_schools.ab", &store, &more));
    let names = |group: &str| {
        let entries = Path::new(&store).join(group).read_dir().unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names("posterior"), ["chain", "draw", "tau", "zarr.json"]);
    assert_eq!(names("unconstrained_posterior"), ["chain", "draw", "q", "zarr.json"]);
    assert_eq!(stored(&store, "unconstrained_posterior/q", 10).shape[2..], [10]);
}

/// Parameters that do not fit are read a part of their elements after the other: of two blocks of chains, some draws of which
/// lack them, and not all.
#[test]
fn parts_of_parameters_are_what_the_whole_is() {
    let folder = Folder::new("store-parts");
    let model = folder.file(
        "m.stan",
        "parameters { real x; }
         model { x ~ std_normal(); }
         generated quantities {
           array[3, 2] int n; vector[5] y; vector[0] none; real diverging = x;
           if (x > 1) reject(\"too large: \", x);
           for (i in 1:3) for (j in 1:2) n[i, j] = i * 10 + j;
           y = [x, 2 * x, 3 * x, x > 0.5 ? not_a_number() : x, 5 * x]';
         }",
    );
    let store = path(&folder, "run.zarr");
    let sizes = ["--chains", "66", "--warmup", "20", "--draws", "40", "--codegen", "off", "--progress", "none"];
    let more = ["--no-summary", "--save-warmup", "--store", &store];
    let (output, said) = run(&[&["sample", &model][..], &more, &sizes].concat());
    assert!(output.status.success() && output.stdout.is_empty(), "{said}");
    assert!(said.contains(" of 2640 draws lack some variables; the first because of"), "{said}");
    let planned = PlannedJob::load(Path::new(&store)).unwrap();
    let opened = RunStore::look_at(Path::new(&store)).unwrap();
    let stored = StoredDraws::read(&opened, &planned.job(&(0..66))).unwrap();
    let whole = stored.clone().whole(&opened).unwrap();
    let failed = whole.failed.as_ref().expect("x is larger than 1 at times");
    // The first in the order of chains, not the one that came first.
    let told = failed.first.told();
    let x: f64 =
        told.split("too large: ").nth(1).and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap();
    assert!((x - whole.parameters["x"].as_real().unwrap()[failed.positions[0]]).abs() < 1e-4, "{told}");
    let warmup = whole.warmup_states.as_ref().expect("it was asked for");
    assert!(warmup.parameters["diverging"].as_real().is_some() && warmup.statistics["divergent"].as_bool().is_some());
    let per_element = 66 * 40 * 8;
    for elements in [0, 1, 2, 4, 5, 6, 100] {
        let mut seen = BTreeMap::new();
        for part in stored.parameters_in(&opened, elements * per_element) {
            let part = part.unwrap();
            let width = part.values.shape[2];
            assert!(width <= elements.max(1), "{elements}: {} has {width}", part.name);
            assert_eq!(part.lost, failed.of(part.name), "{}", part.name);
            let all = &whole.parameters[part.name];
            let event = part.event.iter().product::<usize>();
            assert_eq!(part.event, &all.shape[2..]);
            for row in 0..66 * 40 {
                for at in 0..width {
                    let (own, other) = (part.values.get(row * width + at), all.get(row * event + part.first + at));
                    assert_eq!(own.to_string(), other.to_string(), "{} {row} {at}", part.name);
                }
            }
            *seen.entry(part.name).or_insert(0) += width;
        }
        assert_eq!(seen, BTreeMap::from([("diverging", 1), ("n", 6), ("none", 0), ("x", 1), ("y", 5)]));
    }
    let (of_parts, of_whole) = (Summary::of_store(&stored, &opened).unwrap(), Summary::of_draws(&whole));
    assert_eq!(of_parts.to_string(), of_whole.to_string());
    let (of_store, of_run) = (SamplerStatistics::of_store(&stored, &opened).unwrap(), of_whole.sampler);
    assert_eq!(format!("{of_store:?}"), format!("{of_run:?}"));
}

#[test]
fn a_stored_run_has_the_page_the_trace_and_the_profile_that_others_have() {
    let folder = Folder::new("store-page");
    let (store, page) = (path(&folder, "run.zarr"), path(&folder, "run.html"));
    let (trace, profile) = (path(&folder, "trace.json"), path(&folder, "profile.json"));
    let model = "nuts/models/eight_schools.ab";
    let sizes = ["--chains", "4", "--warmup", "20", "--draws", "30"];
    let asked = ["--report", &page, "--trace", &trace, "--profile", &profile];
    let said = done(&sampled(model, &store, &[&sizes[..], &asked].concat()));
    assert!(said.contains("profile written to"), "{said}");
    let text = std::fs::read_to_string(&page).expect("the page is there");
    let of_store = path(&folder, "of-store.html");
    done(&["report", &store, "--output", &of_store, "--trace", &trace]);
    assert_eq!(text, std::fs::read_to_string(&of_store).unwrap());
    assert!(text.contains("theta"), "it shows the parameters");
    let json = |file: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(file).expect("it is there")).expect("it is JSON")
    };
    assert!(json(&trace)["traceEvents"].as_array().is_some_and(|events| events.len() > 10));
    assert!(json(&profile)["blocks"].as_array().is_some_and(|blocks| !blocks.is_empty()));
    // Where others have chains yet to run, it says how to come by the page.
    let (part, page) = (path(&folder, "part.zarr"), path(&folder, "part.html"));
    let sizes = ["--chains", "66", "--warmup", "5", "--draws", "5", "--lanes", "0..64"];
    let said = done(&sampled(model, &part, &[&sizes[..], &["--report", &page]].concat()));
    assert!(said.contains(&format!("`autobatch report {part} --output {page}` does")), "{said}");
    assert!(!Path::new(&page).exists());
    // Names are looked at before anything runs.
    let other = path(&folder, "other.zarr");
    assert!(refused(&sampled(model, &other, &["--report", "page.txt"])).contains("must end in .html"));
    assert!(!Path::new(&other).exists());
}

/// The template for Slurm, as its tasks run it: each with its number, in any order, one of them twice.
#[test]
fn tasks_of_a_job_array_fill_a_store() {
    let folder = Folder::new("store-slurm");
    let (whole, store) = (path(&folder, "whole.zarr"), path(&folder, "run.zarr"));
    let program = Path::new(env!("CARGO_BIN_EXE_autobatch"));
    let paths = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    for task in [1, 0, 1] {
        let mut shell = Command::new("examples/cluster/slurm.sh");
        shell.current_dir(env!("CARGO_MANIFEST_DIR")).env("PATH", &paths).env("SLURM_ARRAY_TASK_ID", task.to_string());
        shell.envs([("CHAINS", "70"), ("LANES", "64"), ("WARMUP", "20"), ("DRAWS", "10"), ("SEED", "9")]);
        let output = shell.args(["nuts/models/eight_schools.ab", DATA[1], &store]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    done(&["merge", &store]);
    let sizes = ["--chains", "70", "--warmup", "20", "--draws", "10", "--seed", "9"];
    done(&sampled("nuts/models/eight_schools.ab", &whole, &sizes));
    same(&store, &whole);
}

#[test]
fn two_runs_that_make_one_store_do_not_mix_their_files() {
    let folder = Folder::new("store-two-makers");
    for round in 0..4 {
        let store = folder.0.join(format!("{round}.zarr")).display().to_string();
        let makers = ["1.0", "2.0"].map(|scale| {
            std::fs::create_dir_all(folder.0.join(scale)).expect("a folder");
            // Long, so that writing it takes a while.
            let text = format!(
                "// {}\npub fn log_density(q: real[1]) -> real {{ -{scale} * q[0] * q[0] }}",
                "x".repeat(3_000_000)
            );
            let model = folder.file(&format!("{scale}/m.ab"), text);
            let store = store.clone();
            std::thread::spawn(move || {
                let sizes =
                    ["--chains", "128", "--warmup", "2", "--draws", "1", "--progress", "none", "--codegen", "off"];
                output(&[&["sample", &model, "--store", &store, "--lanes", "0..64"], &sizes[..]].concat())
            })
        });
        let done = makers.map(|maker| maker.join().expect("it ends"));
        let refused: Vec<String> = done
            .iter()
            .filter(|done| !done.status.success())
            .map(|done| String::from_utf8_lossy(&done.stderr).into_owned())
            .collect();
        assert!(matches!(&refused[..], [why] if why.contains("is the store of another run")), "{refused:?}");
        // Whoever was told that all is well has made it.
        let winner = usize::from(done[1].status.success());
        let kept = std::fs::read_to_string(format!("{store}/_autobatch/program/m.ab")).expect("the model is kept");
        assert!(kept.contains(["-1.0 * q", "-2.0 * q"][winner]), "round {round}");
    }
}
