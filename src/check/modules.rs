//! Loading: the main module, everything that it uses, and the prelude.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use indexmap::IndexMap;

use crate::base::{Diagnostic, FileId, IdVec, SourceMap, Span};
use crate::syntax::ast::{self, ItemKind};

use super::context::Def;
use super::models::Role;
use super::{Loader, StdLibrary};

crate::define_id!(
    /// A module.
    #[allow(unreachable_pub, reason = "the macro makes public ids")]
    ModuleId, "module"
);

/// A loaded module. Module 0 is the main one.
pub(super) struct Module {
    /// Its resolved name.
    pub(super) name: String,
    pub(super) ast: Arc<ast::Module>,
    /// The items that a model has become, by their positions.
    pub(super) made: BTreeMap<usize, Role>,
    /// Whether it ships in the binary.
    pub(super) std: bool,
    /// What it uses: the module, the alias, and where.
    pub(super) uses: Vec<(ModuleId, Option<ast::Name>, Span)>,
    /// Whether `uses` is complete.
    followed: bool,
    /// Whether a `use` of it failed: then unknown names may be the missing module's, and stay silent.
    pub(super) incomplete: bool,
    /// Its own items by name; filled by the declaration.
    pub(super) names: IndexMap<Arc<str>, NamedItem>,
    /// Names that it sees without a module before them, by `use` without an alias.
    pub(super) imported: IndexMap<Arc<str>, Def>,
}

/// An item of a module.
#[derive(Clone, Copy)]
pub(super) struct NamedItem {
    pub(super) def: Def,
    pub(super) public: bool,
    pub(super) span: Span,
}

/// The modules of a program.
pub(super) struct Loaded {
    pub(super) modules: IdVec<ModuleId, Module>,
    pub(super) prelude: Option<ModuleId>,
}

impl Loaded {
    /// Whether a module of this name ships in the binary.
    pub(super) fn ships(&self, name: &str) -> bool {
        self.modules.values().any(|module| module.std && module.name == name)
    }

    /// Takes `shared` from parameters that whoever runs the program has values of for each lane.
    pub(super) fn vary(&mut self, loader: &dyn Loader) {
        for module in self.modules.values_mut() {
            let names = loader.varying(&module.name);
            if names.is_empty() {
                continue;
            }
            for item in &mut Arc::make_mut(&mut module.ast).items {
                let ItemKind::Fn(function) = &mut item.kind else { continue };
                let varies = |param: &&mut ast::Param| names.iter().any(|name| **name == *param.name.text);
                function.params.iter_mut().filter(varies).for_each(|param| {
                    param.of_lanes = std::mem::take(&mut param.shared);
                });
            }
        }
    }

    /// Levels of the deepest tree.
    pub(super) fn depth(&self) -> usize {
        self.modules.values().map(|module| module.ast.depth).max().unwrap_or(0)
    }
}

struct Loading<'a> {
    sources: &'a mut SourceMap,
    loader: &'a mut dyn Loader,
    modules: IdVec<ModuleId, Module>,
    by_name: HashMap<String, ModuleId>,
    diagnostics: Vec<Diagnostic>,
}

/// Parses and loads everything that the file `main` needs.
pub(super) fn load(main: FileId, sources: &mut SourceMap, loader: &mut dyn Loader) -> (Loaded, Vec<Diagnostic>) {
    let text = sources.file(main).text.clone();
    let (ast, diagnostics) = crate::syntax::parse(main, &text);
    let name = sources.file(main).name.clone();
    let mut loading = Loading { sources, loader, modules: IdVec::new(), by_name: HashMap::new(), diagnostics };
    let broken = loading.diagnostics.iter().any(Diagnostic::is_error);
    let main = loading.add(name, Arc::new(ast), broken);
    let prelude = loading.shipped("prelude.ab").or_else(|| loading.modules[main].std.then_some(main));
    // First the prelude's own: then its files have the same numbers in every program, and are parsed once a process.
    loading.follow_uses(ModuleId(1));
    loading.follow_uses(main);
    let loaded = Loaded { modules: loading.modules, prelude };
    (loaded, loading.diagnostics)
}

impl Loading<'_> {
    fn add(&mut self, name: String, ast: Arc<ast::Module>, incomplete: bool) -> ModuleId {
        let module = Module {
            std: name.starts_with("std/") && StdLibrary::text(&name).is_some(),
            name: name.clone(),
            ast,
            made: BTreeMap::new(),
            uses: Vec::new(),
            followed: false,
            incomplete,
            names: IndexMap::new(),
            imported: IndexMap::new(),
        };
        let id = self.modules.push(module);
        self.by_name.insert(name, id);
        id
    }

    /// Follows the `use`s of every module from this one on that were not followed yet, those found on the way included.
    fn follow_uses(&mut self, first: ModuleId) {
        let mut next = first.0;
        while (next as usize) < self.modules.len() {
            let module = ModuleId(next);
            next += 1;
            if std::mem::replace(&mut self.modules[module].followed, true) {
                continue;
            }
            let ast = self.modules[module].ast.clone();
            for item in &ast.items {
                if let ItemKind::Use { path, alias } = &item.kind {
                    match self.find(module, path) {
                        Some(used) => {
                            let entry = (used, alias.clone(), item.span);
                            self.modules[module].uses.push(entry);
                        }
                        None => self.modules[module].incomplete = true,
                    }
                }
            }
        }
    }

    fn find(&mut self, module: ModuleId, path: &ast::Name) -> Option<ModuleId> {
        let from = &self.modules[module];
        // `std/nuts.ab` is the library's, whatever lies in the folder.
        let library = path.text.starts_with("std/") && StdLibrary::text(&path.text).is_some();
        let found =
            if from.std || library { Err(String::new()) } else { self.loader.load(Some(&from.name), &path.text) };
        match found {
            Ok((name, text)) => Some(self.get_or_parse(name, text)),
            Err(why) => self.shipped(&path.text).or_else(|| {
                let known: Vec<_> = StdLibrary::paths().map(|p| format!("\"{p}\"")).collect();
                let mut error = Diagnostic::error(
                    "E0105",
                    format!("there is no module \"{}\"", path.text),
                    path.span,
                    "not found beside this file, nor in the library",
                );
                if !why.is_empty() {
                    error = error.with_note(why);
                }
                let help = format!("the library has {}", known.join(", "));
                self.diagnostics.push(error.with_help(help));
                None
            }),
        }
    }

    fn shipped(&mut self, path: &str) -> Option<ModuleId> {
        let (name, text) = StdLibrary.load(None, path).ok()?;
        if let Some(known) = self.by_name.get(&name) {
            return Some(*known);
        }
        let file = self.sources.add(name.clone(), text.clone());
        let ast = parsed(&name, file, &text);
        Some(self.add(name, ast, false))
    }

    fn get_or_parse(&mut self, name: String, text: Arc<str>) -> ModuleId {
        if let Some(known) = self.by_name.get(&name) {
            return *known;
        }
        let file = self.loader.add(self.sources, &name, &text);
        let (ast, diagnostics) = crate::syntax::parse(file, &text);
        let broken = diagnostics.iter().any(Diagnostic::is_error);
        self.diagnostics.extend(diagnostics);
        self.add(name, Arc::new(ast), broken)
    }
}

/// The tree of a module that ships, as the file of this number. That of the prelude and of what it uses is parsed once a
/// process, since they have the same numbers in every program; others once for each number that they get. A test looks
/// that these modules have no errors.
fn parsed(name: &str, file: FileId, text: &str) -> Arc<ast::Module> {
    type Trees = HashMap<(String, FileId), Arc<ast::Module>>;
    static TREES: LazyLock<Mutex<Trees>> = LazyLock::new(Mutex::default);
    let key = (name.to_owned(), file);
    let known = || TREES.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    known().unwrap_or_else(|| {
        let tree = Arc::new(crate::syntax::parse(file, text).0);
        TREES.lock().unwrap_or_else(PoisonError::into_inner).insert(key, tree.clone());
        tree
    })
}
