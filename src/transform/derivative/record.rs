//! What the reverse sweep must find again, and how: the values of variables that a derivative reads and that are set
//! again later, and the way that control took.
//!
//! The reverse sweep keeps to one rule: when it is at a place in the function, every variable that is *needed* there
//! has the value that it had when the forward sweep was there last. A variable is needed from where the derivative of
//! an instruction reads it on, until it is set again; there its old value is saved. So straight-line code saves
//! nothing, a loop saves what is carried from turn to turn, and a recursive function what its frame holds at its end
//! ("to be recorded" analysis: Hascoët, Naumann and Pascual 2005). Before a value is put on a tape, four cheaper ways
//! are tried:
//!
//! * *recompute*: a variable that lives in one block only, from operands that are found again themselves;
//! * *invert*: a counter goes back by the step that it went on by;
//! * *element*: an array that is set in one place saves the element;
//! * *bound*: a counter is at its bound when its loop is over.
//!
//! Which predecessor a block was entered from is told by [`origins`](super::origins).

use std::collections::BTreeMap;

use super::care::Care;
use super::code::Code;
use super::cotangent::{Cotangents, Known};
use super::graph::Graph;
use super::needed::Analysis;
use super::origins::{Origin, origins, origins_with_tapes};
use super::tangent::Site;
use crate::base::{Id, IdSet, IdVec, Names};
use crate::cfg::{BlockId, Func, Inst, InstKind, Operand, Program, Tape, TapeId, Terminator, VarId};
use crate::prim::Prim;
use crate::types::Type;

/// How the old value of a variable that is set comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Save {
    /// From a tape.
    Tape(TapeId),
    /// By the inverse of the instruction.
    Invert,
    /// The element that the instruction sets, from a tape.
    Element(TapeId),
}

/// What the sweeps of a function agree on.
#[derive(Debug)]
pub(super) struct Record {
    /// By block and instruction (the number of instructions for the terminator): what is saved before it.
    pub(super) saves: BTreeMap<(BlockId, usize), Vec<(VarId, Save)>>,
    /// What a sweep of its own leaves on tapes at the end of the function, in order.
    pub(super) at_exit: Vec<(VarId, TapeId)>,
    /// What it leaves there before, at the end of a block that leads to where ways meet.
    pub(super) at_end: BTreeMap<BlockId, Vec<(VarId, TapeId)>>,
    /// Where each block was entered from.
    pub(super) origins: IdVec<BlockId, Origin>,
    /// The counters of loops that the reverse sweep sets to their bounds, at the end of the reverse of a block.
    pub(super) counters: BTreeMap<BlockId, (VarId, Operand)>,
    /// The variables that are computed again, with the instruction that does.
    pub(super) again: BTreeMap<VarId, usize>,
    /// By block, for each instruction and the terminator, what its reverse reads.
    pub(super) needs: IdVec<BlockId, Vec<Needs>>,
}

/// What the analysis is of.
pub(super) struct Subject<'a> {
    pub(super) program: &'a Program,
    pub(super) func: &'a Func,
    pub(super) graph: &'a Graph,
    /// What holds the cotangent of each active variable; such variables come after those of the function.
    pub(super) of: &'a IdVec<VarId, Option<VarId>>,
    /// Whether the reverse of the call that ends a block reads an argument.
    pub(super) reads_arg: &'a dyn Fn(BlockId, usize) -> bool,
    /// Whether what the call that ends a block sets comes back only after its reverse.
    pub(super) restores_late: &'a dyn Fn(BlockId) -> bool,
    /// The parameters that the reverse sweep, where it is a function of its own, is given again.
    pub(super) given: IdSet<VarId>,
    /// Whether the reverse sweep is a function of its own, which finds nothing in variables.
    pub(super) split: bool,
}

/// Makes tapes for a function.
pub(super) struct Tapes<'a> {
    /// Those that were made; they are added to these.
    pub(super) made: &'a mut IdVec<TapeId, Tape>,
    /// The names of all.
    pub(super) names: &'a mut Names,
    /// The name of the function.
    pub(super) func: &'a str,
}

impl Tapes<'_> {
    pub(super) fn new_tape(&mut self, name: &str, ty: Type) -> TapeId {
        let name = self.names.unique(&format!("{}.{name}", self.func));
        self.made.push(Tape { name, ty })
    }
}

/// What the reverse of an instruction reads.
#[derive(Clone, Default, Debug)]
pub(super) struct Needs {
    /// Variables as they are before it.
    pub(super) before: Vec<VarId>,
    /// The variable that it sets, as it is after it.
    pub(super) result: bool,
}

/// The variables that the reverse sweep needs at its start.
pub(super) fn needed_at_end(subject: &Subject<'_>, vars: &IdVec<VarId, crate::cfg::Var>) -> IdSet<VarId> {
    let needs = needs(subject, vars);
    let origins = origins(subject);
    Analysis::solved(subject, &needs, &origins).at_end()
}

/// Decides what is saved, and makes the tapes.
pub(super) fn record(subject: &Subject<'_>, vars: &IdVec<VarId, crate::cfg::Var>, tapes: &mut Tapes<'_>) -> Record {
    let needs = needs(subject, vars);
    let origins = origins(subject);
    let analysis = Analysis::solved(subject, &needs, &origins);
    let mut by_var: BTreeMap<VarId, TapeId> = BTreeMap::new();
    let mut saves = BTreeMap::new();
    let mut at_exit = Vec::new();
    let mut at_end = BTreeMap::new();
    for (id, block) in subject.func.blocks.iter() {
        let mut found: Vec<(usize, VarId)> = Vec::new();
        let end = analysis
            .block(id, analysis.at_entry[id].clone(), &mut |at, v| found.push((at, v)))
            .expect("what is computed again was settled");
        for (at, v) in found {
            let save = match way_back(subject, block.insts.get(at), v) {
                Way::Inverse => Save::Invert,
                Way::Element(ty) => {
                    Save::Element(tapes.new_tape(&format!("{}.element", subject.func.vars[v].name), ty))
                }
                Way::Whole => Save::Tape(tape_of(subject, v, &mut by_var, tapes)),
            };
            saves.entry((id, at)).or_insert_with(Vec::new).push((v, save));
        }
        let early = analysis.early.get(&id).into_iter().flat_map(IdSet::iter);
        for v in early {
            let tape = tape_of(subject, v, &mut by_var, tapes);
            at_end.entry(id).or_insert_with(Vec::new).push((v, tape));
        }
        if subject.split && matches!(block.term, Terminator::Return(_)) {
            for v in end.iter().filter(|v| !subject.given.contains(*v)) {
                let tape = tape_of(subject, v, &mut by_var, tapes);
                at_exit.push((v, tape));
            }
        }
    }
    let counters = analysis.counters_to_set();
    let again = analysis.again;
    let origins = origins_with_tapes(subject, origins, tapes);
    Record { saves, at_exit, at_end, origins, counters, again, needs }
}

fn tape_of(subject: &Subject<'_>, v: VarId, by_var: &mut BTreeMap<VarId, TapeId>, tapes: &mut Tapes<'_>) -> TapeId {
    *by_var.entry(v).or_insert_with(|| {
        let var = &subject.func.vars[v];
        tapes.new_tape(&var.name, var.ty.clone())
    })
}

/// What has to be saved of a variable that an instruction sets.
pub(super) enum Way {
    /// Nothing: the instruction has an inverse, which starts from the new value.
    Inverse,
    /// The element of this type that the instruction sets; the others are taken from the new value.
    Element(Type),
    /// All of it.
    Whole,
}

pub(super) fn way_back(subject: &Subject<'_>, inst: Option<&Inst>, v: VarId) -> Way {
    match inst.map(|i| &i.kind) {
        Some(InstKind::Prim { prim: Prim::Add | Prim::Sub, args, .. }) if inverts(subject, v, args) => Way::Inverse,
        Some(InstKind::Prim { prim: Prim::SetIndex, args, .. }) if args[0] == Operand::Var(v) => {
            Way::Element(subject.program.operand_type(subject.func, args[1]))
        }
        _ => Way::Whole,
    }
}

/// Whether `v = add v, c` or `v = sub v, c` of ints, which did not overflow.
fn inverts(subject: &Subject<'_>, v: VarId, args: &[Operand]) -> bool {
    args[0] == Operand::Var(v) && args[1].var().is_none() && subject.func.vars[v].ty == Type::int()
}

/// What the reverse of each instruction and terminator reads: its rule is run for nothing.
fn needs(subject: &Subject<'_>, vars: &IdVec<VarId, crate::cfg::Var>) -> IdVec<BlockId, Vec<Needs>> {
    let func = subject.func;
    let bound = func.vars.len();
    let mut code = Code::new(subject.program, vars.clone(), func.loc.clone());
    let mut all = IdVec::new();
    for (id, block) in func.blocks.iter() {
        let mut of_block = Vec::new();
        for inst in &block.insts {
            let mut needs = Needs::default();
            if let InstKind::Prim { dst, prim, args } = &inst.kind
                && subject.of[*dst].is_some()
            {
                let ty = func.vars[*dst].ty.clone();
                let result = code.fresh(ty.clone());
                let site = Site { prim: *prim, args, result: Operand::Var(result), ty: &ty, care: Care::Careful };
                let mut known = Known::zero(IdSet::new(bound));
                let mut cotangents = Cotangents { code: &mut code, of: subject.of, known: &mut known };
                cotangents.instruction(*dst, site);
                for inst in std::mem::take(&mut code.insts) {
                    inst.kind.for_each_operand(|o| match o {
                        Operand::Var(v) if v == result => needs.result = true,
                        Operand::Var(v) if v.index() < bound && !needs.before.contains(&v) => needs.before.push(v),
                        _ => {}
                    });
                }
            }
            of_block.push(needs);
        }
        let mut needs = Needs::default();
        if let Terminator::Call { args, .. } = &block.term {
            let read = args.iter().enumerate().filter(|(k, _)| (subject.reads_arg)(id, *k));
            needs.before = read.filter_map(|(_, a)| a.var()).collect();
        }
        of_block.push(needs);
        all.push(of_block);
    }
    all
}
