//! Tiles: some rows and columns of a product, whose sums stay in registers. One text, compiled for vectors of several
//! widths.

use std::any::Any;
use std::arch::x86_64::{
    __m128, __m128d, __m256, __m256d, __m512, __m512d, _MM_HINT_T0, _mm_add_pd, _mm_add_ps, _mm_fmadd_pd, _mm_fmadd_ps,
    _mm_loadu_pd, _mm_loadu_ps, _mm_prefetch, _mm_set1_pd, _mm_set1_ps, _mm_storeu_pd, _mm_storeu_ps, _mm256_add_pd,
    _mm256_add_ps, _mm256_castpd128_pd256, _mm256_castps128_ps256, _mm256_fmadd_pd, _mm256_fmadd_ps,
    _mm256_insertf128_pd, _mm256_insertf128_ps, _mm256_loadu_pd, _mm256_loadu_ps, _mm256_set1_pd, _mm256_set1_ps,
    _mm256_setzero_pd, _mm256_setzero_ps, _mm256_shuffle_ps, _mm256_storeu_pd, _mm256_storeu_ps, _mm256_unpackhi_pd,
    _mm256_unpackhi_ps, _mm256_unpacklo_pd, _mm256_unpacklo_ps, _mm512_add_pd, _mm512_add_ps, _mm512_fmadd_pd,
    _mm512_fmadd_ps, _mm512_loadu_pd, _mm512_loadu_ps, _mm512_set1_pd, _mm512_set1_ps, _mm512_storeu_pd,
    _mm512_storeu_ps,
};
use std::sync::OnceLock;

use crate::vmath::Real;

/// What a tile computes: for its rows `i` and columns `j` the sum over `t < terms` of `left[i, t] * right[t, j]`.
#[derive(Clone, Copy)]
pub(super) struct Place<R> {
    /// Terms of a sum: at most a block.
    pub(super) terms: usize,
    /// The left matrix from the first row and term on.
    pub(super) left: *const R,
    /// How far a row of it is from the next, and a term; one of them is 1.
    pub(super) left_strides: [usize; 2],
    /// The right matrix from the first term and column on; its columns stand in a row.
    pub(super) right: *const R,
    /// How far a term of it is from the next.
    pub(super) right_stride: usize,
    /// Whether the sums are added to what stands in the result.
    pub(super) adds: bool,
    /// The result from the first row and column on; its columns stand in a row.
    pub(super) out: *mut R,
    /// How far a row of it is from the next.
    pub(super) out_stride: usize,
}

/// Computes a tile.
///
/// # Safety
/// The processor has the features that the table of the tile stands for; all rows and columns of the tile lie within the three
/// matrices; nobody else uses those of the result.
pub(super) type Run<R> = unsafe fn(&Place<R>);

/// Tiles with so many columns.
pub(super) struct Shape<R: 'static> {
    /// Columns.
    pub(super) columns: usize,
    /// Rows and code of each, most rows first; the last one has 1.
    pub(super) tiles: &'static [(usize, Run<R>)],
}

/// Tiles of a number of rows: columns and code of each, fewest columns first.
pub(super) type Few<R> = &'static [(usize, Run<R>)];

/// The tiles for a kind of processor.
pub(super) struct Kernels<R: 'static> {
    /// By columns, ascending.
    pub(super) shapes: &'static [Shape<R>],
    /// The same for a result of one row.
    pub(super) thin: &'static [Shape<R>],
    /// For results of two rows, three, and so on.
    pub(super) few: &'static [Few<R>],
    /// For a left matrix whose terms stand in a row, and one column, or a few: [`DOT_ROWS`] rows.
    pub(super) dots: &'static [Run<R>],
}

/// Rows of the tile of a matrix whose terms stand in a row, with one column or a few.
pub(super) const DOT_ROWS: usize = 16;

/// The most elements of a tile with few rows, and of one whose shape may be wider than what is left.
pub(super) const MOST_ELEMENTS: usize = 12 * 32;

/// Kinds of processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Level {
    Avx512,
    Avx2,
}

impl Level {
    /// Those that the processor at hand has, the best one first.
    pub(super) fn available() -> impl Iterator<Item = Level> {
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let avx512 = avx2 && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl");
        [(avx512, Level::Avx512), (avx2, Level::Avx2)].into_iter().filter_map(|(has, level)| has.then_some(level))
    }
    /// The tiles for it: `None` for a type of reals without tiles.
    pub(super) fn kernels<R: Real>(self) -> Option<&'static Kernels<R>> {
        let (double, single) = match self {
            Level::Avx512 => (&AVX512_F64, &AVX512_F32),
            Level::Avx2 => (&AVX2_F64, &AVX2_F32),
        };
        let double: &'static dyn Any = double;
        let single: &'static dyn Any = single;
        double.downcast_ref().or_else(|| single.downcast_ref())
    }
}

/// The tiles to use, if there are any for the processor at hand and they are not switched off.
pub(super) fn chosen<R: Real>() -> Option<&'static Kernels<R>> {
    static LEVEL: OnceLock<Option<Level>> = OnceLock::new();
    let choose = || {
        let wanted = std::env::var("AUTOBATCH_GEMM").unwrap_or_default();
        match wanted.as_str() {
            "matrixmultiply" => None,
            "avx2" => Level::available().find(|l| *l == Level::Avx2),
            _ => Level::available().next(),
        }
    };
    LEVEL.get_or_init(choose).and_then(Level::kernels)
}

/// Reals in a vector register, or a single one.
///
/// # Safety
/// The methods need a processor that has the registers, and FMA; `load` and `store` memory for all values.
trait Vector: Copy {
    type Real: Copy;
    const LANES: usize;
    const ZERO: Self::Real;
    unsafe fn splat(x: Self::Real) -> Self;
    unsafe fn load(from: *const Self::Real) -> Self;
    unsafe fn store(self, to: *mut Self::Real);
    unsafe fn mul_add(self, a: Self, b: Self) -> Self;
    unsafe fn add(self, a: Self) -> Self;
}

macro_rules! vectors {
    ($($name:ident: $real:ident $lanes:literal, $splat:expr, $load:expr, $store:expr, $fma:expr, $add:expr;)+) => {
        $(#[allow(unused_unsafe, reason = "of a single real")]
        impl Vector for $name {
            type Real = $real;
            const LANES: usize = $lanes;
            const ZERO: $real = 0.0;
            #[inline(always)]
            unsafe fn splat(x: $real) -> Self {
                // SAFETY: the caller knows the processor.
                unsafe { $splat(x) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $real) -> Self {
                // SAFETY: the caller knows the processor and that there are so many values.
                unsafe { $load(from) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $real) {
                // SAFETY: as for `load`.
                unsafe { $store(to, self) }
            }
            #[inline(always)]
            unsafe fn mul_add(self, a: Self, b: Self) -> Self {
                // SAFETY: the caller knows the processor.
                unsafe { $fma(self, a, b) }
            }
            #[inline(always)]
            unsafe fn add(self, a: Self) -> Self {
                // SAFETY: the caller knows the processor.
                unsafe { $add(self, a) }
            }
        })+
    };
}

vectors! {
    __m512d: f64 8, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_fmadd_pd, _mm512_add_pd;
    __m256d: f64 4, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_fmadd_pd, _mm256_add_pd;
    __m128d: f64 2, _mm_set1_pd, _mm_loadu_pd, _mm_storeu_pd, _mm_fmadd_pd, _mm_add_pd;
    f64: f64 1, std::convert::identity, std::ptr::read, std::ptr::write, f64::mul_add, std::ops::Add::add;
    __m512: f32 16, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_fmadd_ps, _mm512_add_ps;
    __m256: f32 8, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_fmadd_ps, _mm256_add_ps;
    __m128: f32 4, _mm_set1_ps, _mm_loadu_ps, _mm_storeu_ps, _mm_fmadd_ps, _mm_add_ps;
    f32: f32 1, std::convert::identity, std::ptr::read, std::ptr::write, f32::mul_add, std::ops::Add::add;
}

/// A tile of `M` rows and `N` vectors of columns. `U` terms are loaded at one time, which saves computing the places of rows;
/// `DOWN`: whether the rows of the left matrix stand in a row, otherwise its terms do.
///
/// # Safety
/// See [`Run`].
#[inline(always)]
unsafe fn tile<V: Vector, const M: usize, const N: usize, const U: usize, const DOWN: bool>(p: &Place<V::Real>) {
    let strides @ [_, along] = if DOWN { [1, p.left_strides[1]] } else { [p.left_strides[0], 1] };
    let next = p.right_stride;
    let (mut left, mut right) = (p.left, p.right);
    // What the next tile reads of the left matrix, where its rows follow one another without a gap: so many bytes with
    // the terms that are loaded at one time.
    let mut after = p.left.wrapping_add(M * strides[0]).cast::<i8>();
    let ahead = if DOWN || strides[0] != p.terms { 0 } else { U * M * size_of::<V::Real>() };
    let lines = ahead.div_ceil(64);
    // SAFETY: the caller answers for the processor and for `terms` terms of `M` rows and `N` vectors of columns; that
    // is how far the pointers go.
    unsafe {
        let mut sums = [[V::splat(V::ZERO); N]; M];
        for _ in 0..p.terms / U {
            for line in 0..lines {
                _mm_prefetch::<_MM_HINT_T0>(after.wrapping_add(64 * line));
            }
            after = after.wrapping_add(ahead);
            terms::<V, M, N, U>([left, right], strides, next, &mut sums);
            left = left.add(U * along);
            right = right.add(U * next);
        }
        for _ in 0..p.terms % U {
            terms::<V, M, N, 1>([left, right], strides, next, &mut sums);
            left = left.add(along);
            right = right.add(next);
        }
        for (i, sums) in sums.iter().enumerate() {
            for (j, sum) in sums.iter().enumerate() {
                let to = p.out.add(i * p.out_stride + j * V::LANES);
                let sum = if p.adds { V::load(to).add(*sum) } else { *sum };
                sum.store(to);
            }
        }
    }
}

/// Adds `U` terms to the sums.
///
/// # Safety
/// See [`Run`].
#[inline(always)]
unsafe fn terms<V: Vector, const M: usize, const N: usize, const U: usize>(
    [left, right]: [*const V::Real; 2],
    [down, along]: [usize; 2],
    next: usize,
    sums: &mut [[V; N]; M],
) {
    // SAFETY: the caller answers for `U` terms of `M` rows and `N` vectors of columns.
    unsafe {
        let mut rows = [[sums[0][0]; N]; U];
        for (u, row) in rows.iter_mut().enumerate() {
            for (j, vector) in row.iter_mut().enumerate() {
                *vector = V::load(right.add(u * next + j * V::LANES));
            }
        }
        for (i, sums) in sums.iter_mut().enumerate() {
            for (u, row) in rows.iter().enumerate() {
                let x = V::splat(*left.add(i * down + u * along));
                for (sum, vector) in sums.iter_mut().zip(row) {
                    *sum = x.mul_add(*vector, *sum);
                }
            }
        }
    }
}

macro_rules! levels {
    ($($name:ident $features:literal)+) => {
        $(
            /// # Safety
            /// See [`Run`].
            #[target_feature(enable = $features)]
            unsafe fn $name<V: Vector, const M: usize, const N: usize, const U: usize>(p: &Place<V::Real>) {
                if p.left_strides[0] == 1 {
                    // SAFETY: the caller's word.
                    unsafe { tile::<V, M, N, 1, true>(p) }
                } else {
                    // SAFETY: the caller's word.
                    unsafe { tile::<V, M, N, U, false>(p) }
                }
            }
        )+
    };
}
levels! {
    avx512 "avx512f,avx512vl,avx2,fma"
    avx2 "avx2,fma"
}

/// Tiles of one shape: columns = vector times vectors, terms at one time: rows of each.
macro_rules! shape {
    ($level:ident: $columns:literal = $vector:ident * $n:literal, $u:literal: $($m:literal)+) => {
        Shape { columns: $columns, tiles: &[$(($m, $level::<$vector, $m, $n, $u>)),+] }
    };
}

/// Tiles of few rows: for each number of rows those of one vector, from a single real to the widest, and then of
/// several of the widest.
macro_rules! few {
    ($level:ident $vectors:tt: $($m:literal: $($n:literal)*;)+) => {
        &[$(few!(@rows $level $vectors $m [$($n)*])),+]
    };
    (@rows $level:ident [$($narrow:ident)+ | $widest:ident] $m:literal [$($n:literal)*]) => {
        &[$(few!(@tile $level $narrow $m 1),)+ few!(@tile $level $widest $m 1) $(, few!(@tile $level $widest $m $n))*]
    };
    (@tile $level:ident $vector:ident $m:literal $n:literal) => {{
        const COLUMNS: usize = <$vector as Vector>::LANES * $n;
        const { assert!($m * COLUMNS <= MOST_ELEMENTS) };
        (COLUMNS, $level::<$vector, $m, $n, 1> as Run<_>)
    }};
}

// With AVX-512 there are 32 registers: 24 sums. With AVX2 there are 16: 12 sums. Fewer columns than a vector take
// smaller ones, of which a core runs twice as many.
static AVX512_F64: Kernels<f64> = Kernels {
    shapes: &[
        shape!(avx512: 1 = f64 * 1, 4: 8 4 2 1),
        shape!(avx512: 2 = __m128d * 1, 4: 12 4 2 1),
        shape!(avx512: 4 = __m256d * 1, 4: 12 4 2 1),
        shape!(avx512: 8 = __m512d * 1, 4: 12 4 2 1),
        shape!(avx512: 16 = __m512d * 2, 1: 12 4 2 1),
    ],
    thin: &[
        shape!(avx512: 1 = f64 * 1, 1: 1),
        shape!(avx512: 2 = __m128d * 1, 1: 1),
        shape!(avx512: 4 = __m256d * 1, 1: 1),
        shape!(avx512: 8 = __m512d * 1, 1: 1),
        shape!(avx512: 16 = __m512d * 2, 1: 1),
        shape!(avx512: 24 = __m512d * 3, 1: 1),
        shape!(avx512: 32 = __m512d * 4, 1: 1),
        shape!(avx512: 96 = __m512d * 12, 1: 1),
    ],
    few: few!(avx512 [f64 __m128d __m256d | __m512d]: 2: 2 12; 3: 2 8; 4: 2 6; 5: 2 4; 6: 2 4; 7: 2 3;),
    dots: &[dots_f64::<1>, dots_f64::<2>],
};

static AVX512_F32: Kernels<f32> = Kernels {
    shapes: &[
        shape!(avx512: 1 = f32 * 1, 4: 8 4 2 1),
        shape!(avx512: 4 = __m128 * 1, 4: 12 4 2 1),
        shape!(avx512: 8 = __m256 * 1, 4: 12 4 2 1),
        shape!(avx512: 16 = __m512 * 1, 4: 12 4 2 1),
        shape!(avx512: 32 = __m512 * 2, 1: 12 4 2 1),
    ],
    thin: &[
        shape!(avx512: 1 = f32 * 1, 1: 1),
        shape!(avx512: 4 = __m128 * 1, 1: 1),
        shape!(avx512: 16 = __m512 * 1, 1: 1),
        shape!(avx512: 32 = __m512 * 2, 1: 1),
        shape!(avx512: 48 = __m512 * 3, 1: 1),
        shape!(avx512: 64 = __m512 * 4, 1: 1),
        shape!(avx512: 192 = __m512 * 12, 1: 1),
    ],
    few: few!(avx512 [f32 __m128 __m256 | __m512]: 2: 2 12; 3: 2 8; 4: 2 6; 5: 2 4; 6: 2 4; 7: 2 3;),
    dots: &[dots_f32::<1>, dots_f32::<2>, dots_f32::<3>, dots_f32::<4>],
};

static AVX2_F64: Kernels<f64> = Kernels {
    shapes: &[
        shape!(avx2: 1 = f64 * 1, 4: 8 4 2 1),
        shape!(avx2: 2 = __m128d * 1, 4: 10 4 2 1),
        shape!(avx2: 4 = __m256d * 1, 4: 10 4 2 1),
        shape!(avx2: 8 = __m256d * 2, 1: 6 4 2 1),
    ],
    thin: &[
        shape!(avx2: 1 = f64 * 1, 1: 1),
        shape!(avx2: 2 = __m128d * 1, 1: 1),
        shape!(avx2: 4 = __m256d * 1, 1: 1),
        shape!(avx2: 8 = __m256d * 2, 1: 1),
        shape!(avx2: 12 = __m256d * 3, 1: 1),
        shape!(avx2: 16 = __m256d * 4, 1: 1),
        shape!(avx2: 48 = __m256d * 12, 1: 1),
    ],
    few: few!(avx2 [f64 __m128d | __m256d]: 2: 2 6; 3: 2 4; 4: 2 3; 5: 2; 6: 2; 7: ;),
    dots: &[dots_f64::<1>, dots_f64::<2>],
};

static AVX2_F32: Kernels<f32> = Kernels {
    shapes: &[
        shape!(avx2: 1 = f32 * 1, 4: 8 4 2 1),
        shape!(avx2: 4 = __m128 * 1, 4: 10 4 2 1),
        shape!(avx2: 8 = __m256 * 1, 4: 10 4 2 1),
        shape!(avx2: 16 = __m256 * 2, 1: 6 4 2 1),
    ],
    thin: &[
        shape!(avx2: 1 = f32 * 1, 1: 1),
        shape!(avx2: 4 = __m128 * 1, 1: 1),
        shape!(avx2: 8 = __m256 * 1, 1: 1),
        shape!(avx2: 16 = __m256 * 2, 1: 1),
        shape!(avx2: 24 = __m256 * 3, 1: 1),
        shape!(avx2: 32 = __m256 * 4, 1: 1),
        shape!(avx2: 96 = __m256 * 12, 1: 1),
    ],
    few: few!(avx2 [f32 __m128 | __m256]: 2: 2 6; 3: 2 4; 4: 2 3; 5: 2; 6: 2; 7: ;),
    dots: &[dots_f32::<1>, dots_f32::<2>, dots_f32::<3>, dots_f32::<4>],
};

/// [`DOT_ROWS`] rows whose terms stand in a row, and `M` columns: the rows are the vector axis, so two terms of four
/// rows are turned into two vectors of a term. The rows after these are fetched meanwhile, if they come next in memory.
///
/// # Safety
/// See [`Run`].
#[target_feature(enable = "avx2,fma")]
unsafe fn dots_f64<const M: usize>(p: &Place<f64>) {
    let (down, even) = (p.left_strides[0], p.terms / 2 * 2);
    let after = p.left.wrapping_add(DOT_ROWS * down);
    let mut sums = [[_mm256_setzero_pd(); M]; DOT_ROWS / 4];
    for t in (0..even).step_by(2) {
        for i in 0..4 {
            // Fetching does nothing where there is no memory.
            _mm_prefetch::<_MM_HINT_T0>(after.wrapping_add(DOT_ROWS * t + 8 * i).cast());
        }
        // SAFETY: the caller answers for `terms` terms of `DOT_ROWS` rows.
        unsafe {
            let term = |u: usize, j: usize| _mm256_set1_pd(*p.right.add((t + u) * p.right_stride + j));
            for (i, sums) in sums.iter_mut().enumerate() {
                let row = |r: usize| _mm_loadu_pd(p.left.add((4 * i + r) * down + t));
                let pair = |r: usize| _mm256_insertf128_pd::<1>(_mm256_castpd128_pd256(row(r)), row(r + 2));
                let (a, b) = (pair(0), pair(1));
                let (even, odd) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum = _mm256_fmadd_pd(even, term(0, j), *sum);
                    *sum = _mm256_fmadd_pd(odd, term(1, j), *sum);
                }
            }
        }
    }
    let mut chains = [[0.0; DOT_ROWS]; M];
    for (i, sums) in sums.iter().enumerate() {
        for (sum, chains) in sums.iter().zip(&mut chains) {
            // SAFETY: there is room for a vector.
            unsafe { _mm256_storeu_pd(chains[4 * i..][..4].as_mut_ptr(), *sum) };
        }
    }
    // SAFETY: the caller's word, for the terms from `even` on.
    unsafe { finish_dots(p, even, chains) };
}

/// The same with four terms of eight rows.
///
/// # Safety
/// See [`Run`].
#[target_feature(enable = "avx2,fma")]
unsafe fn dots_f32<const M: usize>(p: &Place<f32>) {
    let (down, even) = (p.left_strides[0], p.terms / 4 * 4);
    let after = p.left.wrapping_add(DOT_ROWS * down);
    let mut sums = [[_mm256_setzero_ps(); M]; DOT_ROWS / 8];
    for t in (0..even).step_by(4) {
        for i in 0..4 {
            // Fetching does nothing where there is no memory.
            _mm_prefetch::<_MM_HINT_T0>(after.wrapping_add(DOT_ROWS * t + 16 * i).cast());
        }
        // SAFETY: the caller answers for `terms` terms of `DOT_ROWS` rows.
        unsafe {
            let term = |u: usize, j: usize| _mm256_set1_ps(*p.right.add((t + u) * p.right_stride + j));
            for (i, sums) in sums.iter_mut().enumerate() {
                let row = |r: usize| _mm_loadu_ps(p.left.add((8 * i + r) * down + t));
                let pair = |r: usize| _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(row(r)), row(r + 4));
                let (a, b, c, d) = (pair(0), pair(1), pair(2), pair(3));
                let (low, high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                let (low_after, high_after) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
                let turned = [
                    _mm256_shuffle_ps::<0x44>(low, low_after),
                    _mm256_shuffle_ps::<0xee>(low, low_after),
                    _mm256_shuffle_ps::<0x44>(high, high_after),
                    _mm256_shuffle_ps::<0xee>(high, high_after),
                ];
                for (j, sum) in sums.iter_mut().enumerate() {
                    for (u, turned) in turned.into_iter().enumerate() {
                        *sum = _mm256_fmadd_ps(turned, term(u, j), *sum);
                    }
                }
            }
        }
    }
    let mut chains = [[0.0; DOT_ROWS]; M];
    for (i, sums) in sums.iter().enumerate() {
        for (sum, chains) in sums.iter().zip(&mut chains) {
            // SAFETY: there is room for a vector.
            unsafe { _mm256_storeu_ps(chains[8 * i..][..8].as_mut_ptr(), *sum) };
        }
    }
    // SAFETY: the caller's word, for the terms from `even` on.
    unsafe { finish_dots(p, even, chains) };
}

/// The terms from number `first` on, and where the sums go.
///
/// # Safety
/// See [`Run`].
#[inline(always)]
unsafe fn finish_dots<R: Real, const M: usize>(p: &Place<R>, first: usize, chains: [[R; DOT_ROWS]; M]) {
    for i in 0..DOT_ROWS {
        for (j, chains) in chains.iter().enumerate() {
            let mut sum = chains[i];
            for t in first..p.terms {
                // SAFETY: the caller answers for `terms` terms of `DOT_ROWS` rows and `M` columns.
                let (a, b) = unsafe { (*p.left.add(i * p.left_strides[0] + t), *p.right.add(t * p.right_stride + j)) };
                sum = a.mul_add(b, sum);
            }
            // SAFETY: the caller answers for `DOT_ROWS` rows of the result and `M` columns.
            unsafe {
                let to = p.out.add(i * p.out_stride + j);
                *to = if p.adds { *to + sum } else { sum };
            }
        }
    }
}
