//! What keeps code from trapping in lanes that do not want its results: operands that are replaced there by harmless ones.

use crate::base::IdSet;
use crate::cfg::{Func, Inst, InstKind, Operand, Program, VarId};
use crate::prim::{Effect, Prim, eval};
use crate::types::{DType, Scalar, Shape, Type};

use super::blocks::operand_types;

/// An operand that instructions read from outside, and a value for it with which none of them traps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guard {
    pub(super) operand: Operand,
    pub(super) harmless: Scalar,
}

/// Whether a primitive is known not to trap for its operands.
type Total<'a> = &'a dyn Fn(Prim, &[Operand]) -> bool;

/// The operands to replace so that these instructions trap in no lane; `None` when there are no such values, or when the
/// instructions do more than compute.
pub(super) fn guards(program: &Program, func: &Func, insts: &[Inst], total: Total<'_>) -> Option<Vec<Guard>> {
    let outside = sensitive(program, func, insts, total)?;
    // Divisors must not be zero; nearly everything else likes zero best.
    [0, 1].into_iter().find_map(|number| {
        let guard = |operand: &Operand| {
            let ty = program.operand_type(func, *operand);
            let harmless = match ty.dtype {
                DType::Int => Scalar::Int(number),
                DType::Real => Scalar::Real(number as f64),
                DType::Bool => Scalar::Bool(false),
            };
            ty.is_scalar().then_some(Guard { operand: *operand, harmless })
        };
        let guards: Vec<Guard> = outside.iter().map(guard).collect::<Option<_>>()?;
        never_traps(program, func, insts, &guards, total).then_some(guards)
    })
}

/// The operands from outside that decide whether an instruction traps, in the order of the instructions, the last first.
fn sensitive(program: &Program, func: &Func, insts: &[Inst], total: Total<'_>) -> Option<Vec<Operand>> {
    let mut wanted = IdSet::new(func.vars.len());
    let mut shared = Vec::new();
    let mut order = Vec::new();
    for inst in insts.iter().rev() {
        let InstKind::Prim { dst, prim, args } = &inst.kind else {
            return None;
        };
        let deciding = match effect(program, func, *prim, args, total) {
            Effect::Random => return None,
            Effect::Traps => deciding(*prim, args)?,
            Effect::Pure if wanted.contains(*dst) => &args[..],
            Effect::Pure => &[],
        };
        wanted.remove(*dst);
        for operand in deciding {
            match operand {
                Operand::Var(v) => {
                    wanted.insert(*v);
                    order.push(*v);
                }
                Operand::Shared(_) if !shared.contains(operand) => shared.push(*operand),
                _ => {}
            }
        }
    }
    let mut outside = Vec::new();
    for v in order {
        if wanted.contains(v) {
            wanted.remove(v);
            outside.push(Operand::Var(v));
        }
    }
    outside.extend(shared);
    Some(outside)
}

/// What an instruction can do besides computing. A division by a constant may not be able to trap.
fn effect(program: &Program, func: &Func, prim: Prim, args: &[Operand], total: Total<'_>) -> Effect {
    match (prim, args) {
        _ if total(prim, args) => Effect::Pure,
        (Prim::IntDiv | Prim::IntRem, [x, Operand::Const(Scalar::Int(y))])
            if divides_all(prim, *y) && program.operand_type(func, *x).dtype == DType::Int =>
        {
            Effect::Pure
        }
        _ => prim.effect(&operand_types(program, func, args)),
    }
}

/// Whether every int has a quotient, or a remainder, by this divisor.
fn divides_all(division: Prim, divisor: i64) -> bool {
    divisor != 0 && (divisor != -1 || division == Prim::IntRem)
}

/// The operands that decide whether a primitive traps.
fn deciding(prim: Prim, args: &[Operand]) -> Option<&[Operand]> {
    match prim {
        Prim::Add | Prim::Sub | Prim::Mul | Prim::Neg | Prim::Abs => Some(args),
        Prim::IntDiv | Prim::IntRem | Prim::IntPow | Prim::ToInt => Some(args),
        Prim::Index | Prim::Slice => Some(&args[1..]),
        _ => None,
    }
}

/// Whether no instruction traps when the guarded operands have their harmless values, whatever the others are.
fn never_traps(program: &Program, func: &Func, insts: &[Inst], guards: &[Guard], total: Total<'_>) -> bool {
    let mut known: Vec<(VarId, Option<Scalar>)> = Vec::new();
    insts.iter().all(|inst| {
        let InstKind::Prim { dst, prim, args } = &inst.kind else {
            return false;
        };
        let value = |o: &Operand| match o {
            Operand::Const(c) => Some(*c),
            Operand::Var(v) if known.iter().any(|(k, _)| k == v) => known.iter().find(|(k, _)| k == v)?.1,
            o => guards.iter().find(|g| g.operand == *o).map(|g| g.harmless),
        };
        let all = args.iter().map(value).collect::<Option<Vec<Scalar>>>();
        let result = match prim {
            _ if effect(program, func, *prim, args, total) == Effect::Pure => {
                all.and_then(|all| eval::fold(*prim, &all, eval::EXACT_IN_F32))
            }
            Prim::Index | Prim::Slice => {
                let array = program.operand_type(func, args[0]);
                let at = args[1..].iter().map(value);
                if !in_range(&array.shape, at, *prim == Prim::Slice, &func.vars[*dst].ty) {
                    return false;
                }
                None
            }
            Prim::IntDiv | Prim::IntRem if matches!(value(&args[1]), Some(Scalar::Int(y)) if divides_all(*prim, y)) => {
                all.and_then(|all| eval::fold(*prim, &all, eval::EXACT_IN_F32))
            }
            _ => match all.and_then(|all| arithmetic(*prim, &all)) {
                None => return false,
                result => result,
            },
        };
        known.retain(|(v, _)| v != dst);
        known.push((*dst, result));
        true
    })
}

/// The result of arithmetic that does not trap.
fn arithmetic(prim: Prim, args: &[Scalar]) -> Option<Scalar> {
    match (prim, args) {
        (Prim::ToInt, [Scalar::Real(x)]) => eval::to_int(*x).ok().map(Scalar::Int),
        _ => eval::fold(prim, args, eval::EXACT_IN_F32),
    }
}

fn in_range(shape: &Shape, at: impl Iterator<Item = Option<Scalar>>, slice: bool, part: &Type) -> bool {
    at.zip(shape).all(|(index, extent)| {
        let taken = if slice { part.shape.first().copied().unwrap_or(0) } else { 1 };
        match index {
            Some(Scalar::Int(i)) => i >= 0 && i.unsigned_abs() as usize + taken <= *extent,
            _ => false,
        }
    })
}
