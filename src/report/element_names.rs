//! What elements of variables are called.

use indexmap::IndexMap;

use crate::mcmc::sampling::{Axes, Draws, axis_names};
use crate::store::Coordinates;
use crate::types::ComplexPart;

/// What elements of variables are called: by what stands along their axes, `theta[Deerfield]`, else by their indices.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ElementNames {
    axes: IndexMap<String, Axes>,
    coords: Coordinates,
}

impl ElementNames {
    /// Of variables whose axes have these names, along which that stands.
    pub fn new(axes: IndexMap<String, Axes>, mut coords: Coordinates) -> Self {
        // Counted from 0 beside indices that count from 1 they would mislead, and what stands twice names nothing.
        coords.retain(|_, along| !along.is_places() && along.repeated().is_none());
        Self { axes, coords }
    }

    /// Of the variables of a run.
    pub(super) fn of_draws(draws: &Draws) -> Self {
        Self::new(draws.axes.clone(), draws.coords.clone())
    }

    /// How a table names it, and finds it.
    pub(super) fn in_table(&self, name: &str, event: &[usize], element: usize) -> ElementName {
        let (shown, by_index) = (self.element(name, event, element), element_name(name, event, element));
        let by_index = Some(by_index).filter(|name| *name != shown);
        ElementName { shown, by_index }
    }

    /// `theta[1]`, `m[2,Deerfield]`: the `element`-th of a variable of this event shape, in row-major order; indices count from 1.
    /// A label is in quotes where it could be taken for several, or is not to be printed as it is.
    pub fn element(&self, name: &str, event: &[usize], element: usize) -> String {
        if self.coords.is_empty() {
            return element_name(name, event, element);
        }
        let axes = axis_names(name, &self.axes, event.len());
        named(name, event, element, &|axis, at| Some(quoted(self.coords.get(&axes[axis])?.label(at)?)))
    }
}

/// What an element is called.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ElementName {
    /// By labels, where there are some.
    pub(super) shown: String,
    /// By its indices, where these are not shown.
    pub(super) by_index: Option<String>,
}

/// Whether users name an element so: as it is shown, by its indices, or by its variable.
pub(super) fn is_asked_for((shown, by_index): (&str, Option<&str>), asked: &str) -> bool {
    shown == asked || by_index == Some(asked) || shown.split('[').next() == Some(asked)
}

/// `theta[1]`, `m[2,3]`: the `element`-th in row-major order, counted from 1 along every axis; of the parts `z.real` and
/// `z.imag` of a complex variable `z[1,real]` and `z[1,imag]`.
pub fn element_name(name: &str, event: &[usize], element: usize) -> String {
    named(name, event, element, &|_, _| None)
}

fn quoted(label: String) -> String {
    let odd = |c: char| c.is_control() || [',', '[', ']', '"'].contains(&c);
    if label.is_empty() || label.chars().any(odd) { format!("{label:?}") } else { label }
}

/// The same, where `label` has what stands at a place of an axis.
fn named(name: &str, event: &[usize], element: usize, label: &dyn Fn(usize, usize) -> Option<String>) -> String {
    let (name, part) = ComplexPart::named(name).map_or((name, None), |(name, part)| (name, Some(part)));
    if event.is_empty() && part.is_none() {
        return name.to_owned();
    }
    let mut rest = element;
    let mut places: Vec<String> = (event.iter().enumerate().rev())
        .map(|(axis, extent)| {
            let at = rest % extent;
            rest /= extent;
            label(axis, at).unwrap_or_else(|| (at + 1).to_string())
        })
        .collect();
    places.reverse();
    places.extend(part.map(|part| part.suffix()[1..].to_owned()));
    format!("{name}[{}]", places.join(","))
}
