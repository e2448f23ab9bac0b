//! Values whose lengths differ from lane to lane: how they become arrays with padding, and how results lose theirs.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use crate::hir::DimId;
use crate::lower::hir_to_cfg::{Signature, SignaturePort};
use crate::program::inputs::{Given, Inputs};
use crate::program::{Error, ErrorKind};
use crate::run;
use crate::types::{Array, ArrayData, DType, Scalar, Type};

/// For each axis of an event the lengths of its rows, if it is bounded. One length serves all rows.
pub(crate) type Lengths = Vec<Option<Vec<i64>>>;

/// The lengths of the bounded dimensions of a signature: one for each lane, or one for all.
///
/// # Errors
/// When a length is given twice and differently, or lies outside of 0 and the bound or the array; the first such lane.
pub(crate) fn lengths(
    inputs: &Inputs,
    signature: &Signature,
    types: &[Type],
    lanes: usize,
) -> Result<BTreeMap<DimId, Vec<i64>>, Error> {
    let mut found = BTreeMap::new();
    for (id, bound) in bounds(signature, types) {
        let sources = sources(inputs, signature, id)?;
        let rows = if sources.iter().all(|s| s.lengths.len() == 1) { 1 } else { lanes };
        let each = (0..rows).map(|lane| length(&sources, &signature.dims[id], bound, lane));
        found.insert(id, each.collect::<Result<_, _>>()?);
    }
    Ok(found)
}

/// The bounded dimensions and their bounds, as the completed types have them.
fn bounds(signature: &Signature, types: &[Type]) -> Vec<(DimId, i64)> {
    let bound = |id: DimId| {
        signature.ports.iter().zip(types).find_map(|(port, ty)| {
            let axis = port.extents.iter().position(|d| signature.bounded(d) == Some(id))?;
            Some((id, ty.shape[axis] as i64))
        })
    };
    signature.bounds.keys().filter_map(|id| bound(*id)).collect()
}

/// Something that tells lengths.
struct Source {
    /// The input.
    name: String,
    /// By lane, or one for all; `None` in lanes that do not tell.
    lengths: Vec<Option<i64>>,
    /// Whether they are exact; else they are the extent of an array that may have padding.
    exact: bool,
}

fn sources(inputs: &Inputs, signature: &Signature, id: DimId) -> Result<Vec<Source>, Error> {
    let mut sources = Vec::new();
    for port in &signature.ports {
        let Some(given) = inputs.values.get(&port.name) else {
            continue;
        };
        if port.length_of == Some(id) {
            let rank = usize::from(!given.shared);
            let ints = given.array.as_int().filter(|_| given.array.shape.len() == rank).ok_or_else(|| {
                let message = format!(
                    "`{}` has the wrong type: expected int in each lane, found {}",
                    port.name,
                    given.array.ty()
                );
                Error::new(ErrorKind::Input, message)
            })?;
            sources.push(Source {
                name: port.name.clone(),
                lengths: ints.iter().copied().map(Some).collect(),
                exact: true,
            });
        }
        let axes = port.extents.iter().enumerate().filter(|(_, d)| signature.bounded(d) == Some(id));
        sources.extend(axes.map(|(axis, _)| along(given, port, axis)));
    }
    Ok(sources)
}

fn along(given: &Given, port: &SignaturePort, axis: usize) -> Source {
    let name = port.name.clone();
    match given.lengths.iter().find(|(of, _)| *of == axis) {
        Some((_, lengths)) => {
            Source { name, lengths: lengths.iter().map(|n| n.map(|n| n as i64)).collect(), exact: true }
        }
        None => {
            let extent = given.array.shape.get(axis + usize::from(!given.shared)).copied().unwrap_or(0);
            Source { name, lengths: vec![Some(extent as i64)], exact: false }
        }
    }
}

/// The length that a dimension has in a lane.
fn length(sources: &[Source], dim: &str, bound: i64, lane: usize) -> Result<i64, Error> {
    let refused = |message: String| Err(Error::new(ErrorKind::Input, message));
    let in_lane =
        |s: &Source| if s.lengths.len() == 1 { s.lengths.first() } else { s.lengths.get(lane) }.copied().flatten();
    let exact = sources.iter().find(|s| s.exact && in_lane(s).is_some());
    let Some((by, length)) = exact.or(sources.first()).and_then(|s| Some((&s.name, in_lane(s)?))) else {
        return Ok(0);
    };
    if length < 0 || length > bound {
        let what = if by == dim { format!("`{dim}` is {length}") } else { format!("`{by}` has {length} entries") };
        return refused(format!("lane {lane}: {what}, but the bound of `{dim}` is {bound}"));
    }
    for source in sources {
        let other = in_lane(source).unwrap_or(length);
        let fits = if source.exact || exact.is_none() { other == length } else { other >= length };
        if !fits {
            let by = if by == dim { String::new() } else { format!(" by `{by}`") };
            let name = &source.name;
            return refused(format!("lane {lane}: `{dim}` is {length}{by}, but `{name}` has {other} entries"));
        }
    }
    Ok(length)
}

/// Which axes of inputs and outputs are bounded, by the position of their lengths among the lane inputs of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct BoundedAxes {
    /// Names of the dimensions: their lengths are the first lane inputs.
    dims: Vec<String>,
    inputs: Vec<Vec<Option<usize>>>,
    outputs: Vec<Vec<Option<usize>>>,
}

impl BoundedAxes {
    /// Those of an entry point; `outputs` has the dimensions of the axes of its outputs.
    pub(crate) fn new(signature: &Signature, outputs: &[(String, Vec<Option<DimId>>)]) -> Self {
        let ids: Vec<DimId> = signature.ports.iter().filter_map(|p| p.length_of).collect();
        let position = |id: DimId| ids.iter().position(|other| *other == id);
        let lane_ports = signature.ports.iter().filter(|p| !p.shared);
        let of_port = |p: &SignaturePort| p.extents.iter().map(|d| signature.bounded(d).and_then(position)).collect();
        let of_output = |axes: &[Option<DimId>]| axes.iter().map(|id| id.and_then(position)).collect();
        Self {
            dims: ids.iter().map(|id| signature.dims[*id].clone()).collect(),
            inputs: lane_ports.map(of_port).collect(),
            outputs: outputs.iter().map(|(_, axes)| of_output(axes)).collect(),
        }
    }

    /// The dimensions, each with its length in every lane.
    pub(crate) fn dims(&self, inputs: &run::RunInputs) -> IndexMap<String, Vec<i64>> {
        let lengths = inputs.values.iter().map(|array| array.as_int().unwrap_or_default().to_vec());
        self.dims.iter().cloned().zip(lengths).collect()
    }
    /// The lengths of an output, if it has a bounded axis.
    pub(crate) fn of_output(&self, output: usize, inputs: &run::RunInputs) -> Option<Lengths> {
        lengths_of(self.outputs.get(output)?, inputs)
    }
    /// The lengths of a lane input, if it has a bounded axis.
    pub(crate) fn of_input(&self, input: usize, inputs: &run::RunInputs) -> Option<Lengths> {
        lengths_of(self.inputs.get(input)?, inputs)
    }
}

fn lengths_of(axes: &[Option<usize>], inputs: &run::RunInputs) -> Option<Lengths> {
    let of = |position: usize| inputs.values.get(position).and_then(Array::as_int).unwrap_or_default().to_vec();
    axes.iter().any(Option::is_some).then(|| axes.iter().map(|at| at.map(of)).collect())
}

/// The lengths of the axes of an event of a port.
pub(crate) fn axes(signature: &Signature, port: &SignaturePort, lengths: &BTreeMap<DimId, Vec<i64>>) -> Lengths {
    port.extents.iter().map(|d| signature.bounded(d).and_then(|id| lengths.get(&id).cloned())).collect()
}

/// Events of different lengths as one array, each with zeros up to the longest, and how long each is along the bounded axes, as far
/// as it tells: what would stand in an empty list has no length.
///
/// # Errors
/// The lane and the axis where an extent that is not bounded differs from those before it, that extent, and this one.
#[allow(clippy::type_complexity, reason = "the pairs have no name anywhere else")]
pub(crate) fn stacked(
    events: &[Array],
    dtype: DType,
    bounded: &[bool],
) -> Result<(Array, Vec<(usize, Vec<Option<usize>>)>), (usize, usize, usize, usize)> {
    let rank = bounded.len();
    let mut extents: Vec<Option<usize>> = vec![None; rank];
    for (lane, event) in events.iter().enumerate() {
        for axis in 0..rank {
            let found = event.shape[axis];
            match extents[axis] {
                Some(wanted) if bounded[axis] => extents[axis] = Some(wanted.max(found)),
                Some(wanted) if wanted != found => return Err((lane, axis, wanted, found)),
                _ => extents[axis] = Some(found),
            }
            // An empty list does not tell what would stand in it.
            if found == 0 {
                break;
            }
        }
    }
    let shape: Vec<usize> = extents.iter().map(|e| e.unwrap_or(0)).collect();
    let mut array = Array::zeros(&Type::new(dtype, std::iter::once(events.len()).chain(shape.iter().copied())));
    for (lane, event) in events.iter().enumerate() {
        fill(&mut array, lane, event, &event.shape);
    }
    let told = |event: &Array, axis: usize| (!event.shape[..axis].contains(&0)).then(|| event.shape[axis]);
    let along = |axis: usize| (axis, events.iter().map(|event| told(event, axis)).collect());
    let lengths = (0..rank).filter(|axis| bounded[*axis]).map(along).collect();
    Ok((array, lengths))
}

/// Copies the leading part `limits` of an event into a row of an array.
fn fill(array: &mut Array, row: usize, event: &Array, limits: &[usize]) {
    let to = array.shape[1..].to_vec();
    let size: usize = to.iter().product();
    match (&mut array.data, &event.data) {
        (ArrayData::Bool(a), ArrayData::Bool(e)) => copy(e, &mut a[row * size..], &event.shape, &to, limits),
        (ArrayData::Int(a), ArrayData::Int(e)) => copy(e, &mut a[row * size..], &event.shape, &to, limits),
        (ArrayData::Real(a), ArrayData::Real(e)) => copy(e, &mut a[row * size..], &event.shape, &to, limits),
        _ => unreachable!("events have the element type of their array"),
    }
}

/// Copies the elements within `limits` from an array of shape `from` to one of shape `to`.
fn copy<T: Copy>(source: &[T], target: &mut [T], from: &[usize], to: &[usize], limits: &[usize]) {
    let ([_, from @ ..], [_, to @ ..], [limit, limits @ ..]) = (from, to, limits) else {
        target[0] = source[0];
        return;
    };
    if limits.is_empty() {
        target[..*limit].copy_from_slice(&source[..*limit]);
        return;
    }
    let (step_from, step_to): (usize, usize) = (from.iter().product(), to.iter().product());
    for i in 0..*limit {
        copy(&source[i * step_from..], &mut target[i * step_to..], from, to, limits);
    }
}

/// What stands in the padding of arrays that a host sees: NaN, 0 or `false`.
fn padding(dtype: DType) -> Scalar {
    match dtype {
        DType::Bool => Scalar::Bool(false),
        DType::Int => Scalar::Int(0),
        DType::Real => Scalar::Real(f64::NAN),
    }
}

fn all_padding(ty: &Type) -> Array {
    let n = ty.elements();
    let data = match padding(ty.dtype) {
        Scalar::Bool(b) => ArrayData::Bool(vec![b; n]),
        Scalar::Int(i) => ArrayData::Int(vec![i; n]),
        Scalar::Real(r) => ArrayData::Real(vec![r; n]),
    };
    Array { shape: ty.shape.clone(), data }
}

/// How far a row reaches along each axis of an event of this shape.
fn limits(shape: &[usize], lengths: &Lengths, row: usize) -> Vec<usize> {
    let limit = |(axis, extent): (usize, &usize)| match lengths.get(axis).and_then(Option::as_ref) {
        Some(lengths) => {
            let length = if lengths.len() == 1 { lengths.first() } else { lengths.get(row) };
            usize::try_from(length.copied().unwrap_or(0)).unwrap_or(0).min(*extent)
        }
        None => *extent,
    };
    shape.iter().enumerate().map(limit).collect()
}

/// The rows of an array, each within its lengths, in rows of another event type that has room for them; the rest is padding.
pub(crate) fn padded(array: &Array, event: &Type, lengths: &Lengths) -> Array {
    let rows = array.shape[0];
    let mut padded = all_padding(&Type::new(event.dtype, std::iter::once(rows).chain(event.shape.iter().copied())));
    for row in 0..rows {
        // A row that serves lanes of several lengths keeps what the longest needs.
        let longest = |lengths: &Vec<i64>| vec![lengths.iter().copied().max().unwrap_or(0)];
        let of_all: Lengths = lengths.iter().map(|l| l.as_ref().map(longest)).collect();
        let limits = limits(&array.shape[1..], if rows == 1 { &of_all } else { lengths }, row);
        fill(&mut padded, row, &lane(array, row), &limits);
    }
    padded
}

/// One row of an array.
fn lane(array: &Array, row: usize) -> Array {
    let shape = array.shape[1..].iter().copied();
    let size: usize = array.shape[1..].iter().product();
    let part = row * size..(row + 1) * size;
    match &array.data {
        ArrayData::Bool(v) => Array::bool(shape, v[part].to_vec()),
        ArrayData::Int(v) => Array::int(shape, v[part].to_vec()),
        ArrayData::Real(v) => Array::real(shape, v[part].to_vec()),
    }
}

/// A row of an array without its padding.
pub(crate) fn cut(array: &Array, lengths: &Lengths, row: usize) -> Array {
    let limits = limits(&array.shape[1..], lengths, row);
    let event = lane(array, row);
    let mut part = Array::zeros(&Type::new(array.dtype(), std::iter::once(1).chain(limits.iter().copied())));
    fill(&mut part, 0, &event, &limits);
    part.shape.remove(0);
    part
}

/// Whether an element of a row, counted in row-major order, is inside its lengths.
pub(crate) fn is_inside(shape: &[usize], lengths: &Lengths, row: usize, mut element: usize) -> bool {
    let limits = limits(shape, lengths, row);
    shape.iter().zip(limits).rev().all(|(extent, limit)| {
        let at = element % extent;
        element /= extent;
        at < limit
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_different_lengths_are_stacked_padded_and_cut() {
        let events = [Array::int([2, 2], vec![1, 2, 3, 4]), Array::int([0, 0], vec![]), Array::int([1, 2], vec![5, 6])];
        let (array, lengths) = stacked(&events, DType::Int, &[true, false]).expect("the second axis is 2");
        assert_eq!(array, Array::int([3, 2, 2], vec![1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 0, 0]));
        assert_eq!(lengths, [(0, vec![Some(2), Some(0), Some(1)])]);
        let axes: Lengths = vec![Some(vec![2, 0, 1]), None];
        let wide = padded(&array, &Type::new(DType::Int, [3, 2]), &axes);
        assert_eq!(wide.as_int().map(|v| v[..6].to_vec()), Some(vec![1, 2, 3, 4, 0, 0]));
        assert_eq!(cut(&wide, &axes, 2), events[2]);
        assert_eq!(cut(&wide, &axes, 1), Array::int([0, 2], vec![]));
        assert!(is_inside(&[3, 2], &axes, 2, 1) && !is_inside(&[3, 2], &axes, 2, 2));
    }

    #[test]
    fn an_empty_event_does_not_tell_its_inner_lengths() {
        let events = [Array::int([0, 0], vec![]), Array::int([1, 1], vec![1])];
        let (_, lengths) = stacked(&events, DType::Int, &[true, true]).expect("both axes are bounded");
        assert_eq!(lengths, [(0, vec![Some(0), Some(1)]), (1, vec![None, Some(1)])]);
    }

    #[test]
    fn an_extent_without_a_bound_must_agree() {
        let events = [Array::int([1, 2], vec![1, 2]), Array::int([1, 3], vec![1, 2, 3])];
        assert_eq!(stacked(&events, DType::Int, &[true, false]), Err((1, 1, 2, 3)));
    }
}
