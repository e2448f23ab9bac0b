//! From a CFG program to its plan. Variables of a function that never leave one block are temporaries, the others
//! registers; there are no stacks, since every call has its own set of variables.

use super::constants::Constants;
use super::passing::Passings;
use super::{Builder, How, Inst, RawBlock, Read};
use crate::base::{Id, IdSet, IdVec};
use crate::cfg;
use crate::parts::{Operand, StorageClass};
use crate::plan::{BlockId, CallPlan, CallTerminator, Func, FuncId, Passing, Var, VarId};

/// Makes the plan of a CFG program. The program is verified; nothing else is asked of it. `tile_rows`: whether steps that
/// share a long row axis run tile by tile; results do not depend on it.
pub fn cfg_to_plan(program: &cfg::Program, tile_rows: bool) -> CallPlan {
    let mut constants = Constants::new(program.shared.clone());
    let passings = Passings::new(program);
    let funcs = program.funcs.iter();
    let funcs = funcs.map(|(id, f)| func(f, &mut constants, tile_rows, &|block| passings.of(id, block)));
    let funcs: IdVec<FuncId, Func> = funcs.collect();
    CallPlan {
        funcs,
        entry: FuncId::new(program.entry.index()),
        outputs: program.outputs.clone(),
        globals: constants.finish(program.streams.clone(), program.tapes.clone()),
    }
}

fn func(
    source: &cfg::Func,
    constants: &mut Constants,
    tile_rows: bool,
    passing: &dyn Fn(cfg::BlockId) -> Vec<Passing>,
) -> Func {
    let classes = classes(source);
    let vars = source.vars.iter().map(|(id, v)| Var {
        name: v.name.clone(),
        ty: v.ty.clone(),
        class: classes[id],
        uniform: false,
        slot: None,
        stack: None,
    });
    let builder = Builder::new(vars.collect(), constants, tile_rows);
    let blocks = source.blocks.iter().map(|(id, block)| raw_block(block, passing(id))).collect();
    let mut order = source.reverse_postorder();
    // Those that are never reached have their places too.
    let mut reached = IdSet::new(source.blocks.len());
    order.iter().for_each(|b| {
        reached.insert(*b);
    });
    order.extend(source.blocks.ids().filter(|b| !reached.contains(*b)));
    let units = order.into_iter().map(|b| (vec![block(b)], false)).collect();
    let body = builder.body(blocks, units, |(term, passing), builder| match term {
        cfg::Terminator::Jump(b) => CallTerminator::Jump(block(*b)),
        cfg::Terminator::Branch(c, a, b) => CallTerminator::Branch(builder.arg(read(*c)), block(*a), block(*b)),
        cfg::Terminator::Call { func, args, dsts, next, loc, attempt } => CallTerminator::Call {
            func: FuncId::new(func.index()),
            args: builder.args(&reads(args)),
            passing: passing.clone(),
            dsts: dsts.iter().map(|d| builder.place(var(*d))).collect(),
            next: block(*next),
            loc: loc.clone(),
            attempt: *attempt,
        },
        cfg::Terminator::TailCall { func, args, .. } => CallTerminator::TailCall {
            func: FuncId::new(func.index()),
            args: builder.args(&reads(args)),
            passing: passing.clone(),
        },
        cfg::Terminator::Return(args) => CallTerminator::Return(builder.args(&reads(args)), passing.clone()),
    });
    Func {
        name: source.name.clone(),
        params: source.params.iter().map(|p| var(*p)).collect(),
        results: source.results.clone(),
        body,
        loc: source.loc.clone(),
    }
}

/// Temporary: met in one block only, set there before it is read, and not read or set by a call or a return, which work
/// on whole registers.
fn classes(source: &cfg::Func) -> IdVec<cfg::VarId, StorageClass> {
    let mut home: IdVec<cfg::VarId, Option<cfg::BlockId>> = IdVec::filled(None, source.vars.len());
    let mut class = IdVec::filled(StorageClass::Temporary, source.vars.len());
    for p in &source.params {
        class[*p] = StorageClass::Register;
    }
    for (id, block) in source.blocks.iter() {
        let mut visit = |v: cfg::VarId, writes: bool| match home[v] {
            None if writes => home[v] = Some(id),
            Some(b) if b == id => {}
            _ => class[v] = StorageClass::Register,
        };
        for inst in &block.insts {
            let (reads, dst) = operands(&inst.kind);
            reads.into_iter().for_each(|v| visit(v, false));
            dst.into_iter().for_each(|v| visit(v, true));
        }
        match &block.term {
            cfg::Terminator::Jump(_) => {}
            cfg::Terminator::Branch(c, _, _) => c.var().into_iter().for_each(|v| visit(v, false)),
            cfg::Terminator::Call { args, dsts, .. } => {
                let all = args.iter().filter_map(|a| a.var()).chain(dsts.clone());
                all.for_each(|v| class[v] = StorageClass::Register);
            }
            cfg::Terminator::TailCall { args, .. } | cfg::Terminator::Return(args) => {
                let all = args.iter().filter_map(|a| a.var());
                all.for_each(|v| class[v] = StorageClass::Register);
            }
        }
    }
    class
}

fn operands(kind: &cfg::InstKind) -> (Vec<cfg::VarId>, Option<cfg::VarId>) {
    let vars = |args: &[cfg::Operand]| args.iter().filter_map(|a| a.var()).collect::<Vec<_>>();
    match kind {
        cfg::InstKind::Prim { dst, args, .. } => (vars(args), Some(*dst)),
        cfg::InstKind::Assert { cond, message } => {
            let mut reads = vars(&message.args);
            reads.extend(cond.var());
            (reads, None)
        }
        cfg::InstKind::Print(message) => (vars(&message.args), None),
        cfg::InstKind::Emit { args, .. } => (vars(args), None),
        cfg::InstKind::TapePush { value, .. } => (vars(&[*value]), None),
        cfg::InstKind::TapePop { dst, .. } => (vec![], Some(*dst)),
    }
}

fn block(id: cfg::BlockId) -> BlockId {
    BlockId::new(id.index())
}
fn var(id: cfg::VarId) -> VarId {
    VarId::new(id.index())
}
fn read(operand: cfg::Operand) -> Read {
    match operand {
        Operand::Var(v) => Operand::Var(var(v)),
        Operand::Shared(s) => Operand::Shared(s),
        Operand::Const(c) => Operand::Const(c),
    }
}
fn reads(operands: &[cfg::Operand]) -> Vec<Read> {
    operands.iter().map(|o| read(*o)).collect()
}

fn raw_block(source: &cfg::Block, passing: Vec<Passing>) -> RawBlock<(cfg::Terminator, Vec<Passing>)> {
    let insts = source.insts.iter();
    RawBlock {
        insts: insts.map(|i| (inst(&i.kind), i.loc.clone())).collect(),
        cond: match source.term {
            cfg::Terminator::Branch(c, _, _) => Some(read(c)),
            _ => None,
        },
        term: (source.term.clone(), passing),
        loc: source.loc.clone(),
    }
}

fn inst(kind: &cfg::InstKind) -> Inst {
    match kind {
        cfg::InstKind::Prim { dst, prim, args } => {
            Inst::Compute { how: How::Set, dst: var(*dst), prim: *prim, args: reads(args) }
        }
        cfg::InstKind::Assert { cond, message } => {
            Inst::Assert { cond: read(*cond), texts: message.texts.clone(), args: reads(&message.args) }
        }
        cfg::InstKind::Print(message) => Inst::Print { texts: message.texts.clone(), args: reads(&message.args) },
        cfg::InstKind::Emit { stream, args } => Inst::Emit { stream: *stream, args: reads(args) },
        cfg::InstKind::TapePush { tape, value } => Inst::TapePush { tape: *tape, value: read(*value) },
        cfg::InstKind::TapePop { dst, tape } => Inst::TapePop { dst: var(*dst), tape: *tape },
    }
}
