//! What a block has computed is not computed again.

use std::collections::HashMap;

use crate::base::work;
use crate::cfg::{Args, Block, InstKind, Operand, Program, VarId};
use crate::parts;
use crate::prim::Prim;
use crate::types::Type;

/// Turns a primitive of the same operands as an earlier one of the block into a copy of its result, as long as neither the
/// result nor an operand was set since. One that may trap did not trap in the lanes that get there again.
pub(super) fn run(mut program: Program) -> Program {
    for func in program.funcs.values_mut() {
        let types: Vec<Type> = func.vars.values().map(|v| v.ty.clone()).collect();
        func.blocks.values_mut().for_each(|block| reuse(block, &types));
    }
    program
}

/// A primitive with its operands and the type of its result.
type Key = (Prim, Args, Type);

fn reuse(block: &mut Block, types: &[Type]) {
    // the type belongs to what some primitives mean
    let mut known: HashMap<Key, VarId> = HashMap::new();
    // What is not known any more when a variable is set.
    let mut about: HashMap<VarId, Vec<Key>> = HashMap::new();
    work::add(block.insts.len());
    for inst in &mut block.insts {
        let Some(dst) = inst.kind.dst() else { continue };
        let mut computed = None;
        if let InstKind::Prim { prim, args, .. } = &mut inst.kind
            && *prim != Prim::Copy
            && !prim.is_draw()
        {
            let key = (*prim, args.clone(), types[dst.0 as usize].clone());
            if let Some(earlier) = known.get(&key) {
                *prim = Prim::Copy;
                *args = parts::Args::from_slice(&[Operand::Var(*earlier)]);
            } else {
                computed = Some(key);
            }
        }
        for key in about.remove(&dst).into_iter().flatten() {
            let holds = known.get(&key).is_some_and(|v| *v == dst || key.1.contains(&Operand::Var(dst)));
            if holds {
                known.remove(&key);
            }
        }
        if let Some(key) = computed.filter(|(_, args, _)| !args.contains(&Operand::Var(dst))) {
            for v in key.1.iter().filter_map(|a| a.var()).chain([dst]) {
                about.entry(v).or_default().push(key.clone());
            }
            known.insert(key, dst);
        }
    }
}
