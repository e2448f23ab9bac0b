//! Whole files, in and out.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{FileAction, IoError};

/// The bytes of a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, IoError> {
    fs::read(path).map_err(|source| failed(path, FileAction::Read, source))
}

/// The text of a file, which must be UTF-8; a byte order mark is dropped.
pub(super) fn read_text(path: &Path) -> Result<String, IoError> {
    let text = String::from_utf8(read(path)?).map_err(|error| IoError::Malformed {
        origin: shown(path),
        message: format!("not UTF-8 after {} bytes", error.utf8_error().valid_up_to()),
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// How an error message names a file.
pub(super) fn shown(path: &Path) -> String {
    format!("`{}`", path.display())
}

pub(super) fn failed(path: &Path, action: FileAction, source: io::Error) -> IoError {
    IoError::File { path: path.to_owned(), action, source }
}

/// Writes a file through `write` into a temporary file beside it that takes its place when all is on disk. On an
/// error the file that was there stays as it was. What is not a regular file (a pipe, `/dev/stdout`) is written directly.
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), IoError> {
    let failed = |source| failed(path, FileAction::Write, source);
    // A link stays a link: its target is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(&target).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        let file = File::options().write(true).open(&target).map_err(failed)?;
        let mut writer = BufWriter::new(file);
        return write(&mut writer).and_then(|()| writer.flush()).map_err(failed);
    }
    let temporary = temporary_beside(&target).map_err(failed)?;
    let written = write_completely(&temporary, write).and_then(|()| fs::rename(&temporary, &target));
    partial_files().retain(|path| *path != temporary);
    written.map_err(|source| {
        // It may never have come into being; the error that matters is the first.
        let _ = fs::remove_file(&temporary);
        failed(source)
    })
}

/// The files that are being written and do not have their names yet.
fn partial_files() -> MutexGuard<'static, Vec<PathBuf>> {
    static FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    // A list of paths is whole whatever a thread did that panicked.
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what is written in part, for a process that ends at once. Nothing may be written after this.
pub fn remove_partial_files() {
    for path in partial_files().drain(..) {
        // What cannot be removed stays: there is nobody left to tell.
        let _ = fs::remove_file(path);
    }
}

fn write_completely(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    partial_files().push(path.to_owned());
    let mut writer = BufWriter::new(File::options().write(true).create_new(true).open(path)?);
    write(&mut writer)?;
    writer.flush()?;
    // Some file systems report a full disk or an exhausted quota only here.
    writer.get_ref().sync_all()
}

/// `dir/draws.npz` as `dir/.draws.npz.PID-N.partial`, where nothing of that name exists yet.
fn temporary_beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"))?;
    let candidate = |attempt: u32| {
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{attempt}.partial", std::process::id()));
        path.with_file_name(hidden)
    };
    let free = (0..1000).map(candidate).find(|candidate| fs::symlink_metadata(candidate).is_err());
    free.ok_or_else(|| io::Error::new(io::ErrorKind::AlreadyExists, "too many partial files beside it"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A folder of its own for a test, removed at the end.
    pub(in crate::program::io) struct Folder(pub(in crate::program::io) PathBuf);

    impl Folder {
        pub(in crate::program::io) fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("autobatch-io-{test}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).expect("a folder for the test");
            Self(path)
        }

        pub(in crate::program::io) fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).expect("the folder of the test");
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = Folder::new("failed-write");
        let path = folder.0.join("draws.json");
        fs::write(&path, "old").unwrap();
        let full = |writer: &mut BufWriter<File>| {
            writer.write_all(b"half of")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        };
        let error = write_atomically(&path, full).unwrap_err();
        assert!(error.to_string().contains("draws.json"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(folder.names(), ["draws.json"]);
    }

    #[test]
    fn a_completed_write_replaces_the_old_file() {
        let folder = Folder::new("completed-write");
        let path = folder.0.join("draws.json");
        fs::write(&path, "old").unwrap();
        write_atomically(&path, |writer| writer.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(folder.names(), ["draws.json"]);
    }

    #[test]
    fn an_unwritable_path_is_an_error_that_names_it() {
        let folder = Folder::new("unwritable");
        for path in [folder.0.join("missing/draws.npz"), folder.0.clone()] {
            let error = write_atomically(&path, |writer| writer.write_all(b"x")).unwrap_err();
            assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error() {
        let error = write_atomically(Path::new("/dev/full"), |writer| writer.write_all(b"x")).unwrap_err();
        assert!(error.to_string().contains("cannot write `/dev/full`"), "{error}");
    }
}
