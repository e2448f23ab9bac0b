//! Copies across blocks and calls: who reads a copy reads what was copied, as long as that has kept its value; and what a
//! call saves is saved from there.

use crate::analysis::stack_calls::StackFunctions;
use crate::analysis::stack_copies::{Copies, keeps_top};
use crate::analysis::storage;
use crate::stack::{InstKind, Operand, Program, Terminator, Write};

use super::layout::region_of_blocks;

pub(super) fn run(mut program: Program) -> Program {
    // Inside of a region a variable may be the same in all lanes because of what it is computed from.
    let regions = region_of_blocks(&program);
    let copies = Copies::of(&program, &StackFunctions::of(&program));
    for id in program.blocks.ids().filter(|id| !regions.contains_key(id)) {
        let mut held = copies.before(id).clone();
        for i in 0..program.blocks[id].insts.len() {
            let before = program.blocks[id].insts[i].kind.clone();
            let inst = &mut program.blocks[id].insts[i].kind;
            // A push of a variable to itself leaves its top alone.
            let pushes = matches!(inst, InstKind::Compute { write: Write::Push, .. });
            if !(pushes && keeps_top(inst)) {
                inst.for_each_operand_mut(|o| *o = copies.root(&held, *o));
            }
            copies.step(&program, &before, &mut held);
        }
        if let Terminator::Branch(cond @ Operand::Var(_), ..) = &mut program.blocks[id].term {
            *cond = copies.root(&held, *cond);
        }
        program.blocks[id].insts.retain(|inst| {
            let set = matches!(inst.kind, InstKind::Compute { write: Write::Set | Write::Update, .. });
            !(set && keeps_top(&inst.kind))
        });
    }
    // Variables may live across edges now.
    storage::assign(&mut program);
    program
}
