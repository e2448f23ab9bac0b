//! Parts of arrays at many places: `gather`, `scatter` and `scatter_add`. For each place the parts are moved for all lanes
//! together.

use super::call::{Active, KernelArg, KernelCall};
use super::rows::{Row, Rows, ints, multiversioned};
use crate::run::TrapKind;
use crate::vmath::Real;

/// The places that indices name in an array, one after the other.
struct Places<'a> {
    /// Of each index: its values, the extent of its axis, and how many elements lie between neighbours.
    axes: Vec<(Rows<'a, i64>, usize, usize)>,
    /// Number of places.
    count: usize,
    /// Elements of the part at a place.
    size: usize,
    width: usize,
}

/// Where the part at a place begins: the same element in all lanes, or one for each lane.
#[derive(Clone, Copy)]
enum Start<'a> {
    Same(usize),
    Lanes(&'a [usize]),
}

impl<'a> Places<'a> {
    fn new<R: Real>(shape: &[usize], at: &[KernelArg<'a, R>], width: usize) -> Self {
        let stride = |axis: usize| shape[axis + 1..].iter().product::<usize>();
        let axes = at.iter().enumerate().map(|(axis, index)| (ints(index, width), shape[axis], stride(axis)));
        let count = at.iter().find(|i| !i.ty.is_scalar()).map_or(1, |i| i.ty.elements());
        Self { axes: axes.collect(), count, size: shape[at.len()..].iter().product(), width }
    }

    /// The indices of a single axis that are the same in all lanes and none of which is out of range, and how many values
    /// lie between the parts of neighbours.
    fn common(&self) -> Option<(&'a [i64], usize)> {
        let [(index, extent, stride)] = &self.axes[..] else { return None };
        let indices = index.common(self.count)?;
        fit(indices, *extent).then_some((indices, stride * self.width))
    }

    /// Visits the places in order. `bad` gets the lanes for which one is out of range; they go to some element, and when
    /// there is none they go nowhere.
    fn for_each(&self, bad: &mut [bool], mut visit: impl FnMut(usize, Start<'_>)) {
        if self.axes.iter().any(|(_, extent, _)| *extent == 0) {
            if self.count > 0 {
                bad.fill(true);
            }
            return;
        }
        if let Some(start) = self.same() {
            for place in 0..self.count {
                match start(place) {
                    Some(start) => visit(place, Start::Same(start)),
                    None => return bad.fill(true),
                }
            }
            return;
        }
        let mut starts = vec![0; self.width];
        for place in 0..self.count {
            starts.fill(0);
            for (index, extent, stride) in &self.axes {
                advance(index.row(place), *extent, *stride, &mut starts, bad);
            }
            visit(place, Start::Lanes(&starts));
        }
    }

    /// Where the part at a place begins, when it is the same in all lanes; nothing where the place is out of range.
    fn same(&self) -> Option<impl Fn(usize) -> Option<usize>> {
        let value = |row: Row<'_, i64>| match row {
            Row::One(i) | Row::Lanes(&[i]) => Some(i),
            Row::Lanes(_) => None,
        };
        let all = self.count == 0 || self.axes.iter().all(|(index, ..)| value(index.row(0)).is_some());
        all.then_some(move |place: usize| {
            self.axes.iter().try_fold(0, |start, (index, extent, stride)| {
                let i = usize::try_from(value(index.row(place))?).ok().filter(|i| i < extent)?;
                Some(start + i * stride)
            })
        })
    }
}

/// Calls a function of parts of this length, which the compiler knows for short ones: those of few lanes.
macro_rules! with_length {
    ($length:expr, $function:ident($($argument:expr),*)) => {
        match $length {
            1 => $function::<1, _>($($argument),*, 1),
            2 => $function::<2, _>($($argument),*, 2),
            4 => $function::<4, _>($($argument),*, 4),
            8 => $function::<8, _>($($argument),*, 8),
            length => $function::<0, _>($($argument),*, length),
        }
    };
}

/// Copies the parts that begin at `index * step` to one after the other; `N` is their length, or 0 for any.
#[inline(always)]
fn copied_parts<const N: usize, T: Copy>(x: &[T], indices: &[i64], step: usize, out: &mut [T], length: usize) {
    let length = if N > 0 { N } else { length };
    for (out, i) in out.chunks_exact_mut(length).zip(indices) {
        out.copy_from_slice(&x[*i as usize * step..][..length]);
    }
}

/// Copies parts that stand one after the other to where `index * step` is.
#[inline(always)]
fn placed_parts<const N: usize, T: Copy>(to: &mut [T], new: &[T], indices: &[i64], step: usize, length: usize) {
    let length = if N > 0 { N } else { length };
    for (new, i) in new.chunks_exact(length).zip(indices) {
        to[*i as usize * step..][..length].copy_from_slice(new);
    }
}

/// Adds parts that stand one after the other to those at `index * step`.
#[inline(always)]
fn added_parts<const N: usize, R: Real>(to: &mut [R], new: &[R], indices: &[i64], step: usize, length: usize) {
    let length = if N > 0 { N } else { length };
    for (new, i) in new.chunks_exact(length).zip(indices) {
        let to = &mut to[*i as usize * step..][..length];
        to.iter_mut().zip(new).for_each(|(to, x)| *to = *to + *x);
    }
}

multiversioned! {
    /// Whether all indices are in range.
    pub(in crate::backend::cpu) fn fit(indices: &[i64], extent: usize) -> bool {
        // A negative one is larger than all extents.
        indices.iter().fold(true, |all, i| all & ((*i as u64) < extent as u64))
    }

    fn copy_parts<T: Copy>(x: &[T], indices: &[i64], step: usize, out: &mut [T], length: usize) {
        with_length!(length, copied_parts(x, indices, step, out));
    }

    fn place_parts<T: Copy>(to: &mut [T], new: &[T], indices: &[i64], step: usize, length: usize) {
        with_length!(length, placed_parts(to, new, indices, step));
    }

    fn add_parts<R: Real>(to: &mut [R], new: &[R], indices: &[i64], step: usize, length: usize) {
        with_length!(length, added_parts(to, new, indices, step));
    }

    /// Adds an index to where parts start; one that is out of range adds nothing.
    fn advance(index: Row<'_, i64>, extent: usize, stride: usize, starts: &mut [usize], bad: &mut [bool]) {
        match index {
            Row::One(i) => {
                let fits = i >= 0 && (i as usize) < extent;
                let step = if fits { i as usize * stride } else { 0 };
                starts.iter_mut().zip(bad).for_each(|(start, bad)| {
                    *start += step;
                    *bad |= !fits;
                });
            }
            Row::Lanes(index) => {
                for ((i, start), bad) in index.iter().zip(starts).zip(bad) {
                    // A negative one is larger than all extents.
                    let fits = (*i as u64) < extent as u64;
                    *start += if fits { *i as usize * stride } else { 0 };
                    *bad |= !fits;
                }
            }
        }
    }

    /// One element of the part at a place: from `x`, where the array is, or its values for all lanes.
    fn pick<T: Copy>(x: &[T], e: usize, common: bool, starts: &[usize], out: &mut [T]) {
        let width = out.len();
        if common {
            out.iter_mut().zip(starts).for_each(|(out, start)| *out = x[start + e]);
        } else {
            out.iter_mut().zip(starts).enumerate().for_each(|(lane, (out, start))| *out = x[(start + e) * width + lane]);
        }
    }
}

/// `gather` into `out`, which is cut to size.
pub(super) fn gather<R: Real, T: Copy>(call: &mut KernelCall<'_, R>, x: Rows<'_, T>, out: &mut [T]) {
    let w = call.width;
    let places = Places::new(&call.args[0].ty.shape, &call.args[1..], w);
    let part = places.size * w;
    if part > 0
        && let Some(values) = x.in_a_row()
        && let Some((indices, step)) = places.common()
    {
        return copy_parts(values, indices, step, out, part);
    }
    let mut bad = vec![false; w];
    places.for_each(&mut bad, |place, start| {
        let part = &mut out[place * places.size * w..][..places.size * w];
        if let Start::Same(start) = start
            && let Some(values) = x.block(start, part.len())
        {
            return part.copy_from_slice(values);
        }
        for (e, out) in part.chunks_exact_mut(w).enumerate() {
            match start {
                Start::Same(start) => x.row(start + e).copy_to(out),
                Start::Lanes(starts) => pick(x.data(), e, x.is_common(), starts, out),
            }
        }
    });
    call.trap_where(TrapKind::IndexOutOfRange, |lane| bad[lane]);
}

/// How values are added.
#[derive(Clone, Copy)]
pub(super) struct Adder<T> {
    /// Adds a row to the values of all lanes; sets the flags of lanes in which a sum goes past its range.
    row: fn(&mut [T], Row<'_, T>, &mut [bool]),
    /// Adds parts that stand one after the other to those that begin at `index * step`, where no sum goes past its range.
    parts: Option<Parts<T>>,
}

/// Takes the array, the parts, their indices, the step and the length of a part.
type Parts<T> = fn(&mut [T], &[T], &[i64], usize, usize);

/// Bools are not added.
pub(super) const BOOLS: Adder<bool> =
    Adder { row: |_, _, _| unreachable!("the types of `scatter_add` leave bools out"), parts: None };
pub(super) const INTS: Adder<i64> = Adder { row: add_ints, parts: None };
pub(super) fn reals<R: Real>() -> Adder<R> {
    Adder { row: add_reals, parts: Some(add_parts) }
}

/// `scatter` of `new` into `out`, which holds the array; with `add`, `scatter_add`. `args` are the operands after the array.
/// When `in_place`, lanes that are not active keep what they have.
pub(super) fn scatter<R: Real, T: Copy>(
    call: &mut KernelCall<'_, R>,
    args: &[KernelArg<'_, R>],
    new: Rows<'_, T>,
    out: &mut [T],
    (in_place, add): (bool, Option<Adder<T>>),
) {
    let w = call.width;
    let places = Places::new(&call.ty.shape, &args[1..], w);
    let all = !in_place || matches!(call.active, Active::All);
    let part = places.size * w;
    let parts = add.map_or(Some(place_parts as Parts<T>), |add| add.parts);
    if part > 0
        && all
        && let (Some(parts), Some(values)) = (parts, new.in_a_row())
        && let Some((indices, step)) = places.common()
    {
        return parts(out, &values[..indices.len() * part], indices, step, part);
    }
    let lanes: Vec<usize> = (0..w).filter(|lane| all || call.active.contains(*lane)).collect();
    let mut bad = vec![false; w];
    let mut overflows = vec![false; w];
    let mut sums = Vec::with_capacity(w);
    places.for_each(&mut bad, |place, start| {
        for e in 0..places.size {
            let row = new.row(place * places.size + e);
            let at = |lane: usize| match start {
                Start::Same(start) => (start + e) * w + lane,
                Start::Lanes(starts) => (starts[lane] + e) * w + lane,
            };
            match (start, add) {
                (Start::Same(_), Some(add)) if all => (add.row)(&mut out[at(0)..][..w], row, &mut overflows),
                (Start::Same(_), None) if all => row.copy_to(&mut out[at(0)..][..w]),
                (_, None) => lanes.iter().for_each(|lane| out[at(*lane)] = row.at(*lane)),
                (_, Some(add)) => {
                    sums.clear();
                    sums.extend((0..w).map(|lane| out[at(lane)]));
                    (add.row)(&mut sums, row, &mut overflows);
                    lanes.iter().for_each(|lane| out[at(*lane)] = sums[*lane]);
                }
            }
        }
    });
    for lane in (0..w).filter(|lane| bad[*lane] || overflows[*lane]) {
        if call.active.contains(lane) {
            let kind = if bad[lane] { TrapKind::IndexOutOfRange } else { TrapKind::IntegerOverflow };
            call.traps.push((lane as u32, kind));
        }
    }
}

multiversioned! {
    fn add_reals<R: Real>(to: &mut [R], row: Row<'_, R>, _overflows: &mut [bool]) {
        match row {
            Row::Lanes(row) => to.iter_mut().zip(row).for_each(|(to, x)| *to = *to + *x),
            Row::One(x) => to.iter_mut().for_each(|to| *to = *to + x),
        }
    }

    fn add_ints(to: &mut [i64], row: Row<'_, i64>, overflows: &mut [bool]) {
        for (lane, (to, overflow)) in to.iter_mut().zip(overflows).enumerate() {
            let (sum, over) = to.overflowing_add(row.at(lane));
            *to = sum;
            *overflow |= over;
        }
    }
}
