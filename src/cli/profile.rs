//! The JSON of `--profile`: where the time of a run went.

use std::io::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::program::io::write_atomically;
use crate::program::{Engine, Error, ErrorKind, Options};
use crate::run::{Activity, Profile, Stats, Times};

use super::{check_place, note, resolved};

/// The option that names the file.
const OPTION: &str = "--profile";

/// Asks for a profile, if there is a file to write it to beside that of the results.
///
/// # Errors
/// For the reference interpreter, which is no machine; for a file that cannot be written, or is that of the results.
pub(super) fn ask(options: &mut Options, path: Option<&Path>, output: Option<&Path>) -> Result<(), Error> {
    let Some(path) = path else { return Ok(()) };
    if options.engine == Engine::Scalar {
        return Err(Error::new(ErrorKind::Option, "--profile: the engine `scalar` has none"));
    }
    check_place(OPTION, path)?;
    if output.is_some_and(|output| resolved(output) == resolved(path)) {
        let message = format!("--profile {}: this is the file of --output", path.display());
        return Err(Error::new(ErrorKind::Option, message));
    }
    options.settings.profile = true;
    Ok(())
}

/// Writes the profile to the file.
///
/// # Errors
/// Where the file cannot be written.
pub(super) fn write(path: Option<&Path>, stats: &Stats) -> Result<(), Error> {
    let (Some(path), Some(profile)) = (path, &stats.profile) else { return Ok(()) };
    let text =
        serde_json::to_string_pretty(&object(profile, stats)).map_err(|e| Error::new(ErrorKind::Io, e.to_string()))?;
    write_atomically(path, |file| file.write_all((text + "\n").as_bytes()))
        .map_err(|e| Error::new(ErrorKind::Io, format!("{OPTION}: {e}")))?;
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
