//! Struct literals, struct patterns and fields.

use crate::base::{Diagnostic, Span};
use crate::hir::{Dim, Expr, ExprKind, Pattern, Stmt, StmtKind, StructId, Ty};
use crate::syntax::ast;

use super::body::Body;
use super::context::Def;
use super::dims::Solver;
use super::names::{Found, Lookup, closest};

impl Body<'_, '_> {
    /// The struct that a path names.
    fn struct_named(&mut self, path: &ast::Path) -> Option<StructId> {
        match self.cx.lookup(self.module, path) {
            Lookup::Found(Found::Def(Def::Struct(id))) => Some(id),
            Lookup::Silent => None,
            _ => {
                let name = &path.name.text;
                let mut error = Diagnostic::error(
                    "E0103",
                    format!("there is no struct `{name}`"),
                    path.name.span,
                    "unknown struct",
                );
                if let Some(help) = self.cx.suggest_type(self.module, name) {
                    error = error.with_help(help);
                }
                self.cx.report(error);
                None
            }
        }
    }

    /// The position of a field of a struct.
    fn field_position(&mut self, id: StructId, name: &ast::Name) -> Option<usize> {
        let def = &self.cx.structs[id];
        let position = def.fields.iter().position(|(n, _)| n.text == name.text);
        if let Some(position) = position {
            self.cx.means(name, def.fields[position].0.span);
        } else {
            let mut error = Diagnostic::error(
                "E0208",
                format!("the struct `{}` has no field `{}`", def.name, name.text),
                name.span,
                "unknown field",
            );
            let names: Vec<&str> = def.fields.iter().map(|(n, _)| &*n.text).collect();
            error = match closest(&name.text, names.iter().copied()) {
                Some(guess) => error.with_help(format!("did you mean `{guess}`?")),
                None => error.with_help(format!("its fields are {}", quoted(&names))),
            };
            self.cx.report(error);
        }
        position
    }

    /// The type of a field of a struct with these dimension arguments.
    fn field_ty(&mut self, id: StructId, position: usize, args: &[Dim]) -> Option<Ty> {
        let ty = self.cx.structs[id].fields[position].1.clone()?;
        ty.substitute(args)
    }

    /// `base.name`
    pub(super) fn field(&mut self, base: Expr, name: &ast::Name, span: Span) -> Option<Expr> {
        let (position, ty) = self.field_of(&base.ty, name, base.span)?;
        Some(Expr { kind: ExprKind::Field(Box::new(base), position), ty, span })
    }

    /// Position and type of a named field of a value.
    pub(super) fn field_of(&mut self, ty: &Ty, name: &ast::Name, base: Span) -> Option<(usize, Ty)> {
        let Ty::Struct(id, args) = ty else {
            let found = self.show(ty);
            let error = Diagnostic::error("E0209", format!("{found} has no fields"), name.span, "not a struct");
            self.cx.report(error.with_label(base, format!("this is {found}")));
            return None;
        };
        let position = self.field_position(*id, name)?;
        Some((position, self.field_ty(*id, position, args)?))
    }

    /// Type of a numbered field of a value.
    pub(super) fn tuple_field_of(&mut self, ty: &Ty, index: u32, span: Span) -> Option<(usize, Ty)> {
        let found = self.show(ty);
        let error = match ty {
            Ty::Tuple(parts) => match parts.get(index as usize) {
                Some(part) => return Some((index as usize, part.clone())),
                None => {
                    Diagnostic::error("E0208", format!("{found} has no part {index}"), span, "parts are counted from 0")
                }
            },
            Ty::Array(..) => {
                Diagnostic::error("E0209", format!("{found} is an array, not a tuple"), span, "not a tuple")
                    .with_help(format!("index it: `[{index}]`"))
            }
            _ => Diagnostic::error("E0209", format!("{found} is not a tuple"), span, "not a tuple"),
        };
        self.cx.report(error);
        None
    }

    /// `Name { field: value, ..base }`
    pub(super) fn struct_literal(
        &mut self,
        path: &ast::Path,
        fields: &[(ast::Name, ast::Expr)],
        base: Option<&ast::Expr>,
        span: Span,
    ) -> Option<Expr> {
        let id = self.struct_named(path);
        for (name, value) in fields.iter().filter(|(name, value)| value.span == name.span) {
            self.cx.means_field_too(name, value.span.start);
        }
        let values: Vec<Option<Expr>> = fields.iter().map(|(_, value)| self.expr(value)).collect();
        let base = match base {
            Some(base) => Some(self.expr(base)?),
            None => None,
        };
        let id = id?;
        let mut given = self.place_fields(id, fields, values)?;
        let count = given.len();
        let (prelude, base) = match base {
            Some(base) => self.struct_base(id, base)?,
            None => (None, None),
        };
        let missing: Vec<usize> = (0..count).filter(|i| given[*i].is_none()).collect();
        if base.is_none() && !missing.is_empty() {
            self.missing_fields(id, path, &missing);
            return None;
        }
        if let Some(base) = base {
            for i in missing {
                let Ty::Struct(_, args) = &base.ty else {
                    return None;
                };
                let args = args.clone();
                given[i] = Some(Expr {
                    kind: ExprKind::Field(Box::new(base.clone()), i),
                    ty: self.field_ty(id, i, &args)?,
                    span: base.span,
                });
            }
        }
        let values: Vec<Expr> = given.into_iter().collect::<Option<_>>()?;
        let literal = self.make_struct(id, values, span)?;
        Some(match prelude {
            None => literal,
            Some(stmt) => {
                Expr { ty: literal.ty.clone(), kind: ExprKind::Block(vec![stmt], Some(Box::new(literal))), span }
            }
        })
    }

    /// The given values in the order of the declaration.
    fn place_fields(
        &mut self,
        id: StructId,
        fields: &[(ast::Name, ast::Expr)],
        values: Vec<Option<Expr>>,
    ) -> Option<Vec<Option<Expr>>> {
        let mut ok = true;
        let mut given: Vec<Option<Expr>> = vec![None; self.cx.structs[id].fields.len()];
        let mut seen = vec![false; given.len()];
        for ((name, _), value) in fields.iter().zip(values) {
            let Some(position) = self.field_position(id, name) else {
                ok = false;
                continue;
            };
            if std::mem::replace(&mut seen[position], true) {
                let error = Diagnostic::error(
                    "E0216",
                    format!("the field `{}` is given twice", name.text),
                    name.span,
                    "again here",
                );
                self.cx.report(error);
                ok = false;
            }
            ok &= value.is_some();
            given[position] = value;
        }
        ok.then_some(given)
    }

    /// The base of an update as something that may be read several times, and the statement that makes it so.
    fn struct_base(&mut self, id: StructId, base: Expr) -> Option<(Option<Stmt>, Option<Expr>)> {
        if !matches!(base.ty, Ty::Struct(other, _) if other == id) {
            let found = self.show(&base.ty);
            let error = Diagnostic::error(
                "E0201",
                format!("expected a `{}`, found {found}", self.cx.structs[id].name),
                base.span,
                format!("this is {found}"),
            );
            self.cx.report(error);
            return None;
        }
        if matches!(base.kind, ExprKind::Local(_)) {
            return Some((None, Some(base)));
        }
        let (stmt, local) = self.name_value(base);
        Some((Some(stmt), Some(local)))
    }

    /// Binds a value to a hidden local: the statement, and the local as an expression.
    pub(super) fn name_value(&mut self, value: Expr) -> (Stmt, Expr) {
        let (ty, span) = (value.ty.clone(), value.span);
        let local = self.hidden(ty.clone(), span);
        self.remember_linear(local, &value);
        let stmt = Stmt { kind: StmtKind::Let(Pattern::Local(local), value), span };
        let kind = ExprKind::Local(local);
        (stmt, Expr { kind, ty, span })
    }

    fn missing_fields(&mut self, id: StructId, path: &ast::Path, missing: &[usize]) {
        let def = &self.cx.structs[id];
        let names: Vec<&str> = missing.iter().map(|i| &*def.fields[*i].0.text).collect();
        let error = Diagnostic::error(
            "E0214",
            format!("`{}` needs {}", def.name, quoted(&names)),
            path.name.span,
            "fields are missing",
        );
        self.cx.report(error.with_help("give them all, or take the rest of another value: `..other`"));
    }

    /// A struct value whose dimensions follow from its fields.
    fn make_struct(&mut self, id: StructId, values: Vec<Expr>, span: Span) -> Option<Expr> {
        let fields = self.cx.structs[id].fields.clone();
        if self.cx.structs[id].inferred && fields.iter().all(|(_, ty)| ty.is_none()) {
            let args = self.infer_struct(id, &values);
            return Some(Expr { kind: ExprKind::Struct(id, values), ty: Ty::Struct(id, args), span });
        }
        let mut solver = Solver::new(self.cx.structs[id].dims.len());
        let mut ok = true;
        for (i, ((name, ty), value)) in fields.iter().zip(&values).enumerate() {
            let ty = ty.as_ref()?;
            if !solver.unify(ty, &value.ty, i) {
                let names = self.cx.structs[id].dims.clone();
                let wanted = self.cx.show(ty, &names);
                let found = self.show(&value.ty);
                let error = Diagnostic::error(
                    "E0201",
                    format!("the field `{}` is {wanted}, found {found}", name.text),
                    value.span,
                    format!("this is {found}"),
                );
                self.cx.report(error);
                ok = false;
            }
        }
        if !ok {
            return None;
        }
        if let Err(i) = solver.solve() {
            let names = self.cx.structs[id].dims.clone();
            let wanted = self.cx.show(fields[i].1.as_ref()?, &names);
            let found = self.show(&values[i].ty);
            let error = Diagnostic::error(
                "E0203",
                format!("the field `{}` is {wanted}, found {found}", fields[i].0.text),
                values[i].span,
                format!("this is {found}"),
            );
            let error = error.with_note("the other fields say what the dimensions are");
            self.cx.report(error);
            return None;
        }
        let args = solver.solution().ok()?;
        let mut parts = Vec::new();
        for ((_, ty), value) in fields.iter().zip(values) {
            let ty = ty.as_ref()?.substitute(&args)?;
            parts.push(self.coerce(value, &ty)?);
        }
        Some(Expr { kind: ExprKind::Struct(id, parts), ty: Ty::Struct(id, args), span })
    }

    /// Binds the fields that a struct pattern names.
    pub(super) fn bind_struct(
        &mut self,
        pattern: &ast::Pattern,
        path: &ast::Path,
        fields: &[(ast::Name, ast::Pattern)],
        rest: bool,
        ty: &Ty,
    ) -> Option<Pattern> {
        let Some(id) = self.struct_named(path) else {
            self.bind_broken(pattern);
            return None;
        };
        let args = match ty {
            Ty::Struct(other, args) if *other == id => args.clone(),
            _ => {
                let what = format!("a `{}`", self.cx.structs[id].name);
                return self.wrong_pattern(pattern, ty, &what);
            }
        };
        let mut bound = Vec::new();
        let mut ok = true;
        for (name, part) in fields {
            if let ast::PatternKind::Name { name: bound, .. } = &part.kind
                && bound.span == name.span
            {
                self.cx.means_field_too(name, part.span.start);
            }
            let ty = self
                .field_position(id, name)
                .and_then(|position| Some((position, self.field_ty(id, position, &args)?)));
            let Some((position, ty)) = ty else {
                self.bind_broken(part);
                ok = false;
                continue;
            };
            match self.bind_part(part, &ty) {
                Some(part) => bound.push((position, part)),
                None => ok = false,
            }
        }
        let def = &self.cx.structs[id];
        let missing: Vec<&str> = (def.fields.iter().enumerate())
            .filter(|(i, (name, _))| {
                !bound.iter().any(|(b, _)| b == i) && !fields.iter().any(|(n, _)| n.text == name.text)
            })
            .map(|(_, (name, _))| &*name.text)
            .collect();
        if !rest && !missing.is_empty() {
            let error = Diagnostic::error(
                "E0411",
                format!("the pattern leaves out {}", quoted(&missing)),
                pattern.span,
                "fields are missing",
            );
            self.cx.report(error.with_help("end the pattern with `..`"));
            return None;
        }
        ok.then_some(Pattern::Fields(bound))
    }
}

/// `a`, `b` and `c` in backquotes.
pub(super) fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}
