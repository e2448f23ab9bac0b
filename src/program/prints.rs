//! Who hears what programs print that are a part of something larger: a density that is sampled, say.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use crate::parts::StreamId;
use crate::run::{NoMemory, Record, Sink};

/// A line that a lane printed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Printed {
    /// Which lane it was, in words: `chain 3`, `draw 17 of chain 3`.
    pub who: String,
    /// Whether it was said of what a run gave, and not in the course of it.
    pub of_results: bool,
    /// What was said.
    pub line: String,
}

/// Hears the lines, from several threads at once; by default nobody does.
#[derive(Clone, Default)]
pub struct Prints(Option<Arc<dyn Fn(Printed) + Send + Sync>>);

// A line is told as a whole, and what hears it is the business of whoever gave it.
impl UnwindSafe for Prints {}
impl RefUnwindSafe for Prints {}

impl Prints {
    /// These are told.
    pub fn to(hears: impl Fn(Printed) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hears)))
    }

    pub(crate) fn tell(&self, who: impl fmt::Display, of_results: bool, line: String) {
        if let Some(hears) = &self.0 {
            hears(Printed { who: who.to_string(), of_results, line });
        }
    }
}

impl fmt::Debug for Prints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Prints(heard)" } else { "Prints(unheard)" })
    }
}

/// A sink that keeps no records and tells what lanes say, under the names that their positions have.
pub(crate) struct Speakers<'a> {
    pub(crate) prints: &'a Prints,
    pub(crate) of_results: bool,
    pub(crate) who: &'a (dyn Fn(usize) -> String + Sync),
}

impl Sink for Speakers<'_> {
    fn emit(&self, _position: usize, _stream: StreamId, _record: &dyn Record) -> Result<(), NoMemory> {
        Ok(())
    }
    fn print(&self, position: usize, line: String) {
        if self.prints.0.is_some() {
            self.prints.tell((self.who)(position), self.of_results, line);
        }
    }
}
