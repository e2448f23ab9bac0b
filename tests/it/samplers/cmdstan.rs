//! Runs as people write them for CmdStan, with files of each chain: metrics, outputs; and seeds that nobody knows.

use std::path::Path;

use autobatch::program::io::read_npz;

use crate::project::cli::{Folder, error, output};

const MODEL: &str = "parameters { vector[2] x; } model { x[1] ~ normal(0, 1); x[2] ~ normal(x[1], 3); }";

fn ran(arguments: &[&str]) -> String {
    let done = output(arguments);
    let text = [&done.stdout[..], &done.stderr].map(String::from_utf8_lossy).concat();
    assert!(done.status.success(), "{arguments:?}: {text}");
    text
}

/// The bits of `x` of each chain.
fn chains(path: &str) -> Vec<Vec<u64>> {
    let arrays = read_npz(Path::new(path)).expect("the draws are there");
    let x = &arrays["x"];
    let bits: Vec<u64> = x.as_real().expect("reals").iter().map(|x| x.to_bits()).collect();
    bits.chunks(bits.len() / x.shape[0]).map(<[u64]>::to_vec).collect()
}

/// The rows of a file of Stan CSV.
fn rows(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn every_chain_has_the_metric_of_its_own_file() {
    let folder = Folder::new("metrics-of-chains");
    let model = folder.file("m.stan", MODEL);
    let own = |name: &str, metric: &str| folder.file(name, format!("{{\"inv_metric\": {metric}}}"));
    let (one, two) = (own("k_1.json", "[1, 9]"), own("k_2.json", "[0.5, 30]"));
    let both = folder.0.join("k.json").display().to_string();
    let file = folder.0.join("draws.npz").display().to_string();
    let run = |metric: &[&str]| {
        let how = ["--chains", "2", "--stepsize", "0.3", "--warmup", "0", "--draws", "10", "--seed", "3"];
        ran(&[&["sample", &model, "--output", &file], &how[..], metric].concat());
        chains(&file)
    };
    let (first, second) = (run(&["--metric-file", &one]), run(&["--metric-file", &two]));
    assert!(first[0] != second[0] && first[1] != second[1]);
    let wanted = [first[0].clone(), second[1].clone()];
    let list = format!("{one},{two}");
    for given in [&both, &list] {
        assert_eq!(run(&["--metric-file", given]), wanted, "{given}");
        // As CmdStan has it.
        let out = format!("file={file}");
        let metric = format!("metric_file={given}");
        let words = ["sample", "num_chains=2", "num_warmup=0", "num_samples=10", "adapt", "engaged=0", "algorithm=hmc"];
        let words =
            [&words[..], &["metric=diag_e", &metric, "stepsize=0.3", "random", "seed=3", "output", &out]].concat();
        ran(&[&["sample", &model], &words[1..]].concat());
        assert_eq!(chains(&file), wanted, "{given}");
    }
    let sample = ["sample", &model, "--chains", "3", "--stepsize", "0.3", "--metric-file", &list];
    assert!(error(&sample).contains("names 2 files for 3 chains: one for all, or one for each"));
    let third = own("other.json", "[1, 2, 3]");
    let list = format!("{one},{third}");
    let said = error(&["sample", &model, "--chains", "2", "--stepsize", "0.3", "--metric-file", &list]);
    assert!(said.contains("other.json has real[3], where ") && said.contains("k_1.json has real[2]"), "{said}");
}

#[test]
fn metrics_of_chains_may_be_dense() {
    let folder = Folder::new("dense-metrics");
    let model = folder.file("m.stan", MODEL);
    let one = folder.file("k_1.json", "{\"inv_metric\": [[1, 0.5], [0.5, 9]]}");
    let two = folder.file("k_2.json", "{\"inv_metric\": [[1, 0], [0, 4]]}");
    let file = folder.0.join("draws.npz").display().to_string();
    let run = |metric: &str| {
        let how = ["--chains", "2", "--stepsize", "0.3", "--warmup", "0", "--draws", "6", "--metric", "dense_e"];
        ran(&[&["sample", &model, "--output", &file, "--metric-file", metric], &how[..]].concat());
        chains(&file)
    };
    let (first, second) = (run(&one), run(&two));
    assert_eq!(run(&format!("{one},{two}")), [first[0].clone(), second[1].clone()]);
}

#[test]
fn the_files_of_a_list_are_those_of_the_chains() {
    let folder = Folder::new("outputs-of-chains");
    let model = folder.file("m.stan", MODEL);
    let path = |name: &str| folder.0.join(name);
    let sample = |file: &str| {
        let output = format!("file={file}");
        let words = ["sample", &model, "num_chains=2", "num_warmup=5", "num_samples=5", "random", "seed=4", "output"];
        ran(&[&words[..], &[&output]].concat());
    };
    let shown = |name: &str| path(name).display().to_string();
    sample(&shown("s.csv"));
    sample(&format!("{},{}", shown("a.csv"), shown("b.csv")));
    assert_eq!(rows(&path("a.csv")), rows(&path("s_1.csv")));
    assert_eq!(rows(&path("b.csv")), rows(&path("s_2.csv")));
    assert_ne!(rows(&path("a.csv")), rows(&path("b.csv")));
    let three = format!("file={},{},{}", shown("x.csv"), shown("y.csv"), shown("z.csv"));
    let said = error(&["sample", &model, "num_chains=2", "output", &three]);
    assert!(said.contains("3 files") && said.contains("2 chains"), "{said}");
    assert!(!path("x.csv").exists());
    let twice = format!("file={},{}", shown("x.csv"), shown("x.csv"));
    let said = error(&["sample", &model, "num_chains=2", "output", &twice]);
    assert!(said.contains("x.csv twice") && !path("x.csv").exists(), "{said}");
}

#[test]
fn the_seed_minus_one_is_another_one_each_time_and_told() {
    let folder = Folder::new("seeds");
    let model = folder.file("m.stan", MODEL);
    let run = |seed: &str, name: &str| {
        let output = format!("file={}", folder.0.join(name).display());
        let words = ["sample", &model, "num_chains=1", "num_warmup=0", "num_samples=3", "random", seed, "output"];
        ran(&[&words[..], &[&output]].concat());
        let text = std::fs::read_to_string(folder.0.join(name)).expect("it is written");
        let seed = text.lines().find_map(|line| line.trim_start_matches(['#', ' ']).strip_prefix("seed = "));
        (seed.expect("the seed is told").split(' ').next().expect("a number").to_owned(), rows(&folder.0.join(name)))
    };
    let (first, second) = (run("seed=-1", "a.csv"), run("seed=-1", "b.csv"));
    assert!(first.0 != second.0 && first.1 != second.1, "{} {}", first.0, second.0);
    let again = run(&format!("seed={}", first.0), "c.csv");
    assert_eq!(again, first);
    let flag = ["sample", &model, "--chains", "1", "--warmup", "0", "--draws", "2", "--seed", "-1"];
    ran(&flag);
}
