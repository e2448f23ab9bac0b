//! Where the lanes of a shard wait, and which unit runs next.
//!
//! For every unit there is a bit mask of the lanes that wait there. The policies (`--schedule`) are `earliest`, the
//! first unit in program order; `most-lanes`; and `cost:θ`, the default with θ = 0.95. A unit is *heavy* when it weighs
//! at least 8 times the median unit. Under the cost-aware policy a heavy unit may run only when at least the fraction θ
//! of the shard's live lanes wait there. Of the units that may run, the one with most lanes does. When only heavy ones
//! with too few lanes are left, the one that moves most lanes for its weight runs. Waiting for company at a gradient
//! costs a few cheap supersteps and saves gradients. The first unit in program order wins ties. A policy changes
//! statistics only, never results.

use super::mask::{for_each_lane, lanes_of};
use crate::run::Schedule;

/// For every unit the lanes that wait at it. A lane waits at no more than one.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Words a unit.
    stride: usize,
    masks: Vec<u64>,
    counts: Vec<u32>,
    /// The units at which a lane waits, one bit each.
    occupied: Vec<u64>,
}

/// Where lanes wait, in the hands of somebody else.
#[derive(Debug)]
pub struct OpenWaiting<'a> {
    /// For each unit the words of its mask.
    pub masks: &'a mut [u64],
    /// For each unit how many lanes wait there.
    pub counts: &'a mut [u32],
    /// The units at which a lane waits, one bit each.
    pub occupied: &'a mut [u64],
}

impl Waiting {
    /// Nobody waits at any of `units` units of a shard of `width` lanes.
    pub fn new(units: usize, width: usize) -> Self {
        let stride = width.div_ceil(64);
        Self { stride, masks: vec![0; units * stride], counts: vec![0; units], occupied: vec![0; units.div_ceil(64)] }
    }
    /// These lanes, `count` of them, none of which waits elsewhere, wait at a unit.
    pub fn add(&mut self, unit: usize, words: &[u64], count: usize) {
        let mask = &mut self.masks[unit * self.stride..][..self.stride];
        mask.iter_mut().zip(words).for_each(|(to, from)| *to |= from);
        self.arrive(unit, count as u32);
    }
    /// So many lanes more wait at a unit.
    #[inline]
    fn arrive(&mut self, unit: usize, count: u32) {
        if count > 0 {
            self.counts[unit] += count;
            self.occupied[unit / 64] |= 1 << (unit % 64);
        }
    }
    /// These lanes of word `index`, none of which waits elsewhere, wait at a unit.
    pub fn add_word(&mut self, unit: usize, index: usize, bits: u64) {
        self.masks[unit * self.stride + index] |= bits;
        self.arrive(unit, bits.count_ones());
    }
    /// These lanes, `count` of them, none of which waits elsewhere, wait: those of `taken` at the first unit, the others at
    /// the second.
    pub fn split(&mut self, (yes, no): (usize, usize), words: &[u64], taken: &[u64], count: usize) {
        let (mut first, mut all) = (0, true);
        for (mask, taken) in words.iter().zip(taken) {
            first += (mask & taken).count_ones();
            all &= mask & !taken == 0;
        }
        if all {
            return self.add(yes, words, count);
        }
        if first == 0 {
            return self.add(no, words, count);
        }
        for (unit, flip, count) in [(yes, 0, first), (no, u64::MAX, count as u32 - first)] {
            let masks = &mut self.masks[unit * self.stride..][..self.stride];
            let words = words.iter().zip(taken).map(|(mask, taken)| mask & (taken ^ flip));
            masks.iter_mut().zip(words).for_each(|(to, from)| *to |= from);
            self.arrive(unit, count);
        }
    }
    /// This lane, which does not wait elsewhere, waits at a unit.
    pub fn add_lane(&mut self, unit: usize, lane: usize) {
        self.masks[unit * self.stride + lane / 64] |= 1 << (lane % 64);
        self.arrive(unit, 1);
    }
    /// The lanes that wait at a unit go into `mask` and wait no more. Returns how many.
    pub fn take(&mut self, unit: usize, mask: &mut [u64]) -> usize {
        let words = &mut self.masks[unit * self.stride..][..self.stride];
        for (to, from) in mask.iter_mut().zip(words) {
            *to = std::mem::take(from);
        }
        self.occupied[unit / 64] &= !(1 << (unit % 64));
        std::mem::take(&mut self.counts[unit]) as usize
    }
    /// This lane, which waits at a unit, waits no more.
    pub fn take_lane(&mut self, unit: usize, lane: usize) {
        self.masks[unit * self.stride + lane / 64] &= !(1 << (lane % 64));
        self.counts[unit] -= 1;
        if self.counts[unit] == 0 {
            self.occupied[unit / 64] &= !(1 << (unit % 64));
        }
    }
    /// The lanes that wait at a unit.
    pub fn mask(&self, unit: usize) -> &[u64] {
        &self.masks[unit * self.stride..][..self.stride]
    }
    /// How many lanes wait at a unit.
    pub fn count(&self, unit: usize) -> usize {
        self.counts[unit] as usize
    }
    /// The unit at which a lane waits.
    pub fn unit_of(&self, lane: usize) -> Option<usize> {
        self.units().find(|unit| self.mask(*unit)[lane / 64] >> (lane % 64) & 1 != 0)
    }
    /// The first unit at which a lane waits.
    pub fn first(&self) -> Option<usize> {
        lanes_of(&self.occupied).next()
    }
    /// The units at which lanes wait, ascending.
    pub fn units(&self) -> impl Iterator<Item = usize> + '_ {
        lanes_of(&self.occupied)
    }
    /// All of it, for generated code, which keeps it as the methods do.
    pub fn open(&mut self) -> OpenWaiting<'_> {
        OpenWaiting { masks: &mut self.masks, counts: &mut self.counts, occupied: &mut self.occupied }
    }
    /// All lanes that wait anywhere, with the unit.
    pub fn lanes(&self) -> Vec<(usize, usize)> {
        let mut out = Vec::new();
        for unit in self.units() {
            let mask = &self.masks[unit * self.stride..][..self.stride];
            out.extend(lanes_of(mask).map(|lane| (unit, lane)));
        }
        out
    }
}

/// Chooses the unit that runs next. Whatever it chooses, the lanes that wait there go on, so the machine never stands
/// still; which lanes these are changes statistics only.
#[derive(Clone, Debug)]
pub struct Scheduler {
    schedule: Schedule,
    weights: Vec<u64>,
    /// For each unit whether it is heavy.
    heavy: Vec<bool>,
}

impl Scheduler {
    /// A scheduler for units of these weights; those of weight `heavy` or more are heavy.
    pub fn new(schedule: Schedule, weights: Vec<u64>, heavy: u64) -> Self {
        let heavy = weights.iter().map(|w| *w >= heavy).collect();
        Self { schedule, weights, heavy }
    }

    /// The unit that runs next, of those at which lanes wait; `None` when nobody waits. `live`: lanes of the shard that
    /// are not done.
    pub fn next(&self, waiting: &Waiting, live: usize) -> Option<usize> {
        match self.schedule {
            Schedule::Earliest => waiting.first(),
            Schedule::MostLanes => self.most_lanes(waiting, |_, _| true),
            Schedule::CostAware { theta } => {
                let ready = |unit: usize, count: u32| !self.heavy[unit] || f64::from(count) >= theta * live as f64;
                self.most_lanes(waiting, ready).or_else(|| self.most_for_its_weight(waiting))
            }
        }
    }

    /// The first of the units with the most lanes.
    #[inline]
    fn most_lanes(&self, waiting: &Waiting, eligible: impl Fn(usize, u32) -> bool) -> Option<usize> {
        let (mut most, mut best) = (0, None);
        for_each_lane(&waiting.occupied, |unit| {
            let count = waiting.counts[unit];
            if count > most && eligible(unit, count) {
                (most, best) = (count, Some(unit));
            }
        });
        best
    }

    /// Only heavy units are left, each with few lanes: the one that moves most lanes for its weight. So a cheap one brings
    /// its lanes to a dear one before that runs, and of two that weigh about the same the one with more lanes runs, where the
    /// cheaper first would let the lanes of the other pile up.
    fn most_for_its_weight(&self, waiting: &Waiting) -> Option<usize> {
        let mut best = None;
        for unit in waiting.units() {
            let (count, weight) = (waiting.count(unit) as u128, u128::from(self.weights[unit].max(1)));
            if best.is_none_or(|(most, least, _)| count * least > most * weight) {
                best = Some((count, weight, unit));
            }
        }
        best.map(|(_, _, unit)| unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::LaneMask;

    fn waiting(lanes: &[(usize, usize)]) -> Waiting {
        let mut waiting = Waiting::new(70, 100);
        let mut lane = 0;
        for (unit, count) in lanes {
            for _ in 0..*count {
                waiting.add_lane(*unit, lane);
                lane += 1;
            }
        }
        waiting
    }

    fn next(schedule: Schedule, lanes: &[(usize, usize)], live: usize) -> Option<usize> {
        let mut weights = vec![1; 70];
        (weights[5], weights[69]) = (100, 50);
        Scheduler::new(schedule, weights, 50).next(&waiting(lanes), live)
    }

    #[test]
    fn earliest_takes_program_order_and_most_lanes_takes_numbers() {
        let lanes = [(3, 2), (66, 7), (68, 7)];
        assert_eq!(next(Schedule::Earliest, &lanes, 16), Some(3));
        assert_eq!(next(Schedule::MostLanes, &lanes, 16), Some(66));
        assert_eq!(next(Schedule::MostLanes, &[], 16), None);
    }

    #[test]
    fn a_heavy_unit_waits_for_its_share_or_for_the_cheaper_ones() {
        let cost = Schedule::CostAware { theta: 0.75 };
        // Too few lanes at the heavy unit: the cheap one runs though fewer wait there.
        assert_eq!(next(cost, &[(3, 5), (5, 11)], 16), Some(3));
        // Enough.
        assert_eq!(next(cost, &[(3, 4), (5, 12)], 16), Some(5));
        // Nothing cheap: of the heavy ones, that with more lanes for its weight (100 and 50).
        assert_eq!(next(cost, &[(5, 9), (69, 7)], 16), Some(69));
        assert_eq!(next(cost, &[(5, 11), (69, 5)], 16), Some(5));
        assert_eq!(next(cost, &[(5, 1)], 16), Some(5));
    }

    #[test]
    fn lanes_wait_at_one_unit_until_they_are_taken() {
        let mut w = waiting(&[(2, 3), (64, 70)]);
        assert_eq!((w.count(2), w.count(64)), (3, 70));
        let mut mask = LaneMask::none(100);
        assert_eq!(w.take(64, mask.words_mut()), 70);
        assert!(mask.iter().eq(3..73));
        assert!(w.units().eq([2]));
        w.add(69, mask.words(), 70);
        assert_eq!(w.count(69), 70);
        assert_eq!(w.lanes().len(), 73);
    }
}
