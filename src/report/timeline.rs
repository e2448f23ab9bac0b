//! A timeline as Chrome trace events, which Perfetto and other viewers open: a row for each worker, a slice for each superstep,
//! counters of lanes and of bytes on stacks. What a page shows of it is read back.

use std::io::{self, Write};

use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::base::Loc;
use crate::run::{Slice, Timeline, TracedUnit, Track};

/// Times beyond are none: thirty years.
const MOST_MICROS: f64 = 1e15;
/// What a timeline calls itself in its file.
const FORMAT: &str = "autobatch timeline 1";

/// Writes a timeline as one JSON object.
///
/// # Errors
/// Those of `out`.
pub fn write_trace(timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    let units: Vec<Value> = timeline.units.iter().map(unit).collect();
    let tracks: Vec<Value> = timeline.tracks.iter().map(|t| json!({"width": t.width, "cut": t.cut})).collect();
    let about = json!({"format": FORMAT, "version": env!("CARGO_PKG_VERSION"), "units": units, "tracks": tracks});
    writeln!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[")?;
    write!(out, "{}", json!({"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "autobatch"}}))?;
    for (at, track) in timeline.tracks.iter().enumerate() {
        let name = format!("worker {at}, {} lanes", track.width);
        let event = json!({"ph": "M", "pid": 1, "tid": at, "name": "thread_name", "args": {"name": name}});
        write!(out, ",\n{event}")?;
        let mut told = None;
        for slice in &track.slices {
            write!(out, ",\n{}", event_of(slice, at, timeline, track.width))?;
            // A counter keeps its value until it has another.
            let now = (slice.active, slice.waiting, slice.live, slice.stack_bytes);
            if told.replace(now) != Some(now) {
                let lanes = json!({"active": slice.active, "at heavy units": slice.waiting, "not done": slice.live});
                for (what, args) in [("lanes", lanes), ("bytes on stacks", json!({"bytes": slice.stack_bytes}))] {
                    let name = format!("{what} of worker {at}");
                    let event = json!({"ph": "C", "pid": 1, "name": name, "ts": micros(slice.begin), "args": args});
                    write!(out, ",\n{event}")?;
                }
            }
        }
    }
    writeln!(out, "\n]}}")
}

fn unit(unit: &TracedUnit) -> Value {
    let TracedUnit { block, loc, heavy, weight } = unit;
    json!({"block": block, "function": &*loc.function, "line": loc.line, "heavy": heavy, "weight": weight})
}

fn event_of(slice: &Slice, track: usize, timeline: &Timeline, width: usize) -> Value {
    let name = timeline.units.get(slice.unit).map_or(String::new(), |unit| unit.loc.to_string());
    let how = match slice.computed {
        _ if slice.gathered => "gathered",
        computed if computed < width => "groups",
        _ => "masked",
    };
    let mut args = json!({
        "unit": slice.unit, "active": slice.active, "computed": slice.computed, "how": how,
        "supersteps": slice.supersteps, "live": slice.live, "waiting": slice.waiting, "stack_bytes": slice.stack_bytes,
    });
    if let Some(lanes) = &slice.lanes {
        // The highest lane first, as a number is written.
        let words: Vec<String> = lanes.iter().rev().map(|word| format!("{word:016x}")).collect();
        args["lanes"] = json!(words.concat());
    }
    let (begin, length) = (micros(slice.begin), micros(slice.end.saturating_sub(slice.begin)));
    json!({"ph": "X", "pid": 1, "tid": track, "cat": "superstep", "name": name, "ts": begin, "dur": length, "args": args})
}

fn micros(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}

/// Reads a timeline that [`write_trace`] has written.
///
/// # Errors
/// Says what is wrong with it.
pub fn read_trace(text: &[u8]) -> Result<Timeline, String> {
    let value: Value = serde_json::from_slice(text).map_err(|error| format!("no JSON: {error}"))?;
    let about = &value["otherData"];
    if about["format"] != FORMAT {
        return Err("this is no timeline that `--trace` of this version has written".to_owned());
    }
    let lacks = |what: &str| format!("it has no {what}");
    let number = |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok());
    let of_unit = |unit: &Value| {
        let line = u32::try_from(unit["line"].as_u64()?).ok()?;
        Some(TracedUnit {
            block: unit["block"].as_str()?.to_owned(),
            loc: Loc::new(unit["function"].as_str()?, line),
            heavy: unit["heavy"].as_bool()?,
            weight: unit["weight"].as_u64()?,
        })
    };
    let units: Option<Vec<TracedUnit>> = about["units"].as_array().and_then(|all| all.iter().map(of_unit).collect());
    let of_track = |track: &Value| {
        Some(Track { width: number(&track["width"])?, cut: track["cut"].as_bool()?, ..Track::default() })
    };
    let tracks: Option<Vec<Track>> = about["tracks"].as_array().and_then(|all| all.iter().map(of_track).collect());
    let mut timeline =
        Timeline { units: units.ok_or_else(|| lacks("units"))?, tracks: tracks.ok_or_else(|| lacks("tracks"))? };
    let events = value["traceEvents"].as_array().ok_or_else(|| lacks("events"))?;
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let of = || {
            let args = &event["args"];
            let nanos = |key: &str| {
                let micros = event[key].as_f64().filter(|micros| (0.0..MOST_MICROS).contains(micros))?;
                Some((micros * 1e3).round() as u64)
            };
            let begin = nanos("ts")?;
            let slice = Slice {
                unit: number(&args["unit"])?,
                begin,
                end: begin + nanos("dur")?,
                supersteps: u32::try_from(args["supersteps"].as_u64()?).ok()?,
                active: number(&args["active"])?,
                computed: number(&args["computed"])?,
                gathered: args["how"] == "gathered",
                live: number(&args["live"])?,
                waiting: number(&args["waiting"])?,
                stack_bytes: args["stack_bytes"].as_u64()?,
                lanes: args["lanes"].as_str().map(words).transpose().ok()?,
            };
            Some((number(&event["tid"])?, slice))
        };
        let (track, slice) = of().ok_or_else(|| format!("an event is broken: {event}"))?;
        if slice.unit >= timeline.units.len() {
            return Err(format!("an event is of unit {}, which there is not", slice.unit));
        }
        timeline.tracks.get_mut(track).ok_or_else(|| format!("an event is of worker {track}"))?.slices.push(slice);
    }
    Ok(timeline)
}

/// The words of a mask, the lowest first.
fn words(text: &str) -> Result<Vec<u64>, ()> {
    if !text.is_ascii() {
        return Err(());
    }
    let words = text.as_bytes().rchunks(16).map(|word| {
        let word = std::str::from_utf8(word).map_err(|_| ())?;
        u64::from_str_radix(word, 16).map_err(|_| ())
    });
    words.collect()
}

/// What lanes did in a unit.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct UnitShare {
    /// Supersteps.
    pub supersteps: u64,
    /// Nanoseconds.
    pub time: u64,
    /// Lanes that ran it, times nanoseconds.
    pub active: f64,
    /// Lanes that were computed, times nanoseconds.
    pub computed: f64,
}

/// By unit, in the order of the time that they took.
pub fn shares(timeline: &Timeline) -> Vec<(usize, UnitShare)> {
    let mut all: IndexMap<usize, UnitShare> = IndexMap::new();
    for slice in timeline.tracks.iter().flat_map(|track| &track.slices) {
        let share = all.entry(slice.unit).or_default();
        let time = slice.end.saturating_sub(slice.begin);
        share.supersteps += u64::from(slice.supersteps);
        share.time = share.time.saturating_add(time);
        share.active += time as f64 * slice.active as f64;
        share.computed += time as f64 * slice.computed as f64;
    }
    let mut all: Vec<(usize, UnitShare)> = all.into_iter().collect();
    all.sort_by_key(|(_, share)| std::cmp::Reverse(share.time));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let slice = |unit: usize, begin: u64, lanes: Option<Vec<u64>>| Slice {
            unit,
            begin,
            end: begin + 1_234,
            supersteps: 3,
            active: 2,
            computed: 70,
            gathered: unit == 1,
            live: 60,
            waiting: 5,
            stack_bytes: 800,
            lanes,
        };
        let of = |name: &str, heavy| TracedUnit { block: "b1".into(), loc: Loc::new(name, 7), heavy, weight: 9 };
        let units = vec![of("main", false), of("log_density", true)];
        let tracks = vec![
            Track { width: 70, cut: false, slices: vec![slice(0, 5, Some(vec![3, 1])), slice(1, 9_000_000_123, None)] },
            Track { width: 70, cut: true, slices: vec![slice(1, 77, None)] },
        ];
        let timeline = Timeline { units, tracks };
        let mut text = vec![];
        write_trace(&timeline, &mut text).expect("memory");
        assert_eq!(read_trace(&text), Ok(timeline));
        let value: Value = serde_json::from_slice(&text).expect("JSON");
        let events = value["traceEvents"].as_array().expect("a list");
        let of = |ph: &str| events.iter().filter(|event| event["ph"] == ph).count();
        // A counter is told once where it stays.
        assert_eq!((of("X"), of("C"), of("M")), (3, 4, 3));
        assert!(read_trace(b"{}").is_err() && read_trace(b"[").is_err());
        let broken = String::from_utf8(text).expect("text").replace("\"unit\":1", "\"unit\":7");
        assert!(read_trace(broken.as_bytes()).is_err_and(|why| why.contains("unit 7")));
    }
}
