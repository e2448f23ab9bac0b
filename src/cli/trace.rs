//! The file of `--trace`: the supersteps of a run, one by one.

use std::io::{self, Read as _, Write};
use std::path::Path;
use std::time::Duration;

use clap::Args;

use crate::program::io::write_atomically;
use crate::program::{Engine, Error, ErrorKind, Options};
use crate::report::timeline::{read_trace, write_trace};
use crate::run::{Stats, Timeline, TraceWindow};

use super::{check_place, note, resolved};

#[derive(Debug, Args, Default)]
pub(super) struct TraceArgs {
    /// Write supersteps one by one to this file, as Chrome trace events, which Perfetto opens: the first 100,000
    #[arg(long, value_name = "FILE.json|.json.gz")]
    pub(super) trace: Option<std::path::PathBuf>,
    /// In their place those that begin so long after the start of the run, for so long: 1s+200ms; or the first N
    #[arg(long, value_name = "TIME+TIME|N", requires = "trace", value_parser = window)]
    pub(super) trace_at: Option<TraceWindow>,
}

/// `1s+200ms`, or a number of supersteps.
fn window(text: &str) -> Result<TraceWindow, String> {
    if let Ok(count) = text.trim().parse::<u64>() {
        return if count > 0 { Ok(TraceWindow::Supersteps(count)) } else { Err("expected 1 or more".to_owned()) };
    }
    let told = || "expected a time and a length, such as 1s+200ms, or a number of supersteps".to_owned();
    let (begin, length) = text.split_once('+').ok_or_else(told)?;
    let (begin, length) = (time(begin).ok_or_else(told)?, time(length).ok_or_else(told)?);
    if length.is_zero() { Err("the length is 0".to_owned()) } else { Ok(TraceWindow::Time { begin, length }) }
}

fn time(text: &str) -> Option<Duration> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(at);
    let seconds = match unit {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "min" => 60.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.trim().parse::<f64>().ok()? * seconds).ok()
}

fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "gz")
}

/// Asks for a trace, if there is a file to write it to.
///
/// # Errors
/// For an engine that has no supersteps to note, and for a file that cannot be written or is that of the results.
pub(super) fn ask(options: &mut Options, args: &TraceArgs, output: Option<&Path>) -> Result<(), Error> {
    let Some(path) = &args.trace else { return Ok(()) };
    let refused = |why: String| Err(Error::new(ErrorKind::Option, format!("--trace{why}")));
    match options.engine {
        Engine::Pc => {}
        Engine::Scalar => return refused(": the engine `scalar` runs one lane after the other: use `pc`".to_owned()),
        Engine::Local => return refused(": it follows the lanes of the engine `pc`, which `local` has not".to_owned()),
    }
    let name = path.to_string_lossy();
    if !name.ends_with(".json") && !name.ends_with(".json.gz") {
        return refused(format!(" {}: the name must end in .json or .json.gz", path.display()));
    }
    check_place("--trace", path)?;
    if output.is_some_and(|output| resolved(output) == resolved(path)) {
        return refused(format!(" {}: this is the file of --output", path.display()));
    }
    options.settings.trace = Some(args.trace_at.unwrap_or_default());
    Ok(())
}

/// Writes the trace to the file.
///
/// # Errors
/// Where the file cannot be written.
pub(super) fn write(args: &TraceArgs, stats: &Stats) -> Result<(), Error> {
    let Some(path) = &args.trace else { return Ok(()) };
    let nothing = Timeline::default();
    let timeline = stats.timeline.as_ref().unwrap_or(&nothing);
    write_atomically(path, |file| {
        if is_packed(path) {
            let mut packed = flate2::write::GzEncoder::new(io::BufWriter::new(file), flate2::Compression::default());
            write_trace(timeline, &mut packed)?;
            packed.finish()?.flush()
        } else {
            let mut out = io::BufWriter::new(file);
            write_trace(timeline, &mut out)?;
            out.flush()
        }
    })
    .map_err(|error| Error::new(ErrorKind::Io, format!("--trace: {error}")))?;
    let slices: usize = timeline.tracks.iter().map(|track| track.slices.len()).sum();
    let supersteps: u64 = timeline.tracks.iter().flat_map(|t| &t.slices).map(|s| u64::from(s.supersteps)).sum();
    note(&format!("trace of {supersteps} supersteps ({slices} slices) written to {}", path.display()));
    if supersteps == 0 {
        note("note: no superstep began in the window of --trace-at");
    }
    Ok(())
}

/// Reads such a file.
///
/// # Errors
/// For what is none.
pub(super) fn read(path: &Path) -> Result<Timeline, Error> {
    let refused = |why: String| Error::new(ErrorKind::Input, format!("--trace {}: {why}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
    let text = if is_packed(path) {
        let mut text = vec![];
        flate2::read::MultiGzDecoder::new(&bytes[..])
            .read_to_end(&mut text)
            .map_err(|error| refused(error.to_string()))?;
        text
    } else {
        bytes
    };
    read_trace(&text).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_times_or_numbers() {
        let ms = Duration::from_millis;
        assert_eq!(window("1s+200ms"), Ok(TraceWindow::Time { begin: ms(1000), length: ms(200) }));
        assert_eq!(window("0.5min+0.5 s"), Ok(TraceWindow::Time { begin: ms(30_000), length: ms(500) }));
        assert_eq!(window("5000"), Ok(TraceWindow::Supersteps(5000)));
        for wrong in ["", "0", "1s", "1s+", "1s+0s", "1h+1s", "-1s+1s", "1+1", "1e400s+1s", "NaNs+1s"] {
            assert!(window(wrong).is_err(), "{wrong}");
        }
    }
}
