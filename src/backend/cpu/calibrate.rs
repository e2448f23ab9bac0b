//! Measures what the cost model takes elementary things to cost, on the kernels and stacks of the machine itself.

use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::backend::cpu::buffer::Buffer;
use crate::backend::cpu::compact::Selection;
use crate::backend::cpu::helpers;
use crate::backend::cpu::kernels::{self, Active, Keep, KernelArg, KernelCall, Streams};
use crate::exec::mask::byte_mask;
use crate::exec::{Columns, LaneMask, LaneStack};
use crate::prim::Prim;
use crate::run::{Costs, cores};
use crate::types::{DType, Type};

/// Lanes of the buffers that are measured.
const LANES: usize = 512;
/// Elements of each lane.
const ELEMENTS: usize = 8;

/// The least time of one of many turns, in nanoseconds: what disturbs makes it longer, never shorter.
fn time(mut turn: impl FnMut()) -> f64 {
    let turns = 200;
    let once = |turn: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..turns).for_each(|_| turn());
        start.elapsed().as_nanos() as f64 / f64::from(turns)
    };
    (0..50).map(|_| once(&mut turn)).fold(f64::INFINITY, f64::min)
}

/// One kernel call: a sum of reals of this many elements in this many lanes, stored under a mask where one is given.
fn addition(elements: usize, lanes: usize, mask: Option<&[i8]>) -> f64 {
    let ty = Type { dtype: DType::Real, shape: [elements].as_slice().into() };
    let [a, b, kept, mut out] = std::array::from_fn(|_| Buffer::<f64>::zeros(DType::Real, elements * lanes));
    let (mut traps, mut draws) = (Vec::new(), [0]);
    time(|| {
        let args = [KernelArg::new(&a, &ty, false), KernelArg::new(&b, &ty, false)];
        let call = KernelCall {
            prim: Prim::Add,
            args: &args,
            ty: &ty,
            width: lanes,
            active: Active::All,
            keep: mask.map(|mask| Keep { values: &kept, mask }),
            accumulate: false,
            traps: &mut traps,
        };
        kernels::run(black_box(call), Streams { seed: 0, lanes: &[0], draws: &mut draws }, &mut out);
    })
}

/// Compacting and scattering back half of the lanes.
fn compaction() -> f64 {
    let mut mask = LaneMask::none(LANES);
    (0..LANES).filter(|lane| (*lane as u32).wrapping_mul(0x9e37_79b9) >> 31 == 0).for_each(|lane| mask.insert(lane));
    let lanes = Selection::of(&mask);
    let [mut state, mut dense] = std::array::from_fn(|_| Buffer::<f64>::zeros(DType::Real, ELEMENTS * LANES));
    let both = time(|| {
        dense.gather(&state, ELEMENTS, black_box(&lanes));
        state.scatter(&dense, ELEMENTS, black_box(&lanes));
    });
    both / (2 * ELEMENTS * mask.count()) as f64
}

/// Pushing and popping in half of the lanes, which stand at different heights.
fn pushing() -> f64 {
    let mut stack = LaneStack::new(1, LANES, 0.0);
    let mut top = vec![0.0; LANES];
    let mut mask = LaneMask::none(LANES);
    fn columns(mask: &LaneMask) -> Columns<'_> {
        Columns { mask: mask.words(), width: LANES, lanes: None, all: false }
    }
    for lane in 0..LANES {
        mask.reset(LANES);
        mask.insert(lane);
        for _ in 0..(lane as u32).wrapping_mul(0x9e37_79b9) >> 28 {
            stack.push(&top, columns(&mask)).expect("there is memory");
        }
    }
    mask.reset(LANES);
    (0..LANES).filter(|lane| (*lane as u32).wrapping_mul(0x85eb_ca6b) >> 31 == 0).for_each(|lane| mask.insert(lane));
    let both = time(|| {
        stack.push(&top, columns(black_box(&mask))).expect("there is memory");
        stack.pop(&mut top, columns(black_box(&mask))).expect("it was pushed");
    });
    both / (2 * mask.count()) as f64
}

/// What sharing work with a thread that has none adds to half of its time; none where there is one core.
fn sharing() -> Option<f64> {
    const PART: f64 = 20_000.0;
    let spin = |_: usize, _: &mut [u8]| {
        let start = Instant::now();
        while (start.elapsed().as_nanos() as f64) < PART {}
    };
    let shared = Mutex::new(None);
    if cores() > 1 {
        helpers::run(1, 2, &Costs::default(), || {
            let nanoseconds = time(|| helpers::each_piece(&mut [0; 2], 1, spin));
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some((nanoseconds - PART).max(1.0));
        });
    }
    shared.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Measures all but the ratio of heavy units, which is a choice; and, for comparison, the nanoseconds that pushing or popping
/// one element of one lane takes, which all ways of running a block have in common.
pub fn calibrate() -> (Costs, f64) {
    let mask: Vec<i8> =
        (0..LANES / 64).flat_map(|i| byte_mask(0x5a5a_3c3c_0ff0_9669_u64.rotate_left(i as u32))).collect();
    let (small, large) = (addition(1, 1, None), addition(ELEMENTS, LANES, None));
    let masked = addition(ELEMENTS, LANES, Some(&mask));
    let values = (ELEMENTS * LANES) as f64;
    let costs = Costs {
        step: small,
        addition: (large - small).max(0.0) / values,
        blend: (masked - large).max(0.0) / values,
        gather: compaction(),
        share: sharing().unwrap_or(Costs::default().share),
        ..Costs::default()
    };
    (costs, pushing())
}
