//! Reverse mode: what the cotangent of an instruction's result adds to those of its operands.

use std::collections::BTreeMap;

use super::care::Care;
use super::code::{Code, int, of_arrays, product};
use super::elementwise::elementwise;
use super::reductions::{reduction, spread, summed};
use super::tangent::Site;
use super::triangular;
use crate::base::{IdSet, IdVec};
use crate::cfg::{Operand, VarId};
use crate::prim::{BatchRule, Class, Contraction, Movement, Prim, Triangular, computed_elementwise};
use crate::types::Type;

/// What is known of cotangents at a place in the reverse sweep. What holds a cotangent that is known is not set.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// Variables whose cotangent is zero.
    pub(super) zero: IdSet<VarId>,
    /// Arrays whose cotangent is this value repeated: a scalar, or an array with extents of 1. Inside of one block only.
    uniform: BTreeMap<VarId, Operand>,
}

impl Known {
    /// These cotangents are zero, and nothing else is known.
    pub(super) fn zero(zero: IdSet<VarId>) -> Self {
        Self { zero, uniform: BTreeMap::new() }
    }
}

/// The cotangents of the variables of a function while its reverse sweep is made.
#[derive(Debug)]
pub(super) struct Cotangents<'p, 'c> {
    pub(super) code: &'c mut Code<'p>,
    /// The variable that holds the cotangent of each active variable.
    pub(super) of: &'c IdVec<VarId, Option<VarId>>,
    pub(super) known: &'c mut Known,
}

impl Cotangents<'_, '_> {
    /// What holds the cotangent of an operand, if it has one.
    fn holder(&self, operand: Operand) -> Option<(VarId, VarId)> {
        let v = operand.var()?;
        Some((v, (*self.of.get(v)?)?))
    }
    /// Whether an operand has a cotangent.
    fn has(&self, operand: Operand) -> bool {
        self.holder(operand).is_some()
    }
    /// Adds to the cotangent of an operand, if it has one. A scalar, or an array with extents of 1, is repeated.
    pub(super) fn add(&mut self, operand: Operand, part: Operand) {
        let Some((v, holder)) = self.holder(operand) else { return };
        let spread = self.code.ty(part) != self.code.vars[holder].ty;
        if self.known.zero.contains(v) {
            self.known.zero.remove(v);
            if spread {
                // the part may be what holds another cotangent, which changes
                let part = if part.var().is_some() { self.code.prim(Prim::Copy, &[part]) } else { part };
                self.known.uniform.insert(v, part);
            } else {
                self.code.assign(holder, part);
            }
        } else if let Some(uniform) = self.known.uniform.remove(&v) {
            if spread {
                let sum = self.code.prim(Prim::Add, &[uniform, part]);
                if self.code.ty(sum) == self.code.vars[holder].ty {
                    self.code.assign(holder, sum);
                } else {
                    self.known.uniform.insert(v, sum);
                }
            } else {
                self.code.set(holder, Prim::Add, &[uniform, part]);
            }
        } else {
            self.code.set(holder, Prim::Add, &[Operand::Var(holder), part]);
        }
    }
    /// Adds the result of a primitive, which has the type of the operand.
    fn add_prim(&mut self, operand: Operand, prim: Prim, args: &[Operand]) {
        let Some((v, holder)) = self.holder(operand) else { return };
        if self.known.zero.contains(v) {
            self.known.zero.remove(v);
            self.code.set(holder, prim, args);
        } else {
            let ty = self.code.vars[holder].ty.clone();
            let part = self.code.prim_as(prim, args, ty);
            self.add(operand, part);
        }
    }
    /// The cotangent of an operand that has one, stored if it is only known.
    fn made(&mut self, operand: Operand) -> Option<VarId> {
        let (v, holder) = self.holder(operand)?;
        if self.known.zero.contains(v) {
            self.known.zero.remove(v);
            self.code.set_zero(holder);
        } else if let Some(uniform) = self.known.uniform.remove(&v) {
            self.code.assign(holder, uniform);
        }
        Some(holder)
    }
    /// Takes the cotangent of a variable that is about to be set (seen backwards): it is zero from here on. Nothing when it is
    /// zero already; a scalar, or an array with extents of 1, when it is repeated. `keep`: the caller goes on to change the
    /// cotangent while it reads the one taken.
    fn take(&mut self, v: VarId, keep: bool) -> Option<Operand> {
        let (_, holder) = self.holder(Operand::Var(v))?;
        if self.known.zero.contains(v) {
            return None;
        }
        self.known.zero.insert(v);
        if let Some(uniform) = self.known.uniform.remove(&v) {
            return Some(uniform);
        }
        let holder = Operand::Var(holder);
        Some(if keep { self.code.prim(Prim::Copy, &[holder]) } else { holder })
    }
    /// Like [`take`](Self::take), always of the type of the variable.
    pub(super) fn take_whole(&mut self, v: VarId) -> Option<Operand> {
        if self.known.uniform.contains_key(&v) {
            self.made(Operand::Var(v));
        }
        self.take(v, false)
    }
    /// Stores the cotangents that are only known as values that are repeated.
    pub(super) fn flush(&mut self) {
        let uniform: Vec<VarId> = self.known.uniform.keys().copied().collect();
        for v in uniform {
            self.made(Operand::Var(v));
        }
    }

    /// The reverse of `dst = prim args`.
    pub(super) fn instruction(&mut self, dst: VarId, site: Site<'_>) {
        let own = Operand::Var(dst);
        // a part that is taken from the array itself reads the cotangent that it changes
        if site.prim.changes_part() && site.args[0] == own && site.args[1] != own {
            return self.set_in_place(dst, site);
        }
        let itself = site.args.contains(&Operand::Var(dst));
        let Some(mut g) = self.take(dst, itself) else { return };
        let repeats = matches!(site.prim.row().batch, BatchRule::Elementwise | BatchRule::Reduction);
        if !repeats && site.prim != Prim::Fill {
            g = spread(self.code, g, site.ty);
        }
        self.rule(site, g);
    }

    /// `x = set_index x, v, …` changes a part of the cotangent only.
    fn set_in_place(&mut self, dst: VarId, site: Site<'_>) {
        if self.known.zero.contains(dst) {
            return;
        }
        let Some(holder) = self.made(Operand::Var(dst)) else { return };
        let (g, part, at) = (Operand::Var(holder), site.args[1], &site.args[2..]);
        self.add_part(site.prim, part, g, at);
        if site.prim == Prim::ScatterAdd {
            return;
        }
        let zero = self.zero_part(part);
        let args: Vec<Operand> = [g, zero].into_iter().chain(at.iter().copied()).collect();
        self.code.set(holder, site.prim, &args);
    }

    fn zero_part(&mut self, part: Operand) -> Operand {
        let ty = self.code.ty(part);
        self.code.zero(&ty)
    }

    /// Adds the part of `g` that a primitive which changes a part put there.
    fn add_part(&mut self, prim: Prim, part: Operand, g: Operand, at: &[Operand]) {
        let read = match prim {
            Prim::SetIndex => Prim::Index,
            Prim::SetSlice => Prim::Slice,
            Prim::Scatter | Prim::ScatterAdd => Prim::Gather,
            other => unreachable!("{other:?} changes no part"),
        };
        let args: Vec<Operand> = [g].into_iter().chain(at.iter().copied()).collect();
        self.add_prim(part, read, &args);
    }

    /// Adds `part` to the part of an operand's cotangent that `index` or `slice` reads.
    fn add_to_part(&mut self, operand: Operand, read: Prim, at: &[Operand], part: Operand) {
        let known_zero = self.holder(operand).is_some_and(|(v, _)| self.known.zero.contains(v));
        let Some(holder) = self.made(operand) else { return };
        let holder_value = Operand::Var(holder);
        let args: Vec<Operand> = [holder_value].into_iter().chain(at.iter().copied()).collect();
        let new = if known_zero {
            part
        } else {
            let ty = self.code.ty(part);
            let old = self.code.prim_as(read, &args, ty);
            self.code.prim(Prim::Add, &[old, part])
        };
        let write = if read == Prim::Index { Prim::SetIndex } else { Prim::SetSlice };
        let args: Vec<Operand> = [holder_value, new].into_iter().chain(at.iter().copied()).collect();
        self.code.set(holder, write, &args);
    }

    fn rule(&mut self, site: Site<'_>, g: Operand) {
        let Site { prim, args, .. } = site;
        match prim.class() {
            Class::Identity(_) | computed_elementwise!() => self.elementwise(site, g),
            Class::Movement(movement) => self.movement(site, movement, g),
            Class::Contraction(contraction) => self.contraction(site, contraction, g),
            Class::Triangular(triangular) => self.triangular(site, triangular, g),
            Class::Reduction(of) => {
                if self.has(args[0])
                    && let Some(part) = reduction(self.code, site, of, g)
                {
                    self.add(args[0], part);
                }
            }
            Class::Draw(_) => {}
        }
    }

    fn triangular(&mut self, site: Site<'_>, triangular: Triangular, g: Operand) {
        let l = site.args[0];
        match triangular {
            Triangular::Cholesky => {
                if self.has(l) {
                    self.add_prim(l, Prim::ChainCholeskyCotangent, &[site.result, g]);
                }
            }
            Triangular::ChainCholeskyTangent | Triangular::ChainCholeskyCotangent => {
                // Each is the transpose of the other.
                let other = match site.prim {
                    Prim::ChainCholeskyTangent => Prim::ChainCholeskyCotangent,
                    _ => Prim::ChainCholeskyTangent,
                };
                let side = self.code.prim(other, &[l, g]);
                if self.has(l) {
                    let part = triangular::factor(self.code, site, side);
                    self.add(l, part);
                }
                self.add(site.args[1], side);
            }
            Triangular::SolveLower
            | Triangular::SolveLowerTransposed
            | Triangular::ChainSolveLower
            | Triangular::ChainSolveLowerTransposed => {
                let side = triangular::side(self.code, site, g);
                if self.has(l) {
                    let part = triangular::solved(self.code, site, side);
                    self.add(l, part);
                }
                self.add(site.args[1], side);
            }
        }
    }

    fn elementwise(&mut self, site: Site<'_>, g: Operand) {
        let Site { prim, args, care, .. } = site;
        for (i, arg) in args.iter().enumerate() {
            if !self.has(*arg) {
                continue;
            }
            let ty = self.code.ty(*arg);
            let care = if prim == Prim::ChainMul { Care::Careful } else { care };
            let multiplies = matches!(prim, Prim::Mul | Prim::ChainMul);
            let whole = |this: &Self, o: Operand| this.code.ty(o) == *site.ty;
            let other = || args[1 - i];
            if multiplies && ty == *site.ty && (whole(self, g) || whole(self, other())) {
                // the product is the new cotangent itself where nothing is added to
                self.add_prim(*arg, product(g, other(), care), &[g, other()]);
            } else if multiplies && ty.is_scalar() && site.ty.shape.len() == 1 && whole(self, g) && whole(self, other())
            {
                self.add_prim(*arg, of_arrays(Prim::Dot, care), &[g, other()]);
            } else if let Some(part) = elementwise(self.code, site, i, g) {
                let part = summed(self.code, part, site.ty, &ty);
                self.add(*arg, part);
            }
        }
    }

    fn movement(&mut self, site: Site<'_>, movement: Movement, g: Operand) {
        let Site { prim, args, .. } = site;
        match movement {
            Movement::MakeArray => {
                for (i, arg) in args.iter().enumerate() {
                    self.add_prim(*arg, Prim::Index, &[g, int(i as i64)]);
                }
            }
            Movement::Index | Movement::Slice => self.add_to_part(args[0], prim, &args[1..], g),
            Movement::Gather => {
                // made in place of zeros or of what is there
                let Some(holder) = self.made(args[0]) else { return };
                let all: Vec<Operand> =
                    [Operand::Var(holder), g].into_iter().chain(args[1..].iter().copied()).collect();
                self.code.set(holder, Prim::ScatterAdd, &all);
            }
            Movement::ScatterAdd => {
                self.add_part(prim, args[1], g, &args[2..]);
                self.add(args[0], g);
            }
            Movement::SetIndex | Movement::SetSlice | Movement::Scatter => {
                let at = &args[2..];
                self.add_part(prim, args[1], g, at);
                if self.has(args[0]) {
                    let zero = self.zero_part(args[1]);
                    let rest: Vec<Operand> = [g, zero].into_iter().chain(at.iter().copied()).collect();
                    self.add_prim(args[0], prim, &rest);
                }
            }
            Movement::Fill if self.has(args[0]) => {
                let ty = self.code.ty(args[0]);
                let part = summed(self.code, g, site.ty, &ty);
                self.add(args[0], part);
            }
            Movement::Concat => {
                let first = self.code.ty(args[0]).shape[0];
                self.add_prim(args[0], Prim::Slice, &[g, int(0)]);
                self.add_prim(args[1], Prim::Slice, &[g, int(first as i64)]);
            }
            Movement::Transpose | Movement::TransposeEach => self.add_prim(args[0], prim, &[g]),
            Movement::Reshape => self.add_prim(args[0], Prim::Reshape, &[g]),
            // its cotangent is nobody's, and ints have none
            Movement::Fill | Movement::Iota => {}
        }
    }

    fn contraction(&mut self, site: Site<'_>, contraction: Contraction, g: Operand) {
        let (x, y) = (site.args[0], site.args[1]);
        // a product of the chain rule is differentiated by such products
        let care = if site.prim == site.prim.ordinary() { site.care } else { Care::Careful };
        let (each, matrix) = (of_arrays(Prim::BatchMatMul, care), of_arrays(Prim::MatMul, care));
        match contraction {
            Contraction::Dot | Contraction::ChainDot => {
                self.add_prim(x, product(g, y, care), &[g, y]);
                self.add_prim(y, product(g, x, care), &[g, x]);
            }
            Contraction::BatchMatMul | Contraction::ChainBatchMatMul => {
                if self.has(x) {
                    let transposed = self.code.prim(Prim::TransposeEach, &[y]);
                    self.add_prim(x, each, &[g, transposed]);
                }
                if self.has(y) {
                    let transposed = self.code.prim(Prim::TransposeEach, &[x]);
                    self.add_prim(y, each, &[transposed, g]);
                }
            }
            Contraction::MatMul | Contraction::ChainMatMul => self.matrix_product((x, y), matrix, care, g),
        }
    }

    /// A product of matrices, or of a matrix and a vector on either side.
    fn matrix_product(&mut self, (x, y): (Operand, Operand), matrix: Prim, care: Care, g: Operand) {
        match (self.code.ty(x).shape.len(), self.code.ty(y).shape.len()) {
            (2, 2) => {
                if self.has(x) {
                    let transposed = self.code.prim(Prim::Transpose, &[y]);
                    self.add_prim(x, matrix, &[g, transposed]);
                }
                if self.has(y) {
                    let transposed = self.code.prim(Prim::Transpose, &[x]);
                    self.add_prim(y, matrix, &[transposed, g]);
                }
            }
            (2, _) => {
                self.add_outer(x, g, y, care);
                if x.var().is_none() && self.has(y) {
                    // a shared matrix is transposed once, before the lanes start, and then read along its rows
                    let transposed = self.code.prim(Prim::Transpose, &[x]);
                    self.add_prim(y, matrix, &[transposed, g]);
                } else {
                    self.add_prim(y, matrix, &[g, x]);
                }
            }
            _ => {
                self.add_prim(x, matrix, &[y, g]);
                self.add_outer(y, x, g, care);
            }
        }
    }

    /// Adds the outer product of two vectors.
    fn add_outer(&mut self, operand: Operand, column: Operand, row: Operand, care: Care) {
        if !self.has(operand) {
            return;
        }
        let (n, m) = (self.code.ty(column).elements(), self.code.ty(row).elements());
        let dtype = crate::types::DType::Real;
        let column = self.code.prim_as(Prim::Reshape, &[column], Type::new(dtype, [n, 1]));
        let row = self.code.prim_as(Prim::Reshape, &[row], Type::new(dtype, [1, m]));
        let prim = if care == Care::Plain { Prim::MatMul } else { Prim::ChainMul };
        self.add_prim(operand, prim, &[column, row]);
    }

    /// Sets to zero what holds the cotangent of a variable that is known to be zero.
    pub(super) fn materialise(&mut self, v: VarId) {
        self.made(Operand::Var(v));
    }
}
