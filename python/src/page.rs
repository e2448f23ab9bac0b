//! A run on one page.

use autobatch::Array;
use autobatch::report::{ElementNames, RunPage, RunState, StoredChains, Summary};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::sampling::{Along, in_python};
use crate::values::array;
use crate::watched::detached;

/// What is told of a run, and what it gave.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Told {
    title: String,
    facts: Vec<(String, String)>,
    /// By CmdStan's names.
    config: Vec<(String, String)>,
    stepsizes: Vec<f64>,
    numbers: Vec<usize>,
    draws: usize,
    complete: bool,
    seconds: f64,
    /// What axes of variables are called.
    dims: Vec<(String, Vec<String>)>,
    /// What stands along axes.
    coords: Vec<(String, Along)>,
}

/// The page of a run, as HTML.
#[pyfunction]
pub(crate) fn page(
    py: Python<'_>,
    told: &Bound<'_, PyDict>,
    parameters: &Bound<'_, PyDict>,
    statistics: &Bound<'_, PyDict>,
) -> PyResult<String> {
    let told: Told = told.extract()?;
    let arrays = |all: &Bound<'_, PyDict>| -> PyResult<Vec<(String, Array)>> {
        let of = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let name: String = name.extract()?;
            let value = array(&name, &value)?;
            Ok((name, value))
        };
        all.iter().map(of).collect()
    };
    let axes = told.dims.into_iter().map(|(name, axes)| (name, axes.into_iter().map(Some).collect()));
    let coords = told.coords.into_iter().map(|(axis, along)| (axis, along.into()));
    let chains = StoredChains {
        names: ElementNames::new(axes.collect(), coords.collect()),
        config: told.config.into_iter().collect(),
        parameters: arrays(parameters)?.into_iter().collect(),
        statistics: arrays(statistics)?.into_iter().collect(),
        stepsizes: told.stepsizes,
        seconds: vec![(0.0, told.seconds); told.numbers.len()],
        draws: told.draws,
        numbers: told.numbers,
        state: if told.complete { RunState::Complete } else { RunState::Interrupted },
        ..StoredChains::default()
    };
    detached(py, || {
        let mut summary = Summary::of_stored(&chains);
        summary.advise(in_python);
        let partial = chains.state.told(chains.draws);
        RunPage::of_stored((&told.title, &told.facts), partial.as_deref(), &chains, &summary).render()
    })
}
