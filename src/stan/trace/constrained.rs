//! What constraints of vectors and matrices demand of values that lanes compute: a point that breaks one is rejected.

use indexmap::IndexSet;

use super::declare::TOLERANCE;
use super::{Result, Tracer};
use crate::base::Span;
use crate::stan::graph::Op;
use crate::stan::syntax::ast::Constraint;
use crate::stan::value::{Kind, Val, What};

/// Elements of a value, as a vector.
fn elements(value: &Val, places: Vec<usize>) -> Val {
    value.pick(Kind::VECTOR, vec![places.len()], places.into_iter())
}

/// A row of a matrix, as a vector.
fn row(matrix: &Val, i: usize) -> Val {
    let cols = matrix.shape[1];
    elements(matrix, (i * cols..(i + 1) * cols).collect())
}

/// A column of a matrix, as a vector.
fn column(matrix: &Val, j: usize) -> Val {
    let (rows, cols) = (matrix.shape[0], matrix.shape[1]);
    elements(matrix, (0..rows).map(|i| i * cols + j).collect())
}

/// What has the elements of a value, each once: a bound holds of both or of none.
pub(super) fn distinct(value: &Val) -> Val {
    let What::Elements(elems) = &value.what else { return value.clone() };
    let elems: Vec<_> = elems.list().iter().copied().collect::<IndexSet<_>>().into_iter().collect();
    if elems.len() == value.len() {
        return value.clone();
    }
    let kind = if value.kind.is_int() { Kind { arrays: 1, ..Kind::INT } } else { Kind::VECTOR };
    Val::from_elems(kind, vec![elems.len()], elems)
}

impl Tracer<'_> {
    /// Demands of one vector or matrix what its constraint says.
    pub(super) fn check_lanes(&mut self, span: Span, name: &str, constraint: &Constraint, x: &Val) -> Result<()> {
        let n = x.shape[0];
        match constraint {
            _ if x.len() == 0 => Ok(()),
            Constraint::Ordered | Constraint::PositiveOrdered => {
                if matches!(constraint, Constraint::PositiveOrdered) {
                    self.demand_least(span, &elements(x, vec![0]), ">=", &format!("{name} must be positive"))?;
                }
                let (after, before) = (elements(x, (1..n).collect()), elements(x, (0..n - 1).collect()));
                let steps = self.infix(span, "-", &after, &before)?;
                self.demand_least(span, &steps, ">", &format!("{name} must be in increasing order"))
            }
            Constraint::Simplex => {
                self.demand_least(span, x, ">=", &format!("{name} must be a simplex: nothing negative"))?;
                let sum = self.library(span, "sum", std::slice::from_ref(x))?;
                self.demand_near(span, &sum, 1.0, &format!("{name} must be a simplex: sum to 1"))
            }
            Constraint::SumToZero if x.shape.len() == 1 => {
                let sum = self.library(span, "sum", std::slice::from_ref(x))?;
                self.demand_near(span, &sum, 0.0, &format!("{name} must sum to 0"))
            }
            Constraint::UnitVector => {
                let square = self.call_ab(span, "dot", &[x.clone(), x.clone()], Kind::REAL, vec![])?;
                self.demand_near(span, &square, 1.0, &format!("{name} must be a unit vector"))
            }
            Constraint::CorrMatrix | Constraint::CovMatrix => {
                self.demand_symmetric(span, x, &format!("{name} must be symmetric"))?;
                if matches!(constraint, Constraint::CorrMatrix) {
                    let diagonal = elements(x, (0..n).map(|i| i * (n + 1)).collect());
                    self.demand_near(span, &diagonal, 1.0, &format!("{name} must have a unit diagonal"))?;
                }
                // Which stops no lane: only those are looked at that come here.
                let factor = self.call_ab(span, "cholesky_factor", std::slice::from_ref(x), x.kind, vec![n, n])?;
                let diagonal = elements(&factor, (0..n).map(|i| i * (n + 1)).collect());
                self.demand_least(span, &diagonal, ">", &format!("{name} must be positive definite"))
            }
            Constraint::CholeskyFactorCorr | Constraint::CholeskyFactorCov => {
                self.demand_lower_triangular(span, x, &format!("{name} must be lower triangular"))?;
                let cols = x.shape[1];
                let diagonal = (0..n.min(cols)).map(|i| i * (cols + 1)).collect();
                self.demand_least(span, &elements(x, diagonal), ">", &format!("{name} must have a positive diagonal"))?;
                if matches!(constraint, Constraint::CholeskyFactorCov) {
                    return Ok(());
                }
                for i in 0..n {
                    let row = row(x, i);
                    let square = self.call_ab(span, "dot", &[row.clone(), row], Kind::REAL, vec![])?;
                    self.demand_near(span, &square, 1.0, &format!("{name} must have rows of length 1"))?;
                }
                Ok(())
            }
            Constraint::RowStochastic | Constraint::ColumnStochastic => {
                let (cols, by_rows) = (x.shape[1], matches!(constraint, Constraint::RowStochastic));
                let (word, count) = if by_rows { ("row", n) } else { ("column", cols) };
                for k in 0..count {
                    let line = if by_rows { row(x, k) } else { column(x, k) };
                    self.check_lanes(span, &format!("{name}, {word} {},", k + 1), &Constraint::Simplex, &line)?;
                }
                Ok(())
            }
            Constraint::SumToZero => {
                let lines = (0..n).map(|i| row(x, i)).chain((0..x.shape[1]).map(|j| column(x, j)));
                for line in lines {
                    let sum = self.library(span, "sum", &[line])?;
                    self.demand_near(span, &sum, 0.0, &format!("{name} must sum to 0 in every row and column"))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Demands that a matrix has nothing above the diagonal.
    pub(super) fn demand_lower_triangular(&mut self, span: Span, x: &Val, message: &str) -> Result<()> {
        let (rows, cols) = (x.shape[0], x.shape[1]);
        let above = (0..rows).flat_map(|i| (i + 1..cols).map(move |j| i * cols + j)).collect();
        self.demand_within(span, &elements(x, above), 0.0, &Val::real(0.0), message)
    }

    /// Demands that a square matrix is symmetric but for rounding.
    pub(super) fn demand_symmetric(&mut self, span: Span, x: &Val, message: &str) -> Result<()> {
        let n = x.shape[0];
        let pairs = || (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
        let below = elements(x, pairs().map(|(i, j)| i * n + j).collect());
        let above = elements(x, pairs().map(|(i, j)| j * n + i).collect());
        let difference = self.infix(span, "-", &below, &above)?;
        self.demand_near(span, &difference, 0.0, message)
    }

    /// Demands that the least of some numbers is above 0, or at least 0.
    pub(super) fn demand_least(&mut self, span: Span, x: &Val, sign: &'static str, message: &str) -> Result<()> {
        if x.len() == 0 {
            return Ok(());
        }
        let least = self.library(span, "min", &[distinct(x)])?;
        let holds = self.compare(span, sign, &least, &Val::real(0.0))?;
        self.check(span, &holds, message)
    }

    /// Demands that some numbers are a number but for rounding.
    fn demand_near(&mut self, span: Span, x: &Val, wanted: f64, message: &str) -> Result<()> {
        // Of what lanes compute it depends on the precision of the run.
        let tolerance = if x.is_known() {
            Val::real(TOLERANCE)
        } else {
            self.node(span, Op::Call("constraint_tolerance".into(), vec![]), &[], Kind::REAL, vec![])?
        };
        self.demand_within(span, x, wanted, &tolerance, message)
    }

    /// Demands that some numbers are a number, but for so much.
    fn demand_within(&mut self, span: Span, x: &Val, wanted: f64, off_by: &Val, message: &str) -> Result<()> {
        if x.len() == 0 {
            return Ok(());
        }
        let off = self.infix(span, "-", x, &Val::real(wanted))?;
        let off = self.elementwise(span, "abs", &[off])?;
        let most = if off.is_scalar() { off } else { self.library(span, "max", &[off])? };
        let near = self.apply(span, Op::Compare("<="), &[most, off_by.clone()], Kind::INT, vec![])?;
        self.check(span, &near, message)
    }
}
