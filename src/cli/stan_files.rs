//! `autobatch summary` and `autobatch diagnose`, of files of Stan CSV.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::program::{Error, ErrorKind};
use crate::report::stan_csv::CsvChains;
use crate::report::{Checks, SamplerStatistics, StanSummary, Summary};

use super::args::{DiagnoseArgs, SummaryArgs};
use super::print;

/// The table.
pub(super) fn summary(args: &SummaryArgs) -> Result<ExitCode, Error> {
    let chains = read(&args.files)?;
    print(&StanSummary::of(&chains, args.sig_figs as usize).to_string());
    Ok(ExitCode::SUCCESS)
}

/// The checks.
pub(super) fn diagnose(args: &DiagnoseArgs) -> Result<ExitCode, Error> {
    let chains = read(&args.files)?;
    let summary = Summary::of(&chains.parameters, SamplerStatistics::of_csv(&chains));
    print(&Checks::of(&summary).to_string());
    Ok(ExitCode::SUCCESS)
}

fn read(files: &[PathBuf]) -> Result<CsvChains, Error> {
    let read = |path: &Path| {
        let name = path.display().to_string();
        let text = std::fs::read(path).map_err(|e| Error::new(ErrorKind::Io, format!("cannot read {name}: {e}")))?;
        Ok((name, String::from_utf8_lossy(&text).into_owned()))
    };
    let texts: Vec<(String, String)> = files.iter().map(|path| read(path)).collect::<Result<_, Error>>()?;
    let texts = texts.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    CsvChains::read(texts).map_err(|error| Error::new(ErrorKind::Input, error.to_string()))
}
