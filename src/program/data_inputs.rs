//! Inputs from texts and files, whose types the parameters decide.

use crate::lower::hir_to_cfg::{Signature, SignaturePort};
use crate::program::inputs::{Given, ToldDim};
use crate::program::io::{ArrayType, Data, IoError, NamedValues};
use crate::program::{Error, ErrorKind, Inputs, ragged};
use crate::types::{Array, DType, Type};

impl Inputs {
    /// Adds a value for the parameter `name` of a function of this signature, with the element type and rank that it wants;
    /// a JSON object gives the fields of a struct parameter. `shared` values are one for all lanes, the others have the lanes
    /// as their leading axis. A shared int that has the name of a dimension tells it.
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
        if !shared
            && port.extents.iter().any(|d| signature.bounded(d).is_some())
            && let Some(serde_json::Value::Array(lanes)) = data.as_json().as_deref()
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

    /// Adds the shared values of a file, those of these names: dimensions, and what a function of this signature takes.
    /// A file is often that of several programs: what this one does not take is left alone.
    ///
    /// # Errors
    /// As [`add_data`](Self::add_data).
    pub fn add_values(
        &mut self,
        signature: &Signature,
        values: &NamedValues,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<(), Error> {
        let by = format!(" by {}", values.origin());
        for (name, data) in values.iter().filter(|(name, _)| wanted(name)) {
            if signature.takes(name) {
                self.add_data(signature, name, data, true)?;
            } else {
                self.add_dimension(signature, name, data, &by)?;
            }
        }
        Ok(())
    }

    /// Gives the shared arrays that have no element whatever the data are, `int[J, 0]`, once their dimensions are told: a
    /// `model` has such ones for dimensions that nothing else tells.
    fn fill_empty(&mut self, signature: &Signature) {
        let told = self.told(signature);
        for port in signature.ports.iter().filter(|port| port.carries_dims()) {
            let extent = |dim: &crate::hir::Dim| {
                let known = dim.ids().all(|id| told.contains_key(&id));
                known.then(|| dim.eval_with(|id| told[&id])).flatten().and_then(|n| usize::try_from(n).ok())
            };
            let extents: Option<Vec<usize>> = port.extents.iter().map(extent).collect();
            if let Some(extents) = extents {
                let empty = Array::zeros(&Type::new(port.dtype, extents));
                self.values.entry(port.name.clone()).or_insert_with(|| Given::new(empty, true));
            }
        }
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
        if shared && self.add_dimension(signature, name, data, "")? {
            return Ok(());
        }
        // `bind` refuses unknown names in the words of the function; it needs some array for it.
        let array = data.to_array(name, data.guess_type())?;
        self.values.insert(name.to_owned(), Given::new(array, shared));
        Ok(())
    }

    /// Takes an int under the name of a dimension, as data of Stan's have it (`J`, `N`): it tells the dimension. `by` says where it
    /// stands, for messages: ` by --shared`. False when a function of this signature has no such dimension, or an input of the
    /// name.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for what is no int from 0 on, and where the dimension was told to be another number.
    pub fn add_dimension(&mut self, signature: &Signature, name: &str, data: &Data, by: &str) -> Result<bool, Error> {
        if signature.takes(name) || !signature.dims.values().any(|dim| dim == name) {
            return Ok(false);
        }
        let refused = |message: String| Err(Error::new(ErrorKind::Input, message));
        let array = data.to_array(name, ArrayType { dtype: DType::Int, rank: 0 });
        let number = match array.as_ref().map(|array| array.as_int()) {
            Ok(Some([number])) if *number >= 0 => *number,
            Ok(Some([number])) => {
                return refused(format!("`{name}` is {number}{by}, but it is a dimension: 0 or more"));
            }
            Ok(_) => return Ok(false),
            Err(error) => return refused(format!("{error}: it is a dimension")),
        };
        match self.dims.get(name) {
            Some(other) if other.number != number => {
                refused(format!("`{name}` is {}{}, but {number}{by}", other.number, other.by))
            }
            _ => {
                self.dims.insert(name.to_owned(), ToldDim { number, by: by.to_owned(), of_another: false });
                self.fill_empty(signature);
                Ok(true)
            }
        }
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
