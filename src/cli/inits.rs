//! `--init FILE`: where chains start, by the constrained values of parameters, or by draws of an earlier run.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use crate::mcmc::inits::{parameters, starts, takes_values};
use crate::mcmc::protocol::Q;
use crate::program::io::{ArrayType, NamedValues};
use crate::program::{Error, ErrorKind, Options};
use crate::types::{Array, DType};

use super::draws::Drawn;
use super::model::Model;
use super::sample_job::read_starts;

/// The radius of what files leave out, as Stan has it.
const RADIUS: Option<f64> = Some(2.0);
/// What files of starts end in.
const ENDINGS: [&str; 4] = ["json", "csv", "npy", "npz"];

/// The files that the text of `--init` names; `None` for a number.
pub(super) fn files(text: &str) -> Option<Vec<PathBuf>> {
    let all: Vec<PathBuf> = text.split(',').map(|part| PathBuf::from(part.trim())).collect();
    all.iter().all(|path| ENDINGS.iter().any(|ending| path.extension().is_some_and(|e| e == *ending))).then_some(all)
}

/// Refuses what is neither a number nor a file.
///
/// # Errors
/// With what there is.
pub(super) fn check_radius(text: &str) -> Result<(), Error> {
    if text.trim().parse::<f64>().is_ok() {
        return Ok(());
    }
    let message = format!(
        "--init {text}: a number, how far from 0 chains start at most, or a file that ends in .json, .csv, .npy or .npz"
    );
    Err(Error::new(ErrorKind::Option, message))
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
    match Given::read(&files, model)? {
        Given::Points(points) => Ok(points),
        Given::Values(values) if values.len() > 1 && values.len() != chains => {
            let message = format!("--init has values of {} chains, where there are {chains}", values.len());
            Err(Error::new(ErrorKind::Option, message))
        }
        Given::Values(values) => of_values(&values, model, (chains, RADIUS), options),
        Given::Draws(draws) => {
            // One for each chain, evenly spaced.
            let all = draws.chains * draws.count;
            let places: Vec<usize> = (0..chains).map(|chain| chain * all / chains.max(1)).collect();
            of_draws(&draws, &files, &places, (model, RADIUS), options)
        }
    }
}

/// The points of a file that has the values of all parameters.
///
/// # Errors
/// For a file that cannot be read or lacks a parameter, and what the model does not take.
pub(super) fn complete(file: &Path, model: &Model<'_>, options: &Options) -> Result<Array, Error> {
    let files = [file.to_owned()];
    match Given::read(&files, model)? {
        Given::Points(points) => Ok(points),
        Given::Values(values) => of_values(&values, model, (values.len(), None), options),
        Given::Draws(draws) => {
            let places: Vec<usize> = (0..draws.chains * draws.count).collect();
            of_draws(&draws, &files, &places, (model, None), options)
        }
    }
}

/// The point of a file: its only one, or its last draw, which is the best one of `optimize`.
///
/// # Errors
/// For a file that cannot be read, and what the model does not take.
pub(super) fn last(file: &Path, model: &Model<'_>, options: &Options) -> Result<Array, Error> {
    let files = [file.to_owned()];
    let points = match Given::read(&files, model)? {
        Given::Points(points) => points,
        Given::Values(values) => of_values(&values, model, (1, RADIUS), options)?,
        Given::Draws(draws) => {
            let place = draws.chains * draws.count - 1;
            of_draws(&draws, &files, &[place], (model, Some(0.0)), options)?
        }
    };
    if points.shape[0] != 1 {
        let message = format!("{}: {} points, where one mode is wanted", file.display(), points.shape[0]);
        return Err(Error::new(ErrorKind::Input, message));
    }
    Ok(points)
}

/// What files of starts hold.
enum Given {
    Draws(Drawn),
    /// Values of parameters by their names, those of each file.
    Values(Vec<NamedValues>),
    /// Unconstrained points.
    Points(Array),
}

impl Given {
    fn read(files: &[PathBuf], model: &Model<'_>) -> Result<Self, Error> {
        let first = &files[0];
        let ends = |ending: &str| first.extension().is_some_and(|e| e == ending);
        if ends("csv") {
            return Drawn::of_csv(files).map(Self::Draws);
        }
        if let ([_], true) = (files, ends("json"))
            && let Some(list) = NamedValues::list(first)?
        {
            return Ok(Self::Values(list));
        }
        // A list has no names, nor has `.npy`.
        match files.iter().map(|path| NamedValues::read(path)).collect::<Result<Vec<_>, _>>() {
            Ok(named) => {
                let parameters = parameters(&model.source(), &|function| model.inputs(function))?;
                if parameters.iter().any(|parameter| is_drawn(&named[0], parameter)) {
                    return drawn(&named, &parameters).map(Self::Draws);
                }
                // What stands alone in an object is unconstrained, of a model that takes no values.
                if ends("json") && (named[0].names().len() != 1 || takes_values(&model.source())?) {
                    return Ok(Self::Values(named));
                }
            }
            Err(error) if ends("json") && files.len() > 1 => return Err(error.into()),
            Err(_) => {}
        }
        if files.len() > 1 {
            let message = format!("{}: of files of unconstrained points one has all", first.display());
            return Err(Error::new(ErrorKind::Option, message));
        }
        read_starts(first).map(Self::Points)
    }
}

/// Whether a parameter with so many axes has two more in a file, over chains and draws.
fn is_drawn(file: &NamedValues, (name, rank): &(String, usize)) -> bool {
    file.get(name).is_some_and(|data| data.guess_type().rank == rank + 2)
}

/// The draws of parameters in a file of arrays, which may have other arrays.
fn drawn(files: &[NamedValues], parameters: &[(String, usize)]) -> Result<Drawn, Error> {
    let [file] = files else { return Err(Drawn::one_file(files[0].origin())) };
    let refused = |message: String| Error::new(ErrorKind::Input, format!("{}: {message}", file.origin()));
    let mut arrays: IndexMap<String, Array> = IndexMap::new();
    for name in file.names() {
        // What is given by value would else be left out in silence: of another shape, or a tuple or a complex number whole.
        let is_whole = |other: &str| other.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', '.']));
        let by_value = || refused(format!("`{name}` is no array over chains and draws, as others are"));
        match parameters.iter().find(|(parameter, _)| parameter == name) {
            Some((_, rank)) => {
                let ty = ArrayType { dtype: DType::Real, rank: rank + 2 };
                arrays.insert(name.to_owned(), file.array(name, ty).map_err(|_| by_value())?);
            }
            None if parameters.iter().any(|(parameter, _)| is_whole(parameter)) => return Err(by_value()),
            None => {}
        }
    }
    let (chains, count) = arrays.values().next().map_or((0, 0), |array| (array.shape[0], array.shape[1]));
    if let Some((name, other)) = arrays.iter().find(|(_, array)| array.shape[..2] != [chains, count]) {
        return Err(refused(format!("`{name}` is {}, where there are {chains} chains of {count} draws", other.ty())));
    }
    if chains * count == 0 {
        return Err(refused("there are no draws".to_owned()));
    }
    Ok(Drawn { chains, count, arrays })
}

fn of_values(
    values: &[NamedValues],
    model: &Model<'_>,
    (chains, radius): (usize, Option<f64>),
    options: &Options,
) -> Result<Array, Error> {
    starts(&model.source(), values, chains, radius, &|function| model.inputs(function), options)
}

/// A start for each of these draws.
fn of_draws(
    draws: &Drawn,
    files: &[PathBuf],
    places: &[usize],
    (model, radius): (&Model<'_>, Option<f64>),
    options: &Options,
) -> Result<Array, Error> {
    if let Some(q) = draws.arrays.get(Q).filter(|q| q.shape.len() == 3)
        && !takes_values(&model.source())?
    {
        let points: Vec<Array> = places.iter().map(|place| Drawn::value(q, *place)).collect();
        let numbers = points.iter().flat_map(|point| point.as_real().expect("draws are reals")).copied();
        return Ok(Array::real([places.len(), q.shape[2]], numbers.collect()));
    }
    let origin = files.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ");
    let row = |place: &usize| {
        let values = draws.arrays.iter().map(|(name, array)| (name.clone(), Drawn::value(array, *place)));
        NamedValues::of(origin.clone(), values.collect())
    };
    let rows: Vec<NamedValues> = places.iter().map(row).collect();
    of_values(&rows, model, (places.len(), radius), options)
}

/// Of one file that is not there, those with the numbers of the chains behind its name, if they are.
pub(super) fn of_chains(files: &[PathBuf], chains: usize, id: u64) -> Vec<PathBuf> {
    let [file] = files else { return files.to_vec() };
    let all: Vec<PathBuf> = (id..id + chains as u64).map(|chain| of_chain(file, chain)).collect();
    if !file.is_file() && all.iter().all(|path| path.is_file()) { all } else { vec![file.clone()] }
}

/// The same of as many chains as there are files with consecutive numbers from this one on.
pub(super) fn of_all_chains(files: &[PathBuf], id: u64) -> Vec<PathBuf> {
    let [file] = files else { return files.to_vec() };
    if file.is_file() {
        return files.to_vec();
    }
    let there: Vec<PathBuf> = (id..).map(|chain| of_chain(file, chain)).take_while(|path| path.is_file()).collect();
    if there.is_empty() { files.to_vec() } else { there }
}

/// The file of a chain: the name with its number behind.
fn of_chain(file: &Path, chain: u64) -> PathBuf {
    let (stem, ending) = (file.file_stem().unwrap_or_default(), file.extension().unwrap_or_default());
    file.with_file_name(format!("{}_{}.{}", stem.to_string_lossy(), chain, ending.to_string_lossy()))
}
