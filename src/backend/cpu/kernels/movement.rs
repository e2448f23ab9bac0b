//! Primitives that move elements: building, indexing, slicing, filling, joining, transposing.

use super::call::{KernelArg, KernelCall};
use super::gather::{self, Adder};
use super::rows::{Rows, bools, ints, reals};
use super::spread;
use crate::backend::cpu::buffer::Buffer;
use crate::prim::{Movement, Prim};
use crate::run::TrapKind;
use crate::types::DType;
use crate::vmath::Real;

pub(super) fn run<R: Real>(movement: Movement, call: &mut KernelCall<'_, R>, out: &mut Buffer<R>) {
    let len = call.elements() * call.width;
    match call.ty.dtype {
        DType::Int if movement == Movement::Iota => {
            let rows = out.ints_mut()[..len].chunks_exact_mut(call.width);
            rows.enumerate().for_each(|(e, out)| out.fill(e as i64));
        }
        DType::Bool => typed(movement, call, &mut out.bools_mut()[..len], bools, gather::BOOLS),
        DType::Int => typed(movement, call, &mut out.ints_mut()[..len], ints, gather::INTS),
        DType::Real => typed(movement, call, &mut out.reals_mut()[..len], reals, gather::reals()),
    }
}

/// How to read operands of one element type.
type Reader<R, T> = for<'a> fn(&KernelArg<'a, R>, usize) -> Rows<'a, T>;

fn typed<R: Real, T: Copy>(
    movement: Movement,
    call: &mut KernelCall<'_, R>,
    out: &mut [T],
    rows: Reader<R, T>,
    add: Adder<T>,
) {
    let (w, args) = (call.width, call.args);
    let first = rows(&args[0], w);
    match movement {
        Movement::MakeArray => {
            let part = args[0].ty.elements();
            for (k, arg) in args.iter().enumerate() {
                copy_rows(rows(arg, w), 0, &mut out[k * part * w..(k + 1) * part * w], w);
            }
        }
        Movement::Fill => {
            let places = spread::places(&args[0].ty.shape, &call.ty.shape);
            copy_rows(first.at_places(places.as_deref()), 0, out, w);
        }
        Movement::Reshape => copy_rows(first, 0, out, w),
        Movement::Concat => {
            let split = args[0].ty.elements() * w;
            copy_rows(first, 0, &mut out[..split], w);
            copy_rows(rows(&args[1], w), 0, &mut out[split..], w);
        }
        Movement::Transpose => transpose(first, &args[0].ty.shape, 0, out, w),
        Movement::TransposeEach => transpose(first, &args[0].ty.shape, 1, out, w),
        Movement::Gather => gather::gather(call, first, out),
        Movement::Scatter | Movement::ScatterAdd => {
            copy_rows(first, 0, out, w);
            let add = (movement == Movement::ScatterAdd).then_some(add);
            gather::scatter(call, &args[1..], rows(&args[1], w), out, (false, add));
        }
        Movement::Index | Movement::Slice => {
            let place = Place::new(call, &args[0], &args[1..], movement == Movement::Slice, call.ty.shape.first());
            read(call, place, first, out);
        }
        Movement::SetIndex | Movement::SetSlice => {
            copy_rows(first, 0, out, w);
            let place =
                Place::new(call, &args[0], &args[2..], movement == Movement::SetSlice, args[1].ty.shape.first());
            write(call, place, rows(&args[1], w), out, false);
        }
        Movement::Iota => unreachable!("it has no operand"),
    }
}

/// Changes a part of the first operand, which is the result, in place: in active lanes only.
pub(super) fn set_in_place<R: Real>(call: &mut KernelCall<'_, R>, target: &mut Buffer<R>) {
    let len = call.elements() * call.width;
    match call.ty.dtype {
        DType::Bool => set(call, &mut target.bools_mut()[..len], bools, gather::BOOLS),
        DType::Int => set(call, &mut target.ints_mut()[..len], ints, gather::INTS),
        DType::Real => set(call, &mut target.reals_mut()[..len], reals, gather::reals()),
    }
}

fn set<R: Real, T: Copy>(call: &mut KernelCall<'_, R>, target: &mut [T], rows: Reader<R, T>, add: Adder<T>) {
    let args = call.args;
    let part = rows(&args[0], call.width);
    if matches!(call.prim, Prim::Scatter | Prim::ScatterAdd) {
        let add = (call.prim == Prim::ScatterAdd).then_some(add);
        return gather::scatter(call, args, part, target, (true, add));
    }
    let nothing = Buffer::nothing();
    let whole = KernelArg::new(&nothing, call.ty, false);
    let place = Place::new(call, &whole, &args[1..], call.prim == Prim::SetSlice, args[0].ty.shape.first());
    write(call, place, part, target, true);
}

/// `x` with `axis` and the next one exchanged.
fn transpose<T: Copy>(x: Rows<'_, T>, shape: &[usize], axis: usize, out: &mut [T], width: usize) {
    let (n, m) = (shape[axis], shape[axis + 1]);
    let inner = shape[axis + 2..].iter().product::<usize>();
    for (e, out) in out.chunks_exact_mut(width).enumerate() {
        let (rest, last) = (e / inner, e % inner);
        let (rest, i) = (rest / n, rest % n);
        let (outer, j) = (rest / m, rest % m);
        x.row(((outer * n + i) * m + j) * inner + last).copy_to(out);
    }
}

fn copy_rows<T: Copy>(x: Rows<'_, T>, from: usize, out: &mut [T], width: usize) {
    match x.block(from, out.len()) {
        Some(values) => out.copy_from_slice(values),
        None => out.chunks_exact_mut(width).enumerate().for_each(|(e, out)| x.row(from + e).copy_to(out)),
    }
}

/// Where the part of an array begins that an index or slice names: the same element in all lanes, or one for each lane.
enum Place {
    Same(usize),
    Lanes(Vec<usize>),
    /// Out of range in every lane.
    Nowhere,
}

impl Place {
    /// Finds the place in `array`; active lanes whose index is out of range trap, other such lanes get element 0.
    fn new<R: Real>(
        call: &mut KernelCall<'_, R>,
        array: &KernelArg<'_, R>,
        at: &[KernelArg<'_, R>],
        slice: bool,
        len: Option<&usize>,
    ) -> Place {
        let shape = &array.ty.shape;
        // The largest index that fits on each axis; a slice of zero entries may begin at the very end.
        let last = |axis: usize| shape[axis] as i64 - if slice { *len.expect("a slice has an axis") as i64 } else { 1 };
        let stride = |axis: usize| shape[axis + 1..].iter().product::<usize>() as i64;
        if at.iter().all(|i| i.broadcast) {
            let index = |axis: usize| at[axis].buffer.ints()[0];
            if (0..at.len()).any(|axis| index(axis) < 0 || index(axis) > last(axis)) {
                call.trap_where(TrapKind::IndexOutOfRange, |_| true);
                return Place::Nowhere;
            }
            return Place::Same((0..at.len()).map(|axis| index(axis) * stride(axis)).sum::<i64>() as usize);
        }
        let mut base = vec![0_i64; call.width];
        let mut bad = false;
        for (axis, index) in at.iter().enumerate() {
            let (index, last, stride) = (ints(index, call.width).row(0), last(axis), stride(axis));
            for (lane, base) in base.iter_mut().enumerate() {
                let i = index.at(lane);
                let ok = i >= 0 && i <= last;
                bad |= !ok;
                *base = if ok && *base >= 0 { *base + i * stride } else { -1 };
            }
        }
        if bad {
            call.trap_where(TrapKind::IndexOutOfRange, |lane| base[lane] < 0);
            if base.iter().all(|b| *b < 0) {
                return Place::Nowhere;
            }
        }
        // Lanes that are out of range are junk or have trapped: any element will do.
        let spare = base.iter().copied().find(|b| *b >= 0).unwrap_or(0);
        Place::Lanes(base.into_iter().map(|b| if b < 0 { spare } else { b } as usize).collect())
    }
}

fn read<R: Real, T: Copy>(call: &KernelCall<'_, R>, place: Place, x: Rows<'_, T>, out: &mut [T]) {
    match place {
        Place::Nowhere => {}
        Place::Same(base) => copy_rows(x, base, out, call.width),
        Place::Lanes(base) => {
            for (e, out) in out.chunks_exact_mut(call.width).enumerate() {
                out.iter_mut().zip(&base).enumerate().for_each(|(lane, (o, b))| *o = x.row(b + e).at(lane));
            }
        }
    }
}

/// Writes `part` at `place`. In place only active lanes may change; lanes that trapped in this very call may, since
/// nobody reads them again.
fn write<R: Real, T: Copy>(call: &KernelCall<'_, R>, place: Place, part: Rows<'_, T>, out: &mut [T], in_place: bool) {
    let (w, all) = (call.width, matches!(call.active, super::Active::All));
    let elements = call.args[usize::from(!in_place)].ty.elements();
    for e in 0..elements {
        let row = part.row(e);
        match &place {
            Place::Nowhere => return,
            Place::Same(base) if all || !in_place => row.copy_to(&mut out[(base + e) * w..(base + e + 1) * w]),
            Place::Same(base) => {
                let out = &mut out[(base + e) * w..(base + e + 1) * w];
                (0..w).filter(|l| call.active.contains(*l)).for_each(|l| out[l] = row.at(l));
            }
            Place::Lanes(base) => {
                (0..w).filter(|l| call.active.contains(*l)).for_each(|l| out[(base[l] + e) * w + l] = row.at(l));
            }
        }
    }
}
