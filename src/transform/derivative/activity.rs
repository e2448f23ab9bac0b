//! Which variables a derivative goes through: those that vary with what it is taken with respect to, and that a result
//! depends on. One answer for a whole function, whatever the order of its blocks; a fixed point over calls, which looks
//! again only at the blocks that read what came to vary.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use indexmap::IndexMap;

use super::DerivativeRequests;
use crate::base::{Id, IdSet, IdVec, work};
use crate::cfg::{BlockId, Func, FuncId, InstKind, Operand, SideEffect, TapeId, Terminator, VarId};
use crate::prim::{DerivativeRule, Prim};
use crate::types::DType;

/// A function, and for each of its parameters whether it varies.
pub(super) type Key = (FuncId, Vec<bool>);

/// Answers for the functions of a derivative.
#[derive(Debug)]
pub(super) struct Activity<'a> {
    funcs: &'a IndexMap<FuncId, Func>,
    requests: &'a DerivativeRequests,
    /// For each key asked for, which results vary.
    results: IndexMap<Key, Vec<bool>>,
    /// For each of them, how far its function was looked at.
    looks: Vec<Look>,
    /// The keys whose functions have blocks to be looked at, by number: those that were asked for last come first, so
    /// that callees mostly have their answers before a caller is looked at again.
    open: BTreeSet<usize>,
    /// Who looks again when more is known.
    waiting: HashMap<Awaited, BTreeSet<Waiting>>,
    /// The blocks of a changed copy of a function that are to be looked at again.
    copy: Vec<usize>,
    /// What is known of each function.
    flows: HashMap<FuncId, Rc<Flow>>,
    /// The tapes of the program, of an earlier derivative, that hold what varies.
    tapes: IdSet<TapeId>,
    /// Functions that may use tapes: what they give may vary although nothing that they are given does.
    taped: IdSet<FuncId>,
}

/// What may come to vary.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Awaited {
    /// A result of the key of this number.
    Results(usize),
    /// What is on a tape.
    Tape(TapeId),
}

/// Where it is read: the number of the key, or none for a changed copy, and the place of the block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Waiting {
    key: Option<usize>,
    place: usize,
}

/// How far a function was looked at.
#[derive(Debug)]
struct Look {
    /// What varies by what was known.
    varied: IdSet<VarId>,
    /// The places of the blocks that read what varies since they were looked at.
    open: BTreeSet<usize>,
}

/// What one look finds besides the variables that vary.
#[derive(Default)]
struct Found {
    /// Calls by which a variable varies if a result of the key does, with the places of their blocks, and whether the
    /// key was asked for before.
    calls: Vec<(Key, usize, bool)>,
    /// Tapes that get what varies.
    pushed: Vec<TapeId>,
    /// Tapes that values are popped off, with the places of the blocks.
    popped: Vec<(TapeId, usize)>,
}

/// The blocks of a function in an order in which most come before those that they lead to, and what looks need of them.
#[derive(Debug)]
struct Flow {
    order: Vec<BlockId>,
    /// For each variable, the places of the blocks that read it.
    readers: IdVec<VarId, Vec<usize>>,
    /// The blocks that return.
    returns: Vec<BlockId>,
}

impl Flow {
    fn new(func: &Func) -> Self {
        let order = flow(func);
        let mut readers: IdVec<VarId, Vec<usize>> = IdVec::filled(Vec::new(), func.vars.len());
        let mut returns = Vec::new();
        for (place, id) in order.iter().enumerate() {
            let block = &func.blocks[*id];
            work::add(block.insts.len() + 1);
            let mut read = |o: Operand| {
                if let Operand::Var(v) = o
                    && readers[v].last() != Some(&place)
                {
                    readers[v].push(place);
                }
            };
            block.insts.iter().for_each(|inst| inst.kind.for_each_operand(&mut read));
            block.term.for_each_operand(&mut read);
            if matches!(block.term, Terminator::Return(_)) {
                returns.push(*id);
            }
        }
        Self { order, readers, returns }
    }
}

impl Look {
    /// Nothing was looked at yet; these parameters vary.
    fn new(func: &Func, params: &[bool]) -> Self {
        let mut varied = IdSet::new(func.vars.len());
        func.params.iter().zip(params).filter(|(_, varies)| **varies).for_each(|(p, _)| _ = varied.insert(*p));
        Self { varied, open: (0..func.blocks.len()).collect() }
    }
    /// There is nothing to look at.
    fn none() -> Self {
        Self { varied: IdSet::new(0), open: BTreeSet::new() }
    }
}

impl<'a> Activity<'a> {
    /// Nothing is known yet. `funcs` are all that the root of the derivative may run; there are `tapes` tapes.
    pub(super) fn new(funcs: &'a IndexMap<FuncId, Func>, requests: &'a DerivativeRequests, tapes: usize) -> Self {
        let bound = funcs.keys().map(|f| f.index() + 1).max().unwrap_or(0);
        Self {
            funcs,
            requests,
            results: IndexMap::new(),
            looks: Vec::new(),
            open: BTreeSet::new(),
            waiting: HashMap::new(),
            copy: Vec::new(),
            flows: HashMap::new(),
            tapes: IdSet::new(tapes),
            taped: taped(funcs, bound),
        }
    }

    /// Whether a tape holds what varies.
    pub(super) fn is_varied(&self, tape: TapeId) -> bool {
        self.tapes.contains(tape)
    }

    /// Whether a function may put what varies on a tape or take it from there.
    pub(super) fn uses_varied_tapes(&self, func: FuncId) -> bool {
        self.taped.contains(func) && !self.tapes.is_empty()
    }

    /// Which results of a function vary.
    pub(super) fn results(&mut self, key: &Key) -> Vec<bool> {
        let at = self.ask(key.clone());
        self.solve();
        self.results[at].clone()
    }

    /// The functions in which something varies, of those that were met so far.
    pub(super) fn varying(&self) -> BTreeSet<FuncId> {
        let varies = |(func, params): &&Key| params.contains(&true) || self.uses_varied_tapes(*func);
        self.results.keys().filter(varies).map(|key| key.0).collect()
    }

    /// The variables of a function that vary when these parameters do. `func` may be a changed copy of the one that is
    /// known.
    pub(super) fn varied(&mut self, func: &Func, params: &[bool]) -> IdSet<VarId> {
        let flow = Flow::new(func);
        let mut look = Look::new(func, params);
        let mut awaited = Vec::new();
        while !look.open.is_empty() {
            let found = self.look(func, &flow, &mut look);
            self.note(found, None, &mut awaited);
            self.solve();
            look.open.extend(self.copy.drain(..));
        }
        for awaited in awaited {
            self.waiting.entry(awaited).and_modify(|all| all.retain(|w| w.key.is_some()));
        }
        look.varied
    }

    /// The number of a key, which is asked for if it is new.
    fn ask(&mut self, key: Key) -> usize {
        if let Some(at) = self.results.get_index_of(&key) {
            return at;
        }
        let func = &self.funcs[&key.0];
        // a rule knows what its function does not say
        let ruled = self.requests.rules.contains_key(&key.0);
        let any = key.1.contains(&true) && ruled;
        let results = func.results.iter().map(|ty| any && ty.dtype == DType::Real).collect();
        let look = if ruled { Look::none() } else { Look::new(func, &key.1) };
        let at = self.results.len();
        self.looks.push(look);
        self.results.insert(key, results);
        if !ruled {
            self.open.insert(at);
        }
        at
    }

    /// Takes down what a look of `who` found; what it waits for is added to `awaited`.
    fn note(&mut self, found: Found, who: Option<usize>, awaited: &mut Vec<Awaited>) {
        for (key, place, known) in found.calls {
            let callee = self.ask(key);
            let waiting = Waiting { key: who, place };
            self.wait(Awaited::Results(callee), waiting, awaited);
            // What a rule says is known as soon as it is asked.
            if !known && self.results[callee].contains(&true) {
                self.look_again(waiting);
            }
        }
        for (tape, place) in found.popped {
            self.wait(Awaited::Tape(tape), Waiting { key: who, place }, awaited);
        }
        for tape in found.pushed {
            if self.tapes.insert(tape) {
                self.wake(Awaited::Tape(tape));
            }
        }
    }

    fn wait(&mut self, what: Awaited, waiting: Waiting, awaited: &mut Vec<Awaited>) {
        if self.waiting.entry(what).or_default().insert(waiting) {
            awaited.push(what);
        }
    }

    fn wake(&mut self, what: Awaited) {
        let all = self.waiting.get(&what).cloned().unwrap_or_default();
        work::add(all.len());
        all.into_iter().for_each(|waiting| self.look_again(waiting));
    }

    fn look_again(&mut self, Waiting { key, place }: Waiting) {
        match key {
            Some(at) => {
                self.looks[at].open.insert(place);
                self.open.insert(at);
            }
            None => self.copy.push(place),
        }
    }

    /// Looks until nothing changes.
    fn solve(&mut self) {
        while let Some(at) = self.open.pop_last() {
            let id = self.results.get_index(at).map(|(key, _)| key.0).expect("it was asked for");
            let func = &self.funcs[&id];
            let flow = Rc::clone(self.flows.entry(id).or_insert_with(|| Rc::new(Flow::new(func))));
            let mut look = std::mem::replace(&mut self.looks[at], Look::none());
            let found = self.look(func, &flow, &mut look);
            let mut more = false;
            let results = &mut self.results[at];
            for id in &flow.returns {
                let Terminator::Return(values) = &func.blocks[*id].term else { continue };
                for (result, value) in results.iter_mut().zip(values) {
                    let varies = varies(*value, &look.varied);
                    more |= varies && !*result;
                    *result |= varies;
                }
            }
            self.looks[at] = look;
            self.note(found, Some(at), &mut Vec::new());
            if more {
                self.wake(Awaited::Results(at));
            }
        }
    }

    /// Looks at the open blocks of a function, and at those that read what they find to vary, by what is known of the
    /// callees.
    fn look(&self, func: &Func, flow: &Flow, Look { varied, open }: &mut Look) -> Found {
        let mut found = Found::default();
        while let Some(place) = open.pop_first() {
            let block = &func.blocks[flow.order[place]];
            work::add(block.insts.len() + 1);
            let mut vary = |v: VarId, varied: &mut IdSet<VarId>| {
                if varied.insert(v) {
                    open.extend(&flow.readers[v]);
                }
            };
            for inst in &block.insts {
                match &inst.kind {
                    InstKind::Prim { dst, prim, args } => {
                        let real = func.vars[*dst].ty.dtype == DType::Real;
                        if carries(*prim) && real && args.iter().any(|a| varies(*a, varied)) {
                            vary(*dst, varied);
                        }
                    }
                    InstKind::Effect(SideEffect::TapePush { tape, value }) => {
                        if varies(*value, varied) && !self.tapes.contains(*tape) {
                            found.pushed.push(*tape);
                        }
                    }
                    InstKind::Effect(SideEffect::TapePop { dst, tape }) => match self.tapes.contains(*tape) {
                        true => vary(*dst, varied),
                        false => found.popped.push((*tape, place)),
                    },
                    InstKind::Effect(_) => {}
                }
            }
            if let Terminator::Call { func: callee, args, dsts, .. } = &block.term {
                let mask: Vec<bool> = args.iter().map(|a| varies(*a, varied)).collect();
                if !mask.contains(&true) && !self.taped.contains(*callee) {
                    continue;
                }
                let key = (*callee, mask);
                let results = self.results.get(&key);
                let known = dsts.iter().zip(results.into_iter().flatten()).filter(|(_, result)| **result);
                known.for_each(|(dst, _)| vary(*dst, varied));
                let known = results.is_some();
                found.calls.push((key, place, known));
            }
        }
        found
    }
}

/// The functions that may use tapes, themselves or by what they call.
fn taped(funcs: &IndexMap<FuncId, Func>, bound: usize) -> IdSet<FuncId> {
    let mut callers: HashMap<FuncId, Vec<FuncId>> = HashMap::new();
    let mut taped = IdSet::new(bound);
    let mut open = Vec::new();
    for (id, func) in funcs {
        let mut uses = false;
        for block in func.blocks.values() {
            work::add(block.insts.len() + 1);
            uses |= block.insts.iter().any(|i| matches!(&i.kind, InstKind::Effect(effect) if effect.tape().is_some()));
            if let Some(callee) = block.term.callee() {
                callers.entry(callee).or_default().push(*id);
            }
        }
        if uses {
            open.push(*id);
        }
    }
    while let Some(id) = open.pop() {
        if taped.insert(id) {
            open.extend(callers.get(&id).into_iter().flatten());
        }
    }
    taped
}

/// All blocks, so that most come before those that they lead to.
fn flow(func: &Func) -> Vec<BlockId> {
    let mut order = func.reverse_postorder();
    let reached: BTreeSet<BlockId> = order.iter().copied().collect();
    order.extend(func.blocks.ids().filter(|b| !reached.contains(b)));
    order
}

fn varies(operand: Operand, varied: &IdSet<VarId>) -> bool {
    operand.var().is_some_and(|v| varied.contains(v))
}

/// Whether a primitive's result may vary with its real operands.
pub(super) fn carries(prim: Prim) -> bool {
    matches!(prim.row().derivative, DerivativeRule::Smooth | DerivativeRule::Linear)
}

/// The variables of `varied` that the results of the function may depend on, or what it puts on a tape.
pub(super) fn active(func: &Func, varied: &IdSet<VarId>) -> IdSet<VarId> {
    let mut useful: IdSet<VarId> = IdSet::new(func.vars.len());
    let mark = |operand: Operand, useful: &mut IdSet<VarId>| match operand {
        Operand::Var(v) if varied.contains(v) => useful.insert(v),
        _ => false,
    };
    let order = flow(func);
    let mut changed = true;
    while changed {
        changed = false;
        for block in order.iter().rev().map(|b| &func.blocks[*b]) {
            work::add(block.insts.len() + 1);
            match &block.term {
                Terminator::Return(values) => values.iter().for_each(|v| changed |= mark(*v, &mut useful)),
                Terminator::Call { args, .. } => args.iter().for_each(|a| changed |= mark(*a, &mut useful)),
                _ => {}
            }
            for inst in block.insts.iter().rev() {
                match &inst.kind {
                    InstKind::Prim { dst, prim, args } if carries(*prim) && useful.contains(*dst) => {
                        args.iter().for_each(|a| changed |= mark(*a, &mut useful));
                    }
                    InstKind::Effect(SideEffect::TapePush { value, .. }) => changed |= mark(*value, &mut useful),
                    _ => {}
                }
            }
        }
    }
    useful
}
