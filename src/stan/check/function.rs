//! The functions of a program.

use std::sync::Arc;

use crate::base::Diagnostic;
use crate::stan::syntax::ast::{Function, UnsizedType};

use super::BlockName;
use super::call::is_conditioning;
use super::context::{Checker, Enclosing, Position, is_unnormalized};
use super::resolve::Candidate;
use super::returns::returns;
use super::scope::Local;
use super::signatures::library;
use super::types::{FunctionType, Parameter, Suffix, Type, is_discrete, spelled};
use super::variadic::is_special;

/// The type of a function as calls see it.
fn type_of(item: &Function) -> FunctionType {
    let param =
        |p: &crate::stan::syntax::ast::Param| Parameter { data_only: p.data_only, ty: Type::Value(p.ty.clone()) };
    FunctionType {
        params: item.params.iter().map(param).collect(),
        result: item.result.clone(),
        suffix: Suffix::of(&item.name.text),
    }
}

impl Checker {
    /// Makes all functions known, in whatever order they stand.
    pub(super) fn declare_functions(&mut self, items: &[Function]) {
        self.at = Position::of(BlockName::Functions);
        for (index, item) in items.iter().enumerate() {
            let function = Arc::new(type_of(item));
            self.declare_function(items, index, &function);
        }
        for (index, item) in items.iter().enumerate().filter(|(_, item)| item.body.is_none()) {
            let left = self.scope.functions(&item.name.text).iter().any(|c| c.user.is_some_and(|(at, _)| at == index));
            if left {
                let message = format!("`{}` is declared, but not defined", item.name.text);
                let error = Diagnostic::error("E2303", message, item.name.span, "this function has no body");
                self.report(error.with_help("define it: the same line, with a body in braces"));
            }
        }
    }

    fn declare_function(&mut self, items: &[Function], index: usize, function: &Arc<FunctionType>) {
        let item = &items[index];
        let name = &item.name;
        let own = self.scope.functions(&name.text);
        let ahead =
            own.iter().position(|c| c.function == *function && c.user.is_some_and(|(at, _)| items[at].body.is_none()));
        let mut known = true;
        match ahead {
            Some(at) if item.body.is_some() => {
                self.scope.functions_mut(&name.text).remove(at);
            }
            Some(_) => {
                let message = format!("`{}` is declared twice", name.text);
                self.report_in(Diagnostic::error("E2302", message, name.span, "its definition is wanted"), item.span);
                known = false;
            }
            None => known = self.is_new_signature(item, function),
        }
        if is_special(&name.text) {
            let message = format!("`{}` is a function of Stan's library", name.text);
            self.error::<()>("E2309", message, name.span, "it takes any arguments and cannot have another meaning");
        } else if is_unnormalized(&name.text) {
            let message = format!("a function cannot be named `{}`", name.text);
            let error = Diagnostic::error("E2309", message, name.span, "it is made of the one that ends in `_lpdf`");
            self.report(error.with_help("define `_lpdf` or `_lpmf`: Stan drops the constants"));
        } else if known {
            let candidate = Candidate { function: function.clone(), user: Some((index, name.span)) };
            self.scope.functions_mut(&name.text).insert(0, candidate);
        }
    }

    /// No other function of the name has the same types of parameters.
    fn is_new_signature(&mut self, item: &Function, function: &Arc<FunctionType>) -> bool {
        let name = &item.name;
        let types: Vec<Type> = function.params.iter().map(|p| p.ty.clone()).collect();
        let same = |c: &&Candidate| c.function.params.iter().map(|p| &p.ty).eq(types.iter());
        let own = self.scope.functions(&name.text).iter().find(same).cloned();
        let of_library = || library().exact(&name.text, &types);
        let (result, user) = match own {
            Some(candidate) => (candidate.function.result.clone(), candidate.user),
            None => match of_library() {
                Some(function) => (function.result, None),
                None => return true,
            },
        };
        let spelled = |ty: &Option<UnsizedType>| ty.as_ref().map_or("void".to_owned(), spelled);
        let whose = if user.is_some() { "" } else { " in Stan's library" };
        let message = if result == function.result {
            format!("`{}` is there{whose} with these parameters", name.text)
        } else {
            let (a, b) = (spelled(&function.result), spelled(&result));
            format!("`{}` gives {a}, but{whose} {b} with the same parameters", name.text)
        };
        let error = Diagnostic::error("E2302", message, name.span, "calls could not tell them apart");
        let error = match user {
            Some((_, at)) => error.with_label(at, "the other one"),
            None => error,
        };
        self.report_in(error.with_help("give it another name, or other parameters"), item.span);
        false
    }

    /// Checks what the functions are and do.
    pub(super) fn functions(&mut self, items: &[Function]) {
        for item in items {
            self.function(item);
        }
    }

    fn function(&mut self, item: &Function) {
        self.check_name(&item.name);
        self.check_density(item);
        self.at = Position::of(BlockName::Functions);
        let suffix = Suffix::of(&item.name.text);
        self.at.function = Some(Enclosing { suffix, result: item.result.clone() });
        let mark = self.scope.mark();
        for param in &item.params {
            self.check_name(&param.name);
            if let Some(first) = self.scope.variable(&param.name.text) {
                let first = first.at;
                let message = format!("two parameters are named `{}`", param.name.text);
                let error = Diagnostic::error("E2304", message, param.name.span, "the name is taken");
                self.report_in(error.with_label(first, "here first"), item.span);
            } else if self.is_fresh(&param.name) {
                let block = if param.data_only { BlockName::Data } else { BlockName::Parameters };
                let fixed = Some("a parameter of a function");
                let local = Local { ty: Some(param.ty.clone()), block, global: false, fixed, at: param.name.span };
                self.scope.declare(&param.name.text, local);
            }
        }
        if let Some(body) = &item.body {
            self.stmts(body);
            if item.result.is_some() && !returns(body) {
                let message = format!("`{}` does not return on every way", item.name.text);
                let error = Diagnostic::error("E2301", message, item.name.span, "some way leads to its end");
                let help = "end every arm of `if` by `return …;` or `reject(…);`";
                self.report_in(error.with_help(help), item.span);
            }
        }
        self.scope.leave(mark);
        self.at = Position::of(BlockName::Functions);
    }

    /// Functions of distributions give real, and their first parameter is what is distributed.
    fn check_density(&mut self, item: &Function) {
        let name = &item.name;
        if is_conditioning(&name.text) && item.result != Some(UnsizedType::Real) {
            let found = item.result.as_ref().map_or("void".to_owned(), spelled);
            let message = format!("`{}` must give real, but gives {found}", name.text);
            let label = "its name says that it is a log probability";
            self.report_in(Diagnostic::error("E2305", message, name.span, label), item.span);
        }
        let first = item.params.first().map(|p| &p.ty);
        let (wanted, discrete) = match Suffix::of(&name.text) {
            Suffix::Density => ("real", false),
            Suffix::Mass => ("int", true),
            _ => return,
        };
        if is_unnormalized(&name.text) || first.is_some_and(|ty| is_discrete(ty) == discrete) {
            return;
        }
        let found = first.map_or("missing".to_owned(), spelled);
        let message = format!("the first parameter of `{}` must be of {wanted}, but is {found}", name.text);
        let span = item.params.first().map_or(name.span, |p| p.span);
        let error = Diagnostic::error("E2305", message, span, "this is what is distributed");
        let other = if discrete { "_lpdf" } else { "_lpmf" };
        self.report_in(error.with_help(format!("functions of other values end in `{other}`")), item.span);
    }
}
