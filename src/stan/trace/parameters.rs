//! Parameters from unconstrained numbers, and the log Jacobians of that (Stan's reference manual, "Constraint transforms").

use super::tuple::has_tuples;
use super::{Result, Tracer, wrong};
use crate::base::Span;
use crate::stan::graph::Op;
use crate::stan::syntax::ast::{Constraint, Expr, SizedKind, SizedType, Stmt, StmtKind};
use crate::stan::value::{Base, Kind, Val};
use crate::types::{Array, column_major};

impl Tracer<'_> {
    /// `parameters { … }`: every variable is made of the next unconstrained numbers, from `first` on; gives how many there
    /// are, and the terms of the log Jacobian.
    pub(in crate::stan) fn read_parameters(&mut self, stmts: &[Stmt]) -> Result<(usize, Vec<Val>)> {
        let mut first = 0;
        let mut terms = Vec::new();
        for stmt in stmts {
            let StmtKind::Declare { ty, variables } = &stmt.kind else { continue };
            for variable in variables {
                let mut leaves = Vec::new();
                for leaf in self.leaves(variable, ty)? {
                    let old_dims: &[Expr] = if has_tuples(ty) { &[] } else { &variable.old_dims };
                    let (kind, shape) = self.sized(leaf.ty, old_dims)?;
                    if kind.is_int() {
                        return wrong(variable.name.span, "a parameter is no int");
                    }
                    leaves.push(self.parameter(variable.name.span, leaf.ty, kind, &shape, &mut first, &mut terms)?);
                }
                let value = self.assembled(variable, ty, leaves)?;
                self.graph.call(&variable.name.text, &value);
                self.bind(&variable.name.text, value);
            }
        }
        Ok((first, terms))
    }

    /// So many unconstrained numbers, under a shape.
    pub(super) fn unconstrained(
        &mut self,
        span: Span,
        first: &mut usize,
        kind: Kind,
        shape: Vec<usize>,
    ) -> Result<Val> {
        if kind.is_complex() {
            return self.unconstrained_complex(span, first, kind, shape);
        }
        let n: usize = shape.iter().product();
        let at = *first;
        *first += n;
        if n == 0 {
            return Ok(Val::from_elems(kind, shape, vec![]));
        }
        // As they lie in memory: inside a matrix Stan's order is column-major.
        let mut lies = shape.clone();
        if kind.base == Base::Matrix {
            let rank = lies.len();
            lies.swap(rank - 2, rank - 1);
        }
        let places = column_major(&lies, kind.arrays);
        let made = self.coordinates(span, at, Kind { base: Base::Real, arrays: lies.len() }, lies)?;
        if kind == Kind::MATRIX {
            return self.call_ab(span, "transpose", &[made], kind, shape);
        }
        if kind.base != Base::Matrix {
            return Ok(Val { kind, ..made });
        }
        Ok(made.pick(kind, shape, places))
    }

    /// The unconstrained numbers from a place on, under a shape: known where one point is run.
    pub(super) fn coordinates(&mut self, span: Span, first: usize, kind: Kind, shape: Vec<usize>) -> Result<Val> {
        let n: usize = shape.iter().product();
        match self.point.as_ref().map(|point| point.get(first..first + n)) {
            Some(Some(numbers)) => Ok(Val::known(kind, Array::real(shape, numbers.to_vec()))),
            Some(None) => wrong(span, "the point has too few numbers"),
            None => self.node(span, Op::Parameters { first }, &[], kind, shape),
        }
    }

    /// The value of one variable, and what its transform adds to `terms`.
    pub(super) fn parameter(
        &mut self,
        span: Span,
        ty: &SizedType,
        kind: Kind,
        shape: &[usize],
        first: &mut usize,
        terms: &mut Vec<Val>,
    ) -> Result<Val> {
        let mut leaf = ty;
        while let SizedKind::Array { element, .. } = &leaf.kind {
            leaf = element;
        }
        let bound = |t: &mut Self, e: &Expr| t.eval(e).map(|v| v.promoted());
        match &leaf.constraint {
            Constraint::None => self.unconstrained(span, first, kind, shape.to_vec()),
            Constraint::Lower(a) => {
                let a = bound(self, a)?;
                let u = self.unconstrained(span, first, kind, shape.to_vec())?;
                self.bounded(span, &u, Some(a), None, terms)
            }
            Constraint::Upper(b) => {
                let b = bound(self, b)?;
                let u = self.unconstrained(span, first, kind, shape.to_vec())?;
                self.bounded(span, &u, None, Some(b), terms)
            }
            Constraint::LowerUpper(a, b) => {
                let (a, b) = (bound(self, a)?, bound(self, b)?);
                in_order(span, &a, &b, shape)?;
                let u = self.unconstrained(span, first, kind, shape.to_vec())?;
                self.bounded(span, &u, Some(a), Some(b), terms)
            }
            Constraint::Offset(m) => {
                let m = bound(self, m)?;
                let u = self.unconstrained(span, first, kind, shape.to_vec())?;
                self.add(span, &m, &u)
            }
            Constraint::Multiplier(s) => {
                let s = bound(self, s)?;
                let u = self.unconstrained(span, first, kind, shape.to_vec())?;
                self.scaled(span, None, &s, &u, terms)
            }
            Constraint::OffsetMultiplier(m, s) => {
                let (m, s) = (bound(self, m)?, bound(self, s)?);
                let u = self.unconstrained(span, first, kind, shape.to_vec())?;
                self.scaled(span, Some(&m), &s, &u, terms)
            }
            constraint => self.transformed(span, constraint, kind, shape, first, terms),
        }
    }

    /// What lies between bounds, and its log Jacobian. A bound that is infinite is none, of each element.
    pub(super) fn bounded(
        &mut self,
        span: Span,
        u: &Val,
        a: Option<Val>,
        b: Option<Val>,
        terms: &mut Vec<Val>,
    ) -> Result<Val> {
        let has = |bound: &Option<Val>, x: f64| bound.as_ref().and_then(Val::reals).is_some_and(|v| v.contains(&x));
        let (open_below, open_above) = (has(&a, f64::NEG_INFINITY), has(&b, f64::INFINITY));
        let several = |bound: &Option<Val>| bound.as_ref().is_some_and(|v| !v.is_scalar());
        if (open_below && several(&a)) || (open_above && several(&b)) {
            let one = |v: &Val, i: usize| {
                if v.is_scalar() { v.clone() } else { v.pick(Kind::REAL, vec![], std::iter::once(i)) }
            };
            let mut elems = Vec::with_capacity(u.len());
            for i in 0..u.len() {
                let (a, b) = (a.as_ref().map(|a| one(a, i)), b.as_ref().map(|b| one(b, i)));
                elems.extend(self.bounded(span, &one(u, i), a, b, terms)?.elems());
            }
            return Ok(Val::from_elems(u.kind, u.shape.clone(), elems));
        }
        match (a.filter(|_| !open_below), b.filter(|_| !open_above)) {
            (None, None) => Ok(u.clone()),
            (Some(a), None) => {
                terms.push(u.clone());
                let e = self.elementwise(span, "exp", std::slice::from_ref(u))?;
                if a.as_real() == Some(0.0) { Ok(e) } else { self.add(span, &e, &a) }
            }
            (None, Some(b)) => {
                terms.push(u.clone());
                let e = self.elementwise(span, "exp", std::slice::from_ref(u))?;
                self.infix(span, "-", &b, &e)
            }
            (Some(a), Some(b)) => self.between(span, u, &a, &b, terms),
        }
    }

    /// L + (U − L) inv_logit(u), and its log Jacobian.
    fn between(&mut self, span: Span, u: &Val, a: &Val, b: &Val, terms: &mut Vec<Val>) -> Result<Val> {
        let s = self.elementwise(span, "inv_logit", std::slice::from_ref(u))?;
        let width = self.infix(span, "-", b, a)?;
        let log_width = self.elementwise(span, "log", std::slice::from_ref(&width))?;
        let minus = self.apply(span, Op::Negate, std::slice::from_ref(u), u.kind, u.shape.clone())?;
        let (p, q) = (
            self.elementwise(span, "log_inv_logit", std::slice::from_ref(u))?,
            self.elementwise(span, "log_inv_logit", &[minus])?,
        );
        let logs = self.add(span, &p, &q)?;
        terms.push(if log_width.as_real() == Some(0.0) { logs } else { self.add(span, &logs, &log_width)? });
        let scaled = if width.as_real() == Some(1.0) { s } else { self.infix(span, "*", &width, &s)? };
        if a.as_real() == Some(0.0) { Ok(scaled) } else { self.add(span, a, &scaled) }
    }

    /// What lies on a scale, and its log Jacobian.
    pub(super) fn scaled(
        &mut self,
        span: Span,
        m: Option<&Val>,
        s: &Val,
        u: &Val,
        terms: &mut Vec<Val>,
    ) -> Result<Val> {
        if let Some(bad) = s.reals().and_then(|all| all.into_iter().find(|x| !(*x > 0.0 && x.is_finite()))) {
            return wrong(span, format!("the multiplier of this parameter is {bad}, but must be positive and finite"));
        }
        let log = self.elementwise(span, "log", std::slice::from_ref(s))?;
        let each = if log.is_scalar() && !u.is_scalar() {
            self.infix(span, "*", &Val::real(u.len() as f64), &log)?
        } else {
            log
        };
        terms.push(each);
        let scaled = self.infix(span, "*", s, u)?;
        m.map_or(Ok(scaled.clone()), |m| self.add(span, m, &scaled))
    }

    /// Vectors or matrices of a constraint, by the library's transforms: one after the other of an array of them.
    fn transformed(
        &mut self,
        span: Span,
        constraint: &Constraint,
        kind: Kind,
        shape: &[usize],
        first: &mut usize,
        terms: &mut Vec<Val>,
    ) -> Result<Val> {
        let own = shape[kind.arrays..].to_vec();
        let n: usize = shape[..kind.arrays].iter().product();
        let Some(transform) = transform(constraint, &own) else {
            let size = own.iter().map(usize::to_string).collect::<Vec<_>>().join(" × ");
            return wrong(span, format!("there is no {} of size {size}", constraint.word()));
        };
        let free = &transform.free;
        let each = Kind::of(if free.len() == 2 { Base::Matrix } else { Base::Vector });
        let all = if kind.arrays == 0 {
            self.unconstrained(span, first, each, free.clone())?
        } else {
            let shape = std::iter::once(n).chain(free.iter().copied()).collect();
            self.unconstrained(span, first, Kind { arrays: 1, ..each }, shape)?
        };
        let mut values = self.transformed_values(span, &transform, (&all, n), (Kind::of(kind.base), &own), terms)?;
        if kind.arrays == 0 && values.len() == 1 {
            return Ok(values.remove(0));
        }
        Ok(Val::from_elems(kind, shape.to_vec(), values.iter().flat_map(Val::elems).collect()))
    }

    /// The `n` vectors or matrices that a transform makes of unconstrained numbers, and the terms of the log Jacobian.
    pub(super) fn transformed_values(
        &mut self,
        span: Span,
        transform: &Transform,
        (all, n): (&Val, usize),
        (one, own): (Kind, &[usize]),
        terms: &mut Vec<Val>,
    ) -> Result<Vec<Val>> {
        let Transform { stem, free, shaped } = transform;
        let each = Kind::of(if free.len() == 2 { Base::Matrix } else { Base::Vector });
        let width: usize = free.iter().product();
        let mut values = Vec::with_capacity(n);
        for i in 0..n {
            let u = if all.kind.arrays == 0 {
                all.clone()
            } else {
                all.pick(each, free.clone(), i * width..(i + 1) * width)
            };
            let mut args = vec![u];
            if *shaped {
                // The size of what comes out cannot be told from that of a triangle.
                args.push(Val::known(Kind::MATRIX, Array::real(own.iter().copied(), vec![0.0; own[0] * own[1]])));
            }
            values.push(self.call_ab(span, &format!("{stem}_constrain"), &args, one, own.to_vec())?);
            terms.push(self.call_ab(span, &format!("{stem}_log_jacobian"), &args, Kind::REAL, vec![])?);
        }
        Ok(values)
    }
}

/// A transform of the library.
pub(super) struct Transform {
    /// What its functions are called: `…_constrain`, `…_log_jacobian`, `…_unconstrain`.
    pub(super) stem: &'static str,
    /// Extents of the unconstrained numbers.
    pub(super) free: Vec<usize>,
    /// Whether it is given an array of the size that comes out.
    shaped: bool,
}

/// Refuses bounds that are known and leave no room: Stan's `lub_constrain` rejects every start there.
fn in_order(span: Span, a: &Val, b: &Val, shape: &[usize]) -> Result<()> {
    let (Some(low), Some(high)) = (a.reals(), b.reals()) else { return Ok(()) };
    let elements = shape.iter().product::<usize>().max(low.len()).max(high.len());
    if shape.contains(&0) || low.is_empty() || high.is_empty() {
        return Ok(());
    }
    let pair = |i: usize| (low[i % low.len()], high[i % high.len()]);
    // NaN is in no order.
    let crossed = (0..elements).map(pair).find(|(low, high)| low.partial_cmp(high) != Some(std::cmp::Ordering::Less));
    match crossed {
        None => Ok(()),
        Some((low, high)) => wrong(
            span,
            format!("the lower bound of this parameter is {low}, but must be less than its upper bound, {high}"),
        ),
    }
}

/// The transform of a constraint of vectors or matrices; `None` where there is no value of this size.
pub(super) fn transform(constraint: &Constraint, shape: &[usize]) -> Option<Transform> {
    let k = shape[0];
    let last = shape[shape.len() - 1];
    let less = |n: usize| n.checked_sub(1);
    let of = |stem, free: Vec<usize>| Some(Transform { stem, free, shaped: false });
    let triangle = |stem, free: usize| Some(Transform { stem, free: vec![free], shaped: true });
    match constraint {
        Constraint::Ordered => of("ordered", vec![k]),
        Constraint::PositiveOrdered => of("positive_ordered", vec![k]),
        Constraint::UnitVector => of("unit_vector", vec![k]),
        Constraint::Simplex => of("simplex", vec![less(k)?]),
        Constraint::SumToZero if shape.len() == 1 => of("sum_to_zero", vec![less(k)?]),
        Constraint::SumToZero => of("sum_to_zero_matrix", vec![less(k)?, less(last)?]),
        Constraint::RowStochastic => of("stochastic_row", vec![k, less(last)?]),
        Constraint::ColumnStochastic => of("stochastic_column", vec![less(k)?, last]),
        Constraint::CholeskyFactorCorr => triangle("cholesky_factor_corr", k * k.saturating_sub(1) / 2),
        Constraint::CorrMatrix => triangle("corr_matrix", k * k.saturating_sub(1) / 2),
        Constraint::CovMatrix => triangle("cov_matrix", k * (k + 1) / 2),
        Constraint::CholeskyFactorCov => {
            triangle("cholesky_factor_cov", last * (last + 1) / 2 + k.checked_sub(last)? * last)
        }
        _ => None,
    }
}
