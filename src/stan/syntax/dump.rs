//! The tree as nested lists, without spans: two texts that mean the same tree give the same dump.

use crate::base::stack::with_room;
use crate::stan::syntax::ast::*;

/// The tree as nested lists, one line for each function, statement and declaration. A constraint stands before its
/// sizes: `(vector (lower 0) n)`.
pub fn dump(program: &Program) -> String {
    with_room(program.depth, || {
        let mut dumper = Dumper { out: String::new(), indent: 0 };
        dumper.program(program);
        dumper.out
    })
}

struct Dumper {
    out: String,
    indent: usize,
}

impl Dumper {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn line(&mut self) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n("  ", self.indent));
    }

    /// `(word …)`
    fn list(&mut self, word: &str, inside: impl FnOnce(&mut Self)) {
        self.push("(");
        self.push(word);
        inside(self);
        self.push(")");
    }

    fn spaced<T>(&mut self, parts: impl IntoIterator<Item = T>, mut each: impl FnMut(&mut Self, T)) {
        for part in parts {
            self.push(" ");
            each(self, part);
        }
    }

    fn exprs<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) {
        self.spaced(exprs, Self::expr);
    }

    fn program(&mut self, program: &Program) {
        if let Some(functions) = &program.functions {
            self.push("(functions");
            self.indent += 1;
            for function in &functions.items {
                self.line();
                self.function(function);
            }
            self.indent -= 1;
            self.push(")\n");
        }
        let blocks = [
            ("data", &program.data),
            ("transformed-data", &program.transformed_data),
            ("parameters", &program.parameters),
            ("transformed-parameters", &program.transformed_parameters),
            ("model", &program.model),
            ("generated-quantities", &program.generated_quantities),
        ];
        for (name, block) in blocks {
            if let Some(block) = block {
                self.list(name, |d| d.stmts(&block.stmts));
                self.push("\n");
            }
        }
    }

    fn function(&mut self, function: &Function) {
        let Function { result, name, params, body, .. } = function;
        self.list("fn", |d| {
            d.push(" ");
            match result {
                Some(ty) => d.unsized_type(ty),
                None => d.push("void"),
            }
            d.push(" ");
            d.list(&name.text, |d| {
                d.spaced(params, |d, param| {
                    d.list(if param.data_only { "data " } else { "" }, |d| d.unsized_type(&param.ty));
                    d.push(" ");
                    d.push(&param.name.text);
                });
            });
            match body {
                Some(body) => d.stmts(body),
                None => d.push(" declared"),
            }
        });
    }

    fn unsized_type(&mut self, ty: &UnsizedType) {
        let word = match ty {
            UnsizedType::Int => "int",
            UnsizedType::Real => "real",
            UnsizedType::Complex => "complex",
            UnsizedType::Vector => "vector",
            UnsizedType::RowVector => "row_vector",
            UnsizedType::Matrix => "matrix",
            UnsizedType::ComplexVector => "complex_vector",
            UnsizedType::ComplexRowVector => "complex_row_vector",
            UnsizedType::ComplexMatrix => "complex_matrix",
            UnsizedType::Array(element) => return self.list("array ", |d| d.unsized_type(element)),
            UnsizedType::Tuple(parts) => return self.list("tuple", |d| d.spaced(parts, Self::unsized_type)),
        };
        self.push(word);
    }

    fn sized_type(&mut self, ty: &SizedType) {
        let (word, sizes): (&str, Vec<&Expr>) = match &ty.kind {
            SizedKind::Int => ("int", vec![]),
            SizedKind::Real => ("real", vec![]),
            SizedKind::Complex => ("complex", vec![]),
            SizedKind::Vector(n) => ("vector", vec![n]),
            SizedKind::RowVector(n) => ("row_vector", vec![n]),
            SizedKind::Matrix(m, n) => ("matrix", vec![m, n]),
            SizedKind::ComplexVector(n) => ("complex_vector", vec![n]),
            SizedKind::ComplexRowVector(n) => ("complex_row_vector", vec![n]),
            SizedKind::ComplexMatrix(m, n) => ("complex_matrix", vec![m, n]),
            SizedKind::Array { dims, element } => {
                return self.list("array", |d| {
                    d.exprs(dims);
                    d.push(" ");
                    d.sized_type(element);
                });
            }
            SizedKind::Tuple(parts) => return self.list("tuple", |d| d.spaced(parts, Self::sized_type)),
        };
        if sizes.is_empty() && matches!(ty.constraint, Constraint::None) {
            self.push(word);
            return;
        }
        self.list(word, |d| {
            d.constraint(&ty.constraint);
            d.exprs(sizes);
        });
    }

    fn constraint(&mut self, constraint: &Constraint) {
        let bounds: Vec<&Expr> = match constraint {
            Constraint::None => return,
            Constraint::Lower(a) | Constraint::Upper(a) | Constraint::Offset(a) | Constraint::Multiplier(a) => vec![a],
            Constraint::LowerUpper(a, b) | Constraint::OffsetMultiplier(a, b) => vec![a, b],
            _ => vec![],
        };
        self.push(" ");
        self.list(constraint.word(), |d| d.exprs(bounds));
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        self.indent += 1;
        for stmt in stmts {
            self.line();
            self.stmt(stmt);
        }
        self.indent -= 1;
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Declare { ty, variables } => self.list("declare ", |d| {
                d.sized_type(ty);
                d.spaced(variables, Self::variable);
            }),
            StmtKind::Assign { place, op, value } => {
                let word = format!("{}=", op.map_or("", BinaryOp::symbol));
                self.list(&word, |d| d.exprs([place, value]));
            }
            StmtKind::Call { name, args } => self.list("call ", |d| {
                d.push(&name.text);
                d.exprs(args);
            }),
            StmtKind::Target(value) => self.list("target+=", |d| d.exprs([value])),
            StmtKind::Jacobian(value) => self.list("jacobian+=", |d| d.exprs([value])),
            StmtKind::Tilde { value, distribution, args, truncation } => self.list("~", |d| {
                d.exprs([value]);
                d.push(" ");
                d.push(&distribution.text);
                d.exprs(args);
                if let Some(Truncation { lower, upper, .. }) = truncation {
                    d.push(" ");
                    d.list("T", |d| {
                        d.spaced([lower, upper], |d, bound| match bound {
                            Some(bound) => d.expr(bound),
                            None => d.push("_"),
                        });
                    });
                }
            }),
            StmtKind::Break => self.push("break"),
            StmtKind::Continue => self.push("continue"),
            StmtKind::Return(value) => self.list("return", |d| d.exprs(value)),
            StmtKind::Print(parts) => self.list("print", |d| d.spaced(parts, Self::printable)),
            StmtKind::Reject(parts) => self.list("reject", |d| d.spaced(parts, Self::printable)),
            StmtKind::FatalError(parts) => self.list("fatal_error", |d| d.spaced(parts, Self::printable)),
            StmtKind::Skip => self.push("skip"),
            StmtKind::If { condition, then, otherwise } => self.list("if", |d| {
                d.exprs([condition]);
                d.stmts(std::slice::from_ref(then));
                if let Some(otherwise) = otherwise {
                    d.stmts(std::slice::from_ref(otherwise));
                }
            }),
            StmtKind::While { condition, body } => self.list("while", |d| {
                d.exprs([condition]);
                d.stmts(std::slice::from_ref(body));
            }),
            StmtKind::For { var, from, to, body } => self.list("for ", |d| {
                d.push(&var.text);
                d.exprs([from, to]);
                d.stmts(std::slice::from_ref(body));
            }),
            StmtKind::ForEach { var, over, body } => self.list("for-each ", |d| {
                d.push(&var.text);
                d.exprs([over]);
                d.stmts(std::slice::from_ref(body));
            }),
            StmtKind::Profile { name, body } => self.list("profile ", |d| {
                d.push(&format!("{name:?}"));
                d.stmts(body);
            }),
            StmtKind::Block(body) => self.list("block", |d| d.stmts(body)),
            StmtKind::Error => self.push("error"),
        }
    }

    fn variable(&mut self, variable: &Variable) {
        let Variable { name, old_dims, value } = variable;
        if old_dims.is_empty() && value.is_none() {
            self.push(&name.text);
            return;
        }
        self.list(&name.text, |d| {
            if !old_dims.is_empty() {
                d.push(" ");
                d.list("old", |d| d.exprs(old_dims));
            }
            if let Some(value) = value {
                d.push(" = ");
                d.expr(value);
            }
        });
    }

    fn printable(&mut self, part: &Printable) {
        match part {
            Printable::Text(text, _) => self.push(&format!("{text:?}")),
            Printable::Value(value) => self.expr(value),
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Int(digits) | ExprKind::Real(digits) => self.push(digits),
            ExprKind::Imaginary(digits) => {
                self.push(digits);
                self.push("i");
            }
            ExprKind::Variable(name) => self.push(&name.text),
            ExprKind::Unary(op, a) => {
                let symbol = match op {
                    UnaryOp::Minus => "-",
                    UnaryOp::Plus => "+",
                    UnaryOp::Not => "!",
                };
                self.list(symbol, |d| d.exprs([&**a]));
            }
            ExprKind::Transpose(a) => self.list("'", |d| d.exprs([&**a])),
            ExprKind::Binary(op, a, b) => self.list(op.symbol(), |d| d.exprs([&**a, b])),
            ExprKind::Conditional(c, a, b) => self.list("?", |d| d.exprs([&**c, a, b])),
            ExprKind::Call { name, args, bar } => self.list(&name.text, |d| {
                for (i, arg) in args.iter().enumerate() {
                    d.push(if *bar && i == 1 { " | " } else { " " });
                    d.expr(arg);
                }
                if *bar && args.len() == 1 {
                    d.push(" |");
                }
            }),
            ExprKind::Target => self.push("target"),
            ExprKind::Array(parts) => self.list("{}", |d| d.exprs(parts)),
            ExprKind::RowVector(parts) => self.list("[]", |d| d.exprs(parts)),
            ExprKind::Paren(a) => self.list("paren", |d| d.exprs([&**a])),
            ExprKind::Index { base, indices } => self.list("index", |d| {
                d.exprs([&**base]);
                d.spaced(indices, Self::index);
            }),
            ExprKind::TupleField { base, index, .. } => self.list(&format!(".{index}"), |d| d.exprs([&**base])),
            ExprKind::Tuple(parts) => self.list("tuple", |d| d.exprs(parts)),
            ExprKind::Error => self.push("error"),
        }
    }

    fn index(&mut self, index: &Index) {
        match index {
            Index::All(_) => self.push(":"),
            Index::Single(at) => self.expr(at),
            Index::From(from) => self.list("from", |d| d.exprs([from])),
            Index::To(to) => self.list("to", |d| d.exprs([to])),
            Index::Between(from, to) => self.list(":", |d| d.exprs([from, to])),
        }
    }
}
