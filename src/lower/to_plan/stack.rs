//! From a stack program to its plan.

use std::collections::BTreeMap;

use super::constants::Constants;
use super::{Builder, How, Inst, RawBlock, Read};
use crate::base::{Id, IdSet};
use crate::parts::{Operand, StorageClass};
use crate::plan::{Attempt, BlockId, Body, Plan, Port, Terminator, Var, VarId};
use crate::stack;

/// Makes the plan of a stack program. The program is verified; nothing else is asked of it. `tile_rows`: whether steps that
/// share a long row axis run tile by tile; results do not depend on it.
pub fn stack_to_plan(program: &stack::Program, tile_rows: bool) -> Plan {
    let mut constants = Constants::new(program.shared.clone());
    let vars = program.vars.values().map(|v| Var {
        name: v.name.clone(),
        ty: v.ty.clone(),
        class: v.class,
        uniform: v.uniform,
        slot: None,
        stack: None,
    });
    let builder = Builder::new(vars.collect(), &mut constants, tile_rows);
    let blocks = program.blocks.values().map(raw_block).collect();
    let mut body = builder.body(blocks, units(program), |term, builder| match *term {
        stack::Terminator::Jump(b) => Terminator::Jump(block(b)),
        stack::Terminator::Branch(c, a, b) => Terminator::Branch(builder.arg(read(c)), block(a), block(b)),
        stack::Terminator::PushJump { target, ret, ref loc, ref attempt } => Terminator::PushJump {
            target: block(target),
            ret: block(ret),
            loc: loc.clone(),
            attempt: attempt.as_ref().map(|_| Attempt::default()),
        },
        stack::Terminator::Return => Terminator::Return,
        stack::Terminator::Halt => Terminator::Halt,
    });
    attempts(program, &mut body);
    let port = |p: &stack::Port| Port {
        name: p.name.clone(),
        slot: body.vars[var(p.var)].slot.expect("inputs and outputs are registers or stacks"),
        ty: program.vars[p.var].ty.clone(),
    };
    Plan {
        name: program.name.clone(),
        entry: block(program.entry),
        inputs: program.inputs.iter().map(port).collect(),
        outputs: program.outputs.iter().map(port).collect(),
        body,
        cached_tops: true,
        globals: constants.finish(program.streams.clone(), program.tapes.clone()),
    }
}

/// What a trap in the callee of each attempt does, now that all variables have their places.
fn attempts(program: &stack::Program, body: &mut Body<Terminator>) {
    for (id, source) in program.blocks.iter() {
        let stack::Terminator::PushJump { target, attempt: Some(results), .. } = &source.term else { continue };
        let mut made = Attempt::default();
        // what nobody reads has no place
        for v in results.iter().filter(|v| program.vars[**v].class != StorageClass::Temporary) {
            made.results.extend(body.vars[var(*v)].slot.map(|slot| (slot, program.vars[*v].ty.clone())));
        }
        let (mut stacks, mut tapes) = (IdSet::new(program.vars.len()), IdSet::new(program.tapes.len()));
        for inst in run_by(program, *target).iter().flat_map(|b| &program.blocks[b].insts) {
            match inst.kind {
                stack::InstKind::TapePush { tape, .. } | stack::InstKind::TapePop { tape, .. } => {
                    tapes.insert(tape);
                }
                _ => {
                    if let Some((v, _)) = inst.kind.moved() {
                        stacks.insert(v);
                    }
                }
            }
        }
        made.stacks = stacks.iter().filter_map(|v| body.vars[var(v)].stack).collect();
        made.tapes = tapes.iter().collect();
        if let Terminator::PushJump { attempt, .. } = &mut body.blocks[block(id)].term {
            *attempt = Some(made);
        }
    }
}

/// The blocks that a call of a block may run, those of its callees included.
fn run_by(program: &stack::Program, start: stack::BlockId) -> IdSet<stack::BlockId> {
    let mut seen = IdSet::new(program.blocks.len());
    let mut open = vec![start];
    seen.insert(start);
    while let Some(b) = open.pop() {
        open.extend(program.blocks[b].term.successors().into_iter().filter(|to| seen.insert(*to)));
    }
    seen
}

/// Regions, and the other blocks each by itself, in the order of their first blocks.
fn units(program: &stack::Program) -> Vec<(Vec<BlockId>, bool)> {
    let mut units: Vec<(Vec<BlockId>, bool)> = Vec::new();
    let regions = program.regions.iter().rev().flat_map(|r| r.blocks.iter().map(move |b| (*b, r)));
    let regions: BTreeMap<stack::BlockId, &stack::Region> = regions.collect();
    for id in program.blocks.ids() {
        match regions.get(&id) {
            Some(region) if region.blocks[0] == id => {
                units.push((region.blocks.iter().map(|b| block(*b)).collect(), true));
            }
            Some(_) => {}
            None => units.push((vec![block(id)], false)),
        }
    }
    units
}

fn block(id: stack::BlockId) -> BlockId {
    BlockId::new(id.index())
}
fn var(id: stack::VarId) -> VarId {
    VarId::new(id.index())
}
fn read(operand: stack::Operand) -> Read {
    match operand {
        Operand::Var(v) => Operand::Var(var(v)),
        Operand::Shared(s) => Operand::Shared(s),
        Operand::Const(c) => Operand::Const(c),
    }
}
fn reads(operands: &[stack::Operand]) -> Vec<Read> {
    operands.iter().map(|o| read(*o)).collect()
}

fn raw_block(source: &stack::Block) -> RawBlock<stack::Terminator> {
    let insts = source.insts.iter();
    RawBlock {
        insts: insts.map(|i| (inst(&i.kind), i.loc.clone())).collect(),
        cond: match source.term {
            stack::Terminator::Branch(c, _, _) => Some(read(c)),
            _ => None,
        },
        term: source.term.clone(),
        loc: source.loc.clone(),
    }
}

fn inst(kind: &stack::InstKind) -> Inst {
    match kind {
        stack::InstKind::Compute { write, dst, prim, args } => Inst::Compute {
            how: match write {
                stack::Write::Push => How::Push,
                stack::Write::Set | stack::Write::Update => How::Set,
            },
            dst: var(*dst),
            prim: *prim,
            args: reads(args),
        },
        stack::InstKind::Pop(v) => Inst::Pop(var(*v)),
        stack::InstKind::Save { stack, value } => Inst::Save { stack: var(*stack), value: var(*value) },
        stack::InstKind::Assert { cond, message } => {
            Inst::Assert { cond: read(*cond), texts: message.texts.clone(), args: reads(&message.args) }
        }
        stack::InstKind::Print(message) => Inst::Print { texts: message.texts.clone(), args: reads(&message.args) },
        stack::InstKind::Emit { stream, args } => Inst::Emit { stream: *stream, args: reads(args) },
        stack::InstKind::TapePush { tape, value } => Inst::TapePush { tape: *tape, value: read(*value) },
        stack::InstKind::TapePop { dst, tape } => Inst::TapePop { dst: var(*dst), tape: *tape },
    }
}
