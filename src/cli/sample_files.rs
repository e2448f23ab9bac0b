//! The files that `sample` writes: arrays of all chains, or Stan CSV.

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde_json::json;

use crate::mcmc::sampling::{DEFAULT_SAMPLER, Draws, Metric};
use crate::program::io::{JsonArray, write_arrays, write_atomically};
use crate::program::{Error, ErrorKind, Options};
use crate::report::stan_csv::{CsvChain, CsvRun, CsvTables};
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
            let listed = listed(&path).len();
            if listed > 1 && listed != chains {
                return refused(format!("--output names {listed} files for {chains} chains: one, or one for each"));
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
        let listed = listed(path);
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
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut written: Vec<PathBuf> = self.names(chains, id).iter().map(|path| real(path)).collect();
        if written.is_empty() {
            written.extend(self.path().map(real));
        }
        match read.into_iter().find(|path| written.contains(&real(path))) {
            None => Ok(()),
            Some(path) => {
                let message = format!("{} is read, and would be written over: say another --output", path.display());
                Err(Error::new(ErrorKind::Option, message))
            }
        }
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
                for (chain, name) in names.iter().enumerate() {
                    write_atomically(name, |out| {
                        let out: &mut dyn Write = out;
                        tables.write(out, chain, id + chain as u64, &name.display().to_string())
                    })?;
                }
                told(&names);
                Ok(())
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
                note(&format!("draws written to {}", path.display()));
                Ok(())
            }
            Self::StanCsv(path) => {
                let (run, names) = (csv_run(args, options), self.names(args.chains, args.chain.id));
                let mut written = Vec::with_capacity(draws.chains.len());
                for (chain, number) in draws.chains.iter().enumerate() {
                    let name = &names[*number];
                    let file = CsvChain { run: &run, draws, chain, id: args.chain.id + *number as u64 };
                    write_atomically(name, |out| {
                        let out: &mut dyn Write = out;
                        file.write(out, &name.display().to_string())
                    })?;
                    written.push(name.clone());
                }
                told(&written);
                debug_assert!(path.extension().is_some());
                if args.chain.save_metric == Some(true) {
                    write_metrics(&written, draws)?;
                }
                Ok(())
            }
        }
    }
}

/// The files of a list, `a.csv,b.csv`, as CmdStan takes it; a path alone is one.
fn listed(path: &Path) -> Vec<PathBuf> {
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

/// Tells of the files of chains.
fn told(names: &[PathBuf]) {
    match names {
        [] => {}
        [one] => note(&format!("draws written to {}", one.display())),
        [first, .., last] => note(&format!("draws written to {} … {}", first.display(), last.display())),
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
