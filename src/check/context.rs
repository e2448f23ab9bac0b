//! What the checker knows about the whole program, and the order in which it finds out.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use indexmap::IndexMap;

use crate::base::{Diagnostic, IdVec, Meanings, SourceMap, Span};
use crate::hir::{self, Dim, DimId, FnId, StructId, Ty};
use crate::syntax::ast;
use crate::types::Scalar;

use super::meanings::Notes;
use super::modules::{Loaded, Module, ModuleId};
use super::rules::RuleDef;

crate::define_id!(
    /// A `const`.
    #[allow(unreachable_pub, reason = "the macro makes public ids")]
    ConstId, "const"
);

/// What the name of an item means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Def {
    Fn(FnId),
    Struct(StructId),
    Const(ConstId),
}

/// A function, or an instance of an elementwise one for arrays.
pub(super) struct FnDef {
    pub(super) name: String,
    pub(super) module: ModuleId,
    /// The position of its item in the module.
    pub(super) item: usize,
    /// For a rule of a derivative, its position in the item.
    pub(super) rule: Option<usize>,
    /// `None` when the declaration has an error.
    pub(super) signature: Option<Arc<Signature>>,
    /// `@elementwise`; false for its instances.
    pub(super) elementwise: bool,
    /// `@sum`: an instance for arrays sums its result.
    pub(super) sum: bool,
    /// `@recompute`
    pub(super) recompute: bool,
    /// Whether this is an instance for arrays.
    pub(super) instance: bool,
    /// Whether something calls it or passes it on.
    pub(super) used: bool,
    pub(super) public: bool,
    pub(super) span: Span,
    /// The checked function.
    pub(super) checked: Option<hir::Fn>,
}

/// What callers of a function must know.
#[derive(Clone)]
pub(super) struct Signature {
    pub(super) dims: IdVec<DimId, String>,
    /// Where they are declared; nothing for those of instances.
    pub(super) declared: Vec<Span>,
    /// The bounds of the dimensions that have one.
    pub(super) bounds: BTreeMap<DimId, Dim>,
    pub(super) params: Vec<ParamSignature>,
    pub(super) ret: Ty,
}

/// A parameter.
#[derive(Clone)]
pub(super) struct ParamSignature {
    pub(super) name: ast::Name,
    pub(super) ty: Ty,
    pub(super) shared: bool,
    /// Whether `shared` was taken from it.
    pub(super) of_lanes: bool,
    pub(super) mutable: bool,
}

/// A struct.
pub(super) struct StructDef {
    pub(super) name: String,
    pub(super) module: ModuleId,
    pub(super) item: usize,
    pub(super) dims: IdVec<DimId, String>,
    /// `None` for a field whose type has an error.
    pub(super) fields: Vec<(ast::Name, Option<Ty>)>,
    /// Whether the first value that is made says which types the fields have: a model's.
    pub(super) inferred: bool,
    /// How many scalars and arrays it holds in the end, and tuples and structs around them.
    pub(super) leaves: usize,
    pub(super) span: Span,
}

/// A `const`: evaluated when it is first needed.
pub(super) struct ConstDef {
    pub(super) module: ModuleId,
    pub(super) item: usize,
    pub(super) state: ConstState,
}

/// How far a `const` is.
#[derive(Clone, Copy)]
pub(super) enum ConstState {
    Unseen,
    InProgress,
    Done(Option<Scalar>),
}

/// The fields of an output stream, from the first `emit` that was checked.
pub(super) struct Stream {
    pub(super) fields: Vec<(String, Ty)>,
    pub(super) span: Span,
}

/// An instance of an elementwise function: which parameters are arrays, and of what rank.
pub(super) type InstanceKey = (FnId, Vec<bool>, usize);

/// The state of a run of the checker.
pub(super) struct Checker<'a> {
    pub(super) sources: &'a SourceMap,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The unknown names so far.
    pub(super) suggestions: Cell<usize>,
    pub(super) modules: IdVec<ModuleId, Module>,
    pub(super) prelude: Option<ModuleId>,
    /// What every module sees: the public names of the prelude and of what it uses.
    pub(super) prelude_names: IndexMap<Arc<str>, Def>,
    pub(super) structs: IdVec<StructId, StructDef>,
    pub(super) fns: IdVec<FnId, FnDef>,
    pub(super) consts: IdVec<ConstId, ConstDef>,
    /// `None` when the body does not check with arrays.
    pub(super) instances: HashMap<InstanceKey, Option<FnId>>,
    /// How many instances are being made inside one another.
    pub(super) instance_depth: usize,
    pub(super) streams: IndexMap<String, Stream>,
    /// Whether a type may declare bounded dimensions: that of a parameter may.
    pub(super) binding_bounds: bool,
    /// Rules of derivatives, until their signatures are found.
    pub(super) rule_defs: Vec<RuleDef>,
    /// Derivatives that are written by hand.
    pub(super) rules: IndexMap<FnId, hir::Rules>,
    /// What names mean, where somebody asks.
    pub(super) notes: Notes,
}

impl<'a> Checker<'a> {
    pub(super) fn new(sources: &'a SourceMap, loaded: Loaded, diagnostics: Vec<Diagnostic>, notes: Notes) -> Self {
        Self {
            sources,
            diagnostics,
            suggestions: Cell::new(0),
            modules: loaded.modules,
            prelude: loaded.prelude,
            prelude_names: IndexMap::new(),
            structs: IdVec::new(),
            fns: IdVec::new(),
            consts: IdVec::new(),
            instances: HashMap::new(),
            instance_depth: 0,
            streams: IndexMap::new(),
            binding_bounds: false,
            rule_defs: Vec::new(),
            rules: IndexMap::new(),
            notes,
        }
    }

    /// Checks everything.
    pub(super) fn run(mut self) -> (Option<hir::Program>, Vec<Diagnostic>, Meanings) {
        self.declare();
        self.import();
        self.resolve_structs();
        self.evaluate_consts();
        self.resolve_signatures();
        self.resolve_rules();
        self.check_models();
        self.check_fns();
        self.warn_unused_fns();
        self.check_bounded();
        self.check_shared();
        self.check_comprehension_calls();
        self.check_derivatives();
        self.check_recompute();
        self.find_variance();
        let meanings = self.meanings();
        if !self.diagnostics.iter().any(Diagnostic::is_error) {
            self.report_unchecked();
        }
        if self.diagnostics.iter().any(Diagnostic::is_error) {
            return (None, self.diagnostics, meanings);
        }
        let program = self.program();
        (Some(program), self.diagnostics, meanings)
    }

    /// Checks the bodies of all functions but those that ship and that nothing uses, so that a program does not pay for
    /// the whole library. A test checks each module that ships as a main one.
    fn check_fns(&mut self) {
        let mut left: Vec<FnId> = self.fns.ids().filter(|id| self.is_unchecked(*id)).collect();
        loop {
            for (target, rules) in &self.rules {
                if is_wanted(&self.modules, &self.fns[*target]) {
                    for rule in [rules.forward, rules.reverse].into_iter().flatten() {
                        self.fns[rule].used = true;
                    }
                }
            }
            let (wanted, rest) = left.into_iter().partition(|id| is_wanted(&self.modules, &self.fns[*id]));
            left = rest;
            let wanted: Vec<FnId> = wanted;
            if wanted.is_empty() {
                return;
            }
            wanted.into_iter().for_each(|id| self.check_fn(id));
        }
    }

    /// Whether a function is neither of a model nor an instance that was made for one: these are checked before.
    fn is_unchecked(&self, id: FnId) -> bool {
        self.role(id).is_none() && !self.fns[id].instance
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Reports a warning, unless it is about a module that ships.
    pub(super) fn warn(&mut self, module: ModuleId, diagnostic: Diagnostic) {
        if !self.modules[module].std {
            self.diagnostics.push(diagnostic);
        }
    }

    fn warn_unused_fns(&mut self) {
        let unused: Vec<_> = (self.fns.values())
            .filter(|f| !f.used && !f.public && !f.instance && !f.name.starts_with('_'))
            .filter(|f| f.rule.is_some() || !self.modules[f.module].made.contains_key(&f.item))
            .map(|f| (f.module, f.name.clone(), f.span))
            .collect();
        for (module, name, span) in unused {
            let warning = Diagnostic::warning(
                "W0006",
                format!("the function `{name}` is never used"),
                span,
                "neither called nor `pub`",
            );
            self.warn(module, warning.with_help(format!("remove it, or rename it to `_{name}`")));
        }
    }

    /// What gives nothing and has no error yet has an extent that does not fit into 64 bits.
    fn report_unchecked(&mut self) {
        let unchecked = self.fns.values().filter(|f| f.checked.is_none() && is_wanted(&self.modules, f));
        let errors: Vec<Diagnostic> = unchecked
            .map(|f| {
                let message = format!("an extent in `{}` is out of range", f.name);
                Diagnostic::error("E0221", message, f.span, "larger than 64 bits")
            })
            .collect();
        self.diagnostics.extend(errors);
    }

    /// The program; there are no errors.
    fn program(&mut self) -> hir::Program {
        let mut program = hir::Program::default();
        program.rules = std::mem::take(&mut self.rules);
        program.depth = self.modules.values().map(|module| module.ast.depth).max().unwrap_or(0);
        for def in self.structs.values() {
            let fields = def.fields.iter().filter_map(|(name, ty)| {
                let ty = ty.clone()?;
                Some((name.text.to_string(), ty))
            });
            program.structs.push(hir::Struct {
                name: def.name.clone(),
                dims: def.dims.clone(),
                fields: fields.collect(),
            });
        }
        for (id, def) in self.fns.iter_mut() {
            let function = def.checked.take();
            let of_values = |f: &hir::Fn| f.params.iter().all(|p| !matches!(f.locals[p.local].ty, Ty::Fn(..)));
            if def.public && !def.instance && def.module == ModuleId(0) && function.as_ref().is_some_and(of_values) {
                program.exports.insert(def.name.clone(), id);
            }
            program.fns.push(function);
        }
        program
    }
}

/// Whether the body of a function is checked: it is the user's, or something uses it.
fn is_wanted(modules: &IdVec<ModuleId, Module>, def: &FnDef) -> bool {
    def.used || def.module == ModuleId(0) || !modules[def.module].std
}
