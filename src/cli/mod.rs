//! Layer 8: the command line. The only place that prints.

mod args;
mod dump;
mod inputs;
mod run;
mod sample;
mod sinks;
mod texts;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser as _;

use crate::program::Error;
use crate::report::render;
use args::{Cli, Command};

/// Runs the command that the process was started with. Exit codes: 0 done, 1 an error or a trapped lane, 2 wrong usage,
/// 130 interrupted.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Sample(args) => sample::sample(&args),
        Command::Dump(args) => dump::dump(&args),
        Command::Check(args) => texts::check(&args),
        Command::Fmt(args) => texts::fmt(&args),
        Command::Explain { code } => texts::explain(&code),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

/// Prints an error to standard error, diagnostics with their source.
fn report(error: &Error) {
    if error.diagnostics().is_empty() {
        eprintln!("error: {error}");
    } else {
        let color = std::io::stderr().is_terminal();
        eprint!("{}", render::render(error.diagnostics(), error.sources(), color));
    }
}

/// Writes to standard output; a closed pipe ends the program quietly.
fn print(text: &str) {
    use std::io::Write as _;
    if std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()).is_err() {
        std::process::exit(0);
    }
}
