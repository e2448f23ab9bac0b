//! Statements.

use crate::base::{Diagnostic, Span};
use crate::stan::syntax::ast::{Expr, Name, Printable, Stmt, StmtKind, UnsizedType};

use super::BlockName;
use super::context::Checker;
use super::resolve::Value;
use super::scope::Local;
use super::types::{Level, Type, promotion, spelled};

impl Checker {
    /// A statement at the top of a block: what it declares is seen in the blocks below.
    pub(super) fn top_stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Declare { ty, variables } => {
                let global = self.at.block != BlockName::Model;
                self.declare(ty, variables, stmt.span, global);
            }
            _ => self.stmt(stmt),
        }
    }

    /// Statements of a block in braces: what they declare ends with it.
    pub(super) fn stmts(&mut self, stmts: &[Stmt]) {
        let mark = self.scope.mark();
        for stmt in stmts {
            self.stmt(stmt);
        }
        self.scope.leave(mark);
        self.warn_unreachable(stmts);
    }

    fn alone(&mut self, stmt: &Stmt) {
        let mark = self.scope.mark();
        self.stmt(stmt);
        self.scope.leave(mark);
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Declare { ty, variables } => self.declare(ty, variables, span, false),
            StmtKind::Assign { place, op, value } => self.assign(place, *op, value, span),
            StmtKind::Call { name, args } => self.call_stmt(name, args, span),
            StmtKind::Target(value) => self.add_target(value, span),
            StmtKind::Jacobian(value) => self.add_jacobian(value, span),
            StmtKind::Tilde { value, distribution, args, truncation } => {
                self.tilde(value, distribution, args, truncation.as_ref(), span);
            }
            StmtKind::Break => self.leave_loop("break", span),
            StmtKind::Continue => self.leave_loop("continue", span),
            StmtKind::Return(value) => self.return_stmt(value.as_ref(), span),
            StmtKind::Print(parts) | StmtKind::Reject(parts) | StmtKind::FatalError(parts) => self.printed(parts),
            StmtKind::Skip | StmtKind::Error => {}
            StmtKind::If { condition, then, otherwise } => {
                self.int(condition, "the condition of `if`");
                self.alone(then);
                if let Some(otherwise) = otherwise {
                    self.alone(otherwise);
                }
            }
            StmtKind::While { condition, body } => {
                self.int(condition, "the condition of `while`");
                self.loop_body(body);
            }
            StmtKind::For { var, from, to, body } => {
                self.int(from, "the first value of a loop");
                self.int(to, "the last value of a loop");
                self.loop_of(var, Some(UnsizedType::Int), self.at.block, body);
            }
            StmtKind::ForEach { var, over, body } => {
                let walked = self.walked(over);
                // Of data its elements are data.
                let is_data = walked.as_ref().is_some_and(|(_, level)| level.is_data());
                let block = if is_data { BlockName::Data } else { self.at.block };
                self.loop_of(var, walked.map(|(ty, _)| ty), block, body);
            }
            StmtKind::Profile { body, .. } | StmtKind::Block(body) => self.stmts(body),
        }
    }

    fn loop_body(&mut self, body: &Stmt) {
        self.at.loops += 1;
        self.alone(body);
        self.at.loops -= 1;
    }

    /// A loop whose variable is as one of a block.
    fn loop_of(&mut self, var: &Name, ty: Option<UnsizedType>, block: BlockName, body: &Stmt) {
        self.check_name(var);
        let mark = self.scope.mark();
        if self.is_fresh(var) {
            let local = Local { ty, block, global: false, fixed: Some("the variable of a loop"), at: var.span };
            self.scope.declare(&var.text, local);
            self.means(var);
        }
        self.loop_body(body);
        self.scope.leave(mark);
    }

    /// The elements that `for (x in xs)` walks.
    fn walked(&mut self, over: &Expr) -> Option<(UnsizedType, Level)> {
        match self.value(over)? {
            (UnsizedType::Array(element), level) => Some((*element, level)),
            (UnsizedType::Vector | UnsizedType::RowVector | UnsizedType::Matrix, level) => {
                Some((UnsizedType::Real, level))
            }
            (ty, _) => {
                let message = format!("a loop walks an array, a vector or a matrix, but this is {}", spelled(&ty));
                self.error("E2213", message, over.span, format!("{} here", spelled(&ty)))
            }
        }
    }

    fn leave_loop(&mut self, word: &str, span: Span) {
        if self.at.loops == 0 {
            self.error::<()>("E2407", format!("`{word}` outside a loop"), span, "there is no loop around it");
        }
    }

    fn add_target(&mut self, value: &Expr, span: Span) {
        self.value(value);
        if !self.at.has_target() {
            let message = "`target +=` outside `model` and functions that end in `_lp`";
            self.error::<()>("E2401", message, span, "here is no log density to add to");
        }
    }

    fn add_jacobian(&mut self, value: &Expr, span: Span) {
        self.value(value);
        if !self.at.has_jacobian() {
            let message = "`jacobian +=` outside `transformed parameters` and functions that end in `_jacobian`";
            self.error::<()>("E2402", message, span, "here is no Jacobian to add to");
        }
    }

    fn printed(&mut self, parts: &[Printable]) {
        for part in parts {
            if let Printable::Value(value) = part {
                self.value(value);
            }
        }
    }

    fn return_stmt(&mut self, value: Option<&Expr>, span: Span) {
        let given = value.map(|value| (value.span, self.value(value)));
        let result = self.at.function.as_ref().map(|function| function.result.clone());
        let error = match (result, given) {
            (None, _) => Diagnostic::error("E2308", "`return` outside a function", span, "nothing is returned here"),
            (Some(None), None) => return,
            (Some(None), Some((at, _))) => {
                Diagnostic::error("E2308", "a `void` function returns a value", at, "it gives nothing")
                    .with_help("write `return;`, or a type in the place of `void`")
            }
            (Some(Some(wanted)), None) => {
                let message = format!("the function returns {}, but nothing is returned", spelled(&wanted));
                Diagnostic::error("E2308", message, span, "a value is wanted here")
            }
            (Some(Some(_)), Some((_, None))) => return,
            (Some(Some(wanted)), Some((_, Some((ty, _))))) if promotion(&wanted, &ty).is_some() => return,
            (Some(Some(wanted)), Some((at, Some((ty, _))))) => {
                let message = format!("the function returns {}, but this is {}", spelled(&wanted), spelled(&ty));
                Diagnostic::error("E2212", message, at, format!("{} here", spelled(&ty)))
            }
        };
        self.report_in(error, span);
    }

    /// Whether a variable may be declared with this name. Functions may have it.
    pub(super) fn is_fresh(&mut self, name: &Name) -> bool {
        if super::context::is_unnormalized(&name.text) {
            let message = format!("`{}` cannot be a variable", name.text);
            self.error::<()>("E2104", message, name.span, "`_lupdf` and `_lupmf` end the names of functions");
            return false;
        }
        let Some(local) = self.scope.variable(&name.text) else { return true };
        let at = local.at;
        let message = format!("`{}` is declared twice", name.text);
        let error = Diagnostic::error("E2103", message, name.span, "the name is taken");
        self.report(error.with_label(at, "it is declared here first"));
        false
    }

    /// A value that is an int or a real.
    pub(super) fn number(&mut self, expr: &Expr, what: &str) -> Option<Value> {
        match self.value(expr)? {
            (ty @ (UnsizedType::Int | UnsizedType::Real), level) => Some(Value { ty: Type::Value(ty), level }),
            (ty, _) => {
                let message = format!("{what} must be int or real, but is {}", spelled(&ty));
                self.error("E2205", message, expr.span, format!("{} here", spelled(&ty)))
            }
        }
    }
}
