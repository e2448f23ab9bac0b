//! The program that joins a model, a sampler and a chain: nobody has written it, and its errors are told without it.

use crate::base::Diagnostic;
use crate::mcmc::density_text::DensityText;
use crate::mcmc::protocol::{AVERAGING, STATE, WINDOW};
use crate::program::{Error, ErrorKind, Function, Inputs, Program};

use super::method::{FORM, Method, TRANSITION};
use super::{DataSets, Job, Metric, model};

/// What the driver program is called.
const DRIVER: &str = "<driver>";

/// The built-in functions of the driver, which data must leave alone.
const BUILTINS: [&str; 2] = ["attempt", "value_and_grad"];

/// The driver program, compiled, and the names of its own parameters.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) program: Program,
    pub(super) names: Names,
}

/// Names of the driver's own: none is that of data or of a dimension of the model.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub(super) num_warmup: String,
    pub(super) num_draws: String,
    pub(super) stepsize: String,
    pub(super) start: String,
    pub(super) inv_metric: String,
    position: String,
    origin: String,
    factor: String,
    coordinates: String,
    index: String,
    other_index: String,
    /// Whether a chain starts from a state.
    pub(super) resumed: String,
    /// The fields of that state.
    pub(super) state: Vec<String>,
}

impl Names {
    fn new(taken: &[&str]) -> Self {
        let free = |name: &str| {
            let mut name = name.to_owned();
            while taken.contains(&name.as_str()) {
                name.push('_');
            }
            name
        };
        Self {
            num_warmup: free("num_warmup"),
            num_draws: free("num_draws"),
            stepsize: free("stepsize"),
            start: free("start"),
            inv_metric: free("inv_metric"),
            position: free("position"),
            origin: free("q0"),
            factor: free("factor"),
            coordinates: free("z"),
            index: free("i"),
            other_index: free("j"),
            resumed: free("resumed"),
            state: STATE.fields.iter().map(|(name, ..)| free(&format!("state_{name}"))).collect(),
        }
    }
}

impl Driver {
    /// Joins a density, whose data are given, to a sampler and its chain.
    pub(super) fn new(job: &Job<'_>, method: &Method, density: &Function<'_>, given: &Inputs) -> Result<Self, Error> {
        model::check_inputs(job, density, given)?;
        let signature = density.signature();
        let ports = signature.ports.iter().map(|p| p.name.as_str());
        let taken: Vec<&str> = ports.chain(signature.dims.values().map(String::as_str)).collect();
        if let Some(name) = taken.iter().find(|name| BUILTINS.contains(name)) {
            let message = format!(
                "{}: `{name}` is a built-in function that sampling needs: give the data or the dimension another name",
                job.model.name()
            );
            return Err(Error::new(ErrorKind::Entry, message));
        }
        let names = Names::new(&taken);
        let source = text(job, method, density, given, &names);
        let varying = job.model.varying(job.data_sets.as_ref().map(DataSets::names).unwrap_or_default());
        let program = Program::compile_with(DRIVER, &source, job.model.module().1, varying)
            .map_err(|error| wrong_sampler(method, error))?;
        Ok(Self { program, names })
    }
}

/// The text of the driver.
fn text(job: &Job<'_>, method: &Method, density: &Function<'_>, given: &Inputs, names: &Names) -> String {
    let written = DensityText::new(density, given);
    let (state_type, dimension) = (&written.state, &written.dimension);
    let Names { num_warmup, num_draws, stepsize, start, position, index, .. } = names;

    let mut params: Vec<String> = Vec::new();
    let origin = if job.starts.is_some() {
        params.push(format!("{start}: {state_type}"));
        start.clone()
    } else {
        format!("[0.0 for {index} in 0..{dimension}]")
    };
    params.extend(written.params);
    // What warmup learns.
    let (learns, metric, fixed) = match job.stepsize {
        Some(_) => {
            params.push(format!("shared {stepsize}: real"));
            (false, false, stepsize.as_str())
        }
        None => (true, job.metric != Metric::Unit, "1.0"),
    };
    let adapts = format!("chain::Adapts {{ stepsize: {learns}, metric: {metric}, fixed: {fixed} }}");
    if job.inv_metric.is_some() {
        let rank = if job.metric == Metric::Dense { format!("{dimension}, {dimension}") } else { dimension.clone() };
        let shared = if job.has_metrics() { "" } else { "shared " };
        params.push(format!("{shared}{}: real[{rank}]", names.inv_metric));
    }
    params.extend([num_warmup, num_draws].map(|count| format!("shared {count}: int")));
    let moves = Moves::new(job, method, names, (state_type.as_str(), dimension.as_str()));
    let shape = if job.metric == Metric::Dense { "dense" } else { "diagonal" };
    let verb = if job.resumes { "resume" } else { "run" };
    let state = if job.resumes {
        params.push(format!("{}: bool", names.resumed));
        let types = STATE.fields.iter().map(|(name, dtype, rank)| match (*name, rank) {
            (_, 0) => dtype.to_string(),
            (AVERAGING, _) => format!("{dtype}[4]"),
            (WINDOW, _) => format!("{dtype}[2]"),
            (_, 1) => format!("{dtype}[{dimension}]"),
            _ if job.metric == Metric::Dense => format!("{dtype}[{dimension}, {dimension}]"),
            _ => format!("{dtype}[1, {dimension}]"),
        });
        params.extend(names.state.iter().zip(types).map(|(name, ty)| format!("{name}: {ty}")));
        format!("{}, chain::state_of_record({}),\n        ", names.resumed, names.state.join(", "))
    } else {
        String::new()
    };
    format!(
        "use \"{model}\" as model;\nuse \"{sampler}\" as sampler;\nuse \"{chain}\" as chain;\n\n\
         pub fn main{dims}({params}) {{\n    \
         let density = |{position}: {state_type}| {density}({position}{args});\n    \
         chain::{verb}_{shape}_chain(\n        \
         density,\n        \
         {transition},\n        \
         {of_chain},\n        {adapts},\n        {origin},\n        {inv_metric},\n        {state}\
         {num_warmup}, {num_draws},\n    );\n}}\n",
        model = job.model.module().0,
        sampler = method.sampler,
        chain = method.chain,
        dims = written.dims,
        density = written.call,
        params = params.join(", "),
        args = written.args,
        transition = moves.transition,
        of_chain = method.of_chain.literal("chain"),
        inv_metric = moves.inv_metric,
    )
}

/// How a chain moves, by the metric that it has.
struct Moves {
    /// The closure that makes a transition.
    transition: String,
    /// The inverse metric to start with.
    inv_metric: String,
}

impl Moves {
    fn new(job: &Job<'_>, method: &Method, names: &Names, (state, dimension): (&str, &str)) -> Self {
        // A tuning stands where it is used: were it bound before, its name would hide data of that name.
        let tuning = method.of_sampler.as_ref().map(|tuning| tuning.literal("sampler") + ", ").unwrap_or_default();
        let Names { origin, factor, coordinates: z, index: i, other_index: j, .. } = names;
        let given = job.inv_metric.as_ref().map(|_| names.inv_metric.clone());
        let ones = format!("[1.0 for {i} in 0..{dimension}]");
        match job.metric {
            Metric::Unit | Metric::Diagonal => Self {
                transition: format!(
                    "|point, inv_metric, eps| sampler::{TRANSITION}(density, {tuning}inv_metric, eps, point)"
                ),
                inv_metric: given.unwrap_or(ones),
            },
            Metric::Dense => Self {
                transition: format!(
                    "|{origin}, {factor}, point, eps| sampler::{TRANSITION}(\n            \
                     |{z}: {state}| chain::whitened_density(density, {origin}, {factor}, {z}), \
                     {tuning}{ones}, eps, point)"
                ),
                inv_metric: given.unwrap_or_else(|| {
                    format!("[if {i} == {j} {{ 1.0 }} else {{ 0.0 }} for {i} in 0..{dimension}, {j} in 0..{dimension}]")
                }),
            },
        }
    }
}

/// Whether an error is of the driver program, and not of the user's.
fn is_in_driver(error: &Error, diagnostic: &Diagnostic) -> bool {
    diagnostic.labels.first().is_some_and(|l| error.sources().file(l.span.file).name == DRIVER)
}

/// An error of the driver program in words that need no look at it.
pub(super) fn without_driver(error: Error) -> Error {
    if !error.diagnostics().iter().any(|d| is_in_driver(&error, d)) {
        return error;
    }
    Error::new(ErrorKind::Input, told(&error).join("\n"))
}

/// The same of a driver that does not compile: what it calls has another form.
fn wrong_sampler(method: &Method, error: Error) -> Error {
    if !error.diagnostics().iter().any(|d| is_in_driver(&error, d)) {
        return error;
    }
    let why = told(&error).join("; ");
    let message = format!(
        "{} and {} do not fit together: {why}; a sampler exports `{FORM}`: see nuts/README.md",
        method.name, method.chain
    );
    Error::new(ErrorKind::Entry, message)
}

fn told(error: &Error) -> Vec<String> {
    let told = |d: &Diagnostic| [&[d.message.clone()][..], &d.notes].concat().join("; ");
    error.diagnostics().iter().map(told).collect()
}
