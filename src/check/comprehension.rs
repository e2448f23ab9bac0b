//! Comprehensions and reductions.

use crate::base::{Diagnostic, Span};
use crate::hir::{Clause, Dim, Expr, ExprKind, LocalId, Reduction, Ty, walk};
use crate::syntax::ast;
use crate::types::DType;

use super::body::{Body, FrameKind, Origin, to_real};
use super::names::closest;
use super::types::{elements, of_shape};

impl Body<'_, '_> {
    /// `[body for …]`
    pub(super) fn comprehension(&mut self, body: &ast::Expr, clauses: &[ast::Clause], span: Span) -> Option<Expr> {
        let (clauses, body) = self.framed(FrameKind::Comprehension, span, |inner| {
            let clauses = inner.clauses(clauses);
            (clauses, inner.operand(body))
        });
        let (clauses, body) = (clauses?, body?);
        let mut lengths = Vec::new();
        let mut ok = true;
        for (i, clause) in clauses.iter().enumerate() {
            let earlier: Vec<LocalId> = clauses[..i].iter().map(|c| c.var).collect();
            match self.clause_length(clause, &earlier) {
                Some(length) => lengths.push(length),
                None => ok = false,
            }
        }
        let Some((dtype, inner)) = elements(&body.ty) else {
            let found = self.show(&body.ty);
            let error = Diagnostic::error(
                "E0607",
                format!("a comprehension cannot hold {found}"),
                body.span,
                "its elements are scalars or arrays",
            );
            self.cx.report(error.with_help("keep one array for each field"));
            return None;
        };
        if !ok {
            return None;
        }
        lengths.extend_from_slice(inner);
        Some(Expr {
            ty: of_shape(dtype, &lengths),
            kind: ExprKind::Comprehension { clauses, body: Box::new(body) },
            span,
        })
    }

    /// Binds the variables of clauses, one after the other.
    fn clauses(&mut self, clauses: &[ast::Clause]) -> Option<Vec<Clause>> {
        let mut checked = Vec::new();
        for clause in clauses {
            let start = self.clause_bound(&clause.start);
            let end = self.clause_bound(&clause.end);
            let int = Ty::Scalar(DType::Int);
            let var = self.declare(&clause.var, int, Origin::Clause, false);
            checked.push(start.zip(end).map(|(start, end)| Clause { var, start, end }));
        }
        checked.into_iter().collect()
    }

    fn clause_bound(&mut self, bound: &ast::Expr) -> Option<Expr> {
        let bound = self.operand(bound)?;
        if bound.ty == Ty::Scalar(DType::Int) {
            return Some(bound);
        }
        let found = self.show(&bound.ty);
        let error = Diagnostic::error(
            "E0608",
            format!("the bounds of an index are ints, found {found}"),
            bound.span,
            format!("this is {found}"),
        );
        self.cx.report(error);
        None
    }

    fn clause_length(&mut self, clause: &Clause, earlier: &[LocalId]) -> Option<Dim> {
        for bound in [&clause.start, &clause.end] {
            if let Some(var) = earlier.iter().find(|var| walk::mentions(bound, **var)) {
                let name = &self.locals[*var].name;
                let error = Diagnostic::error(
                    "E0609",
                    format!("this bound uses the index `{name}`: the result is not rectangular"),
                    bound.span,
                    "depends on another index",
                );
                self.cx.report(error.with_help("only reductions may do this: `sum(… for i in 0..n, j in 0..i)`"));
                return None;
            }
        }
        let length = self.length(&clause.start, &clause.end);
        match length {
            Some(length) if length.as_constant().is_some_and(|n| n < 0) => {
                let error = Diagnostic::error(
                    "E0221",
                    "an index cannot run backwards",
                    clause.start.span.to(clause.end.span),
                    format!("its length is {}", length.constant),
                );
                self.cx.report(error);
                None
            }
            Some(length) => Some(length),
            None => {
                let error = Diagnostic::error(
                    "E0601",
                    "the length of a comprehension must be known",
                    clause.start.span.to(clause.end.span),
                    "its length depends on the lane",
                );
                self.cx.report(error.with_help(
                    "bounds are made of numbers, consts and dimensions; reductions such as `sum(…)` may have any",
                ));
                None
            }
        }
    }

    /// `name(body for …)`
    pub(super) fn reduction(
        &mut self,
        name: &ast::Name,
        body: &ast::Expr,
        clauses: &[ast::Clause],
        span: Span,
    ) -> Option<Expr> {
        let op = Reduction::ALL.into_iter().find(|op| op.name() == &*name.text);
        if op.is_some() {
            self.cx.means_builtin(name);
        } else {
            let names: Vec<&str> = Reduction::ALL.into_iter().map(Reduction::name).collect();
            let help = closest(&name.text, names.iter().copied()).map_or_else(
                || format!("the reductions are {}", super::structs::quoted(&names)),
                |guess| format!("did you mean `{guess}`?"),
            );
            let error = Diagnostic::error(
                "E0605",
                format!("there is no reduction `{}`", name.text),
                name.span,
                "unknown reduction",
            );
            self.cx.report(error.with_help(help));
        }
        let (clauses, body) = self.framed(FrameKind::Comprehension, span, |inner| {
            let clauses = inner.clauses(clauses);
            (clauses, inner.operand(body))
        });
        let (op, clauses, body) = (op?, clauses?, body?);
        let body = self.reduced(op, name, body)?;
        Some(Expr { ty: body.ty.clone(), kind: ExprKind::Reduction { op, clauses, body: Box::new(body) }, span })
    }

    /// The element of a reduction, promoted.
    fn reduced(&mut self, op: Reduction, name: &ast::Name, body: Expr) -> Option<Expr> {
        let wanted = match op {
            Reduction::Any | Reduction::All => "bools",
            Reduction::Sum | Reduction::Prod | Reduction::Min | Reduction::Max => "ints or reals",
            Reduction::Mean | Reduction::LogSumExp => "reals",
        };
        match (wanted, &body.ty) {
            ("bools", Ty::Scalar(DType::Bool))
            | ("ints or reals", Ty::Scalar(DType::Int | DType::Real))
            | ("reals", Ty::Scalar(DType::Real)) => return Some(body),
            ("reals", Ty::Scalar(DType::Int)) => return Some(to_real(body)),
            _ => {}
        }
        let found = self.show(&body.ty);
        let error = Diagnostic::error(
            "E0606",
            format!("`{}` reduces {wanted}, found {found}", name.text),
            body.span,
            format!("this is {found}"),
        );
        let error = match body.ty {
            Ty::Array(..) => error.with_help("index it, with one more `for` clause"),
            _ => error,
        };
        self.cx.report(error);
        None
    }
}
