//! Elements at indices that differ between lanes: the lanes of a group read and set elements of their own.

use super::place::{Number, Place, View};
use super::text::Writer;
use crate::backend::generator::ending::Ending;
use crate::backend::generator::functions::prefix;
use crate::types::DType;
use crate::unit::Operand;

/// Where a part of an array begins.
#[derive(Clone, Default, Debug)]
pub(super) struct First {
    /// Elements before it: an expression of plain ints, and a number.
    pub(super) plain: (Option<String>, usize),
    /// Those that differ between lanes, as a group of ints.
    pub(super) varying: Option<String>,
}

impl First {
    /// Adds what an index says, in elements.
    pub(super) fn add(&mut self, index: &Number, stride: usize) {
        let term = match (index.plain, stride) {
            (_, 1) => index.text.clone(),
            (true, _) => format!("{} * {stride}", index.text),
            (false, _) => format!("i_mul({}, i_splat({stride}))", index.text),
        };
        match index.plain {
            true => {
                let before = self.plain.0.take();
                self.plain.0 = Some(before.map_or_else(|| term.clone(), |before| format!("{before} + {term}")));
            }
            false => {
                let before = self.varying.take();
                self.varying = Some(before.map_or_else(|| term.clone(), |before| format!("i_add({before}, {term})")));
            }
        }
    }
}

impl<T: Ending> Writer<'_, T> {
    /// Whether indices are the same in all active lanes.
    pub(super) fn are_plain(&self, indices: &[Operand]) -> bool {
        indices.iter().all(|index| match index {
            Operand::Var(value) => self.known[*value].as_ref().is_some_and(|known| self.is_plain_index(known)),
            Operand::Shared(_) | Operand::Const(_) => true,
        })
    }

    /// The element of each lane at `first`, and so many behind it.
    pub(super) fn gathered(&mut self, view: &View, first: &str, e: Option<&str>) -> Option<Number> {
        if self.is_scheduled() {
            // Of one lane an index is as good as a plain one.
            return Some(self.element(&view.part(&(Some(first.to_owned()), 0), view.elements), e));
        }
        let (dtype, p) = (view.dtype, prefix(view.dtype));
        let elements = format!("i_add({first}, i_splat({}))", view.at(e));
        let text = match &view.place {
            Place::Slot(slot) => {
                self.signature.slots.insert(*slot);
                self.frame.gather(*slot, &elements, dtype)
            }
            Place::Constant(constant) => {
                let base = self.constant(*constant, dtype)?;
                format!("{p}_gather({base}, {elements}, m)")
            }
            Place::Local { name, plain: true } => format!("i_gather({name}, {elements}, m)"),
            Place::Local { name, plain: false } => {
                let ty = numbers(dtype)?;
                format!("{p}_gather((const {ty} *){name}, {}, m)", in_groups(&elements))
            }
            Place::One(number) => number.in_lanes(),
        };
        // Plain bools stand in arrays of ints.
        let is_int = matches!(&view.place, Place::Local { plain: true, .. }) && dtype == DType::Bool;
        let text = if is_int { format!("i_ne({text}, i_splat(0))") } else { text };
        Some(Number::group(text, dtype))
    }

    /// Sets the element of each lane at `first`, and so many behind it.
    pub(super) fn scattered(&mut self, view: &View, first: &str, e: Option<&str>, element: &Number) -> Option<()> {
        if self.is_scheduled() && matches!(view.place, Place::Slot(_) | Place::Local { .. }) {
            self.set(&view.part(&(Some(first.to_owned()), 0), view.elements), e, element);
            return Some(());
        }
        let (dtype, p) = (view.dtype, prefix(view.dtype));
        let elements = format!("i_add({first}, i_splat({}))", view.at(e));
        let line = match &view.place {
            Place::Slot(slot) => {
                self.signature.slots.insert(*slot);
                self.frame.scatter(*slot, &elements, dtype, &element.in_lanes())
            }
            Place::Local { name, plain: false } => {
                let ty = numbers(dtype)?;
                format!("{p}_scatter(({ty} *){name}, {}, m, {});", in_groups(&elements), element.in_lanes())
            }
            Place::Local { plain: true, .. } | Place::Constant(_) | Place::One(_) => return None,
        };
        self.line(line);
        Some(())
    }
}

/// The type of the numbers that an array of groups is made of; bools are masks.
fn numbers(dtype: DType) -> Option<&'static str> {
    match dtype {
        DType::Bool => None,
        DType::Int => Some("int64_t"),
        DType::Real => Some("real"),
    }
}

/// Places of elements among the numbers of an array of groups.
fn in_groups(elements: &str) -> String {
    format!("i_add(i_mul({elements}, i_splat(LANES)), i_iota())")
}
