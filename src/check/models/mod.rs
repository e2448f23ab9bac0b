//! Models: `model name[d](parameters, shared data) { log density } generated { quantities }` becomes the functions that the
//! algorithms call, before anything of a program is checked.
//!
//! | function | takes | gives |
//! |---|---|---|
//! | the model's name | the parameters by value, data | the log density over constrained values: the body |
//! | `generated_quantities` | the same | what is computed and generated, a struct |
//! | `parameters` | unconstrained numbers, data | a draw: parameters and all that is computed of them |
//! | `log_density` | the same | the log density with the log Jacobian |
//! | `log_density_without_jacobian` | the same | without it |
//! | `unconstrain` | the parameters by value, data | the unconstrained numbers |
//! | `unconstrain_given` | unconstrained numbers, which values are given, these, data | the numbers, those of what is given replaced |
//! | `%transformed` | the parameters by value, data | `generated_quantities` without `generated` |
//! | `%parameters` | unconstrained numbers, data | `parameters` without `generated` |
//! | `%constrained` | the same | the parameters alone |
//!
//! The last three are what is left of a draw whose other quantities fail.
//!
//! The transforms are the library's. Spans are the user's, so what the checker finds in these functions stands at the
//! place that it comes from; `told` puts the rest into the words of the model. The types of what is computed are those of
//! its values: the functions of models are checked first, and the structs get the types of the fields from there.

mod dims;
mod entries;
mod make;
mod reads;
mod told;
mod transforms;
mod write;

use std::sync::Arc;

use crate::base::{Diagnostic, IdVec, SourceMap, Span};
use crate::syntax::ast::{self, Item, ItemKind, ModelDecl};

use super::modules::{Module, ModuleId};

use dims::Words;
use entries::{Entry, Reader};
use write::Writer;

pub(super) use make::{HERE, LIBRARY};

/// The log density of unconstrained numbers.
const DENSITY: &str = "log_density";
/// The same without the log Jacobian.
const WITHOUT_JACOBIAN: &str = "log_density_without_jacobian";
/// A draw.
const PARAMETERS: &str = "parameters";
/// What that gives.
const PARAMETERS_TYPE: &str = "Parameters";
/// What is computed of a draw.
const QUANTITIES: &str = "generated_quantities";
/// What that gives.
const QUANTITIES_TYPE: &str = "Quantities";
/// What is computed of a draw, without what is generated, by a name that no user can write; and what that gives.
const TRANSFORMED: (&str, &str) = ("%transformed", "%Transformed");
/// A draw without what is generated.
const WITHOUT_GENERATED: (&str, &str) = ("%parameters", "%Parameters");
/// A draw without what is computed.
const CONSTRAINED: (&str, &str) = ("%constrained", "%Constrained");
/// The unconstrained numbers of values.
const UNCONSTRAIN: &str = "unconstrain";
/// The same of the values that are given, with unconstrained numbers for the others.
const UNCONSTRAIN_GIVEN: &str = "unconstrain_given";

/// All names that a model makes.
const MADE: [&str; 8] = [
    DENSITY,
    WITHOUT_JACOBIAN,
    PARAMETERS,
    PARAMETERS_TYPE,
    QUANTITIES,
    QUANTITIES_TYPE,
    UNCONSTRAIN,
    UNCONSTRAIN_GIVEN,
];

/// What an item that a model becomes is there for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// The function with the body of the model.
    Body,
    /// A function around it.
    Made,
    /// A struct whose fields have the types of the first value that is made.
    Inferred,
}

/// Puts functions in the place of the models of all modules.
pub(super) fn expand(modules: &mut IdVec<ModuleId, Module>, sources: &SourceMap, found: &mut Vec<Diagnostic>) {
    for module in modules.values_mut() {
        if !module.ast.items.iter().any(|item| matches!(item.kind, ItemKind::Model(_))) {
            continue;
        }
        let mut expanded = ast::Module::default();
        let mut first: Option<Span> = None;
        for item in &module.ast.items {
            let ItemKind::Model(decl) = &item.kind else {
                expanded.items.push(item.clone());
                continue;
            };
            let clash = clash(item, decl, &module.ast, first.replace(decl.name.span));
            found.extend(clash.clone());
            for (item, role) in functions(item, decl, sources, clash.is_empty(), found) {
                module.made.insert(expanded.items.len(), role);
                expanded.items.push(item);
            }
        }
        // What is put around the user's own tree, and the sum over all parameters.
        let entries = module.ast.items.iter().map(|item| match &item.kind {
            ItemKind::Model(decl) => decl.entries.len(),
            _ => 0,
        });
        expanded.depth = module.ast.depth + 8 * entries.sum::<usize>() + 100;
        module.ast = Arc::new(expanded);
    }
}

/// What a model cannot stand beside.
fn clash(item: &Item, decl: &ModelDecl, module: &ast::Module, first: Option<Span>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for attribute in &item.attributes {
        let message = format!("`@{}` stands before a function only", attribute.name.text);
        found.push(Diagnostic::error("E0702", message, attribute.name.span, "not before this item"));
    }
    if let Some(first) = first {
        let error = Diagnostic::error("E1009", "a file has one model", decl.name.span, "the second one");
        found.push(error.with_label(first, "the first one").with_help("move it to a file of its own"));
        return found;
    }
    if MADE.contains(&&*decl.name.text) {
        let message = format!("a model cannot have the name `{}`", decl.name.text);
        let error = Diagnostic::error("E1009", message, decl.name.span, "it makes something of this name");
        found.push(error.with_help("name it after what it is a model of: `model eight_schools(…)`"));
        return found;
    }
    for other in &module.items {
        let name = match &other.kind {
            ItemKind::Fn(decl) => &decl.name,
            ItemKind::Struct { name, .. } | ItemKind::Const { name, .. } => name,
            ItemKind::Use { .. } | ItemKind::Derivative(_) | ItemKind::Model(_) => continue,
        };
        if MADE.contains(&&*name.text) {
            let message = format!("the model `{}` makes a `{}` of its own", decl.name.text, name.text);
            let error = Diagnostic::error("E1009", message, name.span, "beside the model");
            let error = error.with_label(decl.name.span, "the model is here");
            found.push(error.with_help("remove it, give it another name, or write all functions without `model`"));
        }
    }
    found
}

/// The items that a model becomes; only those that show errors of its parts where it has errors itself.
fn functions(
    item: &Item,
    decl: &ModelDecl,
    sources: &SourceMap,
    alone: bool,
    found: &mut Vec<Diagnostic>,
) -> Vec<(Item, Role)> {
    let mut reader = Reader { decl, sources, found: Vec::new() };
    let signature = reader.read();
    let whole = reader.found.is_empty() && alone;
    found.append(&mut reader.found);
    let of = |span: Span| sources.file(span.file).text[span.start as usize..span.end as usize].to_owned();
    let text = of(item.span);
    let mut words = Words::new();
    for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        *words.entry(word).or_default() += 1;
    }
    let mut state = "q".to_owned();
    while words.contains_key(state.as_str()) {
        state.push('_');
    }
    let carriers = signature.carriers(decl, &words);
    let writer = Writer {
        decl,
        doc: &item.doc,
        span: item.span,
        signature: &signature,
        carriers: &carriers,
        state: &state,
        text: &of,
    };
    let mut items = vec![writer.body()];
    if alone {
        items.extend(writer.generated());
    }
    let parameters = signature.entries.iter().any(|entry| matches!(entry, Entry::Parameter(_)));
    if whole && parameters {
        items.extend(writer.of_state());
    } else if whole {
        let error = Diagnostic::error("E1012", "a model without a parameter", decl.name.span, "nothing to sample");
        found.push(error.with_help("what is not marked `shared` and has a type is a parameter: `mu: real`"));
    }
    items
}
