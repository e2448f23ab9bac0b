//! A model's density as it stands in a program that nobody has written: one that joins it to an algorithm.

use crate::base::IdVec;
use crate::program::{Function, Inputs};

use super::sampling::{DENSITY_AND_GRADIENT, ModelSource};

/// What such a program says of a density.
#[derive(Clone, Debug)]
pub(super) struct DensityText {
    /// Dimensions that the program is generic in, in brackets; empty where there are none.
    pub(super) dims: String,
    /// Its other parameters, the model's data: shared, but for those of which each data set has its own.
    pub(super) params: Vec<String>,
    /// These as arguments, with a comma before each.
    pub(super) args: String,
    /// The type of the state.
    pub(super) state: String,
    /// Its extent.
    pub(super) dimension: String,
    /// What is called with the state and the data: the attempt at the density and its gradient, of the module `model`.
    pub(super) call: String,
}

impl DensityText {
    /// Of a density with its data.
    pub(super) fn new(density: &Function<'_>, given: &Inputs) -> Self {
        let signature = density.signature();
        let (state, data) = signature.ports.split_first().expect("a density has a state");
        // Dimensions that no array has alone are numbers there.
        let (by_arrays, told) = (given.told_by_arrays(signature), given.told(signature));
        let number = |id: &_| told.get(id).filter(|_| !by_arrays.contains_key(id));
        let names: IdVec<_, String> = (signature.dims.iter())
            .map(|(id, name)| number(&id).map_or_else(|| name.clone(), |number| number.to_string()))
            .collect();
        let dims: Vec<&str> =
            (signature.dims.iter()).filter(|(id, _)| number(id).is_none()).map(|(_, name)| name.as_str()).collect();
        Self {
            dims: if dims.is_empty() { String::new() } else { format!("[{}]", dims.join(", ")) },
            params: (data.iter())
                .map(|p| format!("{}{}: {}", if p.shared { "shared " } else { "" }, p.name, p.describe(&names)))
                .collect(),
            args: data.iter().map(|p| format!(", {}", p.name)).collect(),
            state: state.describe(&names),
            dimension: state.extents[0].display(&names).to_string(),
            call: match density.name() {
                DENSITY_AND_GRADIENT => format!("attempt(model::{DENSITY_AND_GRADIENT})"),
                name => format!("attempt(value_and_grad(model::{name}))"),
            },
        }
    }
}

/// Names that are neither of data nor of dimensions of a density.
pub(super) fn free_name(density: &Function<'_>, name: &str) -> String {
    let signature = density.signature();
    let taken = |name: &str| {
        signature.ports.iter().any(|port| port.name == name) || signature.dims.values().any(|dim| dim == name)
    };
    let mut name = name.to_owned();
    while taken(&name) {
        name.push('_');
    }
    name
}

/// The beginning of a program: the model, and modules of the library under names.
pub(super) fn uses(model: &ModelSource<'_>, modules: &[(&str, &str)]) -> String {
    let modules = modules.iter().map(|(path, name)| format!("use \"std/{path}\" as {name};\n"));
    format!("use \"{}\" as model;\n{}\n", model.module().0, modules.collect::<String>())
}
