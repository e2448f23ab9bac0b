//! What axes are called and what stands along them, of a file.

use std::path::Path;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::program::{Error, ErrorKind};
use crate::store::{Coordinate, Coordinates};

/// The keys of a file that has names of axes, too, as ArviZ has them.
const BOTH: [&str; 2] = ["coords", "dims"];

/// Names of axes, by variables, and what stands along axes.
pub(super) type Told = (IndexMap<String, Vec<String>>, Coordinates);

/// Reads `{"school": ["Choate", …]}`, or `{"coords": {"school": […]}, "dims": {"theta": ["school"]}}`.
///
/// # Errors
/// For a file that cannot be read, or has something else.
pub(super) fn read(path: &Path) -> Result<Told, Error> {
    let shown = path.display();
    let refused = |what: String| Err(Error::new(ErrorKind::Input, format!("--coords {shown}: {what}")));
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::new(ErrorKind::Io, format!("--coords: cannot read {shown}: {error}")))?;
    let all: Map<String, Value> = match serde_json::from_str(&text) {
        Ok(Value::Object(all)) => all,
        Ok(_) => return refused("it must be an object with what stands along axes, by their names".to_owned()),
        Err(error) => return refused(format!("no JSON: {error}")),
    };
    let part = |key: &str| match all.get(key) {
        Some(Value::Object(part)) => Some(part),
        _ => None,
    };
    let has_both = !all.is_empty() && all.keys().all(|key| BOTH.contains(&key.as_str()) && part(key).is_some());
    let (along, named) = if has_both { (part("coords"), part("dims")) } else { (Some(&all), None) };
    let (mut coords, mut dims) = (Coordinates::new(), IndexMap::new());
    for (axis, value) in along.into_iter().flatten() {
        match coordinate(value) {
            Some(along) => drop(coords.insert(axis.clone(), along)),
            None => return refused(format!("`{axis}` must have a list of texts, or one of whole numbers")),
        }
    }
    for (variable, value) in named.into_iter().flatten() {
        match coordinate(value) {
            Some(Coordinate::Texts(names)) => drop(dims.insert(variable.clone(), names)),
            _ => return refused(format!("the dims of `{variable}` must be a list of names, one for each axis")),
        }
    }
    Ok((dims, coords))
}

fn coordinate(value: &Value) -> Option<Coordinate> {
    let all = value.as_array()?;
    let texts: Option<_> = all.iter().map(|one| Some(one.as_str()?.to_owned())).collect();
    let numbers = || all.iter().map(Value::as_i64).collect::<Option<_>>().map(Coordinate::Ints);
    texts.map(Coordinate::Texts).or_else(numbers)
}
