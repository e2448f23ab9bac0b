//! What packages of the command have beside it: completions of shells and pages of the manual, made of its arguments, and
//! grammars by which editors colour programs.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::Shell;

use crate::lsp::textmate;
use crate::program::io::write_atomically;
use crate::program::{Error, ErrorKind};

use super::args::Cli;
use super::print;

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct GenerateArgs {
    /// Print the completions of a shell
    #[arg(long, value_enum, value_name = "SHELL")]
    completions: Option<Shell>,
    /// Write the pages of the manual into this folder
    #[arg(long, value_name = "FOLDER")]
    man: Option<PathBuf>,
    /// Print the TextMate grammar of a language, by which editors colour programs
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    textmate: Option<Language>,
}

/// A language that editors colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Language {
    Autobatch,
    Stan,
}

pub(super) fn generate(args: &GenerateArgs) -> Result<ExitCode, Error> {
    if let Some(shell) = args.completions {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "autobatch", &mut text);
        print(&String::from_utf8_lossy(&text));
    }
    if let Some(language) = args.textmate {
        let grammar = match language {
            Language::Autobatch => textmate::autobatch(),
            Language::Stan => textmate::stan(),
        };
        print(&format!("{grammar:#}\n"));
    }
    if let Some(folder) = &args.man {
        let failed = |e: std::io::Error| Error::new(ErrorKind::Io, format!("cannot write {}: {e}", folder.display()));
        std::fs::create_dir_all(folder).map_err(failed)?;
        let mut command = Cli::command();
        command.build();
        page(&command, folder)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The page of a command, and those of its subcommands: `autobatch-sample.1`.
fn page(command: &clap::Command, folder: &Path) -> Result<(), Error> {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        page(sub, folder)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut text = Vec::new();
    let failed = |e: std::io::Error| Error::new(ErrorKind::Io, e.to_string());
    clap_mangen::Man::new(command.clone()).render(&mut text).map_err(failed)?;
    Ok(write_atomically(&folder.join(format!("{name}.1")), |out| out.write_all(&text))?)
}
