//! Layer 8: the command line. The only place that prints.

mod advice;
mod args;
#[cfg(feature = "bench")]
mod bench;
#[cfg(feature = "bench")]
mod bench_args;
#[cfg(feature = "bench")]
mod bench_studies;
mod cmdstan;
#[cfg(feature = "codegen")]
mod compile;
mod coords;
mod devices;
mod differences;
mod draws;
mod dump;
mod generated;
mod grad;
mod init;
mod inits;
mod inputs;
mod ir_file;
mod laplace;
mod lines;
mod log_prob;
mod lsp;
mod map;
mod model;
mod optimize;
mod page;
mod pathfinder;
mod profile;
mod progress;
mod quantities;
mod run;
mod sample;
mod sample_args;
mod sample_files;
mod sample_job;
mod sbc;
mod search;
mod search_args;
mod show;
mod signals;
mod sinks;
mod stages;
mod stan;
mod stan_files;
mod stan_texts;
mod store;
mod texts;
mod trace;
mod zarr;

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::Parser as _;

use crate::base::{Diagnostic, SourceMap, work};
use crate::program::io::remove_partial_files;
use crate::program::{Bound, Error, ErrorKind, end_compilers};
use crate::report::render;
use args::{Cli, Command};

/// The words of the command, where the process was started otherwise.
static GIVEN: OnceLock<Vec<OsString>> = OnceLock::new();

/// The words of the command, its name first.
fn arguments() -> Vec<OsString> {
    GIVEN.get().cloned().unwrap_or_else(|| std::env::args_os().collect())
}

/// Runs a command of these words, its name first, once in a process: as [`main`].
pub fn main_of(words: Vec<OsString>) -> ExitCode {
    let _ = GIVEN.set(words);
    main()
}

/// Runs the command that the process was started with. Exit codes: 0 done, 1 an error or a trapped lane, 2 wrong usage,
/// 128 and the number of the signal interrupted: 130 by Ctrl-C.
pub fn main() -> ExitCode {
    let command = match cmdstan::translated(arguments().into_iter()) {
        Ok(command) => command,
        Err(why) => {
            note(&format!("error: {why}"));
            return ExitCode::from(2);
        }
    };
    let cli = Cli::parse_from(command);
    if let Some(seed) = cmdstan::drawn_seed() {
        note(&format!("seed: {seed}"));
    }
    if cli.time_passes {
        work::note_stages();
    }
    let done = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Devices => devices::devices(),
        #[cfg(feature = "codegen")]
        Command::Compile(args) => compile::compile(&args),
        Command::Map(args) => map::map(&args),
        Command::Grad(args) => grad::grad(&args),
        Command::Sample(args) => sample::sample(&args),
        Command::Resume(args) => store::resume(&args),
        Command::Merge(args) => store::merge(&args),
        Command::Sbc(args) => sbc::sbc(&args),
        Command::Summary(args) => stan_files::summary(&args),
        Command::Diagnose(args) => stan_files::diagnose(&args),
        Command::Report(args) => page::report(&args),
        Command::LogProb(args) => log_prob::log_prob(&args),
        Command::Optimize(args) => optimize::optimize(&args),
        Command::Laplace(args) => laplace::laplace(&args),
        Command::Pathfinder(args) => pathfinder::pathfinder(&args),
        Command::GenerateQuantities(args) => quantities::generate(&args),
        Command::Translate(args) => stan::translate(&args),
        #[cfg(feature = "bench")]
        Command::Bench(args) => bench::bench(&args),
        Command::Dump(args) => dump::dump(&args),
        Command::Check(args) => texts::check(&args),
        Command::Fmt(args) => texts::fmt(&args),
        Command::Explain { code } => texts::explain(&code),
        Command::Lsp { .. } => lsp::lsp(),
        Command::Init(args) => init::init(&args),
        Command::Generate(args) => generated::generate(&args),
        Command::Calibrate => {
            let (costs, push) = crate::program::calibrate();
            print(&format!("{costs}\npush or pop of one element of one lane: {push:.2} ns\n"));
            Ok(ExitCode::SUCCESS)
        }
    };
    if cli.time_passes {
        note(&stages::table(&work::stages()));
    }
    match done {
        Ok(code) => code,
        Err(error) if error.kind() == ErrorKind::Compiled => {
            print(&format!("{error}\n"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            report(&error);
            if error.kind() == ErrorKind::Interrupted { signals::interrupted() } else { ExitCode::FAILURE }
        }
    }
}

/// Prints an error to standard error, diagnostics with their source.
fn report(error: &Error) {
    if error.diagnostics().is_empty() {
        note(&format!("error: {error}"));
    } else {
        let color = std::io::stderr().is_terminal();
        note(render::render(error.diagnostics(), error.sources(), color).trim_end_matches('\n'));
    }
}

/// Prints what the compilation to shapes found that is probably not meant.
fn warn(bound: &Bound) {
    show_warnings(bound.warnings(), bound.sources());
}

/// The same without the library's own code, which the user cannot write otherwise.
fn warn_of_own(bound: &Bound) {
    let shipped =
        |w: &&Diagnostic| w.labels.first().is_some_and(|l| bound.sources().file(l.span.file).name.starts_with("std/"));
    let own: Vec<Diagnostic> = bound.warnings().iter().filter(|w| !shipped(w)).cloned().collect();
    show_warnings(&own, bound.sources());
}

fn show_warnings(warnings: &[Diagnostic], sources: &SourceMap) {
    if !warnings.is_empty() {
        let color = std::io::stderr().is_terminal();
        note(render::render(warnings, sources, color).trim_end_matches('\n'));
    }
}

/// Writes to standard output. A closed pipe ends the program quietly: nobody wants the rest. So does a full disk, but with
/// an error.
fn print(text: &str) {
    print_with(|out| out.write_all(text.as_bytes()));
}

/// The same for what is as large as the results: it is written as it is made, and never there as a whole.
fn print_with(write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) {
    let mut out = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    if let Err(error) = write(&mut out).and_then(|()| out.flush()) {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            exit_at_once(0);
        }
        note(&format!("error: cannot write to standard output: {error}"));
        exit_at_once(1);
    }
}

/// Ends the process in the middle of what it does: no partial file stays, and no compiler that works beside a run.
fn exit_at_once(code: i32) -> ! {
    remove_partial_files();
    end_compilers();
    std::process::exit(code)
}

/// Writes a line to standard error, which may be closed: then it is not wanted.
fn note(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// What files of several arrays are called.
const ARRAY_FILES: &[&str] = &["npz", "json"];

/// Refuses an output file that cannot be written before the run, not after it.
fn check_output(path: Option<&Path>, endings: &[&str]) -> Result<(), Error> {
    let Some(path) = path else { return Ok(()) };
    let shown = path.display();
    if !path.extension().is_some_and(|e| endings.iter().any(|ending| e == *ending)) {
        let dotted: Vec<String> = endings.iter().map(|e| format!(".{e}")).collect();
        let message = format!("--output {shown}: the name must end in {}", dotted.join(" or "));
        return Err(Error::new(ErrorKind::Option, message));
    }
    check_place("--output", path)
}

/// One name for a file, whether it is there yet or not.
fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        folder.join(path.file_name().unwrap_or_default())
    })
}

/// Refuses to write over a file that is read: `option` names another.
fn spares(read: impl IntoIterator<Item = PathBuf>, written: &[PathBuf], option: &str) -> Result<(), Error> {
    let written: Vec<PathBuf> = written.iter().map(|path| resolved(path)).collect();
    match read.into_iter().find(|path| written.contains(&resolved(path))) {
        None => Ok(()),
        Some(path) => {
            let message = format!("{} is read, and would be written over: say another {option}", path.display());
            Err(Error::new(ErrorKind::Option, message))
        }
    }
}

/// Refuses a file that cannot be written where it is to be.
fn check_place(option: &str, path: &Path) -> Result<(), Error> {
    let refused = |why: &str| Err(Error::new(ErrorKind::Io, format!("{option} {}: {why}", path.display())));
    if path.is_dir() {
        return refused("this is a folder");
    }
    match path.parent().filter(|p| !p.as_os_str().is_empty()) {
        Some(folder) if !folder.is_dir() => refused(&format!("there is no folder {}", folder.display())),
        _ => Ok(()),
    }
}
