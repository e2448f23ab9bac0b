//! The files of Stan CSV that `sample` writes.

use std::path::Path;
use std::process::Command;

use autobatch::report::{StanSummary, StoredChains};
use serde_json::Value;

use crate::project::cli::{Folder, error, output};

/// Parameters of every kind: a matrix, whose columns come first, an int and a bool.
const MODEL: &str = "
pub struct P { mu: real, m: real[2, 3], n: int, big: bool }
pub fn log_density(q: real[2]) -> real { -0.5 * dot(q, q) }
pub fn parameters(q: real[2]) -> P {
    P { mu: q[0], m: [10.0 * (i + 1) + (j + 1) + 0.0 * q[0] for i in 0..2, j in 0..3], n: 7, big: q[0] > 0.0 }
}
";

struct File {
    comments: Vec<String>,
    header: String,
    /// Rows before the comments on adaptation, and after them.
    warmup: Vec<Vec<f64>>,
    draws: Vec<Vec<f64>>,
}

fn read(path: &Path) -> File {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let comments = text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect();
    let (before, after) = text.split_once("# Adaptation terminated").expect("adaptation is told");
    let rows = |text: &str| -> Vec<Vec<f64>> {
        let lines = text.lines().filter(|l| l.starts_with(|c: char| c == '-' || c.is_ascii_digit()));
        lines.map(|line| line.split(',').map(|x| x.parse().expect("a number")).collect()).collect()
    };
    let header = before.lines().find(|line| line.starts_with("lp__")).expect("names of columns").to_owned();
    File { comments, header, warmup: rows(before), draws: rows(after) }
}

fn sampled(folder: &Folder, flags: &[&str]) {
    let model = folder.file("model.ab", MODEL);
    let output = output(&[&["sample", &model, "--warmup", "150", "--draws", "20", "--seed", "5"][..], flags].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const NAMES: &str = "lp__,accept_stat__,stepsize__,treedepth__,n_leapfrog__,divergent__,energy__,\
                     mu,m.1.1,m.2.1,m.1.2,m.2.2,m.1.3,m.2.3,n,big";

#[test]
fn a_file_for_each_chain_has_cmdstans_structure() {
    let folder = Folder::new("stan-csv");
    let base = folder.0.join("draws.csv").display().to_string();
    let arrays = folder.0.join("draws.json").display().to_string();
    sampled(
        &folder,
        &["--chains", "2", "--id", "3", "--output", &base, "--sig-figs", "17", "--save-warmup", "--thin", "2"],
    );
    sampled(&folder, &["--chains", "4", "--output", &arrays, "--set", "save_warmup=true", "--thin", "2"]);
    let arrays: Value = serde_json::from_str(&std::fs::read_to_string(&arrays).unwrap()).unwrap();
    for chain in [3, 4] {
        let file = read(&folder.0.join(format!("draws_{chain}.csv")));
        assert_eq!(file.header, NAMES);
        assert_eq!((file.warmup.len(), file.draws.len()), (75, 10));
        for row in &file.draws {
            assert_eq!(row.len(), 16);
            assert_eq!(row[8..15], [11.0, 21.0, 12.0, 22.0, 13.0, 23.0, 7.0]);
            assert_eq!(row[15], f64::from(u8::from(row[7] > 0.0)));
        }
        // The chain with this number, to the last bit.
        for (rows, key) in [(&file.draws, "mu"), (&file.warmup, "warmup.mu")] {
            let wanted = arrays[key][chain - 1].as_array().unwrap();
            assert!(rows.iter().zip(wanted).all(|(row, x)| row[7] == x.as_f64().unwrap()), "{key} of chain {chain}");
        }
        let has = |line: &str| assert!(file.comments.iter().any(|c| c == line), "{line}: {:#?}", file.comments);
        for line in [
            "# model = model_model",
            "# method = sample (Default)",
            "#     num_samples = 20",
            "#     num_warmup = 150",
            "#     save_warmup = true",
            "#     thin = 2",
            "#       engaged = true (Default)",
            "#       delta = 0.8 (Default)",
            "#     algorithm = hmc (Default)",
            "#         engine = nuts (Default)",
            "#             max_depth = 10 (Default)",
            "#         metric = diag_e (Default)",
            "#   seed = 5",
            "# Diagonal elements of inverse mass matrix:",
        ] {
            has(line);
        }
        has(&format!("# id = {chain}"));
        let at = file.comments.iter().position(|c| c.starts_with("# Step size = ")).expect("the step size");
        let metric: Vec<f64> = file.comments[at + 2][2..].split(", ").map(|x| x.parse().unwrap()).collect();
        assert!(metric.len() == 2 && metric.iter().all(|v| *v > 0.0));
        assert!(file.comments.iter().any(|c| c.starts_with("#  Elapsed Time: ") && c.ends_with(" seconds (Warm-up)")));
    }
}

#[test]
fn one_chain_keeps_the_name_and_metrics_have_their_lines() {
    let folder = Folder::new("stan-csv-one");
    let path = folder.0.join("one.csv");
    let name = path.display().to_string();
    for (metric, line, rows) in [
        ("unit_e", "# No free parameters for unit metric", 0),
        ("diag_e", "# Diagonal elements of inverse mass matrix:", 1),
        ("dense_e", "# Elements of inverse mass matrix:", 2),
    ] {
        sampled(&folder, &["--chains", "1", "--output", &name, "--metric", metric]);
        let file = read(&path);
        let at = file.comments.iter().position(|c| c == line).expect(line);
        let end = file.comments.iter().position(|c| c == "# ").expect("the end of the draws");
        assert_eq!(end - at - 1, rows, "{metric}: {:#?}", file.comments);
        assert_eq!((file.warmup.len(), file.draws.len()), (0, 20));
    }
    // Nothing was adapted, and so nothing is told of it.
    sampled(&folder, &["--chains", "1", "--output", &name, "--algorithm", "fixed_param"]);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("algorithm = fixed_param") && !text.contains("Adaptation"), "{text}");
    assert!(
        error(&["sample", "nuts/models/standard_normal.ab", "--chains", "20000", "--output", &name])
            .contains("20000 chains")
    );
}

/// CmdStan's own spelling of the same run gives the same file but for its name.
#[test]
fn cmdstans_spelling_is_the_same_run() {
    let folder = Folder::new("cmdstan");
    let model = folder.file("model.ab", MODEL);
    let (ours, theirs) = (folder.0.join("ours.csv"), folder.0.join("theirs.csv"));
    let of_ours = format!("--output={}", ours.display());
    let of_theirs = format!("file={}", theirs.display());
    let ran = |arguments: &[&str]| {
        let output = output(&[&["sample", &model][..], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    ran(&["--chains=1", "--warmup=30", "--draws=10", "--delta=0.9", "--seed=3", "--initial-stepsize=0.5", &of_ours]);
    let spelled = "sample num_chains=1 num_warmup=30 num_samples=10 adapt delta=0.9 algorithm=hmc stepsize=0.5 random seed=3 output";
    ran(&[&spelled.split(' ').collect::<Vec<_>>()[..], &[&of_theirs]].concat());
    let (ours, theirs) = (read(&ours), read(&theirs));
    assert_eq!(ours.draws, theirs.draws);
    let said = String::from_utf8(output(&["sample", &model, "num_sample=10"]).stderr).unwrap();
    assert!(said.contains("CmdStan's `sample` has no argument `num_sample`"), "{said}");
}

/// What `summary` and `diagnose` print of the files.
fn reported(command: &str, folder: &Folder, names: &[&str]) -> String {
    let files: Vec<String> = names.iter().map(|name| folder.0.join(name).display().to_string()).collect();
    let arguments: Vec<&str> = std::iter::once(command).chain(files.iter().map(String::as_str)).collect();
    let output = output(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Two chains of eight draws whose figures are known by hand: 1 to 16, two divergent transitions, one tree of full depth.
#[test]
fn files_of_cmdstans_are_summarised_and_diagnosed() {
    let folder = Folder::new("stan-files");
    let text = |chain: usize| {
        let rows: Vec<String> = (0..8)
            .map(|draw| {
                let x = chain * 8 + draw + 1;
                let (depth, divergent) = (if x == 3 { 5 } else { 2 }, u8::from(x == 7 || x == 12));
                format!("-{x},0.9,0.5,{depth},7,{divergent},{x}.5,{x},{},{}\n", 10 * x, 2 * x)
            })
            .collect();
        format!(
            "# model = m_model\n# method = sample (Default)\n#     num_warmup = 100\n#     thin = 1 (Default)\n\
             #       delta = 0.8 (Default)\n#     algorithm = hmc (Default)\n#         engine = nuts (Default)\n\
             #             max_depth = 5\n\
             lp__,accept_stat__,stepsize__,treedepth__,n_leapfrog__,divergent__,energy__,mu,m.1.2,m.1.1\n\
             # Adaptation terminated\n# Step size = 0.5\n# Diagonal elements of inverse mass matrix:\n# 1, 1, 1\n{}\
             # \n#  Elapsed Time: 0.5 seconds (Warm-up)\n#                2 seconds (Sampling)\n# \n",
            rows.concat()
        )
    };
    folder.file("a_1.csv", text(0));
    folder.file("a_2.csv", text(1));
    let table = reported("summary", &folder, &["a_1.csv", "a_2.csv"]);
    let row = |name: &str| -> Vec<String> {
        let line = table.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.unwrap_or_else(|| panic!("{name}: {table}")).split_whitespace().map(str::to_owned).collect()
    };
    let headings = "Mean MCSE StdDev MAD 5% 50% 95% ESS_bulk ESS_tail ESS_bulk/s R_hat";
    let found = table.lines().find(|line| line.contains("StdDev")).expect("headings");
    assert_eq!(found.split_whitespace().collect::<Vec<_>>().join(" "), headings);
    // The mean of 1 to 16 is 8.5, the standard deviation √(68/3), the median distance from 8.5 is 4.
    let mu = row("mu");
    assert_eq!((&mu[1], &mu[3], &mu[4], &mu[6]), (&"8.5".into(), &"4.761".into(), &"5.93".into(), &"8.5".into()));
    assert_eq!((&row("m[1,1]")[1], &row("m[1,2]")[1]), (&"17".to_owned(), &"85".to_owned()));
    assert!(table.find("m[1,1]") < table.find("m[1,2]"), "{table}");
    assert!(table.contains("Sampling took (2, 2) seconds, 4 seconds total"), "{table}");
    let checks = reported("diagnose", &folder, &["a_1.csv", "a_2.csv"]);
    for line in [
        "LOOK  tree depth: 1 of 16 transitions reached the largest tree depth, 5",
        "--set max_treedepth=7",
        "LOOK  divergent transitions: 2 of 16 transitions were divergent",
        "--set target_accept=0.9",
        "-     E-BFMI: too few draws",
        "LOOK  effective sample sizes",
        "LOOK  R-hat",
    ] {
        assert!(checks.contains(line), "{line}: {checks}");
    }
    let alone = folder.file("b.csv", text(0).replace("mu,", "nu,"));
    let a = folder.0.join("a_1.csv").display().to_string();
    assert!(
        error(&["summary", &a, &alone]).contains("not a chain of the same run: `nu` where the first file has `mu`")
    );
    assert!(error(&["diagnose", "no.csv"]).contains("cannot read no.csv"));
}

/// Our own files say the same as the run itself.
#[test]
fn our_files_are_summarised_as_the_run_was() {
    let folder = Folder::new("own-files");
    let base = folder.0.join("o.csv").display().to_string();
    sampled(&folder, &["--chains", "2", "--output", &base, "--save-warmup"]);
    let table = reported("summary", &folder, &["o_1.csv", "o_2.csv"]);
    assert!(table.contains("2 chains: each with 20 draws; warmup=150; thin=1; 40 draws saved."), "{table}");
    assert!(["m[1,1]", "m[2,3]", "big", "energy__"].iter().all(|name| table.contains(name)), "{table}");
    // The chains' files are found by the name that was given, and a file of arrays has the same draws.
    assert_eq!(reported("summary", &folder, &["o.csv"]), table);
    let arrays = folder.0.join("o.npz").display().to_string();
    sampled(&folder, &["--chains", "2", "--output", &arrays]);
    let line = |table: &str| table.lines().find(|line| line.starts_with("divergent__")).expect("a line").to_owned();
    assert_eq!(line(&reported("summary", &folder, &["o.npz"])), line(&table));
    assert!(reported("diagnose", &folder, &["o.npz"]).contains("ok    divergent transitions"));
    let checks = reported("diagnose", &folder, &["o_1.csv", "o_2.csv"]);
    assert!(checks.contains("ok    tree depth") && checks.contains("LOOK  effective sample sizes"), "{checks}");
}

/// What other programs make of the files; CONTRIBUTING.md says how to install them.
#[test]
fn other_readers_find_what_is_in_the_files() {
    let Ok(python) = std::env::var("AUTOBATCH_PYTHON") else {
        eprintln!("skipped: AUTOBATCH_PYTHON names no Python with cmdstanpy and arviz");
        return;
    };
    let folder = Folder::new("readers");
    let base = folder.0.join("draws.csv").display().to_string();
    for metric in ["unit_e", "diag_e", "dense_e"] {
        sampled(&folder, &["--chains", "2", "--output", &base, "--metric", metric, "--save-warmup"]);
        let script = "
import sys, cmdstanpy, arviz, numpy
files, metric = sys.argv[1:3], sys.argv[3]
fit = cmdstanpy.from_csv(files)
assert (fit.chains, fit.num_draws_warmup, fit.num_draws_sampling) == (2, 150, 20)
m = fit.stan_variable('m')
assert m.shape == (40, 2, 3) and (m == [[11, 12, 13], [21, 22, 23]]).all()
assert fit.metric_type == metric and fit.step_size.shape == (2,)
assert fit.inv_metric is None if metric == 'unit_e' else fit.inv_metric.shape == ((2, 2) if metric == 'diag_e' else (2, 2, 2))
# ArviZ 1 has no reader of files alone.
read = getattr(arviz, 'from_cmdstan', None)
data = read(files, save_warmup=True) if read else arviz.from_cmdstanpy(fit, save_warmup=True)
assert (data.posterior['m'].values == [[11, 12, 13], [21, 22, 23]]).all()
assert numpy.array_equal(data.posterior['mu'].values.ravel(), fit.stan_variable('mu'))
assert data.warmup_posterior['mu'].shape == (2, 150)
assert data.sample_stats['diverging'].shape == (2, 20 if read else 170)
";
        let files = [1, 2].map(|chain| folder.0.join(format!("draws_{chain}.csv")));
        let output = Command::new(&python).arg("-c").arg(script).args(&files).arg(metric).output().expect("it starts");
        assert!(output.status.success(), "{metric}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let fixed = folder.0.join("fixed.csv").display().to_string();
    sampled(&folder, &["--chains", "1", "--output", &fixed, "--algorithm", "fixed_param"]);
    let model = folder.file("own.stan", "parameters { real x; } model { x ~ normal(1, 2); }");
    let files = ["mode.csv", "laplace.csv"].map(|name| folder.0.join(name).display().to_string());
    for jacobian in ["1", "0"] {
        let found = output(&["optimize", &model, "--output", &files[0], "--sig-figs", "17", "--jacobian", jacobian]);
        assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
        let flags = ["--mode", &files[0], "--output", &files[1], "--jacobian", jacobian];
        let found = output(&[&["laplace", &model][..], &flags].concat());
        assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
        let script = "
import sys, cmdstanpy
fixed, mode, laplace = (cmdstanpy.from_csv(file) for file in sys.argv[1:])
assert fixed.num_draws_sampling == 20
assert abs(mode.optimized_params_dict['x'] - 1) < 1e-6
assert laplace.stan_variable('x').shape == (1000,) and abs(laplace.stan_variable('x').std() - 2) < 0.2
";
        let output = Command::new(&python).arg("-c").arg(script).arg(&fixed).args(&files).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_summary_of_many_chains_tells_their_seconds_together() {
    let text = "# method = sample (Default)\nlp__,stepsize__,x\n# Adaptation terminated\n# Step size = 0.5\n\
        -1,0.5,1\n-2,0.5,2\n-1.5,0.5,1.5\n-1,0.5,1\n#  Elapsed Time: SECONDS seconds (Warm-up)\n\
        #                1 seconds (Sampling)\n";
    let texts: Vec<String> = (0..20).map(|chain| text.replace("SECONDS", &(chain % 2 + 1).to_string())).collect();
    let texts: Vec<String> =
        texts.iter().enumerate().map(|(c, t)| t.replace("0.5,", &format!("0.{},", c + 11))).collect();
    let chains = StoredChains::of_csv(texts.iter().map(|text| ("a.csv", text.as_str()))).expect("they are right");
    let shown = StanSummary::of(&chains, 3, &[5.0, 50.0, 95.0]).to_string();
    assert!(shown.contains("Warmup took (mean 1.5, sd 0.51, at most 2) seconds"), "{shown}");
    assert!(shown.contains("Sampling took (mean 1, sd 0, at most 1) seconds"), "{shown}");
    let stepsize = shown.lines().find(|line| line.starts_with("stepsize__")).expect("a row");
    assert!(stepsize.trim_end().ends_with('-') && !shown.contains("inf"), "{shown}");
}
