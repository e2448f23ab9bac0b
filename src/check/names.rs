//! Names of items: declaring them, importing them, finding them, and guessing what was meant.

use std::sync::Arc;

use indexmap::IndexMap;

pub(super) use crate::base::names::closest;
use crate::base::{Diagnostic, Id as _, Span};
use crate::hir::Ty;
use crate::syntax::ast::{self, ItemKind};

use super::builtins::{self, Builtin};
use super::context::{Checker, ConstDef, ConstState, Def, FnDef, StructDef};
use super::derivative::{self, Operator};
use super::models::{self, Role};
use super::modules::{ModuleId, NamedItem};
use super::stan;

/// What a name means outside a function.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    Def(Def),
    Builtin(Builtin),
    /// `grad` and its kin.
    Derivative(Operator),
    StopGradient,
}

/// The result of looking for a path.
pub(super) enum Lookup {
    Found(Found),
    /// An unqualified name that nothing has.
    Unknown,
    /// There is an error and it was reported, or the name may come from a module that did not load.
    Silent,
}

impl Checker<'_> {
    /// Gives every item of every module its id and its name.
    pub(super) fn declare(&mut self) {
        for module in self.modules.ids() {
            let ast = self.modules[module].ast.clone();
            for (index, item) in ast.items.iter().enumerate() {
                self.declare_item(module, index, item);
            }
        }
    }

    fn declare_item(&mut self, module: ModuleId, index: usize, item: &ast::Item) {
        let (name, def) = match &item.kind {
            ItemKind::Use { .. } => return self.declare_no_attributes(item),
            ItemKind::Const { name, .. } => {
                self.declare_no_attributes(item);
                let def = ConstDef { module, item: index, state: ConstState::Unseen };
                (name, Def::Const(self.consts.push(def)))
            }
            ItemKind::Struct { name, dims, fields } => {
                self.declare_no_attributes(item);
                let def = StructDef {
                    name: name.text.to_string(),
                    module,
                    item: index,
                    dims: dims.iter().map(|d| d.text.to_string()).collect(),
                    fields: fields.iter().map(|f| (f.name.clone(), None)).collect(),
                    inferred: self.modules[module].made.get(&index) == Some(&Role::Inferred),
                    leaves: 0,
                    span: name.span,
                };
                (name, Def::Struct(self.structs.push(def)))
            }
            ItemKind::Derivative(_) => {
                self.declare_no_attributes(item);
                return self.declare_rules(module, index, item);
            }
            ItemKind::Model(_) => unreachable!("models became functions"),
            ItemKind::Fn(decl) => {
                let def = FnDef {
                    name: decl.name.text.to_string(),
                    module,
                    item: index,
                    rule: None,
                    signature: None,
                    elementwise: has_attribute(item, "elementwise"),
                    sum: has_attribute(item, "sum"),
                    recompute: has_attribute(item, "recompute"),
                    instance: false,
                    used: false,
                    public: item.public,
                    span: decl.name.span,
                    checked: None,
                };
                (&decl.name, Def::Fn(self.fns.push(def)))
            }
        };
        let entry = NamedItem { def, public: item.public, span: name.span };
        if let Some(first) = self.modules[module].names.get(&name.text) {
            let first = first.span;
            let error = Diagnostic::error(
                "E0104",
                format!("the name `{}` is defined twice", name.text),
                name.span,
                "defined again here",
            );
            self.report(error.with_label(first, "first defined here"));
        } else {
            self.modules[module].names.insert(name.text.clone(), entry);
        }
    }

    fn declare_no_attributes(&mut self, item: &ast::Item) {
        for attribute in &item.attributes {
            self.report(Diagnostic::error(
                "E0702",
                format!("`@{}` stands before a function only", attribute.name.text),
                attribute.name.span,
                "not before this item",
            ));
        }
    }

    /// Finds what each module sees by its `use`s, and what all see of the prelude.
    pub(super) fn import(&mut self) {
        for module in self.modules.ids() {
            let mut imported: IndexMap<Arc<str>, Def> = IndexMap::new();
            for (used, alias, span) in self.modules[module].uses.clone() {
                if alias.is_some() || used == module {
                    continue;
                }
                for (name, def) in self.public_names(used) {
                    let known = *imported.entry(name.clone()).or_insert(def);
                    if known != def {
                        let error = Diagnostic::error(
                            "E0104",
                            format!("two modules define `{name}`"),
                            span,
                            format!("`{name}` comes from here and from an earlier `use`"),
                        );
                        let help = "give one of them a name of its own: `use \"…\" as name;`";
                        self.report(error.with_help(help));
                    }
                }
            }
            self.modules[module].imported = imported;
        }
        if let Some(prelude) = self.prelude {
            let parts: Vec<ModuleId> =
                std::iter::once(prelude).chain(self.modules[prelude].uses.iter().map(|(used, ..)| *used)).collect();
            for part in parts {
                for (name, def) in self.public_names(part) {
                    self.prelude_names.entry(name).or_insert(def);
                }
            }
        }
    }

    fn public_names(&self, module: ModuleId) -> Vec<(Arc<str>, Def)> {
        (self.modules[module].names.iter())
            .filter(|(_, item)| item.public)
            .map(|(name, item)| (name.clone(), item.def))
            .collect()
    }

    /// What `path` means in `module`. Errors about the module before the name are reported.
    pub(super) fn lookup(&mut self, module: ModuleId, path: &ast::Path) -> Lookup {
        if let Some(alias) = &path.module {
            self.means_module(module, alias);
        }
        let found = self.resolve(module, path);
        if let Lookup::Found(found) = found {
            self.means_found(&path.name, found);
        }
        found
    }

    fn resolve(&mut self, module: ModuleId, path: &ast::Path) -> Lookup {
        match &path.module {
            Some(alias) if &*alias.text == models::HERE => self.lookup_here(module, &path.name.text),
            Some(alias) if &*alias.text == models::LIBRARY => self.lookup_in_library(&path.name.text),
            Some(alias) => self.lookup_in(module, alias, &path.name),
            None => self.lookup_plain(module, &path.name.text),
        }
    }

    /// A name of the module itself, for text that is made.
    fn lookup_here(&self, module: ModuleId, name: &str) -> Lookup {
        let item = self.modules[module].names.get(name);
        item.map_or(Lookup::Silent, |item| Lookup::Found(Found::Def(item.def)))
    }

    /// A name of the library, for text that is made.
    fn lookup_in_library(&self, name: &str) -> Lookup {
        let def = self.prelude_names.get(name).map(|def| Found::Def(*def));
        let found = def.or_else(|| builtins::builtin(name).map(Found::Builtin));
        found.map_or(Lookup::Unknown, Lookup::Found)
    }

    fn lookup_plain(&self, module: ModuleId, name: &str) -> Lookup {
        let here = &self.modules[module];
        let def = (here.names.get(name).map(|item| item.def))
            .or_else(|| here.imported.get(name).copied())
            .or_else(|| self.prelude_names.get(name).copied());
        if let Some(def) = def {
            return Lookup::Found(Found::Def(def));
        }
        match builtins::builtin(name) {
            Some(builtin) => return Lookup::Found(Found::Builtin(builtin)),
            None if name == "stop_gradient" => return Lookup::Found(Found::StopGradient),
            None => {}
        }
        match derivative::operator(name) {
            Some(operator) => Lookup::Found(Found::Derivative(operator)),
            None if here.incomplete => Lookup::Silent,
            None => Lookup::Unknown,
        }
    }

    fn lookup_in(&mut self, module: ModuleId, alias: &ast::Name, name: &ast::Name) -> Lookup {
        let here = &self.modules[module];
        let used = (here.uses.iter()).find(|(_, a, _)| a.as_ref().is_some_and(|a| a.text == alias.text));
        let Some(&(used, ..)) = used else {
            if !here.incomplete {
                let aliases: Vec<Arc<str>> =
                    (here.uses.iter()).filter_map(|(_, a, _)| a.as_ref().map(|a| a.text.clone())).collect();
                let help = closest(&alias.text, aliases.iter().map(|a| &**a)).map_or_else(
                    || format!("write `use \"{}.ab\" as {};` first", alias.text, alias.text),
                    |name| format!("did you mean `{name}`?"),
                );
                let error = Diagnostic::error(
                    "E0106",
                    format!("there is no module named `{}` here", alias.text),
                    alias.span,
                    "unknown module",
                );
                self.report(error.with_help(help));
            }
            return Lookup::Silent;
        };
        let target = &self.modules[used];
        match target.names.get(&name.text) {
            Some(item) if item.public => Lookup::Found(Found::Def(item.def)),
            Some(item) => {
                let error = Diagnostic::error(
                    "E0108",
                    format!("`{}` of `{}` is private", name.text, alias.text),
                    name.span,
                    "not visible here",
                );
                let error = error
                    .with_label(item.span, "defined here without `pub`")
                    .with_help("write `pub` before its definition");
                self.report(error);
                Lookup::Silent
            }
            None if target.incomplete => Lookup::Silent,
            None => {
                let mut error = Diagnostic::error(
                    "E0107",
                    format!("the module `{}` has no `{}`", alias.text, name.text),
                    name.span,
                    "unknown name",
                );
                let public = target.names.iter().filter(|(_, item)| item.public);
                if let Some(guess) = closest(&name.text, public.map(|(name, _)| &**name)) {
                    error = error.with_help(format!("did you mean `{guess}`?"));
                }
                self.report(error);
                Lookup::Silent
            }
        }
    }

    /// Help for an unknown name: what stands for a name of Stan, or the nearest known one.
    pub(super) fn suggest(&self, module: ModuleId, name: &str, locals: &[Arc<str>]) -> Option<String> {
        self.suggestions.set(self.suggestions.get() + 1);
        if self.suggestions.get() > MOST_SUGGESTIONS {
            return None;
        }
        let here = &self.modules[module];
        if let Some(help) = stan::help(name, |name| self.prelude_names.contains_key(name)) {
            return Some(help);
        }
        let mut all: Vec<&str> = locals.iter().map(|n| &**n).collect();
        all.extend(here.names.keys().map(|n| &**n));
        all.extend(here.imported.keys().map(|n| &**n));
        all.extend(self.prelude_names.keys().map(|n| &**n));
        for name in builtins::names().chain(derivative::names()).chain(["stop_gradient"]) {
            all.push(name);
        }
        closest(name, all.into_iter()).map(|guess| format!("did you mean `{guess}`?"))
    }

    /// Help for an unknown type.
    pub(super) fn suggest_type(&self, module: ModuleId, name: &str) -> Option<String> {
        let known = match name {
            "f64" | "f32" | "float" | "double" | "vector" | "matrix" => Some("real"),
            "i64" | "i32" | "usize" | "integer" => Some("int"),
            "boolean" => Some("bool"),
            _ => None,
        };
        let here = &self.modules[module];
        let items = (here.names.iter()).map(|(name, item)| (name, item.def));
        let imported = here.imported.iter().map(|(name, def)| (name, *def));
        let structs = items.chain(imported).filter_map(|(name, def)| {
            let is_struct = matches!(def, Def::Struct(_));
            is_struct.then_some(&**name)
        });
        known
            .or_else(|| closest(name, structs.chain(["bool", "int", "real"])))
            .map(|guess| format!("did you mean `{guess}`?"))
    }

    /// The line of a span, for notes.
    pub(super) fn line(&self, span: Span) -> u32 {
        self.sources.line_column(span).0
    }

    /// The name of a struct.
    pub(super) fn struct_name(&self, ty: &Ty) -> Option<&str> {
        match ty {
            Ty::Struct(id, _) if id.index() < self.structs.len() => Some(&self.structs[*id].name),
            _ => None,
        }
    }
}

/// Most unknown names for which a known one is looked for, among all that there are: the others are told without.
const MOST_SUGGESTIONS: usize = 100;

/// Whether the item has the attribute.
pub(super) fn has_attribute(item: &ast::Item, name: &str) -> bool {
    item.attributes.iter().any(|a| &*a.name.text == name)
}
