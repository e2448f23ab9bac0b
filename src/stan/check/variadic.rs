//! Functions that take a function and further arguments for it: ODE solvers, algebraic solvers, `reduce_sum`.

use std::sync::LazyLock;

use crate::base::Diagnostic;
use crate::stan::syntax::ast::{Expr, ExprKind, Name, UnsizedType};

use super::call::call_level;
use super::context::{Checker, normalized};
use super::resolve::{Candidate, Depth, Mismatch, Value, Why, arguments_fit, cheapest, given};
use super::signatures::SLICED;
use super::types::{FunctionType, Parameter, Suffix, Type, spelled, unwound, wound};
use super::{Called, CalledFunction, laplace};

/// What such a function wants.
pub(super) struct Variadic {
    /// The first parameters of the function that it takes.
    callback: Vec<Parameter>,
    callback_result: UnsizedType,
    /// Its own arguments between the function and those that are handed on.
    control: Vec<Parameter>,
    result: UnsizedType,
}

/// Names, first parameters of the callback and its result, control arguments, result.
type Row = (&'static [&'static str], &'static str, UnsizedType, &'static str, UnsizedType);

static TABLE: LazyLock<Vec<(&'static str, Variadic)>> = LazyLock::new(|| {
    use UnsizedType::{Real, Vector};
    let path = || wound(Vector, 1);
    let rows: Vec<Row> = vec![
        (&["ode_bdf", "ode_rk45", "ode_adams", "ode_ckrk"], "rv", Vector, "vra", path()),
        (&["ode_bdf_tol", "ode_rk45_tol", "ode_adams_tol", "ode_ckrk_tol"], "rv", Vector, "vraRRI", path()),
        (&["ode_adjoint_tol_ctl"], "rv", Vector, "vraRVRVRRIIIII", path()),
        (&["dae"], "rvv", Vector, "vvRA", path()),
        (&["dae_tol"], "rvv", Vector, "vvRARRI", path()),
        (&["solve_newton", "solve_powell"], "v", Vector, "v", Vector),
        (&["solve_newton_tol", "solve_powell_tol"], "v", Vector, "vRRI", Vector),
        (&["integrate_1d_gauss_kronrod", "integrate_1d_double_exponential"], "rr", Real, "rr", Real),
        (&["integrate_1d_gauss_kronrod_tol", "integrate_1d_double_exponential_tol"], "rr", Real, "rrRRI", Real),
    ];
    let params = |letters: &str| letters.chars().map(param).collect::<Vec<_>>();
    let entries = |(names, callback, callback_result, control, result): Row| {
        names.iter().map(move |name| {
            let (callback, control) = (params(callback), params(control));
            let (callback_result, result) = (callback_result.clone(), result.clone());
            (*name, Variadic { callback, callback_result, control, result })
        })
    };
    rows.into_iter().flat_map(entries).collect()
});

/// `r` real, `v` vector, `a` array of real, `I` int; a capital letter is data only.
fn param(letter: char) -> Parameter {
    let ty = match letter.to_ascii_lowercase() {
        'r' => UnsizedType::Real,
        'v' => UnsizedType::Vector,
        'a' => wound(UnsizedType::Real, 1),
        _ => UnsizedType::Int,
    };
    Parameter { data_only: letter.is_ascii_uppercase(), ty: Type::Value(ty) }
}

/// What the function of this name wants, if it takes a function and further arguments for it.
pub(super) fn signature(name: &str) -> Option<&'static Variadic> {
    TABLE.iter().find(|(of, _)| *of == name).map(|(_, variadic)| variadic)
}

/// Whether it is `reduce_sum` or its kin.
pub(super) fn is_reduce_sum(name: &str) -> bool {
    matches!(name, "reduce_sum" | "reduce_sum_static")
}

/// Functions that a program cannot overload.
pub(super) fn is_special(name: &str) -> bool {
    signature(name).is_some() || is_reduce_sum(name) || laplace::is_laplace(name)
}

/// Names of functions that a program cannot overload.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| *name).chain(["reduce_sum", "reduce_sum_static"]).chain(laplace::NAMES)
}

/// What a callback was compared with, and how it differs.
struct Refusal {
    expected: FunctionType,
    mismatch: Mismatch,
}

impl Checker {
    /// `ode_rk45(f, y0, t0, ts, theta, …)`
    pub(super) fn variadic(&mut self, name: &Name, args: &[Expr], values: &[Value]) -> Option<Value> {
        let wanted = signature(&name.text).expect("it is one of these functions");
        let candidate = self.callback(name, args, values, wanted, false)?;
        self.record_callback(&args[0], &candidate);
        self.record_library(name);
        Some(Value::new(wanted.result.clone(), call_level(&wanted.result, values)))
    }

    /// `reduce_sum(f, xs, grainsize, …)`
    pub(super) fn reduce_sum(&mut self, name: &Name, args: &[Expr], values: &[Value]) -> Option<Value> {
        if let Some(slice) = values.get(1)
            && matches!(args[0].kind, ExprKind::Variable(_))
        {
            self.check_slice(name, &args[1], slice)?;
        }
        let any = Type::Value(wound(UnsizedType::Real, 1));
        let sliced = values.get(1).map_or(any, |slice| slice.ty.clone());
        let slice = Parameter { data_only: false, ty: sliced };
        let wanted = Variadic {
            callback: vec![slice.clone(), param('I'), param('I')],
            callback_result: UnsizedType::Real,
            control: vec![slice, param('i')],
            result: UnsizedType::Real,
        };
        let candidate = self.callback(name, args, values, &wanted, true)?;
        self.record_callback(&args[0], &candidate);
        self.record_library(name);
        Some(Value::new(UnsizedType::Real, call_level(&UnsizedType::Real, values)))
    }

    fn check_slice(&mut self, name: &Name, arg: &Expr, slice: &Value) -> Option<()> {
        let (element, axes) = slice.ty.value().map_or((None, 0), |ty| (Some(unwound(ty).0), unwound(ty).1));
        if axes > 0 && element.is_some_and(|element| SLICED.contains(element)) {
            return Some(());
        }
        let message = format!("`{}` slices an array of real, int, vector, row_vector or matrix", name.text);
        self.error("E2310", message, arg.span, format!("this is {}", slice.ty))
    }

    /// The function that the first argument means, when it takes what it will be given.
    fn callback(
        &mut self,
        name: &Name,
        args: &[Expr],
        values: &[Value],
        wanted: &Variadic,
        slices: bool,
    ) -> Option<Candidate> {
        let Some(ExprKind::Variable(function)) = args.first().map(|arg| &arg.kind) else {
            let message = format!("the first argument of `{}` must be the name of a function", name.text);
            let span = args.first().map_or(name.span, |arg| arg.span);
            let error = Diagnostic::error("E2310", message, span, "this is none");
            self.report(error.with_note(format!("it takes {}", expected_callback(wanted))));
            return None;
        };
        let mut fitting = Vec::new();
        let mut refused = None;
        for candidate in self.scope.functions(&normalized(&function.text)) {
            // A sliced argument has the type that the function wants: it is promoted to that.
            let own = slices.then(|| candidate.function.params.first()).flatten();
            let fits = match own {
                Some(first) => fit(&wanted.with_slice(first), candidate, values, true),
                None => fit(wanted, candidate, values, slices),
            };
            match fits {
                Ok(cost) => fitting.push((cost, candidate.clone())),
                Err(refusal) => refused = refused.or(Some(refusal)),
            }
        }
        let mut best = cheapest(fitting);
        if best.len() == 1 {
            return Some(best.remove(0));
        }
        if best.is_empty() {
            self.refused(name, function, args, wanted, refused);
            return None;
        }
        let message = format!("several functions `{}` fit `{}` equally well", function.text, name.text);
        let error = Diagnostic::error("E2203", message, function.span, "none is better than the others");
        let error = best.iter().fold(error, |error, c| error.with_note(c.function.to_string()));
        self.report(error);
        None
    }

    fn refused(&mut self, name: &Name, function: &Name, args: &[Expr], wanted: &Variadic, refusal: Option<Refusal>) {
        let Some(Refusal { expected, mismatch }) = refusal else {
            let message = format!("`{}` takes a function of this program", name.text);
            let error = Diagnostic::error("E2310", message, function.span, format!("`{}` is none", function.text));
            self.report(error.with_note(format!("it takes {}", expected_callback(wanted))));
            return;
        };
        let at = match &mismatch {
            Mismatch::Argument { at, .. } => args.get(*at).map(|arg| arg.span),
            Mismatch::Count { wanted, found } if wanted < found => args.get(*wanted).map(|arg| arg.span),
            Mismatch::Count { .. } => None,
        };
        let message = format!("`{}` does not take these arguments with `{}`", name.text, function.text);
        let error = Diagnostic::error("E2310", message, at.unwrap_or(name.span), mismatch.describe(0));
        let error = error.with_note(format!("with this function it takes {expected}"));
        let local = "local variables count as parameters, and so do parameters of functions without `data` before them";
        self.report(match mismatch {
            Mismatch::Argument { why: Why::NotData, .. } => error.with_help(local),
            _ => error,
        });
    }

    /// Records which function an argument means.
    pub(super) fn record_callback(&mut self, arg: &Expr, candidate: &Candidate) {
        if let ExprKind::Variable(name) = &arg.kind {
            self.record(name, &normalized(&name.text), candidate);
        }
    }

    /// Records that a name means a function of the library that takes functions.
    pub(super) fn record_library(&mut self, name: &Name) {
        let stem = normalized(&name.text);
        self.warn_lacking(name, &stem, &[]);
        let function = CalledFunction::Library { name: stem, params: Vec::new() };
        let unnormalized = super::context::is_unnormalized(&name.text);
        self.checked.calls.insert(name.span, Called { function, unnormalized });
    }
}

impl Variadic {
    /// The same with another sliced argument.
    fn with_slice(&self, slice: &Parameter) -> Variadic {
        let replaced = |params: &[Parameter]| {
            let mut params = params.to_vec();
            params[0] = slice.clone();
            params
        };
        Variadic {
            callback: replaced(&self.callback),
            callback_result: self.callback_result.clone(),
            control: replaced(&self.control),
            result: self.result.clone(),
        }
    }
}

/// The least function that one takes.
fn least_callback(wanted: &Variadic) -> FunctionType {
    let result = Some(wanted.callback_result.clone());
    FunctionType { params: wanted.callback.clone(), result, suffix: Suffix::Plain }
}

fn expected_callback(wanted: &Variadic) -> String {
    let control: Vec<String> = wanted.control.iter().map(|p| p.ty.to_string()).collect();
    let callback: Vec<String> = wanted.callback.iter().map(|p| p.ty.to_string()).collect();
    format!(
        "a function ({}, …) => {}, then {}, then what … is",
        callback.join(", "),
        spelled(&wanted.callback_result),
        control.join(", "),
    )
}

/// Whether a function can be called back with what comes after the control arguments.
fn fit(wanted: &Variadic, candidate: &Candidate, values: &[Value], slices: bool) -> Result<usize, Refusal> {
    let function = &candidate.function;
    let refuse = |why: Why| Refusal {
        expected: FunctionType {
            params: std::iter::once(Parameter { data_only: false, ty: callback_type(wanted) })
                .chain(wanted.control.clone())
                .collect(),
            result: Some(wanted.result.clone()),
            suffix: Suffix::Plain,
        },
        mismatch: Mismatch::Argument { at: 0, why },
    };
    if function.result.is_none() {
        let found = function.result.clone();
        return Err(refuse(Why::Result { wanted: Some(wanted.callback_result.clone()), found }));
    }
    let allowed =
        function.suffix == Suffix::Plain || (slices && matches!(function.suffix, Suffix::Density | Suffix::Mass));
    if !allowed {
        return Err(refuse(Why::Suffix { wanted: Suffix::Plain, found: function.suffix }));
    }
    let own = function.params.len().min(wanted.callback.len());
    let (mandatory, rest) = function.params.split_at(own);
    let handed: Vec<Value> = wanted.callback.iter().map(given).collect();
    if let Err(mismatch) = arguments_fit(Depth::Function, mandatory, &handed) {
        let (wanted, found) = (callback_type(wanted), Type::Function(function.clone()));
        return Err(refuse(Why::Inputs { wanted, found, mismatch: Box::new(mismatch) }));
    }
    if function.result.as_ref() != Some(&wanted.callback_result) {
        let found = function.result.clone();
        return Err(refuse(Why::Result { wanted: Some(wanted.callback_result.clone()), found }));
    }
    let itself = Parameter { data_only: false, ty: Type::Function(function.clone()) };
    let expected: Vec<Parameter> =
        std::iter::once(itself.clone()).chain(wanted.control.iter().cloned()).chain(rest.iter().cloned()).collect();
    let mut given_values = values.to_vec();
    // Which overload is meant follows from the others: the first fits by definition.
    given_values[0].ty = itself.ty;
    arguments_fit(Depth::Call, &expected, &given_values).map_err(|mismatch| Refusal {
        expected: FunctionType { params: expected, result: Some(wanted.result.clone()), suffix: Suffix::Plain },
        mismatch,
    })
}

fn callback_type(wanted: &Variadic) -> Type {
    Type::Function(std::sync::Arc::new(least_callback(wanted)))
}
