//! Programs of Stan: their syntax, what the checker says about them, and their translation.

pub(crate) mod check;
mod laplace;
mod prints;
mod round_trip;
pub(crate) mod syntax;
mod told;
mod translate;

use std::path::Path;

/// The folder of the project.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A text; bytes that are no UTF-8, which checkouts of others have, are replaced.
fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).expect("the file can be read")).into_owned()
}
