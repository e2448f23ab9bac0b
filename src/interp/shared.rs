//! Shared values: computed once, before any lane starts, for every engine.

use std::fmt;

use indexmap::IndexMap;

use super::arrays;
use super::value::{Elem, Value};
use crate::base::{Id, IdVec};
use crate::parts::routine::{Block, Routine, RoutineBlock, RoutineVar, Step, Term};
use crate::parts::{Operand, Shared, SharedId, SharedSource};
use crate::run::TrapKind;
use crate::types::{Array, Precision, Type};
use crate::vmath::Real;

/// What a routine may cost, in additions and blocks: a fraction of a second. What takes longer is computed by the lanes that need
/// it, so that a loop that does not end keeps nobody waiting who does not come there.
const MOST_WORK: u64 = 1 << 23;

/// Why the shared values cannot be computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SharedError {
    /// An input is missing or has another type.
    Input(String),
    /// A value traps, or takes too long to compute. A program without the pass `shared-code` has no such value: there it is
    /// computed by the lanes that need it.
    Value(String),
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (SharedError::Input(message) | SharedError::Value(message)) = self;
        f.write_str(message)
    }
}

/// All shared values in order, reals rounded to the precision of the run.
///
/// # Errors
/// The input that is missing or has another type, or the value that has no result.
pub fn shared_values(
    shared: &IdVec<SharedId, Shared>,
    inputs: &IndexMap<String, Array>,
    precision: Precision,
) -> Result<Vec<Array>, SharedError> {
    match precision {
        Precision::F32 => compute::<f32>(shared, inputs),
        Precision::F64 => compute::<f64>(shared, inputs),
    }
}

fn compute<R: Real>(
    shared: &IdVec<SharedId, Shared>,
    inputs: &IndexMap<String, Array>,
) -> Result<Vec<Array>, SharedError> {
    let mut values: Vec<Value<R>> = vec![];
    for value in shared.values() {
        let failed = |why: &dyn fmt::Display| SharedError::Value(format!("shared value `{}`: {why}", value.name));
        match &value.source {
            SharedSource::Input => values.push(input(value, inputs).map_err(SharedError::Input)?),
            SharedSource::Constant(array) => values.push(Value::from_array(array, 0, &value.ty)),
            SharedSource::Prim(prim, args) => {
                let args: Vec<Value<R>> = args
                    .iter()
                    .map(|arg| match arg {
                        Operand::Var(s) | Operand::Shared(s) => values[s.index()].clone(),
                        Operand::Const(c) => Value::Scalar(Elem::new(*c)),
                    })
                    .collect();
                let args: Vec<&Value<R>> = args.iter().collect();
                values.push(arrays::apply(*prim, &args, &value.ty).map_err(|trap| failed(&trap))?);
            }
            SharedSource::Routine(routine, 0) => {
                let results = run(routine, shared, &values).map_err(|why| match why {
                    Failure::Trap(trap) => failed(&trap),
                    Failure::Work => failed(&"it takes long to compute"),
                })?;
                values.extend(results);
            }
            // Computed with the first result.
            SharedSource::Routine(..) => {}
        }
    }
    Ok(values.iter().map(Value::to_array).collect())
}

/// Elements of a value that is worth keeping in the text of a program.
const MOST_KNOWN: usize = 256;

/// Makes constants of the small shared values that depend on no input, where they are the same in both precisions: unit
/// vectors, tables of indices. Code that is generated has them as numbers of its text.
pub fn fold_known(shared: &mut IdVec<SharedId, Shared>) {
    let same =
        |(double, single): (Option<Array>, Option<Array>)| double.filter(|double| single.as_ref() == Some(double));
    let mut known: Vec<Option<Array>> = known::<f64>(shared).into_iter().zip(known::<f32>(shared)).map(same).collect();
    // The results of a routine stay together.
    let mut at = 0;
    while at < known.len() {
        let results =
            1 + shared.values().skip(at + 1).take_while(|s| matches!(s.source, SharedSource::Routine(_, 1..))).count();
        if known[at..at + results].iter().any(Option::is_none) {
            known[at..at + results].fill(None);
        }
        at += results;
    }
    for (value, known) in shared.values_mut().zip(known) {
        if let Some(array) = known {
            value.source = SharedSource::Constant(array);
        }
    }
}

/// The values that depend on no input.
fn known<R: Real>(shared: &IdVec<SharedId, Shared>) -> Vec<Option<Array>> {
    let mut values: Vec<Option<Value<R>>> = Vec::new();
    for (id, value) in shared.iter() {
        let is_known = |s: SharedId| values[s.index()].is_some();
        let small = value.ty.elements() <= MOST_KNOWN;
        let found = match &value.source {
            SharedSource::Constant(array) if small => Some(Value::from_array(array, 0, &value.ty)),
            SharedSource::Prim(prim, args) if small => {
                let arg = |arg: &Operand<SharedId>| match arg {
                    Operand::Var(s) | Operand::Shared(s) => values[s.index()].clone(),
                    Operand::Const(c) => Some(Value::Scalar(Elem::new(*c))),
                };
                let args: Option<Vec<Value<R>>> = args.iter().map(arg).collect();
                args.and_then(|args| arrays::apply(*prim, &args.iter().collect::<Vec<_>>(), &value.ty).ok())
            }
            SharedSource::Routine(routine, 0) if small && routine.reads_shared().all(is_known) => {
                let before: Vec<Value<R>> = values.iter().map(|value| value.clone().unwrap_or_default()).collect();
                if let Ok(results) = run(routine, shared, &before) {
                    values.extend(results.into_iter().map(Some));
                    continue;
                }
                None
            }
            // Computed with the first result.
            SharedSource::Routine(..) if values.len() > id.index() => continue,
            _ => None,
        };
        values.push(found);
    }
    values.iter().map(|value| value.as_ref().map(Value::to_array)).collect()
}

enum Failure {
    Trap(TrapKind),
    Work,
}

impl From<TrapKind> for Failure {
    fn from(trap: TrapKind) -> Self {
        Failure::Trap(trap)
    }
}

/// Runs a routine; `values` are the shared values before its results, declared in `shared`.
fn run<R: Real>(
    routine: &Routine,
    shared: &IdVec<SharedId, Shared>,
    values: &[Value<R>],
) -> Result<Vec<Value<R>>, Failure> {
    let costs: IdVec<RoutineBlock, u64> = routine.blocks.values().map(|b| cost(routine, shared, b)).collect();
    let mut vars: IdVec<RoutineVar, Value<R>> = IdVec::filled(Value::default(), routine.vars.len());
    let mut at = RoutineBlock::new(0);
    let mut work = 0_u64;
    loop {
        work = work.saturating_add(costs[at]);
        if work > MOST_WORK {
            return Err(Failure::Work);
        }
        let block = &routine.blocks[at];
        for step in &block.steps {
            run_step(step, &routine.vars[step.dst].1, values, &mut vars)?;
        }
        at = match &block.term {
            Term::Jump(next) => *next,
            Term::Branch(cond, holds, fails) => match read(*cond, values, &vars).bool() {
                true => *holds,
                false => *fails,
            },
            Term::Return(results) => return Ok(results.iter().map(|v| read(*v, values, &vars)).collect()),
        };
    }
}

/// What a block costs, in additions, and one for itself.
fn cost(routine: &Routine, shared: &IdVec<SharedId, Shared>, block: &Block) -> u64 {
    let ty = |operand: &Operand<RoutineVar>| operand.ty(|v| routine.vars[v].1.clone(), |s| shared[s].ty.clone());
    let step = |step: &Step| {
        let types: Vec<Type> = step.args.iter().map(ty).collect();
        step.prim.cost(&types, &routine.vars[step.dst].1)
    };
    1 + block.steps.iter().map(step).sum::<u64>()
}

fn read<R: Real>(operand: Operand<RoutineVar>, values: &[Value<R>], vars: &IdVec<RoutineVar, Value<R>>) -> Value<R> {
    match operand {
        Operand::Var(v) => vars[v].clone(),
        Operand::Shared(s) => values[s.index()].clone(),
        Operand::Const(c) => Value::Scalar(Elem::new(c)),
    }
}

fn run_step<R: Real>(
    step: &Step,
    ty: &Type,
    values: &[Value<R>],
    vars: &mut IdVec<RoutineVar, Value<R>>,
) -> Result<(), TrapKind> {
    if step.prim.changes_part() && step.args[0] == Operand::Var(step.dst) {
        // Without a copy where nothing else holds the array.
        let args: Vec<Value<R>> = step.args[1..].iter().map(|a| read(*a, values, vars)).collect();
        let operands: Vec<&Value<R>> = args.iter().collect();
        return arrays::change_part(step.prim, &mut vars[step.dst], &operands);
    }
    let args: Vec<Value<R>> = step.args.iter().map(|a| read(*a, values, vars)).collect();
    let operands: Vec<&Value<R>> = args.iter().collect();
    vars[step.dst] = arrays::apply(step.prim, &operands, ty)?;
    Ok(())
}

fn input<R: Real>(value: &Shared, inputs: &IndexMap<String, Array>) -> Result<Value<R>, String> {
    let (name, wanted) = (&value.name, &value.ty);
    let Some(array) = inputs.get(name) else {
        return Err(format!("the shared input `{name}` of type {wanted} is missing"));
    };
    let found = array.ty();
    if found != *wanted {
        return Err(format!("the shared input `{name}` must have type {wanted}, but has {found}"));
    }
    Ok(Value::from_array(array, 0, wanted))
}
