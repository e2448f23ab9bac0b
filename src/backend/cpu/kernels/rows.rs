//! Operands as rows, for each element one value a lane or one for all lanes, and the one loop over them.
//!
//! The loop is inlined into functions that are compiled for several sets of processor features (`multiversioned`):
//! everything on the way is `inline(always)`, since a function that is not inlined is compiled for the base processor.

use smallvec::SmallVec;

use super::call::{KernelArg, KernelCall};
use super::spread;
use crate::backend::cpu::buffer::Buffer;
use crate::vmath::{Blend, Real};

pub(in crate::backend::cpu) use crate::vmath::multiversioned;

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
    #[inline]
    pub(super) fn at(self, lane: usize) -> T {
        match self {
            Row::Lanes(row) => row[lane],
            Row::One(value) => value,
        }
    }
    /// Copies the row out.
    #[inline]
    pub(super) fn copy_to(self, out: &mut [T]) {
        match self {
            Row::Lanes(row) => out.copy_from_slice(row),
            Row::One(value) => out.fill(value),
        }
    }
}

/// About so many values of each operand are spread at a time: few enough to stay in the first cache.
pub(super) const TILE: usize = 256;

/// Values of some elements for each lane.
pub(super) type Tile<T> = SmallVec<[T; TILE]>;

/// Each value so many times.
fn repeat<T: Copy>(values: &[T], times: usize, to: &mut Tile<T>) {
    fn fill<const N: usize, T: Copy>(values: &[T], to: &mut [T]) {
        to.chunks_exact_mut(N).zip(values).for_each(|(to, value)| to.fill(*value));
    }
    let Some(first) = values.first() else { return };
    to.resize(values.len() * times, *first);
    match times {
        2 => fill::<2, T>(values, to),
        4 => fill::<4, T>(values, to),
        _ => to.chunks_exact_mut(times).zip(values).for_each(|(to, value)| to.fill(*value)),
    }
}

/// Of some elements at these places, or of one element so many times, the values in `width` lanes each; by a number of
/// lanes that is known when it is compiled. False where it is not one of those.
fn take<T: Copy>(
    data: &[T],
    places: impl Iterator<Item = usize>,
    width: usize,
    to: &mut Tile<T>,
    count: usize,
) -> bool {
    fn copy<const N: usize, T: Copy>(data: &[T], places: impl Iterator<Item = usize>, to: &mut [T]) {
        to.chunks_exact_mut(N).zip(places).for_each(|(to, e)| to.copy_from_slice(&data[e * N..][..N]));
    }
    if !TAKEN.contains(&width) {
        return false;
    }
    to.resize(count * width, data[0]);
    match width {
        1 => copy::<1, T>(data, places, to),
        2 => copy::<2, T>(data, places, to),
        3 => copy::<3, T>(data, places, to),
        _ => copy::<4, T>(data, places, to),
    }
    true
}

/// Lanes for which [`take`] is compiled.
const TAKEN: std::ops::RangeInclusive<usize> = 1..=4;

/// The elements of an operand; a scalar operand gives its one element for every index.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, T> {
    data: &'a [T],
    width: usize,
    broadcast: bool,
    scalar: bool,
    /// Which element stands where, if not the one with the same number.
    places: Option<&'a [u32]>,
}

impl<'a, T: Copy> Rows<'a, T> {
    /// The operand `arg`, whose values are `data`, in a call of this width.
    pub(super) fn new<R>(arg: &KernelArg<'_, R>, data: &'a [T], width: usize) -> Self {
        let scalar = arg.ty.is_scalar();
        // In a single lane all elements lie in a row, whether they are its own or not.
        let broadcast = arg.broadcast && (width > 1 || scalar);
        Self { data, width, broadcast, scalar, places: None }
    }
    /// The same elements at other places ([`places`](super::spread::places)).
    pub(super) fn at_places(self, places: Option<&'a [u32]>) -> Self {
        Self { places, ..self }
    }
    /// All values.
    pub(super) fn data(&self) -> &'a [T] {
        self.data
    }
    /// Whether every element is the same in all lanes.
    pub(super) fn is_common(&self) -> bool {
        self.broadcast
    }
    /// Element `e`.
    #[inline(always)]
    pub(super) fn row(&self, e: usize) -> Row<'a, T> {
        let e = match self.places {
            Some(places) => places[e] as usize,
            None if self.scalar => 0,
            None => e,
        };
        if self.broadcast { Row::One(self.data[e]) } else { Row::Lanes(&self.data[e * self.width..][..self.width]) }
    }
    /// The one value of a scalar operand that is the same in all lanes.
    #[inline(always)]
    pub(super) fn value(&self) -> Option<T> {
        (self.scalar && (self.broadcast || self.width == 1)).then(|| self.data[0])
    }
    /// The values from element `from` on, so many, where every lane has its own and they lie in a row.
    pub(super) fn block(&self, from: usize, len: usize) -> Option<&'a [T]> {
        self.in_a_row().map(|data| &data[from * self.width..][..len])
    }
    /// All values, where every lane has its own and they lie in a row.
    pub(super) fn in_a_row(&self) -> Option<&'a [T]> {
        (!self.broadcast && !self.scalar && self.places.is_none()).then_some(self.data)
    }
    /// The first `count` elements of an array that are the same in all lanes, as they lie.
    pub(super) fn common(&self, count: usize) -> Option<&'a [T]> {
        let same = (self.broadcast || self.width == 1) && !self.scalar && self.places.is_none();
        same.then(|| &self.data[..count])
    }
    /// Whether [`tile`](Self::tile) takes it a tile at a time, and not row by row.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        let in_order = self.places.is_none() && (self.broadcast || !self.scalar);
        in_order || !self.broadcast && TAKEN.contains(&self.width)
    }
    /// The values of the elements from `from` on for each lane, so many: as they lie if they lie in a row, else in `spread`.
    pub(super) fn tile<'t>(&self, from: usize, len: usize, spread: &'t mut Tile<T>) -> &'t [T]
    where
        'a: 't,
    {
        if let Some(values) = self.block(from, len) {
            return values;
        }
        if let (Row::Lanes(row), true) = (self.row(from), len == self.width) {
            return row;
        }
        let count = len / self.width;
        spread.clear();
        if let Some(values) = self.common(from + count) {
            repeat(&values[from..], self.width, spread);
            return spread;
        }
        if let (true, Some(value)) = (self.broadcast && self.scalar, self.data.first()) {
            spread.resize(len, *value);
            return spread;
        }
        if !self.broadcast && !self.data.is_empty() {
            let taken = match self.places {
                Some(places) => {
                    let places = places[from..][..count].iter().map(|place| *place as usize);
                    take(self.data, places, self.width, spread, count)
                }
                None => take(self.data, std::iter::repeat_n(0, count), self.width, spread, count),
            };
            if taken {
                return spread;
            }
        }
        for e in from..from + count {
            match self.row(e) {
                Row::Lanes(row) => spread.extend_from_slice(row),
                Row::One(value) => spread.resize(spread.len() + self.width, value),
            }
        }
        spread
    }
    /// All `len` values as one slice, when every lane has its own of each element.
    #[inline(always)]
    fn flat(&self, len: usize) -> Option<&'a [T]> {
        let whole = !self.scalar || len == self.width;
        (!self.broadcast && self.places.is_none() && whole).then(|| &self.data[..len])
    }
}

/// Reals of an operand.
pub(super) fn reals<'a, R: Real>(arg: &KernelArg<'a, R>, width: usize) -> Rows<'a, R> {
    Rows::new(arg, arg.buffer.reals(), width)
}
/// Ints of an operand.
pub(super) fn ints<'a, R: Real>(arg: &KernelArg<'a, R>, width: usize) -> Rows<'a, i64> {
    Rows::new(arg, arg.buffer.ints(), width)
}
/// Bools of an operand.
pub(super) fn bools<'a, R: Real>(arg: &KernelArg<'a, R>, width: usize) -> Rows<'a, bool> {
    Rows::new(arg, arg.buffer.bools(), width)
}

/// The operands of an elementwise primitive, repeated along the axes where their extent is 1.
pub(super) struct Operands<'a, R> {
    args: &'a [KernelArg<'a, R>],
    /// Of each operand, where not all of them are scalars or have the shape of the result.
    places: Option<SmallVec<[Option<Vec<u32>>; 3]>>,
    width: usize,
}

impl<'a, R: Real> Operands<'a, R> {
    /// Those of a call.
    #[inline]
    pub(super) fn new(call: &KernelCall<'a, R>) -> Self {
        let shape = &call.ty.shape;
        // Compared here and not by a call: this is done for every step.
        let same = |s: &[usize]| s.len() == shape.len() && s.iter().zip(shape).all(|(a, b)| a == b);
        let plain = call.args.iter().all(|a| a.ty.shape.is_empty() || same(&a.ty.shape));
        let places = || call.args.iter().map(|a| spread::places(&a.ty.shape, shape)).collect();
        Self { args: call.args, places: (!plain).then(places), width: call.width }
    }
    #[inline]
    fn places_of(&self, i: usize) -> Option<&[u32]> {
        self.places.as_ref().and_then(|places| places[i].as_deref())
    }
    /// The reals of an operand.
    #[inline]
    pub(super) fn reals(&self, i: usize) -> Rows<'_, R> {
        reals(&self.args[i], self.width).at_places(self.places_of(i))
    }
    /// The ints of an operand.
    pub(super) fn ints(&self, i: usize) -> Rows<'_, i64> {
        ints(&self.args[i], self.width).at_places(self.places_of(i))
    }
    /// The bools of an operand.
    pub(super) fn bools(&self, i: usize) -> Rows<'_, bool> {
        bools(&self.args[i], self.width).at_places(self.places_of(i))
    }
}

/// Where results go.
pub(super) struct Out<'a, T> {
    /// `elements * width` values.
    to: &'a mut [T],
    width: usize,
    /// What lanes outside the mask get instead, laid out like `to`, and the mask; without it they get junk.
    keep: Option<(&'a [T], &'a [i8])>,
}

impl<'a, T: Blend> Out<'a, T> {
    /// The result of a call: the first values of `to`; `values` are those of a buffer of its type.
    pub(super) fn new<R>(
        call: &KernelCall<'a, R>,
        to: &'a mut [T],
        values: impl FnOnce(&'a Buffer<R>) -> &'a [T],
    ) -> Self
    where
        R: Real,
    {
        let len = call.elements() * call.width;
        Self { to: &mut to[..len], width: call.width, keep: call.keep.map(|k| (&values(k.values)[..len], k.mask)) }
    }
    /// The row of element `e`.
    #[inline(always)]
    fn row(&mut self, e: usize) -> Out<'_, T> {
        let width = self.width;
        let keep = self.keep.map(|(kept, mask)| (&kept[e * width..][..width], &mask[..width]));
        Out { to: &mut self.to[e * width..][..width], width, keep }
    }
    #[inline(always)]
    fn elements(&self) -> usize {
        self.to.len() / self.width
    }
    /// Whether operands are spread over the lanes first: a row of few lanes is shorter than a vector.
    #[inline(always)]
    fn spreads(&self) -> bool {
        self.keep.is_none() && self.width < 8 && self.to.len() > 4 * self.width
    }
}

/// Negative when something may be wrong in a lane: its result is then not to be used. The other bits mean nothing.
pub(super) type Flag = i64;

/// Values of lanes, or one value for all of them: what the loop below is generic over.
trait Column: Copy {
    type Value: Copy;
    /// So many lanes, from this one on.
    fn cut(self, from: usize, lanes: usize) -> Self;
    fn at(self, lane: usize) -> Self::Value;
}

#[derive(Clone, Copy)]
struct Each<'a, T>(&'a [T]);

impl<T: Copy> Column for Each<'_, T> {
    type Value = T;
    #[inline(always)]
    fn cut(self, from: usize, lanes: usize) -> Self {
        Each(&self.0[from..][..lanes])
    }
    #[inline(always)]
    fn at(self, lane: usize) -> T {
        self.0[lane]
    }
}

#[derive(Clone, Copy)]
struct Same<T>(T);

impl<T: Copy> Column for Same<T> {
    type Value = T;
    #[inline(always)]
    fn cut(self, _: usize, _: usize) -> Self {
        self
    }
    #[inline(always)]
    fn at(self, _: usize) -> T {
        self.0
    }
}

/// What is computed in each lane: a function of one, two or three values. A trait and not a closure around the function that
/// it is made of: a closure is compiled for the base processor unless it stands in a function that is not, and what it calls
/// could not be inlined.
trait Lane<A, B, C, O> {
    fn of(&self, a: A, b: B, c: C) -> (O, Flag);
}

struct Unary<F>(F);
impl<A, O, F: Fn(A) -> (O, Flag)> Lane<A, (), (), O> for Unary<F> {
    #[inline(always)]
    fn of(&self, a: A, (): (), (): ()) -> (O, Flag) {
        self.0(a)
    }
}

struct Binary<F>(F);
impl<A, B, O, F: Fn(A, B) -> (O, Flag)> Lane<A, B, (), O> for Binary<F> {
    #[inline(always)]
    fn of(&self, a: A, b: B, (): ()) -> (O, Flag) {
        self.0(a, b)
    }
}

/// A function without a flag.
struct Total1<F>(F);
impl<A, O, F: Fn(A) -> O> Lane<A, (), (), O> for Total1<F> {
    #[inline(always)]
    fn of(&self, a: A, (): (), (): ()) -> (O, Flag) {
        (self.0(a), 0)
    }
}

struct Total2<F>(F);
impl<A, B, O, F: Fn(A, B) -> O> Lane<A, B, (), O> for Total2<F> {
    #[inline(always)]
    fn of(&self, a: A, b: B, (): ()) -> (O, Flag) {
        (self.0(a, b), 0)
    }
}

struct Chosen;
impl<T> Lane<bool, T, T, T> for Chosen {
    #[inline(always)]
    fn of(&self, c: bool, a: T, b: T) -> (T, Flag) {
        (if c { a } else { b }, 0)
    }
}

/// The loop of every kernel: `out = f(a, b, c)` for one element in every lane, or for several that lie in a row. Returns the
/// flags of the lanes that get new values, or-ed.
///
/// The compiler's own vectors of a loop of any length leave as many lanes as fill four registers to a scalar end, which with
/// some hundred lanes is most of the time: so it goes in pieces of one length, of which the last may overlap the one before it
/// and then computes the same again.
#[inline(always)]
fn sweep<A: Column, B: Column, C: Column, O: Blend>(
    columns: (A, B, C),
    out: Out<'_, O>,
    f: &impl Lane<A::Value, B::Value, C::Value, O>,
) -> Flag {
    match out.to.len() {
        16.. => pieces::<16, _, _, _, _>(columns, out, f),
        4.. => pieces::<4, _, _, _, _>(columns, out, f),
        1.. => pieces::<1, _, _, _, _>(columns, out, f),
        0 => 0,
    }
}

/// [`sweep`] in pieces of `N` lanes, of which there are at least so many. All of a piece is computed before any of it is
/// stored: in an unrolled loop the compiler makes vectors of the lanes only where no store may change what is loaded next.
#[inline(always)]
fn pieces<const N: usize, A: Column, B: Column, C: Column, O: Blend>(
    (a, b, c): (A, B, C),
    out: Out<'_, O>,
    f: &impl Lane<A::Value, B::Value, C::Value, O>,
) -> Flag {
    let last = out.to.len() - N;
    let mut flags = 0;
    let mut from = 0;
    loop {
        let (a, b, c) = (a.cut(from, N), b.cut(from, N), c.cut(from, N));
        let to = &mut out.to[from..][..N];
        let mut values = [to[0]; N];
        let mut found = [0; N];
        for lane in 0..N {
            (values[lane], found[lane]) = f.of(a.at(lane), b.at(lane), c.at(lane));
        }
        if let Some((kept, mask)) = out.keep {
            let (kept, mask) = (&kept[from..][..N], &mask[from..][..N]);
            for lane in 0..N {
                values[lane] = O::blend(mask[lane], values[lane], kept[lane]);
                found[lane] = i64::blend(mask[lane], found[lane], 0);
            }
        }
        to.copy_from_slice(&values);
        for flag in found {
            flags |= flag;
        }
        if from == last {
            return flags;
        }
        from = last.min(from + N);
    }
}

/// `out = f(a)` for every element and lane.
#[inline(always)]
pub(super) fn map1<A: Copy, O: Blend>(a: Rows<'_, A>, out: Out<'_, O>, f: impl Fn(A) -> O) {
    sweep1(a, out, &Total1(f));
}

/// `out = f(a, b)` for every element and lane.
#[inline(always)]
pub(super) fn map2<A: Copy, B: Copy, O: Blend>(a: Rows<'_, A>, b: Rows<'_, B>, out: Out<'_, O>, f: impl Fn(A, B) -> O) {
    sweep2(a, b, out, &Total2(f));
}

/// `out = f(a)` for every element and lane, and all flags of lanes that get new values, or-ed.
#[inline(always)]
pub(super) fn flagged1<A: Copy, O: Blend>(a: Rows<'_, A>, out: Out<'_, O>, f: impl Fn(A) -> (O, Flag)) -> Flag {
    sweep1(a, out, &Unary(f))
}

/// `out = f(a, b)` for every element and lane, and all flags of lanes that get new values, or-ed.
#[inline(always)]
pub(super) fn flagged2<A: Copy, B: Copy, O: Blend>(
    a: Rows<'_, A>,
    b: Rows<'_, B>,
    out: Out<'_, O>,
    f: impl Fn(A, B) -> (O, Flag),
) -> Flag {
    sweep2(a, b, out, &Binary(f))
}

#[inline(always)]
fn sweep1<A: Copy, O: Blend>(a: Rows<'_, A>, mut out: Out<'_, O>, f: &impl Lane<A, (), (), O>) -> Flag {
    let none = Same(());
    if let (Some(a), None) = (a.flat(out.to.len()), out.keep) {
        return sweep((Each(a), none, none), out, f);
    }
    let mut flags = 0;
    for e in 0..out.elements() {
        let out = out.row(e);
        flags |= match a.row(e) {
            Row::Lanes(a) => sweep((Each(a), none, none), out, f),
            Row::One(a) => sweep((Same(a), none, none), out, f),
        };
    }
    flags
}

#[inline(always)]
fn sweep2<A: Copy, B: Copy, O: Blend>(
    a: Rows<'_, A>,
    b: Rows<'_, B>,
    mut out: Out<'_, O>,
    f: &impl Lane<A, B, (), O>,
) -> Flag {
    let none = Same(());
    let len = out.to.len();
    if out.keep.is_none() {
        match (a.flat(len), b.flat(len), a.value(), b.value()) {
            (Some(a), Some(b), ..) => return sweep((Each(a), Each(b), none), out, f),
            (Some(a), None, _, Some(b)) => return sweep((Each(a), Same(b), none), out, f),
            (None, Some(b), Some(a), _) => return sweep((Same(a), Each(b), none), out, f),
            _ => {}
        }
    }
    let mut flags = 0;
    if out.spreads() && a.is_plain() && b.is_plain() {
        let (mut left, mut right) = (Tile::new(), Tile::new());
        let length = TILE / out.width * out.width;
        for (tile, to) in out.to.chunks_mut(length).enumerate() {
            let (from, len) = (tile * length / out.width, to.len());
            let (a, b) = (a.tile(from, len, &mut left), b.tile(from, len, &mut right));
            flags |= sweep((Each(a), Each(b), none), Out { to, width: out.width, keep: None }, f);
        }
        return flags;
    }
    for e in 0..out.elements() {
        let out = out.row(e);
        flags |= match (a.row(e), b.row(e)) {
            (Row::Lanes(a), Row::Lanes(b)) => sweep((Each(a), Each(b), none), out, f),
            (Row::Lanes(a), Row::One(b)) => sweep((Each(a), Same(b), none), out, f),
            (Row::One(a), Row::Lanes(b)) => sweep((Same(a), Each(b), none), out, f),
            (Row::One(a), Row::One(b)) => sweep((Same(a), Same(b), none), out, f),
        };
    }
    flags
}

/// `out = if c { a } else { b }` for every element and lane.
#[inline(always)]
pub(super) fn select<T: Blend>(c: Rows<'_, bool>, a: Rows<'_, T>, b: Rows<'_, T>, mut out: Out<'_, T>) {
    let len = out.to.len();
    if let (Some(c), None) = (c.flat(len), out.keep) {
        match (a.flat(len), a.value(), b.flat(len), b.value()) {
            (Some(a), _, Some(b), _) => {
                sweep((Each(c), Each(a), Each(b)), out, &Chosen);
                return;
            }
            (Some(a), _, None, Some(b)) => {
                sweep((Each(c), Each(a), Same(b)), out, &Chosen);
                return;
            }
            (None, Some(a), Some(b), _) => {
                sweep((Each(c), Same(a), Each(b)), out, &Chosen);
                return;
            }
            (None, Some(a), None, Some(b)) => {
                sweep((Each(c), Same(a), Same(b)), out, &Chosen);
                return;
            }
            _ => {}
        }
    }
    if out.spreads() && c.is_plain() && a.is_plain() && b.is_plain() {
        let (mut condition, mut left, mut right) = (Tile::new(), Tile::new(), Tile::new());
        let length = TILE / out.width * out.width;
        for (tile, to) in out.to.chunks_mut(length).enumerate() {
            let (from, len) = (tile * length / out.width, to.len());
            let (a, b) = (a.tile(from, len, &mut left), b.tile(from, len, &mut right));
            let columns = (Each(c.tile(from, len, &mut condition)), Each(a), Each(b));
            sweep(columns, Out { to, width: out.width, keep: None }, &Chosen);
        }
        return;
    }
    for e in 0..out.elements() {
        let out = out.row(e);
        match (c.row(e), a.row(e), b.row(e)) {
            (Row::One(c), Row::Lanes(a), Row::Lanes(b)) => _ = sweep((Same(c), Each(a), Each(b)), out, &Chosen),
            (Row::One(c), Row::Lanes(a), Row::One(b)) => _ = sweep((Same(c), Each(a), Same(b)), out, &Chosen),
            (Row::One(c), Row::One(a), Row::Lanes(b)) => _ = sweep((Same(c), Same(a), Each(b)), out, &Chosen),
            (Row::One(c), Row::One(a), Row::One(b)) => _ = sweep((Same(c), Same(a), Same(b)), out, &Chosen),
            (Row::Lanes(c), Row::Lanes(a), Row::Lanes(b)) => _ = sweep((Each(c), Each(a), Each(b)), out, &Chosen),
            (Row::Lanes(c), Row::Lanes(a), Row::One(b)) => _ = sweep((Each(c), Each(a), Same(b)), out, &Chosen),
            (Row::Lanes(c), Row::One(a), Row::Lanes(b)) => _ = sweep((Each(c), Same(a), Each(b)), out, &Chosen),
            (Row::Lanes(c), Row::One(a), Row::One(b)) => _ = sweep((Each(c), Same(a), Same(b)), out, &Chosen),
        }
    }
}
