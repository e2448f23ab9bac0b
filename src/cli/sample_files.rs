//! The files that `sample` writes: arrays of all chains, or Stan CSV.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use indexmap::IndexMap;
use serde_json::json;

use crate::mcmc::sampling::{DEFAULT_SAMPLER, Draws, Metric, WarmupStates};
use crate::program::io::{IoError, JsonArray, write_arrays, write_atomically};
use crate::program::{Error, ErrorKind, Options};
use crate::report::stan_csv::{ChainRows, CsvChain, CsvRun, CsvTables};
use crate::store::DATA_SET;
use crate::types::Array;

use super::args::SampleArgs;
use super::sample_args::{DrawsFileArgs, DrawsFormat};
use super::{ARRAY_FILES, check_output, note};

/// The file of Stan CSV where nobody says otherwise.
const CSV: &str = "output.csv";
/// The statistic that a step size is.
const STEPSIZE: &str = "stepsize";
/// Files of chains that are made at most.
const MOST_FILES: usize = 10_000;

/// Where draws go.
pub(super) enum DrawsFile {
    Nowhere,
    Arrays(PathBuf),
    StanCsv(PathBuf),
}

impl DrawsFile {
    /// What is asked for.
    ///
    /// # Errors
    /// For a file that cannot be written, and for what does not go together.
    pub(super) fn new(args: &DrawsFileArgs, chains: usize, id: u64) -> Result<Self, Error> {
        let refused = |message: String| Err(Error::new(ErrorKind::Option, message));
        let (path, format) = (args.output.clone(), args.format);
        let is_csv = path.as_ref().is_some_and(|path| path.extension().is_some_and(|e| e == "csv"));
        if format == Some(DrawsFormat::StanCsv) || is_csv && format.is_none() {
            let path = path.unwrap_or_else(|| PathBuf::from(CSV));
            let listed = files_of_list(&path);
            if listed.len() > 1 && listed.len() != chains {
                let n = listed.len();
                return refused(format!("--output names {n} files for {chains} chains: one, or one for each"));
            }
            if let Some(at) = (1..listed.len()).find(|at| listed[..*at].contains(&listed[*at])) {
                let twice = listed[at].display();
                return refused(format!("--output names {twice} twice: each chain has a file of its own"));
            }
            if chains > MOST_FILES {
                return refused(format!(
                    "{chains} chains would be as many files of Stan CSV: --output FILE.npz has all of them"
                ));
            }
            let file = Self::StanCsv(path);
            file.names(chains, id).iter().try_for_each(|name| check_output(Some(name), &["csv"]))?;
            return Ok(file);
        }
        if args.sig_figs.is_some() {
            return refused("--sig-figs is for Stan CSV: --format stan-csv".to_owned());
        }
        let endings: &[&str] = if format.is_some() { ARRAY_FILES } else { &["npz", "json", "csv"] };
        check_output(path.as_deref(), endings)?;
        match (path, format) {
            (None, Some(_)) => refused("--format arrays: say where, by --output FILE.npz".to_owned()),
            (path, _) => Ok(path.map_or(Self::Nowhere, Self::Arrays)),
        }
    }

    /// The file of each chain that was asked for; one alone keeps the name.
    fn names(&self, chains: usize, first: u64) -> Vec<PathBuf> {
        let Self::StanCsv(path) = self else { return vec![] };
        let listed = files_of_list(path);
        if listed.len() > 1 {
            return listed;
        }
        if chains == 1 {
            return vec![path.clone()];
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        (0..chains as u64).map(|chain| path.with_file_name(format!("{stem}_{}.csv", first + chain))).collect()
    }

    /// Refuses to write over a file that is read.
    ///
    /// # Errors
    /// With its name.
    pub(super) fn spares(&self, read: impl IntoIterator<Item = PathBuf>, chains: usize, id: u64) -> Result<(), Error> {
        let written: Vec<PathBuf> = self.names(chains, id).into_iter().chain(self.path().map(Path::to_owned)).collect();
        super::spares(read, &written, "--output")
    }

    /// Refuses to save metrics where there are no files of chains, and over what is read.
    ///
    /// # Errors
    /// With what to do.
    pub(super) fn takes_metrics(&self, read: &[PathBuf], chains: usize, id: u64) -> Result<(), Error> {
        let refused = |message: String| Err(Error::new(ErrorKind::Option, message));
        if !matches!(self, Self::StanCsv(_)) {
            return refused("--save-metric writes beside the files of chains: --output FILE.csv".to_owned());
        }
        let written: Vec<PathBuf> = self.names(chains, id).iter().map(|path| metric_file(path)).collect();
        match read.iter().find(|path| written.contains(path)) {
            Some(path) => {
                refused(format!("{} is read, and would be written over: say another --output", path.display()))
            }
            None => Ok(()),
        }
    }

    /// The path that a message names.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Nowhere => None,
            Self::Arrays(path) | Self::StanCsv(path) => Some(path),
        }
    }

    /// Writes tables: of each chain one, in the files of Stan CSV with what the header tells of the method.
    ///
    /// # Errors
    /// Where they cannot be written.
    pub(super) fn write_tables(&self, tables: &CsvTables<'_>, id: u64, options: &Options) -> Result<(), Error> {
        match self {
            Self::Nowhere => Ok(()),
            Self::Arrays(path) => {
                let all = named(tables.parameters, tables.statistics);
                write_arrays(path, &all, &IndexMap::new(), options.settings.precision)?;
                note(&format!("written to {}", path.display()));
                Ok(())
            }
            Self::StanCsv(_) => {
                let names = self.names(tables.chains, id);
                let names: Vec<&Path> = names.iter().map(PathBuf::as_path).collect();
                write_files(&names, "draws", &|chain, out| {
                    tables.write(out, chain, id + chain as u64, &names[chain].display().to_string())
                })
            }
        }
    }

    /// Writes the draws.
    ///
    /// # Errors
    /// Where they cannot be written.
    pub(super) fn write(&self, args: &SampleArgs, draws: &Draws, options: &Options) -> Result<(), Error> {
        match self {
            Self::Nowhere => Ok(()),
            Self::Arrays(path) => {
                write_arrays(path, &arrays(draws), &IndexMap::new(), options.settings.precision)?;
                let what = if draws.draws == 0 { "states of warmup" } else { "draws" };
                note(&format!("{what} written to {}", path.display()));
                Ok(())
            }
            Self::StanCsv(_) => {
                let (run, all_names) = (csv_run(args, options), self.names(args.chains, args.chain.id));
                let rows = |chain| ChainRows::of(draws, chain);
                let all: Vec<ChainRows<'_>> = match &draws.each_chain[..] {
                    [] => (0..draws.chains.len()).map(rows).collect(),
                    each => each.iter().map(|chain| ChainRows::alone(chain, draws)).collect(),
                };
                let names: Vec<&Path> = all.iter().map(|rows| &*all_names[rows.number]).collect();
                let what = if draws.draws == 0 { "states of warmup" } else { "draws" };
                write_files(&names, what, &|at, out| {
                    let id = args.chain.id + all[at].number as u64;
                    let file = CsvChain { run: &run, draws, rows: all[at], id };
                    file.write(out, &names[at].display().to_string())
                })?;
                if args.chain.save_metric == Some(true) {
                    let of_chains: Vec<PathBuf> = draws.chains.iter().map(|chain| all_names[*chain].clone()).collect();
                    write_metrics(&of_chains, draws)?;
                }
                Ok(())
            }
        }
    }

    /// Writes the states of warmup of a run that was stopped before its first draw; nothing where they are not kept.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(super) fn write_states(&self, args: &SampleArgs, draws: &Draws, options: &Options) -> Result<(), Error> {
        let some = |states: &Option<WarmupStates>| states.as_ref().is_some_and(|states| states.states > 0);
        let kept = match self {
            Self::Nowhere => return Ok(()),
            Self::Arrays(_) => some(&draws.warmup_states),
            Self::StanCsv(_) => draws.each_chain.iter().any(|chain| some(&chain.warmup_states)),
        };
        if kept {
            return self.write(args, draws, options);
        }
        self.path().iter().for_each(|path| note(&format!("{} is not written", path.display())));
        Ok(())
    }
}

/// Files that are written at one time: each waits for the disk, and a disk takes what many wait for in one go.
const AT_ONCE: usize = 32;

/// Writes files, each by its place among the names, and tells which.
///
/// # Errors
/// Where some cannot be written: why, and which are there.
fn write_files(
    names: &[&Path],
    what: &str,
    write: &(dyn Fn(usize, &mut dyn Write) -> io::Result<()> + Sync),
) -> Result<(), Error> {
    let next = AtomicUsize::new(0);
    let failed: Mutex<Vec<(usize, IoError)>> = Mutex::default();
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(name) = names.get(at) else { break };
            if let Err(error) = write_atomically(name, |out| write(at, out)) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).push((at, error));
            }
        }
    };
    std::thread::scope(|scope| {
        (1..AT_ONCE.min(names.len())).for_each(|_| _ = scope.spawn(work));
        work();
    });
    let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort_unstable_by_key(|(at, _)| *at);
    let is_written = |at: &usize| failed.binary_search_by_key(at, |(at, _)| *at).is_err();
    let written: Vec<&Path> = (0..names.len()).filter(is_written).map(|at| names[at]).collect();
    if !written.is_empty() {
        note(&format!("{what} written to {}", listed(&written)));
    }
    let not: Vec<&Path> = failed.iter().map(|(at, _)| names[*at]).collect();
    match failed.into_iter().next() {
        None => Ok(()),
        Some((_, error)) if names.len() == 1 => Err(error.into()),
        Some((_, error)) => {
            let message = format!("{error}; {} of {} files are not written: {}", not.len(), names.len(), listed(&not));
            Err(Error::new(ErrorKind::Io, message))
        }
    }
}

/// The files of a list, `a.csv,b.csv`, as CmdStan takes it; a path alone is one.
fn files_of_list(path: &Path) -> Vec<PathBuf> {
    let parts: Vec<PathBuf> = path.to_str().map_or(vec![], |text| text.split(',').map(PathBuf::from).collect());
    let all_csv = parts.iter().all(|part| part.extension().is_some_and(|e| e == "csv"));
    if parts.len() > 1 && all_csv { parts } else { vec![path.to_owned()] }
}

/// The file of the metric of a chain whose draws are in another.
fn metric_file(draws: &Path) -> PathBuf {
    let stem = draws.file_stem().unwrap_or_default().to_string_lossy();
    draws.with_file_name(format!("{stem}_metric.json"))
}

/// Writes the step size and the inverse metric of each chain.
fn write_metrics(files: &[PathBuf], draws: &Draws) -> Result<(), Error> {
    let written: Vec<PathBuf> = files.iter().map(|file| metric_file(file)).collect();
    for (chain, name) in written.iter().enumerate() {
        let stepsize =
            draws.statistics.get(STEPSIZE).and_then(|array| array.rows(chain..chain + 1).as_real()?.last().copied());
        let mut metric = json!({ "stepsize": stepsize, "metric_type": draws.metric.name() });
        if let Some(inverse) = draws.inv_metrics.get(chain) {
            // Of a diagonal one a list of numbers, as it is read.
            let mut own = inverse.clone();
            if draws.metric != Metric::Dense {
                own.shape = [own.len()].into_iter().collect();
            }
            metric["inv_metric"] = json!(JsonArray(&own));
        }
        write_atomically(name, |out| {
            let out: &mut dyn Write = out;
            out.write_all(metric.to_string().as_bytes())
        })?;
    }
    match &written[..] {
        [] => {}
        [one] => note(&format!("metric written to {}", one.display())),
        [first, .., last] => note(&format!("metrics written to {} … {}", first.display(), last.display())),
    }
    Ok(())
}

/// The names of a few files, or the first and the last one.
fn listed(names: &[&Path]) -> String {
    match names {
        [] => String::new(),
        [one] => one.display().to_string(),
        [first, .., last] => format!("{} … {}", first.display(), last.display()),
    }
}

/// What the header of Stan CSV tells of the run.
fn csv_run(args: &SampleArgs, options: &Options) -> CsvRun {
    let model = args.model.as_deref().and_then(Path::file_stem).unwrap_or_default();
    let sampler = args.chain.algorithm.map(|a| a.sampler().to_owned());
    let sampler = sampler.or(args.sampler.as_ref().map(|path| path.display().to_string()));
    let shown = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    CsvRun {
        model: format!("{}_model", model.to_string_lossy()),
        sampler: sampler.unwrap_or_else(|| DEFAULT_SAMPLER.to_owned()),
        data: shown(&args.data.data),
        init: shown(&args.chain.starts).or(args.chain.init_radius.clone()).unwrap_or_else(|| "2 (Default)".to_owned()),
        metric_file: (!args.chain.metric_file.is_empty()).then(|| {
            let names: Vec<String> = args.chain.metric_file.iter().map(|path| path.display().to_string()).collect();
            names.join(",")
        }),
        seed: options.settings.seed,
        num_samples: args.draws,
        num_chains: args.chains,
        digits: args.draws_file.digits(),
        saves_metric: args.chain.save_metric == Some(true),
        refresh: args.chain.refresh,
    }
}

/// All arrays of the output file.
fn arrays(draws: &Draws) -> IndexMap<String, Cow<'_, Array>> {
    let mut all = named(&draws.parameters, &draws.statistics);
    if let Some(warmup) = &draws.warmup_states {
        for (name, array) in named(&warmup.parameters, &warmup.statistics) {
            all.insert(format!("warmup.{name}"), array);
        }
    }
    if !draws.traps.is_empty() {
        let numbers = draws.chains.iter().map(|c| *c as i64).collect();
        all.insert("chain".to_owned(), Cow::Owned(Array::int([draws.chains.len()], numbers)));
    }
    if let Some((_, each)) = draws.data_sets {
        let numbers = draws.chains.iter().map(|chain| (chain / each) as i64).collect();
        all.insert(DATA_SET.to_owned(), Cow::Owned(Array::int([draws.chains.len()], numbers)));
    }
    all
}

fn named<'a>(
    parameters: &'a IndexMap<String, Array>,
    statistics: &'a IndexMap<String, Array>,
) -> IndexMap<String, Cow<'a, Array>> {
    let mut all: IndexMap<String, Cow<'_, Array>> =
        parameters.iter().map(|(name, array)| (name.clone(), Cow::Borrowed(array))).collect();
    for (name, array) in statistics {
        // A parameter of the model keeps its name, should it be that of a statistic.
        let name = if all.contains_key(name) { format!("{name}__") } else { name.clone() };
        all.insert(name, Cow::Borrowed(array));
    }
    all
}
