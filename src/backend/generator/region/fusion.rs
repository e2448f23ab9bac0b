//! Loops over elements that share a loop of the text: elementwise operations, and sums of their results, one after the other.
//!
//! A loop is *open* until something needs what it makes, or changes what it reads. What else is written meanwhile stands
//! before it.

use std::collections::HashSet;

use super::place::{Known, Number, Place, View};
use super::shapes;
use super::text::Writer;
use crate::backend::generator::ending::Ending;
use crate::backend::generator::functions::may_trap;
use crate::backend::generator::ssa::Kind;
use crate::prim::{BLOCK, Class, Movement, Prim, Reduction, computed_elementwise};
use crate::types::DType;
use crate::unit::{Block, OpKind, Operand, SideEffect, ValueId};

/// A loop that is open.
#[derive(Default)]
pub(super) struct OpenLoop {
    /// Elements that it goes through.
    elements: usize,
    /// Of a row, if it goes through rows and columns.
    columns: Option<usize>,
    /// The arrays that it makes, whole, by name.
    arrays: HashSet<String>,
    /// The numbers that are known behind it, by name.
    numbers: HashSet<String>,
    /// The arrays of the function that it reads, by name.
    read: HashSet<String>,
    text: String,
}

impl OpenLoop {
    /// Whether it reads something of the place of a view.
    pub(super) fn reads(&self, view: &View) -> bool {
        view.is_one_of(&self.read)
    }
}

impl<T: Ending> Writer<'_, T> {
    /// Writes the loop that is open.
    pub(super) fn close_loop(&mut self) {
        if let Some(open) = self.open_loop.take() {
            match open.columns {
                Some(columns) => self.open_rows(open.elements, columns),
                None => self.open_loop_over("e", open.elements),
            }
            self.body.push_str(&open.text);
            (0..1 + usize::from(open.columns.is_some())).for_each(|_| self.close());
        }
    }

    /// Writes what a loop over so many elements does for each of them, into the one that is open if there is one. It makes
    /// an array, or else a number, and reads these; `columns`: by which it names places, if it does.
    pub(super) fn in_loop(
        &mut self,
        (elements, columns): (usize, Option<usize>),
        made: &Known,
        read: &[View],
        body: impl FnOnce(&mut Self),
    ) {
        let mut open = self.open_loop.take().unwrap_or_default();
        open.elements = elements;
        open.columns = open.columns.or(columns);
        for view in read {
            if let Place::Local { name, .. } = &view.place {
                open.read.insert(name.clone());
            }
        }
        match made {
            Known::Array(View { place: Place::Local { name, .. }, .. }) => _ = open.arrays.insert(name.clone()),
            Known::Array(_) => {}
            Known::Number(number) => _ = open.numbers.insert(number.text.clone()),
        }
        std::mem::swap(&mut self.body, &mut open.text);
        self.indent += 4;
        body(self);
        self.indent -= 4;
        std::mem::swap(&mut self.body, &mut open.text);
        self.open_loop = Some(open);
    }

    /// The elements that an operation goes through that can share a loop: it takes out no lanes, since what stands before
    /// the loop may do that, too.
    pub(super) fn shares(&self, block: &Block<T>, dst: ValueId, prim: Prim, args: &[Operand]) -> Option<usize> {
        if self.added_later(block, dst, prim, args).is_some() {
            return None;
        }
        let value = &block.values[dst];
        let of = |arg: &Operand| block.operand_type(*arg, self.storage.globals);
        let elements = match prim.class() {
            computed_elementwise!() if value.ty.elements() > 1 => value.ty.elements(),
            Class::Reduction(Reduction::Sum) if value.ty.elements() == 1 && value.ty.dtype == DType::Real => {
                Some(of(&args[0]).elements()).filter(|n| (2..=BLOCK).contains(n))?
            }
            _ => return None,
        };
        let traps = prim == Prim::IntPow || may_trap(Kind::Map(prim), args.first().map(|arg| of(arg).dtype));
        (!traps && (!value.uniform || value.ty.dtype == DType::Real)).then_some(elements)
    }

    /// The columns by which an operation names places, if it does: of an operand the same elements serve again.
    pub(super) fn columns(&self, block: &Block<T>, dst: ValueId, args: &[Operand]) -> Option<usize> {
        let ty = &block.values[dst].ty;
        let serves_again = |arg: &Operand| ![1, ty.elements()].contains(&self.elements(block, *arg));
        shapes::columns(&ty.shape).filter(|_| args.iter().any(serves_again))
    }

    /// Elements of an operand.
    fn elements(&self, block: &Block<T>, operand: Operand) -> usize {
        block.operand_type(operand, self.storage.globals).elements()
    }

    /// Whether the loop that is open must stand before an operation.
    pub(super) fn must_close(&self, block: &Block<T>, kind: &OpKind) -> bool {
        let Some(open) = &self.open_loop else { return false };
        let (mut of_numbers, mut of_arrays, mut of_parts) = (false, false, false);
        kind.for_each_operand(|operand| match operand.var().and_then(|value| self.known[value].as_ref()) {
            Some(Known::Number(Number { text, .. })) => of_numbers |= open.numbers.contains(text),
            Some(Known::Array(view)) if view.is_one_of(&open.arrays) => {
                of_arrays = true;
                of_parts |= view.first != (None, 0) || view.elements != open.elements;
            }
            Some(Known::Array(View { place: Place::One(number), .. })) => {
                of_numbers |= open.numbers.contains(&number.text);
            }
            _ => {}
        });
        let is_number = |value: ValueId| block.values[value].ty.elements() == 1;
        of_numbers
            || match kind {
                OpKind::Load { .. } => false,
                OpKind::Compute { dst, prim, args } => match (self.shares(block, *dst, *prim, args), prim.class()) {
                    (Some(elements), _) => {
                        let columns = self.columns(block, *dst, args);
                        let part = matches!((columns, open.columns), (Some(a), Some(b)) if a != b);
                        elements != open.elements || of_parts || part
                    }
                    // It is written when this loop is.
                    _ if self.added_later(block, *dst, *prim, args).is_some() => false,
                    // Nothing is written for views.
                    (None, Class::Identity(_) | Class::Movement(Movement::Reshape)) => false,
                    (None, Class::Movement(Movement::Fill)) if self.elements(block, args[0]) == 1 => false,
                    (None, Class::Movement(Movement::Index | Movement::Slice))
                        if !is_number(*dst) && self.are_plain(&args[1..]) =>
                    {
                        false
                    }
                    (None, _) => of_arrays || !is_number(*dst),
                },
                OpKind::Store { value, .. } => self.elements(block, *value) > 1,
                OpKind::Effect(SideEffect::TapePush { .. }) => of_arrays,
                OpKind::Effect(_) => false,
                OpKind::Push { .. } | OpKind::Pop { .. } => true,
            }
    }
}
