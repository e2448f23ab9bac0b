//! Functions of Stan's library that take functions of the program: solvers, whose functions become closures, and sums in
//! parts, which are calls.

use std::sync::Arc;

use super::supports::shown;
use super::{Result, Tracer, unsupported, wrong};
use crate::base::Span;
use crate::stan::check::Level;
use crate::stan::emit::{Emitter, Line, simplified};
use crate::stan::graph::{Graph, Op};
use crate::stan::syntax::ast::{Expr, ExprKind, Name};
use crate::stan::value::{Base, Elem, Kind, Val, What};

/// Values for a function that a solver calls: what lanes compute of them is packed into one vector.
pub(super) struct Packed {
    args: Vec<Val>,
    /// The vector; at its end whether the conditions hold under which the call stands, where there are some.
    pub(super) theta: Val,
    has_condition: bool,
}

impl Packed {
    /// The arguments of a call under these conditions.
    pub(super) fn new(args: Vec<Val>, on: Option<Val>) -> Packed {
        let mut elems = Vec::new();
        args.iter().for_each(|arg| pack(arg, &mut elems));
        if let Some(on) = &on {
            elems.push(on.elem(0).as_real());
        }
        let theta = Val::from_elems(Kind::VECTOR, vec![elems.len()], elems);
        Packed { args, theta, has_condition: on.is_some() }
    }

    /// Runs a function on the values, those of lanes taken from this vector: it is told under which conditions it stands, so
    /// that what it rejects rejects no lane that does not come to the call.
    pub(super) fn within<T>(
        &self,
        (tracer, span): (&mut Tracer<'_>, Span),
        theta: &Val,
        run: impl FnOnce(&mut Tracer<'_>, Vec<Val>) -> Result<T>,
    ) -> Result<T> {
        let mut at = 0;
        let given = self.args.iter().map(|arg| unpack(arg, theta, &mut at)).collect();
        if !self.has_condition {
            return run(tracer, given);
        }
        let on = theta.pick(Kind::REAL, vec![], at..at + 1);
        let on = tracer.compare(span, ">", &on, &Val::real(0.5))?;
        tracer.guarded(&on, |tracer| run(tracer, given))
    }
}

/// The elements of what lanes know of a value.
fn pack(arg: &Val, elems: &mut Vec<Elem>) {
    if arg.is_known() {
        return;
    }
    match arg.parts() {
        Some(parts) => parts.iter().for_each(|part| pack(part, elems)),
        None => elems.extend(arg.elems().into_iter().map(Elem::as_real)),
    }
}

/// The same value, with those elements taken from a vector.
fn unpack(arg: &Val, theta: &Val, at: &mut usize) -> Val {
    if arg.is_known() {
        return arg.clone();
    }
    if let Some(parts) = arg.parts() {
        let parts = parts.iter().map(|part| unpack(part, theta, at)).collect();
        return Val { what: What::Parts(Arc::new(parts)), ..arg.clone() };
    }
    let first = *at;
    *at += arg.len();
    let base = if arg.kind.is_int() { Base::Real } else { arg.kind.base };
    theta.pick(Kind { base, ..arg.kind }, arg.shape.clone(), first..*at)
}

/// The tolerances and the number of steps of a solver.
struct Control {
    relative: Val,
    absolute: Val,
    steps: Val,
}

impl<'a> Tracer<'a> {
    /// A call of a function that takes functions; `None` for any other.
    pub(super) fn higher(&mut self, span: Span, name: &str, args: &[Expr]) -> Result<Option<Val>> {
        if self.has_function(name) {
            return Ok(None);
        }
        if let Some(method) = name.strip_prefix("integrate_ode") {
            return self.old_ode(span, method.trim_start_matches('_'), args).map(Some);
        }
        if let Some(method) = name.strip_prefix("ode_") {
            return self.ode(span, method, args).map(Some);
        }
        match name {
            "reduce_sum" | "reduce_sum_static" => {
                let (function, values) = self.function_and_values(span, args)?;
                let (all, rest) = values.split_first().ok_or_else(|| missing(span))?;
                if all.len() == 0 {
                    return Ok(Some(Val::real(0.0)));
                }
                let n = Val::int(all.shape[0] as i64);
                let given: Vec<Val> =
                    [all.clone(), Val::int(1), n].into_iter().chain(rest[1..].iter().cloned()).collect();
                // Of the array and the grain size, then the others; the ends of a part are ints.
                let mut levels = self.levels_of(&args[1..]);
                levels.splice(1..2, [Level::Data, Level::Data]);
                self.call_of(span, &function, &given, levels).map(Some)
            }
            "map_rect" => self.map_rect(span, args).map(Some),
            _ if name.starts_with("integrate_1d") => self.integral(span, name, args).map(Some),
            "algebra_solver"
            | "algebra_solver_newton"
            | "solve_newton"
            | "solve_powell"
            | "solve_newton_tol"
            | "solve_powell_tol" => self.root(span, name, args).map(Some),
            _ if name.starts_with("laplace_") => self.laplace(span, name, args).map(Some),
            _ if name.starts_with("dae") => unsupported(span, format!("`{name}`")),
            _ => Ok(None),
        }
    }

    fn function_and_values(&mut self, span: Span, args: &[Expr]) -> Result<(Name, Vec<Val>)> {
        let Some((Expr { kind: ExprKind::Variable(function), .. }, rest)) = args.split_first() else {
            return wrong(span, "the first argument is the name of a function");
        };
        let values = rest.iter().map(|e| self.eval(e)).collect::<Result<Vec<_>>>()?;
        Ok((function.clone(), values))
    }

    fn map_rect(&mut self, span: Span, args: &[Expr]) -> Result<Val> {
        let (function, values) = self.function_and_values(span, args)?;
        let [shared, each, reals, ints] = &values[..] else { return wrong(span, "map_rect wants four values") };
        let mut elems = Vec::new();
        for i in 0..each.shape[0] {
            let row = |v: &Val| {
                let size = v.len() / v.shape[0].max(1);
                v.pick(v.kind.element(), v.shape[1..].to_vec(), i * size..(i + 1) * size)
            };
            let given = [shared.clone(), row(each), row(reals), row(ints)];
            elems.extend(self.call_with(span, &function, &given)?.elems());
        }
        Ok(Val::from_elems(Kind::VECTOR, vec![elems.len()], elems))
    }

    /// `integrate_ode_rk45(f, y0, t0, ts, theta, x_r, x_i[, rtol, atol, steps])`
    fn old_ode(&mut self, span: Span, method: &str, args: &[Expr]) -> Result<Val> {
        let method = if method.is_empty() { "rk45" } else { method };
        let (function, mut values) = self.function_and_values(span, args)?;
        let control = if values.len() > 6 {
            let mut rest = values.split_off(6).into_iter();
            let mut next = || rest.next().ok_or_else(|| missing(span));
            Control { relative: next()?, absolute: next()?, steps: next()? }
        } else {
            control(method)
        };
        let rest = values.split_off(3);
        let solved = self.solved(span, method, &function, &values, control, rest)?;
        Ok(Val { kind: Kind { base: Base::Real, arrays: 2 }, ..solved })
    }

    /// `ode_rk45(f, y0, t0, ts, …)`, `ode_rk45_tol(f, y0, t0, ts, rtol, atol, steps, …)`
    fn ode(&mut self, span: Span, method: &str, args: &[Expr]) -> Result<Val> {
        let (function, mut values) = self.function_and_values(span, args)?;
        let mut rest = values.split_off(3.min(values.len()));
        let (method, control) = match method.strip_suffix("_tol") {
            Some(method) if rest.len() >= 3 => {
                let args = rest.split_off(3);
                let mut given = std::mem::replace(&mut rest, args).into_iter();
                let mut next = || given.next().ok_or_else(|| missing(span));
                (method, Control { relative: next()?, absolute: next()?, steps: next()? })
            }
            _ if method == "adjoint_tol_ctl" && rest.len() >= 11 => {
                // Stan solves another system backwards for derivatives, with tolerances of its own; here they are those
                // of the steps forward.
                let args = rest.split_off(11);
                let given = std::mem::replace(&mut rest, args);
                let absolute = self.library(span, "min", std::slice::from_ref(&given[1]))?;
                ("bdf", Control { relative: given[0].clone(), absolute, steps: given[6].clone() })
            }
            _ => (method, control(method)),
        };
        if !["rk45", "ckrk", "bdf", "adams"].contains(&method) {
            return unsupported(span, format!("`ode_{method}`"));
        }
        self.solved(span, method, &function, &values, control, rest)
    }

    fn solved(
        &mut self,
        span: Span,
        method: &str,
        function: &Name,
        problem: &[Val],
        control: Control,
        rest: Vec<Val>,
    ) -> Result<Val> {
        let [y0, t0, ts] = problem else { return wrong(span, "a solver wants a state, a time, and times") };
        self.check_solver(span, method, (t0, ts), &control)?;
        // The stiff method serves for both of CVODES.
        let name = format!("ode_{method}");
        let method = if method == "adams" { "bdf" } else { method };
        let state = if y0.kind.base == Base::Vector { Kind::VECTOR } else { Kind { base: Base::Real, arrays: 1 } };
        let (n, m) = (y0.len(), ts.len());
        let packed = Packed::new(rest, self.on(span)?);
        let k = packed.theta.len();
        let inputs = [("t", Kind::REAL, vec![]), ("y", state, vec![n]), ("p", Kind::VECTOR, vec![k])];
        let closure = self.closure(span, &inputs, |tracer, inputs| {
            let [t, y, p] = inputs else { unreachable!("three inputs were asked for") };
            let mut given = vec![t.clone(), y.clone()];
            packed.within((tracer, span), p, |tracer, rest| {
                given.extend(rest);
                tracer.call_with(span, function, &given)
            })
        })?;
        let y0 = Val { kind: Kind::VECTOR, ..y0.promoted() };
        let ts = Val { kind: Kind::VECTOR, ..ts.promoted() };
        let known = y0.is_known() && t0.is_known() && ts.is_known();
        let variant = match (known, k) {
            (true, 0) => "_values",
            (true, _) => "_of_data",
            _ => "",
        };
        let called: Arc<str> = format!("ode_{method}{variant}_tol").into();
        let Control { relative, absolute, steps } = control;
        // Old programs give the number of steps as a real.
        let steps = steps.as_real().map_or(steps.clone(), |n| Val::int(n as i64));
        let most = steps.as_int().map_or(String::new(), |n| format!(" ({n})"));
        let args = [y0, t0.promoted(), ts, relative.promoted(), absolute.promoted(), steps, packed.theta.promoted()];
        let kind = Kind { base: Base::Vector, arrays: 1 };
        let solved = self.node(span, Op::CallWith(called, closure), &args, kind, vec![m, n])?;
        // From where a solver fails on states are NaN.
        let last = solved.pick(Kind::VECTOR, vec![n], (m.saturating_sub(1)) * n..m * n);
        let why = format!(
            "{name}: failed to integrate to the next output time in less than max_num_steps{most} steps, or with a \
             right-hand side that is not a number"
        );
        self.demand_number(span, &last, &why)?;
        Ok(solved)
    }

    /// Demands that what a solver gives is a number: it is NaN where it fails, and Stan rejects there.
    fn demand_number(&mut self, span: Span, x: &Val, why: &str) -> Result<()> {
        if x.len() == 0 {
            return Ok(());
        }
        let sizes = self.elementwise(span, "abs", std::slice::from_ref(x))?;
        let most = if sizes.is_scalar() { sizes } else { self.library(span, "max", &[sizes])? };
        let holds = self.compare(span, "<=", &most, &Val::real(f64::INFINITY))?;
        self.check(span, &holds, why)
    }

    /// Demands of known times and controls of a solver what Stan demands.
    fn check_solver(&mut self, span: Span, method: &str, (t0, ts): (&Val, &Val), control: &Control) -> Result<()> {
        let mut refusal = None;
        if let Some(times) = ts.reals() {
            let falls = times.windows(2).position(|pair| pair[0] > pair[1]);
            refusal = match (falls, times.first(), t0.as_real()) {
                (_, None, _) => Some("times has size 0, but must have a non-zero size".to_owned()),
                (Some(at), ..) => Some(format!(
                    "times is not a valid sorted vector. The element at {} is {}, but should be greater than or equal to \
                     the previous element, {}",
                    at + 2,
                    shown(times[at + 1]),
                    shown(times[at])
                )),
                (None, Some(first), Some(t0)) if t0 >= *first => {
                    Some(format!("initial time is {}, but must be less than {}", shown(t0), shown(*first)))
                }
                _ => None,
            };
        }
        let controls = [("relative_tolerance", &control.relative), ("absolute_tolerance", &control.absolute)];
        let controls = controls.into_iter().chain([("max_num_steps", &control.steps)]);
        let known = controls.filter_map(|(name, value)| Some((name, value.as_real()?)));
        let wrong = known.into_iter().find(|(_, x)| !(*x > 0.0 && x.is_finite()));
        let wrong = wrong.map(|(name, x)| format!("{name} is {}, but must be positive finite!", shown(x)));
        match refusal.or(wrong) {
            Some(refusal) => self.check(span, &Val::bool(false), &format!("ode_{method}: {refusal}")),
            None => Ok(()),
        }
    }

    /// `integrate_1d(f, a, b, theta, x_r, x_i[, tolerance])`, and its kin of any arguments, whose `_tol` have their relative
    /// tolerance, the absolute one and a depth before them.
    fn integral(&mut self, span: Span, name: &str, args: &[Expr]) -> Result<Val> {
        let (function, mut values) = self.function_and_values(span, args)?;
        let mut tolerance = if name == "integrate_1d" && values.len() > 5 { values.pop() } else { None };
        let mut rest = values.split_off(2.min(values.len()));
        if name.ends_with("_tol") && rest.len() >= 3 {
            tolerance = Some(rest.remove(0));
            rest.drain(..2);
        }
        let packed = Packed::new(rest, self.on(span)?);
        let inputs =
            [("x", Kind::REAL, vec![]), ("xc", Kind::REAL, vec![]), ("p", Kind::VECTOR, vec![packed.theta.len()])];
        let closure = self.closure(span, &inputs, |tracer, inputs| {
            let [x, xc, p] = inputs else { unreachable!("three inputs were asked for") };
            let mut given = vec![x.clone(), xc.clone()];
            packed.within((tracer, span), p, |tracer, rest| {
                given.extend(rest);
                tracer.call_with(span, &function, &given)
            })
        })?;
        let tolerance = tolerance.unwrap_or_else(|| Val::real(f64::EPSILON.sqrt()));
        let ends = values.iter().map(Val::promoted);
        let args: Vec<Val> = ends.chain([packed.theta, tolerance]).collect();
        if let (Some(a), Some(b)) = (args[0].as_real(), args[1].as_real())
            && a > b
        {
            let message =
                format!("{name}: lower limit is {}, but must be less than or equal to {}", shown(a), shown(b));
            return self.check(span, &Val::bool(false), &message).map(|()| Val::real(f64::NAN));
        }
        let integral = self.node(span, Op::CallWith("integrate_1d_tol".into(), closure), &args, Kind::REAL, vec![])?;
        let why = format!(
            "{name}: error estimate of integral exceeds the given relative tolerance times norm of integral, or the \
             integrand is not finite"
        );
        self.demand_number(span, &integral, &why)?;
        Ok(integral)
    }

    /// `algebra_solver(f, guess, theta, x_r, x_i[, …])`, `solve_newton(f, guess, …)` and its kin.
    fn root(&mut self, span: Span, name: &str, args: &[Expr]) -> Result<Val> {
        let (function, mut values) = self.function_and_values(span, args)?;
        let old = name.starts_with("algebra_solver");
        let newton = name.contains("newton");
        let mut rest = values.split_off(1.min(values.len()));
        let guess = values.pop().ok_or_else(|| missing(span))?;
        let mut control = if newton {
            vec![Val::real(1e-3), Val::real(1e-6), Val::int(200)]
        } else {
            vec![Val::real(1e-10), Val::real(1e-6), Val::int(200)]
        };
        if old && rest.len() > 3 {
            control = rest.split_off(3);
        } else if name.ends_with("_tol") && rest.len() >= 3 {
            let args = rest.split_off(3);
            control = std::mem::replace(&mut rest, args);
        }
        let packed = Packed::new(rest, self.on(span)?);
        let n = guess.len();
        let inputs = [("y", Kind::VECTOR, vec![n]), ("p", Kind::VECTOR, vec![packed.theta.len()])];
        let closure = self.closure(span, &inputs, |tracer, inputs| {
            let [y, p] = inputs else { unreachable!("two inputs were asked for") };
            let mut given = vec![y.clone()];
            packed.within((tracer, span), p, |tracer, rest| {
                given.extend(rest);
                tracer.call_with(span, &function, &given)
            })
        })?;
        let called = if newton { "solve_newton_tol" } else { "solve_powell_tol" };
        let mut args = vec![guess.promoted()];
        args.extend(control);
        args.push(packed.theta);
        let most = args[3].as_real().map_or(String::new(), |n| format!(" ({n})"));
        let root = self.node(span, Op::CallWith(called.into(), closure), &args, Kind::VECTOR, vec![n])?;
        let why = format!(
            "{name}: maximum number of iterations{most} was exceeded in the solve, or no step makes the function smaller"
        );
        self.demand_number(span, &root, &why)?;
        Ok(root)
    }

    /// A closure of these inputs, as text: what it computes is a graph of its own.
    pub(super) fn closure(
        &mut self,
        span: Span,
        inputs: &[(&str, Kind, Vec<usize>)],
        body: impl FnOnce(&mut Self, &[Val]) -> Result<Val>,
    ) -> Result<Arc<str>> {
        let number = self.closures;
        self.closures += 1;
        let prefix: Arc<str> = format!("f{number}_").into();
        let inner = Graph::of(self.graph.of_many);
        let outer = std::mem::replace(&mut self.graph, inner);
        let (turn, guards) =
            (std::mem::replace(&mut self.turn, crate::stan::graph::TurnId(0)), std::mem::take(&mut self.guards));
        let mut values = Vec::new();
        let mut params = Vec::new();
        for (name, kind, shape) in inputs {
            let name = format!("{prefix}{name}");
            let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
            params.push(if shape.is_empty() {
                format!("{name}: real")
            } else {
                format!("{name}: real[{}]", extents.join(", "))
            });
            values.push(self.node(span, Op::Input(name.as_str().into()), &[], *kind, shape.clone())?);
        }
        let result = body(self, &values);
        let mut graph = std::mem::replace(&mut self.graph, outer);
        (self.turn, self.guards) = (turn, guards);
        let result = [result?.promoted()];
        simplified(&mut graph, &result, &[]);
        let mut emitter = Emitter::new(&graph, &result, &[], &prefix);
        emitter.write();
        let last = emitter.result(&result[0]);
        let (lines, tables) = emitter.into_parts();
        self.graph.tables.extend(tables);
        let body: Vec<String> = lines.into_iter().map(Line::marked).chain([last]).collect();
        Ok(format!("|{}| {{ {} }}", params.join(", "), body.join(" ")).into())
    }
}

pub(super) fn missing(span: Span) -> Box<super::Problem> {
    wrong::<()>(span, "an argument is missing").expect_err("it is one")
}

/// What Stan takes where a program says nothing.
fn control(method: &str) -> Control {
    let (tolerance, steps) = if matches!(method, "rk45" | "ckrk") { (1e-6, 1_000_000) } else { (1e-10, 100_000_000) };
    Control { relative: Val::real(tolerance), absolute: Val::real(tolerance), steps: Val::int(steps) }
}
