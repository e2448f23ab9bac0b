//! `.npy` files by rows: arrays that are larger than memory, read and written a part at a time.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use super::npy::{Element, Header, read_header_text, write_elements, write_header};
use super::{FileAction, IoError, file, write_atomically};
use crate::types::{Array, Type};

/// A `.npy` file that is read from its first row to its last.
#[derive(Debug)]
pub struct NpyRows {
    reader: BufReader<File>,
    path: PathBuf,
    element: Element,
    shape: Vec<usize>,
    read: usize,
}

impl NpyRows {
    /// Opens a file; `None` when its array has no rows to read one after another: a scalar, or one in Fortran order.
    ///
    /// # Errors
    /// For a file that cannot be read, is no `.npy` file or ends too early.
    pub fn open(path: &Path) -> Result<Option<NpyRows>, IoError> {
        let failed = |source| file::failed(path, FileAction::Read, source);
        let malformed = |message: String| IoError::Malformed { origin: file::shown(path), message };
        let file = File::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let mut reader = BufReader::new(file);
        let text = read_header_text(&mut reader).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => malformed("it ends too early".to_owned()),
            io::ErrorKind::InvalidData => malformed(error.to_string()),
            _ => failed(error),
        })?;
        let header = Header::parse(&text).map_err(malformed)?;
        let element = Element::of(&header.descr)
            .ok_or_else(|| IoError::ElementType { origin: file::shown(path), found: header.descr.clone() })?;
        let bytes = header.elements().and_then(|count| count.checked_mul(element.bytes() as u64));
        if bytes.is_none_or(|bytes| bytes > size) {
            return Err(malformed(format!("an array of shape {:?} does not fit into it", header.shape)));
        }
        if header.fortran_order || header.shape.is_empty() {
            return Ok(None);
        }
        let shape = header.shape.iter().map(|extent| *extent as usize).collect();
        Ok(Some(NpyRows { reader, path: path.to_owned(), element, shape, read: 0 }))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.shape[0]
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of one row in the file.
    pub fn row_bytes(&self) -> usize {
        self.shape[1..].iter().product::<usize>().saturating_mul(self.element.bytes())
    }

    /// Passes over so many rows, or as many as are left.
    ///
    /// # Errors
    /// When the file cannot be read there.
    pub fn skip_rows(&mut self, rows: usize) -> Result<(), IoError> {
        let rows = rows.min(self.shape[0] - self.read);
        // The file is as long as its header says: that was looked at.
        let bytes = i64::try_from(rows as u128 * self.row_bytes() as u128).unwrap_or(i64::MAX);
        self.reader.seek_relative(bytes).map_err(|source| file::failed(&self.path, FileAction::Read, source))?;
        self.read += rows;
        Ok(())
    }

    /// The next rows: so many, or as many as are left.
    ///
    /// # Errors
    /// When the file cannot be read to the end of these rows.
    pub fn next_rows(&mut self, rows: usize) -> Result<Array, IoError> {
        let rows = rows.min(self.shape[0] - self.read);
        let row: usize = self.shape[1..].iter().product();
        let mut raw = vec![0; rows * row * self.element.bytes()];
        self.reader.read_exact(&mut raw).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => {
                IoError::Malformed { origin: file::shown(&self.path), message: "it ends too early".to_owned() }
            }
            _ => file::failed(&self.path, FileAction::Read, source),
        })?;
        self.read += rows;
        let shape = std::iter::once(rows).chain(self.shape[1..].iter().copied());
        Ok(Array::new(shape, self.element.decode(&raw)))
    }
}

/// Writes a `.npy` file of a type whose leading axis are the rows: `next` gives the next of them, until there are none.
/// The file takes its name when all is written.
///
/// # Errors
/// When it cannot be written. An error of `next` is given back as the kind `Other`.
pub fn write_npy_rows(
    path: &Path,
    ty: &Type,
    mut next: impl FnMut() -> io::Result<Option<Array>>,
) -> Result<(), IoError> {
    write_atomically(path, |writer| {
        write_header(writer, ty.dtype, &ty.shape)?;
        while let Some(rows) = next()? {
            write_elements(writer, &rows)?;
        }
        writer.flush()
    })
}

#[cfg(test)]
mod tests {
    use super::super::{read_npy, write_npy};
    use super::*;
    use crate::program::io::file::tests::Folder;

    #[test]
    fn rows_come_in_parts_and_go_in_parts() {
        let folder = Folder::new("npy-rows");
        let (from, to) = (folder.0.join("from.npy"), folder.0.join("to.npy"));
        let array = Array::real([5, 2], (0..10).map(f64::from).collect());
        write_npy(&from, &array).unwrap();
        let mut rows = NpyRows::open(&from).unwrap().unwrap();
        assert_eq!((rows.len(), rows.is_empty()), (5, false));
        let mut parts = vec![];
        write_npy_rows(&to, &array.ty(), || {
            let part = rows.next_rows(2).unwrap();
            parts.push(part.shape[0]);
            Ok((!part.is_empty()).then_some(part))
        })
        .unwrap();
        assert_eq!(parts, [2, 2, 1, 0]);
        assert_eq!(read_npy(&to).unwrap(), array);
    }

    #[test]
    fn a_file_that_ends_early_is_refused_when_it_is_opened() {
        let folder = Folder::new("npy-rows-short");
        let path = folder.0.join("short.npy");
        write_npy(&path, &Array::real([5, 200], vec![0.0; 1000])).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(NpyRows::open(&path).unwrap_err().to_string().contains("does not fit"));
    }
}
