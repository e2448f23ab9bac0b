//! With respect to what: `wrt`, and what has a derivative by its types.

use crate::base::{Diagnostic, Span};
use crate::hir::{Dim, Expr, ExprKind, Ty};
use crate::syntax::ast;
use crate::types::DType;

use super::{Callable, Code, Written};
use crate::check::body::Body;
use crate::check::types::{elements, of_shape};

impl Body<'_, '_> {
    /// Positions of the parameters with respect to which: the first unless `wrt` says otherwise.
    pub(super) fn wrt(&mut self, written: Written<'_>, of: &Callable) -> Option<Vec<usize>> {
        let mut found = None;
        for (name, value) in written.named {
            if &*name.text != "wrt" || found.is_some() {
                let (message, label) = match &*name.text {
                    "wrt" => ("`wrt` stands here twice".to_owned(), "again"),
                    other => (format!("`{}` has no argument `{other}`", written.name.text), "unknown argument"),
                };
                let error = Diagnostic::error("E0902", message, name.span, label);
                self.cx.report(error.with_help("several parameters are a tuple: `wrt = (w, b)`"));
                return None;
            }
            found = Some(value);
        }
        let Some(value) = found else {
            return if of.params.is_empty() { self.no_parameter(of, written.span) } else { Some(vec![0]) };
        };
        let parts: Vec<&ast::Expr> = match &value.kind {
            ast::ExprKind::Tuple(parts) if !parts.is_empty() => parts.iter().collect(),
            _ => vec![value],
        };
        let mut positions = Vec::new();
        for part in parts {
            let position = self.wrt_position(part, of)?;
            if positions.contains(&position) {
                let error = Diagnostic::error("E0903", "this parameter stands in `wrt` twice", part.span, "again");
                self.cx.report(error);
                return None;
            }
            positions.push(position);
        }
        Some(positions)
    }

    pub(super) fn no_parameter(&mut self, of: &Callable, span: Span) -> Option<Vec<usize>> {
        let message = format!("{} has no parameters", of.what);
        self.cx.report(Diagnostic::error("E0903", message, span, "with respect to what?"));
        None
    }

    pub(super) fn wrt_position(&mut self, part: &ast::Expr, of: &Callable) -> Option<usize> {
        let position = match &part.kind {
            ast::ExprKind::Path(path) if path.module.is_none() => {
                of.names.iter().position(|n| n.as_ref() == Some(&path.name.text))
            }
            ast::ExprKind::Int(Some(i)) => usize::try_from(*i).ok().filter(|i| *i < of.names.len()),
            ast::ExprKind::Error => return None,
            _ => None,
        };
        if let (Some(position), ast::ExprKind::Path(path)) = (position, &part.kind) {
            self.means_parameter(&path.name, of, position);
        }
        if position.is_some() {
            return position;
        }
        let named: Vec<String> = of.names.iter().flatten().map(|n| format!("`{n}`")).collect();
        let help = match (named.is_empty(), of.names.len()) {
            (_, 0) => "it has no parameters".to_owned(),
            (true, 1) => "its parameter has no name here: write its position, `wrt = 0`".to_owned(),
            (true, n) => format!("its parameters have no names here: write a position, 0 to {}", n - 1),
            (false, _) => format!("its parameters are {}", named.join(", ")),
        };
        let message = format!("this is no parameter of {}", of.what);
        let error = Diagnostic::error("E0903", message, part.span, "neither the name nor the position of one");
        self.cx.report(error.with_help(help));
        None
    }

    /// Notes which parameter a name of `wrt` is.
    fn means_parameter(&self, name: &ast::Name, of: &Callable, position: usize) {
        if let Code::Value(Expr { kind: ExprKind::Function(id, _), .. }) = &of.code
            && let Some(param) = self.cx.fns[*id].signature.as_ref().and_then(|s| s.params.get(position))
        {
            self.cx.means(name, param.name.span);
        }
    }

    /// Reports what has no derivative by its types.
    pub(super) fn check_differentiable(&mut self, written: Written<'_>, of: &Callable, wrt: &[usize]) -> Option<()> {
        let name = written.op.name();
        for i in wrt {
            let shown = of.names[*i].as_ref().map_or_else(|| format!("parameter {i}"), |n| n.to_string());
            if of.shared[*i] {
                let error = Diagnostic::error(
                    "E0905",
                    format!("`{shown}` of {} is shared: there is no derivative with respect to it", of.what),
                    written.span,
                    "it has one value for all lanes",
                );
                self.cx.report(
                    error.with_help("choose another parameter by `wrt = …`, or differentiate a closure: `|x| f(w, x)`"),
                );
                return None;
            }
            if let Some((path, dtype)) = self.cx.non_real(&of.params[*i], &shown) {
                let error = Diagnostic::error(
                    "E0904",
                    format!("`{name}` of {}: `{path}` is {dtype}", of.what),
                    written.span,
                    "there is no derivative with respect to it",
                );
                let help = if path == shown {
                    "choose a real parameter by `wrt = …`"
                } else {
                    "take the derivative of a closure of the real parts alone"
                };
                self.cx.report(error.with_help(help));
                return None;
            }
        }
        if written.op.of_scalar() && of.ret != Ty::Scalar(DType::Real) {
            let found = self.show(&of.ret);
            let error = Diagnostic::error(
                "E0906",
                format!("`{name}` needs a function that gives a real, {} gives {found}", of.what),
                written.span,
                format!("this gives {found}"),
            );
            self.cx.report(error.with_help("of other functions there are `jacobian(f)(x)` and `vjp(f)(x, v)`"));
            return None;
        }
        let empty = elements(&of.ret).is_none() && self.cx.leaves(&of.ret) <= 1;
        let wrong = match self.cx.non_real(&of.ret, "") {
            Some((path, dtype)) if path.is_empty() => Some(format!("{} gives {dtype}", of.what)),
            Some((path, dtype)) => Some(format!("`{}` of what {} gives is {dtype}", &path[1..], of.what)),
            None if empty => Some(format!("{} gives nothing", of.what)),
            None => None,
        };
        if let Some(message) = wrong {
            let error = Diagnostic::error(
                "E0906",
                format!("`{name}` needs a function that gives reals: {message}"),
                written.span,
                "there is no derivative of it",
            );
            self.cx.report(
                error.with_help("take the derivative of a closure that gives the real parts alone: `|x| f(x).0`"),
            );
            return None;
        }
        Some(())
    }

    pub(super) fn jacobian_type(&mut self, written: Written<'_>, of: &Callable, wrt: &[usize]) -> Option<Ty> {
        let argument = self.array_parameter(written, of, wrt)?;
        match elements(&of.ret) {
            Some((_, dims)) if dims.len() <= 2 => {
                let mut shape = dims.to_vec();
                shape.extend(argument);
                Some(of_shape(DType::Real, &shape))
            }
            _ => {
                let found = self.show(&of.ret);
                self.no_jacobian(written, format!("{} gives {found}", of.what))
            }
        }
    }

    pub(super) fn hessian_type(&mut self, written: Written<'_>, of: &Callable, wrt: &[usize]) -> Option<Ty> {
        let argument = self.array_parameter(written, of, wrt)?;
        let mut shape = argument.clone();
        shape.extend(argument);
        Some(of_shape(DType::Real, &shape))
    }

    /// The extents of the one parameter with respect to which.
    pub(super) fn array_parameter(&mut self, written: Written<'_>, of: &Callable, wrt: &[usize]) -> Option<Vec<Dim>> {
        let [i] = wrt else {
            return self.no_jacobian(written, "`wrt` names several parameters".to_owned());
        };
        match elements(&of.params[*i]) {
            Some((_, dims)) if dims.len() <= 2 => Some(dims.to_vec()),
            _ => {
                let found = self.show(&of.params[*i]);
                self.no_jacobian(written, format!("the parameter is {found}"))
            }
        }
    }

    pub(super) fn no_jacobian<T>(&mut self, written: Written<'_>, why: String) -> Option<T> {
        let name = written.op.name();
        let error = Diagnostic::error(
            "E0907",
            format!("`{name}` is of one real, vector or matrix by one real, vector or matrix: {why}"),
            written.span,
            "no array has this shape",
        );
        self.cx.report(error.with_help("take one at a time, or `vjp(f)(x, v)` and `jvp(f)(x, v)`"));
        None
    }
}
