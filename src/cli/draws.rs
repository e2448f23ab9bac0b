//! Draws that are there: files of Stan CSV, one a chain, or a file of arrays, as our commands write them.

use std::path::PathBuf;

use indexmap::IndexMap;

use crate::program::io::{ArrayType, NamedValues};
use crate::program::{Error, ErrorKind};
use crate::types::{Array, DType};

use super::{note, stan_files};

/// Draws of all chains.
pub(super) struct Drawn {
    pub(super) chains: usize,
    /// Draws of each chain.
    pub(super) count: usize,
    /// Reals, chain × draw × event shape, by the names of variables; of a file of arrays also what a sampler tells.
    pub(super) arrays: IndexMap<String, Array>,
}

impl Drawn {
    /// Reads files by what their names end in.
    ///
    /// # Errors
    /// For files that cannot be read, have no draws, or are not those of one run.
    pub(super) fn read(files: &[PathBuf]) -> Result<Self, Error> {
        if !files.iter().any(|path| path.extension().is_some_and(|e| e == "npz" || e == "json")) {
            return Self::of_csv(files);
        }
        match files {
            [file] => Self::of_arrays(&NamedValues::read(file)?),
            _ => Err(Self::one_file(&format!("`{}`", files[0].display()))),
        }
    }

    /// Told of several files of arrays, the first of which this is.
    pub(super) fn one_file(origin: &str) -> Error {
        Error::new(ErrorKind::Option, format!("{origin}: of files of arrays one has all chains"))
    }

    /// Those of files of Stan CSV.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(super) fn of_csv(files: &[PathBuf]) -> Result<Self, Error> {
        let read = stan_files::read(files)?;
        if read.uneven {
            note(&format!("note: the files have different numbers of draws; {} of each are taken", read.draws));
        }
        Ok(Self { chains: files.len(), count: read.draws, arrays: read.parameters })
    }

    pub(super) fn of_arrays(file: &NamedValues) -> Result<Self, Error> {
        let mut arrays = IndexMap::new();
        for (name, data) in file.iter() {
            let ArrayType { dtype, rank } = data.guess_type();
            // What has no chains and draws is no draw, and reals that are whole look like ints.
            if rank < 2 {
                continue;
            }
            let array =
                data.to_array(name, ArrayType { dtype: if dtype == DType::Bool { dtype } else { DType::Real }, rank })?;
            let flags = array.as_bool().map(|flags| flags.iter().map(|flag| f64::from(u8::from(*flag))).collect());
            let shape = array.shape.clone();
            arrays.insert(name.to_owned(), flags.map_or(array, |flags| Array::real(shape, flags)));
        }
        let (chains, count) = arrays.values().next().map_or((0, 0), |array| (array.shape[0], array.shape[1]));
        if chains * count == 0 {
            return Err(Error::new(ErrorKind::Input, format!("{}: there are no draws", file.origin())));
        }
        if let Some((name, array)) = arrays.iter().find(|(_, array)| array.shape[..2] != [chains, count]) {
            let [other, draws] = [array.shape[0], array.shape[1]];
            let message = format!(
                "{}: `{name}` has {other} chains of {draws} draws, where others have {chains} of {count}",
                file.origin()
            );
            return Err(Error::new(ErrorKind::Input, message));
        }
        Ok(Self { chains, count, arrays })
    }

    /// The values of a variable in one draw, by its place among those of all chains.
    pub(super) fn value(array: &Array, place: usize) -> Array {
        let event = &array.shape[2..];
        let size: usize = event.iter().product();
        let values = &array.as_real().expect("draws are reals")[place * size..][..size];
        Array::real(event.iter().copied(), values.to_vec())
    }
}
