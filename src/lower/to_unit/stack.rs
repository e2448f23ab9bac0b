//! From a stack program to its units.

use std::collections::BTreeMap;

use super::{BlockBuilder, Crossing, How, Source};
use crate::analysis::stack_liveness::Liveness;
use crate::base::{Id as _, IdSet, IdVec};
use crate::parts::Operand;
use crate::stack;
use crate::unit::{Attempt, Block, BlockId, Body, Globals, Port, Program, Terminator, Unit, UnitId, Var, VarId};

/// What a block stores of the variables that it sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stores {
    /// What somebody may read afterwards.
    Live,
    /// All, to measure what it is worth to leave them out.
    All,
}

/// Makes the units of a stack program. The program is verified; nothing else is asked of it.
pub fn stack_to_units(program: &stack::Program, stores: Stores) -> Program {
    let crosses = crossing(program);
    let mut vars: IdVec<VarId, Var> = IdVec::new();
    let source = |(id, v): (stack::VarId, &'_ stack::Var)| {
        let var = || Var { name: v.name.clone(), ty: v.ty.clone(), class: v.class, uniform: v.uniform };
        crosses[id.index()].then(|| vars.push(var()))
    };
    let places: Vec<Option<VarId>> = program.vars.iter().map(source).collect();
    let sources = program.vars.values().zip(&places);
    let sources: Vec<Source<'_>> = sources
        .map(|(v, var)| Source { name: v.name.as_str().into(), ty: &v.ty, uniform: v.uniform, var: *var })
        .collect();
    let liveness = Liveness::of(program);
    let of: Vec<stack::VarId> = program.vars.ids().filter(|v| places[v.index()].is_some()).collect();
    let place = |v: stack::VarId| places[v.index()].expect("ports, stacks and results cross blocks");
    let blocks = program.blocks.iter().map(|(id, block)| {
        let mut builder = BlockBuilder::new(&sources);
        block.insts.iter().for_each(|i| inst(&mut builder, i));
        let term = match &block.term {
            stack::Terminator::Jump(to) => Terminator::Jump(self::block(*to)),
            stack::Terminator::Branch(cond, yes, no) => {
                let cond = builder.operand(*cond, stack::VarId::index, &block.loc);
                Terminator::Branch(cond, self::block(*yes), self::block(*no))
            }
            stack::Terminator::PushJump { target, ret, loc, attempt } => Terminator::PushJump {
                target: self::block(*target),
                ret: self::block(*ret),
                loc: loc.clone(),
                attempt: attempt.as_ref().map(|results| self::attempt(program, (*target, results), &places)),
            },
            stack::Terminator::Return => Terminator::Return,
            stack::Terminator::Halt => Terminator::Halt,
        };
        let live = liveness.live_out(program, id);
        let (values, ops) = builder.finish(|v| stores == Stores::All || live.contains(of[v.index()]));
        Block { values, ops, term, loc: block.loc.clone() }
    });
    let blocks = blocks.collect();
    let port = |p: &stack::Port| Port { name: p.name.clone(), var: place(p.var) };
    Program {
        name: program.name.clone(),
        entry: block(program.entry),
        inputs: program.inputs.iter().map(port).collect(),
        outputs: program.outputs.iter().map(port).collect(),
        globals: Globals {
            shared: program.shared.clone(),
            streams: program.streams.clone(),
            tapes: program.tapes.clone(),
        },
        body: Body { vars, blocks, units: units(program) },
    }
}

/// For each variable, whether it is one of the machine.
fn crossing(program: &stack::Program) -> Vec<bool> {
    let mut crossing = Crossing::new(program.vars.values().map(|v| v.class));
    for (id, block) in program.blocks.iter() {
        let id = id.index();
        for inst in &block.insts {
            inst.kind.for_each_operand(|o| o.var().into_iter().for_each(|v| crossing.read(id, v.index())));
            inst.kind.written().into_iter().for_each(|v| crossing.write(id, v.index()));
        }
        if let stack::Terminator::Branch(Operand::Var(v), ..) = block.term {
            crossing.read(id, v.index());
        }
    }
    crossing.crosses
}

/// What a trap in the callee of an attempt does.
fn attempt(
    program: &stack::Program,
    (target, results): (stack::BlockId, &[stack::VarId]),
    places: &[Option<VarId>],
) -> Attempt {
    let (mut stacks, mut tapes) = (IdSet::new(program.vars.len()), IdSet::new(program.tapes.len()));
    for inst in run_by(program, target).iter().flat_map(|b| &program.blocks[b].insts) {
        if let stack::InstKind::Effect(effect) = &inst.kind {
            effect.tape().into_iter().for_each(|tape| _ = tapes.insert(tape));
        }
        inst.kind.moved().into_iter().for_each(|(v, _)| _ = stacks.insert(v));
    }
    // What nobody reads has no place.
    let results = results.iter().filter_map(|v| places[v.index()]).collect();
    let stacks = stacks.iter().filter_map(|v| places[v.index()]).collect();
    Attempt { results, stacks, tapes: tapes.iter().collect() }
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
fn units(program: &stack::Program) -> IdVec<UnitId, Unit> {
    let mut units = IdVec::new();
    let regions = program.regions.iter().rev().flat_map(|r| r.blocks.iter().map(move |b| (*b, r)));
    let regions: BTreeMap<stack::BlockId, &stack::Region> = regions.collect();
    for id in program.blocks.ids() {
        match regions.get(&id) {
            Some(region) if region.blocks[0] == id => {
                units.push(Unit { blocks: region.blocks.iter().map(|b| block(*b)).collect(), region: true });
            }
            Some(_) => {}
            None => _ = units.push(Unit { blocks: vec![block(id)], region: false }),
        }
    }
    units
}

fn block(id: stack::BlockId) -> BlockId {
    BlockId::new(id.index())
}

fn inst(builder: &mut BlockBuilder<'_>, inst: &stack::Inst) {
    let (index, loc) = (stack::VarId::index, &inst.loc);
    match &inst.kind {
        stack::InstKind::Compute { write, dst, prim, args } => {
            let how = match write {
                stack::Write::Push => How::Push,
                stack::Write::Set | stack::Write::Update => How::Set,
            };
            let args = builder.operands(args, index, loc);
            builder.compute(how, dst.index(), (*prim, args), loc);
        }
        stack::InstKind::Pop(v) => builder.pop(v.index(), loc),
        stack::InstKind::Save { stack, value } => builder.save(stack.index(), value.index(), loc),
        stack::InstKind::Effect(effect) => builder.effect(effect, index, loc),
    }
}
