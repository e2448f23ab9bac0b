//! Types and shapes of the primitives.

use std::fmt;

use super::{BatchRule, Effect, Prim};
use crate::types::{DType, Shape, Type};

/// Why operands do not fit a primitive. In the words of the IR; the checker has its own for the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeError(pub String);

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

type Typed = Result<Type, TypeError>;

fn fail<T>(prim: Prim, args: &[Type], why: &str) -> Result<T, TypeError> {
    Err(TypeError(format!("{prim} {args:?}: {why}")))
}

/// The common shape of elementwise operands: scalars and extents of 1 broadcast, else arrays must agree.
fn common_shape<'a>(args: impl IntoIterator<Item = &'a Type>) -> Option<Shape> {
    let mut shape = Shape::new();
    for arg in args.into_iter().filter(|a| !a.is_scalar()) {
        if shape.is_empty() {
            shape = arg.shape.clone();
        }
        if shape.len() != arg.shape.len() {
            return None;
        }
        for (common, extent) in shape.iter_mut().zip(&arg.shape) {
            match (*common, *extent) {
                (common, extent) if common == extent || extent == 1 => {}
                (1, extent) => *common = extent,
                _ => return None,
            }
        }
    }
    Some(shape)
}

/// Whether a value of shape `from` gives one of shape `to` when it is repeated along the axes where its extent is 1, or is a
/// scalar.
fn spreads(from: &[usize], to: &[usize]) -> bool {
    from.is_empty() || from.len() == to.len() && from.iter().zip(to).all(|(from, to)| from == to || *from == 1)
}

/// With this axis and the next exchanged.
fn exchanged(ty: &Type, axis: usize) -> Type {
    let mut ty = ty.clone();
    ty.shape.swap(axis, axis + 1);
    ty
}

impl Prim {
    /// Number of operands, or the smallest number and `true` when there may be more.
    pub fn arity(self) -> (usize, bool) {
        use Prim::*;
        match self {
            RandomUniform | RandomNormal | Iota => (0, false),
            Add | Sub | Mul | Div | ChainMul | ChainDiv | IntDiv | IntRem | Rem | Min | Max | Pow | IntPow | Atan2 => {
                (2, false)
            }
            Eq | Ne | Lt | Le | Gt | Ge | And | Or | Slice | Concat | Dot | MatMul | BatchMatMul => (2, false),
            ChainDot | ChainMatMul | ChainBatchMatMul => (2, false),
            SolveLower | SolveLowerTransposed | ChainSolveLower | ChainSolveLowerTransposed => (2, false),
            Select | SetSlice => (3, false),
            MakeArray => (1, true),
            Index | Gather => (2, true),
            SetIndex | Scatter | ScatterAdd => (3, true),
            _ => (1, false),
        }
    }

    /// Checks operands against the type of the result. The result's shape is part of what `fill`, `slice`, `reshape`,
    /// `iota`, the reductions and the random draws mean; for the others it is the one that [`infer`](Self::infer) gives.
    pub fn check(self, args: &[Type], result: &Type) -> Result<(), TypeError> {
        use Prim::*;
        let ok = match self {
            Fill => args.len() == 1 && args[0].dtype == result.dtype && spreads(&args[0].shape, &result.shape),
            Iota => args.is_empty() && result.dtype == DType::Int && result.shape.len() == 1,
            Sum | Prod | MinOf | MaxOf | Any | All => {
                let whole = self.infer(args)?;
                whole.dtype == result.dtype && spreads(&result.shape, &args[0].shape)
            }
            Reshape => args.len() == 1 && args[0].dtype == result.dtype && args[0].elements() == result.elements(),
            RandomUniform | RandomNormal => args.is_empty() && result.dtype == DType::Real,
            Slice => {
                args.len() == 2
                    && args[1] == Type::int()
                    && args[0].dtype == result.dtype
                    && !args[0].is_scalar()
                    && args[0].shape.len() == result.shape.len()
                    && args[0].shape[1..] == result.shape[1..]
            }
            _ => {
                let inferred = self.infer(args)?;
                if inferred != *result {
                    return fail(self, args, &format!("gives {inferred}, not {result}"));
                }
                true
            }
        };
        if ok { Ok(()) } else { fail(self, args, &format!("does not give {result}")) }
    }

    /// The type of the result; of a reduction, a scalar. An error for wrong operands, and for `fill`, `slice`, `reshape`,
    /// `iota` and the random draws, whose result is not determined by their operands.
    pub fn infer(self, args: &[Type]) -> Typed {
        use DType::{Bool, Int, Real};
        use Prim::*;
        let (least, more) = self.arity();
        if args.len() < least || (args.len() > least && !more) {
            return fail(self, args, &format!("takes {least} operands"));
        }
        match self {
            Copy => Ok(args[0].clone()),
            Add | Sub | Mul | Min | Max | Neg | Abs => self.elementwise(args, &[Int, Real], None),
            Div | ChainMul | ChainDiv | Rem | Pow | Atan2 => self.elementwise(args, &[Real], None),
            IntDiv | IntRem | IntPow => self.elementwise(args, &[Int], None),
            Sqrt | Exp | Expm1 | Log | Log1p | Sin | Cos | Tan | Asin | Acos | Atan | Sinh | Cosh | Tanh | InvLogit
            | Log1pExp | Erf | Erfc | Lgamma | Digamma | Trigamma | InvPhi | Phi | Floor | Ceil | Round | Trunc
            | StopGradient => self.elementwise(args, &[Real], None),
            IsNan => self.elementwise(args, &[Real], Some(Bool)),
            Eq | Ne => self.elementwise(args, &[Bool, Int, Real], Some(Bool)),
            Lt | Le | Gt | Ge => self.elementwise(args, &[Int, Real], Some(Bool)),
            And | Or | Not => self.elementwise(args, &[Bool], None),
            ToReal => self.elementwise(args, &[Int], Some(Real)),
            ToInt => self.elementwise(args, &[Real], Some(Int)),
            BoolToInt => self.elementwise(args, &[Bool], Some(Int)),
            Select => self.select(args),
            MakeArray => self.make_array(args),
            Index => self.index(args, &args[1..]),
            SetIndex => {
                let part = self.index(args, &args[2..])?;
                if part == args[1] { Ok(args[0].clone()) } else { fail(self, args, "the new part has another type") }
            }
            SetSlice => self.set_slice(args),
            Concat => self.concat(args),
            Gather => self.gather(args, &args[1..]),
            Scatter | ScatterAdd => {
                let part = self.gather(args, &args[2..])?;
                let fits = part == args[1] && (self == Scatter || part.dtype != Bool);
                if fits { Ok(args[0].clone()) } else { fail(self, args, "the new parts have another type") }
            }
            Transpose if args[0].shape.len() >= 2 => Ok(exchanged(&args[0], 0)),
            TransposeEach if args[0].shape.len() >= 3 => Ok(exchanged(&args[0], 1)),
            Dot | MatMul | BatchMatMul | ChainDot | ChainMatMul | ChainBatchMatMul => self.contract(args),
            Cholesky | SolveLower | SolveLowerTransposed | ChainSolveLower | ChainSolveLowerTransposed => {
                self.triangular(args)
            }
            Sum | Prod | MinOf | MaxOf if !args[0].is_scalar() && args[0].dtype != Bool => {
                Ok(Type::scalar(args[0].dtype))
            }
            Any | All if !args[0].is_scalar() && args[0].dtype == Bool => Ok(Type::bool()),
            _ => fail(self, args, "wrong operands"),
        }
    }

    fn elementwise(self, args: &[Type], allowed: &[DType], result: Option<DType>) -> Typed {
        let dtype = args[0].dtype;
        if !allowed.contains(&dtype) || args.iter().any(|a| a.dtype != dtype) {
            return fail(self, args, "wrong element types");
        }
        match common_shape(args) {
            Some(shape) => Ok(Type { dtype: result.unwrap_or(dtype), shape }),
            None => fail(self, args, "shapes differ"),
        }
    }

    fn select(self, args: &[Type]) -> Typed {
        if args[0].dtype != DType::Bool || args[1].dtype != args[2].dtype {
            return fail(self, args, "wrong element types");
        }
        match common_shape(args) {
            Some(shape) => Ok(Type { dtype: args[1].dtype, shape }),
            None => fail(self, args, "shapes differ"),
        }
    }

    fn make_array(self, args: &[Type]) -> Typed {
        if args.iter().any(|a| *a != args[0]) {
            return fail(self, args, "elements differ in type");
        }
        let mut shape = args[0].shape.clone();
        shape.insert(0, args.len());
        Ok(Type { dtype: args[0].dtype, shape })
    }

    fn index(self, args: &[Type], indices: &[Type]) -> Typed {
        if indices.iter().any(|i| *i != Type::int()) || indices.len() > args[0].shape.len() {
            return fail(self, args, "indices must be ints, at most one for each axis");
        }
        Ok(Type { dtype: args[0].dtype, shape: args[0].shape[indices.len()..].into() })
    }

    fn gather(self, args: &[Type], indices: &[Type]) -> Typed {
        if indices.iter().any(|i| i.dtype != DType::Int) || indices.len() > args[0].shape.len() {
            return fail(self, args, "indices must be ints, at most one for each axis");
        }
        let mut arrays = indices.iter().filter(|i| !i.is_scalar());
        let Some(places) = arrays.next() else { return fail(self, args, "one index must be an array") };
        if arrays.any(|i| i.shape != places.shape) {
            return fail(self, args, "arrays of indices must have one shape");
        }
        let rest = &args[0].shape[indices.len()..];
        Ok(Type::new(args[0].dtype, places.shape.iter().chain(rest).copied()))
    }

    fn set_slice(self, args: &[Type]) -> Typed {
        let (x, v) = (&args[0], &args[1]);
        let fits =
            x.dtype == v.dtype && !x.is_scalar() && x.shape.len() == v.shape.len() && x.shape[1..] == v.shape[1..];
        if fits && args[2] == Type::int() { Ok(x.clone()) } else { fail(self, args, "wrong operands") }
    }

    fn concat(self, args: &[Type]) -> Typed {
        let (x, y) = (&args[0], &args[1]);
        if x.is_scalar() || x.dtype != y.dtype || x.shape.len() != y.shape.len() || x.shape[1..] != y.shape[1..] {
            return fail(self, args, "wrong operands");
        }
        let mut shape = x.shape.clone();
        shape[0] += y.shape[0];
        Ok(Type { dtype: x.dtype, shape })
    }

    fn contract(self, args: &[Type]) -> Typed {
        let (x, y) = (&args[0], &args[1]);
        if x.dtype != DType::Real || y.dtype != DType::Real {
            return fail(self, args, "operands must be real");
        }
        let shape: Option<Shape> = match (self.ordinary(), &x.shape[..], &y.shape[..]) {
            (Prim::Dot, [n], [m]) if n == m => Some(Shape::new()),
            (Prim::MatMul, [n, k], [l, m]) if k == l => Some(Shape::from_slice(&[*n, *m])),
            (Prim::MatMul, [n, k], [l]) if k == l => Some(Shape::from_slice(&[*n])),
            (Prim::MatMul, [k], [l, m]) if k == l => Some(Shape::from_slice(&[*m])),
            (Prim::BatchMatMul, [n, p, k], [q, l, m]) if n == q && k == l => Some(Shape::from_slice(&[*n, *p, *m])),
            _ => None,
        };
        shape.map_or_else(|| fail(self, args, "shapes do not fit"), |shape| Ok(Type { dtype: DType::Real, shape }))
    }

    fn triangular(self, args: &[Type]) -> Typed {
        let square = match args[0].shape[..] {
            [n, m] | [_, n, m] => n == m && args.iter().all(|a| a.dtype == DType::Real),
            _ => false,
        };
        let fits = match (&args[0].shape[..], args.get(1).map(|b| &b.shape[..])) {
            (_, None) => true,
            ([n, _], Some([m] | [m, _])) => n == m,
            ([q, n, _], Some([r, m, _])) => q == r && n == m,
            _ => false,
        };
        if square && fits { Ok(args[args.len() - 1].clone()) } else { fail(self, args, "shapes do not fit") }
    }

    /// What it can do besides computing, for operands of these types.
    pub fn effect(self, args: &[Type]) -> Effect {
        use Prim::*;
        let int = args.first().is_some_and(|a| a.dtype == DType::Int);
        match self {
            RandomUniform | RandomNormal => Effect::Random,
            IntDiv | IntRem | IntPow | ToInt | Index | SetIndex | Slice | SetSlice => Effect::Traps,
            Gather | Scatter | ScatterAdd => Effect::Traps,
            Add | Sub | Mul | Neg | Abs | Sum | Prod if int => Effect::Traps,
            MinOf | MaxOf if args[0].elements() == 0 => Effect::Traps,
            _ => Effect::Pure,
        }
    }

    /// Cost in one lane, in units of one addition.
    pub fn cost(self, args: &[Type], result: &Type) -> u64 {
        let n = match self.row().batch {
            BatchRule::Contraction => {
                let k = args[0].shape.last().copied().unwrap_or(1);
                k.saturating_mul(result.elements())
            }
            BatchRule::Reduction => args[0].elements(),
            BatchRule::Triangular => {
                // the chains are half as long as the matrix is wide, and those of a factor a third
                let part = if self == Prim::Cholesky { 3 } else { 2 };
                result.elements().saturating_mul(args[0].shape.last().copied().unwrap_or(1).div_ceil(part))
            }
            _ => result.elements(),
        };
        u64::from(self.row().cost).saturating_mul((n as u64).max(1))
    }
}
