//! Sparse matrices by compressed rows: `w` holds what is not zero, `v` the columns of that, `u` where each row begins.

use super::{Result, Tracer, unsupported, wrong};
use crate::base::Span;
use crate::stan::value::{Base, Elem, Kind, Val};

const INTS: Kind = Kind { base: Base::Int, arrays: 1 };

/// Where the elements of a sparse matrix are.
struct Pattern {
    cols: usize,
    /// The columns, and where each row begins and the last one ends; counted from 0.
    columns: Vec<usize>,
    starts: Vec<usize>,
}

impl Pattern {
    /// The places in `w` of each row.
    fn rows(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        self.starts.windows(2).map(|pair| pair[0]..pair[1])
    }
}

impl Tracer<'_> {
    /// A function of sparse matrices; `None` for any other.
    pub(super) fn of_sparse(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        match (name, args) {
            ("csr_extract_w" | "csr_extract_v" | "csr_extract_u", [a]) => Ok(Some(extracted(name, a))),
            ("csr_matrix_times_vector", [m, n, w, v, u, b]) => {
                let pattern = self.pattern(span, name, (m, n), w, (v, u))?;
                if b.len() != pattern.cols {
                    let n = pattern.cols;
                    return wrong(span, format!("{name}: a vector of {} elements for {n} columns", b.len()));
                }
                self.sparse_product(span, &pattern, w, b).map(Some)
            }
            ("csr_to_dense_matrix", [m, n, w, v, u]) => {
                let pattern = self.pattern(span, name, (m, n), w, (v, u))?;
                let rows = pattern.starts.len() - 1;
                let mut elems = vec![Elem::Real(0.0); rows * pattern.cols];
                for (i, places) in pattern.rows().enumerate() {
                    places.for_each(|at| elems[i * pattern.cols + pattern.columns[at]] = w.elem(at).as_real());
                }
                Ok(Some(Val::from_elems(Kind::MATRIX, vec![rows, pattern.cols], elems)))
            }
            _ => Ok(None),
        }
    }

    /// The pattern that sizes, columns and starts tell, if it is one.
    fn pattern(&self, span: Span, name: &str, (m, n): (&Val, &Val), w: &Val, (v, u): (&Val, &Val)) -> Result<Pattern> {
        let (Some(m), Some(n), Some(v), Some(u)) = (m.as_int(), n.as_int(), v.ints(), u.ints()) else {
            return unsupported(span, format!("`{name}` of places that depend on parameters"));
        };
        let (Ok(rows), Ok(cols)) = (usize::try_from(m), usize::try_from(n)) else {
            return wrong(span, format!("{name}: a matrix of {m} × {n}"));
        };
        if v.len() != w.len() {
            return wrong(span, format!("{name}: {} columns for {} elements", v.len(), w.len()));
        }
        if u.len() != rows + 1 {
            return wrong(span, format!("{name}: {} starts for {rows} rows: it takes one more than rows", u.len()));
        }
        if let Some(bad) = v.iter().find(|at| **at < 1 || **at > n) {
            return wrong(span, format!("{name}: column {bad} of {n}"));
        }
        let end = w.len() as i64 + 1;
        let in_order = u.windows(2).all(|pair| pair[0] <= pair[1]);
        if u.first() != Some(&1) || u.last() != Some(&end) || !in_order {
            return wrong(span, format!("{name}: rows that start at {u:?}: from 1 they go up to {end}"));
        }
        let from_zero = |places: Vec<i64>| places.into_iter().map(|at| at as usize - 1).collect();
        Ok(Pattern { cols, columns: from_zero(v), starts: from_zero(u) })
    }

    /// Dot products of the rows. Those that are a little shorter than the longest have zeros at their end, so that all
    /// are alike.
    fn sparse_product(&mut self, span: Span, pattern: &Pattern, w: &Val, b: &Val) -> Result<Val> {
        let longest = pattern.rows().map(|row| row.len()).max().unwrap_or(0);
        let rows = pattern.starts.len() - 1;
        let fills = longest * rows <= 4 * w.len().max(rows);
        let mut elems = Vec::with_capacity(rows);
        for row in pattern.rows() {
            let Some(first) = row.clone().next() else {
                elems.push(Elem::Real(0.0));
                continue;
            };
            let more = if fills { longest - row.len() } else { 0 };
            let factors = row.clone().map(|at| w.elem(at)).chain(std::iter::repeat_n(Elem::Real(0.0), more));
            let length = row.len() + more;
            let factors = Val::from_elems(Kind::VECTOR, vec![length], factors.collect());
            let columns = row.chain(std::iter::repeat_n(first, more)).map(|at| pattern.columns[at]);
            let chosen = b.pick(Kind::VECTOR, vec![length], columns);
            let product = if length == 1 {
                self.infix(span, "*", &super::broadcast::number(&factors, 0), &super::broadcast::number(&chosen, 0))?
            } else {
                self.call_ab(span, "dot", &[factors, chosen], Kind::REAL, vec![])?
            };
            elems.push(product.elem(0));
        }
        Ok(Val::from_elems(Kind::VECTOR, vec![rows], elems))
    }
}

/// What a matrix holds that is not zero, its columns, or where its rows begin. What lanes compute counts as not zero.
fn extracted(name: &str, a: &Val) -> Val {
    let (rows, cols) = (a.shape[0], a.shape[1]);
    let is_there = |at: &usize| !matches!(a.elem(*at).as_real(), Elem::Real(x) if x == 0.0);
    let places: Vec<usize> = (0..rows * cols).filter(is_there).collect();
    let ints = |ints: Vec<Elem>| Val::from_elems(INTS, vec![ints.len()], ints);
    match name {
        "csr_extract_w" => a.pick(Kind::VECTOR, vec![places.len()], places.into_iter()),
        "csr_extract_v" => ints(places.iter().map(|at| Elem::Int((at % cols) as i64 + 1)).collect()),
        _ => {
            let before = |row: usize| places.partition_point(|at| *at < row * cols);
            ints((0..=rows).map(|row| Elem::Int(before(row) as i64 + 1)).collect())
        }
    }
}
