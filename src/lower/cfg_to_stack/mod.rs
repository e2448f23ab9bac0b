//! From the CFG program to the stack program: variables become global, calls become jumps over the stack of program
//! counters, and a call saves exactly what it may overwrite.
//!
//! At a call, the variables are saved that are live across it and that the callee, or anything it calls in turn, may
//! write. Everything else stays where it is. Saving is a `push`, which for a parameter of the callee gives the new top its
//! value in the same instruction; the block after the call starts with the `pop`s. So a function leaves all stacks as high
//! as it found them, and whatever no call saves needs no stack.
//!
//! For comparison a call can be told to save more: see [`Saves`].

mod globals;
mod parallel_copy;
mod writes;

use std::collections::{BTreeMap, BTreeSet};

use smallvec::smallvec;

use crate::analysis::{liveness, storage};
use crate::base::{Id, IdVec, Loc};
use crate::cfg::{self, FuncId};
use crate::prim::Prim;
use crate::stack::{
    Block, BlockId, Inst, InstKind, Operand, Port, Program, StorageClass, Terminator, Var, VarId, Write,
};

use globals::Globals;
use writes::{Writes, new_params};

/// What a call saves of the variables of its caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Saves {
    /// Those that are live across the call and that the callee may write.
    #[default]
    Live,
    /// Its parameters and those that live across the edge of some block: all but the temporaries.
    Crossing,
    /// All.
    All,
}

/// Lowers a verified CFG program. Functions that cannot be reached are left out; the others and their blocks keep their
/// order, and the block that a call returns to comes after the one that makes the call.
pub fn lower(program: &cfg::Program, saves: Saves) -> Program {
    let globals = Globals::of(program);
    let calls = match saves {
        Saves::Live => saved_at_calls(program, &globals),
        Saves::Crossing | Saves::All => more_saved_at_calls(program, &globals, saves == Saves::All),
    };
    let mut vars = globals.vars.clone();
    for saved in calls.values() {
        for (v, why) in saved {
            if vars[*v].class != StorageClass::Stack {
                vars[*v].class = StorageClass::Stack;
                vars[*v].why.clone_from(why);
            }
        }
    }
    let starts = block_starts(program, &globals);
    let mut lowering = Lowering { program, globals: &globals, calls, starts, vars, blocks: IdVec::new(), spares: 0 };
    for f in globals.functions() {
        lowering.function(f);
    }
    lowering.finish()
}

/// The variables that a call saves, each with the reason.
type Saved = Vec<(VarId, String)>;
type CallSite = (FuncId, cfg::BlockId);

fn saved_at_calls(program: &cfg::Program, globals: &Globals) -> BTreeMap<CallSite, Saved> {
    let writes = Writes::of(program, globals);
    let mut calls = BTreeMap::new();
    for f in globals.functions() {
        let func = &program.funcs[f];
        let live = liveness::live_in(func);
        for (id, block) in func.blocks.iter() {
            let cfg::Terminator::Call { func: callee, args, loc, .. } = &block.term else {
                continue;
            };
            let written = writes.of_call(program, globals, f, *callee, args);
            let callee = &program.funcs[*callee].name;
            let line = match loc.line {
                0 => String::new(),
                line => format!(" at line {line}"),
            };
            let why = format!("lives across the call of {callee}{line}, which may write it");
            let saved = liveness::live_across_call(func, &live, id)
                .iter()
                .map(|v| globals.var(f, v))
                .filter(|v| written.contains(*v))
                .map(|v| (v, why.clone()))
                .collect();
            calls.insert((f, id), saved);
        }
    }
    calls
}

/// What calls save that do not ask what is live or written: of the caller's variables `all`, or those that have
/// storage.
fn more_saved_at_calls(program: &cfg::Program, globals: &Globals, all: bool) -> BTreeMap<CallSite, Saved> {
    let mut calls = BTreeMap::new();
    for f in globals.functions() {
        let func = &program.funcs[f];
        let live = liveness::live_in(func);
        let mut kept: BTreeSet<VarId> = func.params.iter().map(|v| globals.var(f, *v)).collect();
        if all {
            kept.extend(func.vars.ids().map(|v| globals.var(f, v)));
        } else {
            kept.extend(live.values().flat_map(|live| live.iter()).map(|v| globals.var(f, v)));
        }
        let why = format!("is saved at every call in {}, as all variables are", func.name);
        let saved: Saved = kept.into_iter().map(|v| (v, why.clone())).collect();
        let called = func.blocks.iter().filter(|(_, block)| matches!(block.term, cfg::Terminator::Call { .. }));
        calls.extend(called.map(|(id, _)| ((f, id), saved.clone())));
    }
    calls
}

/// The stack program's block for the start of each CFG block: one block each, and one more after each call.
fn block_starts(program: &cfg::Program, globals: &Globals) -> BTreeMap<CallSite, BlockId> {
    let mut starts = BTreeMap::new();
    let mut next = 0;
    for f in globals.functions() {
        for (id, block) in program.funcs[f].blocks.iter() {
            starts.insert((f, id), BlockId::new(next));
            next += 1 + usize::from(matches!(block.term, cfg::Terminator::Call { .. }));
        }
    }
    starts
}

struct Lowering<'a> {
    program: &'a cfg::Program,
    globals: &'a Globals,
    calls: BTreeMap<CallSite, Saved>,
    starts: BTreeMap<CallSite, BlockId>,
    vars: IdVec<VarId, Var>,
    blocks: IdVec<BlockId, Block>,
    /// Variables made to break cycles of copies.
    spares: usize,
}

impl Lowering<'_> {
    fn function(&mut self, f: FuncId) {
        let program = self.program;
        for (id, block) in program.funcs[f].blocks.iter() {
            let insts = block.insts.iter().map(|inst| self.inst(f, inst)).collect();
            let lowered = Block { insts, term: Terminator::Halt, loc: block.loc.clone() };
            self.terminator(f, id, lowered);
        }
    }

    fn inst(&self, f: FuncId, inst: &cfg::Inst) -> Inst {
        let kind = match &inst.kind {
            cfg::InstKind::Prim { dst, prim, args } => {
                let dst = self.globals.var(f, *dst);
                let args = args.iter().map(|o| self.operand(f, *o)).collect();
                InstKind::Compute { write: self.write(dst), dst, prim: *prim, args }
            }
            cfg::InstKind::Effect(effect) => {
                let effect = effect.map_reads(|o| self.operand(f, *o));
                InstKind::Effect(effect.map_dst(|v| self.globals.var(f, v)))
            }
        };
        Inst { kind, loc: inst.loc.clone() }
    }

    /// Ends `block`, which holds the instructions of the CFG block `id`, and appends it, and after a call the block that
    /// the call returns to.
    fn terminator(&mut self, f: FuncId, id: cfg::BlockId, mut block: Block) {
        let program = self.program;
        match &program.funcs[f].blocks[id].term {
            cfg::Terminator::Jump(to) => block.term = Terminator::Jump(self.start(f, *to)),
            cfg::Terminator::Branch(cond, yes, no) => {
                let cond = self.operand(f, *cond);
                block.term = Terminator::Branch(cond, self.start(f, *yes), self.start(f, *no));
            }
            cfg::Terminator::Return(values) => {
                let loc = last_loc(&block);
                for (result, value) in self.globals.results(f).iter().zip(values) {
                    let value = self.operand(f, *value);
                    block.insts.push(self.copy(*result, value, &loc));
                }
                block.term = Terminator::Return;
            }
            cfg::Terminator::TailCall { func, args, loc } => {
                self.set_params(f, *func, args, &[], loc, &mut block);
                block.term = Terminator::Jump(self.start(*func, cfg::BlockId::new(0)));
            }
            cfg::Terminator::Call { func, args, dsts, next, loc, attempt } => {
                let saved: Vec<VarId> = self.calls[&(f, id)].iter().map(|(v, _)| *v).collect();
                self.set_params(f, *func, args, &saved, loc, &mut block);
                block.term = Terminator::PushJump {
                    target: self.start(*func, cfg::BlockId::new(0)),
                    ret: BlockId::new(self.blocks.len() + 1),
                    loc: loc.clone(),
                    attempt: attempt.then(|| self.globals.results(*func).to_vec()),
                };
                self.blocks.push(block);
                block = self.after_call(f, *func, dsts, &saved, loc);
                block.term = Terminator::Jump(self.start(f, *next));
            }
        }
        self.blocks.push(block);
    }

    /// Pushes what the call saves and sets the parameters, as one parallel copy.
    fn set_params(
        &mut self,
        caller: FuncId,
        callee: FuncId,
        args: &[cfg::Operand],
        saved: &[VarId],
        loc: &Loc,
        block: &mut Block,
    ) {
        let copies: Vec<_> = new_params(self.program, self.globals, caller, callee, args)
            .map(|(param, arg)| (param, self.operand(caller, arg)))
            .collect();
        for v in saved {
            if copies.iter().all(|(param, _)| param != v) {
                // The new top is a copy, so that whatever else reads the variable here may do so before or after.
                block.insts.push(push(*v, Operand::Var(*v), loc));
            }
        }
        let ordered = parallel_copy::sequence(copies, |v| self.spare(v));
        for (dst, src) in ordered {
            block.insts.push(if saved.contains(&dst) { push(dst, src, loc) } else { self.copy(dst, src, loc) });
        }
    }

    /// The block that a call returns to: it pops what the call saved and takes the results.
    fn after_call(&mut self, f: FuncId, callee: FuncId, dsts: &[cfg::VarId], saved: &[VarId], loc: &Loc) -> Block {
        let mut insts: Vec<Inst> = (saved.iter()).map(|v| Inst { kind: InstKind::Pop(*v), loc: loc.clone() }).collect();
        for (dst, result) in dsts.iter().zip(self.globals.results(callee)) {
            let dst = self.globals.var(f, *dst);
            insts.push(self.copy(dst, Operand::Var(*result), loc));
        }
        Block { insts, term: Terminator::Halt, loc: loc.clone() }
    }

    fn start(&self, f: FuncId, block: cfg::BlockId) -> BlockId {
        self.starts[&(f, block)]
    }

    fn operand(&self, f: FuncId, operand: cfg::Operand) -> Operand {
        operand.map(|v| self.globals.var(f, v))
    }

    fn write(&self, dst: VarId) -> Write {
        match self.vars[dst].class {
            StorageClass::Stack => Write::Update,
            StorageClass::Temporary | StorageClass::Register => Write::Set,
        }
    }

    fn copy(&self, dst: VarId, src: Operand, loc: &Loc) -> Inst {
        compute_copy(self.write(dst), dst, src, loc)
    }

    fn spare(&mut self, like: VarId) -> VarId {
        self.spares += 1;
        self.vars.push(Var {
            name: format!("spare.{}", self.spares),
            ty: self.vars[like].ty.clone(),
            class: StorageClass::Temporary,
            uniform: false,
            why: String::new(),
        })
    }

    fn finish(self) -> Program {
        let entry = &self.program.funcs[self.program.entry];
        let inputs = (entry.params.iter())
            .map(|param| Port {
                name: entry.vars[*param].name.clone(),
                var: self.globals.var(self.program.entry, *param),
            })
            .collect();
        let results = self.globals.results(self.program.entry);
        let outputs = (self.program.outputs.iter().zip(results))
            .map(|(name, var)| Port { name: name.clone(), var: *var })
            .collect();
        let mut program = Program {
            name: entry.name.clone(),
            entry: self.start(self.program.entry, cfg::BlockId::new(0)),
            vars: self.vars,
            blocks: self.blocks,
            inputs,
            outputs,
            shared: self.program.shared.clone(),
            streams: self.program.streams.clone(),
            tapes: self.program.tapes.clone(),
            regions: Vec::new(),
        };
        storage::assign(&mut program);
        for v in &self.globals.passed_on {
            let var = &mut program.vars[*v];
            if var.class == StorageClass::Register {
                var.why = "passed on unchanged by every recursive call".to_owned();
            }
        }
        program
    }
}

fn push(dst: VarId, src: Operand, loc: &Loc) -> Inst {
    compute_copy(Write::Push, dst, src, loc)
}

fn compute_copy(write: Write, dst: VarId, src: Operand, loc: &Loc) -> Inst {
    Inst { kind: InstKind::Compute { write, dst, prim: Prim::Copy, args: smallvec![src] }, loc: loc.clone() }
}

fn last_loc(block: &Block) -> Loc {
    block.insts.last().map_or(&block.loc, |i| &i.loc).clone()
}
