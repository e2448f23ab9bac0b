//! What the axes of variables are called, by the text of the model, `J` of `theta: real[J]`, or by who runs it; and what
//! stands along them.

use std::collections::HashSet;

use indexmap::{IndexMap, IndexSet};

use super::{ModelSource, PARAMETERS};
use crate::mcmc::protocol::Q;
use crate::program::{Error, ErrorKind, Function, Program};
use crate::store::{Coordinates, DATA_SET, METADATA};
use crate::types::ComplexPart;

/// What the axes of a variable are called, one after the other; none where the model does not tell.
pub type Axes = Vec<Option<String>>;

/// Axes of every array.
const TAKEN: [&str; 3] = ["chain", "draw", DATA_SET];

/// Bytes of the name of an axis, at most: a store has a folder of this name.
const LONGEST: usize = 200;

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

/// What an array calls its axes behind the first ones, where `axes` has names for those of variables. The parts of a complex
/// variable have its names.
pub fn axis_names(variable: &str, axes: &IndexMap<String, Axes>, rank: usize) -> Vec<String> {
    let of_whole = || axes.get(ComplexPart::named(variable)?.0);
    let known = axes.get(variable).or_else(of_whole).filter(|axes| axes.len() == rank);
    let name = |axis: usize| known.and_then(|axes| axes[axis].clone());
    (0..rank).map(|axis| name(axis).unwrap_or_else(|| format!("{variable}_dim_{axis}"))).collect()
}

/// The same of a datum: the size that gives an axis its name may be a datum as well, which has that name among the data.
pub(super) fn axis_names_of_datum(
    datum: &str,
    axes: &IndexMap<String, Axes>,
    rank: usize,
    is_datum: impl Fn(&str) -> bool,
) -> Vec<String> {
    let names = axis_names(datum, axes, rank).into_iter().enumerate();
    names.map(|(axis, name)| if is_datum(&name) { format!("{datum}_dim_{axis}") } else { name }).collect()
}

/// A variable of a run or a datum, and its shape behind the axes of chains, draws and data sets.
pub(super) struct Shaped<'a> {
    pub(super) name: &'a str,
    pub(super) shape: &'a [usize],
    pub(super) is_datum: bool,
}

impl Shaped<'_> {
    /// Whether names that are given for this variable are its: those of a complex one are those of its parts.
    fn is_of(&self, variable: &str) -> bool {
        self.name == variable || ComplexPart::named(self.name).is_some_and(|(whole, _)| whole == variable)
    }
}

/// Why an axis cannot be called like that; nothing where it can. Stores have a folder of this name.
fn unfit(name: &str, is_variable: impl Fn(&str) -> bool) -> Option<&'static str> {
    let odd = |c: char| c.is_control() || ['/', '\\', ':'].contains(&c);
    if name.is_empty()
        || name.len() > LONGEST
        || name.chars().any(odd)
        || name.starts_with('.')
        || name.starts_with("__")
    {
        Some("which is no name for an axis")
    } else if TAKEN.contains(&name) || name == METADATA {
        Some("which stores have for something else")
    } else if is_variable(name) {
        Some("which is a variable")
    } else {
        None
    }
}

/// Refuses names of axes, `dims`, and what stands along axes, `coords`, that do not fit these variables and data, whose axes
/// have the names `axes` then.
pub(super) fn check(
    dims: &IndexMap<String, Vec<String>>,
    coords: &Coordinates,
    axes: &IndexMap<String, Axes>,
    shapes: &[Shaped<'_>],
) -> Result<(), Error> {
    let refused = |message: String| Err(Error::new(ErrorKind::Option, message));
    let listed = |names: &mut dyn Iterator<Item = &str>| {
        let names: IndexSet<String> = names.map(|name| format!("`{name}`")).collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    };
    let is_variable = |name: &str| shapes.iter().any(|shaped| shaped.name == name);
    for (variable, names) in dims {
        let Some(shaped) = shapes.iter().find(|shaped| shaped.is_of(variable)) else {
            let there = listed(&mut shapes.iter().map(|shaped| shaped.name));
            return refused(format!("dims name axes of `{variable}`, which there is not: there is {there}"));
        };
        if names.len() != shaped.shape.len() {
            let count = shaped.shape.len();
            let axes = if count == 1 { "axis" } else { "axes" };
            return refused(format!("dims give `{variable}` {} names for {count} {axes}", names.len()));
        }
        for (at, name) in names.iter().enumerate() {
            if let Some(why) = unfit(name, is_variable) {
                return refused(format!("dims call an axis of `{variable}` {name:?}, {why}"));
            }
            if names[..at].contains(name) {
                return refused(format!("dims call two axes of `{variable}` `{name}`"));
            }
        }
    }
    let is_datum = |name: &str| shapes.iter().any(|shaped| shaped.is_datum && shaped.name == name);
    let all: Vec<(&str, String, usize)> = shapes
        .iter()
        .flat_map(|&Shaped { name, shape, is_datum: of_data }| {
            let names = match of_data {
                true => axis_names_of_datum(name, axes, shape.len(), is_datum),
                false => axis_names(name, axes, shape.len()),
            };
            names.into_iter().zip(shape).map(move |(axis, extent)| (name, axis, *extent))
        })
        .collect();
    for name in dims.values().flatten() {
        let mut own = all.iter().filter(|(_, axis, _)| axis == name);
        if let Some((first, _, extent)) = own.next()
            && let Some((other, _, differs)) = own.find(|(.., other)| other != extent)
        {
            let message =
                format!("dims call axes of `{first}` and `{other}` `{name}`, which have {extent} and {differs} places");
            return refused(message);
        }
    }
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
        if let Some(twice) = along.repeated() {
            return refused(format!("coords have `{twice}` twice along `{axis}`"));
        }
    }
    Ok(())
}
