//! Lanes × supersteps: which unit each lane is at, and whether it runs or waits.

use std::fmt::Write as _;

use indexmap::IndexMap;
use minijinja::value::Serde;
use minijinja::{Value, context};

use super::figure::Figure;
use super::panel::{FRAME, SERIES, TEXT, cut};
use crate::picture::{Anchor, Picture};
use crate::report::summary::{fixed, grouped};
use crate::report::timeline::shares;
use crate::run::{Slice, Timeline, Track};

const WIDTH: f64 = 980.0;
/// Lanes and supersteps that are drawn.
const LANES: usize = 64;
const SUPERSTEPS: usize = 260;
const ROWS: usize = 15;
/// So many units, those that take most of the time that is drawn, have a colour of their own; the others are grey.
const COLORS: usize = SERIES.len() - 1;
const OTHERS: &str = SERIES[SERIES.len() - 1];

/// A picture and a table; nothing where nothing was noted.
pub(super) fn told(timeline: &Timeline) -> Option<Value> {
    let shares = shares(timeline);
    let all: f64 = shares.iter().map(|(_, share)| share.time as f64).sum();
    if shares.is_empty() {
        return None;
    }
    let (active, computed) =
        shares.iter().fold((0.0, 0.0), |(a, c), (_, share)| (a + share.active, c + share.computed));
    let rows = shares.iter().take(ROWS).map(|(unit, share)| {
        let unit = &timeline.units[*unit];
        let name = if unit.heavy { format!("{} (heavy)", unit.loc) } else { unit.loc.to_string() };
        let lanes = share.active / share.time.max(1) as f64;
        vec![
            name,
            grouped(share.supersteps),
            fixed(lanes, 1),
            fixed(share.active / share.computed.max(1.0), 2),
            format!("{} %", fixed(100.0 * share.time as f64 / all.max(1.0), 1)),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let supersteps: u64 = shares.iter().map(|(_, share)| share.supersteps).sum();
    let figure = timeline.tracks.iter().find_map(|track| picture(timeline, track));
    let utilization = fixed(active / computed.max(1.0), 2);
    let (supersteps, left) = (grouped(supersteps), shares.len().saturating_sub(ROWS));
    let cut = timeline.tracks.iter().any(|track| track.cut);
    Some(
        context! { figure => figure.as_ref().map(|f| Value::from(Serde(f))), rows, left, utilization, supersteps, cut },
    )
}

/// The units of supersteps, those first that took most time.
fn by_time(slices: &[&Slice]) -> Vec<usize> {
    let mut times: IndexMap<usize, u64> = IndexMap::new();
    slices.iter().for_each(|slice| *times.entry(slice.unit).or_default() += slice.end.saturating_sub(slice.begin));
    times.sort_by(|_, a, _, b| b.cmp(a));
    times.into_keys().collect()
}

/// The first supersteps of a shard.
fn picture(timeline: &Timeline, track: &Track) -> Option<Figure> {
    let with_lanes: Vec<&Slice> = track.slices.iter().take_while(|slice| slice.lanes.is_some()).collect();
    // Lanes go on where they wait until the last one that is known.
    let shown = &with_lanes[..with_lanes.len().min(SUPERSTEPS)];
    if shown.is_empty() {
        return None;
    }
    let order = by_time(shown);
    let lanes = track.width.min(LANES);
    let color = |unit: usize| {
        let at = order.iter().position(|other| *other == unit).unwrap_or(COLORS);
        if at < COLORS { at } else { COLORS }
    };
    let (left, top) = (46.0, 8.0);
    let h = (300.0 / lanes as f64).clamp(5.0, 16.0);
    let (w, depth) = ((WIDTH - left - 8.0) / shown.len() as f64, h * lanes as f64);
    // By colour, the cells that run and those that wait.
    let mut paths = [const { [const { String::new() }; COLORS + 1] }; 2];
    let mut cell = |runs: bool, unit: usize, lane: usize, from: usize, to: usize| {
        let (x, y) = (left + w * from as f64, top + h * lane as f64);
        let (width, height, y) =
            if runs { (w * (to - from) as f64, h - 1.0, y) } else { (w * (to - from) as f64, h * 0.3, y + h * 0.3) };
        let _ = write!(paths[usize::from(runs)][color(unit)], "M{x:.1},{y:.1}h{width:.1}v{height:.1}h-{width:.1}z");
    };
    let mut waited: IndexMap<usize, usize> = IndexMap::new();
    let runs = |slice: &Slice, lane: usize| {
        slice.lanes.as_ref().is_some_and(|words| words.get(lane / 64).is_some_and(|word| word >> (lane % 64) & 1 == 1))
    };
    for lane in 0..lanes {
        let mut since = 0;
        for (at, slice) in with_lanes.iter().enumerate().filter(|(_, slice)| runs(slice, lane)) {
            // It has waited for this unit since it ran last.
            let (from, to) = (since.min(shown.len()), at.min(shown.len()));
            if from < to {
                cell(false, slice.unit, lane, from, to);
                *waited.entry(slice.unit).or_default() += to - from;
            }
            if at >= shown.len() {
                break;
            }
            cell(true, slice.unit, lane, at, at + 1);
            since = at + 1;
        }
    }
    let named: Vec<usize> = order.iter().copied().take(COLORS).collect();
    let others = order.len() > named.len();
    let columns = 4;
    let legend_rows = (named.len() + usize::from(others)).div_ceil(columns);
    let mut picture = Picture::new(WIDTH, top + depth + 40.0 + 18.0 * legend_rows as f64);
    for (paths, opacity) in paths.iter().zip(["0.45", "1"]) {
        for (path, color) in paths.iter().zip(SERIES).filter(|(path, _)| !path.is_empty()) {
            picture.path(path, &format!(r#"fill="{color}" fill-opacity="{opacity}""#));
        }
    }
    picture.line((left, top + depth), (WIDTH - 8.0, top + depth), FRAME);
    let every = (14.0 / h).ceil() as usize;
    for lane in (0..lanes).step_by(every.max(1)) {
        picture.text((left - 6.0, top + h * (lane as f64 + 0.5) + 4.0), Anchor::End, TEXT, &lane.to_string());
    }
    picture.text((left, top + depth + 16.0), Anchor::Start, TEXT, "first superstep noted");
    picture.text(
        (WIDTH - 8.0, top + depth + 16.0),
        Anchor::End,
        TEXT,
        &format!("{} supersteps later", supersteps(shown)),
    );
    let mut entry = |at: usize, color: &str, name: &str| {
        let (x, y) = (
            left + (WIDTH - left) / columns as f64 * (at % columns) as f64,
            top + depth + 36.0 + 18.0 * (at / columns) as f64,
        );
        picture.element(&format!(r#"<rect x="{x:.1}" y="{:.1}" width="14" height="10" fill="{color}"/>"#, y - 9.0));
        picture.text((x + 20.0, y), Anchor::Start, TEXT, &cut(name, (WIDTH - left) / columns as f64 - 30.0));
    };
    for (at, unit) in named.iter().enumerate() {
        entry(at, SERIES[color(*unit)], &timeline.units[*unit].loc.to_string());
    }
    if others {
        entry(named.len(), OTHERS, "other units");
    }
    let rest =
        if track.width > lanes { format!(" {} more lanes are not drawn.", track.width - lanes) } else { String::new() };
    let about = format!(
        "A row is a lane, a column a superstep, or several that are alike. Full cells run; thin lines wait for the unit of their colour; a lane without a line is done, or waits for what is beyond the window.{rest}"
    );
    waited.sort_by(|_, a, _, b| b.cmp(a));
    let seen = waited.iter().take(3).map(|(unit, n)| format!("{n} cells for {}", timeline.units[*unit].loc));
    let seen = format!(
        "{lanes} lanes over {} supersteps. Most is waited: {}.",
        supersteps(shown),
        seen.collect::<Vec<_>>().join(", ")
    );
    let rows = waited.iter().take(ROWS).map(|(unit, n)| {
        let part = 100.0 * *n as f64 / (lanes * shown.len()) as f64;
        vec![timeline.units[*unit].loc.to_string(), grouped(*n as u64), format!("{} %", fixed(part, 1))]
    });
    let figure = Figure::new("lanes", "Lanes over supersteps", picture, &seen, &about);
    Some(figure.with("What lanes wait for", &["", "cells", "of all"], rows.collect()))
}

fn supersteps(slices: &[&Slice]) -> u64 {
    slices.iter().map(|slice| u64::from(slice.supersteps)).sum()
}
