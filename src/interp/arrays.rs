//! Every primitive except random draws, for operands of any shape.

use std::rc::Rc;

use smallvec::SmallVec;

use super::scalars;
use super::value::{Data, Elem, FITS, Value};
use crate::prim::{Prim, eval};
use crate::run::TrapKind;
use crate::types::{DType, Type};
use crate::vmath::{self, Real};

/// The result of a primitive, whose type is `ty`.
pub(super) fn apply<R: Real>(prim: Prim, args: &[&Value<R>], ty: &Type) -> Result<Value<R>, TrapKind> {
    let n = ty.elements();
    let data = || Data::with_capacity(ty.dtype, n);
    Ok(match prim {
        Prim::Copy | Prim::StopGradient => args[0].clone(),
        Prim::MakeArray | Prim::Concat => {
            let mut data = data();
            for arg in args {
                data.extend_value(arg);
            }
            data.into_value(&ty.shape)
        }
        Prim::Reshape => {
            let mut data = data();
            data.extend_value(args[0]);
            data.into_value(&ty.shape)
        }
        Prim::Fill => Data::filled(args[0].scalar(), n).into_value(&ty.shape),
        Prim::Index => {
            let array = args[0].tensor();
            let at = part(&array.shape, &ints(&args[1..]))?;
            if ty.is_scalar() {
                return Ok(Value::Scalar(array.data.get(at)));
            }
            let mut data = data();
            data.extend(&array.data, at..at + n);
            data.into_value(&ty.shape)
        }
        Prim::Slice => {
            let array = args[0].tensor();
            let at = slice_start(&array.shape, args[1].int(), ty.shape[0])?;
            let mut data = data();
            data.extend(&array.data, at..at + n);
            data.into_value(&ty.shape)
        }
        Prim::SetIndex | Prim::SetSlice => {
            let mut array = args[0].clone();
            let at = written_part(prim, args)?;
            write(&mut array, at, args[1]);
            array
        }
        Prim::Transpose => {
            let array = args[0].tensor();
            let (rows, columns) = (array.shape[0], array.shape[1]);
            let mut data = data();
            for i in 0..n {
                data.push(array.data.get(i % rows * columns + i / rows));
            }
            data.into_value(&ty.shape)
        }
        Prim::Dot => {
            let (x, y) = (args[0].tensor(), args[1].tensor());
            Value::Scalar(Elem::Real(vmath::dot(x.data.real(), y.data.real())))
        }
        Prim::MatMul => Data::Real(matrix_product(args[0], args[1])).into_value(&ty.shape),
        Prim::Sum | Prim::Prod | Prim::MinOf | Prim::MaxOf | Prim::Any | Prim::All => {
            Value::Scalar(reduce(prim, &args[0].tensor().data)?)
        }
        Prim::RandomUniform | Prim::RandomNormal => unreachable!("draws are not applied"),
        _ => elementwise(prim, args, ty)?,
    })
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

/// Where `set_index` or `set_slice` with these operands writes.
pub(super) fn written_part<R: Real>(prim: Prim, args: &[&Value<R>]) -> Result<usize, TrapKind> {
    let shape = &args[0].tensor().shape;
    if prim == Prim::SetIndex {
        part(shape, &ints(&args[2..]))
    } else {
        slice_start(shape, args[2].int(), args[1].tensor().shape[0])
    }
}

/// Writes a part of an array, in place when nothing else holds the array.
pub(super) fn write<R: Real>(array: &mut Value<R>, at: usize, part: &Value<R>) {
    match array {
        Value::Array(tensor) => Rc::make_mut(tensor).data.write(at, part),
        Value::Scalar(_) => unreachable!("{FITS}"),
    }
}

/// Matrix product; a vector is a row on the left and a column on the right.
fn matrix_product<R: Real>(x: &Value<R>, y: &Value<R>) -> Vec<R> {
    let (x, y) = (x.tensor(), y.tensor());
    let inner = y.shape[0];
    let rows = x.shape[..x.shape.len() - 1].iter().product::<usize>();
    let columns = y.shape[1..].iter().product::<usize>();
    let (x, y) = (x.data.real(), y.data.real());
    let turned: Vec<R> = (0..columns * inner).map(|i| y[i % inner * columns + i / inner]).collect();
    let mut out = Vec::with_capacity(rows * columns);
    for i in 0..rows {
        for j in 0..columns {
            let row = &x[i * inner..(i + 1) * inner];
            out.push(vmath::dot(row, &turned[j * inner..(j + 1) * inner]));
        }
    }
    out
}

fn reduce<R: Real>(prim: Prim, data: &Data<R>) -> Result<Elem<R>, TrapKind> {
    Ok(match data {
        Data::Bool(v) if prim == Prim::Any => Elem::Bool(v.contains(&true)),
        Data::Bool(v) => Elem::Bool(!v.contains(&false)),
        Data::Int(v) => Elem::Int(reduce_ints(prim, v)?),
        Data::Real(v) => Elem::Real(match prim {
            Prim::Sum => vmath::sum(v),
            Prim::Prod => v.iter().fold(R::ONE, |p, x| p * *x),
            _ => {
                let (first, rest) = v.split_first().ok_or(TrapKind::EmptyReduction)?;
                let smaller = prim == Prim::MinOf;
                rest.iter().fold(*first, |m, x| if smaller { m.min2(*x) } else { m.max2(*x) })
            }
        }),
    })
}

fn reduce_ints(prim: Prim, v: &[i64]) -> Result<i64, TrapKind> {
    let (op, start) = match prim {
        Prim::Sum => (Prim::Add, Some(0)),
        Prim::Prod => (Prim::Mul, Some(1)),
        Prim::MinOf => (Prim::Min, v.first().copied()),
        _ => (Prim::Max, v.first().copied()),
    };
    let mut result = start.ok_or(TrapKind::EmptyReduction)?;
    // taking the first twice does no harm to a minimum
    for x in v {
        result = eval::int_binary(op, result, *x).expect(FITS)?;
    }
    Ok(result)
}

fn elementwise<R: Real>(prim: Prim, args: &[&Value<R>], ty: &Type) -> Result<Value<R>, TrapKind> {
    if let Some(data) = real_elementwise(prim, args, ty) {
        return Ok(Data::Real(data).into_value(&ty.shape));
    }
    let n = ty.elements();
    let mut data = Data::with_capacity(ty.dtype, n);
    for i in 0..n {
        data.push(match args {
            [x] => scalars::unary(prim, x.elem(i))?,
            [x, y] => scalars::binary(prim, x.elem(i), y.elem(i))?,
            [c, x, y] if c.elem(i) == Elem::Bool(true) => x.elem(i),
            [_, _, y] => y.elem(i),
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
        [Value::Array(x), Value::Array(y)] => {
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
