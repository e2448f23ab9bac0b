//! Which arrays a block changes where they are, and how long values are read.

use std::collections::{HashMap, HashSet};

use crate::base::IdVec;
use crate::prim::Prim;
use crate::unit::{Block, BlockEnd, OpKind, Operand, ValueId, VarId};

/// What is known of the values of a block before its text is written.
pub(super) struct Updates {
    /// By value: the operation that reads it last; the number of operations for the end of the block.
    pub(super) last_read: IdVec<ValueId, usize>,
    /// By value that replaces a part of another one: the variable that holds that one, and will hold it.
    pub(super) of_variable: IdVec<ValueId, Option<VarId>>,
    /// By value: the variable that it is stored in, if the block loads that one no more.
    pub(super) stored_in: IdVec<ValueId, Option<VarId>>,
}

impl Updates {
    pub(super) fn of<T: BlockEnd>(block: &Block<T>) -> Self {
        let mut last_read = IdVec::filled(0, block.values.len());
        for (at, op) in block.ops.iter().enumerate() {
            op.kind.for_each_operand(|operand| {
                if let Operand::Var(value) = operand {
                    last_read[value] = at;
                }
            });
        }
        if let Some(Operand::Var(value)) = block.term.condition() {
            last_read[value] = block.ops.len();
        }
        let made_by: HashMap<ValueId, &OpKind> =
            block.ops.iter().filter_map(|op| Some((op.kind.dst()?, &op.kind))).collect();
        let mut of_variable = IdVec::filled(None, block.values.len());
        for op in &block.ops {
            let OpKind::Store { var, value: Operand::Var(stored) } = &op.kind else { continue };
            let (mut chain, mut at) = (Vec::new(), *stored);
            loop {
                match made_by[&at] {
                    OpKind::Compute {
                        prim: Prim::SetIndex | Prim::SetSlice | Prim::Scatter | Prim::ScatterAdd,
                        args,
                        ..
                    } => {
                        chain.push(at);
                        let Operand::Var(before) = args[0] else { break };
                        at = before;
                    }
                    OpKind::Load { var: loaded, .. } if loaded == var => {
                        chain.iter().for_each(|value| of_variable[*value] = Some(*var));
                        break;
                    }
                    _ => break,
                }
            }
        }
        let mut stored_in = IdVec::filled(None, block.values.len());
        let mut loaded_later = HashSet::new();
        for op in block.ops.iter().rev() {
            match &op.kind {
                OpKind::Load { var, .. } => _ = loaded_later.insert(*var),
                OpKind::Store { var, value: Operand::Var(value) } => stored_in[*value] = Some(*var),
                kind => {
                    let Some(dst) = kind.dst() else { continue };
                    stored_in[dst] = stored_in[dst].filter(|var| !loaded_later.contains(var));
                }
            }
        }
        Self { last_read, of_variable, stored_in }
    }
}
