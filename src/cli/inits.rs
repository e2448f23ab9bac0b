//! `--init FILE`: where chains start, by the constrained values of parameters, or by draws of an earlier run.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use crate::mcmc::inits::{starts, takes_values};
use crate::mcmc::protocol::Q;
use crate::program::io::NamedValues;
use crate::program::{Error, ErrorKind, Options};
use crate::report::stan_csv::CsvChains;
use crate::types::Array;

use super::model::Model;
use super::sample_job::read_starts;
use super::stan_files;

/// The radius of what files leave out, as Stan has it.
const RADIUS: f64 = 2.0;
/// What files of starts end in.
const ENDINGS: [&str; 4] = ["json", "csv", "npy", "npz"];

/// The files that the text of `--init` names; `None` for a number.
pub(super) fn files(text: &str) -> Option<Vec<PathBuf>> {
    let all: Vec<PathBuf> = text.split(',').map(|part| PathBuf::from(part.trim())).collect();
    all.iter().all(|path| ENDINGS.iter().any(|ending| path.extension().is_some_and(|e| e == *ending))).then_some(all)
}

/// The starting points of so many chains, the first of which has this number.
///
/// # Errors
/// For files that cannot be read, and what the model does not take.
pub(super) fn inits(
    files: &[PathBuf],
    model: &Model<'_>,
    (chains, id): (usize, u64),
    options: &Options,
) -> Result<Array, Error> {
    let files = of_chains(files, chains, id);
    if files.len() != 1 && files.len() != chains {
        let message = format!("--init names {} files for {chains} chains: one for all, or one for each", files.len());
        return Err(Error::new(ErrorKind::Option, message));
    }
    let first = &files[0];
    let ends = |ending: &str| first.extension().is_some_and(|e| e == ending);
    let values: Vec<NamedValues> = if ends("csv") {
        let read = stan_files::read(&files)?;
        if let Some(q) = read.parameters.get(Q).filter(|q| q.shape.len() == 3)
            && !takes_values(&model.source())?
        {
            return Ok(spaced(q, chains));
        }
        rows(&read, &files, chains)
    } else {
        // A list is one of unconstrained points, and so is what stands alone in an object, of a model that takes no
        // values.
        let named =
            ends("json").then(|| files.iter().map(|path| NamedValues::read(path)).collect::<Result<Vec<_>, _>>());
        match named {
            Some(Ok(named)) if named[0].names().len() != 1 || takes_values(&model.source())? => named,
            Some(Err(error)) if files.len() > 1 => return Err(error.into()),
            _ => return read_starts(first),
        }
    };
    starts(&model.source(), &values, chains, RADIUS, &|function| model.inputs(function), options)
}

/// The point of a file: its only one, or the last row of Stan CSV, which is the best one of `optimize`.
///
/// # Errors
/// For a file that cannot be read, and what the model does not take.
pub(super) fn last(file: &Path, model: &Model<'_>, options: &Options) -> Result<Array, Error> {
    let files = [file.to_owned()];
    if file.extension().is_none_or(|e| e != "csv") {
        let points = inits(&files, model, (1, 1), options)?;
        if points.shape[0] != 1 {
            let message = format!("{}: {} points, where one mode is wanted", file.display(), points.shape[0]);
            return Err(Error::new(ErrorKind::Input, message));
        }
        return Ok(points);
    }
    let read = stan_files::read(&files)?;
    if let Some(q) = read.parameters.get(Q).filter(|q| q.shape.len() == 3)
        && !takes_values(&model.source())?
    {
        let values = q.as_real().expect("columns are reals");
        return Ok(Array::real([1, q.shape[2]], values[(read.draws - 1) * q.shape[2]..][..q.shape[2]].to_vec()));
    }
    let values = [row(&read, &files, read.draws - 1)];
    starts(&model.source(), &values, 1, 0.0, &|function| model.inputs(function), options)
}

/// Of one file that is not there, those with the numbers of the chains behind its name, if they are.
fn of_chains(files: &[PathBuf], chains: usize, id: u64) -> Vec<PathBuf> {
    let [file] = files else { return files.to_vec() };
    let numbered = |chain: u64| {
        let (stem, ending) = (file.file_stem().unwrap_or_default(), file.extension().unwrap_or_default());
        file.with_file_name(format!("{}_{}.{}", stem.to_string_lossy(), chain, ending.to_string_lossy()))
    };
    let all: Vec<PathBuf> = (id..id + chains as u64).map(numbered).collect();
    if !file.is_file() && all.iter().all(|path| path.is_file()) { all } else { vec![file.clone()] }
}

/// Of the draws of files of Stan CSV one for each chain, evenly spaced.
fn rows(read: &CsvChains, files: &[PathBuf], chains: usize) -> Vec<NamedValues> {
    let all = read.draws * read.parameters.values().next().map_or(0, |array| array.shape[0]);
    (0..chains).map(|chain| row(read, files, chain * all / chains.max(1))).collect()
}

/// The same of unconstrained draws.
fn spaced(q: &Array, chains: usize) -> Array {
    let (all, d) = (q.shape[0] * q.shape[1], q.shape[2]);
    let values = q.as_real().expect("columns are reals");
    let picked = (0..chains).flat_map(|chain| values[chain * all / chains.max(1) * d..][..d].iter().copied());
    Array::real([chains, d], picked.collect())
}

/// A row of files of Stan CSV, by its place among those of all.
fn row(read: &CsvChains, files: &[PathBuf], at: usize) -> NamedValues {
    let origin = files.iter().map(|path: &PathBuf| shown(path)).collect::<Vec<_>>().join(", ");
    let values = read.parameters.iter().map(|(name, array)| {
        let event: Vec<usize> = array.shape[2..].to_vec();
        let size: usize = event.iter().product();
        let numbers = array.as_real().expect("columns are reals")[at * size..][..size].to_vec();
        (name.clone(), Array::real(event, numbers))
    });
    NamedValues::of(origin, values.collect::<IndexMap<_, _>>())
}

fn shown(path: &Path) -> String {
    format!("`{}`", path.display())
}
