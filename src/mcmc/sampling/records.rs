//! The records of chains, as they come.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::parameters::Phase;
use super::watch::State;
use super::{Observer, draws::Recorded};
use crate::base::IdVec;
use crate::mcmc::protocol::{
    self, ADAPTED, DIVERGENT, DRAW, GRADIENTS, ITERATION, LP, N_LEAPFROG, PROGRESS, Records, STATE, STEPSIZE,
    TREEDEPTH, WARMUP,
};
use crate::parts::{Stream, StreamId};
use crate::program::{Error, ErrorKind, Prints};
use crate::run::{AllCaught, Caught, NoMemory, Record, Sink, Trap, TrapKind};
use crate::types::{Array, DType, Scalar, Type};

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
    /// Where records go to a store while the run goes on: what of them waits.
    stored: Option<Waiting>,
}

/// What of the records waits for the store.
#[derive(Debug, Default)]
struct Waiting {
    /// The stream of states.
    state: Option<StreamId>,
    /// Words of rows that could be stored: those before the last state of their chain.
    ready: AtomicUsize,
    /// Is told when some were taken.
    taken: (Mutex<()>, Condvar),
    /// Whether somebody takes them.
    open: AtomicBool,
}

/// Words of rows that may wait for a store before chains wait for it, 64 MiB: there may be as much again on its way.
const MOST_WAITING: usize = 1 << 23;

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
    /// Draws and states of warmup that are in a store, and not here any more.
    stored: (usize, usize),
    /// The last state, and the draws and states of warmup that were made before it.
    checkpoint: Option<(Vec<u64>, (usize, usize))>,
    /// Why it ended before its end.
    pub(super) trap: Option<Trap>,
    /// Where it stays at so many iterations: it waits for chains that other processes run, and what it tells is nothing.
    stays_at: Option<usize>,
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

/// What goes to a store of a chain: rows, and the state that follows them.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// The number of the first draw, and of the first state of warmup.
    pub(super) first: (usize, usize),
    /// Draws, as words.
    pub(super) words: Vec<u64>,
    /// States of warmup, as words.
    pub(super) of_warmup: Vec<u64>,
    /// The state.
    pub(super) state: Vec<u64>,
    pub(super) adapted: Option<Vec<Array>>,
    pub(super) seconds: (f64, f64),
    pub(super) gradients: u64,
}

impl Stored {
    /// The number of the first row of draws, or of states of warmup, and all of them as words.
    pub(super) fn rows(&self, phase: Phase) -> (usize, &[u64]) {
        match phase {
            Phase::Sampling => (self.first.0, &self.words),
            Phase::Warmup => (self.first.1, &self.of_warmup),
        }
    }
}

/// How far a chain is on its way to a store.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ready {
    /// Draws before the last state.
    pub(super) draws: usize,
    /// Those that were taken.
    pub(super) stored: usize,
    /// Whether there is a state that was not taken.
    pub(super) has_state: bool,
    pub(super) trapped: bool,
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

    /// The same, of what is not over until now.
    fn seconds_until(&self, now: Instant) -> (f64, f64) {
        let since = |from: Option<Instant>, to: Option<Instant>| {
            from.map_or(0.0, |from| to.unwrap_or(now).saturating_duration_since(from).as_secs_f64())
        };
        (since(self.started, self.warm), since(self.warm, self.finished))
    }

    /// All but draws and states of warmup, which are many.
    fn without_rows(&self) -> Self {
        let Self { adapted, progress, trap, .. } = self;
        Self {
            adapted: adapted.clone(),
            progress: progress.clone(),
            trap: trap.clone(),
            warm: self.warm,
            started: self.started,
            finished: self.finished,
            ..Self::default()
        }
    }

    /// Adds a draw, one of at most so many; `keeps`: whether they stay here.
    fn add(&mut self, record: &dyn Record, places: Places, (most, keeps): (usize, bool)) {
        record.append_words(&mut self.words);
        let of_draw = &self.words[self.words.len() - places.words..];
        let word = |place: Option<usize>| place.map_or(0, |place| of_draw[place]);
        self.gradients_of_draws += word(places.leapfrogs);
        self.divergent += u64::from(word(places.divergent) != 0);
        if self.draws == 0 && keeps {
            self.words.reserve_exact(self.words.len().saturating_mul(most.saturating_sub(1)));
        }
        self.draws += 1;
        if self.draws == most {
            self.finished = Some(Instant::now());
        }
    }
}

/// Words of a chain that are copied while it waits, half a MiB.
const PIECE: usize = 1 << 16;

/// Copies so many words, a piece at a time.
fn copy_in_pieces(to: &mut Vec<u64>, words: usize, copy: impl Fn(Range<usize>, &mut Vec<u64>)) {
    to.reserve_exact(words);
    (0..words).step_by(PIECE).for_each(|at| copy(at..words.min(at + PIECE), to));
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
        let stored = None;
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
            stored,
        })
    }

    /// The same of chains whose records go to a store; of each so many draws and states of warmup are there already.
    ///
    /// # Errors
    /// For a chain that tells no states.
    pub(super) fn storing(mut self, there: &[(usize, usize)]) -> Result<Self, Error> {
        let state = Some(find(&self.streams, STATE)?);
        self.stored = Some(Waiting { state, open: AtomicBool::new(true), ..Waiting::default() });
        for (chain, there) in self.chains.iter_mut().zip(there) {
            let chain = chain.get_mut().expect("nobody has had it");
            (chain.draws, chain.stored) = (there.0, *there);
        }
        Ok(self)
    }

    /// The same of chains whose last states are looked at, and whose records stay here.
    ///
    /// # Errors
    /// For a chain that tells no states.
    pub(super) fn with_states(self, chains: usize) -> Result<Self, Error> {
        let recorder = self.storing(&vec![(0, 0); chains])?;
        recorder.close();
        Ok(recorder)
    }

    /// The last state that a chain has told.
    pub(super) fn last_state(&self, chain: usize) -> Option<Vec<u64>> {
        let chain = self.chains[chain].lock().expect("no emit panics while it holds the lock");
        chain.checkpoint.as_ref().map(|(state, _)| state.clone())
    }

    /// The same, but that these chains stay where they are, each at so many iterations.
    pub(super) fn staying(mut self, chains: &[(usize, usize)]) -> Self {
        for (chain, iteration) in chains {
            self.chains[*chain].get_mut().expect("nobody has had it").stays_at = Some(*iteration);
        }
        self
    }

    /// Whether records stay here.
    fn stays(&self) -> bool {
        self.stored.as_ref().is_none_or(|stored| !stored.open.load(Ordering::Relaxed))
    }

    /// Words of a record of a draw.
    pub(super) fn row_words(&self) -> usize {
        self.streams[self.draw].fields.iter().map(|(_, ty)| ty.elements()).sum()
    }

    /// States of warmup that a chain has told, those included that are in a store.
    fn warmup_rows(&self, chain: &Chain) -> usize {
        chain.stored.1 + chain.of_warmup.len() / self.row_words().max(1)
    }

    /// A chain that is far ahead of the store waits for it.
    fn wait_for_room(&self, stored: &Waiting) {
        let is_full = || stored.ready.load(Ordering::Relaxed) > MOST_WAITING && stored.open.load(Ordering::Relaxed);
        let (lock, taken) = &stored.taken;
        while is_full() {
            let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
            // With a limit, since what is taken is counted before it is told.
            drop(taken.wait_timeout(guard, Duration::from_millis(100)));
        }
    }

    /// How far each of these chains is on its way to a store.
    pub(super) fn ready(&self, chain: usize) -> Ready {
        let chain = self.chains[chain].lock().expect("no emit panics while it holds the lock");
        let (draws, _) = chain.checkpoint.as_ref().map_or(chain.stored, |(_, rows)| *rows);
        Ready { draws, stored: chain.stored.0, has_state: chain.checkpoint.is_some(), trapped: chain.trap.is_some() }
    }

    /// Words of rows that could be stored.
    pub(super) fn waiting(&self) -> usize {
        self.stored.as_ref().map_or(0, |stored| stored.ready.load(Ordering::Relaxed))
    }

    /// Takes the rows of a chain up to its last state; nothing where there is no new state.
    pub(super) fn take(&self, chain: usize) -> Option<Stored> {
        let mut chain = self.chains[chain].lock().expect("no emit panics while it holds the lock");
        let chain = &mut *chain;
        let (state, rows) = chain.checkpoint.take()?;
        let words = self.row_words();
        let first = chain.stored;
        let part = |of: &mut Vec<u64>, rows: usize| {
            let rest = of.split_off(rows * words);
            std::mem::replace(of, rest)
        };
        let taken = part(&mut chain.words, rows.0 - first.0);
        let of_warmup = part(&mut chain.of_warmup, rows.1 - first.1);
        chain.stored = rows;
        if let Some(stored) = &self.stored {
            stored.ready.fetch_sub(taken.len() + of_warmup.len(), Ordering::Relaxed);
            stored.taken.1.notify_all();
        }
        let gradients = self.gradients_of(chain);
        let (adapted, seconds) = (chain.adapted.clone(), chain.seconds_until(Instant::now()));
        Some(Stored { first, words: taken, of_warmup, state, adapted, seconds, gradients })
    }

    /// Why a chain ended before its end, if it did.
    pub(super) fn trap(&self, chain: usize) -> Option<Trap> {
        self.chains[chain].lock().expect("no emit panics while it holds the lock").trap.clone()
    }

    /// Nobody takes rows any more: no chain waits.
    pub(super) fn close(&self) {
        if let Some(stored) = &self.stored {
            stored.open.store(false, Ordering::Relaxed);
            stored.taken.1.notify_all();
        }
    }

    /// Gradients of the warmup of a chain, as far as it has told.
    fn gradients_of(&self, chain: &Chain) -> u64 {
        let told = |stream: StreamId, record: &Option<Vec<Array>>| {
            number(&self.streams[stream], record.as_ref()?, GRADIENTS).map(|n| n as u64)
        };
        told(self.adapted, &chain.adapted).or_else(|| told(self.progress, &chain.progress)).unwrap_or(0)
    }

    /// The fields of a draw.
    pub(super) fn draw_fields(&self) -> &[(String, Type)] {
        &self.streams[self.draw].fields
    }

    /// A field of the record at the end of warmup.
    pub(super) fn of_adapted(&self, record: &[Array], name: &str) -> Option<Array> {
        let field = self.streams[self.adapted].fields.iter().position(|(n, _)| n == name)?;
        record.get(field).cloned()
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
            warmup: if warm { self.warmup } else { iteration.map_or(chain.stays_at.unwrap_or(0), |n| n as usize) },
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

    /// A copy of what all chains have but those that trapped: the records, the numbers of these chains, and so many draws of
    /// each.
    pub(super) fn so_far(&self) -> (Recorded, Vec<usize>, usize) {
        let locked = |chain: usize| self.chains[chain].lock().expect("no emit panics while it holds the lock");
        let there: Vec<(usize, usize)> = (0..self.chains.len())
            .filter_map(|number| {
                let chain = locked(number);
                chain.trap.is_none().then_some((number, chain.draws))
            })
            .collect();
        let draws = there.iter().map(|(_, draws)| *draws).min().unwrap_or(0);
        let words = draws * self.row_words();
        let mut copies: Vec<Chain> = (0..self.chains.len()).map(|number| locked(number).without_rows()).collect();
        for (number, _) in &there {
            let copy = &mut copies[*number];
            copy.draws = draws;
            // Records stay where they are, and others come behind them.
            let of_warmup = locked(*number).of_warmup.len();
            copy_in_pieces(&mut copy.words, words, |at, to| to.extend_from_slice(&locked(*number).words[at]));
            let states = |at, to: &mut Vec<u64>| to.extend_from_slice(&locked(*number).of_warmup[at]);
            copy_in_pieces(&mut copy.of_warmup, of_warmup, states);
        }
        (self.recorded(copies), there.into_iter().map(|(number, _)| number).collect(), draws)
    }

    pub(super) fn finish(mut self) -> Recorded {
        let chains = std::mem::take(&mut self.chains).into_iter();
        let chains = chains.map(|chain| chain.into_inner().expect("no emit panics while it holds the lock"));
        self.recorded(chains)
    }

    /// The records of chains that have come so far.
    fn recorded(&self, chains: impl IntoIterator<Item = Chain>) -> Recorded {
        let now = Instant::now();
        let chains = chains.into_iter().map(|mut chain| {
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
            chain.add(record, self.places, (self.draws, self.stays()));
            drop(chain);
            self.observer.draw();
            self.observer.between();
        } else if Some(stream) == self.warmup_draw {
            record.append_words(&mut chain.of_warmup);
        } else if (chain.trap.is_some() || chain.stays_at.is_some())
            && (stream == self.adapted || stream == self.progress)
        {
            // It ended in an earlier wave, or has none now.
        } else if stream == self.adapted {
            chain.adapted = Some(record.arrays());
            chain.warm = Some(Instant::now());
        } else if stream == self.progress {
            chain.started.get_or_insert_with(Instant::now);
            chain.progress = Some(record.arrays());
            drop(chain);
            self.observer.between();
        } else if let Some(stored) = self.stored.as_ref().filter(|stored| stored.state == Some(stream)) {
            let mut state = Vec::new();
            record.append_words(&mut state);
            let rows = (chain.draws, self.warmup_rows(&chain));
            let before = chain.checkpoint.as_ref().map_or(chain.stored, |(_, rows)| *rows);
            chain.checkpoint = Some((state, rows));
            let more = (rows.0 - before.0) + (rows.1 - before.1);
            // Before it can be taken.
            stored.ready.fetch_add(more * self.row_words(), Ordering::Relaxed);
            drop(chain);
            self.wait_for_room(stored);
        }
        Ok(())
    }
    fn print(&self, position: usize, line: String) {
        self.prints.tell(format_args!("chain {position}"), false, line);
    }
    fn trapped(&self, trap: &Trap) {
        if trap.kind != TrapKind::Interrupted {
            self.chains[trap.position].lock().expect("no emit panics while it holds the lock").trap =
                Some(trap.clone());
        }
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
