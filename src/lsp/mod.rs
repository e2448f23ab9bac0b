//! Layer 8: the language server, `autobatch lsp`, for programs of our own language and of Stan.
//!
//! ```text
//! stdin --wire--> server (reader) --queue--> server (worker) --answers--> hover, names, rename, completion, ... --> stdout
//!                                               |                               |
//!                                               state: open documents --analysis: what the checkers found
//! ```
//!
//! What a name means is never found out here: the checkers note it where they resolve it
//! ([`Meanings`](crate::base::Meanings)), also in a program with errors, for all that they understood. Where they did not
//! understand a part of a text, what was known of the last text without errors counts for lines that did not change (`at`);
//! for others there is no answer. A rename is checked by checking again.
//!
//! Positions of the protocol exist in `columns` alone; everything else counts bytes.
//!
//! There is no crate for the protocol here. The one that is kept best ends at the first malformed message, and all types of
//! the protocol are half a megabyte of source for the dozen that are needed.

mod analysis;
mod answers;
mod at;
mod calls;
mod columns;
mod completion;
mod diagnostics;
mod hints;
mod hover;
mod library;
mod names;
mod rename;
mod server;
mod state;
pub mod textmate;
mod uri;
mod wire;

use std::io::{BufRead, Write};

/// Serves a client until it says `exit`, or until the input ends. True where it said `shutdown` before.
pub fn serve(mut input: impl BufRead, output: impl Write + Send + 'static) -> bool {
    server::serve(&mut input, server::Output::new(output))
}
