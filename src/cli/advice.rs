//! The user's own command line with a change that a warning advises.

use crate::mcmc::sampling::{INIT_RADIUS, MAX_TREEDEPTH, TARGET_ACCEPT};
use crate::report::Advice;

/// The flags that are short for a setting.
const SHORT: [(&str, &[&str]); 3] = [
    (TARGET_ACCEPT, &["--target-accept", "--delta"]),
    (MAX_TREEDEPTH, &["--max-treedepth", "--max-depth"]),
    (INIT_RADIUS, &["--init-radius", "--init"]),
];

/// Other names of flags.
const ALIASES: [(&str, &str); 2] = [("--draws", "--num-samples"), ("--warmup", "--num-warmup")];

/// The command line with the flags of the advice in the place of those that say otherwise, ready for a shell.
pub(super) fn changed(command: &[String], advice: &Advice) -> String {
    let mut command = command.to_vec();
    for (flag, value) in advice.flags() {
        match value.split_once('=') {
            Some((name, _)) if flag == "--set" => {
                for short in SHORT.iter().filter(|(n, _)| *n == name).flat_map(|(_, flags)| *flags) {
                    remove(&mut command, short, |_| true);
                }
                remove(&mut command, flag, |old| old.split('=').next().map(str::trim) == Some(name));
            }
            _ if value.is_empty() => command.retain(|arg| arg != flag),
            _ => {
                let aliases = ALIASES.iter().filter(|(name, _)| *name == flag).map(|(_, alias)| *alias);
                for flag in aliases.chain([flag]) {
                    remove(&mut command, flag, |_| true);
                }
            }
        }
        // Behind `--` there are no flags.
        let end = command.iter().position(|arg| arg == "--").unwrap_or(command.len());
        command.splice(end..end, [flag.to_owned(), value].into_iter().filter(|arg| !arg.is_empty()));
    }
    command.iter().map(|arg| for_shell(arg)).collect::<Vec<_>>().join(" ")
}

/// Takes a flag away where its value is one of these: `--flag value` and `--flag=value`.
fn remove(command: &mut Vec<String>, flag: &str, is: impl Fn(&str) -> bool) {
    let mut i = 0;
    while i < command.len() && command[i] != "--" {
        let joined = command[i].strip_prefix(flag).and_then(|rest| rest.strip_prefix('='));
        let here = match joined {
            Some(value) if is(value) => 1,
            None if command[i] == flag && command.get(i + 1).is_some_and(|value| is(value)) => 2,
            _ => 0,
        };
        command.drain(i..i + here);
        i += usize::from(here == 0);
    }
}

/// An argument as a shell takes it.
fn for_shell(arg: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=./,:@%+".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) { arg.to_owned() } else { format!("'{}'", arg.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(command: &str, advice: &Advice) -> String {
        changed(&command.split(' ').map(str::to_owned).collect::<Vec<_>>(), advice)
    }

    #[test]
    fn what_says_otherwise_goes() {
        let target = Advice::Set { name: TARGET_ACCEPT, value: "0.95".to_owned() };
        for old in ["--delta 0.9", "--target-accept=0.9", "--set target_accept=0.9", "--set=target_accept=0.9"] {
            let command = format!("autobatch sample m.ab {old} --set max_treedepth=5 --chains 2");
            let wanted = "autobatch sample m.ab --set max_treedepth=5 --chains 2 --set target_accept=0.95";
            assert_eq!(told(&command, &target), wanted);
        }
        let shown = "autobatch sample --draws=5 --diagnose -- m.ab";
        assert_eq!(told("autobatch sample --draws=5 -- m.ab", &Advice::Diagnose), shown);
        assert_eq!(told(shown, &Advice::Diagnose), shown);
        assert_eq!(told("autobatch sample m.ab --num-samples=5", &Advice::Draws(9)), "autobatch sample m.ab --draws 9");
        let longer = Advice::Longer { warmup: 10, draws: 20 };
        let wanted = "autobatch sample --warmup 10 --draws 20 -- m.ab";
        assert_eq!(told("autobatch sample --draws=5 --warmup 5 -- m.ab", &longer), wanted);
    }

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        let command = ["autobatch", "sample", "my model's.ab", "--shared", "x=[1, 2]"].map(str::to_owned);
        let wanted = r"autobatch sample 'my model'\''s.ab' --shared 'x=[1, 2]' --stepsize 0.5";
        assert_eq!(changed(&command, &Advice::Stepsize(0.5)), wanted);
    }
}
