//! Cholesky factors and triangular solves, for all lanes together: every element takes a chain of fused multiply-adds over
//! those before it, as a dot product does ([`vmath::dot`](crate::vmath)).

use super::call::{Active, KernelCall};
use super::rows::{Row, Rows, multiversioned, reals};
use crate::backend::cpu::buffer::Buffer;
use crate::prim::Triangular;
use crate::vmath::{BLOCK, Real, chain_cholesky_cotangent, chain_cholesky_tangent, chain_solve};

pub(super) fn run<R: Real>(triangular: Triangular, call: &KernelCall<'_, R>, out: &mut Buffer<R>) {
    let (w, shape) = (call.width, &call.args[0].ty.shape);
    let n = shape[shape.len() - 1];
    let count: usize = shape[..shape.len() - 2].iter().product();
    if n == 0 || call.elements() == 0 {
        return;
    }
    if w > 1 && call.args.iter().all(|a| a.broadcast) {
        return once(triangular, call, out);
    }
    let out = &mut out.reals_mut()[..call.elements() * w];
    let l = reals(&call.args[0], w);
    let (transposed, chain_rule) = match triangular {
        Triangular::Cholesky => {
            for (i, out) in out.chunks_exact_mut(n * n * w).enumerate() {
                let start = i * n * n;
                match w {
                    1 => factor_few::<R, 1>(l, start, n, out),
                    2 => factor_few::<R, 2>(l, start, n, out),
                    3 => factor_few::<R, 3>(l, start, n, out),
                    4 => factor_few::<R, 4>(l, start, n, out),
                    8 => factor_few::<R, 8>(l, start, n, out),
                    _ => factor(l, start, n, w, out),
                }
            }
            return;
        }
        Triangular::ChainCholeskyTangent | Triangular::ChainCholeskyCotangent => {
            let of = reals(&call.args[1], w);
            for (i, out) in out.chunks_exact_mut(n * n * w).enumerate() {
                let (start, matrices) = (i * n * n, (l, of));
                match triangular {
                    Triangular::ChainCholeskyTangent => tangent(matrices, start, n, w, out),
                    _ => cotangent(matrices, start, n, w, out),
                }
                if out.iter().fold(false, |any, x| any | x.is_nan()) {
                    derive_again(triangular, matrices, start, (n, w), call.active, out);
                }
            }
            return;
        }
        Triangular::SolveLower => (false, false),
        Triangular::SolveLowerTransposed => (true, false),
        Triangular::ChainSolveLower => (false, true),
        Triangular::ChainSolveLowerTransposed => (true, true),
    };
    let (b, columns) = (reals(&call.args[1], w), call.elements() / (count * n));
    for (i, out) in out.chunks_exact_mut(n * columns * w).enumerate() {
        let starts = (i * n * n, i * n * columns);
        let (matrices, extents) = ((l, b), (n, columns));
        match w {
            1 => solve_few::<R, 1>(transposed, matrices, starts, extents, out),
            2 => solve_few::<R, 2>(transposed, matrices, starts, extents, out),
            3 => solve_few::<R, 3>(transposed, matrices, starts, extents, out),
            4 => solve_few::<R, 4>(transposed, matrices, starts, extents, out),
            8 => solve_few::<R, 8>(transposed, matrices, starts, extents, out),
            _ => solve(transposed, matrices, starts, (n, columns, w), out),
        }
        if chain_rule && out.iter().fold(false, |any, x| any | x.is_nan()) {
            solve_again(transposed, (l, b), starts, (n, columns, w), call.active, out);
        }
    }
}

/// The cotangent of the matrix whose factor, and the cotangent of that, start at `start`.
fn cotangent<R: Real>((l, g): (Rows<'_, R>, Rows<'_, R>), start: usize, n: usize, w: usize, s: &mut [R]) {
    match w {
        1 => symmetric_few::<R, 1>((l, g), start, n, s),
        2 => symmetric_few::<R, 2>((l, g), start, n, s),
        3 => symmetric_few::<R, 3>((l, g), start, n, s),
        4 => symmetric_few::<R, 4>((l, g), start, n, s),
        8 => symmetric_few::<R, 8>((l, g), start, n, s),
        _ => symmetric((l, g), start, n, w, s),
    }
    let half = R::from_f64(0.5);
    for i in 0..n {
        let row = &mut s[i * n * w..][..n * w];
        row[i * w..][..w].iter_mut().for_each(|x| *x = *x * half);
        row[(i + 1) * w..].fill(R::ZERO);
    }
}

/// Computes a derivative of a factor again for lanes in which some of it came out as NaN, as [`solve_again`] does.
#[cold]
fn derive_again<R: Real>(
    triangular: Triangular,
    (l, of): (Rows<'_, R>, Rows<'_, R>),
    start: usize,
    (n, w): (usize, usize),
    active: Active<'_>,
    out: &mut [R],
) {
    for lane in (0..w).filter(|lane| active.contains(*lane)) {
        if !out[lane..].iter().step_by(w).any(|x| x.is_nan()) {
            continue;
        }
        let at = |rows: Rows<'_, R>, i: usize, k: usize| rows.row(start + i * n + k).at(lane);
        let (l, of) = (|i, k| at(l, i, k), |i, k| at(of, i, k));
        let put = |i: usize, k: usize, x| out[(i * n + k) * w + lane] = x;
        match triangular {
            Triangular::ChainCholeskyTangent => chain_cholesky_tangent(n, l, of, put),
            _ => chain_cholesky_cotangent(n, l, of, put),
        }
    }
}

/// Solves again what came out as NaN, in the arithmetic of the chain rule: a zero that meets what is no number makes
/// the ordinary result NaN, so that all other results are right.
#[cold]
fn solve_again<R: Real>(
    transposed: bool,
    (l, b): (Rows<'_, R>, Rows<'_, R>),
    (l_start, b_start): (usize, usize),
    (n, columns, w): (usize, usize, usize),
    active: Active<'_>,
    x: &mut [R],
) {
    let mut solved = vec![R::ZERO; n];
    for lane in (0..w).filter(|lane| active.contains(*lane)) {
        for column in 0..columns {
            let at = |i: usize| (i * columns + column) * w + lane;
            if (0..n).any(|i| x[at(i)].is_nan()) {
                let l = |i: usize, k: usize| l.row(l_start + i * n + k).at(lane);
                chain_solve(transposed, l, |i| b.row(b_start + i * columns + column).at(lane), &mut solved);
                (0..n).for_each(|i| x[at(i)] = solved[i]);
            }
        }
    }
}

/// What is the same for all lanes is computed once, then spread.
#[cold]
fn once<R: Real>(triangular: Triangular, call: &KernelCall<'_, R>, out: &mut Buffer<R>) {
    let mut one = Buffer::zeros(call.ty.dtype, call.elements());
    let (prim, args, ty) = (call.prim, call.args, call.ty);
    let traps = &mut Vec::new();
    let first = KernelCall { prim, args, ty, width: 1, active: Active::All, keep: None, accumulate: false, traps };
    run(triangular, &first, &mut one);
    let rows = out.reals_mut().chunks_exact_mut(call.width);
    if let Buffer::Real(one) = &one {
        one.iter().zip(rows).for_each(|(x, row)| row.fill(*x));
    }
}

multiversioned! {
    /// The lower triangular factor of the matrix whose elements start at `start`. Where a pivot is not positive it is NaN, and
    /// so becomes what depends on it: the rest.
    fn factor<R: Real>(a: Rows<'_, R>, start: usize, n: usize, w: usize, l: &mut [R]) {
        let (mut sum, mut block) = (vec![R::ZERO; w], vec![R::ZERO; w]);
        l.fill(R::ZERO);
        for j in 0..n {
            for i in j..n {
                let row = |i: usize, k: usize| Row::Lanes(&l[(i * n + k) * w..][..w]);
                chain(j, |k| (row(i, k), row(j, k)), &mut sum, &mut block);
                let whole = a.row(start + i * n + j);
                for (lane, sum) in sum.iter_mut().enumerate() {
                    *sum = whole.at(lane) - *sum;
                }
                if i == j {
                    for pivot in &mut sum {
                        *pivot = if *pivot > R::ZERO { pivot.sqrt() } else { R::NAN };
                    }
                } else {
                    let diagonal = &l[(j * n + j) * w..][..w];
                    sum.iter_mut().zip(diagonal).for_each(|(sum, d)| *sum = *sum / *d);
                }
                l[(i * n + j) * w..][..w].copy_from_slice(&sum);
            }
        }
    }

    /// Forward substitution for each column of `b`, or, with the transpose, from the last row up.
    fn solve<R: Real>(
        transposed: bool,
        (l, b): (Rows<'_, R>, Rows<'_, R>),
        (l_start, b_start): (usize, usize),
        (n, columns, w): (usize, usize, usize),
        x: &mut [R],
    ) {
        let (mut sum, mut block) = (vec![R::ZERO; w], vec![R::ZERO; w]);
        for step in 0..n {
            let i = if transposed { n - 1 - step } else { step };
            for column in 0..columns {
                let known = |k: usize| Row::Lanes(&x[(k * columns + column) * w..][..w]);
                if transposed {
                    let term = |k: usize| (l.row(l_start + (i + 1 + k) * n + i), known(i + 1 + k));
                    chain(step, term, &mut sum, &mut block);
                } else {
                    chain(step, |k| (l.row(l_start + i * n + k), known(k)), &mut sum, &mut block);
                }
                let (whole, diagonal) = (b.row(b_start + i * columns + column), l.row(l_start + i * n + i));
                let to = &mut x[(i * columns + column) * w..][..w];
                for (lane, (to, sum)) in to.iter_mut().zip(&sum).enumerate() {
                    *to = (whole.at(lane) - *sum) / diagonal.at(lane);
                }
            }
        }
    }
}

multiversioned! {
    /// [`factor`] for a number of lanes that is known when it is compiled: loops over few lanes cost more than what they do.
    fn factor_few<R: Real, const W: usize>(a: Rows<'_, R>, start: usize, n: usize, l: &mut [R]) {
        l.fill(R::ZERO);
        for j in 0..n {
            for i in j..n {
                let mut sum = [R::ZERO; W];
                let (rows, others) = (&l[i * n * W..][..j * W], &l[j * n * W..][..j * W]);
                for (at, (row, other)) in rows.chunks(BLOCK * W).zip(others.chunks(BLOCK * W)).enumerate() {
                    let mut block = [R::ZERO; W];
                    for (a, b) in row.chunks_exact(W).zip(other.chunks_exact(W)) {
                        (0..W).for_each(|lane| block[lane] = a[lane].mul_add(b[lane], block[lane]));
                    }
                    (0..W).for_each(|lane| sum[lane] = if at == 0 { block[lane] } else { sum[lane] + block[lane] });
                }
                let whole = a.row(start + i * n + j);
                for lane in 0..W {
                    let rest = whole.at(lane) - sum[lane];
                    sum[lane] = if i > j {
                        rest / l[(j * n + j) * W + lane]
                    } else if rest > R::ZERO {
                        rest.sqrt()
                    } else {
                        R::NAN
                    };
                }
                l[(i * n + j) * W..][..W].copy_from_slice(&sum);
            }
        }
    }

    /// [`solve`] for a number of lanes that is known when it is compiled: all columns of a row together.
    fn solve_few<R: Real, const W: usize>(
        transposed: bool,
        (l, b): (Rows<'_, R>, Rows<'_, R>),
        (l_start, b_start): (usize, usize),
        (n, columns): (usize, usize),
        x: &mut [R],
    ) {
        let each = columns * W;
        let (mut sum, mut block) = (vec![R::ZERO; each], vec![R::ZERO; each]);
        let lanes = |row: Row<'_, R>| -> [R; W] { std::array::from_fn(|lane| row.at(lane)) };
        for step in 0..n {
            let i = if transposed { n - 1 - step } else { step };
            sum.fill(R::ZERO);
            for from in (0..step).step_by(BLOCK) {
                let to = if from == 0 { &mut sum } else { &mut block };
                to.fill(R::ZERO);
                for k in from..step.min(from + BLOCK) {
                    let (known, factor) = if transposed { (i + 1 + k, (i + 1 + k) * n + i) } else { (k, i * n + k) };
                    let factor = lanes(l.row(l_start + factor));
                    let known = x[known * each..][..each].chunks_exact(W);
                    for (to, known) in to.chunks_exact_mut(W).zip(known) {
                        (0..W).for_each(|lane| to[lane] = factor[lane].mul_add(known[lane], to[lane]));
                    }
                }
                if from > 0 {
                    sum.iter_mut().zip(&block).for_each(|(sum, block)| *sum = *sum + *block);
                }
            }
            let diagonal = lanes(l.row(l_start + i * n + i));
            let results = x[i * each..][..each].chunks_exact_mut(W).zip(sum.chunks_exact(W));
            for (column, (to, sum)) in results.enumerate() {
                let whole = b.row(b_start + i * columns + column);
                (0..W).for_each(|lane| to[lane] = (whole.at(lane) - sum[lane]) / diagonal[lane]);
            }
        }
    }
}

multiversioned! {
    /// The tangent of a factor, as in [`chain_cholesky_tangent`].
    fn tangent<R: Real>((l, a): (Rows<'_, R>, Rows<'_, R>), start: usize, n: usize, w: usize, x: &mut [R]) {
        let (mut below, mut beside, mut block) = (vec![R::ZERO; w], vec![R::ZERO; w], vec![R::ZERO; w]);
        let half = R::from_f64(0.5);
        x.fill(R::ZERO);
        for j in 0..n {
            for i in j..n {
                let row = |i: usize, k: usize| Row::Lanes(&x[(i * n + k) * w..][..w]);
                chain(j, |k| (row(i, k), l.row(start + j * n + k)), &mut below, &mut block);
                chain(j, |k| (row(j, k), l.row(start + i * n + k)), &mut beside, &mut block);
                let (whole, diagonal) = (a.row(start + i * n + j), l.row(start + j * n + j));
                let of = l.row(start + i * n + j);
                for lane in 0..w {
                    let rest = whole.at(lane) - (below[lane] + beside[lane]);
                    let rest = if i == j { rest * half } else { rest - x[(j * n + j) * w + lane] * of.at(lane) };
                    x[(i * n + j) * w + lane] = rest / diagonal.at(lane);
                }
            }
        }
    }

    /// The symmetric matrix of [`chain_cholesky_cotangent`], column by column from the last.
    fn symmetric<R: Real>((l, g): (Rows<'_, R>, Rows<'_, R>), start: usize, n: usize, w: usize, s: &mut [R]) {
        let add = |factor: Row<'_, R>, row: &[R], to: &mut [R]| {
            let pairs = to.chunks_exact_mut(w).zip(row.chunks_exact(w));
            match factor {
                Row::One(factor) => to.iter_mut().zip(row).for_each(|(to, x)| *to = x.mul_add(factor, *to)),
                Row::Lanes(factor) => pairs.for_each(|(to, row)| {
                    to.iter_mut().zip(row).zip(factor).for_each(|((to, x), factor)| *to = x.mul_add(*factor, *to));
                }),
            }
        };
        columns((l, g), start, n, w, add, s);
    }

    /// [`symmetric`] for a number of lanes that is known when it is compiled.
    fn symmetric_few<R: Real, const W: usize>((l, g): (Rows<'_, R>, Rows<'_, R>), start: usize, n: usize, s: &mut [R]) {
        let add = |factor: Row<'_, R>, row: &[R], to: &mut [R]| {
            let factor: [R; W] = std::array::from_fn(|lane| factor.at(lane));
            for (to, row) in to.chunks_exact_mut(W).zip(row.chunks_exact(W)) {
                (0..W).for_each(|lane| to[lane] = row[lane].mul_add(factor[lane], to[lane]));
            }
        };
        columns((l, g), start, n, W, add, s);
    }
}

/// The columns of [`symmetric`]; `add` adds the product of a row of the factor, for each lane one value, and some elements.
#[inline(always)]
fn columns<R: Real>(
    (l, g): (Rows<'_, R>, Rows<'_, R>),
    start: usize,
    n: usize,
    w: usize,
    add: impl Fn(Row<'_, R>, &[R], &mut [R]),
    s: &mut [R],
) {
    let (mut known, mut block) = (vec![R::ZERO; n * w], vec![R::ZERO; n * w]);
    for j in (0..n).rev() {
        // Sums for the rows below j, one behind the other; then, since what they give is part of it, for row j.
        for rows in [j + 1..n, j..j + 1] {
            let each = rows.len() * w;
            let (known, block) = (&mut known[..each], &mut block[..each]);
            known.fill(R::ZERO);
            for from in (j + 1..n).step_by(BLOCK) {
                let to = if from == j + 1 { &mut *known } else { &mut *block };
                to.fill(R::ZERO);
                for m in from..n.min(from + BLOCK) {
                    add(l.row(start + m * n + j), &s[(m * n + rows.start) * w..][..each], to);
                }
                if from > j + 1 {
                    known.iter_mut().zip(&*block).for_each(|(known, block)| *known = *known + *block);
                }
            }
            let diagonal = l.row(start + j * n + j);
            for (i, known) in rows.zip(known.chunks_exact(w)) {
                let whole = g.row(start + i * n + j);
                for (lane, known) in known.iter().enumerate() {
                    let x = (whole.at(lane) - *known) / diagonal.at(lane);
                    (s[(i * n + j) * w + lane], s[(j * n + i) * w + lane]) = (x, x);
                }
            }
        }
    }
}

/// The sum of the products of so many pairs of rows, in blocks.
#[inline(always)]
fn chain<'a, R: Real>(count: usize, term: impl Fn(usize) -> (Row<'a, R>, Row<'a, R>), sum: &mut [R], block: &mut [R]) {
    sum.fill(R::ZERO);
    for start in (0..count).step_by(BLOCK) {
        let to = if start == 0 { &mut *sum } else { &mut *block };
        to.fill(R::ZERO);
        for k in start..count.min(start + BLOCK) {
            match term(k) {
                (Row::One(a), Row::Lanes(b)) | (Row::Lanes(b), Row::One(a)) => {
                    to.iter_mut().zip(b).for_each(|(to, b)| *to = a.mul_add(*b, *to));
                }
                (Row::Lanes(a), Row::Lanes(b)) => {
                    to.iter_mut().zip(a).zip(b).for_each(|((to, a), b)| *to = a.mul_add(*b, *to));
                }
                (Row::One(a), Row::One(b)) => to.iter_mut().for_each(|to| *to = a.mul_add(b, *to)),
            }
        }
        if start > 0 {
            sum.iter_mut().zip(&*block).for_each(|(sum, block)| *sum = *sum + *block);
        }
    }
}
