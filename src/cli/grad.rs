//! `autobatch grad`: the value and the gradient of a function, and whether differences say the same.

use std::process::ExitCode;

use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::program::io::JsonArray;
use crate::program::{Bound, Error, ErrorKind, Function, Inputs, Options, Program, Results};
use crate::run::{NoSink, Settings};
use crate::types::{Array, ArrayData, Precision};

use super::args::{Format, GradArgs};
use super::differences::{Component, First, Verdict};
use super::show::{list, note_caught, ragged};
use super::{inputs, print, warn};

/// Relative error up to which a component agrees.
const TOLERANCE: f64 = 1e-6;
/// The same for gradients in 32 bits.
const TOLERANCE_F32: f64 = 1e-3;
/// A derivative below this, relative to the value of the function, counts as 0: differences do not see it.
const NEGLIGIBLE: f64 = 1e-5;
/// Lanes of one run of the function for differences, and bytes of their inputs.
const LANES_AT_ONCE: usize = 1 << 16;
const BYTES_AT_ONCE: usize = 256 << 20;
/// Components that are shown one by one when they do not agree.
const SHOWN_FAILURES: usize = 10;

pub(super) fn grad(args: &GradArgs) -> Result<ExitCode, Error> {
    let options = args.engine.options(false)?;
    let program = Program::load(&args.file)?;
    let gradient = program.gradient(&args.entry, &args.wrt)?;
    let derived = gradient.function()?;
    let original = program.function(&args.entry)?;
    let given = inputs::read(&args.inputs, original.signature())?;
    let bound = derived.bind(&given, &options)?;
    warn(&bound);
    let results = bound.run(&options, &NoSink)?;
    let computed = Computed::new(gradient.inputs(), results, options.settings.precision);
    let checks = Differences::new(&original, &given, &options)?.check(&computed)?;
    match args.format {
        Format::Json => print(&format!("{}\n", computed.json(&checks)?)),
        Format::Text => {
            print(&computed.text(&checks));
            note_caught(&computed.results);
        }
    }
    let good = computed.results.traps().is_empty() && checks.iter().all(Check::passed);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Values and gradients.
struct Computed {
    results: Results,
    value: Array,
    /// By the name of the input.
    gradient: Vec<(String, Array)>,
    /// The lanes of a gradient whose lanes differ in length, without padding, by the name of the input.
    ragged: IndexMap<String, Vec<Array>>,
    precision: Precision,
    tolerance: f64,
}

impl Computed {
    fn new(inputs: &[String], results: Results, precision: Precision) -> Self {
        let outputs: Vec<Array> = results.outputs().values().cloned().collect();
        let (value, parts) = outputs.split_first().expect("a gradient has a value");
        let gradient = inputs.iter().cloned().zip(parts.iter().cloned()).collect();
        let mut ragged = ragged(&results, precision);
        let names = inputs.iter().zip(results.outputs().keys().skip(1));
        let ragged = names.filter_map(|(input, output)| Some((input.clone(), ragged.swap_remove(output)?))).collect();
        let tolerance = if precision == Precision::F32 { TOLERANCE_F32 } else { TOLERANCE };
        Self { value: value.clone(), gradient, ragged, precision, tolerance, results }
    }

    fn trapped(&self, lane: usize) -> bool {
        self.results.traps().iter().any(|t| t.position == lane)
    }

    fn shown(&self, array: &Array) -> Array {
        array.clone().shown(self.precision)
    }

    fn text(&self, checks: &[Check]) -> String {
        let mut text = format!("value = {}\n", self.shown(&self.value));
        for (name, array) in &self.gradient {
            text += &match self.ragged.get(name) {
                Some(lanes) => format!("gradient by {name} = {}\n", list(lanes.iter())),
                None => format!("gradient by {name} = {}\n", self.shown(array)),
            };
        }
        for trap in self.results.traps() {
            let message = if trap.message.is_empty() { String::new() } else { format!(": {}", trap.message) };
            text += &format!("trap: lane {}: {}{message} ({})\n", trap.position, trap.kind, trap.loc);
        }
        text += "check against central differences:\n";
        for check in checks {
            text += &check.text();
        }
        text
    }

    fn json(&self, checks: &[Check]) -> Result<String, Error> {
        let failed = |e: serde_json::Error| Error::new(ErrorKind::Io, e.to_string());
        let array = |array: &Array| serde_json::to_value(JsonArray(&self.shown(array))).map_err(failed);
        let part = |name: &String, part: &Array| match self.ragged.get(name) {
            Some(lanes) => lanes.iter().map(&array).collect(),
            None => array(part),
        };
        let gradient = self.gradient.iter().map(|(name, values)| Ok((name.clone(), part(name, values)?)));
        let traps: Vec<Value> = (self.results.traps().iter())
            .map(|t| json!({"kind": t.kind.name(), "function": &*t.loc.function, "line": t.loc.line, "message": t.message, "lane": t.position}))
            .collect();
        let object = json!({
            "lanes": self.value.shape[0],
            "value": array(&self.value)?,
            "gradient": Value::Object(gradient.collect::<Result<_, Error>>()?),
            "check": checks.iter().map(Check::json).collect::<Vec<Value>>(),
            "traps": traps,
        });
        serde_json::to_string(&object).map_err(failed)
    }
}

/// The comparison for one input.
struct Check {
    name: String,
    components: usize,
    /// Components whose differences are not numbers, and those of lanes that trapped.
    unchecked: usize,
    largest_error: f64,
    failures: Vec<Failure>,
    /// What is worth a word though it is no failure.
    notes: Vec<Note>,
}

/// A component that agrees at a small step only, or whose differences do not settle.
struct Note {
    lane: usize,
    /// Its indices.
    index: Vec<usize>,
    word: String,
}

/// A component that differs.
struct Failure {
    lane: usize,
    /// Its indices.
    index: Vec<usize>,
    gradient: f64,
    differences: f64,
    error: f64,
    /// The step of the differences, relative to nothing.
    step: f64,
}

/// The indices of a component behind the name of its input.
fn shown(index: &[usize]) -> String {
    if index.is_empty() { String::new() } else { format!("{index:?}") }
}

impl Check {
    fn new(name: &str, components: usize) -> Self {
        let (failures, notes) = (Vec::new(), Vec::new());
        Self { name: name.to_owned(), components, unchecked: 0, largest_error: 0.0, failures, notes }
    }

    /// What the further differences of a component say, of which the first were these.
    fn add(&mut self, place: (usize, Vec<usize>), component: &Component, first: Option<f64>, verdict: Verdict) {
        let (lane, index) = place;
        match verdict {
            Verdict::Agrees { error, step } => {
                self.largest_error = self.largest_error.max(error);
                if let Some(first) = first {
                    let word = format!(
                        "agrees at step {step:.0e}, where differences at larger ones give {first}: the function seems to jump or to bend near here"
                    );
                    self.notes.push(Note { lane, index, word });
                }
            }
            Verdict::Differs { differences, error, step } => {
                self.largest_error = self.largest_error.max(if error.is_nan() { f64::INFINITY } else { error });
                self.failures.push(Failure { lane, index, gradient: component.gradient, differences, error, step });
            }
            Verdict::Unsettled { first, differences, step } => {
                self.unchecked += 1;
                let from = first.map_or(String::new(), |first| format!("from {first} "));
                let gradient = component.gradient;
                let word = format!(
                    "gradient {gradient}, but differences do not settle ({from}to {differences} at step {step:.0e}): the function seems to jump near here"
                );
                self.notes.push(Note { lane, index, word });
            }
            Verdict::Unknown => self.unchecked += 1,
        }
    }

    fn passed(&self) -> bool {
        self.failures.is_empty() && self.unchecked < self.components.max(1)
    }

    fn text(&self) -> String {
        let verdict = if self.passed() { "PASS" } else { "FAIL" };
        let unchecked = match self.unchecked {
            0 => String::new(),
            n => format!(", {n} could not be checked"),
        };
        let mut text = format!(
            "  {verdict}  {}: {} of {} components agree{unchecked}; largest relative error {:.1e}\n",
            self.name,
            self.components - self.unchecked - self.failures.len(),
            self.components,
            self.largest_error
        );
        let failures = self.failures.iter().map(|f| {
            let Failure { lane, gradient, differences, error, step, .. } = f;
            let index = shown(&f.index);
            let word = format!(
                "gradient {gradient}, differences {differences} at step {step:.0e}, relative error {error:.1e}"
            );
            format!("        lane {lane}: {}{index}: {word}\n", self.name)
        });
        let notes = self
            .notes
            .iter()
            .map(|n| format!("        lane {}: {}{}: {}\n", n.lane, self.name, shown(&n.index), n.word));
        for (lines, count) in
            [(failures.collect::<Vec<String>>(), self.failures.len()), (notes.collect(), self.notes.len())]
        {
            lines.iter().take(SHOWN_FAILURES).for_each(|line| text += line);
            if count > SHOWN_FAILURES {
                text += &format!("        … and {} more\n", count - SHOWN_FAILURES);
            }
        }
        text
    }

    fn json(&self) -> Value {
        let failures: Vec<Value> = (self.failures.iter())
            .map(|f| json!({"lane": f.lane, "index": f.index, "gradient": f.gradient, "differences": f.differences, "step": f.step, "relative_error": f.error}))
            .collect();
        let notes: Vec<Value> =
            self.notes.iter().map(|n| json!({"lane": n.lane, "index": n.index, "note": n.word})).collect();
        json!({
            "input": self.name, "components": self.components, "unchecked": self.unchecked,
            "largest_relative_error": self.largest_error, "passed": self.passed(), "failures": failures, "notes": notes,
        })
    }
}

/// The function, ready to be computed at other points.
struct Differences {
    bound: Bound,
    options: Options,
    /// Names of the lane inputs, in the order of the run's inputs.
    names: Vec<String>,
}

/// One component of one lane, moved.
struct Point {
    lane: usize,
    component: usize,
    by: f64,
}

impl Differences {
    fn new(function: &Function<'_>, given: &Inputs, options: &Options) -> Result<Self, Error> {
        // In 64 bits whatever the gradient has: differences lose half of the digits.
        let settings = Settings { precision: Precision::F64, check_nan: false, ..options.settings.clone() };
        let options = Options { settings, deny: Vec::new(), ..options.clone() };
        let names = function.signature().ports.iter().filter(|p| !p.shared).map(|p| p.name.clone()).collect();
        Ok(Self { bound: function.bind(given, &options)?, options, names })
    }

    fn check(&self, computed: &Computed) -> Result<Vec<Check>, Error> {
        computed.gradient.iter().map(|(name, gradient)| self.check_input(computed, name, gradient)).collect()
    }

    fn check_input(&self, computed: &Computed, name: &str, gradient: &Array) -> Result<Check, Error> {
        let input = self.names.iter().position(|n| n == name).expect("a gradient is by a lane input");
        let values = self.bound.inputs().values[input].as_real().expect("a gradient is by a real").to_vec();
        let lanes = self.bound.lanes();
        let size = values.len() / lanes.max(1);
        let place = |at: usize| (at / size.max(1), at % size.max(1));
        let gradient = gradient.as_real().expect("a gradient is real");
        let function = computed.value.as_real().expect("the value is real");
        let component = |at: usize| Component {
            at: values[at],
            gradient: gradient[at],
            floor: NEGLIGIBLE * function[place(at).0].abs().max(1.0) / values[at].abs().max(1.0),
            tolerance: computed.tolerance,
        };
        let elements = (0..values.len()).filter(|at| self.bound.is_element(input, place(*at).0, place(*at).1));
        let elements: Vec<usize> = elements.collect();
        let points = |elements: &[usize], moves: &dyn Fn(&Component) -> Vec<f64>| -> Vec<Point> {
            let of = |at: &usize| {
                let (lane, element) = place(*at);
                moves(&component(*at)).into_iter().map(move |by| Point { lane, component: element, by })
            };
            elements.iter().flat_map(of).collect()
        };
        let shape = &self.bound.inputs().values[input].shape[1..];
        let mut check = Check::new(name, elements.len());
        let moved = self.at(input, size, &points(&elements, &Component::first_moves))?;
        let mut open: Vec<(usize, Option<f64>)> = Vec::new();
        for (at, moved) in elements.iter().copied().zip(moved.chunks(Component::FIRST)) {
            match component(at).first(moved) {
                _ if computed.trapped(place(at).0) => check.unchecked += 1,
                First::Agrees(error) => check.largest_error = check.largest_error.max(error),
                First::Open(closest) => open.push((at, closest.map(|(slope, _)| slope))),
            }
        }
        let again: Vec<usize> = open.iter().map(|(at, _)| *at).collect();
        let moved = self.at(input, size, &points(&again, &Component::further_moves))?;
        let mut moved = &moved[..];
        for (at, first) in open {
            let component = component(at);
            let (values, rest) = moved.split_at(component.further_moves().len());
            moved = rest;
            let (lane, element) = place(at);
            check.add((lane, indices(element, shape)), &component, first, component.further(first, values));
        }
        Ok(check)
    }

    /// The function at other points: each is a lane of its own, with the random stream of the lane that it comes from.
    fn at(&self, input: usize, size: usize, points: &[Point]) -> Result<Vec<f64>, Error> {
        let mut values = Vec::with_capacity(points.len());
        let arrays = self.bound.inputs().values.iter();
        let row_bytes: usize = arrays.map(|a| 8 * a.shape[1..].iter().product::<usize>()).sum();
        for points in points.chunks((BYTES_AT_ONCE / row_bytes.max(1)).clamp(1, LANES_AT_ONCE)) {
            let mut bound = self.bound.clone();
            let inputs = bound.inputs_mut();
            inputs.lanes = points.iter().map(|p| self.bound.inputs().lanes[p.lane]).collect();
            for (i, array) in inputs.values.iter_mut().enumerate() {
                *array = rows(array, points);
                if i == input
                    && let ArrayData::Real(data) = &mut array.data
                {
                    for (row, point) in points.iter().enumerate() {
                        data[row * size + point.component] += point.by;
                    }
                }
            }
            let results = bound.run(&self.options, &NoSink)?;
            let output = results.outputs().values().next().and_then(Array::as_real).expect("the function gives a real");
            let first = values.len();
            values.extend_from_slice(output);
            for trap in results.traps() {
                values[first + trap.position] = f64::NAN;
            }
        }
        Ok(values)
    }
}

/// The rows of the lanes that the points come from.
fn rows(array: &Array, points: &[Point]) -> Array {
    fn gather<T: Copy>(data: &[T], size: usize, points: &[Point]) -> Vec<T> {
        points.iter().flat_map(|p| data[p.lane * size..(p.lane + 1) * size].iter().copied()).collect()
    }
    let size: usize = array.shape[1..].iter().product();
    let data = match &array.data {
        ArrayData::Bool(data) => ArrayData::Bool(gather(data, size, points)),
        ArrayData::Int(data) => ArrayData::Int(gather(data, size, points)),
        ArrayData::Real(data) => ArrayData::Real(gather(data, size, points)),
    };
    Array::new(std::iter::once(points.len()).chain(array.shape[1..].iter().copied()), data)
}

/// Row-major indices of an element.
fn indices(mut element: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (at, extent) in shape.iter().enumerate().rev() {
        index[at] = element % extent;
        element /= extent;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_have_their_indices() {
        assert_eq!(indices(7, &[2, 3, 2]), [1, 0, 1]);
        assert_eq!(indices(0, &[]), [0usize; 0]);
    }
}
