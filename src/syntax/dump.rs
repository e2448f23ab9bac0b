//! The text forms of tokens and of the syntax tree that `autobatch dump` shows. Neither has spans: two texts that mean the same tree
//! give the same dump.

use std::fmt::Write as _;

use crate::base::FileId;
use crate::syntax::ast::*;
use crate::syntax::lexer::lex;

/// One line for each token, comments included: line and column, kind, text. What is no token is left out.
pub fn tokens(file: FileId, text: &str) -> String {
    let mut out = String::new();
    let (mut at, mut line, mut column) = (0, 1, 1);
    for lexeme in lex(file, text, 0, text.len()).lexemes {
        for c in text[at..lexeme.start].chars() {
            (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        at = lexeme.start;
        let place = format!("{line}:{column}");
        let kind = format!("{:?}", lexeme.token);
        let source = &text[lexeme.start..lexeme.end];
        writeln!(out, "{place:<8} {kind:<14} {source}").expect("a String takes everything");
    }
    out
}

/// The tree as nested lists, one line for each item, statement and part of an `if`.
pub fn dump(module: &Module) -> String {
    crate::base::stack::with_room(module.depth, || {
        let mut dumper = Dumper { out: String::new(), indent: 0 };
        for item in &module.items {
            dumper.item(item);
        }
        dumper.out
    })
}

struct Dumper {
    out: String,
    indent: usize,
}

impl Dumper {
    fn line(&mut self) {
        self.out.push('\n');
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn each<T>(&mut self, list: &[T], mut f: impl FnMut(&mut Self, &T)) {
        for x in list {
            self.push(" ");
            f(self, x);
        }
    }

    fn item(&mut self, item: &Item) {
        for line in item.doc.lines() {
            self.push("; ");
            self.push(line);
            self.push("\n");
        }
        self.push("(");
        for attribute in &item.attributes {
            self.push("@");
            self.push(&attribute.name.text);
            self.push(" ");
        }
        if item.public {
            self.push("pub ");
        }
        self.item_kind(&item.kind);
        self.push(")\n");
    }

    fn item_kind(&mut self, kind: &ItemKind) {
        match kind {
            ItemKind::Use { path, alias } => {
                self.push(&format!("use {:?}", path.text));
                if let Some(alias) = alias {
                    self.push(&format!(" {}", alias.text));
                }
            }
            ItemKind::Const { name, ty, value } => {
                self.push(&format!("const {} ", name.text));
                self.optional_type(ty.as_ref());
                self.push(" ");
                self.expr(value);
            }
            ItemKind::Struct { name, dims, fields } => {
                self.push(&format!("struct {}", name.text));
                self.dim_params(dims);
                self.each(fields, |d, f| {
                    d.push(&format!("({} ", f.name.text));
                    d.ty(&f.ty);
                    d.push(")");
                });
            }
            ItemKind::Fn(decl) => self.fn_decl(decl),
            ItemKind::Derivative(decl) => {
                self.push(&format!("derivative {}", decl.target.text));
                self.each(&decl.rules, |d, rule| {
                    let params: Vec<&str> = rule.params.iter().map(|p| &*p.text).collect();
                    d.push(&format!("({} ({}) ", rule.kind.text, params.join(" ")));
                    d.block(&rule.body);
                    d.push(")");
                });
            }
            ItemKind::Model(decl) => self.model(decl),
        }
    }

    fn model(&mut self, decl: &ModelDecl) {
        self.push(&format!("model {}", decl.name.text));
        self.dim_params(&decl.dims);
        self.each(&decl.entries, |d, entry| {
            let (ty, constraints, value) = match &entry.kind {
                EntryKind::Data { ty, constraints } => {
                    d.push("shared ");
                    (Some(ty), constraints.as_ref(), None)
                }
                EntryKind::Parameter { ty, constraints } => (Some(ty), constraints.as_ref(), None),
                EntryKind::Computed { ty, value } => (ty.as_ref(), None, Some(value)),
            };
            d.push(&format!("({} ", entry.name.text));
            d.optional_type(ty);
            d.each(constraints.map_or(&[][..], |c| &c.list), |d, constraint| {
                d.push(&format!("<{}", constraint.name.text));
                d.each(constraint.value.as_slice(), Self::expr);
                d.push(">");
            });
            d.each(value.map_or(&[][..], std::slice::from_ref), Self::expr);
            d.push(")");
        });
        self.push(" ");
        self.block(&decl.body);
        if let Some(generated) = &decl.generated {
            self.push(" generated ");
            self.block(generated);
        }
    }

    fn dim_params(&mut self, dims: &[Name]) {
        if !dims.is_empty() {
            let names: Vec<&str> = dims.iter().map(|n| &*n.text).collect();
            self.push(&format!("[{}]", names.join(" ")));
        }
    }

    fn fn_decl(&mut self, decl: &FnDecl) {
        self.push(&format!("fn {}", decl.name.text));
        self.dim_params(&decl.dims);
        self.push(" (");
        for (i, param) in decl.params.iter().enumerate() {
            if i > 0 {
                self.push(" ");
            }
            let shared = if param.shared { "shared " } else { "" };
            let mutable = if param.mutable { "mut " } else { "" };
            self.push(&format!("({shared}{mutable}{} ", param.name.text));
            self.ty(&param.ty);
            self.push(")");
        }
        self.push(") ");
        self.optional_type(decl.ret.as_ref());
        self.push(" ");
        self.block(&decl.body);
    }

    fn optional_type(&mut self, ty: Option<&TypeExpr>) {
        match ty {
            Some(ty) => self.ty(ty),
            None => self.push("_"),
        }
    }

    fn path(&mut self, path: &Path) {
        if let Some(module) = &path.module {
            self.push(&module.text);
            self.push("::");
        }
        self.push(&path.name.text);
    }

    fn ty(&mut self, ty: &TypeExpr) {
        match &ty.kind {
            TypeKind::Named { path, dims } if dims.is_empty() => self.path(path),
            TypeKind::Named { path, dims } => {
                self.push("(");
                self.path(path);
                self.each(dims, Self::expr);
                self.push(")");
            }
            TypeKind::Tuple(parts) => {
                self.push("(tuple");
                self.each(parts, Self::ty);
                self.push(")");
            }
            TypeKind::Fn { params, ret } => {
                self.push("(fn (");
                self.each(params, Self::ty);
                self.push(") ");
                self.optional_type(ret.as_deref());
                self.push(")");
            }
        }
    }

    fn block(&mut self, block: &Block) {
        self.push("{");
        self.indent += 1;
        for stmt in &block.stmts {
            self.line();
            self.stmt(stmt);
        }
        if let Some(tail) = &block.tail {
            self.line();
            self.push("=> ");
            self.expr(tail);
        }
        self.indent -= 1;
        self.push("}");
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Let { pattern, ty, value } => {
                self.push("(let ");
                self.pattern(pattern);
                if let Some(ty) = ty {
                    self.push(" : ");
                    self.ty(ty);
                }
                self.push(" ");
                self.expr(value);
            }
            StmtKind::Assign { place, op, value } => {
                self.push(&format!("({}= ", op.map_or("", BinaryOp::symbol)));
                self.expr(place);
                self.push(" ");
                self.expr(value);
            }
            StmtKind::Expr(e) => return self.expr(e),
            StmtKind::While { condition, body } => {
                self.push("(while ");
                self.expr(condition);
                self.push(" ");
                self.block(body);
            }
            StmtKind::For { var, start, end, body } => {
                self.push(&format!("(for {} ", var.text));
                self.expr(start);
                self.push(" ");
                self.expr(end);
                self.push(" ");
                self.block(body);
            }
            StmtKind::Break => self.push("(break"),
            StmtKind::Continue => self.push("(continue"),
            StmtKind::Return(value) => {
                self.push("(return");
                self.each(value.as_slice(), Self::expr);
            }
            StmtKind::Emit { stream, args } => {
                self.push(&format!("(emit {}", stream.text));
                self.each(args, |d, a| {
                    if let Some(name) = &a.name {
                        d.push(&format!("{}: ", name.text));
                    }
                    d.expr(&a.value);
                });
            }
            StmtKind::Error => self.push("(error"),
        }
        self.push(")");
    }

    fn pattern(&mut self, pattern: &Pattern) {
        match &pattern.kind {
            PatternKind::Name { mutable, name } => {
                self.push(if *mutable { "mut " } else { "" });
                self.push(&name.text);
            }
            PatternKind::Wildcard => self.push("_"),
            PatternKind::Tuple(parts) => {
                self.push("(tuple");
                self.each(parts, Self::pattern);
                self.push(")");
            }
            PatternKind::Struct { path, fields, rest } => {
                self.push("(struct ");
                self.path(path);
                self.each(fields, |d, (name, p)| {
                    d.push(&format!("{}: ", name.text));
                    d.pattern(p);
                });
                self.push(if *rest { " ..)" } else { ")" });
            }
        }
    }

    fn expr(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Bool(b) => self.push(&b.to_string()),
            ExprKind::Int(Some(n)) => self.push(&n.to_string()),
            ExprKind::Int(None) => self.push("(int too large)"),
            ExprKind::Real(x) => self.push(&format!("{x:?}")),
            ExprKind::Path(path) => self.path(path),
            ExprKind::Unary(op, a) => {
                self.push(if *op == UnaryOp::Neg { "(- " } else { "(! " });
                self.expr(a);
                self.push(")");
            }
            ExprKind::Binary(op, a, b) => {
                self.push(&format!("({} ", op.symbol()));
                self.expr(a);
                self.push(" ");
                self.expr(b);
                self.push(")");
            }
            ExprKind::Call { callee, args, named } => {
                self.push("(call ");
                self.expr(callee);
                self.each(args, Self::expr);
                self.each(named, |d, (name, value)| {
                    d.push(&format!("(= {} ", name.text));
                    d.expr(value);
                    d.push(")");
                });
                self.push(")");
            }
            ExprKind::Index { base, indices } => {
                self.push("(index ");
                self.expr(base);
                self.each(indices, Self::index);
                self.push(")");
            }
            ExprKind::Field { base, name } => {
                self.push(&format!("(.{} ", name.text));
                self.expr(base);
                self.push(")");
            }
            ExprKind::TupleField { base, index, .. } => {
                self.push(&format!("(.{index} "));
                self.expr(base);
                self.push(")");
            }
            ExprKind::Tuple(parts) => self.list("tuple", parts),
            ExprKind::Array(parts) => self.list("array", parts),
            ExprKind::Comprehension { body, clauses } => self.clauses("array-of", body, clauses),
            ExprKind::Reduction { name, body, clauses } => self.clauses(&name.text, body, clauses),
            ExprKind::Struct { path, fields, base } => self.struct_literal(path, fields, base.as_deref()),
            ExprKind::If { condition, then, otherwise } => self.if_expr(condition, then, otherwise.as_ref()),
            ExprKind::Block(block) => self.block(block),
            ExprKind::Lambda { params, body } => self.lambda(params, body),
            ExprKind::Print(message) => {
                self.push("(print");
                self.message(message);
                self.push(")");
            }
            ExprKind::Assert { condition, message } => {
                self.push("(assert ");
                self.expr(condition);
                if let Some(message) = message {
                    self.message(message);
                }
                self.push(")");
            }
            ExprKind::Error => self.push("(error)"),
        }
    }

    fn list(&mut self, head: &str, parts: &[Expr]) {
        self.push("(");
        self.push(head);
        self.each(parts, Self::expr);
        self.push(")");
    }

    fn index(&mut self, index: &Index) {
        match index {
            Index::At(e) => self.expr(e),
            Index::Range { start, end, .. } => {
                self.push("(..");
                for bound in [start, end] {
                    self.push(" ");
                    match bound {
                        Some(e) => self.expr(e),
                        None => self.push("_"),
                    }
                }
                self.push(")");
            }
        }
    }

    fn clauses(&mut self, head: &str, body: &Expr, clauses: &[Clause]) {
        self.push(&format!("({head} "));
        self.expr(body);
        self.each(clauses, |d, c| {
            d.push(&format!("(for {} ", c.var.text));
            d.expr(&c.start);
            d.push(" ");
            d.expr(&c.end);
            d.push(")");
        });
        self.push(")");
    }

    fn struct_literal(&mut self, path: &Path, fields: &[(Name, Expr)], base: Option<&Expr>) {
        self.push("(struct ");
        self.path(path);
        self.each(fields, |d, (name, value)| {
            d.push(&format!("{}: ", name.text));
            d.expr(value);
        });
        if let Some(base) = base {
            self.push(" .. ");
            self.expr(base);
        }
        self.push(")");
    }

    fn if_expr(&mut self, condition: &Expr, then: &Block, otherwise: Option<&Block>) {
        self.push("(if ");
        self.expr(condition);
        self.push(" ");
        self.block(then);
        if let Some(otherwise) = otherwise {
            self.push(" ");
            self.block(otherwise);
        }
        self.push(")");
    }

    fn lambda(&mut self, params: &[(Name, Option<TypeExpr>)], body: &Expr) {
        self.push("(lambda (");
        self.each(params, |d, (name, ty)| {
            d.push(&name.text);
            if let Some(ty) = ty {
                d.push(": ");
                d.ty(ty);
            }
        });
        self.push(") ");
        self.expr(body);
        self.push(")");
    }

    fn message(&mut self, message: &Message) {
        self.each(&message.parts, |d, part| match part {
            MessagePart::Text(text) => d.push(&format!("{text:?}")),
            MessagePart::Hole(e) => d.expr(e),
        });
    }
}
