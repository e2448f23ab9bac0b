//! A store in a ZIP archive: one file to send. It is unpacked where it is read.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zip::ZipArchive;

use crate::program::{Error, ErrorKind};

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
    pub fn new(archive: &Path) -> Result<Self, Error> {
        let refused = |kind: ErrorKind, why: &str| Error::new(kind, format!("{}: {why}", archive.display()));
        let unread = |error: &dyn std::fmt::Display| refused(ErrorKind::Io, &format!("it cannot be unpacked: {error}"));
        let file = File::open(archive).map_err(|error| unread(&error))?;
        let mut zip = ZipArchive::new(BufReader::new(file)).map_err(|error| unread(&error))?;
        let names: Vec<String> = (0..zip.len())
            .map(|at| Ok(zip.by_index_raw(at)?.name()?.into_owned()))
            .collect::<Result<_, zip::result::ZipError>>()
            .map_err(|error| unread(&error))?;
        let tops: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(METADATA)).collect();
        let of_folder = |top: &&&str| top.ends_with('/') && top.matches('/').count() == 1;
        let top = match tops.iter().filter(of_folder).collect::<Vec<_>>()[..] {
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
        zip.extract(&root).map_err(|error| unread(&error))?;
        Ok(Self { root: root.join(top), archive: archive.to_owned(), _folder: folder })
    }

    /// An error that was met in the folder, told of the archive.
    pub fn told(&self, error: Error) -> Error {
        if !error.diagnostics().is_empty() {
            return error;
        }
        let root = self.root.display().to_string();
        let message = error.to_string().replace(root.trim_end_matches('/'), &self.archive.display().to_string());
        Error::new(error.kind(), message)
    }

    /// Whether this is an archive, by its first bytes; not whether it has a store.
    pub fn is_archive(path: &Path) -> bool {
        use std::io::Read as _;
        let mut start = [0; 4];
        path.is_file()
            && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
            && start == *b"PK\x03\x04"
    }

    /// The folder of the store.
    pub fn root(&self) -> &Path {
        &self.root
    }
}
