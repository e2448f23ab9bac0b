//! Functions of the library that only move elements or count them.

use super::declare::extent;
use super::index::At;
use super::{Result, Tracer, wrong};
use crate::base::Span;
use crate::stan::value::{Base, Elem, Kind, Val};
use crate::types::{Array, column_major};

/// The elements in Stan's order: those of a matrix column after column.
pub(super) fn by_columns(value: &Val) -> Vec<Elem> {
    let elems = value.elems();
    if value.kind.base != Base::Matrix {
        return elems;
    }
    column_major(&value.shape, value.kind.arrays).map(|at| elems[at]).collect()
}

impl Tracer<'_> {
    /// A function that moves or counts elements; `None` for any other.
    pub(super) fn moved(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        let int = |n: usize| Ok(Some(Val::int(n as i64)));
        let vals = |kind, shape, elems| Ok(Some(Val::from_elems(kind, shape, elems)));
        let filled = |kind: Kind, shape: Vec<usize>, value: &Val| {
            let n: usize = shape.iter().product();
            let mut elem = value.elem(0);
            if !kind.is_int() {
                elem = elem.as_real();
            }
            Ok(Some(Val::from_elems(kind, shape, vec![elem; n])))
        };
        if let Some(value) = self.moved_by_lanes(span, name, args)? {
            return Ok(Some(value));
        }
        match (name, args) {
            ("rows", [a]) => int(match a.kind.base {
                Base::RowVector => 1,
                _ => a.shape[a.kind.arrays],
            }),
            ("cols", [a]) => int(match a.kind.base {
                Base::Vector => 1,
                _ => *a.shape.last().unwrap_or(&1),
            }),
            ("num_elements", [a]) => int(a.len()),
            ("size", [a]) if a.kind.arrays > 0 => int(a.shape[0]),
            ("size", [a]) => int(a.len()),
            ("dims", [a]) => {
                let mut dims: Vec<i64> = a.shape.iter().map(|n| *n as i64).collect();
                // Vectors have two, as matrices.
                match a.kind.real().base {
                    Base::Vector => dims.push(1),
                    Base::RowVector => dims.insert(dims.len() - 1, 1),
                    _ => {}
                }
                Ok(Some(Val::known(Kind { base: Base::Int, arrays: 1 }, Array::int([dims.len()], dims))))
            }
            ("rep_vector", [x, n]) => filled(Kind::VECTOR, vec![extent(span, n)?], x),
            ("rep_row_vector", [x, n]) => filled(Kind::ROW_VECTOR, vec![extent(span, n)?], x),
            ("rep_matrix", [x, m, n]) => filled(Kind::MATRIX, vec![extent(span, m)?, extent(span, n)?], x),
            ("rep_matrix", [x, n]) => {
                let n = extent(span, n)?;
                let (len, elems) = (x.len(), x.elems());
                if x.kind == Kind::ROW_VECTOR {
                    vals(Kind::MATRIX, vec![n, len], (0..n).flat_map(|_| elems.iter().copied()).collect())
                } else {
                    vals(Kind::MATRIX, vec![len, n], elems.iter().flat_map(|e| vec![*e; n]).collect())
                }
            }
            ("rep_array", [x, dims @ ..]) => {
                let mut shape = dims.iter().map(|n| extent(span, n)).collect::<Result<Vec<_>>>()?;
                let times: usize = shape.iter().product();
                shape.extend(&x.shape);
                let kind = Kind { arrays: x.kind.arrays + dims.len(), ..x.kind };
                let elems = x.elems();
                vals(kind, shape, (0..times).flat_map(|_| elems.iter().copied()).collect())
            }
            ("zeros_vector" | "zeros_row_vector" | "ones_vector" | "ones_row_vector", [n]) => {
                let value = Val::real(if name.starts_with("ones") { 1.0 } else { 0.0 });
                let kind = if name.ends_with("row_vector") { Kind::ROW_VECTOR } else { Kind::VECTOR };
                filled(kind, vec![extent(span, n)?], &value)
            }
            ("zeros_array" | "ones_array", dims) => {
                let shape = dims.iter().map(|n| extent(span, n)).collect::<Result<Vec<_>>>()?;
                let kind = Kind { base: Base::Real, arrays: dims.len() };
                filled(kind, shape, &Val::real(if name.starts_with("ones") { 1.0 } else { 0.0 }))
            }
            ("zeros_int_array" | "ones_int_array", dims) => {
                let shape = dims.iter().map(|n| extent(span, n)).collect::<Result<Vec<_>>>()?;
                let kind = Kind { base: Base::Int, arrays: dims.len() };
                filled(kind, shape, &Val::int(i64::from(name.starts_with("ones"))))
            }
            ("identity_matrix", [n]) => {
                let n = extent(span, n)?;
                let elems = (0..n * n).map(|i| Elem::Real(if i % (n + 1) == 0 { 1.0 } else { 0.0 }));
                vals(Kind::MATRIX, vec![n, n], elems.collect())
            }
            ("one_hot_vector" | "one_hot_row_vector" | "one_hot_array" | "one_hot_int_array", [n, k]) => {
                let (n, k) = (extent(span, n)?, extent(span, k)?);
                if k == 0 || k > n {
                    return wrong(span, format!("{name}: place {k} of {n}"));
                }
                let kind = match name {
                    "one_hot_vector" => Kind::VECTOR,
                    "one_hot_row_vector" => Kind::ROW_VECTOR,
                    "one_hot_array" => Kind { base: Base::Real, arrays: 1 },
                    _ => Kind { base: Base::Int, arrays: 1 },
                };
                vals(kind, vec![n], (1..=n).map(|i| Elem::Int(i64::from(i == k))).collect())
            }
            ("uniform_simplex", [n]) => {
                let n = extent(span, n)?;
                filled(Kind::VECTOR, vec![n], &Val::real(1.0 / n as f64))
            }
            ("linspaced_int_array", [n, a, b]) => {
                let n = extent(span, n)?;
                let (Some(a), Some(b)) = (a.as_int(), b.as_int()) else {
                    return super::unsupported(span, format!("`{name}` of parameters"));
                };
                if n > 0 && b < a {
                    return wrong(span, format!("{name}: {b} is less than {a}"));
                }
                vals(Kind { base: Base::Int, arrays: 1 }, vec![n], steps(n as i64, a, b))
            }
            ("linspaced_vector" | "linspaced_row_vector" | "linspaced_array", [n, a, b]) => {
                let n = extent(span, n)?;
                let (Some(a), Some(b)) = (a.as_real(), b.as_real()) else {
                    return super::unsupported(span, format!("`{name}` of parameters"));
                };
                let step = if n > 1 { (b - a) / (n - 1) as f64 } else { 0.0 };
                let elems = (0..n).map(|i| Elem::Real(if i + 1 == n { b } else { a + i as f64 * step })).collect();
                let kind = match name {
                    "linspaced_vector" => Kind::VECTOR,
                    "linspaced_array" => Kind { base: Base::Real, arrays: 1 },
                    _ => Kind::ROW_VECTOR,
                };
                vals(kind, vec![n], elems)
            }
            ("to_vector", [a]) => vals(Kind::VECTOR, vec![a.len()], reals(by_columns(a))),
            ("to_row_vector", [a]) => vals(Kind::ROW_VECTOR, vec![a.len()], reals(by_columns(a))),
            ("to_array_1d", [a]) => {
                let base = if a.kind.is_int() { Base::Int } else { Base::Real };
                vals(Kind { base, arrays: 1 }, vec![a.len()], by_columns(a))
            }
            ("to_array_2d", [a]) => vals(Kind { base: Base::Real, arrays: 2 }, a.shape.clone(), a.elems()),
            ("to_matrix", [a]) => self.matrix(a),
            ("to_matrix", [a, m, n]) => {
                let (m, n) = (extent(span, m)?, extent(span, n)?);
                self.matrix_of(span, a, m, n, true)
            }
            ("to_matrix", [a, m, n, by_column]) => {
                let (m, n) = (extent(span, m)?, extent(span, n)?);
                self.matrix_of(span, a, m, n, by_column.as_int() != Some(0))
            }
            ("append_row", [a, b]) => self.append_row(span, a, b),
            ("append_col", [a, b]) => self.append_col(span, a, b),
            ("append_array", [a, b]) => {
                let kind = if a.kind.is_int() { b.kind } else { a.kind };
                let mut shape = if a.len() == 0 { b.shape.clone() } else { a.shape.clone() };
                shape[0] = a.shape[0] + b.shape[0];
                let mut elems = a.elems();
                elems.extend(b.elems());
                vals(kind, shape, if kind.is_int() { elems } else { reals(elems) })
            }
            ("head", [a, n]) => self.part(span, a, 1, extent(span, n)?),
            ("tail", [a, n]) => {
                let n = extent(span, n)?;
                let total = a.shape[0];
                if n > total {
                    return wrong(span, format!("tail of {n} elements of {total}"));
                }
                self.part(span, a, (total - n + 1) as i64, n)
            }
            ("segment", [a, from, n]) => {
                let Some(from) = from.as_int() else {
                    return super::unsupported(span, "`segment` from a place that depends on parameters");
                };
                self.part(span, a, from, extent(span, n)?)
            }
            ("row" | "col", [a, i]) => self.row_or_col(span, name, a, i),
            ("block", [a, i, j, m, n]) => {
                let (i, j) = (extent(span, i)?, extent(span, j)?);
                let (m, n) = (extent(span, m)?, extent(span, n)?);
                self.sub_matrix(span, a, (i, j), (m, n), Kind::MATRIX)
            }
            ("sub_col", [a, i, j, n]) => {
                let (i, j, n) = (extent(span, i)?, extent(span, j)?, extent(span, n)?);
                self.sub_matrix(span, a, (i, j), (n, 1), Kind::VECTOR)
            }
            ("sub_row", [a, i, j, n]) => {
                let (i, j, n) = (extent(span, i)?, extent(span, j)?, extent(span, n)?);
                self.sub_matrix(span, a, (i, j), (1, n), Kind::ROW_VECTOR)
            }
            ("diagonal", [a]) => {
                let n = a.shape[0].min(a.shape[1]);
                let cols = a.shape[1];
                Ok(Some(a.pick(Kind::VECTOR, vec![n], (0..n).map(|i| i * (cols + 1)))))
            }
            ("diag_matrix", [a]) => {
                let n = a.len();
                let elem =
                    |i: usize| if i.is_multiple_of(n + 1) { a.elem(i / (n + 1)).as_real() } else { Elem::Real(0.0) };
                vals(Kind::MATRIX, vec![n, n], (0..n * n).map(elem).collect())
            }
            ("reverse", [a]) => {
                let n = a.shape[0];
                let size = a.len() / n.max(1);
                let at = (0..n).rev().flat_map(|i| i * size..(i + 1) * size);
                Ok(Some(a.pick(a.kind, a.shape.clone(), at)))
            }
            ("symmetrize_from_lower_tri", [a]) => {
                let [n, cols] = a.shape[..] else { return Ok(None) };
                if n != cols {
                    return wrong(span, format!("symmetrize_from_lower_tri: a matrix of {n} × {cols} is not square"));
                }
                let places = (0..n).flat_map(|i| (0..n).map(move |j| i.max(j) * n + i.min(j)));
                Ok(Some(a.pick(Kind::MATRIX, vec![n, n], places)))
            }
            ("transpose", [a]) => self.transpose(span, a).map(Some),
            _ => Ok(None),
        }
    }

    /// The same where lanes choose a size or a place; `None` for what is not there, and where they do not.
    fn moved_by_lanes(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        let of_lanes = |v: &Val| v.is_scalar() && !v.is_known();
        match (name, args) {
            ("head" | "tail" | "segment", [_, places @ ..]) if places.iter().any(of_lanes) => {
                self.library_counted(span, name, args).map(Some)
            }
            ("rep_vector" | "rep_row_vector" | "rep_array", [_, n])
            | (
                "zeros_vector" | "zeros_row_vector" | "zeros_array" | "zeros_int_array" | "ones_vector"
                | "ones_row_vector" | "ones_array" | "ones_int_array",
                [n],
            ) if of_lanes(n) => {
                let most = self.most(span, n)?;
                let fine = self.compare(span, ">=", n, &Val::int(0))?;
                self.check(span, &fine, &format!("{name}: a size is negative"))?;
                let mut args = args.to_vec();
                *args.last_mut().expect("there is a size") = Val::int(most as i64);
                let whole = self.library(span, name, &args)?;
                Ok(Some(Val::of_count(whole, n.clone())))
            }
            ("one_hot_vector" | "one_hot_row_vector" | "one_hot_array" | "one_hot_int_array", [n, k])
                if of_lanes(k) =>
            {
                let whole = self.library(span, name, &[n.clone(), Val::int(1)])?;
                self.check_indices(&whole.shape, &[At::Lane(k.clone(), span)])?;
                let mut elems = Vec::with_capacity(whole.len());
                for i in 1..=whole.len() as i64 {
                    let hit = self.compare(span, "==", k, &Val::int(i))?;
                    elems.push(if whole.kind.is_int() { hit.elem(0) } else { self.real_of(span, &hit)?.elem(0) });
                }
                Ok(Some(Val::from_elems(whole.kind, whole.shape, elems)))
            }
            ("linspaced_int_array", [n, a, b]) if of_lanes(a) || of_lanes(b) => {
                let n = extent(span, n)? as i64;
                let fine = self.compare(span, ">=", b, a)?;
                self.check(span, &fine, &format!("{name}: its end is less than its beginning"))?;
                let (one, count) = (Val::int(1), Val::int(n));
                let span_of = self.infix(span, "-", b, a)?;
                let ints = self.infix(span, "+", &span_of, &one)?;
                let few = self.compare(span, "<", &ints, &count)?;
                // As many of each, or one every so many.
                let total = self.infix(span, "+", &span_of, &count)?;
                let ints = self.at_least_one(span, &ints)?;
                let repeats = self.infix(span, "/", &total, &ints)?;
                let repeats = self.at_least_one(span, &repeats)?;
                let stride = self.infix(span, "/", &span_of, &Val::int((n - 1).max(1)))?;
                let mut elems = Vec::with_capacity(n as usize);
                for i in 0..n {
                    let i = Val::int(i);
                    let (x, y) = (self.infix(span, "/", &i, &repeats)?, self.infix(span, "*", &i, &stride)?);
                    let step = self.select(span, &few, &x, &y)?;
                    elems.push(if n == 1 { b.elem(0) } else { self.infix(span, "+", a, &step)?.elem(0) });
                }
                Ok(Some(Val::from_elems(Kind { base: Base::Int, arrays: 1 }, vec![n as usize], elems)))
            }
            _ => Ok(None),
        }
    }

    /// An int of lanes as a real.
    fn real_of(&mut self, span: Span, int: &Val) -> Result<Val> {
        self.infix(span, "+", int, &Val::real(0.0))
    }

    fn at_least_one(&mut self, span: Span, int: &Val) -> Result<Val> {
        self.call_ab(span, "max", &[int.clone(), Val::int(1)], Kind::INT, vec![])
    }

    fn matrix(&mut self, a: &Val) -> Result<Option<Val>> {
        let shape = match a.kind.base {
            Base::Vector if a.kind.arrays == 0 => vec![a.len(), 1],
            Base::RowVector if a.kind.arrays == 0 => vec![1, a.len()],
            _ => a.shape.clone(),
        };
        Ok(Some(a.promoted().reshaped(Kind::MATRIX, shape)))
    }

    fn matrix_of(&mut self, span: Span, a: &Val, m: usize, n: usize, by_column: bool) -> Result<Option<Val>> {
        if a.len() != m * n {
            return wrong(span, format!("to_matrix: {} elements are no matrix of {m} × {n}", a.len()));
        }
        let elems = reals(by_columns(a));
        let elems = if by_column { column_major(&[n, m], 0).map(|i| elems[i]).collect() } else { elems };
        Ok(Some(Val::from_elems(Kind::MATRIX, vec![m, n], elems)))
    }

    fn append_row(&mut self, span: Span, a: &Val, b: &Val) -> Result<Option<Val>> {
        let mut elems = reals(a.elems());
        elems.extend(reals(b.elems()));
        let column = |v: &Val| v.is_scalar() || v.kind == Kind::VECTOR;
        if column(a) && column(b) {
            return Ok(Some(Val::from_elems(Kind::VECTOR, vec![elems.len()], elems)));
        }
        let rows = |v: &Val| if v.kind == Kind::MATRIX { v.shape[0] } else { 1 };
        let cols = |v: &Val| *v.shape.last().unwrap_or(&1);
        if cols(a) != cols(b) {
            return wrong(span, format!("append_row: {} and {} columns", cols(a), cols(b)));
        }
        Ok(Some(Val::from_elems(Kind::MATRIX, vec![rows(a) + rows(b), cols(a)], elems)))
    }

    fn append_col(&mut self, span: Span, a: &Val, b: &Val) -> Result<Option<Val>> {
        let row = |v: &Val| v.is_scalar() || v.kind == Kind::ROW_VECTOR;
        if row(a) && row(b) {
            let mut elems = reals(a.elems());
            elems.extend(reals(b.elems()));
            return Ok(Some(Val::from_elems(Kind::ROW_VECTOR, vec![elems.len()], elems)));
        }
        let cols = |v: &Val| if v.kind == Kind::MATRIX { v.shape[1] } else { 1 };
        if a.shape[0] != b.shape[0] {
            return wrong(span, format!("append_col: {} and {} rows", a.shape[0], b.shape[0]));
        }
        let (rows, p, q) = (a.shape[0], cols(a), cols(b));
        let mut elems = Vec::with_capacity(rows * (p + q));
        for i in 0..rows {
            elems.extend((0..p).map(|j| a.elem(i * p + j).as_real()));
            elems.extend((0..q).map(|j| b.elem(i * q + j).as_real()));
        }
        Ok(Some(Val::from_elems(Kind::MATRIX, vec![rows, p + q], elems)))
    }

    fn part(&mut self, span: Span, a: &Val, from: i64, n: usize) -> Result<Option<Val>> {
        let total = a.shape[0];
        let first = usize::try_from(from - 1).unwrap_or(usize::MAX);
        if n > 0 && first.saturating_add(n) > total {
            return wrong(span, format!("elements {from} to {} of {total}", from + n as i64 - 1));
        }
        let size = a.len() / total.max(1);
        let mut shape = a.shape.clone();
        shape[0] = n;
        let first = if n == 0 { 0 } else { first };
        Ok(Some(a.pick(a.kind, shape, first * size..(first + n) * size)))
    }

    fn row_or_col(&mut self, span: Span, name: &str, a: &Val, i: &Val) -> Result<Option<Val>> {
        if !i.is_known() {
            let at = At::Lane(i.clone(), span);
            let indices = if name == "row" { vec![at] } else { vec![At::All, at] };
            return self.indexed(span, a, &indices).map(Some);
        }
        let i = extent(span, i)?;
        let (rows, cols) = (a.shape[0], a.shape[1]);
        let most = if name == "row" { rows } else { cols };
        if i == 0 || i > most {
            return wrong(span, format!("{name} {i} of {most}"));
        }
        Ok(Some(match name {
            "row" => a.pick(Kind::ROW_VECTOR, vec![cols], (i - 1) * cols..i * cols),
            _ => a.pick(Kind::VECTOR, vec![rows], (0..rows).map(|r| r * cols + i - 1)),
        }))
    }

    fn sub_matrix(
        &mut self,
        span: Span,
        a: &Val,
        (i, j): (usize, usize),
        (m, n): (usize, usize),
        kind: Kind,
    ) -> Result<Option<Val>> {
        let (rows, cols) = (a.shape[0], a.shape[1]);
        if m * n > 0 && (i == 0 || j == 0 || i - 1 + m > rows || j - 1 + n > cols) {
            return wrong(span, format!("{m} × {n} elements from ({i}, {j}) of {rows} × {cols}"));
        }
        let shape = match kind.base {
            Base::Vector => vec![m],
            Base::RowVector => vec![n],
            _ => vec![m, n],
        };
        let (i, j) = (i.saturating_sub(1), j.saturating_sub(1));
        let at = (0..m).flat_map(|r| (0..n).map(move |c| (r + i) * cols + c + j));
        Ok(Some(a.pick(kind, shape, at)))
    }
}

/// So many ints from a up to b: steps of one length, which ends before b where that does not divide, or each int as often
/// as there are more numbers than ints.
fn steps(n: i64, a: i64, b: i64) -> Vec<Elem> {
    let ints = b - a + 1;
    let at = |i: i64| match n {
        1 => b,
        _ if ints < n => a + i / ((n + b - a) / ints),
        _ => a + i * ((b - a) / (n - 1)),
    };
    (0..n).map(|i| Elem::Int(at(i))).collect()
}

fn reals(elems: Vec<Elem>) -> Vec<Elem> {
    elems.into_iter().map(Elem::as_real).collect()
}
