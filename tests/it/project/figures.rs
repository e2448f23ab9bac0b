//! `bench --figures` and `bench --from`: which figures there are, and what they show of results that were recorded. Nothing
//! here looks at speed.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output};

use serde_json::Value;

use super::bench::{FAKE, Folder, bench, refusal, well_formed};

/// Results that are made up: a figure of each kind, with names that must be escaped.
const RECORDED: &str = "tests/data/bench_results.json";

/// The report of the recorded results in a folder.
fn drawn(test: &str) -> Folder {
    let folder = Folder::new(test);
    let output = bench(&["--from", RECORDED, "--report", folder.path()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

/// The names of the pictures in a folder.
fn pictures(folder: &Folder) -> BTreeSet<String> {
    let files = std::fs::read_dir(&folder.0).unwrap();
    let names = files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".svg")).collect()
}

/// Where the texts of a picture stand.
fn texts(svg: &str) -> BTreeMap<&str, (f64, f64)> {
    anchored(svg, "")
}

/// Where those texts stand whose place is their `start`, `middle` or `end`: of labels, those of the axis below are in its
/// middle, and those of the axis to the left end there.
fn anchored<'a>(svg: &'a str, anchor: &str) -> BTreeMap<&'a str, (f64, f64)> {
    let mut texts = BTreeMap::new();
    let anchor = format!("text-anchor=\"{anchor}");
    for element in svg.split("<text ").skip(1).filter(|element| element.contains(&anchor)) {
        let number = |name: &str| element.split(&format!("{name}=\"")).nth(1)?.split('"').next()?.parse().ok();
        let text = element.split('>').nth(1).unwrap().split('<').next().unwrap();
        if let (Some(x), Some(y)) = (number("x"), number("y")) {
            texts.insert(text, (x, y));
        }
    }
    texts
}

#[test]
fn recorded_results_are_drawn_again() {
    let folder = drawn("drawn");
    let [again, recorded] = [folder.read("results.json"), std::fs::read_to_string(RECORDED).unwrap()]
        .map(|text| serde_json::from_str::<Value>(&text).unwrap());
    assert_eq!(again["results"], recorded["results"]);
    assert_eq!(again, recorded);
    let name = |end: &str| format!("odds_ends__2_-f64-{end}.svg");
    let ends = ["1", "1-utilization", "1-ablation", "1000-chains-by-threads", "1-1000-chains-leaf-steps"];
    assert_eq!(pictures(&folder), ends.map(name).into());
    for picture in ends.map(name) {
        let svg = folder.read(&picture);
        well_formed(&svg);
        assert!(svg.contains("odds&amp;ends &lt;2&gt;, f64"), "{picture}");
    }
}

#[test]
fn rates_stand_on_logarithmic_axes_with_the_bound() {
    let svg = drawn("rates").read("odds_ends__2_-f64-1.svg");
    let texts = texts(&svg);
    for name in
        ["autobatch pc", "autobatch pc cc", "autobatch local, no fusion", "autobatch scalar", "peer &lt;b&gt; vmap"]
    {
        assert!(texts.contains_key(name), "{name}: {svg}");
    }
    for name in ["chains", "void: other load", "bound: products, exp, log1p"] {
        assert!(texts.contains_key(name), "{name}: {svg}");
    }
    assert!(svg.contains(">gradients / s</text>"), "{svg}");
    // The bound has dashes of its own.
    assert!(svg.contains(r##"stroke="#000000" stroke-width="2" stroke-dasharray="10 5""##), "{svg}");
    let (below, left) = (anchored(&svg, "middle"), anchored(&svg, "end"));
    let places = [
        ["1", "10", "100", "1000"].map(|label| below[label].0),
        ["100", "1000", "10 k", "100 k"].map(|label| left[label].1),
    ];
    for places in places {
        // A decade is as wide as the next one.
        let steps: Vec<f64> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(steps.iter().all(|step| (step - steps[0]).abs() < 0.2 && step.abs() > 20.0), "{places:?}");
    }
}

#[test]
fn every_line_and_every_name_is_inside_of_its_picture() {
    let folder = drawn("inside");
    for picture in pictures(&folder) {
        let svg = folder.read(&picture);
        let size = svg.split("viewBox=\"0 0 ").nth(1).unwrap().split('"').next().unwrap();
        let (width, height) = size.split_once(' ').unwrap();
        let (width, height): (f64, f64) = (width.parse().unwrap(), height.parse().unwrap());
        let inside =
            |x: f64, y: f64| assert!((0.0..=width).contains(&x) && (0.0..=height).contains(&y), "{picture}: {x}, {y}");
        for points in svg.split("points=\"").skip(1) {
            for point in points.split('"').next().unwrap().split(' ') {
                let (x, y) = point.split_once(',').unwrap();
                inside(x.parse().unwrap(), y.parse().unwrap());
            }
        }
        texts(&svg).values().for_each(|(x, y)| inside(*x, *y));
        assert!(svg.len() < 40_000, "{picture} has {} bytes", svg.len());
    }
}

#[test]
fn each_question_has_its_picture() {
    let folder = drawn("questions");
    let utilization = folder.read("odds_ends__2_-f64-1-utilization.svg");
    for name in [
        "autobatch pc, mask, earliest",
        "autobatch pc, mask, cost",
        "autobatch local, mask",
        "bound: mean ÷ most of a chain",
        "bound of local: draw by draw",
    ] {
        assert!(texts(&utilization).contains_key(name), "{name}");
    }
    let ablation = folder.read("odds_ends__2_-f64-1-ablation.svg");
    for name in ["all on", "without save-live", "without all 2", "17.00 (16.49–17.85)"] {
        assert!(texts(&ablation).contains_key(name), "{name}: {ablation}");
    }
    let threads = folder.read("odds_ends__2_-f64-1000-chains-by-threads.svg");
    assert!(["threads", "4", "autobatch scalar"].iter().all(|name| texts(&threads).contains_key(name)));
    let leaves = folder.read("odds_ends__2_-f64-1-1000-chains-leaf-steps.svg");
    assert!(["1", "2", "4", "8", "16", "autobatch pc"].iter().all(|name| texts(&leaves).contains_key(name)));
}

#[test]
fn the_page_needs_nothing_else_and_escapes_what_it_shows() {
    let folder = drawn("page");
    let page = folder.read("report.html");
    well_formed(page.strip_prefix("<!DOCTYPE html>").unwrap());
    assert_eq!(page.matches("<svg").count(), 5);
    assert_eq!(page.matches("<table>").count(), 5);
    for text in [
        "Some &lt;processor&gt;",
        "peer 1.0 &amp; more",
        "peer &lt;b&gt; vmap",
        "no &lt;compiler&gt; &amp; no licence",
        "<th>times all on</th>",
        "<th>leaf steps</th>",
        "<th>threads</th>",
        "(4 run)",
        "VOID",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("src=") && !page.contains("href="), "it needs another file");
}

#[test]
fn what_cannot_be_drawn_is_told() {
    let folder = Folder::new("undrawable");
    let other = folder.0.join("other.json");
    let from = |file: &str| refusal(&["--from", file, "--report", folder.path()]);
    assert!(from("missing.json").contains("--from missing.json: "));
    for text in ["not JSON", "{\"results\": []}", "[1]"] {
        std::fs::write(&other, text).unwrap();
        let said = from(other.to_str().unwrap());
        assert!(said.contains("no results.json of `autobatch bench`"), "{said}");
    }
    // A file is where the folder would be.
    for flag in ["--figures", "--report"] {
        let said = refusal(&[flag, other.to_str().unwrap(), "--chains", "1"]);
        assert!(said.contains(&format!("{flag} {}: ", other.display())), "{said}");
    }
}

/// The command, with what would take long made small. No code is compiled, which takes seconds a series.
fn figures(folder: &Folder, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_autobatch"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).env("AUTOBATCH_CC", "false");
    command.env("AUTOBATCH_CACHE", folder.0.join("cache"));
    command.args(["bench", "--figures", folder.path(), "--peers", folder.path(), "--format", "json"]);
    command.args(["--chains", "1,8", "--draws", "4", "--repetitions", "1"]).args(more);
    command
}

fn report(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// The series of a question.
fn series(report: &Value, question: &str) -> BTreeSet<String> {
    let rows = report["results"].as_array().unwrap().iter().filter(|row| row["question"] == question);
    let name = |row: &Value| {
        let without = row["ablation"]["without"].as_array().map_or(0, Vec::len);
        let parts = ["engine", "fusion", "schedule", "execution"].map(|key| row[key].to_string());
        format!("{} -{without}", parts.join(" ").replace('"', ""))
    };
    rows.map(name).collect()
}

#[test]
fn one_command_measures_all_figures() {
    let folder = Folder::new("figures");
    let output = figures(&folder, &["--model", "eight_schools,fib", "--threads", "1,2"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = report(&output);
    let posterior = ["1", "1-utilization", "1-ablation", "8-chains-by-threads", "1-8-chains-leaf-steps"]
        .map(|end| format!("eight_schools-f64-{end}.svg"));
    // A program of control flow has no leaves.
    let control = ["1", "1-utilization", "1-ablation", "8-chains-by-threads"].map(|end| format!("fib-f64-{end}.svg"));
    let files: BTreeSet<String> = posterior.into_iter().chain(control).collect();
    assert_eq!(pictures(&folder), files);
    let page = folder.read("report.html");
    well_formed(page.strip_prefix("<!DOCTYPE html>").unwrap());
    let kept: Value = serde_json::from_str(&folder.read("results.json")).unwrap();
    assert_eq!(kept, report);

    // Every engine with kernels, and as code that may come; what `cc` lacks here is named.
    let kernels = [
        "pc true cost auto -0",
        "pc false cost auto -0",
        "pc auto true cost null -0",
        "local true null auto -0",
        "local false null auto -0",
        "local auto true null null -0",
        "scalar null null null -0",
    ];
    assert_eq!(series(&report, "chains"), kernels.map(str::to_owned).into());
    let skipped: Vec<&str> =
        report["skipped"].as_array().unwrap().iter().map(|skipped| skipped["engine"].as_str().unwrap()).collect();
    assert_eq!(skipped, ["pc cc", "local cc", "scalar cc"]);
    let policies = ["cost auto", "cost mask", "cost:0.5 mask", "most-lanes mask", "earliest mask"];
    let mut policies: BTreeSet<String> = policies.map(|policy| format!("pc true {policy} -0")).into();
    policies.insert("local true null mask -0".to_owned());
    assert_eq!(series(&report, "utilization"), policies);
    assert_eq!(series(&report, "ablation").len(), 3, "all on, one off, all off");
    assert_eq!(series(&report, "threads").len(), 3);
    let rows = report["results"].as_array().unwrap();
    let values = |question: &str, key: &str| -> BTreeSet<u64> {
        rows.iter().filter(|row| row["question"] == question).map(|row| row[key].as_u64().unwrap()).collect()
    };
    assert_eq!(values("leaf_steps", "leaf_steps"), [1, 2, 4, 8, 16].into());
    assert_eq!(values("threads", "threads"), [1, 2].into());
    assert_eq!(values("chains", "threads"), [1].into());
    assert_eq!(values("chains", "chains"), [1, 8].into());
    for question in ["ablation", "threads", "leaf_steps"] {
        assert_eq!(values(question, "chains"), [8].into(), "{question} is of the largest number of chains");
    }
    keeps_to_its_bound(&report, "eight_schools");
}

/// Under a mask nothing is above its bound, and one lane is always of use.
fn keeps_to_its_bound(report: &Value, model: &str) {
    let rows = report["results"].as_array().unwrap().iter().filter(|row| row["question"] == "utilization");
    let mut bounds: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for row in rows.filter(|row| row["execution"] == "mask" && row["model"] == model) {
        let [utilization, bound] = ["utilization", "utilization_bound"].map(|key| row[key].as_f64().unwrap());
        assert!(utilization <= bound + 1e-12 && bound <= 1.0, "{row}");
        let chains = row["chains"].as_u64().unwrap();
        assert!(chains > 1 || utilization == 1.0, "{row}");
        bounds.entry(chains).or_default().insert(format!("{} {bound}", row["engine"]));
    }
    assert_eq!(bounds[&8].len(), 2, "one for all policies, one for local: {bounds:?}");
}

/// A peer, found because it is installed, hangs with the second model: what is measured by then is drawn.
#[cfg(unix)]
#[test]
fn ctrl_c_draws_what_is_measured() {
    let folder = Folder::new("figures-interrupted");
    let hangs = "*'\"model\":\"normal10\"'*) exec sleep 600 ;;";
    folder.install(&FAKE.replace("case \"$job\" in ", &format!("case \"$job\" in {hangs} ")));
    let mut running = crate::tools::running::Running::start(figures(
        &folder,
        &["--model", "eight_schools,normal10", "--threads", "1"],
    ));
    running.wait_for("normal10, 1 chain, f64, 1 thread: nuts-rs native gradient compiles");
    running.signal("INT");
    let (output, said) = running.end();
    assert_eq!(output.status.code(), Some(130), "{said}");
    let kept: Value = serde_json::from_str(&folder.read("results.json")).unwrap();
    assert_eq!(kept, report(&output));
    assert_eq!(kept["comparison"]["interrupted"], true);
    let names = pictures(&folder);
    assert!(names.len() == 5 && names.iter().all(|name| name.starts_with("eight_schools-f64-")), "{names:?}");
    let svg = folder.read("eight_schools-f64-1.svg");
    assert!(svg.contains(">nuts-rs native gradient</text>"), "{svg}");
    assert!(folder.read("report.html").contains("interrupted: cells are missing"));
}
