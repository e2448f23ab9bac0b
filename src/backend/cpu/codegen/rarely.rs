//! Units that lanes come to rarely: their functions are compiled in little time, and not to the best code.

use std::collections::HashSet;

use crate::analysis::frequencies::frequencies;
use crate::backend::generator::{Ending, Exit};
use crate::base::{Id as _, IdVec};
use crate::plan;
use crate::plan::cost::ByCode;
use crate::unit::{BlockId, Body};

/// What all of them together may take of the time of a run, as it is estimated: such code takes 1.2 times as long.
const SHARE: f64 = 0.005;

/// What a visit of a block takes beside the steps, in additions: the mask, the lanes that are sent on, the return
/// address.
const VISIT: u64 = 16;

/// The blocks of the units that take little time all together, by how often loops, calls and recursion run them and
/// what they weigh.
pub(super) fn blocks<T: Ending, P>((entry, body): (BlockId, &Body<T>), planned: &plan::Body<P>) -> HashSet<BlockId> {
    let visits = visits(entry, body);
    let time = |unit: &plan::Unit| {
        let blocks = unit.blocks.iter().map(|block| {
            let weight = ByCode::of(&planned.blocks[*block].steps, false).weight.saturating_add(VISIT);
            visits[BlockId::new(block.index())].saturating_mul(weight) as f64
        });
        blocks.sum::<f64>()
    };
    let mut times: Vec<(f64, &plan::Unit)> = planned.units.values().map(|unit| (time(unit), unit)).collect();
    times.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let most = SHARE * times.iter().map(|(time, _)| time).sum::<f64>();
    let mut all = 0.0;
    let rare = times.iter().take_while(|(time, _)| {
        all += time;
        all <= most
    });
    rare.flat_map(|(_, unit)| unit.blocks.iter().map(|block| BlockId::new(block.index()))).collect()
}

/// How often lanes may come to each block.
fn visits<T: Ending>(entry: BlockId, body: &Body<T>) -> IdVec<BlockId, u64> {
    let mut calls = vec![];
    let next = body.blocks.iter().map(|(id, block)| match block.term.exit() {
        Some(Exit::Jump(to)) => vec![to],
        Some(Exit::Branch(yes, no)) => vec![yes, no],
        Some(Exit::Call(to, back, _)) => {
            calls.push((id, to));
            vec![back]
        }
        Some(Exit::Return | Exit::Halt) | None => vec![],
    });
    let next = next.collect();
    frequencies(entry, &next, &calls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Inputs, Options, Program};

    /// The numbers of the lines where units begin that lanes come to rarely.
    fn lines(text: &str) -> HashSet<u32> {
        let program = Program::compile(text).unwrap();
        let bound = program.function("f").unwrap().bind(&Inputs::new().lane("x", vec![1.0]), &Options::default());
        let compiled = bound.unwrap().compiled().clone();
        let units = &compiled.units;
        let rarely = blocks((units.entry, &units.body), &compiled.plan.body);
        rarely.iter().map(|block| units.body.blocks[*block].loc.line).collect()
    }

    #[test]
    fn what_comes_before_a_loop_of_a_recursion_is_rarely_run() {
        let text = "\
fn tree(x: real, depth: int) -> real {
    if depth == 0 { return exp(x); }
    tree(0.5 * x, depth - 1) + tree(0.25 * x, depth - 1)
}
pub fn f(x: real) -> real {
    let mut y = x;
    if x > 2.0 { y = log(x); }
    while y < 100.0 {
        y = y + tree(y, 5);
    }
    y
}
";
        let rarely = lines(text);
        assert!(rarely.contains(&5) && [2, 3, 9].iter().all(|line| !rarely.contains(line)), "{rarely:?}");
        // Where all is run once, nothing is.
        assert!(lines("pub fn f(x: real) -> real { if x > 2.0 { exp(x) } else { x } }").is_empty());
    }
}
