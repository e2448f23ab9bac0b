//! The lines of `print` of programs that are sampled, optimized or the like: so many of them, and how many more there were.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::program::{Options, Printed, Prints};

use super::note;

/// Lines that are shown of what is said in the course of a run, and as many of what is said of its results.
const MOST: usize = 1000;

/// How many lines were said.
#[derive(Default)]
struct Said {
    in_course: AtomicUsize,
    of_results: AtomicUsize,
}

/// Shows lines until it is dropped, and then tells how many it has left out.
pub(super) struct Lines(Arc<Said>);

impl Lines {
    /// Shows what runs with these options print.
    pub(super) fn of(options: &mut Options) -> Self {
        let said = Arc::new(Said::default());
        let counts = Arc::clone(&said);
        options.prints = Prints::to(move |Printed { who, of_results, line }| {
            let count = if of_results { &counts.of_results } else { &counts.in_course };
            if count.fetch_add(1, Ordering::Relaxed) < MOST {
                note(&format!("[{who}] {line}"));
            }
        });
        Self(said)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let left_out = |count: &AtomicUsize| count.load(Ordering::Relaxed).saturating_sub(MOST);
        match left_out(&self.0.in_course) + left_out(&self.0.of_results) {
            0 => {}
            1 => note("… and 1 more line of `print`"),
            more => note(&format!("… and {more} more lines of `print`")),
        }
    }
}
