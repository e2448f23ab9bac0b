//! Models with their constraints in the signature: against Stan's values of the same models, against models that are
//! written by hand, and what is wrong with one.

use std::path::{Path, PathBuf};

use autobatch::base::{Diagnostic, SourceMap};
use autobatch::check::{FileLoader, check_program};
use autobatch::mcmc::log_prob::{Evaluated, LogProb};
use autobatch::mcmc::sampling::ModelSource;
use autobatch::program::io::NamedValues;
use autobatch::program::{Error, Function, Inputs, Program, Terms};
use autobatch::{Array, Engine, NoSink, Options};
use serde_json::{Value, json};

use super::stan_values::{distance, element, number, numbers};
use crate::project::cli::{Folder, error, output};

/// Models of the language whose twins in this folder have values from Stan.
const FOLDER: &str = "tests/filetests/models";
const TWINS: &str = "tests/filetests/stan/run";
/// How far values may be from Stan's, relative to the larger of 1 and Stan's.
const TOLERANCE: f64 = 1e-9;

/// A model of the folder with its data and what Stan computes.
struct Case {
    path: PathBuf,
    data: PathBuf,
    recorded: Vec<Value>,
    /// Matrices that are transposed here: Stan's unconstrained numbers go column after column.
    transposed: Vec<String>,
}

fn batch(points: &[Vec<f64>]) -> Array {
    Array::real([points.len(), points[0].len()], points.concat())
}

impl Case {
    fn read(path: PathBuf) -> Case {
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let transposed = text.lines().find_map(|line| line.strip_prefix("// transposed: ")).unwrap_or_default();
        let transposed = transposed.split(" (").next().expect("names").split_whitespace().map(str::to_owned).collect();
        let twin = Path::new(TWINS).join(path.file_name().expect("a file"));
        let recorded = std::fs::read_to_string(twin.with_extension("expected.json")).expect("values from Stan");
        let recorded: Value = serde_json::from_str(&recorded).expect("JSON");
        let recorded = recorded["points"].as_array().expect("a list").clone();
        Case { path, data: twin.with_extension("json"), recorded, transposed }
    }

    fn inputs(&self, function: &Function<'_>) -> Result<Inputs, Error> {
        let mut inputs = Inputs::new();
        inputs.add_values(function.signature(), &NamedValues::read(&self.data)?, |_| true)?;
        Ok(inputs)
    }

    fn points(&self) -> Vec<Vec<f64>> {
        self.recorded.iter().map(|point| numbers(&point["q"])).collect()
    }

    fn problems(&self) -> Result<Vec<String>, Error> {
        let density = LogProb::new(&ModelSource::from(&self.path), Terms::default(), |f| self.inputs(f))?;
        let mut problems = Vec::new();
        for engine in [Engine::Pc, Engine::Scalar] {
            let values = density.at(batch(&self.points()), &Options::default().engine(engine))?;
            for (i, (found, stan)) in values.iter().zip(&self.recorded).enumerate() {
                match (found, stan.get("error")) {
                    (Evaluated::Rejected(_), Some(_)) => {}
                    (Evaluated::Density { lp, gradient }, None) => {
                        let off = distance(&[*lp], &[number(&stan["lp"])]);
                        let slope = distance(gradient, &numbers(&stan["gradient"]));
                        if off.max(slope) > TOLERANCE {
                            problems.push(format!("point {i}, {engine:?}: lp off by {off:.1e}, gradient {slope:.1e}"));
                        }
                    }
                    (found, error) => problems.push(format!("point {i}, {engine:?}: {found:?}, Stan's {error:?}")),
                }
            }
        }
        problems.extend(self.outputs()?);
        Ok(problems)
    }

    /// Parameters and what is computed of them, and that `unconstrain` is the way back.
    fn outputs(&self) -> Result<Vec<String>, Error> {
        let program = Program::load(&self.path)?;
        let function = program.function("parameters")?;
        let inputs = self.inputs(&function)?.lane("q", batch(&self.points()));
        let options = Options::default();
        let results = function.bind(&inputs, &options)?.run(&options, &NoSink)?;
        let mut problems = Vec::new();
        let known = |i: &usize| self.recorded[*i].get("values").and_then(Value::as_object).is_some();
        let lanes: Vec<usize> = (0..self.recorded.len()).filter(known).collect();
        for i in &lanes {
            for (name, expected) in self.recorded[*i]["values"].as_object().expect("an object") {
                let expected = number(expected);
                match element(&results, *i, &self.here(name)) {
                    Some(found) if distance(&[found], &[expected]) <= TOLERANCE => {}
                    found => problems.push(format!("point {i}: {name} is {found:?}, Stan's {expected}")),
                }
            }
        }
        let unconstrain = program.function("unconstrain")?;
        let mut inputs = self.inputs(&unconstrain)?;
        for port in unconstrain.signature().ports.iter().filter(|port| !port.shared) {
            let all = results.output(&port.name).expect("a parameter is an output");
            let size = all.len() / self.recorded.len();
            let values = all.as_real().expect("parameters are reals");
            let rows = lanes.iter().flat_map(|i| values[i * size..(i + 1) * size].to_vec()).collect();
            let shape: Vec<usize> = std::iter::once(lanes.len()).chain(all.shape[1..].iter().copied()).collect();
            inputs = inputs.lane(&port.name, Array::real(shape, rows));
        }
        let again = unconstrain.bind(&inputs, &options)?.run(&options, &NoSink)?;
        problems.extend(again.traps().iter().map(|trap| format!("unconstrain: {}", trap.message)));
        let again = again.outputs().values().next().and_then(Array::as_real).expect("an array of reals").to_vec();
        let points: Vec<f64> = lanes.iter().flat_map(|i| self.points()[*i].clone()).collect();
        // Any vector in the direction of a unit vector gives it.
        let off = distance(&again, &points);
        if off > 1e-7 && !self.path.ends_with("simplexes.ab") {
            problems.push(format!("unconstrain is off by {off:.1e}"));
        }
        Ok(problems)
    }

    /// Stan's name of an element as it is here.
    fn here(&self, name: &str) -> String {
        let mut parts: Vec<&str> = name.split('.').collect();
        if self.transposed.iter().any(|transposed| transposed == parts[0]) {
            let n = parts.len();
            parts.swap(n - 2, n - 1);
        }
        parts.join(".")
    }
}

#[test]
fn models_of_every_constraint_have_the_values_of_stan() {
    let entries = std::fs::read_dir(FOLDER).expect("the folder").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "ab")).collect();
    paths.sort();
    assert!(paths.len() >= 5);
    let mut problems = Vec::new();
    for case in paths.into_iter().map(Case::read) {
        let found = case.problems().unwrap_or_else(|error| vec![error.to_string()]);
        problems.extend(found.into_iter().map(|problem| format!("{}: {problem}", case.path.display())));
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

fn check(text: &str) -> (Vec<Diagnostic>, SourceMap) {
    let mut sources = SourceMap::default();
    let main = sources.add("main.ab", text);
    let (_, diagnostics) = check_program(main, &mut sources, &mut FileLoader);
    (diagnostics, sources)
}

fn rendered(text: &str) -> String {
    let (diagnostics, sources) = check(text);
    format!("{text}\n\n{}", autobatch::report::render(&diagnostics, &sources, false))
}

#[test]
fn errors_of_models_as_the_user_sees_them() {
    let texts = [
        "model m[J](
    a: real<loewr = 0>,
    b: real<lower = 0, offset = 1>,
    c: real<simplex>,
    d: int,
    e: real<lower = f>,
    f: real<upper>,
    a: real,
    g: real[2, 3]<corr_matrix>,
    h: real<simplex = 3, row_stochastic_matrix>,
    k = 2.0 * l,
    l: real,
    n: real<>,
    shared y: real[J]<lower = 0>,
) {
    undefined + a
} generated {
    let a = 1.0;
    let z = b;
    z
}
",
        "model m(x: real, shared y: real) {
    normal_lpdf(y, x, 1.0);
}
",
        "model m[J](x: real[J], shared y: real[J]) {
    y - x
}
fn log_density(x: real) -> real { x }
struct Parameters { x: real }
model other(x: real) { x }
",
        "model m[J, K](
    x: real[J]<lower = bound, upper = 3>,
    s: real<lower = true>,
    z: real<upper = bound>,
    shared bound: real[K],
) {
    sum(x)
}
",
        "model m[J, K](x: real[J]) {
    sum(x)
}
",
        "model m(shared y: real) { y }\n",
        "model log_density(x: real) { -x * x }\n",
    ];
    let all: Vec<String> = texts.iter().map(|text| rendered(text)).collect();
    insta::assert_snapshot!(all.join("\n----\n\n"));
}

#[test]
fn syntax_errors_of_models_as_the_user_sees_them() {
    let texts = [
        "model m(x: real<lower = 0>[3]) { x }\n",
        "model (x: real) { x }\n",
        "model m(x) { x }\n",
        "model m(x: real<lower 0>) { x }\n",
        "model m(x: real) { x } generated let y = 1;\n",
        "model m(x: real)\n",
    ];
    let all: Vec<String> = texts.iter().map(|text| rendered(text)).collect();
    insta::assert_snapshot!(all.join("\n----\n\n"));
}

#[test]
fn words_of_models_are_names_elsewhere() {
    let text = "/// Nothing.
pub fn generated(model: real, lower: real) -> real {
    let simplex = model;
    if simplex < lower { model } else { lower }
}
";
    let (diagnostics, _) = check(text);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
}

const SMALL: &str = "/// A scale and a vector in order.
model small[N](
    scale: real<lower = floor>,
    x: real[3]<ordered>,
    p: real[2]<simplex>,
    total = sum(x) * scale,
    q: real<upper = total>,
    shared y: real[N],
    shared floor: real,
) {
    if scale > 50.0 {
        return negative_infinity();
    }
    normal_lpdf(y, total, scale) + normal_lpdf(x, 0, 1) + normal_lpdf(q, 0, 1) + log(p[0])
} generated {
    let noise = normal_rng(0, 1);
    let (low, _high) = (x[0], x[2]);
}
";

#[test]
fn a_model_does_all_that_a_program_of_stan_does() {
    let folder = Folder::new("declared-model");
    let model = folder.file("small.ab", SMALL);
    let data = folder.file("data.json", json!({"y": [0.5, 1.5], "floor": 0.25}).to_string());
    let said = |output: std::process::Output| {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let lps = |more: &[&str]| -> Vec<f64> {
        let points = "[[0.5,0.1,0.2,0.3,0.4,0.5],[9,0,0,0,0,0]]";
        let arguments = ["log-prob", &model, "--data", &data, "--points", points, "--format", "json"];
        let printed: Value = serde_json::from_str(&said(output(&[&arguments[..], more].concat()))).expect("JSON");
        printed.as_array().expect("a list").iter().map(|value| number(&value["lp"])).collect()
    };
    let (with, without) = (lps(&[]), lps(&["--no-jacobian"]));
    // The logarithms of the derivatives by hand: exp, two of ordered, a simplex of two, exp.
    let simplex = {
        let z = 0.4 / f64::sqrt(2.0);
        0.5 * f64::ln(2.0) - 2.0 * f64::ln(f64::exp(z) + f64::exp(-z))
    };
    let jacobian = 0.5 + (0.2 + 0.3) + simplex + 0.5;
    assert!((with[0] - without[0] - jacobian).abs() < 1e-12, "{with:?} {without:?} {jacobian}");
    assert!(with[1] == f64::NEG_INFINITY && without[1] == f64::NEG_INFINITY, "a body may return: {with:?}");
    let draws = folder.0.join("draws.npz").display().to_string();
    let start = folder.file("start.json", r#"{"scale": 1.25, "x": [-1, 0.5, 0.75], "p": [0.25, 0.75], "q": -2.0}"#);
    let base = ["--data", &data, "--seed", "3"];
    let run = |more: &[&str]| said(output(&[more, &base].concat()));
    let told = run(&["sample", &model, "--chains", "4", "--warmup", "200", "--draws", "100", "--output", &draws]);
    for name in ["scale", "x[2]", "p[1]", "q", "total", "noise", "low"] {
        assert!(told.contains(name), "{name}: {told}");
    }
    assert!(!told.contains("_high"), "{told}");
    run(&["sample", &model, "--chains", "2", "--warmup", "50", "--draws", "5", "--init", &start]);
    let quantities = folder.0.join("quantities.npz").display().to_string();
    run(&["generate-quantities", &model, "--draws", &draws, "--output", &quantities]);
    let made = autobatch::program::io::read_npz(Path::new(&quantities)).expect("quantities were written");
    assert_eq!(made.keys().collect::<Vec<_>>(), ["total", "noise", "low"]);
    let drawn = autobatch::program::io::read_npz(Path::new(&draws)).expect("draws were written");
    assert_eq!(made["total"], drawn["total"]);
    assert_ne!(made["noise"], drawn["noise"], "with a stream of their own");
    for command in ["laplace", "pathfinder"] {
        run(&[command, &model]);
    }
    let wrong = folder.file("wrong.json", r#"{"scale": 0.125, "x": [-1, 0.5, 0.75], "p": [0.25, 0.75], "q": -2.0}"#);
    let refused = error(&[&["sample", &model, "--init", &wrong][..], &base].concat());
    assert!(refused.contains("`scale` is not <lower = floor>"), "{refused}");
}

/// Two dimensions of parameters alone, one of the body alone.
const RADON: &str = "model radon[N, J, K, M](
    alpha: real[J],
    beta: real[J, K],
    sigma: real<lower = 0>,
    shared idx: int[N],
    shared y: real[N],
) {
    normal_lpdf(y, [alpha[idx[n] - 1] for n in 0..N], sigma) + normal_lpdf(alpha, 0, 1) + exponential_lpdf(sigma, 1)
        + sum(normal_lpdf(beta[j], M, 1) for j in 0..J)
}
";

#[test]
fn ints_of_the_data_tell_dimensions() {
    let folder = Folder::new("told-dimensions");
    let model = folder.file("radon.ab", RADON);
    let data = |more: Value| {
        let mut all = json!({"idx": [1, 2, 3, 3], "y": [1, 2, 3, 4]});
        let object = all.as_object_mut().expect("an object");
        object.extend(more.as_object().expect("an object").clone());
        folder.file("data.json", all.to_string())
    };
    let whole = data(json!({"N": 4, "J": 3, "K": 2, "M": 5}));
    let draws = folder.0.join("draws.npz").display().to_string();
    let short = ["--chains", "2", "--warmup", "20", "--draws", "3", "--data", &whole];
    let run = |more: &[&str]| {
        let made = output(&[more, &short[6..]].concat());
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        String::from_utf8(made.stdout).expect("text")
    };
    run(&[&["sample", &model, "--output", &draws][..], &short[..6]].concat());
    let drawn = autobatch::program::io::read_npz(Path::new(&draws)).expect("draws were written");
    assert_eq!(drawn["beta"].shape[..], [2, 3, 3, 2]);
    // At 0: four residuals of scale 1 (30 / 2), eleven more normal terms, those of beta about 5, and exponential(1) at 1.
    let printed = run(&["log-prob", &model, "--points", "[[0,0,0,0,0,0,0,0,0,0]]"]);
    let expected = -15.0 - 6.0 * 12.5 - 13.0 * 0.5 * f64::ln(2.0 * std::f64::consts::PI) - 1.0;
    let lp: f64 = printed.split([' ', ',']).nth(2).and_then(|lp| lp.parse().ok()).expect("a number");
    assert!((lp - expected).abs() < 1e-12, "{printed}: {expected}");
    run(&["optimize", &model]);
    let start = folder
        .file("start.json", json!({"alpha": [0, 1, 2], "beta": [[0, 0], [0, 0], [0, 0]], "sigma": 1}).to_string());
    run(&["sample", &model, "--chains", "2", "--warmup", "20", "--draws", "3", "--init", &start]);
    let lacking = data(json!({"K": 2, "M": 5}));
    let said = error(&["sample", &model, "--data", &lacking]);
    assert!(said.contains("the model needs `J: int` in its data"), "{said}");
    let wrong = data(json!({"N": 5, "J": 3, "K": 2, "M": 5}));
    let said = error(&["sample", &model, "--data", &wrong]);
    assert!(said.contains("`N` is 5") && said.contains("`idx` has 4 entries"), "{said}");
}

#[test]
fn a_dimension_that_is_data_as_well_is_one_error() {
    let folder = Folder::new("dimension-and-data");
    let text = "model m[K](a: real[K], shared K: int) { sum(a[0..K]) }\n";
    let said = error(&["check", &folder.file("m.ab", text)]);
    assert!(said.contains("E0115") && said.contains("leave the parameter out") && !said.contains("E0213"), "{said}");
}

#[test]
fn a_start_may_leave_parameters_out() {
    let folder = Folder::new("declared-part");
    let model = folder.file("small.ab", SMALL);
    let data = folder.file("data.json", json!({"y": [0.5, 1.5], "floor": 0.25}).to_string());
    let file = folder.0.join("draws.npz").display().to_string();
    // Draws without moves are the starts. `q` is below `total`, which is computed of what is given.
    let still = ["--algorithm", "fixed_param", "--chains", "3", "--draws", "1", "--data", &data, "--output", &file];
    let start = folder.file("start.json", r#"{"scale": 1.25, "x": [-1, 0.5, 0.75]}"#);
    let made = output(&[&["sample", &model, "--init", &start][..], &still].concat());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let drawn = autobatch::program::io::read_npz(Path::new(&file)).expect("draws were written");
    let near = |found: &[f64], wanted: &[f64]| found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12);
    let reals = |name: &str| drawn[name].as_real().expect("reals").to_vec();
    assert!(near(&reals("scale"), &[1.25; 3]), "{:?}", reals("scale"));
    assert!(near(&reals("x"), &[-1.0, 0.5, 0.75].repeat(3)), "{:?}", reals("x"));
    let q = reals("q");
    assert!(q[0] != q[1] && q.iter().all(|q| *q < 0.25 * 1.25), "{q:?}");
    for (text, words) in [
        (r#"{"p": [0.25, 0.5]}"#, "`p` is not <simplex>"),
        (r#"{"scale": 0.25}"#, "`scale` lies on the border of its constraint"),
        (r#"{"x": ["NaN", 0, 1]}"#, "`x`"),
        (r#"{"scal": 1}"#, "`scal`, which is no parameter"),
    ] {
        let wrong = folder.file("wrong.json", text);
        let said = error(&[&["sample", &model, "--init", &wrong][..], &still].concat());
        assert!(said.contains(words), "{text}: {said}");
    }
}

#[test]
fn draws_in_files_are_starts_and_what_is_computed_may_be_nothing() {
    let folder = Folder::new("declared-draws");
    let base = ["nuts/models/eight_schools.ab", "--data", "nuts/data/eight_schools.json", "--chains", "1"];
    let short = ["--warmup", "20", "--draws", "3"];
    for name in ["draws.csv", "draws.npz", "draws.json"] {
        let file = folder.0.join(name).display().to_string();
        let made = output(&[&["sample", "--output", &file][..], &base, &short].concat());
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let again = output(&[&["sample", "--init", &file][..], &base, &short].concat());
        assert!(again.status.success(), "{name}: {}", String::from_utf8_lossy(&again.stderr));
    }
    let model = folder.file("alone.ab", "model alone(mu: real) { normal_lpdf(mu, 0, 1) }\n");
    let draws = folder.0.join("draws.npz").display().to_string();
    let chains = ["--chains", "2", "--warmup", "20", "--draws", "3"];
    assert!(output(&[&["sample", &model, "--output", &draws][..], &chains].concat()).status.success());
    let said = error(&["generate-quantities", &model, "--draws", &draws]);
    assert!(said.contains("computes nothing of its parameters"), "{said}");
}

#[test]
fn optimize_leaves_the_jacobian_out_unless_it_is_asked_for() {
    let folder = Folder::new("declared-mode");
    let text = "/// A normal distribution.
model normal[n](mu: real, sigma: real<lower = 0>, shared y: real[n]) {
    normal_lpdf(y, mu, sigma)
}
";
    let model = folder.file("normal.ab", text);
    let y = [1.5, -0.25, 3.0, 2.5, 0.75];
    let data = folder.file("data.json", json!({ "y": y }).to_string());
    let mean = y.iter().sum::<f64>() / 5.0;
    let squares: f64 = y.iter().map(|y| (y - mean) * (y - mean)).sum();
    for (jacobian, divisor) in [("0", 5.0), ("1", 4.0)] {
        let file = folder.0.join("mode.npz").display().to_string();
        let run = ["optimize", &model, "--data", &data, "--jacobian", jacobian, "--output", &file];
        assert!(output(&run).status.success());
        let found = autobatch::program::io::read_npz(Path::new(&file)).expect("a mode was written");
        let sigma = found["sigma"].as_real().expect("reals")[0];
        assert!((sigma - f64::sqrt(squares / divisor)).abs() < 1e-4, "{sigma}");
    }
}
