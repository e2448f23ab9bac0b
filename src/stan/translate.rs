//! A program with its data becomes a module of our language.

mod alike;
mod of_values;
mod standing;

use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

use indexmap::IndexMap;

use super::axes;
use super::check::Checked;
use super::data::StanData;
use super::emit::{Emitter, Line, WORDS, simplified};
use super::syntax::ast::{Block, Program, Stmt};
use super::trace::{Declared, HostFunctions, Problem, Tracer};
use super::value::{Elem, Val};
use crate::base::{Diagnostic, Span, stack};
use crate::types::{Array, Type};

pub use alike::united;
pub use of_values::{OfValues, quantities, unconstrain, until};
pub use standing::standing;

/// A variable that a draw has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// As the program names it; the parts of a complex `z` are `z.real` and `z.imag`.
    pub name: String,
    /// The field of the struct that `parameters` gives.
    pub field: String,
    /// Extents of all axes, those of arrays first.
    pub shape: Vec<usize>,
    /// How many of them are those of `array[…]`.
    pub arrays: usize,
    /// Whether it is an int.
    pub int: bool,
    /// Of which block: 0 parameters, 1 transformed parameters, 2 generated quantities.
    pub block: u8,
}

/// Which of the parts that a sampler has no need of, or that the posterior itself has not, are in a log density.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// Addends that do not depend on the parameters. A statement `~` of Stan leaves them out where a sampler asks.
    pub constants: bool,
    /// The logarithm of the Jacobian determinant of the transforms from the unconstrained space.
    pub jacobian: bool,
}

impl Default for Terms {
    /// What a sampler takes.
    fn default() -> Self {
        Self { constants: false, jacobian: true }
    }
}

/// A program of our language that does what a Stan program does with its data.
#[derive(Clone, Debug)]
pub struct Translation {
    /// `pub fn log_density(q: real[d], shared …) -> real`, and
    /// `pub fn parameters(q: real[d], shared …)`, a struct. With marks of what comes from where: [`placed`](super::placed)
    /// takes them out.
    pub text: String,
    /// For each line of the text the place of the Stan program that it comes from.
    pub lines: Vec<Option<Span>>,
    /// The values of the shared parameters of both functions.
    pub tables: IndexMap<String, Array>,
    /// Unconstrained coordinates.
    pub dimension: usize,
    /// What `parameters` gives, in Stan's order.
    pub outputs: Vec<Output>,
    /// Lines that the program prints before it has parameters: of its data alone.
    pub printed: Vec<String>,
    /// What the axes of variables are called, data included.
    pub axes: IndexMap<String, Vec<Option<String>>>,
}

/// Translates a program that was checked.
///
/// # Errors
/// All data that are missing or not what the program declares; else the first thing that the program rejects before it has
/// parameters, or that is not supported yet.
pub fn translate(
    program: &Program,
    checked: &Checked,
    data: &StanData,
    terms: Terms,
    host: &mut (dyn HostFunctions + Send),
) -> Result<Translation, Vec<Diagnostic>> {
    run(program, checked, data, terms, host)
        .map_err(|problem| std::iter::once(&*problem).chain(&problem.others).map(told).collect())
}

/// Why the density is no finite number at a point.
#[derive(Clone, Debug)]
pub struct Explained {
    /// In Stan's words.
    pub why: String,
    /// Where.
    pub span: Span,
    /// Whether the program rejects the point, which has no density then.
    pub rejects: bool,
}

/// Why the density is no finite number at a point of the unconstrained space: what the program rejects there, or else the
/// first statement that adds what is none. The host runs the program, which takes its time. `None` where all is finite,
/// and where the host cannot tell.
pub fn explain(
    program: &Program,
    checked: &Checked,
    data: &StanData,
    point: &[f64],
    host: &mut (dyn HostFunctions + Send),
) -> Option<Explained> {
    let run = || -> Traced<Option<Explained>> {
        let mut tracer = Tracer::new(program, checked, host);
        tracer.point = Some(point.to_vec());
        let (_, jacobian) = prepare(&mut tracer, program, data)?;
        tracer.in_density = true;
        for term in &jacobian {
            let span = program.parameters.as_ref().map_or_else(no_place, |b| b.span);
            tracer.add_terms(span, term)?;
        }
        tracer.run(stmts(&program.transformed_parameters))?;
        tracer.check_block(stmts(&program.transformed_parameters))?;
        tracer.run(stmts(&program.model))?;
        let value = |elem: Elem| if let Elem::Real(x) = elem.as_real() { x } else { 0.0 };
        let first = tracer.target.iter().find(|term| !value(term.value).is_finite());
        Ok(first.map(|term| Explained {
            why: format!("what is added to the target here is {}", value(term.value)),
            span: term.span,
            rejects: false,
        }))
    };
    match stack::on_large_stack(4 * program.depth + 20_000, run) {
        Ok(found) => found,
        Err(problem) if problem.unsupported => None,
        Err(problem) => Some(Explained { why: problem.message, span: problem.span, rejects: true }),
    }
}

fn told(problem: &Problem) -> Diagnostic {
    let code = if problem.unsupported { "E2501" } else { "E2502" };
    let diagnostic = Diagnostic::error(code, problem.message.clone(), problem.span, "here");
    match &problem.help {
        Some(help) => diagnostic.with_help(help.clone()),
        None => diagnostic,
    }
}

fn stmts(block: &Option<Block>) -> &[Stmt] {
    block.as_ref().map_or(&[], |b| &b.stmts)
}

type Traced<T> = Result<T, Box<Problem>>;

/// Runs what comes before the parameters, and reads them.
fn prepare(tracer: &mut Tracer<'_>, program: &Program, data: &StanData) -> Traced<(usize, Vec<Val>)> {
    known(tracer, program, data)?;
    tracer.read_parameters(stmts(&program.parameters))
}

/// Runs what comes before the parameters.
fn known(tracer: &mut Tracer<'_>, program: &Program, data: &StanData) -> Traced<()> {
    tracer.read_data(stmts(&program.data), data)?;
    tracer.in_density = false;
    tracer.before_lanes = true;
    tracer.run(stmts(&program.transformed_data))?;
    tracer.check_block(stmts(&program.transformed_data))?;
    tracer.before_lanes = false;
    tracer.name_known();
    Ok(())
}

fn run(
    program: &Program,
    checked: &Checked,
    data: &StanData,
    terms: Terms,
    host: &mut (dyn HostFunctions + Send),
) -> Traced<Translation> {
    // Neither has to wait for the other.
    let host = Mutex::new(host);
    let density = || density(program, checked, data, terms, &mut Shared(&host));
    let parameters = || parameters(program, checked, data, &mut Shared(&host));
    let (density, parameters) = stack::both_on_large_stacks(4 * program.depth + 20_000, density, parameters);
    let ((mut lines, mut tables), dimension, printed) = density?;
    let ((more, more_tables), outputs) = parameters?;
    lines.extend(more);
    tables.extend(more_tables);
    let (text, lines) = joined(&lines);
    Ok(Translation { text, lines, tables, dimension, outputs, printed, axes: axes::of(program) })
}

/// What both functions ask.
struct Shared<'m, 'h>(&'m Mutex<&'h mut (dyn HostFunctions + Send)>);

impl HostFunctions for Shared<'_, '_> {
    fn evaluate(&mut self, text: &str, args: &[Array], ty: &Type, draw: Option<u64>) -> Result<Array, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).evaluate(text, args, ty, draw)
    }

    fn is_of_many(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_of_many()
    }
}

/// The text of lines, and the places that they come from.
fn joined(lines: &[Line]) -> (String, Vec<Option<Span>>) {
    let text = lines.iter().map(|line| format!("{}{}\n", "    ".repeat(line.indent), line.text)).collect();
    (text, lines.iter().map(|line| line.span).collect())
}

fn plain(text: impl Into<String>, indent: usize) -> Line {
    Line { text: text.into(), indent, span: None }
}

/// The shared parameters of a function.
pub(super) fn ports(tables: &IndexMap<String, Array>) -> String {
    tables.iter().map(|(name, array)| format!(", shared {name}: {}", array.ty())).collect()
}

/// A function's text and the tables that it reads.
type Written = (Vec<Line>, IndexMap<String, Array>);

fn density(
    program: &Program,
    checked: &Checked,
    data: &StanData,
    terms: Terms,
    host: &mut (dyn HostFunctions + Send),
) -> Traced<(Written, usize, Vec<String>)> {
    let mut tracer = Tracer::new(program, checked, host);
    let (dimension, jacobian) = prepare(&mut tracer, program, data)?;
    tracer.in_density = true;
    tracer.leaves_out = !terms.constants;
    for term in jacobian.into_iter().filter(|_| terms.jacobian) {
        let span = program.parameters.as_ref().map_or_else(no_place, |b| b.span);
        tracer.add_terms(span, &term)?;
    }
    tracer.run(stmts(&program.transformed_parameters))?;
    tracer.check_block(stmts(&program.transformed_parameters))?;
    tracer.run(stmts(&program.model))?;
    let left_out = if terms.constants { 0.0 } else { tracer.left_out };
    let mut terms: Vec<Elem> = tracer.target.iter().map(|t| t.value).collect();
    if left_out != 0.0 {
        terms.push(Elem::Real(-left_out));
    }
    let (mut graph, mut lines, printed) = (tracer.graph, tracer.routines.lines, tracer.printed);
    simplified(&mut graph, &[], &terms);
    let mut emitter = Emitter::new(&graph, &[], &terms, "");
    emitter.write();
    let total = emitter.total(&terms);
    let (body, tables): Written = emitter.into_parts();
    let tables = used(tables, &body, &total);
    let span = [&program.model, &program.parameters].into_iter().flatten().map(|block| block.span).next();
    let head = format!("pub fn log_density(q: real[{dimension}]{}) -> real {{", ports(&tables));
    lines.push(Line { span, ..plain(head, 0) });
    lines.extend(body);
    lines.push(Line { span, ..plain(total, 1) });
    lines.push(plain("}", 0));
    lines.push(plain("", 0));
    Ok(((lines, tables), dimension, printed))
}

fn no_place() -> Span {
    Span::new(crate::base::FileId(0), 0, 0)
}

/// The tables that the text reads.
fn used(tables: IndexMap<String, Array>, body: &[Line], last: &str) -> IndexMap<String, Array> {
    let last = plain(last, 0);
    used_by(&tables, body.iter().chain([&last]))
}

/// The tables that lines of a text read.
pub(super) fn used_by<'l>(
    tables: &IndexMap<String, Array>,
    lines: impl Iterator<Item = &'l Line>,
) -> IndexMap<String, Array> {
    let mut words = std::collections::HashSet::new();
    for text in lines.map(|line| line.text.as_str()) {
        words.extend(text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    }
    tables.iter().filter(|(name, _)| words.contains(name.as_str())).map(|(n, a)| (n.clone(), a.clone())).collect()
}

fn parameters(
    program: &Program,
    checked: &Checked,
    data: &StanData,
    host: &mut (dyn HostFunctions + Send),
) -> Traced<(Written, Vec<Output>)> {
    let mut tracer = Tracer::new(program, checked, host);
    tracer.routines.prefix = "g_";
    let (dimension, _) = prepare(&mut tracer, program, data)?;
    outputs(tracer, program, "parameters", dimension, PARAMETERS..=QUANTITIES)
}

/// The numbers of blocks: see [`Output::block`].
const PARAMETERS: u8 = 0;
const TRANSFORMED: u8 = 1;
const QUANTITIES: u8 = 2;

/// Runs what comes after the parameters, up to the last of some blocks, and writes the function that gives their variables.
fn outputs(
    mut tracer: Tracer<'_>,
    program: &Program,
    function: &str,
    dimension: usize,
    wanted: RangeInclusive<u8>,
) -> Traced<(Written, Vec<Output>)> {
    if *wanted.end() >= TRANSFORMED {
        tracer.run(stmts(&program.transformed_parameters))?;
    }
    if *wanted.end() >= QUANTITIES {
        tracer.in_quantities = true;
        tracer.run(stmts(&program.generated_quantities))?;
        tracer.check_block(stmts(&program.generated_quantities))?;
    }
    let blocks = [&program.parameters, &program.transformed_parameters, &program.generated_quantities];
    let (mut outputs, mut values): (Vec<Output>, Vec<Val>) = (Vec::new(), Vec::new());
    for (number, block) in (PARAMETERS..).zip(blocks).filter(|(number, _)| wanted.contains(number)) {
        for Declared { name, value } in tracer.declared(stmts(block))? {
            let mut field = field(&name);
            while outputs.iter().any(|other| other.field == field) {
                field.push('_');
            }
            outputs.push(Output {
                name: name.to_string(),
                field,
                shape: value.shape.clone(),
                arrays: value.kind.arrays,
                int: value.kind.is_int(),
                block: number,
            });
            values.push(value);
        }
    }
    let (mut graph, routines) = (tracer.graph, tracer.routines.lines);
    simplified(&mut graph, &values, &[]);
    let mut emitter = Emitter::new(&graph, &values, &[], "g_");
    emitter.write();
    let results: Vec<String> = values.iter().map(|v| emitter.result(v)).collect();
    let (body, tables): Written = emitter.into_parts();
    let tables = used(tables, &body, &results.join(" "));
    let mut lines = vec![plain("struct Parameters {", 0)];
    for output in &outputs {
        let base = if output.int { "int" } else { "real" };
        let extents: Vec<String> = output.shape.iter().map(usize::to_string).collect();
        let extents = if extents.is_empty() { String::new() } else { format!("[{}]", extents.join(", ")) };
        lines.push(plain(format!("{}: {base}{extents},", output.field), 1));
    }
    lines.push(plain("}", 0));
    lines.push(plain("", 0));
    if outputs.is_empty() {
        return Ok(((Vec::new(), IndexMap::new()), outputs));
    }
    lines.extend(routines);
    let span = blocks.iter().rev().copied().flatten().map(|block| block.span).next();
    let head = format!("pub fn {function}(q: real[{dimension}]{}) -> Parameters {{", ports(&tables));
    lines.push(Line { span, ..plain(head, 0) });
    lines.extend(body);
    lines.push(Line { span, ..plain("Parameters {", 1) });
    for (output, result) in outputs.iter().zip(results) {
        lines.push(plain(format!("{}: {result},", output.field), 2));
    }
    lines.push(plain("}", 1));
    lines.push(plain("}", 0));
    Ok(((lines, tables), outputs))
}

/// A name of Stan as the field of a struct: words of our language get an underscore, and so do the places of tuples.
fn field(name: &str) -> String {
    if WORDS.contains(&name) { format!("{name}_") } else { name.replace([':', '.'], "_") }
}
