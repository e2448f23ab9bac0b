//! Making code: instructions one after another, and the variables that they use.

use std::borrow::Borrow;

use super::{Args, Inst, InstKind, Operand, Program, SideEffect, TapeId, Var, VarId};
use crate::base::{IdVec, Loc, work};
use crate::prim::Prim;
use crate::types::{DType, Scalar, Type};

/// Instructions that are being made, over variables of which there come to be more.
#[derive(Debug)]
pub struct Builder<P> {
    /// The program, for the types of shared values; or nothing, of a program that is being made.
    pub program: P,
    /// The variables.
    pub vars: IdVec<VarId, Var>,
    /// The instructions.
    pub insts: Vec<Inst>,
    /// Where the next instruction stands in the source.
    pub loc: Loc,
    unnamed: &'static str,
}

/// A real constant.
pub fn real(x: f64) -> Operand {
    Operand::Const(Scalar::Real(x))
}

/// An int constant.
pub fn int(x: i64) -> Operand {
    Operand::Const(Scalar::Int(x))
}

impl<P> Builder<P> {
    /// Nothing yet, over these variables. New ones have no name, which their owner gives them at last.
    pub fn new(program: P, vars: IdVec<VarId, Var>, loc: Loc) -> Self {
        Self { program, vars, insts: Vec::new(), loc, unnamed: "" }
    }
    /// The same; new variables have this name, which is to be made unique.
    #[must_use]
    pub fn naming(self, unnamed: &'static str) -> Self {
        Self { unnamed, ..self }
    }
    /// A new variable.
    pub fn fresh(&mut self, ty: Type) -> VarId {
        self.named(self.unnamed, ty)
    }
    /// A new variable with a name to be made unique.
    pub fn named(&mut self, name: impl Into<String>, ty: Type) -> VarId {
        self.vars.push(Var { name: name.into(), ty })
    }
    /// Appends an instruction.
    pub fn push(&mut self, kind: InstKind) {
        work::add(1);
        self.insts.push(Inst { kind, loc: self.loc.clone() });
    }
    /// `tape_push tape, value`
    pub fn tape_push(&mut self, tape: TapeId, value: Operand) {
        self.push(InstKind::Effect(SideEffect::TapePush { tape, value }));
    }
    /// `dst = tape_pop tape`
    pub fn tape_pop(&mut self, dst: VarId, tape: TapeId) {
        self.push(InstKind::Effect(SideEffect::TapePop { dst, tape }));
    }
    /// `dst = prim args`
    pub fn set(&mut self, dst: VarId, prim: Prim, args: &[Operand]) {
        self.push(InstKind::Prim { dst, prim, args: Args::from_slice(args) });
    }
    /// The result of a primitive, of this type.
    pub fn prim_as(&mut self, prim: Prim, args: &[Operand], ty: Type) -> Operand {
        let dst = self.fresh(ty);
        self.set(dst, prim, args);
        Operand::Var(dst)
    }
    /// Lets the instruction that sets `from` set `to` instead, if nothing between touches `to`. Whether it does.
    pub fn retarget(&mut self, from: VarId, to: VarId) -> bool {
        for inst in self.insts.iter_mut().rev() {
            if let InstKind::Prim { dst, args, .. } = &mut inst.kind
                && *dst == from
            {
                let free = !args.contains(&Operand::Var(from));
                if free {
                    *dst = to;
                }
                return free;
            }
            if mentions(&inst.kind, to) {
                return false;
            }
        }
        false
    }
}

impl<P: Borrow<Program>> Builder<P> {
    /// The type of an operand.
    pub fn ty(&self, operand: Operand) -> Type {
        operand.ty(|v| self.vars[v].ty.clone(), |s| self.program.borrow().shared[s].ty.clone())
    }
    /// The result of a primitive whose operands determine its type, and fit it.
    pub fn prim(&mut self, prim: Prim, args: &[Operand]) -> Operand {
        let types: Vec<Type> = args.iter().map(|a| self.ty(*a)).collect();
        let ty = prim.infer(&types).expect("what is emitted is well-typed");
        self.prim_as(prim, args, ty)
    }
    /// Whether any element of `g` is not zero.
    pub fn is_some(&mut self, g: Operand) -> Operand {
        let some = self.prim(Prim::Ne, &[g, real(0.0)]);
        if self.ty(g).is_scalar() { some } else { self.prim_as(Prim::Any, &[some], Type::bool()) }
    }
    /// Zero of a real type: a constant, or an array of zeros.
    pub fn zero(&mut self, ty: &Type) -> Operand {
        if ty.is_scalar() { real(0.0) } else { self.prim_as(Prim::Fill, &[real(0.0)], ty.clone()) }
    }
    /// `dst = 0`
    pub fn set_zero(&mut self, dst: VarId) {
        let ty = self.vars[dst].ty.clone();
        let zero = Operand::Const(match ty.dtype {
            DType::Bool => Scalar::Bool(false),
            DType::Int => Scalar::Int(0),
            DType::Real => Scalar::Real(0.0),
        });
        let prim = if ty.is_scalar() { Prim::Copy } else { Prim::Fill };
        self.set(dst, prim, &[zero]);
    }
    /// `dst = operand`; a scalar, or an array with extents of 1, is repeated.
    pub fn assign(&mut self, dst: VarId, operand: Operand) {
        let spread = self.vars[dst].ty != self.ty(operand);
        self.set(dst, if spread { Prim::Fill } else { Prim::Copy }, &[operand]);
    }
}

fn mentions(kind: &InstKind, var: VarId) -> bool {
    let mut found = kind.dst() == Some(var);
    kind.for_each_operand(|o| found |= o == Operand::Var(var));
    found
}
