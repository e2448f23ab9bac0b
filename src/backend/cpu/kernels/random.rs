//! Random draws: one Philox block for each element of each active lane.

use super::call::{Active, KernelCall, Streams};
use crate::backend::cpu::buffer::Buffer;
use crate::prim::Draw;
use crate::vmath::{Real, philox};

pub(super) fn run<R: Real>(draw: Draw, call: &KernelCall<'_, R>, streams: Streams<'_>, out: &mut Buffer<R>) {
    let (w, n) = (call.width, call.elements());
    let draw = match draw {
        Draw::RandomUniform => Drawn::Uniform,
        Draw::RandomNormal => Drawn::Normal,
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
    // In vectors over the lanes of a row, those of inactive lanes among them; or over the elements of a lane, where that
    // makes fewer; few elements of few active lanes one by one, at four times the time of a row.
    let by_row = n * w.div_ceil(VECTOR);
    if n >= FEWEST && active * n.div_ceil(VECTOR) < by_row {
        lanes(call, &streams, out, |lane, first, out| of_lane(draw, streams.seed, lane, first, out));
    } else if active * 4 >= w {
        rows(draw, call, &streams, out);
    } else {
        lanes(call, &streams, out, |lane, first, out| one_by_one(draw, streams.seed, lane, first, out));
    }
    for lane in (0..w).filter(|lane| call.active.contains(*lane)) {
        streams.draws[lane] = streams.draws[lane].wrapping_add(n as u64);
    }
}

/// What is drawn.
#[derive(Clone, Copy)]
pub(in crate::backend::cpu) enum Drawn {
    Uniform,
    Normal,
}

/// Draws that a vector has at once.
const VECTOR: usize = 8;
/// Elements from which on those of a lane are worth vectors.
const FEWEST: usize = 6;
/// Draws that are made at once.
const CHUNK: usize = 64;

fn rows<R: Real>(draw: Drawn, call: &KernelCall<'_, R>, streams: &Streams<'_>, out: &mut [R]) {
    let mut draws = streams.draws[..call.width].to_vec();
    for out in out.chunks_exact_mut(call.width) {
        let lanes = &streams.lanes[..call.width];
        match draw {
            Drawn::Uniform => R::uniform_slice(streams.seed, lanes, &draws, out),
            Drawn::Normal => R::normal_slice(streams.seed, lanes, &draws, out),
        }
        draws.iter_mut().for_each(|d| *d = d.wrapping_add(1));
    }
}

/// The draws of each active lane, which `make` makes: of the lane, from this one on.
fn lanes<R: Real>(call: &KernelCall<'_, R>, streams: &Streams<'_>, out: &mut [R], make: impl Fn(u64, u64, &mut [R])) {
    let (w, n) = (call.width, call.elements());
    let mut made = [R::ZERO; CHUNK];
    for lane in (0..w).filter(|lane| call.active.contains(*lane)) {
        for first in (0..n).step_by(CHUNK) {
            let made = &mut made[..CHUNK.min(n - first)];
            make(streams.lanes[lane], streams.draws[lane].wrapping_add(first as u64), made);
            for (e, x) in made.iter().enumerate() {
                out[(first + e) * w + lane] = *x;
            }
        }
    }
}

fn one_by_one<R: Real>(draw: Drawn, seed: u64, lane: u64, first: u64, out: &mut [R]) {
    let draw = match draw {
        Drawn::Uniform => philox::uniform::<R>,
        Drawn::Normal => philox::normal::<R>,
    };
    for (e, out) in out.iter_mut().enumerate() {
        *out = draw(seed, lane, first.wrapping_add(e as u64));
    }
}

/// Draws of one lane, from this one on, in vectors.
pub(in crate::backend::cpu) fn of_lane<R: Real>(draw: Drawn, seed: u64, lane: u64, first: u64, out: &mut [R]) {
    let (lanes, mut first) = ([lane; CHUNK], first);
    for out in out.chunks_mut(CHUNK) {
        let draws: [u64; CHUNK] = std::array::from_fn(|e| first.wrapping_add(e as u64));
        let (lanes, draws) = (&lanes[..out.len()], &draws[..out.len()]);
        match draw {
            Drawn::Uniform => R::uniform_slice(seed, lanes, draws, out),
            Drawn::Normal => R::normal_slice(seed, lanes, draws, out),
        }
        first = first.wrapping_add(CHUNK as u64);
    }
}
