//! Layer 2: the typed high-level IR that the checker makes from the syntax tree. Names are resolved, promotions and
//! overloads are explicit, every expression has its type; dimensions are still symbolic and functions are still values.
//! Lowering specialises it to numbers for dimensions and to the functions that are passed.
//!
//! What is *shared* is decided here in the same way by the checker and by the lowering. An expression is shared when it is
//! a literal, a dimension, a shared parameter, an immutable local bound to a shared expression (destructuring included), a
//! tuple, struct, array or field of shared expressions, or a primitive of shared expressions that cannot trap
//! ([`Effect::Pure`](crate::prim::Effect)) for their types; an index or slice counts where its indices are made of
//! literals and dimensions only (the lowering checks the bounds). A call, a derivative, an `if`, a block, a loop variable, a
//! comprehension or a `let mut` is never shared; inside a closure, captured shared locals stay shared.

mod dim;
pub mod dump;
pub mod walk;

pub use dim::{Dim, Product};

use std::collections::BTreeMap;

use indexmap::IndexMap;

use crate::base::{IdVec, Span};
use crate::prim::Prim;
use crate::types::{DType, Scalar};

crate::define_id!(
    /// A function.
    FnId, "fn"
);
crate::define_id!(
    /// A struct.
    StructId, "struct"
);
crate::define_id!(
    /// A local variable of a function, a parameter or a closure's parameter included.
    LocalId, "x"
);
crate::define_id!(
    /// A dimension parameter of a function or of a struct.
    DimId, "d"
);

/// A checked program: the main module and everything that it uses.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// All structs.
    pub structs: IdVec<StructId, Struct>,
    /// All functions, instances of elementwise functions included; none for one of the library that nothing uses.
    pub fns: IdVec<FnId, Option<Fn>>,
    /// The `pub fn`s of the main module by name: the possible entry points.
    pub exports: IndexMap<String, FnId>,
    /// Derivatives that are written by hand, by function.
    pub rules: IndexMap<FnId, Rules>,
    /// Levels of the deepest tree of the source: who walks bodies by recursion, a clone included, needs
    /// [room](crate::base::stack::with_room) for them.
    pub depth: usize,
}

impl Program {
    /// A function that something uses.
    pub fn function(&self, id: FnId) -> &Fn {
        self.fns[id].as_ref().expect("what is used is checked")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let fns = std::mem::take(&mut self.fns);
        crate::base::stack::with_room(self.depth, move || drop(fns));
    }
}

/// The derivative of a function, written by hand: at least one of the two. Shared parameters and those without reals have
/// neither tangents nor cotangents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// Parameters: those of the function, then a tangent for each real one. Result: the tangent of the result.
    pub forward: Option<FnId>,
    /// Parameters: those of the function, then the cotangent of the result. Result: the cotangent of the real parameter,
    /// or a tuple of them when there are several.
    pub reverse: Option<FnId>,
}

/// A struct.
#[derive(Clone, Debug)]
pub struct Struct {
    /// Its name.
    pub name: String,
    /// Names of its dimension parameters.
    pub dims: IdVec<DimId, String>,
    /// Names and types of its fields, over its dimension parameters.
    pub fields: Vec<(String, Ty)>,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Fn {
    /// The user's name.
    pub name: String,
    /// Its documentation.
    pub doc: String,
    /// Names of its dimension parameters. Calls give them all; an entry binds them by solving the parameter types.
    pub dims: IdVec<DimId, String>,
    /// The *bounded* dimensions, `real[t <= 100]`, and the largest number that each may be. What an entry gets for one differs
    /// from lane to lane.
    pub bounds: BTreeMap<DimId, Dim>,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Result type; unit is the empty tuple.
    pub ret: Ty,
    /// All locals, those of its closures included.
    pub locals: IdVec<LocalId, Local>,
    /// Its body; its type is `ret` unless it never ends normally.
    pub body: Expr,
    /// Whether its values are computed again in a reverse sweep instead of being taped: `@recompute`.
    pub recompute: bool,
    /// Its name in its declaration.
    pub span: Span,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// The local that it sets; it has the name and the type.
    pub local: LocalId,
    /// Whether `shared` stands before it.
    pub shared: bool,
}

/// A local variable.
#[derive(Clone, Debug)]
pub struct Local {
    /// The user's name; made-up ones start with `%`.
    pub name: String,
    /// Its type.
    pub ty: Ty,
    /// Whether it is assigned after it is bound.
    pub mutable: bool,
    /// Where it is bound.
    pub span: Span,
}

/// A type over the dimension parameters of a function.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Ty {
    /// `bool`, `int`, `real`
    Scalar(DType),
    /// `real[n, d]`: at least one extent.
    Array(DType, Vec<Dim>),
    /// `(A, B)`; the empty one is unit.
    Tuple(Vec<Ty>),
    /// A struct with its dimension arguments.
    Struct(StructId, Vec<Dim>),
    /// `fn(A) -> B`
    Fn(Vec<Ty>, Box<Ty>),
    /// Of an expression that never ends normally: `return`, or an `if` whose arms do not.
    Never,
}

impl Ty {
    /// The type without values.
    pub fn unit() -> Ty {
        Ty::Tuple(Vec::new())
    }
    /// Whether it is unit.
    pub fn is_unit(&self) -> bool {
        matches!(self, Ty::Tuple(parts) if parts.is_empty())
    }
    /// With each dimension parameter replaced; `None` on overflow.
    pub fn substitute(&self, args: &[Dim]) -> Option<Ty> {
        let all = |dims: &[Dim]| -> Option<Vec<Dim>> { dims.iter().map(|d| d.substitute(args)).collect() };
        Some(match self {
            Ty::Scalar(_) | Ty::Never => self.clone(),
            Ty::Array(dtype, dims) => Ty::Array(*dtype, all(dims)?),
            Ty::Struct(id, dims) => Ty::Struct(*id, all(dims)?),
            Ty::Tuple(parts) => Ty::Tuple(parts.iter().map(|p| p.substitute(args)).collect::<Option<_>>()?),
            Ty::Fn(params, ret) => {
                let params = params.iter().map(|p| p.substitute(args)).collect::<Option<_>>()?;
                Ty::Fn(params, Box::new(ret.substitute(args)?))
            }
        })
    }
    /// All extents and dimension arguments in it.
    pub fn for_each_dim<'t>(&'t self, visit: &mut impl FnMut(&'t Dim)) {
        match self {
            Ty::Scalar(_) | Ty::Never => {}
            Ty::Array(_, dims) | Ty::Struct(_, dims) => dims.iter().for_each(visit),
            Ty::Tuple(parts) => parts.iter().for_each(|p| p.for_each_dim(visit)),
            Ty::Fn(params, ret) => {
                params.iter().for_each(|p| p.for_each_dim(visit));
                ret.for_each_dim(visit);
            }
        }
    }
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Ty,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A constant; consts of modules are replaced by their values.
    Literal(Scalar),
    /// A dimension used as an int.
    Dim(Dim),
    /// A local variable that is not a function.
    Local(LocalId),
    /// A tuple; unit too.
    Tuple(Vec<Expr>),
    /// A struct with all its fields in the order of the declaration, evaluated in that order.
    Struct(StructId, Vec<Expr>),
    /// The field at a position of a struct or tuple.
    Field(Box<Expr>, usize),
    /// A primitive; promotions are explicit. The shape of `fill`, `slice`, `reshape` and draws is that of `ty`. Operands
    /// are evaluated in order. `MakeArray` makes array literals.
    Prim(Prim, Vec<Expr>),
    /// `a && b`: the second only where the first holds.
    And(Box<Expr>, Box<Expr>),
    /// `a || b`: the second only where the first does not hold.
    Or(Box<Expr>, Box<Expr>),
    /// A call. Operands are evaluated in order; those of function type are [`ExprKind::Function`],
    /// [`ExprKind::Lambda`] or [`ExprKind::FunctionLocal`].
    Call(Callee, Vec<Expr>),
    /// `if`; without an else it is unit.
    If(Box<Expr>, Box<Expr>, Option<Box<Expr>>),
    /// A block.
    Block(Vec<Stmt>, Option<Box<Expr>>),
    /// `[body for …]`: shape = the clauses' lengths, then the body's shape. The body is pure but for random draws, and
    /// the clauses' lengths are known: they are those of `ty`.
    Comprehension {
        /// The clauses, outermost first.
        clauses: Vec<Clause>,
        /// The element: a scalar or an array.
        body: Box<Expr>,
    },
    /// `sum(body for …)`: the body is a scalar and pure but for random draws. Lengths may depend on the lane.
    Reduction {
        /// Which.
        op: Reduction,
        /// The clauses, outermost first.
        clauses: Vec<Clause>,
        /// The element.
        body: Box<Expr>,
    },
    /// A function as a value, with its dimension arguments.
    Function(FnId, Vec<Dim>),
    /// A local of function type (a parameter, or bound by `let` to a function).
    FunctionLocal(LocalId),
    /// A closure. It sees the locals of the function around it, by value, when it is made.
    Lambda {
        /// Its parameters.
        params: Vec<LocalId>,
        /// Its body.
        body: Box<Expr>,
    },
    /// A derivative of a function at arguments.
    Derivative(Box<DerivativeCall>),
    /// A call of a function that a trap does not end: its value, or NaN for each real of it (0 for each int, `false` for each
    /// bool). The function is [`ExprKind::Function`], [`ExprKind::Lambda`] or [`ExprKind::FunctionLocal`], and may have shared
    /// parameters.
    Attempt(Box<Expr>, Vec<Expr>),
    /// The value itself, a constant to every derivative. What it holds of ints and bools passes through.
    StopGradient(Box<Expr>),
    /// `print("…")`
    Print(Message),
    /// `assert(condition, "…")`; without a message the text is empty.
    Assert(Box<Expr>, Message),
    /// `while condition body`
    While(Box<Expr>, Box<Expr>),
    /// `for var in start..end body`; both bounds are evaluated once.
    For(LocalId, Box<Expr>, Box<Expr>, Box<Expr>),
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// `return`
    Return(Option<Box<Expr>>),
}

/// A derivative of a function at arguments.
#[derive(Clone, Debug)]
pub struct DerivativeCall {
    /// Which, and with it what is given besides the arguments and what the result is.
    pub op: Derivative,
    /// The function: [`ExprKind::Function`], [`ExprKind::Lambda`] or [`ExprKind::FunctionLocal`], of function type. A
    /// function with shared parameters may stand here.
    pub function: Expr,
    /// Positions of the parameters with respect to which, all made of reals and not shared.
    pub wrt: Vec<usize>,
    /// One argument for each parameter of the function.
    pub args: Vec<Expr>,
    /// For `Jvp` the tangent, of the type of the parameter (or the tuple of the parameters) of `wrt`; for `Vjp` the
    /// cotangent, of the type of the result.
    pub direction: Option<Expr>,
}

impl DerivativeCall {
    /// The expressions in it.
    pub fn parts(&self) -> impl Iterator<Item = &Expr> {
        std::iter::once(&self.function).chain(&self.args).chain(&self.direction)
    }
}

/// The derivatives. *Parameter* is the type of the parameter of `wrt`, or the tuple of them when there are several.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Derivative {
    /// The gradient, of the type *parameter*; the function gives a real.
    Grad,
    /// The value and the gradient; the function gives a real.
    ValueAndGrad,
    /// The value and its tangent.
    Jvp,
    /// The value and the cotangent of the *parameter*.
    Vjp,
}

impl Derivative {
    /// The name in the language.
    pub fn name(self) -> &'static str {
        match self {
            Derivative::Grad => "grad",
            Derivative::ValueAndGrad => "value_and_grad",
            Derivative::Jvp => "jvp",
            Derivative::Vjp => "vjp",
        }
    }
}

/// What is called.
#[derive(Clone, Debug)]
pub enum Callee {
    /// A function with its dimension arguments.
    Fn(FnId, Vec<Dim>),
    /// A local of function type.
    Local(LocalId),
}

/// A clause of a comprehension: the variable runs from `start` to `end`, exclusive. Bounds may use earlier variables only
/// in reductions.
#[derive(Clone, Debug)]
pub struct Clause {
    /// The variable.
    pub var: LocalId,
    /// From: an int.
    pub start: Expr,
    /// To, exclusive: an int.
    pub end: Expr,
}

/// The reductions over a comprehension. Int, real: `Sum`, `Prod`, `Min`, `Max` (the empty one traps for `Min` and `Max`);
/// bool: `Any`, `All` (every element is evaluated); real: `Mean`, `LogSumExp`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "named after the functions of the language")]
pub enum Reduction {
    Sum,
    Prod,
    Min,
    Max,
    Any,
    All,
    Mean,
    LogSumExp,
}

impl Reduction {
    /// All of them, in the order in which messages list them.
    pub const ALL: [Reduction; 8] = [
        Reduction::Sum,
        Reduction::Prod,
        Reduction::Max,
        Reduction::Min,
        Reduction::Any,
        Reduction::All,
        Reduction::Mean,
        Reduction::LogSumExp,
    ];
    /// Its name in the language.
    pub fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Prod => "prod",
            Reduction::Min => "min",
            Reduction::Max => "max",
            Reduction::Any => "any",
            Reduction::All => "all",
            Reduction::Mean => "mean",
            Reduction::LogSumExp => "log_sum_exp",
        }
    }
}

/// A string with holes: one more text than there are values. Values are scalars or arrays.
#[derive(Clone, Debug)]
pub struct Message {
    /// The texts around the values.
    pub texts: Vec<String>,
    /// The values.
    pub args: Vec<Expr>,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of statements.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `let pattern = value;` A value of function type is bound to a single local.
    Let(Pattern, Expr),
    /// `place = value;` or `place op= value;`
    Assign {
        /// What is assigned.
        place: Place,
        /// For `+=` and its kin, the primitive, applied to the old value and the new one (already promoted).
        op: Option<Prim>,
        /// The value, of the type of the place (an op may take a scalar for an array place).
        value: Expr,
    },
    /// An expression for its effect.
    Expr(Expr),
    /// `emit stream(fields);`
    Emit {
        /// The stream.
        stream: String,
        /// Names and values of the fields.
        fields: Vec<(String, Expr)>,
    },
}

/// What a `let` binds.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// A local.
    Local(LocalId),
    /// Nothing.
    Wildcard,
    /// Fields of a tuple or struct by position; those left out are not bound.
    Fields(Vec<(usize, Pattern)>),
}

/// What an assignment changes: a local, or a part of one. Indices are evaluated once, in order, before the value.
#[derive(Clone, Debug)]
pub struct Place {
    /// The local.
    pub local: LocalId,
    /// From the outside in. After an index there are only indices.
    pub path: Vec<Projection>,
    /// The type of the part.
    pub ty: Ty,
}

/// A step from a value to a part of it.
#[derive(Clone, Debug)]
pub enum Projection {
    /// The field at a position.
    Field(usize),
    /// `[i, j]`: leading axes.
    Index(Vec<Expr>),
    /// `[start..]` of the leading axis; the length is that of the place's type.
    Slice(Box<Expr>),
}
