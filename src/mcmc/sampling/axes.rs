//! What the axes of variables are called, by the text of the model: `J` of `theta: real[J]`.

use std::collections::HashSet;

use indexmap::IndexMap;

use super::{ModelSource, PARAMETERS};
use crate::mcmc::protocol::Q;
use crate::program::{Error, Function, Program};
use crate::store::DATA_SET;

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
pub(super) fn names(variable: &str, axes: Option<&Axes>, rank: usize) -> Vec<String> {
    let known = |axis: usize| axes.filter(|axes| axes.len() == rank)?[axis].clone();
    (0..rank).map(|axis| known(axis).unwrap_or_else(|| format!("{variable}_dim_{axis}"))).collect()
}
