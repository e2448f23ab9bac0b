//! What became of generated code in a run that could do without.

use std::fmt;
use std::time::Duration;

/// What became of the code that is generated beside a run (`--codegen auto`).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum CodeStats {
    /// It was there when the run started.
    FromStart,
    /// It came while the run went on.
    Came {
        /// The first superstep of a shard that could run with it; none where every shard was done before.
        superstep: Option<u64>,
        /// Whether it was on disk.
        kept: bool,
        /// Whether it is on disk now.
        keeps: bool,
        /// How long it took to find and load, or to compile.
        took: Duration,
    },
    /// The runs of the program were over before it was worth to begin, or nobody looked before they were.
    NotWorth {
        /// How long they took.
        spent: Duration,
        /// How long the compiler would take, where it was needed.
        estimate: Option<Duration>,
    },
    /// It was not ready when the run was over.
    NotReady {
        /// How long the runs of the program took.
        spent: Duration,
    },
    /// It is straight code, which counts nothing and looks for no NaN, and the run was to: steps took its place.
    CountsNothing,
    /// Nothing of the program can be generated.
    Nothing,
    /// There is none, and why.
    Failed(String),
}

impl fmt::Display for CodeStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodeStats::FromStart => f.write_str("there from the start"),
            CodeStats::Came { superstep, kept, keeps, took } => {
                let how = if *kept { "loaded from disk" } else { "compiled" };
                write!(f, "{how} in {:.3} s", took.as_secs_f64())?;
                match superstep {
                    Some(superstep) => write!(f, ", in use from superstep {superstep}")?,
                    None => f.write_str(", when the run was nearly over")?,
                }
                let lost = "; not kept, since the folder of AUTOBATCH_CACHE cannot be written to";
                f.write_str(if *keeps { "" } else { lost })
            }
            CodeStats::NotWorth { spent, estimate } => {
                write!(f, "not worth it for {:.3} s", spent.as_secs_f64())?;
                match estimate {
                    Some(estimate) => write!(f, ": the compiler would take some {:.1} s", estimate.as_secs_f64()),
                    None => Ok(()),
                }
            }
            CodeStats::NotReady { spent } => write!(f, "not ready after {:.3} s", spent.as_secs_f64()),
            CodeStats::CountsNothing => f.write_str(
                "not in use: straight code counts nothing (--stats) and looks for no NaN (--check nan); take --engine pc",
            ),
            CodeStats::Nothing => f.write_str("nothing of the program can be generated"),
            CodeStats::Failed(why) => write!(f, "none: {why}"),
        }
    }
}
