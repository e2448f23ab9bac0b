//! What the axes of variables are called, by the text of the model, `J` of `theta: real[J]`, or by who runs it; and what
//! stands along them.

use std::collections::HashSet;

use indexmap::{IndexMap, IndexSet};

use super::{ModelSource, PARAMETERS};
use crate::mcmc::protocol::Q;
use crate::program::{Error, ErrorKind, Function, Program};
use crate::store::{Coordinates, DATA_SET};

/// What the axes of a variable are called, one after the other; none where the model does not tell.
pub type Axes = Vec<Option<String>>;

/// Axes of every array.
const TAKEN: [&str; 3] = ["chain", "draw", DATA_SET];

/// The axes that have names, of parameters and data. A name that is that of a variable as well is none, since what stands along
/// an axis has its name, nor is one that a variable has for several of its axes.
pub(super) fn of(
    source: &ModelSource<'_>,
    model: &Program,
    density: &Function<'_>,
) -> Result<IndexMap<String, Axes>, Error> {
    let mut all: IndexMap<String, Axes> = match source {
        ModelSource::Stan(model) => model.axes().clone(),
        ModelSource::File(_) | ModelSource::Text(_) => {
            let given = match model.functions().any(|name| name == PARAMETERS) {
                true => model.function(PARAMETERS)?.output_axes(),
                false => vec![],
            };
            density.input_axes().into_iter().skip(1).chain(given).collect()
        }
    };
    let variables: HashSet<String> = match source {
        ModelSource::Stan(model) => model.variables().into_iter().collect(),
        _ => all.keys().cloned().collect(),
    };
    for axes in all.values_mut() {
        let own = axes.clone();
        for name in axes {
            let is_clear = |called: &String| {
                let once = own.iter().filter(|other| other.as_ref() == Some(called)).count() == 1;
                once && !variables.contains(called) && called != Q && !TAKEN.contains(&called.as_str())
            };
            *name = name.take().filter(|called| is_clear(called) && called.chars().all(is_of_name));
        }
    }
    all.retain(|_, axes| axes.iter().any(Option::is_some));
    Ok(all)
}

/// Names that the checker makes have other characters.
fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What an array calls its axes behind the first ones.
pub fn axis_names(variable: &str, axes: Option<&Axes>, rank: usize) -> Vec<String> {
    let known = |axis: usize| axes.filter(|axes| axes.len() == rank)?[axis].clone();
    (0..rank).map(|axis| known(axis).unwrap_or_else(|| format!("{variable}_dim_{axis}"))).collect()
}

/// Refuses names of axes, `dims`, and what stands along axes, `coords`, that do not fit variables and data of these shapes.
pub(super) fn check(
    dims: &IndexMap<String, Vec<String>>,
    coords: &Coordinates,
    axes: &IndexMap<String, Axes>,
    shapes: &[(&str, &[usize])],
) -> Result<(), Error> {
    let refused = |message: String| Err(Error::new(ErrorKind::Option, message));
    let listed = |names: &mut dyn Iterator<Item = &str>| {
        let names: IndexSet<String> = names.map(|name| format!("`{name}`")).collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    };
    let is_variable = |name: &str| shapes.iter().any(|(variable, _)| *variable == name);
    for (variable, names) in dims {
        let Some((_, shape)) = shapes.iter().find(|(name, _)| name == variable) else {
            let there = listed(&mut shapes.iter().map(|(name, _)| *name));
            return refused(format!("dims name axes of `{variable}`, which there is not: there is {there}"));
        };
        if names.len() != shape.len() {
            let count = shape.len();
            let axes = if count == 1 { "axis" } else { "axes" };
            return refused(format!("dims give `{variable}` {} names for {count} {axes}", names.len()));
        }
        for (at, name) in names.iter().enumerate() {
            if name.is_empty() || name.contains(['/', '\\']) || TAKEN.contains(&name.as_str()) || is_variable(name) {
                return refused(format!("dims call an axis of `{variable}` `{name}`: that name is taken, or none"));
            }
            if names[..at].contains(name) {
                return refused(format!("dims call two axes of `{variable}` `{name}`"));
            }
        }
    }
    let all: Vec<(&str, String, usize)> = shapes
        .iter()
        .flat_map(|(name, shape)| {
            let names = axis_names(name, axes.get(*name), shape.len());
            names.into_iter().zip(*shape).map(|(axis, extent)| (*name, axis, *extent))
        })
        .collect();
    for (axis, along) in coords {
        let mut own = all.iter().filter(|(_, name, _)| name == axis).peekable();
        if own.peek().is_none() {
            let there = listed(&mut all.iter().map(|(_, name, _)| name.as_str()));
            let there = if there.is_empty() { "no axis".to_owned() } else { there };
            return refused(format!("coords are for the axis `{axis}`, which there is not: there is {there}"));
        }
        if let Some((variable, _, extent)) = own.find(|(.., extent)| *extent != along.len()) {
            let count = along.len();
            return refused(format!("`{variable}` has {extent} places along `{axis}`, and coords have {count}"));
        }
        let labels: Vec<String> = (0..along.len()).filter_map(|at| along.label(at)).collect();
        let mut seen = HashSet::new();
        if let Some(twice) = labels.iter().find(|label| !seen.insert(label.as_str())) {
            return refused(format!("coords have `{twice}` twice along `{axis}`"));
        }
    }
    Ok(())
}
