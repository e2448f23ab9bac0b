//! Declarations: sizes, data, parameters from unconstrained numbers, and what constraints demand of known values.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::constrained::distinct;
use super::loops::mentioned;
use super::supports::{is_positive_definite, place_of};
use super::tuple::has_tuples;
use super::{Problem, Result, Tracer, unsupported, wrong};
use crate::base::Span;
use crate::stan::data;
use crate::stan::syntax::ast::{Constraint, Expr, SizedKind, SizedType, Stmt, StmtKind, Variable};
use crate::stan::value::{Base, Kind, Val};
use crate::types::ComplexPart;

/// A variable of a block that is an output, or a leaf of one with tuples, or a part of one of complex numbers.
#[derive(Clone, Debug)]
pub(in crate::stan) struct Declared {
    pub(in crate::stan) name: Arc<str>,
    pub(in crate::stan) value: Val,
}

/// The most elements of a variable: four GiB of reals.
const MAX_ELEMENTS: usize = 1 << 29;

/// A kind, extents, and an extent of lanes with its place.
type SizedByLanes = (Kind, Vec<usize>, Option<(Val, Span)>);

/// Refuses a variable that no memory holds.
fn has_room(span: Span, shape: &[usize]) -> Result<()> {
    let elements = shape.iter().try_fold(1_usize, |n, extent| n.checked_mul(*extent));
    if elements.is_none_or(|n| n > MAX_ELEMENTS) {
        let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
        return wrong(span, format!("a variable of {} elements has no room", sizes.join(" × ")));
    }
    Ok(())
}

/// A known extent.
pub(super) fn extent(span: Span, value: &Val) -> Result<usize> {
    match value.as_int() {
        Some(n) => match usize::try_from(n) {
            Ok(n) => Ok(n),
            Err(_) => wrong(span, format!("a size is {n}")),
        },
        None => unsupported(span, "a size that depends on parameters"),
    }
}

/// How far a constraint of known values may be off, as Stan has it.
pub(super) const TOLERANCE: f64 = 1e-8;

impl Tracer<'_> {
    pub(super) fn size(&mut self, expr: &Expr) -> Result<usize> {
        let value = self.eval(expr)?;
        extent(expr.span, &value)
    }

    /// The kind and the extents of a declared type.
    pub(super) fn sized(&mut self, ty: &SizedType, old_dims: &[Expr]) -> Result<(Kind, Vec<usize>)> {
        match self.sized_by_lanes(ty, old_dims)? {
            (kind, shape, None) => Ok((kind, shape)),
            (.., Some(count)) => unsupported(count.1, "a size that depends on parameters"),
        }
    }

    /// The same, where lanes may compute the first extent: it and its place; in the shape it is 0.
    fn sized_by_lanes(&mut self, ty: &SizedType, old_dims: &[Expr]) -> Result<SizedByLanes> {
        let mut count: Option<(Val, Span)> = None;
        let mut size = |t: &mut Self, e: &Expr, place: usize| {
            let value = t.eval(e)?;
            if place > 0 || value.is_known() {
                return extent(e.span, &value);
            }
            count = Some((value, e.span));
            Ok(0)
        };
        let mut shape = Vec::new();
        for dim in old_dims {
            shape.push(size(self, dim, shape.len())?);
        }
        let mut arrays = shape.len();
        let mut ty = ty;
        while let SizedKind::Array { dims, element } = &ty.kind {
            for dim in dims {
                shape.push(size(self, dim, shape.len())?);
                arrays += 1;
            }
            ty = element;
        }
        let base = match &ty.kind {
            SizedKind::Int => Base::Int,
            SizedKind::Real => Base::Real,
            SizedKind::Complex => Base::Complex,
            SizedKind::Vector(_) => Base::Vector,
            SizedKind::ComplexVector(_) => Base::ComplexVector,
            SizedKind::RowVector(_) => Base::RowVector,
            SizedKind::ComplexRowVector(_) => Base::ComplexRowVector,
            SizedKind::Matrix(..) => Base::Matrix,
            SizedKind::ComplexMatrix(..) => Base::ComplexMatrix,
            SizedKind::Array { .. } | SizedKind::Tuple(_) => {
                unreachable!("arrays are unwound, and a tuple has a layout")
            }
        };
        match &ty.kind {
            SizedKind::Vector(n)
            | SizedKind::RowVector(n)
            | SizedKind::ComplexVector(n)
            | SizedKind::ComplexRowVector(n) => shape.push(size(self, n, shape.len())?),
            SizedKind::Matrix(m, n) | SizedKind::ComplexMatrix(m, n) => {
                shape.push(size(self, m, shape.len())?);
                shape.push(size(self, n, shape.len())?);
            }
            _ => {}
        }
        has_room(ty.span, &shape)?;
        Ok((Kind { base, arrays }, shape, count))
    }

    /// The value of a local variable of which lanes compute how many elements it has.
    fn declared_counted(
        &mut self,
        variable: &Variable,
        (kind, mut shape): (Kind, Vec<usize>),
        (count, span): (Val, Span),
    ) -> Result<Val> {
        if kind.is_complex() {
            return unsupported(span, "a size of complex numbers that depends on parameters");
        }
        let holds = self.compare(span, ">=", &count, &Val::int(0))?;
        self.check(span, &holds, &format!("the size of `{}` is negative", variable.name.text))?;
        let value = variable.value.as_ref().map(|e| self.eval_counted(e)).transpose()?;
        shape[0] = match &value {
            Some(value) => value.shape[0],
            None => self.most(span, &count)?,
        };
        has_room(span, &shape)?;
        let unset = Val::of_count(Tracer::unset(kind, shape), count);
        match value {
            Some(value) => self.assigned_counted(span, &unset, &[], &value),
            None => Ok(unset),
        }
    }

    /// The most that a size of lanes can be.
    pub(super) fn most(&self, span: Span, count: &Val) -> Result<usize> {
        match self.bounds(count) {
            Some((_, most)) if most <= MAX_ELEMENTS as i64 => Ok(usize::try_from(most).unwrap_or(0)),
            _ => {
                let message = "a size that depends on parameters and has no bound: known, not supported yet";
                let help = Some("give it a bound: `min({n, 1000})` in the place of `n`".to_owned());
                let message = message.to_owned();
                Err(Box::new(Problem { span, message, help, unsupported: true, again: None, others: vec![] }))
            }
        }
    }

    /// Declares variables of a type, with their values.
    pub(super) fn declare(&mut self, ty: &SizedType, variables: &[Variable]) -> Result<()> {
        for variable in variables {
            if has_tuples(ty) {
                let layout = self.layout(ty, &variable.old_dims)?;
                let unset = self.unset_layout(&layout);
                let value = match &variable.value {
                    None => unset,
                    Some(e) => {
                        let value = self.eval(e)?;
                        self.fitted(e.span, &unset, value)?
                    }
                };
                self.bind(&variable.name.text, value);
                continue;
            }
            let (kind, shape, count) = self.sized_by_lanes(ty, &variable.old_dims)?;
            if let Some(count) = count {
                let value = self.declared_counted(variable, (kind, shape), count)?;
                self.bind(&variable.name.text, value);
                continue;
            }
            let value = match &variable.value {
                None => Tracer::unset(kind, shape),
                Some(e) => {
                    let value = self.eval_counted(e)?;
                    if value.counted().is_some() {
                        let unset = Tracer::unset(kind, shape);
                        let value = self.assigned_counted(e.span, &unset, &[], &value)?;
                        self.bind(&variable.name.text, value);
                        continue;
                    }
                    if value.shape != shape {
                        let name = &variable.name.text;
                        return wrong(e.span, format!("`{name}` has the size {shape:?}, the value {:?}", value.shape));
                    }
                    value.of_kind(kind)
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
    pub(in crate::stan) fn declared(&mut self, stmts: &[Stmt]) -> Result<Vec<Declared>> {
        let mut all = Vec::new();
        for stmt in stmts {
            let StmtKind::Declare { ty, variables } = &stmt.kind else { continue };
            for variable in variables {
                let Some(value) = self.value(&variable.name.text).cloned() else { continue };
                if !value.is_tuple() {
                    declare_parts(&variable.name.text, value, &mut all);
                    continue;
                }
                for leaf in self.leaves_of_files(variable, ty)? {
                    declare_parts(&leaf.name, leaf.of(&value), &mut all);
                }
            }
        }
        Ok(all)
    }

    /// `data { … }`: every variable gets its value of the data.
    pub(in crate::stan) fn read_data(&mut self, stmts: &[Stmt], given: &data::StanData) -> Result<()> {
        let mut problems: Vec<Problem> = vec![];
        // Of what has no value nothing can be told that depends on it.
        let mut unread: BTreeSet<Arc<str>> = BTreeSet::new();
        for stmt in stmts {
            let StmtKind::Declare { ty, variables } = &stmt.kind else { continue };
            // Of all variables of a statement at once, for what few ask.
            let depends = !unread.is_empty() && !mentioned(stmt).is_disjoint(&unread);
            for variable in variables {
                if !depends {
                    match self.read_variable(variable, ty, given) {
                        Ok(()) => continue,
                        Err(problem) if problem.unsupported || problem.again.is_some() => return Err(problem),
                        Err(problem) => problems.push(*problem),
                    }
                }
                unread.insert(variable.name.text.clone());
            }
        }
        let mut problems = problems.into_iter();
        match problems.next() {
            Some(first) => Err(Box::new(Problem { others: problems.collect(), ..first })),
            None => Ok(()),
        }
    }

    fn read_variable(&mut self, variable: &Variable, ty: &SizedType, given: &data::StanData) -> Result<()> {
        let name = &variable.name;
        if has_tuples(ty) {
            let value = self.tuple_of_data(variable, ty, given)?;
            self.bind(&name.text, value);
            return self.check_variable(variable, ty);
        }
        let (kind, shape) = self.sized(ty, &variable.old_dims)?;
        let array = match data::read(given, &name.text, kind, &shape) {
            Ok(array) => array,
            Err(why) => return wrong(name.span, why),
        };
        self.bind(&name.text, Val::of_data(kind, array));
        self.check_variable(variable, ty)
    }

    /// What the constraints of a block's variables demand, at its end.
    pub(in crate::stan) fn check_block(&mut self, stmts: &[Stmt]) -> Result<()> {
        for stmt in stmts {
            let StmtKind::Declare { ty, variables } = &stmt.kind else { continue };
            for variable in variables {
                self.check_variable(variable, ty)?;
            }
        }
        Ok(())
    }

    /// Demands of a variable, or of each of its leaves, what the constraint says.
    fn check_variable(&mut self, variable: &Variable, ty: &SizedType) -> Result<()> {
        let Some(value) = self.value(&variable.name.text).cloned() else { return Ok(()) };
        for leaf in self.leaves(variable, ty)? {
            let of_leaf = leaf.of(&value);
            self.check_constraint(variable.name.span, &leaf.name, leaf.ty, &of_leaf)?;
        }
        Ok(())
    }

    /// Demands of a value what the constraint says: of known values now, of others while lanes run.
    pub(super) fn check_constraint(&mut self, span: Span, name: &str, ty: &SizedType, value: &Val) -> Result<()> {
        let mut leaf = ty;
        while let SizedKind::Array { element, .. } = &leaf.kind {
            leaf = element;
        }
        match &leaf.constraint {
            Constraint::Lower(a) => {
                let a = self.eval(a)?;
                self.check_bound(span, name, value, &a, ">=")
            }
            Constraint::Upper(b) => {
                let b = self.eval(b)?;
                self.check_bound(span, name, value, &b, "<=")
            }
            Constraint::LowerUpper(a, b) => {
                let (a, b) = (self.eval(a)?, self.eval(b)?);
                self.check_bound(span, name, value, &a, ">=")?;
                self.check_bound(span, name, value, &b, "<=")
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
                let place = place_of(value, i);
                return wrong(span, format!("`{name}{place}` is {}, but must be {words} {}", x[i], of(i)));
            }
            return Ok(());
        }
        if value.len() == 0 {
            return Ok(());
        }
        let value = &if bound.is_scalar() { distinct(value) } else { value.clone() };
        // One comparison of the least or the largest slack.
        let (a, b) = if sign == ">=" { (value, bound) } else { (bound, value) };
        let slack = if matches!(bound.as_real(), Some(0.0)) && sign == ">=" {
            value.clone()
        } else {
            self.infix(span, "-", a, b)?
        };
        let least = if slack.is_scalar() { slack } else { self.library(span, "min", &[slack])? };
        let holds = self.compare(span, ">=", &least, &Val::real(0.0))?;
        let limit = bound.as_real().map_or(" its bound".to_owned(), |b| format!(" {b}"));
        self.check(span, &holds, &format!("{name} must be {words}{limit}"))
    }
}

/// A variable as files have it: of complex numbers the real and the imaginary parts, `z.real` and `z.imag`.
fn declare_parts(name: &std::sync::Arc<str>, value: Val, all: &mut Vec<Declared>) {
    if !value.is_complex() {
        all.push(Declared { name: name.clone(), value });
        return;
    }
    let (re, im) = value.re_im();
    all.push(Declared { name: ComplexPart::Real.of(name).into(), value: re });
    all.push(Declared { name: ComplexPart::Imaginary.of(name).into(), value: im });
}

/// Whether a number is another one but for rounding; a NaN is not.
fn is_near(x: f64, wanted: f64) -> bool {
    (x - wanted).abs() <= TOLERANCE
}

/// Why known values are not what a constraint says, as Stan's checks see it (`stan/math/prim/err`).
fn violated(constraint: &Constraint, x: &[f64], shape: &[usize]) -> Option<String> {
    let (rows, cols) = (shape[0], shape.get(1).copied().unwrap_or(1));
    let row = |i: usize| x[i * cols..][..cols].to_vec();
    let column = |j: usize| (0..rows).map(|i| x[i * cols + j]).collect::<Vec<f64>>();
    let of_rows = |why: fn(&[f64]) -> Option<String>| {
        (0..rows).find_map(|i| why(&row(i)).map(|why| format!("{why} in row {}", i + 1)))
    };
    let of_columns = |why: fn(&[f64]) -> Option<String>| {
        (0..cols).find_map(|j| why(&column(j)).map(|why| format!("{why} in column {}", j + 1)))
    };
    match constraint {
        Constraint::Simplex => no_simplex(x),
        Constraint::RowStochastic => of_rows(no_simplex),
        Constraint::ColumnStochastic => of_columns(no_simplex),
        Constraint::Ordered | Constraint::PositiveOrdered => {
            let positive = matches!(constraint, Constraint::PositiveOrdered);
            if let Some(first) = x.first().filter(|first| positive && (first.is_nan() || **first < 0.0)) {
                return Some(format!("is not positive: it begins with {first}"));
            }
            let bad = x.windows(2).position(|w| w[0].is_nan() || w[1].is_nan() || w[0] >= w[1])?;
            Some(format!("is not ordered: {} comes before {}", x[bad], x[bad + 1]))
        }
        Constraint::UnitVector => no_unit_vector(x),
        Constraint::SumToZero if shape.len() == 1 => no_sum_of_zero(x),
        Constraint::SumToZero => of_rows(no_sum_of_zero).or_else(|| of_columns(no_sum_of_zero)),
        Constraint::CorrMatrix | Constraint::CovMatrix => {
            if (0..rows).any(|i| (0..i).any(|j| !is_near(x[i * rows + j], x[j * rows + i]))) {
                return Some("is not symmetric".to_owned());
            }
            let unit = matches!(constraint, Constraint::CorrMatrix);
            if let Some(at) = (0..rows).map(|i| i * (rows + 1)).find(|at| unit && !is_near(x[*at], 1.0)) {
                return Some(format!("is no correlation matrix: its diagonal has {}", x[at]));
            }
            // Stan demands more of a single number.
            let holds = if rows == 1 { x[0] > TOLERANCE } else { is_positive_definite(x, rows) };
            (!holds).then(|| "is not positive definite".to_owned())
        }
        Constraint::CholeskyFactorCorr | Constraint::CholeskyFactorCov => {
            if let Some((i, j)) = above_diagonal(x, rows, cols) {
                let entry = x[i * cols + j];
                return Some(format!("is not lower triangular: it has {entry} in row {}, column {}", i + 1, j + 1));
            }
            let diagonal = |i: &usize| x[i * cols + i];
            if let Some(i) = (0..rows.min(cols)).find(|i| diagonal(i).is_nan() || diagonal(i) <= 0.0) {
                return Some(format!("is no Cholesky factor: its diagonal has {}", diagonal(&i)));
            }
            matches!(constraint, Constraint::CholeskyFactorCorr).then(|| of_rows(no_unit_vector)).flatten()
        }
        Constraint::None
        | Constraint::Lower(_)
        | Constraint::Upper(_)
        | Constraint::LowerUpper(..)
        | Constraint::Offset(_)
        | Constraint::Multiplier(_)
        | Constraint::OffsetMultiplier(..) => None,
    }
}

fn no_simplex(x: &[f64]) -> Option<String> {
    if let Some(negative) = x.iter().find(|v| **v < 0.0) {
        return Some(format!("is no simplex: it has {negative}"));
    }
    let sum: f64 = x.iter().sum();
    (!is_near(sum, 1.0)).then(|| format!("is no simplex: its sum is {sum}"))
}

fn no_unit_vector(x: &[f64]) -> Option<String> {
    let square: f64 = x.iter().map(|v| v * v).sum();
    (!is_near(square, 1.0)).then(|| format!("is no unit vector: its squared length is {square}"))
}

fn no_sum_of_zero(x: &[f64]) -> Option<String> {
    let sum: f64 = x.iter().sum();
    (!is_near(sum, 0.0)).then(|| format!("does not sum to 0, but to {sum}"))
}

/// The place of a number of a matrix above its diagonal that is not 0.
pub(super) fn above_diagonal(x: &[f64], rows: usize, cols: usize) -> Option<(usize, usize)> {
    (0..rows).flat_map(|i| (i + 1..cols).map(move |j| (i, j))).find(|(i, j)| x[i * cols + j] != 0.0)
}
