//! `--init FILE`: where chains start, by the constrained values of parameters, or by draws of an earlier run.

use std::path::{Path, PathBuf};

use crate::mcmc::inits::{parameters, starts, takes_values};
use crate::mcmc::protocol::Q;
use crate::program::io::NamedValues;
use crate::program::{Error, ErrorKind, Options};
use crate::types::Array;

use super::draws::Drawn;
use super::model::Model;
use super::sample_job::read_starts;

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
    match Given::read(&files, model)? {
        Given::Points(points) => Ok(points),
        Given::Values(values) => of_values(&values, model, (chains, RADIUS), options),
        Given::Draws(draws) => {
            // One for each chain, evenly spaced.
            let all = draws.chains * draws.count;
            let places: Vec<usize> = (0..chains).map(|chain| chain * all / chains.max(1)).collect();
            of_draws(&draws, &files, &places, (model, RADIUS), options)
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
            of_draws(&draws, &files, &[place], (model, 0.0), options)?
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

/// The draws of a file of arrays: those of parameters, since such a file does not say what else it has.
fn drawn(files: &[NamedValues], parameters: &[(String, usize)]) -> Result<Drawn, Error> {
    let mut draws = Drawn::of_arrays(files)?;
    draws.arrays.retain(|name, _| parameters.iter().any(|(parameter, _)| parameter == name));
    draws.check(files[0].origin())?;
    Ok(draws)
}

fn of_values(
    values: &[NamedValues],
    model: &Model<'_>,
    (chains, radius): (usize, f64),
    options: &Options,
) -> Result<Array, Error> {
    starts(&model.source(), values, chains, radius, &|function| model.inputs(function), options)
}

/// A start for each of these draws.
fn of_draws(
    draws: &Drawn,
    files: &[PathBuf],
    places: &[usize],
    (model, radius): (&Model<'_>, f64),
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
fn of_chains(files: &[PathBuf], chains: usize, id: u64) -> Vec<PathBuf> {
    let [file] = files else { return files.to_vec() };
    let numbered = |chain: u64| {
        let (stem, ending) = (file.file_stem().unwrap_or_default(), file.extension().unwrap_or_default());
        file.with_file_name(format!("{}_{}.{}", stem.to_string_lossy(), chain, ending.to_string_lossy()))
    };
    let all: Vec<PathBuf> = (id..id + chains as u64).map(numbered).collect();
    if !file.is_file() && all.iter().all(|path| path.is_file()) { all } else { vec![file.clone()] }
}
