//! The inputs of the command line, bound to the parameters of a function.

use crate::lower::hir_to_cfg::Signature;
use crate::program::io::{NamedValues, read_argument};
use crate::program::{Error, Function, Inputs, refuse_unknown};

use super::args::InputArgs;

/// Reads the inputs of a function of a model.
///
/// # Errors
/// As [`read`], and for a value that no function of the model takes.
pub(super) fn of_model(args: &InputArgs, function: &Function<'_>) -> Result<Inputs, Error> {
    let signature = function.signature();
    let mut inputs = read(args, signature)?;
    // What another function of the model takes is none of this one's business; what none takes is a mistake.
    inputs
        .values
        .retain(|name, _| signature.ports.iter().any(|port| port.name == *name) || !function.is_taken_beside(name));
    refuse_unknown(&inputs, function.name(), signature)?;
    Ok(inputs)
}

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
