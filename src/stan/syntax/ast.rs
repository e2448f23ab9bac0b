//! The syntax tree of a Stan program: what the parser makes, the checker reads and the translator runs. Names are not
//! resolved and expressions have no types.
//!
//! Old syntax (`real x[N]`, `x <- 1`, `increment_log_prob(e)`, `# comment`) makes the same tree as what replaced it.

use std::sync::Arc;

use crate::base::Span;

/// A name in the source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name {
    /// The text.
    pub text: Arc<str>,
    /// Where it stands.
    pub span: Span,
}

/// A program: its blocks in their order. A block that is not written is `None`; an empty one has no statements.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// `functions { … }`
    pub functions: Option<Functions>,
    /// `data { … }`: declarations only.
    pub data: Option<Block>,
    /// `transformed data { … }`
    pub transformed_data: Option<Block>,
    /// `parameters { … }`: declarations only.
    pub parameters: Option<Block>,
    /// `transformed parameters { … }`
    pub transformed_parameters: Option<Block>,
    /// `model { … }`
    pub model: Option<Block>,
    /// `generated quantities { … }`
    pub generated_quantities: Option<Block>,
    /// Levels of the tree, an upper bound: who walks it by recursion needs [room](crate::base::stack::with_room) for
    /// them.
    pub depth: usize,
}

impl Drop for Program {
    fn drop(&mut self) {
        let parts = (
            self.functions.take(),
            [self.data.take(), self.transformed_data.take(), self.parameters.take()],
            [self.transformed_parameters.take(), self.model.take(), self.generated_quantities.take()],
        );
        crate::base::stack::with_room(self.depth, move || drop(parts));
    }
}

/// `functions { … }`
#[derive(Clone, Debug)]
pub struct Functions {
    /// In source order.
    pub items: Vec<Function>,
    /// The whole block, its name included.
    pub span: Span,
}

/// A block of a program.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its statements and declarations.
    pub stmts: Vec<Stmt>,
    /// The whole block, its name included.
    pub span: Span,
}

/// `real f(real x, data vector y) { … }`
#[derive(Clone, Debug)]
pub struct Function {
    /// The type of the result; `None` is `void`.
    pub result: Option<UnsizedType>,
    /// Its name.
    pub name: Name,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// The body, a block; `None` for a declaration ahead of the definition, which ends by `;`.
    pub body: Option<Vec<Stmt>>,
    /// The whole function.
    pub span: Span,
}

/// A parameter of a function.
#[derive(Clone, Debug)]
pub struct Param {
    /// Whether `data` stands before it.
    pub data_only: bool,
    /// Its type.
    pub ty: UnsizedType,
    /// Its name.
    pub name: Name,
    /// All of it.
    pub span: Span,
}

/// A type without sizes: of parameters of functions, and what an expression has.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum UnsizedType {
    /// `int`
    Int,
    /// `real`
    Real,
    /// `complex`
    Complex,
    /// `vector`
    Vector,
    /// `row_vector`
    RowVector,
    /// `matrix`
    Matrix,
    /// `complex_vector`
    ComplexVector,
    /// `complex_row_vector`
    ComplexRowVector,
    /// `complex_matrix`
    ComplexMatrix,
    /// `array[] T`: one axis; `array[,] T` is an array of arrays.
    Array(Box<UnsizedType>),
    /// `tuple(A, B)`
    Tuple(Vec<UnsizedType>),
}

/// A type with sizes and constraints: what a declaration has.
#[derive(Clone, Debug)]
pub struct SizedType {
    /// What it is.
    pub kind: SizedKind,
    /// The constraint of its elements; of an array and a tuple it stands at the parts.
    pub constraint: Constraint,
    /// Where it stands, the constraint included.
    pub span: Span,
}

/// The kinds of sized types. `simplex[K]` is a vector, `cov_matrix[K]` a matrix of equal sizes, with their constraints.
#[derive(Clone, Debug)]
pub enum SizedKind {
    /// `int`
    Int,
    /// `real`
    Real,
    /// `complex`
    Complex,
    /// `vector[n]`
    Vector(Box<Expr>),
    /// `row_vector[n]`
    RowVector(Box<Expr>),
    /// `matrix[m, n]`; the sizes of `cov_matrix[K]` are the same expression twice.
    Matrix(Box<Expr>, Box<Expr>),
    /// `complex_vector[n]`
    ComplexVector(Box<Expr>),
    /// `complex_row_vector[n]`
    ComplexRowVector(Box<Expr>),
    /// `complex_matrix[m, n]`
    ComplexMatrix(Box<Expr>, Box<Expr>),
    /// `array[m, n] T`: `T` is no array, unless old and new syntax are mixed.
    Array {
        /// The extents, outermost first; at least one.
        dims: Vec<Expr>,
        /// The elements.
        element: Box<SizedType>,
    },
    /// `tuple(A, B)`
    Tuple(Vec<SizedType>),
}

/// What the values of a declaration must be, and of parameters how they come from unconstrained numbers.
#[derive(Clone, Debug)]
pub enum Constraint {
    /// None.
    None,
    /// `<lower = a>`
    Lower(Box<Expr>),
    /// `<upper = b>`
    Upper(Box<Expr>),
    /// `<lower = a, upper = b>`
    LowerUpper(Box<Expr>, Box<Expr>),
    /// `<offset = m>`
    Offset(Box<Expr>),
    /// `<multiplier = s>`
    Multiplier(Box<Expr>),
    /// `<offset = m, multiplier = s>`
    OffsetMultiplier(Box<Expr>, Box<Expr>),
    /// `ordered`
    Ordered,
    /// `positive_ordered`
    PositiveOrdered,
    /// `simplex`
    Simplex,
    /// `unit_vector`
    UnitVector,
    /// `sum_to_zero_vector`, `sum_to_zero_matrix`
    SumToZero,
    /// `cholesky_factor_corr`
    CholeskyFactorCorr,
    /// `cholesky_factor_cov`
    CholeskyFactorCov,
    /// `corr_matrix`
    CorrMatrix,
    /// `cov_matrix`
    CovMatrix,
    /// `row_stochastic_matrix`
    RowStochastic,
    /// `column_stochastic_matrix`
    ColumnStochastic,
}

impl Constraint {
    /// What it is called.
    pub fn word(&self) -> &'static str {
        match self {
            Constraint::None => "none",
            Constraint::Lower(_) => "lower",
            Constraint::Upper(_) => "upper",
            Constraint::LowerUpper(..) => "lower-upper",
            Constraint::Offset(_) => "offset",
            Constraint::Multiplier(_) => "multiplier",
            Constraint::OffsetMultiplier(..) => "offset-multiplier",
            Constraint::Ordered => "ordered",
            Constraint::PositiveOrdered => "positive_ordered",
            Constraint::Simplex => "simplex",
            Constraint::UnitVector => "unit_vector",
            Constraint::SumToZero => "sum_to_zero",
            Constraint::CholeskyFactorCorr => "cholesky_factor_corr",
            Constraint::CholeskyFactorCov => "cholesky_factor_cov",
            Constraint::CorrMatrix => "corr_matrix",
            Constraint::CovMatrix => "cov_matrix",
            Constraint::RowStochastic => "row_stochastic",
            Constraint::ColumnStochastic => "column_stochastic",
        }
    }
}

/// A statement or a declaration.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Where it stands, with its semicolon.
    pub span: Span,
}

/// The kinds of statements.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `real<lower = 0> x, y = 1;`
    Declare {
        /// The type of all of them.
        ty: SizedType,
        /// The variables.
        variables: Vec<Variable>,
    },
    /// `x[i] = e;`, `x += e;`, `(a, b) = e;`
    Assign {
        /// A variable, an element, a part of a tuple, or a tuple of those: an expression of these kinds.
        place: Expr,
        /// `None` for `=`, else the operator of `+=` and its kin.
        op: Option<BinaryOp>,
        /// The value.
        value: Expr,
    },
    /// `f(x);`: of a function without a result.
    Call {
        /// The function.
        name: Name,
        /// Arguments.
        args: Vec<Expr>,
    },
    /// `target += e;`
    Target(Expr),
    /// `jacobian += e;`
    Jacobian(Expr),
    /// `y ~ normal(mu, sigma) T[a, b];`
    Tilde {
        /// The left side.
        value: Expr,
        /// The distribution, without a suffix.
        distribution: Name,
        /// Its arguments.
        args: Vec<Expr>,
        /// `T[a, b]`
        truncation: Option<Truncation>,
    },
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `return;` or `return e;`
    Return(Option<Expr>),
    /// `print(…);`
    Print(Vec<Printable>),
    /// `reject(…);`
    Reject(Vec<Printable>),
    /// `fatal_error(…);`
    FatalError(Vec<Printable>),
    /// `;`
    Skip,
    /// `if (c) s else t`
    If {
        /// The condition.
        condition: Expr,
        /// The then arm.
        then: Box<Stmt>,
        /// The else arm.
        otherwise: Option<Box<Stmt>>,
    },
    /// `while (c) s`
    While {
        /// The condition.
        condition: Expr,
        /// The body.
        body: Box<Stmt>,
    },
    /// `for (i in a:b) s`
    For {
        /// The variable.
        var: Name,
        /// From.
        from: Expr,
        /// To, inclusive.
        to: Expr,
        /// The body.
        body: Box<Stmt>,
    },
    /// `for (x in xs) s`
    ForEach {
        /// The variable.
        var: Name,
        /// What is walked: an array, a vector or a matrix.
        over: Expr,
        /// The body.
        body: Box<Stmt>,
    },
    /// `profile("name") { … }`
    Profile {
        /// The name, without quotes.
        name: Arc<str>,
        /// The body.
        body: Vec<Stmt>,
    },
    /// `{ … }`
    Block(Vec<Stmt>),
    /// A statement that did not parse: a diagnostic was given.
    Error,
}

/// A variable of a declaration.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name.
    pub name: Name,
    /// Extents that old syntax writes after the name, `real x[N]`: they go before those of the type.
    pub old_dims: Vec<Expr>,
    /// The value, when written.
    pub value: Option<Expr>,
}

/// `T[a, b]`, either of which may be left out.
#[derive(Clone, Debug)]
pub struct Truncation {
    /// From.
    pub lower: Option<Expr>,
    /// To.
    pub upper: Option<Expr>,
    /// Where it stands.
    pub span: Span,
}

/// What `print` and its kin take.
#[derive(Clone, Debug)]
pub enum Printable {
    /// A text, without quotes.
    Text(Arc<str>, Span),
    /// A value.
    Value(Expr),
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// `12`, `1_000`: as written.
    Int(Arc<str>),
    /// `1.5`, `.5`, `1e-3`: as written.
    Real(Arc<str>),
    /// `2i`: as written, without the `i`.
    Imaginary(Arc<str>),
    /// `x`
    Variable(Name),
    /// `-x`, `!x`, `+x`
    Unary(UnaryOp, Box<Expr>),
    /// `x'`
    Transpose(Box<Expr>),
    /// `a + b`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `c ? a : b`
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `f(x, y)`, `normal_lpdf(y | mu, sigma)`
    Call {
        /// The function.
        name: Name,
        /// Arguments.
        args: Vec<Expr>,
        /// Whether `|` stands after the first.
        bar: bool,
    },
    /// `target()`
    Target,
    /// `{a, b}`
    Array(Vec<Expr>),
    /// `[a, b]`: a row vector, or a matrix of row vectors.
    RowVector(Vec<Expr>),
    /// `(a)`
    Paren(Box<Expr>),
    /// `x[i, a:b]`
    Index {
        /// The array, vector or matrix.
        base: Box<Expr>,
        /// The indices; `x[]` has one, [`Index::All`].
        indices: Vec<Index>,
    },
    /// `t.1`
    TupleField {
        /// The tuple.
        base: Box<Expr>,
        /// The position, counted from 1.
        index: u32,
        /// Where the number stands.
        index_span: Span,
    },
    /// `(a, b)`
    Tuple(Vec<Expr>),
    /// An expression that did not parse: a diagnostic was given.
    Error,
}

/// An index.
#[derive(Clone, Debug)]
pub enum Index {
    /// `:` or nothing.
    All(Span),
    /// `i`, an int or an array of ints.
    Single(Expr),
    /// `a:`
    From(Expr),
    /// `:b`
    To(Expr),
    /// `a:b`
    Between(Expr, Expr),
}

/// A prefix operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnaryOp {
    /// `-`
    Minus,
    /// `+`
    Plus,
    /// `!`
    Not,
}

/// An infix operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%/%`
    IntDivide,
    /// `%`
    Modulo,
    /// `\`
    LeftDivide,
    /// `.*`
    EltMultiply,
    /// `./`
    EltDivide,
    /// `^`
    Power,
    /// `.^`
    EltPower,
    /// `||`
    Or,
    /// `&&`
    And,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

impl BinaryOp {
    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Subtract => "-",
            BinaryOp::Multiply => "*",
            BinaryOp::Divide => "/",
            BinaryOp::IntDivide => "%/%",
            BinaryOp::Modulo => "%",
            BinaryOp::LeftDivide => "\\",
            BinaryOp::EltMultiply => ".*",
            BinaryOp::EltDivide => "./",
            BinaryOp::Power => "^",
            BinaryOp::EltPower => ".^",
            BinaryOp::Or => "||",
            BinaryOp::And => "&&",
            BinaryOp::Equal => "==",
            BinaryOp::NotEqual => "!=",
            BinaryOp::Less => "<",
            BinaryOp::LessEqual => "<=",
            BinaryOp::Greater => ">",
            BinaryOp::GreaterEqual => ">=",
        }
    }
}
