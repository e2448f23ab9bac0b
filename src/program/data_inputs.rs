//! Inputs from texts and files, whose types the parameters decide.

use crate::hir::Dim;
use crate::lower::hir_to_cfg::{Signature, SignaturePort};
use crate::program::inputs::Given;
use crate::program::io::{ArrayType, Data, IoError, Values};
use crate::program::{Error, ErrorKind, Inputs, ragged};
use crate::types::DType;

impl Inputs {
    /// Adds a value for the parameter `name` of a function of this signature, with the element type and rank that it wants;
    /// a JSON object gives the fields of a struct parameter. `shared` values are one for all lanes, the others have the lanes
    /// as their leading axis. A shared value that has the name of a dimension is left out.
    ///
    /// An empty list of JSON does not tell the extents of what would stand in it: they are those that constants and the other
    /// inputs fix, else 0.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a value that is given twice, or that has another rank or element type than the parameter.
    pub fn add_data(&mut self, signature: &Signature, name: &str, data: &Data, shared: bool) -> Result<(), Error> {
        let Some(port) = signature.ports.iter().find(|p| p.name == name) else {
            return self.add_parts(signature, name, data, shared);
        };
        if let (Data::Json(serde_json::Value::Array(lanes)), false) = (data, shared)
            && port.extents.iter().any(|d| signature.bounded(d).is_some())
        {
            let given = ragged_lanes(signature, port, lanes)?;
            return self.insert(name, given);
        }
        let rank = port.extents.len() + usize::from(!shared);
        let array = data
            .to_array(name, ArrayType { dtype: port.dtype, rank })
            .map_err(|error| explained(&error, signature, port, shared))?;
        let known_axes = data.known_axes(&array);
        self.insert(name, Given { array, shared, known_axes, lengths: Vec::new() })
    }

    fn insert(&mut self, name: &str, given: Given) -> Result<(), Error> {
        if self.values.contains_key(name) {
            return Err(Error::new(ErrorKind::Input, format!("`{name}` is given twice")));
        }
        self.values.insert(name.to_owned(), given);
        Ok(())
    }

    fn add_parts(&mut self, signature: &Signature, name: &str, data: &Data, shared: bool) -> Result<(), Error> {
        let prefix = format!("{name}.");
        if let Data::Json(serde_json::Value::Object(fields)) = data
            && signature.ports.iter().any(|p| p.name.starts_with(&prefix))
        {
            for (field, value) in fields {
                self.add_data(signature, &format!("{prefix}{field}"), &Data::Json(value.clone()), shared)?;
            }
            return Ok(());
        }
        if shared && signature.dims.values().any(|dim| dim == name) {
            return Ok(());
        }
        // `bind` refuses unknown names in the words of the function; it needs some array for it.
        let array = data.to_array(name, data.guess_type())?;
        self.values.insert(name.to_owned(), Given::new(array, shared));
        Ok(())
    }

    /// A data file may name the extents of its arrays, as Stan's do (`J`, `N`): they must agree with the arrays.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for the first that does not.
    pub fn check_dims(&self, values: &Values, signature: &Signature) -> Result<(), Error> {
        for (id, name) in signature.dims.iter() {
            let Some(said) = values.get(name).filter(|_| !signature.ports.iter().any(|p| p.name == *name)) else {
                continue;
            };
            let said = said.to_array(name, ArrayType { dtype: DType::Int, rank: 0 })?;
            let found = signature.ports.iter().find_map(|port| {
                let axis = port.extents.iter().position(|d| *d == Dim::param(id))?;
                let given = self.values.get(&port.name)?;
                Some((port, given.array.shape.get(axis + usize::from(!given.shared)).copied()?))
            });
            if let (Some((port, extent)), Some([said])) = (found, said.as_int())
                && *said != extent as i64
            {
                let message =
                    format!("{}: `{name}` is {said}, but `{}` has {extent} entries", values.origin(), port.name);
                return Err(Error::new(ErrorKind::Input, message));
            }
        }
        Ok(())
    }
}

/// A list of events whose bounded axes have a length of their own in every lane.
fn ragged_lanes(signature: &Signature, port: &SignaturePort, lanes: &[serde_json::Value]) -> Result<Given, Error> {
    let rank = port.extents.len();
    let mut events = Vec::with_capacity(lanes.len());
    let mut known_axes = 0;
    for (lane, value) in lanes.iter().enumerate() {
        let data = Data::Json(value.clone());
        let place = format!("{}[{lane}]", port.name);
        let event = data
            .to_array(&place, ArrayType { dtype: port.dtype, rank })
            .map_err(|error| explained(&error, signature, port, false))?;
        known_axes = known_axes.max(data.known_axes(&event));
        events.push(event);
    }
    let bounded: Vec<bool> = port.extents.iter().map(|d| signature.bounded(d).is_some()).collect();
    let (array, lengths) = ragged::stacked(&events, port.dtype, &bounded).map_err(|(lane, axis, wanted, found)| {
        let ty = port.describe(&signature.dims);
        let message = format!(
            "`{}` takes {ty} for each lane: lane {lane} has {found} entries along axis {axis}, the lanes before it {wanted}",
            port.name
        );
        Error::new(ErrorKind::Input, message)
    })?;
    Ok(Given { array, shared: false, known_axes: 1 + known_axes, lengths })
}

fn explained(error: &IoError, signature: &Signature, port: &SignaturePort, shared: bool) -> Error {
    let ty = port.describe(&signature.dims);
    let lanes = if shared { "" } else { " for each lane, lanes along the leading axis" };
    Error::new(ErrorKind::Input, format!("`{}` takes {ty}{lanes}: {error}", port.name))
}

impl Signature {
    /// Whether there is an input of this name, or one that is a part of it.
    pub fn takes(&self, name: &str) -> bool {
        let part = |port: &SignaturePort| {
            port.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.ports.iter().any(part)
    }
}
