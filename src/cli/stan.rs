//! Stan programs on the command line.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value};

use crate::program::io::parse_json;
use crate::program::{Error, ErrorKind, StanModel, Terms};

use super::args::TranslateArgs;
use super::print;

/// What a sampler takes of a log density: `lp__` of Stan's files.
pub(super) const SAMPLED: Terms = Terms { constants: false, jacobian: true };

/// Whether a path is that of a Stan program.
pub(super) fn is_stan(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "stan")
}

/// A Stan program with its data, translated; `None` for the path of any other program.
pub(super) fn load(path: &Path, data: Option<&Path>, terms: Terms) -> Result<Option<StanModel>, Error> {
    if !is_stan(path) {
        return Ok(None);
    }
    let model = StanModel::load(path, &read_data(data)?, terms)?;
    let (warnings, sources) = model.warnings();
    super::show_warnings(warnings, sources);
    Ok(Some(model))
}

fn read_data(path: Option<&Path>) -> Result<Map<String, Value>, Error> {
    let Some(path) = path else { return Ok(Map::new()) };
    let name = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|e| Error::new(ErrorKind::Io, format!("cannot read {name}: {e}")))?;
    match parse_json(&text, &name)? {
        Value::Object(map) => Ok(map),
        _ => Err(Error::new(ErrorKind::Input, format!("{name}: data of a Stan program are one object of JSON"))),
    }
}

/// `autobatch translate`
pub(super) fn translate(args: &TranslateArgs) -> Result<ExitCode, Error> {
    match load(&args.model, args.data.as_deref(), SAMPLED)? {
        Some(model) => {
            print(model.text());
            Ok(ExitCode::SUCCESS)
        }
        None => {
            let message = format!("{} is no Stan program: its name does not end with .stan", args.model.display());
            Err(Error::new(ErrorKind::Option, message))
        }
    }
}
