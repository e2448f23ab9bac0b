//! The chains of a store, ours or that of another library, by the names that ArviZ has for groups and statistics.

use std::path::Path;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::mcmc::protocol::{LP, TREEDEPTH};
use crate::mcmc::sampling::ARVIZ_STATISTICS;
use crate::program::{Error, ErrorKind};
use crate::report::{ElementNames, RunState, SetsOfChains, StoredChains};
use crate::store::read::{ZarrArray, ZarrError, ZarrGroup};
use crate::store::{Coordinates, DATA_SET};
use crate::types::Array;

use super::note;
use super::stan_files::apart;

/// Whether a tree was ended by its depth.
const SATURATED: &str = "reached_max_treedepth";
/// What stores tell of a run, and what CmdStan calls it.
const TOLD: [(&str, &str); 12] = [
    ("model", "model"),
    ("model_name", "model"),
    ("data", "file"),
    ("seed", "seed"),
    ("random_seed", "seed"),
    ("warmup", "num_warmup"),
    ("num_warmup", "num_warmup"),
    ("tuning_steps", "num_warmup"),
    ("thin", "thin"),
    ("thinning", "thin"),
    ("max_treedepth", "max_depth"),
    ("target_accept", "delta"),
];

/// The chains of a store.
///
/// # Errors
/// For what is no store that can be read, and where no chain has a draw.
pub(super) fn read(path: &Path) -> Result<StoredChains, Error> {
    let store = ZarrGroup::open(path).map_err(refused)?;
    let Some(posterior) = store.group("posterior").map_err(refused)? else {
        let names = store.names().map_err(refused)?;
        let there = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        let message = format!("{}: there is no group `posterior`, as ArviZ has it: there is {there}", path.display());
        return Err(Error::new(ErrorKind::Input, message));
    };
    let arrays = posterior.arrays().map_err(refused)?;
    let mut parameters = IndexMap::new();
    let (mut axes, mut coords) = (IndexMap::new(), Coordinates::new());
    for (name, array) in &arrays {
        if !["chain", "draw"].contains(&name.as_str()) {
            match array.coordinate() {
                Ok(Some(along)) => {
                    coords.insert(name.clone(), along);
                    continue;
                }
                Ok(None) => {}
                // The draws are there without it.
                Err(error) => note(&format!("note: what stands along `{name}` is left out: {error}")),
            }
        }
        axes.insert(name.clone(), array.dimensions.iter().skip(2).cloned().map(Some).collect());
        if is_drawn(array, posterior.path(), name)? {
            parameters.insert(name.clone(), array.read().map_err(refused)?);
        }
    }
    let mut statistics = IndexMap::new();
    let mut saturated = None;
    if let Some(group) = store.group("sample_stats").map_err(refused)? {
        for (name, array) in &group.arrays().map_err(refused)? {
            let ours = ARVIZ_STATISTICS.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours);
            if (ours.is_none() && name != SATURATED) || array.shape.len() != 2 || !is_drawn(array, group.path(), name)?
            {
                continue;
            }
            let array = array.read().map_err(refused)?;
            match ours {
                Some(ours) => drop(statistics.insert(ours.to_owned(), array)),
                None => saturated = Some(array),
            }
        }
    }
    statistics.sort_by(|a, _, b, _| place(a).cmp(&place(b)));
    let attributes = told_by(&[&store, &posterior]);
    let state = attributes.get("status").and_then(Value::as_str).map_or(RunState::Unknown, RunState::named);
    let numbers = arrays.get("chain").filter(|array| array.is_number()).map(ZarrArray::read).transpose();
    let numbers = numbers.map_err(refused)?.and_then(|array| Some(array.as_real()?.to_vec())).unwrap_or_default();
    let mut chains = cut(path, (parameters, statistics), &numbers, state)?;
    chains.config = config(&attributes);
    chains.names = ElementNames::new(axes, coords);
    if let Some(array) = arrays.get(DATA_SET).filter(|array| array.is_number() && array.dimensions == ["chain"]) {
        let of = array.read().map_err(refused)?;
        let of = of.as_real().expect("stores are read as reals");
        let at = |number: &usize| match &numbers[..] {
            [] => of.get(*number),
            numbers => of.get(numbers.iter().position(|other| *other as usize == *number)?),
        };
        let of: Vec<usize> = chains.numbers.iter().filter_map(at).map(|set| *set as usize).collect();
        let told = attributes.get("data_sets").and_then(Value::as_u64).map(|count| count as usize);
        let least = of.iter().max().map_or(0, |set| set.saturating_add(1));
        if !of.is_sorted() {
            return Err(apart(path));
        }
        if of.len() == chains.numbers.len() {
            chains.sets = Some(SetsOfChains { count: told.unwrap_or(0).max(least), of });
        }
    }
    if let (Some(saturated), false) = (saturated, chains.config.contains_key("max_depth")) {
        let depths = chains.statistics.get(TREEDEPTH).and_then(Array::as_real).unwrap_or_default();
        // Of what was ended all have the largest depth.
        let kept = rows(&saturated, &chains.numbers, &numbers, chains.draws);
        let ended = kept.as_real().unwrap_or_default().iter().zip(depths).filter(|(ended, _)| **ended != 0.0);
        if let Some(depth) = ended.map(|(_, depth)| *depth).reduce(f64::min) {
            chains.config.insert("max_depth".to_owned(), format!("{depth}"));
        }
    }
    let seconds = |key: &str| attributes.get(key).and_then(Value::as_f64).filter(|s| *s >= 0.0).unwrap_or(0.0);
    chains.seconds = vec![(seconds("warmup_time"), seconds("sampling_time")); chains.numbers.len()];
    if let Some(group) = store.group("observed_data").map_err(refused)? {
        for (name, array) in group.arrays().map_err(refused)?.iter().filter(|(_, array)| array.is_number()) {
            if array.dimensions != [name.clone()] {
                chains.observed.insert(name.clone(), array.read().map_err(refused)?);
            }
        }
    }
    Ok(chains)
}

fn refused(error: ZarrError) -> Error {
    Error::new(ErrorKind::Input, error.to_string())
}

fn place(name: &str) -> usize {
    ARVIZ_STATISTICS.iter().position(|(_, ours)| *ours == name).unwrap_or(ARVIZ_STATISTICS.len())
}

/// Whether an array has draws: chain × draw × event shape. What has others, or words, is left alone.
fn is_drawn(array: &ZarrArray, group: &Path, name: &str) -> Result<bool, Error> {
    let at = |axis: &str| array.dimensions.iter().position(|dimension| dimension == axis);
    match (at("chain"), at("draw")) {
        (Some(0), Some(1)) if array.is_number() => Ok(true),
        (Some(0), Some(1)) => {
            let (element, group) = (&array.element, group.display());
            note(&format!("note: {group}: `{name}` is left out: elements of type `{element}` are no numbers"));
            Ok(false)
        }
        (Some(_), Some(_)) => {
            let (group, axes) = (group.display(), array.dimensions.join(" × "));
            let message =
                format!("{group}: `{name}` has the axes {axes}, where `chain` and `draw` must be the first two");
            Err(Error::new(ErrorKind::Input, message))
        }
        _ if array.dimensions.is_empty() && array.shape.len() >= 2 => {
            let message = format!("{}: `{name}` has no dimension_names: which axis is `chain`?", group.display());
            Err(Error::new(ErrorKind::Input, message))
        }
        _ => Ok(false),
    }
}

/// The attributes of the groups, the first first.
fn told_by(groups: &[&ZarrGroup]) -> Map<String, Value> {
    let mut all = Map::new();
    for (name, value) in groups.iter().flat_map(|group| &group.attributes) {
        all.entry(name.clone()).or_insert_with(|| value.clone());
    }
    all
}

/// What is told of the run, by CmdStan's names.
fn config(attributes: &Map<String, Value>) -> IndexMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    };
    let mut config = IndexMap::new();
    for (theirs, ours) in TOLD {
        if let Some(value) = attributes.get(theirs).and_then(text) {
            config.entry(ours.to_owned()).or_insert(value);
        }
    }
    if let Some(library) = attributes.get("inference_library").and_then(text) {
        let version = attributes.get("inference_library_version").and_then(text);
        let version = version.map_or(String::new(), |version| format!(" {version}"));
        config.insert("written_by".to_owned(), library + &version);
    }
    config
}

/// The draws that are whole. A run of ours may have places for draws that are not there: of chains that trapped, or are not so
/// far. They are NaN.
fn cut(
    path: &Path,
    (parameters, statistics): (IndexMap<String, Array>, IndexMap<String, Array>),
    numbers: &[f64],
    state: RunState,
) -> Result<StoredChains, Error> {
    let refused = |what: String| Err(Error::new(ErrorKind::Input, format!("{}: {what}", path.display())));
    let all = || parameters.values().chain(statistics.values());
    let Some(chains) = parameters.values().next().map(|array| array.shape[0]) else {
        return refused("the group `posterior` has no arrays chain × draw of numbers".to_owned());
    };
    if let Some(other) = all().find(|array| array.shape[0] != chains) {
        return refused(format!("arrays are of {chains} chains and of {}", other.shape[0]));
    }
    let draws = all().map(|array| array.shape[1]).min().unwrap_or(0);
    if draws == 0 {
        return refused("there are no draws".to_owned());
    }
    let uneven = all().any(|array| array.shape[1] != draws);
    let uneven = uneven && state == RunState::Unknown;
    let made = |chain: usize| {
        // What others write is whole.
        if state == RunState::Unknown {
            return draws;
        }
        // Of a draw that is there some number is one.
        let there = |draw: usize| {
            let told = |array: &Array| {
                let event: usize = array.shape[2..].iter().product();
                let first = (chain * array.shape[1] + draw) * event;
                let values = array.as_real().expect("stores are read as reals");
                event == 0 || values[first..first + event].iter().any(|x| !x.is_nan())
            };
            statistics.get(LP).map_or_else(|| parameters.values().all(told), told)
        };
        (0..draws).position(|draw| !there(draw)).unwrap_or(draws)
    };
    let made: Vec<usize> = (0..chains).map(made).collect();
    // Those of which most draws are left: one that trapped early would leave few of all.
    let mut counts = made.clone();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let whole = counts.iter().enumerate().map(|(at, count)| ((at + 1) * count, at, *count)).max();
    let Some(whole) = whole.map(|(.., count)| count).filter(|whole| *whole > 0) else {
        return refused("there are no draws".to_owned());
    };
    let kept: Vec<usize> = (0..chains).filter(|chain| made[*chain] >= whole).collect();
    if kept.len() < chains {
        let left = chains - kept.len();
        note(&format!("note: {left} of {chains} chains have fewer than {whole} draws, and are left out"));
    }
    let number = |chain: &usize| numbers.get(*chain).map_or(*chain, |number| *number as usize);
    let rows = |arrays: IndexMap<String, Array>| -> IndexMap<String, Array> {
        arrays.into_iter().map(|(name, array)| (name, part(&array, &kept, whole))).collect()
    };
    let (parameters, statistics) = (rows(parameters), rows(statistics));
    Ok(StoredChains {
        stepsizes: StoredChains::last_stepsizes(&statistics),
        parameters,
        statistics,
        draws: whole,
        uneven,
        numbers: kept.iter().map(number).collect(),
        state,
        ..StoredChains::default()
    })
}

/// The first draws of some chains.
fn part(array: &Array, chains: &[usize], draws: usize) -> Array {
    let event: usize = array.shape[2..].iter().product();
    let values = array.as_real().expect("stores are read as reals");
    if chains.len() == array.shape[0] && draws == array.shape[1] {
        return array.clone();
    }
    let of = |chain: &usize| &values[chain * array.shape[1] * event..][..draws * event];
    let shape = [chains.len(), draws].into_iter().chain(array.shape[2..].iter().copied());
    Array::real(shape, chains.iter().flat_map(of).copied().collect())
}

/// The rows of those chains that were kept, by their numbers.
fn rows(array: &Array, kept: &[usize], numbers: &[f64], draws: usize) -> Array {
    let place = |number: &usize| match numbers {
        [] => Some(*number),
        numbers => numbers.iter().position(|other| *other as usize == *number),
    };
    let chains: Vec<usize> = kept.iter().filter_map(place).filter(|chain| *chain < array.shape[0]).collect();
    part(array, &chains, draws.min(array.shape[1]))
}
