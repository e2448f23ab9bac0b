//! A model: the density that it exports, and what its data must tell.

use super::Job;
use crate::program::{Error, ErrorKind, Function, Inputs, Program, Terms};
use crate::types::DType;

/// The function that a model must export, unless it exports [`DENSITY_AND_GRADIENT`].
pub const DENSITY: &str = "log_density";
/// The log density without the log Jacobian, which a model exports whose parameters have constraints in its signature.
pub const DENSITY_WITHOUT_JACOBIAN: &str = "log_density_without_jacobian";
/// The function that a model exports in the place of [`DENSITY`] when its gradient is written by hand.
pub const DENSITY_AND_GRADIENT: &str = "log_density_and_gradient";
/// The function that a model may export to name its constrained parameters.
pub const PARAMETERS: &str = "parameters";

/// The density of a model, by the name that it has there.
pub(in crate::mcmc) fn density<'a>(model: &'a Program, path: &str) -> Result<Function<'a>, Error> {
    density_varying(model, path, &[])
}

/// The same of a model that was compiled so that each lane has its own of these data.
pub(super) fn density_varying<'a>(model: &'a Program, path: &str, own: &[String]) -> Result<Function<'a>, Error> {
    let by_hand = model.functions().any(|name| name == DENSITY_AND_GRADIENT);
    let name = if by_hand { DENSITY_AND_GRADIENT } else { DENSITY };
    let density = model.function(name).map_err(|error| wrong(path, &error.to_string()))?;
    check_form(&density, path, own)?;
    Ok(density)
}

/// The density with these terms: without the Jacobian where the model has such a one.
pub(in crate::mcmc) fn density_of_terms<'a>(
    model: &'a Program,
    path: &str,
    terms: Terms,
) -> Result<Function<'a>, Error> {
    match !terms.jacobian && model.functions().any(|name| name == DENSITY_WITHOUT_JACOBIAN) {
        true => model.function(DENSITY_WITHOUT_JACOBIAN),
        false => density(model, path),
    }
}

/// Refuses a density of another form than chains can call.
fn check_form(density: &Function<'_>, path: &str, own: &[String]) -> Result<(), Error> {
    let [state, data @ ..] = &density.signature().ports[..] else {
        return Err(wrong(path, "it has no parameters"));
    };
    if state.shared || state.dtype != DType::Real || state.extents.len() != 1 {
        return Err(wrong(path, &format!("its first parameter is `{}`", state.name)));
    }
    match data.iter().find(|p| !p.shared && !own.contains(&p.name) || p.name.contains('.')) {
        Some(port) => Err(wrong(path, &format!("`{}` must be a shared scalar or array", port.name))),
        None => Ok(()),
    }
}

fn wrong(path: &str, why: &str) -> Error {
    let form = format!("pub fn {DENSITY}(q: real[d], shared …) -> real");
    Error::new(ErrorKind::Entry, format!("{}: a model exports `{form}`: {why}", path))
}

/// The number of coordinates of the state of a density, its first parameter, where its shared inputs tell it, or ints
/// under the names of dimensions.
pub fn dimension(density: &Function<'_>, data: &Inputs) -> Option<usize> {
    let signature = density.signature();
    let mut dims = data.told_by_arrays(signature);
    dims.extend(data.told(signature));
    signature.extents_at(0, &dims)?.first().copied()
}

/// Refuses data that are not all there.
pub(in crate::mcmc) fn refuse_missing(density: &Function<'_>, data: &Inputs) -> Result<(), Error> {
    let signature = density.signature();
    let missing = signature.ports.iter().filter(|p| p.shared && !data.values.contains_key(&p.name));
    let told = data.told(signature);
    let mut names: Vec<String> = Vec::new();
    for port in missing {
        // What an array carries that has no elements are dimensions.
        let dims = || port.extents.iter().flat_map(|dim| dim.ids()).filter(|id| !told.contains_key(id));
        match port.carries_dims() {
            true => names.extend(dims().map(|id| format!("`{}: int`", signature.dims[id]))),
            false => names.push(format!("`{}: {}`", port.name, port.describe(&signature.dims))),
        }
    }
    let missing = names;
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("the model needs {} in its data", missing.join(", "));
    Err(Error::new(ErrorKind::Input, message))
}

/// Refuses data that are not all there, and starting points of another width than the model's state.
pub(super) fn check_inputs(job: &Job<'_>, density: &Function<'_>, data: &Inputs) -> Result<(), Error> {
    refuse_missing(density, data)?;
    let signature = density.signature();
    let refused = |message: String| Err(Error::new(ErrorKind::Input, message));
    let told = dimension(density, data).or(job.starts.as_ref().map(|starts| starts.shape[1]));
    if let (Some(d), Some(given)) = (told, job.inv_metric.as_ref().and_then(|metric| metric.shape.last().copied()))
        && d != given
    {
        return refused(format!("the inverse metric has {given} rows, but the state of the model has {d} coordinates"));
    }
    match (dimension(density, data), &job.starts) {
        (Some(d), Some(starts)) if starts.shape[1] != d => {
            refused(format!("--starts: rows of {}, but the state of the model has {d} coordinates", starts.shape[1]))
        }
        (None, None) => {
            let state = &signature.ports[0];
            let (name, ty) = (&state.name, state.describe(&signature.dims));
            let dims = data.told_by_arrays(signature);
            let told = data.told(signature);
            let open = state.extents[0].ids().filter(|id| !dims.contains_key(id) && !told.contains_key(id));
            let open: Vec<String> = open.map(|id| format!("`{}`", signature.dims[id])).collect();
            refused(format!(
                "no data tell the dimension of the state `{name}: {ty}` of the model: say what {} is in the data or by \
                 --shared, or give --starts",
                open.join(" and ")
            ))
        }
        _ => Ok(()),
    }
}
