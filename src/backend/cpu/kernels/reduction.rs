//! Reductions of the elements of each lane, of all or along axes, in the order of the elements.

use super::call::{Active, KernelCall};
use super::rows::{Row, Rows, bools, ints, multiversioned, reals};
use super::slices::log_sums;
use super::spread::{Groups, Offsets};
use crate::backend::cpu::buffer::Buffer;
use crate::prim::Reduction;
use crate::run::TrapKind;
use crate::types::DType;
use crate::vmath::{BLOCK, LogSum, Real, each_block};

pub(super) fn run<R: Real>(reduction: Reduction, call: &mut KernelCall<'_, R>, out: &mut Buffer<R>) {
    if call.args[0].broadcast && call.width > 1 && !call.accumulate {
        return once(reduction, call, out);
    }
    let (w, arg) = (call.width, &call.args[0]);
    let groups = Groups::new(&arg.ty.shape, &call.ty.shape);
    let len = groups.starts.len() * w;
    let more = call.accumulate;
    if matches!(reduction, Reduction::MinOf | Reduction::MaxOf) && groups.offsets.len() == 0 && len > 0 && !more {
        return call.trap_where(TrapKind::EmptyReduction, |_| true);
    }
    match arg.ty.dtype {
        DType::Bool => {
            let x = bools(arg, w);
            each(&groups, &mut out.bools_mut()[..len], w, |group, out| logic((reduction, more), x, group, out));
        }
        DType::Int => int(reduction, call, &groups, &mut out.ints_mut()[..len]),
        DType::Real => {
            let x = reals(arg, w);
            if let Some(of) = log_sum(reduction) {
                let mut spread = Vec::new();
                each(&groups, &mut out.reals_mut()[..len], w, |group, out| {
                    logs((of, more), x, group, out, &mut spread);
                });
                return;
            }
            each(&groups, &mut out.reals_mut()[..len], w, |group, out| real((reduction, more), x, group, out));
        }
    }
}

/// The elements of one element of the result: where they start, and how they lie.
type Group<'a> = (usize, &'a Offsets);

fn each<T>(groups: &Groups, out: &mut [T], w: usize, mut f: impl FnMut(Group<'_>, &mut [T])) {
    for (start, out) in groups.starts.iter().zip(out.chunks_exact_mut(w)) {
        f((*start as usize, &groups.offsets), out);
    }
}

/// What is the same for all lanes is computed once, then spread.
#[cold]
fn once<R: Real>(reduction: Reduction, call: &mut KernelCall<'_, R>, out: &mut Buffer<R>) {
    let (mut one, mut traps) = (Buffer::zeros(call.ty.dtype, call.elements()), Vec::new());
    let args = call.args;
    let mut first = KernelCall { args, width: 1, active: Active::All, keep: None, traps: &mut traps, ..*call };
    run(reduction, &mut first, &mut one);
    if let Some((_, kind)) = traps.first() {
        return call.trap_where(*kind, |_| true);
    }
    fn spread<T: Copy>(from: &[T], to: &mut [T], w: usize) {
        from.iter().zip(to.chunks_exact_mut(w)).for_each(|(x, to)| to.fill(*x));
    }
    match (&one, out) {
        (Buffer::Bool(from), Buffer::Bool(to)) => spread(from, to, call.width),
        (Buffer::Int(from), Buffer::Int(to)) => spread(from, to, call.width),
        (Buffer::Real(from), Buffer::Real(to)) => spread(from, to, call.width),
        _ => unreachable!("the result has the type of the call"),
    }
}

fn int<R: Real>(reduction: Reduction, call: &mut KernelCall<'_, R>, groups: &Groups, out: &mut [i64]) {
    let (more, w, x) = (call.accumulate, call.width, ints(&call.args[0], call.width));
    let smaller = match reduction {
        Reduction::MinOf => true,
        Reduction::MaxOf => false,
        Reduction::Sum | Reduction::Prod => {
            let sum = reduction == Reduction::Sum;
            let mut overflows = vec![false; w];
            each(groups, out, w, |group, out| checked((sum, more), x, group, out, &mut overflows));
            return call.trap_where(TrapKind::IntegerOverflow, |lane| overflows[lane]);
        }
        Reduction::SumLog | Reduction::SumLog1pExp => unreachable!("of reals"),
        Reduction::Any | Reduction::All => unreachable!("of bools"),
    };
    each(groups, out, w, |group, out| extreme_int((smaller, more), x, group, out));
}

/// Combines the elements of a group from number `first` up to `end` with what is in `out`: some lanes, whose values stay in
/// registers, through all elements, then the next ones.
#[inline(always)]
fn fold<T: Copy>(x: Rows<'_, T>, group: Group<'_>, range: (usize, usize), out: &mut [T], f: impl Fn(T, T) -> T) {
    let mut lane = 0;
    while lane + 16 <= out.len() {
        fold_lanes::<16, T>(x, group, range, (out, lane), &f);
        lane += 16;
    }
    while lane + 4 <= out.len() {
        fold_lanes::<4, T>(x, group, range, (out, lane), &f);
        lane += 4;
    }
    for lane in lane..out.len() {
        fold_lanes::<1, T>(x, group, range, (out, lane), &f);
    }
}

/// The same for `N` lanes.
#[inline(always)]
fn fold_lanes<const N: usize, T: Copy>(
    x: Rows<'_, T>,
    (start, offsets): Group<'_>,
    (first, end): (usize, usize),
    (out, lane): (&mut [T], usize),
    f: &impl Fn(T, T) -> T,
) {
    let out = &mut out[lane..][..N];
    let mut values = [out[0]; N];
    values.copy_from_slice(out);
    for i in first..end {
        match x.row(start + offsets.at(i)) {
            Row::Lanes(row) => {
                let row = &row[lane..][..N];
                for l in 0..N {
                    values[l] = f(values[l], row[l]);
                }
            }
            Row::One(value) => {
                for each in &mut values {
                    *each = f(*each, value);
                }
            }
        }
    }
    out.copy_from_slice(&values);
}

/// Combines all elements with `start`, or, with `more`, with what is in `out`.
#[inline(always)]
fn fold_from<T: Copy>(x: Rows<'_, T>, group: Group<'_>, out: &mut [T], start: T, more: bool, f: impl Fn(T, T) -> T) {
    if !more {
        out.fill(start);
    }
    fold(x, group, (0, group.1.len()), out, f);
}

/// Combines all elements with the first, or, with `more`, with what is in `out`.
#[inline(always)]
fn fold_first<T: Copy>(x: Rows<'_, T>, group: Group<'_>, out: &mut [T], more: bool, f: impl Fn(T, T) -> T) {
    if !more {
        x.row(group.0 + group.1.at(0)).copy_to(out);
    }
    fold(x, group, (usize::from(!more), group.1.len()), out, f);
}

multiversioned! {
    fn logic((reduction, more): (Reduction, bool), x: Rows<'_, bool>, group: Group<'_>, out: &mut [bool]) {
        match reduction {
            Reduction::Any => fold_from(x, group, out, false, more, |a, x| a | x),
            Reduction::All => fold_from(x, group, out, true, more, |a, x| a & x),
            _ => unreachable!("of numbers"),
        }
    }

    fn extreme_int((smaller, more): (bool, bool), x: Rows<'_, i64>, group: Group<'_>, out: &mut [i64]) {
        match smaller {
            true => fold_first(x, group, out, more, i64::min),
            false => fold_first(x, group, out, more, i64::max),
        }
    }

    /// Sums and products; sets the flags of the lanes in which one goes past 64 bits.
    fn checked(
        (sum, more): (bool, bool),
        x: Rows<'_, i64>,
        (start, offsets): Group<'_>,
        out: &mut [i64],
        overflows: &mut [bool],
    ) {
        if !more {
            out.fill(i64::from(!sum));
        }
        for i in 0..offsets.len() {
            let row = x.row(start + offsets.at(i));
            for (lane, (to, overflow)) in out.iter_mut().zip(&mut *overflows).enumerate() {
                let (a, x) = (*to, row.at(lane));
                let (value, over) = if sum { a.overflowing_add(x) } else { a.overflowing_mul(x) };
                *to = value;
                *overflow |= over;
            }
        }
    }

    fn real<R: Real>((reduction, more): (Reduction, bool), x: Rows<'_, R>, group: Group<'_>, out: &mut [R]) {
        match reduction {
            Reduction::Sum => sum(x, group, out, more),
            Reduction::Prod => fold_from(x, group, out, R::ONE, more, |a, x| a * x),
            Reduction::MinOf => fold_first(x, group, out, more, R::min2),
            Reduction::MaxOf => fold_first(x, group, out, more, R::max2),
            Reduction::SumLog | Reduction::SumLog1pExp => unreachable!("in `logs`"),
            Reduction::Any | Reduction::All => unreachable!("of bools"),
        }
    }
}

/// Of what a reduction sums the logarithms, if it does.
fn log_sum(reduction: Reduction) -> Option<LogSum> {
    match reduction {
        Reduction::SumLog => Some(LogSum::Log),
        Reduction::SumLog1pExp => Some(LogSum::Log1pExp),
        _ => None,
    }
}

/// A sum of logarithms in every lane, of elements that stand in a row, or are put into one, in `spread`.
fn logs<R: Real>((of, more): (LogSum, bool), x: Rows<'_, R>, group: Group<'_>, out: &mut [R], spread: &mut Vec<R>) {
    let (start, offsets) = group;
    let (n, w) = (offsets.len(), out.len());
    if let (Offsets::Even { stride: 1, .. }, Some(values)) = (offsets, x.block(start, n * w)) {
        return log_sums(of, values, out, more);
    }
    spread.resize(n * w, R::ZERO);
    for (i, to) in spread.chunks_exact_mut(w).enumerate() {
        x.row(start + offsets.at(i)).copy_to(to);
    }
    log_sums(of, &spread[..n * w], out, more);
}

/// Ascending sums of blocks of [`BLOCK`] elements, added in order: [`vmath::sum`](crate::vmath) in every lane. With `more`
/// they are added to what is in `out`.
#[inline(always)]
fn sum<R: Real>(x: Rows<'_, R>, group: Group<'_>, out: &mut [R], more: bool) {
    let n = group.1.len();
    if let (Offsets::Even { stride: 1, .. }, [out]) = (group.1, &mut *out)
        && let Some(values) = x.block(group.0, n)
    {
        return match more {
            true => each_block(values, |block| *out = *out + block),
            false => *out = crate::vmath::sum(values),
        };
    }
    let mut done = 0;
    if !more {
        done = n.min(BLOCK);
        out.fill(R::ZERO);
        fold(x, group, (0, done), out, |a, x| a + x);
    }
    if n > done {
        let mut block = vec![R::ZERO; out.len()];
        for first in (done..n).step_by(BLOCK) {
            block.fill(R::ZERO);
            fold(x, group, (first, n.min(first + BLOCK)), &mut block, |a, x| a + x);
            out.iter_mut().zip(&block).for_each(|(o, b)| *o = *o + *b);
        }
    }
}
