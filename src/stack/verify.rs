//! Whether a stack program is one: ids and types, storage classes, heights of stacks, regions. A finding is a bug of the
//! compiler or of whoever wrote the text by hand.

mod flow;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Block, BlockId, Inst, InstKind, Operand, Program, StorageClass, Terminator, VarId, Write};
use crate::base::{Id, IdSet};
use crate::parts;
use crate::prim::{BatchRule, Prim};
use crate::types::Type;

/// A place in a program. Nothing stands for all of what is around it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Position {
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
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
    let mut check = Check { program, place: Position::default(), errors: Vec::new() };
    check.ids();
    if check.errors.is_empty() {
        check.ports();
        parts::check_shared(&program.shared).into_iter().for_each(|message| check.report(message));
        check.insts();
        check.uniform();
        check.attempts();
        check.regions();
        flow::temporaries(&mut check);
        flow::heights(&mut check);
    }
    let mut errors = check.errors;
    errors.sort_by_key(|e| e.place);
    errors
}

struct Check<'a> {
    program: &'a Program,
    place: Position,
    errors: Vec<VerifyError>,
}

impl<'a> Check<'a> {
    fn report(&mut self, message: impl Into<String>) {
        self.errors.push(VerifyError { place: self.place, message: message.into() });
    }

    fn require(&mut self, holds: bool, message: impl FnOnce() -> String) {
        if !holds {
            self.report(message());
        }
    }

    fn at(&mut self, block: BlockId, inst: Option<usize>) {
        self.place = Position { block: Some(block), inst };
    }

    fn name(&self, var: VarId) -> &'a str {
        &self.program.vars[var].name
    }

    /// Calls `visit` for every block, and for every instruction with its position.
    fn each(&mut self, mut inst: impl FnMut(&mut Self, &'a Inst), mut term: impl FnMut(&mut Self, &'a Block)) {
        let program = self.program;
        for (id, block) in program.blocks.iter() {
            for (i, one) in block.insts.iter().enumerate() {
                self.at(id, Some(i));
                inst(self, one);
            }
            self.at(id, Some(block.insts.len()));
            term(self, block);
        }
        self.place = Position::default();
    }

    // Everything after this check may index without looking.
    fn ids(&mut self) {
        let program = self.program;
        let mut names = BTreeSet::new();
        for var in program.vars.values() {
            self.require(names.insert(&var.name), || format!("there are two variables {}", var.name));
        }
        let mut tapes = BTreeSet::new();
        for tape in program.tapes.values() {
            self.require(tapes.insert(&tape.name), || format!("there are two tapes {}", tape.name));
        }
        let blocks = program.blocks.len();
        let known = move |b: BlockId| b.index() < blocks;
        self.require(known(program.entry), || format!("the entry {} is no block", program.entry));
        for port in program.inputs.iter().chain(&program.outputs) {
            self.require(port.var.index() < program.vars.len(), || format!("port {} has no variable", port.name));
        }
        for b in program.regions.iter().flat_map(|r| &r.blocks) {
            self.require(known(*b), || format!("a region has {b}, which is no block"));
        }
        self.each(
            |check, inst| check.inst_ids(&inst.kind),
            |check, block| {
                for b in block.term.successors() {
                    check.require(known(b), || format!("{b} is no block"));
                }
                match &block.term {
                    Terminator::Branch(cond, ..) => check.operand_id(*cond),
                    Terminator::PushJump { attempt: Some(results), .. } => {
                        results.iter().for_each(|v| check.operand_id(Operand::Var(*v)));
                    }
                    _ => {}
                }
            },
        );
    }

    /// Where a trap leads is told by where the call returns to, so no other call may return there.
    fn attempts(&mut self) {
        let program = self.program;
        let mut returns: BTreeMap<BlockId, (BlockId, &Option<Vec<VarId>>)> = BTreeMap::new();
        self.each(
            |_, _| {},
            |check, block| {
                let Terminator::PushJump { target, ret, attempt, .. } = &block.term else { return };
                let known = *returns.entry(*ret).or_insert((*target, attempt));
                let same = (known.1.is_none() && attempt.is_none()) || known == (*target, attempt);
                check.require(same, || format!("an attempt and another call both return to {ret}"));
                let uniform = attempt.iter().flatten().find(|v| program.vars[**v].uniform);
                check.require(uniform.is_none(), || "a result of an attempt is uniform".to_owned());
            },
        );
    }

    fn inst_ids(&mut self, inst: &InstKind) {
        let mut operands = Vec::new();
        inst.for_each_operand(|o| operands.push(o));
        operands.extend(inst.written().or(inst.moved().map(|(v, _)| v)).map(Operand::Var));
        for operand in operands {
            self.operand_id(operand);
        }
    }

    fn operand_id(&mut self, operand: Operand) {
        let known = match operand {
            Operand::Var(v) => v.index() < self.program.vars.len(),
            Operand::Shared(s) => s.index() < self.program.shared.len(),
            Operand::Const(_) => true,
        };
        self.require(known, || format!("{operand:?} does not exist"));
    }

    fn ports(&mut self) {
        let program = self.program;
        for ports in [&program.inputs, &program.outputs] {
            let mut names = BTreeSet::new();
            for port in ports {
                self.require(names.insert(&port.name), || format!("there are two ports {}", port.name));
                let class = program.vars[port.var].class;
                self.require(class != StorageClass::Temporary, || format!("port {} is a temporary", port.name));
            }
        }
    }

    fn insts(&mut self) {
        self.each(
            |check, inst| check.inst(&inst.kind),
            |check, block| {
                if let Terminator::Branch(cond, ..) = block.term {
                    let ty = check.program.operand_type(cond);
                    check.require(ty == Type::bool(), || format!("the condition of a branch is {ty}, not bool"));
                }
            },
        );
    }

    fn inst(&mut self, inst: &InstKind) {
        let program = self.program;
        match inst {
            InstKind::Compute { write, dst, prim, args } => {
                let types: Vec<Type> = args.iter().map(|a| program.operand_type(*a)).collect();
                if let Err(error) = prim.check(&types, &program.vars[*dst].ty) {
                    self.report(error.to_string());
                }
                self.class(*dst, *write != Write::Set, &write.to_string());
            }
            InstKind::Pop(v) => self.class(*v, true, "pop"),
            InstKind::Save { stack, value } => {
                self.class(*stack, true, "save");
                let (stack, value) = (&program.vars[*stack], &program.vars[*value]);
                let fits = stack.ty == value.ty;
                self.require(fits, || format!("saves {}, which is {}, as {}", value.name, value.ty, stack.ty));
                self.require(!value.uniform, || format!("saves {}, which is uniform", value.name));
            }
            InstKind::Effect(effect) => {
                let ty = |v: &VarId| program.vars[*v].ty.clone();
                let lists = (&program.streams, &program.tapes);
                if let Err(message) = effect.check(lists, |o| program.operand_type(*o), ty) {
                    self.report(message);
                }
                if let Some(dst) = effect.dst() {
                    let name = self.name(*dst);
                    self.require(!program.vars[*dst].uniform, || format!("{name} is uniform and comes off a tape"));
                }
            }
        }
    }

    fn class(&mut self, var: VarId, stack: bool, what: &str) {
        let class = self.program.vars[var].class;
        let name = self.name(var);
        self.require((class == StorageClass::Stack) == stack, || format!("{what} of {name}, which is a {class}"));
    }

    /// Uniform variables: temporaries of one region, computed from what is the same for all lanes.
    fn uniform(&mut self) {
        let program = self.program;
        for var in program.vars.values().filter(|v| v.uniform) {
            self.require(var.class == StorageClass::Temporary, || {
                format!("{} is uniform and a {}", var.name, var.class)
            });
        }
        let mut home: Vec<Option<usize>> = vec![None; program.vars.len()];
        let mut regions: Vec<Option<usize>> = vec![None; program.blocks.len()];
        for (i, region) in program.regions.iter().enumerate().rev() {
            region.blocks.iter().for_each(|b| regions[b.index()] = Some(i));
        }
        self.each(
            |check, inst| {
                let block = check.place.block.expect("instructions stand in blocks");
                let region = regions[block.index()];
                if let InstKind::Compute { dst, prim, args, .. } = &inst.kind
                    && program.vars[*dst].uniform
                {
                    check.uniform_value(*dst, *prim, args);
                    let first = *home[dst.index()].get_or_insert(region.unwrap_or(usize::MAX));
                    let name = check.name(*dst);
                    check.require(Some(first) == region, || format!("{name} is uniform and set outside its region"));
                }
            },
            |_, _| {},
        );
    }

    fn uniform_value(&mut self, dst: VarId, prim: Prim, args: &[Operand]) {
        let program = self.program;
        let name = self.name(dst);
        self.require(prim.row().batch != BatchRule::Random, || format!("{name} is uniform and a random draw"));
        for v in args.iter().filter_map(|a| a.var()) {
            self.require(program.vars[v].uniform, || {
                format!("{name} is uniform and computed from {}, which varies", program.vars[v].name)
            });
        }
    }

    fn regions(&mut self) {
        let program = self.program;
        let mut inside = IdSet::new(program.blocks.len());
        for region in &program.regions {
            self.require(!region.blocks.is_empty(), || "a region has no blocks".to_owned());
            for b in &region.blocks {
                self.at(*b, None);
                self.require(inside.insert(*b), || "is in two regions or twice in one".to_owned());
                self.region_block(*b);
            }
            self.region_entries(&region.blocks);
        }
        self.place = Position::default();
    }

    fn region_block(&mut self, id: BlockId) {
        let program = self.program;
        let block = &program.blocks[id];
        for (i, inst) in block.insts.iter().enumerate() {
            self.at(id, Some(i));
            self.require(inst.kind.moved().is_none(), || "a push or pop inside a region".to_owned());
        }
        self.at(id, Some(block.insts.len()));
        match block.term {
            Terminator::Jump(_) => {}
            Terminator::Branch(cond, ..) => {
                let uniform = cond.var().is_none_or(|v| program.vars[v].uniform);
                self.require(uniform, || "a branch inside a region may diverge".to_owned());
            }
            _ => self.report("ends a function inside a region"),
        }
    }

    /// A region is entered at its first block only.
    fn region_entries(&mut self, region: &[BlockId]) {
        let inside: BTreeSet<BlockId> = region.iter().copied().collect();
        let inner: BTreeSet<BlockId> = region.iter().skip(1).copied().collect();
        let program = self.program;
        for b in &inner {
            self.at(*b, None);
            self.require(*b != program.entry, || {
                "is the entry of the program, but not the first block of its region".to_owned()
            });
        }
        for (from, block) in program.blocks.iter().filter(|(from, _)| !inside.contains(from)) {
            for b in block.term.successors().into_iter().filter(|b| inner.contains(b)) {
                self.at(b, None);
                self.report(format!("is entered from {from}, but is not the first block of its region"));
            }
        }
    }
}
