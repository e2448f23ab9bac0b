//! `autobatch init`: a folder to begin with.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::program::io::write_atomically;
use crate::program::{Error, ErrorKind};

use super::print;

/// What a folder begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Begin {
    /// A Stan program with data
    Stan,
    /// The same model in the language, with data
    Model,
    /// A program with loops and recursion
    Program,
}

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// What to begin with
    #[arg(value_enum)]
    what: Begin,
    /// The folder; it is made, and what is there is not written over
    #[arg(default_value = ".", value_name = "FOLDER")]
    folder: PathBuf,
}

const STAN: &str = include_str!("../../nuts/models/eight_schools.stan");
const MODEL: &str = include_str!("../../nuts/models/eight_schools.ab");
const DATA: &str = include_str!("../../nuts/data/eight_schools.json");
const PROGRAM: &str = include_str!("../../examples/collatz.ab");

pub(super) fn init(args: &InitArgs) -> Result<ExitCode, Error> {
    let sample = |model: &str| {
        format!(
            "autobatch sample {model} --data data.json --chains 64 --seed 1 --set target_accept=0.95 --output draws.npz"
        )
    };
    let (files, command) = match args.what {
        Begin::Stan => (vec![("model.stan", STAN), ("data.json", DATA)], sample("model.stan")),
        Begin::Model => (vec![("model.ab", MODEL), ("data.json", DATA)], sample("model.ab")),
        Begin::Program => {
            (vec![("program.ab", PROGRAM)], "autobatch run program.ab --entry collatz --input n=[1,6,27]".to_owned())
        }
    };
    let script = format!("#!/bin/sh\nset -e\ncd \"$(dirname \"$0\")\"\n{command} \"$@\"\n");
    let all: Vec<(&str, &str)> = files.into_iter().chain([("run.sh", script.as_str())]).collect();
    let folder = &args.folder;
    let failed = |e: std::io::Error| Error::new(ErrorKind::Io, format!("cannot write {}: {e}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    // All or nothing.
    if let Some((name, _)) = all.iter().find(|(name, _)| folder.join(name).exists()) {
        let message = format!("{} is there: it is not written over", folder.join(name).display());
        return Err(Error::new(ErrorKind::Option, message));
    }
    for (name, text) in &all {
        let path = folder.join(name);
        write_atomically(&path, |out| out.write_all(text.as_bytes()))?;
        make_executable(&path, name);
    }
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    print(&format!("wrote {} in {}; begin with\n    {command}\n", names.join(", "), folder.display()));
    Ok(ExitCode::SUCCESS)
}

/// Lets a script be run by its name, where the system has such a mark.
fn make_executable(path: &Path, name: &str) {
    #[cfg(unix)]
    if Path::new(name).extension().is_some_and(|e| e == "sh") {
        use std::os::unix::fs::PermissionsExt as _;
        // Without the mark `sh run.sh` runs it.
        let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755));
    }
    #[cfg(not(unix))]
    let _ = (path, name);
}
