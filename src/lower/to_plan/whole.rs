//! From the units of a program to its plan.

use super::blocks::{raw_block, var, vars};
use super::constants::Constants;
use super::{Builder, Making, RawBlock};
use crate::base::{Id as _, IdVec};
use crate::plan::{
    Arg, Attempt, BlockId, Body, CallPlan, CallTerminator, Func, FuncId, Plan, Port, SlotId, Terminator, VarId,
};
use crate::unit::{self, BlockEnd};

/// Makes the plan of the units of a stack program. They are verified; nothing else is asked of them.
pub fn units_to_plan(program: &unit::Program, making: Making) -> Plan {
    let mut constants = Constants::new(&program.globals);
    let mut body = body(&program.body, &mut constants, making, |source, builder| match &source.term {
        unit::Terminator::Jump(to) => Terminator::Jump(block(*to)),
        unit::Terminator::Branch(_, yes, no) => Terminator::Branch(cond(source, builder), block(*yes), block(*no)),
        unit::Terminator::PushJump { target, ret, loc, attempt } => Terminator::PushJump {
            target: block(*target),
            ret: block(*ret),
            loc: loc.clone(),
            attempt: attempt.as_ref().map(|_| Attempt::default()),
        },
        unit::Terminator::Return => Terminator::Return,
        unit::Terminator::Halt => Terminator::Halt,
    });
    attempts(program, &mut body);
    let port = |p: &unit::Port| Port { name: p.name.clone(), slot: slot(&body.vars, p.var), ty: ty(program, p.var) };
    Plan {
        name: program.name.clone(),
        entry: block(program.entry),
        inputs: program.inputs.iter().map(port).collect(),
        outputs: program.outputs.iter().map(port).collect(),
        body,
        cached_tops: true,
        globals: constants.finish(),
    }
}

/// Makes the plan of the units of a CFG program, as [`units_to_plan`].
pub fn calls_to_plan(program: &unit::CallProgram, making: Making) -> CallPlan {
    let mut constants = Constants::new(&program.globals);
    let func = |f: &unit::Func| Func {
        name: f.name.clone(),
        params: f.params.iter().map(|p| var(*p)).collect(),
        results: f.results.clone(),
        body: body(&f.body, &mut constants, making, call_terminator),
        loc: f.loc.clone(),
    };
    let funcs = program.funcs.values().map(func).collect();
    CallPlan {
        funcs,
        entry: FuncId::new(program.entry.index()),
        outputs: program.outputs.clone(),
        globals: constants.finish(),
    }
}

fn body<T: BlockEnd + Clone, U>(
    source: &unit::Body<T>,
    constants: &mut Constants,
    making: Making,
    finish: impl FnMut(&RawBlock<T>, &mut Builder<'_>) -> U,
) -> Body<U> {
    let mut vars = vars(&source.vars);
    let blocks = source.blocks.values().map(|b| raw_block(b, &mut vars)).collect();
    let units = source.units.values();
    let units = units.map(|u: &unit::Unit| (u.blocks.iter().map(|b| block(*b)).collect(), u.region));
    let units = units.collect();
    Builder::new((vars, source.vars.len()), constants, making).body(blocks, units, finish)
}

fn call_terminator(source: &RawBlock<unit::CallTerminator>, builder: &mut Builder<'_>) -> CallTerminator {
    let passed = |args: &[(unit::Argument, unit::Passing)], builder: &mut Builder<'_>| -> (Vec<Arg>, Vec<_>) {
        args.iter().map(|(arg, passing)| (builder.argument(*arg), *passing)).unzip()
    };
    match &source.term {
        unit::CallTerminator::Jump(to) => CallTerminator::Jump(block(*to)),
        unit::CallTerminator::Branch(_, yes, no) => {
            CallTerminator::Branch(cond(source, builder), block(*yes), block(*no))
        }
        unit::CallTerminator::Call { func, args, dsts, next, loc, attempt } => {
            let (args, passing) = passed(args, builder);
            CallTerminator::Call {
                func: FuncId::new(func.index()),
                args,
                passing,
                dsts: dsts.iter().map(|d| builder.place(var(*d))).collect(),
                next: block(*next),
                loc: loc.clone(),
                attempt: *attempt,
            }
        }
        unit::CallTerminator::TailCall { func, args } => {
            let (args, passing) = passed(args, builder);
            CallTerminator::TailCall { func: FuncId::new(func.index()), args, passing }
        }
        unit::CallTerminator::Return(args) => {
            let (args, passing) = passed(args, builder);
            CallTerminator::Return(args, passing)
        }
    }
}

/// The condition of the branch that ends a block.
fn cond<T>(source: &RawBlock<T>, builder: &mut Builder<'_>) -> Arg {
    builder.arg(source.cond.expect("a branch has a condition"))
}

/// What a trap in the callee of each attempt does, now that all variables have their places.
fn attempts(program: &unit::Program, body: &mut Body<Terminator>) {
    for (id, source) in program.body.blocks.iter() {
        let unit::Terminator::PushJump { attempt: Some(attempt), .. } = &source.term else { continue };
        let result = |v: &unit::VarId| (slot(&body.vars, *v), ty(program, *v));
        let made = Attempt {
            results: attempt.results.iter().map(result).collect(),
            stacks: attempt.stacks.iter().filter_map(|v| body.vars[var(*v)].stack).collect(),
            tapes: attempt.tapes.clone(),
        };
        if let Terminator::PushJump { attempt, .. } = &mut body.blocks[block(id)].term {
            *attempt = Some(made);
        }
    }
}

fn slot(vars: &IdVec<VarId, crate::plan::Var>, v: unit::VarId) -> SlotId {
    vars[var(v)].slot.expect("what crosses functions is a register or a stack")
}

fn ty(program: &unit::Program, v: unit::VarId) -> crate::types::Type {
    program.body.vars[v].ty.clone()
}

fn block(id: unit::BlockId) -> BlockId {
    BlockId::new(id.index())
}
