//! The JSON of `--profile`: where the time of a run went.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::program::{Engine, Error, ErrorKind, Options};
use crate::run::{Activity, Profile, Stats, Times};

use super::note;

/// Asks for a profile, if there is a file to write it to.
///
/// # Errors
/// For the reference interpreter, which is no machine.
pub(super) fn ask(options: &mut Options, path: Option<&Path>) -> Result<(), Error> {
    if path.is_some() && options.engine == Engine::Scalar {
        return Err(Error::new(ErrorKind::Option, "--profile: the engine `scalar` has none"));
    }
    options.settings.profile = path.is_some();
    Ok(())
}

/// Writes the profile to the file.
///
/// # Errors
/// Where the file cannot be written.
pub(super) fn write(path: Option<&Path>, stats: &Stats) -> Result<(), Error> {
    let (Some(path), Some(profile)) = (path, &stats.profile) else { return Ok(()) };
    let failed = |e: std::io::Error| Error::new(ErrorKind::Io, format!("{}: {e}", path.display()));
    let text =
        serde_json::to_string_pretty(&object(profile, stats)).map_err(|e| Error::new(ErrorKind::Io, e.to_string()))?;
    std::fs::write(path, text + "\n").map_err(failed)?;
    note(&format!("profile written to {}", path.display()));
    Ok(())
}

/// The one JSON object: its keys are a documented format.
fn object(profile: &Profile, stats: &Stats) -> Value {
    let times = profile.times();
    let blocks = profile.blocks.iter().filter(|b| b.2.total() > 0).map(|(name, loc, times)| {
        let mut object = json!({"block": name, "function": &*loc.function, "line": loc.line});
        add(&mut object, times);
        object
    });
    let mut lines: Vec<_> = profile.lines.iter().collect();
    lines.sort_by_key(|(_, times)| std::cmp::Reverse(times.total()));
    let lines = lines.into_iter().map(|(loc, times)| {
        let mut object = json!({"function": &*loc.function, "line": loc.line});
        add(&mut object, times);
        object
    });
    let mut object = json!({
        "wall_seconds": stats.seconds,
        "measuring_seconds": seconds(profile.measuring),
        "supersteps": stats.supersteps,
    });
    add(&mut object, &times);
    object["blocks"] = blocks.collect();
    object["lines"] = lines.collect();
    object
}

fn add(object: &mut Value, times: &Times) {
    object["seconds"] = json!(seconds(times.total()));
    let activities = Activity::ALL.iter().map(|a| (a.name().to_owned(), json!(seconds(times.of(*a)))));
    object["activities"] = Value::Object(activities.collect::<Map<_, _>>());
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 * 1e-9
}
