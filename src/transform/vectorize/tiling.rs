//! Which values depend on an index, and which of them are known numbers.

use std::ops::Range;

use indexmap::{IndexMap, IndexSet};

use crate::base::{IdSet, IdVec};
use crate::cfg::{Func, InstKind, Operand, SideEffect, VarId};
use crate::parts::TapeId;
use crate::prim::{BatchRule, Prim, eval};
use crate::types::{DType, Scalar};

/// Which variables and tapes of a function hold values that depend on an index. A fixed point over the blocks; a variable
/// that is set at several places is tiled if it is at one of them.
#[derive(Debug)]
pub(super) struct Tiling {
    vars: IdSet<VarId>,
    tapes: IndexSet<TapeId>,
}

impl Tiling {
    /// For the parameter `index`. Random draws are one for each element.
    pub(super) fn of(func: &Func, index: usize) -> Self {
        let mut tiling = Self { vars: IdSet::new(func.vars.len()), tapes: IndexSet::new() };
        tiling.vars.insert(func.params[index]);
        while tiling.grow(func) {}
        tiling
    }

    fn grow(&mut self, func: &Func) -> bool {
        let mut grown = false;
        for block in func.blocks.values() {
            for inst in &block.insts {
                grown |= match &inst.kind {
                    InstKind::Prim { dst, prim, args } => {
                        (prim.is_draw() || args.iter().any(|a| self.is_tiled(*a))) && self.vars.insert(*dst)
                    }
                    InstKind::Effect(SideEffect::TapePush { tape, value }) => {
                        self.is_tiled(*value) && self.tapes.insert(*tape)
                    }
                    InstKind::Effect(SideEffect::TapePop { dst, tape }) => {
                        self.tapes.contains(tape) && self.vars.insert(*dst)
                    }
                    _ => false,
                };
            }
            let mut tiled = false;
            block.term.for_each_operand(|o| tiled |= self.is_tiled(o));
            for dst in block.term.dsts() {
                grown |= tiled && self.vars.insert(*dst);
            }
        }
        grown
    }

    /// Whether an operand depends on the index.
    pub(super) fn is_tiled(&self, operand: Operand) -> bool {
        operand.var().is_some_and(|v| self.vars.contains(v))
    }
    /// Whether what is on a tape does.
    pub(super) fn is_tiled_tape(&self, tape: TapeId) -> bool {
        self.tapes.contains(&tape)
    }

    /// The variables that are the same function of the index for ever: those computed from it and constants alone.
    pub(super) fn numbers(&self, func: &Func, index: VarId, range: Range<i64>) -> Numbers {
        let mut writes: IdVec<VarId, usize> = IdVec::filled(0, func.vars.len());
        func.params.iter().for_each(|p| writes[*p] += 1);
        let insts = || func.blocks.values().flat_map(|b| &b.insts);
        insts().filter_map(|i| i.kind.dst()).for_each(|v| writes[v] += 1);
        func.blocks.values().flat_map(|b| b.term.dsts()).for_each(|v| writes[*v] += 1);
        let mut numbers = Numbers { of: IndexMap::new() };
        numbers.of.insert(index, range.map(Scalar::Int).collect());
        loop {
            let known = numbers.of.len();
            for inst in insts() {
                let InstKind::Prim { dst, prim, args } = &inst.kind else { continue };
                if writes[*dst] == 1
                    && prim.row().batch == BatchRule::Elementwise
                    && func.vars[*dst].ty.is_scalar()
                    && !numbers.of.contains_key(dst)
                    && args.iter().any(|a| self.is_tiled(*a))
                    && (numbers.of.len() + 1).saturating_mul(numbers.len()) <= MOST_NUMBERS
                    && let Some(values) = numbers.compute(*prim, args)
                {
                    numbers.of.insert(*dst, values);
                }
            }
            if numbers.of.len() == known {
                return numbers;
            }
        }
    }
}

/// The tapes that a function uses.
pub(super) fn tapes(func: &Func) -> IndexSet<TapeId> {
    let insts = func.blocks.values().flat_map(|b| &b.insts);
    let tape = |kind: &InstKind| match kind {
        InstKind::Effect(effect) => effect.tape(),
        InstKind::Prim { .. } => None,
    };
    insts.filter_map(|i| tape(&i.kind)).collect()
}

/// Most known numbers, of 16 bytes while the program is compiled: what is not known is computed when it runs.
const MOST_NUMBERS: usize = 1 << 25;

/// Values of variables for each value of the index: ints and bools.
#[derive(Debug)]
pub(super) struct Numbers {
    of: IndexMap<VarId, Vec<Scalar>>,
}

impl Numbers {
    /// Values of the index.
    fn len(&self) -> usize {
        self.of.first().map_or(0, |(_, values)| values.len())
    }
    /// Whether an operand is a known number for each value of the index.
    pub(super) fn is_known(&self, operand: Operand) -> bool {
        operand.var().is_some_and(|v| self.of.contains_key(&v))
    }
    /// The numbers of an operand.
    pub(super) fn get(&self, operand: Operand) -> Option<&[Scalar]> {
        self.of.get(&operand.var()?).map(Vec::as_slice)
    }

    /// Whether all numbers of an operand are indices of an axis of this extent.
    pub(super) fn in_range(&self, operand: Operand, extent: usize) -> bool {
        let fits = |s: &Scalar| matches!(s, Scalar::Int(i) if usize::try_from(*i).is_ok_and(|i| i < extent));
        match operand {
            Operand::Const(c) => fits(&c),
            operand => self.get(operand).is_some_and(|numbers| numbers.iter().all(fits)),
        }
    }

    fn compute(&self, prim: Prim, args: &[Operand]) -> Option<Vec<Scalar>> {
        let len = args.iter().find_map(|a| self.get(*a))?.len();
        let at = |operand: &Operand, i: usize| match operand {
            Operand::Const(c) => Some(*c),
            operand => self.get(*operand).map(|values| values[i]),
        };
        let values = (0..len).map(|i| {
            let args = args.iter().map(|a| at(a, i)).collect::<Option<Vec<Scalar>>>()?;
            match (prim, &args[..]) {
                (Prim::Copy, [x]) => Some(*x),
                _ => eval::fold(prim, &args, eval::EXACT_IN_F32).filter(|x| x.dtype() != DType::Real),
            }
        });
        values.collect()
    }
}
