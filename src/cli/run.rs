//! `autobatch run`: a function for many lanes.

use std::borrow::Cow;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use indexmap::IndexMap;

use crate::program::io::write_arrays;
use crate::program::{Bound, Error, ErrorKind, Options, Program, signature_of_ir};
use crate::types::Array;

use super::args::{Format, RunArgs};
use super::ir_file::{extension, read_ir};
use super::show::{Shown, add_lengths, note_caught, ragged, shown, write_json, write_text};
use super::signals::{interrupted, nothing_to_keep, run_starts, stop_on_interrupt};
use super::sinks::Collector;
use super::{ARRAY_FILES, check_output, inputs, note, print_with, profile, trace, warn};

pub(super) fn run(args: &RunArgs) -> Result<ExitCode, Error> {
    let mut options = args.engine.options(args.stats)?;
    profile::ask(&mut options, args.profile.as_deref(), args.output.as_deref())?;
    trace::ask(&mut options, &args.trace, args.output.as_deref())?;
    check_output(args.output.as_deref(), ARRAY_FILES)?;
    nothing_to_keep();
    let stop = stop_on_interrupt();
    options.settings.stop = Some(Arc::clone(&stop));
    let bound = bind(args, &options)?;
    run_starts();
    warn(&bound);
    let lanes = bound.inputs().lanes.clone();
    let text = args.format == Format::Text;
    if text {
        note(&format!("memory: {}", bound.memory(&options)));
    }
    let budget = bound.budget(&options)?;
    let sink = Collector::new(&bound.compiled().units.globals.streams, &lanes, "lane", text, &budget);
    let results = bound.run_within(&budget, &options, &sink)?;
    let streams = sink.into_arrays();
    let precision = options.settings.precision;
    let ragged = ragged(&results, precision);
    let written = args.output.as_ref().map_or(Ok(()), |path| {
        let mut all: IndexMap<String, Cow<'_, Array>> =
            results.outputs().iter().chain(&streams).map(|(n, a)| (n.clone(), Cow::Borrowed(a))).collect();
        if !ragged.is_empty() {
            add_lengths(&mut all, results.dims());
        }
        write_arrays(path, &all, &ragged, precision)
    });
    let outputs = shown(results.outputs(), precision);
    let streams = streams.into_iter().map(|(name, array)| (name, array.shown(precision))).collect();
    let shown = Shown { outputs, ragged, streams, results };
    match args.format {
        Format::Json => print_with(|out| write_json(out, &shown, args.stats)),
        Format::Text => {
            print_with(|out| write_text(out, &shown, args.stats));
            note_caught(&shown.results);
        }
    }
    // Only now, so that the results are not lost with the file.
    written?;
    let results = shown.results;
    if let Some(device) = results.stats().device.as_ref().filter(|_| !args.stats) {
        eprintln!("{device}");
    }
    profile::write(args.profile.as_deref(), results.stats())?;
    trace::write(&args.trace, results.stats())?;
    Ok(match (stop.load(Ordering::Relaxed), results.traps().is_empty()) {
        (true, _) => interrupted(),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

fn bind(args: &RunArgs, options: &Options) -> Result<Bound, Error> {
    match extension(&args.file) {
        "cfg" | "stack" | "unit" => {
            let compiled = read_ir(&args.file, options)?;
            let given = inputs::read(&args.inputs, &signature_of_ir(&compiled))?;
            let bound = Bound::of_ir(compiled, &given, options);
            if bound.as_ref().is_err_and(|e| e.kind() == ErrorKind::Shared) {
                // The lanes compute it, those that come to it.
                let mut options = options.clone();
                options.passes.switch_off("shared-code");
                return Bound::of_ir(read_ir(&args.file, &options)?, &given, &options);
            }
            bound
        }
        _ => {
            let program = Program::load(&args.file)?;
            let function = program.function(&args.entry)?;
            let mut given = inputs::read(&args.inputs, function.signature())?;
            // A function without lane inputs runs once unless it is told otherwise.
            if given.lanes.is_none() && function.signature().ports.iter().all(|p| p.shared) {
                given = given.lanes(1);
            }
            function.bind(&given, options)
        }
    }
}
