//! NumPy's `.npz`: a zip archive with one `.npy` file an array.

use std::borrow::Borrow;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use indexmap::IndexMap;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::{FileAction, IoError, file, npy, write_atomically};
use crate::types::Array;

/// Reads all arrays of a `.npz` file, compressed or not, in the order of the archive.
pub fn read_npz(path: &Path) -> Result<IndexMap<String, Array>, IoError> {
    let failed = |source| file::failed(path, FileAction::Read, source);
    let archived = |error: ZipError| match error {
        ZipError::Io(source) if source.kind() != io::ErrorKind::UnexpectedEof => failed(source),
        other => IoError::Malformed { origin: file::shown(path), message: other.to_string() },
    };
    let mut archive = ZipArchive::new(BufReader::new(File::open(path).map_err(failed)?)).map_err(archived)?;
    let mut arrays = IndexMap::new();
    for i in 0..archive.len() {
        let entry = archive.by_index(i).map_err(archived)?;
        let entry_name = entry.name().map_err(archived)?.into_owned();
        let Some(name) = entry_name.strip_suffix(".npy").map(str::to_owned) else { continue };
        let origin = format!("`{name}` in {}", file::shown(path));
        // What the archive says about the size may be a lie: the reader allocates only for what is really there.
        let size = entry.size();
        arrays.insert(name, npy::read(entry, size, &origin, failed)?);
    }
    Ok(arrays)
}

/// Writes arrays to a `.npz` file, uncompressed, so that NumPy can map them into memory.
pub fn write_npz<A: Borrow<Array>>(path: &Path, arrays: &IndexMap<String, A>) -> Result<(), IoError> {
    write_atomically(path, |writer| write(writer, arrays))
}

fn write<A: Borrow<Array>>(writer: &mut BufWriter<File>, arrays: &IndexMap<String, A>) -> io::Result<()> {
    let mut output = FirstError { writer, error: None, at: 0, end: 0 };
    let archived = write_archive(&mut output, arrays);
    output.error.map_or(archived, Err)
}

/// Keeps the first error and takes whatever comes after it, as if there were no end of room: a zip writer that is dropped after
/// an error tries to go on, and prints that it cannot. It finds what it measures, so there is a position still.
struct FirstError<'w> {
    writer: &'w mut BufWriter<File>,
    error: Option<io::Error>,
    at: u64,
    end: u64,
}

impl FirstError<'_> {
    fn keep<T>(&mut self, instead: T, action: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> io::Result<T> {
        if self.error.is_some() {
            return Ok(instead);
        }
        action(self.writer).or_else(|error| {
            self.error = Some(error);
            Ok(instead)
        })
    }
}

impl Write for FirstError<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.keep(bytes.len(), |writer| writer.write(bytes))?;
        self.at += written as u64;
        self.end = self.end.max(self.at);
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.keep((), Write::flush)
    }
}

impl Seek for FirstError<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => place,
            SeekFrom::End(by) => self.end.saturating_add_signed(by),
            SeekFrom::Current(by) => self.at.saturating_add_signed(by),
        };
        self.at = self.keep(place, |writer| writer.seek(to))?;
        Ok(self.at)
    }
}

/// The bytes of an archive of arrays, as [`write_npz`] writes it.
///
/// # Errors
/// Where an array is too large for an archive.
pub fn npz_bytes<A: Borrow<Array>>(arrays: &IndexMap<String, A>) -> Result<Vec<u8>, IoError> {
    let mut bytes = io::Cursor::new(Vec::new());
    write_archive(&mut bytes, arrays)
        .map_err(|error| IoError::Malformed { origin: "the archive".to_owned(), message: error.to_string() })?;
    Ok(bytes.into_inner())
}

fn write_archive<A: Borrow<Array>>(output: impl Write + Seek, arrays: &IndexMap<String, A>) -> io::Result<()> {
    let mut archive = ZipWriter::new(output);
    for (name, array) in arrays {
        let array = array.borrow();
        // Beyond 4 GiB the sizes need more bits, which must be known before.
        let large = array.len() as u64 > u64::from(u32::MAX) / 16;
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(large);
        archive.start_file(format!("{name}.npy"), options)?;
        let mut buffered = BufWriter::with_capacity(1 << 16, &mut archive);
        npy::write(&mut buffered, array)?;
        buffered.flush()?;
    }
    archive.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::io::file::tests::Folder;

    fn sample() -> IndexMap<String, Array> {
        let mut arrays = IndexMap::new();
        arrays.insert("theta".to_owned(), Array::real([2, 3, 2], (0..12).map(f64::from).collect()));
        arrays.insert("divergent".to_owned(), Array::bool([2, 3], vec![false; 6]));
        arrays.insert("n_leapfrog".to_owned(), Array::int([2, 3], vec![7; 6]));
        arrays
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_one_error() {
        for buffered in [1, 16, 100, 700, 1 << 20] {
            let full = || BufWriter::with_capacity(buffered, File::options().write(true).open("/dev/full").unwrap());
            let kind = write(&mut full(), &sample()).map_err(|error| error.kind());
            // What stays in the buffer fails when the file is closed.
            assert!(kind.is_ok() || kind == Err(io::ErrorKind::StorageFull), "{buffered}: {kind:?}");
            assert!(kind.is_err() || buffered > 700, "{buffered}");
            // The archive has no error of its own, which it would print.
            let mut writer = full();
            let mut output = FirstError { writer: &mut writer, error: None, at: 0, end: 0 };
            assert!(write_archive(&mut output, &sample()).is_ok(), "{buffered}");
        }
    }

    #[test]
    fn archives_written_are_read_back() {
        let folder = Folder::new("npz");
        let path = folder.0.join("draws.npz");
        write_npz(&path, &sample()).unwrap();
        assert_eq!(read_npz(&path).unwrap(), sample());
    }

    /// `numpy.savez_compressed("x.npz", a=numpy.arange(3), b=numpy.array([[True]]))` with NumPy 2.4.6.
    #[test]
    fn compressed_archives_of_numpy_are_read() {
        let arrays =
            read_npz(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/numpy_compressed.npz"))).unwrap();
        let names: Vec<&String> = arrays.keys().collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(arrays["a"], Array::int([3], vec![0, 1, 2]));
        assert_eq!(arrays["b"], Array::bool([1, 1], vec![true]));
    }

    #[test]
    fn damaged_archives_never_panic() {
        let folder = Folder::new("npz-damaged");
        let path = folder.0.join("draws.npz");
        write_npz(&path, &sample()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for length in (0..bytes.len()).step_by(7) {
            std::fs::write(&path, &bytes[..length]).unwrap();
            assert!(read_npz(&path).unwrap_err().to_string().contains("draws.npz"));
        }
        for position in (0..bytes.len()).step_by(3) {
            let mut damaged = bytes.clone();
            damaged[position] ^= 0xff;
            std::fs::write(&path, &damaged).unwrap();
            let _ = read_npz(&path);
        }
    }

    #[test]
    fn a_missing_file_is_an_error_that_names_it() {
        let error = read_npz(Path::new("no/such.npz")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read `no/such.npz`"), "{error}");
    }
}
