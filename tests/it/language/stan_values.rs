//! Our own Stan programs against Stan: at three points of each `tests/scripts/stan_values.py` recorded what Stan computes.
//!
//! Comments at the beginning of a program say what is special: `unsupported: WORDS`, that the translator refuses it with
//! E2501 and these words, `tolerance: X (reason)`, where Stan itself is no closer than that, and `instead:
//! POINT LP [GRADIENT]`, what another source has for the density with all constants at a point where Stan is no reference.

use std::path::{Path, PathBuf};

use autobatch::mcmc::log_prob::{Evaluated, LogProb};
use autobatch::mcmc::sampling::ModelSource;
use autobatch::program::{StanModel, Terms};
use autobatch::{Array, Engine, Error, Inputs, NoSink, Options, Program};
use serde_json::{Map, Value};

const FOLDER: &str = "tests/filetests/stan/run";
/// How far values may be from Stan's, relative to the larger of 1 and Stan's.
const TOLERANCE: f64 = 1e-9;
const FULL: Terms = Terms { constants: true, jacobian: true };
const SAMPLED: Terms = Terms { constants: false, jacobian: true };

/// A number of JSON, or the name of one that JSON has not.
pub(crate) fn number(value: &Value) -> f64 {
    match value.as_str() {
        Some("Inf") => f64::INFINITY,
        Some("-Inf") => f64::NEG_INFINITY,
        Some(_) => f64::NAN,
        None => value.as_f64().expect("a number"),
    }
}

pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(number).collect()
}

/// The largest distance of numbers, each relative to the larger of 1 and its reference.
pub(crate) fn distance(found: &[f64], reference: &[f64]) -> f64 {
    assert_eq!(found.len(), reference.len(), "as many numbers");
    let each = found.iter().zip(reference).map(|(a, b)| {
        let same = a == b || (a.is_nan() && b.is_nan());
        let d = if same { 0.0 } else { (a - b).abs() / b.abs().max(1.0) };
        if d.is_nan() { f64::INFINITY } else { d }
    });
    each.fold(0.0, f64::max)
}

/// The density of a program with its data, compiled.
pub(crate) fn compiled(model: &StanModel, terms: Terms) -> Result<LogProb, Error> {
    LogProb::new(&ModelSource::Stan(model), terms, |density| Ok(model.inputs().restricted_to(density.signature())))
}

/// Values and gradients at points, in one batch.
pub(crate) fn evaluated(density: &LogProb, points: &[Vec<f64>], engine: Engine) -> Result<Vec<Evaluated>, Error> {
    density.at(batch(points), &Options::default().engine(engine))
}

fn batch(points: &[Vec<f64>]) -> Array {
    Array::real([points.len(), points[0].len()], points.concat())
}

fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A program of the folder.
struct Case {
    path: PathBuf,
    data: Map<String, Value>,
    unsupported: Option<String>,
    tolerance: f64,
    /// The point, its log density, and the gradient.
    instead: Vec<(usize, f64, Vec<f64>)>,
}

impl Case {
    fn read(path: PathBuf) -> Case {
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let said = |what: &str| text.lines().find_map(|line| line.strip_prefix("// ")?.strip_prefix(what));
        let unsupported = said("unsupported: ").map(str::to_owned);
        let tolerance = said("tolerance: ").map_or(TOLERANCE, |words| {
            let (number, reason) = words.split_once(' ').expect("a number and a reason");
            assert!(reason.starts_with('('), "{}: a reason in parentheses", path.display());
            number.parse().expect("a number")
        });
        let data = match path.with_extension("json") {
            data if data.exists() => json(&data).as_object().expect("an object").clone(),
            _ => Map::new(),
        };
        let all = text.lines().filter_map(|line| line.strip_prefix("// instead: "));
        let instead = all.map(|words| {
            let (point, rest) = words.split_once(' ').expect("a point");
            let (lp, gradient) = rest.split_once(' ').expect("a log density and a gradient");
            let gradient = serde_json::from_str(gradient).expect("a list of numbers");
            (point.parse().expect("the number of a point"), lp.parse().expect("a number"), gradient)
        });
        let instead = instead.collect();
        Case { path, data, unsupported, tolerance, instead }
    }

    /// What Stan computed.
    fn points(&self) -> Vec<Value> {
        let recorded = json(&self.path.with_extension("expected.json"));
        recorded["points"].as_array().expect("a list").clone()
    }

    /// Everything that is not as it should be.
    fn problems(&self) -> Vec<String> {
        let loaded = StanModel::load(&self.path, &self.data, FULL);
        let model = match (&self.unsupported, loaded) {
            (None, Ok(model)) => model,
            (None, Err(error)) => return vec![error.to_string()],
            (Some(words), Ok(_)) => return vec![format!("no longer unsupported: {words}")],
            (Some(words), Err(error)) => {
                let told = |d: &&autobatch::program::Diagnostic| d.code.0 == "E2501" && d.message.contains(words);
                let problem = format!("expected E2501 with {words:?}, found: {error}");
                return if error.diagnostics().iter().any(|d| told(&d)) { vec![] } else { vec![problem] };
            }
        };
        self.compare(&model).unwrap_or_else(|error| vec![error.to_string()])
    }

    fn compare(&self, model: &StanModel) -> Result<Vec<String>, Error> {
        let recorded = self.points();
        let points: Vec<Vec<f64>> = recorded.iter().map(|p| numbers(&p["q"])).collect();
        let mut problems = Vec::new();
        let full = compiled(model, FULL)?;
        for engine in [Engine::Pc, Engine::Scalar] {
            for (i, (found, stan)) in evaluated(&full, &points, engine)?.iter().zip(&recorded).enumerate() {
                let problem = self.differs(i, found, stan, "lp");
                problems.extend(problem.map(|problem| format!("point {i}, {engine:?}: {problem}")));
            }
        }
        let sampled = StanModel::load(&self.path, &self.data, SAMPLED)?;
        let sampled = compiled(&sampled, SAMPLED)?;
        for (i, (found, stan)) in evaluated(&sampled, &points, Engine::Pc)?.iter().zip(&recorded).enumerate() {
            let problem = self.differs(i, found, stan, "lp__");
            problems.extend(problem.map(|problem| format!("point {i}, without constants: {problem}")));
        }
        problems.extend(self.outputs(model, &points, &recorded)?);
        Ok(problems)
    }

    fn differs(&self, point: usize, found: &Evaluated, stan: &Value, lp_name: &str) -> Option<String> {
        if let Some((_, expected, expected_gradient)) = self.instead.iter().find(|(at, ..)| *at == point) {
            let Evaluated::Density { lp, gradient } = found else { return Some(format!("{found:?}, not {expected}")) };
            let agrees = |key: &str, own: &[f64]| {
                let stan = stan.get(key).map(|v| if v.is_array() { numbers(v) } else { vec![number(v)] });
                stan.is_some_and(|stan| distance(&stan, own) <= self.tolerance)
            };
            if agrees("lp", &[*expected]) && agrees("gradient", expected_gradient) {
                return Some("Stan has the same: there is no need of another source".to_owned());
            }
            // Nobody has said what it is without constants.
            let off = if lp_name == "lp" { distance(&[*lp], &[*expected]) } else { 0.0 };
            let off = off.max(distance(gradient, expected_gradient));
            return (off > self.tolerance).then(|| format!("{lp} and {gradient:?} are off by {off:.1e}"));
        }
        match (found, stan.get("error")) {
            (Evaluated::Rejected(_), Some(_)) => None,
            (Evaluated::Rejected(why), None) => Some(format!("rejected: {why}")),
            (Evaluated::Density { lp, .. }, Some(error)) => Some(format!("Stan rejects: {error}, found {lp}")),
            (Evaluated::Density { lp, gradient }, None) => {
                let expected = number(&stan[lp_name]);
                let off = distance(&[*lp], &[expected]);
                if off > self.tolerance {
                    return Some(format!("{lp_name} is {lp}, Stan's {expected}"));
                }
                let expected = numbers(&stan["gradient"]);
                let off = distance(gradient, &expected);
                (off > self.tolerance).then(|| format!("the gradient is off by {off:.1e}: {gradient:?}, {expected:?}"))
            }
        }
    }

    /// Parameters, transformed parameters and generated quantities by Stan's names.
    fn outputs(&self, model: &StanModel, points: &[Vec<f64>], recorded: &[Value]) -> Result<Vec<String>, Error> {
        let program = Program::compile_named("<model>", model.text())?;
        let function = program.function("parameters")?;
        let state = function.signature().ports[0].name.clone();
        let inputs: Inputs = model.inputs().restricted_to(function.signature()).lane(state, batch(points));
        let results = function.bind(&inputs, &Options::default())?.run(&Options::default(), &NoSink)?;
        let mut problems = Vec::new();
        for (i, stan) in recorded.iter().enumerate() {
            let Some(values) = stan.get("values").and_then(Value::as_object) else { continue };
            if let Some(trap) = results.traps().iter().find(|trap| trap.position == i) {
                problems.push(format!("point {i}: no parameters: {}", trap.message));
                continue;
            }
            for (name, expected) in values {
                let expected = number(expected);
                match element(&results, i, name) {
                    Some(found) if distance(&[found], &[expected]) <= self.tolerance => {}
                    found => problems.push(format!("point {i}: {name} is {found:?}, Stan's {expected}")),
                }
            }
        }
        Ok(problems)
    }
}

/// The element with a name of Stan's, `x.2.1`, `t.2:1.3` of a tuple, or `z.1.real` of complex numbers, in a lane.
pub(crate) fn element(results: &autobatch::Results, lane: usize, name: &str) -> Option<f64> {
    let part = [".real", ".imag"].into_iter().find(|part| name.ends_with(part)).unwrap_or_default();
    let name = &name[..name.len() - part.len()];
    let of_tuple = name.rfind(':').unwrap_or(0);
    let end = name[of_tuple..].find('.').map_or(name.len(), |dot| of_tuple + dot);
    let field = format!("{}{part}", &name[..end]).replace([':', '.'], "_");
    let mut parts = name[end..].split('.').skip(1);
    let array = results.output(&field).or_else(|| results.output(&format!("{field}_")))?;
    let mut at = lane;
    for extent in &array.shape[1..] {
        at = at * extent + parts.next()?.parse::<usize>().ok()? - 1;
    }
    array.as_real().map(|x| x[at]).or_else(|| array.as_int().map(|x| x[at] as f64))
}

#[test]
fn stan_values() {
    let only = std::env::var("FILE_ONLY").unwrap_or_default();
    let entries = std::fs::read_dir(FOLDER).expect("the folder").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "stan")).collect();
    paths.sort();
    let mut problems = Vec::new();
    for path in paths.into_iter().filter(|path| path.to_string_lossy().contains(&only)) {
        let case = Case::read(path);
        problems.extend(case.problems().into_iter().map(|problem| format!("{}: {problem}", case.path.display())));
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
