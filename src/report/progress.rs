//! How far chains are, in words: a line for all, and a row for each group of them.

use super::summary::{grouped, significant};
use crate::mcmc::sampling::{ChainGroup, Reached};
use crate::picture::short;

/// A row of a group of chains.
#[derive(Clone, PartialEq, Debug)]
pub struct GroupRow {
    /// Its chains, `chains 1-32`.
    pub name: String,
    /// From 0 to 1: the iterations of the median chain, of all.
    pub part: f64,
    /// Iterations, divergent transitions, step sizes and gradients.
    pub text: String,
}

/// The row of a group; the first chain of the run has this number.
pub fn group_row(group: &ChainGroup, reached: &Reached, first: u64) -> GroupRow {
    let (begin, end) = (first + group.chains.start as u64, first + group.chains.end as u64 - 1);
    let name = if begin == end { format!("chain {begin}") } else { format!("chains {begin}-{end}") };
    let all = reached.all_iterations;
    let (least, median, most) = group.iterations;
    let mut text = match least == most {
        true => format!("{most}/{all}"),
        false => format!("{least} · {median} · {most}/{all}"),
    };
    if group.warm < group.chains.len() {
        text += ", warmup";
    }
    if group.divergent > 0 {
        text += &format!(", {} divergent", grouped(group.divergent));
    }
    text += &stepsizes(group.stepsize);
    if let Some(gradients) = group.gradients_per_draw {
        text += &format!(", {} gradients/draw", significant(gradients, 3));
    }
    GroupRow { name, part: (median as f64 / all.max(1) as f64).min(1.0), text }
}

/// All chains in a line: what they do, the rate of gradients, and the time that is left.
pub fn line(reached: &Reached) -> String {
    let chains: usize = reached.groups.iter().map(|group| group.chains.len()).sum();
    let mut text = match chains - reached.warm.min(chains) {
        0 => format!("{} of {chains} chains done", reached.finished),
        cold => format!("{cold} of {chains} chains in warmup"),
    };
    let divergent: u64 = reached.groups.iter().map(|group| group.divergent).sum();
    if divergent > 0 {
        text += &format!(", {} divergent", grouped(divergent));
    }
    text += &rates(reached);
    text
}

/// Gradients a second, and the time that is left, as far as they are known; each behind a comma.
pub fn rates(reached: &Reached) -> String {
    let rate = reached.gradients_per_second.map(|rate| format!(", {} gradients/s", short(rate)));
    let left = reached.seconds_left.map(|seconds| format!(", {} left", time(seconds)));
    [rate, left].into_iter().flatten().collect()
}

/// The step sizes of chains; of many the smallest, that of the median one and the largest.
fn stepsizes(stepsize: Option<(f64, f64, f64)>) -> String {
    match stepsize {
        None => String::new(),
        Some((least, median, most)) if least == most => format!(", step size {}", significant(median, 2)),
        Some((least, median, most)) => {
            let [least, median, most] = [least, median, most].map(|step| significant(step, 2));
            format!(", step size {median} ({least}-{most})")
        }
    }
}

/// `12 s`, `3 min 20 s`, `5 h 10 min`.
fn time(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, min, s) => format!("{min} min {s} s"),
        (h, min, _) => format!("{h} h {min} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!([0.2, 59.5, 3599.0, 90_000.0].map(time), ["1 s", "1 min 0 s", "59 min 59 s", "25 h 0 min"]);
    }
}
