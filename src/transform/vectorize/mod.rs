//! Whole-array code for comprehensions: the static vectorisation of Agarwal and Ganichev (*Auto-vectorizing TensorFlow
//! graphs: Jacobians, auto-batching and beyond*, 2019), inside of one lane.
//!
//! The lowering from HIR makes a comprehension whose bounds are known, or a reduction over one, a function, which is a
//! loop, and one element of it another function, of the indices and of what both capture
//! (`lower::hir_to_cfg::comprehension`). `fill` makes whole-array code of the element and lets the loop's function have
//! it. Where it cannot, the loop stays, with warning W0102. In the end all of them stand in the place of their calls
//! (`transform::expansion`), so that none counts as a call.
//!
//! Index after index, the innermost first, a fixed point finds what depends on the index (`tiling`). Such a value gets
//! an axis in front and is *tiled*; the others are *plain* and are never copied for each index. Each primitive has a
//! rule for every mix of tiled and plain operands (`rules`). Elementwise ones broadcast extents of 1. `x[i]` over all
//! rows is `x` itself, over some a slice, at computed places a `gather`. `dot` and `matmul` with one plain operand are
//! one larger matrix product, with two tiled ones a `batch_matmul`. Element assignment is a `scatter`. What is a known
//! number for each index (`2 * i + 1`) is computed here.
//!
//! Control stays as it is, so that conditions must be plain: a loop over time steps inside of the rows of a jacobian
//! stays one loop, over matrices. Branches on tiled conditions become selects first (`arms`, by `if-convert` with
//! guards). Where that cannot be, or where an element does more than compute, the comprehension stays a loop. An arm
//! that is not taken has no part in a derivative (*Zeros* in `src/transform/derivative/README.md`), so what it reads
//! needs no guards: an array that an arm reads by an index or sums up is never copied for each element. An index that
//! goes up to the length of a bounded dimension runs up to its bound, and an element beyond the length is one that
//! changes no reduction.
//!
//! Whole arrays take memory. A program whose lanes would need more than 4 MiB each (what runs tile by tile needs
//! little) is compiled once more with its long comprehensions as loops, and the smaller of the two is taken if it needs
//! less than half. What the passes that a user switches off make of it does not count: the choice is that of all
//! passes.
//!
//! Derivatives and comprehensions wait for one another: the derivative of a comprehension is that of its whole-array
//! code, a comprehension of derivatives is made of theirs. Whole-array code adds up contributions to a derivative in
//! ascending order, and the reverse sweep of a loop in descending order. So this pass may change the last bits of
//! derivatives. It does one operation after the other for all elements, so another of several traps in a comprehension
//! may be met first. Nothing else depends on it.
//!
//! | file | has |
//! |---|---|
//! | `arms` | selects in the place of branches |
//! | `tiling` | which values are tiled, and which are known numbers |
//! | `emit` | emission of instructions |
//! | `rules` | the rule of each primitive |
//! | `reduce` | reductions of the array of the elements |

mod arms;
mod emit;
mod reduce;
mod rules;
mod tiling;

use super::cfg::blocks::edges_to;
use super::cfg::merge_blocks::merge;
use super::cfg::simplify::simplify_fully;
use super::derivative;
use super::derivative::prepare::{Inlining, name_all, one_exit, prepare};
use crate::base::{IdSet, IdVec, LazyOp, Loc};
use crate::cfg::{
    Block, BlockId, Func, FuncId, Inst, InstKind, Message, Operand, Program, SideEffect, Terminator, build,
};
use crate::prim::Prim;
use crate::types::{DType, Type};
use emit::{Emitter, Value};
use tiling::Tiling;

pub use reduce::Reduce;

/// A comprehension that whole-array code may take the place of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ComprehensionRequest {
    /// The comprehension as a function: a loop.
    pub target: FuncId,
    /// One element. Parameters: the indices, the outermost first, then those of `target`.
    pub element: FuncId,
    /// First and last value, the last exclusive, of each index.
    pub bounds: Vec<(i64, i64)>,
    /// What the elements are reduced by; without it the result is the array of them.
    pub reduce: Option<Reduce>,
    /// Where it stands in the source.
    pub loc: Loc,
}

/// How comprehensions are vectorised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VectorizeOptions {
    /// Whether both arms of a branch may be computed. They may not where the birth of a NaN is looked for.
    pub both_arms: bool,
    /// Most elements of one value in one lane: what is not tiled over rows when it runs takes so much memory in every lane.
    pub most_elements: usize,
}

/// What is known of one comprehension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Way {
    pub(super) options: VectorizeOptions,
    /// Whether a derivative goes through it and must use one that the user wrote.
    pub(super) rule: bool,
    /// Whether an element runs the comprehension again.
    pub(super) recursive: bool,
}

/// Why a comprehension stays a loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The place of the request in the list of comprehensions.
    pub request: usize,
    /// In the user's words.
    pub reason: String,
    /// What stands in the way.
    pub loc: Loc,
}

/// What stands in the way, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Obstacle {
    reason: String,
    loc: Loc,
}

impl Obstacle {
    fn new(reason: impl Into<String>, loc: &Loc) -> Self {
        Self { reason: reason.into(), loc: loc.clone() }
    }
}

/// Most instructions of an element with what it calls: the time that is taken grows faster than they do.
const MOST_INSTS: usize = 2_000;
/// Most values of an index. What is computed of the index alone is known as so many numbers: each value takes some 150
/// bytes while it is compiled.
const MOST_INDICES: i64 = 1 << 21;
/// Most elements of a whole array that anybody should want in one lane.
pub const MOST_ELEMENTS: usize = 1 << 24;

/// Gives the function of a comprehension whole-array code.
///
/// # Errors
/// Why it stays the loop that it is.
pub(super) fn fill(
    program: &mut Program,
    index: usize,
    request: &ComprehensionRequest,
    way: Way,
) -> Result<(), Refusal> {
    if request.bounds.iter().any(|(start, end)| end <= start) {
        return Ok(());
    }
    let before = (program.shared.clone(), program.tapes.clone());
    match whole_array(program, request, way) {
        Ok(mut func) => {
            let target = &program.funcs[request.target];
            func.name.clone_from(&target.name);
            func.loc = target.loc.clone();
            program.funcs[request.target] = func;
            Ok(())
        }
        Err(Obstacle { reason, loc }) => {
            (program.shared, program.tapes) = before;
            Err(Refusal { request: index, reason, loc })
        }
    }
}

fn whole_array(program: &mut Program, request: &ComprehensionRequest, way: Way) -> Result<Func, Obstacle> {
    if way.recursive {
        return Err(Obstacle::new("an element calls the function that it stands in", &request.loc));
    }
    if way.rule {
        let reason = "a derivative goes through it, and an element calls a function that has a `derivative of`";
        return Err(Obstacle::new(reason, &request.loc));
    }
    let most = way.options.most_elements;
    let longest = MOST_INDICES.min(most as i64);
    if request.bounds.iter().any(|(start, end)| end.checked_sub(*start).is_none_or(|n| n > longest)) {
        return Err(too_many(longest as usize, &request.loc));
    }
    let mut ready = prepare(
        program,
        request.element,
        &derivative::DerivativeRequests::default(),
        (Inlining::all(MOST_INSTS), None),
    );
    let mut func = ready.swap_remove(&request.element).expect("the element is what is prepared");
    one_exit(program, &mut func);
    for (at, (start, end)) in request.bounds.iter().enumerate().rev() {
        if way.options.both_arms {
            arms::select_arms(program, &mut func, at, (*start, *end));
        }
        func = over_index(program, &func, at, (*start, *end), most)?;
        simplify_fully(program, &mut func);
        merge(program, &mut func);
    }
    if let Some(op) = request.reduce {
        reduce::reduce(program, &mut func, op);
    }
    Ok(func)
}

fn too_many(most: usize, loc: &Loc) -> Obstacle {
    Obstacle::new(format!("an array of all elements would have more than {most} entries"), loc)
}

/// The function for all values of one parameter, which goes; the result gets an axis for it in front.
fn over_index(
    program: &mut Program,
    func: &Func,
    index: usize,
    (start, end): (i64, i64),
    most: usize,
) -> Result<Func, Obstacle> {
    let tiling = Tiling::of(func, index);
    let numbers = tiling.numbers(func, func.params[index], start..end);
    let tapes = tiling::tapes(func);
    check(program, func, &tiling, &numbers)?;
    let n = usize::try_from(end - start).expect("there is an index");
    let mut emitter = Emitter::new(program, func, &tiling, numbers, n);
    emitter.take_tapes(&tapes);
    for v in func.vars.ids().filter(|v| tiling.is_tiled(Operand::Var(*v))) {
        let elements = func.vars[v].ty.elements().checked_mul(n);
        if elements.is_none_or(|elements| elements > most) {
            return Err(too_many(most, &func.loc));
        }
        emitter.code.vars[v].ty = emit::with_axis(n, &func.vars[v].ty);
    }
    let mut blocks = IdVec::new();
    for block in func.blocks.values() {
        for inst in &block.insts {
            emitter.code.loc = inst.loc.clone();
            over_inst(&mut emitter, inst)?;
        }
        let term = match &block.term {
            Terminator::Return(values) => {
                Terminator::Return(values.iter().map(|value| emitter.whole(*value)).collect())
            }
            term => term.clone(),
        };
        blocks.push(Block { insts: std::mem::take(&mut emitter.code.insts), term, loc: block.loc.clone() });
    }
    let vars = emitter.code.vars;
    let mut params = func.params.clone();
    params.remove(index);
    let results = func.results.iter().map(|ty| emit::with_axis(n, ty)).collect();
    let mut made = Func { name: func.name.clone(), params, results, vars, blocks, loc: func.loc.clone() };
    name_all(&mut made);
    Ok(made)
}

/// Whether there is a rule for all that happens, as far as that does not hang on shapes.
fn check(program: &Program, func: &Func, tiling: &Tiling, numbers: &tiling::Numbers) -> Result<(), Obstacle> {
    let mut draws = 0;
    for block in func.blocks.values() {
        for inst in &block.insts {
            match &inst.kind {
                InstKind::Prim { prim: Prim::RandomPosition, .. } => {
                    return Err(Obstacle::new("an element asks how many draws there were", &inst.loc));
                }
                InstKind::Prim { prim, .. } if prim.is_draw() => draws += 1,
                InstKind::Effect(SideEffect::Print(_) | SideEffect::Emit { .. }) => {
                    return Err(Obstacle::new("an element prints or emits", &inst.loc));
                }
                _ => {}
            }
        }
        match &block.term {
            Terminator::Branch(cond, ..) if tiling.is_tiled(*cond) && !numbers.is_known(*cond) => {
                let (loc, op) = cause(func, tiling, block);
                let reason = match op {
                    Some(op) => format!(
                        "it branches on a value that differs between elements, and the right operand of `{op}` is not computed for \
                         all of them (with a name, by `let` before the condition, it is)"
                    ),
                    None => "it branches on a value that differs between elements, and what is in the arms cannot be computed for \
                             all of them, or costs too much"
                        .to_owned(),
                };
                return Err(Obstacle::new(reason, loc));
            }
            Terminator::Branch(cond, ..) if tiling.is_tiled(*cond) => {
                return Err(Obstacle::new("it branches on the index", &block.loc));
            }
            Terminator::Call { attempt: true, loc, .. } => {
                let reason = "an element attempts a call, and a trap must end that of this element only";
                return Err(Obstacle::new(reason, loc));
            }
            Terminator::Call { args, loc, .. } if args.iter().any(|a| tiling.is_tiled(*a)) => {
                return Err(Obstacle::new("an element calls a function that is recursive, or very large", loc));
            }
            // One call would be made for all elements.
            Terminator::Call { func: callee, loc, .. } if draws_somewhere(program, *callee) => {
                return Err(Obstacle::new(
                    "an element calls a function that is recursive, or very large, and draws",
                    loc,
                ));
            }
            Terminator::TailCall { loc, .. } => {
                return Err(Obstacle::new("an element calls a function that is recursive, or very large", loc));
            }
            _ => {}
        }
    }
    if draws > 1 || (draws == 1 && func.blocks.len() > 1) {
        return Err(Obstacle::new("its random draws are numbered element by element", &func.loc));
    }
    Ok(())
}

/// Whether a function draws, or one that it calls.
fn draws_somewhere(program: &Program, func: FuncId) -> bool {
    let mut called = IdSet::new(program.funcs.len());
    let mut work = vec![func];
    while let Some(func) = work.pop() {
        if !called.insert(func) {
            continue;
        }
        for block in program.funcs[func].blocks.values() {
            let draws = |inst: &Inst| matches!(&inst.kind, InstKind::Prim { prim, .. } if prim.is_draw());
            if block.insts.iter().any(draws) {
                return true;
            }
            work.extend(block.term.callee());
        }
    }
    false
}

/// Why a branch that differs between elements stayed: where, and the operator whose right operand it was that could not
/// be computed for all of them. A branch in an arm that stayed is the reason why the branch around it did.
fn cause<'f>(func: &'f Func, tiling: &Tiling, mut block: &'f Block) -> (&'f Loc, Option<LazyOp>) {
    let edges = edges_to(func);
    // Each step goes on in an arm, which nothing else leads to, so it ends.
    loop {
        let Terminator::Branch(_, yes, no) = block.term else { return (&block.loc, None) };
        let right_of = |arm: BlockId| func.blocks[arm].loc.right_of;
        let op = right_of(yes).or(right_of(no));
        let stays = |arm: &BlockId| {
            let branches = matches!(func.blocks[*arm].term, Terminator::Branch(cond, ..) if tiling.is_tiled(cond));
            branches && edges[*arm] == 1
        };
        match [yes, no].into_iter().find(stays) {
            Some(arm) if op.is_none() => block = &func.blocks[arm],
            _ => return (&block.loc, op),
        }
    }
}

fn over_inst(emitter: &mut Emitter<'_>, inst: &Inst) -> Result<(), Obstacle> {
    match &inst.kind {
        InstKind::Prim { dst, prim, args } => {
            if emitter.numbers.is_known(Operand::Var(*dst)) {
                return Ok(());
            }
            if !emitter.tiling.is_tiled(Operand::Var(*dst)) {
                emitter.code.insts.push(inst.clone());
                return Ok(());
            }
            let ty = emitter.func.vars[*dst].ty.clone();
            let values: Vec<Value> = args.iter().map(|a| emitter.value(*a)).collect();
            let result = if prim.is_draw() || values.iter().any(Value::is_tiled) {
                rules::tiled(emitter, *prim, &values, &ty)?
            } else {
                let plain = emitter.emit(*prim, args, ty.clone());
                emitter.whole_of(Value { operand: plain, ty, tiled: false })
            };
            emitter.assign(*dst, result);
        }
        InstKind::Effect(SideEffect::Assert { cond, message }) => assert(emitter, *cond, message),
        InstKind::Effect(SideEffect::TapePush { tape, value }) => {
            let value = if emitter.tiling.is_tiled_tape(*tape) { emitter.whole(*value) } else { *value };
            let tape = emitter.tape(*tape);
            emitter.code.tape_push(tape, value);
        }
        InstKind::Effect(SideEffect::TapePop { dst, tape }) => {
            let popped = emitter.tape(*tape);
            if emitter.tiling.is_tiled(Operand::Var(*dst)) && !emitter.tiling.is_tiled_tape(*tape) {
                let ty = emitter.func.vars[*dst].ty.clone();
                let plain = emitter.code.fresh(ty.clone());
                emitter.code.tape_pop(plain, popped);
                let whole = emitter.whole_of(Value { operand: Operand::Var(plain), ty, tiled: false });
                emitter.assign(*dst, whole);
            } else {
                emitter.code.tape_pop(*dst, popped);
            }
        }
        InstKind::Effect(SideEffect::Print(_) | SideEffect::Emit { .. }) => unreachable!("refused before"),
    }
    Ok(())
}

/// An assertion of every element holds when all of them do; the message is that of the first that fails.
fn assert(emitter: &mut Emitter<'_>, cond: Operand, message: &Message) {
    let condition = emitter.value(cond);
    let args: Vec<Value> = message.args.iter().map(|a| emitter.value(*a)).collect();
    if !condition.tiled && args.iter().all(|a| !a.tiled) {
        emitter.code.push(InstKind::Effect(SideEffect::Assert { cond, message: message.clone() }));
        return;
    }
    let n = emitter.n;
    let whole = emitter.whole_of(condition);
    let all = emitter.emit(Prim::All, &[whole], Type::bool());
    let mut shown = message.clone();
    if args.iter().any(|a| a.tiled) {
        let (ints, last) = (Type::new(DType::Int, [n]), build::int(n as i64 - 1));
        let places = emitter.places();
        let failing = emitter.emit(Prim::Select, &[whole, last, places], ints);
        let first = emitter.emit(Prim::MinOf, &[failing], Type::int());
        for (arg, value) in shown.args.iter_mut().zip(args) {
            if value.tiled {
                *arg = emitter.emit(Prim::Index, &[value.operand, first], value.ty);
            }
        }
    }
    emitter.code.push(InstKind::Effect(SideEffect::Assert { cond: all, message: shown }));
}
