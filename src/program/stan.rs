//! Stan programs: a program and its data, translated to a program of the language.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use rayon::prelude::*;

use super::io::{NamedValues, parse_data};
use super::{Error, ErrorKind, Inputs, MadeModule, Options, Program, text_of};
use crate::base::{Diagnostic, FileId, Provenance, SourceMap, Span};
use crate::program::Engine;
use crate::stan::check::{Checked, check};
use crate::stan::syntax::{IncludeFolders, ast, parse};
use crate::stan::{self, HostFunctions, Output, Translation};

pub use crate::stan::{StanData, Taken, Terms};
use crate::types::{Array, ComplexPart, Datum, Document, Type};

/// What the translated text is called.
pub(crate) const TRANSLATED: &str = "<model>";

/// The beginning of the Stan program.
const START: Span = Span { file: FileId(0), start: 0, end: 0 };

/// A Stan program with its data: a program of the language that computes the same, and the shared inputs of that.
#[derive(Debug)]
pub struct StanModel {
    name: String,
    warnings: Vec<Diagnostic>,
    origin: Arc<StanOrigin>,
}

/// A Stan program that serves many data sets.
#[derive(Debug)]
pub struct StanSets {
    /// The program, with what the data sets share.
    pub model: StanModel,
    /// Data sets.
    pub count: usize,
    /// The inputs of which each has its own, data set × shape.
    pub own: IndexMap<String, Array>,
}

/// A Stan program with its data, from which functions are made.
#[derive(Debug)]
pub(crate) struct StanOrigin {
    translation: Translation,
    /// What the text of the translation was made of.
    places: Arc<Provenance>,
    sources: SourceMap,
    program: ast::Program,
    checked: Checked,
    data: StanData,
    /// What each data set has of its own, with an axis over them, where there are many.
    lane_data: StanData,
    /// Of what the program draws of its data.
    seed: u64,
}

impl StanModel {
    /// Data of a file in Stan's JSON data format, or of arrays by their names (.npz); without a file there are none.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when it cannot be read, [`ErrorKind::Input`] when it is no object of JSON.
    pub fn read_data(path: Option<&Path>) -> Result<StanData, Error> {
        let Some(path) = path else { return Ok(StanData::default()) };
        let name = path.display().to_string();
        let ends = |ending: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
        if ends("npz") {
            let values = NamedValues::read(path)?;
            return Ok(values.iter().map(|(name, data)| (name.to_owned(), data.into())).collect());
        }
        if ends("R") {
            let message = format!(
                "{name}: data in R's dump format are not read; R writes them as JSON: \
                 e <- new.env(); source(\"{name}\", e); cmdstanr::write_stan_json(as.list(e), \"data.json\")"
            );
            return Err(Error::new(ErrorKind::Input, message));
        }
        let text =
            std::fs::read_to_string(path).map_err(|e| Error::new(ErrorKind::Io, format!("cannot read {name}: {e}")))?;
        match parse_data(&text, &name)? {
            Document::Object(object) => Ok(object.into_iter().collect()),
            Document::Other(_) => {
                Err(Error::new(ErrorKind::Input, format!("{name}: data of a Stan program are one object of JSON")))
            }
        }
    }

    /// Reads a Stan program and translates it with its data, an object of JSON. A sampler's density, `lp__` in Stan's
    /// files, is that with the Jacobian and without constants.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when it cannot be read, [`ErrorKind::Program`] with all diagnostics for a program that is none,
    /// for data that it does not accept, and for what is not supported yet.
    pub fn load(path: &Path, data: impl Into<StanData>, terms: Terms) -> Result<StanModel, Error> {
        Self::load_with(path, data, terms, (&[], 0))
    }

    /// The same; what it includes is looked for in these folders, too, and what it draws in `transformed data` comes from
    /// this seed: each draw has a random stream of its own, none of which is that of a chain.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_with(
        path: &Path,
        data: impl Into<StanData>,
        terms: Terms,
        (include, seed): (&[PathBuf], u64),
    ) -> Result<StanModel, Error> {
        let (name, text) = text_of(path)?;
        Self::of_text(&name, &text, data, terms, (include, seed))
    }

    /// The same of a text that goes by a name, in whose folder what it includes is looked for.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn of_text(
        name: &str,
        text: &str,
        data: impl Into<StanData>,
        terms: Terms,
        (include, seed): (&[PathBuf], u64),
    ) -> Result<StanModel, Error> {
        Ok(Self::of_sets(name, text, (data.into(), StanData::default()), terms, (include, seed))?.0)
    }

    /// A program that serves many data sets, read from a file: each has its own of some values, with an axis over the data
    /// sets before their own, and shares `data`. Also gives the inputs of which each has its own, with that axis. What the
    /// program draws of the data of a data set is drawn with a seed of its own, of the first one this seed, of the next the
    /// next one.
    ///
    /// # Errors
    /// As [`load`](Self::load), and where data sets make other programs of it than the first one: their sizes differ, or what
    /// is decided by data.
    pub fn load_sets(
        path: &Path,
        (data, own): (&StanData, &NamedValues),
        terms: Terms,
        (include, seed): (&[PathBuf], u64),
    ) -> Result<StanSets, Error> {
        let (name, text) = text_of(path)?;
        Self::of_text_sets(&name, &text, (data, own), terms, (include, seed))
    }

    /// The same of a text that goes by a name.
    ///
    /// # Errors
    /// As [`load_sets`](Self::load_sets).
    pub fn of_text_sets(
        name: &str,
        text: &str,
        (data, own): (&StanData, &NamedValues),
        terms: Terms,
        with: (&[PathBuf], u64),
    ) -> Result<StanSets, Error> {
        let lane_data: StanData = own.iter().map(|(name, data)| (name.to_owned(), data.into())).collect();
        let count = sets_of(&lane_data, own.origin())?.len();
        let (model, own) = Self::of_sets(name, text, (data.clone(), lane_data), terms, with)?;
        Ok(StanSets { model, count, own })
    }

    fn of_sets(
        name: &str,
        text: &str,
        (data, lane_data): (StanData, StanData),
        terms: Terms,
        (include, seed): (&[PathBuf], u64),
    ) -> Result<(StanModel, IndexMap<String, Array>), Error> {
        let name = name.to_owned();
        let mut sources = SourceMap::default();
        let main = sources.add(name.clone(), text.to_owned());
        let mut includes = IncludeFolders { folders: include.to_vec() };
        let (program, mut diagnostics) = parse(main, &mut sources, &mut includes);
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Err(Error::from_diagnostics(diagnostics, sources));
        }
        let (checked, found) = check(&program, &sources);
        diagnostics.extend(found);
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Err(Error::from_diagnostics(diagnostics, sources));
        }
        let sets = if lane_data.is_empty() { vec![] } else { sets_of(&lane_data, &name)? };
        let mut all = sets.into_iter().map(|set| {
            let mut all = data.clone();
            set.into_iter().for_each(|(name, value)| all.insert(name, value));
            all
        });
        let first = all.next();
        let many = first.is_some();
        let all: Vec<StanData> = all.collect();
        let data = first.unwrap_or(data);
        let translate = |data: &StanData, set: usize| {
            let host = Host::new(seed.wrapping_add(set as u64));
            stan::translate(&program, &checked, data, terms, &mut Host { of_many: many, ..host })
        };
        let of_set = |set: usize, told: &str| {
            Error::new(ErrorKind::Input, format!("{name}: the data set {set}, counted from 0, {told}"))
        };
        match translate(&data, 0) {
            Ok(mut translation) => {
                let others: Result<Vec<_>, _> = (all.par_iter().enumerate())
                    .map(|(i, data)| {
                        translate(data, i + 1).map_err(|why| of_set(i + 1, &format!("is refused: {}", first_of(&why))))
                    })
                    .collect();
                let own = stan::united(&mut translation, &others?).map_err(|(set, why)| {
                    of_set(set, &format!("makes another program than the first one ({why}): run it apart"))
                })?;
                let (text, places) = stan::placed(&translation.text, &translation.lines, &sources, START);
                translation.text = text;
                let places = Arc::new(places);
                let origin =
                    Arc::new(StanOrigin { translation, places, sources, program, checked, data, lane_data, seed });
                Ok((StanModel { name, warnings: diagnostics, origin }, own))
            }
            Err(problems) => {
                // The warning that the function is not there yet says the same.
                let place = |told: &Diagnostic| told.labels.first().map(|label| (label.span.file, label.span.start));
                diagnostics.retain(|told| told.code.0 != "W2110" || problems.iter().all(|p| place(told) != place(p)));
                diagnostics.extend(problems.into_iter().map(|problem| placed(problem, &sources)));
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
        &self.origin.translation.text
    }

    /// The same program for a file of its own: what is small and not in the data of the Stan program stands in it. With the
    /// values of the shared parameters that it has.
    pub fn standing(&self) -> (String, IndexMap<String, Array>) {
        stan::standing(self.text(), &self.origin.translation.tables, |name| self.is_given(name))
    }

    /// Its data, an object of JSON.
    pub fn data(&self) -> &StanData {
        &self.origin.data
    }

    /// What each data set has of its own, with an axis over the data sets before its own; nothing where there is one.
    pub fn lane_data(&self) -> &StanData {
        &self.origin.lane_data
    }

    /// Whether the data have a value of this name.
    pub fn is_given(&self, name: &str) -> bool {
        self.origin.data.get(name).is_some()
    }

    /// That program, compiled.
    ///
    /// # Errors
    /// [`ErrorKind::Program`] where the library lacks a function that the Stan program calls, at the place of the call.
    pub fn program(&self) -> Result<Program, Error> {
        Program::compile_made(&self.module(), &[])
    }

    /// That program, not compiled.
    pub(crate) fn module(&self) -> MadeModule<'_> {
        MadeModule { name: TRANSLATED, text: self.text(), origin: Some(self.origin.places.clone()) }
    }

    /// The program and its data.
    pub(crate) fn origin(&self) -> &Arc<StanOrigin> {
        &self.origin
    }

    /// What the program prints of its data alone, line by line.
    pub fn printed(&self) -> &[String] {
        &self.origin.translation.printed
    }

    /// The function `unconstrain` of parameters by their values: those that are `named`; of the others it takes
    /// unconstrained numbers. A value that is not what its constraint says is a trap.
    ///
    /// # Errors
    /// As [`load`](Self::load) and [`program`](Self::program).
    pub fn unconstrain(&self, named: &(dyn Fn(&str) -> bool + Sync)) -> Result<StanFunction, Error> {
        let StanOrigin { program, checked, data, seed, .. } = &*self.origin;
        self.origin.function(stan::unconstrain(program, checked, data, named, &mut Host::new(*seed)))
    }

    /// The function `generated_quantities` of all parameters by their values: the transformed parameters and the
    /// generated quantities.
    ///
    /// # Errors
    /// As [`load`](Self::load) and [`program`](Self::program).
    pub fn quantities(&self) -> Result<StanFunction, Error> {
        let StanOrigin { program, checked, data, seed, .. } = &*self.origin;
        self.origin.function(stan::quantities(program, checked, data, &mut Host::new(*seed)))
    }

    /// Whether the program computes a variable of this name of its parameters.
    pub fn computes(&self, name: &str) -> bool {
        self.origin.translation.outputs.iter().any(|o| o.block > 0 && (o.name == name || whole(o) == name))
    }

    /// What draws have of the program: complex variables are whole, tuples are parts: `t:1`, `a.2:1`.
    pub fn variables(&self) -> Vec<String> {
        self.origin.translation.outputs.iter().map(|o| whole(o).to_owned()).collect()
    }

    /// The parameters as files of arrays have them, parts by their own names (`t:1`, `z.real`), each with its number of
    /// axes.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, usize)> {
        self.origin.translation.outputs.iter().filter(|o| o.block == 0).map(|o| (o.name.as_str(), o.shape.len()))
    }

    /// The parameters that are complex, whose parts are outputs of their own.
    pub fn complex_parameters(&self) -> Vec<String> {
        let parameters = self.origin.translation.outputs.iter().filter(|o| o.block == 0);
        let real = |o: &Output| match ComplexPart::named(&o.name)? {
            (variable, ComplexPart::Real) => Some(variable.to_owned()),
            (_, ComplexPart::Imaginary) => None,
        };
        parameters.filter_map(real).collect()
    }

    /// The names of variables that have another name as fields of what `parameters` gives.
    pub fn renamed(&self) -> impl Iterator<Item = (&str, &str)> {
        let outputs = self.origin.translation.outputs.iter().map(|o| (o.field.as_str(), o.name.as_str()));
        outputs.filter(|(field, name)| field != name)
    }

    /// What the axes of variables are called, data included, by the data that are their extents: `J` of `vector[J] theta`.
    pub fn axes(&self) -> &IndexMap<String, Vec<Option<String>>> {
        &self.origin.translation.axes
    }

    /// What was found that is probably not meant, and the texts that it is about.
    pub fn warnings(&self) -> (&[Diagnostic], &SourceMap) {
        (&self.warnings, &self.origin.sources)
    }

    /// The number of unconstrained coordinates.
    pub fn dimension(&self) -> usize {
        self.origin.translation.dimension
    }

    /// The shared inputs of the functions of the program.
    pub fn inputs(&self) -> Inputs {
        let tables = self.origin.translation.tables.iter();
        tables.fold(Inputs::new(), |inputs, (name, table)| inputs.shared(name, table.clone()))
    }
}

impl StanOrigin {
    /// Why the density is no finite number at a point, and where, in Stan's words, and whether the program rejects it;
    /// `None` where that is not known.
    pub(crate) fn explained(&self, point: &[f64]) -> Option<(String, bool)> {
        let Self { program, checked, data, seed, sources, .. } = self;
        let stan::Explained { why, span, rejects } =
            stan::explain(program, checked, data, point, &mut Host::new(*seed))?;
        let text = &sources.file(span.file).text[span.start as usize..span.end as usize];
        // A line of the program, where it is one.
        let shown = Some(text).filter(|text| !text.contains('\n') && text.len() <= 80);
        let shown = shown.filter(|_| why.contains(" here is ")).map_or_else(String::new, |text| format!(": `{text}`"));
        Some((format!("{why}{shown} {}", crate::stan::place::place(sources, span)), rejects))
    }

    /// What a draw has without the blocks after `last`: the function `parameters` of the unconstrained state, or where
    /// they are given `by_value`, `generated_quantities`. Nothing in it draws.
    ///
    /// # Errors
    /// As [`StanModel::load`] and [`StanModel::program`].
    pub(crate) fn until(&self, last: u8, by_value: bool) -> Result<StanFunction, Error> {
        let Self { program, checked, data, seed, .. } = self;
        self.function(stan::until(program, checked, data, (last, by_value), &mut Host::new(*seed)))
    }

    fn function(&self, made: Result<stan::OfValues, Box<Diagnostic>>) -> Result<StanFunction, Error> {
        let made = made
            .map_err(|problem| Error::from_diagnostics(vec![placed(*problem, &self.sources)], self.sources.clone()))?;
        let (text, places) = stan::placed(&made.text, &made.lines, &self.sources, START);
        let module = MadeModule { name: TRANSLATED, text: &text, origin: Some(Arc::new(places)) };
        let program = if text.is_empty() { None } else { Some(Program::compile_made(&module, &[])?) };
        let inputs = made.tables.iter().fold(Inputs::new(), |all, (name, table)| all.shared(name, table.clone()));
        let renamed = made.outputs.iter().filter(|o| o.field != o.name);
        let renamed = renamed.map(|o| (o.field.clone(), o.name.clone())).collect();
        Ok(StanFunction { program, inputs, taken: made.taken, renamed })
    }
}

/// A problem of a run on the host with its place as stanc writes it, which those of the checker have already.
fn placed(problem: Diagnostic, sources: &SourceMap) -> Diagnostic {
    match problem.labels.first().map(|label| label.span) {
        Some(span) => problem.with_note(stan::place::place(sources, span)),
        None => problem,
    }
}

/// The message of the first problem.
fn first_of(problems: &[Diagnostic]) -> &str {
    problems.first().map_or("", |problem| &problem.message)
}

/// A function of a Stan program's parameters by their values, compiled; its state is one flat array of their numbers.
#[derive(Debug)]
pub struct StanFunction {
    program: Option<Program>,
    inputs: Inputs,
    taken: Vec<Taken>,
    renamed: Vec<(String, String)>,
}

impl StanFunction {
    /// The program that exports it; none where it would give nothing.
    pub fn program(&self) -> Option<&Program> {
        self.program.as_ref()
    }

    /// Its shared inputs.
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// What it takes, in the order of the numbers.
    pub fn taken(&self) -> &[Taken] {
        &self.taken
    }

    /// Fields of what it gives, and what the program calls them where that is another word.
    pub fn renamed(&self) -> &[(String, String)] {
        &self.renamed
    }
}

/// The data of each data set, of values with an axis over them.
fn sets_of(own: &StanData, origin: &str) -> Result<Vec<Vec<(String, Datum)>>, Error> {
    let mut sets: Vec<Vec<(String, Datum)>> = Vec::new();
    let mut first: Option<(&str, usize)> = None;
    for (name, value) in own.iter() {
        let refused = |why: String| Err(Error::new(ErrorKind::Input, format!("{origin}: `{name}` {why}")));
        let Some(rows) = value.rows() else {
            return refused("has no axis over the data sets".to_owned());
        };
        match first {
            None => {
                first = Some((name, rows.len()));
                sets.resize_with(rows.len(), Vec::new);
            }
            Some((other, count)) if count != rows.len() => {
                return refused(format!("is of {} data sets, `{other}` of {count}", rows.len()));
            }
            Some(_) => {}
        }
        sets.iter_mut().zip(rows).for_each(|(set, row)| set.push((name.to_owned(), row)));
    }
    match sets.is_empty() {
        true => Err(Error::new(ErrorKind::Input, format!("{origin}: there is no data set"))),
        false => Ok(sets),
    }
}

/// The variable of an output, which may be a part of a complex one.
fn whole(output: &Output) -> &str {
    ComplexPart::named(&output.name).map_or(&output.name, |(variable, _)| variable)
}

/// Functions of the library on the host: programs of one expression, run by the reference interpreter.
struct Host {
    programs: HashMap<String, Program>,
    seed: u64,
    /// Whether there are many data sets.
    of_many: bool,
}

/// Streams of draws of data are those of other seeds than chains have: the text `data`.
const OF_DATA: u64 = 0x6461_7461;

impl Host {
    fn new(seed: u64) -> Self {
        Self { programs: HashMap::new(), seed: seed ^ OF_DATA << 32, of_many: false }
    }
}

impl HostFunctions for Host {
    fn is_of_many(&self) -> bool {
        self.of_many
    }

    fn evaluate(&mut self, expression: &str, args: &[Array], ty: &Type, draw: Option<u64>) -> Result<Array, String> {
        let options = Options::default().engine(Engine::Scalar);
        // Each draw has a random stream of its own.
        let options = draw.map_or(options.clone(), |number| options.seed(self.seed).first_lane(number));
        let params = args.iter().enumerate().map(|(i, a)| format!("shared a{i}: {}", a.ty()));
        let params = params.collect::<Vec<_>>().join(", ");
        let text = format!("pub fn main({params}) -> {ty} {{ {expression} }}\n");
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
        let results = function.run(&inputs, &options).map_err(failed)?;
        if let Some(trap) = results.traps().first() {
            return Err(if trap.message.is_empty() { trap.kind.to_string() } else { trap.message.clone() });
        }
        let mut array = results.output("result").cloned().ok_or("it has no result")?;
        array.shape.remove(0);
        Ok(array)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text that somebody wrote, a text that was made of it, and which of its parts are of which words of the first.
    fn refused(written: &str, made: &str, parts: &[(&str, &str)]) -> Error {
        let mut sources = SourceMap::default();
        let file = sources.add("m.stan", written);
        let span = |text: &str, part: &str| {
            let start = text.find(part).expect("it is there");
            Span::new(file, start, start + part.len())
        };
        let parts = parts.iter().map(|(part, from)| {
            let at = span(made, part);
            (at.start, at.end, span(written, from))
        });
        let origin = Provenance::new(sources.clone(), parts.collect(), crate::stan::place::place);
        let module = MadeModule { name: TRANSLATED, text: made, origin: Some(Arc::new(origin)) };
        Program::compile_made(&module, &[]).expect_err("it is refused")
    }

    #[test]
    fn what_the_translation_is_refused_for_is_told_at_the_places_of_the_program() {
        let error = refused(
            "model {\n  target += lacking(x) + wrong(y);\n}\n",
            "pub fn log_density(q: real[2]) -> real {\n    lacking(q[0]) + sqrt(true) * 2.0\n}\n",
            &[
                ("pub fn log_density(q: real[2]) -> real {", "model"),
                ("    lacking(q[0]) + sqrt(true) * 2.0", "target += lacking(x) + wrong(y);"),
                ("lacking(q[0])", "lacking(x)"),
                ("sqrt(true)", "wrong(y)"),
            ],
        );
        let told: Vec<String> = (error.diagnostics().iter())
            .map(|found| {
                let span = found.labels[0].span;
                let (line, column) = error.sources().line_column(span);
                let file = error.sources().file(span.file);
                let text = &file.text[span.start as usize..span.end as usize];
                format!("{} {} {}:{line}:{column} {text}", found.code, found.message, file.name)
            })
            .collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!(told[0], "E2501 `lacking`: known, not supported yet m.stan:2:13 lacking(x)");
        assert!(told[1].starts_with("E2501 ") && told[1].ends_with(" m.stan:2:26 wrong(y)"), "{}", told[1]);
    }
}
