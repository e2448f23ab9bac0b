//! Models with their data, as Python gives them.

use std::path::PathBuf;

use autobatch::program::io::{Data, NamedValues};
use autobatch::report::render;
use autobatch::sampler::LoadedModel;
use autobatch::{Options, Sampler};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::values::data;

/// A model and its data.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Given<'py> {
    /// Where the model is: in a file ("file"), or a text of Stan ("stan") or of the language ("text").
    kind: String,
    model: String,
    include: Vec<PathBuf>,
    data: Bound<'py, PyDict>,
    data_file: Option<PathBuf>,
}

impl Given<'_> {
    /// What samples from it.
    pub(crate) fn sampler(&self, options: Options) -> PyResult<Sampler> {
        let mut sampler = match self.kind.as_str() {
            "file" => Sampler::of_file(&self.model),
            "stan" => Sampler::of_stan_source(&self.model),
            _ => Sampler::of_source(&self.model),
        };
        sampler = self.include.iter().cloned().fold(sampler, Sampler::include_path).options(options);
        if let Some(path) = &self.data_file {
            sampler = sampler.data_file(path);
        }
        Ok(sampler.data_values(named("data", &self.data)?))
    }
}

/// Values by name.
pub(crate) fn named(origin: &str, values: &Bound<'_, PyDict>) -> PyResult<NamedValues> {
    let mut all: Vec<(String, Data)> = Vec::with_capacity(values.len());
    for (name, value) in values.iter() {
        let name: String = name.extract()?;
        let value = data(&name, &value)?;
        all.push((name, value));
    }
    Ok(NamedValues::of_data(origin.to_owned(), all))
}

/// What a Stan program says of itself: its warnings, and on standard error what it prints of its data.
pub(crate) fn warnings(model: &LoadedModel<'_>) -> Vec<String> {
    let Some(stan) = model.stan() else { return vec![] };
    stan.printed().iter().for_each(|line| eprintln!("{line}"));
    let (found, sources) = stan.warnings();
    found.iter().map(|one| render(std::slice::from_ref(one), sources, false).trim_end().to_owned()).collect()
}
