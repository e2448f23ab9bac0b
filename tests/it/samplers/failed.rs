//! Generated quantities that fail: the parameters of the draw, and what is computed of them, are there as in Stan.

use serde_json::Value;

use crate::project::cli::{Folder, output};

/// What CmdStan writes is NaN from the block of generated quantities on: `stanc` writes the variables of a block at its end.
const STAN: &str = "parameters { real x; vector[2] v; }
transformed parameters { vector[2] w = 2 * v; }
model { x ~ normal(0, 1); v ~ std_normal(); }
generated quantities {
  real before = x + 1;
  array[2] int y;
  for (i in 1:2) y[i] = poisson_rng(x);
}
";
const OWN: &str = "model m(x: real, v: real[2], w = 2.0 * v) { normal_lpdf(x, 0, 1) + std_normal_lpdf(v) }
generated { assert(x > 0.0, \"x is {x}\"); let before = x + 1.0; let y = [1, 2]; }
";

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(all) => all.iter().flat_map(numbers).collect(),
        Value::String(text) if text == "NaN" => vec![f64::NAN],
        value => vec![value.as_f64().expect("a number")],
    }
}

/// The arrays of a run of two chains of 100 draws, and its summary.
fn sampled(folder: &Folder, name: &str, text: &str) -> (Value, String) {
    let model = folder.file(name, text);
    let file = folder.0.join("draws.json").display().to_string();
    let run = ["sample", &model, "--chains", "2", "--warmup", "100", "--draws", "100", "--output", &file];
    let found = output(&run);
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    let arrays = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).expect("an object");
    (arrays, String::from_utf8_lossy(&found.stdout).into_owned())
}

#[test]
fn parameters_stay_where_generated_quantities_fail() {
    let folder = Folder::new("failed-quantities");
    for (name, text) in [("failing.stan", STAN), ("failing.ab", OWN)] {
        let (arrays, said) = sampled(&folder, name, text);
        let (x, v, w) = (numbers(&arrays["x"]), numbers(&arrays["v"]), numbers(&arrays["w"]));
        let (before, y) = (numbers(&arrays["before"]), numbers(&arrays["y"]));
        let failed = x.iter().filter(|x| **x < 0.0).count();
        assert!(failed > 50 && x.len() == 200 && !x.iter().any(|x| x.is_nan()), "{name}: {failed}");
        assert!(v.iter().zip(&w).all(|(v, w)| *w == 2.0 * v), "{name}");
        for (at, x) in x.iter().enumerate() {
            assert_eq!(before[at].is_nan(), *x < 0.0, "{name}");
            assert!(y[2 * at..2 * at + 2].iter().all(|y| y.is_nan() == (*x < 0.0)), "{name}");
        }
        let first = x.iter().position(|x| *x < 0.0).unwrap_or_default();
        let place = format!("the first is draw {} of chain {}: ", first % 100, first / 100);
        assert!(said.contains(&format!("warning: before, y failed for {failed} of 200 draws")), "{said}");
        assert!(said.contains(&place) && said.contains(&format!("is {}", x[first])), "{said}");
        // The mean of all draws, as the table has it.
        let mean = x.iter().sum::<f64>() / 200.0;
        let row = said.lines().find(|line| line.starts_with("x ")).expect("a row of x");
        let shown: f64 = row.split_whitespace().nth(1).and_then(|cell| cell.parse().ok()).expect("a mean");
        assert!((shown - mean).abs() < 1e-3 * mean.abs().max(0.1), "{row} {mean}");
    }
}

#[test]
fn transformed_parameters_fail_with_what_comes_after_them() {
    let folder = Folder::new("failed-transformed");
    let text = "parameters { real x; }
transformed parameters { real w = x + 1; if (x > -5) reject(\"x is \", x); }
model { if (x > 100) target += w; }
generated quantities { real y = 2 * w; }
";
    let model = folder.file("transformed.stan", text);
    let file = folder.0.join("draws.csv").display().to_string();
    let draws = folder.file("draws_in.csv", "# method = sample\nlp__,x\n0,0.5\n0,-6\n");
    let found = output(&["generate-quantities", &model, "--draws", &draws, "--output", &file]);
    let said = String::from_utf8_lossy(&found.stderr);
    assert!(said.contains("warning: y, w failed for 1 of 2 draws") && said.contains("x is 0.5 (in "), "{said}");
    let text = std::fs::read_to_string(&file).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(rows, ["w,y", "nan,nan", "-5,-10"]);
}

#[test]
fn stan_csv_has_nan_for_ints_too_and_quantities_of_files_fail_alike() {
    let folder = Folder::new("failed-csv");
    let model = folder.file("failing.stan", STAN);
    let file = folder.0.join("draws.csv").display().to_string();
    let run = ["sample", &model, "--chains", "1", "--warmup", "100", "--draws", "100", "--output", &file];
    assert!(output(&run).status.success());
    let rows = |path: &str| -> Vec<Vec<String>> {
        let text = std::fs::read_to_string(path).unwrap();
        let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1);
        rows.map(|row| row.split(',').map(str::to_owned).collect()).collect()
    };
    // lp__ and six statistics, x, v, w, before, y.
    for row in rows(&file) {
        let fails = row[7].starts_with('-');
        assert!(!row[..12].iter().any(|cell| cell == "nan"), "{row:?}");
        assert!(row[12..].iter().all(|cell| (cell == "nan") == fails), "{row:?}");
        assert!(fails || row[13].parse::<u64>().is_ok(), "{row:?}");
    }
    let quantities = folder.0.join("quantities.csv").display().to_string();
    let found = output(&["generate-quantities", &model, "--draws", &file, "--output", &quantities]);
    let said = String::from_utf8_lossy(&found.stderr);
    assert!(found.status.success() && said.contains("warning: before, y failed for "), "{said}");
    // w, before, y.
    for (row, draw) in rows(&quantities).iter().zip(rows(&file)) {
        let fails = draw[7].starts_with('-');
        assert!(!row[..2].iter().any(|cell| cell == "nan") && row[2..].iter().all(|cell| (cell == "nan") == fails));
    }
}
