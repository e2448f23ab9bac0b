//! What names stand for where the checker is.

use std::collections::HashMap;
use std::sync::Arc;

use crate::base::Span;
use crate::stan::syntax::ast::UnsizedType;

use super::resolve::Candidate;

/// A block of a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BlockName {
    /// `functions`
    Functions,
    /// `data`
    Data,
    /// `transformed data`
    TransformedData,
    /// `parameters`
    Parameters,
    /// `transformed parameters`
    TransformedParameters,
    /// `model`
    Model,
    /// `generated quantities`
    GeneratedQuantities,
}

impl BlockName {
    /// As it is written.
    pub fn text(self) -> &'static str {
        match self {
            BlockName::Functions => "functions",
            BlockName::Data => "data",
            BlockName::TransformedData => "transformed data",
            BlockName::Parameters => "parameters",
            BlockName::TransformedParameters => "transformed parameters",
            BlockName::Model => "model",
            BlockName::GeneratedQuantities => "generated quantities",
        }
    }
}

/// A variable that can be read.
#[derive(Clone, Debug)]
pub(super) struct Local {
    /// `None` where its type had an error.
    pub(super) ty: Option<UnsizedType>,
    /// Where it is from; of a parameter of a function, `data` or `parameters` by whether it is data only.
    pub(super) block: BlockName,
    /// Whether a block of the program declares it at its top.
    pub(super) global: bool,
    /// What it is, if it can never be assigned.
    pub(super) fixed: Option<&'static str>,
    /// Its name where it is declared.
    pub(super) at: Span,
}

/// All names.
#[derive(Default)]
pub(super) struct Scope {
    variables: HashMap<Arc<str>, Local>,
    /// Names in the order of their declarations, to take them away at the end of a block.
    declared: Vec<Arc<str>>,
    functions: HashMap<Arc<str>, Vec<Candidate>>,
}

impl Scope {
    pub(super) fn variable(&self, name: &str) -> Option<&Local> {
        self.variables.get(name)
    }

    /// The program's functions of a name, the last declared first.
    pub(super) fn functions(&self, name: &str) -> &[Candidate] {
        self.functions.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn functions_mut(&mut self, name: &Arc<str>) -> &mut Vec<Candidate> {
        self.functions.entry(name.clone()).or_default()
    }

    /// Names of variables and of the program's functions, in no order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().chain(self.functions.keys()).map(|name| &**name)
    }

    /// Names of the program's functions, in no order.
    pub(super) fn function_names(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(|name| &**name)
    }

    pub(super) fn declare(&mut self, name: &Arc<str>, local: Local) {
        if self.variables.insert(name.clone(), local).is_none() {
            self.declared.push(name.clone());
        }
    }

    /// Where one is, to come back to.
    pub(super) fn mark(&self) -> usize {
        self.declared.len()
    }

    /// Takes away what was declared since the mark.
    pub(super) fn leave(&mut self, mark: usize) {
        for name in self.declared.drain(mark..) {
            self.variables.remove(&name);
        }
    }
}
