//! Functions of reals and random draws.

use super::{int, on_each_target, random, reals};
use crate::vmath::{BinaryFn, LogSum, Real, UnaryFn, binary, log_sums, philox, unary};

/// Inputs of each function.
const N: usize = 200_704;

/// C functions over arrays, whose names end in those of the functions.
fn text() -> String {
    let mut text = String::from("#include \"vmath.h\"\n");
    for f in UnaryFn::ALL {
        let name = f.name();
        text += &format!(
            "void u_{name}(const real *x, real *out, int64_t n) {{
                for (int64_t i = 0; i < n; i += LANES) r_store(out + i, r_{name}(r_load(x + i)));
            }}\n"
        );
    }
    for f in BinaryFn::ALL {
        let name = f.name();
        let c = name.trim_end_matches('2').to_owned() + if *f == BinaryFn::Atan2 { "2" } else { "" };
        text += &format!(
            "void b_{name}(const real *x, const real *y, real *out, int64_t n) {{
                for (int64_t i = 0; i < n; i += LANES) r_store(out + i, r_{c}(r_load(x + i), r_load(y + i)));
            }}\n"
        );
    }
    for (name, _) in LOG_SUMS {
        text += &format!(
            "void u_{name}(const real *x, real *out, int64_t n) {{
                for (int64_t i = 0; i < n / {FACTORS}; i += LANES) {{
                    R product = r_{name}_start(), addends = r_splat(0);
                    for (int64_t k = 0; k < {FACTORS}; k++)
                        r_{name}_step(&product, &addends, r_load(x + k * (n / {FACTORS}) + i));
                    r_store(out + i, r_{name}_end(product, addends));
                }}
            }}\n"
        );
    }
    for name in ["uniform", "normal"] {
        text += &format!(
            "void {name}(uint64_t seed, const int64_t *lanes, const int64_t *draws, real *out, int64_t n) {{
                for (int64_t i = 0; i < n; i += LANES)
                    r_store(out + i, r_{name}(seed, i_load(lanes + i), i_load(draws + i)));
            }}\n"
        );
    }
    text
}

/// Sums of logarithms by the names of their C functions, and of how many elements each.
const LOG_SUMS: [(&str, LogSum); 2] = [("sum_log", LogSum::Log), ("sum_log1p_exp", LogSum::Log1pExp)];
const FACTORS: usize = 4;

type Unary<R> = unsafe extern "C" fn(*const R, *mut R, i64);
type Binary<R> = unsafe extern "C" fn(*const R, *const R, *mut R, i64);
type Draw<R> = unsafe extern "C" fn(u64, *const u64, *const u64, *mut R, i64);

fn agree<R: Real>() {
    let x: Vec<R> = reals(N).into_iter().map(R::from_f64).collect();
    let y: Vec<R> = (0..N).map(|i| x[(random(5, i as u64) % N as u64) as usize]).collect();
    let lanes: Vec<u64> = (0..N as u64).map(|i| int(6, i) as u64).collect();
    let draws: Vec<u64> = (0..N as u64).map(|i| int(7, i) as u64).collect();
    let seed = 0x0123_4567_89AB_CDEF;
    let results = |run: &dyn Fn(&mut [R])| {
        let mut out = vec![R::ZERO; N];
        run(&mut out);
        out
    };
    let unaries = UnaryFn::ALL.iter().map(|f| results(&|out| unary(*f, &x, out)));
    let binaries = BinaryFn::ALL.iter().map(|f| results(&|out| binary(*f, &x, &y, out)));
    let (unaries, binaries): (Vec<_>, Vec<_>) = (unaries.collect(), binaries.collect());
    let sizes: Vec<R> = x.iter().map(|x| x.abs()).collect();
    let log_sums = LOG_SUMS.map(|(_, of)| {
        [&x, &sizes].map(|x| {
            let mut out = vec![R::ZERO; N / FACTORS];
            log_sums(of, x, &mut out, false);
            out
        })
    });
    let uniforms = results(&|out| philox::uniform_slice(seed, &lanes, &draws, out));
    let normals = results(&|out| philox::normal_slice(seed, &lanes, &draws, out));

    let mut out = vec![R::ZERO; N];
    on_each_target(&text(), size_of::<R>() == 4, |target, library| {
        let equal = |name: &str, expected: &[R], out: &[R]| {
            for i in 0..N {
                assert_eq!(
                    out[i].to_bits64(),
                    expected[i].to_bits64(),
                    "{target:?} {name} of {:e} {:e}, {} {}: {} and not {}",
                    x[i].to_f64(),
                    y[i].to_f64(),
                    lanes[i],
                    draws[i],
                    out[i],
                    expected[i]
                );
            }
        };
        let n = N as i64;
        for (f, expected) in UnaryFn::ALL.iter().zip(&unaries) {
            // SAFETY: this is the type of the function in the text, and the arrays have N elements, whole groups.
            unsafe {
                let function = library.symbol::<Unary<R>>(&format!("u_{}", f.name())).unwrap();
                function(x.as_ptr(), out.as_mut_ptr(), n);
            }
            equal(f.name(), expected, &out);
        }
        for ((name, _), expected) in LOG_SUMS.iter().zip(&log_sums) {
            for (x, expected) in [&x, &sizes].into_iter().zip(expected) {
                // SAFETY: as above; it stores a part of the elements.
                unsafe {
                    let function = library.symbol::<Unary<R>>(&format!("u_{name}")).unwrap();
                    function(x.as_ptr(), out.as_mut_ptr(), n);
                }
                for i in 0..N / FACTORS {
                    let terms: Vec<R> = (0..FACTORS).map(|k| x[k * (N / FACTORS) + i]).collect();
                    let (found, expected) = (out[i], expected[i]);
                    assert_eq!(found.to_bits64(), expected.to_bits64(), "{target:?} {name} of {terms:?}");
                }
            }
        }
        for (f, expected) in BinaryFn::ALL.iter().zip(&binaries) {
            // SAFETY: as above.
            unsafe {
                let function = library.symbol::<Binary<R>>(&format!("b_{}", f.name())).unwrap();
                function(x.as_ptr(), y.as_ptr(), out.as_mut_ptr(), n);
            }
            equal(f.name(), expected, &out);
        }
        for (name, expected) in [("uniform", &uniforms), ("normal", &normals)] {
            // SAFETY: as above.
            unsafe {
                let function = library.symbol::<Draw<R>>(name).unwrap();
                function(seed, lanes.as_ptr(), draws.as_ptr(), out.as_mut_ptr(), n);
            }
            equal(name, expected, &out);
        }
    });
}

#[test]
fn double_functions_have_the_bits_of_rust() {
    agree::<f64>();
}

#[test]
fn single_functions_have_the_bits_of_rust() {
    agree::<f32>();
}
