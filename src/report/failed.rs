//! What is told of draws for which a model's `parameters` failed.

use super::summary::abridged;
use crate::mcmc::sampling::FailedDraws;

/// How many of so many draws failed, what they lack, and why the first one did; `place` names a draw by its place in the
/// arrays, chain · draws + draw.
pub fn failed_draws(failed: &FailedDraws, all: usize, place: impl Fn(usize) -> String) -> String {
    let (n, trap) = (failed.positions.len(), &failed.first);
    let names: Vec<&str> = failed.variables().collect();
    let (what, lost) = match names.is_empty() {
        true => ("generated quantities".to_owned(), ""),
        false => (abridged(&names), ", for which they are NaN and left out of the table"),
    };
    let (first, why) = (place(failed.positions[0]), trap.told());
    format!("{what} failed for {n} of {all} draws{lost}; the first is {first}: {why}")
}
