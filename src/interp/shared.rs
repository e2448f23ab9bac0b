//! Shared values: computed once, before any lane starts, for every engine.

use indexmap::IndexMap;

use super::arrays;
use super::value::{Elem, Value};
use crate::base::{Id, IdVec};
use crate::parts::{Operand, Shared, SharedId, SharedSource};
use crate::types::{Array, Precision};
use crate::vmath::Real;

/// All shared values in order, reals rounded to the precision of the run. An error names the input that is missing or has
/// another type, or the value that has no result.
pub fn shared_values(
    shared: &IdVec<SharedId, Shared>,
    inputs: &IndexMap<String, Array>,
    precision: Precision,
) -> Result<Vec<Array>, String> {
    match precision {
        Precision::F32 => compute::<f32>(shared, inputs),
        Precision::F64 => compute::<f64>(shared, inputs),
    }
}

fn compute<R: Real>(shared: &IdVec<SharedId, Shared>, inputs: &IndexMap<String, Array>) -> Result<Vec<Array>, String> {
    let mut values: Vec<Value<R>> = vec![];
    for value in shared.values() {
        let computed = match &value.source {
            SharedSource::Input => input(value, inputs)?,
            SharedSource::Constant(array) => Value::from_array(array, 0, &value.ty),
            SharedSource::Prim(prim, args) => {
                let args: Vec<Value<R>> = args
                    .iter()
                    .map(|arg| match arg {
                        Operand::Var(s) | Operand::Shared(s) => values[s.index()].clone(),
                        Operand::Const(c) => Value::Scalar(Elem::new(*c)),
                    })
                    .collect();
                let args: Vec<&Value<R>> = args.iter().collect();
                arrays::apply(*prim, &args, &value.ty)
                    .map_err(|trap| format!("shared value `{}`: {trap}", value.name))?
            }
        };
        values.push(computed);
    }
    Ok(values.iter().map(Value::to_array).collect())
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
