//! Data of models that ship.

use std::path::Path;

use autobatch::program::io::{ArrayType, NamedValues};
use autobatch::program::{Error, Function, Inputs};

/// What a function takes of the values in a file, the same for all lanes.
pub(crate) fn shared_inputs(function: &Function<'_>, file: &str) -> Result<Inputs, Error> {
    let values = NamedValues::read(Path::new(file))?;
    let mut inputs = Inputs::new();
    for port in function.signature().ports.iter().filter(|p| p.shared) {
        let ty = ArrayType { dtype: port.dtype, rank: port.extents.len() };
        inputs = inputs.shared(port.name.clone(), values.array(&port.name, ty)?);
    }
    Ok(inputs)
}
