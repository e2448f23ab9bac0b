//! The language server: sessions as files (`tests/filetests/lsp`), and the real process.

mod anywhere;
mod client;
mod process;
mod sessions;
mod textmate;
