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

multiversioned! {
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

/// Adds a row to the values of all lanes; sets the flags of lanes in which a sum goes past its range.
pub(super) type AddRow<T> = fn(&mut [T], Row<'_, T>, &mut [bool]);

/// `scatter` of `new` into `out`, which holds the array; with `add`, `scatter_add`. `args` are the operands after the array.
/// When `in_place`, lanes that are not active keep what they have.
pub(super) fn scatter<R: Real, T: Copy>(
    call: &mut KernelCall<'_, R>,
    args: &[KernelArg<'_, R>],
    new: Rows<'_, T>,
    out: &mut [T],
    (in_place, add): (bool, Option<AddRow<T>>),
) {
    let w = call.width;
    let places = Places::new(&call.ty.shape, &args[1..], w);
    let all = !in_place || matches!(call.active, Active::All);
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
                (Start::Same(_), Some(add)) if all => add(&mut out[at(0)..][..w], row, &mut overflows),
                (Start::Same(_), None) if all => row.copy_to(&mut out[at(0)..][..w]),
                (_, None) => lanes.iter().for_each(|lane| out[at(*lane)] = row.at(*lane)),
                (_, Some(add)) => {
                    sums.clear();
                    sums.extend((0..w).map(|lane| out[at(lane)]));
                    add(&mut sums, row, &mut overflows);
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

/// Bools are not added.
pub(super) fn add_bools(_: &mut [bool], _: Row<'_, bool>, _: &mut [bool]) {
    unreachable!("the types of `scatter_add` leave bools out")
}

multiversioned! {
    pub(super) fn add_reals<R: Real>(to: &mut [R], row: Row<'_, R>, _overflows: &mut [bool]) {
        match row {
            Row::Lanes(row) => to.iter_mut().zip(row).for_each(|(to, x)| *to = *to + *x),
            Row::One(x) => to.iter_mut().for_each(|to| *to = *to + x),
        }
    }

    pub(super) fn add_ints(to: &mut [i64], row: Row<'_, i64>, overflows: &mut [bool]) {
        for (lane, (to, overflow)) in to.iter_mut().zip(overflows).enumerate() {
            let (sum, over) = to.overflowing_add(row.at(lane));
            *to = sum;
            *overflow |= over;
        }
    }
}
