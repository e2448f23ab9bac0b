//! Products in blocks that fit the caches, tile by tile.
//!
//! The columns of the right matrix, most often the lanes, are the vector axis. What a column of tiles reads of it is
//! packed before, so that it stands in a row and stays in the first cache; so many rows of the left matrix as stay in
//! the second cache meet all packed columns before the next ones do. With one row, and with one column or a few for
//! which there is code, the vectors go along the other axis, and nothing is packed.

use std::any::Any;
use std::cell::RefCell;
use std::ops::Range;

use smallvec::SmallVec;

use super::Matrix;
use super::micro::{DOT_ROWS, Few, Kernels, MOST_ELEMENTS, Place, Shape};
use crate::vmath::{BLOCK, Real};

/// Columns of the right matrix that are packed at one time.
const PACKED_COLUMNS: usize = 512;
/// Bytes of the left matrix that are to stay in the second cache.
const LEFT_BYTES: usize = 1 << 18;
/// Where packed columns begin: at the begin of a cache line, so that no vector lies in two.
const LINE_BYTES: usize = 64;

thread_local! {
    /// The packed columns, and with them what aligns them. Kept, since new memory costs as much as filling it.
    static PACKED: RefCell<(Vec<f64>, Vec<f32>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// Whether matrices stand in memory as the tiles read them: either rows or columns of the left one in a row, columns of
/// the right one in a row.
pub(super) fn takes<R>(a: &Matrix<'_, R>, b: &Matrix<'_, R>) -> bool {
    a.strides.contains(&1) && b.strides[1] == 1
}

/// `out = a @ b`, or `out + a @ b`.
///
/// # Panics
/// When the matrices do not lie within their values or an extent is 0.
pub(super) fn product<R: Real>(kernels: &Kernels<R>, a: Matrix<'_, R>, b: Matrix<'_, R>, adds: bool, out: &mut [R]) {
    let ([n, k], [_, m]) = (a.shape, b.shape);
    let last = |x: &Matrix<'_, R>| (x.shape[0] - 1) * x.strides[0] + (x.shape[1] - 1) * x.strides[1];
    assert!(n > 0 && k > 0 && m > 0 && b.shape[0] == k && takes(&a, &b), "matrices that have a product");
    assert!(
        last(&a) < a.values.len() && last(&b) < b.values.len() && n * m <= out.len(),
        "matrices within their values"
    );
    let whole = Place {
        terms: k,
        left: a.values.as_ptr(),
        left_strides: a.strides,
        right: b.values.as_ptr(),
        right_stride: b.strides[0],
        adds,
        out: out.as_mut_ptr(),
        out_stride: m,
    };
    // SAFETY: `[n, k] @ [k, m]` lies within `a`, `b` and `out`, by the assertions; turned around, it is
    // `[1, k] @ [k, n]`, and the one column of the result, whose rows are 1 apart, is one row.
    unsafe {
        match (n, m) {
            (_, 1) if a.strides[0] == 1 && n > 1 => {
                let turned = Place {
                    left: whole.right,
                    left_strides: [1, whole.right_stride],
                    right: whole.left,
                    right_stride: a.strides[1],
                    out_stride: n,
                    ..whole
                };
                one_row(kernels, n, &turned);
            }
            (_, 1) => by_dots(kernels, n, m, &whole),
            (1, _) => one_row(kernels, m, &whole),
            _ if a.strides[1] == 1 && m <= kernels.dots.len() && n >= DOT_ROWS => by_dots(kernels, n, m, &whole),
            _ => match kernels.few.get(m - 2) {
                Some(tiles) if a.strides[0] == 1 && n > m => few_columns(tiles, n, m, &whole),
                _ => by_tiles(kernels, n, m, &whole),
            },
        }
    }
}

impl<R> Place<R> {
    /// The part from this row and column on.
    ///
    /// # Safety
    /// They lie in the matrices.
    unsafe fn at(&self, row: usize, column: usize) -> Self {
        // SAFETY: the caller's word.
        unsafe {
            Place {
                left: self.left.add(row * self.left_strides[0]),
                right: self.right.add(column),
                out: self.out.add(row * self.out_stride + column),
                ..*self
            }
        }
    }

    /// The blocks of terms: the sums of the later ones are added to those before.
    ///
    /// # Safety
    /// There are `terms` terms.
    unsafe fn blocks(&self) -> impl Iterator<Item = Self> {
        (0..self.terms).step_by(BLOCK).map(|first| Place {
            terms: BLOCK.min(self.terms - first),
            // SAFETY: the caller's word.
            left: unsafe { self.left.add(first * self.left_strides[1]) },
            // SAFETY: the caller's word.
            right: unsafe { self.right.add(first * self.right_stride) },
            adds: self.adds || first > 0,
            ..*self
        })
    }
}

/// A product with one column or a few, the terms of each row in a row.
///
/// # Safety
/// `n` rows and `m` columns lie in the matrices, for so many there are dots, and the processor is one that the kernels are
/// for.
unsafe fn by_dots<R: Real>(kernels: &Kernels<R>, n: usize, m: usize, p: &Place<R>) {
    let whole = n / DOT_ROWS * DOT_ROWS;
    // SAFETY: all rows are below `n`, all columns below `m`.
    unsafe {
        for block in p.blocks() {
            for row in (0..whole).step_by(DOT_ROWS) {
                (kernels.dots[m - 1])(&block.at(row, 0));
            }
            (0..m).for_each(|column| down(&kernels.shapes[0], whole..n, &block.at(0, column)));
        }
    }
}

/// A product with one row.
///
/// # Safety
/// One row and `m` columns lie in the matrices, and the processor is one that the kernels are for.
unsafe fn one_row<R: Real>(kernels: &Kernels<R>, m: usize, p: &Place<R>) {
    // SAFETY: all columns are below `m`.
    unsafe {
        for block in p.blocks() {
            let mut column = 0;
            for shape in kernels.thin.iter().rev() {
                while column + shape.columns <= m {
                    down(shape, 0..1, &block.at(0, column));
                    column += shape.columns;
                }
            }
        }
    }
}

/// A product with few columns, the rows of the left matrix in a row: they are the vector axis.
///
/// # Safety
/// `n` rows and `m` columns lie in the matrices, the tiles have `m` rows, and the processor is one that they are for.
unsafe fn few_columns<R: Real>(tiles: Few<R>, n: usize, m: usize, p: &Place<R>) {
    let mut sums = [R::ZERO; MOST_ELEMENTS];
    // SAFETY: there are so many terms.
    for block in unsafe { p.blocks() } {
        let mut row = 0;
        for (rows, run) in tiles.iter().rev() {
            while row + rows <= n {
                // SAFETY: all rows are below `n`. A tile computes the transpose of a part of the result, which has the
                // columns of the right matrix as rows, into `sums`, which have room for it.
                unsafe {
                    let part = block.at(row, 0);
                    run(&Place {
                        left: part.right,
                        left_strides: [1, part.right_stride],
                        right: part.left,
                        right_stride: part.left_strides[1],
                        adds: false,
                        out: sums.as_mut_ptr(),
                        out_stride: *rows,
                        ..part
                    });
                    for (j, sums) in sums.chunks_exact(*rows).take(m).enumerate() {
                        for (i, sum) in sums.iter().enumerate() {
                            let to = part.out.add(i * part.out_stride + j);
                            *to = if part.adds { *to + *sum } else { *sum };
                        }
                    }
                }
                row += rows;
            }
        }
    }
}

/// Columns that stand packed.
struct Panel<'a, R: 'static> {
    /// The first.
    column: usize,
    /// How many there are, at most as many as tiles of the shape have.
    columns: usize,
    shape: &'a Shape<R>,
    /// Where it begins among the packed values.
    start: usize,
}

/// A product with any number of rows and columns.
///
/// # Safety
/// `n` rows and `m` columns lie in the matrices, and the processor is one that the kernels are for.
unsafe fn by_tiles<R: Real>(kernels: &Kernels<R>, n: usize, m: usize, p: &Place<R>) {
    let tall = kernels.shapes[kernels.shapes.len() - 1].tiles[0].0;
    with_packed(|packed: &mut Vec<R>| {
        for first in (0..m).step_by(PACKED_COLUMNS) {
            // SAFETY: all rows are below `n`, all columns below `m`.
            unsafe {
                for block in p.at(0, first).blocks() {
                    let panels = pack(kernels, m.min(first + PACKED_COLUMNS) - first, &block, packed);
                    let height = (LEFT_BYTES / (block.terms * size_of::<R>())).max(1).next_multiple_of(tall);
                    for top in (0..n).step_by(height) {
                        let rows = top..n.min(top + height);
                        panels.iter().for_each(|panel| run_panel(panel, rows.clone(), &block, packed));
                    }
                }
            }
        }
    });
}

/// Runs `f` with the memory for packed columns of the thread.
fn with_packed<R: Real>(f: impl FnOnce(&mut Vec<R>)) {
    PACKED.with_borrow_mut(|(double, single)| {
        let (double, single): (&mut dyn Any, &mut dyn Any) = (double, single);
        match double.downcast_mut::<Vec<R>>() {
            Some(packed) => f(packed),
            None => f(single.downcast_mut().expect("a real is f64 or f32")),
        }
    });
}

/// Packs `m` columns, zeros behind those of the last panel.
///
/// # Safety
/// `m` columns lie in the right matrix.
unsafe fn pack<'a, R: Real>(
    kernels: &'a Kernels<R>,
    m: usize,
    p: &Place<R>,
    packed: &mut Vec<R>,
) -> SmallVec<[Panel<'a, R>; 32]> {
    let line = LINE_BYTES / size_of::<R>();
    let most = kernels.shapes[kernels.shapes.len() - 1].columns;
    let room = m.next_multiple_of(most) * p.terms + line;
    if packed.len() < room {
        packed.resize(room, R::ZERO);
    }
    let mut start = packed.as_ptr().align_offset(LINE_BYTES).min(line);
    let mut panels = SmallVec::new();
    let mut column = 0;
    while column < m {
        let shape = shape_for(kernels, m - column);
        let columns = shape.columns.min(m - column);
        let to = &mut packed[start..][..p.terms * shape.columns];
        // SAFETY: these columns lie in the right matrix.
        unsafe {
            let from = Place { right: p.right.add(column), ..*p };
            match shape.columns {
                c if c > columns => pack_some(&from, columns, c, to),
                8 => pack_all::<R, 8>(&from, to),
                16 => pack_all::<R, 16>(&from, to),
                32 => pack_all::<R, 32>(&from, to),
                c => pack_some(&from, columns, c, to),
            }
        }
        panels.push(Panel { column, columns, shape, start });
        column += columns;
        start += p.terms * shape.columns;
    }
    panels
}

/// Packs `N` columns: the number is known to the compiler, so that a row is copied by a few instructions.
///
/// # Safety
/// These columns lie in the right matrix.
unsafe fn pack_all<R: Real, const N: usize>(p: &Place<R>, to: &mut [R]) {
    for (t, to) in to.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        // SAFETY: these columns lie in the right matrix.
        *to = unsafe { p.right.add(t * p.right_stride).cast::<[R; N]>().read() };
    }
}

/// Packs some columns, and zeros behind them up to `width`.
///
/// # Safety
/// These columns lie in the right matrix.
unsafe fn pack_some<R: Real>(p: &Place<R>, columns: usize, width: usize, to: &mut [R]) {
    for (t, to) in to.chunks_exact_mut(width).enumerate() {
        // SAFETY: these columns lie in the right matrix.
        let from = unsafe { std::slice::from_raw_parts(p.right.add(t * p.right_stride), columns) };
        to[..columns].copy_from_slice(from);
        to[columns..].fill(R::ZERO);
    }
}

/// The shape of the next panel, with so many columns left: the widest, or the least that has them all, or one vector
/// and something after it where that is quicker than two vectors.
fn shape_for<R: 'static>(kernels: &Kernels<R>, columns: usize) -> &Shape<R> {
    let [.., one, two] = kernels.shapes else { unreachable!("there are tiles of one and of two vectors") };
    match columns {
        c if one.columns < c && 4 * c <= 3 * two.columns => one,
        c => kernels.shapes.iter().find(|s| c <= s.columns).unwrap_or(two),
    }
}

/// Runs the tiles of a panel for some rows.
///
/// # Safety
/// The rows and the columns of the panel lie in the matrices, and the processor is one that the kernels are for.
unsafe fn run_panel<R: Real>(panel: &Panel<'_, R>, rows: Range<usize>, p: &Place<R>, packed: &[R]) {
    let shape = panel.shape;
    let right = packed[panel.start..][..p.terms * shape.columns].as_ptr();
    // SAFETY: the right matrix of the tiles is the panel, which has all columns of its shape; where the result does not
    // have them all, it is copied from a tile that has.
    unsafe {
        let place = Place { right, right_stride: shape.columns, ..p.at(0, panel.column) };
        if panel.columns == shape.columns {
            return down(shape, rows, &place);
        }
        let mut sums = [R::ZERO; MOST_ELEMENTS];
        each_tile(shape, rows, |row, height, run| {
            let part = place.at(row, 0);
            run(&Place { adds: false, out: sums.as_mut_ptr(), out_stride: shape.columns, ..part });
            for (i, sums) in sums.chunks_exact(shape.columns).take(height).enumerate() {
                for (j, sum) in sums[..panel.columns].iter().enumerate() {
                    let to = part.out.add(i * p.out_stride + j);
                    *to = if p.adds { *to + *sum } else { *sum };
                }
            }
        });
    }
}

/// Runs tiles below one another.
///
/// # Safety
/// The rows, and all columns of the shape, lie in the matrices, and the processor is one that the kernels are for.
unsafe fn down<R: 'static>(shape: &Shape<R>, rows: Range<usize>, p: &Place<R>) {
    // SAFETY: the caller's word.
    each_tile(shape, rows, |row, _, run| unsafe { run(&p.at(row, 0)) });
}

/// Calls `f` with the first row, the number of rows and the code of tiles that cover some rows.
fn each_tile<R: 'static>(shape: &Shape<R>, rows: Range<usize>, mut f: impl FnMut(usize, usize, super::micro::Run<R>)) {
    let mut row = rows.start;
    for (height, run) in shape.tiles {
        while row + height <= rows.end {
            f(row, *height, *run);
            row += height;
        }
    }
}
