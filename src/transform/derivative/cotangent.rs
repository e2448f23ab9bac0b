//! Reverse mode: what the cotangent of an instruction's result adds to those of its operands.

use super::code::{Code, int};
use super::elementwise::{elementwise, gathered};
use super::tangent::Site;
use crate::base::{IdSet, IdVec};
use crate::cfg::{Operand, VarId};
use crate::prim::{BatchRule, Prim};
use crate::types::Type;

/// The cotangents of the variables of a function while its reverse sweep is made.
#[derive(Debug)]
pub(super) struct Cotangents<'p, 'c> {
    pub(super) code: &'c mut Code<'p>,
    /// The variable that holds the cotangent of each active variable.
    pub(super) of: &'c IdVec<VarId, Option<VarId>>,
    /// Variables whose cotangent is known to be zero. What holds it is then not set.
    pub(super) zero: IdSet<VarId>,
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
    /// Adds to the cotangent of an operand, if it has one. A scalar is added to each element of an array.
    pub(super) fn add(&mut self, operand: Operand, part: Operand) {
        let Some((v, holder)) = self.holder(operand) else { return };
        if self.zero.contains(v) {
            self.zero.remove(v);
            self.code.assign(holder, part);
        } else {
            self.code.set(holder, Prim::Add, &[Operand::Var(holder), part]);
        }
    }
    /// Adds the result of a primitive, which has the type of the operand.
    fn add_prim(&mut self, operand: Operand, prim: Prim, args: &[Operand]) {
        let Some((v, holder)) = self.holder(operand) else { return };
        if self.zero.contains(v) {
            self.zero.remove(v);
            self.code.set(holder, prim, args);
        } else {
            let ty = self.code.vars[holder].ty.clone();
            let part = self.code.prim_as(prim, args, ty);
            self.code.set(holder, Prim::Add, &[Operand::Var(holder), part]);
        }
    }
    /// The cotangent of an operand that has one, made zero first if it is known to be.
    fn made(&mut self, operand: Operand) -> Option<VarId> {
        let (v, holder) = self.holder(operand)?;
        if self.zero.contains(v) {
            self.zero.remove(v);
            self.code.set_zero(holder);
        }
        Some(holder)
    }
    /// Takes the cotangent of a variable that is about to be set (seen backwards): it is zero from here on. Nothing when it is
    /// zero already. `keep`: the caller goes on to change the cotangent while it reads the one taken.
    pub(super) fn take(&mut self, v: VarId, keep: bool) -> Option<Operand> {
        let (_, holder) = self.holder(Operand::Var(v))?;
        if self.zero.contains(v) {
            return None;
        }
        self.zero.insert(v);
        let holder = Operand::Var(holder);
        Some(if keep { self.code.prim(Prim::Copy, &[holder]) } else { holder })
    }

    /// The reverse of `dst = prim args`.
    pub(super) fn instruction(&mut self, dst: VarId, site: Site<'_>) {
        if matches!(site.prim, Prim::SetIndex | Prim::SetSlice) && site.args[0] == Operand::Var(dst) {
            return self.set_in_place(dst, site);
        }
        let itself = site.args.contains(&Operand::Var(dst));
        if let Some(g) = self.take(dst, itself) {
            self.rule(site, g);
        }
    }

    /// `x = set_index x, v, …` changes a part of the cotangent only.
    fn set_in_place(&mut self, dst: VarId, site: Site<'_>) {
        let Some((_, holder)) = self.holder(Operand::Var(dst)) else { return };
        if self.zero.contains(dst) {
            return;
        }
        let (g, part, at) = (Operand::Var(holder), site.args[1], &site.args[2..]);
        self.add_part(site.prim, part, g, at);
        let zero = self.zero_part(part);
        let args: Vec<Operand> = [g, zero].into_iter().chain(at.iter().copied()).collect();
        self.code.set(holder, site.prim, &args);
    }

    fn zero_part(&mut self, part: Operand) -> Operand {
        let ty = self.code.ty(part);
        self.code.zero(&ty)
    }

    /// Adds the part of `g` that `set_index` or `set_slice` put there.
    fn add_part(&mut self, prim: Prim, part: Operand, g: Operand, at: &[Operand]) {
        let read = if prim == Prim::SetIndex { Prim::Index } else { Prim::Slice };
        let args: Vec<Operand> = [g].into_iter().chain(at.iter().copied()).collect();
        self.add_prim(part, read, &args);
    }

    /// Adds `part` to the part of an operand's cotangent that `index` or `slice` reads.
    fn add_to_part(&mut self, operand: Operand, read: Prim, at: &[Operand], part: Operand) {
        let known_zero = self.holder(operand).is_some_and(|(v, _)| self.zero.contains(v));
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
        match prim.row().batch {
            BatchRule::Elementwise => self.elementwise(site, g),
            BatchRule::Contraction => self.contraction(site, g),
            BatchRule::Reduction if prim == Prim::Sum => self.add(args[0], g),
            BatchRule::Movement => self.movement(site, g),
            BatchRule::Reduction | BatchRule::Random => {}
        }
    }

    fn elementwise(&mut self, site: Site<'_>, g: Operand) {
        let Site { prim, args, result, .. } = site;
        for (i, arg) in args.iter().enumerate() {
            if !self.has(*arg) {
                continue;
            }
            let ty = self.code.ty(*arg);
            if prim == Prim::Mul && ty == *site.ty {
                // the product is the new cotangent itself where nothing is added to
                self.add_prim(*arg, Prim::Mul, &[g, args[1 - i]]);
            } else if prim == Prim::Mul && ty.is_scalar() && site.ty.shape.len() == 1 {
                self.scalar_of_product(*arg, g, args[1 - i]);
            } else if let Some(part) = elementwise(self.code, prim, i, args, result, g) {
                let part = gathered(self.code, part, &ty);
                self.add(*arg, part);
            }
        }
    }

    /// A scalar times a vector: the cotangent of the scalar is a dot product.
    fn scalar_of_product(&mut self, scalar: Operand, g: Operand, other: Operand) {
        if self.code.ty(other).is_scalar() {
            let total = self.code.prim(Prim::Sum, &[g]);
            self.add_prim(scalar, Prim::Mul, &[total, other]);
        } else {
            self.add_prim(scalar, Prim::Dot, &[g, other]);
        }
    }

    fn movement(&mut self, site: Site<'_>, g: Operand) {
        let Site { prim, args, .. } = site;
        match prim {
            Prim::MakeArray => {
                for (i, arg) in args.iter().enumerate() {
                    self.add_prim(*arg, Prim::Index, &[g, int(i as i64)]);
                }
            }
            Prim::Index | Prim::Slice => self.add_to_part(args[0], prim, &args[1..], g),
            Prim::SetIndex | Prim::SetSlice => {
                let at = &args[2..];
                self.add_part(prim, args[1], g, at);
                if self.has(args[0]) {
                    let zero = self.zero_part(args[1]);
                    let rest: Vec<Operand> = [g, zero].into_iter().chain(at.iter().copied()).collect();
                    self.add_prim(args[0], prim, &rest);
                }
            }
            Prim::Fill if site.ty.is_scalar() => self.add(args[0], g),
            Prim::Fill => self.add_prim(args[0], Prim::Sum, &[g]),
            Prim::Concat => {
                let first = self.code.ty(args[0]).shape[0];
                self.add_prim(args[0], Prim::Slice, &[g, int(0)]);
                self.add_prim(args[1], Prim::Slice, &[g, int(first as i64)]);
            }
            Prim::Transpose => self.add_prim(args[0], Prim::Transpose, &[g]),
            Prim::Reshape => self.add_prim(args[0], Prim::Reshape, &[g]),
            _ => {}
        }
    }

    fn contraction(&mut self, site: Site<'_>, g: Operand) {
        let (x, y) = (site.args[0], site.args[1]);
        if site.prim == Prim::Dot {
            self.add_prim(x, Prim::Mul, &[g, y]);
            self.add_prim(y, Prim::Mul, &[g, x]);
            return;
        }
        let (xt, yt) = (self.code.ty(x), self.code.ty(y));
        match (xt.shape.len(), yt.shape.len()) {
            (2, 2) => {
                if self.has(x) {
                    let transposed = self.code.prim(Prim::Transpose, &[y]);
                    self.add_prim(x, Prim::MatMul, &[g, transposed]);
                }
                if self.has(y) {
                    let transposed = self.code.prim(Prim::Transpose, &[x]);
                    self.add_prim(y, Prim::MatMul, &[transposed, g]);
                }
            }
            (2, 1) => {
                self.add_outer(x, g, y);
                self.add_prim(y, Prim::MatMul, &[g, x]);
            }
            _ => {
                self.add_prim(x, Prim::MatMul, &[y, g]);
                self.add_outer(y, x, g);
            }
        }
    }

    /// Adds the outer product of two vectors.
    fn add_outer(&mut self, operand: Operand, column: Operand, row: Operand) {
        if !self.has(operand) {
            return;
        }
        let (n, m) = (self.code.ty(column).elements(), self.code.ty(row).elements());
        let dtype = crate::types::DType::Real;
        let column = self.code.prim_as(Prim::Reshape, &[column], Type::new(dtype, [n, 1]));
        let row = self.code.prim_as(Prim::Reshape, &[row], Type::new(dtype, [1, m]));
        self.add_prim(operand, Prim::MatMul, &[column, row]);
    }

    /// Sets to zero what holds the cotangent of a variable that is known to be zero.
    pub(super) fn materialise(&mut self, v: VarId) {
        self.made(Operand::Var(v));
    }
}
