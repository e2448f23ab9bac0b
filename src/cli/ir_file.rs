//! Texts of programs after the language: `.cfg`, `.stack`, `.unit`.

use std::path::Path;

use crate::pipeline::{self, Compiled};
use crate::program::{Error, ErrorKind, Options};
use crate::{cfg, stack, unit};

/// What the name of a file ends with.
pub(super) fn extension(path: &Path) -> &str {
    path.extension().and_then(|e| e.to_str()).unwrap_or_default()
}

/// Reads the text of an IR. A stack program has no CFG program to go with it: only `pc` runs it.
pub(super) fn read_ir(path: &Path, options: &Options) -> Result<Compiled, Error> {
    let name = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|e| Error::new(ErrorKind::Io, format!("cannot read {name}: {e}")))?;
    let wrong = |message: String| Error::new(ErrorKind::Ir, format!("{name}: {message}"));
    if extension(path) == "cfg" {
        let program = cfg::read(&text).map_err(|e| wrong(e.to_string()))?;
        refuse_findings(&wrong, &cfg::verify(&program))?;
        return Ok(pipeline::from_cfg(program, &options.passes, options.backend.machine()));
    }
    if extension(path) == "unit" {
        if unit::read_calls(&text).is_ok() {
            let message = "these are the units of `local`, which can be read but not run: run the units of `pc`, \
                           or dump and run the CFG program (`dump --stage cfg`)";
            return Err(wrong(message.to_owned()));
        }
        let program = unit::read(&text).map_err(|e| wrong(e.to_string()))?;
        refuse_findings(&wrong, &unit::verify(&program))?;
        return Ok(pipeline::from_units(program, &options.passes, options.backend.machine()));
    }
    let program = stack::read(&text).map_err(|e| wrong(e.to_string()))?;
    refuse_findings(&wrong, &stack::verify(&program))?;
    Ok(pipeline::from_stack(program, &options.passes, options.backend.machine()))
}

fn refuse_findings<E: ToString>(wrong: &dyn Fn(String) -> Error, findings: &[E]) -> Result<(), Error> {
    if findings.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    Err(wrong(lines.join("\n  ")))
}
