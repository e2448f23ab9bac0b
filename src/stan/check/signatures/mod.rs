//! Stan's library: which functions there are, and what they take and give.
//!
//! The table is `library.txt`: families of signatures, not the 24,000 rows that they stand for. A call looks only at the
//! members of a family that its arguments fit.

mod family;
mod read;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::stan::syntax::ast::UnsizedType;

use super::types::{FunctionType, Parameter, Suffix, Type};
use family::Family;

/// The functions of Stan's library.
pub(super) struct Library {
    /// The families of each name.
    functions: HashMap<String, Vec<usize>>,
    families: Vec<Family>,
}

static LIBRARY: LazyLock<Library> = LazyLock::new(|| read::library(include_str!("library.txt")));

/// The library of Stan 2.39.
pub(super) fn library() -> &'static Library {
    &LIBRARY
}

impl Library {
    /// Whether a function has this name. Those that take functions with any arguments are not here.
    pub(super) fn has(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// All names, in no order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    fn families(&self, name: &str) -> impl Iterator<Item = &Family> {
        self.functions.get(name).into_iter().flatten().map(|at| &self.families[*at])
    }

    /// The signatures of a function that have `count` parameters, of which each (by its position) is accepted.
    pub(super) fn fitting(
        &self,
        name: &str,
        count: usize,
        accepts: &dyn Fn(usize, &Parameter) -> bool,
    ) -> Vec<FunctionType> {
        let mut found = Vec::new();
        for family in self.families(name).filter(|family| family.arguments.len() == count) {
            family.members(accepts, &mut |params, result| {
                found.push(FunctionType { params, result: Some(result), suffix: Suffix::of(name) });
            });
        }
        found
    }

    /// All signatures of a function, sorted.
    pub(super) fn all(&self, name: &str) -> Vec<FunctionType> {
        let mut found = Vec::new();
        for family in self.families(name) {
            family.members(&|_, _| true, &mut |params, result| {
                found.push(FunctionType { params, result: Some(result), suffix: Suffix::of(name) });
            });
        }
        found.sort_by_key(|f| (f.params.len(), f.params.iter().map(|p| p.ty.value().cloned()).collect::<Vec<_>>()));
        found
    }

    /// The signature with exactly these types of parameters.
    pub(super) fn exact(&self, name: &str, params: &[Type]) -> Option<FunctionType> {
        self.fitting(name, params.len(), &|at, param| param.ty == params[at]).into_iter().next()
    }
}

/// The functions of the library that an operator stands for: the first that takes the operands is meant.
pub(super) fn functions_of_operator(symbol: &str, operands: usize) -> &'static [&'static str] {
    match (symbol, operands) {
        ("+", 2) => &["add"],
        ("+", 1) => &["plus"],
        ("-", 2) => &["subtract"],
        ("-", 1) => &["minus"],
        ("*", 2) => &["multiply"],
        ("/", 2) => &["mdivide_right", "divide"],
        ("%", 2) => &["modulus"],
        ("\\", 2) => &["mdivide_left"],
        (".*", 2) => &["elt_multiply"],
        ("./", 2) => &["elt_divide"],
        ("^" | ".^", 2) => &["pow"],
        ("||", 2) => &["logical_or"],
        ("&&", 2) => &["logical_and"],
        ("==", 2) => &["logical_eq"],
        ("!=", 2) => &["logical_neq"],
        ("<", 2) => &["logical_lt"],
        ("<=", 2) => &["logical_lte"],
        (">", 2) => &["logical_gt"],
        (">=", 2) => &["logical_gte"],
        ("!", 1) => &["logical_negation"],
        ("'", 1) => &["transpose"],
        _ => &[],
    }
}

/// The element types that `reduce_sum` slices arrays of.
pub(super) const SLICED: [UnsizedType; 5] =
    [UnsizedType::Real, UnsizedType::Int, UnsizedType::Matrix, UnsizedType::Vector, UnsizedType::RowVector];
