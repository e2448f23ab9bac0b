//! `autobatch devices`: what programs can run on.

use std::process::ExitCode;

use crate::program::{Error, devices as all};

use super::print;

pub(super) fn devices() -> Result<ExitCode, Error> {
    let lines: Vec<String> = all().into_iter().map(|(name, what)| format!("{name:<10} {what}\n")).collect();
    print(&lines.concat());
    Ok(ExitCode::SUCCESS)
}
