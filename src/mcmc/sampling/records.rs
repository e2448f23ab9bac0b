//! The records of chains, as they come.

use std::sync::Mutex;
use std::time::Instant;

use super::watch::State;
use super::{Observer, draws::Recorded};
use crate::base::IdVec;
use crate::mcmc::protocol::{
    self, ADAPTED, DIVERGENT, DRAW, GRADIENTS, ITERATION, LP, N_LEAPFROG, PROGRESS, Records, STEPSIZE, TREEDEPTH,
    WARMUP,
};
use crate::parts::{Stream, StreamId};
use crate::program::{Error, ErrorKind, Prints};
use crate::run::{AllCaught, Caught, NoMemory, Record, Sink, Trap};
use crate::types::{Array, DType, Scalar};

/// Keeps the records of all chains.
pub(super) struct Recorder<'a> {
    streams: IdVec<StreamId, Stream>,
    draw: StreamId,
    /// Where the chain has one: a chain of the user's own may tell no states of warmup.
    warmup_draw: Option<StreamId>,
    adapted: StreamId,
    progress: StreamId,
    chains: Vec<Mutex<Chain>>,
    /// Where the density failed after warmup.
    rejected: Mutex<AllCaught>,
    /// Iterations of warmup of each chain.
    warmup: usize,
    /// Draws of each chain that are expected.
    draws: usize,
    places: Places,
    observer: &'a dyn Observer,
    prints: &'a Prints,
}

/// The records of a chain. Draws are words, one record after the other: an array for each field would take an
/// allocation each, and more time than many a draw takes.
#[derive(Default)]
pub(super) struct Chain {
    pub(super) draws: usize,
    pub(super) words: Vec<u64>,
    /// States of warmup, as words, too.
    pub(super) of_warmup: Vec<u64>,
    pub(super) adapted: Option<Vec<Array>>,
    /// When warmup was over.
    warm: Option<Instant>,
    /// The last report from warmup.
    pub(super) progress: Option<Vec<Array>>,
    started: Option<Instant>,
    finished: Option<Instant>,
    /// Of its draws, as they come.
    divergent: u64,
    gradients_of_draws: u64,
}

/// Where fields stand in the record of a draw.
#[derive(Clone, Copy, Default)]
struct Places {
    /// Words of a record.
    words: usize,
    leapfrogs: Option<usize>,
    divergent: Option<usize>,
}

impl Places {
    fn of(stream: &Stream) -> Self {
        let place = |name: &str| {
            let f = stream.fields.iter().position(|(n, ty)| n == name && ty.shape.is_empty())?;
            Some(stream.fields[..f].iter().map(|(_, ty)| ty.elements()).sum())
        };
        let words = stream.fields.iter().map(|(_, ty)| ty.elements()).sum();
        Self { words, leapfrogs: place(N_LEAPFROG), divergent: place(DIVERGENT) }
    }
}

impl Chain {
    /// Seconds of warmup and of sampling, as far as they are over.
    pub(super) fn seconds(&self) -> (f64, f64) {
        let between = |from: Option<Instant>, to: Option<Instant>| match (from, to) {
            (Some(from), Some(to)) => to.saturating_duration_since(from).as_secs_f64(),
            _ => 0.0,
        };
        (between(self.started, self.warm), between(self.warm, self.finished))
    }

    /// Adds a draw, one of at most so many.
    fn add(&mut self, record: &dyn Record, places: Places, most: usize) {
        record.append_words(&mut self.words);
        let of_draw = &self.words[self.words.len() - places.words..];
        let word = |place: Option<usize>| place.map_or(0, |place| of_draw[place]);
        self.gradients_of_draws += word(places.leapfrogs);
        self.divergent += u64::from(word(places.divergent) != 0);
        if self.draws == 0 {
            self.words.reserve_exact(self.words.len().saturating_mul(most.saturating_sub(1)));
        }
        self.draws += 1;
        if self.draws == most {
            self.finished = Some(Instant::now());
        }
    }
}

/// The stream of these records, which must have all their fields.
fn find(streams: &IdVec<StreamId, Stream>, wanted: Records) -> Result<StreamId, Error> {
    let missing =
        |what: String| Err(Error::new(ErrorKind::Entry, format!("the chain emits no {what}: see nuts/protocol.ab")));
    let Some((id, stream)) = streams.iter().find(|(_, s)| s.name == wanted.name) else {
        return missing(format!("`{}`", wanted.name));
    };
    let has = |(name, dtype, rank): &protocol::StreamField| {
        stream.fields.iter().any(|(n, ty)| n == name && ty.dtype == *dtype && ty.shape.len() == *rank)
    };
    match wanted.fields.iter().find(|field| !has(field)) {
        Some((name, dtype, rank)) => {
            let axes = if *rank == 0 { "" } else { "[d]" };
            missing(format!("`{}` with `{name}: {dtype}{axes}`", wanted.name))
        }
        None => Ok(id),
    }
}

impl<'a> Recorder<'a> {
    pub(super) fn new(
        streams: &IdVec<StreamId, Stream>,
        (chains, warmup, draws): (usize, usize, usize),
        observer: &'a dyn Observer,
        prints: &'a Prints,
    ) -> Result<Self, Error> {
        let (draw, adapted, progress) = (find(streams, DRAW)?, find(streams, ADAPTED)?, find(streams, PROGRESS)?);
        // Its records are read by the fields of a draw.
        let same = |id: &StreamId| streams[*id].fields == streams[draw].fields;
        let warmup_draw = find(streams, WARMUP).ok().filter(same);
        let chains = (0..chains).map(|_| Mutex::default()).collect();
        let rejected = Mutex::default();
        let (streams, places) = (streams.clone(), Places::of(&streams[draw]));
        Ok(Self {
            streams,
            draw,
            warmup_draw,
            adapted,
            progress,
            chains,
            rejected,
            warmup,
            draws,
            places,
            observer,
            prints,
        })
    }

    /// What is known of every chain now.
    pub(super) fn states(&self) -> Vec<State> {
        let states = self.chains.iter().map(|c| self.state(&c.lock().expect("no emit panics while it holds the lock")));
        states.collect()
    }

    fn is_warm(&self, chain: &Chain) -> bool {
        self.warmup == 0 || chain.adapted.is_some() || chain.draws > 0
    }

    pub(super) fn rejected_after_warmup(&self) -> Vec<Caught> {
        self.rejected.lock().expect("nothing panics while it holds the lock").clone().into_vec()
    }

    fn state(&self, chain: &Chain) -> State {
        let warm = chain.adapted.is_some() || chain.draws > 0;
        let (adapted, progress) = (&self.streams[self.adapted], &self.streams[self.progress]);
        let records = [(adapted, &chain.adapted), (progress, &chain.progress)];
        let told = |name: &str| {
            let of = |(stream, record): (&Stream, &Option<Vec<Array>>)| number(stream, record.as_ref()?, name);
            self.last_of(chain, name).or_else(|| records.into_iter().find_map(of))
        };
        let of_warmup = |record: &Option<Vec<Array>>, stream: &Stream| {
            number(stream, record.as_ref()?, GRADIENTS).map(|n| n as u64)
        };
        let iteration = chain.progress.as_ref().and_then(|record| number(progress, record, ITERATION));
        State {
            started: chain.started,
            finished: chain.finished,
            warmup: if warm { self.warmup } else { iteration.map_or(0, |n| n as usize) },
            warm,
            draws: chain.draws,
            divergent: chain.divergent,
            gradients: of_warmup(&chain.adapted, adapted).or(of_warmup(&chain.progress, progress)).unwrap_or(0)
                + chain.gradients_of_draws,
            gradients_of_draws: chain.gradients_of_draws,
            stepsize: told(STEPSIZE).unwrap_or(f64::NAN),
            lp: told(LP).unwrap_or(f64::NAN),
            treedepth: told(TREEDEPTH).map_or(0, |n| n as i64),
        }
    }

    /// A scalar of the last draw of a chain.
    fn last_of(&self, chain: &Chain, name: &str) -> Option<f64> {
        let fields = &self.streams[self.draw].fields;
        let f = fields.iter().position(|(n, ty)| n == name && ty.shape.is_empty())?;
        let behind: usize = fields[f..].iter().map(|(_, ty)| ty.elements()).sum();
        let word = chain.words.len().checked_sub(behind).map(|at| chain.words[at])?;
        Some(if fields[f].1.dtype == DType::Real { f64::from_bits(word) } else { word as i64 as f64 })
    }

    pub(super) fn finish(self) -> Recorded {
        let now = Instant::now();
        let chains = self.chains.into_iter().map(|chain| {
            let mut chain = chain.into_inner().expect("no emit panics while it holds the lock");
            // What was stopped has come so far.
            if chain.started.is_some() {
                chain.warm.get_or_insert(now);
                chain.finished.get_or_insert(now);
            }
            chain
        });
        let stream = |id: StreamId| self.streams[id].clone();
        Recorded {
            draw: stream(self.draw),
            adapted: stream(self.adapted),
            progress: stream(self.progress),
            chains: chains.collect(),
        }
    }
}

impl Sink for Recorder<'_> {
    fn emit(&self, position: usize, stream: StreamId, record: &dyn Record) -> Result<(), NoMemory> {
        let mut chain = self.chains[position].lock().expect("no emit panics while it holds the lock");
        if stream == self.draw {
            chain.add(record, self.places, self.draws);
            drop(chain);
            self.observer.draw();
            self.observer.between();
        } else if Some(stream) == self.warmup_draw {
            record.append_words(&mut chain.of_warmup);
        } else if stream == self.adapted {
            chain.adapted = Some(record.arrays());
            chain.warm = Some(Instant::now());
        } else if stream == self.progress {
            chain.started.get_or_insert_with(Instant::now);
            chain.progress = Some(record.arrays());
            drop(chain);
            self.observer.between();
        }
        Ok(())
    }
    fn print(&self, position: usize, line: String) {
        self.prints.tell(format_args!("chain {position}"), false, line);
    }
    fn caught(&self, trap: &Trap) {
        let chain = self.chains[trap.position].lock().expect("no emit panics while it holds the lock");
        if self.is_warm(&chain) {
            drop(chain);
            self.rejected.lock().expect("nothing panics while it holds the lock").note(trap.clone());
        }
    }
}

/// A scalar of a record.
pub(super) fn number(stream: &Stream, record: &[Array], name: &str) -> Option<f64> {
    let f = stream.fields.iter().position(|(n, ty)| n == name && ty.shape.is_empty())?;
    match record[f].get(0) {
        Scalar::Real(r) => Some(r),
        Scalar::Int(i) => Some(i as f64),
        Scalar::Bool(_) => None,
    }
}
