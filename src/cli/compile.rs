//! `autobatch compile`: makes the machine code of a command for a kind of GPU, which need not be there.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::program::{Error, ErrorKind};

/// `autobatch compile --arch sm_90 --output codes sample model.ab --data data.json`
#[derive(Debug, Args)]
pub(super) struct CompileArgs {
    /// What the code is for
    #[arg(long, value_parser = ["cuda"], default_value = "cuda")]
    device: String,
    /// The kind of GPU, as NVIDIA names it: sm_90 for an H100, `sm_` and the compute capability without its dot
    #[arg(long, value_name = "SM", value_parser = arch)]
    arch: String,
    /// The folder for the code, which is made; where the GPU is, name it in AUTOBATCH_CACHE
    #[arg(long, value_name = "FOLDER")]
    output: PathBuf,
    /// The command whose programs are compiled
    #[arg(value_parser = ["run", "map", "grad", "sample"])]
    command: String,
    /// All that it takes, but for --device
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

fn arch(text: &str) -> Result<String, String> {
    let number = text.strip_prefix("sm_").and_then(|rest| rest.parse::<u32>().ok());
    match number {
        Some(80..) => Ok(text.to_owned()),
        Some(_) => Err("GPUs of compute capability 8.0 and newer run programs: sm_80 and so on".to_owned()),
        None => Err("a kind of GPU is `sm_` and a number, as in sm_90".to_owned()),
    }
}

pub(super) fn compile(args: &CompileArgs) -> Result<ExitCode, Error> {
    let is_device = |word: &String| word == "--device" || word.starts_with("--device=");
    if args.arguments.iter().any(is_device) {
        let message = "the command that is compiled has no --device of its own: leave it out";
        return Err(Error::new(ErrorKind::Option, message));
    }
    let io = |what: &str, error: std::io::Error| Error::new(ErrorKind::Io, format!("{what}: {error}"));
    std::fs::create_dir_all(&args.output).map_err(|error| io(&format!("`{}`", args.output.display()), error))?;
    let program = std::env::current_exe().map_err(|error| io("this program is not found", error))?;
    // What compiles reads once where code is kept.
    let done = std::process::Command::new(program)
        .args([&args.command, "--device", &format!("cuda-code:{}", args.arch)])
        .args(&args.arguments)
        .env("AUTOBATCH_CACHE", &args.output)
        .status()
        .map_err(|error| io("this program is not started", error))?;
    Ok(if done.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
