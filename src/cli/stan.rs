//! `autobatch translate`: the program of the language that a Stan program becomes.

use std::path::Path;
use std::process::ExitCode;

use indexmap::IndexMap;

use crate::program::io::{write_arrays, write_atomically};
use crate::program::{Error, ErrorKind};
use crate::types::{Array, Precision};

use super::args::TranslateArgs;
use super::model::{Model, SAMPLED};
use super::{check_output, note, print};

pub(super) fn translate(args: &TranslateArgs) -> Result<ExitCode, Error> {
    if let Some(path) = &args.output {
        check_output(Some(path), &["ab"])?;
        let read = args.data.files().chain([args.model.clone()]);
        super::spares(read, &[path.to_owned(), path.with_extension("json")], "--output")?;
    }
    let Some(model) = Model::load(&args.model, &args.data, SAMPLED, 0)?.stan else {
        let message = format!("{} is no Stan program: its name does not end with .stan", args.model.display());
        return Err(Error::new(ErrorKind::Option, message));
    };
    let (text, tables) = model.standing();
    match &args.output {
        Some(path) => write(path, &text, &tables)?,
        None => {
            print(&text);
            let lacking: Vec<String> =
                tables.keys().filter(|name| !model.is_given(name)).map(|name| format!("`{name}`")).collect();
            if let Some((last, others)) = lacking.split_last() {
                let names = if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) };
                note(&format!(
                    "note: the data do not have {names}: --output FILE.ab writes FILE.json, too, with all that this \
                     program takes"
                ));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the program and its data.
fn write(path: &Path, text: &str, tables: &IndexMap<String, Array>) -> Result<(), Error> {
    let data = path.with_extension("json");
    write_atomically(path, |out| {
        use std::io::Write as _;
        out.write_all(text.as_bytes())
    })?;
    write_arrays(&data, tables, &IndexMap::new(), Precision::F64)?;
    let (path, data) = (path.display(), data.display());
    note(&format!("written to {path} and {data}: autobatch sample {path} --data {data}"));
    Ok(())
}
