//! The inputs of the command line, bound to the parameters of a function.

use crate::lower::hir_to_cfg::Signature;
use crate::program::io::{Values, read_argument};
use crate::program::{Error, Inputs};

use super::args::InputArgs;

/// Reads all inputs.
///
/// # Errors
/// For what cannot be read, is given twice, or has another rank or element type than its parameter.
pub(super) fn read(args: &InputArgs, signature: &Signature) -> Result<Inputs, Error> {
    let mut inputs = Inputs::new();
    if let Some(lanes) = args.lanes {
        inputs = inputs.lanes(lanes);
    }
    if let Some(path) = &args.data {
        let values = Values::read(path)?;
        for (name, data) in values.iter().filter(|(name, _)| !args.spare_data || signature.takes(name)) {
            inputs.add_data(signature, name, data, true)?;
        }
        inputs.check_dims(&values, signature)?;
    }
    for (arguments, shared) in [(&args.shared, true), (&args.input, false)] {
        for argument in arguments {
            let (name, data) = read_argument(argument)?;
            inputs.add_data(signature, &name, &data, shared)?;
        }
    }
    Ok(inputs)
}
