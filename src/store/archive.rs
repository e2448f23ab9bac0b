//! A store in a ZIP archive: one file to send. It is unpacked where it is read.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zip::ZipArchive;
use zip::result::ZipError;

use crate::program::{Error, ErrorKind};
use crate::run::available_memory;

/// What the folder of a store has.
const METADATA: &str = "zarr.json";

/// A store of an archive, in a folder that is there as long as this is.
#[derive(Debug)]
pub struct UnpackedStore {
    root: PathBuf,
    archive: PathBuf,
    _folder: TempDir,
}

impl UnpackedStore {
    /// Unpacks the store of an archive: with the metadata of the store at the top, as zarr's `ZipStore` has it, or with the
    /// folder of the store, as `zip -r` has it.
    ///
    /// # Errors
    /// For what is no archive of one store, and where there is no room for it.
    fn new(archive: &Path) -> Result<Self, Error> {
        let refused = |kind: ErrorKind, why: &str| Error::new(kind, format!("{}: {why}", archive.display()));
        let unread = |error: &dyn std::fmt::Display| refused(ErrorKind::Io, &format!("it cannot be unpacked: {error}"));
        let file = File::open(archive).map_err(|error| unread(&error))?;
        let mut zip = ZipArchive::new(BufReader::new(file)).map_err(|error| unread(&error))?;
        let names: Vec<String> = (0..zip.len())
            .map(|at| Ok(zip.by_index_raw(at)?.name()?.into_owned()))
            .collect::<Result<_, ZipError>>()
            .map_err(|error| unread(&error))?;
        let is_top = |top: &&str| top.strip_suffix('/').is_none_or(|name| !name.is_empty() && !name.contains('/'));
        let tops: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(METADATA)).filter(is_top).collect();
        let top = match tops[..] {
            _ if tops.contains(&"") => "",
            [top] => top,
            [] => {
                let why = format!("there is no store in it: neither {METADATA}, nor a folder with that");
                return Err(refused(ErrorKind::Input, &why));
            }
            [one, other, ..] => {
                return Err(refused(
                    ErrorKind::Input,
                    &format!("there is more than one store in it: {one} and {other}"),
                ));
            }
        };
        let folder = tempfile::Builder::new().prefix("autobatch-").tempdir().map_err(|error| unread(&error))?;
        // By the name of the file, which messages then have.
        let root = folder.path().join(archive.file_stem().unwrap_or_default());
        let mut room = available_memory().unwrap_or(usize::MAX) as u64;
        for at in 0..zip.len() {
            let entry = zip.by_index(at).map_err(|error| unread(&error))?;
            let Some(name) = entry.enclosed_name().filter(|name| entry.is_file() && name.starts_with(top)) else {
                continue;
            };
            let to = root.join(name.strip_prefix(top).unwrap_or(&name));
            // What the archive says about sizes may be a lie.
            let copied = to
                .parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| io::copy(&mut entry.take(room), &mut File::create(&to)?))
                .map_err(|error| unread(&error))?;
            room -= copied;
            if room == 0 {
                return Err(refused(ErrorKind::Input, "it does not fit in memory"));
            }
        }
        Ok(Self { root, archive: archive.to_owned(), _folder: folder })
    }

    /// Reads something in the folder; what is wrong is told of the archive.
    ///
    /// # Errors
    /// As [`new`](Self::new), and what the reader gives.
    pub fn read<T>(archive: &Path, read: impl FnOnce(&Path) -> Result<T, Error>) -> Result<T, Error> {
        let unpacked = Self::new(archive)?;
        read(&unpacked.root).map_err(|error| unpacked.told(error))
    }

    /// An error that was met in the folder, told of the archive.
    fn told(&self, error: Error) -> Error {
        if !error.diagnostics().is_empty() {
            return error;
        }
        let root = self.root.display().to_string();
        let message = error.to_string().replace(&root, &self.archive.display().to_string());
        Error::new(error.kind(), message)
    }

    /// Whether this is an archive, by its first bytes; not whether it has a store.
    pub fn is_archive(path: &Path) -> bool {
        let mut start = [0; 4];
        path.is_file()
            && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
            && start == *b"PK\x03\x04"
    }
}
