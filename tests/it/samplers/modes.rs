//! Modes and what is made of them: `optimize`, `laplace`, `pathfinder`.

use autobatch::mcmc::laplace::laplace;
use autobatch::mcmc::optimize::{Algorithm, Optimization, StopReason};
use autobatch::mcmc::pathfinder::Pathfinder;
use autobatch::mcmc::sampling::ModelSource;
use autobatch::program::{Engine, Error, Function, StanModel, Terms};
use autobatch::{Inputs, Options, types::Array};
use serde_json::{Map, Value, json};

use crate::project::cli::{Folder, error, output};

const ALGORITHMS: [Algorithm; 3] = [Algorithm::Lbfgs, Algorithm::Bfgs, Algorithm::Newton];

fn stan(name: &str, text: &str, data: Value, terms: Terms) -> StanModel {
    let folder = Folder::new(name);
    let path = folder.file("model.stan", text);
    let data = if let Value::Object(data) = data { data } else { Map::new() };
    StanModel::load(std::path::Path::new(&path), &data, terms).expect("it is right")
}

fn inputs(model: &StanModel) -> impl Fn(&Function<'_>) -> Result<Inputs, Error> {
    |function| Ok(model.inputs().restricted_to(function.signature()))
}

const NORMAL: &str = "data { int n; vector[n] y; }
parameters { real mu; real<lower=0> sigma; }
model { y ~ normal(mu, sigma); }
generated quantities { real twice = 2 * mu; }
";
const Y: [f64; 5] = [1.5, -0.25, 3.0, 2.5, 0.75];

/// The maximum of a normal likelihood divides the sum of squares by n; with the Jacobian of the logarithm by n - 1.
#[test]
fn a_normal_likelihood_has_its_mode_where_the_formula_says() {
    let mean = Y.iter().sum::<f64>() / 5.0;
    let squares: f64 = Y.iter().map(|y| (y - mean) * (y - mean)).sum();
    for (jacobian, divisor) in [(false, 5.0), (true, 4.0)] {
        let terms = Terms { constants: false, jacobian };
        let model = stan("mode-normal", NORMAL, json!({"n": 5, "y": Y}), terms);
        for algorithm in ALGORITHMS {
            let job = Optimization { algorithm, starts: 6, ..Optimization::default() };
            let optima = job.run(&ModelSource::Stan(&model), &inputs(&model), &Options::default()).unwrap();
            assert_eq!(optima.all.len(), 6);
            let wanted = [mean, f64::sqrt(squares / divisor)];
            let sigma = wanted[1];
            let lp = -5.0 * sigma.ln() - 0.5 * squares / (sigma * sigma) + if jacobian { sigma.ln() } else { 0.0 };
            for (at, optimum) in optima.all.iter().enumerate() {
                assert!(optimum.stopped.converged(), "{algorithm:?}: {}", optimum.stopped);
                assert!((optimum.lp - lp).abs() < 1e-8, "{algorithm:?}: {} {lp}", optimum.lp);
                for (name, wanted) in ["mu", "sigma"].iter().zip(wanted) {
                    let found = optima.parameters[*name].as_real().unwrap()[at];
                    assert!((found - wanted).abs() < 1e-4, "{algorithm:?}: {name} {found} {wanted}");
                }
                let twice = optima.parameters["twice"].as_real().unwrap()[at];
                assert_eq!(twice, 2.0 * optima.parameters["mu"].as_real().unwrap()[at]);
            }
        }
    }
}

/// The mode of a logistic regression with standard normal priors, by Newton's method in the test.
fn logistic_mode(x: &[[f64; 2]], y: &[i32]) -> [f64; 2] {
    let mut w = [0.0, 0.0];
    for _ in 0..50 {
        let (mut g, mut h) = ([-w[0], -w[1]], [[-1.0, 0.0], [0.0, -1.0]]);
        for (row, y) in x.iter().zip(y) {
            let p = 1.0 / (1.0 + f64::exp(-(row[0] * w[0] + row[1] * w[1])));
            for i in 0..2 {
                g[i] += (f64::from(*y) - p) * row[i];
                for j in 0..2 {
                    h[i][j] -= p * (1.0 - p) * row[i] * row[j];
                }
            }
        }
        let det = h[0][0] * h[1][1] - h[0][1] * h[1][0];
        w[0] -= (h[1][1] * g[0] - h[0][1] * g[1]) / det;
        w[1] -= (h[0][0] * g[1] - h[1][0] * g[0]) / det;
    }
    w
}

#[test]
fn a_logistic_regression_has_the_mode_that_newtons_method_finds() {
    let x = [[1.0, 0.3], [1.0, -1.2], [1.0, 2.0], [1.0, 0.1], [1.0, -0.4], [1.0, 1.4]];
    let y = [1, 0, 1, 0, 1, 1];
    let wanted = logistic_mode(&x, &y);
    let text = "pub fn log_density[n, d](w: real[d], shared x: real[n, d], shared y: int[n]) -> real {\n    \
                normal_lpdf(w, 0.0, 1.0) + sum(bernoulli_logit_lpmf(y[i], dot(x[i], w)) for i in 0..n)\n}\n";
    let data = |_: &Function<'_>| {
        let x = Array::real([6, 2], x.concat());
        let y = Array::int([6], y.iter().map(|y| i64::from(*y)).collect());
        Ok(Inputs::new().shared("x", x).shared("y", y))
    };
    for algorithm in ALGORITHMS {
        let job = Optimization { algorithm, starts: 3, ..Optimization::default() };
        let run = |engine| job.run(&ModelSource::Text(text), &data, &Options::default().engine(engine)).unwrap();
        let optima = run(Engine::Pc);
        for optimum in &optima.all {
            let close = optimum.q.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-4);
            assert!(close && optimum.stopped.converged(), "{algorithm:?}: {:?} {wanted:?}", optimum.q);
        }
        assert_eq!(optima.all, run(Engine::Scalar).all, "{algorithm:?}: the same bits");
    }
}

#[test]
fn starts_stop_at_the_modes_that_there_are_and_tell_why() {
    // Modes near -3, and near 2 where the density is larger.
    let text = "pub fn log_density(q: real[1]) -> real {\n    \
                log_sum_exp(normal_lpdf(q[0], -3.0, 0.5), log(3.0) + normal_lpdf(q[0], 2.0, 0.5))\n}\n";
    let data = |_: &Function<'_>| Ok(Inputs::new());
    let points = Array::real([4, 1], vec![-4.0, -2.5, 1.0, 3.0]);
    let job = Optimization { starts: 4, points: Some(points), ..Optimization::default() };
    let optima = job.run(&ModelSource::Text(text), &data, &Options::default()).unwrap();
    let mut found: Vec<(usize, f64)> = optima.all.iter().map(|o| (o.start, o.q[0])).collect();
    assert!(found[2..].iter().all(|(start, q)| *start >= 2 && (q - 2.0).abs() < 1e-3), "{found:?}");
    found.truncate(2);
    assert!(found.iter().all(|(start, q)| *start < 2 && (q + 3.0).abs() < 1e-3), "{found:?}");
    // No maximum: the density grows without end.
    let text = "pub fn log_density(q: real[1]) -> real { q[0] }";
    let settings = autobatch::mcmc::sampling::SamplerSettings::new().with("iter", 5);
    let job = Optimization { settings, ..Optimization::default() };
    let optima = job.run(&ModelSource::Text(text), &data, &Options::default()).unwrap();
    assert!(!optima.all[0].stopped.converged(), "{}", optima.all[0].stopped);
    // Nowhere finite.
    let text = "pub fn log_density(q: real[1]) -> real { negative_infinity() + q[0] }";
    let optima = Optimization::default().run(&ModelSource::Text(text), &data, &Options::default()).unwrap();
    assert!(optima.all.is_empty() && optima.traps.len() == 1);
    assert_eq!(StopReason(40).to_string(), "Maximum number of iterations hit, may not be at an optima");
}

/// A normal distribution with this precision and the mean (1, -2, 0.5).
const GAUSSIAN: &str = "pub fn log_density(q: real[3]) -> real {\n    \
    let p = [[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 2.0]];\n    \
    let x = q - [1.0, -2.0, 0.5];\n    -0.5 * dot(x, p @ x)\n}\n";
const PRECISION: [[f64; 3]; 3] = [[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 2.0]];

fn moments(q: &Array, d: usize) -> (Vec<f64>, Vec<f64>) {
    let rows: Vec<&[f64]> = q.as_real().unwrap().chunks(d).collect();
    let n = rows.len() as f64;
    let mean: Vec<f64> = (0..d).map(|i| rows.iter().map(|row| row[i]).sum::<f64>() / n).collect();
    let product = |i: usize, j: usize| rows.iter().map(|row| (row[i] - mean[i]) * (row[j] - mean[j])).sum::<f64>() / n;
    let covariance = (0..d * d).map(|at| product(at / d, at % d)).collect();
    (mean, covariance)
}

#[test]
fn the_laplace_approximation_of_a_normal_distribution_is_that_distribution() {
    let data = |_: &Function<'_>| Ok(Inputs::new());
    let mode = [1.0, -2.0, 0.5];
    let source = ModelSource::Text(GAUSSIAN);
    let draws = laplace(&source, Terms::default(), &mode, 4000, &data, &Options::default()).unwrap();
    for (i, row) in PRECISION.iter().enumerate() {
        for j in 0..3 {
            let product: f64 = row.iter().enumerate().map(|(k, p)| p * draws.covariance[k * 3 + j]).sum();
            assert!((product - f64::from(u8::from(i == j))).abs() < 1e-9, "{product}");
        }
    }
    assert!(draws.lp_mode == 0.0 && draws.mode_off < 1e-12);
    let (log_p, log_q) = (draws.statistics["log_p"].as_real().unwrap(), draws.statistics["log_q"].as_real().unwrap());
    assert!(log_p.iter().zip(log_q).all(|(p, q)| (p - q).abs() < 1e-8 * (1.0 + p.abs())));
    let (mean, covariance) = moments(&draws.q, 3);
    // Within four standard errors.
    for i in 0..3 {
        assert!((mean[i] - mode[i]).abs() < 4.0 * f64::sqrt(draws.covariance[4 * i] / 4000.0), "{mean:?}");
        let relative = covariance[4 * i] / draws.covariance[4 * i] - 1.0;
        assert!(relative.abs() < 4.0 * f64::sqrt(2.0 / 4000.0), "{covariance:?} {:?}", draws.covariance);
    }
    let saddle = ModelSource::Text("pub fn log_density(q: real[2]) -> real { q[0] * q[0] - q[1] * q[1] }");
    let said = laplace(&saddle, Terms::default(), &[0.0, 0.0], 10, &data, &Options::default()).unwrap_err();
    assert!(said.to_string().contains("not concave at this point"), "{said}");
}

#[test]
fn pathfinder_finds_a_normal_distribution() {
    let data = |_: &Function<'_>| Ok(Inputs::new());
    let job = Pathfinder { num_draws: 500, num_psis_draws: 2000, ..Pathfinder::default() };
    let draws = job.run(&ModelSource::Text(GAUSSIAN), &data, &Options::default()).unwrap();
    assert!(draws.paths.len() == 4 && draws.paths.iter().all(|path| path.stopped.converged()));
    // The largest evidence lower bound is the logarithm of the integral, sqrt((2 pi)^3 / det P), where det P = 16.25.
    let evidence = 1.5 * (2.0 * std::f64::consts::PI).ln() - 0.5 * f64::ln(16.25);
    let best = draws.paths.iter().map(|path| path.elbo).fold(f64::NEG_INFINITY, f64::max);
    assert!((best - evidence).abs() < 0.1, "{best} {evidence}");
    assert!(draws.pareto_k.is_none_or(|k| k < 0.7), "{:?}", draws.pareto_k);
    assert_eq!(draws.q.shape[..], [1, 2000, 3]);
    let (mean, covariance) = moments(&draws.q, 3);
    for (mean, wanted) in mean.iter().zip([1.0, -2.0, 0.5]) {
        assert!((mean - wanted).abs() < 0.1, "{mean} {wanted}");
    }
    for (i, row) in PRECISION.iter().enumerate() {
        for j in 0..3 {
            let product: f64 = row.iter().enumerate().map(|(k, p)| p * covariance[k * 3 + j]).sum();
            assert!((product - f64::from(u8::from(i == j))).abs() < 0.25, "{i} {j}: {product}");
        }
    }
    let again = job.run(&ModelSource::Text(GAUSSIAN), &data, &Options::default().engine(Engine::Scalar)).unwrap();
    assert_eq!(again.q, draws.q, "the same bits");
    // More dimensions than twice the history: factors of rank one all the same.
    let text = "pub fn log_density(q: real[20]) -> real { -0.5 * sum((i + 1.0) * q[i] * q[i] for i in 0..20) }";
    let job = Pathfinder { num_draws: 250, num_psis_draws: 1000, ..Pathfinder::default() };
    let draws = job.run(&ModelSource::Text(text), &data, &Options::default()).unwrap();
    let evidence = 10.0 * (2.0 * std::f64::consts::PI).ln() - 0.5 * (1..=20).map(|i| f64::from(i).ln()).sum::<f64>();
    assert!(draws.paths.iter().all(|path| path.elbo < evidence + 1.0), "{:?} {evidence}", draws.paths);
    let best = draws.paths.iter().map(|path| path.elbo).fold(f64::NEG_INFINITY, f64::max);
    assert!(best > evidence - 6.0, "{best} {evidence}");
}

#[test]
fn one_commands_file_is_the_next_ones_start() {
    let folder = Folder::new("modes");
    let model = folder.file("normal.stan", NORMAL);
    let data = folder.file("data.json", json!({"n": 5, "y": Y}).to_string());
    let path = |name: &str| folder.0.join(name).display().to_string();
    let run = |arguments: &[&str]| {
        let output = output(&[&[arguments[0], &model, "--data", &data], &arguments[1..]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    let (mode, paths, draws) = (path("mode.csv"), path("paths.csv"), path("draws.csv"));
    let told = run(&["optimize", "jacobian=1", "--starts", "5", "--output", &mode, "--sig-figs", "17"]);
    assert!(told.contains("5 starts: 5 converged, 5 of them to the best log density"), "{told}");
    let csv = std::fs::read_to_string(&mode).unwrap();
    assert!(csv.contains("# method = optimize\n") && csv.contains("\nlp__,converged__,mu,sigma,twice\n"), "{csv}");
    assert_eq!(csv.lines().filter(|line| !line.starts_with('#')).count(), 6);
    let told = run(&["laplace", "--mode", &mode, "--output", &draws, "--draws", "200"]);
    assert!(told.contains("200 draws from the normal approximation"), "{told}");
    let csv = std::fs::read_to_string(&draws).unwrap();
    assert!(csv.contains("\nlog_p__,log_q__,mu,sigma,twice\n"), "{csv}");
    run(&["laplace", "--draws", "10"]);
    let told = run(&["pathfinder", "num_paths=3", "num_draws=50", "--output", &paths, "--sig-figs", "17"]);
    assert!(told.contains("ELBO") && told.contains("1000 draws"), "{told}");
    let csv = std::fs::read_to_string(&paths).unwrap();
    assert!(csv.contains("\nlp_approx__,lp__,path__,mu,sigma,twice\n"), "{csv}");
    run(&["sample", "--init", &paths, "--chains", "2", "--warmup", "20", "--draws", "5"]);
    assert!(run(&["generate-quantities", "--draws", &paths]).contains("twice"));
    // A model of the language that names no parameters: the columns are those of the state.
    let gaussian = folder.file("gaussian.ab", GAUSSIAN);
    let found = path("q.csv");
    assert!(output(&["optimize", &gaussian, "--output", &found, "--sig-figs", "17"]).status.success());
    assert!(output(&["laplace", &gaussian, "--mode", &found, "--draws", "5"]).status.success());
    let started = ["sample", &gaussian, "--init", &found, "--chains", "2", "--warmup", "20", "--draws", "5"];
    assert!(output(&started).status.success());
    let wrong = folder.file("wrong.json", "{\"mu\": 100, \"sigma\": 0.01}");
    let said = error(&["laplace", &model, "--data", &data, "--mode", &wrong]);
    assert!(said.contains("not concave at this point"), "{said}");
    let said = error(&["optimize", &model, "--data", &data, "tol_obj=-1"]);
    assert!(said.contains("tol_obj must be a number from 0 on, not -1"), "{said}");
}

#[test]
fn files_of_arrays_are_modes_and_starts_as_those_of_stan_csv_are() {
    let folder = Folder::new("modes-arrays");
    let (normal, gaussian) = (folder.file("normal.stan", NORMAL), folder.file("gaussian.ab", GAUSSIAN));
    let data = folder.file("data.json", json!({"n": 5, "y": Y}).to_string());
    let path = |name: &str| folder.0.join(name).display().to_string();
    let run = |arguments: &[&str]| {
        let output = output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let told = ["csv", "npz", "json"].map(|ending| {
        let (mode, paths, draws) = (path(&format!("mode.{ending}")), path(&format!("paths.{ending}")), path("d.json"));
        let digits: &[&str] = if ending == "csv" { &["--sig-figs", "17"] } else { &[] };
        let sampled = ["--chains", "3", "--warmup", "20", "--draws", "5", "--output", &draws];
        let mut told = vec![];
        for model in [&[&*normal, "--data", &data][..], &[&*gaussian]] {
            let with = |command, arguments: &[&str]| run(&[&[command], model, arguments].concat());
            with("optimize", &[&["--starts", "3", "--jacobian", "--output", &mode][..], digits].concat());
            told.push(with("laplace", &["--mode", &mode, "--draws", "20"]));
            told.push(with("optimize", &["--init", &mode]));
            with("pathfinder", &[&["--num-draws", "50", "--output", &paths][..], digits].concat());
            with("sample", &[&["--init", &paths][..], &sampled].concat());
            told.push(std::fs::read_to_string(&draws).unwrap());
        }
        told
    });
    assert_eq!(told[0], told[1]);
    assert_eq!(told[1], told[2]);
}

/// Where the gradient jumps there is no step that is good enough: the search ends all the same, for every start.
#[test]
fn a_search_ends_where_the_gradient_jumps() {
    let text = "data { real c; } parameters { real x; } model { x ~ double_exponential(c, 1); }";
    for c in [0.877, 0.61] {
        let model = stan("mode-kink", text, json!({"c": c}), Terms::default());
        for algorithm in [Algorithm::Lbfgs, Algorithm::Bfgs] {
            let job = Optimization { algorithm, starts: 100, ..Optimization::default() };
            let optima = job.run(&ModelSource::Stan(&model), &inputs(&model), &Options::default()).unwrap();
            assert_eq!(optima.all.len(), 100);
            let x = optima.parameters["x"].as_real().unwrap();
            assert!(x.iter().all(|x| x.is_finite()), "{x:?}");
        }
    }
}

/// At a border of the density no part of Newton's step rises, which is no convergence.
#[test]
fn newtons_method_tells_where_no_step_rises() {
    let folder = Folder::new("mode-border");
    let text = "parameters { real x; real y; } model { x ~ uniform(0, 1); target += 5*x - y^2; }";
    let (model, init) = (folder.file("m.stan", text), folder.file("i.json", r#"{"x": 0.9995, "y": 1}"#));
    let run = output(&["optimize", &model, "--init", &init, "--algorithm", "newton"]);
    let table = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.code() == Some(1) && table.contains("no more progress can be made"), "{table}");
}

#[test]
fn one_path_is_given_as_it_is_and_several_by_their_own_draws() {
    let model = stan("path-one", NORMAL, json!({"n": 5, "y": Y}), Terms { constants: true, jacobian: true });
    let run = |job: &Pathfinder| job.run(&ModelSource::Stan(&model), &inputs(&model), &Options::default());
    let one = run(&Pathfinder { num_paths: 1, num_draws: 30, ..Pathfinder::default() }).unwrap();
    assert_eq!(one.q.shape[1], 30);
    let none = run(&Pathfinder { num_psis_draws: 0, ..Pathfinder::default() }).unwrap_err();
    assert!(none.to_string().contains("num_psis_draws must be a number from 1 on"), "{none}");
    let folder = Folder::new("path-ids");
    let (model, data) = (folder.file("m.stan", NORMAL), folder.file("d.json", json!({"n": 5, "y": Y}).to_string()));
    let paths = |id: &str| {
        let file = folder.0.join(format!("{id}.csv")).display().to_string();
        assert!(output(&["pathfinder", &model, "--data", &data, "--id", id, "--output", &file]).status.success());
        let text = std::fs::read_to_string(&file).unwrap();
        let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1);
        rows.map(|row| row.split(',').nth(2).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(paths("1").len() == 1000 && paths("1") != paths("2") && paths("1") == paths("1"));
}

#[test]
fn nothing_that_is_read_is_written_over() {
    let folder = Folder::new("mode-spares");
    let (model, data) = (folder.file("m.stan", NORMAL), folder.file("y.csv", "no data"));
    let draws = folder.0.join("s.csv").display().to_string();
    let text = json!({"n": 5, "y": Y}).to_string();
    let json = folder.file("y.json", &text);
    let drawn =
        ["sample", &model, "--data", &json, "--draws", "4", "--warmup", "10", "--chains", "2", "--output", &draws];
    assert!(output(&[&drawn[..], &["--format", "stan-csv"]].concat()).status.success());
    let [one, two] = ["s_1.csv", "s_2.csv"].map(|name| folder.0.join(name).display().to_string());
    let before = std::fs::read_to_string(&one).unwrap();
    let quantities = ["generate-quantities", &model, "--data", &json, "--draws", &one, &two, "--output", &draws];
    assert!(error(&quantities).contains("s_1.csv is read, and would be written over: say another --output"));
    assert_eq!(std::fs::read_to_string(&one).unwrap(), before);
    assert!(error(&["optimize", &model, "--data", &data, "--output", &data]).contains("y.csv is read"));
    let quantities = ["optimize", &model, "--data", &json, "--output", &json];
    assert!(error(&quantities).contains("y.json is read"));
    assert_eq!(std::fs::read_to_string(&json).unwrap(), text);
    // Starts, of one file or of each chain its own, are read, too, and so is what --shared names.
    let search = ["--data", &json, "--output", &draws];
    let init = folder.0.join("s.csv").display().to_string();
    std::fs::copy(&one, &init).unwrap();
    for command in ["optimize", "pathfinder", "laplace", "sample"] {
        let all = [&[command, &model][..], &search, &["--init", &init]].concat();
        assert!(error(&all).contains("s.csv is read, and would be written over"), "{command}");
    }
    let shared = format!("y=@{one}");
    let all = ["optimize", &model, "--data", &json, "--shared", &shared, "--output", &one];
    assert!(error(&all).contains("s_1.csv is read"));
    std::fs::remove_file(&init).unwrap();
    let sample = ["sample", &model, "--data", &json, "--chains", "2", "--format", "stan-csv", "--output", &draws];
    assert!(error(&[&sample[..], &["--init", &init]].concat()).contains("s_1.csv is read"));
    assert!(error(&[&sample[..], &["--metric-file", &two]].concat()).contains("s_2.csv is read"));
    assert!(error(&["sample", &model, "--data", &json, "--output", &json]).contains("y.json"));
    assert_eq!(std::fs::read_to_string(&one).unwrap(), before);
    assert_eq!(std::fs::read_to_string(&json).unwrap(), text);
}
