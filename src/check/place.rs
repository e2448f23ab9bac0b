//! Assignments: what can be assigned, and by whom.

use crate::base::{Diagnostic, Span};
use crate::hir::{Expr, ExprKind, LocalId, Place, Projection, Stmt, StmtKind, Ty};
use crate::prim::Prim;
use crate::syntax::ast::{self, BinaryOp};
use crate::types::DType;

use super::body::{Body, FrameKind, Inner, Origin};
use super::index::Axis;
use super::operators::{arithmetic, as_real};
use super::types::{elements, of_shape};

impl Body<'_, '_> {
    /// `place = value;` or `place op= value;`
    pub(super) fn assign(
        &mut self,
        place: &ast::Expr,
        op: Option<BinaryOp>,
        value: &ast::Expr,
        span: Span,
    ) -> Option<Stmt> {
        let place = self.place(place);
        let value = self.operand(value);
        let (place, value) = (place?, value?);
        let (op, value) = match op {
            None => (None, self.coerce(value, &place.ty.clone())?),
            Some(op) => {
                let (op, value) = self.update(&place, op, value, span)?;
                (Some(op), value)
            }
        };
        Some(Stmt { kind: StmtKind::Assign { place, op, value }, span })
    }

    /// The primitive of `place op= value`, and the value promoted for it.
    fn update(&mut self, place: &Place, op: BinaryOp, value: Expr, span: Span) -> Option<(Prim, Expr)> {
        // Checked as `place op value`, whose type must be that of the place.
        let old = Expr { kind: ExprKind::Local(place.local), ty: place.ty.clone(), span };
        let result = self.binary(op, old.clone(), value.clone(), span)?;
        if result.ty != place.ty {
            let (wanted, found) = (self.show(&place.ty), self.show(&result.ty));
            let error = Diagnostic::error(
                "E0201",
                format!("this update gives {found}, but the variable is {wanted}"),
                span,
                format!("cannot become {found}"),
            );
            let error = match (elements(&place.ty), elements(&result.ty)) {
                (Some((DType::Int, [])), Some((DType::Real, []))) => error.with_help("start from a real: `0.0`"),
                _ => error,
            };
            self.cx.report(error);
            return None;
        }
        match op {
            BinaryOp::MatMul => Some((Prim::MatMul, as_real(value))),
            _ => {
                let (prim, _, value) = arithmetic(op, old, value);
                Some((prim, value))
            }
        }
    }

    fn place(&mut self, place: &ast::Expr) -> Option<Place> {
        match &place.kind {
            ast::ExprKind::Error => None,
            ast::ExprKind::Path(path) => {
                let local = self.assigned(path)?;
                Some(Place { local, path: Vec::new(), ty: self.locals[local].ty.clone() })
            }
            ast::ExprKind::Field { base, name } => {
                let outer = self.place(base)?;
                let (position, ty) = self.field_of(&outer.ty, name, base.span)?;
                Some(project(outer, Projection::Field(position), ty))
            }
            ast::ExprKind::TupleField { base, index, index_span } => {
                let outer = self.place(base)?;
                let (position, ty) = self.tuple_field_of(&outer.ty, *index, *index_span)?;
                Some(project(outer, Projection::Field(position), ty))
            }
            ast::ExprKind::Index { base, indices } => {
                let outer = self.place(base)?;
                self.index_place(outer, base.span, indices, place.span)
            }
            _ => self.not_a_place(place.span, "not a variable, a field or an element", None),
        }
    }

    fn not_a_place(&mut self, span: Span, label: &str, help: Option<&str>) -> Option<Place> {
        let mut error = Diagnostic::error("E0402", "this cannot be assigned", span, label);
        if let Some(help) = help {
            error = error.with_help(help);
        }
        self.cx.report(error);
        None
    }

    fn index_place(&mut self, outer: Place, base: Span, indices: &[ast::Index], span: Span) -> Option<Place> {
        let axes = self.axes(&outer.ty, base, indices, span)?;
        if matches!(outer.path.last(), Some(Projection::Slice(_))) && !axes.is_empty() {
            let help = "index the array itself";
            return self.not_a_place(span, "a part of a slice", Some(help));
        }
        let mut place = outer;
        for axis in axes {
            let (dtype, extents) = elements(&place.ty)?;
            let (_, rest) = extents.split_first()?;
            if matches!(place.path.last(), Some(Projection::Slice(_))) {
                let help = "assign in a loop: `for i in 0..n { x[i, j] = …; }`";
                return self.not_a_place(span, "a range with an index after it", Some(help));
            }
            match axis {
                Axis::At(i) => {
                    let ty = of_shape(dtype, rest);
                    if let Some(Projection::Index(known)) = place.path.last_mut() {
                        known.push(i);
                        place.ty = ty;
                    } else {
                        place = project(place, Projection::Index(vec![i]), ty);
                    }
                }
                Axis::Range { start, length } => {
                    let mut extents = extents.to_vec();
                    *extents.first_mut()? = length;
                    let ty = of_shape(dtype, &extents);
                    place = project(place, Projection::Slice(Box::new(start)), ty);
                }
                Axis::Whole => {
                    let help = "assign in a loop: `for i in 0..n { x[i, j] = …; }`";
                    return self.not_a_place(span, "a range with an index after it", Some(help));
                }
            }
        }
        Some(place)
    }

    /// The local that a path names, if it can be assigned here.
    fn assigned(&mut self, path: &ast::Path) -> Option<LocalId> {
        let name = &path.name;
        let local = match self.inner(path) {
            Some(Inner::Broken) => return None,
            Some(Inner::Local(local)) => local,
            Some(Inner::Dim(_)) => {
                let error = Diagnostic::error(
                    "E0413",
                    format!("the dimension `{}` cannot be assigned", name.text),
                    name.span,
                    "it is the extent of an array",
                );
                self.cx.report(error);
                return None;
            }
            None => {
                match self.cx.lookup(self.module, path) {
                    super::names::Lookup::Silent => {}
                    super::names::Lookup::Unknown => self.unknown_name("E0101", name),
                    super::names::Lookup::Found(_) => {
                        let error = Diagnostic::error(
                            "E0413",
                            format!("`{}` cannot be assigned", name.text),
                            name.span,
                            "not a variable",
                        );
                        self.cx.report(error.with_help("lanes have no global variables"));
                    }
                }
                return None;
            }
        };
        self.info[local].assigned = true;
        self.check_frame(local, name)?;
        if self.locals[local].mutable {
            return Some(local);
        }
        self.immutable(local, name);
        None
    }

    /// Refuses to assign what belongs to the code around a closure or comprehension.
    fn check_frame(&mut self, local: LocalId, name: &ast::Name) -> Option<()> {
        let depth = self.info[local].frame;
        let around = self.frames.get(depth).map(|f| f.kind);
        let error = match around {
            None | Some(FrameKind::Fn) => return Some(()),
            Some(FrameKind::Closure) => Diagnostic::error(
                "E0315",
                format!("a closure cannot assign `{}`", name.text),
                name.span,
                "captured by value",
            )
            .with_help("let the closure give the new value"),
            Some(FrameKind::Comprehension) => Diagnostic::error(
                "E0602",
                format!("a comprehension cannot assign `{}`", name.text),
                name.span,
                "its elements have no order",
            )
            .with_help("use a `for` loop"),
        };
        self.cx.report(error);
        None
    }

    fn immutable(&mut self, local: LocalId, name: &ast::Name) {
        let text = &name.text;
        let bound = self.locals[local].span;
        let error = match self.info[local].origin {
            Origin::Loop | Origin::Clause => Diagnostic::error(
                "E0403",
                format!("the loop variable `{text}` cannot be assigned"),
                name.span,
                "the loop sets it",
            )
            .with_help("use `while`, or a variable of its own"),
            Origin::Param | Origin::ClosureParam => Diagnostic::error(
                "E0404",
                format!("the parameter `{text}` cannot be assigned"),
                name.span,
                "not declared `mut`",
            )
            .with_label(bound, "declared here")
            .with_help(format!("declare it `mut {text}`, or copy it: `let mut {text} = {text};`")),
            Origin::Let | Origin::Hidden => {
                Diagnostic::error("E0401", format!("`{text}` cannot be assigned"), name.span, "not declared `mut`")
                    .with_label(bound, "declared here")
                    .with_help(format!("declare it with `let mut {text}`"))
            }
        };
        self.cx.report(error);
    }
}

fn project(mut outer: Place, step: Projection, ty: Ty) -> Place {
    outer.path.push(step);
    outer.ty = ty;
    outer
}
