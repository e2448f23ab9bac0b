//! The text that `autobatch dump --stage hir` shows: a program as the checker understands it, with the types of locals
//! and the primitives by name. It is for reading only.

use std::fmt::Write as _;

use crate::base::IdVec;

use super::{
    Callee, Clause, DerivativeCall, Dim, DimId, Expr, ExprKind, Fn, FnId, LocalId, Message, Pattern, Place, Program,
    Projection, Reduction, Stmt, StmtKind, StructId, Ty, walk,
};

/// The functions that the exports reach, and the structs that these name: all of them when there are no exports.
pub fn dump(program: &Program) -> String {
    crate::base::stack::with_room(program.depth, || dump_here(program))
}

fn dump_here(program: &Program) -> String {
    let mut out = String::new();
    let reached = reached(program);
    let named = named(program, &reached);
    for s in program.structs.ids().filter(|id| named[*id]).map(|id| &program.structs[id]) {
        let dims = list(s.dims.values());
        let printer = Printer::new(program, &s.dims, None);
        line(&mut out, 0, &format!("struct {}{dims} {{", s.name));
        for (name, ty) in &s.fields {
            line(&mut out, 1, &format!("{name}: {}", printer.ty(ty)));
        }
        line(&mut out, 0, "}");
        out.push('\n');
    }
    for id in program.fns.ids().filter(|id| reached[*id] && program.fns[*id].is_some()) {
        let function = program.function(id);
        let export = program.exports.values().any(|e| *e == id);
        dump_fn(&mut out, program, function, &format!("{id}"), export);
        out.push('\n');
    }
    out
}

fn reached(program: &Program) -> IdVec<FnId, bool> {
    let mut reached = IdVec::filled(program.exports.is_empty(), program.fns.len());
    let mut work: Vec<FnId> = program.exports.values().copied().collect();
    while let Some(id) = work.pop() {
        if !std::mem::replace(&mut reached[id], true) {
            let rules = program.rules.get(&id).into_iter();
            work.extend(rules.flat_map(|rules| [rules.forward, rules.reverse]).flatten());
            walk::all(&program.function(id).body, &mut |expr| match &expr.kind {
                ExprKind::Call(Callee::Fn(called, _), _) | ExprKind::Function(called, _) => {
                    work.push(*called);
                }
                _ => {}
            });
        }
    }
    reached
}

fn named(program: &Program, reached: &IdVec<FnId, bool>) -> IdVec<StructId, bool> {
    let mut named = IdVec::filled(program.exports.is_empty(), program.structs.len());
    let mut work: Vec<&Ty> = Vec::new();
    for function in program.fns.ids().filter(|id| reached[*id]).filter_map(|id| program.fns[id].as_ref()) {
        work.push(&function.ret);
        work.extend(function.locals.values().map(|local| &local.ty));
        walk::all(&function.body, &mut |expr| work.push(&expr.ty));
    }
    while let Some(ty) = work.pop() {
        match ty {
            Ty::Scalar(_) | Ty::Array(..) | Ty::Never => {}
            Ty::Tuple(parts) => work.extend(parts),
            Ty::Fn(params, ret) => work.extend(params.iter().chain([&**ret])),
            Ty::Struct(id, _) if std::mem::replace(&mut named[*id], true) => {}
            Ty::Struct(id, _) => work.extend(program.structs[*id].fields.iter().map(|(_, ty)| ty)),
        }
    }
    named
}

fn dump_fn(out: &mut String, program: &Program, function: &Fn, id: &str, export: bool) {
    let printer = Printer::new(program, &function.dims, Some(function));
    let params: Vec<String> = (function.params.iter())
        .map(|p| {
            let shared = if p.shared { "shared " } else { "" };
            format!("{shared}{}", printer.binding(p.local))
        })
        .collect();
    let dim = |(id, name): (_, &String)| match function.bounds.get(&id) {
        Some(bound) => format!("{name} <= {}", bound.display(&function.dims)),
        None => name.clone(),
    };
    let dims: Vec<String> = function.dims.iter().map(dim).collect();
    let head = format!(
        "{}{}fn {}{}({}) -> {} // {id}",
        if function.recompute { "@recompute " } else { "" },
        if export { "pub " } else { "" },
        function.name,
        list(dims.iter()),
        params.join(", "),
        printer.ty(&function.ret),
    );
    line(out, 0, &head);
    line(out, 0, &printer.expr(&function.body, 0));
}

fn line(out: &mut String, depth: usize, text: &str) {
    writeln!(out, "{}{text}", indent(depth)).expect("a String takes everything");
}

fn indent(depth: usize) -> String {
    "    ".repeat(depth)
}

fn list<'n>(names: impl Iterator<Item = &'n String>) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    if names.is_empty() { String::new() } else { format!("[{}]", names.join(", ")) }
}

/// Prints the parts of one function, or the fields of one struct.
struct Printer<'p> {
    program: &'p Program,
    dims: &'p IdVec<DimId, String>,
    function: Option<&'p Fn>,
}

impl<'p> Printer<'p> {
    fn new(program: &'p Program, dims: &'p IdVec<DimId, String>, function: Option<&'p Fn>) -> Self {
        Self { program, dims, function }
    }

    fn dims(&self, dims: &[Dim]) -> String {
        let dims: Vec<String> = dims.iter().map(|d| d.display(self.dims)).collect();
        list(dims.iter())
    }

    fn ty(&self, ty: &Ty) -> String {
        let types = |parts: &[Ty]| {
            let parts: Vec<String> = parts.iter().map(|p| self.ty(p)).collect();
            parts.join(", ")
        };
        match ty {
            Ty::Scalar(dtype) => dtype.to_string(),
            Ty::Array(dtype, dims) => format!("{dtype}{}", self.dims(dims)),
            Ty::Tuple(parts) => format!("({})", types(parts)),
            Ty::Struct(id, dims) => {
                format!("{}{}", self.program.structs[*id].name, self.dims(dims))
            }
            Ty::Fn(params, ret) => format!("fn({}) -> {}", types(params), self.ty(ret)),
            Ty::Never => "never".to_string(),
        }
    }

    /// The name of a local; its number makes it unique.
    fn local(&self, id: LocalId) -> String {
        let local = self.function.and_then(|f| f.locals.get(id));
        match local {
            Some(local) if local.name.starts_with('%') => local.name.clone(),
            Some(local) => format!("{}.{}", local.name, id.0),
            None => id.to_string(),
        }
    }

    /// A local where it is bound: with its type.
    fn binding(&self, id: LocalId) -> String {
        match self.function.and_then(|f| f.locals.get(id)) {
            Some(local) => {
                let mutable = if local.mutable { "mut " } else { "" };
                format!("{mutable}{}: {}", self.local(id), self.ty(&local.ty))
            }
            None => id.to_string(),
        }
    }

    fn exprs(&self, exprs: &[Expr], depth: usize) -> String {
        let exprs: Vec<String> = exprs.iter().map(|e| self.expr(e, depth)).collect();
        exprs.join(", ")
    }

    fn expr(&self, expr: &Expr, depth: usize) -> String {
        match &expr.kind {
            ExprKind::Literal(value) => value.to_string(),
            ExprKind::Dim(dim) => format!("dim({})", dim.display(self.dims)),
            ExprKind::Local(id) | ExprKind::FunctionLocal(id) => self.local(*id),
            ExprKind::Tuple(parts) => format!("({})", self.exprs(parts, depth)),
            ExprKind::Struct(id, values) => self.struct_literal(*id, values, depth),
            ExprKind::Field(base, index) => self.field(base, *index, depth),
            ExprKind::Prim(op, args) => {
                format!("{op}({}): {}", self.exprs(args, depth), self.ty(&expr.ty))
            }
            ExprKind::And(a, b) => {
                format!("({} && {})", self.expr(a, depth), self.expr(b, depth))
            }
            ExprKind::Or(a, b) => format!("({} || {})", self.expr(a, depth), self.expr(b, depth)),
            ExprKind::Call(callee, args) => {
                format!("{}({})", self.callee(callee), self.exprs(args, depth))
            }
            ExprKind::If(condition, then, other) => {
                let other = (other.as_ref()).map(|e| format!(" else {}", self.expr(e, depth))).unwrap_or_default();
                let condition = self.expr(condition, depth);
                format!("if {condition} {}{other}", self.expr(then, depth))
            }
            ExprKind::Block(stmts, tail) => self.block(stmts, tail.as_deref(), depth),
            ExprKind::Comprehension { clauses, body } => {
                format!("[{} for {}]: {}", self.expr(body, depth), self.clauses(clauses, depth), self.ty(&expr.ty))
            }
            ExprKind::Reduction { op, clauses, body } => {
                format!("{}({} for {})", reduction_name(*op), self.expr(body, depth), self.clauses(clauses, depth))
            }
            ExprKind::Function(id, dims) => {
                format!("{}.{id}{}", self.program.function(*id).name, self.dims(dims))
            }
            ExprKind::Lambda { params, body } => {
                let params: Vec<String> = params.iter().map(|p| self.binding(*p)).collect();
                format!("|{}| {}", params.join(", "), self.expr(body, depth))
            }
            ExprKind::Derivative(call) => {
                let DerivativeCall { op, function, wrt, args, direction } = &**call;
                let wrt: Vec<String> = wrt.iter().map(usize::to_string).collect();
                let direction = (direction.iter()).map(|d| format!("; {}", self.expr(d, depth))).collect::<String>();
                let (function, args) = (self.expr(function, depth), self.exprs(args, depth));
                format!("{}({function}, wrt = ({}))({args}{direction})", op.name(), wrt.join(", "))
            }
            ExprKind::Attempt(function, args) => {
                format!("attempt({})({})", self.expr(function, depth), self.exprs(args, depth))
            }
            ExprKind::StopGradient(value) => format!("stop_gradient({})", self.expr(value, depth)),
            ExprKind::Print(message) => format!("print({})", self.message(message, depth)),
            ExprKind::Assert(condition, message) => {
                format!("assert({}, {})", self.expr(condition, depth), self.message(message, depth))
            }
            ExprKind::While(condition, body) => {
                let condition = self.expr(condition, depth);
                format!("while {condition} {}", self.expr(body, depth))
            }
            ExprKind::For(var, start, end, body) => format!(
                "for {} in {}..{} {}",
                self.local(*var),
                self.expr(start, depth),
                self.expr(end, depth),
                self.expr(body, depth)
            ),
            ExprKind::Break => "break".to_string(),
            ExprKind::Continue => "continue".to_string(),
            ExprKind::Return(None) => "return".to_string(),
            ExprKind::Return(Some(value)) => format!("return {}", self.expr(value, depth)),
        }
    }

    fn struct_literal(&self, id: StructId, values: &[Expr], depth: usize) -> String {
        let def = &self.program.structs[id];
        let fields: Vec<String> = (def.fields.iter().zip(values))
            .map(|((name, _), value)| format!("{name}: {}", self.expr(value, depth)))
            .collect();
        format!("{} {{ {} }}", def.name, fields.join(", "))
    }

    fn field(&self, base: &Expr, index: usize, depth: usize) -> String {
        format!("{}.{}", self.expr(base, depth), self.field_name(&base.ty, index))
    }

    fn field_name(&self, ty: &Ty, index: usize) -> String {
        match ty {
            Ty::Struct(id, _) => self.program.structs[*id].fields[index].0.clone(),
            _ => index.to_string(),
        }
    }

    fn callee(&self, callee: &Callee) -> String {
        match callee {
            Callee::Fn(id, dims) => {
                format!("{}.{id}{}", self.program.function(*id).name, self.dims(dims))
            }
            Callee::Local(id) => self.local(*id),
        }
    }

    fn clauses(&self, clauses: &[Clause], depth: usize) -> String {
        let clauses: Vec<String> = clauses
            .iter()
            .map(|c| {
                let (start, end) = (self.expr(&c.start, depth), self.expr(&c.end, depth));
                format!("{} in {start}..{end}", self.local(c.var))
            })
            .collect();
        clauses.join(", ")
    }

    fn message(&self, message: &Message, depth: usize) -> String {
        let mut text = String::new();
        for (i, part) in message.texts.iter().enumerate() {
            text += part;
            if let Some(arg) = message.args.get(i) {
                text += &format!("{{{}}}", self.expr(arg, depth));
            }
        }
        format!("{text:?}")
    }

    fn block(&self, stmts: &[Stmt], tail: Option<&Expr>, depth: usize) -> String {
        let mut out = String::from("{\n");
        for stmt in stmts {
            let text = self.stmt(stmt, depth + 1);
            line(&mut out, depth + 1, &format!("{text};"));
        }
        if let Some(tail) = tail {
            let text = self.expr(tail, depth + 1);
            line(&mut out, depth + 1, &text);
        }
        out + &indent(depth) + "}"
    }

    fn stmt(&self, stmt: &Stmt, depth: usize) -> String {
        match &stmt.kind {
            StmtKind::Let(pattern, value) => {
                let pattern = self.pattern(pattern, &value.ty);
                format!("let {pattern} = {}", self.expr(value, depth))
            }
            StmtKind::Assign { place, op, value } => {
                let op = op.map(|op| format!("{op} ")).unwrap_or_default();
                format!("{} {op}= {}", self.place(place, depth), self.expr(value, depth))
            }
            StmtKind::Expr(value) => self.expr(value, depth),
            StmtKind::Emit { stream, fields } => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, value)| format!("{name}: {}", self.expr(value, depth))).collect();
                format!("emit {stream}({})", fields.join(", "))
            }
        }
    }

    fn pattern(&self, pattern: &Pattern, ty: &Ty) -> String {
        match pattern {
            Pattern::Local(id) => self.binding(*id),
            Pattern::Wildcard => "_".to_string(),
            Pattern::Fields(parts) => {
                let parts: Vec<String> = parts
                    .iter()
                    .map(|(i, part)| {
                        let name = self.field_name(ty, *i);
                        format!("{name}: {}", self.pattern(part, &self.part_ty(ty, *i)))
                    })
                    .collect();
                format!("{{ {} }}", parts.join(", "))
            }
        }
    }

    /// The type of a part, for the names of fields; its dimensions are those of the declaration.
    fn part_ty(&self, ty: &Ty, index: usize) -> Ty {
        match ty {
            Ty::Struct(id, _) => self.program.structs[*id].fields[index].1.clone(),
            Ty::Tuple(parts) => parts[index].clone(),
            other => other.clone(),
        }
    }

    fn place(&self, place: &Place, depth: usize) -> String {
        let mut text = self.local(place.local);
        let root = self.function.and_then(|f| f.locals.get(place.local));
        let mut ty = root.map_or(Ty::Never, |l| l.ty.clone());
        for step in &place.path {
            match step {
                Projection::Field(i) => {
                    text += &format!(".{}", self.field_name(&ty, *i));
                    ty = self.part_ty(&ty, *i);
                }
                Projection::Index(indices) => {
                    text += &format!("[{}]", self.exprs(indices, depth));
                }
                Projection::Slice(start) => text += &format!("[{}..]", self.expr(start, depth)),
            }
        }
        text
    }
}

fn reduction_name(op: Reduction) -> &'static str {
    match op {
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
