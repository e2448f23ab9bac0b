//! `autobatch summary` and `autobatch diagnose`: of files of Stan CSV, and the test of a gradient.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use indexmap::IndexMap;

use crate::mcmc::gradient_test::GradientTest;
use crate::mcmc::log_prob::LogProb;
use crate::mcmc::protocol::{DRAW, Q};
use crate::program::io::{ArrayType, NamedValues, write_atomically};
use crate::program::{Error, ErrorKind};
use crate::report::{Checks, DataSetsSummary, SetsOfChains, StanSummary, StoredChains, Summary};

use crate::store::read::is_store;
use crate::store::{DATA_SET, UnpackedStore};
use crate::types::DType;

use super::args::{DiagnoseArgs, SummaryArgs};
use super::draws::Drawn;
use super::inits::of_all_chains;
use super::model::{Model, SAMPLED};
use super::{check_output, note, print, spares, zarr};

/// The table.
pub(super) fn summary(args: &SummaryArgs) -> Result<ExitCode, Error> {
    let chains = read(&args.files)?;
    let table = match args.data_set {
        Some(set) => Err(of_data_set(chains, &args.files[0], set)?),
        None => DataSetsSummary::of_stored(&chains).map(|table| (table, chains.state.told(chains.draws))).ok_or(chains),
    };
    let chains = match table {
        Ok((table, told)) => {
            told.iter().for_each(|told| note(&format!("note: {told}")));
            if args.csv_filename.is_some() {
                let message = "--csv-filename is the table of one posterior: name it by --data-set K";
                return Err(Error::new(ErrorKind::Option, message));
            }
            print(&table.to_string());
            return Ok(ExitCode::SUCCESS);
        }
        Err(chains) => chains,
    };
    tell_state(&chains);
    let table = StanSummary::of(&chains, args.sig_figs as usize, &args.percentiles);
    print(&table.to_string());
    if let Some(path) = &args.csv_filename {
        check_output(Some(path), &["csv"])?;
        spares(args.files.iter().cloned(), std::slice::from_ref(path), "--csv-filename")?;
        write_atomically(path, |out| {
            use std::io::Write as _;
            out.write_all(table.csv().as_bytes())
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The checks of files, or the test of a model's gradient.
pub(super) fn diagnose(args: &DiagnoseArgs) -> Result<ExitCode, Error> {
    let has_draws = |path: &PathBuf| {
        path.extension().is_some_and(|e| e == "csv" || e == "npz" || e == "json") || is_draws_store(path)
    };
    if let [model] = &args.files[..]
        && !has_draws(model)
    {
        if args.data_set.is_some() {
            return Err(Error::new(ErrorKind::Option, "--data-set is of draws, and this is a model"));
        }
        return test_gradient(model, args);
    }
    let chains = read_one(&args.files, args.data_set)?;
    tell_state(&chains);
    let summary = Summary::of_stored(&chains);
    let checks = Checks::of(&summary);
    print(&checks.to_string());
    Ok(ExitCode::from(u8::from(args.strict && !checks.all_hold())))
}

/// Says of draws that are not all that they are not.
fn tell_state(chains: &StoredChains) {
    if let Some(told) = chains.state.told(chains.draws) {
        note(&format!("note: {told}"));
    }
}

fn test_gradient(model: &Path, args: &DiagnoseArgs) -> Result<ExitCode, Error> {
    let refused = |message: String| Err(Error::new(ErrorKind::Option, message));
    if !(args.init >= 0.0 && args.init.is_finite()) {
        return refused(format!("--init must be a number from 0 on, not {}", args.init));
    }
    if let Some(wrong) = [args.epsilon, args.error].into_iter().find(|x| !(*x > 0.0 && x.is_finite())) {
        return refused(format!("--epsilon and --error must be greater than 0, not {wrong}"));
    }
    let options = args.engine.options(false)?;
    let loaded = Model::load(model, &args.data, SAMPLED, options.settings.seed)?;
    let model = LogProb::new(&loaded.source(), SAMPLED, |density| loaded.inputs(density))?;
    let test = GradientTest { radius: args.init, epsilon: args.epsilon, error: args.error };
    let tested = model.test_gradient(test, &options)?;
    print(&tested.to_string());
    Ok(ExitCode::from(u8::from(tested.failures() > 0)))
}

/// The chains of files of Stan CSV, of a file of arrays, or of a store.
pub(super) fn read(files: &[PathBuf]) -> Result<StoredChains, Error> {
    if let Some(store) = files.iter().find(|path| is_draws_store(path)) {
        let [store] = files else {
            let message = format!("`{}`: a store has all chains: name it alone", store.display());
            return Err(Error::new(ErrorKind::Option, message));
        };
        return if is_archive(store) { UnpackedStore::read(store, zarr::read) } else { zarr::read(store) };
    }
    let files = &of_all_chains(files, 1)[..];
    if let Some(path) = files.iter().find(|path| path.extension().is_some_and(|e| e == "npz" || e == "json")) {
        let [file] = files else { return Err(Drawn::one_file(&format!("`{}`", path.display()))) };
        return of_arrays(file);
    }
    let read = |path: &Path| {
        let name = path.display().to_string();
        let text = std::fs::read(path).map_err(|e| Error::new(ErrorKind::Io, format!("cannot read {name}: {e}")))?;
        Ok((name, String::from_utf8_lossy(&text).into_owned()))
    };
    let texts: Vec<(String, String)> = files.iter().map(|path| read(path)).collect::<Result<_, Error>>()?;
    let texts = texts.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    StoredChains::of_csv(texts).map_err(|error| Error::new(ErrorKind::Input, error.to_string()))
}

/// The chains of files, of one posterior: that of this data set, where there are many.
///
/// # Errors
/// As [`read`], and where it is not said which data set is meant.
pub(super) fn read_one(files: &[PathBuf], data_set: Option<usize>) -> Result<StoredChains, Error> {
    let chains = read(files)?;
    match (data_set, &chains.sets) {
        (Some(set), _) => of_data_set(chains, &files[0], set),
        (None, Some(SetsOfChains { count, .. })) => {
            let message = format!(
                "{} has the posteriors of {count} data sets: --data-set K names the one that is meant, from 0",
                files[0].display()
            );
            Err(Error::new(ErrorKind::Option, message))
        }
        (None, None) => Ok(chains),
    }
}

fn of_data_set(chains: StoredChains, file: &Path, set: usize) -> Result<StoredChains, Error> {
    let refused = |why: String| Error::new(ErrorKind::Option, format!("--data-set {set}: {}: {why}", file.display()));
    chains.of_data_set(set).map_err(refused)
}

/// Whether this is a store, or was meant to be one.
fn is_draws_store(path: &Path) -> bool {
    is_store(path) || path.extension().is_some_and(|e| e == "zarr") || is_archive(path)
}

/// Whether this is a store in an archive; files of arrays are archives, too.
fn is_archive(path: &Path) -> bool {
    path.extension().is_none_or(|e| e != "npz") && UnpackedStore::is_archive(path)
}

/// What names of states of warmup begin with in a file of arrays.
const WARMUP_STATES: &str = "warmup.";

/// Told of chains of data sets in disorder.
pub(super) fn apart(file: &Path) -> Error {
    let message =
        format!("{}: by `{DATA_SET}` the chains of a data set do not stand together, in their order", file.display());
    Error::new(ErrorKind::Input, message)
}

/// The chains of a file of arrays, as `sample` writes it.
fn of_arrays(file: &Path) -> Result<StoredChains, Error> {
    let values = NamedValues::read(file)?;
    let Drawn { chains, count, arrays } = Drawn::of_arrays(&values)?;
    let sets = match values.get(DATA_SET).filter(|data| data.guess_type().rank == 1) {
        Some(data) => data.to_array(DATA_SET, ArrayType { dtype: DType::Int, rank: 1 })?.as_int().map(<[i64]>::to_vec),
        None => None,
    };
    let sets = sets.filter(|of| of.len() == chains).map(|of| of.iter().map(|set| *set as usize).collect::<Vec<_>>());
    if sets.as_ref().is_some_and(|of| !of.is_sorted()) {
        return Err(apart(file));
    }
    let sets = sets.map(|of| SetsOfChains { count: of.iter().max().map_or(0, |set| set.saturating_add(1)), of });
    // Of a model with a parameter of such a name the statistic has another.
    let has = |name: &str| arrays.contains_key(name);
    let told: Vec<(String, &str)> = DRAW
        .fields
        .iter()
        .filter(|(field, ..)| *field != Q)
        .map(|(field, ..)| {
            (Some(format!("{field}__")).filter(|other| has(other)).unwrap_or((*field).to_owned()), *field)
        })
        .collect();
    let (mut statistics, mut parameters) = (IndexMap::new(), IndexMap::new());
    for (name, array) in arrays.into_iter().filter(|(name, _)| name != Q && !name.starts_with(WARMUP_STATES)) {
        match told.iter().find(|(other, _)| *other == name) {
            Some((_, field)) => drop(statistics.insert((*field).to_owned(), array)),
            None => drop(parameters.insert(name, array)),
        }
    }
    let stepsizes = StoredChains::last_stepsizes(&statistics);
    Ok(StoredChains {
        parameters,
        statistics,
        stepsizes,
        seconds: vec![(0.0, 0.0); chains],
        draws: count,
        numbers: (1..=chains).collect(),
        sets,
        ..StoredChains::default()
    })
}
