//! Extents: sums of products of dimension parameters, and solving for the dimensions of what is called.

use std::collections::BTreeMap;

use crate::base::{Diagnostic, Id as _, IdVec, Span};
use crate::hir::{Dim, DimId, LocalId, Ty};
use crate::syntax::ast::{self, BinaryOp, ExprKind, UnaryOp};
use crate::types::{DType, Scalar};

use super::consts;
use super::context::{Checker, Def};
use super::modules::ModuleId;
use super::names::{Found, Lookup};

impl Checker<'_> {
    /// The extent that an expression in a type means.
    pub(super) fn extent(&mut self, module: ModuleId, dims: &IdVec<DimId, String>, expr: &ast::Expr) -> Option<Dim> {
        if let Some(found) = self.bounded_extent(dims, expr) {
            return found;
        }
        let dim = self.polynomial(module, dims, expr)?;
        if dim.as_constant().is_some_and(|n| n < 0) {
            let error = Diagnostic::error(
                "E0221",
                "an extent cannot be negative",
                expr.span,
                format!("this is {}", dim.constant),
            );
            self.report(error);
            return None;
        }
        Some(dim)
    }

    fn polynomial(&mut self, module: ModuleId, dims: &IdVec<DimId, String>, expr: &ast::Expr) -> Option<Dim> {
        let dim = match &expr.kind {
            ExprKind::Error => return None,
            ExprKind::Int(value) => Some(Dim::constant((*value)?)),
            ExprKind::Path(path) => return self.named_extent(module, dims, path),
            ExprKind::Unary(UnaryOp::Neg, operand) => {
                let operand = self.polynomial(module, dims, operand)?;
                Dim::constant(0).add_scaled(&operand, -1)
            }
            ExprKind::Binary(op, a, b) => {
                let a = self.polynomial(module, dims, a);
                let b = self.polynomial(module, dims, b);
                match binary(*op, &a?, &b?) {
                    Some(dim) => dim,
                    None => return self.no_extent(expr.span),
                }
            }
            _ => return self.no_extent(expr.span),
        };
        if dim.is_none() {
            self.report(Diagnostic::error("E0221", "this extent is out of range", expr.span, "larger than 64 bits"));
        }
        dim
    }

    fn no_extent(&mut self, span: Span) -> Option<Dim> {
        let error = Diagnostic::error(
            "E0117",
            "an extent is made of dimensions and numbers by `+`, `-`, `*` and whole quotients",
            span,
            "not of the form `2 * n * m + 1` or `n * (n - 1) / 2`",
        );
        self.report(error.with_help(
            "make it a dimension parameter of its own, `fn f[n, k](…)`: an array that has it tells it, or an int of this name in the data",
        ));
        None
    }

    fn named_extent(&mut self, module: ModuleId, dims: &IdVec<DimId, String>, path: &ast::Path) -> Option<Dim> {
        let name = &path.name.text;
        if path.module.is_none()
            && let Some((id, _)) = dims.iter().find(|(_, d)| ***d == **name)
        {
            self.means_dim(&path.name, id);
            return Some(Dim::param(id));
        }
        let what = match self.lookup(module, path) {
            Lookup::Found(Found::Def(Def::Const(id))) => match self.const_value(id)? {
                Scalar::Int(value) => return Some(Dim::constant(value)),
                other => format!("`{name}` is a {}, not an int", other.dtype()),
            },
            Lookup::Silent => return None,
            _ => format!("there is no dimension `{name}`"),
        };
        let error = Diagnostic::error("E0116", what, path.name.span, "not a dimension");
        let names: Vec<&str> = dims.values().map(String::as_str).collect();
        let help = super::names::closest(name, names.iter().copied()).map_or_else(
            || format!("declare it after the name: `fn f[{name}](…)`, or make it a `const`"),
            |guess| format!("did you mean `{guess}`?"),
        );
        self.report(error.with_help(help));
        None
    }
}

/// The operation on extents: `None` when the result is none, `Some(None)` when it overflows.
fn binary(op: BinaryOp, a: &Dim, b: &Dim) -> Option<Option<Dim>> {
    match (op, a.as_constant(), b.as_constant()) {
        (BinaryOp::Add, ..) => Some(a.add_scaled(b, 1)),
        (BinaryOp::Sub, ..) => Some(a.add_scaled(b, -1)),
        (BinaryOp::Mul, ..) => Some(a.product(b)),
        (op, Some(x), Some(y)) => match consts::binary(op, Scalar::Int(x), Scalar::Int(y)) {
            Ok(Scalar::Int(value)) => Some(Some(Dim::constant(value))),
            Ok(_) => None,
            Err(_) => Some(None),
        },
        (BinaryOp::Div, _, Some(k)) => a.quotient(k).map(Some),
        (BinaryOp::Pow, _, Some(k)) => (0..=MOST_POWER).contains(&k).then(|| power(a, k)),
        _ => None,
    }
}

/// The largest exponent of an extent.
const MOST_POWER: i64 = 8;

/// `dim ^ exponent` for small exponents.
pub(super) fn power(dim: &Dim, exponent: i64) -> Option<Dim> {
    if !(0..=MOST_POWER).contains(&exponent) {
        return None;
    }
    (0..exponent).try_fold(Dim::constant(1), |power, _| power.product(dim))
}

/// Finds the dimension arguments of a callee (or of a struct) from what it is given.
#[derive(Clone)]
pub(super) struct Solver {
    /// What is known: callee dimension → extent of the caller.
    solution: Vec<Option<Dim>>,
    /// Extents that must be equal: callee's form, caller's extent, and which parameter says so.
    equations: Vec<(Dim, Dim, usize)>,
}

impl Solver {
    /// No equations for `count` dimensions.
    pub(super) fn new(count: usize) -> Self {
        Self { solution: vec![None; count], equations: Vec::new() }
    }

    /// Demands that the parameter type `wanted` is `given`, but for promotions. False when the kinds of types differ;
    /// then there is no new equation.
    pub(super) fn unify(&mut self, wanted: &Ty, given: &Ty, param: usize) -> bool {
        let mark = self.equations.len();
        let fits = self.unify_parts(wanted, given, param, true);
        if !fits {
            self.equations.truncate(mark);
        }
        fits
    }

    fn unify_parts(&mut self, wanted: &Ty, given: &Ty, param: usize, promote: bool) -> bool {
        let dtypes = |a: DType, b: DType| a == b || (promote && a == DType::Real && b == DType::Int);
        match (wanted, given) {
            (_, Ty::Never) => true,
            (Ty::Scalar(a), Ty::Scalar(b)) => dtypes(*a, *b),
            (Ty::Array(a, xs), Ty::Array(b, ys)) => dtypes(*a, *b) && self.equate(xs, ys, param),
            (Ty::Struct(a, xs), Ty::Struct(b, ys)) => a == b && self.equate(xs, ys, param),
            (Ty::Tuple(xs), Ty::Tuple(ys)) => {
                xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| self.unify_parts(x, y, param, promote))
            }
            (Ty::Fn(xs, x), Ty::Fn(ys, y)) => {
                xs.len() == ys.len()
                    && xs.iter().zip(ys).all(|(x, y)| self.unify_parts(x, y, param, false))
                    && self.unify_parts(x, y, param, false)
            }
            _ => false,
        }
    }

    fn equate(&mut self, wanted: &[Dim], given: &[Dim], param: usize) -> bool {
        let pairs = wanted.iter().zip(given);
        self.equations.extend(pairs.map(|(w, g)| (w.clone(), g.clone(), param)));
        wanted.len() == given.len()
    }

    /// Solves: dimensions that stand alone first, then one unknown of an equation after another. The error is the
    /// parameter whose extents cannot be.
    pub(super) fn solve(&mut self) -> Result<(), usize> {
        let equations = self.equations.clone();
        for (wanted, given, _) in &equations {
            if let Some(id) = wanted.alone() {
                self.solution[id.index()].get_or_insert_with(|| given.clone());
            }
        }
        while self.solve_one(&equations)? {}
        for (wanted, given, param) in &equations {
            if let Some(wanted) = self.known(wanted)
                && wanted.as_ref() != Some(given)
            {
                return Err(*param);
            }
        }
        Ok(())
    }

    /// Solves one equation that has one unknown, if there is one.
    fn solve_one(&mut self, equations: &[(Dim, Dim, usize)]) -> Result<bool, usize> {
        for (wanted, given, param) in equations {
            let mut unknown = wanted.ids().filter(|id| self.solution[id.index()].is_none());
            let (Some(id), None) = (unknown.next(), unknown.next()) else {
                continue;
            };
            let value = match self.alone_with(wanted, id) {
                Some((rest, factor)) => {
                    let right =
                        given.product(&Dim::constant(wanted.divisor)).and_then(|given| given.add_scaled(&rest, -1));
                    let value = right.and_then(|right| quotient(&right, &factor));
                    if value.is_none() && factor.as_constant().is_some() {
                        return Err(*param);
                    }
                    value
                }
                None => self.guess(wanted, given, id),
            };
            if let Some(value) = value {
                self.solution[id.index()] = Some(value);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Of an extent, without its divisor, that is linear in one dimension, in which alone it is unknown: what does not have it, and
    /// what it is multiplied by, both over the dimensions of the caller. `None` when it has the dimension squared, or on overflow.
    fn alone_with(&self, wanted: &Dim, id: DimId) -> Option<(Dim, Dim)> {
        let (mut rest, mut factor) = (Dim::constant(wanted.constant), Dim::default());
        for (product, c) in &wanted.terms {
            let times = product.iter().filter(|other| **other == id).count();
            let others = product.iter().filter(|other| **other != id);
            let term = others
                .copied()
                .try_fold(Dim::constant(1), |term, other| term.product(self.solution[other.index()].as_ref()?))?;
            match times {
                0 => rest = rest.add_scaled(&term, *c)?,
                1 => factor = factor.add_scaled(&term, *c)?,
                _ => return None,
            }
        }
        Some((rest, factor))
    }

    /// The one dimension or number of the caller that makes an extent with one unknown what is given.
    fn guess(&self, wanted: &Dim, given: &Dim, id: DimId) -> Option<Dim> {
        let with = |value: Dim| {
            let mut solver = self.clone();
            solver.solution[id.index()] = Some(value);
            solver.known(wanted).flatten()
        };
        let mut fitting = given.ids().map(Dim::param).filter(|value| with(value.clone()).as_ref() == Some(given));
        if given.as_constant().is_none() {
            return fitting.next();
        }
        let of_id = with(Dim::param(id)).filter(|form| form.ids().all(|other| other == id))?;
        of_id.root(given.as_constant()?).map(Dim::constant)
    }

    /// The form over the caller's dimensions: `None` when it has unknowns, `Some(None)` when it overflows.
    fn known(&self, form: &Dim) -> Option<Option<Dim>> {
        if form.ids().any(|id| self.solution[id.index()].is_none()) {
            return None;
        }
        let args: Vec<Dim> = self.partial();
        Some(form.substitute(&args))
    }

    /// The dimension arguments; the error is the first one that is not known.
    pub(super) fn solution(&self) -> Result<Vec<Dim>, DimId> {
        let find = |(i, d): (usize, &Option<Dim>)| d.clone().ok_or(DimId(i as u32));
        self.solution.iter().enumerate().map(find).collect()
    }

    /// What is known of each dimension.
    pub(super) fn solution_parts(&self) -> &[Option<Dim>] {
        &self.solution
    }

    /// The dimension arguments as far as they are known; the others are 0.
    pub(super) fn partial(&self) -> Vec<Dim> {
        self.solution.iter().map(|d| d.clone().unwrap_or_default()).collect()
    }

    /// Whether all dimensions of the type are known.
    pub(super) fn knows(&self, ty: &Ty) -> bool {
        let all = |dims: &[Dim]| dims.iter().all(|d| self.known(d).is_some());
        match ty {
            Ty::Scalar(_) | Ty::Never => true,
            Ty::Array(_, dims) | Ty::Struct(_, dims) => all(dims),
            Ty::Tuple(parts) => parts.iter().all(|p| self.knows(p)),
            Ty::Fn(params, ret) => params.iter().all(|p| self.knows(p)) && self.knows(ret),
        }
    }
}

/// `form / factor`, when the factor is one term and it goes without a remainder.
fn quotient(form: &Dim, factor: &Dim) -> Option<Dim> {
    let mut terms = factor.all_terms().filter(|(_, c)| *c != 0);
    match (terms.next(), terms.next()) {
        (Some((product, c)), None) => form.product(&Dim::constant(factor.divisor))?.divided(c, product),
        _ => None,
    }
}

/// A local, or a field of one, whose value is not known while compiling.
pub(super) type Opaque = (LocalId, Vec<usize>);

/// An int expression: an extent plus values that are not known while compiling, each times an extent.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Linear {
    pub(super) dim: Dim,
    pub(super) opaque: BTreeMap<Opaque, Dim>,
}

impl Linear {
    pub(super) fn dim(dim: Dim) -> Self {
        Self { dim, opaque: BTreeMap::new() }
    }

    pub(super) fn opaque(value: Opaque) -> Self {
        Self { dim: Dim::constant(0), opaque: BTreeMap::from([(value, Dim::constant(1))]) }
    }

    /// `self + factor · other`; `None` on overflow.
    pub(super) fn add_scaled(&self, other: &Linear, factor: i64) -> Option<Linear> {
        let mut sum = Linear { dim: self.dim.add_scaled(&other.dim, factor)?, opaque: self.opaque.clone() };
        for (value, c) in &other.opaque {
            let entry = sum.opaque.entry(value.clone()).or_default();
            *entry = entry.add_scaled(c, factor)?;
            if *entry == Dim::default() {
                sum.opaque.remove(value);
            }
        }
        Some(sum)
    }

    /// `self · other`, when one of them is an extent; `None` on overflow, too.
    pub(super) fn product(&self, other: &Linear) -> Option<Linear> {
        let (factor, linear) = match (self.as_dim(), other.as_dim()) {
            (Some(factor), _) => (factor, other),
            (None, Some(factor)) => (factor, self),
            (None, None) => return None,
        };
        let mut product = Linear::dim(linear.dim.product(factor)?);
        for (value, c) in &linear.opaque {
            let c = c.product(factor)?;
            if c != Dim::default() {
                product.opaque.insert(value.clone(), c);
            }
        }
        Some(product)
    }

    /// The extent, if nothing else is in it.
    pub(super) fn as_dim(&self) -> Option<&Dim> {
        self.opaque.is_empty().then_some(&self.dim)
    }

    /// The number, if it is one.
    pub(super) fn as_constant(&self) -> Option<i64> {
        self.as_dim().and_then(Dim::as_constant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n() -> Dim {
        Dim::param(DimId(0))
    }

    #[test]
    fn one_unknown_of_a_linear_form_is_found() {
        let mut solver = Solver::new(1);
        let twice = Dim::constant(1).add_scaled(&n(), 2).expect("small");
        let wanted = Ty::Array(DType::Real, vec![twice]);
        let given = Ty::Array(DType::Real, vec![Dim::constant(7)]);
        assert!(solver.unify(&wanted, &given, 0));
        assert_eq!(solver.solve(), Ok(()));
        assert_eq!(solver.solution(), Ok(vec![Dim::constant(3)]));
    }

    #[test]
    fn a_factor_that_is_known_is_divided_out() {
        let (n, m) = (n(), Dim::param(DimId(1)));
        let product = n.product(&m).and_then(|p| p.add_scaled(&Dim::constant(1), 1)).expect("small");
        let reals = |extent: &Dim| Ty::Array(DType::Real, vec![extent.clone()]);
        let mut solver = Solver::new(2);
        // The caller's dimensions are those of the callee the other way round.
        assert!(solver.unify(&reals(&product), &reals(&product), 0) && solver.unify(&reals(&n), &reals(&m), 1));
        assert_eq!(solver.solve(), Ok(()));
        assert_eq!(solver.solution(), Ok(vec![m, n]));
    }

    #[test]
    fn squares_have_roots() {
        let square = n().product(&n()).expect("small");
        let reals = |extent: Dim| Ty::Array(DType::Real, vec![extent]);
        for (given, root) in [(Dim::constant(49), Dim::constant(7)), (square.clone(), n())] {
            let mut solver = Solver::new(1);
            assert!(solver.unify(&reals(square.clone()), &reals(given), 0));
            assert_eq!((solver.solve(), solver.solution()), (Ok(()), Ok(vec![root])));
        }
        let mut solver = Solver::new(1);
        assert!(solver.unify(&reals(square), &reals(Dim::constant(50)), 0));
        assert!(solver.solve().is_ok() && solver.solution().is_err());
    }

    #[test]
    fn what_does_not_divide_is_refused() {
        let mut solver = Solver::new(1);
        let twice = Dim::constant(0).add_scaled(&n(), 2).expect("small");
        let wanted = Ty::Array(DType::Real, vec![twice]);
        assert!(solver.unify(&wanted, &Ty::Array(DType::Int, vec![Dim::constant(7)]), 4));
        assert_eq!(solver.solve(), Err(4));
    }
}
