//! Arithmetic of ints, comparisons, bools, conversions and memory.

use super::{int, on_each_target, random, reals};
use crate::prim::eval;
use crate::vmath::{Real, chain_div, chain_mul, chain_mul_add};

/// Elements of each array.
const N: usize = 40_960;

/// The functions of groups; those without a branch are of one lane alone.
const LANES: &str = "\
#include \"lanes.h\"
#ifndef LANES_SCALAR
#define b_select_flat b_select
#define i_select_flat i_select
#define r_select_flat r_select
#define r_min_flat r_min
#define r_max_flat r_max
#define r_chain_mul_flat r_chain_mul
#define r_chain_div_flat r_chain_div
#endif
";

/// A function of two ints that can go wrong: the C function of groups, and what it gives.
type Checked = (&'static str, fn(i64, i64) -> Option<i64>);

const CHECKED: [Checked; 8] = [
    ("i_add_over(a, b, &bad)", i64::checked_add),
    ("i_sub_over(a, b, &bad)", i64::checked_sub),
    ("i_mul_over(a, b, &bad)", i64::checked_mul),
    ("i_div(a, b, &bad)", |a, b| eval::int_div(a, b).ok()),
    ("i_rem(a, b, &bad)", |a, b| eval::int_rem(a, b).ok()),
    ("i_pow(a, b, &bad)", |a, b| eval::int_pow(a, b).ok()),
    ("i_neg_over(a, &bad)", |a, _| a.checked_neg()),
    ("i_abs_over(a, &bad)", |a, _| a.checked_abs()),
];

/// A function of two ints.
type Total = (&'static str, fn(i64, i64) -> i64);

const TOTAL: [Total; 23] = [
    ("i_add(a, b)", i64::wrapping_add),
    ("i_sub(a, b)", i64::wrapping_sub),
    ("i_mul(a, b)", i64::wrapping_mul),
    ("i_mul_u32(a, b)", |a, b| (u64::from(a as u32) * u64::from(b as u32)) as i64),
    ("i_neg(a)", |a, _| a.wrapping_neg()),
    ("i_abs(a)", |a, _| a.wrapping_abs()),
    ("i_min(a, b)", i64::min),
    ("i_max(a, b)", i64::max),
    ("i_and(a, b)", |a, b| a & b),
    ("i_or(a, b)", |a, b| a | b),
    ("i_xor(a, b)", |a, b| a ^ b),
    ("i_andnot(a, b)", |a, b| a & !b),
    ("i_not(a)", |a, _| !a),
    ("i_shl(a, 13)", |a, _| a << 13),
    ("i_shr(a, 13)", |a, _| (a as u64 >> 13) as i64),
    ("i_sar(a, 13)", |a, _| a >> 13),
    ("i_div_pow2(a, 0)", |a, _| a),
    ("i_div_pow2(a, 7)", |a, _| a / 128),
    ("i_rem_pow2(a, 7)", |a, _| a % 128),
    ("i_rem_pow2(a, 62)", |a, _| a % (1 << 62)),
    ("i_select(i_has(a, 4), b, a)", |a, b| if a & 4 != 0 { b } else { a }),
    ("i_select_flat(i_has(a, 4), b, a)", |a, b| if a & 4 != 0 { b } else { a }),
    ("i_from_b(i_negative(a))", |a, _| i64::from(a < 0)),
];

/// A function of two reals.
type Arithmetic<R> = (&'static str, fn(R, R) -> R);

/// A comparison.
type Comparison<T> = (&'static str, fn(&T, &T) -> bool);

fn comparisons<T: PartialOrd>() -> [Comparison<T>; 6] {
    [("eq", T::eq), ("ne", T::ne), ("lt", T::lt), ("le", T::le), ("gt", T::gt), ("ge", T::ge)]
}

/// A function of three bools.
type Logic = (&'static str, fn(bool, bool, bool) -> bool);

const LOGIC: [Logic; 10] = [
    ("b_and(a, b)", |a, b, _| a & b),
    ("b_or(a, b)", |a, b, _| a | b),
    ("b_xor(a, b)", |a, b, _| a ^ b),
    ("b_andnot(a, b)", |a, b, _| a & !b),
    ("b_not(a)", |a, _, _| !a),
    ("b_eq(a, b)", |a, b, _| a == b),
    ("b_ne(a, b)", |a, b, _| a != b),
    ("b_select(a, b, c)", |a, b, c| if a { b } else { c }),
    ("b_select_flat(a, b, c)", |a, b, c| if a { b } else { c }),
    ("b_from_bits(b_bits(a))", |a, _, _| a),
];

/// A C function over arrays: a loop over groups.
fn function(name: &str, parameters: &str, body: &str) -> String {
    format!("void {name}({parameters}, int64_t n) {{ for (int64_t i = 0; i < n; i += LANES) {{ {body} }} }}\n")
}

fn ints() -> (Vec<i64>, Vec<i64>) {
    // pairs of large ints, then whole groups of small ones, which are computed in another way
    let shift = |i: u64| if i < N as u64 / 2 { 0 } else { 12 + (i / 64) % 48 };
    let all = |stream| (0..N as u64).map(|i| int(stream, i) >> shift(i)).collect();
    (all(1), all(2))
}

#[test]
fn ints_and_their_overflows_are_those_of_rust() {
    let mut text = String::from(LANES);
    let ints_in = "const int64_t *x, const int64_t *y";
    for (k, (c, _)) in CHECKED.iter().enumerate() {
        let body = format!(
            "I a = i_load(x + i), b = i_load(y + i); B bad; I r = {c}; i_store(out + i, r); b_store(wrong + i, bad);"
        );
        text += &function(&format!("checked{k}"), &format!("{ints_in}, int64_t *out, uint8_t *wrong"), &body);
    }
    for (k, (c, _)) in TOTAL.iter().enumerate() {
        let body = format!("I a = i_load(x + i), b = i_load(y + i); (void)b; i_store(out + i, {c});");
        text += &function(&format!("total{k}"), &format!("{ints_in}, int64_t *out"), &body);
    }
    for (name, _) in comparisons::<i64>() {
        let body = format!("b_store(out + i, i_{name}(i_load(x + i), i_load(y + i)));");
        text += &function(name, &format!("{ints_in}, uint8_t *out"), &body);
    }
    let (x, y) = ints();
    let (mut out, mut flags) = (vec![0_i64; N], vec![0_u8; N]);
    on_each_target(&text, false, |target, library| {
        for (k, (c, exact)) in CHECKED.iter().enumerate() {
            type F = unsafe extern "C" fn(*const i64, *const i64, *mut i64, *mut u8, i64);
            // SAFETY: this is the type of the function in the text, and the arrays have N elements, whole groups.
            unsafe {
                let f = library.symbol::<F>(&format!("checked{k}")).unwrap();
                f(x.as_ptr(), y.as_ptr(), out.as_mut_ptr(), flags.as_mut_ptr(), N as i64);
            }
            for i in 0..N {
                let expected = exact(x[i], y[i]);
                assert_eq!(flags[i], u8::from(expected.is_none()), "{target:?} {c} flags {} {}", x[i], y[i]);
                assert!(expected.is_none_or(|e| e == out[i]), "{target:?} {c} {} {}: {}", x[i], y[i], out[i]);
            }
        }
        for (k, (c, exact)) in TOTAL.iter().enumerate() {
            type F = unsafe extern "C" fn(*const i64, *const i64, *mut i64, i64);
            // SAFETY: as above.
            unsafe {
                let f = library.symbol::<F>(&format!("total{k}")).unwrap();
                f(x.as_ptr(), y.as_ptr(), out.as_mut_ptr(), N as i64);
            }
            for i in 0..N {
                assert_eq!(out[i], exact(x[i], y[i]), "{target:?} {c} {} {}", x[i], y[i]);
            }
        }
        for (name, exact) in comparisons::<i64>() {
            type F = unsafe extern "C" fn(*const i64, *const i64, *mut u8, i64);
            // SAFETY: as above.
            unsafe { library.symbol::<F>(name).unwrap()(x.as_ptr(), y.as_ptr(), flags.as_mut_ptr(), N as i64) };
            for i in 0..N {
                assert_eq!(flags[i], u8::from(exact(&x[i], &y[i])), "{target:?} {name} {} {}", x[i], y[i]);
            }
        }
    });
}

#[test]
fn bools_are_those_of_rust() {
    let mut text = String::from(LANES);
    for (k, (c, _)) in LOGIC.iter().enumerate() {
        let body = format!(
            "B a = b_load(x + i), b = b_load(y + i), c = b_load(z + i); (void)b; (void)c; b_store(out + i, {c});"
        );
        text += &function(&format!("logic{k}"), "const bool8 *x, const bool8 *y, const bool8 *z, bool8 *out", &body);
    }
    text = text.replace("bool8", "uint8_t");
    // whether none, some and all lanes are set, in the lowest bits of the first byte of a group
    let body =
        "B a = b_load(x + i); out[i] = b_none(a) | b_any(a) << 1 | b_all(a) << 2 | (b_bits(a) >> LANES != 0) << 3;";
    text += &function("tests", "const uint8_t *x, uint8_t *out", body);
    text += "int lanes(void) { return LANES; }\n";
    let bools = |stream| (0..N as u64).map(|i| u8::from(random(stream, i) % 8 < i / 8 % 9)).collect::<Vec<u8>>();
    let (x, y, z) = (bools(1), bools(2), bools(3));
    let mut out = vec![0_u8; N];
    on_each_target(&text, false, |target, library| {
        for (k, (c, exact)) in LOGIC.iter().enumerate() {
            type F = unsafe extern "C" fn(*const u8, *const u8, *const u8, *mut u8, i64);
            // SAFETY: this is the type of the function in the text, and the arrays have N elements, whole groups.
            unsafe {
                let f = library.symbol::<F>(&format!("logic{k}")).unwrap();
                f(x.as_ptr(), y.as_ptr(), z.as_ptr(), out.as_mut_ptr(), N as i64);
            }
            for i in 0..N {
                assert_eq!(out[i], u8::from(exact(x[i] == 1, y[i] == 1, z[i] == 1)), "{target:?} {c}");
            }
        }
        type F = unsafe extern "C" fn(*const u8, *mut u8, i64);
        // SAFETY: as above, and `lanes` has no parameters.
        let lanes = unsafe {
            library.symbol::<F>("tests").unwrap()(x.as_ptr(), out.as_mut_ptr(), N as i64);
            library.symbol::<unsafe extern "C" fn() -> i32>("lanes").unwrap()() as usize
        };
        for (group, out) in x.chunks(lanes).zip(out.chunks(lanes)) {
            let set = group.iter().filter(|x| **x == 1).count();
            let expected = u8::from(set == 0) | u8::from(set > 0) << 1 | u8::from(set == lanes) << 2;
            assert_eq!(out[0], expected, "{target:?} {group:?}");
        }
    });
}

fn reals_agree<R: Real>() {
    let single = size_of::<R>() == 4;
    let mut text = String::from(LANES);
    let arithmetic: [Arithmetic<R>; 26] = [
        ("r_add(a, b)", |a, b| a + b),
        ("r_sub(a, b)", |a, b| a - b),
        ("r_mul(a, b)", |a, b| a * b),
        ("r_div(a, b)", |a, b| a / b),
        ("r_chain_mul(a, b)", chain_mul),
        ("r_chain_div(a, b)", chain_div),
        ("r_chain_mul(r_splat((real)0.0), r_div(a, r_splat((real)0.0)))", |a, _| chain_mul(R::ZERO, a / R::ZERO)),
        ("r_chain_mul(r_div(a, r_splat((real)0.0)), r_splat((real)0.0))", |a, _| chain_mul(a / R::ZERO, R::ZERO)),
        ("r_chain_div(r_mul(a, r_splat((real)0.0)), r_mul(b, r_splat((real)0.0)))", |a, b| {
            chain_div(a * R::ZERO, b * R::ZERO)
        }),
        ("r_chain_div(r_div(a, r_splat((real)0.0)), r_div(b, r_splat((real)0.0)))", |a, b| {
            chain_div(a / R::ZERO, b / R::ZERO)
        }),
        ("r_chain_mul_flat(a, b)", chain_mul),
        ("r_chain_div_flat(a, b)", chain_div),
        ("r_chain_mul_flat(r_splat((real)0.0), r_div(a, r_splat((real)0.0)))", |a, _| chain_mul(R::ZERO, a / R::ZERO)),
        ("r_chain_div_flat(r_mul(a, r_splat((real)0.0)), r_mul(b, r_splat((real)0.0)))", |a, b| {
            chain_div(a * R::ZERO, b * R::ZERO)
        }),
        ("r_chain_div_flat(r_div(a, r_splat((real)0.0)), r_div(b, r_splat((real)0.0)))", |a, b| {
            chain_div(a / R::ZERO, b / R::ZERO)
        }),
        ("r_min_flat(a, b)", |a, b| a.min2(b)),
        ("r_max_flat(a, b)", |a, b| a.max2(b)),
        ("r_select_flat(r_is_nan(a), b, a)", |a, b| if Real::is_nan(a) { b } else { a }),
        ("r_select_flat(r_lt(a, b), a, r_splat((real)0.1))", |a, b| if a < b { a } else { R::from_f64(0.1) }),
        ("r_chain_fma(a, b, r_neg(a))", |a, b| chain_mul_add(a, b, -a)),
        ("r_chain_fma(r_mul(a, r_splat((real)0.0)), r_div(b, r_splat((real)0.0)), a)", |a, b| {
            chain_mul_add(a * R::ZERO, b / R::ZERO, a)
        }),
        ("r_neg(a)", |a, _| -a),
        ("r_fma(a, b, r_neg(a))", |a, b| Real::mul_add(a, b, -a)),
        ("r_copysign(a, b)", |a, b| Real::copysign(a, b)),
        ("r_select(r_is_nan(a), b, a)", |a, b| if Real::is_nan(a) { b } else { a }),
        ("r_select(r_lt(a, b), a, r_splat((real)0.1))", |a, b| if a < b { a } else { R::from_f64(0.1) }),
    ];
    let reals_in = "const real *x, const real *y";
    for (k, (c, _)) in arithmetic.iter().enumerate() {
        let body = format!("R a = r_load(x + i), b = r_load(y + i); (void)b; r_store(out + i, {c});");
        text += &function(&format!("arithmetic{k}"), &format!("{reals_in}, real *out"), &body);
    }
    for (name, _) in comparisons::<R>() {
        let body = format!("b_store(out + i, r_{name}(r_load(x + i), r_load(y + i)));");
        text += &function(name, &format!("{reals_in}, uint8_t *out"), &body);
    }
    text += &function("from_ints", "const int64_t *x, real *out", "r_store(out + i, r_from_i(i_load(x + i)));");
    let body = "B bad; I r = r_to_i_trap(r_load(x + i), &bad); i_store(out + i, r); b_store(wrong + i, bad);";
    text += &function("to_ints", "const real *x, int64_t *out, uint8_t *wrong", body);

    let x: Vec<R> = reals(N).into_iter().map(R::from_f64).collect();
    let y: Vec<R> = (0..N).map(|i| x[(random(5, i as u64) % N as u64) as usize]).collect();
    let whole = ints().0;
    let (mut out, mut converted, mut flags) = (vec![R::ZERO; N], vec![0_i64; N], vec![0_u8; N]);
    on_each_target(&text, single, |target, library| {
        for (k, (c, exact)) in arithmetic.iter().enumerate() {
            type F<R> = unsafe extern "C" fn(*const R, *const R, *mut R, i64);
            // SAFETY: this is the type of the function in the text, and the arrays have N elements, whole groups.
            unsafe {
                let f = library.symbol::<F<R>>(&format!("arithmetic{k}")).unwrap();
                f(x.as_ptr(), y.as_ptr(), out.as_mut_ptr(), N as i64);
            }
            for i in 0..N {
                let expected = exact(x[i], y[i]);
                assert_eq!(
                    out[i].to_bits64(),
                    expected.to_bits64(),
                    "{target:?} {c} {:e} {:e}",
                    x[i].to_f64(),
                    y[i].to_f64()
                );
            }
        }
        for (name, exact) in comparisons::<R>() {
            type F<R> = unsafe extern "C" fn(*const R, *const R, *mut u8, i64);
            // SAFETY: as above.
            unsafe { library.symbol::<F<R>>(name).unwrap()(x.as_ptr(), y.as_ptr(), flags.as_mut_ptr(), N as i64) };
            for i in 0..N {
                assert_eq!(flags[i], u8::from(exact(&x[i], &y[i])), "{target:?} {name} {} {}", x[i], y[i]);
            }
        }
        type From<R> = unsafe extern "C" fn(*const i64, *mut R, i64);
        type To<R> = unsafe extern "C" fn(*const R, *mut i64, *mut u8, i64);
        // SAFETY: as above.
        unsafe {
            library.symbol::<From<R>>("from_ints").unwrap()(whole.as_ptr(), out.as_mut_ptr(), N as i64);
            let f = library.symbol::<To<R>>("to_ints").unwrap();
            f(x.as_ptr(), converted.as_mut_ptr(), flags.as_mut_ptr(), N as i64);
        }
        for i in 0..N {
            assert_eq!(out[i].to_bits64(), R::from_i64(whole[i]).to_bits64(), "{target:?} r_from_i {}", whole[i]);
            let expected = eval::to_int(x[i].to_f64()).ok();
            assert_eq!(flags[i], u8::from(expected.is_none()), "{target:?} r_to_i_trap flags {}", x[i]);
            assert!(expected.is_none_or(|e| e == converted[i]), "{target:?} r_to_i_trap {}", x[i]);
        }
    });
}

#[test]
fn doubles_are_those_of_rust() {
    reals_agree::<f64>();
}

#[test]
fn floats_are_those_of_rust() {
    reals_agree::<f32>();
}

/// Memory in C: masked stores, gathers and scatters of each type. What is stored is x, or x of another place.
const MEMORY: &str = "
#include \"lanes.h\"
void keep(const uint8_t *m, const real *r, const int64_t *j, const uint8_t *b, real *ro, int64_t *jo, uint8_t *bo, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) {
        B mask = b_load(m + i);
        r_store_masked(ro + i, mask, r_load(r + i));
        i_store_masked(jo + i, mask, i_load(j + i));
        b_store_masked(bo + i, mask, b_load(b + i));
    }
}
void gather(const uint8_t *m, const int64_t *at, const real *r, const int64_t *j, const uint8_t *b, real *ro, int64_t *jo,
            uint8_t *bo, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) {
        B mask = b_load(m + i);
        I index = i_load(at + i);
        r_store(ro + i, r_gather(r, index, mask));
        i_store(jo + i, i_gather(j, index, mask));
        b_store(bo + i, b_gather(b, index, mask));
    }
}
void scatter(const uint8_t *m, const int64_t *at, const real *r, const int64_t *j, const uint8_t *b, real *ro, int64_t *jo,
             uint8_t *bo, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) {
        B mask = b_load(m + i);
        I index = i_load(at + i);
        r_scatter(ro, index, mask, r_load(r + i));
        i_scatter(jo, index, mask, i_load(j + i));
        b_scatter(bo, index, mask, b_load(b + i));
    }
}
";

/// The three types of arrays, with the values that test code tells apart.
#[derive(Clone, PartialEq, Debug)]
struct Arrays<R>(Vec<R>, Vec<i64>, Vec<u8>);

impl<R: Real> Arrays<R> {
    fn new(first: i64) -> Self {
        let ints: Vec<i64> = (first..first + N as i64).collect();
        let bools = ints.iter().map(|i| (random(9, *i as u64) % 2) as u8).collect();
        Self(ints.iter().map(|i| R::from_i64(*i)).collect(), ints, bools)
    }
}

fn memory<R: Real>() {
    let active = |i: usize| random(8, i as u64) % 8 < i as u64 / 8 % 9;
    let mask: Vec<u8> = (0..N).map(|i| u8::from(active(i))).collect();
    // each place once; where the mask is not set, nowhere
    let place = |i: usize| (i * 4093 + 17) % N;
    let at: Vec<i64> = (0..N).map(|i| if active(i) { place(i) as i64 } else { i64::MIN / 16 }).collect();
    let (from, before) = (Arrays::<R>::new(1), Arrays::<R>::new(100_000));
    on_each_target(MEMORY, size_of::<R>() == 4, |target, library| {
        type Keep<R> = unsafe extern "C" fn(*const u8, *const R, *const i64, *const u8, *mut R, *mut i64, *mut u8, i64);
        type Move<R> = unsafe extern "C" fn(
            *const u8,
            *const i64,
            *const R,
            *const i64,
            *const u8,
            *mut R,
            *mut i64,
            *mut u8,
            i64,
        );
        let (mut kept, mut gathered, mut scattered) = (before.clone(), before.clone(), before.clone());
        let (m, at) = (mask.as_ptr(), at.as_ptr());
        let (r, j, b) = (from.0.as_ptr(), from.1.as_ptr(), from.2.as_ptr());
        // SAFETY: these are the types of the functions in the text, the arrays have N elements, whole groups, and every index that
        // is used is below N.
        unsafe {
            let Arrays(ro, jo, bo) = &mut kept;
            library.symbol::<Keep<R>>("keep").unwrap()(
                m,
                r,
                j,
                b,
                ro.as_mut_ptr(),
                jo.as_mut_ptr(),
                bo.as_mut_ptr(),
                N as i64,
            );
            for (name, Arrays(ro, jo, bo)) in [("gather", &mut gathered), ("scatter", &mut scattered)] {
                let f = library.symbol::<Move<R>>(name).unwrap();
                f(m, at, r, j, b, ro.as_mut_ptr(), jo.as_mut_ptr(), bo.as_mut_ptr(), N as i64);
            }
        }
        let (mut keep, mut scatter) = (before.clone(), before.clone());
        for i in (0..N).filter(|i| active(*i)) {
            (keep.0[i], keep.1[i], keep.2[i]) = (from.0[i], from.1[i], from.2[i]);
            let p = place(i);
            (scatter.0[p], scatter.1[p], scatter.2[p]) = (from.0[i], from.1[i], from.2[i]);
            let got = (gathered.0[i], gathered.1[i], gathered.2[i]);
            assert!(got == (from.0[p], from.1[p], from.2[p]), "{target:?} gather");
        }
        assert!(kept == keep, "{target:?} masked store");
        assert!(scattered == scatter, "{target:?} scatter");
    });
}

#[test]
fn masked_memory_of_doubles_is_touched_in_active_lanes_only() {
    memory::<f64>();
}

#[test]
fn masked_memory_of_floats_is_touched_in_active_lanes_only() {
    memory::<f32>();
}
