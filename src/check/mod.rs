//! Layer 3: from syntax trees to typed HIR. All errors of meaning that a user can see are found here.
//!
//! The order of work: load the modules that the main one uses, put functions in the place of models, declare their names,
//! resolve structs, consts and signatures, check the bodies one after the other (those of models first; instances of
//! elementwise functions are made when a call asks for them), then look at whole bodies: what is shared, and what
//! comprehensions may call. A part with an error gives nothing
//! (`None`) and what depends on it stays silent, so that one mistake is one message.

mod body;
mod bounded;
mod builtins;
mod call;
mod comprehension;
mod consts;
mod context;
mod derivative;
mod dims;
mod elementwise;
mod expr;
mod fn_values;
mod index;
mod meanings;
mod messages;
mod models;
mod modules;
mod names;
mod operators;
mod place;
mod purity;
mod rules;
mod signatures;
mod stan;
mod std_library;
mod stmt;
mod structs;
mod summed;
mod through;
mod types;
mod variance;

use std::sync::Arc;

use crate::base::{Diagnostic, FileId, Meanings, SourceMap, stack};
use crate::hir;

pub use meanings::{builtin_names, builtin_told};
pub use std_library::{FileLoader, StdLibrary};

use context::Checker;
use meanings::Notes;

/// Where `use "path";` finds its text.
pub trait Loader {
    /// The resolved name of the module `path` as the file named `from` means it, and its text. Two paths that mean one
    /// module must give one name. The error says why there is none; then the library that ships is asked.
    fn load(&mut self, from: Option<&str>, path: &str) -> Result<(String, Arc<str>), String>;

    /// Adds the text of a module to the sources; for one that was made, with what it was made of.
    fn add(&self, sources: &mut SourceMap, name: &str, text: &Arc<str>) -> FileId {
        sources.add(name, text.clone())
    }

    /// Names of parameters that vary in the functions of a module, though they are marked `shared` there: whoever runs the
    /// program has one value for each lane.
    fn varying(&self, _module: &str) -> &[String] {
        &[]
    }
}

/// Parses and checks the file `main` of `sources` and every module that it uses; their texts are added to `sources`.
/// Gives the program when there are no errors, and all diagnostics, warnings included, in the order of their places.
pub fn check_program(
    main: FileId,
    sources: &mut SourceMap,
    loader: &mut dyn Loader,
) -> (Option<hir::Program>, Vec<Diagnostic>) {
    let (program, diagnostics, _) = check_noting(main, sources, loader, false);
    (program, diagnostics)
}

/// The same, with what names mean in the main module and in those that it uses and that do not ship. It is there where the
/// program has errors, too, for all that was understood.
pub fn analyse(
    main: FileId,
    sources: &mut SourceMap,
    loader: &mut dyn Loader,
) -> (Option<hir::Program>, Vec<Diagnostic>, Meanings) {
    check_noting(main, sources, loader, true)
}

fn check_noting(
    main: FileId,
    sources: &mut SourceMap,
    loader: &mut dyn Loader,
    noting: bool,
) -> (Option<hir::Program>, Vec<Diagnostic>, Meanings) {
    let (mut modules, mut diagnostics) = modules::load(main, sources, loader);
    let sources = &*sources;
    let notes = match noting {
        true => Notes::of(sources.files().map(|(file, text)| file == main || !modules.ships(&text.name)).collect()),
        false => Notes::default(),
    };
    stack::with_room(modules.depth(), || models::expand(&mut modules.modules, sources, &mut diagnostics));
    modules.vary(loader);
    let depth = modules.depth();
    let check = move || Checker::new(sources, modules, diagnostics, notes).run();
    let (program, mut diagnostics, meanings) = stack::on_large_stack(depth, check);
    diagnostics.sort_by_key(|d| {
        let at = d.labels.first().map(|l| (l.span.file.0, l.span.start));
        (std::cmp::Reverse(d.severity == crate::base::Severity::Error), at)
    });
    diagnostics.dedup();
    (program, diagnostics, meanings)
}
