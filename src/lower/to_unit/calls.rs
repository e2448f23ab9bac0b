//! From a CFG program to its units. There are no stacks, since every call has its own set of variables; calls and
//! returns work on whole registers.

use super::passing::Passings;
use super::{BlockBuilder, Crossing, How, Source};
use crate::analysis::liveness::live_in;
use crate::base::{Id as _, IdSet, IdVec};
use crate::cfg;
use crate::parts::StorageClass;
use crate::unit::{
    Argument, Block, BlockId, Body, CallProgram, CallTerminator, Func, FuncId, Globals, Passing, Unit, Var, VarId,
};

/// Makes the units of a CFG program. The program is verified; nothing else is asked of it.
pub fn cfg_to_units(program: &cfg::Program) -> CallProgram {
    let passings = Passings::new(program);
    let funcs = program.funcs.iter().map(|(id, f)| func(f, &|block| passings.of(id, block)));
    CallProgram {
        funcs: funcs.collect(),
        entry: FuncId::new(program.entry.index()),
        outputs: program.outputs.clone(),
        globals: Globals {
            shared: program.shared.clone(),
            streams: program.streams.clone(),
            tapes: program.tapes.clone(),
        },
    }
}

fn func(source: &cfg::Func, passing: &dyn Fn(cfg::BlockId) -> Vec<Passing>) -> Func {
    let crosses = crossing(source);
    let mut vars: IdVec<VarId, Var> = IdVec::new();
    let class = StorageClass::Register;
    let var = |v: &cfg::Var| Var { name: v.name.clone(), ty: v.ty.clone(), class, uniform: false };
    let places = source.vars.iter().map(|(id, v)| crosses[id.index()].then(|| vars.push(var(v))));
    let places: Vec<Option<VarId>> = places.collect();
    let sources = source.vars.values().zip(&places);
    let sources: Vec<Source<'_>> =
        sources.map(|(v, var)| Source { name: v.name.as_str().into(), ty: &v.ty, uniform: false, var: *var }).collect();
    let of: Vec<cfg::VarId> = source.vars.ids().filter(|v| places[v.index()].is_some()).collect();
    let place = |v: cfg::VarId| places[v.index()].expect("parameters, and what calls work on, are registers");
    let live = live_in(source);
    let blocks = source.blocks.iter().map(|(id, data)| {
        let mut builder = BlockBuilder::new(&sources);
        data.insts.iter().for_each(|i| inst(&mut builder, i));
        let argument = |arg: &cfg::Operand| -> Argument { arg.map(place) };
        let arguments = |args: &[cfg::Operand]| args.iter().map(argument).zip(passing(id)).collect();
        let term = match &data.term {
            cfg::Terminator::Jump(to) => CallTerminator::Jump(block(*to)),
            cfg::Terminator::Branch(cond, yes, no) => {
                let cond = builder.operand(*cond, cfg::VarId::index, &data.loc);
                CallTerminator::Branch(cond, block(*yes), block(*no))
            }
            cfg::Terminator::Call { func, args, dsts, next, loc, attempt } => CallTerminator::Call {
                func: FuncId::new(func.index()),
                args: arguments(args),
                dsts: dsts.iter().map(|d| place(*d)).collect(),
                next: block(*next),
                loc: loc.clone(),
                attempt: *attempt,
            },
            cfg::Terminator::TailCall { func, args, .. } => {
                CallTerminator::TailCall { func: FuncId::new(func.index()), args: arguments(args) }
            }
            cfg::Terminator::Return(args) => CallTerminator::Return(arguments(args)),
        };
        let after = live_after(&data.term, &live);
        let (values, ops) = builder.finish(|v| after(of[v.index()]));
        Block { values, ops, term, loc: data.loc.clone() }
    });
    let blocks: IdVec<BlockId, Block<CallTerminator>> = blocks.collect();
    let mut order = source.reverse_postorder();
    // Those that are never reached have their places too.
    let mut reached = IdSet::new(source.blocks.len());
    order.iter().for_each(|b| _ = reached.insert(*b));
    order.extend(source.blocks.ids().filter(|b| !reached.contains(*b)));
    Func {
        name: source.name.clone(),
        params: source.params.iter().map(|p| place(*p)).collect(),
        results: source.results.clone(),
        body: Body {
            vars,
            blocks,
            units: order.into_iter().map(|b| Unit { blocks: vec![block(b)], region: false }).collect(),
        },
        loc: source.loc.clone(),
    }
}

/// Whether a variable may be read after the instructions of a block: by its terminator, or later.
fn live_after<'a>(
    term: &'a cfg::Terminator,
    live: &'a IdVec<cfg::BlockId, IdSet<cfg::VarId>>,
) -> impl Fn(cfg::VarId) -> bool + 'a {
    let mut read = Vec::new();
    if !matches!(term, cfg::Terminator::Branch(..)) {
        term.for_each_operand(|o| read.extend(o.var()));
    }
    let next = term.successors();
    move |v| {
        let later = next.iter().any(|to| live[*to].contains(v)) && !term.dsts().contains(&v);
        later || read.contains(&v)
    }
}

/// For each variable, whether it is one of the machine.
fn crossing(source: &cfg::Func) -> Vec<bool> {
    let mut crossing = Crossing::new(source.vars.values().map(|_| StorageClass::Temporary));
    source.params.iter().for_each(|p| crossing.whole(p.index()));
    for (id, block) in source.blocks.iter() {
        let id = id.index();
        for inst in &block.insts {
            inst.kind.for_each_operand(|o| o.var().into_iter().for_each(|v| crossing.read(id, v.index())));
            inst.kind.dst().into_iter().for_each(|v| crossing.write(id, v.index()));
        }
        match &block.term {
            cfg::Terminator::Branch(cond, ..) => cond.var().into_iter().for_each(|v| crossing.read(id, v.index())),
            term => {
                term.for_each_operand(|o| o.var().into_iter().for_each(|v| crossing.whole(v.index())));
                term.dsts().iter().for_each(|v| crossing.whole(v.index()));
            }
        }
    }
    crossing.crosses
}

fn block(id: cfg::BlockId) -> BlockId {
    BlockId::new(id.index())
}

fn inst(builder: &mut BlockBuilder<'_>, inst: &cfg::Inst) {
    let (index, loc) = (cfg::VarId::index, &inst.loc);
    match &inst.kind {
        cfg::InstKind::Prim { dst, prim, args } => {
            let args = builder.operands(args, index, loc);
            builder.compute(How::Set, dst.index(), (*prim, args), loc);
        }
        cfg::InstKind::Effect(effect) => builder.effect(effect, index, loc),
    }
}
