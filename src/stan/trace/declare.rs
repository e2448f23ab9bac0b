//! Declarations: sizes, data, parameters from unconstrained numbers, and what constraints demand of known values.

use super::{Result, Tracer, unsupported, wrong};
use crate::base::Span;
use crate::stan::data;
use crate::stan::graph::Op;
use crate::stan::syntax::ast::{Constraint, Expr, SizedKind, SizedType, Stmt, StmtKind, Variable};
use crate::stan::value::{Base, Elem, Kind, Val};
use crate::types::Array;

/// A variable of a block that is an output.
#[derive(Clone, Debug)]
pub(in crate::stan) struct Declared {
    pub(in crate::stan) name: std::sync::Arc<str>,
    pub(in crate::stan) kind: Kind,
    pub(in crate::stan) shape: Vec<usize>,
}

/// The most elements of a variable: four GiB of reals.
const MAX_ELEMENTS: usize = 1 << 29;
/// How far a constraint of known values may be off, as Stan has it.
pub(super) const TOLERANCE: f64 = 1e-8;

impl Tracer<'_> {
    fn size(&mut self, expr: &Expr) -> Result<usize> {
        let value = self.eval(expr)?;
        match value.as_int() {
            Some(n) => match usize::try_from(n) {
                Ok(n) => Ok(n),
                Err(_) => wrong(expr.span, format!("a size is {n}")),
            },
            None => unsupported(expr.span, "a size that depends on parameters"),
        }
    }

    /// The kind and the extents of a declared type.
    pub(super) fn sized(&mut self, ty: &SizedType, old_dims: &[Expr]) -> Result<(Kind, Vec<usize>)> {
        let mut shape = old_dims.iter().map(|e| self.size(e)).collect::<Result<Vec<_>>>()?;
        let mut arrays = shape.len();
        let mut ty = ty;
        while let SizedKind::Array { dims, element } = &ty.kind {
            for dim in dims {
                shape.push(self.size(dim)?);
                arrays += 1;
            }
            ty = element;
        }
        let base = match &ty.kind {
            SizedKind::Int => Base::Int,
            SizedKind::Real => Base::Real,
            SizedKind::Vector(n) => {
                shape.push(self.size(n)?);
                Base::Vector
            }
            SizedKind::RowVector(n) => {
                shape.push(self.size(n)?);
                Base::RowVector
            }
            SizedKind::Matrix(m, n) => {
                shape.push(self.size(m)?);
                shape.push(self.size(n)?);
                Base::Matrix
            }
            SizedKind::Tuple(_) => return unsupported(ty.span, "tuples"),
            _ => return unsupported(ty.span, "complex numbers"),
        };
        let elements = shape.iter().try_fold(1_usize, |n, extent| n.checked_mul(*extent));
        if elements.is_none_or(|n| n > MAX_ELEMENTS) {
            let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
            return wrong(ty.span, format!("a variable of {} elements has no room", sizes.join(" × ")));
        }
        Ok((Kind { base, arrays }, shape))
    }

    /// Declares variables of a type, with their values.
    pub(super) fn declare(&mut self, ty: &SizedType, variables: &[Variable]) -> Result<()> {
        for variable in variables {
            let (kind, shape) = self.sized(ty, &variable.old_dims)?;
            let value = match &variable.value {
                None => Tracer::unset(kind, shape),
                Some(e) => {
                    let value = self.eval(e)?;
                    let value = if kind.is_int() { value } else { value.promoted() };
                    if value.shape != shape {
                        let name = &variable.name.text;
                        return wrong(e.span, format!("`{name}` has the size {shape:?}, the value {:?}", value.shape));
                    }
                    Val { kind, ..value }
                }
            };
            if !value.is_known() {
                self.graph.call(&variable.name.text, &value);
            }
            self.bind(&variable.name.text, value);
        }
        Ok(())
    }

    /// The variables that a block declares for all to see.
    pub(in crate::stan) fn declared(&self, stmts: &[Stmt]) -> Vec<Declared> {
        let mut all = Vec::new();
        for stmt in stmts {
            let StmtKind::Declare { variables, .. } = &stmt.kind else { continue };
            for variable in variables {
                if let Some(value) = self.value(&variable.name.text) {
                    let (kind, shape) = (value.kind, value.shape.clone());
                    all.push(Declared { name: variable.name.text.clone(), kind, shape });
                }
            }
        }
        all
    }

    /// `data { … }`: every variable gets its value of the data.
    pub(in crate::stan) fn read_data(&mut self, stmts: &[Stmt], given: &data::Given) -> Result<()> {
        for stmt in stmts {
            let StmtKind::Declare { ty, variables } = &stmt.kind else { continue };
            for variable in variables {
                let (kind, shape) = self.sized(ty, &variable.old_dims)?;
                let name = &variable.name;
                let array = match data::read(given, &name.text, kind, &shape) {
                    Ok(array) => array,
                    Err(why) => return wrong(name.span, why),
                };
                self.bind(&name.text, Val::known(kind, array));
                self.check_constraint(name.span, &name.text, ty)?;
            }
        }
        Ok(())
    }

    /// What the constraints of a block's variables demand, at its end.
    pub(in crate::stan) fn check_block(&mut self, stmts: &[Stmt]) -> Result<()> {
        for stmt in stmts {
            let StmtKind::Declare { ty, variables } = &stmt.kind else { continue };
            for variable in variables {
                self.check_constraint(variable.name.span, &variable.name.text, ty)?;
            }
        }
        Ok(())
    }

    /// `parameters { … }`: every variable is made of the next unconstrained numbers, from `first` on; gives how many there
    /// are, and the terms of the log Jacobian.
    pub(in crate::stan) fn read_parameters(&mut self, stmts: &[Stmt]) -> Result<(usize, Vec<Val>)> {
        let mut first = 0;
        let mut terms = Vec::new();
        for stmt in stmts {
            let StmtKind::Declare { ty, variables } = &stmt.kind else { continue };
            for variable in variables {
                let (kind, shape) = self.sized(ty, &variable.old_dims)?;
                if kind.is_int() {
                    return wrong(variable.name.span, "a parameter is no int");
                }
                let value = self.parameter(variable.name.span, ty, kind, &shape, &mut first, &mut terms)?;
                self.graph.call(&variable.name.text, &value);
                self.bind(&variable.name.text, value);
            }
        }
        Ok((first, terms))
    }

    /// So many unconstrained numbers, under a shape.
    fn unconstrained(&mut self, span: Span, first: &mut usize, kind: Kind, shape: Vec<usize>) -> Result<Val> {
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
        let made =
            self.node(span, Op::Parameters { first: at }, &[], Kind { base: Base::Real, arrays: lies.len() }, lies)?;
        if kind == Kind::MATRIX {
            return self.call_ab(span, "transpose", &[made], kind, shape);
        }
        if kind.base != Base::Matrix {
            return Ok(Val { kind, ..made });
        }
        let (rows, cols) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        let places = (0..n / (rows * cols))
            .flat_map(|m| (0..rows).flat_map(move |i| (0..cols).map(move |j| m * rows * cols + j * rows + i)));
        Ok(made.pick(kind, shape, places))
    }

    fn parameter(
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
            constraint => {
                // One value after the other of an array of them.
                let own = shape[kind.arrays..].to_vec();
                let n: usize = shape[..kind.arrays].iter().product();
                let Some(width) = width(constraint, &own) else {
                    return unsupported(span, "this constraint of a parameter");
                };
                if kind.arrays == 0 {
                    let u = self.unconstrained(span, first, Kind::VECTOR, vec![width])?;
                    return self.transformed(span, constraint, kind, &own, &u, terms);
                }
                let all = self.unconstrained(span, first, Kind { base: Base::Vector, arrays: 1 }, vec![n, width])?;
                let mut elems = Vec::new();
                for i in 0..n {
                    let u = all.pick(Kind::VECTOR, vec![width], i * width..(i + 1) * width);
                    elems.extend(self.transformed(span, constraint, Kind::of(kind.base), &own, &u, terms)?.elems());
                }
                Ok(Val::from_elems(kind, shape.to_vec(), elems))
            }
        }
    }

    /// What lies between bounds, and its log Jacobian. A bound that is infinite is none, of each element.
    fn bounded(&mut self, span: Span, u: &Val, a: Option<Val>, b: Option<Val>, terms: &mut Vec<Val>) -> Result<Val> {
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

    fn scaled(&mut self, span: Span, m: Option<&Val>, s: &Val, u: &Val, terms: &mut Vec<Val>) -> Result<Val> {
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

    /// A constrained vector or matrix of its unconstrained numbers.
    fn transformed(
        &mut self,
        span: Span,
        constraint: &Constraint,
        kind: Kind,
        shape: &[usize],
        u: &Val,
        terms: &mut Vec<Val>,
    ) -> Result<Val> {
        let k = shape[0];
        match constraint {
            Constraint::Ordered | Constraint::PositiveOrdered => {
                if k == 0 {
                    return Ok(u.clone());
                }
                let positive = matches!(constraint, Constraint::PositiveOrdered);
                let from = usize::from(!positive);
                let tail = u.pick(Kind::VECTOR, vec![k - from], from..k);
                let steps = self.elementwise(span, "exp", std::slice::from_ref(&tail))?;
                terms.push(tail);
                let mut elems = u.elems()[..from].to_vec();
                elems.extend(steps.elems());
                let steps = Val::from_elems(Kind::VECTOR, vec![k], elems);
                self.call_ab(span, "cumulative_sum", &[steps], Kind::VECTOR, vec![k])
            }
            Constraint::Simplex => {
                if k == 1 {
                    return Ok(Val::known(Kind::VECTOR, Array::real([1], vec![1.0])));
                }
                let z = self.apply(span, Op::Infix("@"), &[helmert(k), u.clone()], Kind::VECTOR, vec![k])?;
                let x = self.call_ab(span, "softmax", std::slice::from_ref(&z), Kind::VECTOR, vec![k])?;
                // log x without the rounding of exp and log.
                let total = self.call_ab(span, "log_sum_exp", std::slice::from_ref(&z), Kind::REAL, vec![])?;
                let logs = self.infix(span, "-", &z, &total)?;
                terms.push(logs);
                terms.push(Val::real(0.5 * (k as f64).ln()));
                Ok(x)
            }
            Constraint::SumToZero if kind == Kind::VECTOR => {
                self.apply(span, Op::Infix("@"), &[helmert(k), u.clone()], Kind::VECTOR, vec![k])
            }
            Constraint::UnitVector => {
                let square = self.call_ab(span, "dot", &[u.clone(), u.clone()], Kind::REAL, vec![])?;
                terms.push(self.infix(span, "*", &Val::real(-0.5), &square)?);
                let norm = self.elementwise(span, "sqrt", &[square])?;
                self.infix(span, "/", u, &norm)
            }
            Constraint::CholeskyFactorCorr | Constraint::CorrMatrix => {
                let l = self.correlation_factor(span, k, u, terms, matches!(constraint, Constraint::CorrMatrix))?;
                if matches!(constraint, Constraint::CholeskyFactorCorr) {
                    return Ok(l);
                }
                let t = self.transpose(span, &l)?;
                self.apply(span, Op::Infix("@"), &[l, t], Kind::MATRIX, vec![k, k])
            }
            Constraint::CovMatrix => {
                let l = self.covariance_factor(span, k, k, u, terms)?;
                // K log 2 + Σ (K − k + 1) log L[k, k], beside what the factor's exponentials give.
                terms.push(Val::real(k as f64 * std::f64::consts::LN_2));
                for i in 0..k {
                    let log = u.pick(Kind::REAL, vec![], std::iter::once(diagonal_place(i)));
                    terms.push(self.infix(span, "*", &Val::real((k - i) as f64), &log)?);
                }
                let t = self.transpose(span, &l)?;
                self.apply(span, Op::Infix("@"), &[l, t], Kind::MATRIX, vec![k, k])
            }
            Constraint::CholeskyFactorCov => {
                let (m, n) = (shape[0], shape[1]);
                self.covariance_factor(span, m, n, u, terms)
            }
            _ => unsupported(span, "this constraint of a parameter"),
        }
    }

    /// The Cholesky factor of a correlation matrix from canonical partial correlations tanh(u), row after row, and its log
    /// Jacobian (Stan's reference manual, "Cholesky factors of correlation matrices"; of the matrix itself "LKJ").
    fn correlation_factor(&mut self, span: Span, k: usize, u: &Val, terms: &mut Vec<Val>, whole: bool) -> Result<Val> {
        let mut elems = vec![Elem::Real(0.0); k * k];
        if k > 0 {
            elems[0] = Elem::Real(1.0);
        }
        if k < 2 {
            return Ok(Val::from_elems(Kind::MATRIX, vec![k, k], elems));
        }
        let z = self.elementwise(span, "tanh", std::slice::from_ref(u))?;
        let one = Val::real(1.0);
        let squares = self.elementwise(span, "square", std::slice::from_ref(&z))?;
        let rest = self.elementwise(span, "log1m", std::slice::from_ref(&squares))?;
        terms.push(rest.clone());
        let scalar = |v: &Val, at: usize| v.pick(Kind::REAL, vec![], std::iter::once(at));
        // In Stan a correlation matrix takes its partial correlations column after column, a factor row after row.
        let place = |i: usize, j: usize| {
            if whole { j * k - j * (j + 1) / 2 + (i - j - 1) } else { i * (i - 1) / 2 + j }
        };
        for i in 1..k {
            let mut left = one.clone();
            for j in 0..i {
                let z = scalar(&z, place(i, j));
                let entry = if j == 0 {
                    z.clone()
                } else {
                    let log = self.elementwise(span, "log", std::slice::from_ref(&left))?;
                    if !whole {
                        terms.push(self.infix(span, "*", &Val::real(0.5), &log)?);
                    }
                    let root = self.elementwise(span, "sqrt", std::slice::from_ref(&left))?;
                    self.infix(span, "*", &z, &root)?
                };
                let square = self.elementwise(span, "square", std::slice::from_ref(&entry))?;
                left = self.infix(span, "-", &left, &square)?;
                elems[i * k + j] = entry.elem(0);
            }
            elems[i * k + i] = self.elementwise(span, "sqrt", &[left])?.elem(0);
        }
        if whole {
            for j in 0..k {
                for i in j + 1..k {
                    let log = scalar(&rest, place(i, j));
                    let weight = (k - j - 2) as f64 * 0.5;
                    if weight != 0.0 {
                        terms.push(self.infix(span, "*", &Val::real(weight), &log)?);
                    }
                }
            }
        }
        Ok(Val::from_elems(Kind::MATRIX, vec![k, k], elems))
    }

    /// A lower triangular matrix with a positive diagonal, row after row; below row n all entries are free.
    fn covariance_factor(&mut self, span: Span, m: usize, n: usize, u: &Val, terms: &mut Vec<Val>) -> Result<Val> {
        let mut elems = vec![Elem::Real(0.0); m * n];
        let mut at = 0;
        for i in 0..m {
            for j in 0..n.min(i + 1) {
                let one = u.pick(Kind::REAL, vec![], std::iter::once(at));
                at += 1;
                elems[i * n + j] = if i == j {
                    terms.push(one.clone());
                    self.elementwise(span, "exp", &[one])?.elem(0)
                } else {
                    one.elem(0)
                };
            }
        }
        Ok(Val::from_elems(Kind::MATRIX, vec![m, n], elems))
    }

    /// Demands of a variable what its constraint says: of known values now, of others while lanes run.
    fn check_constraint(&mut self, span: Span, name: &str, ty: &SizedType) -> Result<()> {
        let mut leaf = ty;
        while let SizedKind::Array { element, .. } = &leaf.kind {
            leaf = element;
        }
        let Some(value) = self.value(name).cloned() else { return Ok(()) };
        match &leaf.constraint {
            Constraint::Lower(a) => {
                let a = self.eval(a)?;
                self.check_bound(span, name, &value, &a, ">=")
            }
            Constraint::Upper(b) => {
                let b = self.eval(b)?;
                self.check_bound(span, name, &value, &b, "<=")
            }
            Constraint::LowerUpper(a, b) => {
                let (a, b) = (self.eval(a)?, self.eval(b)?);
                self.check_bound(span, name, &value, &a, ">=")?;
                self.check_bound(span, name, &value, &b, "<=")
            }
            Constraint::None | Constraint::Offset(_) | Constraint::Multiplier(_) | Constraint::OffsetMultiplier(..) => {
                Ok(())
            }
            constraint => {
                let own = value.shape[value.kind.arrays..].to_vec();
                let each = own.iter().product::<usize>().max(1);
                let known = value.reals();
                for i in 0..value.len() / each {
                    if let Some(x) = &known {
                        match violated(constraint, &x[i * each..][..each], &own) {
                            Some(why) => return wrong(span, format!("`{name}` {why}")),
                            None => continue,
                        }
                    }
                    let part = value.pick(Kind::of(value.kind.base), own.clone(), i * each..(i + 1) * each);
                    self.check_lanes(span, name, constraint, &part)?;
                }
                Ok(())
            }
        }
    }

    fn check_bound(&mut self, span: Span, name: &str, value: &Val, bound: &Val, sign: &'static str) -> Result<()> {
        let words = if sign == ">=" { "at least" } else { "at most" };
        if let (Some(x), Some(b)) = (value.reals(), bound.reals()) {
            let holds = |x: f64, b: f64| if sign == ">=" { x >= b } else { x <= b };
            let of = |i: usize| if b.len() == 1 { b[0] } else { b[i] };
            if let Some(i) = (0..x.len()).find(|i| !holds(x[*i], of(*i))) {
                let place = if value.is_scalar() { String::new() } else { format!("[{}]", i + 1) };
                return wrong(span, format!("`{name}{place}` is {}, but must be {words} {}", x[i], of(i)));
            }
            return Ok(());
        }
        if value.len() == 0 {
            return Ok(());
        }
        // One comparison of the least or the largest slack.
        let (a, b) = if sign == ">=" { (value, bound) } else { (bound, value) };
        let slack = if matches!(bound.as_real(), Some(0.0)) && sign == ">=" {
            value.clone()
        } else {
            self.infix(span, "-", a, b)?
        };
        let least = if slack.is_scalar() { slack } else { self.library(span, "min", &[slack])? };
        let holds = self.compare(span, ">=", &least, &Val::real(0.0))?;
        let limit = bound.as_real().map_or(String::new(), |b| format!(" {b}"));
        self.check(span, &holds, &format!("{name} must be {words}{limit}"))
    }
}

/// How many unconstrained numbers a constrained vector or matrix has.
fn width(constraint: &Constraint, shape: &[usize]) -> Option<usize> {
    let k = shape[0];
    Some(match constraint {
        Constraint::Ordered | Constraint::PositiveOrdered | Constraint::UnitVector => k,
        Constraint::Simplex => k.saturating_sub(1),
        Constraint::SumToZero if shape.len() == 1 => k.saturating_sub(1),
        Constraint::CholeskyFactorCorr | Constraint::CorrMatrix => k * k.saturating_sub(1) / 2,
        Constraint::CovMatrix => k * (k + 1) / 2,
        Constraint::CholeskyFactorCov => {
            let n = shape[1];
            n * (n + 1) / 2 + k.checked_sub(n)? * n
        }
        _ => return None,
    })
}

/// Where the logarithm of the i-th diagonal entry stands among the entries of a triangle, row after row.
fn diagonal_place(i: usize) -> usize {
    i * (i + 1) / 2 + i
}

/// The orthonormal columns that sum to zero of Stan's isometric log-ratio transform: K × (K − 1).
fn helmert(k: usize) -> Val {
    let columns = k.saturating_sub(1);
    let mut h = vec![0.0; k * columns];
    for j in 0..columns {
        let i = (j + 1) as f64;
        for row in 0..=j {
            h[row * columns + j] = 1.0 / (i * (i + 1.0)).sqrt();
        }
        h[(j + 1) * columns + j] = -i / (i * (i + 1.0)).sqrt();
    }
    Val::known(Kind::MATRIX, Array::real([k, columns], h))
}

/// Why known values are not what a constraint says.
fn violated(constraint: &Constraint, x: &[f64], shape: &[usize]) -> Option<String> {
    let sum: f64 = x.iter().sum();
    let symmetric = || {
        let n = shape[0];
        (0..n).all(|i| (0..i).all(|j| (x[i * n + j] - x[j * n + i]).abs() <= TOLERANCE))
    };
    match constraint {
        Constraint::Simplex if (sum - 1.0).abs() > TOLERANCE => Some(format!("is no simplex: its sum is {sum}")),
        Constraint::Simplex => x.iter().find(|v| **v < 0.0).map(|v| format!("is no simplex: it has {v}")),
        Constraint::Ordered | Constraint::PositiveOrdered => {
            let positive = matches!(constraint, Constraint::PositiveOrdered);
            if positive && x.first().is_some_and(|v| *v < 0.0) {
                return Some(format!("is not positive: it begins with {}", x[0]));
            }
            let bad = x.windows(2).position(|w| w[0] >= w[1])?;
            Some(format!("is not ordered: {} comes before {}", x[bad], x[bad + 1]))
        }
        Constraint::UnitVector => {
            let square: f64 = x.iter().map(|v| v * v).sum();
            ((square - 1.0).abs() > TOLERANCE).then(|| format!("is no unit vector: its squared length is {square}"))
        }
        Constraint::SumToZero => (sum.abs() > TOLERANCE).then(|| format!("does not sum to 0, but to {sum}")),
        Constraint::CorrMatrix | Constraint::CovMatrix if !symmetric() => Some("is not symmetric".to_owned()),
        Constraint::CorrMatrix => {
            let n = shape[0];
            let bad = (0..n).find(|i| (x[i * n + i] - 1.0).abs() > TOLERANCE)?;
            Some(format!("is no correlation matrix: its diagonal has {}", x[bad * n + bad]))
        }
        _ => None,
    }
}
