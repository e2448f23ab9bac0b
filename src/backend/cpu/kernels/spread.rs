//! Which elements of an operand stand where, when it is repeated along the axes where its extent is 1, and which elements
//! of an array are combined into one when such axes are what is left of it.

use smallvec::SmallVec;

/// For each element of an array of shape `to` the element of one of shape `from` that stands there. Nothing when it has the
/// same number, and for a scalar.
pub(super) fn places(from: &[usize], to: &[usize]) -> Option<Vec<u32>> {
    if from.is_empty() || from == to {
        return None;
    }
    let strides = strides(from);
    let steps = to.iter().zip(from).zip(strides).map(|((to, from), stride)| (*to, if *from == 1 { 0 } else { stride }));
    Some(walk(steps))
}

/// The elements of an array that are combined into each element of a result of the same rank, or into a scalar: those at
/// `starts[o] + offset` for the offsets in ascending order.
#[derive(Debug)]
pub(super) struct Groups {
    /// The first element of each group.
    pub(super) starts: Vec<u32>,
    /// How the elements of a group lie.
    pub(super) offsets: Offsets,
}

/// Offsets of elements in ascending order: so many at equal distances, or these.
#[derive(Debug)]
pub(super) enum Offsets {
    Even { count: usize, stride: usize },
    Table(Vec<u32>),
}

impl Offsets {
    pub(super) fn len(&self) -> usize {
        match self {
            Offsets::Even { count, .. } => *count,
            Offsets::Table(table) => table.len(),
        }
    }
    #[inline(always)]
    pub(super) fn at(&self, i: usize) -> usize {
        match self {
            Offsets::Even { stride, .. } => i * stride,
            Offsets::Table(table) => table[i] as usize,
        }
    }
}

impl Groups {
    /// Of an array of shape `from` and a result of shape `to`.
    pub(super) fn new(from: &[usize], to: &[usize]) -> Self {
        if to.is_empty() {
            return Self { starts: vec![0], offsets: Offsets::Even { count: from.iter().product(), stride: 1 } };
        }
        let strides = strides(from);
        let of = |reduced: bool| {
            let axes = from.iter().zip(to).zip(&strides);
            axes.filter(move |((from, to), _)| (from != to) == reduced).map(|((from, _), stride)| (*from, *stride))
        };
        let offsets = match of(true).collect::<SmallVec<[(usize, usize); 4]>>()[..] {
            [] => Offsets::Even { count: 1, stride: 0 },
            [(count, stride)] => Offsets::Even { count, stride },
            _ => Offsets::Table(walk(of(true))),
        };
        Self { starts: walk(of(false)), offsets }
    }
}

/// How many elements lie between neighbours along each axis.
fn strides(shape: &[usize]) -> SmallVec<[usize; 4]> {
    (0..shape.len()).map(|axis| shape[axis + 1..].iter().product()).collect()
}

/// The sums of `index * stride` over axes with these extents and strides, for all indices in row-major order. Kernels ask
/// anew in each call, so they come without a list for each axis: those of the last axis, then, axis by axis to the front,
/// those of the axes behind for each further index.
fn walk(axes: impl Iterator<Item = (usize, usize)>) -> Vec<u32> {
    let axes: SmallVec<[(usize, usize); 4]> = axes.collect();
    let mut places = Vec::with_capacity(axes.iter().map(|(extent, _)| extent).product());
    if axes.iter().any(|(extent, _)| *extent == 0) {
        return places;
    }
    places.push(0);
    for &(extent, stride) in axes.iter().rev() {
        let behind = places.len();
        for i in 1..extent {
            let further = (i * stride) as u32;
            places.extend_from_within(..behind);
            places[i * behind..].iter_mut().for_each(|place| *place += further);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_of_1_stand_for_all() {
        assert_eq!(places(&[2, 1], &[2, 3]), Some(vec![0, 0, 0, 1, 1, 1]));
        assert_eq!(places(&[1, 3], &[2, 3]), Some(vec![0, 1, 2, 0, 1, 2]));
        assert_eq!(places(&[2, 1, 2], &[2, 2, 2]), Some(vec![0, 1, 0, 1, 2, 3, 2, 3]));
        assert_eq!(places(&[1], &[0]), Some(vec![]));
        assert_eq!(places(&[2, 3], &[2, 3]), None);
        assert_eq!(places(&[], &[2]), None);
    }

    #[test]
    fn groups_are_in_row_major_order() {
        let all = |from: &[usize], to: &[usize]| -> Vec<Vec<usize>> {
            let groups = Groups::new(from, to);
            let offsets = &groups.offsets;
            groups.starts.iter().map(|s| (0..offsets.len()).map(|i| *s as usize + offsets.at(i)).collect()).collect()
        };
        assert_eq!(all(&[2, 3], &[]), [[0, 1, 2, 3, 4, 5]]);
        assert_eq!(all(&[2, 3], &[1, 3]), [[0, 3], [1, 4], [2, 5]]);
        assert_eq!(all(&[2, 3], &[2, 1]), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(all(&[2, 2, 2], &[1, 2, 1]), [[0, 1, 4, 5], [2, 3, 6, 7]]);
        assert_eq!(all(&[2, 2], &[2, 2]), [[0], [1], [2], [3]]);
        assert_eq!(all(&[0, 2], &[1, 2]), [[0; 0], [0; 0]]);
    }
}
