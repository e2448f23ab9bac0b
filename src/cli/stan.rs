//! `autobatch translate`: the program of the language that a Stan program becomes.

use std::process::ExitCode;

use crate::program::{Error, ErrorKind};

use super::args::TranslateArgs;
use super::model::{Model, SAMPLED};
use super::print;

pub(super) fn translate(args: &TranslateArgs) -> Result<ExitCode, Error> {
    match Model::load(&args.model, &args.data, SAMPLED)?.stan {
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
