//! What a block has computed is not computed again.

use std::collections::HashMap;

use crate::base::work;
use crate::cfg::{Args, Block, InstKind, Operand, Program, VarId};
use crate::parts;
use crate::prim::Prim;
use crate::types::{Scalar, Type};

/// Turns a primitive of the same operands as an earlier one of the block into a copy of its result, as long as neither the
/// result nor an operand was set since. One that may trap did not trap in the lanes that get there again.
pub(super) fn run(mut program: Program) -> Program {
    for func in program.funcs.values_mut() {
        let types: Vec<Type> = func.vars.values().map(|v| v.ty.clone()).collect();
        func.blocks.values_mut().for_each(|block| reuse(block, &types));
    }
    program
}

/// A primitive with its operands and the type of its result, which belongs to what some primitives mean.
type Key = (Prim, Args, Type);

/// What has been computed, as long as neither the result nor an operand was set since.
#[derive(Clone, Default)]
pub(super) struct Known {
    results: HashMap<Key, VarId>,
    /// What is not known any more when a variable is set.
    about: HashMap<VarId, Vec<Key>>,
    /// Indices that are 0 or more and below this: others had trapped.
    below: HashMap<VarId, usize>,
}

impl Known {
    /// The variable that has what an instruction computes.
    pub(super) fn of(&self, inst: &InstKind, types: impl Fn(VarId) -> Type) -> Option<VarId> {
        self.results.get(&key_of(inst, types)?).copied()
    }

    /// The variable that has the element, or the part, of an array at these indices.
    pub(super) fn element(&self, array: VarId, indices: &[Operand], ty: &Type) -> Option<VarId> {
        let args = [Operand::Var(array)].into_iter().chain(indices.iter().copied()).collect();
        self.results.get(&(Prim::Index, args, ty.clone())).copied()
    }

    /// Whether an index is 0 or more and below an extent.
    pub(super) fn is_below(&self, index: Operand, extent: usize) -> bool {
        match index {
            Operand::Var(v) => self.below.get(&v).is_some_and(|below| *below <= extent),
            Operand::Const(Scalar::Int(i)) => usize::try_from(i).is_ok_and(|i| i < extent),
            _ => false,
        }
    }

    /// An instruction has run.
    pub(super) fn note(&mut self, inst: &InstKind, types: impl Fn(VarId) -> Type) {
        let Some(dst) = inst.dst() else { return };
        if let InstKind::Prim { prim: prim @ (Prim::Index | Prim::SetIndex), args, .. } = inst
            && let Operand::Var(array) = args[0]
        {
            let first = if *prim == Prim::Index { 1 } else { 2 };
            for (index, extent) in args[first..].iter().zip(types(array).shape) {
                if let Operand::Var(v) = index
                    && types(*v).is_scalar()
                {
                    self.below.entry(*v).and_modify(|below| *below = extent.min(*below)).or_insert(extent);
                }
            }
        }
        let computed = key_of(inst, types).filter(|key| !self.results.contains_key(key));
        self.forget(dst);
        if let Some(key) = computed.filter(|(_, args, _)| !args.contains(&Operand::Var(dst))) {
            for v in key.1.iter().filter_map(|a| a.var()).chain([dst]) {
                self.about.entry(v).or_default().push(key.clone());
            }
            self.results.insert(key, dst);
        }
    }

    /// A variable is set.
    pub(super) fn forget(&mut self, v: VarId) {
        self.below.remove(&v);
        for key in self.about.remove(&v).into_iter().flatten() {
            let holds = self.results.get(&key).is_some_and(|result| *result == v || key.1.contains(&Operand::Var(v)));
            if holds {
                self.results.remove(&key);
            }
        }
    }
}

fn key_of(inst: &InstKind, types: impl Fn(VarId) -> Type) -> Option<Key> {
    match inst {
        InstKind::Prim { dst, prim, args } if *prim != Prim::Copy && !prim.is_draw() => {
            Some((*prim, args.clone(), types(*dst)))
        }
        _ => None,
    }
}

fn reuse(block: &mut Block, types: &[Type]) {
    let of_type = |v: VarId| types[v.0 as usize].clone();
    let mut known = Known::default();
    work::add(block.insts.len());
    for inst in &mut block.insts {
        let earlier = known.of(&inst.kind, of_type);
        known.note(&inst.kind, of_type);
        if let (Some(earlier), InstKind::Prim { prim, args, .. }) = (earlier, &mut inst.kind) {
            *prim = Prim::Copy;
            *args = parts::Args::from_slice(&[Operand::Var(earlier)]);
        }
    }
}
