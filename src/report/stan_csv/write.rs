//! The file of one chain.

use std::io::{self, Write};

use indexmap::IndexMap;

use super::header::CsvRun;
use super::number::general;
use crate::mcmc::protocol::{ACCEPT_STAT, DIVERGENT, ENERGY, LP, N_LEAPFROG, STEPSIZE, TREEDEPTH};
use crate::mcmc::sampling::{ChainDraws, Draws, Metric, WarmupStates};
use crate::types::{Array, ComplexPart, Scalar, column_major};

/// Significant digits, as CmdStan has them where nobody says otherwise.
pub const DEFAULT_DIGITS: usize = 8;
/// The most significant digits: with 17 a number reads back as the same number.
pub const MOST_DIGITS: usize = 18;

/// What the sampler tells of a draw, in the order of the columns.
const STATISTICS: [&str; 7] = [LP, ACCEPT_STAT, STEPSIZE, TREEDEPTH, N_LEAPFROG, DIVERGENT, ENERGY];

/// What a file has of a chain.
#[derive(Clone, Copy, Debug)]
pub struct ChainRows<'a> {
    /// The number of the chain in the run.
    pub number: usize,
    statistics: &'a IndexMap<String, Array>,
    parameters: &'a IndexMap<String, Array>,
    warmup_states: Option<&'a WarmupStates>,
    /// The place of the chain in these arrays.
    place: usize,
    /// Its draws.
    pub(super) draws: usize,
    /// Iterations of warmup that it has made.
    pub(super) warmup: usize,
    /// Whether its warmup was over.
    is_warm: bool,
    stepsize: f64,
    inv_metric: Option<&'a Array>,
    seconds: (f64, f64),
}

impl<'a> ChainRows<'a> {
    /// A chain by its place in the arrays of draws.
    pub fn of(draws: &'a Draws, place: usize) -> Self {
        Self {
            number: draws.chains[place],
            statistics: &draws.statistics,
            parameters: &draws.parameters,
            warmup_states: draws.warmup_states.as_ref(),
            place,
            draws: draws.draws,
            warmup: draws.warmup,
            is_warm: true,
            stepsize: draws.adapted.get(place).copied().or(draws.stepsize).unwrap_or(f64::NAN),
            inv_metric: draws.inv_metrics.get(place),
            seconds: draws.chain_seconds.get(place).copied().unwrap_or_default(),
        }
    }

    /// All that a chain has of a run that was stopped.
    pub fn alone(chain: &'a ChainDraws, draws: &Draws) -> Self {
        Self {
            number: chain.chain,
            statistics: &chain.statistics,
            parameters: &chain.parameters,
            warmup_states: chain.warmup_states.as_ref(),
            place: 0,
            draws: chain.draws,
            warmup: chain.warmup,
            is_warm: chain.adapted.is_some() || chain.draws > 0,
            stepsize: chain.adapted.or(draws.stepsize).unwrap_or(f64::NAN),
            inv_metric: chain.inv_metric.as_ref(),
            seconds: chain.seconds,
        }
    }
}

/// A chain of a run as a file.
#[derive(Clone, Copy, Debug)]
pub struct CsvChain<'a> {
    /// The run.
    pub run: &'a CsvRun,
    /// What all its chains have in common.
    pub draws: &'a Draws,
    /// What there is of the chain.
    pub rows: ChainRows<'a>,
    /// Its number, from 1.
    pub id: u64,
}

impl CsvChain<'_> {
    /// Writes the file, whose name is `file`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write, file: &str) -> io::Result<()> {
        let Self { run, draws, rows, id } = *self;
        for line in run.lines(draws, &rows, id, file) {
            writeln!(out, "# {line}")?;
        }
        let columns = Columns::new(rows.statistics, rows.parameters);
        writeln!(out, "{}", columns.names().join(","))?;
        if let Some(warmup) = rows.warmup_states {
            Columns::new(&warmup.statistics, &warmup.parameters).rows(out, (rows.place, warmup.states), run.digits)?;
        }
        if rows.is_warm && !run.is_fixed_param() {
            self.adaptation(out)?;
        }
        columns.rows(out, (rows.place, rows.draws), run.digits)?;
        let (warmup, sampling) = rows.seconds;
        writeln!(out, "# ")?;
        writeln!(out, "#  Elapsed Time: {} seconds (Warm-up)", general(warmup, 3))?;
        writeln!(out, "#                {} seconds (Sampling)", general(sampling, 3))?;
        writeln!(out, "#                {} seconds (Total)", general(warmup + sampling, 3))?;
        writeln!(out, "# ")
    }

    /// What warmup learnt.
    fn adaptation(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { run, draws, rows, .. } = *self;
        writeln!(out, "# Adaptation terminated")?;
        writeln!(out, "# Step size = {}", general(rows.stepsize, run.digits))?;
        writeln!(
            out,
            "# {}",
            match draws.metric {
                Metric::Unit => "No free parameters for unit metric",
                Metric::Diagonal => "Diagonal elements of inverse mass matrix:",
                Metric::Dense => "Elements of inverse mass matrix:",
            }
        )?;
        let metric = rows.inv_metric.filter(|_| draws.metric != Metric::Unit);
        let Some((metric, values)) = metric.and_then(|metric| Some((metric, metric.as_real()?))) else {
            return Ok(());
        };
        for row in values.chunks(metric.shape[1].max(1)) {
            let row: Vec<String> = row.iter().map(|v| general(*v, run.digits)).collect();
            writeln!(out, "# {}", row.join(", "))?;
        }
        Ok(())
    }
}

/// The columns of a file.
pub(super) struct Columns<'a>(Vec<Column<'a>>);

/// An element of an array chain × draw × event shape.
struct Column<'a> {
    name: String,
    array: &'a Array,
    /// How many elements a draw has.
    width: usize,
    /// Its place among them.
    element: usize,
}

impl<'a> Columns<'a> {
    pub(super) fn new(statistics: &'a IndexMap<String, Array>, parameters: &'a IndexMap<String, Array>) -> Self {
        let known = STATISTICS.iter().filter_map(|name| Some((*name, statistics.get(*name)?)));
        // Of a sampler of the user's own.
        let others = statistics.iter().map(|(name, array)| (name.as_str(), array));
        let others = others.filter(|(name, array)| array.shape.len() == 2 && !STATISTICS.contains(name));
        Self::in_order(known.chain(others), parameters)
    }

    /// Those of statistics in the order in which they are given, then the parameters.
    pub(super) fn in_order<'n>(
        statistics: impl Iterator<Item = (&'n str, &'a Array)>,
        parameters: &'a IndexMap<String, Array>,
    ) -> Self {
        let mut all: Vec<Column<'a>> =
            statistics.flat_map(|(name, array)| elements(&format!("{name}__"), "", array)).collect();
        let mut parameters = parameters.iter().peekable();
        while let Some((name, array)) = parameters.next() {
            // The parts of complex numbers stand side by side.
            if let Some((of, re @ ComplexPart::Real)) = ComplexPart::named(name)
                && let im = ComplexPart::Imaginary
                && let Some((_, imag)) = parameters
                    .next_if(|(next, imag)| ComplexPart::named(next) == Some((of, im)) && imag.shape == array.shape)
            {
                let re = elements(&called(of), re.suffix(), array);
                let im = elements(&called(of), im.suffix(), imag);
                all.extend(re.into_iter().zip(im).flat_map(|(re, im)| [re, im]));
            } else {
                all.extend(elements(&called(name), "", array));
            }
        }
        Self(all)
    }

    /// `theta.1.2`: indices from 1.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.iter().map(|column| column.name.clone()).collect()
    }

    pub(super) fn rows(&self, out: &mut dyn Write, (chain, draws): (usize, usize), digits: usize) -> io::Result<()> {
        let mut line = String::new();
        for draw in 0..draws {
            line.clear();
            for Column { array, width, element, .. } in &self.0 {
                line += &shown(array.get((chain * draws + draw) * width + element), digits);
                line.push(',');
            }
            line.pop();
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

/// Parts of structs and tuples are called as Stan calls those of tuples; in names of Stan's they are already.
fn called(name: &str) -> String {
    if name.contains(':') { name.to_owned() } else { name.replace('.', ":") }
}

/// The columns of an array, whose names end so.
fn elements<'a>(name: &str, end: &str, array: &'a Array) -> Vec<Column<'a>> {
    let event = &array.shape[2..];
    let index = |element: usize| -> String {
        let mut rest = element;
        let indices: Vec<usize> = event
            .iter()
            .rev()
            .map(|extent| {
                let index = rest % extent + 1;
                rest /= extent;
                index
            })
            .collect();
        indices.iter().rev().map(|i| format!(".{i}")).collect()
    };
    let places: Vec<usize> = column_major(event, 0).collect();
    let width = places.len();
    let column = |element: usize| Column { name: format!("{name}{}{end}", index(element)), array, width, element };
    places.into_iter().map(column).collect()
}

fn shown(value: Scalar, digits: usize) -> String {
    match value {
        Scalar::Bool(b) => u8::from(b).to_string(),
        Scalar::Int(i) => i.to_string(),
        Scalar::Real(r) => general(r, digits),
    }
}
