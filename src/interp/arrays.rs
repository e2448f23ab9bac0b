//! Every primitive except random draws, for operands of any shape.

use std::rc::Rc;

use smallvec::SmallVec;

use super::scalars;
use super::triangular::{cholesky, cholesky_derivative, solve};
use super::value::{Data, Elem, FITS, Value};
use crate::prim::{Arithmetic, Class, Contraction, Movement, Prim, Reduction, Triangular, computed_elementwise, eval};
use crate::run::TrapKind;
use crate::types::{DType, Type};
use crate::vmath::{self, LogSum, Real};

/// The result of a primitive, whose type is `ty`.
pub(super) fn apply<R: Real>(prim: Prim, args: &[&Value<R>], ty: &Type) -> Result<Value<R>, TrapKind> {
    Ok(match prim.class() {
        Class::Identity(_) => args[0].clone(),
        computed_elementwise!() => elementwise(prim, args, ty)?,
        Class::Movement(movement) => self::movement(movement, args, ty)?,
        Class::Contraction(contraction) => self::contraction(contraction, args, ty),
        Class::Triangular(triangular) => self::triangular(triangular, args, ty),
        Class::Reduction(reduction) if ty.is_scalar() => Value::Scalar(reduce(reduction, &args[0].tensor().data)?),
        Class::Reduction(reduction) => {
            let array = args[0].tensor();
            let mut groups = vec![Data::with_capacity(array.data.dtype(), 0); ty.elements()];
            for i in 0..array.data.len() {
                groups[under(&ty.shape, &array.shape, i)].push(array.data.get(i));
            }
            let mut data = Data::with_capacity(ty.dtype, ty.elements());
            for group in &groups {
                data.push(reduce(reduction, group)?);
            }
            data.into_value(&ty.shape)
        }
        Class::Draw(_) => unreachable!("draws are not applied"),
    })
}

fn movement<R: Real>(movement: Movement, args: &[&Value<R>], ty: &Type) -> Result<Value<R>, TrapKind> {
    let n = ty.elements();
    let data = || Data::with_capacity(ty.dtype, n);
    Ok(match movement {
        Movement::MakeArray | Movement::Concat => {
            let mut data = data();
            for arg in args {
                data.extend_value(arg);
            }
            data.into_value(&ty.shape)
        }
        Movement::Reshape => {
            let mut data = data();
            data.extend_value(args[0]);
            data.into_value(&ty.shape)
        }
        Movement::Fill => match args[0] {
            Value::Scalar(x) => Data::filled(*x, n).into_value(&ty.shape),
            Value::Array(x) => {
                let mut data = data();
                (0..n).for_each(|i| data.push(x.data.get(under(&x.shape, &ty.shape, i))));
                data.into_value(&ty.shape)
            }
        },
        Movement::Iota => Data::Int((0..n as i64).collect()).into_value(&ty.shape),
        Movement::Index => {
            let array = args[0].tensor();
            let at = part(&array.shape, &ints(&args[1..]))?;
            if ty.is_scalar() {
                return Ok(Value::Scalar(array.data.get(at)));
            }
            let mut data = data();
            data.extend(&array.data, at..at + n);
            data.into_value(&ty.shape)
        }
        Movement::Slice => {
            let array = args[0].tensor();
            let at = slice_start(&array.shape, args[1].int(), ty.shape[0])?;
            let mut data = data();
            data.extend(&array.data, at..at + n);
            data.into_value(&ty.shape)
        }
        Movement::SetIndex | Movement::SetSlice | Movement::Scatter | Movement::ScatterAdd => {
            let mut array = args[0].clone();
            change_part(movement.into(), &mut array, &args[1..])?;
            array
        }
        Movement::Gather => {
            let array = args[0].tensor();
            let size = array.shape[args.len() - 1..].iter().product::<usize>();
            let mut data = data();
            for at in places(&array.shape, &args[1..])? {
                data.extend(&array.data, at..at + size);
            }
            data.into_value(&ty.shape)
        }
        Movement::Transpose => exchanged(args[0], 0, ty),
        Movement::TransposeEach => exchanged(args[0], 1, ty),
    })
}

fn contraction<R: Real>(contraction: Contraction, args: &[&Value<R>], ty: &Type) -> Value<R> {
    let chain_rule =
        matches!(contraction, Contraction::ChainDot | Contraction::ChainMatMul | Contraction::ChainBatchMatMul);
    match contraction {
        Contraction::Dot | Contraction::ChainDot => {
            let (x, y) = (args[0].tensor(), args[1].tensor());
            Value::Scalar(Elem::Real(dot(chain_rule, x.data.real(), y.data.real())))
        }
        Contraction::MatMul | Contraction::ChainMatMul => {
            Data::Real(matrix_product(chain_rule, args[0], args[1])).into_value(&ty.shape)
        }
        Contraction::BatchMatMul | Contraction::ChainBatchMatMul => {
            let (x, y) = (args[0].tensor(), args[1].tensor());
            let (each_x, each_y) = (x.shape[1] * x.shape[2], y.shape[1] * y.shape[2]);
            let mut out = Vec::with_capacity(ty.elements());
            for i in 0..x.shape[0] {
                let x = &x.data.real()[i * each_x..(i + 1) * each_x];
                let y = &y.data.real()[i * each_y..(i + 1) * each_y];
                out.extend(product(chain_rule, x, y, ty.shape[1], ty.shape[2]));
            }
            Data::Real(out).into_value(&ty.shape)
        }
    }
}

fn triangular<R: Real>(triangular: Triangular, args: &[&Value<R>], ty: &Type) -> Value<R> {
    let l = args[0].tensor();
    let n = *l.shape.last().expect(FITS);
    let matrices = l.shape[..l.shape.len() - 2].iter().product::<usize>();
    let each = ty.elements().checked_div(matrices).unwrap_or(0);
    let mut out = Vec::with_capacity(ty.elements());
    for i in 0..matrices {
        let l = &l.data.real()[i * n * n..(i + 1) * n * n];
        let side = || &args[1].tensor().data.real()[i * each..(i + 1) * each];
        out.extend(match triangular {
            Triangular::Cholesky => cholesky(l, n),
            Triangular::SolveLower => solve(l, side(), n, (false, false)),
            Triangular::SolveLowerTransposed => solve(l, side(), n, (true, false)),
            Triangular::ChainSolveLower => solve(l, side(), n, (false, true)),
            Triangular::ChainSolveLowerTransposed => solve(l, side(), n, (true, true)),
            Triangular::ChainCholeskyTangent => cholesky_derivative(l, side(), n, false),
            Triangular::ChainCholeskyCotangent => cholesky_derivative(l, side(), n, true),
        });
    }
    Data::Real(out).into_value(&ty.shape)
}

/// Which element of an array of shape `from` stands where element `i` of one of shape `to` does, when it is repeated along
/// the axes where its extent is 1; a scalar is repeated along all.
fn under(from: &[usize], to: &[usize], i: usize) -> usize {
    let (mut rest, mut at, mut stride) = (i, 0, 1);
    for (from, to) in from.iter().zip(to).rev() {
        if *from != 1 {
            at += rest % to * stride;
        }
        rest /= to;
        stride *= from;
    }
    at
}

/// The array with `axis` and the next one exchanged; `ty` is its type.
fn exchanged<R: Real>(array: &Value<R>, axis: usize, ty: &Type) -> Value<R> {
    let array = array.tensor();
    let (rows, columns) = (array.shape[axis], array.shape[axis + 1]);
    let inner = array.shape[axis + 2..].iter().product::<usize>();
    let mut data = Data::with_capacity(ty.dtype, array.data.len());
    for outer in 0..array.shape[..axis].iter().product() {
        for column in 0..columns {
            for row in 0..rows {
                let at = ((outer * rows + row) * columns + column) * inner;
                data.extend(&array.data, at..at + inner);
            }
        }
    }
    data.into_value(&ty.shape)
}

fn ints<R: Real>(args: &[&Value<R>]) -> SmallVec<[i64; 4]> {
    args.iter().map(|a| a.int()).collect()
}

/// Where the part at these leading indices starts.
fn part(shape: &[usize], indices: &[i64]) -> Result<usize, TrapKind> {
    let mut at = 0;
    for (extent, i) in shape.iter().zip(indices) {
        match usize::try_from(*i) {
            Ok(i) if i < *extent => at = at * extent + i,
            _ => return Err(TrapKind::IndexOutOfRange),
        }
    }
    Ok(at * shape[indices.len()..].iter().product::<usize>())
}

/// Where `count` entries of the leading axis from entry `from` on start.
fn slice_start(shape: &[usize], from: i64, count: usize) -> Result<usize, TrapKind> {
    match usize::try_from(from) {
        Ok(from) if from <= shape[0] && count <= shape[0] - from => Ok(from * shape[1..].iter().product::<usize>()),
        _ => Err(TrapKind::IndexOutOfRange),
    }
}

/// Where the parts start that `gather` and `scatter` with these indices move, in the order of places.
fn places<R: Real>(shape: &[usize], indices: &[&Value<R>]) -> Result<Vec<usize>, TrapKind> {
    let count = indices.iter().find_map(|i| if let Value::Array(i) = i { Some(i.data.len()) } else { None });
    let index = |i: &Value<R>, place: usize| match i.elem(place) {
        Elem::Int(i) => i,
        _ => unreachable!("{FITS}"),
    };
    (0..count.expect(FITS))
        .map(|place| part(shape, &indices.iter().map(|i| index(i, place)).collect::<SmallVec<[i64; 4]>>()))
        .collect()
}

/// Changes a part of an array as `set_index`, `set_slice`, `scatter` or `scatter_add` with these further operands do, in place
/// when nothing else holds the array.
pub(super) fn change_part<R: Real>(prim: Prim, array: &mut Value<R>, args: &[&Value<R>]) -> Result<(), TrapKind> {
    let Value::Array(tensor) = array else { unreachable!("{FITS}") };
    match prim {
        Prim::SetIndex => {
            let at = part(&tensor.shape, &ints(&args[1..]))?;
            Rc::make_mut(tensor).data.write(at, args[0]);
        }
        Prim::SetSlice => {
            let at = slice_start(&tensor.shape, args[1].int(), args[0].tensor().shape[0])?;
            Rc::make_mut(tensor).data.write(at, args[0]);
        }
        _ => {
            let starts = places(&tensor.shape, &args[1..])?;
            let new = &args[0].tensor().data;
            let size = new.len().checked_div(starts.len()).unwrap_or(0);
            let data = &mut Rc::make_mut(tensor).data;
            for (place, at) in starts.into_iter().enumerate() {
                for e in 0..size {
                    let x = new.get(place * size + e);
                    let x = if prim == Prim::ScatterAdd { scalars::binary(Prim::Add, data.get(at + e), x)? } else { x };
                    data.set(at + e, x);
                }
            }
        }
    }
    Ok(())
}

/// Matrix product; a vector is a row on the left and a column on the right.
fn matrix_product<R: Real>(chain_rule: bool, x: &Value<R>, y: &Value<R>) -> Vec<R> {
    let (x, y) = (x.tensor(), y.tensor());
    let rows = x.shape[..x.shape.len() - 1].iter().product::<usize>();
    let columns = y.shape[1..].iter().product::<usize>();
    product(chain_rule, x.data.real(), y.data.real(), rows, columns)
}

/// The dot product of two slices; in the arithmetic of the chain rule, if that is wanted.
fn dot<R: Real>(chain_rule: bool, x: &[R], y: &[R]) -> R {
    let sum = vmath::dot(x, y);
    if !chain_rule || !sum.is_nan() { sum } else { vmath::chain_dot(x.len(), None, |k| (x[k], y[k])) }
}

/// The product of two matrices that gives so many rows and columns.
fn product<R: Real>(chain_rule: bool, x: &[R], y: &[R], rows: usize, columns: usize) -> Vec<R> {
    let inner = y.len().checked_div(columns).unwrap_or(0);
    let turned: Vec<R> = (0..columns * inner).map(|i| y[i % inner * columns + i / inner]).collect();
    let mut out = Vec::with_capacity(rows * columns);
    for i in 0..rows {
        for j in 0..columns {
            let row = &x[i * inner..(i + 1) * inner];
            out.push(dot(chain_rule, row, &turned[j * inner..(j + 1) * inner]));
        }
    }
    out
}

fn reduce<R: Real>(reduction: Reduction, data: &Data<R>) -> Result<Elem<R>, TrapKind> {
    Ok(match (reduction, data) {
        (Reduction::Any, Data::Bool(v)) => Elem::Bool(v.contains(&true)),
        (Reduction::All, Data::Bool(v)) => Elem::Bool(!v.contains(&false)),
        (Reduction::Sum, Data::Real(v)) => Elem::Real(vmath::sum(v)),
        (Reduction::SumLog, Data::Real(v)) => Elem::Real(vmath::log_sum(LogSum::Log, v)),
        (Reduction::SumLog1pExp, Data::Real(v)) => Elem::Real(vmath::log_sum(LogSum::Log1pExp, v)),
        (Reduction::Prod, Data::Real(v)) => Elem::Real(v.iter().fold(R::ONE, |p, x| p * *x)),
        (Reduction::MinOf | Reduction::MaxOf, Data::Real(v)) => {
            let (first, rest) = v.split_first().ok_or(TrapKind::EmptyReduction)?;
            let smaller = reduction == Reduction::MinOf;
            Elem::Real(rest.iter().fold(*first, |m, x| if smaller { m.min2(*x) } else { m.max2(*x) }))
        }
        (_, Data::Int(v)) => Elem::Int(reduce_ints(reduction, v)?),
        _ => unreachable!("{FITS}"),
    })
}

fn reduce_ints(reduction: Reduction, v: &[i64]) -> Result<i64, TrapKind> {
    let (op, start) = match reduction {
        Reduction::Sum => (Arithmetic::Add, Some(0)),
        Reduction::Prod => (Arithmetic::Mul, Some(1)),
        Reduction::MinOf => (Arithmetic::Min, v.first().copied()),
        Reduction::MaxOf => (Arithmetic::Max, v.first().copied()),
        Reduction::Any | Reduction::All | Reduction::SumLog | Reduction::SumLog1pExp => unreachable!("{FITS}"),
    };
    let mut result = start.ok_or(TrapKind::EmptyReduction)?;
    // taking the first twice does no harm to a minimum
    for x in v {
        result = eval::int_binary(Class::Arithmetic(op), result, *x).expect(FITS)?;
    }
    Ok(result)
}

fn elementwise<R: Real>(prim: Prim, args: &[&Value<R>], ty: &Type) -> Result<Value<R>, TrapKind> {
    if let Some(data) = real_elementwise(prim, args, ty) {
        return Ok(Data::Real(data).into_value(&ty.shape));
    }
    let n = ty.elements();
    let mut data = Data::with_capacity(ty.dtype, n);
    let elem = |x: &Value<R>, i: usize| match x {
        Value::Array(x) if x.shape != ty.shape => x.data.get(under(&x.shape, &ty.shape, i)),
        x => x.elem(i),
    };
    for i in 0..n {
        data.push(match args {
            [x] => scalars::unary(prim, x.elem(i))?,
            [x, y] => scalars::binary(prim, elem(x, i), elem(y, i))?,
            [c, x, y] if elem(c, i) == Elem::Bool(true) => elem(x, i),
            [_, _, y] => elem(y, i),
            _ => unreachable!("{FITS}"),
        });
    }
    Ok(data.into_value(&ty.shape))
}

/// The same, faster, for arrays of reals that give reals.
fn real_elementwise<R: Real>(prim: Prim, args: &[&Value<R>], ty: &Type) -> Option<Vec<R>> {
    if ty.dtype != DType::Real || ty.is_scalar() {
        return None;
    }
    match args {
        [Value::Array(x)] => {
            let f = scalars::unary_fn(prim)?;
            let mut out = vec![R::ZERO; x.data.len()];
            vmath::unary(f, x.data.real(), &mut out);
            Some(out)
        }
        [Value::Array(x), Value::Array(y)] if x.shape == y.shape => {
            let pairs = x.data.real().iter().zip(y.data.real());
            Some(pairs.map(|(x, y)| scalars::real_binary(prim, *x, *y)).collect())
        }
        [Value::Array(x), Value::Scalar(Elem::Real(y))] => {
            let x = x.data.real().iter();
            Some(x.map(|x| scalars::real_binary(prim, *x, *y)).collect())
        }
        [Value::Scalar(Elem::Real(x)), Value::Array(y)] => {
            let y = y.data.real().iter();
            Some(y.map(|y| scalars::real_binary(prim, *x, *y)).collect())
        }
        _ => None,
    }
}
