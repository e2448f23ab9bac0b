//! Derivatives that are written by hand: `derivative of f { forward(x, dx) { … } reverse(x, dy) { … } }`. Each rule is
//! checked as a function whose signature follows from that of `f`.

use std::sync::Arc;

use crate::base::{Diagnostic, Span};
use crate::hir::{FnId, Rules, Ty};
use crate::syntax::ast::{self, ItemKind};

use super::context::{Checker, Def, FnDef, ParamSignature, Signature};
use super::modules::ModuleId;
use super::names::closest;

/// Which way a rule goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    Forward,
    Reverse,
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Reverse => "reverse",
        }
    }
}

/// A rule whose signature is not known yet.
pub(super) struct RuleDef {
    target: ast::Name,
    module: ModuleId,
    direction: Direction,
    params: Vec<ast::Name>,
    /// The function that it becomes.
    function: FnId,
    /// The kind in its declaration.
    span: Span,
}

impl Checker<'_> {
    /// Gives each rule of the item its function.
    pub(super) fn declare_rules(&mut self, module: ModuleId, index: usize, item: &ast::Item) {
        let ItemKind::Derivative(decl) = &item.kind else {
            return;
        };
        if item.public {
            let error = Diagnostic::error("E0909", "a derivative is not `pub`", item.span, "it goes with its function");
            self.report(error.with_help("remove `pub`"));
        }
        if decl.rules.is_empty() {
            let message = format!("the derivative of `{}` has no rule", decl.target.text);
            let error = Diagnostic::error("E0910", message, decl.target.span, "neither `forward` nor `reverse`");
            self.report(error.with_help("write `forward(x, dx) { … }`, `reverse(x, dy) { … }` or both"));
        }
        let mut seen: Vec<(Direction, Span)> = Vec::new();
        for (i, rule) in decl.rules.iter().enumerate() {
            let direction = match &*rule.kind.text {
                "forward" => Direction::Forward,
                "reverse" => Direction::Reverse,
                other => {
                    let error = Diagnostic::error(
                        "E0910",
                        format!("a derivative has no rule `{other}`"),
                        rule.kind.span,
                        "neither `forward` nor `reverse`",
                    );
                    let guess = closest(other, ["forward", "reverse"].into_iter());
                    self.report(match guess {
                        Some(guess) => error.with_help(format!("did you mean `{guess}`?")),
                        None => error.with_help("write `forward(x, dx) { … }` or `reverse(x, dy) { … }`"),
                    });
                    continue;
                }
            };
            if let Some((_, first)) = seen.iter().find(|(d, _)| *d == direction) {
                let message = format!("the rule `{}` stands here twice", direction.name());
                let error = Diagnostic::error("E0910", message, rule.kind.span, "again here");
                self.report(error.with_label(*first, "first here"));
                continue;
            }
            seen.push((direction, rule.kind.span));
            let function = self.fns.push(FnDef {
                name: format!("{} of {}", direction.name(), decl.target.text),
                module,
                item: index,
                rule: Some(i),
                signature: None,
                elementwise: false,
                sum: false,
                recompute: false,
                instance: false,
                used: !self.modules[module].std || module == ModuleId(0),
                public: false,
                span: rule.kind.span,
                checked: None,
            });
            self.rule_defs.push(RuleDef {
                target: decl.target.clone(),
                module,
                direction,
                params: rule.params.clone(),
                function,
                span: rule.kind.span,
            });
        }
    }

    /// Finds the signatures of all rules, once those of functions are known.
    pub(super) fn resolve_rules(&mut self) {
        let mut targets: Vec<(FnId, Span)> = Vec::new();
        for rule in std::mem::take(&mut self.rule_defs) {
            let Some(target) = self.rule_target(&rule) else {
                continue;
            };
            if let Some((_, first)) =
                targets.iter().find(|(id, span)| *id == target && *span != rule.target.span).copied()
            {
                let message = format!("the derivative of `{}` is defined twice", rule.target.text);
                let error = Diagnostic::error("E0909", message, rule.target.span, "defined again here");
                self.report(error.with_label(first, "first defined here"));
                continue;
            }
            targets.push((target, rule.target.span));
            let signature = self.rule_signature(&rule, target);
            self.fns[rule.function].signature = signature.map(Arc::new);
            let rules: &mut Rules = self.rules.entry(target).or_default();
            match rule.direction {
                Direction::Forward => rules.forward = Some(rule.function),
                Direction::Reverse => rules.reverse = Some(rule.function),
            }
        }
    }

    fn rule_target(&mut self, rule: &RuleDef) -> Option<FnId> {
        let name = &rule.target.text;
        let module = &self.modules[rule.module];
        let (message, label) = match module.names.get(name).map(|item| item.def) {
            Some(Def::Fn(id)) => {
                self.means(&rule.target, self.fns[id].span);
                return Some(id);
            }
            Some(_) => (format!("`{name}` is no function"), "no function"),
            None if module.incomplete => return None,
            None => (format!("there is no function `{name}` in this file"), "unknown function"),
        };
        let names = module.names.iter().filter(|(_, item)| matches!(item.def, Def::Fn(_)));
        let guess = closest(name, names.map(|(name, _)| &**name)).map(|guess| format!("did you mean `{guess}`?"));
        let error = Diagnostic::error("E0909", message, rule.target.span, label);
        let help = guess.unwrap_or_else(|| "a derivative stands in the file of its function".to_owned());
        self.report(error.with_help(help));
        None
    }

    /// The signature that a rule has by that of its function.
    fn rule_signature(&mut self, rule: &RuleDef, target: FnId) -> Option<Signature> {
        let signature = self.fns[target].signature.clone()?;
        let real = self.real_params(rule, target, &signature)?;
        let mut params = signature.params.clone();
        let extra: Vec<(String, Ty)> = match rule.direction {
            Direction::Forward => {
                let tangent = |i: &usize| (format!("d{}", params[*i].name.text), params[*i].ty.clone());
                real.iter().map(tangent).collect()
            }
            Direction::Reverse => vec![("dy".to_owned(), signature.ret.clone())],
        };
        if rule.params.len() != params.len() + extra.len() {
            let mut names: Vec<&str> = params.iter().map(|p| &*p.name.text).collect();
            names.extend(extra.iter().map(|(name, _)| name.as_str()));
            let kind = rule.direction.name();
            let message = format!("`{kind}` of `{}` takes {}", rule.target.text, super::call::count(names.len()));
            let error = Diagnostic::error("E0911", message, rule.span, format!("{} here", rule.params.len()));
            let error = error.with_label(self.fns[target].span, "the function is declared here");
            self.report(error.with_help(format!("write `{kind}({}) {{ … }}`", names.join(", "))));
            return None;
        }
        self.distinct(rule.params.iter().filter(|n| &*n.text != "_"), "parameter");
        let ret = match rule.direction {
            Direction::Forward => signature.ret.clone(),
            Direction::Reverse => {
                let mut types: Vec<Ty> = real.iter().map(|i| params[*i].ty.clone()).collect();
                if types.len() == 1 { types.remove(0) } else { Ty::Tuple(types) }
            }
        };
        params.extend(extra.into_iter().zip(&rule.params).map(|((_, ty), name)| ParamSignature {
            name: name.clone(),
            ty,
            shared: false,
            of_lanes: false,
            mutable: false,
        }));
        for (param, name) in params.iter_mut().zip(&rule.params) {
            param.name = name.clone();
            param.mutable = false;
        }
        Some(Signature {
            dims: signature.dims.clone(),
            declared: signature.declared.clone(),
            bounds: signature.bounds.clone(),
            params,
            ret,
        })
    }

    /// Positions of the parameters that have tangents, or what keeps the function from having a derivative by hand.
    fn real_params(&mut self, rule: &RuleDef, target: FnId, signature: &Signature) -> Option<Vec<usize>> {
        let mut real = Vec::new();
        let mut why = None;
        if self.fns[target].elementwise {
            why = Some("it is `@elementwise`: write the derivative of a function that calls it".to_owned());
        }
        for (i, param) in signature.params.iter().enumerate() {
            let name = &param.name.text;
            // A function is passed to the rule as it is; what it captured is a constant.
            if matches!(param.ty, Ty::Fn(..)) || param.shared || !self.has_real(&param.ty) {
                continue;
            } else if let Some((path, dtype)) = self.non_real(&param.ty, name) {
                why = Some(format!("`{name}` mixes reals with others: `{path}` is {dtype}"));
            } else {
                real.push(i);
            }
        }
        if !self.has_real(&signature.ret) {
            why = Some("it gives no reals".to_owned());
        } else if self.non_real(&signature.ret, "").is_some() {
            why = Some("its result mixes reals with others".to_owned());
        } else if real.is_empty() && why.is_none() {
            why = Some("it has no real parameter that varies".to_owned());
        }
        let Some(why) = why else {
            return Some(real);
        };
        let message = format!("`{}` cannot have a derivative by hand: {why}", rule.target.text);
        let error = Diagnostic::error("E0912", message, rule.target.span, "of this function");
        self.report(error.with_label(self.fns[target].span, "the function is declared here"));
        None
    }

    /// Whether there is a real in values of the type.
    pub(super) fn has_real(&self, ty: &Ty) -> bool {
        use crate::types::DType;
        match ty {
            Ty::Scalar(dtype) | Ty::Array(dtype, _) => *dtype == DType::Real,
            Ty::Tuple(parts) => parts.iter().any(|p| self.has_real(p)),
            Ty::Struct(id, _) => {
                self.structs[*id].fields.iter().any(|(_, ty)| ty.as_ref().is_some_and(|ty| self.has_real(ty)))
            }
            Ty::Fn(..) | Ty::Never => false,
        }
    }
}
