//! What names of a Stan program mean, as an editor wants it: what the checker found, with what the tree says of
//! declarations.

use std::sync::Arc;

use crate::base::{Meaning, Meanings, SourceMap, Span, Symbol, SymbolKind};
use crate::stan::syntax::ast::{Block, Function, Name, Program, Stmt, StmtKind, UnsizedType, Variable};

use super::scope::BlockName;
use super::signatures::library;
use super::types::{Type, spelled, unwound, wound};
use super::{CalledFunction, Checked, declare::unsized_type};

/// What the names of a checked program mean.
pub fn meanings(program: &Program, checked: &Checked, sources: &SourceMap) -> Meanings {
    crate::base::stack::with_room(program.depth, || {
        let mut finder = Finder { checked, sources, found: Meanings::default(), block: "functions" };
        finder.program(program);
        finder.uses(program);
        finder.found.sort();
        finder.found
    })
}

struct Finder<'a> {
    checked: &'a Checked,
    sources: &'a SourceMap,
    found: Meanings,
    /// The block that is being looked at.
    block: &'static str,
}

impl Finder<'_> {
    fn text(&self, span: Span) -> &str {
        self.sources.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// The text of a span on one line.
    fn line(&self, span: Span) -> String {
        self.text(span).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn add(&mut self, name: &Name, symbol: Symbol) {
        if self.text(name.span) == &*name.text {
            self.found.symbols.entry(name.span).or_insert(symbol);
        }
    }

    fn program(&mut self, program: &Program) {
        if let Some(functions) = &program.functions {
            self.block_symbol(BlockName::Functions, functions.span);
            functions.items.iter().for_each(|item| self.function(item));
        }
        let blocks: [(BlockName, &Option<Block>); 6] = [
            (BlockName::Data, &program.data),
            (BlockName::TransformedData, &program.transformed_data),
            (BlockName::Parameters, &program.parameters),
            (BlockName::TransformedParameters, &program.transformed_parameters),
            (BlockName::Model, &program.model),
            (BlockName::GeneratedQuantities, &program.generated_quantities),
        ];
        for (name, block) in blocks {
            let Some(block) = block else { continue };
            self.block = name.text();
            self.block_symbol(name, block.span);
            let scope = (name == BlockName::Model).then_some(block.span);
            block.stmts.iter().for_each(|stmt| self.stmt(stmt, scope));
        }
    }

    fn block_symbol(&mut self, name: BlockName, span: Span) {
        let word = Span { end: span.start + name.text().len() as u32, ..span };
        self.found.symbols.insert(word, Symbol::new(name.text(), SymbolKind::Block, name.text(), span));
    }

    fn function(&mut self, item: &Function) {
        let params: Vec<String> = item.params.iter().map(|param| self.line(param.span)).collect();
        let result = item.result.as_ref().map_or("void".to_owned(), spelled);
        let told = format!("{result} {}({})", item.name.text, params.join(", "));
        for param in &item.params {
            let told = self.line(param.span);
            let symbol = Symbol {
                ty: Some(spelled(&param.ty)),
                scope: Some(item.span),
                ..Symbol::new(&param.name.text, SymbolKind::Parameter, told, param.span)
            };
            self.add(&param.name, symbol);
        }
        let doc = self.comment_above(item.span);
        let symbol = Symbol { params, doc, ..Symbol::new(&item.name.text, SymbolKind::Function, told, item.span) };
        if item.body.is_some() {
            self.add(&item.name, symbol);
        }
        item.body.iter().flatten().for_each(|stmt| self.stmt(stmt, Some(item.span)));
    }

    /// A statement; what it declares can be named in `scope`, everywhere where there is none.
    fn stmt(&mut self, stmt: &Stmt, scope: Option<Span>) {
        let inner = Some(stmt.span);
        match &stmt.kind {
            StmtKind::Declare { ty, variables } => {
                for variable in variables {
                    let unsized_ty = wound(unsized_type(ty), variable.old_dims.len());
                    self.variable(variable, self.line(ty.span), &unsized_ty, stmt.span, scope);
                }
            }
            StmtKind::If { then, otherwise, .. } => {
                self.stmt(then, inner);
                otherwise.iter().for_each(|stmt| self.stmt(stmt, inner));
            }
            StmtKind::While { body, .. } => self.stmt(body, inner),
            StmtKind::For { var, body, .. } => {
                self.loop_variable(var, Some(&UnsizedType::Int), stmt.span);
                self.stmt(body, inner);
            }
            StmtKind::ForEach { var, over, body } => {
                let over = self.checked.types.get(&over.span).map(|typed| typed.ty.clone());
                let element = over.map(|ty| match ty {
                    UnsizedType::Array(element) => *element,
                    UnsizedType::ComplexVector | UnsizedType::ComplexRowVector | UnsizedType::ComplexMatrix => {
                        UnsizedType::Complex
                    }
                    _ => UnsizedType::Real,
                });
                self.loop_variable(var, element.as_ref(), stmt.span);
                self.stmt(body, inner);
            }
            StmtKind::Profile { body, .. } | StmtKind::Block(body) => {
                body.iter().for_each(|stmt| self.stmt(stmt, inner));
            }
            _ => {}
        }
    }

    fn variable(&mut self, variable: &Variable, ty: String, unsized_ty: &UnsizedType, span: Span, scope: Option<Span>) {
        let name = &variable.name;
        let dims: Vec<String> = variable.old_dims.iter().map(|dim| self.line(dim.span)).collect();
        let dims = if dims.is_empty() { String::new() } else { format!("[{}]", dims.join(", ")) };
        let own = self.comment_behind(span);
        let doc = if own.is_empty() { self.comment_above(span) } else { own };
        let mut symbol = Symbol {
            ty: Some(spelled(unsized_ty)),
            scope,
            doc,
            ..Symbol::new(&name.text, SymbolKind::Variable, format!("{ty} {}{dims}", name.text), span)
        };
        if scope.is_none() || self.block == "model" {
            symbol.because.push(format!("of the block `{}`", self.block));
        }
        self.add(name, symbol);
    }

    fn loop_variable(&mut self, var: &Name, ty: Option<&UnsizedType>, span: Span) {
        let ty = ty.map(spelled);
        let told = ty.as_ref().map_or_else(|| var.text.to_string(), |ty| format!("{ty} {}", var.text));
        let symbol = Symbol { ty, scope: Some(span), ..Symbol::new(&var.text, SymbolKind::Loop, told, span) };
        self.add(var, symbol);
    }

    /// The comments on the lines right above a place.
    fn comment_above(&self, span: Span) -> String {
        let before = &self.sources.file(span.file).text[..span.start as usize];
        // What stands before it on its own line, or nothing.
        let Some((above, _)) = before.rsplit_once('\n').filter(|(_, own)| own.trim().is_empty()) else {
            return String::new();
        };
        let mut lines = above.rsplit('\n').map(str::trim);
        let last = lines.next().unwrap_or_default();
        let mut words: Vec<&str> = Vec::new();
        if last.ends_with("*/") {
            for line in std::iter::once(last).chain(lines) {
                let first = line.contains("/*");
                if first && !line.starts_with("/*") {
                    // It is behind something else, and about that.
                    return String::new();
                }
                let line = line.trim_start_matches("/**").trim_start_matches("/*").trim_end_matches("*/");
                words.push(line.trim().trim_start_matches('*').trim());
                if first {
                    break;
                }
            }
            words.retain(|line| !line.is_empty());
        } else {
            let above = std::iter::once(last).chain(lines).take_while(|line| line.starts_with("//"));
            words.extend(above.map(|line| line.trim_start_matches('/').trim()));
        }
        words.reverse();
        words.join("\n")
    }

    /// The comment behind a declaration, on its line.
    fn comment_behind(&self, span: Span) -> String {
        let text = &self.sources.file(span.file).text;
        let rest = text[span.end as usize..].lines().next().unwrap_or_default().trim();
        let comment = rest.strip_prefix("//").or_else(|| rest.strip_prefix("/*")?.strip_suffix("*/"));
        comment.map(|comment| comment.trim_start_matches('/').trim().to_owned()).unwrap_or_default()
    }

    fn uses(&mut self, program: &Program) {
        for (span, declared) in &self.checked.variables {
            if *span != declared.at {
                self.found.uses.push((*span, Meaning::Declared(declared.at)));
            }
        }
        let items = program.functions.as_ref().map_or(&[][..], |functions| &functions.items);
        for (span, called) in &self.checked.calls {
            let meaning = match &called.function {
                CalledFunction::User(at) => items.get(*at).map(|item| Meaning::Declared(item.name.span)),
                CalledFunction::Library { name, params } => Some(builtin(name, params)),
            };
            self.found.uses.extend(meaning.map(|meaning| (*span, meaning)));
        }
        for item in items.iter().filter(|item| item.body.is_none()) {
            let types = |function: &Function| function.params.iter().map(|param| param.ty.clone()).collect::<Vec<_>>();
            let same = |other: &&Function| other.name.text == item.name.text && types(other) == types(item);
            if let Some(definition) = items.iter().filter(|other| other.body.is_some()).find(same) {
                self.found.uses.push((item.name.span, Meaning::Declared(definition.name.span)));
            }
        }
        for (span, typed) in &self.checked.types {
            let depends = if typed.level.is_data() { ", of data alone" } else { "" };
            self.found.types.push((*span, format!("{}{depends}", spelled(&typed.ty))));
        }
    }
}

fn builtin(name: &Arc<str>, params: &[UnsizedType]) -> Meaning {
    let types: Vec<Type> = params.iter().cloned().map(Type::Value).collect();
    let exact = library().exact(name, &types).filter(|_| !params.is_empty());
    let told = exact.and_then(|function| function.result.map(|result| signature(name, params.iter(), &result)));
    Meaning::Builtin { name: name.clone(), told: told.into_iter().collect() }
}

fn signature<'t>(name: &str, params: impl Iterator<Item = &'t UnsizedType>, result: &UnsizedType) -> String {
    let params: Vec<String> = params.map(spelled).collect();
    let bar = name.ends_with("_lpdf") || name.ends_with("_lpmf");
    let params = match params.split_first() {
        Some((first, rest)) if bar && !rest.is_empty() => format!("{first} | {}", rest.join(", ")),
        _ => params.join(", "),
    };
    format!("{} {name}({params})", spelled(result))
}

/// What Stan's library says of a function.
#[derive(Clone, Debug)]
pub struct LibraryFunction {
    /// Signatures, the plainest first, and not more than a person reads.
    pub signatures: Vec<String>,
    /// How many there are.
    pub count: usize,
    /// Whether a run that comes to it is refused: whatever it is given, or for some of its signatures.
    pub lacking: bool,
}

/// The most signatures of one function that are told.
const MOST_TOLD: usize = 12;

/// What Stan's library says of a function; `None` where it has none of this name. Functions that take functions with any
/// further arguments have no signatures.
#[must_use]
pub fn library_function(name: &str) -> Option<LibraryFunction> {
    let variadic = super::variadic::is_special(name);
    if !library().has(name) && !variadic {
        return None;
    }
    let mut all = library().all(name);
    let levels = |ty: &Type| match ty {
        Type::Value(ty) => unwound(ty).1,
        _ => 0,
    };
    all.sort_by_key(|f| f.params.iter().map(|param| levels(&param.ty)).sum::<usize>());
    let mut lacking = all.is_empty() && crate::stan::lacking::lacks(name, &[]);
    let (mut signatures, count) = (Vec::new(), all.len());
    for function in all {
        let types: Option<Vec<UnsizedType>> = function.params.iter().map(|p| p.ty.value().cloned()).collect();
        lacking |= types.as_ref().is_some_and(|types| crate::stan::lacking::lacks(name, types));
        if let (true, Some(types), Some(result)) = (signatures.len() < MOST_TOLD, types, &function.result) {
            signatures.push(signature(name, types.iter(), result));
        }
    }
    Some(LibraryFunction { signatures, count, lacking })
}

/// The names of all functions of Stan's library, sorted.
#[must_use]
pub fn library_names() -> Vec<&'static str> {
    let mut names: Vec<&str> = library().names().chain(super::variadic::names()).collect();
    names.sort_unstable();
    names.dedup();
    names
}
