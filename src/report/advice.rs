//! Warnings, and changes of a run that they advise.

use std::fmt;

use serde::Serialize;

/// What to worry about.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Warning {
    /// What it is about.
    pub concern: Concern,
    /// What it is, in words.
    pub message: String,
    /// The change of the run that may help, where there is one.
    pub advice: Option<Advice>,
    /// The command that makes this change, where the run was a command: see
    /// [`Summary::advise`](super::Summary::advise).
    pub command: Option<String>,
}

/// What a warning is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub enum Concern {
    /// Trees that were ended by their depth.
    TreeDepth,
    /// Divergent transitions.
    Divergences,
    /// E-BFMI.
    Energy,
    /// Effective sample sizes.
    SampleSize,
    /// R-hat.
    Agreement,
    /// Anything else.
    Other,
}

impl Warning {
    /// A warning of no special concern without advice.
    pub fn new(message: impl Into<String>) -> Self {
        Self::of(Concern::Other, message, None)
    }

    /// A warning with the change of the run that may help.
    pub(super) fn of(concern: Concern, message: impl Into<String>, advice: Option<Advice>) -> Self {
        Self { concern, message: message.into(), advice, command: None }
    }
}

/// The message, and in a line of its own the command, or else what the advice sets.
impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match (&self.command, &self.advice) {
            (Some(command), _) => write!(f, ":\n    {command}"),
            (None, Some(advice)) => write!(f, ": {advice}"),
            (None, None) => Ok(()),
        }
    }
}

/// A change of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub enum Advice {
    /// Another value of a setting of the sampler or its chain.
    Set {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// Another step size.
    Stepsize(f64),
    /// More draws of each chain.
    Draws(usize),
    /// More warmup and more draws of each chain.
    Longer {
        /// Iterations of warmup.
        warmup: usize,
        /// Draws.
        draws: usize,
    },
    /// The same run, which also shows what goes with trouble: see [`Diagnosis`](super::Diagnosis).
    Diagnose,
}

impl Advice {
    /// The flags of `autobatch sample` that make the change, each with its value; a flag without one has an empty one.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        match self {
            Advice::Set { name, value } => vec![("--set", format!("{name}={value}"))],
            Advice::Stepsize(stepsize) => vec![("--stepsize", stepsize.to_string())],
            Advice::Draws(draws) => vec![("--draws", draws.to_string())],
            // A run without warmup wants none.
            Advice::Longer { warmup: 0, draws } => vec![("--draws", draws.to_string())],
            Advice::Longer { warmup, draws } => {
                vec![("--warmup", warmup.to_string()), ("--draws", draws.to_string())]
            }
            Advice::Diagnose => vec![("--diagnose", String::new())],
        }
    }
}

/// `--set target_accept=0.9`.
impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags: Vec<String> = self.flags().into_iter().map(|(flag, value)| format!("{flag} {value}")).collect();
        f.write_str(flags.join(" ").trim_end())
    }
}
