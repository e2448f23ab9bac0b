//! The rule of each primitive: what it is for all values of an index at once.
//!
//! An operand is tiled, with the axis of the index in front, or plain. Elementwise primitives broadcast: a plain array gets
//! an axis of extent 1 in front, a tiled scalar axes of extent 1 behind. Nothing plain is copied for every index, but for
//! primitives that take one array to change parts of it, and for stacks.

use super::Obstacle;
use super::emit::{Emitter, Value, with_axis};
use crate::cfg::Operand;
use crate::cfg::build::int;
use crate::prim::{Class, Contraction, Movement, Prim, Triangular, computed_elementwise};
use crate::types::{Array, ArrayData, DType, Scalar, Shape, Type};

/// The result for all values of the index, with the axis in front. `ty` is the type for one value.
pub(super) fn tiled(e: &mut Emitter<'_>, prim: Prim, args: &[Value], ty: &Type) -> Result<Operand, Obstacle> {
    let result = with_axis(e.n, ty);
    Ok(match prim.class() {
        Class::Identity(_) | computed_elementwise!() => elementwise(e, prim, args, ty, result),
        Class::Movement(of) => movement(e, of, args, ty, result)?,
        Class::Contraction(Contraction::Dot | Contraction::ChainDot) => dot(e, prim, &args[0], &args[1], result),
        Class::Contraction(Contraction::MatMul | Contraction::ChainMatMul) => {
            product(e, prim, &args[0], &args[1], result)
        }
        Class::Contraction(Contraction::BatchMatMul | Contraction::ChainBatchMatMul) => {
            let (a, b) = (merge(e, &args[0]), merge(e, &args[1]));
            let merged = merged_type(&result);
            let product = e.emit(prim, &[a, b], merged);
            e.reshape(product, result)
        }
        Class::Triangular(Triangular::Cholesky) if ty.shape.len() == 2 => e.emit(prim, &[args[0].operand], result),
        Class::Triangular(Triangular::Cholesky) => {
            let merged = merge(e, &args[0]);
            let ty = e.code.ty(merged);
            let factor = e.emit(prim, &[merged], ty);
            e.reshape(factor, result)
        }
        Class::Triangular(Triangular::ChainCholeskyTangent | Triangular::ChainCholeskyCotangent)
            if ty.shape.len() == 2 =>
        {
            let each: Vec<Operand> = args.iter().map(|a| e.whole_of(a.clone())).collect();
            e.emit(prim, &each, result)
        }
        Class::Triangular(Triangular::ChainCholeskyTangent | Triangular::ChainCholeskyCotangent) => {
            let (l, of) = (merge(e, &args[0]), merge(e, &args[1]));
            let ty = e.code.ty(of);
            let derivatives = e.emit(prim, &[l, of], ty);
            e.reshape(derivatives, result)
        }
        Class::Triangular(
            Triangular::SolveLower
            | Triangular::SolveLowerTransposed
            | Triangular::ChainSolveLower
            | Triangular::ChainSolveLowerTransposed,
        ) => solve(e, prim, args, result),
        Class::Reduction(_) => reduction(e, prim, &args[0], ty, result),
        Class::Draw(_) => e.emit(prim, &[], result),
    })
}

fn elementwise(e: &mut Emitter<'_>, prim: Prim, args: &[Value], ty: &Type, result: Type) -> Operand {
    let rank = ty.shape.len();
    let args: Vec<Operand> = args.iter().map(|a| aligned(e, a, rank)).collect();
    e.emit(prim, &args, result)
}

fn movement(
    e: &mut Emitter<'_>,
    movement: Movement,
    args: &[Value],
    ty: &Type,
    result: Type,
) -> Result<Operand, Obstacle> {
    let prim = Prim::from(movement);
    Ok(match movement {
        Movement::Fill => elementwise(e, prim, args, ty, result),
        Movement::Reshape => e.emit(prim, &[args[0].operand], result),
        Movement::MakeArray => {
            let parts: Vec<Operand> = args.iter().map(|a| e.whole_of(a.clone())).collect();
            let part = e.code.ty(parts[0]);
            let stacked = e.emit(prim, &parts, with_axis(parts.len(), &part));
            exchange(e, stacked)
        }
        Movement::Concat => {
            let parts: Vec<Operand> = args.iter().map(|a| e.whole_of(a.clone())).collect();
            let parts: Vec<Operand> = parts.into_iter().map(|p| exchange(e, p)).collect();
            let mut joined = result;
            joined.shape.swap(0, 1);
            let joined = e.emit(prim, &parts, joined);
            exchange(e, joined)
        }
        Movement::Transpose => exchange_each(e, args[0].operand),
        Movement::TransposeEach => {
            let merged = merge(e, &args[0]);
            let each = exchange_each(e, merged);
            e.reshape(each, result)
        }
        Movement::Index => index(e, &args[0], &args[1..]),
        Movement::Slice => slice(e, &args[0], &args[1], ty)?,
        Movement::SetIndex => {
            let mut places = vec![at_places(e, &Shape::new())];
            places.extend(args[2..].iter().map(|i| i.operand));
            let (x, v) = (e.whole_of(args[0].clone()), e.whole_of(args[1].clone()));
            e.emit(Prim::Scatter, &[&[x, v], &places[..]].concat(), result)
        }
        Movement::SetSlice => {
            let len = args[1].ty.shape[0];
            let entries = entries(e, &args[2], len)?;
            let places = at_places(e, &Shape::from_slice(&[len]));
            let (x, v) = (e.whole_of(args[0].clone()), e.whole_of(args[1].clone()));
            e.emit(Prim::Scatter, &[x, v, places, entries], result)
        }
        Movement::Gather => {
            let indices = places_of(e, args[0].tiled, &args[1..]);
            e.emit(prim, &[&[args[0].operand], &indices[..]].concat(), result)
        }
        Movement::Scatter | Movement::ScatterAdd => {
            let indices = places_of(e, true, &args[2..]);
            let (x, v) = (e.whole_of(args[0].clone()), e.whole_of(args[1].clone()));
            e.emit(prim, &[&[x, v], &indices[..]].concat(), result)
        }
        // it has no operand that could depend on the index
        Movement::Iota => return Err(Obstacle::new(format!("there is no rule for `{prim}`"), &e.code.loc)),
    })
}

/// An operand of a primitive that broadcasts, for results of this rank for one value of the index.
fn aligned(e: &mut Emitter<'_>, value: &Value, rank: usize) -> Operand {
    match (value.tiled, value.ty.shape.len()) {
        (false, 0) => value.operand,
        (false, _) => e.reshape(value.operand, with_axis(1, &value.ty)),
        (true, r) if r == rank => value.operand,
        (true, _) => {
            let mut shape = Shape::from_elem(1, rank + 1);
            shape[0] = e.n;
            e.reshape(value.operand, Type { dtype: value.ty.dtype, shape })
        }
    }
}

fn reduction(e: &mut Emitter<'_>, prim: Prim, x: &Value, ty: &Type, result: Type) -> Operand {
    if !ty.is_scalar() {
        return e.emit(prim, &[x.operand], result);
    }
    let mut shape = Shape::from_elem(1, x.ty.shape.len() + 1);
    shape[0] = e.n;
    let kept = e.emit(prim, &[x.operand], Type { dtype: ty.dtype, shape });
    e.reshape(kept, result)
}

/// With the first two axes exchanged.
fn exchange(e: &mut Emitter<'_>, x: Operand) -> Operand {
    let mut ty = e.code.ty(x);
    ty.shape.swap(0, 1);
    e.emit(Prim::Transpose, &[x], ty)
}

/// With the second and third axis exchanged.
fn exchange_each(e: &mut Emitter<'_>, x: Operand) -> Operand {
    let mut ty = e.code.ty(x);
    ty.shape.swap(1, 2);
    e.emit(Prim::TransposeEach, &[x], ty)
}

fn merged_type(ty: &Type) -> Type {
    let mut shape = ty.shape.clone();
    let first = shape.remove(0);
    shape[0] *= first;
    Type { dtype: ty.dtype, shape }
}

/// A value with the axis of the index, which then is one with its own first axis.
fn merge(e: &mut Emitter<'_>, value: &Value) -> Operand {
    let whole = e.whole_of(value.clone());
    let ty = merged_type(&e.code.ty(whole));
    e.reshape(whole, ty)
}

/// `x[i, j, …]`
fn index(e: &mut Emitter<'_>, x: &Value, at: &[Value]) -> Operand {
    // Leading indices that do not depend on the index, of an array that does not either, take a part of it.
    let leading = at.iter().take_while(|i| !i.tiled).count();
    if !x.tiled && leading > 0 {
        let ty = Type { dtype: x.ty.dtype, shape: x.ty.shape[leading..].into() };
        let operands: Vec<Operand> =
            std::iter::once(x.operand).chain(at[..leading].iter().map(|i| i.operand)).collect();
        let part = e.emit(Prim::Index, &operands, ty.clone());
        return index(e, &Value { operand: part, ty, tiled: false }, &at[leading..]);
    }
    if x.tiled && at.iter().all(|i| !i.tiled) {
        return columns(e, x.operand, at);
    }
    if !x.tiled
        && at[1..].iter().all(|i| !i.tiled)
        && let Some(rows) = rows(e, x, &at[0])
    {
        return columns(e, rows, &at[1..]);
    }
    let indices = places_of(e, x.tiled, at);
    let rest = &x.ty.shape[at.len()..];
    let shape = std::iter::once(e.n).chain(rest.iter().copied()).collect();
    e.emit(Prim::Gather, &[&[x.operand], &indices[..]].concat(), Type { dtype: x.ty.dtype, shape })
}

/// The rows of an array that a known index runs through one after the other: the array itself, or a slice.
fn rows(e: &mut Emitter<'_>, x: &Value, at: &Value) -> Option<Operand> {
    let numbers = known(e, at)?;
    let start = usize::try_from(*numbers.first()?).ok()?;
    let consecutive = numbers.iter().zip(start..).all(|(i, expected)| usize::try_from(*i) == Ok(expected));
    if !consecutive || start + e.n > x.ty.shape[0] {
        return None;
    }
    if e.n == x.ty.shape[0] {
        return Some(x.operand);
    }
    let mut ty = x.ty.clone();
    ty.shape[0] = e.n;
    Some(e.emit(Prim::Slice, &[x.operand, int(start as i64)], ty))
}

fn known(e: &Emitter<'_>, value: &Value) -> Option<Vec<i64>> {
    match e.known(value.operand) {
        Some(Array { data: ArrayData::Int(values), .. }) => Some(values.clone()),
        _ => None,
    }
}

/// The entries at plain indices of every row.
fn columns(e: &mut Emitter<'_>, rows: Operand, at: &[Value]) -> Operand {
    if at.is_empty() {
        return rows;
    }
    let places = at_places(e, &Shape::new());
    let mut ty = e.code.ty(rows);
    ty.shape.drain(1..=at.len());
    let operands: Vec<Operand> = [rows, places].into_iter().chain(at.iter().map(|i| i.operand)).collect();
    e.emit(Prim::Gather, &operands, ty)
}

/// The places 0, 1, … of the elements, each for all of an array of this shape.
fn at_places(e: &mut Emitter<'_>, shape: &Shape) -> Operand {
    let places = e.places();
    let mut ones = Type { dtype: DType::Int, shape: Shape::from_elem(1, shape.len() + 1) };
    ones.shape[0] = e.n;
    let places = e.reshape(places, ones);
    spread(e, places, shape)
}

fn spread(e: &mut Emitter<'_>, x: Operand, shape: &Shape) -> Operand {
    e.spread(x, with_axis(e.n, &Type { dtype: DType::Int, shape: shape.clone() }))
}

/// Index operands of a gather or scatter: those of the primitive for all values of the index, after the places of the elements
/// where the array has an axis for them. Plain scalars stay scalars, all arrays get one shape.
fn places_of(e: &mut Emitter<'_>, places: bool, indices: &[Value]) -> Vec<Operand> {
    let shape = indices.iter().map(|i| i.ty.shape.clone()).find(|s| !s.is_empty()).unwrap_or_default();
    let mut operands = Vec::new();
    if places {
        operands.push(at_places(e, &shape));
    }
    for index in indices {
        if index.ty.is_scalar() && !index.tiled {
            operands.push(index.operand);
        } else {
            let aligned = aligned(e, index, shape.len());
            operands.push(spread(e, aligned, &shape));
        }
    }
    operands
}

/// The entries that a slice of this length takes, for each value of the index.
fn entries(e: &mut Emitter<'_>, start: &Value, len: usize) -> Result<Operand, Obstacle> {
    if len == 0 {
        return Err(Obstacle::new("it takes slices without entries", &e.code.loc));
    }
    let shape = Shape::from_slice(&[len]);
    if let Operand::Const(Scalar::Int(first)) = start.operand
        && let Some(last) = first.checked_add(len as i64)
    {
        let entries = e.constant(Array::new([1, len], ArrayData::Int((first..last).collect())));
        return Ok(spread(e, entries, &shape));
    }
    let offsets: Vec<i64> = (0..len as i64).collect();
    let offsets = e.constant(Array::new([1, len], ArrayData::Int(offsets)));
    let starts = aligned(e, start, 1);
    let ty = with_axis(e.n, &Type { dtype: DType::Int, shape: shape.clone() });
    if let (Some(starts), true) = (known(e, start), start.tiled) {
        let all = starts.iter().map(|s| (0..len as i64).map(|o| s.checked_add(o)).collect::<Option<Vec<i64>>>());
        if let Some(all) = all.collect::<Option<Vec<_>>>() {
            return Ok(e.constant(Array::new([e.n, len], ArrayData::Int(all.concat()))));
        }
    }
    let sum =
        if e.code.ty(starts).is_scalar() { Type { dtype: DType::Int, shape: e.code.ty(offsets).shape } } else { ty };
    let sum = e.emit(Prim::Add, &[starts, offsets], sum);
    Ok(spread(e, sum, &shape))
}

/// `x[start..start + len]`
fn slice(e: &mut Emitter<'_>, x: &Value, start: &Value, ty: &Type) -> Result<Operand, Obstacle> {
    let result = with_axis(e.n, ty);
    let len = ty.shape[0];
    if !start.tiled && (start.operand.var().is_some() || len == 0) {
        let exchanged = exchange(e, x.operand);
        let mut part = e.code.ty(exchanged);
        part.shape[0] = ty.shape[0];
        let part = e.emit(Prim::Slice, &[exchanged, start.operand], part);
        return Ok(exchange(e, part));
    }
    let mut operands = vec![x.operand];
    if x.tiled {
        operands.push(at_places(e, &Shape::from_slice(&[len])));
    }
    operands.push(entries(e, start, len)?);
    Ok(e.emit(Prim::Gather, &operands, result))
}

/// Dot products: of rows with one vector, a matrix-vector product.
fn dot(e: &mut Emitter<'_>, prim: Prim, a: &Value, b: &Value, result: Type) -> Operand {
    let matmul = alike(prim, Prim::MatMul);
    match (a.tiled, b.tiled) {
        (true, true) => batch_product(e, prim, (a, [1, a.ty.shape[0]]), (b, [b.ty.shape[0], 1]), result),
        (true, false) => e.emit(matmul, &[a.operand, b.operand], result),
        (false, _) => e.emit(matmul, &[b.operand, a.operand], result),
    }
}

/// This product, in the arithmetic of that primitive.
fn alike(prim: Prim, product: Prim) -> Prim {
    if prim == prim.ordinary() { product } else { product.of_chain_rule() }
}

/// Matrix products. With one operand plain the other one's axis of the index becomes more rows of one product.
fn product(e: &mut Emitter<'_>, prim: Prim, a: &Value, b: &Value, result: Type) -> Operand {
    let n = e.n;
    let real = |shape: &[usize]| Type { dtype: DType::Real, shape: Shape::from_slice(shape) };
    let left = |v: &Value| if v.ty.shape.len() == 2 { [v.ty.shape[0], v.ty.shape[1]] } else { [1, v.ty.shape[0]] };
    let right = |v: &Value| if v.ty.shape.len() == 2 { [v.ty.shape[0], v.ty.shape[1]] } else { [v.ty.shape[0], 1] };
    let ([p, k], [_, m]) = (left(a), right(b));
    match (a.tiled, b.tiled) {
        (true, true) => batch_product(e, prim, (a, left(a)), (b, right(b)), result),
        (true, false) => {
            let rows = e.reshape(a.operand, real(&[n * p, k]));
            let columns = b.ty.shape.get(1).copied();
            let ty = Type { dtype: DType::Real, shape: std::iter::once(n * p).chain(columns).collect() };
            let product = e.emit(prim, &[rows, b.operand], ty);
            e.reshape(product, result)
        }
        (false, _) => {
            // (A B)' = B' A': the rows are those of B'.
            let is_matrix = b.ty.shape.len() == 2;
            let rows = if is_matrix { exchange_each(e, b.operand) } else { b.operand };
            let rows = e.reshape(rows, real(&[n * m, k]));
            if a.ty.shape.len() == 1 {
                let product = e.emit(prim, &[rows, a.operand], real(&[n * m]));
                return e.reshape(product, result);
            }
            let transposed = exchange(e, a.operand);
            let product = e.emit(prim, &[rows, transposed], real(&[n * m, p]));
            if !is_matrix {
                return e.reshape(product, result);
            }
            let product = e.reshape(product, real(&[n, m, p]));
            exchange_each(e, product)
        }
    }
}

fn batch_product(
    e: &mut Emitter<'_>,
    prim: Prim,
    (a, left): (&Value, [usize; 2]),
    (b, right): (&Value, [usize; 2]),
    result: Type,
) -> Operand {
    let n = e.n;
    let mut stack = |v: &Value, [rows, columns]: [usize; 2]| {
        let ty = Type { dtype: DType::Real, shape: Shape::from_slice(&[n, rows, columns]) };
        e.reshape(v.operand, ty)
    };
    let (a, b) = (stack(a, left), stack(b, right));
    let ty = Type { dtype: DType::Real, shape: Shape::from_slice(&[n, left[0], right[1]]) };
    let product = e.emit(alike(prim, Prim::BatchMatMul), &[a, b], ty);
    e.reshape(product, result)
}

/// Triangular systems: stacks of matrices and of right sides.
fn solve(e: &mut Emitter<'_>, prim: Prim, args: &[Value], result: Type) -> Operand {
    let (l, b) = (&args[0], &args[1]);
    if l.ty.shape.len() == 3 {
        let (l, b) = (merge(e, l), merge(e, b));
        let ty = e.code.ty(b);
        let solved = e.emit(prim, &[l, b], ty);
        return e.reshape(solved, result);
    }
    if !l.tiled {
        // One matrix: the right sides stand side by side.
        let columns = b.ty.shape.get(1).copied().unwrap_or(1);
        let k = b.ty.shape[0];
        let beside = exchange(e, b.operand);
        let ty = Type { dtype: DType::Real, shape: Shape::from_slice(&[k, e.n * columns]) };
        let beside = e.reshape(beside, ty.clone());
        let solved = e.emit(prim, &[l.operand, beside], ty);
        let mut shape = result.shape.clone();
        shape.swap(0, 1);
        let solved = e.reshape(solved, Type { dtype: DType::Real, shape });
        return exchange(e, solved);
    }
    let b = e.whole_of(b.clone());
    let columns = result.shape.get(2).copied().unwrap_or(1);
    let ty = Type { dtype: DType::Real, shape: Shape::from_slice(&[e.n, result.shape[1], columns]) };
    let b = e.reshape(b, ty.clone());
    let solved = e.emit(prim, &[l.operand, b], ty);
    e.reshape(solved, result)
}
