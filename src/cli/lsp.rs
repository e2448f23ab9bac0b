//! `autobatch lsp`: the language server, over standard input and output.

use std::io::BufReader;
use std::process::ExitCode;

use crate::program::Error;

/// Serves until the client ends it: 0 where it shut the server down before, 1 otherwise, as the protocol wants it.
pub(super) fn lsp() -> Result<ExitCode, Error> {
    let done = crate::lsp::serve(BufReader::new(std::io::stdin()), std::io::stdout());
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
