//! The `autobatch` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    autobatch::cli::main()
}
