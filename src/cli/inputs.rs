//! The inputs of the command line, bound to the parameters of a function.

use crate::lower::hir_to_cfg::Signature;
use crate::program::io::{NamedValues, read_argument};
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
        inputs.add_values(signature, &NamedValues::read(path)?, |_| true)?;
    }
    for (arguments, shared, by) in [(&args.shared, true, " by --shared"), (&args.input, false, "")] {
        for argument in arguments {
            let (name, data) = read_argument(argument)?;
            if !shared || !inputs.add_dimension(signature, &name, &data, by)? {
                inputs.add_data(signature, &name, &data, shared)?;
            }
        }
    }
    Ok(inputs)
}
