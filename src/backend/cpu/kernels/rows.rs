//! Operands as rows: for each element, one value a lane or one for all lanes.

use super::Arg;
use crate::vmath::Real;

/// One element of an operand.
#[derive(Clone, Copy)]
pub(super) enum Row<'a, T> {
    /// One value a lane.
    Lanes(&'a [T]),
    /// The same value in all lanes.
    One(T),
}

impl<T: Copy> Row<'_, T> {
    /// The value in one lane.
    pub(super) fn at(self, lane: usize) -> T {
        match self {
            Row::Lanes(row) => row[lane],
            Row::One(value) => value,
        }
    }
    /// Copies the row out.
    pub(super) fn copy_to(self, out: &mut [T]) {
        match self {
            Row::Lanes(row) => out.copy_from_slice(row),
            Row::One(value) => out.fill(value),
        }
    }
}

/// The elements of an operand; a scalar operand gives its one element for every index.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, T> {
    data: &'a [T],
    width: usize,
    broadcast: bool,
    scalar: bool,
}

impl<'a, T: Copy> Rows<'a, T> {
    /// The operand `arg`, whose values are `data`, in a call of this width.
    pub(super) fn new<R>(arg: &Arg<'_, R>, data: &'a [T], width: usize) -> Self {
        Self { data, width, broadcast: arg.broadcast, scalar: arg.ty.is_scalar() }
    }
    /// Element `e`.
    #[inline]
    pub(super) fn row(&self, e: usize) -> Row<'a, T> {
        let e = if self.scalar { 0 } else { e };
        if self.broadcast { Row::One(self.data[e]) } else { Row::Lanes(&self.data[e * self.width..][..self.width]) }
    }
    /// All `elements` elements as one slice, when every lane has its own of each.
    fn flat(&self, elements: usize) -> Option<&'a [T]> {
        (!self.broadcast && (!self.scalar || elements == 1)).then(|| &self.data[..elements * self.width])
    }
}

/// Reals of an operand.
pub(super) fn reals<'a, R: Real>(arg: &Arg<'a, R>, width: usize) -> Rows<'a, R> {
    Rows::new(arg, arg.buffer.reals(), width)
}
/// Ints of an operand.
pub(super) fn ints<'a, R: Real>(arg: &Arg<'a, R>, width: usize) -> Rows<'a, i64> {
    Rows::new(arg, arg.buffer.ints(), width)
}
/// Bools of an operand.
pub(super) fn bools<'a, R: Real>(arg: &Arg<'a, R>, width: usize) -> Rows<'a, bool> {
    Rows::new(arg, arg.buffer.bools(), width)
}

/// `out = f(a)` for every element and lane.
#[inline(always)]
pub(super) fn map1<A: Copy, O: Copy>(a: Rows<'_, A>, out: &mut [O], f: impl Fn(A) -> O) {
    let width = a.width;
    let elements = out.len() / width;
    if let Some(a) = a.flat(elements) {
        out.iter_mut().zip(a).for_each(|(o, a)| *o = f(*a));
        return;
    }
    for (e, out) in out.chunks_exact_mut(width).enumerate() {
        match a.row(e) {
            Row::Lanes(a) => out.iter_mut().zip(a).for_each(|(o, a)| *o = f(*a)),
            Row::One(a) => out.fill(f(a)),
        }
    }
}

/// `out = f(a, b)` for every element and lane.
#[inline(always)]
pub(super) fn map2<A: Copy, B: Copy, O: Copy>(a: Rows<'_, A>, b: Rows<'_, B>, out: &mut [O], f: impl Fn(A, B) -> O) {
    let width = a.width;
    let elements = out.len() / width;
    if let (Some(a), Some(b)) = (a.flat(elements), b.flat(elements)) {
        out.iter_mut().zip(a).zip(b).for_each(|((o, a), b)| *o = f(*a, *b));
        return;
    }
    for (e, out) in out.chunks_exact_mut(width).enumerate() {
        match (a.row(e), b.row(e)) {
            (Row::Lanes(a), Row::Lanes(b)) => out.iter_mut().zip(a).zip(b).for_each(|((o, a), b)| *o = f(*a, *b)),
            (Row::Lanes(a), Row::One(b)) => out.iter_mut().zip(a).for_each(|(o, a)| *o = f(*a, b)),
            (Row::One(a), Row::Lanes(b)) => out.iter_mut().zip(b).for_each(|(o, b)| *o = f(a, *b)),
            (Row::One(a), Row::One(b)) => out.fill(f(a, b)),
        }
    }
}

/// `out = if c { a } else { b }` for every element and lane.
pub(super) fn select<T: Copy>(c: Rows<'_, bool>, a: Rows<'_, T>, b: Rows<'_, T>, out: &mut [T]) {
    for (e, out) in out.chunks_exact_mut(c.width).enumerate() {
        match (c.row(e), a.row(e), b.row(e)) {
            (Row::One(c), a, b) => if c { a } else { b }.copy_to(out),
            (Row::Lanes(c), Row::Lanes(a), Row::Lanes(b)) => {
                out.iter_mut().zip(c).zip(a).zip(b).for_each(|(((o, c), a), b)| *o = if *c { *a } else { *b });
            }
            (Row::Lanes(c), Row::Lanes(a), Row::One(b)) => {
                out.iter_mut().zip(c).zip(a).for_each(|((o, c), a)| *o = if *c { *a } else { b });
            }
            (Row::Lanes(c), Row::One(a), Row::Lanes(b)) => {
                out.iter_mut().zip(c).zip(b).for_each(|((o, c), b)| *o = if *c { a } else { *b });
            }
            (Row::Lanes(c), Row::One(a), Row::One(b)) => {
                out.iter_mut().zip(c).for_each(|(o, c)| *o = if *c { a } else { b });
            }
        }
    }
}
