//! Warmup against Stan's own: its windows, and the step sizes and metrics that it ends with. The figures are Stan's, by
//! `tests/scripts/stan_adaptation.py`.

use std::collections::BTreeMap;
use std::path::Path;

use autobatch::mcmc::diagnostics;
use autobatch::mcmc::sampling::{Draws, Job, Sampling};
use autobatch::program::{Inputs, Options, Program, StanModel, Terms};
use autobatch::types::Array;
use serde_json::{Value, json};

use crate::tools::effort;

const STAN: &str = include_str!("../../data/stan_adaptation.json");

/// How far means may be from Stan's, in standard errors of both.
const MOST_ERRORS: f64 = 4.5;
/// More windows than any plan has; of a short warmup the one that Stan announces (nuts/README.md).
const WINDOWS: usize = 32;

const ENDS: &str = r#"
use "std/adapt.ab";
/// The last iterations of the windows, then -1.
pub fn ends(num_warmup: int, shared start: int, shared end: int, shared window: int) -> int[32] {
    let plan = plan_warmup(Stages { start, end, window }, num_warmup);
    let mut all = [-1 for i in 0..32];
    let mut window = first_window_of(plan);
    let mut last = -1;
    let mut i = 0;
    while window.last > last && window.last < num_warmup {
        all[i] = window.last;
        last = window.last;
        i += 1;
        window = next_window(plan, window);
    }
    all
}
"#;

fn stan() -> Value {
    serde_json::from_str(STAN).expect("JSON")
}

#[test]
fn windows_of_warmup_are_those_of_stan() {
    let program = Program::compile(ENDS).unwrap_or_else(|e| panic!("{e}"));
    let int = |x: &Value| x.as_i64().expect("an int");
    // The plans with the same buffers are lanes of one run.
    let mut plans: BTreeMap<[i64; 3], Vec<(i64, Vec<i64>)>> = BTreeMap::new();
    let stan = stan();
    for plan in stan["windows"].as_array().expect("a list") {
        let ends = plan[4].as_array().expect("a list").iter().map(int).collect();
        plans.entry([1, 2, 3].map(|i| int(&plan[i]))).or_default().push((int(&plan[0]), ends));
    }
    for ([start, end, window], of_stan) in plans {
        let warmups: Vec<i64> = of_stan.iter().map(|(warmup, _)| *warmup).collect();
        let inputs = Inputs::new().lane("num_warmup", Array::int([warmups.len()], warmups));
        let inputs = inputs.shared("start", start).shared("end", end).shared("window", window);
        let results = program.function("ends").and_then(|f| f.run(&inputs, &Options::default()));
        let results = results.unwrap_or_else(|e| panic!("{e}"));
        assert!(results.traps().is_empty(), "{:?}", results.traps().first());
        let ours = results.output("result").and_then(Array::as_int).expect("ints");
        for ((warmup, theirs), ours) in of_stan.iter().zip(ours.chunks(WINDOWS)) {
            let ours: Vec<i64> = ours.iter().copied().filter(|end| *end >= 0).collect();
            assert_eq!(&ours, theirs, "warmup {warmup}, start {start}, end {end}, window {window}");
        }
    }
}

/// As many chains as Stan had, with its defaults, of a model that ships.
fn ran(name: &str, data: Value, chains: usize) -> Draws {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("nuts/models/{name}.stan"));
    let Value::Object(data) = data else { unreachable!("data are an object") };
    let model = StanModel::load(&path, &data, Terms::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
    let job = Job { chains, warmup: 1000, draws: 250, ..Job::new(&model) };
    let sampling = Sampling::new(&job, |f| Ok(model.inputs().restricted_to(f.signature())));
    let draws = sampling.and_then(|s| s.run_unconstrained(&Options::default(), &|| ())).expect("it runs");
    assert!(draws.traps.is_empty(), "{name}: {:?}", draws.traps.first());
    draws
}

/// How many standard errors of both the means of our chains and of Stan's are apart.
fn errors(ours: &[f64], theirs: &Value, chains: f64) -> f64 {
    let of_stan = |what: &str| theirs[what].as_f64().expect("a number");
    let sd = diagnostics::sd(&[ours]);
    (diagnostics::mean(&[ours]) - of_stan("mean")).abs() / (sd.hypot(of_stan("sd")) / chains.sqrt())
}

/// Of each chain the mean of a statistic of its draws.
fn means_by_chain(draws: &Draws, name: &str) -> Vec<f64> {
    let values = &draws.statistics[name];
    let reals = match values.as_int() {
        Some(ints) => ints.iter().map(|x| *x as f64).collect(),
        None => values.as_real().expect("reals").to_vec(),
    };
    reals.chunks(draws.draws).map(|chain| chain.iter().sum::<f64>() / chain.len() as f64).collect()
}

#[test]
fn warmup_ends_with_the_step_sizes_and_metrics_of_stan() {
    let stan = stan();
    let models = stan["models"].as_object().expect("an object");
    assert_eq!(models.len(), 5);
    // Regressions take most of the time.
    let quick = |name: &str| !matches!(name, "kidscore_momiq" | "logistic_wells");
    for (name, told) in models.iter().filter(|(name, _)| effort::all() || quick(name)) {
        let chains = told["chains"].as_u64().expect("a number") as usize;
        let file = |name: &str| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("nuts/data").join(name);
            let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            serde_json::from_str(&text).expect("JSON")
        };
        let data = match name.as_str() {
            "standard_normal" => json!({"d": 10}),
            "kidscore_momiq" => file("kidiq.json"),
            "logistic_wells" => file("wells_data.json"),
            name => file(&format!("{name}.json")),
        };
        let draws = ran(name, data, chains);
        let check = |what: &str, ours: &[f64], theirs: &Value| {
            let off = errors(ours, theirs, chains as f64);
            let mean = diagnostics::mean(&[ours]);
            println!("{name} {what}: {mean:.4}, Stan {:.4}, {off:.1} standard errors apart", theirs["mean"]);
            assert!(off <= MOST_ERRORS, "{name} {what}: {mean}, Stan {theirs}, {off:.1} standard errors apart");
        };
        let logs: Vec<f64> = draws.adapted.iter().map(|x| x.ln()).collect();
        check("log step size", &logs, &told["log_stepsize"]);
        for (i, theirs) in told["log_inv_metric"].as_array().expect("a list").iter().enumerate() {
            let of_chain = |metric: &Array| metric.as_real().expect("reals")[i].ln();
            let ours: Vec<f64> = draws.inv_metrics.iter().map(of_chain).collect();
            check(&format!("log metric {i}"), &ours, theirs);
        }
        check("acceptance statistic", &means_by_chain(&draws, "accept_stat"), &told["accept_stat"]);
        check("leapfrog steps", &means_by_chain(&draws, "n_leapfrog"), &told["n_leapfrog"]);
    }
}
