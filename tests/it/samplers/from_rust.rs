//! `autobatch::Sampler`: a posterior from Rust.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use autobatch::program::io::NamedValues;
use autobatch::program::{Engine, ErrorKind};
use autobatch::report::Advice;
use autobatch::sampler::{Draws, DrawsUnderWay, Metric, Samples};
use autobatch::types::{Array, DType};
use autobatch::{Options, Sampler, Schedule};

use crate::project::cli::{Folder, output};

const MODEL: &str = "nuts/models/eight_schools.ab";
const DATA: &str = "nuts/data/eight_schools.json";

fn eight_schools() -> Sampler {
    Sampler::of_file(MODEL).data_file(DATA).chains(6).warmup(100).draws(20).seed(7)
}

fn bits(samples: &Samples, name: &str) -> Vec<u64> {
    samples.real(name).expect("reals").iter().map(|x| x.to_bits()).collect()
}

#[test]
fn draws_are_those_of_the_command() {
    let samples = eight_schools().set("target_accept", 0.9).run().expect("it runs");
    let folder = Folder::new("from-rust");
    let file = folder.0.join("draws.npz");
    let run = ["sample", MODEL, "--data", DATA, "--chains", "6", "--warmup", "100", "--draws", "20", "--seed", "7"];
    let made = output(&[&run[..], &["--delta", "0.9", "--output", &file.display().to_string()]].concat());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let values = NamedValues::read(&file).expect("draws");
    for (name, rank) in [("theta", 3), ("mu", 2), ("tau", 2)] {
        let ty = autobatch::program::io::ArrayType { dtype: DType::Real, rank };
        let theirs = values.array(name, ty).expect("a parameter");
        let theirs: Vec<u64> = theirs.as_real().expect("reals").iter().map(|x| x.to_bits()).collect();
        assert_eq!(bits(&samples, name), theirs, "{name}");
    }
    assert_eq!(samples.real("theta").unwrap().shape(), [6, 20, 8]);
    assert_eq!(samples.statistics().int("n_leapfrog").unwrap().shape(), [6, 20]);
    assert_eq!(samples.statistics().bool("divergent").unwrap().shape(), [6, 20]);
    assert!(samples.statistics().names().eq([
        "lp",
        "accept_stat",
        "stepsize",
        "treedepth",
        "n_leapfrog",
        "divergent",
        "energy"
    ]));
    assert!(samples.parameters().names().eq(["theta_trans", "mu", "tau", "theta"]) && samples.is_complete());
    let tau = samples.row("tau").expect("a row");
    assert!(tau.mean > 0.0 && tau.rhat > 0.9 && samples.row("theta[8]").is_some() && samples.row("theta[9]").is_none());
}

#[test]
fn a_model_may_be_a_text_and_its_data_values() {
    let text = std::fs::read_to_string(MODEL).expect("the model ships");
    let y = [28, 8, -3, 7, -1, 1, 18, 12].map(i64::from).to_vec();
    let sigma = ndarray::array![15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0];
    let of_text = |sampler: Sampler| sampler.chains(6).warmup(100).draws(20).seed(7);
    let samples = of_text(Sampler::of_source(&text)).data("y", y.clone()).data("sigma", sigma.clone()).run();
    let samples = samples.expect("it runs");
    assert_eq!(bits(&samples, "theta"), bits(&eight_schools().run().expect("it runs"), "theta"));
    // A value goes before that of the file, and every engine and number of threads gives the same bits.
    let other = eight_schools().data("y", vec![0.0; 8]);
    let pc = other.clone().threads(1).run().expect("it runs");
    assert_ne!(bits(&pc, "theta"), bits(&samples, "theta"));
    let local = other.engine(Engine::Local).run().expect("it runs");
    assert_eq!(bits(&pc, "theta"), bits(&local, "theta"));
    // An int tells a dimension.
    let normal = Sampler::of_source("pub fn log_density[n](q: real[n]) -> real { -0.5 * dot(q, q) }").data("n", 3);
    let normal = normal.chains(2).warmup(20).draws(4).sampler("std/hmc.ab").run().expect("it runs");
    assert_eq!(normal.real("q").unwrap().shape(), [2, 4, 3]);
}

#[test]
fn what_is_wrong_is_an_error_of_its_kind() {
    let kind = |sampler: Sampler| {
        let error = sampler.run().expect_err("it is refused");
        (error.kind(), error.to_string())
    };
    let small = || eight_schools().warmup(5).draws(5);
    for (sampler, wanted, why) in [
        (Sampler::of_file("no/such.ab"), ErrorKind::Io, "cannot read no/such.ab"),
        (Sampler::of_source("pub fn log_density("), ErrorKind::Program, ""),
        (Sampler::of_source("pub fn f(x: real) -> real { x }"), ErrorKind::Entry, "the model: a model exports"),
        (Sampler::of_file(MODEL), ErrorKind::Input, "the model needs `y: real[J]`, `sigma: real[J]`"),
        (small().data("z", 1.0), ErrorKind::Input, "z"),
        (small().data("y", vec![true; 8]), ErrorKind::Input, "y"),
        (small().data("y", vec![1.0; 3]), ErrorKind::Input, "J"),
        (small().data_file("no/such.json"), ErrorKind::Io, "no/such.json"),
        (small().sampler("no/such.ab"), ErrorKind::Io, "no/such.ab"),
        (small().chains(0), ErrorKind::Option, "nothing to sample"),
        (small().set("target_accept", 2), ErrorKind::Option, "target_accept must lie between 0 and 1"),
        (small().set("max_depth", 2), ErrorKind::Option, "what can be set is"),
        (small().stepsize(f64::NAN), ErrorKind::Option, "the step size must be a positive number"),
        (small().starts(vec![0.0; 10]), ErrorKind::Option, "6 chains need starts"),
        (small().set("target_accept", f64::NAN), ErrorKind::Option, "target_accept must be a finite number"),
        (small().set("max_treedepth", 1.5), ErrorKind::Option, "max_treedepth must be a whole number"),
        (small().stepsize(0.0), ErrorKind::Option, "the step size must be a positive number"),
        (small().chains(usize::MAX), ErrorKind::Memory, "the largest batch that fits"),
        (small().draws(usize::MAX), ErrorKind::Memory, "not even one lane fits"),
        (small().warmup(usize::MAX), ErrorKind::Option, "more than a chain can count"),
        (
            small().options(Options::default().schedule(Schedule::CostAware { theta: f64::NAN })),
            ErrorKind::Option,
            "must be in 0..=1, not NaN",
        ),
        (
            Sampler::of_source("pub fn log_density(q: real[1]) -> real { log(-1.0 - q[0] * q[0]) }").draws(2),
            ErrorKind::Input,
            "no chain is left: chain 0: assert failed: no starting point",
        ),
    ] {
        let (kind, said) = kind(sampler);
        assert!(kind == wanted && said.contains(why), "{kind:?} {said}");
    }
    let samples = small().run().expect("it runs");
    let error = samples.real("eta").expect_err("there is none");
    assert_eq!(error.to_string(), "there is no parameter `eta`: there is `theta_trans`, `mu`, `tau`, `theta`");
    assert!(samples.statistics().real("treedepth").expect_err("ints").to_string().contains("type int, not real"));
}

#[test]
fn progress_is_told_and_a_run_can_be_cancelled() {
    let (calls, last) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let told = (Arc::clone(&calls), Arc::clone(&last));
    let samples = eight_schools().on_progress(move |progress| {
        assert_eq!(progress.all_draws, 120);
        told.0.fetch_add(1, Ordering::Relaxed);
        told.1.fetch_max(progress.draws, Ordering::Relaxed);
    });
    samples.run().expect("it runs");
    assert!(calls.load(Ordering::Relaxed) >= 100 && last.load(Ordering::Relaxed) == 120);
    // Cancelled by its own progress: some draws are there, and not all.
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    let many = eight_schools().draws(20_000).chains(2).threads(1).cancel(Arc::clone(&flag));
    let some = many.clone().on_progress(move |_| set.store(true, Ordering::Relaxed)).run().expect("some draws");
    let made = some.real("mu").unwrap().shape()[1];
    // That it should be longer is known.
    assert!(some.warnings().iter().all(|w| !matches!(w.advice, Some(Advice::Draws(_) | Advice::Longer { .. }))));
    assert!(!some.is_complete() && made > 0 && made < 20_000, "{made}");
    // The flag is still set.
    assert_eq!(many.run().expect_err("there is nothing").kind(), ErrorKind::Interrupted);
}

#[test]
fn warnings_say_what_to_set() {
    let text = "pub fn log_density(q: real[3]) -> real { -0.5 * dot(q, q) }";
    let samples =
        Sampler::of_source(text).chains(2).warmup(50).draws(40).set("max_treedepth", 1).run().expect("it runs");
    let said: Vec<String> = samples.warnings().iter().map(ToString::to_string).collect();
    assert!(said.iter().any(|w| w.ends_with("or raise max_treedepth: --set max_treedepth=3")), "{said:?}");
    let starts = Array::real([2, 3], vec![0.5; 6]);
    let still =
        Sampler::of_source(text).chains(2).warmup(0).draws(1).stepsize(1e-12).starts(starts).run().expect("runs");
    assert!(still.real("q").unwrap().iter().all(|x| (x - 0.5).abs() < 1e-9));
}

#[test]
fn stan_programs_are_sampled_as_by_the_command() {
    let (model, text) = ("nuts/models/eight_schools.stan", std::fs::read_to_string("nuts/models/eight_schools.stan"));
    let folder = Folder::new("stan-from-rust");
    let file = folder.0.join("draws.npz");
    let run = ["sample", model, "--data", DATA, "--chains", "6", "--warmup", "100", "--draws", "20", "--seed", "7"];
    assert!(
        output(&[&run[..], &["--metric", "dense_e", "--output", &file.display().to_string()]].concat())
            .status
            .success()
    );
    let values = NamedValues::read(&file).expect("draws");
    let theirs =
        values.array("theta", autobatch::program::io::ArrayType { dtype: DType::Real, rank: 3 }).expect("theta");
    let theirs: Vec<u64> = theirs.as_real().expect("reals").iter().map(|x| x.to_bits()).collect();
    for sampler in [Sampler::of_file(model), Sampler::of_stan_source(text.expect("it is there"))] {
        let sampler = sampler.data_file(DATA).chains(6).warmup(100).draws(20).seed(7).metric(Metric::Dense);
        assert_eq!(bits(&sampler.run().expect("it runs"), "theta"), theirs);
    }
}

#[test]
fn chains_that_wait_make_no_draws() {
    let (pause, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (told, first) = std::sync::mpsc::channel();
    let waits = Arc::clone(&pause);
    // It is told of the first draw by the thread of the chain, which then waits.
    let sampler = eight_schools().chains(1).draws(100).pause(pause).cancel(Arc::clone(&stop)).on_progress(move |now| {
        if now.draws == 1 && !waits.swap(true, Ordering::Relaxed) {
            told.send(()).expect("somebody hears");
        }
    });
    let run = std::thread::spawn(move || sampler.run());
    first.recv().expect("it is told");
    stop.store(true, Ordering::Relaxed);
    let samples = run.join().expect("no panic").expect("it runs");
    assert_eq!((samples.draws().draws, samples.is_complete()), (1, false));
}

#[test]
fn a_run_in_a_store_goes_on() {
    let folder = Folder::new("rust-store");
    let path = folder.0.join("run.zarr");
    let sampler = || {
        let program = "parameters { real mu; } model { mu ~ normal(1, 2); }
            generated quantities { int k = bernoulli_rng(0.5); }";
        Sampler::of_stan_source(program).chains(2).warmup(30).draws(20).seed(3)
    };
    let same = |found: &Samples, wanted: &Samples| {
        assert_eq!(found.real("mu").unwrap(), wanted.real("mu").unwrap());
        assert_eq!(found.parameters().int("k").unwrap(), wanted.parameters().int("k").unwrap());
        assert_eq!(found.statistics().real("energy").unwrap(), wanted.statistics().real("energy").unwrap());
        assert!(found.is_complete());
    };
    same(&sampler().store(&path).run().unwrap(), &sampler().run().unwrap());
    same(&Samples::open(&path).unwrap(), &sampler().run().unwrap());
    same(&Sampler::of_store(&path).more_draws(10).threads(1).run().unwrap(), &sampler().draws(30).run().unwrap());
    let said = sampler().store(&path).run().unwrap_err();
    assert!(said.to_string().contains("is there already"), "{said}");
}

/// A text of the language with a random quantity of each draw, so that draws have streams of their own.
const WITH_NOISE: &str = "
    pub fn log_density(q: real[2]) -> real { -0.5 * dot(q, q) }
    pub struct Parameters { x: real[2], noise: real }
    pub fn parameters(q: real[2]) -> Parameters { Parameters { x: q, noise: normal_rng(q[0], 1.0) } }";

#[test]
fn draws_under_way_are_the_first_of_those_at_the_end() {
    let folder = Folder::new("under-way");
    let plain = || Sampler::of_source(WITH_NOISE).chains(3).warmup(200).draws(3000).seed(3);
    for sampler in [plain(), plain().set("save_warmup", true), plain().store(folder.0.join("run.zarr"))] {
        let draws = DrawsUnderWay::new();
        assert!(draws.now().expect("nobody has any").is_none());
        let (pause, looked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (holds, enough) = (Arc::clone(&pause), Arc::clone(&looked));
        // The chains wait from time to time until somebody has looked, until each of them had draws then: nothing says that
        // chains go on together. So many draws are more than a store keeps in memory.
        let sampler = sampler.draws_under_way(&draws).pause(Arc::clone(&pause)).on_progress(move |_| {
            if !enough.load(Ordering::Relaxed) {
                holds.store(true, Ordering::Relaxed);
            }
        });
        let (seen, samples) = std::thread::scope(|scope| {
            let run = scope.spawn(|| sampler.run());
            let mut seen: Vec<Draws> = vec![];
            while !run.is_finished() {
                let waits = pause.load(Ordering::Relaxed);
                let now = draws.now().expect("they can be had");
                looked.fetch_or(now.as_ref().is_some_and(|now| now.draws > 0), Ordering::Relaxed);
                seen.extend(now.filter(|now| seen.last().is_none_or(|last| last.draws < now.draws)));
                if waits {
                    pause.store(false, Ordering::Relaxed);
                }
            }
            (seen, run.join().expect("nothing panics").expect("it runs"))
        });
        assert!(samples.is_complete() && draws.now().expect("nobody has any").is_none());
        assert!(seen.iter().any(|seen| (1..3000).contains(&seen.draws)), "somebody looked while it went on");
        let whole = samples.draws();
        for early in seen {
            assert_eq!((early.chains, early.asked), (vec![0, 1, 2], 3000));
            let parts = [(&early.parameters, &whole.parameters), (&early.statistics, &whole.statistics)];
            for (name, part, whole) in
                parts.iter().flat_map(|(e, w)| e.iter().map(|(name, part)| (name, part, &w[name])))
            {
                assert_eq!((part.shape[1], &part.shape[2..]), (early.draws, &whole.shape[2..]), "{name}");
                let each = |of: &Array| of.shape[2..].iter().product::<usize>();
                for chain in 0..3 {
                    let row = |of: &Array| {
                        let start = chain * of.shape[1] * each(of);
                        (start..start + early.draws * each(of)).map(|i| of.get(i)).collect::<Vec<_>>()
                    };
                    assert_eq!(row(part), row(whole), "{name} of chain {chain}");
                }
            }
        }
    }
}
