//! `--time-passes`: what the stages of the compiler took.

use std::time::Duration;

use crate::base::work::StageCost;

/// A line for each stage in the order in which they ran, and one for all of them: milliseconds, the work that was
/// counted, and the instructions of the result.
pub(super) fn table(stages: &[StageCost]) -> String {
    let line = |name: &str, time: Duration, work: u64, insts: Option<usize>| {
        let insts = insts.map_or("-".to_owned(), |n| n.to_string());
        format!("{name:<32} {:>12.3} {work:>14} {insts:>14}\n", 1e3 * time.as_secs_f64())
    };
    let lines: Vec<String> = stages.iter().map(|s| line(s.name, s.time, s.work, s.insts)).collect();
    let (time, work) = (stages.iter().map(|s| s.time).sum(), stages.iter().map(|s| s.work).sum());
    let last = stages.iter().rev().find_map(|s| s.insts);
    let head = format!("{:<32} {:>12} {:>14} {:>14}\n", "pass", "ms", "work", "instructions");
    format!("{head}{}{}", lines.concat(), line("all", time, work, last)).trim_end().to_owned()
}
