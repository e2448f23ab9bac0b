//! `print`, `assert` and `emit`.

use crate::base::{Diagnostic, Span};
use crate::hir::{Expr, ExprKind, Message, Stmt, StmtKind, Ty};
use crate::syntax::ast::{self, MessagePart};

use super::body::Body;
use super::context::Stream;
use super::types::same_up_to_dims;

impl Body<'_, '_> {
    /// `print("…")`
    pub(super) fn print(&mut self, message: &ast::Message, span: Span) -> Option<Expr> {
        let message = self.message(message);
        self.no_effects("print", span)?;
        Some(Expr { kind: ExprKind::Print(message?), ty: Ty::unit(), span })
    }

    /// `assert(condition, "…")`
    pub(super) fn assert(&mut self, condition: &ast::Expr, message: Option<&ast::Message>, span: Span) -> Option<Expr> {
        let condition = self.condition(condition);
        let message = match message {
            Some(message) => self.message(message),
            None => Some(Message { texts: vec![String::new()], args: Vec::new() }),
        };
        Some(Expr { kind: ExprKind::Assert(Box::new(condition?), message?), ty: Ty::unit(), span })
    }

    fn message(&mut self, message: &ast::Message) -> Option<Message> {
        let mut texts = vec![String::new()];
        let mut args = Vec::new();
        let mut ok = true;
        for part in &message.parts {
            match part {
                MessagePart::Text(text) => {
                    texts.last_mut().expect("there is a text").push_str(text);
                }
                MessagePart::Hole(hole) => {
                    let value = self.operand(hole).and_then(|v| self.printable(v));
                    ok &= value.is_some();
                    args.extend(value);
                    texts.push(String::new());
                }
            }
        }
        ok.then_some(Message { texts, args })
    }

    fn printable(&mut self, value: Expr) -> Option<Expr> {
        if matches!(value.ty, Ty::Scalar(_) | Ty::Array(..)) {
            return Some(value);
        }
        let found = self.show(&value.ty);
        let error = Diagnostic::error(
            "E0707",
            format!("a message cannot show {found}"),
            value.span,
            "scalars and arrays can be shown",
        );
        self.cx.report(error.with_help("show its fields one by one: `{t.a} {t.b}`"));
        None
    }

    fn no_effects(&mut self, what: &str, span: Span) -> Option<()> {
        if !self.in_comprehension() {
            return Some(());
        }
        let error =
            Diagnostic::error("E0603", format!("`{what}` inside a comprehension"), span, "its elements have no order");
        self.cx.report(error.with_help("use a `for` loop"));
        None
    }

    /// `emit stream(fields);`
    pub(super) fn emit(&mut self, stream: &ast::Name, args: &[ast::EmitArg], span: Span) -> Option<Stmt> {
        let mut fields: Vec<(String, Expr)> = Vec::new();
        let mut ok = true;
        for arg in args {
            let value = self.operand(&arg.value).and_then(|v| self.emittable(v));
            let name = arg.name.as_ref().or_else(|| last_name(&arg.value));
            if let (None, Some(name)) = (&arg.name, name) {
                self.cx.means_field_too(name, arg.value.span.start);
            }
            let Some(name) = name else {
                let error = Diagnostic::error(
                    "E0705",
                    "this field of the record has no name",
                    arg.value.span,
                    "neither a variable nor a field",
                );
                self.cx.report(error.with_help("name it: `emit draw(x: …)`"));
                ok = false;
                continue;
            };
            if fields.iter().any(|(n, _)| **n == *name.text) {
                let error = Diagnostic::error(
                    "E0708",
                    format!("the record has the field `{}` twice", name.text),
                    arg.value.span,
                    "again here",
                );
                self.cx.report(error.with_help("name it: `emit draw(x: …)`"));
                ok = false;
                continue;
            }
            ok &= value.is_some();
            fields.extend(value.map(|value| (name.text.to_string(), value)));
        }
        self.no_effects("emit", span)?;
        if !ok {
            return None;
        }
        self.same_stream(stream, &fields)?;
        Some(Stmt { kind: StmtKind::Emit { stream: stream.text.to_string(), fields }, span })
    }

    fn emittable(&mut self, value: Expr) -> Option<Expr> {
        if !value.ty.is_unit() {
            return Some(value);
        }
        let error = Diagnostic::error("E0709", "this has no value to emit", value.span, "this is ()");
        self.cx.report(error);
        None
    }

    /// All records of a stream have the same fields.
    fn same_stream(&mut self, stream: &ast::Name, fields: &[(String, Expr)]) -> Option<()> {
        let Some(known) = self.cx.streams.get(&*stream.text) else {
            let fields = fields.iter().map(|(name, v)| (name.clone(), v.ty.clone()));
            let entry = Stream { fields: fields.collect(), span: stream.span };
            self.cx.streams.insert(stream.text.to_string(), entry);
            return Some(());
        };
        let same = known.fields.len() == fields.len()
            && (known.fields.iter().zip(fields)).all(|((a, x), (b, y))| a == b && same_up_to_dims(x, &y.ty));
        if same {
            return Some(());
        }
        let names: Vec<&str> = known.fields.iter().map(|(name, _)| name.as_str()).collect();
        let error = Diagnostic::error(
            "E0706",
            format!("the stream `{}` has records of two kinds", stream.text),
            stream.span,
            "other fields, or fields of other types",
        );
        let error = error
            .with_label(known.span, format!("here its fields are {}", super::structs::quoted(&names)))
            .with_help("give one of the streams another name");
        self.cx.report(error);
        None
    }
}

/// The last name of `x` or `a.b.x`.
fn last_name(value: &ast::Expr) -> Option<&ast::Name> {
    match &value.kind {
        ast::ExprKind::Path(path) => Some(&path.name),
        ast::ExprKind::Field { name, .. } => Some(name),
        _ => None,
    }
}
