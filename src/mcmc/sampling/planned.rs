//! A job as a plan with all files that it needs, so that it can be run anywhere; and the job of a plan.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use indexmap::IndexMap;

use super::data_sets::DataSets;
use super::method::Method;
use super::settings::{CHECKPOINT_EVERY, Number};
use super::{Job, Metric, ModelSource, SamplerSettings, Sampling};
use crate::base::SourceMap;
use crate::program::io::{Data, NamedValues, npz_bytes};
use crate::program::{Error, ErrorKind, Function, Inputs, Options, Program, StanModel, Terms};
use crate::store::{BLOCK, RunPlan, StoredSetting};
use crate::types::{Array, Precision, Scalar};

/// Where the files of a plan are, in a store.
const PROGRAM: &str = "_autobatch/program";
const SAMPLER: &str = "_autobatch/sampler";
const DATA: &str = "_autobatch/data";
/// A model that is a text.
const TEXT: &str = "model.ab";
const STAN_TEXT: &str = "model.stan";
/// Of so many iterations one tells its state, where nobody says otherwise: a state takes the room of four draws.
const EVERY: i64 = 16;
/// Elements of a chunk of scalars.
const ELEMENTS: usize = 8192;

/// Files of a plan: their paths in the store, and what is in them.
pub type PlanFiles = Vec<(String, Vec<u8>)>;

impl Sampling {
    /// The plan of a job, which this is, and the files that it names. `keep` are the variables that are kept.
    ///
    /// # Errors
    /// For a sampler that cannot be read.
    pub fn plan(
        &self,
        job: &Job<'_>,
        keep: Option<Vec<String>>,
        options: &Options,
    ) -> Result<(RunPlan, PlanFiles), Error> {
        self.check_kept(keep.as_deref(), options)?;
        self.check_axes(options)?;
        let mut files = PlanFiles::new();
        let name = job.model.name();
        let (model, include) = match job.model {
            ModelSource::Stan(model) => {
                let (mut main, include) = copies(PROGRAM, Path::new(model.name()), model.warnings().1, &mut files);
                // A program that is a text is known by its ending, too.
                if !main.ends_with(".stan") {
                    let folder = main.rsplit_once('/').map_or(PROGRAM, |(folder, _)| folder);
                    let name = format!("{folder}/{STAN_TEXT}");
                    files.iter_mut().filter(|(file, _)| *file == main).for_each(|(file, _)| file.clone_from(&name));
                    main = name;
                }
                (main, include)
            }
            ModelSource::File(path) => (copies(PROGRAM, path, self.model.sources(), &mut files).0, vec![]),
            ModelSource::Text(text) => {
                let main = copies(PROGRAM, Path::new(TEXT), self.model.sources(), &mut files).0;
                files.retain(|(name, _)| *name != main);
                files.push((main.clone(), text.as_bytes().to_vec()));
                (main, vec![])
            }
        };
        let sampler = job.sampler.map(|path| self.sampler_file(path, &mut files)).transpose()?;
        let (data, dimensions) = self.data_files(job, &mut files)?;
        let lane_data = job.data_sets.as_ref().map(|sets| lane_data_file(job, sets, &mut files)).transpose()?;
        let mut array = |name: &str, array: &Option<Array>| -> Result<Option<String>, Error> {
            let Some(array) = array else { return Ok(None) };
            let file = format!("{DATA}/{name}.npz");
            files.push((file.clone(), npz_bytes(&IndexMap::from([(name.to_owned(), array.clone())]))?));
            Ok(Some(file))
        };
        let (inv_metric, starts) = (array("inv_metric", &job.inv_metric)?, array("starts", &job.starts)?);
        let mut settings: IndexMap<String, StoredSetting> = job
            .settings
            .names()
            .filter_map(|name| {
                let value = match job.settings.get(name)? {
                    Scalar::Bool(b) => StoredSetting::Bool(b),
                    Scalar::Int(i) => StoredSetting::Int(i),
                    Scalar::Real(r) => StoredSetting::Real(r),
                };
                Some((name.to_owned(), value))
            })
            .collect();
        if job.settings.get(CHECKPOINT_EVERY).is_none_or(|every| every == Scalar::Int(0)) {
            settings.insert(CHECKPOINT_EVERY.to_owned(), StoredSetting::Int(EVERY));
        }
        let run = &options.settings;
        let plan = RunPlan {
            form: RunPlan::form(),
            autobatch: RunPlan::version(),
            model_name: name,
            model,
            include,
            sampler,
            data,
            lane_data,
            data_sets: job.data_sets.as_ref().map(DataSets::count),
            dimensions,
            seed: run.get_seed(),
            single: run.get_precision() == Precision::F32,
            first_lane: options.first_lane,
            chains: job.chains,
            warmup: job.warmup,
            draws: job.draws,
            stepsize: job.stepsize,
            metric: job.metric.name().to_owned(),
            inv_metric,
            starts,
            settings,
            limits: (run.get_max_stack_depth(), run.get_max_tape_depth(), run.get_max_supersteps()),
            keep,
            dims: job.dims.clone(),
            coords: job.coords.clone(),
            rows: rows_of_chunks(job.chains, self.kept()),
        };
        Ok((plan, files))
    }

    /// The file of a sampler: the library's own has none.
    fn sampler_file(&self, path: &Path, files: &mut PlanFiles) -> Result<String, Error> {
        if path.to_str().is_some_and(|path| Program::shipped(path).is_some()) {
            return Ok(path.display().to_string());
        }
        let mut sources = Program::load(path)?.sources().clone();
        if let Some(chain) = Method::chain_file(path)? {
            let chain = Program::load(&chain)?;
            for (_, file) in chain.sources().files() {
                sources.add(file.name.clone(), file.text.clone());
            }
        }
        Ok(copies(SAMPLER, path, &sources, files).0)
    }

    fn data_files(
        &self,
        job: &Job<'_>,
        files: &mut PlanFiles,
    ) -> Result<(Option<String>, IndexMap<String, i64>), Error> {
        if let ModelSource::Stan(model) = job.model {
            let file = format!("{DATA}/data.json");
            files.push((file.clone(), serde_json::to_vec(model.data()).expect("it was JSON")));
            return Ok((Some(file), IndexMap::new()));
        }
        let all = || [&self.data].into_iter().chain(&self.of_parameters);
        let dimensions =
            all().flat_map(|inputs| &inputs.dims).map(|(name, told)| (name.clone(), told.number)).collect();
        let values = all().flat_map(|inputs| &inputs.values);
        let values: IndexMap<String, Array> = values.map(|(name, given)| (name.clone(), given.array.clone())).collect();
        if values.is_empty() {
            return Ok((None, dimensions));
        }
        let file = format!("{DATA}/data.npz");
        files.push((file.clone(), npz_bytes(&values)?));
        Ok((Some(file), dimensions))
    }
}

/// The file of what each data set has of its own.
fn lane_data_file(job: &Job<'_>, sets: &DataSets, files: &mut PlanFiles) -> Result<String, Error> {
    let (name, bytes) = match job.model {
        ModelSource::Stan(model) => ("lane_data.json", serde_json::to_vec(model.lane_data()).expect("it was JSON")),
        _ => ("lane_data.npz", npz_bytes(sets.arrays())?),
    };
    let file = format!("{DATA}/{name}");
    files.push((file.clone(), bytes));
    Ok(file)
}

/// Draws of a chunk, for so many chains that keep so many draws: of scalars 64 kB, more of long runs, which would have too
/// many files, and of short ones no more than there are.
fn rows_of_chunks(chains: usize, kept: usize) -> usize {
    let usual = (ELEMENTS / chains.clamp(1, BLOCK)).clamp(128, 2048).next_power_of_two();
    match kept {
        // More will be asked for.
        0 => usual,
        kept => usual.max((kept / 32).next_power_of_two().min(1024)).min(kept.next_power_of_two()).max(16),
    }
}

/// Copies the files of a program to a folder of the store, the folders between them kept; gives the path of the main one, and
/// all folders.
fn copies(folder: &str, main: &Path, sources: &SourceMap, files: &mut PlanFiles) -> (String, Vec<String>) {
    let absolute = |path: &Path| plain(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    let main = absolute(main);
    let own = sources.files().map(|(_, file)| (Path::new(&file.name), &file.text));
    // What ships with this version is there wherever it runs.
    let own = own.filter(|(path, _)| path.to_str().is_none_or(|path| Program::shipped(path).is_none()));
    let own: Vec<(PathBuf, Vec<u8>)> = own.map(|(path, text)| (absolute(path), text.as_bytes().to_vec())).collect();
    let mut root = main.parent().map(Path::to_owned).unwrap_or_default();
    for (path, _) in &own {
        while !path.starts_with(&root) && root.pop() {}
    }
    let name = |path: &Path| {
        let inside = path.strip_prefix(&root).unwrap_or(path);
        format!("{folder}/{}", inside.display().to_string().replace('\\', "/"))
    };
    let mut folders = BTreeSet::new();
    for (path, bytes) in own {
        let name = name(&path);
        folders.extend(Path::new(&name).ancestors().skip(1).filter(|up| up.starts_with(folder)).map(Path::to_owned));
        if !files.iter().any(|(there, _)| *there == name) {
            files.push((name, bytes));
        }
    }
    (name(&main), folders.into_iter().map(|folder| folder.display().to_string()).collect())
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

/// The job of a plan, its files read.
#[derive(Debug)]
pub struct PlannedJob {
    plan: RunPlan,
    model: PathBuf,
    sampler: Option<PathBuf>,
    stan: Option<StanModel>,
    data: Option<NamedValues>,
    lane_data: Option<NamedValues>,
    sets: Option<DataSets>,
    starts: Option<Array>,
    inv_metric: Option<Array>,
    metric: Metric,
}

impl PlannedJob {
    /// Reads the plan of a store and its files.
    ///
    /// # Errors
    /// For what cannot be read.
    pub fn load(root: &Path) -> Result<Self, Error> {
        let plan = RunPlan::read(root)?;
        let file = |name: &str| root.join(name);
        let model = file(&plan.model);
        let is_stan = model.extension().is_some_and(|e| e == "stan");
        let (mut stan, mut data, mut sets) = (None, None, None);
        let lane_data = plan.lane_data.as_ref().map(|name| NamedValues::read(&file(name))).transpose()?;
        if is_stan {
            let values = StanModel::read_data(plan.data.as_deref().map(file).as_deref())?;
            let include: Vec<PathBuf> = plan.include.iter().map(|name| file(name)).collect();
            let terms = Terms { constants: false, jacobian: true };
            stan = Some(match &lane_data {
                None => StanModel::load_with(&model, &values, terms, (&include, plan.seed))?,
                Some(own) => {
                    let made = StanModel::load_sets(&model, (&values, own), terms, (&include, plan.seed))?;
                    sets = Some(DataSets::of(made.count, made.own)?);
                    made.model
                }
            });
        } else {
            data = plan.data.as_ref().map(|name| NamedValues::read(&file(name))).transpose()?;
            sets = lane_data.as_ref().map(|own| DataSets::of_values(own, &ModelSource::from(&model))).transpose()?;
        }
        let count = sets.as_ref().map(DataSets::count);
        if count != plan.data_sets || count.is_some_and(|count| !plan.chains.is_multiple_of(count)) {
            let message = format!("the plan of {} is damaged: {} chains of its data sets", root.display(), plan.chains);
            return Err(Error::new(ErrorKind::Input, message));
        }
        let array = |name: &str, of: &Option<String>| -> Result<Option<Array>, Error> {
            let Some(of) = of else { return Ok(None) };
            let values = NamedValues::read(&file(of))?;
            let found = values.get(name).map(|data| data.to_array(name, data.guess_type())).transpose()?;
            found.map(Some).ok_or_else(|| Error::new(ErrorKind::Input, format!("{} has no `{name}`", values.origin())))
        };
        let metric = [Metric::Unit, Metric::Diagonal, Metric::Dense].into_iter().find(|m| m.name() == plan.metric);
        let metric = metric.ok_or_else(|| {
            Error::new(ErrorKind::Input, format!("the plan has the metric `{}`, which there is not", plan.metric))
        })?;
        let (starts, inv_metric) = (array("starts", &plan.starts)?, array("inv_metric", &plan.inv_metric)?);
        let sampler = plan.sampler.as_ref().map(|name| match Program::shipped(name) {
            Some(_) => PathBuf::from(name),
            None => file(name),
        });
        Ok(Self { model, sampler, stan, data, lane_data, sets, starts, inv_metric, metric, plan })
    }

    /// The plan.
    pub fn plan(&self) -> &RunPlan {
        &self.plan
    }

    /// The job of these of its chains.
    pub fn job(&self, chains: &Range<usize>) -> Job<'_> {
        let starts = self.starts.as_ref().map(|starts| {
            let each = self.plan.chains / starts.shape[0].max(1);
            starts.chosen_rows(&chains.clone().map(|chain| chain / each.max(1)).collect::<Vec<_>>())
        });
        let source = self.stan.as_ref().map_or(ModelSource::File(&self.model), ModelSource::Stan);
        let all = self.plan.chains;
        let is_part = chains.len() < all;
        let data_sets = self.sets.as_ref().map(|sets| if is_part { sets.of_chains(chains, all) } else { sets.clone() });
        let mut job = Job { starts, data_sets, metric: self.metric, ..Job::new(source) };
        job.chains = chains.len();
        (job.warmup, job.draws, job.stepsize) = (self.plan.warmup, self.plan.draws, self.plan.stepsize);
        job.sampler = self.sampler.as_deref();
        job.inv_metric.clone_from(&self.inv_metric);
        if job.has_metrics() {
            job.inv_metric = self.inv_metric.as_ref().map(|metrics| metrics.rows(chains.clone()));
        }
        job.settings = self.plan.settings.iter().fold(SamplerSettings::new(), |settings, (name, value)| {
            let value: Number = match *value {
                StoredSetting::Bool(b) => b.into(),
                StoredSetting::Int(i) => i.into(),
                StoredSetting::Real(r) => r.into(),
            };
            settings.with(name, value)
        });
        (job.dims, job.coords) = (self.plan.dims.clone(), self.plan.coords.clone());
        job.resumes = true;
        job
    }

    /// The data that a function of the model takes.
    ///
    /// # Errors
    /// For data that do not fit.
    pub fn inputs(&self, function: &Function<'_>) -> Result<Inputs, Error> {
        if let Some(model) = &self.stan {
            return Ok(model.inputs());
        }
        let signature = function.signature();
        let mut inputs = Inputs::new();
        if let Some(data) = &self.data {
            inputs.add_values(signature, data, |_| true)?;
        }
        let is_there = |name: &str| signature.dims.values().any(|dim| dim == name);
        let dims = self.plan.dimensions.iter().filter(|(name, _)| is_there(name));
        Ok(dims.fold(inputs, |inputs, (name, number)| inputs.dimension(name, *number)))
    }

    /// The data as arrays, as far as they are such, each with whether it has an axis over data sets before its own.
    pub fn observed(&self) -> IndexMap<String, (Array, bool)> {
        let mut all: IndexMap<_, _> =
            self.observed_of_all().into_iter().map(|(name, array)| (name, (array, false))).collect();
        for (name, data) in self.lane_data.iter().flat_map(NamedValues::iter) {
            if let Ok(array) = data.to_array(name, data.guess_type()) {
                all.insert(name.to_owned(), (array, true));
            }
        }
        all
    }

    fn observed_of_all(&self) -> IndexMap<String, Array> {
        let guessed = |name: &str, data: &Data| Some((name.to_owned(), data.to_array(name, data.guess_type()).ok()?));
        match (&self.stan, &self.data) {
            (Some(model), _) => {
                model.data().iter().filter_map(|(name, datum)| guessed(name, &datum.clone().into())).collect()
            }
            (None, Some(data)) => data.iter().filter_map(|(name, data)| guessed(name, data)).collect(),
            (None, None) => IndexMap::new(),
        }
    }

    /// The settings of the machine, with all that the bits depend on as the plan has it.
    #[must_use]
    pub fn options(&self, options: &Options, chains: &Range<usize>) -> Options {
        let plan = &self.plan;
        let mut options = options.clone().first_lane(plan.first_lane.wrapping_add(chains.start as u64));
        let precision = if plan.single { Precision::F32 } else { Precision::F64 };
        let (calls, tape, blocks) = plan.limits;
        let settings = options.settings.clone().seed(plan.seed).precision(precision);
        options.settings = settings.max_stack_depth(calls).max_tape_depth(tape).max_supersteps(blocks);
        options
    }
}
