//! The model of a command: its program, of Stan or of the language, and its data.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::mcmc::sampling::{DataSets, ModelSource};
use crate::program::io::{NamedValues, read_argument};
use crate::program::{Error, ErrorKind, Function, Inputs, StanModel, Terms};

use super::args::InputArgs;
use super::inputs;

/// What a sampler takes of a log density: `lp__` of Stan's files.
pub(super) const SAMPLED: Terms = Terms { constants: false, jacobian: true };

/// What goes into a model besides its parameters.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct DataArgs {
    /// Data in Stan's JSON data format, or arrays by their names
    #[arg(long, value_name = "FILE.json|.npz")]
    pub(super) data: Option<PathBuf>,
    /// A value of the data, beside those of --data or in the place of one: JSON or @file
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) shared: Vec<String>,
    #[command(flatten)]
    pub(super) includes: IncludeArgs,
}

impl DataArgs {
    /// The files that are read: `--data`, and those that `--shared NAME=@FILE` names.
    pub(super) fn files(&self) -> impl Iterator<Item = PathBuf> {
        let shared =
            self.shared.iter().filter_map(|text| Some(PathBuf::from(text.split_once('=')?.1.strip_prefix('@')?)));
        self.data.iter().cloned().chain(shared)
    }
}

/// The model of a command, and what goes into it besides its parameters.
#[derive(Debug, Args)]
pub(super) struct ModelArgs {
    /// The model: exports `log_density`, and `parameters` for its constrained parameters
    pub(super) model: PathBuf,
    #[command(flatten)]
    pub(super) data: DataArgs,
}

impl ModelArgs {
    /// Reads it.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub(super) fn load(&self, terms: Terms, seed: u64) -> Result<Model<'_>, Error> {
        Model::load(&self.model, &self.data, terms, seed)
    }

    /// The files that are read.
    pub(super) fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.data.files().chain([self.model.clone()])
    }
}

/// Where the files are that Stan programs include.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct IncludeArgs {
    /// Look for the files that a Stan program includes in this folder, too; may be given several times
    #[arg(long, visible_alias = "include-paths", value_name = "FOLDER", value_delimiter = ',')]
    pub(super) include_path: Vec<PathBuf>,
}

/// Whether a path is that of a Stan program.
pub(super) fn is_stan(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "stan")
}

/// A model with its data, read.
pub(super) struct Model<'a> {
    path: &'a Path,
    given: InputArgs,
    pub(super) stan: Option<StanModel>,
    /// What each data set has of its own, where there are many.
    pub(super) sets: Option<DataSets>,
}

impl<'a> Model<'a> {
    /// Reads a model; a Stan program is translated with its data and with what it draws of them, and its density has these
    /// terms.
    ///
    /// # Errors
    /// For a Stan program that cannot be read or has errors, and data that it does not accept. Others are read later.
    pub(super) fn load(path: &'a Path, args: &DataArgs, terms: Terms, seed: u64) -> Result<Self, Error> {
        Self::load_sets(path, args, None, terms, seed)
    }

    /// The same with data of which each data set has its own, with an axis over the data sets before their own.
    ///
    /// # Errors
    /// As [`load`](Self::load), and for data sets that differ in more than values.
    pub(super) fn load_sets(
        path: &'a Path,
        args: &DataArgs,
        own: Option<&NamedValues>,
        terms: Terms,
        seed: u64,
    ) -> Result<Self, Error> {
        let given = InputArgs { data: args.data.clone(), shared: args.shared.clone(), ..InputArgs::default() };
        let mut sets = None;
        let stan = if is_stan(path) {
            // A path that is wrong is told before all that may be wrong with the data.
            if let Err(e) = std::fs::metadata(path) {
                return Err(Error::new(ErrorKind::Io, format!("cannot read {}: {e}", path.display())));
            }
            let mut data = StanModel::read_data(args.data.as_deref())?;
            for text in &args.shared {
                let (name, value) = read_argument(text)?;
                data.insert(name, (&value).into());
            }
            let with = (&args.includes.include_path[..], seed);
            let model = match own {
                None => StanModel::load_with(path, &data, terms, with)?,
                Some(own) => {
                    let made = StanModel::load_sets(path, (&data, own), terms, with)?;
                    sets = Some(DataSets::of(made.count, made.own)?);
                    made.model
                }
            };
            let (warnings, sources) = model.warnings();
            super::show_warnings(warnings, sources);
            model.printed().iter().for_each(|line| super::note(line));
            Some(model)
        } else {
            sets = own.map(|own| DataSets::of_values(own, &ModelSource::from(path))).transpose()?;
            None
        };
        Ok(Self { path, given, stan, sets })
    }

    /// The model.
    pub(super) fn source(&self) -> ModelSource<'_> {
        self.stan.as_ref().map_or(ModelSource::from(self.path), ModelSource::Stan)
    }

    /// The shared inputs of one of its functions.
    ///
    /// # Errors
    /// For data that cannot be read or do not fit.
    pub(super) fn inputs(&self, function: &Function<'_>) -> Result<Inputs, Error> {
        Ok(match &self.stan {
            Some(model) => model.inputs().restricted_to(function.signature()),
            None => inputs::of_model(&self.given, function)?,
        })
    }

    /// The same, with those of all functions of a Stan program.
    ///
    /// # Errors
    /// As [`inputs`](Self::inputs).
    pub(super) fn all_inputs(&self, function: &Function<'_>) -> Result<Inputs, Error> {
        self.stan.as_ref().map_or_else(|| inputs::of_model(&self.given, function), |model| Ok(model.inputs()))
    }
}
