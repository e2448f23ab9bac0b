//! Calls: of the program's own functions, which are run in their place, and of the library's.

use std::borrow::Cow;
use std::sync::Arc;

use super::flow::Flow;
use super::{MAX_CALLS, Result, Tracer, constants, unsupported, wrong};
use crate::base::Span;
use crate::stan::check::{CalledFunction, Level, parts};
use crate::stan::syntax::ast::{Expr, ExprKind, Function, Name, Stmt, Truncation};
use crate::stan::value::{Base, Kind, Val};

/// Whether a value may be given for a parameter of a kind, and how many promotions that takes.
fn promotions(value: Kind, wanted: Kind) -> Option<usize> {
    if value == wanted {
        return Some(0);
    }
    if value.arrays == wanted.arrays && value.base == Base::Int && matches!(wanted.base, Base::Real | Base::Complex) {
        return Some(if wanted.is_complex() { 2 } else { 1 });
    }
    (value.complex() == wanted).then_some(1)
}

impl<'a> Tracer<'a> {
    /// The function of the program that a call means.
    fn user_function(&self, name: &Name, args: &[Val]) -> Option<&'a Function> {
        let called = match self.checked.calls.get(&name.span).map(|called| &called.function) {
            Some(CalledFunction::User(found)) => self.functions.get(*found).copied(),
            _ => None,
        };
        // A truncation calls others than the density that its place names.
        called.filter(|f| f.name.text == name.text).or_else(|| self.fitting(&name.text, args))
    }

    /// The function of this name that takes arguments of these kinds with the fewest promotions.
    fn fitting(&self, name: &str, args: &[Val]) -> Option<&'a Function> {
        let cost = |f: &Function| {
            if *f.name.text != *name || f.params.len() != args.len() || f.body.is_none() {
                return None;
            }
            let each = f.params.iter().zip(args).map(|(p, a)| match Kind::of_type(&p.ty) {
                Some(kind) => promotions(a.kind, kind),
                None => a.is_tuple().then_some(0),
            });
            each.sum::<Option<usize>>()
        };
        let found = self.functions.iter().filter_map(|f| Some((cost(f)?, *f)));
        found.min_by_key(|(cost, _)| *cost).map(|(_, f)| f)
    }

    /// Whether the program has a function of this name.
    pub(super) fn has_function(&self, name: &str) -> bool {
        self.functions.iter().any(|f| *f.name.text == *name)
    }

    /// A call in an expression.
    pub(super) fn call(&mut self, span: Span, name: &Name, args: &[Expr]) -> Result<Val> {
        if let Some(value) = self.higher(span, &name.text, args)? {
            return Ok(value);
        }
        let values = args.iter().map(|e| self.eval_counted(e)).collect::<Result<Vec<_>>>()?;
        let values = self.with_complex(name, values);
        let own = self.has_function(&without_u(&name.text));
        let levels = if own { self.levels_of(args) } else { vec![] };
        let value = self.call_of(span, name, &values, levels)?;
        let Some(base) = name.text.strip_suffix("_lupdf").or_else(|| name.text.strip_suffix("_lupmf")) else {
            return Ok(value);
        };
        if !self.leaves_out || !self.unnormalized || own {
            return Ok(value);
        }
        let data = self.are_data(args);
        if values.iter().any(|v| v.counted().is_some()) {
            return self.density_left_out(span, &without_u(&name.text), base, &values, &data);
        }
        if leaves_out_all(base, &data) && !value.is_known() {
            return Ok(Val::real(0.0));
        }
        match self.constant_of(span, base, &values, &data, &value)? {
            0.0 => Ok(value),
            constant => self.infix(span, "-", &value, &Val::real(constant)),
        }
    }

    /// Arguments of a call, promoted where the function of the library that is meant takes complex numbers.
    fn with_complex(&self, name: &Name, values: Vec<Val>) -> Vec<Val> {
        let called = self.checked.calls.get(&name.span).map(|called| &called.function);
        let Some(CalledFunction::Library { params, .. }) = called else { return values };
        let kinds = params.iter().map(Kind::of_type).chain(std::iter::repeat(None));
        let promoted = values.into_iter().zip(kinds).map(|(value, kind)| match kind {
            Some(kind) if kind.is_complex() => value.of_kind(kind),
            _ => value,
        });
        promoted.collect()
    }

    /// A call with values, of which those that are known are data.
    pub(super) fn call_with(&mut self, span: Span, name: &Name, values: &[Val]) -> Result<Val> {
        let level = |value: &Val| if value.is_known() { Level::Data } else { Level::Parameter };
        self.call_of(span, name, values, values.iter().map(level).collect())
    }

    /// A call with values. Of a function of the program it matters which are data, to what densities in it leave out.
    pub(super) fn call_of(&mut self, span: Span, name: &Name, values: &[Val], levels: Vec<Level>) -> Result<Val> {
        let plain = without_u(&name.text);
        if self.has_function(&plain) {
            let own = Name { text: plain.as_ref().into(), span: name.span };
            let Some(function) = self.user_function(&own, values) else {
                return wrong(span, format!("no function `{}` takes these arguments", own.text));
            };
            let unnormalized = self.unnormalized;
            if own.text.ends_with("_lpdf") || own.text.ends_with("_lpmf") {
                self.unnormalized = own.text != name.text;
            }
            let value = self.inline(span, function, values, &levels);
            self.unnormalized = unnormalized;
            return match value? {
                Some(value) => Ok(value),
                None => wrong(span, format!("`{}` gives no value", own.text)),
            };
        }
        self.library(span, &plain, values)
    }

    /// A call for its effect.
    pub(super) fn call_void(&mut self, span: Span, name: &Name, args: &[Expr]) -> Result<()> {
        let values = args.iter().map(|e| self.eval_counted(e)).collect::<Result<Vec<_>>>()?;
        match self.user_function(name, &values) {
            Some(function) => {
                let levels = self.levels_of(args);
                self.inline(span, function, &values, &levels).map(|_| ())
            }
            None => unsupported(span, format!("`{}`", name.text)),
        }
    }

    /// Runs a function of the program.
    fn inline(&mut self, span: Span, function: &'a Function, args: &[Val], levels: &[Level]) -> Result<Option<Val>> {
        let Some(body) = &function.body else {
            return wrong(span, format!("`{}` has no body", function.name.text));
        };
        if self.depth >= MAX_CALLS {
            return unsupported(
                span,
                format!("more than {MAX_CALLS} calls inside one another, of `{}`", function.name.text),
            );
        }
        let mut given = Vec::with_capacity(args.len());
        for (param, arg) in function.params.iter().zip(args) {
            given.push(self.as_type(param.span, arg.clone(), &param.ty)?);
        }
        let value = self.enter(span, function, given, Levels::of(function, levels), |t, given, levels| {
            t.run_in_place(span, function, body, (given, levels))
        })?;
        match (&function.result, value) {
            (Some(ty), Some(value)) => self.as_type(span, value, ty).map(Some),
            (_, value) => Ok(value),
        }
    }

    fn run_in_place(
        &mut self,
        span: Span,
        function: &'a Function,
        body: &'a [Stmt],
        (args, levels): (&[Val], Levels),
    ) -> Result<Option<Val>> {
        let next = self.call_ids.len() as u32 + 1;
        let calls = *self.call_ids.entry((self.calls, span)).or_insert(next);
        let outer = std::mem::replace(&mut self.calls, calls);
        self.frames.push(vec![Arc::default()]);
        self.levels.push(levels);
        self.depth += 1;
        for (param, arg) in function.params.iter().zip(args) {
            self.bind(&param.name.text, arg.clone());
        }
        let flow = self.run(body);
        self.depth -= 1;
        self.levels.pop();
        self.frames.pop();
        self.calls = outer;
        match flow? {
            Flow::Return(value) => Ok(value),
            // Whoever comes to the end has not come there: a function that gives a value returns.
            Flow::Mixed(mixed) => Ok(mixed.result),
            _ if function.result.is_none() => Ok(None),
            _ => wrong(span, format!("`{}` ends without `return`", function.name.text)),
        }
    }

    /// `value ~ distribution(args) T[a, b];`
    pub(super) fn tilde(
        &mut self,
        span: Span,
        value: &Expr,
        distribution: &Name,
        args: &[Expr],
        truncation: Option<&Truncation>,
    ) -> Result<()> {
        let name =
            |suffix: &str| Name { text: format!("{}{suffix}", distribution.text).into(), span: distribution.span };
        let suffixes = ["_lpdf", "_lpmf"];
        let user = suffixes.iter().find(|s| self.has_function(&name(s).text));
        if user.is_none() && distribution.text.starts_with("laplace_") {
            // Stan leaves no constants out of them.
            let all: Vec<Expr> = std::iter::once(value).chain(args).cloned().collect();
            let density = self.laplace(span, &name("_lpmf").text, &all)?;
            return self.add_terms(span, &density);
        }
        let mut values = vec![self.eval_counted(value)?];
        for arg in args {
            values.push(self.eval_counted(arg)?);
        }
        let counted = values.iter().any(|v| v.counted().is_some());
        if let (true, Some(truncation)) = (counted, truncation) {
            return unsupported(truncation.span, "a truncation of elements whose number depends on parameters");
        }
        let suffix = match user {
            Some(suffix) => suffix,
            None if self.library_has(&name("_lpmf").text) => "_lpmf",
            None => "_lpdf",
        };
        let called = match (user, suffix) {
            (Some(_), "_lpdf") => name("_lupdf"),
            (Some(_), _) => name("_lupmf"),
            (None, suffix) => name(suffix),
        };
        let levels: Vec<Level> = std::iter::once(value).chain(args).map(|e| self.level(e)).collect();
        let data: Vec<bool> = levels.iter().map(Level::is_data).collect();
        let mut density = self.call_of(span, &called, &values, levels)?;
        if self.in_density && user.is_none() && self.unnormalized {
            if counted {
                if self.leaves_out {
                    density = self.density_left_out(span, &name(suffix).text, &distribution.text, &values, &data)?;
                }
                return self.add_terms(span, &density);
            }
            // Which of the data they are, lanes decide.
            if leaves_out_all(&distribution.text, &data)
                && !density.is_known()
                && self.leaves_out
                && truncation.is_none()
            {
                return Ok(());
            }
            let constant = self.constant_of(span, &distribution.text, &values, &data, &density)?;
            // Where lanes decide how often the statement runs, each run leaves it out.
            if self.guards.is_empty() && self.routines.depth == 0 {
                self.left_out += constant;
            } else if self.leaves_out && constant != 0.0 {
                density = match constant < 0.0 {
                    true => self.infix(span, "+", &density, &Val::real(-constant))?,
                    false => self.infix(span, "-", &density, &Val::real(constant))?,
                };
            }
        }
        self.add_terms(span, &density)?;
        match truncation {
            Some(truncation) => self.truncate(span, distribution, &values, truncation, suffix == "_lpmf"),
            None => Ok(()),
        }
    }

    /// Whether an expression is data: by its type, or in a function by the types that this call gives it.
    fn is_data(&self, expr: &Expr) -> bool {
        self.level(expr).is_data()
    }

    /// The levels of arguments.
    pub(super) fn levels_of(&self, args: &[Expr]) -> Vec<Level> {
        args.iter().map(|arg| self.level(arg)).collect()
    }

    /// Which of some arguments are data.
    fn are_data(&self, args: &[Expr]) -> Vec<bool> {
        args.iter().map(|arg| self.is_data(arg)).collect()
    }

    /// The level that an expression has in the call that is under way.
    fn level(&self, expr: &Expr) -> Level {
        let is_function = |name: &Name| self.value(&name.text).is_none();
        let Some(typed) = self.checked.types.get(&expr.span) else {
            let names = matches!(&expr.kind, ExprKind::Variable(name) if is_function(name));
            return if names { Level::Data } else { Level::Parameter };
        };
        let Some(levels) = self.levels.last().filter(|_| !typed.level.is_data()) else { return typed.level.clone() };
        let is_int = || Kind::of_type(&typed.ty).is_some_and(|kind| kind.is_int());
        if levels.locals || is_int() {
            return Level::Data;
        }
        match &expr.kind {
            ExprKind::Variable(name) => match levels.params.iter().find(|(param, _)| *param == name.text) {
                Some((_, level)) => level.clone(),
                None if is_function(name) => Level::Data,
                None => Level::Parameter,
            },
            ExprKind::Paren(inner) | ExprKind::Index { base: inner, .. } => self.level(inner),
            ExprKind::TupleField { base, index, .. } => match self.level(base) {
                Level::Tuple(parts) => parts.get(*index as usize - 1).cloned().unwrap_or(Level::Parameter),
                level => level,
            },
            ExprKind::Tuple(parts) => Level::Tuple(parts.iter().map(|part| self.level(part)).collect()),
            _ if parts(expr).into_iter().all(|part| self.is_data(part)) => Level::Data,
            _ => Level::Parameter,
        }
    }

    /// What a density without constants lacks.
    pub(super) fn constant_of(
        &mut self,
        span: Span,
        name: &str,
        args: &[Val],
        data: &[bool],
        density: &Val,
    ) -> Result<f64> {
        if data.iter().all(|d| *d) {
            return Ok(density.as_real().filter(|_| leaves_out_all(name, data)).unwrap_or(0.0));
        }
        let by_library = self.addend_by_library(span, name, args, data)?.unwrap_or(0.0);
        Ok(by_library + constants::left_out(name, args, data).unwrap_or(0.0))
    }

    /// An addend of a density that takes functions of the library.
    fn addend_by_library(&mut self, span: Span, name: &str, args: &[Val], data: &[bool]) -> Result<Option<f64>> {
        Ok(match (name, args) {
            ("von_mises", [y, mu, kappa]) if data[2] && args.iter().all(|arg| arg.len() > 0) => {
                let logs =
                    self.elementwise(span, "log_modified_bessel_first_kind", &[Val::real(0.0), kappa.clone()])?;
                let n = y.len().max(mu.len()).max(kappa.len());
                logs.reals().map(|logs| -logs.iter().sum::<f64>() * (n / kappa.len()) as f64)
            }
            ("wishart" | "inv_wishart", [y, _, scale]) if data[0] && data[2] => {
                let (of, by) = if name == "wishart" { (y, scale) } else { (scale, y) };
                let quotient = self.library(span, "mdivide_left_spd", &[by.clone(), of.clone()])?;
                self.library(span, "trace", &[quotient])?.as_real().map(|trace| -0.5 * trace)
            }
            ("neg_binomial_2_log_glm", [y, x, alpha, beta, _]) if data[1] && data[2] && data[3] => {
                let location = self.regression(span, x, alpha, beta)?;
                let y = if y.is_scalar() { y.promoted() } else { Val { kind: location.kind, ..y.promoted() } };
                let products = self.infix(span, "*", &y, &location)?;
                products.reals().map(|products| products.iter().sum())
            }
            _ => None,
        })
    }
}

/// What is data in a call of a function of the program. Stan compiles a function for each combination of types.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Levels {
    /// Its parameters, and whether they are given data.
    params: Vec<(Arc<str>, Level)>,
    /// Whether its own variables are data, where they are no ints: they have the type that holds all arguments.
    locals: bool,
}

impl Levels {
    /// Of a call with arguments of these levels.
    pub(super) fn of(function: &Function, args: &[Level]) -> Self {
        let names = function.params.iter().map(|param| param.name.text.clone());
        Self { params: names.zip(args.iter().cloned()).collect(), locals: args.iter().all(Level::is_data) }
    }
}

/// Whether a density is left out as a whole: one of data alone.
pub(super) fn leaves_out_all(name: &str, data: &[bool]) -> bool {
    data.iter().all(|d| *d) && !constants::KEPT.contains(&name)
}

/// The name of the density that keeps all constants: constants are no matter of what lanes compute.
pub(super) fn without_u(name: &str) -> Cow<'_, str> {
    for (with, without) in [("_lupdf", "_lpdf"), ("_lupmf", "_lpmf")] {
        if let Some(stem) = name.strip_suffix(with) {
            return format!("{stem}{without}").into();
        }
    }
    name.into()
}
