//! A generated program: trees of text whose holes have types, so that the minimiser can cut them without knowing the
//! language.

use std::fmt;

/// An extent: a number, or the dimension parameter `n` of the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dim {
    Known(usize),
    Named,
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Known(n) => write!(f, "{n}"),
            Dim::Named => f.write_str("n"),
        }
    }
}

/// A type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ty {
    Unit,
    Bool,
    Int,
    Real,
    /// Element type (bool, int or real) and extents.
    Array(Box<Ty>, Vec<Dim>),
    /// A struct of the program, by position.
    Struct(usize),
    /// The struct with a dimension parameter.
    Sized(Dim),
    Tuple(Vec<Ty>),
    /// `fn(T) -> T`
    Closure(Box<Ty>),
}

impl Ty {
    pub(crate) fn array(element: Ty, dims: impl IntoIterator<Item = Dim>) -> Ty {
        Ty::Array(Box::new(element), dims.into_iter().collect())
    }
    /// `real[dim]`
    pub(crate) fn vector(dim: Dim) -> Ty {
        Ty::array(Ty::Real, [dim])
    }
    /// The type for a caller to whom the dimension of the callee is `dim`.
    pub(crate) fn with_named(&self, dim: Dim) -> Ty {
        let replace = |d: &Dim| if *d == Dim::Named { dim } else { *d };
        match self {
            Ty::Array(e, dims) => Ty::Array(e.clone(), dims.iter().map(replace).collect()),
            Ty::Sized(d) => Ty::Sized(replace(d)),
            Ty::Tuple(parts) => Ty::Tuple(parts.iter().map(|p| p.with_named(dim)).collect()),
            other => other.clone(),
        }
    }
    pub(crate) fn is_named(&self) -> bool {
        match self {
            Ty::Array(_, dims) => dims.contains(&Dim::Named),
            Ty::Sized(d) => *d == Dim::Named,
            Ty::Tuple(parts) => parts.iter().any(Ty::is_named),
            _ => false,
        }
    }
    /// The simplest value of the type, as text.
    pub(crate) fn simplest(&self, structs: &[Struct]) -> String {
        let list = |one: String, n: usize| format!("[{}]", vec![one; n].join(", "));
        match self {
            Ty::Unit => "()".into(),
            Ty::Bool => "true".into(),
            Ty::Int => "1".into(),
            Ty::Real => "1.0".into(),
            Ty::Array(e, dims) => dims.iter().rev().fold(e.simplest(structs), |one, dim| match dim {
                Dim::Known(n) => list(one, *n),
                Dim::Named => format!("[{one} for k in 0..n]"),
            }),
            Ty::Struct(i) => {
                let fields = structs[*i].fields.iter().map(|(name, ty)| format!("{name}: {}", ty.simplest(structs)));
                format!("S{i} {{ {} }}", fields.collect::<Vec<_>>().join(", "))
            }
            Ty::Sized(d) => format!("P {{ q: {}, w: 1.0, k: 1 }}", Ty::vector(*d).simplest(structs)),
            Ty::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(|p| p.simplest(structs)).collect();
                format!("({})", parts.join(", "))
            }
            Ty::Closure(_) => "|x| x".into(),
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: Vec<String>| items.join(", ");
        match self {
            Ty::Unit => f.write_str("()"),
            Ty::Bool => f.write_str("bool"),
            Ty::Int => f.write_str("int"),
            Ty::Real => f.write_str("real"),
            Ty::Array(e, dims) => write!(f, "{e}[{}]", list(dims.iter().map(Dim::to_string).collect())),
            Ty::Struct(i) => write!(f, "S{i}"),
            Ty::Sized(d) => write!(f, "P[{d}]"),
            Ty::Tuple(parts) => write!(f, "({})", list(parts.iter().map(Ty::to_string).collect())),
            Ty::Closure(t) => write!(f, "fn({t}) -> {t}"),
        }
    }
}

/// `struct S0 { … }`
#[derive(Clone, Debug)]
pub(crate) struct Struct {
    pub(crate) fields: Vec<(String, Ty)>,
}

/// A piece of an expression or a statement.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Text(String),
    Expr(Expr),
    Block(Block),
}

/// An expression.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) ty: Ty,
    pub(crate) pieces: Vec<Piece>,
}

/// Text in whose `$` the expressions go, one after the other.
fn fill(template: &str, holes: Vec<Expr>) -> Vec<Piece> {
    let mut holes = holes.into_iter();
    let mut pieces = Vec::new();
    for (i, text) in template.split('$').enumerate() {
        if i > 0 {
            pieces.push(Piece::Expr(holes.next().expect("a `$` for each expression")));
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text.to_owned()));
        }
    }
    assert!(holes.next().is_none(), "an expression for each `$` of {template}");
    pieces
}

impl Expr {
    /// `template` with the expressions in the place of its `$`.
    pub(crate) fn new(ty: Ty, template: &str, holes: Vec<Expr>) -> Expr {
        Expr { ty, pieces: fill(template, holes) }
    }
    pub(crate) fn leaf(ty: Ty, text: impl Into<String>) -> Expr {
        Expr { ty, pieces: vec![Piece::Text(text.into())] }
    }
}

/// A statement.
#[derive(Clone, Debug)]
pub(crate) struct Stmt {
    pub(crate) pieces: Vec<Piece>,
}

impl Stmt {
    pub(crate) fn new(template: &str, holes: Vec<Expr>) -> Stmt {
        Stmt { pieces: fill(template, holes) }
    }
    pub(crate) fn block(mut self, block: Block) -> Stmt {
        self.pieces.push(Piece::Block(block));
        self
    }
    pub(crate) fn text(mut self, text: &str) -> Stmt {
        self.pieces.push(Piece::Text(text.to_owned()));
        self
    }
}

/// Statements and a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    pub(crate) stmts: Vec<Stmt>,
    pub(crate) tail: Option<Expr>,
}

/// A parameter.
#[derive(Clone, Debug)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) ty: Ty,
    pub(crate) shared: bool,
    pub(crate) mutable: bool,
}

/// A function.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) named_dim: bool,
    pub(crate) params: Vec<Param>,
    pub(crate) ret: Ty,
    pub(crate) body: Block,
}

/// A program; the last function is the entry.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) structs: Vec<Struct>,
    pub(crate) functions: Vec<Function>,
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        write_pieces(&mut text, &self.pieces, 1);
        f.write_str(&text)
    }
}

fn write_pieces(out: &mut String, pieces: &[Piece], indent: usize) {
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Expr(expr) => write_pieces(out, &expr.pieces, indent),
            Piece::Block(block) => write_block(out, block, indent),
        }
    }
}

fn write_block(out: &mut String, block: &Block, indent: usize) {
    let inner = "    ".repeat(indent + 1);
    out.push_str("{\n");
    for stmt in &block.stmts {
        out.push_str(&inner);
        write_pieces(out, &stmt.pieces, indent + 1);
        out.push('\n');
    }
    if let Some(tail) = &block.tail {
        out.push_str(&inner);
        write_pieces(out, &tail.pieces, indent + 1);
        out.push('\n');
    }
    out.push_str(&"    ".repeat(indent));
    out.push('}');
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let params = self.params.iter().map(|p| {
            let shared = if p.shared { "shared " } else { "" };
            let mutable = if p.mutable { "mut " } else { "" };
            format!("{shared}{mutable}{}: {}", p.name, p.ty)
        });
        let params: Vec<String> = params.collect();
        let public = if self.name == "entry" { "pub " } else { "" };
        let dims = if self.named_dim { "[n]" } else { "" };
        let ret = if self.ret == Ty::Unit { String::new() } else { format!(" -> {}", self.ret) };
        let mut body = String::new();
        write_block(&mut body, &self.body, 0);
        writeln!(f, "{public}fn {}{dims}({}){ret} {body}\n", self.name, params.join(", "))
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.functions.iter().map(Function::to_string).collect();
        for (i, s) in self.structs.iter().enumerate() {
            let fields: Vec<String> = s.fields.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
            let used = self.structs[i + 1..].iter().flat_map(|s| &s.fields).any(|(_, ty)| *ty == Ty::Struct(i));
            if used || text.contains(&format!("S{i}")) {
                writeln!(f, "struct S{i} {{ {} }}\n", fields.join(", "))?;
            }
        }
        if text.contains("P[") || text.contains("P {") {
            writeln!(f, "struct P[d] {{ q: real[d], w: real, k: int }}\n")?;
        }
        f.write_str(&text)
    }
}
