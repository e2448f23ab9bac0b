//! What every CFG program must fulfil. A program that does not is the compiler's fault, or that of whoever edited its text.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use super::{Block, BlockId, Func, FuncId, InstKind, Operand, Program, Terminator, VarId};
use crate::base::{Id, IdSet};
use crate::parts;
use crate::types::Type;

/// A place in a program. Nothing stands for all of what is around it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Position {
    /// The function; none for what stands before the functions.
    pub func: Option<FuncId>,
    /// The block.
    pub block: Option<BlockId>,
    /// The instruction; the number of instructions for the terminator.
    pub inst: Option<usize>,
}

/// A violation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyError {
    /// Where.
    pub place: Position,
    /// The function in the words of the text form, empty outside of functions.
    pub func_name: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.func.is_some() {
            write!(f, "function `{}`, ", self.func_name)?;
        }
        if let Some(block) = self.place.block {
            write!(f, "block {block}, ")?;
        }
        if let Some(inst) = self.place.inst {
            write!(f, "instruction {inst}, ")?;
        }
        f.write_str(&self.message)
    }
}

/// All violations of a program, in the order of its text.
pub fn verify(program: &Program) -> Vec<VerifyError> {
    let mut checker = Checker { program, place: Position::default(), errors: vec![] };
    checker.header();
    for (id, func) in program.funcs.iter() {
        checker.place = Position { func: Some(id), ..Position::default() };
        checker.func(func);
    }
    let mut errors = checker.errors;
    errors.sort_by_key(|e| e.place);
    errors
}

struct Checker<'a> {
    program: &'a Program,
    place: Position,
    errors: Vec<VerifyError>,
}

fn types_text(types: &[Type]) -> String {
    let texts: Vec<String> = types.iter().map(ToString::to_string).collect();
    format!("({})", texts.join(", "))
}

impl Checker<'_> {
    fn error(&mut self, message: impl Into<String>) {
        let func = self.place.func.and_then(|f| self.program.funcs.get(f));
        self.errors.push(VerifyError {
            place: self.place,
            func_name: func.map(|f| f.name.clone()).unwrap_or_default(),
            message: message.into(),
        });
    }

    fn unique<'n>(&mut self, what: &str, names: impl Iterator<Item = &'n str>) {
        let mut seen = HashSet::new();
        for name in names {
            if !seen.insert(name) {
                self.error(format!("there are two {what} named `{name}`"));
            }
        }
    }

    fn header(&mut self) {
        let program = self.program;
        self.unique("functions", program.funcs.values().map(|f| &f.name[..]));
        self.unique("shared values", program.shared.values().map(|s| &s.name[..]));
        self.unique("streams", program.streams.values().map(|s| &s.name[..]));
        self.unique("tapes", program.tapes.values().map(|t| &t.name[..]));
        self.unique("outputs", program.outputs.iter().map(|o| &o[..]));
        for stream in program.streams.values() {
            self.unique("fields", stream.fields.iter().map(|(name, _)| &name[..]));
        }
        match program.funcs.get(program.entry) {
            None => self.error("there is no entry function"),
            Some(entry) if entry.results.len() != program.outputs.len() => self.error(format!(
                "the entry has {} results, but {} outputs are named",
                entry.results.len(),
                program.outputs.len()
            )),
            Some(_) => {}
        }
        parts::check_shared(&program.shared).into_iter().for_each(|message| self.error(message));
    }

    fn func(&mut self, func: &Func) {
        self.unique("variables", func.vars.values().map(|v| &v.name[..]));
        let mut seen = HashSet::new();
        for param in &func.params {
            if func.vars.get(*param).is_none() {
                self.error(format!("there is no variable {param} for a parameter"));
            } else if !seen.insert(*param) {
                self.error(format!("`{}` is a parameter twice", func.vars[*param].name));
            }
        }
        if func.blocks.is_empty() {
            self.error("the function has no blocks");
        }
        let before = self.errors.len();
        for (id, block) in func.blocks.iter() {
            self.place.block = Some(id);
            for (i, inst) in block.insts.iter().enumerate() {
                self.place.inst = Some(i);
                self.inst(func, &inst.kind);
            }
            self.place.inst = Some(block.insts.len());
            self.terminator(func, &block.term);
        }
        // ids must be in range before the data flow is followed
        if self.errors.len() == before {
            self.definedness(func);
        }
    }

    /// The type of an operand, or an error if there is no such thing.
    fn operand(&mut self, func: &Func, operand: Operand) -> Option<Type> {
        let found = match operand {
            Operand::Var(v) => func.vars.get(v).map(|v| v.ty.clone()),
            Operand::Shared(s) => self.program.shared.get(s).map(|s| s.ty.clone()),
            Operand::Const(c) => Some(Type::scalar(c.dtype())),
        };
        if found.is_none() {
            self.error(format!("there is no {operand:?}"));
        }
        found
    }

    fn operands(&mut self, func: &Func, operands: &[Operand]) -> Option<Vec<Type>> {
        let types: Vec<_> = operands.iter().map(|o| self.operand(func, *o)).collect();
        types.into_iter().collect()
    }

    fn typed_operands(&mut self, func: &Func, args: &[Operand], wanted: &[Type], what: &str) {
        if let Some(types) = self.operands(func, args)
            && types != wanted
        {
            let (wanted, found) = (types_text(wanted), types_text(&types));
            self.error(format!("{what} of types {wanted} expected, found {found}"));
        }
    }

    fn condition(&mut self, func: &Func, cond: Operand) {
        if let Some(ty) = self.operand(func, cond)
            && ty != Type::bool()
        {
            self.error(format!("the condition is {ty}, not bool"));
        }
    }

    fn inst(&mut self, func: &Func, inst: &InstKind) {
        match inst {
            InstKind::Prim { dst, prim, args } => {
                let types = self.operands(func, args);
                let Some(var) = func.vars.get(*dst) else {
                    return self.error(format!("there is no variable {dst}"));
                };
                if let Some(types) = types
                    && let Err(e) = prim.check(&types, &var.ty)
                {
                    self.error(e.0);
                }
            }
            InstKind::Effect(effect) => {
                let reads: Vec<Operand> =
                    effect.reads().copied().chain(effect.dst().map(|v| Operand::Var(*v))).collect();
                if self.operands(func, &reads).is_none() {
                    return;
                }
                let program = self.program;
                let lists = (&program.streams, &program.tapes);
                let (read, set) = (|o: &Operand| program.operand_type(func, *o), |v: &VarId| func.vars[*v].ty.clone());
                if let Err(message) = effect.check(lists, read, set) {
                    self.error(message);
                }
            }
        }
    }

    fn target(&mut self, func: &Func, block: BlockId) {
        if func.blocks.get(block).is_none() {
            self.error(format!("there is no block {block}"));
        }
    }

    fn terminator(&mut self, func: &Func, term: &Terminator) {
        for block in term.successors() {
            self.target(func, block);
        }
        match term {
            Terminator::Jump(_) => {}
            Terminator::Branch(cond, ..) => self.condition(func, *cond),
            Terminator::Return(values) => {
                self.typed_operands(func, values, &func.results, "results");
            }
            Terminator::Call { func: callee, args, dsts, .. } => {
                let Some(results) = self.call(func, *callee, args) else {
                    return;
                };
                let dst_operands: Vec<Operand> = dsts.iter().map(|d| Operand::Var(*d)).collect();
                self.typed_operands(func, &dst_operands, &results, "variables for results");
                let distinct: HashSet<_> = dsts.iter().collect();
                if distinct.len() != dsts.len() {
                    self.error("two results go to one variable");
                }
            }
            Terminator::TailCall { func: callee, args, .. } => {
                if let Some(results) = self.call(func, *callee, args)
                    && results != func.results
                {
                    let (callee, own) = (types_text(&results), types_text(&func.results));
                    self.error(format!("the callee gives {callee}, the function {own}"));
                }
            }
        }
    }

    /// The results of a callee, after its operands are checked.
    fn call(&mut self, func: &Func, callee: FuncId, args: &[Operand]) -> Option<Vec<Type>> {
        let Some(callee) = self.program.funcs.get(callee) else {
            self.error(format!("there is no function {callee}"));
            return None;
        };
        let params = callee.params.iter().map(|p| callee.vars.get(*p));
        let params: Option<Vec<Type>> = params.map(|v| v.map(|v| v.ty.clone())).collect();
        if let Some(params) = params {
            self.typed_operands(func, args, &params, "arguments");
        }
        Some(callee.results.clone())
    }

    /// Reports reads of variables that are not set on every path from the start of the function.
    fn definedness(&mut self, func: &Func) {
        for (id, defined) in defined_at_start(func).into_iter().enumerate() {
            let Some(mut defined) = defined else {
                continue;
            };
            self.place.block = Some(BlockId::new(id));
            walk_block(&func.blocks[BlockId::new(id)], |i, event| match event {
                Event::Read(v) if !defined.contains(v) => {
                    self.place.inst = Some(i);
                    let name = &func.vars[v].name;
                    self.error(format!("`{name}` may be read before it is set"));
                }
                Event::Read(_) => {}
                Event::Write(v) => _ = defined.insert(v),
            });
        }
    }
}

enum Event {
    Read(VarId),
    Write(VarId),
}

/// What a block reads and writes, in order, with the instruction; the writes of a call last.
fn walk_block(block: &Block, mut visit: impl FnMut(usize, Event)) {
    for (i, inst) in block.insts.iter().enumerate() {
        inst.kind.for_each_operand(|o| {
            if let Operand::Var(v) = o {
                visit(i, Event::Read(v));
            }
        });
        if let Some(dst) = inst.kind.dst() {
            visit(i, Event::Write(dst));
        }
    }
    let i = block.insts.len();
    block.term.for_each_operand(|o| {
        if let Operand::Var(v) = o {
            visit(i, Event::Read(v));
        }
    });
    for dst in block.term.dsts() {
        visit(i, Event::Write(*dst));
    }
}

/// For each block the variables that are set on every path to it; nothing for blocks that no path reaches.
fn defined_at_start(func: &Func) -> Vec<Option<IdSet<VarId>>> {
    let mut at_start: Vec<Option<IdSet<VarId>>> = vec![None; func.blocks.len()];
    let mut params = IdSet::new(func.vars.len());
    for param in &func.params {
        params.insert(*param);
    }
    let Some(first) = at_start.first_mut() else {
        return at_start;
    };
    *first = Some(params);
    // Where ways meet comes after all of them.
    let order = func.reverse_postorder();
    let mut place = vec![0; func.blocks.len()];
    order.iter().enumerate().for_each(|(i, block)| place[block.index()] = i);
    let mut open = BTreeSet::from([0]);
    while let Some(id) = open.pop_first().map(|i| order[i]) {
        let mut defined = at_start[id.index()].clone().expect("only reached blocks are worked on");
        let block = &func.blocks[id];
        walk_block(block, |_, event| {
            if let Event::Write(v) = event {
                defined.insert(v);
            }
        });
        for next in block.term.successors() {
            let changed = match &mut at_start[next.index()] {
                Some(known) => known.intersect_with(&defined),
                unknown => {
                    *unknown = Some(defined.clone());
                    true
                }
            };
            if changed {
                open.insert(place[next.index()]);
            }
        }
    }
    at_start
}
