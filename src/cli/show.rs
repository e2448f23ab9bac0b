//! Results of runs for people and as JSON: outputs, traps, what attempts caught, statistics.

use std::borrow::Cow;
use std::io;

use indexmap::IndexMap;
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::{Value, json};

use super::note;
use crate::mcmc::sampling::FailedDraws;
use crate::program::Results;
use crate::program::io::JsonArray;
use crate::run::{Caught, Stats, Trap};
use crate::types::{Array, Precision};

/// Lanes that the text format prints of each output; the rest is counted.
const SHOWN_LANES: usize = 20;

/// The lanes of the outputs whose lanes differ in length, without padding and as users see them.
pub(super) fn ragged(results: &Results, precision: Precision) -> IndexMap<String, Vec<Array>> {
    let lane = |name: &str, position| results.lane(name, position).map(|array| array.shown(precision));
    let lanes = |name: &str| (0..results.lanes().len()).filter_map(|position| lane(name, position)).collect();
    let names = results.outputs().keys().filter(|name| results.is_ragged(name));
    names.map(|name| (name.clone(), lanes(name))).collect()
}

/// Adds the lengths of bounded dimensions under their names, where no output has the name.
pub(super) fn add_lengths(all: &mut IndexMap<String, Cow<'_, Array>>, dims: &IndexMap<String, Vec<i64>>) {
    for (name, lengths) in dims {
        let name = if all.contains_key(name) { format!("{name}.lengths") } else { name.clone() };
        all.insert(name, Cow::Owned(Array::int([lengths.len()], lengths.clone())));
    }
}

/// Says what attempts caught, as nothing else does: the lanes went on. Each is given with its lane, or what `what`
/// calls it.
pub(super) fn show_caught(caught: &[(u64, Caught)], what: &str) {
    let Some((number, first)) = caught.first() else { return };
    let traps: u64 = caught.iter().map(|(_, c)| c.count).sum();
    let s = |n: u64| if n == 1 { "" } else { "s" };
    let lanes = caught.len() as u64;
    note(&format!(
        "note: attempts caught {traps} trap{} in {lanes} {what}{}, first: {} ({what} {number})",
        s(traps),
        s(lanes),
        first.first
    ));
}

/// What attempts caught in a run, with the numbers of the lanes.
pub(super) fn note_caught(results: &Results) {
    let caught = results.caught().iter();
    let caught: Vec<(u64, Caught)> = caught.map(|c| (results.lanes()[c.first.position], c.clone())).collect();
    show_caught(&caught, "lane");
}

/// Names that were cut at their commas, `m[1` and `2]` of `m[1,2]`, whole again. What stands in quotes has no end.
pub(super) fn whole_names(parts: &[String]) -> Vec<String> {
    let is_whole =
        |name: &str| !name.contains('[') || (name.ends_with(']') && name.matches('"').count().is_multiple_of(2));
    let mut names: Vec<String> = vec![];
    for part in parts {
        match names.last_mut().filter(|name| !is_whole(name)) {
            Some(name) => *name += &format!(",{part}"),
            None => names.push(part.clone()),
        }
    }
    names
}

/// Results with their arrays as users see them.
pub(super) struct Shown {
    pub(super) results: Results,
    pub(super) outputs: IndexMap<String, Array>,
    /// The lanes of outputs whose lanes differ in length.
    pub(super) ragged: IndexMap<String, Vec<Array>>,
    pub(super) streams: IndexMap<String, Array>,
}

/// As users see them.
pub(super) fn shown(arrays: &IndexMap<String, Array>, precision: Precision) -> IndexMap<String, Array> {
    arrays.iter().map(|(name, array)| (name.clone(), array.clone().shown(precision))).collect()
}

/// Traps of one kind at one place.
struct TrapGroup<'a> {
    first: &'a Trap,
    lanes: Vec<u64>,
}

fn groups(results: &Results) -> Vec<TrapGroup<'_>> {
    let mut groups: IndexMap<_, TrapGroup<'_>> = IndexMap::new();
    for trap in results.traps() {
        let group =
            groups.entry((trap.kind, trap.loc.clone())).or_insert_with(|| TrapGroup { first: trap, lanes: vec![] });
        group.lanes.push(results.lanes()[trap.position]);
    }
    groups.into_values().collect()
}

/// The one JSON object of `--format json`: its keys are a documented format. Numbers are written as they are met: as a tree
/// of values they would take several times their memory.
#[derive(Serialize)]
struct Object<'a> {
    lanes: usize,
    outputs: Arrays<'a>,
    traps: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    streams: Option<Arrays<'a>>,
    #[serde(flatten)]
    stats: Value,
}

/// Arrays by name; those whose lanes differ in length by lane.
struct Arrays<'a> {
    arrays: &'a IndexMap<String, Array>,
    ragged: &'a IndexMap<String, Vec<Array>>,
}

impl Serialize for Arrays<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.arrays.len()))?;
        for (name, array) in self.arrays {
            match self.ragged.get(name) {
                Some(lanes) => map.serialize_entry(name, &lanes.iter().map(JsonArray).collect::<Vec<_>>())?,
                None => map.serialize_entry(name, &JsonArray(array))?,
            }
        }
        map.end()
    }
}

/// Writes the results as one JSON object.
pub(super) fn write_json(out: &mut dyn io::Write, shown: &Shown, stats: bool) -> io::Result<()> {
    let Shown { results, outputs, ragged, streams } = shown;
    let traps = groups(results)
        .into_iter()
        .map(|g| {
            json!({
                "kind": g.first.kind.name(), "function": &*g.first.loc.function, "line": g.first.loc.line,
                "call_depth": g.first.call_depth, "message": g.first.message, "lanes": g.lanes,
            })
        })
        .collect();
    let arrays = |arrays| Arrays { arrays, ragged };
    let mut more = json!({});
    if stats {
        add_stats(&mut more, results.stats());
        more["caught"] = caught(results);
    }
    let object = Object {
        lanes: results.lanes().len(),
        outputs: arrays(outputs),
        traps,
        streams: (!streams.is_empty()).then(|| arrays(streams)),
        stats: more,
    };
    serde_json::to_writer(&mut *out, &object)?;
    out.write_all(b"\n")
}

/// What attempts caught: how many traps, in which lanes, and the first of the first of these.
fn caught(results: &Results) -> Value {
    let all = results.caught();
    let first = all.first().map(|c| {
        let Trap { kind, loc, call_depth, message, .. } = &c.first;
        json!({
            "kind": kind.name(), "function": &*loc.function, "line": loc.line, "call_depth": call_depth,
            "message": message,
        })
    });
    let lanes: Vec<u64> = all.iter().map(|c| results.lanes()[c.first.position]).collect();
    json!({"count": all.iter().map(|c| c.count).sum::<u64>(), "lanes": lanes, "first": first})
}

fn add_stats(object: &mut Value, stats: &Stats) {
    object["supersteps"] = json!(stats.supersteps);
    object["utilization"] = json!(stats.utilization());
    object["blocks"] = stats
        .blocks
        .iter()
        .map(|b| {
            json!({
                "block": b.block, "function": &*b.loc.function, "line": b.loc.line, "weight": b.weight,
                "executions": b.executions, "lanes_useful": b.lanes_useful, "lanes_issued": b.lanes_issued,
            })
        })
        .collect();
    object["primitives"] = json!(stats.prims);
    object["variables"] = stats
        .variables
        .iter()
        .map(|v| {
            let storage = v.storage.to_string();
            json!({
                "name": v.name, "storage": storage, "pushes": v.pushes, "bytes_pushed": v.bytes_pushed,
                "max_stack_depth": v.max_stack_depth,
            })
        })
        .collect();
    object["bytes_pushed"] = json!(stats.bytes_pushed());
    object["seconds"] = json!(stats.seconds);
    if let Some(code) = &stats.code {
        object["codegen"] = json!(code.to_string());
    }
    if let Some(device) = &stats.device {
        object["device"] = json!({
            "name": device.name, "threads": device.threads, "launches": device.launches, "busy": device.busy,
            "bytes_of_records": device.records,
        });
    }
}

/// Writes the results for people.
pub(super) fn write_text(out: &mut dyn io::Write, shown: &Shown, stats: bool) -> io::Result<()> {
    let Shown { results, outputs, ragged, streams } = shown;
    for (name, array) in outputs {
        let lanes = array.shape[0];
        write!(out, "{name} = [")?;
        for lane in 0..lanes.min(SHOWN_LANES) {
            let comma = if lane == 0 { "" } else { ", " };
            match ragged.get(name) {
                Some(lanes) => write!(out, "{comma}{}", lanes[lane])?,
                None => {
                    let mut row = array.rows(lane..lane + 1);
                    row.shape.remove(0);
                    write!(out, "{comma}{row}")?;
                }
            }
        }
        match lanes.saturating_sub(SHOWN_LANES) {
            0 => writeln!(out, "]")?,
            more => writeln!(out, "] … and {more} more lanes")?,
        }
    }
    for (name, array) in streams {
        writeln!(out, "{name}: {} (use --output to keep it)", array.ty())?;
    }
    for group in groups(results) {
        out.write_all(show_trap(&group).as_bytes())?;
    }
    if stats {
        out.write_all(show_stats(results.stats()).as_bytes())?;
    }
    Ok(())
}

/// Arrays of different shapes as one list.
pub(super) fn list<'a>(arrays: impl Iterator<Item = &'a Array>) -> String {
    format!("[{}]", arrays.map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

fn show_trap(group: &TrapGroup<'_>) -> String {
    stopped(group.first, group.lanes.len(), &group.lanes, "lane")
}

/// One line for a trap that stopped `n` lanes, or what `what` calls them, the first of which are named.
pub(super) fn stopped(trap: &Trap, n: usize, named: &[u64], what: &str) -> String {
    let first: Vec<String> = named.iter().take(8).map(ToString::to_string).collect();
    let more = if n > 8 { ", …" } else { "" };
    let s = if n == 1 { "" } else { "s" };
    let told = trap.told_with(&format!(", call depth {}; {what}{s} {}{more}", trap.call_depth, first.join(", ")));
    format!("trap: {n} {what}{s} stopped: {told}\n")
}

/// What a run counted, for people.
pub(super) fn show_stats(stats: &Stats) -> String {
    let code = stats.code.as_ref().map_or_else(String::new, |code| format!("generated code: {code}\n"));
    let device = stats.device.as_ref().map_or_else(String::new, |device| format!("{device}\n"));
    let mut text = format!(
        "supersteps {}, utilization {:.4}, {:.6} s\n{code}{device}\n{:<10} {:<28} {:>8} {:>12} {:>14} {:>14}\n",
        stats.supersteps,
        stats.utilization(),
        stats.seconds,
        "block",
        "function:line",
        "weight",
        "executions",
        "lanes useful",
        "lanes issued"
    );
    for b in stats.blocks.iter().filter(|b| b.executions > 0) {
        let at = b.loc.to_string();
        text += &format!(
            "{:<10} {at:<28} {:>8} {:>12} {:>14} {:>14}\n",
            b.block, b.weight, b.executions, b.lanes_useful, b.lanes_issued
        );
    }
    text += &format!(
        "\n{:<28} {:<10} {:>12} {:>14} {:>16}\n",
        "variable", "storage", "pushes", "bytes pushed", "max stack depth"
    );
    let (pushed, idle): (Vec<_>, Vec<_>) = stats.variables.iter().partition(|v| v.pushes > 0 || v.max_stack_depth > 0);
    for v in pushed {
        let storage = v.storage.to_string();
        let (pushes, bytes, depth) = (v.pushes, v.bytes_pushed, v.max_stack_depth);
        text += &format!("{:<28} {storage:<10} {pushes:>12} {bytes:>14} {depth:>16}\n", v.name);
    }
    text += &format!("{:<39} {:>12} {:>14}\n", "all", "", stats.bytes_pushed());
    if !idle.is_empty() {
        text += &format!("{} more variables were never pushed\n", idle.len());
    }
    text += &format!("\n{:<20} {:>12}\n", "primitive", "executions");
    for (name, executions) in stats.prims.iter().filter(|(_, executions)| **executions > 0) {
        text += &format!("{name:<20} {executions:>12}\n");
    }
    text
}

/// Says that a model's `parameters` failed for some of so many draws, where no summary does.
pub(super) fn note_failed(failed: &FailedDraws, draws: usize) {
    note(&format!(
        "warning: {} of {draws} draws lack some variables; the first because of: {}",
        failed.positions.len(),
        failed.first.told()
    ));
}
