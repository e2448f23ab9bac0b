//! Warmup in which all chains learn together: it has the same bits whoever runs which chains, and it learns more.

use autobatch::program::io::{Data, NamedValues};
use autobatch::sampler::{Metric, Samples};
use autobatch::{Codegen, Engine, Sampler};
use serde_json::json;

use crate::project::cli::{Folder, autobatch};

/// Normals with these standard deviations.
const SCALES: [f64; 3] = [0.2, 1.0, 5.0];
const MODEL: &str = "
pub fn log_density[n](q: real[n], shared scale: real[n]) -> real { normal_lpdf(q, 0.0, scale) }
";

fn sampler(chains: usize, (warmup, draws): (usize, usize)) -> Sampler {
    let sampler = Sampler::of_source(MODEL).data("scale", SCALES.to_vec()).chains(chains).warmup(warmup).draws(draws);
    sampler.seed(4).codegen(Codegen::Off).set("pooled_warmup", true)
}

/// How far the worst of the variances of a chain is from what it should be, as a ratio.
fn worst(samples: &Samples) -> f64 {
    let of = |metric: &autobatch::Array| {
        let ratios = metric.as_real().unwrap().iter().zip(SCALES).map(|(found, scale)| found / (scale * scale));
        ratios.map(|ratio| ratio.max(1.0 / ratio)).fold(1.0, f64::max)
    };
    samples.draws().inv_metrics.iter().map(of).fold(1.0, f64::max)
}

#[test]
fn chains_learn_from_one_another() {
    let pooled = sampler(96, (150, 10)).run().expect("it runs");
    let draws = pooled.draws();
    assert_eq!(draws.chains.len(), 96);
    assert!(draws.inv_metrics.iter().all(|metric| *metric == draws.inv_metrics[0]), "all have one metric");
    assert!(draws.adapted.iter().all(|stepsize| *stepsize == draws.adapted[0]), "and one step size");
    // 75 states of each are seen in the window: pooled they leave some percent.
    let alone = sampler(96, (150, 10)).set("pooled_warmup", false).run().expect("it runs");
    assert!(worst(&pooled) < 1.15 && worst(&alone) > 2.0, "{} {}", worst(&pooled), worst(&alone));
}

#[test]
fn the_bits_are_those_of_any_engine() {
    for (metric, chains, sizes) in
        [(Metric::Diagonal, 66, (60, 5)), (Metric::Dense, 5, (60, 5)), (Metric::Unit, 3, (40, 5))]
    {
        let of = |engine: Engine, threads: usize| {
            sampler(chains, sizes)
                .metric(metric)
                .engine(engine)
                .threads(threads)
                .set("save_warmup", true)
                .run()
                .expect("it runs")
        };
        let wanted = of(Engine::Pc, 2);
        let states = |samples: &Samples| samples.draws().warmup_states.clone().expect("they are asked for");
        assert_eq!(states(&wanted).states, sizes.0);
        for engine in [Engine::Pc, Engine::Local, Engine::Scalar] {
            let found = of(engine, 1);
            assert_eq!(found.draws().parameters, wanted.draws().parameters, "{metric:?} {engine:?}");
            assert_eq!(found.draws().inv_metrics, wanted.draws().inv_metrics, "{metric:?} {engine:?}");
            assert_eq!(states(&found).parameters, states(&wanted).parameters, "{metric:?} {engine:?}");
        }
    }
}

/// What has no windows learns a step size alone, and what has no warmup, or no draws, nothing from others.
#[test]
fn short_warmups_and_none_are_runs_as_any() {
    let bare = sampler(3, (0, 5)).run().expect("it runs");
    assert_eq!(
        bare.draws().parameters,
        sampler(3, (0, 5)).set("pooled_warmup", false).run().unwrap().draws().parameters
    );
    let short = sampler(3, (15, 5)).run().expect("it runs");
    assert!(short.draws().adapted.windows(2).all(|pair| pair[0] == pair[1]));
    let end = sampler(3, (60, 5)).set("term_buffer", 0).set("init_buffer", 20).run().expect("it runs");
    assert!(end.is_complete());
    let warmup = sampler(3, (60, 0)).run().expect("it runs");
    assert!(warmup.is_complete() && warmup.draws().adapted.len() == 3);
    let stays = sampler(3, (60, 5)).stepsize(0.1).run().expect("it runs");
    assert!(stays.is_complete());
}

/// One that fails leaves the others alone.
#[test]
fn chains_that_fail_hold_nobody_up() {
    let model = "pub fn log_density(q: real[1]) -> real { if q[0] > 90.0 { 0.0 / 0.0 } else { -0.5 * q[0] * q[0] } }";
    let starts = autobatch::Array::real([5, 1], vec![0.0, 1.0, 100.0, -1.0, 0.5]);
    let run = Sampler::of_source(model).chains(5).warmup(100).draws(20).starts(starts).codegen(Codegen::Off);
    let run = run.set("pooled_warmup", true).run().expect("it runs");
    assert_eq!(run.draws().chains, [0, 1, 3, 4]);
    assert_eq!(run.failed_chains().map(|trap| trap.position).collect::<Vec<_>>(), [2]);
}

fn said(arguments: &[&str]) -> (Option<i32>, String) {
    let output = autobatch(arguments).output().expect("it starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn processes_that_fill_a_store_learn_from_one_another() {
    let folder = Folder::new("pooled");
    let model = folder.file("m.ab", MODEL);
    let (whole, tasks) = (folder.0.join("whole.zarr"), folder.0.join("tasks.zarr"));
    let tasks_name = tasks.display().to_string();
    let scale = format!("scale={SCALES:?}");
    let run = ["sample", &model, "--shared", &scale, "--chains", "66", "--warmup", "40", "--draws", "15"];
    let run = [&run[..], &["--seed", "4", "--codegen", "off", "--progress", "none", "--pooled-warmup"]].concat();
    let (code, text) = said(&[&run[..], &["--store", &whole.display().to_string()]].concat());
    assert_eq!(code, Some(0), "{text}");
    // Each goes on as far as it can; the last one of a wave goes on at once.
    let mut codes = Vec::new();
    for _ in 0..3 {
        for lanes in ["64..66", "0..64"] {
            let (code, text) = said(&[&run[..], &["--store", &tasks_name, "--lanes", lanes]].concat());
            assert_eq!(code == Some(75), text.contains("wait for what the others learn"), "{text}");
            codes.push(code.expect("it ends"));
        }
    }
    // Windows end after 36 and 40 iterations.
    assert_eq!(codes, [75, 75, 0, 0, 0, 0]);
    assert_eq!(said(&["merge", &tasks_name]).0, Some(0));
    let (found, wanted) = (Samples::open(&tasks).unwrap(), Samples::open(&whole).unwrap());
    assert_eq!(found.draws().parameters, wanted.draws().parameters);
    assert_eq!(found.draws().inv_metrics, wanted.draws().inv_metrics);
    let direct = sampler(66, (40, 15)).run().expect("it runs");
    assert_eq!(found.draws().parameters, direct.draws().parameters);
    // Those that wait go on as soon as the others have come.
    let waiting = folder.0.join("waiting.zarr").display().to_string();
    let of = |lanes: &'static str| {
        let arguments: Vec<String> = [&run[..], &["--store", &waiting, "--lanes", lanes, "--wait", "300"]]
            .concat()
            .iter()
            .map(|a| (*a).to_owned())
            .collect();
        std::thread::spawn(move || said(&arguments.iter().map(String::as_str).collect::<Vec<_>>()))
    };
    let all: Vec<_> = ["0..64", "64..66"].map(of).into_iter().map(|task| task.join().unwrap()).collect();
    assert!(all.iter().all(|(code, _)| *code == Some(0)), "{all:?}");
    assert_eq!(said(&["merge", &waiting]).0, Some(0));
    // Also one that begins where its chains wait already.
    let late = folder.0.join("late.zarr").display().to_string();
    let first = [&run[..], &["--store", &late, "--lanes", "0..64"]].concat();
    assert_eq!(said(&first).0, Some(75));
    let again = std::thread::spawn({
        let late = late.clone();
        move || said(&["resume", &late, "--lanes", "0..64", "--wait", "300", "--progress", "none"])
    });
    let other = said(&[&run[..], &["--store", &late, "--lanes", "64..66", "--wait", "300"]].concat());
    let again = again.join().unwrap();
    assert_eq!((again.0, other.0), (Some(0), Some(0)), "{} {}", again.1, other.1);
    // What went on leaves what it has learnt, and is told when that is lost.
    std::fs::remove_file(folder.0.join("late.zarr/_autobatch/learnt/36/0")).unwrap();
    std::fs::remove_file(folder.0.join("late.zarr/_autobatch/state/1")).unwrap();
    let (code, text) = said(&["resume", &late, "--lanes", "64..66"]);
    assert!(code == Some(1) && text.contains("is missing: remove") && text.contains("learnt/36/0"), "{text}");
    std::fs::remove_file(folder.0.join("late.zarr/_autobatch/state/0")).unwrap();
    assert_eq!(said(&["resume", &late]).0, Some(0));
    assert_eq!(Samples::open(&late).unwrap().draws().parameters, Samples::open(&waiting).unwrap().draws().parameters);
    assert_eq!(Samples::open(&waiting).unwrap().draws().parameters, direct.draws().parameters);
}

#[test]
fn what_has_nothing_to_learn_is_refused() {
    let own = json!([[1.0, 1.0], [2.0, 2.0]]);
    let own = NamedValues::of_data("here".to_owned(), [("scale".to_owned(), Data::Json(own))]);
    let many = Sampler::of_source(MODEL).lane_data(own).set("pooled_warmup", true);
    let said = many.chains(2).warmup(20).draws(5).run().expect_err("it is refused").to_string();
    assert!(said.contains("have nothing to learn from one another"), "{said}");
    let folder = Folder::new("pooled-refused");
    let (model, store) = (folder.file("m.ab", MODEL), folder.0.join("s.zarr"));
    let name = store.display().to_string();
    let run = ["sample", &model, "--shared", "scale=[1.0]", "--store", &name, "--lanes", "0..4", "--wait", "5"];
    let (code, text) = self::said(&run);
    assert!(code == Some(1) && text.contains("only where --pooled-warmup asks for it"), "{text}");
    assert!(!store.exists());
}
