//! The functions of a stack program, and what a call of each does to the variables.

use std::collections::BTreeMap;

use crate::base::{IdSet, IdVec};
use crate::stack::{BlockId, Program, Terminator, VarId};

/// A function: what a call of one block runs until it returns.
pub struct Function {
    /// Where it starts.
    pub start: BlockId,
    /// The blocks that it runs itself: those of its callees are not among them, those that it jumps to are.
    pub body: Vec<BlockId>,
    /// The blocks that calls of it return to.
    pub returns_to: Vec<BlockId>,
    /// The blocks that call it.
    pub called_from: Vec<BlockId>,
    /// Whether the program starts here.
    pub is_entry: bool,
    /// What it, or anything it calls in turn, may write: of stack variables, the top.
    pub may_write: IdSet<VarId>,
    /// What has been written whenever it returns.
    pub must_write: IdSet<VarId>,
}

/// All functions of a program.
pub struct Functions {
    /// In the order of the program.
    pub list: Vec<Function>,
    of_start: BTreeMap<BlockId, usize>,
    /// For each block the functions that run it, by position.
    pub of_block: IdVec<BlockId, Vec<usize>>,
}

impl Functions {
    /// The functions of a verified program.
    pub fn of(program: &Program) -> Self {
        let mut sites: BTreeMap<BlockId, (Vec<BlockId>, Vec<BlockId>)> = BTreeMap::new();
        sites.insert(program.entry, Default::default());
        for (id, block) in program.blocks.iter() {
            if let Terminator::PushJump { target, ret, .. } = block.term {
                let (callers, returns) = sites.entry(target).or_default();
                callers.push(id);
                returns.push(ret);
            }
        }
        let mut functions =
            Self { list: Vec::new(), of_start: BTreeMap::new(), of_block: IdVec::filled(vec![], program.blocks.len()) };
        for (start, (called_from, returns_to)) in sites {
            let number = functions.list.len();
            let body: Vec<BlockId> = body(program, start).iter().collect();
            for b in &body {
                functions.of_block[*b].push(number);
            }
            functions.of_start.insert(start, number);
            let none = IdSet::new(program.vars.len());
            let is_entry = start == program.entry;
            let (may_write, must_write) = (none.clone(), none);
            functions.list.push(Function { start, body, returns_to, called_from, is_entry, may_write, must_write });
        }
        functions.find_may_writes(program);
        functions.find_must_writes(program);
        functions
    }

    /// The position of the function that starts at a block that is called.
    pub fn position(&self, start: BlockId) -> usize {
        self.of_start[&start]
    }
    /// The function that starts at a block that is called.
    pub fn at(&self, start: BlockId) -> &Function {
        &self.list[self.position(start)]
    }

    fn find_may_writes(&mut self, program: &Program) {
        for f in &mut self.list {
            for b in &f.body {
                for v in program.blocks[*b].insts.iter().filter_map(|i| i.kind.written()) {
                    f.may_write.insert(v);
                }
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for i in 0..self.list.len() {
                for b in 0..self.list[i].body.len() {
                    if let Terminator::PushJump { target, .. } = program.blocks[self.list[i].body[b]].term {
                        let more = self.at(target).may_write.clone();
                        changed |= self.list[i].may_write.union_with(&more);
                    }
                }
            }
        }
    }

    /// The largest sets that agree with one another: recursion is taken to return at last.
    fn find_must_writes(&mut self, program: &Program) {
        let mut all = IdSet::new(program.vars.len());
        program.vars.ids().for_each(|v| {
            all.insert(v);
        });
        let written = |b: BlockId| {
            let mut set = IdSet::new(program.vars.len());
            for v in program.blocks[b].insts.iter().filter_map(|i| i.kind.written()) {
                set.insert(v);
            }
            set
        };
        let written: IdVec<BlockId, IdSet<VarId>> = program.blocks.ids().map(written).collect();
        self.list.iter_mut().for_each(|f| f.must_write = all.clone());
        let mut changed = true;
        while changed {
            changed = false;
            for i in 0..self.list.len() {
                let now = self.must_write_of(program, &self.list[i], &written, &all);
                changed |= now != self.list[i].must_write;
                self.list[i].must_write = now;
            }
        }
    }

    fn must_write_of(
        &self,
        program: &Program,
        f: &Function,
        written: &IdVec<BlockId, IdSet<VarId>>,
        all: &IdSet<VarId>,
    ) -> IdSet<VarId> {
        let mut before = BTreeMap::from([(f.start, IdSet::new(program.vars.len()))]);
        let mut at_return = all.clone();
        let mut changed = true;
        while changed {
            changed = false;
            for b in &f.body {
                let Some(mut now) = before.get(b).cloned() else {
                    continue;
                };
                now.union_with(&written[*b]);
                let term = &program.blocks[*b].term;
                if let Terminator::PushJump { target, .. } = term {
                    now.union_with(&self.at(*target).must_write);
                }
                if *term == Terminator::Return {
                    at_return.intersect_with(&now);
                }
                for to in within(term) {
                    match before.get_mut(&to) {
                        Some(known) => changed |= known.intersect_with(&now),
                        None => {
                            before.insert(to, now.clone());
                            changed = true;
                        }
                    }
                }
            }
        }
        at_return
    }
}

/// The blocks that a function that starts at `start` runs itself: those of its callees are not among them.
fn body(program: &Program, start: BlockId) -> IdSet<BlockId> {
    let mut body = IdSet::new(program.blocks.len());
    let mut open = vec![start];
    body.insert(start);
    while let Some(block) = open.pop() {
        for to in within(&program.blocks[block].term) {
            if body.insert(to) {
                open.push(to);
            }
        }
    }
    body
}

/// The blocks that may come next in the same function.
pub fn within(term: &Terminator) -> impl Iterator<Item = BlockId> + use<> {
    let callee = matches!(term, Terminator::PushJump { .. });
    term.successors().into_iter().skip(usize::from(callee))
}
