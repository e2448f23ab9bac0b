//! Random draws: one Philox block for each element of each active lane.

use super::call::{Active, KernelCall, Streams};
use crate::backend::cpu::buffer::Buffer;
use crate::prim::Draw;
use crate::vmath::{Real, philox};

pub(super) fn run<R: Real>(draw: Draw, call: &KernelCall<'_, R>, streams: Streams<'_>, out: &mut Buffer<R>) {
    let (w, n) = (call.width, call.elements());
    let draw = match draw {
        Draw::RandomUniform => Number::Uniform,
        Draw::RandomNormal => Number::Normal,
        Draw::RandomPosition => {
            let out = &mut out.ints_mut()[..w];
            out.iter_mut().zip(streams.draws.iter()).for_each(|(out, draws)| *out = *draws as i64);
            return;
        }
    };
    let out = &mut out.reals_mut()[..n * w];
    let active = match call.active {
        Active::All => w,
        Active::Mask(words) => words.iter().map(|word| word.count_ones() as usize).sum(),
    };
    // A row at a time costs about a quarter of lane by lane: the draws of inactive lanes are computed and not counted.
    if active * 4 >= w {
        rows(draw, call, &streams, out);
    } else {
        lanes(draw, call, &streams, out);
    }
    for lane in (0..w).filter(|lane| call.active.contains(*lane)) {
        streams.draws[lane] = streams.draws[lane].wrapping_add(n as u64);
    }
}

/// What is drawn.
#[derive(Clone, Copy)]
enum Number {
    Uniform,
    Normal,
}

fn rows<R: Real>(draw: Number, call: &KernelCall<'_, R>, streams: &Streams<'_>, out: &mut [R]) {
    let mut draws = streams.draws[..call.width].to_vec();
    for out in out.chunks_exact_mut(call.width) {
        let lanes = &streams.lanes[..call.width];
        match draw {
            Number::Uniform => R::uniform_slice(streams.seed, lanes, &draws, out),
            Number::Normal => R::normal_slice(streams.seed, lanes, &draws, out),
        }
        draws.iter_mut().for_each(|d| *d = d.wrapping_add(1));
    }
}

fn lanes<R: Real>(draw: Number, call: &KernelCall<'_, R>, streams: &Streams<'_>, out: &mut [R]) {
    let draw = match draw {
        Number::Uniform => philox::uniform::<R>,
        Number::Normal => philox::normal::<R>,
    };
    for lane in (0..call.width).filter(|lane| call.active.contains(*lane)) {
        for e in 0..call.elements() {
            let number = streams.draws[lane].wrapping_add(e as u64);
            out[e * call.width + lane] = draw(streams.seed, streams.lanes[lane], number);
        }
    }
}
