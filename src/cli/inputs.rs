//! The inputs of the command line, bound to the parameters of a function.

use crate::hir::Dim;
use crate::lower::hir_to_cfg::{Signature, SignaturePort};
use crate::program::io::{ArrayType, Data, IoError, Values, read_argument};
use crate::program::{Error, ErrorKind, Inputs};

use super::args::InputArgs;

/// Reads all inputs.
///
/// # Errors
/// For what cannot be read, is given twice, or has another rank or element type than its parameter.
pub(super) fn read(args: &InputArgs, signature: &Signature) -> Result<Inputs, Error> {
    let mut inputs = Inputs::new();
    inputs.lanes = args.lanes;
    if let Some(path) = &args.data {
        let values = Values::read(path)?;
        for (name, data) in values.iter().filter(|(name, _)| !args.spare_data || takes(signature, name)) {
            add(&mut inputs, signature, name, data, true)?;
        }
        check_dims(&values, &inputs, signature)?;
    }
    for argument in &args.shared {
        let (name, data) = read_argument(argument)?;
        add(&mut inputs, signature, &name, &data, true)?;
    }
    for argument in &args.input {
        let (name, data) = read_argument(argument)?;
        add(&mut inputs, signature, &name, &data, false)?;
    }
    Ok(inputs)
}

/// Whether the function has an input of this name, or one that is a part of it.
fn takes(signature: &Signature, name: &str) -> bool {
    signature
        .ports
        .iter()
        .any(|p| p.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// Adds one value; an object gives the fields of a struct parameter.
fn add(inputs: &mut Inputs, signature: &Signature, name: &str, data: &Data, shared: bool) -> Result<(), Error> {
    let Some(port) = signature.ports.iter().find(|p| p.name == name) else {
        return add_parts(inputs, signature, name, data, shared);
    };
    let rank = port.extents.len() + usize::from(!shared);
    let array = data
        .to_array(name, ArrayType { dtype: port.dtype, rank })
        .map_err(|error| explained(&error, signature, port, shared))?;
    let value = Inputs::new();
    let value = if shared { value.shared(name, array) } else { value.lane(name, array) };
    if inputs.values.contains_key(name) {
        return Err(Error::new(ErrorKind::Input, format!("`{name}` is given twice")));
    }
    inputs.values.extend(value.values);
    Ok(())
}

fn explained(error: &IoError, signature: &Signature, port: &SignaturePort, shared: bool) -> Error {
    let ty = port.describe(&signature.dims);
    let lanes = if shared { "" } else { " for each lane, lanes along the leading axis" };
    Error::new(ErrorKind::Input, format!("`{}` takes {ty}{lanes}: {error}", port.name))
}

fn add_parts(inputs: &mut Inputs, signature: &Signature, name: &str, data: &Data, shared: bool) -> Result<(), Error> {
    let prefix = format!("{name}.");
    if let Data::Json(serde_json::Value::Object(fields)) = data
        && signature.ports.iter().any(|p| p.name.starts_with(&prefix))
    {
        for (field, value) in fields {
            add(inputs, signature, &format!("{prefix}{field}"), &Data::Json(value.clone()), shared)?;
        }
        return Ok(());
    }
    if shared && signature.dims.values().any(|dim| dim == name) {
        return Ok(());
    }
    // The library refuses unknown names in the words of the function; it needs some array for it.
    let array = data.to_array(name, data.guess_type())?;
    let one = if shared { Inputs::new().shared(name, array) } else { Inputs::new().lane(name, array) };
    inputs.values.extend(one.values);
    Ok(())
}

/// A data file may name the extents of its arrays, as Stan's do (`J`, `N`): they must agree with the arrays.
fn check_dims(values: &Values, inputs: &Inputs, signature: &Signature) -> Result<(), Error> {
    for (id, name) in signature.dims.iter() {
        let Some(said) = values.get(name).filter(|_| !signature.ports.iter().any(|p| p.name == *name)) else {
            continue;
        };
        let said = said.to_array(name, ArrayType { dtype: crate::types::DType::Int, rank: 0 })?;
        let found = signature.ports.iter().find_map(|port| {
            let axis = port.extents.iter().position(|d| *d == Dim::param(id))?;
            let given = inputs.values.get(&port.name)?;
            Some((port, given.array.shape.get(axis + usize::from(!given.shared)).copied()?))
        });
        if let (Some((port, extent)), Some([said])) = (found, said.as_int())
            && *said != extent as i64
        {
            let message = format!("{}: `{name}` is {said}, but `{}` has {extent} entries", values.origin(), port.name);
            return Err(Error::new(ErrorKind::Input, message));
        }
    }
    Ok(())
}
