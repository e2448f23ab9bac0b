//! Parameters by their constrained values: where chains start, and the quantities of draws that are there.

use autobatch::mcmc::inits::starts;
use autobatch::mcmc::sampling::ModelSource;
use autobatch::program::io::{NamedValues, read_npz};
use autobatch::program::{StanModel, Terms};
use autobatch::{Options, types::Array};
use indexmap::IndexMap;
use serde_json::Map;

use crate::project::cli::{Folder, error, output};

/// Every kind of constraint, bounds that depend on parameters, and matrices in arrays.
const ALL_KINDS: &str = "parameters {
  real mu;
  real<lower=0> sigma;
  real<upper=3> top;
  real<lower=mu> above;
  vector<lower=-1, upper=2>[3] inside;
  real<offset=mu, multiplier=4> om;
  matrix[2, 3] m;
  array[2] matrix<lower=0>[2, 2] am;
  simplex[4] s;
  array[2] simplex[3] as;
  ordered[3] o;
  positive_ordered[3] po;
  unit_vector[3] uv;
  sum_to_zero_vector[4] sz;
  sum_to_zero_matrix[3, 4] szm;
  corr_matrix[3] C;
  cov_matrix[3] S;
  cholesky_factor_corr[3] L;
  cholesky_factor_cov[4, 2] LR;
  row_stochastic_matrix[2, 3] rs;
  column_stochastic_matrix[3, 2] cs;
}
transformed parameters {
  vector[3] scaled = inside * sigma;
  matrix[3, 3] LL = S * L;
}
generated quantities {
  real y = normal_rng(mu, sigma);
}
";

fn draw(folder: &Folder, model: &str, chains: &str) -> (String, IndexMap<String, Array>) {
    let file = folder.0.join("draws.npz").display().to_string();
    let made = output(&[
        "sample",
        model,
        "--algorithm",
        "fixed_param",
        "--draws",
        "3",
        "--chains",
        chains,
        "--output",
        &file,
        "--seed",
        "5",
    ]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let arrays = read_npz(std::path::Path::new(&file)).expect("draws were written");
    (file, arrays)
}

#[test]
fn constrained_starts_are_where_chains_start_and_quantities_are_those_of_the_draws() {
    let folder = Folder::new("by-value");
    let model = folder.file("kinds.stan", ALL_KINDS);
    let (file, draws) = draw(&folder, &model, "2");
    let quantities = folder.0.join("q.npz").display().to_string();
    let made = output(&["generate-quantities", &model, "--draws", &file, "--output", &quantities]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let made = read_npz(std::path::Path::new(&quantities)).expect("quantities were written");
    assert_eq!(made.keys().collect::<Vec<_>>(), ["scaled", "LL", "y"]);
    for name in ["scaled", "LL"] {
        assert_eq!(made[name], draws[name], "{name}: the same bits");
    }
    // With a stream of their own.
    assert_ne!(made["y"], draws["y"]);
    // The values of a draw as the start of a chain that does not move.
    let row = |chain: usize| {
        let of = |(name, array): (&String, &Array)| {
            let event = array.shape[2..].to_vec();
            let n: usize = event.iter().product();
            let values = array.as_real()?[chain * 3 * n..][..n].to_vec();
            Some((name.clone(), Array::real(event, values)))
        };
        draws.iter().filter(|(name, _)| !made.contains_key(*name)).take(21).filter_map(of).collect::<IndexMap<_, _>>()
    };
    for chain in 0..2 {
        let values = row(chain);
        let text = values.iter().map(|(name, array)| {
            let list = autobatch::program::io::JsonArray(array);
            format!("\"{name}\": {}", serde_json::to_string(&list).unwrap())
        });
        folder.file(&format!("start_{}.json", chain + 1), format!("{{{}}}", text.collect::<Vec<_>>().join(", ")));
    }
    let again = folder.0.join("again.npz").display().to_string();
    let start = folder.0.join("start.json").display().to_string();
    let made = output(&[
        "sample",
        &model,
        "--algorithm",
        "fixed_param",
        "--draws",
        "1",
        "--chains",
        "2",
        "--init",
        &start,
        "--output",
        &again,
    ]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let started = read_npz(std::path::Path::new(&again)).unwrap();
    for chain in 0..2 {
        for (name, value) in row(chain) {
            let n = value.len();
            let found = &started[&name].as_real().unwrap()[chain * n..][..n];
            let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 4e-15 * (1.0 + b.abs());
            assert!(found.iter().zip(value.as_real().unwrap()).all(close), "{name}: {found:?} {value:?}");
        }
    }
}

#[test]
fn what_an_init_leaves_out_is_drawn_and_what_it_may_not_say_is_told() {
    let folder = Folder::new("inits");
    let model = folder.file("kinds.stan", ALL_KINDS);
    let (file, started) = (folder.0.join("s.npz").display().to_string(), "{\"mu\": 7, \"sigma\": 0.5, \"y\": 1}");
    let init = folder.file("init.json", started);
    let arguments = ["sample", &model, "--algorithm", "fixed_param", "--draws", "1", "--chains", "3", "--init", &init];
    assert!(output(&[&arguments[..], &["--output", &file]].concat()).status.success());
    let draws = read_npz(std::path::Path::new(&file)).unwrap();
    assert_eq!(draws["mu"].as_real().unwrap(), [7.0; 3]);
    assert!(draws["sigma"].as_real().unwrap().iter().all(|x| (x - 0.5).abs() < 1e-15));
    let above = draws["above"].as_real().unwrap();
    assert!(above.iter().all(|x| *x > 7.0) && above[0] != above[1], "{above:?}");
    for (text, words) in [
        ("{\"sigma\": -1}", "sigma must be at least 0"),
        ("{\"mu\": 1, \"above\": 0.5}", "above must be at least its bound"),
        ("{\"nope\": 1}", "has `nope`, which is no parameter of"),
        ("{\"m\": [[1, 2], [3, 4]]}", "`m` is of size 2 × 2, but the program declares 2 × 3"),
        ("{\"s\": [0.5, 0.5, 0.1, 0]}", "s must be a simplex: sum to 1"),
        ("{\"s\": [0.5, 0.5, 0, 0]}", "`s` lies on the border of its constraint"),
        ("{\"o\": [3, 2, 1]}", "o must be in increasing order"),
    ] {
        let init = folder.file("wrong.json", text);
        let said = error(&["sample", &model, "--chains", "2", "--init", &init]);
        assert!(said.contains(words) && said.contains("wrong.json"), "{text}: {said}");
    }
    let other = folder.file("other.json", "{\"sigma\": 1}");
    let said = error(&["sample", &model, "--chains", "2", "--init", &format!("{init},{other}")]);
    assert!(said.contains("must name the same parameters"), "{said}");
}

#[test]
fn a_list_of_objects_has_values_for_each_chain_and_a_density_wants_all_of_them() {
    let folder = Folder::new("lists");
    let model = folder.file("m.stan", "parameters { real<lower=1> a; real b; } model { a ~ normal(b, 1); }");
    let list = folder.file("list.json", "[{\"a\": 2, \"b\": 0.5}, {\"a\": 3, \"b\": -1}]");
    let file = folder.0.join("d.npz").display().to_string();
    let how = ["--algorithm", "fixed_param", "--draws", "1", "--init", &list, "--output", &file];
    assert!(output(&[&["sample", &model, "--chains", "2"], &how[..]].concat()).status.success());
    let draws = read_npz(std::path::Path::new(&file)).unwrap();
    assert_eq!((draws["a"].as_real().unwrap(), draws["b"].as_real().unwrap()), (&[2.0, 3.0][..], &[0.5, -1.0][..]));
    let said = error(&[&["sample", &model, "--chains", "3"], &how[..]].concat());
    assert!(said.contains("--init has values of 2 chains, where there are 3"), "{said}");
    // a = 2: -(2 - 0.5)² / 2 + ln (2 - 1); a = 3: -(3 + 1)² / 2 + ln 2.
    let told = output(&["log-prob", &model, "--constrained", &list, "--format", "json"]);
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).expect("a list");
    let lp = |i: usize| told[i]["lp"].as_f64().expect("a number");
    assert!((lp(0) + 1.125).abs() < 1e-14 && (lp(1) + 8.0 - 2.0_f64.ln()).abs() < 1e-14, "{told}");
    let some = folder.file("some.json", "{\"a\": 2}");
    let said = error(&["log-prob", &model, "--constrained", &some]);
    assert!(said.contains("some.json` lacks `b`: the values of all parameters are wanted"), "{said}");
}

#[test]
fn complex_numbers_are_pairs_in_json_and_two_columns_in_csv() {
    let folder = Folder::new("complex");
    let model = folder.file(
        "m.stan",
        "parameters { complex z; complex_matrix[2, 2] m; array[2] complex_vector[1] v; }
        model { target += -norm(z) - dot_self(get_real(to_vector(m))); }
        generated quantities { complex square = z * z; complex_row_vector[2] first = m[1]; }",
    );
    let init = folder.file(
        "init.json",
        r#"{"z": [1, -2], "m": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]], "v": [[[0.5, 0.25]], [[1.5, 2.5]]]}"#,
    );
    let file = folder.0.join("d.csv").display().to_string();
    let fixed = ["--algorithm", "fixed_param", "--draws", "1", "--chains", "1", "--output", &file];
    let made = output(&[&["sample", &model, "--init", &init][..], &fixed].concat());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let csv = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = csv.lines().filter(|line| !line.starts_with('#')).collect();
    let columns = "z.real,z.imag,m.1.1.real,m.1.1.imag,m.2.1.real,m.2.1.imag,m.1.2.real,m.1.2.imag,m.2.2.real,\
        m.2.2.imag,v.1.1.real,v.1.1.imag,v.2.1.real,v.2.1.imag";
    let quantities = "square.real,square.imag,first.1.real,first.1.imag,first.2.real,first.2.imag";
    assert!(lines[0].ends_with(&format!("{columns},{quantities}")), "{}", lines[0]);
    assert!(lines[1].ends_with("1,-2,1,2,5,6,3,4,7,8,0.5,0.25,1.5,2.5,-3,-4,1,2,3,4"), "{}", lines[1]);
    let said = String::from_utf8_lossy(&output(&["summary", &file]).stdout).into_owned();
    assert!(said.contains("z[real]") && said.contains("m[2,1,imag]"), "{said}");
    let out = folder.0.join("q.csv").display().to_string();
    let made = output(&["generate-quantities", &model, "--draws", &file, "--output", &out]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let made = std::fs::read_to_string(&out).unwrap();
    assert!(made.ends_with(&format!("\n{quantities}\n-3,-4,1,2,3,4\n")), "{made}");
    // Of those that are not named the others are drawn.
    let part = folder.file("part.json", r#"{"v": [[[0.5, 0.25]], [[1.5, 2.5]]]}"#);
    let made = output(&[&["sample", &model, "--init", &part][..], &fixed].concat());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let csv = std::fs::read_to_string(&file).unwrap();
    assert!(csv.contains(",0.5,0.25,1.5,2.5,"), "{csv}");
    for text in [r#"{"z": 1}"#, r#"{"z": [1, 2, 3]}"#, r#"{"v": [[1, 2]]}"#] {
        let wrong = folder.file("wrong.json", text);
        let said = error(&["sample", &model, "--init", &wrong]);
        assert!(said.contains("wrong.json"), "{said}");
    }
    let said = error(&["sample", &model, "--init", &folder.file("wrong.json", r#"{"z": 1}"#)]);
    assert!(said.contains("`z` is complex: each of its numbers is a list of two, [real, imaginary]"), "{said}");
}

#[test]
fn tuples_are_objects_in_json_and_parts_in_other_files() {
    let folder = Folder::new("tuples");
    let model = folder.file(
        "m.stan",
        "parameters {
          tuple(real<lower=0>, vector[2]) t; array[2] tuple(real, tuple(matrix[2, 2], complex)) a;
          array[0] tuple(real, real) none; real x;
        }
        transformed parameters { tuple(real, complex) twice = (2 * t.1, 2 * a[1].2.2); complex z = a[2].2.2; }
        model { target += -square(t.1) - dot_self(t.2) - square(x); }",
    );
    let values = r#"{"t": {"1": 2, "2": [3, -1]}, "a": [{"1": 4, "2": {"1": [[1, 2], [3, 4]], "2": [5, 6]}},
        {"1": 7, "2": {"1": [[8, 9], [10, 11]], "2": [12, 13]}}], "none": [], "x": 0.5,
        "twice": {"1": 0, "2": [0, 0]}, "z": [0, 0]}"#;
    let init = folder.file("init.json", values);
    let path = |name: &str| folder.0.join(name).display().to_string();
    let draw = |init: &str, file: &str| {
        let fixed = ["--algorithm", "fixed_param", "--draws", "1", "--chains", "1"];
        let made = output(&[&["sample", &model, "--init", init, "--output", file][..], &fixed].concat());
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    let (csv, flat) = (
        path("d.csv"),
        r#"{"t:1": 2, "t:2": [3, -1], "a.1:1": 4, "a.1:2:1": [[1, 2], [3, 4]],
        "a.1:2:2": [5, 6], "a.2:1": 7, "a.2:2:1": [[8, 9], [10, 11]], "a.2:2:2": [12, 13], "x": 0.5}"#,
    );
    let drawn = || {
        let text = std::fs::read_to_string(&csv).unwrap();
        text.lines().rfind(|line| !line.starts_with('#')).unwrap().to_owned()
    };
    for init in [init, folder.file("flat.json", flat)] {
        draw(&init, &csv);
        let made = drawn();
        assert!(made.ends_with(",2,3,-1,4,1,3,2,4,5,6,7,8,10,9,11,12,13,0.5,4,10,12,12,13"), "{made}");
        // What is written in another form is a start again.
        for name in ["d.npz", "d.json"] {
            draw(&init, &path(name));
            draw(&path(name), &csv);
            assert_eq!(drawn(), made, "{name}");
        }
    }
    draw(&folder.file("part.json", r#"{"t": {"2": [3, -1]}}"#), &csv);
    assert!(drawn().contains(",3,-1,"), "{}", drawn());
    for (text, words) in [
        (r#"{"t": {"1": 1, "3": 2}}"#, "has `t:3`, which is no parameter of"),
        (r#"{"t": 3}"#, "has `t`, which is no parameter of"),
        (r#"{"t": []}"#, "has `t`, which is no parameter of"),
        (r#"{"a": [{"1": 1}, {"1": 1}, {"1": 1}]}"#, "`a` has 3 tuples, where the program has 2"),
        (r#"{"a": []}"#, "`a` has 0 tuples, where the program has 2"),
        (r#"{"t": {"1": 1}, "t:1": 2}"#, "`t:1` is there twice"),
        (r#"{"x": [[7]], "t": {"1": 1}}"#, "`t` is no array over chains and draws, as others are"),
        (r#"{"x": [[7]], "t:1": 1}"#, "`t:1` is no array over chains and draws, as others are"),
        (r#"{"x": [[7]], "t:1": [[1, 2]]}"#, "`t:1` is real[1, 2], where there are 1 chains of 1 draws"),
        (r#"{"t": {"1": -1}}"#, "t:1 must be at least 0"),
    ] {
        let said = error(&["sample", &model, "--init", &folder.file("wrong.json", text)]);
        assert!(said.contains(words), "{text}: {said}");
    }
    let (first, second) = (path("d.npz"), path("d.json"));
    let said = error(&["sample", &model, "--chains", "2", "--init", &format!("{first},{second}")]);
    assert!(said.contains("of files of arrays one has all chains"), "{said}");
}

#[test]
fn starts_can_be_made_in_the_library() {
    let folder = Folder::new("starts");
    let model = folder.file("m.stan", "parameters { real<lower=1> a; real b; } model { a ~ normal(b, 1); }");
    let model = StanModel::load(std::path::Path::new(&model), &Map::new(), Terms::default()).unwrap();
    let values = |a: f64, b: f64| {
        let scalar = |x: f64| Array::real([], vec![x]);
        NamedValues::of("here".to_owned(), IndexMap::from([("a".to_owned(), scalar(a)), ("b".to_owned(), scalar(b))]))
    };
    let files = [values(2.0, 0.25), values(1.0 + 1.0_f64.exp(), -3.0)];
    let source = ModelSource::Stan(&model);
    let points = starts(&source, &files, 2, Some(2.0), &|_| Ok(model.inputs()), &Options::default()).unwrap();
    assert_eq!(points, Array::real([2, 2], vec![0.0, 0.25, 1.0, -3.0]));
}

#[test]
fn models_of_the_language_say_how_by_functions_of_their_parameters() {
    let folder = Folder::new("by-value-ab");
    let text = "struct P { mu: real, tau: real }\n\
        pub fn log_density(q: real[2], shared y: real) -> real { normal_lpdf(y, q[0], exp(q[1])) - dot(q, q) }\n\
        pub fn parameters(q: real[2]) -> P { P { mu: q[0], tau: exp(q[1]) } }\n\
        pub fn unconstrain(mu: real, tau: real) -> real[2] {\n    \
        assert(tau > 0.0, \"tau is {tau}\");\n    [mu, log(tau)]\n}\n\
        struct G { z: real }\n\
        pub fn generated_quantities(mu: real, tau: real, shared y: real) -> G { G { z: (y - mu) / tau } }\n";
    let model = folder.file("m.ab", text);
    let data = ["--shared", "y=2"];
    let init = folder.file("init.json", "{\"mu\": 1, \"tau\": 2}");
    let file = folder.0.join("d_1.csv").display().to_string();
    let made = output(
        &[
            &["sample", &model, "--chains", "1", "--draws", "2", "--algorithm", "fixed_param", "--init", &init][..],
            &data,
            &["--output", &file],
        ]
        .concat(),
    );
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let made = output(&[&["generate_quantities", &model, "--draws", &file, "--output", "-"][..], &data].concat());
    assert!(!made.status.success());
    let out = folder.0.join("z.csv").display().to_string();
    let made = output(
        &[&["generate_quantities", &model, &format!("fitted_params={file}"), "--output", &out][..], &data].concat(),
    );
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let csv = std::fs::read_to_string(&out).unwrap();
    assert!(csv.contains("# method = generate_quantities") && csv.ends_with("\nz\n0.5\n0.5\n"), "{csv}");
    assert!(String::from_utf8_lossy(&output(&["summary", &out]).stdout).contains("z "));
    let wrong = folder.file("wrong.json", "{\"mu\": 1, \"tau\": -2}");
    let said = error(&[&["sample", &model, "--init", &wrong][..], &data].concat());
    assert!(said.contains("wrong.json`: tau is -2"), "{said}");
    let none = folder.file("none.csv", "lp__,mu\n-1,2\n");
    let said = error(&[&["generate-quantities", &model, "--draws", &none][..], &data].concat());
    assert!(said.contains("has no `tau`, a parameter of") && said.contains("it has mu"), "{said}");
}

#[test]
fn included_files_are_found_in_folders_that_are_named() {
    let folder = Folder::new("include-path");
    std::fs::create_dir_all(folder.0.join("parts")).unwrap();
    folder.file("parts/prior.stan", "a ~ normal(0, 1);");
    let model = folder.file("m.stan", "parameters { real a; }\nmodel {\n  #include prior.stan\n}\n");
    let parts = folder.0.join("parts").display().to_string();
    for command in [&["sample"][..], &["log-prob", "--points", "[[1]]"], &["translate"], &["diagnose"], &["check"]] {
        let arguments = [&command[..1], &[&model], &command[1..]].concat();
        assert!(error(&arguments).contains("prior.stan"), "{command:?}");
        for flag in ["--include-path", "--include-paths"] {
            assert!(output(&[&arguments[..], &[flag, &parts]].concat()).status.success(), "{command:?} {flag}");
        }
    }
}
