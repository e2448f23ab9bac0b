//! The checker of Stan programs: names, types, overloads, and where what may stand. It has stanc's rules (Stan 2.39), says
//! all that is wrong and not the first thing, and never panics.
//!
//! The tree stays as it is. What was found out about it is in [`Checked`], by spans:
//!
//! - [`Checked::calls`]: the span of a *name* that stands for a function. That is the name of a call, the name before `(`
//!   of a call statement, the distribution of `~` (`y ~ foo(x)` is `foo_lpdf` or `foo_lpmf`), or a variable that is given to
//!   a function that takes functions.
//! - [`Checked::types`]: the span of an expression, with its type before any promotion. Functions as arguments are not there.
//! - [`Checked::variables`]: the span of a name that reads or assigns a variable, and what it is.
//!
//! A file that is included twice has its spans twice: what was found last is there.
//!
//! Inside, `resolve` chooses among overloads, `signatures` is Stan's library, `scope` what names stand for;
//! `expr`, `call`, `variadic`, `laplace` and `place` check expressions, `stmt`, `tilde` and `declare` statements, `function`
//! the functions of a program.

mod call;
mod context;
mod declare;
mod expr;
mod function;
mod laplace;
mod meanings;
mod operator;
mod place;
mod resolve;
mod returns;
mod scope;
mod second_order;
mod signatures;
mod stmt;
mod tilde;
mod types;
mod variadic;
mod warnings;

use std::collections::HashMap;
use std::sync::Arc;

use crate::base::{Diagnostic, SourceMap, Span};

use super::syntax::ast::{Program, UnsizedType};
use context::Checker;
pub use declare::unsized_type;
pub use meanings::{LibraryFunction, library_function, library_names, meanings};
pub use scope::BlockName;
pub use types::{Level, Suffix, spelled};
pub(super) use warnings::parts;

/// What is known about a program. It is whole only where there are no errors.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Which function a name means, by the span of the name.
    pub calls: HashMap<Span, Called>,
    /// The types of expressions, by their spans.
    pub types: HashMap<Span, Typed>,
    /// The variables that names mean, by the spans of the names.
    pub variables: HashMap<Span, Declared>,
}

/// The function that a name means.
#[derive(Clone, PartialEq, Debug)]
pub struct Called {
    /// Whose it is.
    pub function: CalledFunction,
    /// Whether the name was `…_lupdf` or `…_lupmf`, or the distribution of `~`: constants may be dropped.
    pub unnormalized: bool,
}

/// A function of the program or of the library.
#[derive(Clone, PartialEq, Debug)]
pub enum CalledFunction {
    /// The function of the program at this position of [`Functions::items`](super::syntax::ast::Functions::items): the
    /// definition, not the declaration ahead of it.
    User(usize),
    /// A function of Stan's library.
    Library {
        /// Its name, which ends in `_lpdf` or `_lpmf` for `_lupdf`, `_lupmf` and `~`.
        name: Arc<str>,
        /// The types that its parameters have in the signature that was chosen. Empty for functions that take functions.
        params: Vec<UnsizedType>,
    },
}

/// What an expression is.
#[derive(Clone, PartialEq, Debug)]
pub struct Typed {
    /// Its type.
    pub ty: UnsizedType,
    /// Whether it may depend on parameters.
    pub level: Level,
}

/// A variable that a name means.
#[derive(Clone, PartialEq, Debug)]
pub struct Declared {
    /// Its name where it is declared.
    pub at: Span,
    /// The block that it is from.
    pub block: BlockName,
    /// Whether it is declared at the top of that block: data, a parameter, a quantity that is written out.
    pub global: bool,
}

/// Checks a program. The diagnostics are in the order of their places; the program is one of Stan's if none is an error.
pub fn check(program: &Program, sources: &SourceMap) -> (Checked, Vec<Diagnostic>) {
    crate::base::stack::with_room(program.depth, || {
        let mut checker = Checker::new();
        checker.program(program);
        checker.finish(sources)
    })
}
