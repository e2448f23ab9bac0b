//! The headers against Rust, bit for bit, on each target that this processor runs; the compiler and its cache.

pub(super) mod beside;
mod compiling;
mod elementary;
mod lanes;

use super::compiler::{Compiler, CompilerOptions, Library, Target};
use crate::vmath::philox;

/// The compiler of this machine, without a cache; nothing, and a line that says so, where there is none.
fn compiler() -> Option<Compiler> {
    match Compiler::find() {
        Ok(compiler) => Some(compiler.with_cache(None)),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// A text compiled for each target that runs here.
fn on_each_target(text: &str, real_f32: bool, mut test: impl FnMut(Target, &Library)) {
    let Some(compiler) = compiler() else { return };
    for target in [Target::Native, Target::Avx2, Target::Scalar].into_iter().filter(|t| t.runs_here()) {
        let library =
            compiler.load(text, &CompilerOptions { real_f32, target }).unwrap_or_else(|e| panic!("{target:?}: {e}"));
        test(target, &library);
    }
}

/// 64 random bits.
fn random(stream: u64, i: u64) -> u64 {
    let [a, b, ..] = philox::block(11, stream, i);
    u64::from(a) << 32 | u64::from(b)
}

/// Ints of every magnitude, the ends and small ones among them often.
fn int(stream: u64, i: u64) -> i64 {
    let bits = random(stream, 2 * i);
    let choice = random(stream, 2 * i + 1);
    match choice % 8 {
        0 => [i64::MIN, i64::MAX, i64::MIN + 1, 0, 1, -1, 2, -2][(bits % 8) as usize],
        1 => (bits % 33) as i64 - 16,
        2 => (1 << 50) + (bits % 5) as i64 - 2,
        _ => bits as i64 >> (choice >> 8 & 63),
    }
}

/// Reals of every kind: random bits, special values, and even ones in the ranges where functions change their ways.
fn reals(n: usize) -> Vec<f64> {
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.0,
        2.5,
        3.0,
        -2.0,
        8.0,
        1e9,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -f64::NAN,
        5e-324,
        -5e-324,
        f64::MIN_POSITIVE,
        f64::MAX,
        f64::MIN,
        1073741824.0,
        -1073741825.0,
        710.0,
        -745.13,
        9_223_372_036_854_775_808.0,
        -9_223_372_036_854_775_808.0,
        0.49999999999999994,
        4503599627370497.5,
    ];
    let one = |i: u64| {
        let bits = random(0, 2 * i);
        let choice = random(0, 2 * i + 1);
        let fraction = bits as f64 / 18446744073709551616.0;
        let signed = 2.0 * fraction - 1.0;
        match choice % 12 {
            0 | 1 => f64::from_bits(bits),
            2 => special[(bits % special.len() as u64) as usize],
            3 => 760.0 * signed,
            4 => 40.0 * signed,
            5 => fraction,
            6 => 3.0 * signed,
            7 => (40.0 * signed).round() / 2.0,
            8 => 1.0 + signed * (-((choice >> 8 & 63) as f64)).exp2(),
            9 => signed * (-((choice >> 8 & 1023) as f64)).exp2(),
            10 => signed * ((choice >> 8 & 63) as f64).exp2(),
            _ => 30.0 * fraction,
        }
    };
    let mut all: Vec<f64> = special.to_vec();
    all.extend((0..(n - special.len()) as u64).map(one));
    all
}
