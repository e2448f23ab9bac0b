//! Where the time of a run went.

use std::ops::AddAssign;

use crate::base::Loc;

/// What a worker thread of the machine spends its time on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Activity {
    /// Choosing the next block, sending lanes on, giving free slots new lanes, taking the outputs of lanes that are done.
    Scheduling,
    /// Conditions to masks, storing under a mask outside of a kernel, compacting lanes and scattering them back.
    Masks,
    /// Pushes and pops of stack variables, tapes and return addresses.
    Stacks,
    /// Kernels but those named below.
    Kernels,
    /// Matrix and dot products.
    Contractions,
    /// Random draws.
    Random,
    /// Native code that was generated for the program.
    Native,
    /// Records of output streams and printed lines.
    Records,
}

impl Activity {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Scheduling,
        Self::Masks,
        Self::Stacks,
        Self::Kernels,
        Self::Contractions,
        Self::Random,
        Self::Native,
        Self::Records,
    ];
    /// The name in reports and in the JSON format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scheduling => "scheduling",
            Self::Masks => "masks",
            Self::Stacks => "stacks",
            Self::Kernels => "kernels",
            Self::Contractions => "contractions",
            Self::Random => "random",
            Self::Native => "native",
            Self::Records => "records",
        }
    }
}

/// Times in nanoseconds, by activity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Times([u64; Activity::ALL.len()]);

impl Times {
    /// Adds to an activity.
    pub fn add(&mut self, activity: Activity, nanoseconds: u64) {
        self.0[activity as usize] += nanoseconds;
    }
    /// Nanoseconds of an activity.
    pub fn of(&self, activity: Activity) -> u64 {
        self.0[activity as usize]
    }
    /// Nanoseconds of all together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl AddAssign for Times {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(to, from)| *to += from);
    }
}

/// Where the time of a run went, summed over its threads. Blocks, lines and activities each sum to the same total.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Profile {
    /// Blocks (regions count once) in program order: name and location.
    pub blocks: Vec<(String, Loc, Times)>,
    /// Lines of the source, in the order in which they were first run.
    pub lines: Vec<(Loc, Times)>,
    /// Nanoseconds that measuring itself took; in no other figure.
    pub measuring: u64,
}

impl Profile {
    /// By activity.
    pub fn times(&self) -> Times {
        let mut sum = Times::default();
        self.blocks.iter().for_each(|(_, _, times)| sum += *times);
        sum
    }
    /// Adds the figures of another shard of the same run.
    pub(crate) fn merge(&mut self, other: Self) {
        self.measuring += other.measuring;
        if self.blocks.is_empty() {
            self.blocks = other.blocks;
        } else {
            self.blocks.iter_mut().zip(other.blocks).for_each(|(to, from)| to.2 += from.2);
        }
        for (loc, times) in other.lines {
            match self.lines.iter_mut().find(|(l, _)| *l == loc) {
                Some((_, sum)) => *sum += times,
                None => self.lines.push((loc, times)),
            }
        }
    }
}
