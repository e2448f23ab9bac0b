//! Whether a unit program is one: ids, types, storage classes, values before their uses, variables loaded and stored
//! once, units. A finding is a bug of the compiler or of whoever wrote the text by hand.

mod flow;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{
    Args, Argument, Attempt, Block, BlockEnd, BlockId, Body, CallProgram, CallTerminator, Func, Globals, OpKind,
    Operand, Passing, Program, Terminator, UnitId, ValueId, VarId,
};
use crate::base::{Id as _, IdVec};
use crate::parts::{self, StorageClass};
use crate::prim::BatchRule;
use crate::types::Type;

/// A violation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitError {
    /// The block, where it is in one.
    pub block: Option<BlockId>,
    /// Its operation; the number of operations for the terminator.
    pub op: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(block) = self.block {
            write!(f, "block {block}, ")?;
        }
        if let Some(op) = self.op {
            write!(f, "operation {op}, ")?;
        }
        f.write_str(&self.message)
    }
}

/// All violations of the units of a stack program, in the order of its text.
pub fn verify(program: &Program) -> Vec<UnitError> {
    let mut check = Check::new(&program.body, &program.globals);
    parts::check_shared(&program.globals.shared).into_iter().for_each(|message| check.report(message));
    check.require(program.entry.index() < program.body.blocks.len(), || "the entry is no block".to_owned());
    check.ports(program);
    check.body(|check, term| match term {
        Terminator::PushJump { target, ret, attempt, .. } => {
            check.target(*target);
            check.target(*ret);
            check.outside_regions("calls");
            if let Some(attempt) = attempt {
                check.attempt(attempt);
            }
        }
        Terminator::Return | Terminator::Halt => check.outside_regions("ends a function"),
        Terminator::Jump(_) | Terminator::Branch(..) => {}
    });
    if check.errors.is_empty() {
        check.entry(program);
        check.returns(program);
        flow::temporaries(&mut check);
        flow::heights(&mut check, program);
        flow::attempts(&mut check, program);
    }
    let mut errors = check.errors;
    errors.sort_by_key(|e| (e.block, e.op));
    errors
}

impl<'a> Check<'a, Terminator> {
    fn ports(&mut self, program: &Program) {
        for ports in [&program.inputs, &program.outputs] {
            let mut names = BTreeSet::new();
            for port in ports {
                self.require(names.insert(&port.name), || format!("there are two ports {}", port.name));
                if self.var(port.var) {
                    let class = program.body.vars[port.var].class;
                    self.require(class != StorageClass::Temporary, || format!("port {} is a temporary", port.name));
                }
            }
        }
    }

    fn entry(&mut self, program: &Program) {
        let unit = self.units[program.entry].map(|unit| (unit, self.body.units[unit].blocks[0]));
        if let Some((unit, _)) = unit.filter(|(_, first)| *first != program.entry) {
            self.report(format!("the entry {} is not the first block of {unit}", program.entry));
        }
    }

    fn attempt(&mut self, attempt: &Attempt) {
        for v in &attempt.results {
            if self.var(*v) {
                let var = &self.body.vars[*v];
                let kept = var.class != StorageClass::Temporary;
                self.require(kept, || format!("{} is the result of an attempt and a temporary", var.name));
            }
        }
        for v in &attempt.stacks {
            if self.var(*v) {
                self.stack(*v);
            }
        }
        for tape in &attempt.tapes {
            let known = tape.index() < self.globals.tapes.len();
            self.require(known, || format!("{tape} does not exist"));
        }
    }

    /// Where a trap leads is told by where the call returns to, so no other call may return there.
    fn returns(&mut self, program: &'a Program) {
        let mut returns: BTreeMap<BlockId, (BlockId, &Option<Attempt>)> = BTreeMap::new();
        for (id, block) in program.body.blocks.iter() {
            let Terminator::PushJump { target, ret, attempt, .. } = &block.term else { continue };
            self.at = (Some(id), Some(block.ops.len()));
            let known = *returns.entry(*ret).or_insert((*target, attempt));
            let same = (known.1.is_none() && attempt.is_none()) || known == (*target, attempt);
            self.require(same, || format!("an attempt and another call both return to {ret}"));
        }
        self.at = (None, None);
    }
}

/// All violations of the units of a CFG program, function by function.
pub fn verify_calls(program: &CallProgram) -> Vec<UnitError> {
    let wrong = parts::check_shared(&program.globals.shared).into_iter();
    let mut errors: Vec<UnitError> = wrong.map(|message| UnitError { block: None, op: None, message }).collect();
    if program.funcs.get(program.entry).is_none_or(|f| f.results.len() != program.outputs.len()) {
        let message = "the entry is no function with a result for each output".to_owned();
        errors.push(UnitError { block: None, op: None, message });
    }
    for func in program.funcs.values() {
        let mut check = Check::new(&func.body, &program.globals);
        for p in &func.params {
            check.var(*p);
        }
        if check.errors.is_empty() {
            check.body(|check, term| check.call_terminator(program, func, term));
        }
        let of = |e: UnitError| UnitError { message: format!("function {}: {}", func.name, e.message), ..e };
        errors.extend(check.errors.into_iter().map(of));
    }
    errors
}

struct Check<'a, T> {
    body: &'a Body<T>,
    globals: &'a Globals,
    /// The unit of each block.
    units: IdVec<BlockId, Option<UnitId>>,
    at: (Option<BlockId>, Option<usize>),
    errors: Vec<UnitError>,
}

impl<'a, T: BlockEnd> Check<'a, T> {
    fn new(body: &'a Body<T>, globals: &'a Globals) -> Self {
        let units = IdVec::filled(None, body.blocks.len());
        Self { body, globals, units, at: (None, None), errors: Vec::new() }
    }
    fn report(&mut self, message: String) {
        self.errors.push(UnitError { block: self.at.0, op: self.at.1, message });
    }
    fn require(&mut self, holds: bool, message: impl FnOnce() -> String) {
        if !holds {
            self.report(message());
        }
    }
    /// The name of a variable, if it exists.
    fn name(&self, var: VarId) -> String {
        self.body.vars.get(var).map_or_else(|| var.to_string(), |v| v.name.clone())
    }
    /// Whether a variable exists; says so if not.
    fn var(&mut self, var: VarId) -> bool {
        let known = var.index() < self.body.vars.len();
        self.require(known, || format!("{var} does not exist"));
        known
    }
    fn target(&mut self, to: BlockId) {
        self.require(to.index() < self.body.blocks.len(), || format!("{to} is no block"));
    }
    fn stack(&mut self, var: VarId) {
        let Some(v) = self.body.vars.get(var) else { return };
        self.require(v.class == StorageClass::Stack, || format!("{} is a {}, not a stack", v.name, v.class));
    }
    fn outside_regions(&mut self, what: &str) {
        let region = self.region();
        self.require(!region, || format!("{what} inside a region"));
    }
    fn region(&self) -> bool {
        let unit = self.at.0.and_then(|b| self.units[b]);
        unit.is_some_and(|u| self.body.units[u].region)
    }

    fn body(&mut self, term: impl Fn(&mut Self, &'a T)) {
        let mut names = BTreeSet::new();
        for var in self.body.vars.values() {
            self.require(names.insert(&var.name), || format!("there are two variables {}", var.name));
            let uniform = !var.uniform || var.class == StorageClass::Temporary;
            self.require(uniform, || format!("{} is uniform and a {}", var.name, var.class));
        }
        self.units();
        if !self.errors.is_empty() {
            return;
        }
        for (id, block) in self.body.blocks.iter() {
            self.at = (Some(id), None);
            self.block(block);
            self.at = (Some(id), Some(block.ops.len()));
            self.ending(block);
            term(self, &block.term);
        }
        self.at = (None, None);
    }

    /// Each block is in one unit.
    fn units(&mut self) {
        for (id, unit) in self.body.units.iter() {
            self.require(!unit.blocks.is_empty(), || format!("{id} has no blocks"));
            self.require(unit.region || unit.blocks.len() < 2, || format!("{id} has several blocks and is no region"));
            for b in &unit.blocks {
                match self.units.get(*b) {
                    None => self.report(format!("{b} is no block")),
                    Some(Some(other)) => self.report(format!("{b} is in {other} and in {id}")),
                    Some(None) => self.units[*b] = Some(id),
                }
            }
        }
        for b in self.body.blocks.ids() {
            let known = self.units[b].is_some();
            self.require(known, || format!("{b} is in no unit"));
        }
    }

    fn block(&mut self, block: &'a Block<T>) {
        let mut computed = 0;
        let (mut loaded, mut stored, mut popped) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (i, op) in block.ops.iter().enumerate() {
            self.at.1 = Some(i);
            match &op.kind {
                OpKind::Load { var, .. } => {
                    let first = loaded.insert(*var) && !stored.contains(var) && !popped.contains(var);
                    let name = self.name(*var);
                    self.require(first, || format!("{name} is loaded, stored or popped before it is loaded"));
                }
                OpKind::Store { var, .. } => {
                    let first = stored.insert(*var);
                    let name = self.name(*var);
                    self.require(first, || format!("{name} is stored twice"));
                }
                OpKind::Pop { stack, .. } => {
                    let kept = !stored.contains(stack);
                    let name = self.name(*stack);
                    self.require(kept, || format!("{name} is stored before it is popped"));
                    popped.insert(*stack);
                }
                _ => {}
            }
            let mut operands = Args::new();
            op.kind.for_each_operand(|o| operands.push(o));
            let known = operands.iter().all(|o| self.operand(*o, computed));
            let var = op.kind.var().is_none_or(|v| self.var(v));
            if let Some(dst) = op.kind.dst() {
                self.require(dst.index() == computed, || format!("computes {dst} where %{computed} is the next"));
                computed += 1;
            }
            if known && var && computed <= block.values.len() {
                self.op(block, &op.kind);
            }
        }
        let all = computed == block.values.len();
        self.require(all, || format!("has {} values, but computes {computed}", block.values.len()));
    }

    /// Whether an operand exists, where so many values are computed; says so if not.
    fn operand(&mut self, operand: Operand, computed: usize) -> bool {
        let known = match operand {
            Operand::Var(v) => v.index() < computed,
            Operand::Shared(s) => s.index() < self.globals.shared.len(),
            Operand::Const(_) => true,
        };
        self.require(known, || format!("{operand:?} is read before it is computed"));
        known
    }

    fn op(&mut self, block: &'a Block<T>, kind: &'a OpKind) {
        let (globals, vars) = (self.globals, &self.body.vars);
        let ty = |o: Operand| block.operand_type(o, globals);
        let uniform = |o: Operand| o.var().is_none_or(|v| block.values[v].uniform);
        match kind {
            OpKind::Load { dst, var } => {
                let (value, var) = (&block.values[*dst], &vars[*var]);
                let same = value.ty == var.ty && value.uniform == var.uniform;
                self.require(same, || format!("loads {}, which is {}, as {}", var.name, var.ty, value.ty));
            }
            OpKind::Compute { dst, prim, args } => {
                let value = &block.values[*dst];
                let types: Vec<Type> = args.iter().map(|a| ty(*a)).collect();
                if let Err(error) = prim.check(&types, &value.ty) {
                    self.report(error.to_string());
                }
                let once = prim.row().batch != BatchRule::Random && args.iter().all(|a| uniform(*a));
                self.require(!value.uniform || once, || format!("{dst} is uniform, but what it is made of is not"));
            }
            OpKind::Store { var, value } => {
                let (var, stored) = (&vars[*var], ty(*value));
                self.require(var.ty == stored, || format!("stores {stored} in {}, which is {}", var.name, var.ty));
                let fits = !var.uniform || uniform(*value);
                self.require(fits, || format!("{} is uniform and gets what varies", var.name));
            }
            OpKind::Push { stack, value } => {
                self.stack(*stack);
                self.outside_regions("a push");
                let (stack, pushed) = (&vars[*stack], ty(*value));
                self.require(stack.ty == pushed, || format!("pushes {pushed} on {}, of {}", stack.name, stack.ty));
                let varies = value.var().is_none_or(|v| !block.values[v].uniform);
                self.require(varies, || format!("pushes what is uniform on {}", stack.name));
            }
            OpKind::Pop { dst, stack } => {
                self.stack(*stack);
                self.outside_regions("a pop");
                let (value, stack) = (&block.values[*dst], &vars[*stack]);
                let same = value.ty == stack.ty && !value.uniform;
                self.require(same, || format!("pops {}, of {}, as {}", stack.name, stack.ty, value.ty));
            }
            OpKind::Effect(effect) => {
                let value = |v: &ValueId| block.values[*v].ty.clone();
                let lists = (&globals.streams, &globals.tapes);
                if let Err(message) = effect.check(lists, |o| ty(*o), value) {
                    self.report(message);
                }
                if let Some(dst) = effect.dst() {
                    let varies = !block.values[*dst].uniform;
                    self.require(varies, || format!("{dst} is uniform and comes off a tape"));
                }
            }
        }
    }

    fn ending(&mut self, block: &'a Block<T>) {
        if let Some(cond) = block.term.condition()
            && self.operand(cond, block.values.len())
        {
            let ty = block.operand_type(cond, self.globals);
            self.require(ty == Type::bool(), || format!("the condition of a branch is {ty}, not bool"));
            let uniform = cond.var().is_none_or(|v| block.values[v].uniform);
            let region = self.region();
            self.require(uniform || !region, || "a branch inside a region may diverge".to_owned());
        }
        let unit = self.at.0.and_then(|b| self.units[b]);
        for to in block.term.successors() {
            self.target(to);
            let Some(Some(other)) = self.units.get(to).copied() else { continue };
            let first = self.body.units[other].blocks[0] == to;
            self.require(first || Some(other) == unit, || format!("enters {other} at {to}, which is not its first"));
        }
    }
}

impl<'a> Check<'a, CallTerminator> {
    fn call_terminator(&mut self, program: &'a CallProgram, own: &'a Func, term: &'a CallTerminator) {
        match term {
            CallTerminator::Jump(_) | CallTerminator::Branch(..) => {}
            CallTerminator::Call { func, args, dsts, .. } => {
                let Some(callee) = program.funcs.get(*func) else {
                    return self.report(format!("{func} does not exist"));
                };
                self.passed(args, callee.params.iter().map(|p| &callee.body.vars[*p].ty));
                let known = dsts.iter().all(|v| self.var(*v));
                let fits = known && dsts.iter().map(|v| &own.body.vars[*v].ty).eq(&callee.results);
                self.require(fits, || format!("the results of {} do not fit where they go", callee.name));
            }
            CallTerminator::TailCall { func, args } => {
                let Some(callee) = program.funcs.get(*func) else {
                    return self.report(format!("{func} does not exist"));
                };
                self.passed(args, callee.params.iter().map(|p| &callee.body.vars[*p].ty));
                let fits = callee.results == own.results;
                self.require(fits, || format!("the results of {} are not those of {}", callee.name, own.name));
            }
            CallTerminator::Return(args) => self.passed(args, own.results.iter()),
        }
    }

    fn passed(&mut self, args: &[(Argument, Passing)], types: impl Iterator<Item = &'a Type>) {
        for (arg, _) in args {
            match arg {
                parts::Operand::Var(v) => _ = self.var(*v),
                parts::Operand::Shared(s) => {
                    let known = s.index() < self.globals.shared.len();
                    self.require(known, || format!("{s} does not exist"));
                }
                parts::Operand::Const(_) => {}
            }
        }
        if self.errors.is_empty() {
            let (vars, globals) = (&self.body.vars, self.globals);
            let found = args.iter().map(|(arg, _)| globals.type_of(*arg, |v: VarId| vars[v].ty.clone()));
            let fits = found.eq(types.cloned());
            self.require(fits, || "what is passed does not fit where it goes".to_owned());
        }
    }
}
