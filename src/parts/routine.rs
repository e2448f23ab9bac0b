//! Code that computes shared values: basic blocks over variables of their own, without calls and without effects. It runs
//! once, before the lanes start.

use crate::base::text::{QuotedName, ReadError, Reader};
use crate::base::{Id, IdSet, IdVec, Loc};
use crate::parts::text::{LocText, NameTable, OperandNames, Scope, read_loc, read_typed_name, typed_names};
use crate::parts::{Args, Operand, Shared, SharedId};
use crate::prim::{Effect, Prim};
use crate::types::Type;

crate::define_id!(
    /// A variable of a [`Routine`].
    RoutineVar, "v"
);
crate::define_id!(
    /// A block of a [`Routine`].
    RoutineBlock, "b"
);

/// The code. It starts at its first block.
#[derive(Clone, PartialEq, Debug)]
pub struct Routine {
    /// Names and types of its variables.
    pub vars: IdVec<RoutineVar, (String, Type)>,
    /// Its blocks.
    pub blocks: IdVec<RoutineBlock, Block>,
}

/// A basic block.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// Straight-line code.
    pub steps: Vec<Step>,
    /// How it ends.
    pub term: Term,
}

/// `dst = prim args`
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Where the result goes.
    pub dst: RoutineVar,
    /// The primitive: no draw.
    pub prim: Prim,
    /// Its operands.
    pub args: Args<RoutineVar>,
    /// Where it stands in the source.
    pub loc: Loc,
}

/// How a block ends.
#[derive(Clone, PartialEq, Debug)]
pub enum Term {
    /// To a block.
    Jump(RoutineBlock),
    /// To the first block where the bool scalar holds, else to the second.
    Branch(Operand<RoutineVar>, RoutineBlock, RoutineBlock),
    /// Ends the routine with its results.
    Return(Args<RoutineVar>),
}

impl Term {
    fn successors(&self) -> impl Iterator<Item = RoutineBlock> {
        let (a, b) = match self {
            Term::Jump(a) => (Some(*a), None),
            Term::Branch(_, a, b) => (Some(*a), Some(*b)),
            Term::Return(_) => (None, None),
        };
        a.into_iter().chain(b)
    }
    fn reads(&self) -> &[Operand<RoutineVar>] {
        match self {
            Term::Jump(_) => &[],
            Term::Branch(cond, ..) => std::slice::from_ref(cond),
            Term::Return(values) => values,
        }
    }
}

impl Routine {
    /// The shared values that it reads.
    pub fn reads_shared(&self) -> impl Iterator<Item = SharedId> {
        let reads = |block: &Block| -> Vec<Operand<RoutineVar>> {
            block.steps.iter().flat_map(|step| &step.args).chain(block.term.reads()).copied().collect()
        };
        let shared = |operand: Operand<RoutineVar>| match operand {
            Operand::Shared(s) => Some(s),
            Operand::Var(_) | Operand::Const(_) => None,
        };
        self.blocks.values().flat_map(reads).filter_map(shared)
    }

    /// Whether it makes sense as the source of the value `id` and the others that it gives, which have these types. What it
    /// reads must come before `first`.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self, shared: &IdVec<SharedId, Shared>, first: SharedId, results: &[Type]) -> Result<(), String> {
        let ty = |operand: &Operand<RoutineVar>| match *operand {
            Operand::Var(v) => {
                self.vars.get(v).map(|v| v.1.clone()).ok_or_else(|| "there is no such variable".to_owned())
            }
            Operand::Shared(s) if s < first => Ok(shared[s].ty.clone()),
            Operand::Shared(_) => Err("an operand is no earlier shared value".to_owned()),
            Operand::Const(c) => Ok(Type::scalar(c.dtype())),
        };
        let types = |operands: &[Operand<RoutineVar>]| operands.iter().map(ty).collect::<Result<Vec<Type>, String>>();
        if self.blocks.is_empty() {
            return Err("it has no blocks".to_owned());
        }
        for block in self.blocks.values() {
            for step in &block.steps {
                let args = types(&step.args)?;
                let dst = ty(&Operand::Var(step.dst))?;
                step.prim.check(&args, &dst).map_err(|e| e.0)?;
                if step.prim.effect(&args) == Effect::Random {
                    return Err("a random draw is not shared".to_owned());
                }
            }
            match &block.term {
                Term::Branch(cond, ..) if ty(cond)? != Type::bool() => {
                    return Err("the condition of a branch is no bool".to_owned());
                }
                Term::Return(values) if types(values)? != results => {
                    return Err("it does not return values of these types".to_owned());
                }
                _ => {}
            }
            if block.term.successors().any(|b| self.blocks.get(b).is_none()) {
                return Err("a block is missing".to_owned());
            }
        }
        self.check_set()
    }

    /// Whether every variable is set before it is read, on every path.
    fn check_set(&self) -> Result<(), String> {
        let mut before: IdVec<RoutineBlock, Option<IdSet<RoutineVar>>> = IdVec::filled(None, self.blocks.len());
        let first = RoutineBlock::new(0);
        before[first] = Some(IdSet::new(self.vars.len()));
        let mut work = vec![first];
        while let Some(id) = work.pop() {
            let mut set = before[id].clone().expect("a block of the list was reached");
            let unset = |set: &IdSet<RoutineVar>, reads: &[Operand<RoutineVar>]| {
                reads.iter().filter_map(|r| r.var()).find(|v| !set.contains(*v))
            };
            let missing = |v: RoutineVar| format!("{} may be read before it is set", self.vars[v].0);
            for step in &self.blocks[id].steps {
                if let Some(v) = unset(&set, &step.args) {
                    return Err(missing(v));
                }
                set.insert(step.dst);
            }
            if let Some(v) = unset(&set, self.blocks[id].term.reads()) {
                return Err(missing(v));
            }
            for next in self.blocks[id].term.successors() {
                let changed = match &mut before[next] {
                    Some(known) => known.intersect_with(&set),
                    unknown => {
                        *unknown = Some(set.clone());
                        true
                    }
                };
                if changed {
                    work.push(next);
                }
            }
        }
        Ok(())
    }

    /// The shared values that it reads.
    pub fn shared(&self) -> impl Iterator<Item = SharedId> {
        let steps = self.blocks.values().flat_map(|b| &b.steps).flat_map(|s| &s.args);
        let terms = self.blocks.values().flat_map(|b| b.term.reads());
        steps.chain(terms).filter_map(|o| if let Operand::Shared(s) = o { Some(*s) } else { None })
    }

    /// The same code, reading other shared values.
    #[must_use]
    pub fn renumbered(&self, new: impl Fn(SharedId) -> SharedId) -> Routine {
        let mut routine = self.clone();
        let change = |o: &mut Operand<RoutineVar>| {
            if let Operand::Shared(s) = o {
                *s = new(*s);
            }
        };
        for block in routine.blocks.values_mut() {
            block.steps.iter_mut().flat_map(|s| &mut s.args).for_each(change);
            match &mut block.term {
                Term::Jump(_) => {}
                Term::Branch(cond, ..) => change(cond),
                Term::Return(values) => values.iter_mut().for_each(change),
            }
        }
        routine
    }

    /// The text form, from the opening to the closing brace.
    pub fn text(&self, shared: &IdVec<SharedId, Shared>) -> String {
        let name = |v: RoutineVar| self.vars.get(v).map(|v| v.0.as_str());
        let names = OperandNames { var: &name, shared };
        let mut out = "{\n".to_owned();
        let vars = typed_names(self.vars.values().map(|(name, ty)| (name.as_str(), ty)));
        if !vars.is_empty() {
            out += &format!("  var {vars}\n");
        }
        for (id, block) in self.blocks.iter() {
            out += &format!("block {id}\n");
            for step in &block.steps {
                let dst = QuotedName(&self.vars[step.dst].0);
                out += &format!("  {dst} = {}{}\n", names.prim(step.prim, &step.args), LocText(&step.loc));
            }
            out += &match &block.term {
                Term::Jump(b) => format!("  jump {b}\n"),
                Term::Branch(cond, a, b) => format!("  branch {}, {a}, {b}\n", names.operand(*cond)),
                Term::Return(values) => format!("  return {}\n", names.operands(values)),
            };
        }
        out + "}"
    }

    /// Reads what [`text`](Self::text) writes.
    ///
    /// # Errors
    /// For any other text.
    pub fn read(reader: &mut Reader, shared: &NameTable<SharedId>) -> Result<Routine, ReadError> {
        reader.expect('{')?;
        reader.end_line()?;
        let mut vars = IdVec::new();
        let mut names = NameTable::new("variable");
        while reader.eat_word("var") {
            for (name, ty) in reader.list(|_| false, |r| read_typed_name(r, "the name of a variable"))? {
                names.add(reader, &name, vars.next_id())?;
                vars.push((name, ty));
            }
            reader.end_line()?;
        }
        let labels = labels(reader)?;
        let scope = Scope { vars: &names, shared };
        let mut blocks = IdVec::new();
        while !reader.eat('}') {
            reader.expect_word("block")?;
            labels.read(reader)?;
            reader.end_line()?;
            blocks.push(read_block(reader, &scope, &labels)?);
        }
        Ok(Routine { vars, blocks })
    }
}

fn labels(reader: &mut Reader) -> Result<NameTable<RoutineBlock>, ReadError> {
    let start = reader.position();
    let mut labels = NameTable::new("block");
    let mut count = 0;
    while !reader.at_end() && !reader.at('}') {
        if reader.eat_word("block") {
            let name = reader.name("a label")?;
            labels.add(reader, &name, RoutineBlock::new(count))?;
            count += 1;
        }
        reader.skip_line();
    }
    reader.back_to(start);
    Ok(labels)
}

fn read_block(
    reader: &mut Reader,
    scope: &Scope<'_, RoutineVar>,
    labels: &NameTable<RoutineBlock>,
) -> Result<Block, ReadError> {
    let mut steps = Vec::new();
    loop {
        let term = if reader.eat_word("jump") {
            Term::Jump(labels.read(reader)?)
        } else if reader.eat_word("branch") {
            let cond = scope.operand(reader)?;
            reader.expect(',')?;
            let holds = labels.read(reader)?;
            reader.expect(',')?;
            Term::Branch(cond, holds, labels.read(reader)?)
        } else if reader.eat_word("return") {
            Term::Return(scope.operands(reader)?)
        } else {
            let dst = scope.vars.read(reader)?;
            reader.expect('=')?;
            let (prim, args) = scope.prim(reader)?;
            let loc = read_loc(reader)?;
            reader.end_line()?;
            steps.push(Step { dst, prim, args, loc });
            continue;
        };
        reader.end_line()?;
        return Ok(Block { steps, term });
    }
}
