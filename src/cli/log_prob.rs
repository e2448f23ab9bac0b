//! `autobatch log-prob`: the log density of a model and its gradient at points that are given.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::mcmc::log_prob::{Evaluated, LogProb};
use crate::program::io::{ArrayType, Data, JsonArray, read_argument};
use crate::program::{Error, ErrorKind, Options, Terms};
use crate::types::{Array, DType, Precision};

use super::args::{Format, LogProbArgs};
use super::inits::complete;
use super::lines::Lines;
use super::model::Model;
use super::signals::{nothing_to_keep_yet, run_starts};
use super::{note, print};

/// The key of the points in a file of CmdStan's.
const POINTS: &str = "params_r";

pub(super) fn log_prob(args: &LogProbArgs) -> Result<ExitCode, Error> {
    let mut options = args.engine.options(false)?;
    let _lines = Lines::of(&mut options);
    options.settings.stop = Some(nothing_to_keep_yet());
    let points = args.points.as_deref().map(read_points).transpose()?;
    let terms = Terms { constants: args.full, jacobian: !args.no_jacobian && args.jacobian != Some(false) };
    let loaded = Model::load(&args.model, &args.data, terms, options.settings.seed)?;
    let points = match (points, &args.constrained) {
        (Some(points), _) => points,
        (None, Some(file)) => complete(file, &loaded, &options)?,
        (None, None) => unreachable!("one of them is required"),
    };
    let model = LogProb::new(&loaded.source(), terms, |density| loaded.inputs(density))?;
    run_starts();
    let mut values = model.at(points.clone(), &options)?;
    explain(&model, &mut values, &points, &options)?;
    let precision = options.settings.precision;
    match args.format {
        Format::Json => print(&json(&values, precision)?),
        Format::Text => values.iter().for_each(|value| print(&text(value, precision))),
    }
    Ok(ExitCode::SUCCESS)
}

/// Points that are looked at once more, which takes a run of each.
const MOST_EXPLAINED: usize = 10;

/// Points of which it is asked whether Stan has a density there.
const MOST_LOOKED_AT: usize = 1000;

/// Adds to values that are no finite numbers where they come from: of a density that is infinite in a note, since the value
/// is one.
fn explain(model: &LogProb, values: &mut [Evaluated], points: &Array, options: &Options) -> Result<(), Error> {
    let rows = points.as_real().unwrap_or_default();
    let d = rows.len() / values.len().max(1);
    let (mut left, mut looked_at) = (MOST_EXPLAINED, 0);
    for (i, value) in values.iter_mut().enumerate() {
        if matches!(value, Evaluated::Density { lp, .. } if *lp == f64::NEG_INFINITY) && looked_at < MOST_LOOKED_AT {
            looked_at += 1;
            if let Some(why) = model.rejection(&rows[i * d..][..d]) {
                *value = Evaluated::Rejected(why);
                continue;
            }
        }
        if left == 0 || matches!(value, Evaluated::Density { lp, .. } if lp.is_finite()) {
            continue;
        }
        let before = value.clone();
        let Some(why) = model.problem(&before, &rows[i * d..][..d], options)? else { continue };
        match value {
            Evaluated::Rejected(told) if *told == why => continue,
            Evaluated::Rejected(told) => *told = why,
            Evaluated::Density { .. } => note(&format!("note: point {i}: {why}")),
        }
        left -= 1;
    }
    Ok(())
}

/// Of a file or of JSON: a list of points, or an object with such a list.
fn read_points(text: &str) -> Result<Array, Error> {
    let trimmed = text.trim_start();
    let value = if trimmed.starts_with('[') { trimmed.to_owned() } else { format!("@{text}") };
    let (_, mut data) = read_argument(&format!("{POINTS}={value}"))?;
    // Of other files of an object, CmdStan's among them, the list may stand among others.
    if let Data::Json(Value::Object(object)) = &data
        && let Some(points) = object.get(POINTS)
    {
        data = Data::Json(points.clone());
    }
    // One point may be a list of its numbers.
    match &data {
        Data::Numbers(numbers) if numbers.array().shape.len() == 1 => {
            let point = data.to_array("--points", ArrayType { dtype: DType::Real, rank: 1 })?;
            let values = point.as_real().expect("it was read as reals").to_vec();
            return Ok(Array::real([1, values.len()], values));
        }
        Data::Json(Value::Array(numbers)) if numbers.first().is_some_and(|first| !first.is_array()) => {
            data = Data::Json(Value::Array(vec![Value::Array(numbers.clone())]));
        }
        _ => {}
    }
    Ok(data.to_array("--points", ArrayType { dtype: DType::Real, rank: 2 })?)
}

/// `lp = -3.5, gradient = [1, 2]`.
fn text(value: &Evaluated, precision: Precision) -> String {
    match value {
        Evaluated::Density { lp, gradient } => {
            format!("lp = {}, gradient = {}\n", scalar(*lp, precision), vector(gradient, precision))
        }
        Evaluated::Rejected(why) => format!("rejected: {why}\n"),
    }
}

/// A list with an object for each point, one a line.
fn json(values: &[Evaluated], precision: Precision) -> Result<String, Error> {
    let failed = |e: serde_json::Error| Error::new(ErrorKind::Io, e.to_string());
    let array = |array: Array| serde_json::to_value(JsonArray(&array)).map_err(failed);
    let object = |value: &Evaluated| -> Result<Value, Error> {
        Ok(match value {
            Evaluated::Density { lp, gradient } => {
                json!({"lp": array(scalar(*lp, precision))?, "gradient": array(vector(gradient, precision))?})
            }
            Evaluated::Rejected(why) => json!({"rejected": why}),
        })
    };
    let objects = values.iter().map(|value| Ok(object(value)?.to_string())).collect::<Result<Vec<_>, Error>>()?;
    Ok(format!("[{}]\n", objects.join(",\n")))
}

fn scalar(value: f64, precision: Precision) -> Array {
    Array::real([], vec![value]).shown(precision)
}

fn vector(values: &[f64], precision: Precision) -> Array {
    Array::real([values.len()], values.to_vec()).shown(precision)
}
