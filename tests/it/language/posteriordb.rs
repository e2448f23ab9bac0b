//! A named check over a checkout of posteriordb that the user has: our gradients against Stan's.
//!
//!     POSTERIORDB=path POSTERIORDB_VALUES=values.json cargo test --release --test it posteriordb -- --ignored --nocapture
//!
//! `values.json` is an object: by the name of a posterior what `tests/scripts/stan_values.py --posteriordb path` writes, or
//! any `{"points": [{"q": […], "gradient": […]}, …]}`. `POSTERIORDB_ONLY=words` takes the posteriors whose names have one of
//! these words.

use std::io::Read as _;
use std::path::Path;
use std::time::Instant;

use autobatch::Engine;
use autobatch::mcmc::log_prob::Evaluated;
use autobatch::program::{StanModel, Terms};
use serde_json::{Map, Value};

use super::stan_values::{compiled, distance, evaluated, numbers};

/// The gradients of so many of the programs shall be Stan's.
const AGREE: (usize, usize) = (117, 120);
/// A gradient agrees that is as close as this; where Stan approximates, it is one more digit or two.
const TOLERANCE: f64 = 1e-9;
const APPROXIMATE: f64 = 1e-7;
const FULL: Terms = Terms { constants: true, jacobian: true };

pub(super) fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The one file of an archive, as JSON.
pub(super) fn unpacked(path: &Path) -> Value {
    let file = std::fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut archive = zip::ZipArchive::new(file).expect("an archive");
    let mut text = String::new();
    archive.by_index(0).expect("a file").read_to_string(&mut text).expect("a text");
    serde_json::from_str(&text).expect("JSON")
}

/// The data of a posterior, from the archive that posteriordb has, if it has one.
pub(super) fn data(folder: &Path, posterior: &Value) -> Option<Map<String, Value>> {
    let name = posterior["data_name"].as_str().expect("a name");
    let path = folder.join(format!("data/data/{name}.json.zip"));
    path.exists().then(|| unpacked(&path).as_object().expect("an object").clone())
}

/// How far the gradients of a posterior are from Stan's, or why there are none.
fn compare(program: &Path, data: &Map<String, Value>, stan: &Value) -> Result<f64, String> {
    let first = |error: autobatch::Error| error.diagnostics().first().map_or(error.to_string(), |d| d.message.clone());
    let model = StanModel::load(program, data, FULL).map_err(first)?;
    let recorded: Vec<&Value> =
        stan["points"].as_array().expect("a list").iter().filter(|p| p.get("error").is_none()).collect();
    let points: Vec<Vec<f64>> = recorded.iter().map(|p| numbers(&p["q"])).collect();
    if points.is_empty() {
        return Err("Stan rejects all points".to_owned());
    }
    if points[0].len() != model.dimension() {
        return Err(format!("{} coordinates where Stan has {}", model.dimension(), points[0].len()));
    }
    let density = compiled(&model, FULL).map_err(first)?;
    let found = evaluated(&density, &points, Engine::Pc).map_err(first)?;
    let mut worst: f64 = 0.0;
    for (found, stan) in found.iter().zip(recorded) {
        match found {
            Evaluated::Rejected(why) => return Err(format!("rejected: {why}")),
            Evaluated::Density { gradient, .. } => worst = worst.max(distance(gradient, &numbers(&stan["gradient"]))),
        }
    }
    Ok(worst)
}

#[test]
#[ignore = "a named check: takes a checkout of posteriordb and values of Stan's"]
fn posteriordb() {
    let given = |name: &str| std::env::var_os(name).map(std::path::PathBuf::from);
    let (Some(folder), Some(values)) = (given("POSTERIORDB"), given("POSTERIORDB_VALUES")) else {
        println!("skipped: POSTERIORDB names no checkout of posteriordb, or POSTERIORDB_VALUES no values of Stan's");
        return;
    };
    let folder = if folder.join("posterior_database").exists() { folder.join("posterior_database") } else { folder };
    let values = json(&values);
    let only = std::env::var("POSTERIORDB_ONLY").unwrap_or_default();
    let words: Vec<&str> = only.split_whitespace().collect();
    let (mut agree, mut all) = (0, 0);
    println!("{:60} {:12} {:>9} {:>8}", "posterior", "state", "off by", "seconds");
    for (name, stan) in values.as_object().expect("an object, by names of posteriors") {
        if !words.is_empty() && !words.iter().any(|word| name.contains(word)) {
            continue;
        }
        let posterior = json(&folder.join(format!("posteriors/{name}.json")));
        let program = folder.join(format!("models/stan/{}.stan", posterior["model_name"].as_str().expect("a name")));
        let begin = Instant::now();
        let found = match data(&folder, &posterior) {
            Some(data) => compare(&program, &data, stan),
            None => Err("there are no data".to_owned()),
        };
        let seconds = begin.elapsed().as_secs_f64();
        all += 1;
        let (state, off) = match found {
            Ok(off) if off <= TOLERANCE => ("agrees", format!("{off:.1e}")),
            Ok(off) if off <= APPROXIMATE => ("approximate", format!("{off:.1e}")),
            Ok(off) => ("DIFFERS", format!("{off:.1e}")),
            Err(why) => ("FAILS", why),
        };
        agree += usize::from(matches!(state, "agrees" | "approximate"));
        println!("{name:60} {state:12} {off:>9} {seconds:8.2}");
    }
    println!("{agree} of {all} posteriors have Stan's gradients");
    assert!(all > 0, "no posterior was compared");
    assert!(agree * AGREE.1 >= all * AGREE.0, "{agree} of {all} posteriors have Stan's gradients");
}
