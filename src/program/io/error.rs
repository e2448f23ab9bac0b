//! What can be wrong with a file of values.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

/// What was being done to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FileAction {
    /// Reading it.
    Read,
    /// Writing it.
    Write,
}

impl fmt::Display for FileAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileAction::Read => "read",
            FileAction::Write => "write",
        })
    }
}

/// Why values could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IoError {
    /// The system refused: no such file, no permission, no space.
    #[error("cannot {action} `{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was being done to it.
        action: FileAction,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is not JSON.
    #[error("{origin} is not valid JSON: {message}")]
    Syntax {
        /// The file, or the argument.
        origin: String,
        /// What is wrong, with line and column.
        message: String,
    },
    /// The bytes are not a file of the format that its name promises.
    #[error("{origin} is malformed: {message}")]
    Malformed {
        /// The file, with the array in it for an archive.
        origin: String,
        /// What is wrong.
        message: String,
    },
    /// An array of a type that the language does not have.
    #[error(
        "{origin} has elements of type `{found}`: expected bool, int8 to int64, uint8 to uint32, or float16 to float64"
    )]
    ElementType {
        /// The file, with the array in it for an archive.
        origin: String,
        /// NumPy's name for the type.
        found: String,
    },
    /// A value that is not of the type the program wants.
    #[error("`{place}`: expected {expected}, found {found}")]
    Mismatch {
        /// The variable, with indices from 0 where an element of it is meant.
        place: String,
        /// What the program wants there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// No value of this name.
    #[error("no `{variable}` in {origin}, which has {}", listed(.names))]
    Missing {
        /// What was looked for.
        variable: String,
        /// The file, or the argument.
        origin: String,
        /// What there is instead.
        names: Vec<String>,
    },
    /// A file name from which the format cannot be told.
    #[error("`{}`: the name must end in {expected}", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The endings that are understood here.
        expected: &'static str,
    },
    /// An argument that is not `name=value`.
    #[error("`{argument}`: expected name=JSON or name=@FILE")]
    Argument {
        /// The argument.
        argument: String,
    },
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
