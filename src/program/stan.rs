//! Stan programs: a program and its data, translated to a program of the language.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Map, Value};

use super::{Error, ErrorKind, Inputs, Options, Program};
use crate::base::{Diagnostic, SourceMap};
use crate::program::Engine;
use crate::stan::check::check;
use crate::stan::place::place;
use crate::stan::syntax::{IncludeFolders, parse};
use crate::stan::{self, HostFunctions, Translation};

pub use crate::stan::Terms;
use crate::types::{Array, DType, Type};

/// A Stan program with its data: a program of the language that computes the same, and the shared inputs of that.
#[derive(Debug)]
pub struct StanModel {
    name: String,
    translation: Translation,
    sources: SourceMap,
    warnings: Vec<Diagnostic>,
}

impl StanModel {
    /// Reads a Stan program and translates it with its data, an object of JSON. A sampler's density, `lp__` in Stan's files, is
    /// that with the Jacobian and without constants.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when it cannot be read, [`ErrorKind::Program`] with all diagnostics for a program that is none,
    /// for data that it does not accept, and for what is not supported yet.
    pub fn load(path: &Path, data: &Map<String, Value>, terms: Terms) -> Result<StanModel, Error> {
        let name = path.display().to_string();
        let text = std::fs::read(path).map_err(|e| Error::new(ErrorKind::Io, format!("cannot read {name}: {e}")))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut sources = SourceMap::default();
        let main = sources.add(name.clone(), text);
        let mut includes = IncludeFolders::default();
        let (program, mut diagnostics) = parse(main, &mut sources, &mut includes);
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Err(Error::from_diagnostics(diagnostics, sources));
        }
        let (checked, found) = check(&program, &sources);
        diagnostics.extend(found);
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Err(Error::from_diagnostics(diagnostics, sources));
        }
        let mut host = Host::default();
        match stan::translate(&program, &checked, data, terms, &mut host) {
            Ok(mut translation) => {
                translation.text = with_places(&translation, &sources);
                Ok(StanModel { name, translation, sources, warnings: diagnostics })
            }
            Err(problem) => {
                diagnostics.push(*problem);
                Err(Error::from_diagnostics(diagnostics, sources))
            }
        }
    }

    /// What users call it: its path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The program of the language: it exports `log_density` and `parameters`.
    pub fn text(&self) -> &str {
        &self.translation.text
    }

    /// What was found that is probably not meant, and the texts that it is about.
    pub fn warnings(&self) -> (&[Diagnostic], &SourceMap) {
        (&self.warnings, &self.sources)
    }

    /// The number of unconstrained coordinates.
    pub fn dimension(&self) -> usize {
        self.translation.dimension
    }

    /// The shared inputs of the functions of the program.
    pub fn inputs(&self) -> Inputs {
        let tables = self.translation.tables.iter();
        tables.fold(Inputs::new(), |inputs, (name, table)| inputs.shared(name, table.clone()))
    }
}

/// The text, whose assertions say where they stand in the Stan program.
fn with_places(translation: &Translation, sources: &SourceMap) -> String {
    let mut text = String::with_capacity(translation.text.len());
    for (line, span) in translation.text.lines().zip(&translation.lines) {
        match (span, line.strip_suffix("\");")) {
            (Some(span), Some(start)) if line.trim_start().starts_with("assert(") => {
                let place =
                    place(sources, *span).replace('\\', "/").replace('"', "'").replace('{', "{{").replace('}', "}}");
                text.push_str(&format!("{start} {place}\");\n"));
            }
            _ => text.push_str(&format!("{line}\n")),
        }
    }
    text
}

/// Functions of the library on the host: programs of one expression, run by the reference interpreter.
#[derive(Default)]
struct Host {
    programs: HashMap<String, Program>,
}

impl HostFunctions for Host {
    fn evaluate(&mut self, expression: &str, args: &[Array], shape: &[usize], int: bool) -> Result<Array, String> {
        let params = args.iter().enumerate().map(|(i, a)| format!("shared a{i}: {}", a.ty()));
        let result = Type::new(if int { DType::Int } else { DType::Real }, shape.iter().copied());
        let params = params.collect::<Vec<_>>().join(", ");
        let text = format!("pub fn main({params}) -> {result} {{ {expression} }}\n");
        let failed = |error: Error| {
            let told: Vec<String> = error.diagnostics().iter().map(|d| d.message.clone()).collect();
            if told.is_empty() { error.to_string() } else { told.join("; ") }
        };
        if !self.programs.contains_key(&text) {
            let program = Program::compile_named("<host>", &text).map_err(failed)?;
            self.programs.insert(text.clone(), program);
        }
        let function = self.programs[&text].function("main").map_err(failed)?;
        let inputs = args
            .iter()
            .enumerate()
            .fold(Inputs::new().lanes(1), |inputs, (i, array)| inputs.shared(format!("a{i}"), array.clone()));
        let results = function.run(&inputs, &Options::default().engine(Engine::Scalar)).map_err(failed)?;
        if let Some(trap) = results.traps().first() {
            return Err(if trap.message.is_empty() { trap.kind.to_string() } else { trap.message.clone() });
        }
        let mut array = results.output("result").cloned().ok_or("it has no result")?;
        array.shape.remove(0);
        Ok(array)
    }
}
