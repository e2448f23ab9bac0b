//! CmdStan's spellings of arguments: `sample num_samples=500 adapt delta=0.9 data file=d.json output file=o.csv`. They are
//! the flags with the same names; what autobatch has not is an error that says so.

use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

/// What CmdStan calls a method whose arguments a command takes.
struct Method {
    /// The command, as it may be spelt.
    commands: &'static [&'static str],
    /// CmdStan's word for it.
    name: &'static str,
    /// Words that only group what follows them.
    groups: &'static [&'static str],
    /// CmdStan's name, ours: beside those that all have.
    flags: &'static [(&'static str, &'static str)],
    /// Whether it looks for modes.
    searches: bool,
}

/// Those of methods that look for modes.
const SEARCH: &[(&str, &str)] = &[
    ("init", "--init"),
    ("init_alpha", "--init-alpha"),
    ("tol_obj", "--tol-obj"),
    ("tol_rel_obj", "--tol-rel-obj"),
    ("tol_grad", "--tol-grad"),
    ("tol_rel_grad", "--tol-rel-grad"),
    ("tol_param", "--tol-param"),
    ("history_size", "--history-size"),
];
/// The methods.
const METHODS: [Method; 8] = [
    Method {
        commands: &["sample"],
        name: "sample",
        groups: &["adapt", "hmc", "nuts", "static", "fixed_param"],
        flags: &[
            ("num_samples", "--num-samples"),
            ("num_warmup", "--num-warmup"),
            ("num_chains", "--num-chains"),
            ("save_warmup", "--save-warmup"),
            ("thin", "--thin"),
            ("engaged", "--adapt-engaged"),
            ("gamma", "--gamma"),
            ("delta", "--delta"),
            ("kappa", "--kappa"),
            ("t0", "--t0"),
            ("init_buffer", "--init-buffer"),
            ("term_buffer", "--term-buffer"),
            ("window", "--window"),
            ("max_depth", "--max-depth"),
            ("int_time", "--int-time"),
            ("metric", "--metric"),
            ("metric_file", "--metric-file"),
            ("stepsize", "--initial-stepsize"),
            ("stepsize_jitter", "--stepsize-jitter"),
            ("init", "--init"),
            ("refresh", "--refresh"),
            ("save_metric", "--save-metric"),
        ],
        searches: false,
    },
    Method {
        commands: &["optimize"],
        name: "optimize",
        groups: &["lbfgs", "bfgs", "newton"],
        flags: &[("algorithm", "--algorithm"), ("jacobian", "--jacobian"), ("iter", "--iter")],
        searches: true,
    },
    Method {
        commands: &["laplace"],
        name: "laplace",
        groups: &[],
        flags: &[("mode", "--mode"), ("jacobian", "--jacobian"), ("draws", "--draws"), ("init", "--init")],
        searches: false,
    },
    Method {
        commands: &["pathfinder"],
        name: "pathfinder",
        groups: &[],
        flags: &[
            ("num_psis_draws", "--num-psis-draws"),
            ("num_paths", "--num-paths"),
            ("psis_resample", "--psis-resample"),
            ("max_lbfgs_iters", "--max-lbfgs-iters"),
            ("num_draws", "--num-draws"),
            ("num_elbo_draws", "--num-elbo-draws"),
        ],
        searches: true,
    },
    Method {
        commands: &["generate-quantities", "generate_quantities"],
        name: "generate_quantities",
        groups: &[],
        flags: &[("fitted_params", "--draws"), ("num_chains", "--num-chains")],
        searches: false,
    },
    Method {
        commands: &["log-prob", "log_prob"],
        name: "log_prob",
        groups: &[],
        flags: &[
            ("unconstrained_params", "--points"),
            ("constrained_params", "--constrained"),
            ("jacobian", "--jacobian"),
        ],
        searches: false,
    },
    Method {
        commands: &["diagnose"],
        name: "diagnose",
        groups: &["gradient"],
        flags: &[("epsilon", "--epsilon"), ("error", "--error"), ("init", "--init")],
        searches: false,
    },
    Method { commands: &["translate"], name: "translate", groups: &[], flags: &[], searches: false },
];
/// Flags of these commands that take no value, so that what follows is looked at.
const ALONE: [&str; 5] = ["--list-settings", "--diagnose", "--stats", "--time-passes", "--help"];

/// Words that group in every method.
const GROUPS: [&str; 3] = ["data", "random", "output"];
/// CmdStan's name, ours, in every method.
const FLAGS: [(&str, &str); 4] =
    [("id", "--id"), ("seed", "--seed"), ("sig_figs", "--sig-figs"), ("num_threads", "--threads")];
/// What autobatch does anyway, or what asks for nothing: CmdStan's default as a rule.
const NOTHING: [(&str, &[&str]); 8] = [
    ("calculate_lp", &["1", "true"]),
    ("save_iterations", &["0", "false"]),
    ("save_single_paths", &["0", "false"]),
    ("save_cmdstan_config", &["0", "false", "1", "true"]),
    ("save_metric", &["0", "false"]),
    ("show_messages", &["0", "false", "1", "true"]),
    ("diagnostic_file", &[""]),
    ("profile_file", &["profile.csv", ""]),
];
/// What CmdStan has and autobatch has not, with what to do.
const LACKING: [(&str, &str); 9] = [
    ("save_cmdstan_config", "the configuration is in the comments of the CSV files"),
    ("diagnostic_file", "`autobatch log-prob` gives gradients at points"),
    ("profile_file", "--profile FILE.json says where the time went"),
    ("show_messages", "what is rejected is in the summary"),
    ("opencl", "there is no OpenCL here"),
    ("refresh", "this is over too soon to be watched"),
    ("save_iterations", "the report says how many iterations each start took"),
    ("save_single_paths", "psis_resample=0 gives the draws of all paths, with the path of each"),
    ("calculate_lp", "the log density of each draw is always there"),
];

/// Methods that write no file.
const PRINTS: [&str; 2] = ["log_prob", "diagnose"];

static SEED: OnceLock<u32> = OnceLock::new();

const VARIATIONAL: &str = "variational: autobatch has no ADVI; `autobatch pathfinder` and `autobatch laplace` draw from \
                           normal approximations";

/// The command line with our flags in the place of CmdStan's arguments; or what is wrong with them.
///
/// # Errors
/// For arguments of CmdStan's that mean nothing here.
pub(super) fn translated(command: impl Iterator<Item = OsString>) -> Result<Vec<OsString>, String> {
    let all = with_command_first(command.collect())?;
    let command = all.get(1).and_then(|arg| arg.to_str());
    if command == Some("variational") {
        return Err(VARIATIONAL.to_owned());
    }
    let all = with_help(with_seed(all));
    let command = all.get(1).and_then(|arg| arg.to_str());
    let Some(method) = METHODS.iter().find(|m| command.is_some_and(|command| m.commands.contains(&command))) else {
        return Ok(all);
    };
    let mut made: Vec<OsString> = all[..2].to_vec();
    // The group of `file`: `data` or `output`.
    let mut group = String::new();
    let mut is_value = false;
    for (i, arg) in all[2..].iter().enumerate() {
        // A flag is no value of the one before it, which may do without.
        let Some(text) = arg.to_str().filter(|text| !is_value || text.starts_with("--")) else {
            made.push(arg.clone());
            is_value = false;
            continue;
        };
        if text == "--" {
            made.extend(all[2 + i..].iter().cloned());
            break;
        }
        if text.starts_with('-') {
            is_value = text.starts_with("--") && !text.contains('=') && !ALONE.contains(&text);
            made.push(arg.clone());
        } else if let Some((key, value)) = text.split_once('=') {
            match (key, value) {
                ("engine", "static") | ("algorithm", "fixed_param") if method.name == "sample" => {
                    made.push(format!("--algorithm={value}").into());
                }
                ("fitted_params", files) => {
                    made.extend(files.split(',').map(|file| format!("--draws={file}").into()));
                }
                ("test", "gradient") if method.name == "diagnose" => value.clone_into(&mut group),
                ("refresh", _) if method.name != "sample" => {}
                _ if NOTHING.iter().any(|(name, values)| *name == key && values.contains(&value)) => {}
                _ => match flag(method, key, value, &group)? {
                    Some(flag) => made.push(format!("{flag}={value}").into()),
                    None => value.clone_into(&mut group),
                },
            }
        } else if made.len() > 2 && (text == method.name || GROUPS.contains(&text) || method.groups.contains(&text)) {
            text.clone_into(&mut group);
        } else {
            made.push(arg.clone());
        }
    }
    Ok(made)
}

/// The command line that asks for the seed -1, as CmdStan's default is written, with one that nobody knows.
fn with_seed(all: Vec<OsString>) -> Vec<OsString> {
    let mut before = false;
    let given = |arg: OsString| {
        let text = arg.to_str().unwrap_or_default();
        let is_value = std::mem::replace(&mut before, text == "--seed");
        match text {
            "seed=-1" | "--seed=-1" => format!("--seed={}", random_seed()).into(),
            "-1" if is_value => random_seed().to_string().into(),
            _ => arg,
        }
    };
    all.into_iter().map(given).collect()
}

/// CmdStan's words for help: `sample help-all`.
fn with_help(all: Vec<OsString>) -> Vec<OsString> {
    let is_help = |arg: &OsString| arg == "help" || arg == "help-all";
    let named = |m: &Method| all.get(1).is_some_and(|command| m.commands.iter().any(|name| command == name));
    match all.iter().skip(2).any(is_help) && METHODS.iter().any(named) {
        true => vec![all[0].clone(), all[1].clone(), "--help".into()],
        false if all.get(1).is_some_and(|arg| arg == "help-all") => vec![all[0].clone(), "--help".into()],
        false => all,
    }
}

/// The seed of a run that asks for any: the same each time that it is asked for.
fn random_seed() -> u32 {
    *SEED.get_or_init(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let mixed = (now.as_nanos() as u64 ^ u64::from(std::process::id())).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 33) as u32
    })
}

/// `model.stan sample …` as `sample model.stan …`: in CmdStan the model is the program that is run.
fn with_command_first(mut all: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let is_program = |arg: &OsString| Path::new(arg).extension().is_some_and(|e| e == "stan" || e == "ab");
    if !all.get(1).is_some_and(is_program) {
        return Ok(all);
    }
    let command = all.get(2).and_then(|arg| arg.to_str()).unwrap_or_default();
    let command = command.strip_prefix("method=").unwrap_or(command).to_owned();
    if command == "variational" || METHODS.iter().any(|method| method.commands.contains(&&*command)) {
        all[2] = command.into();
        all.swap(1, 2);
        return Ok(all);
    }
    let program = all[1].display();
    Err(format!("the command comes first: `autobatch sample {program}`, say; `autobatch --help` lists all"))
}

/// The seed that was drawn, if one was.
pub(super) fn drawn_seed() -> Option<u32> {
    SEED.get().copied()
}

/// Our flag for `key=value`; none for one that only groups what follows it.
fn flag(method: &Method, key: &str, value: &str, group: &str) -> Result<Option<String>, String> {
    let of_search = if method.searches { SEARCH } else { &[] };
    if let Some((_, ours)) = method.flags.iter().chain(of_search).chain(&FLAGS).find(|(name, _)| *name == key) {
        return Ok(Some((*ours).to_owned()));
    }
    match (key, value) {
        ("method", name) if name == method.name => return Ok(None),
        ("algorithm", "hmc") | ("engine", "nuts") if method.name == "sample" => return Ok(None),
        ("method", "variational") => return Err(VARIATIONAL.to_owned()),
        ("method", other) => return Err(format!("method={other}: this is the command for `{}`", method.name)),
        ("file", _) if group == "data" => return Ok(Some("--data".to_owned())),
        ("file", _) if group == "output" && PRINTS.contains(&method.name) => {
            let command = method.commands[0];
            return Err(format!("output file={value}: `{command}` prints what it finds; `> {value}` keeps it"));
        }
        ("file", _) if group == "output" => return Ok(Some("--output".to_owned())),
        ("file", _) => return Err(format!("file={value}: of what? Write `data file=…` or `output file=…`")),
        _ => {}
    }
    if let Some((_, instead)) = LACKING.iter().find(|(name, _)| *name == key) {
        return Err(format!("{key}: autobatch has no such argument; {instead}"));
    }
    match (key, value) {
        ("algorithm" | "engine", _) if method.name == "sample" => {
            Err(format!("{key}={value}: there is nuts, static and fixed_param"))
        }
        _ => Err(format!("`{key}={value}`: CmdStan's `{}` has no argument `{key}`", method.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(command: &str) -> Result<String, String> {
        let made = translated(command.split(' ').map(OsString::from))?;
        Ok(made.iter().map(|arg| arg.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn what_writes_no_file_says_so() {
        for command in ["log_prob m.stan unconstrained_params=u.json", "diagnose m.stan test=gradient"] {
            let said = told(&format!("autobatch {command} output file=lp.csv")).unwrap_err();
            assert!(said.ends_with("prints what it finds; `> lp.csv` keeps it"), "{said}");
        }
    }

    #[test]
    fn the_model_may_come_first_as_in_cmdstan() {
        assert_eq!(
            told("autobatch m.stan sample num_samples=5 data file=d.json").unwrap(),
            "autobatch sample m.stan --num-samples=5 --data=d.json"
        );
        assert_eq!(told("autobatch m.ab pathfinder").unwrap(), "autobatch pathfinder m.ab");
        assert_eq!(told("autobatch m.stan method=optimize").unwrap(), "autobatch optimize m.stan");
        for wrong in ["autobatch dir/m.stan", "autobatch dir/m.stan --seed 1"] {
            let said = told(wrong).unwrap_err();
            assert!(said.starts_with("the command comes first: `autobatch sample dir/m.stan`"), "{said}");
        }
        assert!(told("autobatch m.stan variational").unwrap_err().contains("variational"));
    }

    #[test]
    fn cmdstans_arguments_are_our_flags() {
        let command = "autobatch sample m.ab sample num_samples=500 num_warmup=200 adapt delta=0.9 algorithm=hmc engine=nuts \
                       max_depth=12 metric=dense_e data file=d.json random seed=3 id=2 output file=o.csv sig_figs=17";
        let wanted = "autobatch sample m.ab --num-samples=500 --num-warmup=200 --delta=0.9 --max-depth=12 --metric=dense_e \
                      --data=d.json --seed=3 --id=2 --output=o.csv --sig-figs=17";
        assert_eq!(told(command).unwrap(), wanted);
        let fixed = "autobatch sample m.ab method=sample algorithm=fixed_param stepsize=0.5";
        assert_eq!(told(fixed).unwrap(), "autobatch sample m.ab --algorithm=fixed_param --initial-stepsize=0.5");
        assert_eq!(
            told("autobatch sample m.ab engine=static int_time=2").unwrap(),
            "autobatch sample m.ab --algorithm=static --int-time=2"
        );
        assert_eq!(
            told("autobatch optimize m.stan optimize algorithm=lbfgs tol_obj=1e-9 jacobian=1 data file=d.json")
                .unwrap(),
            "autobatch optimize m.stan --algorithm=lbfgs --tol-obj=1e-9 --jacobian=1 --data=d.json"
        );
        assert_eq!(
            told("autobatch generate-quantities m.stan generate_quantities fitted_params=a.csv,b.csv data file=d.json")
                .unwrap(),
            "autobatch generate-quantities m.stan --draws=a.csv --draws=b.csv --data=d.json"
        );
        assert_eq!(
            told("autobatch log_prob m.stan log_prob unconstrained_params=u.json jacobian=0 data file=d.json").unwrap(),
            "autobatch log_prob m.stan --points=u.json --jacobian=0 --data=d.json"
        );
        assert_eq!(
            told("autobatch diagnose m.stan diagnose test=gradient epsilon=1e-7 error=1e-5 data file=d.json").unwrap(),
            "autobatch diagnose m.stan --epsilon=1e-7 --error=1e-5 --data=d.json"
        );
        assert_eq!(
            told("autobatch translate m.stan data file=d.json").unwrap(),
            "autobatch translate m.stan --data=d.json"
        );
        assert_eq!(told("autobatch sample m.stan sample help-all").unwrap(), "autobatch sample --help");
        let nothing = "calculate_lp=1 save_cmdstan_config=1 output profile_file=profile.csv diagnostic_file=";
        assert_eq!(told(&format!("autobatch sample m.stan {nothing}")).unwrap(), "autobatch sample m.stan");
        assert_eq!(told("autobatch pathfinder m.stan save_single_paths=0").unwrap(), "autobatch pathfinder m.stan");
        let seed = told("autobatch sample m.stan random seed=-1").unwrap();
        assert_eq!(seed, format!("autobatch sample m.stan --seed={}", drawn_seed().unwrap()));
    }

    #[test]
    fn what_is_ours_stays() {
        for command in [
            "autobatch sample m.ab --set target_accept=0.9 --shared x=3 --stats --data d.json",
            "autobatch run p.ab --input n=5 x=3",
            "autobatch sample sample",
            "autobatch sample --draws=5 -- a=b.ab",
        ] {
            assert_eq!(told(command).unwrap(), command);
        }
        let mixed = "autobatch sample m.ab --stats num_samples=5 --set thin=2 delta=0.9";
        assert_eq!(told(mixed).unwrap(), "autobatch sample m.ab --stats --num-samples=5 --set thin=2 --delta=0.9");
    }

    #[test]
    fn what_there_is_not_is_told() {
        for (command, why) in [
            ("autobatch sample m.ab file=x.json", "of what?"),
            ("autobatch sample m.ab output profile_file=x.csv", "has no such argument; --profile"),
            ("autobatch variational m.stan", "`autobatch pathfinder` and `autobatch laplace`"),
            ("autobatch sample m.ab num_sample=1", "has no argument `num_sample`"),
            ("autobatch sample m.ab method=optimize", "this is the command for `sample`"),
            ("autobatch sample m.ab method=variational", "has no ADVI"),
            ("autobatch sample m.ab algorithm=nuts", "there is nuts, static and fixed_param"),
        ] {
            let said = told(command).unwrap_err();
            assert!(said.contains(why), "{command}: {said}");
        }
    }
}
