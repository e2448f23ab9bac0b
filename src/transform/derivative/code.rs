//! Emission of instructions that the derivative adds: straight-line code over the variables of a function that grows.

use super::care::{Care, is_ordinary};
use crate::base::{IdVec, Loc, work};
use crate::cfg::{Inst, InstKind, Operand, Program, Var, VarId};
use crate::parts::Args;
use crate::prim::Prim;
use crate::types::{DType, Scalar, Type};

/// Instructions that are being made, and the variables that they use. Variables made here have no name until
/// [`name_all`](super::prepare::name_all) gives them one.
#[derive(Debug)]
pub(super) struct Code<'p> {
    pub(super) program: &'p Program,
    pub(super) vars: IdVec<VarId, Var>,
    pub(super) insts: Vec<Inst>,
    /// Where the next instruction stands in the source.
    pub(super) loc: Loc,
}

/// A real constant.
pub(super) fn real(x: f64) -> Operand {
    Operand::Const(Scalar::Real(x))
}

/// An int constant.
pub(super) fn int(x: i64) -> Operand {
    Operand::Const(Scalar::Int(x))
}

/// A product or solve of arrays in the chain rule.
pub(super) fn of_arrays(prim: Prim, care: Care) -> Prim {
    if care == Care::Plain { prim } else { prim.of_chain_rule() }
}

/// The product of the chain rule.
pub(super) fn product(x: Operand, y: Operand, care: Care) -> Prim {
    if care == Care::Plain || is_ordinary(x) || is_ordinary(y) { Prim::Mul } else { Prim::ChainMul }
}

impl<'p> Code<'p> {
    /// Nothing yet, over these variables.
    pub(super) fn new(program: &'p Program, vars: IdVec<VarId, Var>, loc: Loc) -> Self {
        Self { program, vars, insts: Vec::new(), loc }
    }
    /// The type of an operand.
    pub(super) fn ty(&self, operand: Operand) -> Type {
        operand.ty(|v| self.vars[v].ty.clone(), |s| self.program.shared[s].ty.clone())
    }
    /// A new variable.
    pub(super) fn fresh(&mut self, ty: Type) -> VarId {
        self.vars.push(Var { name: String::new(), ty })
    }
    /// A new variable with a name to be made unique.
    pub(super) fn named(&mut self, name: impl Into<String>, ty: Type) -> VarId {
        self.vars.push(Var { name: name.into(), ty })
    }
    /// Appends an instruction.
    pub(super) fn push(&mut self, kind: InstKind) {
        work::add(1);
        self.insts.push(Inst { kind, loc: self.loc.clone() });
    }
    /// `dst = prim args`
    pub(super) fn set(&mut self, dst: VarId, prim: Prim, args: &[Operand]) {
        self.push(InstKind::Prim { dst, prim, args: Args::from_slice(args) });
    }
    /// The result of a primitive whose operands determine its type.
    pub(super) fn prim(&mut self, prim: Prim, args: &[Operand]) -> Operand {
        let types: Vec<Type> = args.iter().map(|a| self.ty(*a)).collect();
        let ty = prim.infer(&types).expect("derivative rules emit well-typed primitives");
        self.prim_as(prim, args, ty)
    }
    /// The result of a primitive, of this type.
    pub(super) fn prim_as(&mut self, prim: Prim, args: &[Operand], ty: Type) -> Operand {
        let dst = self.fresh(ty);
        self.set(dst, prim, args);
        Operand::Var(dst)
    }
    /// `x · y` in the chain rule.
    pub(super) fn times(&mut self, x: Operand, y: Operand, care: Care) -> Operand {
        self.prim(product(x, y, care), &[x, y])
    }
    /// `x / y` in the chain rule.
    pub(super) fn over(&mut self, x: Operand, y: Operand, care: Care) -> Operand {
        let plain = care == Care::Plain || is_ordinary(x) || is_ordinary(y);
        self.prim(if plain { Prim::Div } else { Prim::ChainDiv }, &[x, y])
    }
    /// Whether any element of `g` is not zero.
    pub(super) fn is_some(&mut self, g: Operand) -> Operand {
        let some = self.prim(Prim::Ne, &[g, real(0.0)]);
        if self.ty(g).is_scalar() { some } else { self.prim_as(Prim::Any, &[some], Type::bool()) }
    }
    /// Zero of a real type: a constant, or an array of zeros.
    pub(super) fn zero(&mut self, ty: &Type) -> Operand {
        if ty.is_scalar() { real(0.0) } else { self.prim_as(Prim::Fill, &[real(0.0)], ty.clone()) }
    }
    /// `dst = 0`
    pub(super) fn set_zero(&mut self, dst: VarId) {
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
    pub(super) fn assign(&mut self, dst: VarId, operand: Operand) {
        let spread = self.vars[dst].ty != self.ty(operand);
        self.set(dst, if spread { Prim::Fill } else { Prim::Copy }, &[operand]);
    }
}
