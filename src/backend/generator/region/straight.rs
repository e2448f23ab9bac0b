//! Straight code: the blocks of a program, but for those that do what no function can, as one function that takes a lane
//! from block to block by itself: its calls, returns, stacks and draws included. Nothing is left of the machine between
//! two blocks, and nothing of the other lanes in the text.
//!
//! The blocks are written as those of a region are, for what is a group of lanes there is one lane here, and a branch of one
//! lane does not diverge. A lane leaves the function where its next block has no text, and comes back at the first block of
//! any unit.

use std::collections::HashSet;
use std::sync::Arc;

use super::machine::{Machine, MachineSegment, Ports};
use super::place::{Known, Number, Place, View};
use super::text::{Extent, Writer};
use super::{Pile, RegionExit, RegionFrame, RegionFunction, RegionSegment};
use crate::backend::generator::ending::{Ending, Exit};
use crate::backend::generator::functions::group_type;
use crate::backend::generator::operations::drawing;
use crate::backend::generator::scope::Storage;
use crate::base::Id as _;
use crate::parts::{self, Message, SharedSource};
use crate::plan::{ConstantId, StackId};
use crate::prim::{Class, Draw, Prim};
use crate::run::TrapKind;
use crate::types::{DType, Type};
use crate::unit::{Block, BlockId, Body, OpKind, Operand, ValueId, VarId};
use crate::vmath::{BinaryFn, Computed, UnaryFn};

/// What a target that runs straight code has besides. There is one lane: what [`RegionFrame`] says of a group is said of it.
///
/// The function has the label `leave`, where a lane goes that trapped or left.
pub(in crate::backend) trait StraightFrame: RegionFrame {
    /// The block at which the lane enters the function, as an expression.
    fn entry(&self) -> String;
    /// The statements that count a visit of the lane, which leaves by this exit where it has no more of them.
    fn visit(&self, exit: usize) -> Vec<String>;
    /// The statements that put a return address on top of those of the lane; the numbers of the places say where its calls
    /// are too deep, and where there is no memory.
    fn call(&self, ret: BlockId, deep: usize, full: usize) -> Vec<String>;
    /// The statement that notes how high these are, before the address of an attempt is put on top.
    fn note(&self, ret: BlockId, piles: &[Pile]) -> String;
    /// How high a pile of the lane is, as the name of a variable.
    fn height(&self, pile: Pile) -> String;
    /// Whether the lane was called by nobody, as an expression.
    fn is_outermost(&self) -> String;
    /// The return address that is taken off, as an expression.
    fn returned(&self) -> String;
    /// The statement that counts draws of the lane.
    fn drew(&self, draws: usize) -> String;
    /// The statement that has the machine compute a function of each of so many elements, which stand side by side from
    /// these addresses on, as do the results.
    fn map(&self, function: Mapped, operands: &[String], to: &str, elements: usize) -> String;
    /// The statement that has the machine compute `log1p_exp` and `inv_logit` of each of so many elements.
    fn map_twins(&self, operand: &str, log1p_exp: &str, inv_logit: &str, elements: usize) -> String;
    /// The statement that has the machine compute the sum of `log1p_exp` of so many elements, and `inv_logit` of each.
    fn sum_and_map(&self, operand: &str, sum: &str, inv_logit: &str, elements: usize) -> String;
    /// The statement that has the machine make so many draws of reals, from that of the lane on; it counts none.
    fn random(&self, draw: Draw, to: &str, elements: usize) -> String;
    /// What declares draws of reals that the machine makes some at a time, by this name, and the next of them; `one`
    /// makes one.
    fn ahead(&self, draw: Draw, name: &str, one: &str) -> [String; 2];
    /// The statement that has the machine run the kernel of this number, with arrays at these addresses.
    fn kernel(&self, number: usize, operands: &[String], to: &str) -> String;
    /// The statement that has the machine note the message of this number, with values at these addresses.
    fn tell(&self, number: usize, values: &[String]) -> String;
}

/// A message with values, which the machine renders where a lane traps.
#[derive(Clone, PartialEq, Debug)]
pub struct TrapMessage {
    /// The texts around the values: one more than there are of these.
    pub texts: Arc<[String]>,
    /// Of the values.
    pub args: Vec<Type>,
}

/// Elements of all values of a message: they stand on the stack.
const MOST_TOLD: usize = 1 << 8;

/// A primitive that the machine computes by its kernel, of arrays of reals that stand side by side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelOp {
    /// The primitive, which traps no lane.
    pub prim: Prim,
    /// Its operands.
    pub args: Vec<KernelOperand>,
    /// Of its result.
    pub ty: Type,
}

/// An operand of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelOperand {
    /// Its type.
    pub ty: Type,
    /// What it is.
    pub is: KernelSource,
}

/// What an operand of a kernel is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelSource {
    /// An array of the lane.
    Own,
    /// All of a shared value.
    Shared(ConstantId),
    /// The transpose of one, which stands there as it is.
    TransposeOf(ConstantId),
}

/// A function that the machine computes of many elements, a vector of them at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::backend) enum Mapped {
    /// Of one operand.
    Unary(UnaryFn),
    /// Of two.
    Binary(BinaryFn),
}

/// Elements from which on the machine computes functions of reals: a call takes as long as some two of them.
pub(super) const FEWEST_MAPPED: usize = 6;

/// Multiply-adds of a matrix product from which on its kernel is quicker than the text, by what was measured
/// (`benches/HISTORY.md`): from some 500 on of a matrix and a vector, and from 1,000 on of two matrices.
const FEWEST_PRODUCTS: usize = 768;

/// Elements of a shared matrix up to which it is read transposed by a kernel here. A larger one does not stay in the second
/// cache: where it is multiplied from both sides, both products are made tile by tile, and it is read once.
const MOST_TRANSPOSED: usize = 1 << 17;

/// What the writer of a straight function has besides.
pub(super) struct Straight<'a> {
    pub(super) frame: &'a dyn StraightFrame,
    /// The blocks that calls return to.
    returns: Vec<BlockId>,
    /// The first blocks of units, where lanes come in.
    pub(super) entries: Vec<BlockId>,
    /// That of the unit whose visits are counted.
    visited: Option<BlockId>,
    /// What the machine runs.
    kernels: Vec<KernelOp>,
    /// What it says.
    pub(super) messages: Vec<TrapMessage>,
    /// What a machine in the function has besides.
    pub(super) machine: Option<Machine<'a>>,
}

/// The straight function of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct StraightSegment {
    /// The function; it is entered at the first block of any unit that it has.
    pub region: RegionSegment,
    /// The memory of stack variables that it is called with, in this order.
    pub stacks: Vec<StackId>,
    /// The kernels that it has the machine run, by their numbers.
    pub kernels: Vec<KernelOp>,
    /// The messages with values, by their numbers.
    pub messages: Vec<TrapMessage>,
    /// Whether it has the unit whose visits are to be counted.
    pub counts: bool,
    /// What a machine in the function has besides.
    pub(in crate::backend) machine: Option<MachineSegment>,
}

/// The straight function of a body, appended to `out`; none where no block has a text. It counts how often a lane comes to
/// the unit that begins with `visited`.
pub(in crate::backend) fn straight<'a, T: Ending>(
    frame: &'a dyn StraightFrame,
    (body, storage): (&'a Body<T>, &'a Storage<'a>),
    visited: Option<BlockId>,
    name: &str,
    out: &mut String,
) -> Option<StraightSegment> {
    let mut refused: HashSet<BlockId> = HashSet::new();
    // What is left out changes where others go on, and the room that they have.
    loop {
        let units = || body.units.values().filter(|unit| !unit.blocks.iter().any(|block| refused.contains(block)));
        let blocks: Vec<BlockId> = units().flat_map(|unit| &unit.blocks).copied().collect();
        let straight = Straight {
            frame,
            returns: body.blocks.values().filter_map(|block| block.term.returned_to()).collect(),
            entries: units().map(|unit| unit.blocks[0]).collect(),
            visited,
            kernels: Vec::new(),
            messages: Vec::new(),
            machine: None,
        };
        if blocks.is_empty() {
            return None;
        }
        match written((body, storage), &blocks, straight, name) {
            Ok((text, segment)) => {
                *out += &text;
                return Some(segment);
            }
            Err(without) => {
                for (block, why) in without {
                    *out += &format!("// {name}, without {block}: {why}\n");
                    refused.insert(block);
                }
            }
        }
    }
}

/// The function that is a machine for the lanes of a warp, appended to `out`: all blocks of a body, each of which hands its
/// lane back to the scheduler.
///
/// # Errors
/// The blocks that have no text, and why.
pub(in crate::backend) fn machine<'a, T: Ending>(
    frame: &'a dyn StraightFrame,
    (body, storage): (&'a Body<T>, &'a Storage<'a>),
    ports: &'a Ports,
    name: &str,
    out: &mut String,
) -> Result<StraightSegment, Vec<(BlockId, String)>> {
    let blocks: Vec<BlockId> = body.units.values().flat_map(|unit| &unit.blocks).copied().collect();
    let machine = Machine::of(body, ports);
    let straight = Straight {
        frame,
        returns: Vec::new(),
        entries: machine.entries(body),
        visited: None,
        kernels: Vec::new(),
        messages: Vec::new(),
        machine: Some(machine),
    };
    let (text, segment) = written((body, storage), &blocks, straight, name)?;
    *out += &text;
    Ok(segment)
}

/// The text of these blocks, or those that have none, and why.
fn written<T: Ending>(
    (body, storage): (&Body<T>, &Storage<'_>),
    blocks: &[BlockId],
    straight: Straight<'_>,
    name: &str,
) -> Result<(String, StraightSegment), Vec<(BlockId, String)>> {
    let frame = straight.frame;
    // Without a mask an array is set where it is as quickly as anywhere.
    let extent = Extent { blocks, region: blocks, most_moved: 0 };
    let mut writer = Writer::new(frame, (body, storage), extent).map_err(|variable| {
        let uses = |block: &&BlockId| {
            let mut vars = body.blocks[**block].ops.iter().filter_map(|op| op.kind.var());
            vars.any(|var| format!("`{}`", body.vars[var].name) == variable)
        };
        blocks.iter().filter(uses).map(|block| (*block, variable.clone())).collect::<Vec<_>>()
    })?;
    writer.straight = Some(straight);
    writer.straight_blocks()?;
    let declared = writer.declarations();
    let straight = writer.straight.take().expect("it was there before");
    let (kernels, messages) = (straight.kernels, straight.messages);
    let counts = straight.visited.is_none_or(|visited| blocks.contains(&visited));
    let machine = straight.machine.map(|machine| machine.segment);
    let Writer { signature, sites, exits, scratch, functions: mut out, body: text, .. } = writer;
    let function = RegionFunction { name, block: blocks[0], signature: &signature, storage, blocks: blocks.len() };
    frame.begin_region(&function, &mut out);
    out += &declared;
    out += &text;
    frame.end_region(&function, &mut out);
    let region = RegionSegment {
        name: name.to_owned(),
        slots: signature.slots.into_iter().collect(),
        constants: signature.constants.into_iter().collect(),
        tapes: signature.tapes.into_iter().collect(),
        sites,
        prims: Vec::new(),
        blocks: blocks.to_vec(),
        scratch,
        exits,
    };
    let stacks = signature.stacks.into_iter().collect();
    Ok((out, StraightSegment { region, stacks, kernels, messages, counts, machine }))
}

impl<T: Ending> Writer<'_, T> {
    /// The statements of all blocks; or the blocks that have none, and why.
    fn straight_blocks(&mut self) -> Result<(), Vec<(BlockId, String)>> {
        let straight = self.straight.as_ref().expect("it is straight");
        if straight.machine.is_some() {
            return self.machine_blocks();
        }
        let (entry, entries) = (straight.frame.entry(), straight.entries.clone());
        self.open(&format!("switch ({entry}) {{"));
        for block in entries {
            self.line(format!("case {}: goto {};", block.index(), self.label(None, block)));
        }
        self.line("default: __builtin_unreachable();");
        self.close();
        self.blocks_or_refused()?;
        self.returns();
        self.leave();
        Ok(())
    }

    /// The statements of the blocks one after the other; or the blocks that have none, and why.
    pub(super) fn blocks_or_refused(&mut self) -> Result<(), Vec<(BlockId, String)>> {
        let mut refused = Vec::new();
        let meets = |id: BlockId| {
            let machine = self.straight.as_ref().and_then(|straight| straight.machine.as_ref());
            machine.is_some_and(|machine| machine.is_meeting(id))
        };
        let own: Vec<_> = self.blocks.iter().enumerate().filter(|(_, id)| !meets(**id)).collect();
        for (number, id) in own {
            if let Err(why) = self.block(number, *id) {
                self.forget_open();
                refused.push((*id, why));
            }
        }
        if refused.is_empty() { Ok(()) } else { Err(refused) }
    }

    /// Where a lane goes that comes to a block from another, or from outside.
    pub(super) fn label(&self, from: Option<BlockId>, to: BlockId) -> String {
        let visited = self.straight.as_ref().and_then(|straight| straight.visited) == Some(to);
        let mut units = self.units.units.values();
        let stays =
            |from: BlockId| units.any(|unit| unit.region && unit.blocks.contains(&from) && unit.blocks.contains(&to));
        let prefix = if visited && !from.is_some_and(stays) { "v" } else { "b" };
        format!("{prefix}{}", to.index())
    }

    /// What comes before a block whose visits are counted.
    pub(super) fn visit(&mut self, id: BlockId) {
        let Some(straight) = self.straight.as_ref().filter(|straight| straight.visited == Some(id)) else { return };
        let frame = straight.frame;
        self.line(format!("v{}:;", id.index()));
        let exit = self.exit(RegionExit { from: id, to: Some(id) });
        self.lines(frame.visit(exit));
    }

    /// Where lanes go that return.
    fn returns(&mut self) {
        let straight = self.straight.as_ref().expect("it is straight");
        let (address, mut returns) = (straight.frame.returned(), straight.returns.clone());
        returns.sort_unstable();
        returns.dedup();
        self.line("back:;");
        self.open(&format!("switch ({address}) {{"));
        for ret in returns {
            let number = ret.index();
            if self.blocks.contains(&ret) {
                self.line(format!("case {number}: goto {};", self.label(None, ret)));
                continue;
            }
            self.line(format!("case {number}:"));
            let exit = self.exit(RegionExit { from: ret, to: Some(ret) });
            self.lines(self.frame.leave(exit, None));
        }
        self.line("default: __builtin_unreachable();");
        self.close();
    }

    /// How a block ends.
    pub(super) fn straight_end(&mut self, number: usize, block: &Block<T>) {
        let id = self.blocks[number];
        let frame = self.straight.as_ref().expect("it is straight").frame;
        match block.term.exit() {
            Some(Exit::Jump(to)) => self.goto(number, to),
            Some(Exit::Branch(yes, no)) => {
                let condition = self.number(block.term.condition().expect("a branch has a condition"));
                let holds = if condition.plain { condition.text } else { frame.holds(&condition.text) };
                self.open(&format!("if ({holds}) {{"));
                self.goto(number, yes);
                self.close();
                self.goto(number, no);
            }
            Some(Exit::Call(target, ret, loc)) => {
                self.loc = loc.clone();
                let [deep, full] =
                    [TrapKind::StackLimit, TrapKind::MemoryLimit].map(|kind| self.site(kind, String::new(), None));
                if let Some(attempt) = block.term.noted() {
                    let stacks: Vec<Pile> = attempt.stacks.iter().map(|stack| self.stack(*stack)).collect();
                    let tapes: Vec<Pile> = attempt.tapes.iter().map(|tape| self.tape(*tape)).collect();
                    self.line(frame.note(ret, &[stacks, tapes].concat()));
                }
                self.lines(frame.call(ret, deep, full));
                // Behind, the jump looks.
                if !self.is_scheduled() && self.blocks[..=number].iter().all(|block| *block != target) {
                    self.line(frame.stop());
                }
                self.goto(number, target);
            }
            Some(Exit::Return) => {
                if self.is_scheduled() {
                    return self.line("goto back;");
                }
                self.open(&format!("if ({}) {{", frame.is_outermost()));
                let exit = self.exit(RegionExit { from: id, to: None });
                self.lines(frame.leave(exit, None));
                self.close();
                self.line("goto back;");
            }
            Some(Exit::Halt) if self.is_scheduled() => self.wait_at("AB_DONE"),
            Some(Exit::Halt) => {
                let exit = self.exit(RegionExit { from: id, to: None });
                self.lines(frame.leave(exit, None));
            }
            None => unreachable!("the blocks of a stack program say where lanes go"),
        }
    }

    /// The number of the memory of a stack variable.
    pub(super) fn stack(&mut self, var: VarId) -> Pile {
        Pile::Stack(self.signature.stacks.insert_full(self.storage.stack(var)).0)
    }

    /// Puts a value on the memory of a stack variable; none in a region, where lanes may be at different heights.
    pub(super) fn stack_push(&mut self, var: VarId, value: Operand) -> Option<()> {
        self.straight.as_ref()?;
        let stack = self.stack(var);
        self.push(stack, None, value)
    }

    /// Takes one off.
    pub(super) fn stack_pop(&mut self, dst: ValueId, var: VarId, ty: &Type) -> Option<()> {
        self.straight.as_ref()?;
        let stack = self.stack(var);
        self.pop(dst, (stack, None), ty)
    }

    /// The function that the machine computes better than the text does, in which the elements of one lane are no vector.
    pub(super) fn mapped(&self, prim: Prim, elements: usize) -> Option<Mapped> {
        if self.straight.is_none() || self.is_scheduled() || elements < FEWEST_MAPPED {
            return None;
        }
        mapped(prim)
    }

    /// What the machine computes of these views.
    pub(super) fn map_by_machine(
        &mut self,
        function: Mapped,
        block: &Block<T>,
        dst: ValueId,
        args: &[Operand],
        views: &[View],
    ) -> Option<Known> {
        let frame = self.straight.as_ref()?.frame;
        let ty = &block.values[dst].ty;
        let n = ty.elements();
        self.close_loop();
        let mut operands = Vec::new();
        for (view, arg) in views.iter().zip(args) {
            let operand = match self.address(view).filter(|_| view.elements == n) {
                Some(address) => address,
                None => {
                    let (place, to) = (self.place_of(block, view, *arg, ty), self.array(n, DType::Real, false)?);
                    self.each_of(&ty.shape, |w, e| {
                        let element = w.element(view, place.as_deref());
                        w.set(&to, e, &element);
                    });
                    self.address(&to)?
                }
            };
            operands.push(operand);
        }
        // What is read must stand elsewhere.
        let read: Vec<View> = views.iter().map(View::nowhere_else).collect();
        let to = self.array_of(dst, (n, DType::Real, false), &read)?;
        let result = self.address(&to)?;
        match self.twin_of(block, function, args) {
            Some(twin) => {
                let other = self.array(n, DType::Real, false)?;
                let others = self.address(&other)?;
                self.know(twin, Known::Array(other));
                let [log1p_exp, inv_logit] = match function {
                    Mapped::Unary(UnaryFn::InvLogit) => [others, result],
                    _ => [result, others],
                };
                self.line(frame.map_twins(&operands[0], &log1p_exp, &inv_logit, n));
            }
            None => self.line(frame.map(function, &operands, &result, n)),
        }
        Some(Known::Array(to))
    }

    /// What is computed of the same operand later in the block, and much quicker together with this function of it.
    fn twin_of(&self, block: &Block<T>, function: Mapped, of: &[Operand]) -> Option<ValueId> {
        let twin = match function {
            Mapped::Unary(UnaryFn::Log1pExp) => Prim::InvLogit,
            Mapped::Unary(UnaryFn::InvLogit) => Prim::Log1pExp,
            _ => return None,
        };
        block.ops[self.at() + 1..].iter().find_map(|op| match &op.kind {
            OpKind::Compute { dst, prim, args } if *prim == twin && args[..] == *of => Some(*dst),
            _ => None,
        })
    }

    /// Whether the machine computes a product of so many multiply-adds.
    pub(super) fn multiplies_by_machine(&self, products: usize) -> bool {
        self.straight.is_some() && products >= FEWEST_PRODUCTS
    }

    /// The matrix whose transpose an operand is, if only that has a place.
    pub(super) fn transposed(&self, operand: Operand) -> Option<ConstantId> {
        let Operand::Shared(shared) = operand else { return None };
        match &self.storage.globals.shared[shared].source {
            SharedSource::Prim(Prim::Transpose, args) if self.storage.constants[shared].is_none() => match args[0] {
                parts::Operand::Shared(of) => self.storage.constants[of],
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a product reads this operand, which has no place, as the transpose of one that has.
    pub(super) fn is_read_transposed(&self, kind: &OpKind, operand: Operand) -> bool {
        let is_product = |prim: &Prim| matches!(prim, Prim::MatMul | Prim::ChainMatMul);
        let is_left = matches!(kind, OpKind::Compute { prim, args, .. } if is_product(prim) && args[0] == operand);
        let ty = operand.ty(|_| unreachable!("it is shared"), |shared| self.storage.globals.shared[shared].ty.clone());
        self.straight.is_some()
            && is_left
            && self.transposed(operand).is_some()
            && ty.shape.len() == 2
            && (1..=MOST_TRANSPOSED).contains(&ty.elements())
    }

    /// What the machine computes by the kernel of a primitive that traps no lane.
    pub(super) fn by_kernel(&mut self, prim: Prim, block: &Block<T>, dst: ValueId, args: &[Operand]) -> Option<Known> {
        let frame = self.straight.as_ref()?.frame;
        let ty = block.values[dst].ty.clone();
        let types: Vec<Type> = args.iter().map(|arg| block.operand_type(*arg, self.storage.globals)).collect();
        if types.iter().chain([&ty]).any(|ty| ty.dtype != DType::Real || ty.elements() == 0) {
            return None;
        }
        self.close_loop();
        let (mut operands, mut kinds) = (Vec::new(), Vec::new());
        for (arg, ty) in args.iter().zip(types) {
            if let Some(constant) = self.transposed(*arg) {
                operands.push(self.constant(constant, DType::Real)?);
                kinds.push(KernelOperand { ty, is: KernelSource::TransposeOf(constant) });
                continue;
            }
            let view = self.view(*arg)?;
            operands.push(self.side_by_side(&view)?);
            let shared = match arg {
                Operand::Shared(shared) => self.storage.constants[*shared],
                _ => None,
            };
            kinds.push(KernelOperand { ty, is: shared.map_or(KernelSource::Own, KernelSource::Shared) });
        }
        let to = View { elements: ty.elements(), ..self.array(ty.elements().max(2), DType::Real, false)? };
        let result = self.address(&to)?;
        if self.is_scheduled() {
            self.of_matrices(prim, &kinds, &operands, &result, &ty)?;
            return Some(if to.elements > 1 { Known::Array(to) } else { Known::Number(self.element(&to, None)) });
        }
        let op = KernelOp { prim, args: kinds, ty };
        let kernels = &mut self.straight.as_mut()?.kernels;
        let number = kernels.iter().position(|known| *known == op).unwrap_or_else(|| {
            kernels.push(op);
            kernels.len() - 1
        });
        self.line(frame.kernel(number, &operands, &result));
        Some(if to.elements > 1 { Known::Array(to) } else { Known::Number(self.element(&to, None)) })
    }

    /// Traps the lane where a condition does not hold, with a message that has values; none in a region, where lanes may have
    /// others.
    pub(super) fn assert_telling(
        &mut self,
        block: &Block<T>,
        condition: Operand,
        message: &Message<Operand>,
    ) -> Option<()> {
        let frame = self.straight.as_ref()?.frame;
        let types: Vec<Type> = message.args.iter().map(|arg| block.operand_type(*arg, self.storage.globals)).collect();
        let elements: usize = types.iter().map(Type::elements).sum();
        if elements > MOST_TOLD || types.iter().any(|ty| ty.dtype == DType::Bool || ty.elements() == 0) {
            return None;
        }
        self.close_loop();
        let condition = self.number(condition);
        let holds = if condition.plain { condition.text } else { frame.holds(&condition.text) };
        let site = self.site(TrapKind::AssertFailed, String::new(), None);
        self.open(&format!("if (!({holds})) {{"));
        if self.is_scheduled() {
            self.told(site, message, types)?;
            self.line(self.frame.trap_all("1", site, None));
            self.close();
            return Some(());
        }
        let mut values = Vec::new();
        for (arg, ty) in message.args.iter().zip(&types) {
            let view = self.view(*arg)?;
            let name = self.fresh("v");
            self.line(format!("{} {name}[{}];", group_type(ty.dtype), ty.elements()));
            self.each(ty.elements(), |w, e| {
                let element = w.element(&view, e).in_lanes();
                w.line(format!("{name}[{}] = {element};", e.unwrap_or("0")));
            });
            values.push(name);
        }
        let messages = &mut self.straight.as_mut()?.messages;
        messages.push(TrapMessage { texts: Arc::clone(&message.texts), args: types });
        let number = messages.len() - 1;
        self.line(frame.tell(number, &values));
        self.line(self.frame.trap_all("1", site, None));
        self.close();
        Some(())
    }

    /// Where the elements of a view stand side by side, copied if they do not.
    pub(super) fn side_by_side(&mut self, view: &View) -> Option<String> {
        if let Some(address) = self.address(view) {
            return Some(address);
        }
        let to = View { elements: view.elements, ..self.array(view.elements.max(2), DType::Real, false)? };
        self.copy(&to, view);
        self.address(&to)
    }

    /// Where the elements of a view stand side by side, if they do.
    pub(super) fn address(&mut self, view: &View) -> Option<String> {
        let base = match &view.place {
            Place::Local { name, plain: false } if view.dtype == DType::Real => name.clone(),
            Place::Constant(constant) if view.dtype == DType::Real => self.constant(*constant, view.dtype)?,
            _ => return None,
        };
        Some(format!("{base} + ({})", view.at(None)))
    }

    /// Whether a block may follow upon itself.
    fn leads_to_itself(&self, block: &Block<T>) -> bool {
        let itself = |to: BlockId| std::ptr::eq(&self.units.blocks[to], block);
        match block.term.exit() {
            Some(Exit::Jump(to)) => itself(to),
            Some(Exit::Branch(yes, no)) => itself(yes) || itself(no),
            _ => false,
        }
    }

    /// Draws of the lane; none in a region. Of a block that leads to itself the machine makes the draws of some turns
    /// at once.
    pub(super) fn drawn(&mut self, block: &Block<T>, draw: Draw, ty: &Type) -> Option<Known> {
        let frame = self.straight.as_ref()?.frame;
        let n = ty.elements();
        let text = |e: Option<&str>| Number::group(frame.draw(drawing(draw), e.unwrap_or("0")), ty.dtype);
        let known = if n == 1 && draw != Draw::RandomPosition && !self.is_scheduled() && self.leads_to_itself(block) {
            let [declared, next] = frame.ahead(draw, &self.fresh("ahead"), &text(None).text);
            self.declared.push(declared);
            Known::Number(self.named(Number::group(next, DType::Real)))
        } else if n == 1 {
            Known::Number(self.named(text(None)))
        } else if n >= FEWEST_MAPPED && !self.is_scheduled() {
            let to = self.array(n, DType::Real, false)?;
            let address = self.address(&to)?;
            self.line(frame.random(draw, &address, n));
            Known::Array(to)
        } else {
            let to = self.array(n, DType::Real, false)?;
            self.each_at_length(n, |w, e| w.set(&to, e, &text(e)));
            Known::Array(to)
        };
        if draw != Draw::RandomPosition {
            self.line(frame.drew(n));
        }
        Some(known)
    }
}

/// The function of reals that a primitive is, if it takes more than an instruction.
pub(super) fn mapped(prim: Prim) -> Option<Mapped> {
    match prim.class() {
        Class::Unary(f) if f.computed() != Computed::Native => Some(Mapped::Unary(f)),
        Class::Binary(f) => Some(Mapped::Binary(f)),
        _ => None,
    }
}
