//! Types and shapes of the primitives.

use std::fmt;

use super::{
    Arithmetic, BatchRule, Class, Comparison, Conversion, Effect, Identity, Logic, Movement, Prim, Reduction,
    Selection, Traps, Triangular,
};
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

impl Movement {
    /// How many of the operands are values that move; those behind are the indices of places.
    pub fn values(self) -> usize {
        match self {
            Movement::Iota => 0,
            Movement::Index | Movement::Slice | Movement::Gather => 1,
            Movement::Fill | Movement::Transpose | Movement::TransposeEach | Movement::Reshape => 1,
            Movement::SetIndex | Movement::SetSlice | Movement::Scatter | Movement::ScatterAdd | Movement::Concat => 2,
            Movement::MakeArray => usize::MAX,
        }
    }
}

impl Prim {
    /// Number of operands, or the smallest number and `true` when there may be more.
    pub fn arity(self) -> (usize, bool) {
        match self.class() {
            Class::Identity(_) | Class::Conversion(_) | Class::Unary(_) | Class::Reduction(_) => (1, false),
            Class::Arithmetic(Arithmetic::Neg | Arithmetic::Abs) | Class::Logic(Logic::Not) => (1, false),
            Class::Arithmetic(
                Arithmetic::Add | Arithmetic::Sub | Arithmetic::Mul | Arithmetic::Min | Arithmetic::Max,
            )
            | Class::Logic(Logic::And | Logic::Or) => (2, false),
            Class::RealArithmetic(_) | Class::IntArithmetic(_) | Class::Binary(_) | Class::Comparison(_) => (2, false),
            Class::Contraction(_) => (2, false),
            Class::Selection(Selection::Select) => (3, false),
            Class::Triangular(Triangular::Cholesky) => (1, false),
            Class::Triangular(
                Triangular::SolveLower
                | Triangular::SolveLowerTransposed
                | Triangular::ChainSolveLower
                | Triangular::ChainSolveLowerTransposed
                | Triangular::ChainCholeskyTangent
                | Triangular::ChainCholeskyCotangent,
            ) => (2, false),
            Class::Draw(_) => (0, false),
            Class::Movement(movement) => match movement {
                Movement::Iota => (0, false),
                Movement::Fill | Movement::Transpose | Movement::TransposeEach | Movement::Reshape => (1, false),
                Movement::MakeArray => (1, true),
                Movement::Slice | Movement::Concat => (2, false),
                Movement::Index | Movement::Gather => (2, true),
                Movement::SetSlice => (3, false),
                Movement::SetIndex | Movement::Scatter | Movement::ScatterAdd => (3, true),
            },
        }
    }

    /// Checks operands against the type of the result. The result's shape is part of what `fill`, `slice`, `reshape`,
    /// `iota`, the reductions and the random draws mean; for the others it is the one that [`infer`](Self::infer) gives.
    pub fn check(self, args: &[Type], result: &Type) -> Result<(), TypeError> {
        use Prim::*;
        let ok = match self {
            Fill => args.len() == 1 && args[0].dtype == result.dtype && spreads(&args[0].shape, &result.shape),
            Iota => args.is_empty() && result.dtype == DType::Int && result.shape.len() == 1,
            Sum | SumLog | SumLog1pExp | Prod | MinOf | MaxOf | Any | All => {
                let whole = self.infer(args)?;
                whole.dtype == result.dtype && spreads(&result.shape, &args[0].shape)
            }
            Reshape => args.len() == 1 && args[0].dtype == result.dtype && args[0].elements() == result.elements(),
            RandomUniform | RandomNormal => args.is_empty() && result.dtype == DType::Real,
            RandomPosition => args.is_empty() && *result == Type::int(),
            Slice => {
                args.len() == 2
                    && args[1] == Type::int()
                    && args[0].dtype == result.dtype
                    && !args[0].is_scalar()
                    && args[0].shape.len() == result.shape.len()
                    && args[0].shape[1..] == result.shape[1..]
            }
            // the others are inferred, or `infer` says that they cannot be
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
        let (least, more) = self.arity();
        if args.len() < least || (args.len() > least && !more) {
            return fail(self, args, &format!("takes {least} operands"));
        }
        match self.class() {
            Class::Identity(Identity::Copy) => Ok(args[0].clone()),
            Class::Identity(Identity::StopGradient) => self.elementwise(args, &[Real], None),
            Class::Arithmetic(_) => self.elementwise(args, &[Int, Real], None),
            Class::RealArithmetic(_) | Class::Unary(_) | Class::Binary(_) => self.elementwise(args, &[Real], None),
            Class::IntArithmetic(_) => self.elementwise(args, &[Int], None),
            Class::Comparison(Comparison::Eq | Comparison::Ne) => {
                self.elementwise(args, &[Bool, Int, Real], Some(Bool))
            }
            Class::Comparison(Comparison::Lt | Comparison::Le | Comparison::Gt | Comparison::Ge) => {
                self.elementwise(args, &[Int, Real], Some(Bool))
            }
            Class::Logic(_) => self.elementwise(args, &[Bool], None),
            Class::Conversion(conversion) => match conversion {
                Conversion::ToReal => self.elementwise(args, &[Int], Some(Real)),
                Conversion::ToInt => self.elementwise(args, &[Real], Some(Int)),
                Conversion::BoolToInt => self.elementwise(args, &[Bool], Some(Int)),
                Conversion::IsNan => self.elementwise(args, &[Real], Some(Bool)),
            },
            Class::Selection(Selection::Select) => self.select(args),
            Class::Movement(movement) => self.movement(movement, args),
            Class::Contraction(_) => self.contract(args),
            Class::Triangular(_) => self.triangular(args),
            Class::Reduction(reduction) => {
                let (array, bools) = (!args[0].is_scalar(), args[0].dtype == Bool);
                match reduction {
                    Reduction::Sum | Reduction::Prod | Reduction::MinOf | Reduction::MaxOf if array && !bools => {
                        Ok(Type::scalar(args[0].dtype))
                    }
                    Reduction::SumLog | Reduction::SumLog1pExp if array && args[0].dtype == Real => Ok(Type::real()),
                    Reduction::Any | Reduction::All if array && bools => Ok(Type::bool()),
                    _ => fail(self, args, "wrong operands"),
                }
            }
            Class::Draw(_) => fail(self, args, "its result is not determined by its operands"),
        }
    }

    fn movement(self, movement: Movement, args: &[Type]) -> Typed {
        match movement {
            Movement::MakeArray => self.make_array(args),
            Movement::Index => self.index(args, &args[1..]),
            Movement::SetIndex => {
                let part = self.index(args, &args[2..])?;
                if part == args[1] { Ok(args[0].clone()) } else { fail(self, args, "the new part has another type") }
            }
            Movement::SetSlice => self.set_slice(args),
            Movement::Concat => self.concat(args),
            Movement::Gather => self.gather(args, &args[1..]),
            Movement::Scatter | Movement::ScatterAdd => {
                let part = self.gather(args, &args[2..])?;
                let fits = part == args[1] && (self == Prim::Scatter || part.dtype != DType::Bool);
                if fits { Ok(args[0].clone()) } else { fail(self, args, "the new parts have another type") }
            }
            Movement::Transpose if args[0].shape.len() >= 2 => Ok(exchanged(&args[0], 0)),
            Movement::TransposeEach if args[0].shape.len() >= 3 => Ok(exchanged(&args[0], 1)),
            Movement::Transpose | Movement::TransposeEach => fail(self, args, "wrong operands"),
            Movement::Fill | Movement::Slice | Movement::Reshape | Movement::Iota => {
                fail(self, args, "its result is not determined by its operands")
            }
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
        let fits = fits && (!self.derives_factor() || args[0].shape == args[1].shape);
        if square && fits { Ok(args[args.len() - 1].clone()) } else { fail(self, args, "shapes do not fit") }
    }

    /// What it can do besides computing, for operands of these types.
    pub fn effect(self, args: &[Type]) -> Effect {
        let traps = match self.row().traps {
            _ if self.is_draw() => return Effect::Random,
            Traps::Never => false,
            Traps::Always => true,
            Traps::OnInts => args.first().is_some_and(|a| a.dtype == DType::Int),
            Traps::OnEmpty => args.first().is_some_and(|a| a.elements() == 0),
        };
        if traps { Effect::Traps } else { Effect::Pure }
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
                let part = if self == Prim::Cholesky || self.derives_factor() { 3 } else { 2 };
                result.elements().saturating_mul(args[0].shape.last().copied().unwrap_or(1).div_ceil(part))
            }
            _ => result.elements(),
        };
        u64::from(self.row().cost).saturating_mul((n as u64).max(1))
    }
}
