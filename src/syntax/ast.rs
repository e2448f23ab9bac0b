//! The abstract syntax tree: what the parser makes and the checker reads. Names are not resolved and nothing has a type.

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

/// A name with at most one module before it: `dot` or `nuts::sample`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    /// The alias of `use "…" as alias;`.
    pub module: Option<Name>,
    /// The name.
    pub name: Name,
}

/// A file.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Its items in source order.
    pub items: Vec<Item>,
    /// Levels of the tree, an upper bound: who walks it by recursion needs [room](crate::base::stack::with_room) for them.
    pub depth: usize,
}

impl Drop for Module {
    fn drop(&mut self) {
        let items = std::mem::take(&mut self.items);
        crate::base::stack::with_room(self.depth, move || drop(items));
    }
}

/// `@elementwise`, `@sum`: a hint or a rule attached to an item.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Its name without the `@`.
    pub name: Name,
}

/// A top-level item.
#[derive(Clone, Debug)]
pub struct Item {
    /// `///` lines before it, without the slashes, joined by newlines.
    pub doc: String,
    /// Attributes before it.
    pub attributes: Vec<Attribute>,
    /// Whether `pub` stands before it.
    pub public: bool,
    /// What it is.
    pub kind: ItemKind,
    /// The whole item without its doc lines.
    pub span: Span,
}

/// The kinds of items.
#[derive(Clone, Debug)]
pub enum ItemKind {
    /// `use "path";` or `use "path" as alias;`
    Use {
        /// The path between the quotes.
        path: Name,
        /// The alias.
        alias: Option<Name>,
    },
    /// `const name: type = value;`
    Const {
        /// Its name.
        name: Name,
        /// Its type, when written.
        ty: Option<TypeExpr>,
        /// Its value.
        value: Expr,
    },
    /// `struct Name[d] { field: type, … }`
    Struct {
        /// Its name.
        name: Name,
        /// Dimension parameters.
        dims: Vec<Name>,
        /// Fields in order.
        fields: Vec<Field>,
    },
    /// `fn name[d](param: type, …) -> type { … }`
    Fn(FnDecl),
    /// `derivative of name { forward(x, dx) { … } reverse(x, dy) { … } }`
    Derivative(DerivativeDecl),
    /// `model name[d](param: type<constraints>, …) { … } generated { … }`
    Model(ModelDecl),
}

/// A statistical model: its parameters, what is computed of them, its data and its log density.
#[derive(Clone, Debug)]
pub struct ModelDecl {
    /// Its name.
    pub name: Name,
    /// Dimension parameters.
    pub dims: Vec<Name>,
    /// What stands between its parentheses, in order.
    pub entries: Vec<ModelEntry>,
    /// The log density over the constrained values.
    pub body: Block,
    /// What is computed of a draw.
    pub generated: Option<Block>,
}

/// A parameter of a model, what it computes of them, or its data.
#[derive(Clone, Debug)]
pub struct ModelEntry {
    /// Its name.
    pub name: Name,
    /// What it is.
    pub kind: EntryKind,
}

/// The kinds of entries of a model.
#[derive(Clone, Debug)]
pub enum EntryKind {
    /// `shared y: real[n]`
    Data {
        /// Its type.
        ty: TypeExpr,
        /// Constraints behind the type, which data have not: the checker's error.
        constraints: Option<Constraints>,
    },
    /// `tau: real<lower = 0>`
    Parameter {
        /// Its type.
        ty: TypeExpr,
        /// Its constraints.
        constraints: Option<Constraints>,
    },
    /// `theta = mu + tau * z` or `theta: real[n] = mu + tau * z`
    Computed {
        /// Its type, when written.
        ty: Option<TypeExpr>,
        /// Its value.
        value: Expr,
    },
}

/// `<lower = 0, upper = 1>`
#[derive(Clone, Debug)]
pub struct Constraints {
    /// Those between the brackets, in order.
    pub list: Vec<Constraint>,
    /// With the brackets.
    pub span: Span,
}

/// `lower = 0` or `simplex`
#[derive(Clone, Debug)]
pub struct Constraint {
    /// Its name; one that there is not is the checker's error.
    pub name: Name,
    /// What stands behind `=`.
    pub value: Option<Expr>,
}

/// The derivative of a function, written by hand.
#[derive(Clone, Debug)]
pub struct DerivativeDecl {
    /// The function.
    pub target: Name,
    /// Its rules.
    pub rules: Vec<Rule>,
}

/// `forward(x, dx) { … }` or `reverse(x, dy) { … }`: types follow from the function.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `forward` or `reverse`; any other name is the checker's error.
    pub kind: Name,
    /// Parameters in order.
    pub params: Vec<Name>,
    /// Body.
    pub body: Block,
}

/// A field of a struct declaration.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: TypeExpr,
}

/// A function.
#[derive(Clone, Debug)]
pub struct FnDecl {
    /// Its name.
    pub name: Name,
    /// Dimension parameters.
    pub dims: Vec<Name>,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Result; `None` is unit.
    pub ret: Option<TypeExpr>,
    /// Body.
    pub body: Block,
}

/// A parameter of a function.
#[derive(Clone, Debug)]
pub struct Param {
    /// Whether `shared` stands before it.
    pub shared: bool,
    /// Whether `shared` was taken from it: whoever runs the program has a value for each lane.
    pub of_lanes: bool,
    /// Whether `mut` stands before it.
    pub mutable: bool,
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: TypeExpr,
}

/// A type as written.
#[derive(Clone, Debug)]
pub struct TypeExpr {
    /// What it is.
    pub kind: TypeKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of types.
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// `real`, `int`, `bool`, `real[n, d]`, `Tree`, `Tree[d]`, `nuts::Tree[d]`: brackets hold extents.
    Named {
        /// The name.
        path: Path,
        /// Extents or dimension arguments.
        dims: Vec<Expr>,
    },
    /// `(A, B)`; `()` is unit.
    Tuple(Vec<TypeExpr>),
    /// `fn(A, B) -> C`; no result is unit.
    Fn {
        /// Parameter types.
        params: Vec<TypeExpr>,
        /// Result type.
        ret: Option<Box<TypeExpr>>,
    },
}

/// `{ statement; … tail }`
#[derive(Clone, Debug)]
pub struct Block {
    /// Statements before the tail.
    pub stmts: Vec<Stmt>,
    /// The value of the block, when its last expression has no semicolon.
    pub tail: Option<Box<Expr>>,
    /// With its braces.
    pub span: Span,
}

/// A statement.
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
    /// `let pattern: type = value;`
    Let {
        /// What is bound; `mut` is part of the pattern's names.
        pattern: Pattern,
        /// Type, when written.
        ty: Option<TypeExpr>,
        /// The value.
        value: Expr,
    },
    /// `place = value;` or `place += value;`
    Assign {
        /// A variable, field or element: an expression of those kinds.
        place: Expr,
        /// `None` for `=`, else the operator of `+=` and its kin.
        op: Option<BinaryOp>,
        /// The value.
        value: Expr,
    },
    /// An expression for its effect. Block-like expressions (`if`, blocks) need no semicolon.
    Expr(Expr),
    /// `while condition { … }`
    While {
        /// The condition.
        condition: Expr,
        /// The body.
        body: Block,
    },
    /// `for i in a..b { … }`
    For {
        /// The variable.
        var: Name,
        /// From.
        start: Expr,
        /// To, exclusive.
        end: Expr,
        /// The body.
        body: Block,
    },
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `return;` or `return value;`
    Return(Option<Expr>),
    /// `emit stream(a, name: b);`
    Emit {
        /// The stream.
        stream: Name,
        /// The fields: an unnamed argument that is a variable or a field takes its last name.
        args: Vec<EmitArg>,
    },
    /// A statement that did not parse. The checker passes over it in silence: a diagnostic was given.
    Error,
}

/// A field of an `emit`.
#[derive(Clone, Debug)]
pub struct EmitArg {
    /// The name before the colon.
    pub name: Option<Name>,
    /// The value.
    pub value: Expr,
}

/// What `let` binds.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// What it is.
    pub kind: PatternKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of patterns.
#[derive(Clone, Debug)]
pub enum PatternKind {
    /// `x` or `mut x`
    Name {
        /// Whether `mut` stands before it.
        mutable: bool,
        /// The name.
        name: Name,
    },
    /// `_`
    Wildcard,
    /// `(a, b)`
    Tuple(Vec<Pattern>),
    /// `Tree { left, right: r, .. }`
    Struct {
        /// The struct.
        path: Path,
        /// Fields: the name and the pattern (a name pattern for the short form).
        fields: Vec<(Name, Pattern)>,
        /// Whether `..` ends it.
        rest: bool,
    },
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
    /// `true`, `false`
    Bool(bool),
    /// `12`, `1_000`; `None` when it does not fit in 64 bits (a diagnostic was given).
    Int(Option<i64>),
    /// `1.5`, `1e-3`
    Real(f64),
    /// `x`, `nuts::max_depth`
    Path(Path),
    /// `-x`, `!x`
    Unary(UnaryOp, Box<Expr>),
    /// `a + b`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `f(x)`, `grad(f, wrt = w)(x, w)`
    Call {
        /// What is called.
        callee: Box<Expr>,
        /// Arguments.
        args: Vec<Expr>,
        /// Arguments with a name, `wrt = w`, which follow the others. Only derivatives take one.
        named: Vec<(Name, Expr)>,
    },
    /// `x[i, a..b]`
    Index {
        /// The array.
        base: Box<Expr>,
        /// One for each leading axis.
        indices: Vec<Index>,
    },
    /// `t.left`
    Field {
        /// The struct.
        base: Box<Expr>,
        /// The field.
        name: Name,
    },
    /// `t.0`
    TupleField {
        /// The tuple.
        base: Box<Expr>,
        /// The position.
        index: u32,
        /// Where the number stands.
        index_span: Span,
    },
    /// `(a, b)`; `()` is unit. `(a)` is just `a`, kept by the span.
    Tuple(Vec<Expr>),
    /// `[a, b]`
    Array(Vec<Expr>),
    /// `[e for i in 0..n, j in 0..m]`
    Comprehension {
        /// The element.
        body: Box<Expr>,
        /// The indices, outermost first.
        clauses: Vec<Clause>,
    },
    /// `sum(e for i in 0..n)`
    Reduction {
        /// `sum`, `prod`, `max`, `min`, `any`, `all`, `mean`, `log_sum_exp`; any other name is the checker's error.
        name: Name,
        /// The element.
        body: Box<Expr>,
        /// The indices, outermost first.
        clauses: Vec<Clause>,
    },
    /// `Tree { left: a, right, ..t }`
    Struct {
        /// The struct.
        path: Path,
        /// Fields; the short form repeats the name as a path.
        fields: Vec<(Name, Expr)>,
        /// `..base`
        base: Option<Box<Expr>>,
    },
    /// `if c { … } else { … }`; `else if` is an else block whose tail is an `if`.
    If {
        /// The condition.
        condition: Box<Expr>,
        /// The then block.
        then: Block,
        /// The else block.
        otherwise: Option<Block>,
    },
    /// `{ … }`
    Block(Block),
    /// `|x, y: int| body`
    Lambda {
        /// Parameters; types may be left out where the parameter type is known.
        params: Vec<(Name, Option<TypeExpr>)>,
        /// The body.
        body: Box<Expr>,
    },
    /// `print("x = {x}")`
    Print(Message),
    /// `assert(condition)` or `assert(condition, "message {x}")`
    Assert {
        /// The condition.
        condition: Box<Expr>,
        /// The message.
        message: Option<Message>,
    },
    /// An expression that did not parse. The checker gives it any type in silence: a diagnostic was given.
    Error,
}

/// One entry of an index list.
#[derive(Clone, Debug)]
pub enum Index {
    /// `i`
    At(Expr),
    /// `a..b`, either of which may be left out
    Range {
        /// From; 0 when left out.
        start: Option<Expr>,
        /// To, exclusive; the extent when left out.
        end: Option<Expr>,
        /// Where it stands.
        span: Span,
    },
}

/// `i in a..b` of a comprehension.
#[derive(Clone, Debug)]
pub struct Clause {
    /// The variable.
    pub var: Name,
    /// From.
    pub start: Expr,
    /// To, exclusive.
    pub end: Expr,
}

/// A string with holes: the text and expressions of `"x = {x}"`. `{{` and `}}` are braces.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its pieces in order.
    pub parts: Vec<MessagePart>,
    /// The string with its quotes.
    pub span: Span,
}

/// A piece of a message.
#[derive(Clone, Debug)]
pub enum MessagePart {
    /// Text, escapes resolved.
    Text(String),
    /// An expression between braces.
    Hole(Expr),
}

/// Prefix operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `!`
    Not,
}

/// Infix operators. From loosest to tightest: `||`, `&&`, comparisons (not associative), `+ -`, `* / % @`, prefix operators, `^` (right-associative).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Rem,
    /// `^`
    Pow,
    /// `@`
    MatMul,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `&&`
    And,
    /// `||`
    Or,
}

impl BinaryOp {
    /// How it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Rem => "%",
            Self::Pow => "^",
            Self::MatMul => "@",
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::And => "&&",
            Self::Or => "||",
        }
    }
}
