//! Storage classes: which variables of a stack program need a stack, which a register, and which no storage at all
//! between supersteps.

use crate::analysis::stack_liveness::Liveness;
use crate::base::IdSet;
use crate::stack::{InstKind, Program, StorageClass, VarId, Write};

/// Gives every variable the least class that will do and says why. Variables that are pushed or popped are stacks, others
/// that are live where a superstep starts are registers. Reasons that are there already stay as long as the class does.
pub fn assign(program: &mut Program) {
    let stacks = pushed(program);
    let crossing = live_between_supersteps(program);
    for (id, var) in program.vars.iter_mut() {
        let (class, why) = if stacks.contains(id) {
            (StorageClass::Stack, "is pushed")
        } else if crossing.contains(id) {
            (StorageClass::Register, "crosses block edges, but no call that it lives across may write it")
        } else {
            (StorageClass::Temporary, "never lives across a block edge")
        };
        if class != var.class || var.why.is_empty() {
            var.class = class;
            var.why = why.to_owned();
        }
        var.uniform &= class == StorageClass::Temporary;
    }
    for block in program.blocks.values_mut() {
        for inst in &mut block.insts {
            if let InstKind::Compute { write, dst, .. } = &mut inst.kind
                && *write != Write::Push
            {
                *write = if stacks.contains(*dst) { Write::Update } else { Write::Set };
            }
        }
    }
}

fn pushed(program: &Program) -> IdSet<VarId> {
    let mut stacks = IdSet::new(program.vars.len());
    for inst in program.blocks.values().flat_map(|b| &b.insts) {
        if let Some((v, _)) = inst.kind.moved() {
            stacks.insert(v);
        }
    }
    stacks
}

/// The variables that are live where a superstep starts, and the inputs and outputs.
fn live_between_supersteps(program: &Program) -> IdSet<VarId> {
    let liveness = Liveness::of(program);
    let mut inside = IdSet::new(program.blocks.len());
    for region in &program.regions {
        for block in region.blocks.iter().skip(1) {
            inside.insert(*block);
        }
    }
    let mut crossing = IdSet::new(program.vars.len());
    for block in program.blocks.ids().filter(|b| !inside.contains(*b)) {
        crossing.union_with(liveness.live_in(block));
    }
    for port in program.inputs.iter().chain(&program.outputs) {
        crossing.insert(port.var);
    }
    crossing
}
