//! The data of a model from the command line: what its density takes, what only its `parameters` takes, and what nothing does.

use crate::project::cli::{Folder, error, output};

const MODEL: &str =
    "pub fn log_density(q: real[2], shared mean: real) -> real { normal_lpdf(q[0], mean, 1.0) - q[1] * q[1] }
struct Parameters { a: real, b: real }
pub fn parameters(q: real[2], shared scale: real) -> Parameters { Parameters { a: q[0] * scale, b: q[1] } }
";

fn said(arguments: &[&str]) -> (bool, String) {
    let done = output(arguments);
    let text = [&done.stdout[..], &done.stderr].map(String::from_utf8_lossy).concat();
    (done.status.success(), text)
}

#[test]
fn what_only_the_parameters_of_draws_are_made_of_is_data_too() {
    let folder = Folder::new("data-of-parameters");
    let (model, data) =
        (folder.file("m.ab", MODEL), folder.file("d.json", r#"{"mean": 0.5, "scale": 2.0, "other": 1}"#));
    let short = ["--chains", "2", "--warmup", "5", "--draws", "5"];
    let commands: [(&str, &[&str]); 4] =
        [("sample", &short), ("optimize", &[]), ("laplace", &["--draws", "20"]), ("pathfinder", &["--num-paths", "1"])];
    for (command, more) in commands {
        for given in [&["--data", &data][..], &["--shared", "mean=0.5", "--shared", "scale=2.0"]] {
            let (fine, text) = said(&[&[command, &model], given, more].concat());
            assert!(fine && text.lines().any(|line| line.starts_with("a ")), "{command}: {text}");
        }
        let wrong = [&[command, &model, "--data", &data, "--shared", "scales=2.0"][..], more].concat();
        assert!(error(&wrong).contains("has no input `scales`"), "{command}");
        let lacking = [&[command, &model, "--shared", "mean=0.5"][..], more].concat();
        assert!(error(&lacking).contains("`parameters` needs a value for `scale`"), "{command}");
    }
}

#[test]
fn chains_that_stay_where_they_start_are_not_to_run_longer() {
    let folder = Folder::new("chains-that-stay");
    let model = folder.file("m.stan", "parameters { real x; } model { x ~ normal(0, 1); }");
    let file = folder.0.join("draws.csv").display().to_string();
    let run = ["sample", &model, "--algorithm", "fixed_param", "--draws", "30", "--output", &file];
    assert!(said(&run).0);
    let files: Vec<String> = std::fs::read_dir(&folder.0)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path().display().to_string())
        .filter(|path| path.ends_with(".csv"))
        .collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let (_, text) = said(&[&["diagnose"], &files[..]].concat());
    assert!(text.contains("R-hat: the chains stay where they start") && !text.contains("run longer"), "{text}");
}
