//! Lane buffers: `[element][lane]`, lanes contiguous, so that an elementwise kernel is a loop over a slice whatever the
//! event shape.

use std::collections::TryReserveError;
use std::ffi::c_void;

use super::PADDING;
use super::compact::{Selection, compact, spread};
use super::kernels::multiversioned;
use crate::exec::AlignedVec;
use crate::exec::mask::{byte_mask, for_each_lane};
use crate::types::{Array, ArrayData, DType, Shape};
use crate::vmath::{Blend, Real};

/// The values of one variable in `width` lanes, or one value for all of them (width 1). Element `e` of lane `l` stands at
/// `e * width + l`.
#[derive(Clone, Debug, PartialEq)]
pub enum Buffer<R> {
    /// `bool`, one byte each.
    Bool(AlignedVec<bool>),
    /// `int`
    Int(AlignedVec<i64>),
    /// `real`
    Real(AlignedVec<R>),
}

/// Some values of a [`Buffer`]: what kernels read.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a, R> {
    /// `bool`
    Bool(&'a [bool]),
    /// `int`
    Int(&'a [i64]),
    /// `real`
    Real(&'a [R]),
}

impl<'a, R: Real> Values<'a, R> {
    /// The bools. Panics for another element type.
    pub fn bools(self) -> &'a [bool] {
        if let Values::Bool(v) = self { v } else { panic!("a bool buffer") }
    }
    /// The ints. Panics for another element type.
    pub fn ints(self) -> &'a [i64] {
        if let Values::Int(v) = self { v } else { panic!("an int buffer") }
    }
    /// The reals. Panics for another element type.
    pub fn reals(self) -> &'a [R] {
        if let Values::Real(v) = self { v } else { panic!("a real buffer") }
    }
}

impl<R: Real> Buffer<R> {
    /// All values from this one on.
    #[inline]
    pub fn values(&self, start: usize) -> Values<'_, R> {
        match self {
            Buffer::Bool(v) => Values::Bool(&v[start..]),
            Buffer::Int(v) => Values::Int(&v[start..]),
            Buffer::Real(v) => Values::Real(&v[start..]),
        }
    }
    /// `len` zeros.
    pub fn zeros(dtype: DType, len: usize) -> Self {
        match dtype {
            DType::Bool => Buffer::Bool(vec![false; len].into()),
            DType::Int => Buffer::Int(vec![0; len].into()),
            DType::Real => Buffer::Real(vec![R::ZERO; len].into()),
        }
    }
    /// `len` zeros; an error where there is no memory for them.
    pub fn try_zeros(dtype: DType, len: usize) -> Result<Self, TryReserveError> {
        Ok(match dtype {
            DType::Bool => Buffer::Bool(AlignedVec::try_filled(false, len)?),
            DType::Int => Buffer::Int(AlignedVec::try_filled(0, len)?),
            DType::Real => Buffer::Real(AlignedVec::try_filled(R::ZERO, len)?),
        })
    }
    /// Zeros for as many values, and behind them room for a group of lanes; an error where there is no memory for them.
    /// Generated code computes whole groups, and stores what is of lanes. What stands in that room is therefore 1, of
    /// which functions are quick: of zeros come infinities and then subnormal numbers, and a processor may take a
    /// hundred cycles for an operation on these.
    pub fn try_slot(dtype: DType, len: usize) -> Result<Self, TryReserveError> {
        let mut slot = Self::try_zeros(dtype, len.saturating_add(PADDING))?;
        if let Buffer::Real(values) = &mut slot {
            values[len..].fill(R::ONE);
        }
        Ok(slot)
    }
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Buffer::Bool(v) => v.len(),
            Buffer::Int(v) => v.len(),
            Buffer::Real(v) => v.len(),
        }
    }
    /// The values of a lane become those of a lane of another buffer of the same variable; both with how many lanes there are.
    pub fn set_lane(&mut self, to: (usize, usize), from: &Self, other: (usize, usize), elements: usize) {
        fn go<T: Copy>(
            to: &mut [T],
            (lane, width): (usize, usize),
            from: &[T],
            other: (usize, usize),
            elements: usize,
        ) {
            for element in 0..elements {
                to[element * width + lane] = from[element * other.1 + other.0];
            }
        }
        match (self, from) {
            (Buffer::Bool(v), Buffer::Bool(from)) => go(v, to, from, other, elements),
            (Buffer::Int(v), Buffer::Int(from)) => go(v, to, from, other, elements),
            (Buffer::Real(v), Buffer::Real(from)) => go(v, to, from, other, elements),
            _ => panic!("both are of one type"),
        }
    }
    /// Bytes of its values.
    pub fn bytes(&self) -> usize {
        match self {
            Buffer::Bool(v) => size_of_val(&v[..]),
            Buffer::Int(v) => size_of_val(&v[..]),
            Buffer::Real(v) => size_of_val(&v[..]),
        }
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The bools. Panics for another element type.
    pub fn bools(&self) -> &[bool] {
        if let Buffer::Bool(v) = self { v } else { panic!("a bool buffer") }
    }
    /// The ints. Panics for another element type.
    pub fn ints(&self) -> &[i64] {
        if let Buffer::Int(v) = self { v } else { panic!("an int buffer") }
    }
    /// The reals. Panics for another element type.
    pub fn reals(&self) -> &[R] {
        if let Buffer::Real(v) = self { v } else { panic!("a real buffer") }
    }
    /// The bools, mutable. Panics for another element type.
    pub fn bools_mut(&mut self) -> &mut [bool] {
        if let Buffer::Bool(v) = self { v } else { panic!("a bool buffer") }
    }
    /// The ints, mutable. Panics for another element type.
    pub fn ints_mut(&mut self) -> &mut [i64] {
        if let Buffer::Int(v) = self { v } else { panic!("an int buffer") }
    }
    /// The reals, mutable. Panics for another element type.
    pub fn reals_mut(&mut self) -> &mut [R] {
        if let Buffer::Real(v) = self { v } else { panic!("a real buffer") }
    }
    /// An array of the host as a buffer of width 1: reals are rounded to `R`.
    pub fn from_array(array: &Array) -> Self {
        match &array.data {
            ArrayData::Bool(v) => Buffer::Bool(v.clone().into()),
            ArrayData::Int(v) => Buffer::Int(v.clone().into()),
            ArrayData::Real(v) => Buffer::Real(v.iter().map(|x| R::from_f64(*x)).collect()),
        }
    }
    /// The value of one lane as an array of the host.
    pub fn lane(&self, shape: &Shape, width: usize, lane: usize) -> Array {
        let n: usize = shape.iter().product();
        let at = |e: usize| e * width + lane;
        let data = match self {
            Buffer::Bool(v) => ArrayData::Bool((0..n).map(|e| v[at(e)]).collect()),
            Buffer::Int(v) => ArrayData::Int((0..n).map(|e| v[at(e)]).collect()),
            Buffer::Real(v) => ArrayData::Real((0..n).map(|e| v[at(e)].to_f64()).collect()),
        };
        Array { shape: shape.clone(), data }
    }
    /// Appends the elements of one lane, each as a word: see [`Record::append_words`](crate::run::Record::append_words).
    pub fn append_words(&self, elements: usize, width: usize, lane: usize, words: &mut Vec<u64>) {
        let places = (0..elements).map(|e| e * width + lane);
        match self {
            Buffer::Bool(v) => words.extend(places.map(|i| u64::from(v[i]))),
            Buffer::Int(v) => words.extend(places.map(|i| v[i] as u64)),
            Buffer::Real(v) => words.extend(places.map(|i| v[i].to_f64().to_bits())),
        }
    }
    /// Sets lanes, in their order, from the rows of an array, whose leading axis is lanes, that begin with row `first`.
    pub fn set_lanes(&mut self, width: usize, lanes: &[u32], array: &Array, first: usize) {
        fn go<T, A: Copy>(to: &mut [T], width: usize, lanes: &[u32], from: &[A], n: usize, convert: impl Fn(A) -> T) {
            for e in 0..n {
                let row = &mut to[e * width..][..width];
                let from = from[e..].iter().step_by(n);
                lanes.iter().zip(from).for_each(|(lane, value)| row[*lane as usize] = convert(*value));
            }
        }
        let n = array.len().checked_div(array.shape[0]).unwrap_or(0);
        match (self, &array.data) {
            (Buffer::Bool(v), ArrayData::Bool(a)) => go(v, width, lanes, &a[first * n..], n, |x| x),
            (Buffer::Int(v), ArrayData::Int(a)) => go(v, width, lanes, &a[first * n..], n, |x| x),
            (Buffer::Real(v), ArrayData::Real(a)) => go(v, width, lanes, &a[first * n..], n, R::from_f64),
            _ => panic!("the element types of a lane input agree: the program checks them"),
        }
    }
    /// Copies the lanes of `source` that are selected to the first lanes of `self`, whose width is their number.
    pub(super) fn gather(&mut self, source: &Self, elements: usize, lanes: &Selection) {
        match (self, source) {
            (Buffer::Bool(t), Buffer::Bool(f)) => compact(t, f, elements, lanes),
            (Buffer::Int(t), Buffer::Int(f)) => compact(t, f, elements, lanes),
            (Buffer::Real(t), Buffer::Real(f)) => compact(t, f, elements, lanes),
            _ => panic!("buffers of one variable have one element type"),
        }
    }
    /// The reverse of [`gather`](Self::gather): copies all lanes of `source` to those of `self` that are selected.
    pub(super) fn scatter(&mut self, source: &Self, elements: usize, lanes: &Selection) {
        match (self, source) {
            (Buffer::Bool(t), Buffer::Bool(f)) => spread(t, f, elements, lanes),
            (Buffer::Int(t), Buffer::Int(f)) => spread(t, f, elements, lanes),
            (Buffer::Real(t), Buffer::Real(f)) => spread(t, f, elements, lanes),
            _ => panic!("buffers of one variable have one element type"),
        }
    }
    /// Copies the first `len` values of `source`.
    pub fn copy_from(&mut self, source: &Self, len: usize) {
        match (self, source) {
            (Buffer::Bool(t), Buffer::Bool(f)) => t[..len].copy_from_slice(&f[..len]),
            (Buffer::Int(t), Buffer::Int(f)) => t[..len].copy_from_slice(&f[..len]),
            (Buffer::Real(t), Buffer::Real(f)) => t[..len].copy_from_slice(&f[..len]),
            _ => panic!("buffers of one variable have one element type"),
        }
    }
    /// Copies the first `len` values of `source` to those from `first` on; with a mask and a width only its lanes.
    pub fn store_rows(&mut self, source: &Self, first: usize, len: usize, masked: Option<(usize, &[u64])>) {
        fn go<T: Blend>(to: &mut [T], from: &[T], masked: Option<(usize, &[u64])>) {
            match masked {
                Some((width, mask)) => blend(to, from, to.len() / width, width, mask),
                None => to.copy_from_slice(from),
            }
        }
        let to = first..first + len;
        match (self, source) {
            (Buffer::Bool(t), Buffer::Bool(f)) => go(&mut t[to], &f[..len], masked),
            (Buffer::Int(t), Buffer::Int(f)) => go(&mut t[to], &f[..len], masked),
            (Buffer::Real(t), Buffer::Real(f)) => go(&mut t[to], &f[..len], masked),
            _ => panic!("buffers of one variable have one element type"),
        }
    }
    /// Copies the lanes of `mask` from `source`, which has the same width, for `elements` elements.
    pub fn blend(&mut self, source: &Self, elements: usize, width: usize, mask: &[u64]) {
        match (self, source) {
            (Buffer::Bool(t), Buffer::Bool(f)) => blend(t, f, elements, width, mask),
            (Buffer::Int(t), Buffer::Int(f)) => blend(t, f, elements, width, mask),
            (Buffer::Real(t), Buffer::Real(f)) => blend(t, f, elements, width, mask),
            _ => panic!("buffers of one variable have one element type"),
        }
    }
    /// Sets the lanes of `mask` to the one value that `source`, of width 1, has for all lanes.
    pub fn blend_value(&mut self, source: &Self, elements: usize, width: usize, mask: &[u64]) {
        match (self, source) {
            (Buffer::Bool(t), Buffer::Bool(f)) => blend_value(t, f, elements, width, mask),
            (Buffer::Int(t), Buffer::Int(f)) => blend_value(t, f, elements, width, mask),
            (Buffer::Real(t), Buffer::Real(f)) => blend_value(t, f, elements, width, mask),
            _ => panic!("buffers of one variable have one element type"),
        }
    }
    /// The value of one lane as a buffer of width 1.
    pub fn extract(&self, elements: usize, width: usize, lane: usize) -> Self {
        let at = |e: usize| e * width + lane;
        match self {
            Buffer::Bool(v) => Buffer::Bool((0..elements).map(|e| v[at(e)]).collect()),
            Buffer::Int(v) => Buffer::Int((0..elements).map(|e| v[at(e)]).collect()),
            Buffer::Real(v) => Buffer::Real((0..elements).map(|e| v[at(e)]).collect()),
        }
    }
    /// Where its values stand, for generated functions.
    pub(super) fn as_mut_ptr(&mut self) -> *mut c_void {
        match self {
            Buffer::Bool(v) => v.as_mut_ptr().cast(),
            Buffer::Int(v) => v.as_mut_ptr().cast(),
            Buffer::Real(v) => v.as_mut_ptr().cast(),
        }
    }
    /// The same, to read.
    pub(super) fn as_ptr(&self) -> *const c_void {
        match self {
            Buffer::Bool(v) => v.as_ptr().cast(),
            Buffer::Int(v) => v.as_ptr().cast(),
            Buffer::Real(v) => v.as_ptr().cast(),
        }
    }
    /// Bytes of a value.
    pub(super) fn value_size(&self) -> usize {
        match self {
            Buffer::Bool(_) => size_of::<bool>(),
            Buffer::Int(_) => size_of::<i64>(),
            Buffer::Real(_) => size_of::<R>(),
        }
    }
    /// An empty buffer, which owns no memory: stands in for one that is taken out of its place.
    pub fn nothing() -> Self {
        Buffer::Bool(AlignedVec::new())
    }
}

/// Stores the lanes of a mask, 64 at a time: whole words are copied, empty ones skipped, sparse ones go lane by lane.
fn blend<T: Blend>(to: &mut [T], from: &[T], elements: usize, width: usize, mask: &[u64]) {
    for e in 0..elements {
        let to = &mut to[e * width..(e + 1) * width];
        let from = &from[e * width..(e + 1) * width];
        for ((to, from), word) in to.chunks_mut(64).zip(from.chunks(64)).zip(mask) {
            match *word {
                0 => {}
                u64::MAX => to.copy_from_slice(from),
                word if word.count_ones() <= 8 => for_each_lane(&[word], |l| to[l] = from[l]),
                _ => blend_lanes(to, from, &byte_mask(*word)),
            }
        }
    }
}

fn blend_value<T: Blend>(to: &mut [T], from: &[T], elements: usize, width: usize, mask: &[u64]) {
    for (e, value) in from[..elements].iter().enumerate() {
        let to = &mut to[e * width..(e + 1) * width];
        for (to, word) in to.chunks_mut(64).zip(mask) {
            match *word {
                0 => {}
                u64::MAX => to.fill(*value),
                word if word.count_ones() <= 8 => for_each_lane(&[word], |l| to[l] = *value),
                _ => fill_lanes(to, *value, &byte_mask(*word)),
            }
        }
    }
}

multiversioned! {
    fn blend_lanes<T: Blend>(to: &mut [T], from: &[T], mask: &[i8; 64]) {
        for ((to, from), mask) in to.iter_mut().zip(from).zip(mask) {
            *to = T::blend(*mask, *from, *to);
        }
    }

    fn fill_lanes<T: Blend>(to: &mut [T], value: T, mask: &[i8; 64]) {
        for (to, mask) in to.iter_mut().zip(mask) {
            *to = T::blend(*mask, value, *to);
        }
    }
}
