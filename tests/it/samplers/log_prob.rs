//! `autobatch log-prob`: values and gradients at points, and points that are rejected.

use autobatch::mcmc::log_prob::Evaluated;
use autobatch::program::{Codegen, Engine, Terms, c_compiler};
use autobatch::{Array, Options, Precision, Sampler};
use serde_json::Value;

use crate::project::cli::{Folder, error, output};

const EIGHT_SCHOOLS: [&str; 4] = ["log-prob", "nuts/models/eight_schools.ab", "--data", "nuts/data/eight_schools.json"];

/// The posterior of nuts/models/eight_schools.ab by hand at `theta_trans = t` for every school, `mu` and `log_tau`.
fn by_hand(t: f64, mu: f64, log_tau: f64) -> (f64, Vec<f64>) {
    let y = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0];
    let sigma = [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0];
    let tau = f64::exp(log_tau);
    let scaled: Vec<f64> = y.iter().zip(sigma).map(|(y, s)| (y - (mu + tau * t)) / s).collect();
    let squares: f64 = scaled.iter().map(|r| r * r).sum();
    let prior = -0.5 * 8.0 * t * t - mu * mu / 50.0 - f64::ln_1p(tau * tau / 25.0) + log_tau;
    let slope: Vec<f64> = scaled.iter().zip(sigma).map(|(r, s)| r / s).collect();
    let all: f64 = slope.iter().sum();
    let mut gradient: Vec<f64> = slope.iter().map(|s| tau * s - t).collect();
    gradient.extend([all - mu / 25.0, tau * t * all - 2.0 * tau * tau / (25.0 + tau * tau) + 1.0]);
    (prior - 0.5 * squares, gradient)
}

fn printed(arguments: &[&str]) -> Vec<Value> {
    let output = output(&[arguments, &["--format", "json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    serde_json::from_slice(&output.stdout).expect("a list of objects")
}

#[test]
fn values_and_gradients_are_those_by_hand() {
    let points = [(0.0, 0.0, 0.0), (0.5, -2.0, 1.5), (-1.0, 8.0, -3.0)];
    let rows: Vec<Vec<f64>> = points.iter().map(|(t, mu, s)| [vec![*t; 8], vec![*mu, *s]].concat()).collect();
    let text = serde_json::to_string(&rows).unwrap();
    let folder = Folder::new("log-prob");
    let list = folder.file("points.json", &text);
    let of_cmdstan = folder.file("params.json", format!("{{\"params_r\": {text}}}"));
    for given in [&text, &list, &of_cmdstan] {
        for engine in ["pc", "scalar"] {
            let printed = printed(&[&EIGHT_SCHOOLS[..], &["--points", given, "--engine", engine]].concat());
            assert_eq!(printed.len(), points.len());
            for (value, (t, mu, log_tau)) in printed.iter().zip(points) {
                let (lp, gradient) = by_hand(t, mu, log_tau);
                let close = |a: &Value, b: f64| (a.as_f64().unwrap() - b).abs() < 1e-12 * (1.0 + b.abs());
                assert!(close(&value["lp"], lp), "{value}: {lp}");
                let found = value["gradient"].as_array().unwrap();
                assert!(found.len() == 10 && found.iter().zip(&gradient).all(|(a, b)| close(a, *b)), "{value}");
            }
        }
    }
}

/// The models in nuts/models are there as programs of Stan, too: the same gradients, and log densities that differ by a
/// constant, since each leaves out what it may.
#[test]
fn models_that_ship_in_both_languages_are_the_same() {
    let folder = Folder::new("log-prob-both");
    let wave = |i: usize| f64::sin(1.0 + 1.7 * i as f64);
    let x: Vec<Vec<f64>> = (0..12).map(|i| (0..4).map(|j| wave(4 * i + j)).collect()).collect();
    let y: Vec<u8> = (0..12).map(|i| u8::from(i % 3 == 0)).collect();
    let synthetic = folder.file("synthetic.json", serde_json::json!({"n": 12, "d": 4, "x": x, "y": y}).to_string());
    let normal = folder.file("normal.json", "{\"d\": 5}");
    let shipped = |name: &str| format!("nuts/data/{name}.json");
    let models = [
        ("eight_schools", shipped("eight_schools"), 10),
        ("kidscore_momiq", shipped("kidiq"), 3),
        ("logistic_wells", shipped("wells_data"), 2),
        ("logistic_synthetic", synthetic, 4),
        ("correlated_gaussian", shipped("correlated_gaussian"), 10),
        ("standard_normal", normal, 5),
    ];
    for (model, data, dimension) in models {
        let points: Vec<Vec<f64>> =
            (0..3).map(|p| (0..dimension).map(|i| 0.1 * wave(p * dimension + i)).collect()).collect();
        let points = serde_json::to_string(&points).unwrap();
        let of = |language: &str| {
            let program = format!("nuts/models/{model}.{language}");
            printed(&["log-prob", &program, "--data", &data, "--points", &points])
        };
        let (ours, stans) = (of("ab"), of("stan"));
        let apart = |i: usize| ours[i]["lp"].as_f64().unwrap() - stans[i]["lp"].as_f64().unwrap();
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-10 * (1.0 + a.abs().max(b.abs()));
        for i in 0..3 {
            let lp = ours[i]["lp"].as_f64().unwrap();
            assert!((apart(i) - apart(0)).abs() <= 1e-10 * (1.0 + lp.abs()), "{model}: {} {}", apart(0), apart(i));
            let gradients = [&ours[i], &stans[i]].map(|value| value["gradient"].as_array().unwrap());
            assert_eq!(gradients[0].len(), dimension);
            for (a, b) in gradients[0].iter().zip(gradients[1]) {
                assert!(close(a.as_f64().unwrap(), b.as_f64().unwrap()), "{model}: {a} {b}");
            }
        }
    }
}

#[test]
fn a_point_is_rejected_without_harm_to_the_others() {
    let folder = Folder::new("log-prob-rejected");
    let text = "pub fn log_density(q: real[2]) -> real {\n    assert(q[0] < 3.0, \"too steep at {q[0]}\");\n    \
                if q[0] < -3.0 { negative_infinity() } else { sqrt(q[1]) }\n}\n";
    let by_hand = "pub fn log_density_and_gradient(q: real[2]) -> (real, real[2]) {\n    \
                   assert(q[0] < 3.0, \"too steep at {q[0]}\");\n    \
                   if q[0] < -3.0 { (negative_infinity(), [0.0, 0.0]) } else { (sqrt(q[1]), [0.0, 0.5 / sqrt(q[1])]) }\n}\n";
    for text in [text, by_hand] {
        let model = folder.file("model.ab", text);
        let printed = printed(&["log-prob", &model, "--points", "[[0, 4], [4, 4], [0, -1], [-4, 4]]"]);
        let shown: Vec<String> = printed.iter().map(Value::to_string).collect();
        assert_eq!(shown[0], r#"{"lp":2.0,"gradient":[0.0,0.25]}"#);
        assert!(shown[1].starts_with(r#"{"rejected":"too steep at 4 (function `log_density"#), "{}", shown[1]);
        let name = if text == by_hand { "log_density_and_gradient" } else { "log_density" };
        let first = format!("the log density is NaN: the first NaN is that of an operation in `{name}`, line 3");
        assert_eq!(printed[2]["rejected"], first);
        assert_eq!(shown[3], r#"{"lp":"-Inf","gradient":[0.0,0.0]}"#);
    }
    assert!(printed(&["log-prob", &folder.file("model.ab", text), "--points", "[]"]).is_empty());
}

#[test]
fn a_gradient_is_tested_against_differences() {
    let folder = Folder::new("gradient-test");
    let eight = ["diagnose", "nuts/models/eight_schools.ab", "--data", "nuts/data/eight_schools.json", "--seed", "2"];
    let told = String::from_utf8(output(&eight).stdout).unwrap();
    assert!(told.starts_with("TEST GRADIENT MODE\n\n Log probability=-"), "{told}");
    assert!(told.contains("all 10 derivatives agree with differences within 1e-6"), "{told}");
    // By hand and wrong in the second coordinate.
    let wrong =
        "pub fn log_density_and_gradient(q: real[2]) -> (real, real[2]) { (-0.5 * dot(q, q), [-q[0], -2.0 * q[1]]) }";
    let wrong = folder.file("wrong.ab", wrong);
    let output = output(&["diagnose", &wrong]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.code() == Some(1) && told.contains("1 of 2 derivatives differ"), "{told}");
    assert!(error(&["diagnose", &wrong, "--epsilon", "0"]).contains("must be greater than 0"));
    let nowhere =
        folder.file("nowhere.ab", "pub fn log_density(q: real[2]) -> real { assert(false, \"never\"); q[0] }");
    assert!(
        error(&["diagnose", &nowhere]).contains("no point with a finite log density and gradient in 100 tries: never")
    );
    assert!(error(&["diagnose", "nuts/models/standard_normal.ab"]).contains("no data tell the number"));
}

#[test]
fn what_cannot_be_evaluated_is_told() {
    let refused = |more: &[&str]| error(&[&EIGHT_SCHOOLS[..], more].concat());
    let points = ["--points", "[[0,0,0,0,0,0,0,0,0,0]]"];
    let said = refused(&[&points[..], &["--full"]].concat());
    assert!(said.contains("--full: nuts/models/eight_schools.ab is no Stan program"), "{said}");
    let folder = Folder::new("log-prob-refused");
    let by_hand = folder.file("model.ab", "pub fn log_density(q: real[1]) -> real { -0.5 * q[0] * q[0] }");
    let said = error(&["log-prob", &by_hand, "--points", "[[1]]", "--no-jacobian"]);
    assert!(said.contains("model.ab is no Stan program and has no `model`"), "{said}");
    let said = refused(&["--points", "[[1, 2]]"]);
    assert!(said.contains("2 coordinates") && said.contains("10 unconstrained parameters"), "{said}");
    // CmdStan's form of one point.
    let said = refused(&["--points", "[1, 2]"]);
    assert!(said.contains("2 coordinates") && said.contains("10 unconstrained parameters"), "{said}");
    assert!(refused(&["--points", "no.json"]).contains("no.json"));
    let said = error(&[&["log-prob", "nuts/models/eight_schools.ab"][..], &points].concat());
    assert!(said.contains("the model needs `y: real[J]`"), "{said}");
}

/// A density that is bound keeps what does not hang on the point. The bits are those of one that keeps nothing, whatever
/// runs it, and a point that is rejected leaves no trace.
#[test]
fn a_bound_density_gives_the_bits_of_a_fresh_one_on_every_engine() {
    let model = "
        pub fn log_density[n, m](q: real[m], shared x: real[n, m], shared y: real[n]) -> real {
            assert(q[0] < 3.0, \"too far\");
            let residual = y - x @ q;
            sum(normal_lpdf(residual[i], 0.0, exp(q[1])) for i in 0..n) - 0.5 * dot(q, q)
        }";
    let wave = |i: usize| f64::sin(1.0 + 1.7 * i as f64);
    let x = Array::real([30, 4], (0..120).map(wave).collect());
    let sampler = Sampler::of_source(model).data("x", x).data("y", (200..230).map(wave).collect::<Vec<_>>());
    let loaded = sampler.load(Terms::default()).expect("it loads");
    let density = loaded.log_prob().expect("it compiles");
    let mut points: Vec<Vec<f64>> = (0..12).map(|p| (0..4).map(|i| wave(40 * p + i)).collect()).collect();
    points[5][0] = 4.0;
    let bits = |value: &Evaluated| match value {
        Evaluated::Density { lp, gradient } => [&[*lp], &gradient[..]].concat().iter().map(|x| x.to_bits()).collect(),
        Evaluated::Rejected(_) => vec![f64::NAN.to_bits(); 5],
    };
    for precision in [Precision::F64, Precision::F32] {
        let plain = Options::default().precision(precision).threads(1);
        let all = Array::real([12, 4], points.concat());
        let wanted = density.at(all, &plain.clone().engine(Engine::Scalar).codegen(Codegen::Off)).expect("it runs");
        let wanted: Vec<Vec<u64>> = wanted.iter().map(bits).collect();
        let mut ways = [Engine::Scalar, Engine::Pc, Engine::Local].map(|engine| (engine, Codegen::Off)).to_vec();
        ways.push((Engine::Pc, Codegen::Auto));
        if c_compiler().is_ok() {
            ways.extend([(Engine::Pc, Codegen::Cc), (Engine::Scalar, Codegen::Cc)]);
        }
        for (engine, codegen) in ways {
            let options = plain.clone().engine(engine).codegen(codegen);
            let mut bound = density.bind(1, 4, &options).expect("it binds");
            for turn in 0..3 {
                for (point, wanted) in points.iter().zip(&wanted) {
                    let values = bound.at(point, &options).expect("it runs");
                    let found = [&values.lp[..], &values.gradient].concat();
                    let found: Vec<u64> =
                        found.iter().map(|x| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() }).collect();
                    assert_eq!(&found, wanted, "{engine:?} {codegen:?} {precision:?} in turn {turn}");
                }
            }
            // Other options with what was kept.
            let other = plain.clone().engine(Engine::Pc).codegen(Codegen::Off).precision(Precision::F64);
            bound.at(&points[0], &other).expect("it runs");
        }
    }
}
