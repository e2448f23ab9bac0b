//! Machines: straight code whose lanes are those of a warp. Each thread takes one lane from unit to unit, and the threads of
//! a warp that wait at the same unit run it together: behind a unit a lane goes nowhere by itself, but says where it waits,
//! and the scheduler of the warp says which unit is next.
//!
//! The text counts on names of `machine.cuh`, where the scheduler is: `pc` is where the lane waits, `position` which lane of
//! the run it is, `site`, `index` and `told` what it says where it traps. Besides the blocks there are two units: at `AB_TRAP`
//! a lane waits that trapped, and at `AB_DONE` one that takes up another lane of the run. A unit that writes records begins
//! only where there is room for them, so that a lane can wait for the host.

use std::collections::{HashMap, HashSet};

use super::place::{Number, Place, View};
use super::text::{Variable, Writer};
use super::{Pile, TrapMessage};
use crate::backend::generator::ending::Ending;
use crate::backend::generator::functions::{memory_type, prefix};
use crate::backend::generator::operations::literal;
use crate::base::{Id as _, Loc};
use crate::parts::{Message, StreamId};
use crate::run::TrapKind;
use crate::types::{DType, Scalar, Type};
use crate::unit::{Block, BlockId, Body, OpKind, Operand, SideEffect, Unit, VarId};

/// Words before those of a record: what it is and how many follow; whose it is.
pub(in crate::backend) const RECORD_HEAD: usize = 2;

/// What a lane begins and ends with.
#[derive(Clone, Debug)]
pub(in crate::backend) struct Ports {
    /// The variables that are set when it begins.
    pub(in crate::backend) inputs: Vec<VarId>,
    /// Those that are read when it is done.
    pub(in crate::backend) outputs: Vec<VarId>,
    /// The block where it begins.
    pub(in crate::backend) entry: BlockId,
    /// The blocks where lanes meet, and the extent of what goes row by row there, if anything does.
    pub(in crate::backend) meetings: HashMap<BlockId, Option<usize>>,
    /// Blocks that go on with another one, and are not counted.
    pub(in crate::backend) continued: HashSet<BlockId>,
}

/// What the writer of a machine has besides.
pub(super) struct Machine<'a> {
    ports: &'a Ports,
    /// By block its unit.
    units: HashMap<BlockId, usize>,
    /// Regions that write records: lanes must be able to wait in them, so each block is a unit of its own.
    parted: HashSet<usize>,
    pub(super) segment: MachineSegment,
    /// Words of the records of the unit at hand.
    words: usize,
}

/// What is to know of a machine besides its function.
#[derive(Clone, PartialEq, Debug, Default)]
pub(in crate::backend) struct MachineSegment {
    /// Sites that tell a message with values, which follow the trap: by site, the number of the message.
    pub(in crate::backend) telling: Vec<(usize, usize)>,
    /// Records of streams, by number: the stream, and where it is written.
    pub(in crate::backend) emits: Vec<(StreamId, Loc)>,
    /// What is printed, by number.
    pub(in crate::backend) prints: Vec<TrapMessage>,
    /// Most words of records that a lane writes between two looks at the room.
    pub(in crate::backend) most_words: usize,
    /// Most words that a lane tells where it traps.
    pub(in crate::backend) most_told: usize,
    /// Words that are kept of a lane between two calls, besides lane buffers.
    pub(in crate::backend) kept: usize,
    /// Heights that are noted for each call that is an attempt.
    pub(in crate::backend) notes: usize,
    /// Tiles of the threads of a scope, where lanes meet, and numbers of each lane.
    pub(in crate::backend) tiles: usize,
    pub(in crate::backend) numbers: usize,
}

impl<'a> Machine<'a> {
    pub(super) fn of<T>(body: &Body<T>, ports: &'a Ports) -> Self {
        let numbered = || body.units.values().enumerate();
        let units =
            numbered().flat_map(|(number, unit)| unit.blocks.iter().map(move |block| (*block, number))).collect();
        let writes = |block: &BlockId| writes_records(&body.blocks[*block]);
        let parted = numbered().filter(|(_, unit)| unit.region && unit.blocks.iter().any(writes));
        let parted = parted.map(|(number, _)| number).collect();
        Self { ports, units, parted, segment: MachineSegment::default(), words: 0 }
    }

    /// The blocks where lanes wait.
    pub(super) fn entries<T>(&self, body: &Body<T>) -> Vec<BlockId> {
        let of_unit = |(number, unit): (usize, &Unit)| match self.parted.contains(&number) {
            true => unit.blocks.clone(),
            false => vec![unit.blocks[0]],
        };
        let entries = body.units.values().enumerate().flat_map(of_unit);
        entries.filter(|block| !self.ports.meetings.contains_key(block)).collect()
    }

    /// Whether lanes meet at a block.
    pub(super) fn is_meeting(&self, block: BlockId) -> bool {
        self.ports.meetings.contains_key(&block)
    }
}

impl<'a, T: Ending> Writer<'a, T> {
    pub(super) fn machine(&mut self) -> &mut Machine<'a> {
        self.straight.as_mut().and_then(|straight| straight.machine.as_mut()).expect("it is a machine")
    }

    /// Whether lanes go on through a scheduler.
    pub(super) fn is_scheduled(&self) -> bool {
        self.straight.as_ref().is_some_and(|straight| straight.machine.is_some())
    }

    /// Whether a block is of another unit, or the unit begins anew there and its lanes may part: not the blocks of a region
    /// among themselves.
    pub(super) fn is_elsewhere(&self, from: BlockId, to: BlockId) -> bool {
        let Some(machine) = self.straight.as_ref().and_then(|straight| straight.machine.as_ref()) else { return false };
        let unit = machine.units[&from];
        unit != machine.units[&to] || machine.parted.contains(&unit) || !self.is_region(unit)
    }

    fn is_region(&self, unit: usize) -> bool {
        self.units.units.values().nth(unit).is_some_and(|unit| unit.region)
    }

    /// The lane waits at a unit.
    pub(super) fn wait_at(&mut self, unit: &str) {
        self.line(format!("pc = {unit};"));
        self.line("goto next;");
    }

    /// At the start of a block: it is counted, if blocks are; one that writes records waits where there is no room for them.
    pub(super) fn begin_block(&mut self, block: BlockId) {
        if !self.is_scheduled() {
            return;
        }
        if writes_records(&self.units.blocks[block]) {
            self.machine().words = 0;
            self.line(format!("AB_ROOM({});", block.index()));
        }
        if self.machine().ports.continued.contains(&block) {
            return;
        }
        self.loc = self.units.blocks[block].loc.clone();
        let limit = self.site(TrapKind::StepLimit, String::new(), None);
        self.line(format!("AB_COUNT({limit});"));
    }

    /// The statements of all blocks, and of the scheduler around them; or the blocks that have none, and why.
    pub(super) fn machine_blocks(&mut self) -> Result<(), Vec<(BlockId, String)>> {
        let entries = self.straight.as_ref().expect("it is straight").entries.clone();
        let kept = self.kept_words();
        for (at, place, p) in &kept {
            self.line(format!("{place} = ab_of_word_{p}(ab_kept({at}));"));
        }
        self.machine().segment.kept = kept.len();
        self.open("for (;;) {");
        self.line("const uint32_t unit = ab_next(c, &warp, pc, ab_weights);");
        self.line("if (unit == AB_NONE) break;");
        for block in self.blocks.iter().copied() {
            let Some(rows) = self.machine().ports.meetings.get(&block).copied() else { continue };
            let made = self.meeting(block, rows);
            made.ok_or_else(|| vec![(block, "what is done where lanes meet".to_owned())])?;
        }
        self.open("if (pc == unit) {");
        self.open("switch (unit) {");
        for block in entries {
            self.line(format!("case {0}: goto b{0};", block.index()));
        }
        self.line("case AB_TRAP: goto trap;");
        self.line("default: goto done;");
        self.close();
        self.blocks_or_refused()?;
        self.line("back:");
        self.line("if (hr == 0) { pc = AB_DONE; goto next; }");
        let frame = self.straight.as_ref().expect("it is straight").frame;
        self.line(format!("pc = {};", frame.returned()));
        self.line("goto next;");
        self.trapped();
        self.done();
        self.close();
        self.line("next:;");
        self.line("AB_RECONVERGE();");
        self.close();
        self.line("ab_counts_end(c);");
        self.line("AB_HELPERS_LEAVE();");
        self.save();
        Ok(())
    }

    /// The unit of lanes that trapped: an attempt that was made catches the trap, or the lane is done.
    fn trapped(&mut self) {
        self.line("trap: {");
        self.indent += 4;
        self.line("AB_ROOM(AB_TRAP);");
        self.line("uint32_t depth = hr, ret = AB_NONE;");
        let frame = self.straight.as_ref().expect("it is straight").frame;
        let attempts: Vec<(BlockId, Vec<VarId>, Vec<Pile>)> = {
            let units = self.units;
            let mut attempts = Vec::new();
            for block in units.blocks.values() {
                if let (Some(attempt), Some(ret)) = (block.term.attempt(), block.term.returned_to()) {
                    let stacks: Vec<Pile> = attempt.stacks.iter().map(|stack| self.stack(*stack)).collect();
                    let tapes: Vec<Pile> = attempt.tapes.iter().map(|tape| self.tape(*tape)).collect();
                    attempts.push((ret, attempt.results.clone(), [stacks, tapes].concat()));
                }
            }
            attempts
        };
        if !attempts.is_empty() {
            self.open("if (AB_IS_CAUGHT(site)) {");
            self.open("while (depth > 0 && ret == AB_NONE) {");
            self.line("depth--;");
            self.line("ret = ab_returns(depth);");
            self.open("switch (ret) {");
            for (ret, ..) in &attempts {
                self.line(format!("case {}: break;", ret.index()));
            }
            self.line("default: ret = AB_NONE;");
            self.close();
            self.close();
            self.close();
        }
        self.line("ab_report(c, ret != AB_NONE, site, index, hr, told);");
        self.open("switch (ret) {");
        for (ret, results, piles) in attempts {
            self.line(format!("case {}:", ret.index()));
            for (at, pile) in piles.iter().enumerate() {
                self.line(format!("{} = ab_notes(depth, {at});", frame.height(*pile)));
            }
            let notes = piles.len();
            let segment = &mut self.machine().segment;
            segment.notes = segment.notes.max(notes);
            for var in results {
                self.spoil(var);
            }
            self.line("break;");
        }
        self.line("default: position = AB_NOBODY; pc = AB_DONE; goto next;");
        self.close();
        self.line("hr = depth;");
        self.line("pc = ret;");
        self.line("goto next;");
        self.close();
    }

    /// A variable gets what could not be computed: NaN, 0 or `false`.
    fn spoil(&mut self, var: VarId) {
        let Some((view, name)) = self.variable_at(var) else { return };
        let junk = match view.dtype {
            DType::Bool => Scalar::Bool(false),
            DType::Int => Scalar::Int(0),
            DType::Real => Scalar::Real(f64::NAN),
        };
        match name {
            Some(name) => self.line(format!("{name} = {};", literal(junk))),
            None => self.each(view.elements, |w, e| w.set(&view, e, &Number::group(literal(junk), view.dtype))),
        }
    }

    /// Where a variable is that outlives units, with its name where it is a number of the function.
    fn variable_at(&mut self, var: VarId) -> Option<(View, Option<String>)> {
        if let Some(variable) = self.variables.get(&var) {
            return Some(match variable.clone() {
                Variable::Number { name, dtype, .. } => {
                    (View::whole(Place::Local { name: name.clone(), plain: false }, 1, dtype), Some(name))
                }
                Variable::Array(view, _) => (view, None),
            });
        }
        let ty = &self.units.vars[var].ty;
        let (elements, dtype) = (ty.elements(), ty.dtype);
        let slot = self.storage.home_if_any(var)?;
        Some((View::whole(Place::Slot(slot), elements, dtype), None))
    }

    /// The unit of lanes that are done: hands their results over, and takes up another lane.
    fn done(&mut self) {
        let ports = self.straight.as_ref().and_then(|s| s.machine.as_ref()).expect("it is a machine").ports;
        let (inputs, outputs, entry) = (ports.inputs.clone(), ports.outputs.clone(), ports.entry);
        self.line("done: {");
        self.indent += 4;
        self.open("if (position != AB_NOBODY) {");
        for (number, var) in outputs.into_iter().enumerate() {
            let (view, name) = self.variable_at(var).expect("an output has a place");
            let n = view.elements;
            let ty = memory_type(view.dtype);
            self.open("{");
            self.line(format!("{ty} *const to = ({ty} *)c->outputs[{number}] + position * {n};"));
            self.each(n, |w, e| {
                let element = match &name {
                    Some(name) => Number::group(name.clone(), view.dtype),
                    None => w.element(&view, e),
                };
                w.line(format!("to[{}] = {};", e.unwrap_or("0"), element.in_lanes()));
            });
            self.close();
        }
        self.close();
        self.line("position = ab_take(c);");
        self.line("if (position == AB_NOBODY) { pc = AB_NONE; goto next; }");
        self.line("AB_BEGIN();");
        for (number, var) in inputs.into_iter().enumerate() {
            let Some((view, name)) = self.variable_at(var) else { continue };
            let (n, ty) = (view.elements, memory_type(view.dtype));
            self.open("{");
            self.line(format!("const {ty} *const from = (const {ty} *)c->inputs[{number}] + position * {n};"));
            match name {
                Some(name) => self.line(format!("{name} = from[0];")),
                None => self.each(n, |w, e| {
                    let element = format!("from[{}]", e.unwrap_or("0"));
                    w.set(&view, e, &Number::group(element, view.dtype));
                }),
            }
            self.close();
        }
        self.wait_at(&entry.index().to_string());
        self.close();
    }

    /// The words that are kept between two calls of what lives within a region, where lanes may wait there: for each its
    /// number, the variable or its element, and the prefix of its functions.
    fn kept_words(&mut self) -> Vec<(usize, String, char)> {
        if self.machine().parted.is_empty() {
            return Vec::new();
        }
        let mut words = Vec::new();
        for variable in self.variables.values() {
            match variable {
                // Plain bools are ints.
                Variable::Number { name, plain: true, home: None, .. } => words.push((name.clone(), 'i')),
                Variable::Number { name, dtype, home: None, .. } => words.push((name.clone(), prefix(*dtype))),
                Variable::Array(View { place: Place::Local { name, plain }, elements, dtype, .. }, None) => {
                    let p = if *plain { 'i' } else { prefix(*dtype) };
                    words.extend((0..*elements).map(|e| (format!("{name}[{e}]"), p)));
                }
                Variable::Number { .. } | Variable::Array(..) => {}
            }
        }
        words.into_iter().enumerate().map(|(at, (place, p))| (at, place, p)).collect()
    }

    /// Behind the loop of the scheduler: what a lane goes on with when the function is called again.
    fn save(&mut self) {
        for (at, place, p) in self.kept_words() {
            self.line(format!("ab_kept({at}) = ab_word_{p}({place});"));
        }
        for variable in self.variables.values().cloned().collect::<Vec<_>>() {
            match variable {
                Variable::Number { name, dtype, home: Some((slot, _)), .. } => {
                    self.line(self.frame.store(slot, false, dtype, &name));
                }
                Variable::Array(view, Some(slot)) => {
                    self.copy(&View { place: Place::Slot(slot), ..view.clone() }, &view);
                }
                Variable::Number { .. } | Variable::Array(..) => {}
            }
        }
    }

    /// A record of these operands, with its head.
    fn recorded(&mut self, head: &str, args: &[Operand]) -> Option<()> {
        self.close_loop();
        let views: Vec<View> = args.iter().map(|arg| self.view(*arg)).collect::<Option<_>>()?;
        let words: usize = views.iter().map(|view| view.elements).sum();
        self.open("{");
        self.line(format!("uint64_t *const to = ab_record(c, {head}, position, {words});"));
        self.words(&views, |at| format!("to[{at}]"));
        self.close();
        let machine = self.machine();
        machine.words += words + RECORD_HEAD;
        machine.segment.most_words = machine.segment.most_words.max(machine.words);
        Some(())
    }

    /// Sets words to the elements of these views, one after the other.
    fn words(&mut self, views: &[View], place: impl Fn(&str) -> String) {
        let mut first = 0;
        for view in views {
            self.each(view.elements, |w, e| {
                let element = w.element(view, e).in_lanes();
                let at = e.map_or_else(|| first.to_string(), |e| format!("{first} + {e}"));
                w.line(format!("{} = ab_word_{}({element});", place(&at), prefix(view.dtype)));
            });
            first += view.elements;
        }
    }

    /// A record of a stream; none in a function that is no machine.
    pub(super) fn emitted(&mut self, stream: StreamId, args: &[Operand]) -> Option<()> {
        self.is_scheduled().then_some(())?;
        let loc = self.loc.clone();
        let emits = &mut self.machine().segment.emits;
        emits.push((stream, loc));
        let number = emits.len() - 1;
        self.recorded(&format!("AB_EMIT, {number}"), args)
    }

    /// A line that is printed.
    pub(super) fn printed(&mut self, block: &Block<T>, message: &Message<Operand>) -> Option<()> {
        self.is_scheduled().then_some(())?;
        let args = message.args.iter().map(|arg| block.operand_type(*arg, self.storage.globals)).collect();
        let prints = &mut self.machine().segment.prints;
        prints.push(TrapMessage { texts: message.texts.clone(), args });
        let number = prints.len() - 1;
        self.recorded(&format!("AB_PRINT, {number}"), &message.args)
    }

    /// Before the lane traps at a site: the values of its message.
    pub(super) fn told(&mut self, site: usize, message: &Message<Operand>, types: Vec<Type>) -> Option<()> {
        let views: Vec<View> = message.args.iter().map(|arg| self.view(*arg)).collect::<Option<_>>()?;
        self.words(&views, |at| format!("told[({at}) * width]"));
        let words = views.iter().map(|view| view.elements).sum();
        let straight = self.straight.as_mut()?;
        straight.messages.push(TrapMessage { texts: message.texts.clone(), args: types });
        let number = straight.messages.len() - 1;
        let segment = &mut self.machine().segment;
        segment.telling.push((site, number));
        segment.most_told = segment.most_told.max(words);
        Some(())
    }
}

/// Whether a block writes records.
fn writes_records<T>(block: &Block<T>) -> bool {
    let writes = |kind: &OpKind| matches!(kind, OpKind::Effect(SideEffect::Print(_) | SideEffect::Emit { .. }));
    block.ops.iter().any(|op| writes(&op.kind))
}
