//! What the machine did: how full its lanes were, and where the time went.

use minijinja::{Value, context};

use crate::report::summary::{fixed, grouped};
use crate::run::{Activity, Stats};

/// Rows of each table.
const ROWS: usize = 15;

/// Tables for the page; nothing where nothing was counted or measured.
pub(super) fn told(stats: &Stats) -> Option<Value> {
    let mut blocks: Vec<_> = stats.blocks.iter().filter(|block| block.executions > 0).collect();
    blocks.sort_by_key(|block| std::cmp::Reverse(block.lanes_issued.saturating_mul(block.weight)));
    let all: u128 = blocks.iter().map(|b| u128::from(b.lanes_issued) * u128::from(b.weight)).sum();
    let units = blocks.iter().take(ROWS).map(|block| {
        let work = u128::from(block.lanes_issued) * u128::from(block.weight);
        let full = block.lanes_useful as f64 / block.lanes_issued.max(1) as f64;
        vec![
            block.loc.to_string(),
            grouped(block.executions),
            fixed(block.lanes_useful as f64 / block.executions as f64, 1),
            fixed(full, 2),
            format!("{} %", fixed(100.0 * work as f64 / all.max(1) as f64, 1)),
        ]
    });
    let units: Vec<Vec<String>> = units.collect();
    let lines = stats.profile.as_ref().map(|profile| {
        let mut lines: Vec<_> = profile.lines.iter().collect();
        lines.sort_by_key(|(_, times)| std::cmp::Reverse(times.total()));
        let total = profile.times().total().max(1) as f64;
        let of = |(loc, times): &&(crate::base::Loc, crate::run::Times)| {
            let most = Activity::ALL.into_iter().max_by_key(|activity| times.of(*activity));
            let part = times.total() as f64 / total;
            let cells = vec![
                loc.to_string(),
                fixed(times.total() as f64 * 1e-9, 3),
                format!("{} %", fixed(100.0 * part, 1)),
                most.map_or(String::new(), |activity| activity.name().to_owned()),
            ];
            context! { cells, width => format!("{:.1}", 100.0 * part) }
        };
        lines.iter().take(ROWS).map(of).collect::<Vec<Value>>()
    });
    if units.is_empty() && lines.is_none() {
        return None;
    }
    let utilization = (!units.is_empty()).then(|| fixed(stats.utilization(), 3));
    let left = blocks.len().saturating_sub(ROWS);
    Some(context! { supersteps => grouped(stats.supersteps), utilization, units, left, lines })
}
