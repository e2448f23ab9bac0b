//! Constants folded, copies seen through, dead code dropped. Nothing that traps, draws or has an effect is dropped, and
//! arithmetic of reals is not folded, because its result depends on the precision of the run; only what is exact in
//! each, such as a product with 1.

use std::collections::HashMap;

use super::blocks::{
    drop_uncalled_functions, drop_unreachable_blocks, drop_unused_variables, is_pure, live_at_terminators, step_back,
};
use super::signatures;
use crate::analysis::worklist::{forwards, reversed};
use crate::base::{Id as _, IdSet, IdVec, work};
use crate::cfg::{Block, BlockId, Func, InstKind, Operand, Program, SideEffect, Terminator, VarId};
use crate::parts::Args;
use crate::prim::{Prim, eval};
use crate::transform::derivative::is_ordinary;
use crate::types::{DType, Scalar, Type};

/// More rounds than any program needs whose size is bounded by reason; each leaves a valid program.
const MOST_ROUNDS: usize = 32;

/// Simplifies until nothing changes.
pub(super) fn run(mut program: Program) -> Program {
    let_gradients_through(&mut program);
    for _ in 0..MOST_ROUNDS {
        let mut changed = false;
        for id in program.funcs.ids() {
            let mut func = program.funcs[id].clone();
            changed |= simplify(&program, &mut func);
            program.funcs[id] = func;
        }
        changed |= drop_uncalled_functions(&mut program);
        changed |= signatures::drop_unused(&mut program);
        if !changed {
            break;
        }
    }
    program
}

/// Derivatives are taken before this pass; what they must not go through is a copy now.
fn let_gradients_through(program: &mut Program) {
    let blocks = program.funcs.values_mut().flat_map(|f| f.blocks.values_mut());
    for inst in blocks.flat_map(|b| &mut b.insts) {
        if let InstKind::Prim { prim: prim @ Prim::StopGradient, .. } = &mut inst.kind {
            *prim = Prim::Copy;
        }
    }
}

/// Simplifies one function of the program until nothing changes.
pub(in crate::transform) fn simplify_fully(program: &Program, func: &mut Func) {
    for _ in 0..MOST_ROUNDS {
        if !simplify(program, func) {
            return;
        }
    }
}

fn simplify(program: &Program, func: &mut Func) -> bool {
    let mut changed = propagate_globally(func);
    let types = func.vars.clone();
    let ty = |o: Operand| o.ty(|v| types[v].ty.clone(), |s| program.shared[s].ty.clone());
    for block in func.blocks.values_mut() {
        changed |= propagate_in_block(block);
        changed |= see_through_negation(block, &ty);
        for inst in &mut block.insts {
            if let InstKind::Prim { prim, args, .. } = &mut inst.kind {
                changed |= fold(prim, args, &ty);
            }
        }
        changed |= fold_branch(&mut block.term);
    }
    changed |= drop_unreachable_blocks(func);
    changed |= write_directly(func);
    changed |= drop_dead(program, func);
    changed | drop_unused_variables(func)
}

/// What a variable is a copy of.
type Copies = IdVec<VarId, Option<Operand>>;

fn replace(operand: &mut Operand, copies: &Copies) -> bool {
    match *operand {
        Operand::Var(v) => match copies[v] {
            Some(value) => {
                *operand = value;
                true
            }
            None => false,
        },
        _ => false,
    }
}

/// Replaces variables that are set at one place only, by a copy of something that never changes either. The copy comes
/// before every read, because every variable is set before it is read; and the copied variable, being set before the copy
/// on every path, cannot be set again between the copy and the read.
fn propagate_globally(func: &mut Func) -> bool {
    let mut writes: IdVec<VarId, usize> = IdVec::filled(0, func.vars.len());
    for param in &func.params {
        writes[*param] += 1;
    }
    for block in func.blocks.values() {
        for dst in block.insts.iter().filter_map(|i| i.kind.dst()) {
            writes[dst] += 1;
        }
        for dst in block.term.dsts() {
            writes[*dst] += 1;
        }
    }
    let mut copies: Copies = IdVec::filled(None, func.vars.len());
    for inst in func.blocks.values().flat_map(|b| &b.insts) {
        if let InstKind::Prim { dst, prim: Prim::Copy, args } = &inst.kind
            && writes[*dst] == 1
            && args[0].var().is_none_or(|v| v != *dst && writes[v] == 1)
        {
            copies[*dst] = Some(args[0]);
        }
    }
    see_through_chains(&mut copies);
    let mut changed = false;
    for block in func.blocks.values_mut() {
        work::add(block.insts.len());
        for inst in &mut block.insts {
            inst.kind.for_each_operand_mut(|o| changed |= replace(o, &copies));
        }
        block.term.for_each_operand_mut(|o| changed |= replace(o, &copies));
    }
    changed
}

/// A copy of a copy is a copy of what that is: through many levels of calls arguments are copied many times.
fn see_through_chains(copies: &mut Copies) {
    let mut on_path = IdVec::filled(false, copies.len());
    for var in copies.ids() {
        let (mut path, mut at) = (Vec::new(), var);
        // In code that is never reached copies may go in a circle.
        while let Some(Operand::Var(of)) = copies[at].filter(|_| !on_path[at]) {
            on_path[at] = true;
            path.push(at);
            at = of;
        }
        work::add(path.len());
        let end = if on_path[at] { None } else { Some(copies[at].unwrap_or(Operand::Var(at))) };
        for v in path {
            on_path[v] = false;
            copies[v] = end.or(copies[v]);
        }
    }
}

/// What variables of a block hold at a place, in terms of other operands, as long as neither side is overwritten.
#[derive(Default)]
struct Held {
    values: HashMap<VarId, Operand>,
    /// The variables whose values are in terms of a variable, some of them no more.
    in_terms_of: HashMap<VarId, Vec<VarId>>,
}

impl Held {
    fn get(&self, operand: Operand) -> Option<Operand> {
        operand.var().and_then(|v| self.values.get(&v)).copied()
    }
    /// A variable is overwritten.
    fn overwrite(&mut self, var: VarId) {
        self.values.remove(&var);
        for v in self.in_terms_of.remove(&var).into_iter().flatten() {
            if self.values.get(&v) == Some(&Operand::Var(var)) {
                self.values.remove(&v);
            }
        }
    }
    fn hold(&mut self, var: VarId, value: Operand) {
        self.values.insert(var, value);
        if let Operand::Var(of) = value {
            self.in_terms_of.entry(of).or_default().push(var);
        }
    }
}

/// Replaces copies inside a block.
fn propagate_in_block(block: &mut Block) -> bool {
    let mut copies = Held::default();
    let mut changed = false;
    work::add(block.insts.len());
    let mut read = |o: &mut Operand, copies: &Held| {
        if let Some(value) = copies.get(*o) {
            *o = value;
            changed = true;
        }
    };
    for inst in &mut block.insts {
        inst.kind.for_each_operand_mut(|o| read(o, &copies));
        let Some(dst) = inst.kind.dst() else {
            continue;
        };
        copies.overwrite(dst);
        if let InstKind::Prim { prim: Prim::Copy, args, .. } = &inst.kind
            && args[0] != Operand::Var(dst)
        {
            copies.hold(dst, args[0]);
        }
    }
    block.term.for_each_operand_mut(|o| read(o, &copies));
    changed
}

/// `x + -y` is `x - y` and `x - -y` is `x + y`, bit for bit (all NaN count as one): derivatives make many of them. Inside a block, as long as
/// neither `y` nor what holds `-y` is overwritten.
fn see_through_negation(block: &mut Block, ty: &impl Fn(Operand) -> Type) -> bool {
    let mut negated = Held::default();
    let mut changed = false;
    for inst in &mut block.insts {
        if let InstKind::Prim { prim: prim @ (Prim::Add | Prim::Sub), args, .. } = &mut inst.kind
            && ty(args[0]).dtype == DType::Real
        {
            let found = match (*prim, negated.get(args[0]), negated.get(args[1])) {
                (Prim::Add, _, Some(y)) => Some((Prim::Sub, args[0], y)),
                (Prim::Add, Some(x), None) => Some((Prim::Sub, args[1], x)),
                (Prim::Sub, _, Some(y)) => Some((Prim::Add, args[0], y)),
                _ => None,
            };
            if let Some((instead, x, y)) = found {
                *prim = instead;
                *args = Args::from_slice(&[x, y]);
                changed = true;
            }
        }
        if let Some(dst) = inst.kind.dst() {
            negated.overwrite(dst);
            if let InstKind::Prim { prim: Prim::Neg, args, .. } = &inst.kind
                && args[0] != Operand::Var(dst)
                && ty(args[0]).dtype == DType::Real
            {
                negated.hold(dst, args[0]);
            }
        }
    }
    changed
}

/// Turns a primitive with a known result into a copy of it, or a select of conditions into logic.
fn fold(prim: &mut Prim, args: &mut Args<VarId>, ty: &impl Fn(Operand) -> Type) -> bool {
    let constants: Option<Vec<Scalar>> = args
        .iter()
        .map(|a| match a {
            Operand::Const(c) => Some(*c),
            _ => None,
        })
        .collect();
    let (folded, operands): (Prim, &[Operand]) = match (*prim, &args[..]) {
        (Prim::Copy, _) => return false,
        (prim, _) if constants.is_some() => match constants.and_then(|c| eval::fold(prim, &c, eval::EXACT_IN_F32)) {
            Some(value) => (Prim::Copy, &[Operand::Const(value)]),
            None => return false,
        },
        // exact at every precision, for zeros and infinities too (all NaN count as one)
        (Prim::Mul, &[one, x] | &[x, one]) if is_real(one, 1.0) => (Prim::Copy, &[x]),
        (Prim::Mul, &[minus, x] | &[x, minus]) if is_real(minus, -1.0) => (Prim::Neg, &[x]),
        // numbers where the other operand is one
        (Prim::ChainMul, &[x, y]) if is_ordinary(x) || is_ordinary(y) => (Prim::Mul, &[x, y]),
        (Prim::ChainDiv, &[x, y]) if is_ordinary(x) || is_ordinary(y) => (Prim::Div, &[x, y]),
        (Prim::Div, &[x, y]) if is_real(y, 1.0) => (Prim::Copy, &[x]),
        (Prim::Sub, &[x, y]) if is_real(y, 0.0) => (Prim::Copy, &[x]),
        (Prim::And | Prim::Or, &[x, y]) if ty(x) == Type::bool() && ty(y) == Type::bool() => {
            // The condition that decides alone, and the one that does not matter.
            let decides = *prim == Prim::Or;
            match (known(x), known(y)) {
                (Some(b), _) if b == decides => (Prim::Copy, &[x]),
                (_, Some(b)) if b == decides => (Prim::Copy, &[y]),
                (Some(_), _) => (Prim::Copy, &[y]),
                (_, Some(_)) => (Prim::Copy, &[x]),
                _ => return false,
            }
        }
        (Prim::Select, &[c, x, y]) => {
            let same = ty(x) == ty(y) && ty(c).is_scalar();
            let bools = ty(x).dtype == DType::Bool && ty(x).is_scalar();
            match (known(c), known(x), known(y)) {
                (Some(true), ..) if same => (Prim::Copy, &[x]),
                (Some(false), ..) if same => (Prim::Copy, &[y]),
                _ if x == y && same => (Prim::Copy, &[x]),
                (_, Some(true), Some(false)) => (Prim::Copy, &[c]),
                (_, _, Some(false)) if bools && same => (Prim::And, &[c, x]),
                (_, Some(true), _) if bools && same => (Prim::Or, &[c, y]),
                _ => return false,
            }
        }
        _ => return false,
    };
    let operands = Args::from_slice(operands);
    *prim = folded;
    *args = operands;
    true
}

/// Whether an operand is this real constant, with its sign.
fn is_real(operand: Operand, value: f64) -> bool {
    matches!(operand, Operand::Const(Scalar::Real(x)) if x.to_bits() == value.to_bits())
}

/// The bool that an operand is, if it is a constant.
fn known(operand: Operand) -> Option<bool> {
    match operand {
        Operand::Const(Scalar::Bool(b)) => Some(b),
        _ => None,
    }
}

fn fold_branch(term: &mut Terminator) -> bool {
    let Terminator::Branch(cond, yes, no) = *term else {
        return false;
    };
    let next = match known(cond) {
        Some(true) => yes,
        Some(false) => no,
        None if yes == no => yes,
        None => return false,
    };
    *term = Terminator::Jump(next);
    true
}

/// `t = prim …` … `x = copy t`, where `t` is not read after: the primitive writes `x`, if nothing between touches `x`.
fn write_directly(func: &mut Func) -> bool {
    let mut changed = false;
    let live = live_at_terminators(func);
    for id in func.blocks.ids() {
        let mut live = live[id].clone();
        let vars = &func.vars;
        let mut touches = Touches::of(&func.blocks[id].insts);
        let insts = &mut func.blocks[id].insts;
        let mut gone = vec![false; insts.len()];
        for i in (0..insts.len()).rev() {
            if let InstKind::Prim { dst, prim: Prim::Copy, args } = &insts[i].kind
                && let Operand::Var(from) = args[0]
                && from != *dst
                && !live.contains(from)
                && vars[from].ty == vars[*dst].ty
            {
                let dst = *dst;
                if let Some(made) = made_for(insts, &mut touches, i, from, dst) {
                    let between = touches.move_to(made, i, from, dst);
                    between.into_iter().for_each(|j| rename(&mut insts[j].kind, from, dst));
                    gone[i] = true;
                    changed = true;
                    // before the copy `dst` now lives as after it
                    continue;
                }
            }
            step_back(&insts[i].kind, &mut live);
        }
        let mut gone = gone.into_iter();
        insts.retain(|_| gone.next() == Some(false));
    }
    changed
}

/// Where the variables of a block are read or set.
struct Touches {
    /// Ascending.
    places: HashMap<VarId, Vec<usize>>,
}

impl Touches {
    fn of(insts: &[crate::cfg::Inst]) -> Self {
        let mut places: HashMap<VarId, Vec<usize>> = HashMap::new();
        work::add(insts.len());
        for (i, inst) in insts.iter().enumerate() {
            let mut touch = |v: VarId| {
                let places = places.entry(v).or_default();
                if places.last() != Some(&i) {
                    places.push(i);
                }
            };
            inst.kind.for_each_operand(|o| o.var().into_iter().for_each(&mut touch));
            inst.kind.dst().into_iter().for_each(&mut touch);
        }
        Self { places }
    }
    /// Those of a variable before a place. Later ones are forgotten.
    fn before(&mut self, var: VarId, place: usize) -> &[usize] {
        let Some(places) = self.places.get_mut(&var) else { return &[] };
        while places.last().is_some_and(|last| *last >= place) {
            places.pop();
        }
        places
    }
    /// One variable is to be touched where another is, from one place on to before another; gives these places.
    fn move_to(&mut self, first: usize, end: usize, from: VarId, to: VarId) -> Vec<usize> {
        let kept = self.before(from, end).partition_point(|place| *place < first);
        let moved = self.places.get_mut(&from).map(|places| places.split_off(kept)).unwrap_or_default();
        let places = self.places.entry(to).or_default();
        places.truncate(places.partition_point(|place| *place < first));
        places.extend(&moved);
        work::add(moved.len());
        moved
    }
}

/// The instruction before `end` that sets `from`, if none after it sets it again or touches `dst`, and it does not read `from`.
fn made_for(insts: &[crate::cfg::Inst], touches: &mut Touches, end: usize, from: VarId, dst: VarId) -> Option<usize> {
    let last = touches.before(dst, end).last().copied();
    let sets = |i: &usize| insts[*i].kind.dst() == Some(from);
    let i = touches.before(from, end).iter().rev().copied().find(sets)?;
    let mut reads_from = false;
    insts[i].kind.for_each_operand(|o| reads_from |= o == Operand::Var(from));
    (!reads_from && last.is_none_or(|last| last <= i)).then_some(i)
}

fn rename(inst: &mut InstKind, from: VarId, to: VarId) {
    inst.for_each_operand_mut(|o| {
        if *o == Operand::Var(from) {
            *o = Operand::Var(to);
        }
    });
    if let Some(dst) = inst.dst_mut()
        && *dst == from
    {
        *dst = to;
    }
}

/// Drops pure primitives whose result nobody wants, copies of a variable to itself, and asserts of what is known to
/// hold.
fn drop_dead(program: &Program, func: &mut Func) -> bool {
    let mut changed = false;
    let idle: IdVec<BlockId, Vec<Idle>> = func.blocks.values().map(|b| idle(program, func, b)).collect();
    let wanted = wanted(func, &idle);
    for id in func.blocks.ids() {
        let mut now = wanted_at_end(func, &wanted, id);
        let old = std::mem::take(&mut func.blocks[id].insts);
        let mut kept = vec![];
        for (inst, idle) in old.into_iter().zip(&idle[id]).rev() {
            if idle.is_dropped(&inst.kind, &now) {
                changed = true;
            } else {
                step_back(&inst.kind, &mut now);
                kept.push(inst);
            }
        }
        kept.reverse();
        func.blocks[id].insts = kept;
    }
    changed
}

/// When an instruction is not needed.
#[derive(Clone, Copy, PartialEq)]
enum Idle {
    Never,
    Unread,
    Always,
}

impl Idle {
    fn is_dropped(self, inst: &InstKind, wanted: &IdSet<VarId>) -> bool {
        self == Idle::Always || self == Idle::Unread && inst.dst().is_some_and(|v| !wanted.contains(v))
    }
}

fn idle(program: &Program, func: &Func, block: &Block) -> Vec<Idle> {
    let of = |inst: &InstKind| match inst {
        InstKind::Prim { dst, prim: Prim::Copy, args } if args[0] == Operand::Var(*dst) => Idle::Always,
        InstKind::Prim { prim, args, .. } if is_pure(program, func, *prim, args) => Idle::Unread,
        InstKind::Effect(SideEffect::Assert { cond, .. }) if *cond == Operand::Const(Scalar::Bool(true)) => {
            Idle::Always
        }
        _ => Idle::Never,
    };
    work::add(block.insts.len());
    block.insts.iter().map(|inst| of(&inst.kind)).collect()
}

/// The variables that are wanted where each block starts: what is read only to compute what nobody wants is not,
/// through any number of blocks.
fn wanted(func: &Func, idle: &IdVec<BlockId, Vec<Idle>>) -> IdVec<BlockId, IdSet<VarId>> {
    let n = func.blocks.len();
    let mut wanted = IdVec::filled(IdSet::new(func.vars.len()), n);
    let before = reversed(n, func.blocks.iter().map(|(id, block)| (id, block.term.successors())));
    let order = forwards(func).reversed();
    let mut open = order.all();
    while let Some(id) = open.take().map(BlockId::new) {
        let mut now = wanted_at_end(func, &wanted, id);
        let insts = &func.blocks[id].insts;
        work::add(insts.len());
        for (inst, idle) in insts.iter().zip(&idle[id]).rev() {
            if !idle.is_dropped(&inst.kind, &now) {
                step_back(&inst.kind, &mut now);
            }
        }
        if now != wanted[id] {
            wanted[id] = now;
            before[id].iter().for_each(|b| open.add(b.index()));
        }
    }
    wanted
}

/// The variables that are wanted when the terminator of a block starts.
fn wanted_at_end(func: &Func, wanted: &IdVec<BlockId, IdSet<VarId>>, id: BlockId) -> IdSet<VarId> {
    let term = &func.blocks[id].term;
    let mut next = term.successors().into_iter();
    let mut now = next.next().map_or_else(|| IdSet::new(func.vars.len()), |to| wanted[to].clone());
    next.for_each(|to| _ = now.union_with(&wanted[to]));
    term.dsts().iter().for_each(|v| now.remove(*v));
    term.for_each_operand(|o| o.var().into_iter().for_each(|v| _ = now.insert(v)));
    now
}
