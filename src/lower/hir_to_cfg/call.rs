//! Calls, function values, and the start of a function: how values become parameters and back.

use indexmap::IndexSet;

use super::derivative::Facts;
use super::func::{Lowered, Lowering};
use super::instance::{Closure, Code, DerivativeOf, ElementOf, Instance, Lambda, Made, Specialiser};
use super::ragged::Padding;
use super::signature::{extent_error, layout_at};
use super::value::{ClosureId, Dims, Form, FunctionValue, Layout, Value};
use super::walk;
use crate::base::{Diagnostic, Span};
use crate::cfg::{Func, FuncId, Operand, Terminator, VarId};
use crate::hir::{Callee, Dim, Expr, ExprKind, FnId, LocalId, Reduction, Ty};
use crate::transform::derivative::Mode;
use crate::types::Type;

/// A function that was asked for, and how it is called.
pub(super) struct Asked {
    pub(super) func: FuncId,
    pub(super) operands: Vec<Operand>,
    /// Where the operands of each argument start, and where those of the last one end: captured values follow.
    pub(super) starts: Vec<usize>,
}

/// How the value of an argument or a capture reaches the callee.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passing {
    /// As parameters.
    ByValue,
    /// What is the same for all lanes is known to the callee, the rest comes as parameters.
    Captured,
    /// Known to the callee: it must be the same for all lanes.
    Shared,
}

impl<'a> Lowering<'_, 'a> {
    /// A function of the program as a value.
    pub(super) fn function_value(&mut self, id: FnId, dims: &[Dim]) -> Lowered<Value> {
        let applied = self.dims.apply(dims);
        let (dims, sources) =
            applied.map_err(|problem| extent_error(problem, &self.home.dims, &self.dims, self.span()))?;
        self.check_bounds(id, &dims)?;
        let lengths = sources.iter().map(|source| self.lengths[source]).collect();
        let closure = Closure { code: Code::Fn(id), dims, captures: Vec::new() };
        let closure = self.spec.closure(closure, self.span())?;
        Ok(Value::Function(FunctionValue { closure, lengths, captured: Vec::new() }))
    }

    /// A dimension that a function bounds may be no larger than its bound.
    fn check_bounds(&self, id: FnId, dims: &Dims) -> Lowered<()> {
        let called = self.spec.program.function(id);
        for (dim, bound) in &called.bounds {
            let (number, most) = (dims.numbers[*dim], bound.eval(&dims.numbers).unwrap_or(i64::MAX));
            if number > most {
                let (name, function) = (&called.dims[*dim], &called.name);
                let message = format!("`{name}` of `{function}` would be {number}, but its bound is {most}");
                let error = Diagnostic::error("E0808", message, self.span(), "the array here may be too long");
                let bound = bound.display(&called.dims);
                return Err(Box::new(
                    error.with_label(called.span, format!("`{name} <= {bound}` is declared here")).with_help(format!(
                        "raise the bound of `{name}`, or make it an ordinary dimension of `{function}`"
                    )),
                ));
            }
        }
        Ok(())
    }

    /// A closure as a value: it captures the locals that it uses as they are now.
    pub(super) fn closure_value(&mut self, lambda: &'a Expr) -> Lowered<Value> {
        let mut used = IndexSet::new();
        walk::locals(lambda, &mut used);
        Ok(self.capture(lambda, &used)?.map_or(Value::Never, Value::Function))
    }

    /// A piece of the program as a function that captures these locals; nothing if one of them has no value.
    pub(super) fn capture(&mut self, code: &'a Expr, used: &IndexSet<LocalId>) -> Lowered<Option<FunctionValue>> {
        let mut captures = Vec::new();
        let mut captured = Vec::new();
        for local in used {
            let Some(value) = self.env.get(local).cloned() else {
                continue;
            };
            if value.is_never() {
                return Ok(None);
            }
            let value = self.keep_value(&value);
            captures.push((*local, self.form(&value, Passing::Captured, "", &mut captured)?));
        }
        let code = Code::Lambda(self.home_id, Lambda(code));
        let closure = Closure { code, dims: self.dims.clone(), captures };
        let lengths = self.lengths.values().copied().collect();
        Ok(Some(FunctionValue { closure: self.spec.closure(closure, self.span())?, lengths, captured }))
    }

    /// Takes a value apart into what the callee is made for and what it gets as parameters.
    fn form(&mut self, value: &Value, passing: Passing, name: &str, operands: &mut Vec<Operand>) -> Lowered<Form> {
        Ok(match value {
            Value::Leaf(operand) => match (passing, operand) {
                (Passing::Shared, Operand::Var(_)) if !self.is_left_to_lanes(*operand) => {
                    return Err(self.not_shared(*operand, name));
                }
                (Passing::ByValue, _) | (_, Operand::Var(_)) => {
                    operands.push(*operand);
                    Form::Varying(self.type_of(*operand))
                }
                _ => Form::Static(*operand),
            },
            Value::Fields(fields) => {
                let fields = fields.iter().map(|f| self.form(f, passing, name, operands)).collect::<Lowered<_>>()?;
                Form::Fields(fields)
            }
            Value::Function(f) => {
                operands.extend(f.operands());
                Form::Function(f.closure)
            }
            Value::Never => Form::Fields(Vec::new()),
        })
    }

    /// Whether a shared value is a variable since lanes look for the birth of NaNs in what it is made of.
    fn is_left_to_lanes(&self, operand: Operand) -> bool {
        let differs = self.lengths.values().any(|length| *length == operand);
        self.spec.padding == Padding::Harmless && self.index_out_of_range(operand).is_none() && !differs
    }

    fn not_shared(&self, operand: Operand, name: &str) -> Box<Diagnostic> {
        let message = format!("`{name}` must be the same for all lanes, but it traps in every lane");
        Box::new(match self.index_out_of_range(operand) {
            Some(span) => Diagnostic::error("E0804", message, span, "this index is out of range")
                .with_label(self.span(), format!("`{name}` is shared here")),
            None if self.lengths.values().any(|length| *length == operand) => {
                let message =
                    format!("`{name}` must be the same for all lanes, but this is the length of a bounded dimension");
                Diagnostic::error("E0807", message, self.span(), "it differs from lane to lane")
                    .with_help(format!("remove `shared` from `{name}`"))
            }
            None => {
                let message = format!("`{name}` must be the same for all lanes");
                let label = "this is not known before the lanes start";
                Diagnostic::error("E0804", message, self.span(), label)
            }
        })
    }

    /// A call.
    pub(super) fn call_expr(&mut self, callee: &'a Callee, args: &'a [Expr]) -> Lowered<Value> {
        let function = match callee {
            Callee::Fn(id, dims) => self.function_value(*id, dims)?,
            Callee::Local(local) => self.env.get(local).cloned().unwrap_or(Value::Never),
        };
        match (function, self.values(args)?) {
            (Value::Function(function), Some(args)) => self.call(&function, &args),
            _ => Ok(Value::Never),
        }
    }

    fn call(&mut self, function: &FunctionValue, args: &[Value]) -> Lowered<Value> {
        let Asked { func, operands, .. } = self.ask(function, args)?;
        self.called(func);
        let result = result_layout(self.spec, function.closure, self.span())?;
        let (dsts, value) = self.temporaries(&result);
        self.call_block(func, operands, dsts);
        Ok(value)
    }

    /// Ends the current block with a call and goes on after it.
    pub(super) fn call_block(&mut self, func: FuncId, args: Vec<Operand>, dsts: Vec<VarId>) {
        let next = self.new_block();
        self.terminate(Terminator::Call { func, args, dsts, next, loc: self.loc(), attempt: false });
        self.start(next);
    }

    /// A call that a trap does not end.
    pub(super) fn attempt(&mut self, function: &'a Expr, args: &'a [Expr]) -> Lowered<Value> {
        let function = self.expr(function)?;
        let (Value::Function(function), Some(args)) = (function, self.values(args)?) else {
            return Ok(Value::Never);
        };
        let Asked { func, operands, .. } = self.ask(&function, &args)?;
        let func = self.attempted(func)?;
        self.called(func);
        let result = result_layout(self.spec, function.closure, self.span())?;
        let (dsts, value) = self.temporaries(&result);
        let next = self.new_block();
        self.terminate(Terminator::Call { func, args: operands, dsts, next, loc: self.loc(), attempt: true });
        self.start(next);
        Ok(value)
    }

    /// The function for a function value and arguments, and the operands that it gets.
    pub(super) fn ask(&mut self, function: &FunctionValue, args: &[Value]) -> Lowered<Asked> {
        let code = self.spec.closure_of(function.closure).code;
        let program = self.spec.program;
        let home = program.function(code.home());
        let mut operands = function.lengths.clone();
        let mut params = Vec::with_capacity(args.len());
        let mut starts = Vec::with_capacity(args.len() + 1);
        for (i, arg) in args.iter().enumerate() {
            starts.push(operands.len());
            let (passing, name) = match code {
                Code::Fn(_) => match home.params.get(i) {
                    Some(p) if p.shared => (Passing::Shared, home.locals[p.local].name.as_str()),
                    _ => (Passing::ByValue, ""),
                },
                Code::Lambda(..) => (Passing::ByValue, ""),
            };
            params.push(self.form(arg, passing, name, &mut operands)?);
        }
        starts.push(operands.len());
        operands.extend_from_slice(&function.captured);
        let instance = Instance { closure: function.closure, params };
        let func = self.spec.request(instance, self.span())?;
        Ok(Asked { func, operands, starts })
    }

    /// Binds a local at the start of a function; what varies comes as parameters.
    fn bind_form(&mut self, local: LocalId, form: &Form) -> Lowered<()> {
        let decl = &self.home.locals[local];
        let layout = self.layout(&decl.ty)?;
        let value = self.enter_form(form, Some(&layout), &decl.name)?;
        match (&value, decl.mutable) {
            (Value::Function(_), _) | (_, false) => {
                self.env.insert(local, value);
                Ok(())
            }
            _ => self.bind(local, &value),
        }
    }

    /// The value of a form, with new parameters for what varies.
    fn enter_form(&mut self, form: &Form, layout: Option<&Layout>, name: &str) -> Lowered<Value> {
        Ok(match form {
            Form::Static(operand) => Value::Leaf(*operand),
            Form::Varying(ty) => Value::Leaf(Operand::Var(self.parameter(name, ty.clone()))),
            Form::Fields(forms) => {
                let named = match layout {
                    Some(Layout::Fields(fields)) => &fields[..],
                    _ => &[],
                };
                let fields = forms.iter().enumerate().map(|(i, form)| {
                    let (field, layout) = match named.get(i) {
                        Some((field, layout)) => (field.clone(), Some(layout)),
                        None => (i.to_string(), None),
                    };
                    self.enter_form(form, layout, &format!("{name}.{field}"))
                });
                Value::Fields(fields.collect::<Lowered<_>>()?)
            }
            Form::Function(closure) => {
                let mut captured = Vec::new();
                let made = self.spec.closure_of(*closure).clone();
                let home = self.spec.program.function(made.code.home());
                let mut lengths = Vec::new();
                for id in &made.dims.bounded {
                    lengths.push(Operand::Var(self.parameter(&home.dims[*id], Type::int())));
                }
                for (local, form) in &made.captures {
                    let name = &home.locals[*local].name;
                    let value = self.enter_form(form, None, name)?;
                    collect_varying(&value, &mut captured);
                }
                Value::Function(FunctionValue { closure: *closure, lengths, captured })
            }
        })
    }
}

/// The variables of a captured value in the order of [`Form::Varying`].
fn collect_varying(value: &Value, into: &mut Vec<Operand>) {
    match value {
        Value::Leaf(operand) if operand.var().is_some() => into.push(*operand),
        Value::Leaf(_) | Value::Never => {}
        Value::Fields(fields) => fields.iter().for_each(|f| collect_varying(f, into)),
        Value::Function(f) => into.extend(f.operands()),
    }
}

/// The layout of what a function returns.
pub(super) fn result_layout(spec: &Specialiser<'_>, closure: ClosureId, span: Span) -> Lowered<Layout> {
    let closure = spec.closure_of(closure);
    let home = spec.program.function(closure.code.home());
    let layout = |ty: &Ty| layout_at(spec.program, ty, &home.dims, &closure.dims, span);
    match closure.code {
        Code::Fn(_) => layout(&home.ret),
        Code::Lambda(_, Lambda(lambda)) => match (&lambda.kind, &lambda.ty) {
            (ExprKind::Lambda { .. }, Ty::Fn(_, ret)) => layout(ret),
            (ExprKind::Lambda { .. }, _) => Ok(Layout::Never),
            (_, ty) => layout(ty),
        },
    }
}

/// Makes the function of an instance.
pub(super) fn lower_instance<'a>(
    spec: &mut Specialiser<'a>,
    instance: &Instance,
    name: String,
) -> Lowered<(Func, Facts)> {
    let closure = spec.closure_of(instance.closure).clone();
    let home = spec.program.function(closure.code.home());
    let results = result_layout(spec, instance.closure, home.span)?.leaves("");
    let begin = match closure.code {
        Code::Fn(_) => home.span,
        Code::Lambda(_, Lambda(lambda)) => lambda.span,
    };
    let mut lowering = Lowering::new(spec, closure.code.home(), begin, &closure.dims);
    lowering.results = results.into_iter().map(|(_, ty)| ty).collect();
    let (params, body): (Vec<LocalId>, &'a Expr) = match closure.code {
        Code::Fn(_) => (home.params.iter().map(|p| p.local).collect(), &home.body),
        Code::Lambda(_, Lambda(lambda)) => match &lambda.kind {
            ExprKind::Lambda { params, body } => (params.clone(), body),
            _ => {
                lowering.looped = Some(lambda);
                (Vec::new(), lambda)
            }
        },
    };
    lowering.enter_lengths();
    for (local, form) in params.iter().zip(&instance.params) {
        lowering.bind_form(*local, form)?;
    }
    for (local, form) in &closure.captures {
        lowering.bind_form(*local, form)?;
    }
    lowering.tail(body)?;
    let facts = std::mem::take(&mut lowering.facts);
    Ok((lowering.finish(name), facts))
}

/// Makes the function of one element of a comprehension.
pub(super) fn lower_element<'a>(
    spec: &mut Specialiser<'a>,
    element: &ElementOf,
    name: String,
) -> Lowered<(Func, Facts)> {
    let closure = spec.closure_of(element.instance.closure).clone();
    let Code::Lambda(home, Lambda(expr)) = closure.code else {
        unreachable!("a comprehension is no function of the program");
    };
    let (op, clauses, body) = match &expr.kind {
        ExprKind::Comprehension { clauses, body } => (None, clauses, body),
        ExprKind::Reduction { op, clauses, body } => (Some(*op), clauses, body),
        _ => unreachable!("elements are of comprehensions"),
    };
    let mut lowering = Lowering::new(spec, home, expr.span, &closure.dims);
    let results = lowering.layout(&body.ty)?.leaves("");
    lowering.results = results.into_iter().map(|(_, ty)| ty).collect();
    for clause in clauses {
        lowering.bind_form(clause.var, &Form::Varying(Type::int()))?;
    }
    lowering.enter_lengths();
    for (local, form) in &closure.captures {
        lowering.bind_form(*local, form)?;
    }
    lowering.element(op, clauses, body)?;
    let facts = std::mem::take(&mut lowering.facts);
    Ok((lowering.finish(name), facts))
}

/// The user's name for the function of an instance; those of closures say where they stand.
pub(super) fn base_name(spec: &Specialiser<'_>, func: FuncId) -> String {
    let instance = match spec.made(func) {
        Some((Made::Instance(instance), _)) => instance,
        Some((Made::Element(ElementOf { instance, .. }), _)) => {
            return format!("{}.element", instance_name(spec, instance));
        }
        Some((Made::Derivative(DerivativeOf { of, mode, .. }), _)) => {
            let mode = match mode {
                Mode::Forward => "forward",
                Mode::Reverse => "reverse",
            };
            return format!("{}.{mode}", base_name(spec, *of));
        }
        Some((Made::Attempted(of), _)) => return format!("{}.attempted", base_name(spec, *of)),
        None => return String::new(),
    };
    instance_name(spec, instance)
}

/// The reduction that an instance is, if it is one.
pub(super) fn reduction_of(spec: &Specialiser<'_>, instance: &Instance) -> Option<Reduction> {
    match spec.closure_of(instance.closure).code {
        Code::Lambda(_, Lambda(Expr { kind: ExprKind::Reduction { op, .. }, .. })) => Some(*op),
        _ => None,
    }
}

fn instance_name(spec: &Specialiser<'_>, instance: &Instance) -> String {
    match spec.closure_of(instance.closure).code {
        Code::Fn(id) => spec.program.function(id).name.clone(),
        Code::Lambda(id, Lambda(expr)) => {
            let kind = match &expr.kind {
                ExprKind::Comprehension { .. } => "comprehension",
                ExprKind::Reduction { op, .. } => op.name(),
                _ => "closure",
            };
            format!("{}.{kind}", spec.program.function(id).name)
        }
    }
}
