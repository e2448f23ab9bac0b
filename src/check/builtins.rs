//! Functions that are primitives: their names, what they take and what they give.

use std::sync::LazyLock;

use indexmap::IndexMap;

use crate::base::{Diagnostic, Span};
use crate::hir::{Dim, Expr, ExprKind, Ty};
use crate::prim::{
    Arithmetic, Class, Contraction, Conversion, Draw, Movement, Prim, RealArithmetic, Reduction, Selection, TABLE,
    Triangular,
};
use crate::syntax::ast::BinaryOp;
use crate::types::{DType, Scalar};
use crate::vmath::BinaryFn;

use super::body::{Body, prim, to_real};
use super::expr::{join, literal};
use super::operators::as_real;
use super::types::{elements, of_shape};

/// A function that the checker knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Builtin {
    /// Of a real, elementwise.
    Real(Prim),
    /// Of two reals, elementwise.
    Real2(Prim),
    Abs,
    /// Of two numbers elementwise, or of one array.
    Extremum(Prim, Prim),
    Pow,
    Select,
    /// Of an array of numbers.
    Reduce(Prim),
    ReduceReals(Prim),
    /// Of an array of bools; a scalar is itself.
    Quantify(Prim),
    Transpose,
    Dot,
    /// Of a square matrix.
    Factor,
    /// Of a square matrix and a vector or matrix.
    Solve(Prim),
    Concat,
    Reshape,
    Fill,
    /// `zeros`, `ones`
    Constant(Scalar),
    ToInt,
    ToReal,
    /// The extent of an axis.
    Extent(usize),
    /// A draw for every element.
    Draw(Prim),
    /// The number of draws so far.
    DrawsMade,
}

/// The functions that are no primitives, or other ones than their class says.
const OTHERS: &[(&str, Builtin)] = &[
    ("zeros", Builtin::Constant(Scalar::Real(0.0))),
    ("ones", Builtin::Constant(Scalar::Real(1.0))),
    ("len", Builtin::Extent(0)),
    ("size", Builtin::Extent(0)),
    ("rows", Builtin::Extent(0)),
    ("cols", Builtin::Extent(1)),
];

/// What a function is that the table of primitives names.
fn of_primitive(prim: Prim) -> Option<Builtin> {
    Some(match prim.class() {
        Class::Unary(_) => Builtin::Real(prim),
        Class::Binary(BinaryFn::Pow) => Builtin::Pow,
        Class::Binary(_) => Builtin::Real2(prim),
        Class::Conversion(conversion) => match conversion {
            Conversion::IsNan => Builtin::Real(prim),
            Conversion::ToInt => Builtin::ToInt,
            Conversion::ToReal => Builtin::ToReal,
            Conversion::BoolToInt => return None,
        },
        Class::Arithmetic(op) => match op {
            Arithmetic::Abs => Builtin::Abs,
            Arithmetic::Min => Builtin::Extremum(prim, Prim::MinOf),
            Arithmetic::Max => Builtin::Extremum(prim, Prim::MaxOf),
            Arithmetic::Add | Arithmetic::Sub | Arithmetic::Mul | Arithmetic::Neg => return None,
        },
        Class::Selection(Selection::Select) => Builtin::Select,
        Class::Movement(movement) => match movement {
            Movement::Concat => Builtin::Concat,
            Movement::Fill => Builtin::Fill,
            Movement::Reshape => Builtin::Reshape,
            Movement::Transpose => Builtin::Transpose,
            Movement::MakeArray
            | Movement::Index
            | Movement::SetIndex
            | Movement::Slice
            | Movement::SetSlice
            | Movement::Gather
            | Movement::Scatter
            | Movement::ScatterAdd
            | Movement::Iota
            | Movement::TransposeEach => return None,
        },
        Class::Contraction(Contraction::Dot) => Builtin::Dot,
        Class::Contraction(
            Contraction::MatMul
            | Contraction::BatchMatMul
            | Contraction::ChainDot
            | Contraction::ChainMatMul
            | Contraction::ChainBatchMatMul,
        ) => return None,
        Class::Triangular(Triangular::Cholesky) => Builtin::Factor,
        Class::Triangular(Triangular::SolveLower | Triangular::SolveLowerTransposed) => Builtin::Solve(prim),
        Class::Triangular(
            Triangular::ChainSolveLower
            | Triangular::ChainSolveLowerTransposed
            | Triangular::ChainCholeskyTangent
            | Triangular::ChainCholeskyCotangent,
        ) => return None,
        Class::Reduction(reduction) => match reduction {
            Reduction::Sum | Reduction::Prod => Builtin::Reduce(prim),
            Reduction::SumLog | Reduction::SumLog1pExp => Builtin::ReduceReals(prim),
            Reduction::Any | Reduction::All => Builtin::Quantify(prim),
            // called by the names of those of two
            Reduction::MinOf | Reduction::MaxOf => return None,
        },
        Class::Draw(Draw::RandomPosition) => Builtin::DrawsMade,
        Class::Draw(Draw::RandomUniform | Draw::RandomNormal) => Builtin::Draw(prim),
        Class::RealArithmetic(RealArithmetic::ChainMul) => Builtin::Real2(prim),
        Class::RealArithmetic(RealArithmetic::Div | RealArithmetic::Rem | RealArithmetic::ChainDiv) => return None,
        Class::Identity(_) | Class::IntArithmetic(_) | Class::Comparison(_) | Class::Logic(_) => return None,
    })
}

/// All builtin functions by their names.
fn builtins() -> &'static IndexMap<&'static str, Builtin> {
    static BUILTINS: LazyLock<IndexMap<&'static str, Builtin>> = LazyLock::new(|| {
        let named = TABLE.iter().flat_map(|row| row.called.iter().map(|name| (*name, of_primitive(row.prim))));
        let primitives = named.filter_map(|(name, builtin)| Some((name, builtin?)));
        primitives.chain(OTHERS.iter().copied()).collect()
    });
    &BUILTINS
}

/// The builtin function of this name.
pub(super) fn builtin(name: &str) -> Option<Builtin> {
    builtins().get(name).copied()
}

/// The names of all builtin functions.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    builtins().keys().copied()
}

impl Builtin {
    /// The least and the largest number of arguments.
    fn arity(self) -> (usize, usize) {
        match self {
            Builtin::Real2(_) | Builtin::Pow | Builtin::Dot | Builtin::Solve(_) => (2, 2),
            Builtin::Extremum(..) => (1, 2),
            Builtin::Select => (3, 3),
            Builtin::Concat | Builtin::Reshape | Builtin::Fill => (2, usize::MAX),
            Builtin::Constant(_) => (1, usize::MAX),
            Builtin::Draw(_) => (0, usize::MAX),
            Builtin::DrawsMade => (0, 0),
            _ => (1, 1),
        }
    }

    /// What it takes, for the user.
    pub(super) fn takes(self) -> &'static str {
        match self {
            Builtin::Real(_) => "a real or an array of reals",
            Builtin::Real2(_) => "two reals, or arrays of them",
            Builtin::Abs => "a number or an array of numbers",
            Builtin::Extremum(..) => "two numbers, or arrays of them, or one array",
            Builtin::Pow => "two numbers, or arrays of them",
            Builtin::Select => "a bool and two values of one type, or arrays of them",
            Builtin::Reduce(_) => "an array of numbers",
            Builtin::ReduceReals(_) => "an array of reals",
            Builtin::Quantify(_) => "an array of bools",
            Builtin::Transpose => "a matrix",
            Builtin::Dot => "two vectors of reals",
            Builtin::Factor => "a square matrix of reals",
            Builtin::Solve(_) => "a square matrix of reals, and a vector or matrix of reals with as many rows",
            Builtin::Concat => "arrays that differ in their first extent only",
            Builtin::Reshape => "an array and the new extents",
            Builtin::Fill => "a scalar and the extents",
            Builtin::Constant(_) | Builtin::Draw(_) => "extents",
            Builtin::DrawsMade => "nothing",
            Builtin::ToInt => "a real or a bool, or an array of them",
            Builtin::ToReal => "an int or a bool, or an array of them",
            Builtin::Extent(0) => "an array",
            Builtin::Extent(_) => "a matrix",
        }
    }
}

impl Body<'_, '_> {
    /// A call of a builtin function.
    pub(super) fn builtin_call(&mut self, builtin: Builtin, name: &str, args: Vec<Expr>, span: Span) -> Option<Expr> {
        let (least, most) = builtin.arity();
        if !(least..=most).contains(&args.len()) {
            let wanted = match (least, most) {
                (a, b) if a == b => super::call::count(a),
                (a, usize::MAX) => format!("at least {}", super::call::count(a)),
                (a, b) => format!("{a} or {b} arguments"),
            };
            self.wrong_count(name, &wanted, args.len(), span, None);
            return None;
        }
        let dtypes: Option<Vec<(DType, usize)>> =
            args.iter().map(|a| elements(&a.ty).map(|(dtype, dims)| (dtype, dims.len()))).collect();
        let Some(dtypes) = dtypes else {
            return self.wrong_args(builtin, name, &args, span);
        };
        let numbers = dtypes.iter().all(|(dtype, _)| *dtype != DType::Bool);
        match (builtin, &dtypes[..]) {
            (Builtin::Real(op), _) if numbers => {
                let result = (op == Prim::IsNan).then_some(DType::Bool);
                self.elementwise(op, reals(args), result, span)
            }
            (Builtin::Real2(op), _) if numbers => self.elementwise(op, reals(args), None, span),
            (Builtin::Abs, _) if numbers => self.elementwise(Prim::Abs, args, None, span),
            (Builtin::Extremum(op, _), [_, _]) if numbers => self.elementwise(op, same_numbers(args), None, span),
            (Builtin::Extremum(_, op) | Builtin::Reduce(op), [(dtype, 1..)]) if numbers => {
                Some(prim(op, args, Ty::Scalar(*dtype), span))
            }
            (Builtin::ReduceReals(op), [(_, 1..)]) if numbers => {
                Some(prim(op, reals(args), Ty::Scalar(DType::Real), span))
            }
            (Builtin::Pow, _) if numbers => {
                let mut args = args.into_iter();
                self.binary(BinaryOp::Pow, args.next()?, args.next()?, span)
            }
            (Builtin::Select, [(DType::Bool, _), _, _]) => self.select(name, args, span),
            (Builtin::Quantify(_), [(DType::Bool, 0)]) => args.into_iter().next(),
            (Builtin::Quantify(op), [(DType::Bool, _)]) => Some(prim(op, args, Ty::Scalar(DType::Bool), span)),
            (Builtin::Transpose, [(dtype, 2)]) => {
                let (_, dims) = elements(&args[0].ty)?;
                let ty = Ty::Array(*dtype, vec![dims[1].clone(), dims[0].clone()]);
                Some(prim(Prim::Transpose, args, ty, span))
            }
            (Builtin::Dot, [(_, 1), (_, 1)]) if numbers => {
                let mut args = args.into_iter();
                self.matmul(args.next()?, args.next()?, span)
            }
            (Builtin::Factor, [(_, 2)]) if numbers && is_square(&args[0]) => {
                let ty = args[0].ty.clone();
                Some(prim(Prim::Cholesky, reals(args), as_reals(&ty), span))
            }
            (Builtin::Solve(op), [(_, 2), (_, 1 | 2)]) if numbers && is_square(&args[0]) && same_rows(&args) => {
                let ty = args[1].ty.clone();
                Some(prim(op, reals(args), as_reals(&ty), span))
            }
            (Builtin::Concat, _) => self.concat(name, args, span),
            (Builtin::Reshape, [(_, 1..), ..]) => self.reshape(args, span),
            (Builtin::Fill, [(dtype, 0), ..]) => {
                let dims = self.extents(&args[1..])?;
                let value = args.into_iter().take(1).collect();
                Some(prim(Prim::Fill, value, of_shape(*dtype, &dims), span))
            }
            (Builtin::Constant(value), _) => {
                let dims = self.extents(&args)?;
                let ty = of_shape(value.dtype(), &dims);
                Some(prim(Prim::Fill, vec![literal(value, span)], ty, span))
            }
            (Builtin::Draw(op), _) => {
                let dims = self.extents(&args)?;
                Some(prim(op, Vec::new(), of_shape(DType::Real, &dims), span))
            }
            (Builtin::DrawsMade, _) => Some(prim(Prim::RandomPosition, Vec::new(), Ty::Scalar(DType::Int), span)),
            (Builtin::ToInt, [(DType::Int, _)]) | (Builtin::ToReal, [(DType::Real, _)]) => args.into_iter().next(),
            (Builtin::ToInt, [(DType::Real, _)]) => self.elementwise(Prim::ToInt, args, Some(DType::Int), span),
            (Builtin::ToInt, [(DType::Bool, _)]) => self.elementwise(Prim::BoolToInt, args, Some(DType::Int), span),
            (Builtin::ToReal, [(DType::Bool, _)]) => {
                let ints = self.elementwise(Prim::BoolToInt, args, Some(DType::Int), span)?;
                Some(to_real(ints))
            }
            (Builtin::ToReal, _) => args.into_iter().next().map(to_real),
            (Builtin::Extent(axis), [(_, rank)]) if *rank > axis => {
                let (_, dims) = elements(&args[0].ty)?;
                Some(Expr { kind: ExprKind::Dim(dims[axis].clone()), ty: Ty::Scalar(DType::Int), span })
            }
            _ => self.wrong_args(builtin, name, &args, span),
        }
    }

    fn wrong_args(&mut self, builtin: Builtin, name: &str, args: &[Expr], span: Span) -> Option<Expr> {
        let found: Vec<String> = args.iter().map(|a| self.show(&a.ty)).collect();
        let mut error = Diagnostic::error(
            "E0305",
            format!("`{name}` takes {}, found {}", builtin.takes(), found.join(", ")),
            span,
            "wrong arguments",
        );
        for (arg, found) in args.iter().zip(&found) {
            error = error.with_label(arg.span, format!("this is {found}"));
        }
        self.cx.report(error);
        None
    }

    fn extents(&mut self, args: &[Expr]) -> Option<Vec<Dim>> {
        let dims: Vec<Option<Dim>> = args
            .iter()
            .map(|arg| {
                if arg.ty == Ty::Scalar(DType::Int) {
                    return self.known_extent(arg);
                }
                let found = self.show(&arg.ty);
                let error = Diagnostic::error(
                    "E0201",
                    format!("an extent is an int, found {found}"),
                    arg.span,
                    format!("this is {found}"),
                );
                self.cx.report(error);
                None
            })
            .collect();
        dims.into_iter().collect()
    }

    fn select(&mut self, name: &str, args: Vec<Expr>, span: Span) -> Option<Expr> {
        let scalar = |e: &Expr| elements(&e.ty).map(|(dtype, _)| Ty::Scalar(dtype));
        if join(&scalar(&args[1])?, &scalar(&args[2])?).is_none() {
            return self.wrong_args(Builtin::Select, name, &args, span);
        }
        let mut args = args.into_iter();
        let condition = args.next()?;
        let mut operands = vec![condition];
        operands.extend(same_numbers(args.collect()));
        self.elementwise(Prim::Select, operands, None, span)
    }

    fn concat(&mut self, name: &str, args: Vec<Expr>, span: Span) -> Option<Expr> {
        let shown = args.clone();
        let mut parts = same_numbers(args).into_iter();
        let mut joined = parts.next()?;
        for part in parts {
            let fits = match (elements(&joined.ty), elements(&part.ty)) {
                (Some((x, [n, xs @ ..])), Some((y, [m, ys @ ..]))) if x == y && xs == ys => {
                    n.add_scaled(m, 1).map(|sum| {
                        let mut dims = vec![sum];
                        dims.extend_from_slice(xs);
                        of_shape(x, &dims)
                    })
                }
                _ => None,
            };
            let Some(ty) = fits else {
                return self.wrong_args(Builtin::Concat, name, &shown, span);
            };
            joined = prim(Prim::Concat, vec![joined, part], ty, span);
        }
        Some(joined)
    }

    fn reshape(&mut self, args: Vec<Expr>, span: Span) -> Option<Expr> {
        let dims = self.extents(&args[1..])?;
        let (dtype, old) = elements(&args[0].ty)?;
        if product(old) != product(&dims) {
            let found = self.show(&args[0].ty);
            let wanted = self.show(&of_shape(dtype, &dims));
            let error = Diagnostic::error(
                "E0203",
                format!("{found} and {wanted} do not have equally many elements"),
                span,
                format!("cannot become {wanted}"),
            );
            self.cx.report(error.with_label(args[0].span, format!("this is {found}")));
            return None;
        }
        let ty = of_shape(dtype, &dims);
        let value = args.into_iter().take(1).collect();
        Some(prim(Prim::Reshape, value, ty, span))
    }
}

fn is_square(matrix: &Expr) -> bool {
    elements(&matrix.ty).is_some_and(|(_, dims)| matches!(dims, [n, m] if n == m))
}

/// Whether two arrays have the same first extent.
fn same_rows(args: &[Expr]) -> bool {
    let rows = |e: &Expr| elements(&e.ty).and_then(|(_, dims)| dims.first().cloned());
    rows(&args[0]) == rows(&args[1])
}

/// The type with reals for elements.
fn as_reals(ty: &Ty) -> Ty {
    elements(ty).map_or_else(|| ty.clone(), |(_, dims)| of_shape(DType::Real, dims))
}

fn reals(args: Vec<Expr>) -> Vec<Expr> {
    args.into_iter().map(as_real).collect()
}

/// The operands, ints promoted when some are reals.
fn same_numbers(args: Vec<Expr>) -> Vec<Expr> {
    let real = |e: &Expr| elements(&e.ty).is_some_and(|(dtype, _)| dtype == DType::Real);
    if args.iter().any(real) { reals(args) } else { args }
}

/// A product of extents, multiplied out. `None` when it is too large.
fn product(dims: &[Dim]) -> Option<Dim> {
    dims.iter().try_fold(Dim::constant(1), |product, dim| product.product(dim))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_the_table_of_primitives_is_a_function_of_the_language() {
        for row in TABLE {
            assert!(row.called.is_empty() || of_primitive(row.prim).is_some(), "`{}` has no signature", row.name);
        }
    }
}
