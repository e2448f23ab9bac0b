//! Sums and dot products that are added up side by side.
//!
//! A sum is one chain of additions within a block of [`BLOCK`] elements, and each waits for the one before, so that one
//! chain alone takes as many cycles as four additions for each element. Sums are therefore written late, when something
//! needs one or changes what they read: those of equally many elements share a loop then, and several blocks of each go
//! through it at once. What is computed of sums and of other numbers waits with them, so that a loop which goes on with
//! other elements meanwhile stays one.

use super::loops::MOST_UNROLLED;
use super::place::{Known, Number, Place, View};
use super::text::Writer;
use crate::backend::generator::ending::Ending;
use crate::backend::generator::functions::{group_type, may_trap};
use crate::backend::generator::ssa::{Fold, Kind, Products};
use crate::prim::{BLOCK, Prim, computed_elementwise};
use crate::types::DType;
use crate::unit::{Block, OpKind, Operand, ValueId};

/// What sums begin with.
const ZERO: &str = "r_splat((real)0e0)";
/// Chains of additions that a processor has under way: it begins two additions a cycle, each of which takes four.
const CHAINS: usize = 8;
/// As many may go through a loop as there are registers for: a processor has 16 at least.
const MOST_CHAINS: usize = 12;
/// Cycles of an addition.
const ADDITION: usize = 4;

/// How many blocks of each of so many sums go through a loop together, so that their elements take the fewest cycles.
fn abreast(sums: usize, blocks: usize) -> usize {
    // A loop begins two additions a cycle and waits for the last.
    let turn = |blocks: usize| if blocks > 0 { ADDITION.max((sums * blocks).div_ceil(CHAINS / ADDITION)) } else { 0 };
    let cycles = |abreast: &usize| blocks / abreast * turn(*abreast) + turn(blocks % abreast);
    let fewest = (CHAINS / sums).max(1);
    let fit = |abreast: &usize| *abreast == fewest || sums * abreast <= MOST_CHAINS;
    (fewest..=fewest + 2).filter(fit).min_by_key(cycles).expect("there is the first").min(blocks)
}

/// A sum that is still to be added up.
#[derive(Clone)]
pub(super) struct OpenSum {
    fold: Fold,
    /// The number that it is, by name.
    name: String,
    elements: usize,
    /// What is added up, or multiplied first.
    views: Vec<View>,
}

impl<T: Ending> Writer<'_, T> {
    /// How an operation adds up reals, if it can be written later. In a function over groups of lanes, a sum of one block
    /// shares the loop that makes what is added up, which then need not stand anywhere.
    pub(super) fn added_later(&self, block: &Block<T>, dst: ValueId, prim: Prim, args: &[Operand]) -> Option<Fold> {
        let ty = &block.values[dst].ty;
        let fold = Fold::of_reals(prim, ty.dtype).filter(|_| ty.elements() == 1)?;
        let fewest = if self.straight.is_some() { MOST_UNROLLED } else { BLOCK };
        let elements = block.operand_type(args[0], self.storage.globals).elements();
        (elements > fewest).then_some(fold)
    }

    /// Has a sum written later.
    pub(super) fn add_later(&mut self, fold: Fold, dst: ValueId, args: &[Operand]) -> Option<Known> {
        let views: Vec<View> = args.iter().map(|arg| self.view(*arg)).collect::<Option<_>>()?;
        let (name, elements) = (self.fresh("s"), views[0].elements);
        self.open_sums.push(OpenSum { fold, name: name.clone(), elements, views });
        self.late_values.insert(dst);
        Some(Known::Number(Number::group(name, DType::Real)))
    }

    /// Whether an open sum reads something of the place of a view.
    pub(super) fn is_added_up(&self, of: &Place) -> bool {
        self.open_sums.iter().flat_map(|sum| &sum.views).any(|view| view.place == *of)
    }

    /// Whether the sums that are open must stand before an operation: it reads one, or may change what they read, or they
    /// hold much.
    pub(super) fn must_add(&self, block: &Block<T>, kind: &OpKind) -> bool {
        if self.open_sums.is_empty() {
            return false;
        }
        // Arrays that they read serve no others meanwhile.
        let held: usize = self.free_behind_sums.iter().map(|array| array.elements).sum();
        self.reads_late(kind)
            || held > self.frame.limits().locals / 2
            || match kind {
                OpKind::Load { .. } => false,
                OpKind::Compute { prim, .. } => {
                    matches!(prim, Prim::SetIndex | Prim::SetSlice | Prim::Scatter | Prim::ScatterAdd)
                }
                OpKind::Store { value, .. } => block.operand_type(*value, self.storage.globals).elements() > 1,
                OpKind::Effect(_) | OpKind::Push { .. } | OpKind::Pop { .. } => true,
            }
    }

    /// Whether an operation reads a sum that is open, or what waits for one.
    fn reads_late(&self, kind: &OpKind) -> bool {
        let mut reads = false;
        kind.for_each_operand(|operand| {
            reads |= operand.var().is_some_and(|value| self.late_values.contains(&value));
        });
        reads
    }

    /// Whether an operation can wait for the sums that it reads: it makes a real or a bool of numbers, or stores a number,
    /// and takes no lanes out.
    pub(super) fn waits(&self, block: &Block<T>, at: usize) -> bool {
        let kind = &block.ops[at].kind;
        !self.open_sums.is_empty()
            && self.reads_late(kind)
            && match kind {
                OpKind::Compute { dst, prim, args } => {
                    let of = |arg: &Operand| block.operand_type(*arg, self.storage.globals);
                    let ty = &block.values[*dst].ty;
                    matches!(prim.class(), computed_elementwise!())
                        && ty.elements() == 1
                        && ty.dtype != DType::Int
                        && args.iter().all(|arg| of(arg).elements() == 1)
                        && !may_trap(Kind::Map(*prim), args.first().map(|arg| of(arg).dtype))
                }
                // Nothing meets a variable behind its store.
                OpKind::Store { value, .. } => block.operand_type(*value, self.storage.globals).elements() == 1,
                _ => false,
            }
    }

    /// Has an operation wait.
    pub(super) fn wait(&mut self, block: &Block<T>, at: usize) {
        self.late.push(at);
        self.late_values.extend(block.ops[at].kind.dst());
    }

    /// Leaves what is open unwritten: the block has no text.
    pub(super) fn forget_open(&mut self) {
        self.open_loop = None;
        self.open_sums.clear();
        self.late.clear();
        self.late_values.clear();
    }

    /// Writes the sums that are open, and what waits for them.
    pub(super) fn close_sums(&mut self, block: &Block<T>) {
        let mut open = std::mem::take(&mut self.open_sums);
        if open.is_empty() {
            return;
        }
        // It may make what they add up.
        self.close_loop();
        while let Some(OpenSum { elements, .. }) = open.first() {
            let elements = *elements;
            let (alike, others): (Vec<_>, Vec<_>) = open.into_iter().partition(|sum| sum.elements == elements);
            open = others;
            alike.chunks(CHAINS).for_each(|sums| self.sums(elements, sums));
        }
        self.free.append(&mut self.free_behind_sums);
        self.late_values.clear();
        let here = (self.at(), self.loc.clone());
        for at in std::mem::take(&mut self.late) {
            let op = &block.ops[at];
            self.is_at(at, &op.loc);
            self.operation(block, &op.kind).expect("numbers have a text");
        }
        self.is_at(here.0, &here.1);
    }

    /// Sums of so many elements each, as `vmath::sum` has them.
    ///
    /// In straight code the tests of the chain rule take several times as long as the additions. They make a difference
    /// only where a product is no number. Then the sum without them is none either, and is made again with them.
    fn sums(&mut self, elements: usize, sums: &[OpenSum]) {
        for sum in sums {
            self.line(format!("R {} = {ZERO};", sum.name));
        }
        let plainly = self.straight.is_some() && !self.is_scheduled();
        let tested = |sum: &&OpenSum| plainly && sum.fold == Fold::Products(Products::ChainRule);
        let again: Vec<OpenSum> = sums.iter().filter(tested).cloned().collect();
        if again.is_empty() {
            return self.add_up(elements, sums);
        }
        let plain = |sum: &OpenSum| match tested(&sum) {
            true => OpenSum { fold: Fold::Products(Products::Ordinary), ..sum.clone() },
            false => sum.clone(),
        };
        self.add_up(elements, &sums.iter().map(plain).collect::<Vec<_>>());
        let bad: Vec<String> = again.iter().map(|sum| format!("b_any(r_is_nan({}))", sum.name)).collect();
        self.open(&format!("if (AB_RARE({})) {{", bad.join(" || ")));
        for sum in &again {
            self.line(format!("{} = {ZERO};", sum.name));
        }
        self.add_up(elements, &again);
        self.close();
    }

    /// What is added up in sums that begin with zero.
    fn add_up(&mut self, elements: usize, sums: &[OpenSum]) {
        if elements <= BLOCK {
            self.open_loop_over("e", elements);
            self.line("AB_IN_ORDER;");
            for sum in sums {
                self.fold(sum.fold, DType::Real, &sum.name, (&sum.views, Some("e")));
            }
            return self.close();
        }
        let (whole, rest) = (elements / BLOCK, elements % BLOCK);
        let abreast = abreast(sums.len(), elements.div_ceil(BLOCK));
        let rounds = whole / abreast;
        let first = rounds * abreast * BLOCK;
        if rounds > 1 {
            self.open(&format!("for (int first = 0; first < {first}; first += {}) {{", abreast * BLOCK));
            self.blocks_of_sums(sums, ("first", abreast, BLOCK), "first > 0");
            self.close();
        } else if rounds == 1 {
            self.open("{");
            self.blocks_of_sums(sums, ("0", abreast, BLOCK), "0");
            self.close();
        }
        let left = whole - rounds * abreast + usize::from(rest > 0);
        if left > 0 {
            self.open("{");
            let last = if rest > 0 { rest } else { BLOCK };
            self.blocks_of_sums(sums, (&first.to_string(), left, last), if rounds > 0 { "1" } else { "0" });
            self.close();
        }
    }

    /// So many blocks of each sum, of which the last has so many elements. `goes_on`: whether there are others before, as
    /// an expression.
    fn blocks_of_sums(&mut self, sums: &[OpenSum], (first, blocks, last): (&str, usize, usize), goes_on: &str) {
        let name = |sum: &OpenSum, block: usize| format!("{}_{block}", sum.name);
        let ty = group_type(DType::Real);
        for sum in sums {
            (0..blocks).for_each(|block| self.line(format!("{ty} {} = {ZERO};", name(sum, block))));
        }
        // Up to where the last block ends, all of them go on; then the others.
        for (from, to, blocks) in [(0, last, blocks), (last, BLOCK, blocks - 1)] {
            if from == to || blocks == 0 {
                continue;
            }
            let [from, to] = [from, to].map(|e| format!("{first} + {e}"));
            self.open(&format!("for (int e = {from}; e < {to}; e++) {{"));
            self.line("AB_IN_ORDER;");
            for sum in sums {
                for block in 0..blocks {
                    let at = if block == 0 { "e".to_owned() } else { format!("e + {}", block * BLOCK) };
                    self.fold(sum.fold, DType::Real, &name(sum, block), (&sum.views, Some(&at)));
                }
            }
            self.close();
        }
        for sum in sums {
            for block in 0..blocks {
                let (total, one) = (&sum.name, name(sum, block));
                let added = format!("r_add({total}, {one})");
                self.line(match block {
                    0 => format!("{total} = {goes_on} ? {added} : {one};"),
                    _ => format!("{total} = {added};"),
                });
            }
        }
    }
}
