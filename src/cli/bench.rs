//! `autobatch bench`: the engines against one another and against other systems.

use std::path::Path;
use std::process::ExitCode;

use crate::bench::model::{self, MODELS};
use crate::bench::peer::{Against, PEERS, Places};
use crate::bench::{Comparison, Report, Way, figure, html, run};
use crate::program::io::write_atomically;
use crate::program::{Codegen, Engine, Error, ErrorKind, codegen_fails};

use super::args::{BenchArgs, Format, Switch};
use super::{note, print};

pub(super) fn bench(args: &BenchArgs) -> Result<ExitCode, Error> {
    if args.list {
        print(&list(&Places::find(args.peers.as_deref())));
        return Ok(ExitCode::SUCCESS);
    }
    let comparison = comparison(args)?;
    if let Some(folder) = &args.report {
        std::fs::create_dir_all(folder)
            .map_err(|e| Error::new(ErrorKind::Io, format!("--report {}: {e}", folder.display())))?;
    }
    let report = run(&comparison, &note)?;
    let json = report.to_json().map_err(|e| Error::new(ErrorKind::Io, e.to_string()))?;
    match args.format {
        Format::Json => print(&format!("{json}\n")),
        Format::Text => print(&report.to_string()),
    }
    if let Some(folder) = &args.report {
        write_report(folder, &report, &json)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the arguments ask for.
fn comparison(args: &BenchArgs) -> Result<Comparison, Error> {
    let refused = |message: String| Err(Error::new(ErrorKind::Option, message));
    if args.chains.contains(&0) {
        return refused("--chains 0: there is nothing to measure".to_owned());
    }
    if args.threads.contains(&0) {
        return refused("--threads 0: say how many threads every system may use".to_owned());
    }
    if args.repetitions == 0 || args.draws == Some(0) {
        return refused("--repetitions and --draws must be 1 or more".to_owned());
    }
    if !(args.seconds > 0.0 && args.seconds.is_finite()) {
        return refused(format!("--seconds {}: a run must take some time", args.seconds));
    }
    if (args.data.is_some() || args.stepsize.is_some()) && args.model.len() > 1 {
        return refused("--data and --stepsize are for one model".to_owned());
    }
    Ok(Comparison {
        models: args.model.iter().map(|name| model::by_name(name)).collect::<Result<_, _>>()?,
        engines: engines(args),
        against: args.against.iter().map(|text| Against::parse(text)).collect::<Result<_, _>>()?,
        chains: args.chains.clone(),
        precisions: args.precision.iter().map(|p| (*p).into()).collect(),
        threads: args.threads.clone(),
        repetitions: args.repetitions,
        seconds: args.seconds,
        draws: args.draws,
        data: args.data.clone(),
        stepsize: args.stepsize,
        seed: args.seed,
        peers: args.peers.clone(),
    })
}

/// Every batching engine with and without fusion, and with fusion also as generated code; the interpreter has nothing to fuse
/// or to generate.
fn engines(args: &BenchArgs) -> Vec<Way> {
    let without_compiler = codegen_fails();
    let mut ways = Vec::new();
    for engine in args.engine.iter().map(|name| Engine::from(*name)) {
        let plain = Way { engine, fusion: true, codegen: Codegen::Off };
        if engine == Engine::Scalar {
            ways.push(plain);
            continue;
        }
        for codegen in args.codegen.iter().map(|name| Codegen::from(*name)) {
            for fusion in args.fusion.iter().map(|f| *f == Switch::On) {
                match (codegen, &without_compiler) {
                    (Codegen::Off, _) => ways.push(Way { fusion, ..plain }),
                    // Generated code is fused code, and the comparison mode goes without it unless it alone is asked for.
                    (Codegen::Cc, _) if !fusion || engine == Engine::Local && args.engine.len() > 1 => {}
                    (Codegen::Cc, Some(error)) => note(&format!("no generated code: {error}")),
                    (Codegen::Cc, None) => ways.push(Way { codegen, ..plain }),
                }
            }
        }
    }
    ways
}

/// The models and the systems.
fn list(places: &Places) -> String {
    let mut text = "models\n".to_owned();
    for model in MODELS {
        text += &format!("  {:<14} {}\n", model.name, model.about);
    }
    text += "systems\n";
    for peer in PEERS {
        let engines: Vec<String> = peer.engines.iter().map(|e| e.name.replace(' ', "-")).collect();
        let there = match places.command(peer) {
            Ok(_) => "installed".to_owned(),
            Err(error) => error.to_string(),
        };
        text += &format!("  {:<14} {} ({there})\n", peer.name, engines.join(", "));
    }
    text
}

/// Files that say what was measured.
fn write_report(folder: &Path, report: &Report, json: &str) -> Result<(), Error> {
    let write = |name: &str, text: &str| -> Result<(), Error> {
        Ok(write_atomically(&folder.join(name), |file| std::io::Write::write_all(file, text.as_bytes()))?)
    };
    write("results.json", json)?;
    let figures = figure::draw(report)?;
    for figure in &figures {
        write(&figure.file_name(), &figure.svg)?;
    }
    write("report.html", &html::page(report, &figures)?)?;
    note(&format!("report written to {}", folder.join("report.html").display()));
    Ok(())
}
