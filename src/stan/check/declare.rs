//! Declarations of variables.

use crate::base::{Diagnostic, Span};
use crate::stan::syntax::ast::{Constraint, Expr, SizedKind, SizedType, UnsizedType, Variable};

use super::BlockName;
use super::context::Checker;
use super::scope::Local;
use super::types::{has_int, is_complex, spelled, unwound, wound};
use super::warnings::names_in;

impl Checker {
    /// `real<lower = 0> x, y = 1;`
    pub(super) fn declare(&mut self, ty: &SizedType, variables: &[Variable], span: Span, global: bool) {
        self.at.in_size = global;
        self.sizes(ty);
        for dim in variables.iter().flat_map(|variable| &variable.old_dims) {
            self.int(dim, "the size of an array");
        }
        self.at.in_size = false;
        let declared = unsized_type(ty);
        self.constraints(ty, &declared, global);
        for variable in variables {
            self.variable(&declared, variable, span, global);
        }
        self.no_int_parameters(&declared, ty.span, span, global);
    }

    fn variable(&mut self, declared: &UnsizedType, variable: &Variable, span: Span, global: bool) {
        let name = &variable.name;
        self.check_name(name);
        let ty = wound(declared.clone(), variable.old_dims.len());
        let fresh = self.is_fresh(name);
        if fresh {
            let block = self.at.block;
            let local = Local { ty: Some(ty.clone()), block, global, fixed: None, at: name.span };
            self.scope.declare(&name.text, local);
            self.means(name);
        }
        let Some(value) = &variable.value else { return };
        self.warn_own_value(variable, value, span);
        if let Some((found, _)) = self.value(value) {
            self.stores(&ty, (&found, value.span), name.span, span);
        }
    }

    fn warn_own_value(&mut self, variable: &Variable, value: &Expr, span: Span) {
        let mut names = Vec::new();
        names_in(value, &mut names);
        if let Some(own) = names.into_iter().find(|name| name.text == variable.name.text) {
            let message = format!("`{}` is read before it has a value", own.text);
            let warning = Diagnostic::warning("W2105", message, own.span, "it is declared by this very line");
            self.report(warning.with_label(span, "this declares it"));
        }
    }

    fn sizes(&mut self, ty: &SizedType) {
        match &ty.kind {
            SizedKind::Int | SizedKind::Real | SizedKind::Complex => {}
            SizedKind::Vector(n) | SizedKind::RowVector(n) => self.size(n, "the size of a vector"),
            SizedKind::ComplexVector(n) | SizedKind::ComplexRowVector(n) => self.size(n, "the size of a vector"),
            SizedKind::Matrix(rows, columns) | SizedKind::ComplexMatrix(rows, columns) => {
                self.size(rows, "the number of rows");
                // `cov_matrix[K]` has the same expression twice.
                if rows.span != columns.span {
                    self.size(columns, "the number of columns");
                }
            }
            SizedKind::Array { dims, element } => {
                dims.iter().for_each(|dim| self.size(dim, "the size of an array"));
                self.sizes(element);
            }
            SizedKind::Tuple(parts) => parts.iter().for_each(|part| self.sizes(part)),
        }
    }

    fn size(&mut self, expr: &Expr, what: &str) {
        self.int(expr, what);
    }

    /// The constraints of a type whose values are of type `whole`: bounds are scalars, or have that type.
    fn constraints(&mut self, ty: &SizedType, whole: &UnsizedType, global: bool) {
        match &ty.kind {
            SizedKind::Array { element, .. } => return self.constraints(element, whole, global),
            SizedKind::Tuple(parts) => {
                for part in parts {
                    self.constraints(part, &unsized_type(part), global);
                }
                return;
            }
            _ => {}
        }
        let bounds = bounds(&ty.constraint);
        let mut real = false;
        for (bound, what) in &bounds {
            real |= self.bound(bound, what, whole) == Some(UnsizedType::Real);
        }
        let limits = matches!(ty.constraint, Constraint::Lower(_) | Constraint::Upper(_) | Constraint::LowerUpper(..));
        if global && *whole == UnsizedType::Int && limits && real {
            let error = Diagnostic::error("E2215", "the bounds of an int must be int", ty.span, "one is real");
            self.report(error.with_help("write the bound without a decimal point"));
        }
        if is_complex(whole) && !matches!(ty.constraint, Constraint::None) {
            let message = format!("{} has no constraints", spelled(unwound(whole).0));
            self.error::<()>("E2215", message, ty.span, "complex numbers have no order");
        }
    }

    fn bound(&mut self, bound: &Expr, what: &str, whole: &UnsizedType) -> Option<UnsizedType> {
        let (ty, _) = self.value(bound)?;
        if matches!(ty, UnsizedType::Int | UnsizedType::Real) || ty == *whole {
            return Some(ty);
        }
        let or = match whole {
            UnsizedType::Int | UnsizedType::Real => String::new(),
            whole => format!(" or {}", spelled(whole)),
        };
        let message = format!("{what} must be int, real{or}, but is {}", spelled(&ty));
        self.error("E2215", message, bound.span, format!("{} here", spelled(&ty)))
    }

    fn no_int_parameters(&mut self, ty: &UnsizedType, span: Span, whole: Span, global: bool) {
        let parameters = matches!(self.at.block, BlockName::Parameters | BlockName::TransformedParameters);
        if global && parameters && has_int(ty) {
            let message = format!("{} in `{}`", spelled(ty), self.at.block.text());
            let error = Diagnostic::error("E2216", message, span, "parameters are continuous");
            let help = "sum an int out of the density, or compute it in `generated quantities`";
            self.report_in(error.with_help(help), whole);
        }
    }
}

fn bounds(constraint: &Constraint) -> Vec<(&Expr, &'static str)> {
    match constraint {
        Constraint::Lower(a) => vec![(a, "the lower bound")],
        Constraint::Upper(b) => vec![(b, "the upper bound")],
        Constraint::LowerUpper(a, b) => vec![(a, "the lower bound"), (b, "the upper bound")],
        Constraint::Offset(m) => vec![(m, "the offset")],
        Constraint::Multiplier(s) => vec![(s, "the multiplier")],
        Constraint::OffsetMultiplier(m, s) => vec![(m, "the offset"), (s, "the multiplier")],
        _ => vec![],
    }
}

/// The type of the values of a declaration.
pub fn unsized_type(ty: &SizedType) -> UnsizedType {
    match &ty.kind {
        SizedKind::Int => UnsizedType::Int,
        SizedKind::Real => UnsizedType::Real,
        SizedKind::Complex => UnsizedType::Complex,
        SizedKind::Vector(_) => UnsizedType::Vector,
        SizedKind::RowVector(_) => UnsizedType::RowVector,
        SizedKind::Matrix(..) => UnsizedType::Matrix,
        SizedKind::ComplexVector(_) => UnsizedType::ComplexVector,
        SizedKind::ComplexRowVector(_) => UnsizedType::ComplexRowVector,
        SizedKind::ComplexMatrix(..) => UnsizedType::ComplexMatrix,
        SizedKind::Array { dims, element } => wound(unsized_type(element), dims.len()),
        SizedKind::Tuple(parts) => UnsizedType::Tuple(parts.iter().map(unsized_type).collect()),
    }
}
