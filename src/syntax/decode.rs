//! From the bytes of a file to its text.

use crate::base::{Diagnostic, FileId};
use crate::syntax::span;

/// The text of a source file. `file` is only used for the span of the diagnostic, which is empty and at the start of the file,
/// since a file that is not text has no lines to show.
///
/// # Errors
/// `E0001` when the bytes are not UTF-8 or when there are 4 GiB of them or more.
pub fn decode(file: FileId, bytes: &[u8]) -> Result<String, Diagnostic> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(Diagnostic::error("E0001", "a source file of 4 GiB or more", span(file, 0, 0), "")
            .with_help("cut it into modules and `use` them"));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => {
            let at = error.valid_up_to();
            let line = bytes[..at].iter().filter(|b| **b == b'\n').count() + 1;
            let message = format!("byte 0x{:02x} in line {line} is not UTF-8 text", bytes[at]);
            Err(Diagnostic::error("E0001", message, span(file, 0, 0), "").with_help("save the file as UTF-8"))
        }
    }
}
