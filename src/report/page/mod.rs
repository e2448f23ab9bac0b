//! A run on one page that needs nothing else: what was found first, then tables and pictures. It is as large for a thousand
//! chains as for four: what is worst is drawn, and what is not drawn is counted. Pictures have their numbers beside them, in
//! words and as tables; nothing in it is a program.

mod agreement;
mod correlation;
mod figure;
mod forest;
mod lanes;
mod machine;
mod pairs;
mod panel;
mod sampler;
mod scalars;
mod trace;

use indexmap::IndexMap;
use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use rayon::prelude::*;
use serde::Serialize;

use super::checks::Checks;
use super::element_names::ElementNames;
use super::stored::StoredChains;
use super::summary::{ESS_PER_CHAIN, Summary, SummaryRow, fixed, significant, whole};
use crate::mcmc::diagnostics::{COVERAGE, e_bfmi, mean};
use crate::mcmc::protocol::{DIVERGENT, ENERGY, LP, TREEDEPTH};
use crate::run::{Stats, Timeline};
use crate::types::Array;
use figure::Figure;
use scalars::{Agreed, Elements, Scalar};

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
/// Rows of the table of parameters, and of that of chains.
const ROWS: usize = 200;
const CHAIN_ROWS: usize = 20;
/// Intervals of the forest.
const INTERVALS: usize = 40;
/// Parameters that are drawn one by one.
const DRAWN: usize = 8;

/// What a page is made of.
#[derive(Clone, Copy, Debug)]
pub struct RunPage<'a> {
    /// What stands above it.
    pub title: &'a str,
    /// What was run: names and values, in the order in which they stand there.
    pub facts: &'a [(String, String)],
    /// Why the draws are not all, where they are not.
    pub partial: Option<&'a str>,
    /// The table, and what there is to worry about.
    pub summary: &'a Summary,
    /// Parameters, chain × draw × event shape.
    pub parameters: &'a IndexMap<String, Array>,
    /// What elements of the parameters are called.
    pub names: &'a ElementNames,
    /// What the sampler tells, chain × draw.
    pub statistics: &'a IndexMap<String, Array>,
    /// The step sizes at the end of warmup.
    pub stepsizes: &'a [f64],
    /// The numbers of the chains.
    pub numbers: &'a [usize],
    /// What was observed, where it is to be shown.
    pub observed: Option<&'a IndexMap<String, Array>>,
    /// What the machine counted and measured, where it did.
    pub stats: Option<&'a Stats>,
    /// Supersteps one by one, where they were noted.
    pub timeline: Option<&'a Timeline>,
}

/// A parameter that is drawn by itself.
#[derive(Serialize)]
struct Drawn {
    name: String,
    told: String,
    figures: Vec<Figure>,
}

impl<'a> RunPage<'a> {
    /// Of chains that are stored, with their summary; `partial` says why the draws are not all.
    pub fn of_stored(
        (title, facts): (&'a str, &'a [(String, String)]),
        partial: Option<&'a str>,
        chains: &'a StoredChains,
        summary: &'a Summary,
    ) -> Self {
        Self {
            title,
            facts,
            partial,
            summary,
            parameters: &chains.parameters,
            names: &chains.names,
            statistics: &chains.statistics,
            stepsizes: &chains.stepsizes,
            numbers: &chains.numbers,
            observed: None,
            stats: None,
            timeline: None,
        }
    }

    /// The page.
    pub fn render(&self) -> String {
        let sampler = &self.summary.sampler;
        let checks = Checks::of(self.summary);
        let enough = ESS_PER_CHAIN * sampler.chains.clamp(1, 4) as f64;
        let rows = scalars::worst_first(&self.summary.rows, enough);
        let elements = Elements::of(self.parameters, self.names);
        let scalars = elements.drawn(&rows, INTERVALS);
        let agreed: Vec<Option<Agreed>> =
            scalars.par_iter().take(DRAWN).map(|scalar| Agreed::of(scalar).filter(|_| !sampler.stays)).collect();
        let one_by_one: Vec<Drawn> = scalars
            .par_iter()
            .zip(&agreed)
            .enumerate()
            .map(|(at, (scalar, agreed))| self.drawn(at, scalar, agreed.as_ref()))
            .collect();
        let worth = [correlation::correlations(&scalars), correlation::growth(&scalars, enough)];
        let worth: Vec<Figure> = worth.into_iter().flatten().filter(|_| !sampler.stays).collect();
        let did = [
            sampler::energies(self.statistics),
            sampler::fractions(self.statistics, self.numbers),
            sampler::trees(self.statistics, sampler.max_treedepth),
            sampler::stepsizes(self.stepsizes, self.numbers),
        ];
        let did: Vec<Figure> = did.into_iter().flatten().collect();
        let divergent = pairs::divergent(self.statistics.get(DIVERGENT));
        let context = context! {
            style => STYLE,
            title => self.title,
            partial => self.partial,
            facts => Value::from(Serde(self.facts)),
            version => env!("CARGO_PKG_VERSION"),
            state => format!("{} chains of {} draws", sampler.chains, sampler.draws / sampler.chains.max(1)),
            verdict => checks.told(),
            findings => findings(&checks),
            notes => &self.summary.notes,
            table => table(&rows[..rows.len().min(ROWS)], enough),
            rows => rows.len(),
            rows_left => rows.len().saturating_sub(ROWS),
            forest => figures(forest::forest(&scalars)),
            forest_left => self.summary.rows.len() - scalars.len(),
            drawn => Value::from(Serde(&one_by_one)),
            drawn_left => self.summary.rows.len() - one_by_one.len(),
            chains => self.chains(&agreed),
            chains_left => self.numbers.len().saturating_sub(CHAIN_ROWS),
            worth => figures(worth),
            did => figures(did),
            pairs => figures(pairs::pairs(&scalars, &divergent).into_iter().collect()),
            observed => self.observed.map(observed),
            machine => self.stats.and_then(machine::told),
            lanes => self.timeline.and_then(lanes::told),
            coverage => whole(100.0 * COVERAGE),
        };
        let mut environment = Environment::new();
        environment.add_template("page.html", TEMPLATE).expect("the template is part of the program");
        let template = environment.get_template("page.html").expect("it was just added");
        template.render(context).expect("the template takes this context")
    }

    fn drawn(&self, at: usize, scalar: &Scalar<'_>, agreed: Option<&Agreed>) -> Drawn {
        let row = scalar.row;
        let mut figures = vec![trace::trace(at, scalar, agreed, self.numbers)];
        if let Some(agreed) = agreed {
            figures.push(agreement::strips(at, scalar, agreed, self.numbers));
            figures.push(agreement::functions(at, scalar, agreed, self.numbers));
        }
        let told = format!(
            "R-hat {}, effective sample size {} (bulk) and {} (tail), mean {} ± {}",
            fixed(row.rhat, 3),
            whole(row.ess_bulk),
            whole(row.ess_tail),
            significant(row.mean, 4),
            significant(row.mcse, 2)
        );
        Drawn { name: row.name.clone(), told, figures }
    }

    /// A row for each of the chains that are farthest from the others, or troubled.
    fn chains(&self, agreed: &[Option<Agreed>]) -> Vec<Vec<String>> {
        let chains = |name: &str| {
            self.statistics.get(name).map_or_else(Vec::new, |array| super::summary::scalar_chains(array, 0))
        };
        let (lp, depth, flags, energy) = (chains(LP), chains(TREEDEPTH), chains(DIVERGENT), chains(ENERGY));
        let told = |values: &[Vec<f64>], chain: usize, of: &dyn Fn(&[f64]) -> String| {
            values.get(chain).map_or("-".to_owned(), |values| of(values))
        };
        let of = |chain: usize| {
            let reach = agreed.iter().flatten().filter_map(|a| a.reach.get(chain));
            let outside = reach.clone().filter(|reach| **reach > 1.0).count();
            let farthest = reach.copied().fold(0.0, f64::max);
            let divergent = flags.get(chain).map_or(0, |flags| flags.iter().filter(|flag| **flag != 0.0).count());
            let fraction = energy.get(chain).map_or(f64::NAN, |energy| e_bfmi(energy));
            let low = if fraction < super::statistics::E_BFMI_LIMIT { 1 } else { 0 };
            let cells = vec![
                self.numbers[chain].to_string(),
                outside.to_string(),
                fixed(farthest, 2),
                divergent.to_string(),
                fixed(fraction, 2),
                self.stepsizes.get(chain).map_or("-".to_owned(), |step| significant(*step, 3)),
                told(&depth, chain, &|values| fixed(mean(&[values]), 1)),
                told(&lp, chain, &|values| significant(mean(&[values]), 4)),
            ];
            ((outside, divergent + low, farthest), cells)
        };
        let mut rows: Vec<_> = (0..self.numbers.len()).map(of).collect();
        rows.sort_by(|(a, _), (b, _)| b.0.cmp(&a.0).then(b.1.cmp(&a.1)).then(b.2.total_cmp(&a.2)));
        rows.into_iter().take(CHAIN_ROWS).map(|(_, cells)| cells).collect()
    }
}

fn figures(figures: Vec<Figure>) -> Value {
    Value::from(Serde(&figures))
}

fn findings(checks: &Checks) -> Vec<Value> {
    let of = |finding: &super::checks::CheckResult| {
        let class = match finding.verdict {
            super::checks::Verdict::Fine => "fine",
            super::checks::Verdict::Look => "look",
            super::checks::Verdict::Untold => "untold",
        };
        let word = finding.verdict.word();
        context! { what => finding.what, word, class, text => &finding.text, command => &finding.command }
    };
    checks.findings.iter().map(of).collect()
}

/// The rows of the table of parameters.
fn table(rows: &[&SummaryRow], enough: f64) -> Vec<Value> {
    let of = |row: &&SummaryRow| {
        let few = row.ess_bulk < enough || row.ess_tail < enough;
        let worry = few || !row.chains_agree || row.not_numbers + row.infinite > 0;
        context! { cells => row.cells().to_vec(), worry }
    };
    rows.iter().map(of).collect()
}

/// Observed data, in short: shape, range and the first values.
fn observed(all: &IndexMap<String, Array>) -> Vec<Vec<String>> {
    let of = |(name, array): (&String, &Array)| {
        let values: Vec<f64> = (0..array.len()).map(|at| super::summary::as_real(array.get(at))).collect();
        let q = crate::mcmc::diagnostics::quantiles(&[&values], &[0.0, 0.5, 1.0]);
        let first: Vec<String> = values.iter().take(8).map(|x| significant(*x, 4)).collect();
        let more = if values.len() > 8 { ", …" } else { "" };
        let shape: Vec<String> = array.shape.iter().map(ToString::to_string).collect();
        let shape = if shape.is_empty() { "1".to_owned() } else { shape.join(" × ") };
        let [least, median, most] = [q[0], q[1], q[2]].map(|x| significant(x, 4));
        vec![name.clone(), shape, least, median, most, first.join(", ") + more]
    };
    all.iter().take(ROWS).map(of).collect()
}
