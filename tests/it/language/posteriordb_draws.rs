//! A named check over a checkout of posteriordb that the user has: draws against the reference draws, and a table of all
//! posteriors with the time that they take.
//!
//!     POSTERIORDB=path cargo test --release --test it posteriordb_draws -- --ignored --nocapture
//!
//! Posteriors with reference draws are sampled as a user would, 64 chains with an adaptation each, and the target of the
//! step size and the depth of trees that the reference was made with; of the others a few draws are made. One agrees in part where it does without chains that stay far from the others; they are counted.
//! `POSTERIORDB_ONLY=words` takes the posteriors whose names have one of these words,
//! `POSTERIORDB_SECONDS=900` is how long one may take, `POSTERIORDB_CODEGEN=cc` is the `--codegen` of the command, and
//! `POSTERIORDB_TABLE=benches/posteriordb.md` is the file whose table is replaced.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use autobatch::mcmc::diagnostics;
use autobatch::program::io::{ArrayType, NamedValues};
use autobatch::types::DType;
use serde_json::Value;

use super::posteriordb::{data, json, unpacked};

const CHAINS: usize = 64;
/// How far a mean may be off, in standard errors of both.
const MOST_ERRORS: f64 = 4.5;
/// How far a standard deviation may be off.
const SD: f64 = 0.05;
/// A chain is astray whose mean log density is so many standard deviations from that of the median chain.
const FAR: f64 = 10.0;
/// How many may be.
const MOST_ASTRAY: usize = CHAINS / 8;

/// What came of a posterior.
struct Row {
    name: String,
    state: &'static str,
    /// Of the mean that is farthest off: how many standard errors; of the standard deviations: what part.
    off: Option<(f64, f64)>,
    seconds: f64,
    /// Gradients a second while it sampled.
    rate: Option<f64>,
    why: String,
}

impl Row {
    fn cells(&self) -> String {
        let (errors, sd) =
            self.off.map_or(("".into(), "".into()), |(e, s)| (format!("{e:.1}"), format!("{:.1} %", 100.0 * s)));
        let rate = self.rate.map_or(String::new(), |rate| match rate {
            rate if rate >= 1e6 => format!("{:.2} M", rate / 1e6),
            rate => format!("{:.1} k", rate / 1e3),
        });
        let why = if self.why.is_empty() { String::new() } else { format!(": {}", self.why.replace('|', "/")) };
        format!("| {} | {}{why} | {errors} | {sd} | {:.1} | {rate} |", self.name, self.state, self.seconds)
    }
}

const HEAD: &str = "| posterior | state | mean off by, standard errors | sd off by | seconds | gradients/s |\n|---|---|---|---|---|---|\n";

/// Runs a command for at most so long; its standard output and error, and whether it was right.
fn finished(mut command: Command, most: Duration) -> Option<(bool, String)> {
    let log = std::env::temp_dir().join(format!("autobatch-posteriordb-{}.log", std::process::id()));
    let file = std::fs::File::create(&log).expect("a file for what it says");
    let again = file.try_clone().expect("a file");
    let mut child = command.stdin(Stdio::null()).stdout(file).stderr(again).spawn().expect("it starts");
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            break Some(status);
        }
        if begin.elapsed() > most {
            child.kill().expect("it can be ended");
            child.wait().expect("it ended");
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    status.map(|status| (status.success(), said))
}

/// The reference draws of each scalar, and `None` where there are none.
fn reference(folder: &Path, posterior: &Value) -> Option<BTreeMap<String, Vec<Vec<f64>>>> {
    let name = posterior["reference_posterior_name"].as_str()?;
    let path = folder.join(format!("reference_posteriors/draws/draws/{name}.json.zip"));
    let chains = path.exists().then(|| unpacked(&path))?;
    let mut all: BTreeMap<String, Vec<Vec<f64>>> = BTreeMap::new();
    for chain in chains.as_array().expect("a list of chains") {
        for (name, draws) in chain.as_object().expect("an object, by names") {
            let draws = draws.as_array().expect("a list").iter().map(|x| x.as_f64().unwrap_or(f64::NAN)).collect();
            all.entry(name.clone()).or_default().push(draws);
        }
    }
    Some(all)
}

/// The target of the step size and the greatest depth of trees that the reference draws were made with, as options.
fn control(folder: &Path, posterior: &Value) -> Vec<String> {
    let Some(name) = posterior["reference_posterior_name"].as_str() else { return Vec::new() };
    let info = json(&folder.join(format!("reference_posteriors/draws/info/{name}.info.json")));
    let control = &info["inference"]["method_arguments"]["control"];
    let options = [("--delta", "adapt_delta"), ("--max-depth", "max_treedepth")];
    let told =
        options.iter().filter_map(|(option, key)| Some([(*option).to_owned(), control[key].as_f64()?.to_string()]));
    told.flatten().collect()
}

/// The draws of one scalar, `theta[2,1]`, by chain.
fn drawn(values: &NamedValues, name: &str) -> Result<Vec<Vec<f64>>, String> {
    let (field, index) = name.split_once('[').unwrap_or((name, ""));
    let at = index.trim_end_matches(']').split(',').filter(|i| !i.is_empty());
    let at: Vec<usize> = at.map(|i| i.parse::<usize>().expect("an index") - 1).collect();
    let ty = ArrayType { dtype: DType::Real, rank: 2 + at.len() };
    let array = values.array(field, ty).map_err(|e| e.to_string())?;
    let (chains, draws) = (array.shape[0], array.shape[1]);
    let event: usize = array.shape[2..].iter().product();
    let element = at.iter().zip(&array.shape[2..]).fold(0, |flat, (i, n)| flat * n + i);
    let x = array.as_real().ok_or("no reals")?;
    Ok((0..chains).map(|c| (0..draws).map(|d| x[(c * draws + d) * event + element]).collect()).collect())
}

/// The chains that stay where the density is far from that of the others: by their mean log density, in standard deviations
/// of a chain. Starts are drawn as Stan draws them, and Stan's own chains stay there, too (benches/posteriordb.md).
fn astray(values: &NamedValues) -> Result<Vec<bool>, String> {
    let median = |mut x: Vec<f64>| {
        x.sort_by(f64::total_cmp);
        x[x.len() / 2]
    };
    let chains = drawn(values, "lp")?;
    let means: Vec<f64> = chains.iter().map(|chain| chain.iter().sum::<f64>() / chain.len() as f64).collect();
    let spread = median(chains.iter().map(|chain| diagnostics::sd(std::slice::from_ref(chain))).collect());
    let middle = median(means.clone());
    Ok(means.iter().map(|mean| (mean - middle).abs() > FAR * spread).collect())
}

/// How far means (in standard errors of both) and standard deviations are from the reference at most, without some chains.
fn distance(
    values: &NamedValues,
    reference: &BTreeMap<String, Vec<Vec<f64>>>,
    without: &[bool],
) -> Result<(f64, f64), String> {
    let (mut errors, mut sds): (f64, f64) = (0.0, 0.0);
    for (name, theirs) in reference {
        let mut left_out = without.iter();
        let mut ours = drawn(values, name)?;
        ours.retain(|_| left_out.next() != Some(&true));
        let sd = diagnostics::sd(theirs);
        if sd == 0.0 {
            continue;
        }
        let error = diagnostics::mcse_mean(&ours).hypot(diagnostics::mcse_mean(theirs));
        let off = (diagnostics::mean(&ours) - diagnostics::mean(theirs)).abs() / error;
        errors = errors.max(if off.is_nan() { f64::INFINITY } else { off });
        sds = sds.max((diagnostics::sd(&ours) / sd - 1.0).abs());
    }
    Ok((errors, sds))
}

/// Samples a posterior.
fn run(folder: &Path, name: &str, most: Duration) -> Row {
    let mut row =
        Row { name: name.to_owned(), state: "fails", off: None, seconds: 0.0, rate: None, why: String::new() };
    let posterior = json(&folder.join(format!("posteriors/{name}.json")));
    let scratch = std::env::temp_dir().join(format!("autobatch-posteriordb-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).expect("a folder");
    let Some(data) = data(folder, &posterior) else {
        row.state = "no data";
        return row;
    };
    let file = scratch.join("data.json");
    std::fs::write(&file, serde_json::to_string(&data).expect("JSON")).expect("it can be written");
    let reference = reference(folder, &posterior);
    let (warmup, draws) = if reference.is_some() { ("1000", "250") } else { ("100", "20") };
    let output = scratch.join("draws.npz");
    let mut command = Command::new(env!("CARGO_BIN_EXE_autobatch"));
    let program = posterior["model_name"].as_str().expect("a name");
    command.arg("sample").arg(folder.join(format!("models/stan/{program}.stan"))).arg("--data").arg(&file);
    command.args(["--chains", &CHAINS.to_string(), "--warmup", warmup, "--draws", draws, "--seed", "1"]);
    command.args(control(folder, &posterior)).args(["--summary", "lp__", "--output"]).arg(&output);
    if let Ok(codegen) = std::env::var("POSTERIORDB_CODEGEN") {
        command.args(["--codegen", &codegen]);
    }
    let begin = Instant::now();
    let finished = finished(command, most);
    row.seconds = begin.elapsed().as_secs_f64();
    let Some((is_right, said)) = finished else {
        row.state = "too slow";
        return row;
    };
    if !is_right {
        row.why = said.lines().find(|line| line.contains("error")).unwrap_or_default().chars().take(100).collect();
        return row;
    }
    // "759,594 gradients in 1.78 s, 425,885 gradients/s"
    let rate = said.lines().find_map(|line| line.strip_suffix(" gradients/s")?.rsplit(' ').next().map(str::to_owned));
    row.rate = rate.and_then(|rate| rate.replace(',', "").parse().ok());
    row.state = "runs";
    if let Some(reference) = reference {
        let read = NamedValues::read(&output).map_err(|e| e.to_string());
        if let Err(why) = read.and_then(|values| compare(&mut row, &values, &reference)) {
            (row.state, row.why) = ("fails", why);
        }
    }
    std::fs::remove_dir_all(&scratch).expect("the folder can go");
    row
}

/// Says of draws whether they agree with the reference, or would without the chains that are astray.
fn compare(row: &mut Row, values: &NamedValues, reference: &BTreeMap<String, Vec<Vec<f64>>>) -> Result<(), String> {
    let agrees = |(errors, sd): (f64, f64)| errors <= MOST_ERRORS && sd <= SD;
    let all = distance(values, reference, &[])?;
    (row.state, row.off) = (if agrees(all) { "agrees" } else { "DIFFERS" }, Some(all));
    let astray = astray(values)?;
    let count = astray.iter().filter(|astray| **astray).count();
    if !agrees(all) && (1..=MOST_ASTRAY).contains(&count) {
        let rest = distance(values, reference, &astray)?;
        if agrees(rest) {
            (row.state, row.off) = ("agrees in part", Some(rest));
            row.why = format!("without {count} chains ({:.1} and {:.1} % with them)", all.0, 100.0 * all.1);
        }
    }
    Ok(())
}

/// Replaces the table of a page: what stands between its head and the next empty line.
fn replace_table(page: &Path, rows: &[Row]) {
    let text = std::fs::read_to_string(page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
    let begin = text.find(HEAD).unwrap_or_else(|| panic!("{} has no table of posteriors", page.display()));
    let end = text[begin..].find("\n\n").map_or(text.len(), |at| begin + at + 1);
    let table: String = rows.iter().map(|row| row.cells() + "\n").collect();
    std::fs::write(page, format!("{}{HEAD}{table}{}", &text[..begin], &text[end..])).expect("it can be written");
}

#[test]
#[ignore = "a named check: takes a checkout of posteriordb, and hours"]
fn posteriordb_draws() {
    let Some(folder) = std::env::var_os("POSTERIORDB").map(PathBuf::from) else {
        println!("skipped: POSTERIORDB names no checkout of posteriordb");
        return;
    };
    let folder = if folder.join("posterior_database").exists() { folder.join("posterior_database") } else { folder };
    let only = std::env::var("POSTERIORDB_ONLY").unwrap_or_default();
    let words: Vec<&str> = only.split_whitespace().collect();
    let seconds = std::env::var("POSTERIORDB_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(900);
    let entries = std::fs::read_dir(folder.join("posteriors")).expect("the folder");
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_string_lossy().into_owned()))
        .filter(|name| words.is_empty() || words.iter().any(|word| name.contains(word)))
        .collect();
    names.sort();
    print!("{HEAD}");
    let mut rows = Vec::new();
    for name in names {
        let row = run(&folder, &name, Duration::from_secs(seconds));
        println!("{}", row.cells());
        rows.push(row);
    }
    let count = |state: &str| rows.iter().filter(|row| row.state == state).count();
    println!(
        "{} agree, {} in part, {} differ, {} run, {} fail",
        count("agrees"),
        count("agrees in part"),
        count("DIFFERS"),
        count("runs"),
        count("fails")
    );
    if let Some(page) = std::env::var_os("POSTERIORDB_TABLE") {
        replace_table(Path::new(&page), &rows);
    }
    assert!(!rows.is_empty(), "no posterior was sampled");
    let bad: Vec<&str> =
        rows.iter().filter(|r| matches!(r.state, "DIFFERS" | "fails")).map(|r| r.name.as_str()).collect();
    assert!(bad.is_empty(), "{bad:?}");
}
