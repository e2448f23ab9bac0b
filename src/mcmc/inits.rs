//! Where chains start, by the constrained values of parameters: what CmdStan reads from `init=FILE`.
//!
//! What a file names is taken through the inverse of its transform; parameters that it leaves out are drawn uniformly in
//! the unconstrained space, again until density and gradient are finite, as for chains that nobody gives a start.

mod given;
mod told;

use given::OfGiven;

use super::by_value::{ByValue, QUANTITIES, UNCONSTRAIN};
use super::log_prob::{Evaluated, LogProb};
use super::protocol::Q;
use super::sampling::{ModelSource, PARAMETERS};
use crate::mcmc::streams::OF_STARTS;
use crate::program::io::NamedValues;
use crate::program::{Engine, Error, ErrorKind, Function, Inputs, Options, Program, Results, Taken, Terms};
use crate::run::{NoSink, TrapKind};
use crate::types::Array;

/// Random values that are tried of what a file leaves out.
const MOST_TRIES: usize = 100;

/// Starting points, unconstrained, a row for each chain; one for all where one file names all parameters.
///
/// # Errors
/// For names that the model does not have, values of another size or outside of their constraints, files that name different
/// parameters, and where no values of the others give a finite density.
pub fn starts(
    model: &ModelSource<'_>,
    files: &[NamedValues],
    chains: usize,
    radius: Option<f64>,
    read_data: &dyn Fn(&Function<'_>) -> Result<Inputs, Error>,
    options: &Options,
) -> Result<Array, Error> {
    let files = &in_parts(model, files)?[..];
    let named = |name: &str| files.first().is_some_and(|file| file.get(name).is_some());
    let by_value = match model {
        ModelSource::Stan(model) => ByValue::of_stan(UNCONSTRAIN, model.unconstrain(&named)?),
        _ => ByValue::of_model(UNCONSTRAIN, model, read_data)?.ok_or_else(|| lacks(model))?,
    };
    check_names(model, &by_value, files)?;
    let of_given = match model {
        ModelSource::Stan(_) => None,
        _ if by_value.takes().iter().all(|taken| named(&taken.name)) => None,
        _ => Some(OfGiven::new(model, &by_value, &named, read_data)?),
    };
    let unnamed = || by_value.takes().iter().filter(|taken| !taken.by_value).map(|taken| taken.numbers).sum();
    let free = of_given.as_ref().map_or_else(unnamed, OfGiven::dimension);
    let lacking = || by_value.takes().iter().find(|taken| taken.numbers > 0 && !named(&taken.name));
    let Some(radius) = radius.or_else(|| lacking().is_none().then_some(0.0)) else {
        let name = lacking().map_or("", |taken| &*taken.name);
        let origin = files.first().map_or("the file", NamedValues::origin);
        return refused(format!("{origin} lacks `{name}`: the values of all parameters are wanted"));
    };
    let inits = Inits { by_value, of_given, files, model, options };
    if free == 0 {
        let rows: Vec<usize> = (0..files.len()).collect();
        return inits.unconstrained(&rows, &[], 0);
    }
    let density = LogProb::new(model, Terms::default(), read_data)?;
    let mut points: Vec<Option<Vec<f64>>> = vec![None; chains];
    // As a rule the first try will do.
    let tries = if radius == 0.0 { 1 } else { MOST_TRIES };
    let mut failed = None;
    for (first, count) in [(0, 1), (1, tries - 1)] {
        let missing: Vec<usize> = (0..chains).filter(|chain| points[*chain].is_none()).collect();
        if missing.is_empty() || count == 0 {
            break;
        }
        let tried: Vec<(usize, usize)> =
            missing.iter().flat_map(|chain| (first..first + count).map(move |n| (*chain, n))).collect();
        let random = inits.random(&tried, free, radius)?;
        let rows: Vec<usize> = tried.iter().map(|(chain, _)| chain % files.len()).collect();
        let starts = inits.unconstrained(&rows, &random, free)?;
        let d = starts.shape[1];
        let values = density.at(starts.clone(), options)?;
        for (i, ((chain, _), value)) in tried.iter().zip(values).enumerate() {
            match value {
                Evaluated::Density { lp, gradient }
                    if lp.is_finite() && gradient.iter().all(|slope| slope.is_finite()) =>
                {
                    let row = &starts.as_real().expect("starts are reals")[i * d..][..d];
                    points[*chain].get_or_insert_with(|| row.to_vec());
                }
                value => {
                    let row = &starts.as_real().expect("starts are reals")[i * d..][..d];
                    failed = Some((value, row.to_vec()));
                }
            }
        }
    }
    let Some(chain) = points.iter().position(Option::is_none) else {
        let rows: Vec<Vec<f64>> = points.into_iter().flatten().collect();
        let d = rows.first().map_or(0, Vec::len);
        return Ok(Array::real([chains, d], rows.concat()));
    };
    let why = failed.map(|(value, point)| density.problem(&value, &point, options)).transpose()?.flatten();
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    refused(format!(
        "chain {chain}: the log density or its gradient is not finite at the values of {}, whatever the others are ({tries} \
         tries){why}",
        files[chain % files.len()].origin()
    ))
}

/// The same values of parameters that are no tuples and not complex.
fn in_parts(model: &ModelSource<'_>, files: &[NamedValues]) -> Result<Vec<NamedValues>, Error> {
    let ModelSource::Stan(model) = model else { return Ok(files.to_vec()) };
    let (variables, complex) = (model.variables(), model.complex_parameters());
    let parts = |file: &NamedValues| Ok(file.with_tuple_parts(&variables)?.with_complex_parts(&complex)?);
    files.iter().map(parts).collect()
}

/// The parameters by which draws are starts, each with its number of axes: those that are taken by their values, or the
/// unconstrained state of a model that takes none.
///
/// # Errors
/// For a model that cannot be read or has errors.
pub fn parameters(
    model: &ModelSource<'_>,
    read_data: &dyn Fn(&Function<'_>) -> Result<Inputs, Error>,
) -> Result<Vec<(String, usize)>, Error> {
    if let ModelSource::Stan(model) = model {
        return Ok(model.parameters().map(|(name, rank)| (name.to_owned(), rank)).collect());
    }
    let by_value = ByValue::of_model(UNCONSTRAIN, model, read_data)?;
    let taken = |of: ByValue| of.takes().iter().map(|taken| (taken.name.clone(), taken.shape.len())).collect();
    Ok(by_value.map_or_else(|| vec![(Q.to_owned(), 1)], taken))
}

/// Whether starts can be given by the values of parameters.
///
/// # Errors
/// For a model that cannot be read or has errors.
pub fn takes_values(model: &ModelSource<'_>) -> Result<bool, Error> {
    Ok(match model {
        ModelSource::Stan(_) => true,
        _ => model.program()?.functions().any(|name| name == UNCONSTRAIN),
    })
}

fn refused<T>(message: String) -> Result<T, Error> {
    Err(Error::new(ErrorKind::Input, message))
}

fn lacks_some(model: &ModelSource<'_>, name: &str) -> Error {
    let message = format!(
        "no start has `{name}`: {} is no `model` with its constraints in the signature, so all parameters must be given",
        model.name()
    );
    Error::new(ErrorKind::Input, message)
}

fn lacks(model: &ModelSource<'_>) -> Error {
    let message = format!(
        "{} exports no `{UNCONSTRAIN}`, which makes unconstrained starts of the values of its `{PARAMETERS}`: write one, \
         make it a `model` with its constraints in the signature, or give unconstrained points by --starts",
        model.name()
    );
    Error::new(ErrorKind::Input, message)
}

/// Refuses names of no parameter, files that differ, and, of a model of the language, what is not there.
fn check_names(model: &ModelSource<'_>, by_value: &ByValue, files: &[NamedValues]) -> Result<(), Error> {
    let all: Vec<&str> = by_value.takes().iter().map(|taken| taken.name.as_str()).collect();
    let computed_here = match model {
        ModelSource::Stan(_) => vec![],
        _ => computed_by(&model.program()?)?,
    };
    let computed = |name: &str| match model {
        ModelSource::Stan(model) => model.computes(name),
        _ => computed_here.iter().any(|computed| computed == name),
    };
    let of_program = matches!(model, ModelSource::Stan(_));
    for file in files {
        let unknown = file.names().find(|name| !all.contains(name) && !computed(name));
        if let Some(name) = unknown {
            return refused(format!(
                "{} has `{name}`, which is no parameter of {}: its parameters are {}",
                file.origin(),
                model.name(),
                all.join(", ")
            ));
        }
        for taken in by_value.takes().iter().filter(|taken| taken.numbers > 0) {
            let first = if of_program { taken.by_value } else { files[0].get(&taken.name).is_some() };
            match (first, file.get(&taken.name)) {
                (true, None) | (false, Some(_)) => {
                    let (with, without) = if first { (&files[0], file) } else { (file, &files[0]) };
                    return refused(format!(
                        "{} has `{}`, but {} has not: files of starts must name the same parameters",
                        with.origin(),
                        taken.name,
                        without.origin()
                    ));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// What a model of the language computes of its parameters, and files of draws have, too.
fn computed_by(program: &Program) -> Result<Vec<String>, Error> {
    if !program.functions().any(|name| name == QUANTITIES) {
        return Ok(vec![]);
    }
    Ok(program.function(QUANTITIES)?.fields().map(str::to_owned).collect())
}

struct Inits<'a> {
    by_value: ByValue,
    /// Of a model of the language whose parameters are not all given.
    of_given: Option<OfGiven>,
    files: &'a [NamedValues],
    model: &'a ModelSource<'a>,
    options: &'a Options,
}

impl Inits<'_> {
    /// Unconstrained numbers of what files leave out: for each chain and try, uniform within a distance of 0.
    fn random(&self, tried: &[(usize, usize)], n: usize, radius: f64) -> Result<Vec<f64>, Error> {
        let text = format!("pub fn start(shared r: real) -> real[{n}] {{ [uniform_rng(-r, r) for i in 0..{n}] }}");
        let program = Program::compile(&text)?;
        let inputs = Inputs::new().shared("r", radius).lanes(tried.len());
        let options = self.host_options();
        let mut bound = program.function("start")?.bind(&inputs, &options)?;
        let stream = |(chain, n): &(usize, usize)| {
            let chain = self.options.first_lane.wrapping_add(*chain as u64);
            OF_STARTS | ((chain << 8) & (OF_STARTS - 1)) | *n as u64
        };
        bound.inputs_mut().lanes = tried.iter().map(stream).collect();
        let results = bound.run(&options, &NoSink)?;
        let points = results.outputs().values().next().expect("the function gives an array");
        Ok(points.as_real().expect("an array of reals").to_vec())
    }

    /// The values of a parameter that the files have, a row for each of `rows`.
    fn values_of_rows(&self, taken: &Taken, rows: &[usize]) -> Result<Array, Error> {
        let (mut all, mut shape) = (Vec::new(), Vec::new());
        for row in rows {
            let file = &self.files[*row];
            let told = |e: Error| Error::new(ErrorKind::Input, format!("{}: {e}", file.origin()));
            let data = file.get(&taken.name).expect("files name the same parameters");
            let value = self.by_value.read(taken, data, 0).map_err(told)?;
            shape = value.shape.to_vec();
            all.extend(value.as_real().expect("it was read as reals"));
        }
        Ok(Array::real([rows.len()].into_iter().chain(shape), all))
    }

    /// Starting points are made once: by the reference interpreter, without a compilation.
    fn host_options(&self) -> Options {
        let mut options = Options::default().engine(Engine::Scalar);
        options.settings.seed = self.options.settings.seed;
        options
    }

    /// The points: a row for each of `rows`, the files that they are of, with so many random numbers each.
    fn unconstrained(&self, rows: &[usize], random: &[f64], free: usize) -> Result<Array, Error> {
        let of_file = |file: &NamedValues| -> Result<Vec<Option<Array>>, Error> {
            let read = |taken: &Taken| match file.get(&taken.name).filter(|_| taken.by_value) {
                Some(data) => {
                    let told = |e: Error| Error::new(ErrorKind::Input, format!("{}: {e}", file.origin()));
                    self.by_value.read(taken, data, 0).map(Some).map_err(told)
                }
                None => Ok(None),
            };
            self.by_value.takes().iter().map(read).collect()
        };
        if let Some(of_given) = &self.of_given {
            let results = of_given.run(self, rows, random)?;
            return self.points(&results, rows);
        }
        let files: Vec<Vec<Option<Array>>> = self.files.iter().map(of_file).collect::<Result<_, _>>()?;
        let mut before = 0;
        let mut values = Vec::new();
        for (at, taken) in self.by_value.takes().iter().enumerate() {
            let mut all: Vec<f64> = Vec::new();
            let mut shape = taken.shape.clone();
            for (row, file) in rows.iter().enumerate() {
                match &files[*file][at] {
                    Some(value) => {
                        shape.clone_from(&value.shape.to_vec());
                        all.extend(value.as_real().expect("it was read as reals"));
                    }
                    None => all.extend(&random[row * free + before..][..taken.numbers]),
                }
            }
            if !taken.by_value {
                before += taken.numbers;
                shape = vec![taken.numbers];
            }
            values.push(Array::real([rows.len()].into_iter().chain(shape), all));
        }
        let Some(function) = self.by_value.function()? else { return Ok(Array::real([rows.len(), 0], vec![])) };
        let options = self.host_options();
        let inputs = self.by_value.inputs(&values, None, rows.len());
        let results = function.bind(&inputs, &options)?.run(&options, &NoSink)?;
        self.points(&results, rows)
    }

    /// The points that `unconstrain` gives, of these files.
    fn points(&self, results: &Results, rows: &[usize]) -> Result<Array, Error> {
        if let Some(trap) = results.traps().first() {
            let said = if trap.message.is_empty() { trap.kind.to_string() } else { trap.message.clone() };
            let origin = self.files[rows[trap.position]].origin();
            // CmdStan's 8 digits of a simplex need not add up to 1.
            let rounded = trap.kind == TrapKind::AssertFailed && origin.contains(".csv");
            let hint = if rounded { "; if that is for want of digits, write the file with --sig-figs 17" } else { "" };
            return refused(format!("{origin}: {said}{hint}"));
        }
        let mut outputs = results.outputs().values();
        let (Some(points), None) = (outputs.next(), outputs.next()) else {
            return refused(format!("{}: `{UNCONSTRAIN}` must give one array of reals", self.model.name()));
        };
        let Some(numbers) = points.as_real().filter(|_| points.shape.len() == 2) else {
            return refused(format!("{}: `{UNCONSTRAIN}` must give a list of reals", self.model.name()));
        };
        if let Some(at) = numbers.iter().position(|x| !x.is_finite()) {
            let (row, coordinate) = (at / points.shape[1].max(1), at % points.shape[1].max(1));
            return Err(self.no_number(rows[row], coordinate, numbers[at]));
        }
        Ok(points.clone())
    }
}
