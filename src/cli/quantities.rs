//! `autobatch generate-quantities`: what a model computes of draws that are there.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use indexmap::IndexMap;

use crate::mcmc::quantities::Quantities;
use crate::mcmc::sampling::QuantitiesOfDraws;
use crate::program::io::Data;
use crate::program::{Error, ErrorKind};
use crate::report::stan_csv::{CsvHeader, CsvTables};
use crate::report::{failed_draws, quantity_table};

use super::args::EngineArgs;
use super::draws::Drawn;
use super::inits::{of_all_chains, of_chains};
use super::lines::Lines;
use super::model::{DataArgs, Model, SAMPLED};
use super::sample_args::DrawsFileArgs;
use super::sample_files::DrawsFile;
use super::signals::{nothing_to_keep_yet, run_starts};
use super::{note, print};

#[derive(Debug, Args)]
pub(super) struct QuantitiesArgs {
    /// The model: a Stan program; or one that exports `generated_quantities` of its parameters by their names, or
    /// `parameters` of the unconstrained `q`
    pub(super) model: PathBuf,
    #[command(flatten)]
    pub(super) data: DataArgs,
    /// The draws: files of Stan CSV, one a chain, or a file of arrays as `sample` writes it. CmdStan's `fitted_params`
    #[arg(long, visible_alias = "fitted-params", required = true, num_args = 1.., value_name = "FILE.csv|.npz|.json")]
    pub(super) draws: Vec<PathBuf>,
    /// So many chains are meant: with FILE_1.csv, FILE_2.csv, … in the place of FILE.csv the draws are those of their files
    #[arg(long, value_name = "N")]
    pub(super) num_chains: Option<usize>,
    /// The number of the first chain, from 1: it has the random stream of this number
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub(super) id: u64,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
    #[command(flatten)]
    pub(super) draws_file: DrawsFileArgs,
}

pub(super) fn generate(args: &QuantitiesArgs) -> Result<ExitCode, Error> {
    let mut options = args.engine.options(false)?;
    options.first_lane = args.id - 1;
    let _lines = Lines::of(&mut options);
    options.settings.stop = Some(nothing_to_keep_yet());
    let given = match args.num_chains {
        Some(chains) => of_chains(&args.draws, chains, args.id),
        None => of_all_chains(&args.draws, args.id),
    };
    let origin = given.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let Drawn { chains, count, arrays: draws } = Drawn::read(&given)?;
    if let Some(asked) = args.num_chains.filter(|asked| *asked != chains) {
        let message = format!("--num-chains {asked}: {origin} has {chains}");
        return Err(Error::new(ErrorKind::Option, message));
    }
    if draws.is_empty() {
        return Err(Error::new(ErrorKind::Input, format!("{origin}: there are no draws")));
    }
    let draws: IndexMap<String, Data> = draws.into_iter().map(|(name, array)| (name, Data::Array(array))).collect();
    let file = DrawsFile::new(&args.draws_file, chains, args.id)?;
    file.spares(given.iter().cloned().chain(args.data.files()).chain([args.model.clone()]), chains, args.id)?;
    let loaded = Model::load(&args.model, &args.data, SAMPLED, options.settings.seed)?;
    let model = Quantities::new(&loaded.source(), &|function| loaded.inputs(function))?;
    run_starts();
    let QuantitiesOfDraws { arrays: quantities, failed, fatal } = model.of(&draws, &origin, &options)?;
    if quantities.is_empty() {
        let message = format!("{} computes nothing of its parameters", args.model.display());
        return Err(Error::new(ErrorKind::Input, message));
    }
    let header = CsvHeader {
        model: CsvHeader::model_of(&args.model),
        method: "generate_quantities",
        lines: vec![format!("fitted_params = {origin}"), format!("num_chains = {chains}")],
        data: args.data.data.as_ref().map(|path| path.display().to_string()),
        init: None,
        seed: options.settings.seed,
        digits: args.draws_file.digits(),
    };
    let none = IndexMap::new();
    let tables = CsvTables { header: &header, statistics: &none, parameters: &quantities, chains, rows: count };
    let written = file.write_tables(&tables, args.id, &options);
    print(&quantity_table(&quantities, failed.as_ref()));
    print(&format!("\n{chains} chains, {} draws of {origin}\n", chains * count));
    if let Some(failed) = &failed {
        let place = |at: usize| format!("draw {} of chain {}", at % count, at / count);
        note(&format!("warning: {}", failed_draws(failed, chains * count, place)));
    }
    written?;
    fatal.map_or(Ok(()), Err)?;
    Ok(ExitCode::SUCCESS)
}
