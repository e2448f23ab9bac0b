//! What can be set of a sampler and of the chain around it: what there is, and what is asked for.
//!
//! `chain.ab` and a sampler say it in the same way: by a struct `Tuning` of numbers, `tuning()`, which gives its values
//! where nobody says otherwise, and `check_tuning(tuning)`, which traps where one makes no sense. A comment above a
//! field is what a list of the settings says of it.

use std::fmt;

use indexmap::IndexMap;

use crate::program::{Engine, Error, ErrorKind, Inputs, Options, Program};
use crate::types::{Array, DType, Scalar};

/// The struct of what can be set.
pub(super) const TUNING: &str = "Tuning";
/// The function that gives its values where nobody says otherwise.
const DEFAULTS: &str = "tuning";
/// The function that refuses values that make no sense.
const CHECK: &str = "check_tuning";

/// The setting of a chain that adaptation aims at.
pub const TARGET_ACCEPT: &str = "target_accept";
/// The setting of samplers that build trees: doublings after which a trajectory is long enough.
pub const MAX_TREEDEPTH: &str = "max_treedepth";
/// The setting of the shipped NUTS that is the number of leapfrog steps between the states that it considers.
pub const LEAF_STEPS: &str = "leaf_steps";
/// The setting of a chain that says how far from their origin chains start.
pub const INIT_RADIUS: &str = "init_radius";
/// The setting of a chain: of so many iterations one is kept.
pub const THIN: &str = "thin";
/// Of so many iterations one tells the state of its chain.
pub const CHECKPOINT_EVERY: &str = "checkpoint_every";
/// The setting of a chain that lets warmup learn from the draws of all chains.
pub const POOLED_WARMUP: &str = "pooled_warmup";
/// The setting of a chain that asks for the states of warmup.
pub const SAVE_WARMUP: &str = "save_warmup";

/// What is asked for, by name: `target_accept`, `max_treedepth`, … Each sampler has its own settings, and
/// [`Sampling::new`](super::Sampling::new) refuses what it has not.
///
/// ```
/// use autobatch::mcmc::sampling::SamplerSettings;
///
/// let settings = SamplerSettings::new().with("target_accept", 0.95).with("max_treedepth", 12);
/// assert_eq!(settings, SamplerSettings::new().with_text("target_accept=0.95")?.with_text("max_treedepth=12")?);
/// # Ok::<(), autobatch::program::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SamplerSettings(IndexMap<String, Scalar>);

/// A number that a setting can have.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Number(Scalar);

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Number(Scalar::Real(value))
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Number(Scalar::Int(value))
    }
}

impl From<i32> for Number {
    fn from(value: i32) -> Self {
        Number(Scalar::Int(value.into()))
    }
}

impl From<bool> for Number {
    fn from(value: bool) -> Self {
        Number(Scalar::Bool(value))
    }
}

impl SamplerSettings {
    /// Nothing is asked for.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a setting; a later value of the same name takes the place of an earlier one.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Number>) -> Self {
        self.0.insert(name.into(), value.into().0);
        self
    }

    /// With a setting in the form `name=value`.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] for another form, a value that is neither a number nor `true` or `false`, and a name that
    /// has a value already.
    pub fn with_text(self, text: &str) -> Result<Self, Error> {
        let refused = |message: String| Err(Error::new(ErrorKind::Option, message));
        let parts = text.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
        let Some((name, value)) = parts.filter(|(name, _)| !name.is_empty()) else {
            return refused(format!("`{text}` is no setting: write NAME=VALUE, such as {TARGET_ACCEPT}=0.95"));
        };
        if self.0.contains_key(name) {
            return refused(format!("`{name}` is set twice"));
        }
        let int = value.parse().map(Scalar::Int).ok();
        let real = || value.parse().map(Scalar::Real).ok();
        match int.or_else(real).or_else(|| value.parse().map(Scalar::Bool).ok()) {
            Some(value) => Ok(self.with(name, Number(value))),
            None => refused(format!("{name} must be a number, not `{value}`")),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<Scalar> {
        self.0.get(name).copied()
    }

    pub(in crate::mcmc) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// A setting that there is.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value in a run, of the type that it has.
    pub value: Scalar,
    /// Its value where nobody says otherwise.
    pub default: Scalar,
    /// What it is, in words; empty where the sampler says nothing.
    pub about: String,
}

/// `name = value`.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.name, self.value)
    }
}

/// The value, as the type that it must have.
fn of_type(name: &str, value: Scalar, wanted: DType) -> Result<Scalar, Error> {
    let refused = |what: &str| {
        let message = format!("{name} must be {what}, not {value}");
        Err(Error::new(ErrorKind::Option, message))
    };
    match (wanted, value) {
        (DType::Real, Scalar::Real(r)) if !r.is_finite() => refused("a finite number"),
        (DType::Real, Scalar::Int(i)) => Ok(Scalar::Real(i as f64)),
        (DType::Real, Scalar::Bool(_)) => refused("a number"),
        (DType::Int, Scalar::Real(_) | Scalar::Bool(_)) => refused("a whole number"),
        (DType::Bool, Scalar::Int(_) | Scalar::Real(_)) => refused("true or false"),
        _ => Ok(value),
    }
}

/// The settings of one program: of the chain, or of a sampler.
#[derive(Clone, Debug)]
pub(in crate::mcmc) struct Tuning {
    pub(in crate::mcmc) settings: Vec<Setting>,
}

impl Tuning {
    /// Reads what a program says; nothing where it says nothing.
    pub(in crate::mcmc) fn read(program: &Program, path: &str) -> Result<Option<Self>, Error> {
        if !program.functions().any(|function| function == DEFAULTS) {
            return Ok(None);
        }
        let form = format!("{path}: `{DEFAULTS}` takes nothing and gives a struct `{TUNING}` of numbers");
        let wrong = || Error::new(ErrorKind::Entry, form.clone());
        let function = program.function(DEFAULTS)?;
        if !function.signature().ports.is_empty() {
            return Err(wrong());
        }
        let results = function.run(&Inputs::new().lanes(1), &by_interpreter())?;
        if !results.traps().is_empty() || results.outputs().values().any(|array| array.shape[..] != [1]) {
            return Err(wrong());
        }
        let about = comments(program);
        let setting = |(name, array): (&String, &Array)| {
            // A part of a struct or tuple is called by its place.
            if name.contains('.') {
                return Err(wrong());
            }
            let value = of_type(name, array.get(0), array.dtype()).map_err(|error| {
                Error::new(ErrorKind::Entry, format!("{path}: `{DEFAULTS}` gives what no setting can be: {error}"))
            })?;
            let about = about.get(name).cloned().unwrap_or_default();
            Ok(Setting { name: name.clone(), value, default: value, about })
        };
        Ok(Some(Self { settings: results.outputs().iter().map(setting).collect::<Result<_, Error>>()? }))
    }

    pub(in crate::mcmc) fn get(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|s| s.name == name)
    }

    /// Takes the defaults of another program for the settings of the same names.
    pub(in crate::mcmc) fn take_defaults(&mut self, of: &Tuning) -> Result<(), Error> {
        for setting in &mut self.settings {
            if let Some(theirs) = of.get(&setting.name) {
                setting.default = of_type(&setting.name, theirs.default, setting.default.dtype())?;
                setting.value = setting.default;
            }
        }
        Ok(())
    }

    /// Sets what is asked for and is here.
    pub(in crate::mcmc) fn set(&mut self, asked: &SamplerSettings) -> Result<(), Error> {
        for setting in &mut self.settings {
            if let Some(value) = asked.get(&setting.name) {
                setting.value = of_type(&setting.name, value, setting.default.dtype())?;
            }
        }
        Ok(())
    }

    /// Asks the program whether the values make sense.
    pub(in crate::mcmc) fn check(&self, program: &Program) -> Result<(), Error> {
        if !program.functions().any(|function| function == CHECK) {
            return Ok(());
        }
        let function = program.function(CHECK)?;
        let mut inputs = Inputs::new().lanes(1);
        for port in &function.signature().ports {
            let field = port.name.rsplit('.').next().unwrap_or_default();
            let Some(setting) = self.get(field) else { continue };
            inputs = inputs.shared(port.name.clone(), Array::scalar(setting.value));
        }
        let results = function.run(&inputs, &by_interpreter())?;
        match results.traps().first() {
            Some(trap) if trap.message.is_empty() => Err(Error::new(ErrorKind::Option, trap.to_string())),
            Some(trap) => Err(Error::new(ErrorKind::Option, trap.message.clone())),
            None => Ok(()),
        }
    }

    /// The struct, as a value of the module of this name.
    pub(in crate::mcmc) fn literal(&self, module: &str) -> String {
        let value = |value: Scalar| match value {
            // The language has no literal of it.
            Scalar::Int(i64::MIN) => format!("{} - 1", i64::MIN + 1),
            value => value.to_string(),
        };
        let fields: Vec<String> = self.settings.iter().map(|s| format!("{}: {}", s.name, value(s.value))).collect();
        format!("{module}::{TUNING} {{ {} }}", fields.join(", "))
    }
}

/// One lane that takes no time: the interpreter, which generates and schedules nothing.
fn by_interpreter() -> Options {
    Options { engine: Engine::Scalar, ..Options::default() }
}

/// The comment above each field of the struct `Tuning` of a program.
fn comments(program: &Program) -> IndexMap<String, String> {
    let mut comments = IndexMap::new();
    let Some((_, main)) = program.sources().files().next() else { return comments };
    let head = format!("pub struct {TUNING}");
    // Of a struct in one line nothing is known.
    let Some(start) = main.text.lines().position(|line| line.starts_with(&head) && !line.contains('}')) else {
        return comments;
    };
    let body = main.text.lines().skip(start + 1);
    let mut words: Vec<&str> = Vec::new();
    for line in body.map(str::trim).take_while(|line| *line != "}") {
        if let Some(comment) = line.strip_prefix("//") {
            words.push(comment.trim_start_matches('/').trim());
        } else if let Some((name, _)) = line.split_once(':') {
            comments.insert(name.trim().to_owned(), words.join(" "));
            words.clear();
        }
    }
    comments
}

/// The error for a setting that neither a chain nor its sampler has.
pub(super) fn unknown(name: &str, sampler: &str, there: &[&Setting]) -> Error {
    let named: Vec<String> = there.iter().map(|s| format!("{} = {}", s.name, s.default)).collect();
    let message = format!(
        "`{name}` means nothing to the sampler {sampler}: what can be set is, by default, {}",
        named.join(", ")
    );
    Error::new(ErrorKind::Option, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_type_of_their_setting() {
        let of = |value, ty| of_type("x", value, ty).map_err(|e| e.to_string());
        assert_eq!(of(Scalar::Int(1), DType::Real), Ok(Scalar::Real(1.0)));
        assert_eq!(of(Scalar::Real(1.5), DType::Real), Ok(Scalar::Real(1.5)));
        assert_eq!(of(Scalar::Real(1.5), DType::Int).unwrap_err(), "x must be a whole number, not 1.5");
        assert_eq!(of(Scalar::Real(f64::NAN), DType::Real).unwrap_err(), "x must be a finite number, not nan");
        assert_eq!(of(Scalar::Int(1), DType::Bool).unwrap_err(), "x must be true or false, not 1");
    }

    #[test]
    fn comments_are_those_above_the_fields() {
        let text = "pub struct Tuning {\n    // First,\n    // and more.\n    a: int,\n    b: real,\n}\n";
        let program = Program::compile(&format!("{text}pub fn f(x: real) -> real {{ x }}")).expect("it is right");
        let line = "pub struct Tuning { a: int }\n// No field.\npub fn f(x: real) -> real { x }";
        assert!(comments(&Program::compile(line).expect("it is right")).is_empty());
        let wanted = [("a", "First, and more."), ("b", "")];
        assert!(comments(&program).iter().map(|(n, c)| (n.as_str(), c.as_str())).eq(wanted));
    }
}
