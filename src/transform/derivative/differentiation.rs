//! One derivative while it is made: the functions that it consists of, each once for each set of parameters that vary.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use indexmap::IndexMap;

use super::activity::{Activity, Key, active};
use super::care::Care;
use super::forward::Tangents;
use super::given::{Given, Lasting};
use super::prepare::normalise;
use super::sweeps::Outline;
use super::{CustomRule, DerivativeError, DerivativeRequests};
use crate::base::{Id, IdSet, IdVec, Loc, Names};
use crate::cfg::{Func, FuncId, InstKind, Program, Tape, TapeId, VarId};
use crate::prim::{BatchRule, DerivativeRule};
use crate::types::DType;

/// The functions of a callee's two sweeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// Takes the parameters, gives the results, leaves tapes.
    pub(super) forward: FuncId,
    /// Takes the cotangents of the results that vary, then what [`Given`] says; gives those of the parameters that
    /// vary.
    pub(super) reverse: FuncId,
}

/// How the reverse of a call is made.
#[derive(Clone, Debug)]
pub(super) enum CallRule {
    /// Nothing that the derivative goes through: an ordinary call.
    Inactive,
    /// Two sweeps of the callee, with these parameters varying; which results vary.
    Pair { pair: Pair, key: Key, results: Vec<bool> },
    /// A function that takes the arguments and the cotangents of all real results, and gives, after `skip` results that are not
    /// wanted, the cotangents of the arguments in `mask`: the user's rule, or both sweeps of a `@recompute` function or of an attempt.
    Again { func: FuncId, skip: usize, mask: Vec<bool> },
}

/// How the tangents of a call are made.
#[derive(Clone, Debug)]
pub(super) enum ForwardCall {
    /// None varies: an ordinary call.
    Inactive,
    /// A function that gives them with the results.
    With { func: FuncId, mask: Vec<bool>, results: Vec<bool> },
    /// The user's rule, after the call: arguments and the tangents of those in `mask` to the tangents of all real results.
    Rule { func: FuncId, mask: Vec<bool> },
}

enum Task {
    Split(Key, Pair),
    Forward(Key, FuncId),
    Joint(Key, FuncId),
}

/// One derivative while it is made.
pub(super) struct Differentiation<'a> {
    pub(super) program: &'a Program,
    pub(super) activity: Activity<'a>,
    /// The tapes of the program and new ones.
    pub(super) tapes: IdVec<TapeId, Tape>,
    /// Their names.
    pub(super) tape_names: Names,
    requests: &'a DerivativeRequests,
    prepared: &'a IndexMap<FuncId, Func>,
    shadows: BTreeMap<TapeId, TapeId>,
    names: Names,
    first: usize,
    made: Vec<Option<Func>>,
    pairs: IndexMap<Key, Pair>,
    pub(super) lasting: Lasting,
    /// What the reverse sweep of each callee is given.
    pub(super) given: IndexMap<Key, Given>,
    /// What the sweeps of callees are made from.
    pub(super) outlines: IndexMap<Key, Rc<Outline>>,
    forwards: IndexMap<Key, FuncId>,
    joints: IndexMap<Key, FuncId>,
    todo: VecDeque<Task>,
}

impl<'a> Differentiation<'a> {
    /// `prepared` has the functions that the derivative's root may run; new functions are numbered from `first` on.
    pub(super) fn new(
        program: &'a Program,
        requests: &'a DerivativeRequests,
        prepared: &'a IndexMap<FuncId, Func>,
        first: usize,
    ) -> Self {
        Self {
            program,
            activity: Activity::new(prepared, requests, program.tapes.len()),
            tapes: program.tapes.clone(),
            tape_names: Names::of(program.tapes.values().map(|t| &t.name)),
            requests,
            prepared,
            shadows: BTreeMap::new(),
            names: Names::of(program.funcs.values().map(|f| &f.name)),
            first,
            made: Vec::new(),
            pairs: IndexMap::new(),
            lasting: Lasting::new(program, prepared),
            given: IndexMap::new(),
            outlines: IndexMap::new(),
            forwards: IndexMap::new(),
            joints: IndexMap::new(),
            todo: VecDeque::new(),
        }
    }

    /// Makes the functions that were asked for on the way. Gives all new functions in order, and all tapes.
    pub(super) fn finish(mut self) -> Result<(Vec<Func>, IdVec<TapeId, Tape>), DerivativeError> {
        while let Some(task) = self.todo.pop_front() {
            match task {
                Task::Split(key, pair) => {
                    let name = self.prepared[&key.0].name.clone();
                    let names =
                        [self.names.unique(&format!("{name}.sweep")), self.names.unique(&format!("{name}.back"))];
                    let [forward, reverse] = self.split(&key, names)?;
                    self.fill(pair.forward, forward);
                    self.fill(pair.reverse, reverse);
                }
                Task::Forward(key, id) => {
                    let name = self.names.unique(&format!("{}.forward", self.prepared[&key.0].name));
                    let func = self.forward(&key, &name, Tangents::Varied)?;
                    self.fill(id, func);
                }
                Task::Joint(key, id) => {
                    let name = self.names.unique(&format!("{}.reverse", self.prepared[&key.0].name));
                    let func = self.joint(&key, &name, Care::Careful, true)?;
                    self.fill(id, func);
                }
            }
        }
        let made = self.made.into_iter().map(|f| f.expect("every function that is asked for is made"));
        Ok((made.collect(), self.tapes))
    }

    fn fill(&mut self, id: FuncId, func: Func) {
        self.made[id.index() - self.first] = Some(func);
    }

    fn new_func(&mut self) -> FuncId {
        self.made.push(None);
        FuncId::new(self.first + self.made.len() - 1)
    }

    /// A function in the form that sweeps are made from, the variables that vary, and those of them that matter.
    pub(super) fn subject(&mut self, key: &Key) -> Result<(Func, IdSet<VarId>, IdSet<VarId>), DerivativeError> {
        // all answers before the first question: tapes may be found to vary late
        self.activity.results(key);
        let mut func = self.prepared[&key.0].clone();
        normalise(self.program, &mut func);
        super::given::keep_arguments(&mut func);
        let varied = self.activity.varied(&func, &key.1);
        let active = active(&func, &varied);
        for inst in func.blocks.values().flat_map(|b| &b.insts) {
            if let InstKind::Prim { prim, args, .. } = &inst.kind
                && prim.row().derivative == DerivativeRule::None
                && prim.row().batch != BatchRule::Random
                && args.iter().any(|a| a.var().is_some_and(|v| active.contains(v) || varied.contains(v)))
            {
                return Err(DerivativeError {
                    loc: inst.loc.clone(),
                    message: format!("`{prim}` has no derivative here"),
                    help: Some(
                        "give the function that uses it a derivative of its own: `derivative of f { … }`".into(),
                    ),
                });
            }
        }
        Ok((func, varied, active))
    }

    /// What takes the place of the tapes of a function, of an earlier derivative, in this one.
    pub(super) fn shadows(&mut self, func: &Func) -> BTreeMap<TapeId, TapeId> {
        let mut found = BTreeMap::new();
        for inst in func.blocks.values().flat_map(|b| &b.insts) {
            let InstKind::Effect(effect) = &inst.kind else { continue };
            let Some(tape) = effect.tape() else { continue };
            if !self.activity.is_varied(tape) {
                continue;
            }
            let shadow = match self.shadows.get(&tape) {
                Some(shadow) => *shadow,
                None => {
                    let Tape { name, ty } = self.program.tapes[tape].clone();
                    let name = self.tape_names.numbered(&format!("{name}.shadow#"), 1);
                    let shadow = self.tapes.push(Tape { name, ty });
                    self.shadows.insert(tape, shadow);
                    shadow
                }
            };
            found.insert(tape, shadow);
        }
        found
    }

    /// The reverse of a call; `needed`: whether a result matters. That of an attempt is an attempt from the arguments: what a
    /// forward sweep that trapped left on tapes is gone.
    pub(super) fn reverse_of_call(
        &mut self,
        key: Key,
        needed: bool,
        attempt: bool,
        loc: &Loc,
    ) -> Result<CallRule, DerivativeError> {
        let (callee, mask) = &key;
        let callee = *callee;
        if !(needed || self.activity.uses_varied_tapes(callee)) {
            return Ok(CallRule::Inactive);
        }
        if let Some(rule) = self.requests.rules.get(&callee) {
            let func = rule.reverse.ok_or_else(|| self.missing(callee, loc, "reverse", "forward"))?;
            let mask = self.ruled_params(rule, &key, loc)?;
            return Ok(CallRule::Again { func, skip: 0, mask });
        }
        if attempt || self.requests.recompute.contains(&callee) {
            let mask = mask.clone();
            let skip = self.program.funcs[callee].results.len();
            let func = match self.joints.get(&key) {
                Some(func) => *func,
                None => {
                    let func = self.new_func();
                    self.joints.insert(key.clone(), func);
                    self.todo.push_back(Task::Joint(key, func));
                    func
                }
            };
            return Ok(CallRule::Again { func, skip, mask });
        }
        let results = self.activity.results(&key);
        let pair = match self.pairs.get(&key) {
            Some(pair) => *pair,
            None => {
                let pair = Pair { forward: self.new_func(), reverse: self.new_func() };
                self.pairs.insert(key.clone(), pair);
                self.todo.push_back(Task::Split(key.clone(), pair));
                pair
            }
        };
        Ok(CallRule::Pair { pair, key, results })
    }

    /// The tangents of a call.
    pub(super) fn forward_of_call(&mut self, key: Key, loc: &Loc) -> Result<ForwardCall, DerivativeError> {
        let (callee, mask) = (key.0, key.1.clone());
        if let Some(rule) = self.requests.rules.get(&callee) {
            if !mask.contains(&true) {
                return Ok(ForwardCall::Inactive);
            }
            let func = rule.forward.ok_or_else(|| self.missing(callee, loc, "forward", "reverse"))?;
            let mask = self.ruled_params(rule, &key, loc)?;
            return Ok(ForwardCall::Rule { func, mask });
        }
        if !mask.contains(&true) && !self.activity.uses_varied_tapes(callee) {
            return Ok(ForwardCall::Inactive);
        }
        let results = self.activity.results(&key);
        if !results.contains(&true) && !self.activity.uses_varied_tapes(callee) {
            return Ok(ForwardCall::Inactive);
        }
        let func = match self.forwards.get(&key) {
            Some(func) => *func,
            None => {
                let func = self.new_func();
                self.forwards.insert(key.clone(), func);
                self.todo.push_back(Task::Forward(key, func));
                func
            }
        };
        Ok(ForwardCall::With { func, mask, results })
    }

    /// The parameters of a function that its rule knows tangents or cotangents of, which others must not need.
    fn ruled_params(&self, rule: &CustomRule, key: &Key, loc: &Loc) -> Result<Vec<bool>, DerivativeError> {
        let func = &self.program.funcs[key.0];
        let captured = |k: usize| rule.captured.get(k).is_some_and(|captured| *captured);
        if (0..key.1.len()).any(|k| key.1[k] && captured(k)) {
            return Err(DerivativeError {
                loc: loc.clone(),
                message: format!("a function that is passed to `{}` captures what a derivative is taken by", func.name),
                help: Some("pass that as an argument".to_owned()),
            });
        }
        let real = func.params.iter().map(|p| func.vars[*p].ty.dtype == DType::Real);
        Ok(real.enumerate().map(|(k, real)| real && !captured(k)).collect())
    }

    fn missing(&self, func: FuncId, loc: &Loc, wanted: &str, found: &str) -> DerivativeError {
        let name = &self.program.funcs[func].name;
        DerivativeError {
            loc: loc.clone(),
            message: format!("the derivative of `{name}` has no `{wanted}` part, which is needed here"),
            help: Some(format!("write one beside its `{found}` part")),
        }
    }
}
