//! Where the values of a region are.

use std::collections::HashSet;

use crate::backend::generator::functions::prefix;
use crate::plan::{ConstantId, SlotId};
use crate::types::DType;

/// One number, as an expression that may be read anywhere in its block.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Number {
    pub(super) text: String,
    pub(super) dtype: DType,
    /// Whether it is a plain int or bool, the same for all lanes; else it is a group of lanes.
    pub(super) plain: bool,
}

impl Number {
    /// A group of lanes.
    pub(super) fn group(text: impl Into<String>, dtype: DType) -> Self {
        Self { text: text.into(), dtype, plain: false }
    }
    /// A plain int or bool.
    pub(super) fn plain(text: impl Into<String>, dtype: DType) -> Self {
        Self { text: text.into(), dtype, plain: true }
    }
    /// The number in a group of lanes, as an expression.
    pub(super) fn in_lanes(&self) -> String {
        if self.plain { format!("{}_splat({})", prefix(self.dtype), self.text) } else { self.text.clone() }
    }
}

/// Where elements stand.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Place {
    /// In a lane buffer.
    Slot(SlotId),
    /// In a shared value.
    Constant(ConstantId),
    /// In an array of the function, of this name; `plain`: of ints or bools that are the same for all lanes.
    Local { name: String, plain: bool },
    /// The same number at all places.
    One(Number),
}

/// Some elements of a place: element `e` is its element `first + e`.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct View {
    pub(super) place: Place,
    /// An expression, and what is added to it.
    pub(super) first: (Option<String>, usize),
    pub(super) elements: usize,
    pub(super) dtype: DType,
}

impl View {
    /// All of a place.
    pub(super) fn whole(place: Place, elements: usize, dtype: DType) -> Self {
        Self { place, first: (None, 0), elements, dtype }
    }
    /// No elements.
    pub(super) fn nothing(dtype: DType) -> Self {
        Self::whole(Place::One(Number::group("0", dtype)), 0, dtype)
    }
    /// Whether it is of an array of the function that has one of these names.
    pub(super) fn is_one_of(&self, names: &HashSet<String>) -> bool {
        matches!(&self.place, Place::Local { name, .. } if names.contains(name))
    }
    /// The part of so many elements that begins so far behind.
    pub(super) fn part(&self, first: &(Option<String>, usize), elements: usize) -> Self {
        let text = match (&self.first.0, &first.0) {
            (Some(a), Some(b)) => Some(format!("{a} + {b}")),
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        Self { first: (text, self.first.1 + first.1), elements, ..self.clone() }
    }
    /// The same, as something that no array which is set element by element may share its place with.
    pub(super) fn nowhere_else(&self) -> Self {
        Self { elements: 0, ..self.clone() }
    }
    /// The place of an element, which is named by an expression, if by any.
    pub(super) fn at(&self, element: Option<&str>) -> String {
        let texts = [self.first.0.as_deref(), element];
        let mut parts: Vec<String> = texts.into_iter().flatten().map(str::to_owned).collect();
        if self.first.1 > 0 || parts.is_empty() {
            parts.push(self.first.1.to_string());
        }
        parts.join(" + ")
    }
}

/// A value of a block.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Known {
    Number(Number),
    Array(View),
}
