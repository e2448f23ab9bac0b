//! Whether the ranks that the draws of each chain have among all draws are uniform, as those of chains that agree are.
//!
//! The empirical distribution function of a chain's ranks, less that of the uniform distribution, stays within a band with a
//! probability that is known: Säilynoja, Bürkner and Vehtari, *Graphical test for discrete uniformity and its applications in
//! goodness-of-fit evaluation and multiple sample comparison* (Statistics and Computing 32:32, 2022, doi
//! 10.1007/s11222-022-10090-6). The band is that of their section on several samples: among the t smallest of all draws a
//! chain has a number that is hypergeometric, and these numbers are a Markov chain in t, along which the probability to stay
//! within is added up. Pointwise intervals of one level make the band, and the level is the one with which a chain stays within
//! with the probability that is asked for. L chains stay within together with 0.95 where each does with 0.95 to the power of
//! 1/L; that they are not quite independent makes the band a little wider than need be.
//!
//! It holds for draws that are independent. So chains are thinned by their correlation time first.

use super::correlation_time;

/// The probability that all chains stay within the band.
pub const COVERAGE: f64 = 0.95;
/// Draws of a chain that are looked at, at most: the band takes time with their square.
const MOST_DRAWS: usize = 400;
/// Fewer draws tell nothing.
const FEWEST_DRAWS: usize = 8;
/// Places at which distribution functions are compared.
const POINTS: usize = 40;
/// All draws that the band reckons with: beyond, one chain is nothing among the others.
const MOST_OF_ALL: usize = 100_000;
/// Halvings in the search of the level.
const HALVINGS: usize = 24;

/// The ranks of chains that are thinned.
#[derive(Clone, PartialEq, Debug)]
pub struct ChainRanks {
    /// The rank of each draw of each chain among the draws of all, from 0.
    pub chains: Vec<Vec<u32>>,
    /// Of so many draws one is taken.
    pub thin: usize,
    /// Whether draws depend on one another though they are thinned: so few are left.
    pub dependent: bool,
}

/// Distribution functions of ranks, less the uniform one, with their band.
#[derive(Clone, PartialEq, Debug)]
pub struct Uniformity {
    /// Where, as a part of all ranks.
    pub points: Vec<f64>,
    /// Of each chain, at each point.
    pub differences: Vec<Vec<f64>>,
    /// The least and the most that is expected.
    pub band: Vec<(f64, f64)>,
    /// What one draw of a chain is in its distribution function.
    draw: f64,
}

impl ChainRanks {
    /// Of two or more chains of equal length; nothing where there are too few draws, or draws that are not finite or all equal.
    pub fn of(chains: &[Vec<f64>]) -> Option<Self> {
        let draws = chains.iter().map(Vec::len).min().filter(|draws| chains.len() > 1 && *draws >= FEWEST_DRAWS)?;
        let time = correlation_time(chains);
        if time.is_nan() {
            // Chains that do not move, each at its own place, are there with all their draws.
            let values = || chains.iter().flatten();
            let first = chains[0][0];
            if values().any(|x| !x.is_finite()) || values().all(|x| *x == first) {
                return None;
            }
        }
        let wanted = if time.is_nan() { 1 } else { time.ceil() as usize };
        let thin = wanted.max(draws.div_ceil(MOST_DRAWS)).min(draws / FEWEST_DRAWS);
        let thinned = |chain: &Vec<f64>| chain[..draws].iter().copied().step_by(thin).collect::<Vec<f64>>();
        let chains = ranks(&chains.iter().map(thinned).collect::<Vec<_>>());
        Some(Self { chains, thin, dependent: thin < wanted })
    }

    /// Draws of each chain.
    pub fn draws(&self) -> usize {
        self.chains.first().map_or(0, Vec::len)
    }

    fn all(&self) -> usize {
        self.draws() * self.chains.len()
    }

    /// How many ranks of each chain are in each of so many equal parts of all.
    pub fn histogram(&self, bins: usize) -> Vec<Vec<u32>> {
        let all = self.all();
        let of = |chain: &Vec<u32>| {
            let mut counts = vec![0; bins];
            chain.iter().for_each(|rank| counts[*rank as usize * bins / all] += 1);
            counts
        };
        self.chains.iter().map(of).collect()
    }

    /// The distribution functions, with the band that they stay within together with probability [`COVERAGE`].
    pub fn uniformity(&self) -> Uniformity {
        let (all, draws) = (self.all(), self.draws());
        let count = POINTS.min(draws);
        let part = |i: usize| i as f64 / count as f64;
        let difference = |chain: &Vec<u32>| {
            let mut below = vec![0; count + 1];
            // A rank counts at all points behind it.
            chain.iter().for_each(|rank| below[(*rank as usize * count / all + 1).min(count)] += 1);
            let mut sum = 0;
            (1..count)
                .map(|i| {
                    sum += below[i];
                    f64::from(sum) / draws as f64 - part(i)
                })
                .collect()
        };
        let band = band(self.chains.len(), draws, count);
        Uniformity {
            points: (1..count).map(part).collect(),
            differences: self.chains.iter().map(difference).collect(),
            band,
            draw: 1.0 / draws as f64,
        }
    }
}

impl Uniformity {
    /// How far a chain goes, as a part of the way to the border of the band: above 1 it leaves it.
    pub fn reach(&self, chain: usize) -> f64 {
        // Borders are numbers of draws: half of one beyond is on the way out. Where there are the fewest draws that there can
        // be, and this is within the band, a chain is not at its border.
        let half = self.draw / 2.0;
        let of = self.differences[chain].iter().zip(&self.band);
        of.map(|(d, (low, high))| if *d < 0.0 { d / (low - half) } else { d / (high + half) }).fold(0.0, f64::max)
    }
}

/// Ranks among all, from 0. Equal values are in an order that depends on their places alone, and looks random: so ranks of what
/// is discrete are uniform, too.
fn ranks(chains: &[Vec<f64>]) -> Vec<Vec<u32>> {
    let draws = chains[0].len();
    let mut order: Vec<(f64, u64, usize)> =
        chains.iter().flatten().enumerate().map(|(place, x)| (x + 0.0, scattered(place as u64), place)).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut ranks = vec![vec![0; draws]; chains.len()];
    for (rank, (_, _, place)) in order.into_iter().enumerate() {
        ranks[place / draws][place % draws] = rank as u32;
    }
    ranks
}

/// A number that looks random (the finalizer of SplitMix64).
fn scattered(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The band of differences at the points i / `count`.
fn band(chains: usize, draws: usize, count: usize) -> Vec<(f64, f64)> {
    let each = 1.0 - COVERAGE.powf(1.0 / chains as f64);
    let places = Places::new(chains.min((MOST_OF_ALL / draws).max(2)), draws, count);
    // The level of each point, between one that is surely small enough and one that is not.
    let (mut low, mut high) = ((each / (2.0 * count as f64)).ln(), each.ln());
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if places.leaves(&places.bounds(middle.exp())) <= each { low = middle } else { high = middle }
    }
    let bounds = places.bounds(low.exp());
    let difference = |(i, (low, high)): (usize, (usize, usize))| {
        let of = |k: usize| k as f64 / draws as f64 - (i + 1) as f64 / count as f64;
        (of(low), of(high))
    };
    bounds.into_iter().enumerate().map(difference).collect()
}

/// The numbers of draws of one chain among the first of all draws.
struct Places {
    draws: usize,
    all: usize,
    /// How many of all draws are before each point.
    before: Vec<usize>,
    /// At each point the probability of each number or less.
    below: Vec<Vec<f64>>,
    /// Logarithms of factorials.
    factorials: Vec<f64>,
}

impl Places {
    fn new(chains: usize, draws: usize, count: usize) -> Self {
        let all = chains * draws;
        let mut logarithm = 0.0;
        let next = |n: usize| {
            logarithm += (n.max(1) as f64).ln();
            logarithm
        };
        let factorials = (0..=all).map(next).collect();
        // As many ranks are before the point.
        let before: Vec<usize> = (1..count).map(|i| (i * all).div_ceil(count)).collect();
        let mut places = Self { draws, all, before, below: vec![], factorials };
        places.below = places
            .before
            .iter()
            .map(|t| {
                let mut sum = 0.0;
                (0..=draws)
                    .map(|k| {
                        sum += places.probability(all, draws, *t, k);
                        sum
                    })
                    .collect()
            })
            .collect();
        places
    }

    /// Of drawing `k` of `good` among `all` in `n` draws without putting back.
    fn probability(&self, all: usize, good: usize, n: usize, k: usize) -> f64 {
        if k > good || k > n || n - k > all - good {
            return 0.0;
        }
        let f = &self.factorials;
        let choose = |n: usize, k: usize| f[n] - f[k] - f[n - k];
        (choose(good, k) + choose(all - good, n - k) - choose(all, n)).exp()
    }

    /// The interval at each point outside of which a number is with at most half of this probability on either side.
    fn bounds(&self, level: f64) -> Vec<(usize, usize)> {
        let of = |below: &Vec<f64>| {
            let low = below.partition_point(|p| *p <= level / 2.0);
            let high = below.partition_point(|p| *p < 1.0 - level / 2.0);
            (low, high.min(self.draws))
        };
        self.below.iter().map(of).collect()
    }

    /// The probability that a chain leaves the bounds somewhere.
    fn leaves(&self, bounds: &[(usize, usize)]) -> f64 {
        let (mut first, mut inside, mut before) = (0, vec![1.0], 0);
        for ((low, high), t) in bounds.iter().zip(&self.before) {
            let mut next = vec![0.0; high - low + 1];
            for (k, p) in inside.iter().enumerate().map(|(i, p)| (first + i, p)) {
                for to in (*low).max(k)..=*high {
                    next[to - low] += p * self.probability(self.all - before, self.draws - k, t - before, to - k);
                }
            }
            (first, inside, before) = (*low, next, *t);
        }
        1.0 - inside.iter().sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random and are not.
    fn noise(chains: usize, draws: usize, seed: u64) -> Vec<Vec<f64>> {
        let value = |i: usize| scattered(scattered(seed) ^ i as u64) as f64;
        (0..chains).map(|c| (0..draws).map(|d| value(c * draws + d)).collect()).collect()
    }

    /// Of runs whose chains agree one in twenty leaves the band somewhere; the bound is that of 200 runs.
    #[test]
    fn chains_that_agree_stay_within_the_band() {
        for (chains, draws) in [(4, 100), (2, 60), (16, 50)] {
            let leaves = |seed: &u64| {
                let ranks = ChainRanks::of(&noise(chains, draws, *seed)).expect("there are draws");
                // Thinning by a correlation time that is estimated is none of the band's business.
                let ranks = ChainRanks { chains: ranks_of_all(chains, draws, *seed), ..ranks };
                let uniformity = ranks.uniformity();
                (0..chains).any(|c| uniformity.reach(c) > 1.0)
            };
            let left = (0..200).filter(leaves).count();
            assert!((1..=22).contains(&left), "{left} of 200 with {chains} chains of {draws}");
        }
    }

    fn ranks_of_all(chains: usize, draws: usize, seed: u64) -> Vec<Vec<u32>> {
        ranks(&noise(chains, draws, seed))
    }

    #[test]
    fn the_probability_to_leave_is_that_of_all_orders() {
        // By hand: two chains of two draws have six orders. With t = 2 the first chain has 0, 1 or 2 of the two smallest in 1, 4
        // and 1 of them.
        let places = Places::new(2, 2, 2);
        let told: Vec<f64> = places.below[0].clone();
        assert!((told[0] - 1.0 / 6.0).abs() < 1e-12 && (told[1] - 5.0 / 6.0).abs() < 1e-12, "{told:?}");
        assert!((places.leaves(&[(1, 1)]) - 2.0 / 6.0).abs() < 1e-12);
        assert!(places.leaves(&[(0, 2)]).abs() < 1e-12);
    }

    #[test]
    fn a_chain_apart_leaves_it() {
        let mut chains = noise(4, 200, 7);
        chains[2].iter_mut().for_each(|x| *x *= 1.5);
        let uniformity = ChainRanks::of(&chains).expect("there are draws").uniformity();
        let reach: Vec<f64> = (0..4).map(|c| uniformity.reach(c)).collect();
        assert!(reach[2] > 1.5 && reach[2] >= reach.iter().copied().fold(0.0, f64::max), "{reach:?}");
    }

    #[test]
    fn equal_values_have_ranks_that_look_random() {
        let chains: Vec<Vec<f64>> = noise(4, 100, 3).into_iter().map(|c| c.iter().map(|x| x % 2.0).collect()).collect();
        let ranks = ChainRanks { chains: ranks(&chains), thin: 1, dependent: false };
        let uniformity = ranks.uniformity();
        assert!((0..4).all(|c| uniformity.reach(c) <= 1.0));
        let histogram = ranks.histogram(5);
        assert!(histogram.iter().all(|counts| counts.iter().sum::<u32>() == 100 && counts.iter().all(|n| *n > 5)));
    }

    #[test]
    fn what_tells_nothing_has_no_ranks() {
        assert_eq!(ChainRanks::of(&noise(1, 100, 1)), None);
        assert_eq!(ChainRanks::of(&[vec![1.0; 20], vec![1.0; 20]]), None);
        assert_eq!(ChainRanks::of(&[vec![f64::NAN; 20], vec![1.0; 20]]), None);
        // Chains that are stuck apart.
        assert!(ChainRanks::of(&[vec![1.0; 20], vec![2.0; 20]]).is_some_and(|r| r.uniformity().reach(0) > 1.0));
    }
}
