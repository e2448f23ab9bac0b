//! The transforms of constrained parameters as functions: `…_constrain`, `…_jacobian`, which adds to the target, and
//! `…_unconstrain`.

use super::parameters::{Transform, transform};
use super::{Result, Tracer, unsupported, wrong};
use crate::base::Span;
use crate::stan::syntax::ast::Constraint;
use crate::stan::value::{Base, Kind, Val};

/// The transforms of vectors and matrices by Stan's names.
fn constraint(stem: &str) -> Option<Constraint> {
    Some(match stem {
        "ordered" => Constraint::Ordered,
        "positive_ordered" => Constraint::PositiveOrdered,
        "simplex" => Constraint::Simplex,
        "unit_vector" => Constraint::UnitVector,
        "sum_to_zero" => Constraint::SumToZero,
        "stochastic_row" => Constraint::RowStochastic,
        "stochastic_column" => Constraint::ColumnStochastic,
        "cholesky_factor_corr" => Constraint::CholeskyFactorCorr,
        "cholesky_factor_cov" => Constraint::CholeskyFactorCov,
        "corr_matrix" => Constraint::CorrMatrix,
        "cov_matrix" => Constraint::CovMatrix,
        _ => return None,
    })
}

/// The extents of what a transform gives of unconstrained numbers of these extents; `sizes` are those that it is given.
fn constrained_shape(constraint: &Constraint, free: &[usize], sizes: &[usize]) -> Vec<usize> {
    match (constraint, free, sizes) {
        (Constraint::Simplex | Constraint::SumToZero, [k], _) => vec![k + 1],
        (Constraint::SumToZero, [rows, cols], _) => vec![rows + 1, cols + 1],
        (Constraint::RowStochastic, [rows, cols], _) => vec![*rows, cols + 1],
        (Constraint::ColumnStochastic, [rows, cols], _) => vec![rows + 1, *cols],
        (_, _, [n]) => vec![*n, *n],
        (_, _, [rows, cols]) => vec![*rows, *cols],
        _ => free.to_vec(),
    }
}

impl Tracer<'_> {
    /// A transform that is called; `None` for any other function.
    pub(super) fn transform_called(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        let Some((stem, what)) = name.rsplit_once('_') else { return Ok(None) };
        let Some((x, rest)) = args.split_first().filter(|_| ["constrain", "jacobian", "unconstrain"].contains(&what))
        else {
            return Ok(None);
        };
        let x = x.promoted();
        let rest: Vec<Val> = rest.iter().map(Val::promoted).collect();
        let mut terms = Vec::new();
        let value = match (stem, what, &rest[..], constraint(stem)) {
            ("lower_bound" | "upper_bound" | "lower_upper_bound" | "offset_multiplier", "unconstrain", ..) => {
                let args: Vec<Val> = std::iter::once(x).chain(rest).collect();
                self.elementwise(span, name, &args)?
            }
            ("lower_bound", _, [a], _) => self.bounded(span, &x, Some(a.clone()), None, &mut terms)?,
            ("upper_bound", _, [b], _) => self.bounded(span, &x, None, Some(b.clone()), &mut terms)?,
            ("lower_upper_bound", _, [a, b], _) => {
                self.bounded(span, &x, Some(a.clone()), Some(b.clone()), &mut terms)?
            }
            ("offset_multiplier", _, [m, s], _) => self.scaled(span, Some(m), s, &x, &mut terms)?,
            (_, "unconstrain", _, Some(constraint)) => self.unconstrained_of(span, name, &constraint, &x)?,
            (_, _, _, Some(constraint)) => {
                self.constrained_of(span, name, &constraint, (&x, &args[1..]), &mut terms)?
            }
            _ => return Ok(None),
        };
        if what == "jacobian" {
            for term in &terms {
                self.add_terms(span, term)?;
            }
        }
        Ok(Some(value))
    }

    /// Vectors or matrices of unconstrained numbers.
    fn constrained_of(
        &mut self,
        span: Span,
        name: &str,
        constraint: &Constraint,
        (u, sizes): (&Val, &[Val]),
        terms: &mut Vec<Val>,
    ) -> Result<Val> {
        let mut extents = Vec::with_capacity(2);
        for size in sizes {
            match size.as_int().map(usize::try_from) {
                Some(Ok(n)) => extents.push(n),
                Some(Err(_)) => return wrong(span, format!("{name}: a size is negative")),
                None => return unsupported(span, "a size that depends on parameters"),
            }
        }
        let (arrays, own) = u.shape.split_at(u.kind.arrays);
        let shape = constrained_shape(constraint, own, &extents);
        let Some(transform) = transform(constraint, &shape) else {
            return wrong(
                span,
                format!("{name}: there is no such matrix of {} × {}", shape[0], shape[shape.len() - 1]),
            );
        };
        if transform.free != own {
            let (wanted, found) = (transform.free.iter().product::<usize>(), own.iter().product::<usize>());
            return wrong(span, format!("{name}: {found} unconstrained numbers where {wanted} are wanted"));
        }
        let n = arrays.iter().product();
        let base = if shape.len() == 2 { Base::Matrix } else { Base::Vector };
        let one = self.transformed_values(span, &transform, (u, n), (Kind::of(base), &shape), terms)?;
        if arrays.is_empty() {
            return Ok(one.into_iter().next().unwrap_or_else(|| Tracer::unset(Kind::of(base), shape)));
        }
        let elems = one.iter().flat_map(Val::elems).collect();
        let all = arrays.iter().copied().chain(shape).collect();
        Ok(Val::from_elems(Kind { base, arrays: arrays.len() }, all, elems))
    }

    /// The unconstrained numbers of vectors or matrices.
    fn unconstrained_of(&mut self, span: Span, name: &str, constraint: &Constraint, x: &Val) -> Result<Val> {
        let (arrays, own) = x.shape.split_at(x.kind.arrays);
        let Some(Transform { stem, free, .. }) = transform(constraint, own) else {
            return wrong(span, format!("{name}: there is no such matrix of {} × {}", own[0], own[own.len() - 1]));
        };
        let base = if free.len() == 2 { Base::Matrix } else { Base::Vector };
        let width: usize = own.iter().product();
        let n: usize = arrays.iter().product();
        let mut elems = Vec::new();
        for i in 0..if free.contains(&0) { 0 } else { n } {
            let one = x.pick(Kind::of(x.kind.base), own.to_vec(), i * width..(i + 1) * width);
            let one = if arrays.is_empty() { x.clone() } else { one };
            let value = self.call_ab(span, &format!("{stem}_unconstrain"), &[one], Kind::of(base), free.clone())?;
            if arrays.is_empty() {
                return Ok(value);
            }
            elems.extend(value.elems());
        }
        let all = arrays.iter().chain(&free).copied().collect();
        Ok(Val::from_elems(Kind { base, arrays: arrays.len() }, all, elems))
    }
}
