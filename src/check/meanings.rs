//! What names mean, noted while a program is checked: each name where the checker resolves it, so that an editor is told
//! what the compiler does and not what a second reader of the text thinks. Nothing is noted unless somebody asks
//! ([`analyse`](super::analyse)), and of modules that ship only what is declared and used elsewhere.
//!
//! Text that is made of a model has the user's spans: of that only names are noted that stand in the text just so.

use std::cell::RefCell;

use crate::base::{FileId, Id as _, Meaning, Meanings, SourceMap, Span, Symbol, SymbolKind};
use crate::hir::{DimId, LocalId, StructId, Ty};
use crate::syntax::ast::{self, ItemKind};

use super::body::{Body, Origin};
use super::builtins;
use super::context::{Checker, Def, FnDef, Signature};
use super::derivative;
use super::models::Role;
use super::modules::ModuleId;
use super::names::Found;

/// What was noted so far; nothing where nobody asks.
#[derive(Default)]
pub(super) struct Notes {
    found: Option<RefCell<Meanings>>,
    /// The files whose names are noted.
    files: Vec<bool>,
    /// How many instances are being checked: their types are not those that are written.
    instances: usize,
    /// Where the dimensions in scope are declared.
    dims: Vec<Span>,
}

impl Notes {
    /// Notes what stands in these files.
    pub(super) fn of(files: Vec<bool>) -> Self {
        Self { found: Some(RefCell::default()), files, ..Self::default() }
    }

    fn wants(&self, file: FileId) -> bool {
        self.instances == 0 && self.files.get(file.index()).copied().unwrap_or(false)
    }

    /// From now on dimensions are declared at these places; gives the places before.
    pub(super) fn dims(&mut self, dims: Vec<Span>) -> Vec<Span> {
        std::mem::replace(&mut self.dims, dims)
    }

    /// The check of an instance begins, or ends.
    pub(super) fn instance(&mut self, begins: bool) {
        if begins { self.instances += 1 } else { self.instances -= 1 }
    }
}

/// The text of a span.
fn text(sources: &SourceMap, span: Span) -> &str {
    sources.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or_default()
}

impl Checker<'_> {
    /// The notes, when the name stands in the text of a file that is asked for.
    fn noting(&self, name: &ast::Name) -> Option<&RefCell<Meanings>> {
        let found = self.notes.found.as_ref().filter(|_| self.notes.wants(name.span.file))?;
        (text(self.sources, name.span) == &*name.text).then_some(found)
    }

    /// Notes what a name means that is declared at a place.
    pub(super) fn means(&self, name: &ast::Name, declared: Span) {
        if let Some(found) = self.noting(name).filter(|_| name.span != declared) {
            found.borrow_mut().uses.push((name.span, Meaning::Declared(declared)));
        }
    }

    /// Notes what was found for a name.
    pub(super) fn means_found(&self, name: &ast::Name, found: Found) {
        match found {
            Found::Def(def) => self.means(name, self.declared(def)),
            Found::Builtin(_) | Found::Derivative(_) | Found::StopGradient => self.means_builtin(name),
        }
    }

    /// Notes a name of the language itself.
    pub(super) fn means_builtin(&self, name: &ast::Name) {
        if let Some(notes) = self.noting(name) {
            let meaning = Meaning::Builtin { name: name.text.clone(), told: Vec::new() };
            notes.borrow_mut().uses.push((name.span, meaning));
        }
    }

    /// The same, where the number of arguments says that another function is meant than was found before.
    pub(super) fn means_instead(&self, name: &ast::Name, found: Found) {
        if let Some(notes) = self.noting(name) {
            let mut notes = notes.borrow_mut();
            while notes.uses.last().is_some_and(|(span, _)| *span == name.span) {
                notes.uses.pop();
            }
        }
        self.means_found(name, found);
    }

    /// Notes that a name stands for the name of a field, too; `field: ` would go to `place`.
    pub(super) fn means_field_too(&self, name: &ast::Name, place: u32) {
        if let Some(found) = self.noting(name) {
            found.borrow_mut().short.insert(name.span, place);
        }
    }

    /// Notes what the module before a name is.
    pub(super) fn means_module(&self, module: ModuleId, alias: &ast::Name) {
        let uses = self.modules[module].uses.iter().filter_map(|(_, name, _)| name.as_ref());
        if let Some(name) = uses.into_iter().find(|name| name.text == alias.text) {
            self.means(alias, name.span);
        }
    }

    /// Notes a dimension by its position.
    pub(super) fn means_dim(&self, name: &ast::Name, dim: DimId) {
        if let Some(declared) = self.notes.dims.get(dim.index()) {
            self.means(name, *declared);
        }
    }

    fn declared(&self, def: Def) -> Span {
        match def {
            Def::Fn(id) => self.fns[id].span,
            Def::Struct(id) => self.structs[id].span,
            Def::Const(id) => {
                let def = &self.consts[id];
                match &self.modules[def.module].ast.items[def.item].kind {
                    ItemKind::Const { name, .. } => name.span,
                    _ => unreachable!("the declaration put a const here"),
                }
            }
        }
    }

    /// Notes the type of an expression.
    fn note_type(&self, span: Span, ty: impl FnOnce() -> String) {
        if let Some(found) = self.notes.found.as_ref().filter(|_| self.notes.wants(span.file)) {
            found.borrow_mut().types.push((span, ty()));
        }
    }

    /// Notes what is declared, unless it was: functions of models have the same names.
    fn note_symbol(&self, name: &ast::Name, symbol: impl FnOnce() -> Symbol) {
        if let Some(found) = self.noting(name) {
            found.borrow_mut().symbols.entry(name.span).or_insert_with(symbol);
        }
    }

    /// Whether a local is shared, and why not.
    pub(super) fn note_variance(&self, declared: Span, shared: bool, because: impl FnOnce() -> Vec<String>) {
        let Some(found) = &self.notes.found else { return };
        if let Some(symbol) = found.borrow_mut().symbols.get_mut(&declared).filter(|symbol| symbol.shared.is_none()) {
            symbol.shared = Some(shared);
            symbol.because = because();
        }
    }

    /// Whether anything is noted.
    pub(super) fn is_noting(&self) -> bool {
        self.notes.found.is_some()
    }

    /// The struct that a type is, by its name in its declaration.
    fn struct_of(&self, ty: &Ty) -> Option<Span> {
        match ty {
            Ty::Struct(id, _) if id.index() < self.structs.len() => {
                let def = &self.structs[*id];
                (text(self.sources, def.span) == def.name).then_some(def.span)
            }
            _ => None,
        }
    }

    /// What was noted, with the items of modules.
    pub(super) fn meanings(&mut self) -> Meanings {
        let Some(found) = self.notes.found.take() else { return Meanings::default() };
        let mut found = found.into_inner();
        let used: std::collections::HashSet<Span> = (found.uses.iter())
            .filter_map(|(_, meaning)| match meaning {
                Meaning::Declared(span) => Some(*span),
                _ => None,
            })
            .collect();
        // What an asked module sees of others: what it names, and what it could.
        let mut seen: Vec<ModuleId> = Vec::new();
        for module in self.modules.values().filter(|module| self.is_asked(&module.ast)) {
            seen.extend(module.uses.iter().map(|(used, ..)| *used));
        }
        for module in self.modules.ids() {
            let ast = self.modules[module].ast.clone();
            let asked = self.is_asked(&ast) || seen.contains(&module);
            for index in 0..ast.items.len() {
                self.note_item(module, index, asked, &used, &mut found);
            }
            if self.is_asked(&ast) {
                self.note_uses(module, &mut found);
            }
        }
        found.sort();
        found
    }

    fn is_asked(&self, ast: &ast::Module) -> bool {
        let file = ast.items.first().map(|item| item.span.file);
        file.is_some_and(|file| self.notes.files.get(file.index()).copied().unwrap_or(false))
    }

    /// The paths of `use`s, and the names that they give modules.
    fn note_uses(&self, module: ModuleId, into: &mut Meanings) {
        for item in &self.modules[module].ast.items {
            let ItemKind::Use { path, alias } = &item.kind else { continue };
            let used = self.modules[module].uses.iter().find(|(_, _, span)| *span == item.span);
            let Some((used, ..)) = used else { continue };
            let name = &self.modules[*used].name;
            if let Some((file, _)) = self.sources.files().find(|(_, file)| file.name == *name) {
                into.uses.push((path.span, Meaning::File(file)));
            }
            if let Some(alias) = alias {
                let told = format!("use \"{}\" as {}", path.text, alias.text);
                let mut symbol = Symbol::new(&alias.text, SymbolKind::Module, told, item.span);
                let public = self.modules[*used].names.values().filter(|item| item.public);
                symbol.members = public.map(|item| item.span).collect();
                into.symbols.insert(alias.span, symbol);
            }
        }
    }

    /// An item, when its module is asked for or something uses it.
    fn note_item(
        &self,
        module: ModuleId,
        index: usize,
        asked: bool,
        used: &std::collections::HashSet<Span>,
        into: &mut Meanings,
    ) {
        let item = &self.modules[module].ast.items[index];
        let name = match &item.kind {
            ItemKind::Fn(decl) => &decl.name,
            ItemKind::Struct { name, .. } | ItemKind::Const { name, .. } => name,
            ItemKind::Use { .. } | ItemKind::Derivative(_) | ItemKind::Model(_) => return,
        };
        let part_used = match &item.kind {
            ItemKind::Fn(decl) => decl.params.iter().any(|param| used.contains(&param.name.span)),
            ItemKind::Struct { fields, .. } => fields.iter().any(|field| used.contains(&field.name.span)),
            _ => false,
        };
        let wanted = asked || part_used || used.contains(&name.span);
        let def = self.modules[module].names.get(&name.text).map(|named| named.def);
        let (Some(def), true) = (def.filter(|def| self.declared(*def) == name.span), wanted) else { return };
        let written = text(self.sources, name.span) == &*name.text;
        let mut symbol = match def {
            Def::Fn(id) => self.fn_symbol(&self.fns[id], item, into),
            Def::Struct(id) => self.struct_symbol(id, item, into),
            Def::Const(_) => {
                let told: Vec<&str> = text(self.sources, item.span).split_whitespace().collect();
                let told = told.join(" ");
                Symbol::new(&name.text, SymbolKind::Constant, told.trim_end_matches(';'), item.span)
            }
        };
        symbol.doc.clone_from(&item.doc);
        symbol.public = item.public;
        if written {
            into.symbols.entry(name.span).or_insert(symbol);
        }
    }

    fn fn_symbol(&self, def: &FnDef, item: &ast::Item, into: &mut Meanings) -> Symbol {
        let model = self.modules[def.module].made.get(&def.item) == Some(&Role::Body);
        let kind = if model { SymbolKind::Model } else { SymbolKind::Function };
        let ItemKind::Fn(decl) = &item.kind else { unreachable!("the declaration put a function here") };
        let Some(signature) = &def.signature else {
            return Symbol::new(&def.name, kind, format!("fn {}", def.name), item.span);
        };
        let params = self.told_params(signature);
        let names = signature.dims.values().zip(decl.dims.iter()).map(|(name, _)| name.as_str());
        let dims: Vec<&str> = names.collect();
        let dims = if dims.is_empty() { String::new() } else { format!("[{}]", dims.join(", ")) };
        let ret = match &signature.ret {
            ret if ret.is_unit() || model => String::new(),
            ret => format!(" -> {}", self.show(ret, &signature.dims)),
        };
        let before = match (model, def.elementwise, item.public) {
            (true, ..) => "model ",
            (_, true, true) => "@elementwise pub fn ",
            (_, true, false) => "@elementwise fn ",
            (_, false, true) => "pub fn ",
            (_, false, false) => "fn ",
        };
        let told = format!("{before}{}{dims}({}){ret}", def.name, params.join(", "));
        self.note_params(signature, &params, item.span, into);
        Symbol { params, ..Symbol::new(&def.name, kind, told, item.span) }
    }

    /// Parameters and dimensions, also of functions whose bodies were not looked at.
    fn note_params(&self, signature: &Signature, told: &[String], whole: Span, into: &mut Meanings) {
        for (param, told) in signature.params.iter().zip(told) {
            let span = param.name.span;
            if text(self.sources, span) != &*param.name.text || &*param.name.text == "_" {
                continue;
            }
            let symbol = into.symbols.entry(span).or_insert_with(|| Symbol {
                scope: Some(whole),
                of: self.struct_of(&param.ty),
                ..Symbol::new(&param.name.text, SymbolKind::Parameter, told.as_str(), span)
            });
            symbol.ty.get_or_insert_with(|| self.show(&param.ty, &signature.dims));
            if !matches!(param.ty, Ty::Fn(..)) {
                symbol.shared.get_or_insert(param.shared);
            }
        }
        for (name, span) in signature.dims.values().zip(&signature.declared) {
            if text(self.sources, *span) == name {
                into.symbols.entry(*span).or_insert_with(|| dimension(name, *span, whole));
            }
        }
    }

    /// Parameters as they are declared.
    fn told_params(&self, signature: &Signature) -> Vec<String> {
        let told = |param: &super::context::ParamSignature| {
            let ty = self.show(&param.ty, &signature.dims);
            let before = if param.shared { "shared " } else { "" };
            format!("{before}{}: {ty}", param.name.text)
        };
        signature.params.iter().map(told).collect()
    }

    fn struct_symbol(&self, id: StructId, item: &ast::Item, into: &mut Meanings) -> Symbol {
        let def = &self.structs[id];
        let names: Vec<&str> = def.dims.values().map(String::as_str).collect();
        let head = if names.is_empty() { def.name.clone() } else { format!("{}[{}]", def.name, names.join(", ")) };
        let mut told = Vec::new();
        for (name, ty) in &def.fields {
            let shown = ty.as_ref().map(|ty| self.show(ty, &def.dims));
            let line = format!("{}: {}", name.text, shown.as_deref().unwrap_or("?"));
            if text(self.sources, name.span) == &*name.text {
                into.symbols.entry(name.span).or_insert_with(|| Symbol {
                    ty: shown,
                    of: ty.as_ref().and_then(|ty| self.struct_of(ty)),
                    public: true,
                    ..Symbol::new(&name.text, SymbolKind::Field, line.as_str(), name.span)
                });
            }
            told.push(line);
        }
        if let ItemKind::Struct { dims, .. } = &item.kind {
            for dim in dims {
                into.symbols.entry(dim.span).or_insert_with(|| dimension(&dim.text, dim.span, item.span));
            }
        }
        let told = format!("struct {head} {{ {} }}", told.join(", "));
        let members = def.fields.iter().map(|(name, _)| name.span).collect();
        Symbol { members, ..Symbol::new(&def.name, SymbolKind::Struct, told, item.span) }
    }
}

fn dimension(name: &str, span: Span, whole: Span) -> Symbol {
    Symbol {
        ty: Some("int".to_owned()),
        scope: Some(whole),
        ..Symbol::new(name, SymbolKind::Dimension, format!("{name}: int, a dimension"), span)
    }
}

impl Body<'_, '_> {
    /// Notes the type of an expression.
    pub(super) fn note_expr(&self, span: Span, ty: &Ty) {
        self.cx.note_type(span, || self.show(ty));
    }

    /// Notes a local, or a name whose value has an error.
    pub(super) fn note_local(&self, name: &ast::Name, local: Option<LocalId>) {
        self.cx.note_symbol(name, || {
            let info = local.map(|local| (&self.locals[local], self.info[local].origin));
            let ty = info.map(|(local, _)| self.show(&local.ty));
            let (kind, before) = match info {
                Some((_, Origin::Param | Origin::ClosureParam)) => (SymbolKind::Parameter, ""),
                Some((_, Origin::Loop | Origin::Clause)) => (SymbolKind::Loop, "for "),
                Some((local, _)) if local.mutable => (SymbolKind::Variable, "let mut "),
                _ => (SymbolKind::Variable, "let "),
            };
            let told = match &ty {
                Some(ty) => format!("{before}{}: {ty}", name.text),
                None => format!("{before}{}", name.text),
            };
            Symbol {
                ty,
                of: info.and_then(|(local, _)| self.cx.struct_of(&local.ty)),
                scope: Some(self.scope_of(name.span)),
                ..Symbol::new(&name.text, kind, told, name.span)
            }
        });
    }

    /// The innermost piece of text around a name that is a scope: code that is made has none of its own.
    fn scope_of(&self, name: Span) -> Span {
        let around = |scope: &&Span| scope.file == name.file && scope.start <= name.start && name.end <= scope.end;
        self.texts.iter().rev().find(around).copied().unwrap_or(name)
    }
}

/// What is known of a function of the language that no module defines: how it is called, and what it takes.
#[must_use]
pub fn builtin_told(name: &str) -> Option<String> {
    if let Some(builtin) = builtins::builtin(name) {
        return Some(format!("{name}({})", builtin.takes()));
    }
    let direction = matches!(name, "jvp" | "vjp");
    match name {
        "stop_gradient" => Some("stop_gradient(x)".to_owned()),
        "attempt" => Some("attempt(f)(x)".to_owned()),
        _ if !derivative::names().any(|known| known == name) => None,
        _ if direction => Some(format!("{name}(f, wrt = x)(x, v)")),
        _ => Some(format!("{name}(f, wrt = x)(x)")),
    }
}

/// The names of all functions of the language that no module defines.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    builtins::names().chain(derivative::names()).chain(["stop_gradient"])
}
