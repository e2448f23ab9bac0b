//! The state of the checker: what was found, where it is, and the order in which blocks are checked.

use std::cell::Cell;
use std::sync::Arc;

use crate::base::{Diagnostic, Id as _, SourceMap, Span};
use crate::stan::place::place;
use crate::stan::syntax::ast::{Block, Name, Program, UnsizedType};

use super::resolve::Value;
use super::scope::{BlockName, Scope};
use super::types::{Level, Suffix, Type, is_discrete, unwound};
use super::{Checked, Declared, Typed};

/// The checker of a program.
pub(super) struct Checker {
    /// What was found, with the place that stanc gives for it.
    diagnostics: Vec<(Diagnostic, Span)>,
    pub(super) checked: Checked,
    pub(super) scope: Scope,
    pub(super) at: Position,
    /// Names of functions of the program that are differentiated more than once.
    pub(super) second_order: Vec<Name>,
    /// Unknown names for which a known one was looked for.
    guesses: Cell<usize>,
}

/// Most unknown names for which a known one is looked for: the others are told without.
const MOST_GUESSES: usize = 100;

/// Where the checker is.
#[derive(Clone, Debug)]
pub(super) struct Position {
    pub(super) block: BlockName,
    /// In the body of a function.
    pub(super) function: Option<Enclosing>,
    /// Loops around it in the same function or block.
    pub(super) loops: usize,
    /// Whether it is in a size of a declaration at the top of a block.
    pub(super) in_size: bool,
}

/// The function that a statement is in.
#[derive(Clone, Debug)]
pub(super) struct Enclosing {
    pub(super) suffix: Suffix,
    /// `None` is `void`.
    pub(super) result: Option<UnsizedType>,
}

impl Position {
    pub(super) fn of(block: BlockName) -> Self {
        Self { block, function: None, loops: 0, in_size: false }
    }

    /// Whether it is in a function with this suffix.
    pub(super) fn in_function(&self, suffix: Suffix) -> bool {
        self.function.as_ref().is_some_and(|f| f.suffix == suffix)
    }

    /// Whether `target` can be added to.
    pub(super) fn has_target(&self) -> bool {
        self.in_function(Suffix::Lp) || self.block == BlockName::Model
    }

    /// Whether `jacobian` can be added to.
    pub(super) fn has_jacobian(&self) -> bool {
        self.in_function(Suffix::Jacobian) || self.block == BlockName::TransformedParameters
    }
}

impl Checker {
    pub(super) fn new() -> Self {
        Self {
            diagnostics: Vec::new(),
            checked: Checked::default(),
            scope: Scope::default(),
            at: Position::of(BlockName::Functions),
            second_order: Vec::new(),
            guesses: Cell::new(0),
        }
    }

    pub(super) fn program(&mut self, program: &Program) {
        let items = program.functions.as_ref().map_or(&[][..], |functions| &functions.items);
        self.declare_functions(items);
        self.functions(items);
        let blocks = [
            (BlockName::Data, &program.data),
            (BlockName::TransformedData, &program.transformed_data),
            (BlockName::Parameters, &program.parameters),
            (BlockName::TransformedParameters, &program.transformed_parameters),
        ];
        for (name, block) in blocks {
            self.block(name, block.as_ref());
        }
        let mark = self.scope.mark();
        self.block(BlockName::Model, program.model.as_ref());
        self.scope.leave(mark);
        self.block(BlockName::GeneratedQuantities, program.generated_quantities.as_ref());
        self.check_second_order(items);
        self.warn_unneeded_declarations(items);
    }

    fn block(&mut self, name: BlockName, block: Option<&Block>) {
        let Some(block) = block else { return };
        self.at = Position::of(name);
        for stmt in &block.stmts {
            self.top_stmt(stmt);
        }
        self.warn_unreachable(&block.stmts);
    }

    /// What was found, with the places as stanc gives them.
    pub(super) fn finish(mut self, sources: &SourceMap) -> (Checked, Vec<Diagnostic>) {
        self.diagnostics.sort_by_key(|(_, at)| (at.file.index(), at.start));
        self.diagnostics.dedup();
        let with_place = |(diagnostic, at): (Diagnostic, Span)| diagnostic.with_note(place(sources, at));
        (self.checked, self.diagnostics.into_iter().map(with_place).collect())
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        let at = diagnostic.labels[0].span;
        self.report_in(diagnostic, at);
    }

    /// Reports a diagnostic whose first label is part of what stanc names as the place.
    pub(super) fn report_in(&mut self, diagnostic: Diagnostic, whole: Span) {
        self.diagnostics.push((diagnostic, whole));
    }

    /// Reports an error with a label and no more. Gives `None`, for what has no type then.
    pub(super) fn error<T>(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) -> Option<T> {
        self.report(Diagnostic::error(code, message, span, label));
        None
    }

    /// Records the type of an expression.
    pub(super) fn typed(&mut self, span: Span, value: &Value) {
        if let Type::Value(ty) = &value.ty {
            self.checked.types.insert(span, Typed { ty: ty.clone(), level: value.level.clone() });
        }
    }

    /// Records what a name of a variable means.
    pub(super) fn means(&mut self, name: &Name) {
        if let Some(local) = self.scope.variable(&name.text) {
            let declared = Declared { at: local.at, block: local.block, global: local.global };
            self.checked.variables.insert(name.span, declared);
        }
    }

    /// Whether a variable of the block may depend on parameters, seen from here.
    pub(super) fn level_of(&self, block: BlockName, ty: &UnsizedType) -> Level {
        let depends = match block {
            BlockName::Parameters | BlockName::TransformedParameters | BlockName::Model | BlockName::Functions => {
                self.at.block != BlockName::GeneratedQuantities
            }
            BlockName::Data | BlockName::TransformedData | BlockName::GeneratedQuantities => false,
        };
        level_where(depends, ty)
    }

    /// A guess at what a name that nothing has was meant to be.
    pub(super) fn did_you_mean(&self, name: &str, functions_only: bool) -> Option<String> {
        self.guesses.set(self.guesses.get() + 1);
        if self.guesses.get() > MOST_GUESSES {
            return None;
        }
        let mut names: Vec<&str> =
            if functions_only { self.scope.function_names().collect() } else { self.scope.names().collect() };
        super::signatures::library().names().chain(super::variadic::names()).for_each(|name| names.push(name));
        names.sort_unstable();
        crate::base::names::closest(name, names.iter().copied()).map(|guess| format!("did you mean `{guess}`?"))
    }

    /// The last part of a name that stands for no function: with which suffixes there is one.
    pub(super) fn with_suffix(&self, name: &str) -> Option<String> {
        let suffixes = ["_lpmf", "_lpdf", "_cdf", "_lcdf", "_lccdf", "_rng"];
        let found = suffixes.iter().map(|suffix| format!("{name}{suffix}")).find(|name| self.is_function(name))?;
        Some(format!("there is `{found}`"))
    }

    /// Whether a function has the name.
    pub(super) fn is_function(&self, name: &str) -> bool {
        super::signatures::library().has(name) || !self.scope.functions(name).is_empty()
    }
}

fn level_where(depends: bool, ty: &UnsizedType) -> Level {
    match unwound(ty).0 {
        UnsizedType::Tuple(parts) => Level::Tuple(parts.iter().map(|part| level_where(depends, part)).collect()),
        ty if depends && !is_discrete(ty) => Level::Parameter,
        _ => Level::Data,
    }
}

/// The name of the library's table for a name with `_lupdf` or `_lupmf`.
pub(super) fn normalized(name: &str) -> Arc<str> {
    match (name.strip_suffix("_lupdf"), name.strip_suffix("_lupmf")) {
        (Some(stem), _) => format!("{stem}_lpdf").into(),
        (None, Some(stem)) => format!("{stem}_lpmf").into(),
        (None, None) => name.into(),
    }
}

/// Whether a name ends in `_lupdf` or `_lupmf`.
pub(super) fn is_unnormalized(name: &str) -> bool {
    name.ends_with("_lupdf") || name.ends_with("_lupmf")
}
