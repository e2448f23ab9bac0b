//! The arguments that the commands have in common that look for modes: where they start, L-BFGS, where results go.

use std::path::PathBuf;

use clap::Args;

use crate::mcmc::optimize::Optimization;
use crate::mcmc::sampling::{INIT_RADIUS, SamplerSettings};
use crate::program::{Error, Options};
use crate::report::stan_csv::CsvHeader;
use crate::types::Array;

use super::args::EngineArgs;
use super::inits;
use super::model::{Model, ModelArgs};
use super::sample_args::DrawsFileArgs;
use super::sample_files::DrawsFile;

/// What stands behind the arguments of a command's own.
#[derive(Debug, Args)]
pub(super) struct SearchArgs {
    #[command(flatten)]
    pub(super) start: StartArgs,
    #[command(flatten)]
    pub(super) tolerances: ToleranceArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    file: DrawsFileArgs,
}

impl SearchArgs {
    /// What a run takes.
    ///
    /// # Errors
    /// For options that make no sense.
    pub(super) fn options(&self) -> Result<Options, Error> {
        let mut options = self.engine.options(false)?;
        options.first_lane = self.start.id - 1;
        Ok(options)
    }

    /// Where the results go, which is none of the files that are read: these, and those that so many starts
    /// are in.
    ///
    /// # Errors
    /// As [`DrawsFile::new`] and [`DrawsFile::spares`].
    pub(super) fn file(&self, read: impl Iterator<Item = PathBuf>, starts: usize) -> Result<DrawsFile, Error> {
        let file = DrawsFile::new(&self.file, 1, self.start.id)?;
        let given = self.start.init.as_deref().and_then(inits::files).unwrap_or_default();
        file.spares(read.chain(inits::of_chains(&given, starts, self.start.id)), 1, self.start.id)?;
        Ok(file)
    }

    /// What Stan CSV tells of a method with these lines.
    pub(super) fn header(
        &self,
        model: &ModelArgs,
        method: &'static str,
        lines: Vec<String>,
        options: &Options,
    ) -> CsvHeader {
        CsvHeader {
            model: CsvHeader::model_of(&model.model),
            method,
            lines,
            data: model.data.data.as_ref().map(|path| path.display().to_string()),
            init: self.start.init.clone(),
            seed: options.settings.seed,
            digits: self.file.digits(),
        }
    }

    /// The search for a mode from so many starts, each of which has so many iterations at most.
    ///
    /// # Errors
    /// For starts that cannot be read, and settings that are no numbers.
    pub(super) fn optimization(
        &self,
        model: &Model<'_>,
        (starts, iter): (usize, Option<usize>),
        options: &Options,
    ) -> Result<Optimization, Error> {
        Ok(Optimization {
            history_size: self.tolerances.history_size,
            starts,
            points: self.start.points(model, starts, options)?,
            settings: self.settings(iter)?,
            ..Optimization::default()
        })
    }

    /// What is set, with the radius of starts and the number of iterations.
    ///
    /// # Errors
    /// For what is no number.
    pub(super) fn settings(&self, iter: Option<usize>) -> Result<SamplerSettings, Error> {
        let radius = self.start.init.clone().filter(|text| inits::files(text).is_none());
        if let Some(text) = &radius {
            inits::check_radius(text)?;
        }
        let iter = iter.map(|n| n.to_string());
        let all = [(INIT_RADIUS, &radius)].into_iter().chain(self.tolerances.all()).chain([("iter", &iter)]);
        let mut given = all.filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        given.try_fold(SamplerSettings::new(), |settings, text| settings.with_text(&text))
    }
}

#[derive(Debug, Args)]
pub(super) struct StartArgs {
    /// Start within this distance of 0 in every unconstrained coordinate; or a file with the values of parameters by
    /// their names, as `sample --init` has it
    #[arg(long, value_name = "RADIUS|FILE,…", allow_hyphen_values = true)]
    pub(super) init: Option<String>,
    /// The number of the first start, from 1: it has the random stream of this number
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1 << 28))]
    pub(super) id: u64,
}

impl StartArgs {
    /// The points that are given for so many starts.
    ///
    /// # Errors
    /// For files that cannot be read, and what the model does not take.
    pub(super) fn points(&self, model: &Model<'_>, starts: usize, options: &Options) -> Result<Option<Array>, Error> {
        let Some(files) = self.init.as_deref().and_then(inits::files) else { return Ok(None) };
        inits::inits(&files, model, (starts, self.id), options).map(Some)
    }
}

/// Tolerances and other settings of quasi-Newton algorithms.
#[derive(Debug, Args)]
pub(super) struct ToleranceArgs {
    /// The first step of the first line search [default: 0.001]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    init_alpha: Option<String>,
    /// Stop where the log density changes by less [default: 1e-12]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    tol_obj: Option<String>,
    /// Stop where the log density changes by less than so many units in its last place [default: 1e4]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    tol_rel_obj: Option<String>,
    /// Stop where the norm of the gradient is less [default: 1e-8]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    tol_grad: Option<String>,
    /// Stop where the gradient, by the inverse Hessian, is less than so many units in the last place of the log density
    /// [default: 1e7]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    tol_rel_grad: Option<String>,
    /// Stop where the norm of a step is less [default: 1e-8]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    tol_param: Option<String>,
    /// Steps that L-BFGS remembers
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(super) history_size: usize,
}

impl ToleranceArgs {
    /// Those that are given have texts.
    fn all(&self) -> [(&'static str, &Option<String>); 6] {
        [
            ("init_alpha", &self.init_alpha),
            ("tol_obj", &self.tol_obj),
            ("tol_rel_obj", &self.tol_rel_obj),
            ("tol_grad", &self.tol_grad),
            ("tol_rel_grad", &self.tol_rel_grad),
            ("tol_param", &self.tol_param),
        ]
    }
}
