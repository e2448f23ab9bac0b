//! Runs whose draws go to a store.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use super::{LoadedModel, Model, Sampler, Samples, Told};
use crate::mcmc::sampling::{Job, Observer, PlannedJob, Resumed, Sampling, StoredDraws, ask_for_more, resume};
use crate::program::{Error, ErrorKind, Terms};
use crate::report::Summary;
use crate::store::{RunStore, UnpackedStore};

impl Sampler {
    /// Of a run whose draws are in a store, made by [`store`](Self::store) or by `autobatch sample --store`:
    /// [`run`](Self::run) goes on with it where it was stopped or killed, and gives all of its draws. Of the settings only
    /// those count that change no draw: threads, engine, code, progress.
    pub fn of_store(path: impl AsRef<Path>) -> Self {
        Self::of(Model::Store(path.as_ref().to_owned()))
    }

    /// Writes the draws to this folder while they are made, as Zarr with the names of ArviZ. There must be nothing yet. The
    /// run can then be killed at any moment and goes on by [`of_store`](Self::of_store).
    #[must_use]
    pub fn store(mut self, path: impl AsRef<Path>) -> Self {
        self.store = Some(path.as_ref().to_owned());
        self
    }

    /// Of a store: the variables that are kept, `q` for the unconstrained state; all of the model's unless said.
    #[must_use]
    pub fn keep(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.keep = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Of a store: only these of the chains, counted from 0, which start and end at multiples of 64 or end with the last;
    /// other processes run the others. The samples are those of the chains that are there then.
    #[must_use]
    pub fn lanes(mut self, chains: Range<usize>) -> Self {
        self.lanes = Some(chains);
        self
    }

    /// Of a store that is there: so many iterations more after warmup of each chain.
    #[must_use]
    pub fn more_draws(mut self, more: usize) -> Self {
        self.more_draws = more;
        self
    }

    /// Whether it goes on with a store.
    pub fn is_stored(&self) -> bool {
        matches!(self.model, Model::Store(_))
    }

    /// Makes the store, and runs nothing: then processes that have its path alone run chains of it, each its own
    /// [`lanes`](Self::lanes) with [`of_store`](Self::of_store) and [`fill`](Self::fill).
    ///
    /// # Errors
    /// As [`run`](Self::run), and where there is something already.
    pub fn make_store(&self) -> Result<(), Error> {
        let Some(path) = &self.store else {
            return Err(Error::new(ErrorKind::Option, "no store is named"));
        };
        let model = self.load(Terms::default())?;
        model.with_sampling(&|sampling, job| model.make(path, sampling, job))
    }

    /// Runs the chains, those of [`lanes`](Self::lanes) or all, into the store, and reads nothing of it. Gives whether chains
    /// wait for what others learn, where warmup is pooled: they go on when all chains have come so far.
    ///
    /// # Errors
    /// As [`run`](Self::run), but that chains which other processes run may lack draws.
    pub fn fill(&self) -> Result<bool, Error> {
        if let Model::Store(path) = &self.model {
            return Ok(self.run_on(path)?.waits);
        }
        self.make_store()?;
        self.store.as_deref().map_or(Ok(false), |path| Ok(self.run_on(path)?.waits))
    }

    /// Runs the chains of a store on, and reads all of its draws.
    pub(super) fn resume(&self, path: &Path) -> Result<Samples, Error> {
        let resumed = self.run_on(path)?;
        let stored = resumed.stored.ok_or_else(|| none_yet(&resumed.store))?;
        samples(&resumed.store, stored)
    }

    fn run_on(&self, path: &Path) -> Result<Resumed, Error> {
        if self.more_draws > 0 && self.lanes.is_some() {
            let message = "more draws are those of all chains: ask for them without lanes, and then run these";
            return Err(Error::new(ErrorKind::Option, message));
        }
        if self.more_draws > 0 && !self.is_stored() {
            let message = "more draws are those of a store that is there: say how many there are to be";
            return Err(Error::new(ErrorKind::Option, message));
        }
        if self.more_draws > 0 {
            ask_for_more(path, self.more_draws)?;
        }
        let observer = |sampling: &Sampling, draws: usize| -> Box<dyn Observer + '_> {
            Box::new(Told::new(self, (sampling.chains(), sampling.kept()), draws))
        };
        resume(path, (self.lanes.clone(), Duration::ZERO), &self.options, (&observer, &|_| ()))
    }
}

impl LoadedModel<'_> {
    /// Makes a store of a job, and runs it.
    pub(super) fn sample_to(&self, path: &Path, sampling: &Sampling, job: &Job<'_>) -> Result<Samples, Error> {
        self.make(path, sampling, job)?;
        self.sampler.resume(path)
    }

    fn make(&self, path: &Path, sampling: &Sampling, job: &Job<'_>) -> Result<(), Error> {
        let (plan, files) = sampling.plan(job, self.sampler.keep.clone(), &self.sampler.options)?;
        match self.sampler.lanes {
            Some(_) => RunStore::join_or_create(path, &plan, &files),
            None => RunStore::create(path, &plan, &files),
        }
    }
}

impl Samples {
    /// The draws of a store, as far as all of its chains have them; also of one in a ZIP archive.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] for what cannot be read or is damaged, [`ErrorKind::Input`] for what is no store of this version, or
    /// where there are no draws yet.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        if UnpackedStore::is_archive(path) {
            return UnpackedStore::read(path, |root| Self::open(root));
        }
        let planned = PlannedJob::load(path)?;
        let store = RunStore::look_at(path)?;
        samples(&store, StoredDraws::read(&store, &planned.job(&(0..planned.plan().chains)))?)
    }
}

fn samples(store: &RunStore, stored: StoredDraws) -> Result<Samples, Error> {
    let draws = stored.whole(store)?;
    if draws.chains.is_empty() {
        let why = draws.traps.first().map(|trap| format!(": chain {}: {trap}", trap.position)).unwrap_or_default();
        return Err(Error::new(ErrorKind::Input, format!("no chain is left{why}")));
    }
    if draws.draws == 0 && draws.asked > 0 {
        return Err(none_yet(store));
    }
    let summary = Summary::of_draws(&draws);
    Ok(Samples::new(draws, summary, store.plan().chains))
}

fn none_yet(store: &RunStore) -> Error {
    let message = format!("{}: there are no draws of all chains yet", store.root().display());
    Error::new(ErrorKind::Interrupted, message)
}
