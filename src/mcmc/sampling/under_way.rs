//! The draws of a run, asked for while it goes on.
//!
//! Chains that keep their draws are asked: a thread of the run copies what all of them have, a piece of a chain at a time, so
//! that no chain waits long for its own records, and computes the parameters of these draws. What goes to a store is read
//! there by who asks.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Draws, PlannedJob, StoredDraws};
use crate::program::Error;
use crate::store::RunStore;

/// Asks a run for its draws while it goes on. A clone asks the same run, one at a time: of two that go on together it asks the
/// one that began last.
///
/// ```
/// use autobatch::Sampler;
/// use autobatch::sampler::DrawsUnderWay;
///
/// let model = "pub fn log_density(q: real[1]) -> real { -0.5 * q[0] * q[0] }";
/// let draws = DrawsUnderWay::new();
/// let sampler = Sampler::of_source(model).chains(2).warmup(50).draws(50).draws_under_way(&draws);
/// let samples = std::thread::scope(|scope| {
///     let run = scope.spawn(|| sampler.run());
///     // As often as wanted; nothing before the chains start and after their end.
///     if let Some(so_far) = draws.now().expect("what there is can be had") {
///         assert!(so_far.draws <= 50);
///     }
///     run.join().expect("nothing panics")
/// })?;
/// assert!(samples.is_complete() && draws.now()?.is_none());
/// # Ok::<(), autobatch::program::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct DrawsUnderWay(Arc<Mutex<Source>>);

/// Who has the draws.
#[derive(Clone, Default)]
enum Source {
    /// No run goes on.
    #[default]
    Nobody,
    /// A thread of the run, which answers.
    Chains(Sender<Question>),
    /// A store.
    Store(PathBuf),
}

/// Where the answer goes.
pub(super) type Question = Sender<Result<Draws, Error>>;

/// As long as this is there, questions are answered.
pub(super) struct Answered<'a>(&'a DrawsUnderWay);

impl Drop for Answered<'_> {
    fn drop(&mut self) {
        self.0.set(Source::Nobody);
    }
}

impl fmt::Debug for DrawsUnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Source::Nobody => "nobody".to_owned(),
            Source::Chains(_) => "chains".to_owned(),
            Source::Store(path) => path.display().to_string(),
        };
        f.debug_tuple("DrawsUnderWay").field(&source).finish()
    }
}

impl DrawsUnderWay {
    /// Of no run yet: [`Sampler::draws_under_way`](crate::Sampler::draws_under_way) says of which.
    pub fn new() -> Self {
        Self::default()
    }

    /// The draws that all chains have at this moment but those that failed, as whole draws: they are the first of those that
    /// the run gives in the end, bit for bit. `None` before the chains start, and after their end. The run goes on
    /// meanwhile. Of a store they are those that are on disk.
    ///
    /// # Errors
    /// Where there is no memory for them, or the store cannot be read.
    pub fn now(&self) -> Result<Option<Draws>, Error> {
        let source = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match source {
            Source::Nobody => Ok(None),
            Source::Store(path) => stored(&path).map(Some),
            Source::Chains(thread) => {
                let (answer, answered) = channel();
                // A run that ends meanwhile answers nobody.
                let asked = thread.send(answer).is_ok();
                drop(thread);
                if asked { answered.recv().ok().transpose() } else { Ok(None) }
            }
        }
    }

    fn set(&self, source: Source) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = source;
    }

    /// Chains run, and a thread answers these questions, until there are no more.
    pub(super) fn of_chains(&self) -> (Answered<'_>, Receiver<Question>) {
        let (ask, questions) = channel();
        self.set(Source::Chains(ask));
        (Answered(self), questions)
    }

    /// Chains run whose draws go to a store.
    pub(super) fn of_store(&self, store: &RunStore) -> Answered<'_> {
        self.set(Source::Store(store.root().to_owned()));
        Answered(self)
    }
}

/// The draws of a store.
fn stored(path: &Path) -> Result<Draws, Error> {
    let planned = PlannedJob::load(path)?;
    let store = RunStore::look_at(path)?;
    StoredDraws::read(&store, &planned.job(&(0..planned.plan().chains)))?.whole(&store)
}
