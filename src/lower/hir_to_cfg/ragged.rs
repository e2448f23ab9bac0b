//! Arrays with bounded dimensions (`real[t <= 100]`). They have room for the bound; what lies beyond the length that a
//! dimension has in the lane is *padding*, and nothing may see it.
//!
//! A bounded dimension is specialised to its bound. Its length in the lane is one more parameter of every instance that
//! has it, before all others (of the element of a comprehension: behind its indices), and a lane input of the entry
//! under the name of the dimension. A function with ordinary dimensions that is called with bounded ones gets an
//! instance of its own. Below the CFG nothing knows of bounds and lengths. The rules here also keep the padding of
//! cotangents apart.
//!
//! Padding holds anything. What goes from one array to another element by element lets it be; wherever an element could
//! meet others, a trap, or the count of the axis, it is replaced first, by a value that changes nothing:
//!
//! - reductions and products: the neutral element (of a sum −0, which leaves even a −0 as it is);
//! - elementwise primitives that may trap: 1, which no such primitive traps for;
//! - a scalar that varies is made an array with padding, so that the cotangent of the scalar is the sum over the
//!   elements alone; results of `fill` and of matrix products are treated in the same way;
//! - indices are compared with the length, and those beyond it replaced by one that traps.
//!
//! A run that looks for the birth of NaNs looks at whole arrays: for it ([`Padding::Harmless`]) all operands of
//! elementwise primitives of reals have 1 in their padding, so that a NaN is born there neither falsely nor unseen.

use super::func::{Lowered, Lowering};
use super::reduction::int;
use crate::base::Diagnostic;
use crate::cfg::{Operand, Terminator, VarId};
use crate::hir::{DimId, Expr, ExprKind, LocalId, Ty};
use crate::prim::{BLOCK, Class, Contraction, Effect, LOG_BLOCK, Movement, Prim, Reduction, computed_elementwise};
use crate::types::{DType, Scalar, Shape, Type};

/// For each axis of an array, the length in the lane if its dimension is bounded.
pub(super) type Axes = Vec<Option<Operand>>;

/// What the padding of reals may hold while a program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Padding {
    /// Anything; where it is made it is NaN, which shows what looks at it.
    #[default]
    Anything,
    /// No NaN where a primitive could make one, and nothing that it makes one of: for `--check nan`.
    Harmless,
}

/// What runs at every place of an array.
type AtPlace<'f, 's, 'a> = dyn FnMut(&mut Lowering<'s, 'a>, &[Operand]) -> Lowered<()> + 'f;

impl<'s, 'a> Lowering<'s, 'a> {
    /// The lengths of the axes of an array type; empty when none is bounded.
    pub(super) fn axes(&self, ty: &Ty) -> Axes {
        let Ty::Array(_, extents) = ty else {
            return Axes::new();
        };
        if self.lengths.is_empty() {
            return Axes::new();
        }
        let axes: Axes = extents.iter().map(|d| d.alone().and_then(|id| self.lengths.get(&id).copied())).collect();
        if axes.iter().any(Option::is_some) { axes } else { Axes::new() }
    }

    /// How many entries an axis has in the lane.
    pub(super) fn axis_length(axes: &[Option<Operand>], axis: usize, ty: &Type) -> Operand {
        let bound = ty.shape.get(axis).copied().unwrap_or(0);
        axes.get(axis).copied().flatten().unwrap_or(int(bound as i64))
    }

    /// Refuses a value of a type with bounded dimensions.
    pub(super) fn refuse_bounded(&self, ty: &Ty, what: &str, help: &str) -> Lowered<()> {
        let mut found = None;
        ty.for_each_dim(&mut |dim| found = found.or(dim.ids().find(|id| self.lengths.contains_key(id))));
        found.map_or(Ok(()), |id| Err(self.bounded_error(id, what, help)))
    }
    fn bounded_error(&self, id: DimId, what: &str, help: &str) -> Box<Diagnostic> {
        let name = &self.home.dims[id];
        let message = format!("{what}: `{name}` is bounded, it differs from lane to lane");
        let mut error = Diagnostic::error("E0807", message, self.span(), "this has a bounded dimension");
        if !self.home.bounds.contains_key(&id) {
            let function = &self.home.name;
            error = error.with_note(format!("`{name}` of `{function}` is bounded in a call of `{function}`"));
        }
        Box::new(error.with_help(help))
    }

    // Loop variables that stay within a bounded dimension

    /// Notes that a loop variable goes from `start` to `end`.
    pub(super) fn note_range(&mut self, local: LocalId, start: &Expr, end: &Expr) {
        if let (ExprKind::Literal(Scalar::Int(0..)), ExprKind::Dim(end)) = (&start.kind, &end.kind)
            && let Some(id) = end.alone().filter(|id| self.lengths.contains_key(id))
            && !self.home.locals[local].mutable
        {
            self.ranges.insert(local, id);
        }
    }
    /// Whether an index is known to be below the length of an axis.
    fn is_within(&self, index: &Expr, axis: Operand) -> bool {
        match &index.kind {
            ExprKind::Local(local) => {
                self.ranges.get(local).and_then(|id| self.lengths.get(id)).is_some_and(|length| *length == axis)
            }
            _ => false,
        }
    }

    // Masks

    /// Whether each place of an array is inside, that is no padding.
    fn inside(&mut self, shape: &Shape, axes: &[Option<Operand>]) -> Operand {
        let key = (self.current(), shape.clone(), axes.to_vec());
        if let Some(known) = self.masks.get(&key) {
            return *known;
        }
        let ty = Type { dtype: DType::Bool, shape: shape.clone() };
        let mut inside: Option<Operand> = None;
        for (axis, length) in axes.iter().enumerate() {
            let Some(length) = length else {
                continue;
            };
            let positions = Operand::Shared(self.spec.shared.positions(shape, axis));
            let here = self.mask(Prim::Lt, &[positions, *length], &ty);
            inside = Some(match inside {
                Some(before) => self.mask(Prim::And, &[before, here], &ty),
                None => here,
            });
        }
        let inside = inside.unwrap_or(Operand::Const(Scalar::Bool(true)));
        self.masks.insert(key, inside);
        inside
    }
    fn mask(&mut self, prim: Prim, args: &[Operand], ty: &Type) -> Operand {
        let var = self.bound("%inside", ty.clone());
        self.set(var, prim, args);
        Operand::Var(var)
    }

    /// `x`, an array or a scalar for all of its elements, with `padding` in the places that are padding.
    pub(super) fn padded(&mut self, x: Operand, shape: &Shape, axes: &[Option<Operand>], padding: Scalar) -> Operand {
        let inside = self.inside(shape, axes);
        let dtype = self.type_of(x).dtype;
        self.prim(Prim::Select, &[inside, x, Operand::Const(padding)], &Type { dtype, shape: shape.clone() })
    }

    /// Entries that an array starts with before its elements are set.
    pub(super) fn blank(&self, dtype: DType, axes: &[Option<Operand>]) -> Scalar {
        match (dtype, self.spec.padding) {
            (DType::Real, Padding::Anything) if !axes.is_empty() => Scalar::Real(f64::NAN),
            (dtype, _) => super::expr::zero(dtype),
        }
    }

    // Primitives

    /// A primitive with a bounded dimension in an operand or in the result. `axes` are those of the operands.
    pub(super) fn ragged_prim(
        &mut self,
        prim: Prim,
        operands: &[Operand],
        axes: &[Axes],
        result: &Axes,
        ty: &Type,
    ) -> Lowered<Operand> {
        let first = axes.first().cloned().unwrap_or_default();
        match prim.class() {
            Class::Identity(_) => Ok(self.prim(prim, operands, ty)),
            computed_elementwise!() => Ok(self.ragged_elementwise(prim, operands, result, ty)),
            Class::Movement(movement) => match movement {
                Movement::MakeArray | Movement::Concat | Movement::Transpose => Ok(self.prim(prim, operands, ty)),
                Movement::Slice => self.ragged_slice(operands, &first, result, ty),
                Movement::Fill => Ok(match operands[0] {
                    Operand::Const(_) if ty.dtype != DType::Real => self.prim(prim, operands, ty),
                    x => {
                        let blank = self.blank(ty.dtype, result);
                        self.padded(x, &ty.shape, result, blank)
                    }
                }),
                Movement::Reshape if self.keeps_leading_axis(operands[0], &first, result, ty) => {
                    Ok(self.prim(prim, operands, ty))
                }
                // Refused is what nobody has thought of: never a wrong number.
                _ => Err(self.no_ragged(prim)),
            },
            Class::Contraction(
                Contraction::Dot | Contraction::MatMul | Contraction::ChainDot | Contraction::ChainMatMul,
            ) => Ok(self.ragged_product(prim, operands, axes, result, ty)),
            Class::Contraction(Contraction::BatchMatMul | Contraction::ChainBatchMatMul) => Err(self.no_ragged(prim)),
            Class::Triangular(_) => Ok(self.ragged_triangular(prim, operands, axes, result, ty)),
            Class::Reduction(reduction) => self.ragged_reduction((prim, reduction), operands[0], &first, ty),
            Class::Draw(_) => self.ragged_draw(prim, result, ty),
        }
    }
    fn no_ragged(&self, prim: Prim) -> Box<Diagnostic> {
        self.ragged_error(&format!("`{prim}` does not take arrays of a bounded dimension here"))
    }
    fn ragged_error(&self, what: &str) -> Box<Diagnostic> {
        let error = Diagnostic::error("E0807", what, self.span(), "lengths differ from lane to lane");
        Box::new(error.with_help("write what is meant as a loop or comprehension over the elements"))
    }

    /// An elementwise primitive; `axes` are those of the result.
    pub(super) fn ragged_elementwise(
        &mut self,
        prim: Prim,
        operands: &[Operand],
        axes: &[Option<Operand>],
        ty: &Type,
    ) -> Operand {
        let types: Vec<Type> = operands.iter().map(|o| self.type_of(*o)).collect();
        let traps = prim.effect(&types) == Effect::Traps;
        let mut replaced = Vec::with_capacity(operands.len());
        for (operand, of) in operands.iter().zip(&types) {
            let varying_real = of.is_scalar() && of.dtype == DType::Real && operand.var().is_some();
            let harmless = traps || (prim != Prim::Select && self.spec.padding == Padding::Harmless);
            replaced.push(match of.dtype {
                DType::Int if traps => self.padded(*operand, &ty.shape, axes, Scalar::Int(1)),
                DType::Real if harmless => self.padded(*operand, &ty.shape, axes, Scalar::Real(1.0)),
                DType::Real if varying_real => {
                    let blank = self.blank(DType::Real, axes);
                    self.padded(*operand, &ty.shape, axes, blank)
                }
                _ => *operand,
            });
        }
        self.prim(prim, &replaced, ty)
    }

    fn ragged_reduction(
        &mut self,
        (prim, reduction): (Prim, Reduction),
        x: Operand,
        axes: &[Option<Operand>],
        ty: &Type,
    ) -> Lowered<Operand> {
        let of = self.type_of(x);
        let neutral = neutral(reduction, of.dtype);
        if matches!(prim, Prim::MinOf | Prim::MaxOf) {
            self.trap_when_empty(prim, &of, axes);
        }
        let trailing = axes.iter().skip(1).all(Option::is_none);
        let x = match prim {
            Prim::Sum if !trailing && of.elements() > BLOCK => self.compacted(x, &of, axes, neutral)?,
            Prim::SumLog | Prim::SumLog1pExp if !trailing && of.elements() > LOG_BLOCK => {
                self.compacted(x, &of, axes, neutral)?
            }
            _ => self.padded(x, &of.shape, axes, neutral),
        };
        Ok(self.prim(prim, &[x], ty))
    }

    /// The elements in one row, in order and without gaps: what a sum takes its blocks of.
    fn compacted(&mut self, x: Operand, of: &Type, axes: &[Option<Operand>], neutral: Scalar) -> Lowered<Operand> {
        let row = self.temporary(Type::new(of.dtype, [of.elements()]));
        self.set(row, Prim::Fill, &[Operand::Const(neutral)]);
        let at = self.accumulator(int(0));
        let scalar = Type::scalar(of.dtype);
        self.each_place(of, axes, &mut Vec::new(), &mut |this, place| {
            let element = this.prim(Prim::Index, &[&[x], place].concat(), &scalar);
            this.set(row, Prim::SetIndex, &[Operand::Var(row), element, Operand::Var(at)]);
            this.set(at, Prim::Add, &[Operand::Var(at), int(1)]);
            Ok(())
        })?;
        Ok(Operand::Var(row))
    }

    /// Runs `body` at every place of an array, the last axis fastest.
    fn each_place(
        &mut self,
        ty: &Type,
        axes: &[Option<Operand>],
        place: &mut Vec<Operand>,
        body: &mut AtPlace<'_, 's, 'a>,
    ) -> Lowered<()> {
        let axis = place.len();
        if axis == ty.shape.len() {
            return body(self, place);
        }
        let counter = self.bound("%i", Type::int());
        self.counted_loop(counter, int(0), Self::axis_length(axes, axis, ty), |this, _| {
            place.push(Operand::Var(counter));
            this.each_place(ty, axes, place, body)?;
            place.pop();
            Ok(())
        })
    }

    /// `min` and `max` of nothing trap.
    fn trap_when_empty(&mut self, prim: Prim, of: &Type, axes: &[Option<Operand>]) {
        let (empty, join) = (self.new_block(), self.new_block());
        for axis in 0..of.shape.len() {
            let length = Self::axis_length(axes, axis, of);
            let some = self.prim(Prim::Lt, &[int(0), length], &Type::bool());
            let next = self.new_block();
            self.terminate(Terminator::Branch(some, next, empty));
            self.start(next);
        }
        self.terminate(Terminator::Jump(join));
        self.start(empty);
        let nothing = self.temporary(Type::new(of.dtype, [0]));
        self.set(nothing, Prim::Fill, &[Operand::Const(super::expr::zero(of.dtype))]);
        let never = self.temporary(Type::scalar(of.dtype));
        self.set(never, prim, &[Operand::Var(nothing)]);
        self.terminate(Terminator::Jump(join));
        self.start(join);
    }

    /// Products of padding are −0, which leaves every sum as it is.
    fn ragged_product(
        &mut self,
        prim: Prim,
        operands: &[Operand],
        axes: &[Axes],
        result: &[Option<Operand>],
        ty: &Type,
    ) -> Operand {
        let mut replaced = operands.to_vec();
        for ((operand, axes), zero) in replaced.iter_mut().zip(axes).zip([0.0, -0.0]) {
            if !axes.is_empty() {
                let shape = self.type_of(*operand).shape;
                *operand = self.padded(*operand, &shape, axes, Scalar::Real(zero));
            }
        }
        let product = self.prim(prim, &replaced, ty);
        if result.is_empty() {
            return product;
        }
        let blank = self.blank(DType::Real, result);
        self.padded(product, &ty.shape, result, blank)
    }

    /// A matrix goes on as the identity does, a right side as zeros do: neither meets the elements.
    fn ragged_triangular(
        &mut self,
        prim: Prim,
        operands: &[Operand],
        axes: &[Axes],
        result: &[Option<Operand>],
        ty: &Type,
    ) -> Operand {
        let mut replaced = operands.to_vec();
        for (i, (operand, axes)) in replaced.iter_mut().zip(axes).enumerate() {
            let of = self.type_of(*operand);
            if axes.is_empty() {
                continue;
            }
            let padding = match i {
                0 => {
                    let place = |this: &mut Self, axis| Operand::Shared(this.spec.shared.positions(&of.shape, axis));
                    let places = [place(self, 0), place(self, 1)];
                    let diagonal = Type { dtype: DType::Bool, shape: of.shape.clone() };
                    let diagonal = self.prim(Prim::Eq, &places, &diagonal);
                    let (one, zero) = (Scalar::Real(1.0), Scalar::Real(0.0));
                    self.prim(Prim::Select, &[diagonal, Operand::Const(one), Operand::Const(zero)], &of)
                }
                _ => Operand::Const(Scalar::Real(0.0)),
            };
            let inside = self.inside(&of.shape, axes);
            *operand = self.prim(Prim::Select, &[inside, *operand, padding], &of);
        }
        let value = self.prim(prim, &replaced, ty);
        let blank = self.blank(DType::Real, result);
        self.padded(value, &ty.shape, result, blank)
    }

    /// Draws for the elements alone, so that the draws after them are the same whatever the bound is.
    fn ragged_draw(&mut self, prim: Prim, axes: &[Option<Operand>], ty: &Type) -> Lowered<Operand> {
        let array = self.blank_array(ty, axes);
        self.each_place(ty, axes, &mut Vec::new(), &mut |this, place| {
            let draw = this.prim(prim, &[], &Type::real());
            this.set(array, Prim::SetIndex, &[&[Operand::Var(array), draw], place].concat());
            Ok(())
        })?;
        Ok(Operand::Var(array))
    }
    fn blank_array(&mut self, ty: &Type, axes: &[Option<Operand>]) -> VarId {
        let array = self.temporary(ty.clone());
        let blank = self.blank(ty.dtype, axes);
        self.set(array, Prim::Fill, &[Operand::Const(blank)]);
        array
    }

    /// Whether a reshape leaves padding at the end: only the leading axis is bounded, and the same before and after.
    fn keeps_leading_axis(&self, x: Operand, from: &Axes, to: &Axes, ty: &Type) -> bool {
        let of = self.type_of(x);
        let leading = |axes: &Axes| axes.iter().skip(1).all(Option::is_none);
        leading(from) && leading(to) && from.first() == to.first() && of.shape.first() == ty.shape.first()
    }

    // Places

    /// Replaces indices beyond the length of their axis by one that traps. `exprs` are the indices as written, where they are.
    pub(super) fn check_indices(
        &mut self,
        indices: &mut [Operand],
        exprs: &[&Expr],
        axes: &[Option<Operand>],
        shape: &Shape,
    ) {
        for (i, index) in indices.iter_mut().enumerate() {
            let Some(length) = axes.get(i).copied().flatten() else {
                continue;
            };
            if exprs.get(i).is_some_and(|e| self.is_within(e, length)) {
                continue;
            }
            let within = self.prim(Prim::Lt, &[*index, length], &Type::bool());
            let beyond = int(shape[i] as i64);
            *index = self.prim(Prim::Select, &[within, *index, beyond], &Type::int());
        }
    }

    /// The start of a slice of `count` entries; where the slice goes beyond the length, one that traps.
    pub(super) fn check_slice(&mut self, start: Operand, count: usize, length: Operand, bound: usize) -> Operand {
        let last = self.prim(Prim::Sub, &[length, int(count as i64)], &Type::int());
        let within = self.prim(Prim::Le, &[start, last], &Type::bool());
        let beyond = int(bound as i64 + 1);
        self.prim(Prim::Select, &[within, start, beyond], &Type::int())
    }

    fn ragged_slice(
        &mut self,
        operands: &[Operand],
        axes: &[Option<Operand>],
        result: &[Option<Operand>],
        ty: &Type,
    ) -> Lowered<Operand> {
        let &[x, start] = operands else {
            return Err(self.ragged_error("a slice has an array and a start"));
        };
        let of = self.type_of(x);
        let leading = |axes: &[Option<Operand>]| axes.first().copied().flatten();
        match (leading(axes), leading(result)) {
            (None, None) => Ok(self.prim(Prim::Slice, operands, ty)),
            (Some(length), None) => {
                let start = self.check_slice(start, ty.shape[0], length, of.shape[0]);
                Ok(self.prim(Prim::Slice, &[x, start], ty))
            }
            // The whole array.
            (Some(length), Some(count)) if length == count && start == int(0) => Ok(x),
            (_, Some(count)) => {
                self.require_slice(start, count, Self::axis_length(axes, 0, &of));
                let array = self.blank_array(ty, result);
                let row = Type::new(ty.dtype, ty.shape[1..].iter().copied());
                self.each_row(start, count, |this, from, to| {
                    let entry = this.prim(Prim::Index, &[x, from], &row);
                    this.set(array, Prim::SetIndex, &[Operand::Var(array), entry, to]);
                })?;
                Ok(Operand::Var(array))
            }
        }
    }

    /// Sets the entries of an array from `start` on to those of `v`, of which there are `count`.
    pub(super) fn set_ragged_slice(
        &mut self,
        array: VarId,
        v: Operand,
        start: Operand,
        count: Operand,
        length: Operand,
    ) -> Lowered<()> {
        self.require_slice(start, count, length);
        let v = self.keep(v);
        let of = self.type_of(v);
        let row = Type::new(of.dtype, of.shape.iter().skip(1).copied());
        self.each_row(start, count, |this, at, from| {
            let entry = this.prim(Prim::Index, &[v, from], &row);
            this.set(array, Prim::SetIndex, &[Operand::Var(array), entry, at]);
        })
    }

    /// Runs `body` for the positions `start + i` and `i`, `i` below `count`.
    fn each_row(
        &mut self,
        start: Operand,
        count: Operand,
        mut body: impl FnMut(&mut Self, Operand, Operand),
    ) -> Lowered<()> {
        let counter = self.bound("%i", Type::int());
        self.counted_loop(counter, int(0), count, |this, _| {
            let i = Operand::Var(counter);
            let at = if start == int(0) { i } else { this.prim(Prim::Add, &[start, i], &Type::int()) };
            body(this, at, i);
            Ok(())
        })
    }

    /// Traps unless `count` entries from `start` on lie within `length`.
    fn require_slice(&mut self, start: Operand, count: Operand, length: Operand) {
        let last = self.prim(Prim::Sub, &[length, count], &Type::int());
        let below = self.prim(Prim::Le, &[start, last], &Type::bool());
        let above = self.prim(Prim::Le, &[int(0), start], &Type::bool());
        let within = self.prim(Prim::And, &[below, above], &Type::bool());
        let index = self.prim(Prim::Select, &[within, int(0), int(1)], &Type::int());
        let one = self.prim(Prim::MakeArray, &[int(0)], &Type::new(DType::Int, [1]));
        self.prim(Prim::Index, &[one, index], &Type::int());
    }
}

/// What a reduction may take in without a change.
pub(super) fn neutral(reduction: Reduction, dtype: DType) -> Scalar {
    let (real, int) = match reduction {
        Reduction::Any => return Scalar::Bool(false),
        Reduction::All => return Scalar::Bool(true),
        Reduction::Prod => (1.0, 1),
        Reduction::MinOf => (f64::INFINITY, i64::MAX),
        Reduction::MaxOf => (f64::NEG_INFINITY, i64::MIN),
        Reduction::Sum => (-0.0, 0),
        Reduction::SumLog => (1.0, 1),
        Reduction::SumLog1pExp => (f64::NEG_INFINITY, i64::MIN),
    };
    match dtype {
        DType::Real => Scalar::Real(real),
        DType::Int | DType::Bool => Scalar::Int(int),
    }
}
