//! Many data sets in one batch: the draws of each are those of a run with it alone; and calibration by simulation.

use autobatch::program::io::{Data, NamedValues};
use autobatch::sampler::{Calibration, Simulator};
use autobatch::{Array, Codegen, Sampler};
use serde_json::Value;

use crate::project::cli::{Folder, output};

const REGRESSION: &str = "
pub fn log_density[n](q: real[3], shared x: real[n], shared y: real[n], shared scale: real) -> real {
    normal_lpdf(q[0], 0.0, scale) + normal_lpdf(q[1], 0.0, 1.0) + normal_lpdf(q[2], 0.0, 0.5)
        + normal_lpdf(y, q[0] + q[1] * x, exp(q[2]))
}

pub struct Parameters { alpha: real, beta: real, sigma: real, at_end: real }

pub fn parameters[n](q: real[3], shared x: real[n], shared y: real[n]) -> Parameters {
    let sigma = exp(q[2]);
    Parameters { alpha: q[0], beta: q[1], sigma: sigma, at_end: normal_rng(q[0] + q[1] * x[n - 1], sigma) + 0.0 * y[0] }
}

pub struct Simulated[n] { alpha: real, beta: real, sigma: real, at_end: real, y: real[n] }

pub fn simulate[n](shared x: real[n], shared scale: real) -> Simulated[n] {
    let alpha = normal_rng(0.0, scale);
    let beta = normal_rng(0.0, 1.0);
    let sigma = exp(normal_rng(0.0, 0.5));
    Simulated {
        alpha: alpha,
        beta: beta,
        sigma: sigma,
        at_end: normal_rng(alpha + beta * x[n - 1], sigma),
        y: [normal_rng(alpha + beta * x[i], sigma) for i in 0..n],
    }
}
";

const STAN: &str = "
data { int<lower=0> N; vector[N] x; vector[N] y; real<lower=0> scale; int k; }
transformed data { real half = scale / 2; vector[N] z = x - mean(x); }
parameters { real alpha; real beta; real<lower=0> sigma; }
model {
  alpha ~ normal(0, scale);
  beta ~ normal(-half, 1.5);
  sigma ~ lognormal(0, 0.5);
  y ~ normal(alpha + beta * z, sigma);
}
generated quantities { real at_end = normal_rng(alpha + beta * z[N], sigma); int twice = 2 * k; }
";

const Y: [[f64; 4]; 3] = [[0.1, 0.2, -0.3, 1.0], [1.1, -0.2, 0.3, 0.0], [5.0, 4.0, 3.0, 2.5]];
const SCALE: [f64; 3] = [0.5, 1.25, 2.5];
const X: [f64; 4] = [-1.0, -0.5, 0.25, 1.5];

fn values(json: Value) -> NamedValues {
    let Value::Object(all) = json else { panic!("an object") };
    NamedValues::of_data("the data sets".to_owned(), all.into_iter().map(|(name, value)| (name, Data::Json(value))))
}

fn short(sampler: Sampler) -> Sampler {
    sampler.chains(2).warmup(80).draws(40).seed(3).codegen(Codegen::Off)
}

/// The draws of each data set, together and one by one.
fn same_as_alone(model: &dyn Fn() -> Sampler, more: &[(&str, Value)], options: &dyn Fn(Sampler) -> Sampler) {
    let mut own = serde_json::json!({"y": Y, "scale": SCALE});
    more.iter().for_each(|(name, all)| own[*name] = all.clone());
    let together = options(short(model()).lane_data(values(own))).run().expect("it runs");
    assert_eq!(together.draws().data_sets, Some((3, 2)));
    for set in 0..3 {
        let mut alone = serde_json::json!({"y": Y[set], "scale": SCALE[set]});
        more.iter().for_each(|(name, all)| alone[*name] = all[set].clone());
        let first = autobatch::Options::default().seed(3).codegen(Codegen::Off).first_lane(2 * set as u64);
        let alone = short(model()).data_values(values(alone)).options(first);
        let alone = alone.run().expect("it runs");
        let of_set = together.of_data_set(set);
        assert_eq!(of_set.draws().parameters, alone.draws().parameters, "data set {set}");
        assert_eq!(of_set.draws().statistics, alone.draws().statistics, "data set {set}");
        // What stays the same has statistics that are NaN.
        assert_eq!(format!("{:?}", of_set.summary().rows), format!("{:?}", alone.summary().rows), "data set {set}");
    }
}

#[test]
fn each_data_set_has_the_draws_that_it_has_alone() {
    let model = || Sampler::of_source(REGRESSION).data("x", X.to_vec());
    for engine in [autobatch::Engine::Pc, autobatch::Engine::Local, autobatch::Engine::Scalar] {
        same_as_alone(&model, &[], &|sampler| sampler.engine(engine).threads(2));
    }
}

#[test]
fn each_data_set_of_a_stan_program_has_the_draws_that_it_has_alone() {
    let model = || Sampler::of_stan_source(STAN).data("x", X.to_vec()).data("N", 4_i64);
    same_as_alone(&model, &[("k", serde_json::json!([7, 7, -9]))], &|sampler| sampler);
}

/// Of a `model` of the language, whose data are marked `shared`, too.
#[test]
fn models_take_data_of_data_sets() {
    let model = "model means[n](mu: real, tau: real<lower = 0>, shared y: real[n], shared scale: real) {
            normal_lpdf(mu, 0.0, scale) + normal_lpdf(tau, 0.0, 1.0) + normal_lpdf(y, mu, tau)
        } generated { let spread = 2.0 * tau + 0.0 * y[0]; }";
    same_as_alone(&|| Sampler::of_source(model), &[], &|sampler| sampler);
}

#[test]
fn what_does_not_go_together_is_told() {
    let refused = |sampler: Sampler| short(sampler).run().expect_err("it is refused").to_string();
    let model = || Sampler::of_source(REGRESSION).data("x", X.to_vec());
    let with = |own: Value| refused(model().lane_data(values(own)));
    assert_eq!(with(serde_json::json!({"y": Y, "scale": [1.0, 2.0]})), "`y` is of 3 data sets, `scale` of 2 data sets");
    assert!(with(serde_json::json!({"y": Y, "scale": 1.0})).contains("`scale` is one number"));
    assert!(with(serde_json::json!({"y": Y})).contains("`scale: real`"));
    assert!(with(serde_json::json!({"w": Y})).contains("has no data that the model takes"));
    let helped = "fn scaled(x: real, shared s: real) -> real { x * s }
        pub fn log_density(q: real[1], shared y: real, shared x: real) -> real { -0.5 * scaled(q[0] * q[0], y) + 0.0 * x }";
    let helped = Sampler::of_source(helped).data("x", 1.0).lane_data(values(serde_json::json!({"y": [1, 2]})));
    let said = format!("{:?}", short(helped).run().expect_err("it is refused").diagnostics());
    assert!(said.contains("`y` varies because each lane has data of its own for it"), "{said}");
    assert!(said.contains("remove `shared` from the parameter that takes it: then it takes both"), "{said}");
    let stan = |own: Value| refused(Sampler::of_stan_source(STAN).data("x", X.to_vec()).lane_data(values(own)));
    let said = stan(serde_json::json!({"y": [[1, 2, 3, 4], [1, 2, 3]], "N": [4, 3], "scale": [1, 2], "k": [1, 1]}));
    assert!(said.contains("the data set 1, counted from 0, is refused"), "{said}");
    let said = stan(serde_json::json!({"y": [1], "N": 4}));
    assert!(said.contains("`N` has no axis over the data sets"), "{said}");
    let sizes = "data { int N; array[N] real y; } parameters { real m; } model { for (n in 1 : N) if (y[n] > 0) y[n] ~ normal(m, 1); }";
    let said = refused(
        Sampler::of_stan_source(sizes).data("N", 2_i64).lane_data(values(serde_json::json!({"y": [[1, 2], [1, -2]]}))),
    );
    assert!(said.contains("the data set 1, counted from 0, makes another program than the first one"), "{said}");
    // What all data sets have alike, and arrays of one number, are data as any.
    let flips = "data { int N; array[N] int y; } parameters { real<lower=0, upper=1> p; } model { y ~ bernoulli(p); }";
    for ys in [
        serde_json::json!([[0, 0, 0], [1, 0, 1], [1, 1, 1]]),
        serde_json::json!([[1, 0, 0]]),
        serde_json::json!([[1, 1], [1, 1]]),
    ] {
        let n = ys[0].as_array().map_or(0, |y| y.len() as i64);
        let own = values(serde_json::json!({"y": ys}));
        short(Sampler::of_stan_source(flips).data("N", n).lane_data(own)).run().expect("it runs");
    }
    let inits = values(serde_json::json!({"alpha": 1.0}));
    let said = refused(model().lane_data(values(serde_json::json!({"y": Y, "scale": SCALE}))).init(inits));
    assert!(said.contains("give starting points"), "{said}");
}

#[test]
fn the_command_samples_many_posteriors() {
    let folder = Folder::new("data-sets");
    let model = folder.file("m.ab", REGRESSION);
    let own = folder.file("own.json", serde_json::json!({"y": Y, "scale": SCALE, "unused": [1, 2, 3]}).to_string());
    let file = folder.0.join("draws.json").display().to_string();
    let x = format!("x={X:?}");
    let run = ["sample", &model, "--shared", &x, "--lane-data", &own, "--codegen", "off", "--progress", "none"];
    let sizes = ["--chains", "2", "--warmup", "80", "--draws", "40", "--seed", "3"];
    let made = output(&[&run[..], &sizes, &["--output", &file]].concat());
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert!(text.contains("3 data sets, 2 chains of each") && text.contains("\nalpha "), "{text}");
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).expect("an object");
    assert_eq!(kept["data_set"], serde_json::json!([0, 0, 1, 1, 2, 2]));
    let alone = Sampler::of_source(REGRESSION).data("x", X.to_vec()).data("y", Y[2].to_vec()).data("scale", SCALE[2]);
    let alone = short(alone).options(autobatch::Options::default().seed(3).codegen(Codegen::Off).first_lane(4));
    let alpha = alone.run().expect("it runs").real("alpha").expect("reals")[[1, 7]];
    assert_eq!(kept["alpha"][5][7].as_f64(), Some(alpha));
    for (more, why) in [
        (&["--output", "d.csv"][..], "files of Stan CSV are of one"),
        (&["--report", "r.html"], "--report shows one"),
        (&["--init", &own], "with --lane-data give --starts"),
    ] {
        let said = output(&[&run[..], &sizes, more].concat());
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.status.code() == Some(1) && text.contains(why), "{text}");
    }
}

/// A store that processes fill whose chains are not those of whole data sets, which goes on, and is looked at.
#[test]
fn a_store_has_many_posteriors() {
    let folder = Folder::new("data-sets-store");
    let model = folder.file("m.ab", REGRESSION);
    let own = folder.file("own.json", serde_json::json!({"y": Y, "scale": SCALE}).to_string());
    let path = |name: &str| folder.0.join(name).display().to_string();
    let (file, whole, tasks) = (path("draws.npz"), path("whole.zarr"), path("tasks.zarr"));
    let x = format!("x={X:?}");
    let run = ["sample", &model, "--shared", &x, "--lane-data", &own, "--codegen", "off", "--progress", "none"];
    let run = [&run[..], &["--chains", "30", "--warmup", "60", "--seed", "3"]].concat();
    let done = |arguments: &[&str]| {
        let made = output(arguments);
        assert!(made.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&made.stderr));
        String::from_utf8_lossy(&made.stdout).into_owned()
    };
    let table = |text: &str| text.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let direct = done(&[&run[..], &["--draws", "40", "--output", &file]].concat());
    assert!(direct.contains("3 data sets, 30 chains of each"), "{direct}");
    done(&[&run[..], &["--draws", "20", "--store", &whole]].concat());
    let longer = done(&["resume", &whole, "--more-draws", "20", "--progress", "none"]);
    for lanes in ["64..90", "0..64"] {
        done(&[&run[..], &["--draws", "40", "--store", &tasks, "--lanes", lanes]].concat());
    }
    let merged = done(&["merge", &tasks]);
    assert_eq!(table(&longer), table(&direct));
    assert_eq!(table(&merged), table(&direct));
    for file in [&file, &whole, &tasks] {
        let text = done(&["summary", file]);
        assert_eq!(table(&text), table(&direct), "{file}");
        assert!(text.contains("3 data sets, 30 chains of each"), "{text}");
    }
    let alone = Sampler::of_file(&model).data("x", X.to_vec()).data("y", Y[2].to_vec()).data("scale", SCALE[2]);
    let options = autobatch::Options::default().seed(3).codegen(Codegen::Off).first_lane(60);
    let alone = alone.chains(30).warmup(60).draws(40).options(options).run().expect("it runs");
    let stored = autobatch::sampler::Samples::open(&tasks).expect("it is a store");
    assert_eq!(stored.of_data_set(2).draws().parameters, alone.draws().parameters);
    let row = |text: &str| text.lines().find(|line| line.trim_start().starts_with("alpha ")).map(str::to_owned);
    let of_store = done(&["summary", &tasks, "--data-set", "2"]);
    assert!(row(&of_store).is_some());
    assert_eq!(row(&of_store), row(&done(&["summary", &file, "--data-set", "2"])));
    assert_ne!(row(&of_store), row(&done(&["summary", &tasks, "--data-set", "1"])));
    assert!(done(&["diagnose", &tasks, "--data-set", "0"]).contains("R-hat"));
    let page = path("page.html");
    done(&["report", &tasks, "--data-set", "1", "--output", &page]);
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("Data set") && html.contains("alpha"));
    let root: Value = serde_json::from_str(&std::fs::read_to_string(folder.0.join("tasks.zarr/zarr.json")).unwrap())
        .expect("an object");
    let all = &root["consolidated_metadata"]["metadata"];
    assert_eq!(root["attributes"]["data_sets"], 3);
    assert_eq!(all["posterior"]["attributes"]["coordinates"], "data_set");
    assert_eq!(all["posterior/data_set"]["shape"], serde_json::json!([90]));
    assert_eq!(all["observed_data/y"]["dimension_names"], serde_json::json!(["data_set", "n"]));
    assert_eq!(all["observed_data/x"]["dimension_names"], serde_json::json!(["n"]));
    for (arguments, why) in [
        (vec!["diagnose", &tasks], "--data-set K names the one that is meant"),
        (vec!["report", &tasks, "--output", "r.html"], "has the posteriors of 3 data sets"),
        (vec!["summary", &tasks, "--data-set", "3"], "there are 3 data sets, counted from 0"),
        (vec!["diagnose", &model, "--data-set", "0"], "--data-set is of draws"),
        (vec!["summary", &tasks, "--csv-filename", "t.csv"], "is the table of one posterior"),
    ] {
        let said = output(&arguments);
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.status.code() == Some(1) && text.contains(why), "{arguments:?}: {text}");
    }
}

#[test]
fn a_store_has_many_posteriors_of_a_stan_program() {
    let folder = Folder::new("data-sets-stan-store");
    let own = || values(serde_json::json!({"y": Y, "scale": SCALE, "k": [7, 7, -9]}));
    let model = || short(Sampler::of_stan_source(STAN).data("x", X.to_vec()).data("N", 4_i64)).lane_data(own());
    let direct = model().run().expect("it runs");
    let store = folder.0.join("run.zarr");
    model().draws(10).store(&store).run().expect("it runs");
    let made = Sampler::of_store(&store).more_draws(30).codegen(Codegen::Off).run().expect("it goes on");
    assert_eq!(made.draws().parameters, direct.draws().parameters);
    assert_eq!(made.draws().data_sets, Some((3, 2)));
    assert_eq!(made.of_data_set(1).draws().statistics, direct.of_data_set(1).draws().statistics);
}

fn calibrated(model: &str, simulator: &Simulator) -> Calibration {
    let sampler = Sampler::of_source(model).data("x", X.to_vec()).data("scale", 1.5);
    let sampler = sampler.chains(1).warmup(150).draws(300).set("thin", 10).seed(5).codegen(Codegen::Off);
    sampler.calibrate(simulator).expect("it runs")
}

#[test]
fn calibration_passes_what_is_right_and_finds_what_is_wrong() {
    let right = calibrated(REGRESSION, &Simulator::Own(200));
    let names: Vec<&str> = right.quantities.iter().map(|quantity| quantity.name.as_str()).collect();
    assert_eq!(names, ["alpha", "beta", "sigma", "at_end"]);
    assert_eq!((right.simulations, right.draws, right.failed), (200, 30, 0));
    assert!(right.p_value() > 0.05, "{right}");
    assert!(right.quantities.iter().all(|quantity| quantity.ranks.iter().all(|rank| *rank <= 30)));
    // A prior that is narrower than the generator's, a likelihood that forgets the noise, and a quantity that is off.
    let wrong = [
        ("normal_lpdf(q[0], 0.0, scale)", "normal_lpdf(q[0], 0.0, 0.3 * scale)", "alpha"),
        ("q[0] + q[1] * x, exp(q[2])", "q[0] + q[1] * x, 0.5 * exp(q[2])", "sigma"),
        ("beta: q[1], sigma: sigma, at_end", "beta: q[1] + 0.5, sigma: sigma, at_end", "beta"),
    ];
    for (from, to, quantity) in wrong {
        let model = REGRESSION.replacen(from, to, 1);
        assert_ne!(model, REGRESSION);
        let found = calibrated(&model, &Simulator::Own(200));
        let worst = found.worst_first()[0];
        assert!(worst.name == quantity && worst.p_value < 0.001 && found.p_value() < 0.01, "{found}");
        assert!(found.page("<wrong>").contains("<h1>&lt;wrong&gt;</h1>"));
    }
}

#[test]
fn another_program_simulates() {
    let generator = "data { int N; vector[N] x; real scale; }
        generated quantities {
          real alpha = normal_rng(0, scale);
          real beta = normal_rng(-scale / 2, 1.5);
          real sigma = lognormal_rng(0, 0.5);
          vector[N] y;
          for (n in 1 : N) y[n] = normal_rng(alpha + beta * (x[n] - mean(x)), sigma);
          real at_end = normal_rng(alpha + beta * (x[N] - mean(x)), sigma);
        }";
    let data = |sampler: Sampler| sampler.data("x", X.to_vec()).data("N", 4_i64).data("scale", 1.5).data("k", 1_i64);
    let model = data(Sampler::of_stan_source(STAN)).chains(2).warmup(150).draws(150).set("thin", 10).seed(6);
    let simulator = Simulator::Program(Box::new(data(Sampler::of_stan_source(generator))), 150);
    let found = model.codegen(Codegen::Off).calibrate(&simulator).expect("it runs");
    assert_eq!((found.simulations, found.draws), (150, 30));
    assert!(found.p_value() > 0.05, "{found}");
    // What was drawn elsewhere, of which nothing is a quantity, and something of another shape.
    let drawn = |more: (&str, Array)| {
        let arrays = [("y".to_owned(), Array::real([2, 4], vec![0.5; 8])), (more.0.to_owned(), more.1)];
        Simulator::Drawn(NamedValues::of("here".to_owned(), arrays.into_iter().collect()))
    };
    let refused = |simulator: Simulator| {
        let sampler = Sampler::of_source(REGRESSION).data("x", X.to_vec()).data("scale", 1.5);
        short(sampler).calibrate(&simulator).expect_err("it is refused").to_string()
    };
    let said = refused(drawn(("gamma", Array::real([2], vec![0.0; 2]))));
    assert!(said.contains("nothing that the simulator gives is a quantity of the model"), "{said}");
    let said = refused(drawn(("alpha", Array::real([2, 3], vec![0.0; 6]))));
    assert!(said.contains("`alpha` is an array [3] of each data set, but a number of each draw"), "{said}");
}

#[test]
fn the_command_calibrates() {
    let folder = Folder::new("sbc");
    let model = folder.file("m.ab", REGRESSION);
    let (page, ranks) = (folder.0.join("p.html"), folder.0.join("r.json"));
    let x = format!("x={X:?}");
    let sizes = ["--simulations", "60", "--warmup", "100", "--draws", "100", "--codegen", "off", "--progress", "none"];
    let run = ["sbc", &model, "--shared", &x, "--shared", "scale=1.5"];
    let [page_name, ranks_name] = [&page, &ranks].map(|path| path.display().to_string());
    let made = output(&[&run[..], &sizes, &["--report", &page_name, "--output", &ranks_name]].concat());
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert!(text.contains("60 data sets, ranks among 10 draws"), "{text}");
    let html = std::fs::read_to_string(page).unwrap();
    assert_eq!(html.matches("<svg ").count(), 4);
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(ranks).unwrap()).expect("an object");
    assert_eq!(kept["rank.alpha"].as_array().map(Vec::len), Some(60));
    assert_eq!(kept["drawn.y"][0].as_array().map(Vec::len), Some(4));
    let bare =
        folder.file("bare.ab", "pub fn log_density(q: real[1], shared y: real) -> real { normal_lpdf(y, q[0], 1.0) }");
    for (arguments, why) in [
        (vec!["sbc", &bare, "--shared", "y=1"], "there is no `pub fn simulate`"),
        (vec!["sbc", &model, "--shared", &x], "scale"),
        (vec!["sbc", &model, "--simulations", "0"], "are 1 or more"),
        (vec!["sbc", &model, "--output", &model], "would be written over"),
        (vec!["sbc", "nowhere.ab"], "nowhere.ab"),
    ] {
        let said = output(&arguments);
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(!said.status.success() && text.contains(why) && !text.contains("panicked"), "{arguments:?}: {text}");
    }
}
