//! Layer 4: passes, from a program to a program of the same kind that does the same.

pub mod cfg;
pub mod derivative;
pub mod expansion;
pub mod stack;
pub mod vectorize;

/// A pass over programs of kind `P`: a name, what it does, and the function that does it. The list of passes and their
/// switches are the `pipeline`'s.
#[derive(Clone, Copy, Debug)]
pub struct Pass<P> {
    /// Its name, as in `--no-pass NAME`; no pass over another kind of program has it.
    pub name: &'static str,
    /// What it does, in one line.
    pub doc: &'static str,
    /// Gives the rewritten program; the given one is verified, and so is the result.
    pub run: fn(P) -> P,
}
