//! The text of a region: its variables, its blocks, and how they follow one another.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use indexmap::IndexMap;
use smallvec::SmallVec;

use super::fusion::OpenLoop;
use super::place::{Known, Number, Place, View};
use super::straight::Straight;
use super::sums::OpenSum;
use super::updates::Updates;
use super::{RegionExit, RegionFrame, RegionSignature};
use crate::backend::generator::ending::Ending;
use crate::backend::generator::frame::Stored;
use crate::backend::generator::functions::group_type;
use crate::backend::generator::operations::{literal, plain_literal};
use crate::backend::generator::parts::Site;
use crate::backend::generator::scope::Storage;
use crate::base::{Id as _, IdVec, Loc};
use crate::parts::{Shared, SharedSource, StorageClass};
use crate::plan::{ConstantId, SlotId};
use crate::run::TrapKind;
use crate::types::{Array, DType, Scalar};
use crate::unit::{Block, BlockId, Body, OpKind, Operand, ValueId, VarId};

/// Elements up to which an array that blocks of the region hand on, or change part by part, stands in an array of the
/// function.
pub(super) const MOST_MOVED: usize = 1 << 12;

/// The same of a loop in another one, which moves such arrays in each turn of that one.
pub(super) const MOST_MOVED_OFTEN: usize = 1 << 6;

/// Elements of a shared value that is known when the text is written, up to which it is a table of the text.
const MOST_IN_TABLE: usize = 64;

/// Writes the statements of a region.
pub(super) struct Writer<'a, T> {
    pub(super) frame: &'a dyn RegionFrame,
    pub(super) units: &'a Body<T>,
    pub(super) storage: &'a Storage<'a>,
    /// What a straight function has besides.
    pub(super) straight: Option<Straight<'a>>,
    /// The blocks of the function: those of the region, or of a loop in it.
    pub(super) blocks: &'a [BlockId],
    /// Those of the region; none of a block by itself, whose lanes part behind it, and may come back one by one.
    region: &'a [BlockId],
    /// Elements of arrays that come from lane buffers and go there, and are in an array of the function meanwhile.
    most_moved: usize,
    /// Where each of its variables is.
    pub(super) variables: IndexMap<VarId, Variable>,
    pub(super) signature: RegionSignature,
    pub(super) sites: Vec<Site>,
    pub(super) exits: Vec<RegionExit>,
    pub(super) body: String,
    /// Functions that the function calls, which stand before it.
    pub(super) functions: String,
    pub(super) indent: usize,
    pub(super) open_loop: Option<OpenLoop>,
    pub(super) open_sums: Vec<OpenSum>,
    /// The operations of the block at hand that wait for them, and the values that these make.
    pub(super) late: Vec<usize>,
    pub(super) late_values: HashSet<ValueId>,
    names: usize,
    /// Elements of the local arrays of the function, and of the block at hand.
    locals: usize,
    locals_of_block: usize,
    /// The same of arrays that do not stand on the stack, and the most of any block.
    scratch_of_variables: usize,
    scratch_of_block: usize,
    pub(super) scratch: usize,
    /// The declarations of arrays that are variables.
    pub(super) declared: Vec<String>,
    /// Those of the shared values that are tables of the text.
    tables: IndexMap<ConstantId, String>,
    /// The arrays of the block at hand by their names; those that nobody reads any more, and those that the open loop, or
    /// open sums, may still read.
    arrays: HashMap<String, View>,
    pub(super) free: Vec<View>,
    free_behind_loop: Vec<View>,
    pub(super) free_behind_sums: Vec<View>,
    /// What the values of the block at hand are.
    pub(super) known: IdVec<ValueId, Option<Known>>,
    pub(super) updates: Updates,
    /// The operation of the block at hand, and where it stands.
    at: usize,
    pub(super) loc: Loc,
}

/// A variable of a region.
#[derive(Clone, Debug)]
pub(super) enum Variable {
    /// A number in a local variable of this name, with the lane buffer that it comes from and, if the region sets it, goes to.
    Number { name: String, plain: bool, dtype: DType, home: Option<(SlotId, bool)> },
    /// An array where it stands. One that is changed part by part stands in an array of the function: what was stored under a
    /// mask is read again slowly. That one comes from a lane buffer, and goes there in the end.
    Array(View, Option<SlotId>),
}

/// What a function is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent<'a> {
    /// Its blocks.
    pub(super) blocks: &'a [BlockId],
    /// Those of the region that it belongs to, if it does.
    pub(super) region: &'a [BlockId],
    /// Elements of arrays that come from lane buffers and go there, and are in an array of the function meanwhile.
    pub(super) most_moved: usize,
}

/// What blocks do with a variable.
struct Usage {
    /// Whether it is read after the function, or comes from before it.
    outlives: bool,
    /// Whether the function sets it.
    stored: bool,
    /// Whether it sets parts of it.
    updated: bool,
}

impl<'a, T: Ending> Writer<'a, T> {
    /// For some blocks of a region.
    ///
    /// # Errors
    /// Where a variable has no place.
    pub(super) fn new(
        frame: &'a dyn RegionFrame,
        (units, storage): (&'a Body<T>, &'a Storage<'a>),
        Extent { blocks, region, most_moved }: Extent<'a>,
    ) -> Result<Self, String> {
        let mut writer = Self {
            frame,
            units,
            storage,
            straight: None,
            blocks,
            region,
            most_moved,
            variables: IndexMap::new(),
            signature: RegionSignature::default(),
            sites: Vec::new(),
            exits: Vec::new(),
            body: String::new(),
            functions: String::new(),
            indent: 8,
            open_loop: None,
            open_sums: Vec::new(),
            late: Vec::new(),
            late_values: HashSet::new(),
            names: 0,
            locals: 0,
            locals_of_block: 0,
            scratch_of_variables: 0,
            scratch_of_block: 0,
            scratch: 0,
            declared: Vec::new(),
            tables: IndexMap::new(),
            arrays: HashMap::new(),
            free: Vec::new(),
            free_behind_loop: Vec::new(),
            free_behind_sums: Vec::new(),
            known: IdVec::new(),
            updates: Updates::of(&units.blocks[blocks[0]]),
            at: 0,
            loc: units.blocks[blocks[0]].loc.clone(),
        };
        let ops = || blocks.iter().flat_map(|block| &units.blocks[*block].ops);
        let stored: HashSet<VarId> =
            ops().filter(|op| matches!(op.kind, OpKind::Store { .. })).filter_map(|op| op.kind.var()).collect();
        let updated: HashSet<VarId> = (blocks.iter())
            .flat_map(|block| Updates::of(&units.blocks[*block]).of_variable.into_values().flatten())
            .collect();
        let outside = region.iter().filter(|block| !blocks.contains(block));
        let used_outside: HashSet<VarId> =
            outside.flat_map(|block| &units.blocks[*block].ops).filter_map(|op| op.kind.var()).collect();
        let mut homes = HashSet::new();
        for var in ops().filter_map(|op| op.kind.var()) {
            if !writer.variables.contains_key(&var) {
                let temporary = units.vars[var].class == StorageClass::Temporary;
                let usage = Usage {
                    outlives: !temporary || used_outside.contains(&var),
                    stored: stored.contains(&var),
                    updated: updated.contains(&var),
                };
                let variable = writer.variable(var, usage, &mut homes);
                let variable = variable.ok_or_else(|| format!("`{}`", units.vars[var].name))?;
                writer.variables.insert(var, variable);
            }
        }
        Ok(writer)
    }

    /// Where a variable is; none where it has no place.
    fn variable(&mut self, var: VarId, usage: Usage, homes: &mut HashSet<SlotId>) -> Option<Variable> {
        let of = &self.units.vars[var];
        let (dtype, elements) = (of.ty.dtype, of.ty.elements());
        let plain = of.uniform && dtype != DType::Real;
        let name = format!("w{}", var.index());
        let home = if usage.outlives { Some(self.storage.home_if_any(var)?) } else { None };
        // Lane buffers of the pool serve several variables, one after the other as steps run.
        let alone = home.is_none_or(|home| homes.insert(home));
        if elements == 0 && self.frame.has_all() {
            return Some(Variable::Array(View::nothing(dtype), None));
        }
        if elements == 0 || !alone || home.is_some() && of.uniform && (!plain || elements > 1) {
            return None;
        }
        if elements == 1 {
            return Some(Variable::Number { name, plain, dtype, home: home.map(|home| (home, usage.stored)) });
        }
        let moves = usage.updated && elements <= self.most_moved;
        if of.uniform || home.is_none() && elements <= MOST_MOVED || moves {
            let declared = self.declared(&name, (elements, dtype, plain))?;
            self.locals += std::mem::take(&mut self.locals_of_block);
            self.scratch_of_variables += std::mem::take(&mut self.scratch_of_block);
            self.declared.push(declared);
            return Some(Variable::Array(View::whole(Place::Local { name, plain }, elements, dtype), home));
        }
        let slot = self.storage.home_if_any(var)?;
        self.signature.slots.insert(slot);
        let alone = home.is_some() || homes.insert(slot);
        alone.then(|| Variable::Array(View::whole(Place::Slot(slot), elements, dtype), None))
    }

    /// The declaration of an array of the function: on the stack as long as there is room; none where there is none at all.
    fn declared(&mut self, name: &str, (elements, dtype, plain): (usize, DType, bool)) -> Option<String> {
        let ty = if plain { "int64_t" } else { group_type(dtype) };
        if self.locals + self.locals_of_block + elements <= self.frame.limits().locals {
            self.locals_of_block += elements;
            return Some(format!("{ty} {name}[{elements}];"));
        }
        let first = self.scratch_of_variables + self.scratch_of_block;
        if first + elements > self.frame.limits().scratch {
            return None;
        }
        self.scratch_of_block += elements;
        self.scratch = self.scratch.max(first + elements);
        Some(self.frame.scratch(name, ty, first))
    }

    /// The local variables of the function.
    pub(super) fn declarations(&mut self) -> String {
        let body = std::mem::take(&mut self.body);
        for declared in self.tables.values().cloned().chain(std::mem::take(&mut self.declared)).collect::<Vec<_>>() {
            self.line(declared);
        }
        for variable in self.variables.values().cloned().collect::<Vec<_>>() {
            match variable {
                Variable::Number { name, plain: true, home, .. } => {
                    let value = home.map_or_else(
                        || "0".to_owned(),
                        |(slot, _)| {
                            self.signature.slots.insert(slot);
                            self.frame.load_plain(slot)
                        },
                    );
                    self.line(format!("int64_t {name} = {value};"));
                }
                Variable::Number { name, dtype, home, .. } => {
                    let value = match home {
                        None => zero(dtype),
                        Some((slot, _)) => self.element(&View::whole(Place::Slot(slot), 1, dtype), None).text,
                    };
                    self.line(format!("{} {name} = {value};", group_type(dtype)));
                }
                Variable::Array(view, home) => {
                    if let Some(slot) = home {
                        self.copy(&view, &View { place: Place::Slot(slot), ..view.clone() });
                    }
                }
            }
        }
        std::mem::replace(&mut self.body, body)
    }

    /// The statements of all blocks, and of what is stored when the region is left.
    ///
    /// # Errors
    /// What no function of a region does.
    pub(super) fn blocks(&mut self) -> Result<(), String> {
        for (number, id) in self.blocks.iter().enumerate() {
            self.block(number, *id)?;
        }
        self.leave();
        Ok(())
    }

    /// What stands behind all blocks: what is stored when the function is left.
    pub(super) fn leave(&mut self) {
        self.line("leave:;");
        for variable in self.variables.values().cloned().collect::<Vec<_>>() {
            match variable {
                Variable::Number { name, plain: true, home: Some((slot, true)), .. } => {
                    self.line(self.frame.store_plain(slot, &name));
                }
                Variable::Number { name, dtype, home: Some((slot, true)), .. } => {
                    self.line(self.frame.store(slot, false, dtype, &name));
                }
                Variable::Array(view, Some(slot)) => {
                    self.copy(&View { place: Place::Slot(slot), ..view.clone() }, &view);
                }
                Variable::Number { .. } | Variable::Array(..) => {}
            }
        }
    }

    pub(super) fn block(&mut self, number: usize, id: BlockId) -> Result<(), String> {
        let units = self.units;
        let block: &'a Block<T> = &units.blocks[id];
        self.updates = Updates::of(block);
        self.known = IdVec::filled(None, block.values.len());
        (self.locals_of_block, self.scratch_of_block) = (0, 0);
        self.arrays.clear();
        self.free.clear();
        self.free_behind_loop.clear();
        self.free_behind_sums.clear();
        self.visit(id);
        self.line(format!("b{}:;", id.index()));
        self.open("{");
        if let Some(count) = self.frame.count(number) {
            self.line(count);
        }
        self.begin_block(id);
        for (at, op) in block.ops.iter().enumerate() {
            self.is_at(at, &op.loc);
            let what = || match &op.kind {
                OpKind::Compute { prim, .. } => prim.to_string(),
                OpKind::Effect(_) => "an effect".to_owned(),
                _ => "a variable".to_owned(),
            };
            if self.waits(block, at) {
                self.wait(block, at);
                continue;
            }
            if self.must_add(block, &op.kind) {
                self.close_sums(block);
            }
            if self.must_close(block, &op.kind) {
                self.close_loop();
            }
            if !self.has_places(&op.kind) {
                return Err(format!("a part of tiles in {id}, line {}", op.loc.line));
            }
            let done = self.operation(block, &op.kind);
            done.ok_or_else(|| format!("{} in {id}, line {}", what(), op.loc.line))?;
            self.give_back(&op.kind);
        }
        self.at = block.ops.len();
        self.close_sums(block);
        self.close_loop();
        self.end(number, block);
        self.close();
        Ok(())
    }

    /// Whether all shared values that an operation reads have a place, but for a matrix that its kernel reads transposed.
    /// Those that only tiles read transposed have none.
    fn has_places(&self, kind: &OpKind) -> bool {
        let mut all = true;
        kind.for_each_operand(|operand| {
            if let Operand::Shared(shared) = operand
                && self.storage.constants[shared].is_none()
            {
                all &= self.is_read_transposed(kind, operand);
            }
        });
        all
    }

    /// How a block ends.
    fn end(&mut self, number: usize, block: &Block<T>) {
        if self.straight.is_some() {
            return self.straight_end(number, block);
        }
        let id = self.blocks[number];
        let inside = |block: &BlockId| self.region.contains(block);
        // A call's second block is where it returns to.
        let targets = block.term.successors();
        match (block.term.condition(), block.term.onward()) {
            (Some(condition), _) => {
                let [yes, no] = targets[..] else { unreachable!("a branch goes to one of two blocks") };
                let condition = self.number(condition);
                if !condition.plain && !inside(&yes) && !inside(&no) {
                    let exit = self.exit(RegionExit { from: id, to: None });
                    return self.lines(self.frame.leave(exit, Some(&condition.text)));
                }
                let holds = if condition.plain { condition.text } else { self.frame.holds(&condition.text) };
                self.open(&format!("if ({holds}) {{"));
                self.goto(number, yes);
                self.close();
                self.goto(number, no);
            }
            (None, Some(to)) => self.goto(number, to),
            (None, None) => {
                let exit = self.exit(RegionExit { from: id, to: None });
                self.lines(self.frame.leave(exit, None));
            }
        }
    }

    pub(super) fn goto(&mut self, from: usize, to: BlockId) {
        if self.is_elsewhere(self.blocks[from], to) {
            return self.wait_at(&to.index().to_string());
        }
        match self.blocks.iter().position(|block| *block == to && self.region.contains(block)) {
            Some(position) => {
                if position <= from {
                    self.line(self.frame.stop());
                }
                self.line(format!("goto {};", self.label(Some(self.blocks[from]), to)));
            }
            None => {
                let exit = self.exit(RegionExit { from: self.blocks[from], to: Some(to) });
                self.lines(self.frame.leave(exit, None));
            }
        }
    }

    pub(super) fn exit(&mut self, exit: RegionExit) -> usize {
        self.exits.push(exit);
        self.exits.len() - 1
    }

    /// What a variable holds.
    pub(super) fn load(&mut self, dst: ValueId, var: VarId) {
        let known = match self.variables[&var].clone() {
            Variable::Number { name, plain, dtype, .. } => {
                let loaded = if plain { Number::plain(name, dtype) } else { Number::group(name, dtype) };
                Known::Number(self.named(loaded))
            }
            Variable::Array(view, _) => Known::Array(view),
        };
        self.know(dst, known);
    }

    /// A variable holds something from now on. `None` where an array cannot be copied.
    pub(super) fn store(&mut self, var: VarId, value: Operand) -> Option<()> {
        match self.variables[&var].clone() {
            Variable::Number { name, plain, .. } => {
                let number = self.number(value);
                match (plain, number.plain) {
                    (true, true) => self.line(format!("{name} = {};", number.text)),
                    // Computed of reals, which are groups of equal numbers.
                    (true, false) => {
                        let plain = self.made_plain(&number);
                        self.line(format!("{name} = {plain};"));
                    }
                    (false, _) => self.line(format!("{name} = {};", number.in_lanes())),
                }
            }
            Variable::Array(to, _) => {
                let from = self.view(value)?;
                if from.place == to.place && from.first == to.first {
                    return Some(());
                }
                let from = if from.place == to.place { self.copied(&from)? } else { from };
                self.spare(&to, None)?;
                self.copy(&to, &from);
            }
        }
        Some(())
    }

    /// Before a place changes: what is read of it later, other than by `value`, is copied.
    pub(super) fn spare(&mut self, place: &View, value: Option<ValueId>) -> Option<()> {
        let read: Vec<ValueId> = (self.known.iter())
            .filter(|(id, known)| {
                let there = matches!(known, Some(Known::Array(view)) if view.place == place.place);
                there && self.updates.last_read[*id] > self.at && Some(*id) != value
            })
            .map(|(id, _)| id)
            .collect();
        for id in read {
            let Some(Known::Array(view)) = self.known[id].clone() else { unreachable!("it was looked at") };
            let copied = self.copied(&view)?;
            self.known[id] = Some(Known::Array(copied));
        }
        Some(())
    }

    /// The same elements in a new array.
    pub(super) fn copied(&mut self, view: &View) -> Option<View> {
        let to = self.array(view.elements, view.dtype, self.is_plain(view))?;
        self.copy(&to, view);
        Some(to)
    }

    /// Sets all elements of a view to those of another one.
    pub(super) fn copy(&mut self, to: &View, from: &View) {
        self.each(to.elements, |w, e| {
            let element = w.element(from, e);
            w.set(to, e, &element);
        });
    }

    /// Whether elements are plain ints or bools.
    pub(super) fn is_plain(&self, view: &View) -> bool {
        match &view.place {
            Place::Slot(_) => false,
            Place::Constant(_) => view.dtype != DType::Real,
            Place::Local { plain, .. } => *plain,
            Place::One(number) => number.plain,
        }
    }

    /// Whether what is known of an index is a plain int.
    pub(super) fn is_plain_index(&self, known: &Known) -> bool {
        match known {
            Known::Number(number) => number.plain,
            Known::Array(view) => self.is_plain(view),
        }
    }

    /// The address of a shared value; none of bools of a table, which is one of ints.
    pub(super) fn constant(&mut self, constant: ConstantId, dtype: DType) -> Option<String> {
        if self.tables.contains_key(&constant) {
            return (dtype != DType::Bool).then(|| table(constant));
        }
        self.signature.constants.insert(constant);
        Some(self.frame.constant(constant))
    }

    /// An element of a view: the one at which a loop is, or the first.
    pub(super) fn element(&mut self, view: &View, e: Option<&str>) -> Number {
        let (at, dtype) = (view.at(e), view.dtype);
        match &view.place {
            Place::Slot(slot) => {
                self.signature.slots.insert(*slot);
                Number::group(self.frame.load(Stored::Slot(*slot), &at, dtype), dtype)
            }
            Place::Constant(constant) if self.tables.contains_key(constant) => {
                let element = format!("{}[{at}]", table(*constant));
                match dtype {
                    DType::Real => Number::group(format!("r_splat({element})"), dtype),
                    _ => Number::plain(element, dtype),
                }
            }
            Place::Constant(constant) => {
                self.signature.constants.insert(*constant);
                match dtype {
                    DType::Real => Number::group(self.frame.load(Stored::Constant(*constant), &at, dtype), dtype),
                    _ => Number::plain(format!("{}[{at}]", self.frame.constant(*constant)), dtype),
                }
            }
            Place::Local { name, plain: true } => Number::plain(format!("{name}[{at}]"), dtype),
            Place::Local { name, plain: false } => Number::group(format!("{name}[{at}]"), dtype),
            Place::One(number) => number.clone(),
        }
    }

    /// Sets an element of a view.
    pub(super) fn set(&mut self, view: &View, e: Option<&str>, element: &Number) {
        let at = view.at(e);
        let line = match &view.place {
            Place::Slot(slot) => {
                self.signature.slots.insert(*slot);
                self.frame.store_at(*slot, &at, view.dtype, &element.in_lanes())
            }
            Place::Local { name, plain: true } => format!("{name}[{at}] = {};", self.made_plain(element)),
            Place::Local { name, plain: false } => format!("{name}[{at}] = {};", element.in_lanes()),
            Place::Constant(_) | Place::One(_) => unreachable!("nobody writes there"),
        };
        self.line(line);
    }

    /// The arrays that an operation has read for the last time serve others.
    fn give_back(&mut self, kind: &OpKind) {
        if self.open_loop.is_none() {
            self.free.append(&mut self.free_behind_loop);
        }
        let mut read: SmallVec<[ValueId; 4]> = SmallVec::new();
        kind.for_each_operand(|operand| read.extend(operand.var()));
        for value in read.into_iter().filter(|value| self.updates.last_read[*value] == self.at) {
            let Some(Known::Array(View { place: Place::Local { name, .. }, .. })) = &self.known[value] else {
                continue;
            };
            let same = |known: &Option<Known>| matches!(known, Some(Known::Array(View { place: Place::Local { name: other, .. }, .. })) if other == name);
            let alive = |(id, known): (ValueId, &Option<Known>)| self.updates.last_read[id] > self.at && same(known);
            let Some(array) = self.arrays.get(name).filter(|_| !self.known.iter().any(alive)).cloned() else {
                continue;
            };
            let to = if self.is_added_up(&array.place) {
                &mut self.free_behind_sums
            } else if self.open_loop.is_some() {
                &mut self.free_behind_loop
            } else {
                &mut self.free
            };
            if !to.contains(&array) {
                to.push(array);
            }
        }
    }

    /// An array for a value: the one of the variable that it is stored in, where nobody reads what that holds any more; else as
    /// [`Writer::array`]. The operation at hand reads these, and must not overtake itself: of that variable it may read the
    /// element that it sets.
    pub(super) fn array_of(
        &mut self,
        dst: ValueId,
        (elements, dtype, plain): (usize, DType, bool),
        read: &[View],
    ) -> Option<View> {
        let variable = self.updates.stored_in[dst].and_then(|var| self.variables.get(&var));
        if let Some(Variable::Array(view, _)) = variable
            && matches!(view.place, Place::Local { plain: is_plain, .. } if is_plain == plain)
            && view.elements == elements
            && !self.is_read_later(view)
            && !self.is_added_up(&view.place)
            && read.iter().all(|read| read.place != view.place || read == view)
        {
            let view = view.clone();
            if self.open_loop.as_ref().is_some_and(|open| open.reads(&view)) {
                self.close_loop();
            }
            return Some(view);
        }
        self.array(elements, dtype, plain)
    }

    /// Whether something of a place is read after the operation at hand.
    fn is_read_later(&self, of: &View) -> bool {
        let later = |(id, known): (ValueId, &Option<Known>)| {
            matches!(known, Some(Known::Array(view)) if view.place == of.place) && self.updates.last_read[id] > self.at
        };
        self.known.iter().any(later)
    }

    /// A new array of the block, or one that nobody reads any more; none where the function would hold too much.
    pub(super) fn array(&mut self, elements: usize, dtype: DType, plain: bool) -> Option<View> {
        let serves = |view: &View| {
            let Place::Local { plain: is_plain, .. } = &view.place else { return false };
            (view.elements, view.dtype, *is_plain) == (elements, dtype, plain)
        };
        if let Some(at) = self.free.iter().position(serves) {
            return Some(self.free.swap_remove(at));
        }
        let name = self.fresh("a");
        let declared = self.declared(&name, (elements, dtype, plain))?;
        self.line(declared);
        let array = View::whole(Place::Local { name: name.clone(), plain }, elements, dtype);
        self.arrays.insert(name, array.clone());
        Some(array)
    }

    /// The number under a new name, which stays what it is.
    pub(super) fn named(&mut self, number: Number) -> Number {
        let name = self.fresh("t");
        let ty = if number.plain { "int64_t" } else { group_type(number.dtype) };
        self.line(format!("const {ty} {name} = {};", number.text));
        Number { text: name, ..number }
    }

    /// An int or bool that is the same in all active lanes, as a plain one.
    pub(super) fn made_plain(&self, number: &Number) -> String {
        match number.dtype {
            _ if number.plain => number.text.clone(),
            DType::Bool => self.frame.holds(&number.text),
            _ => self.frame.first(&number.text),
        }
    }

    /// The operation of this number is at hand, which stands here.
    pub(super) fn is_at(&mut self, at: usize, loc: &Loc) {
        (self.at, self.loc) = (at, loc.clone());
    }

    /// The number of the operation at hand in its block.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn know(&mut self, value: ValueId, known: Known) {
        self.known[value] = Some(known);
    }

    /// What an operand is.
    pub(super) fn known(&mut self, operand: Operand) -> Known {
        match operand {
            Operand::Var(value) => self.known[value].clone().expect("it was computed before"),
            Operand::Const(Scalar::Int(i)) if i == i64::MIN => Known::Number(Number::plain("INT64_MIN", DType::Int)),
            Operand::Const(Scalar::Int(i)) => Known::Number(Number::plain(format!("{i}LL"), DType::Int)),
            Operand::Const(Scalar::Bool(b)) => Known::Number(Number::plain(u8::from(b).to_string(), DType::Bool)),
            Operand::Const(scalar) => Known::Number(Number::group(literal(scalar), DType::Real)),
            Operand::Shared(shared) => {
                let constant = self.storage.constants[shared].expect("what a step reads is a constant");
                let Shared { ty, source, .. } = &self.storage.globals.shared[shared];
                let view = View::whole(Place::Constant(constant), ty.elements(), ty.dtype);
                let known = match source {
                    SharedSource::Constant(array) if (1..=MOST_IN_TABLE).contains(&view.elements) => elements(array),
                    _ => None,
                };
                match (view.elements, known) {
                    (1, Some(elements)) => self.known(Operand::Const(elements[0])),
                    (1, None) => Known::Number(self.element(&view, None)),
                    (_, known) => {
                        if let Some(elements) = known {
                            let declared = || declared_table(constant, ty.dtype, &elements);
                            self.tables.entry(constant).or_insert_with(declared);
                        }
                        Known::Array(view)
                    }
                }
            }
        }
    }

    /// The number that an operand is.
    pub(super) fn number(&mut self, operand: Operand) -> Number {
        match self.known(operand) {
            Known::Number(number) => number,
            Known::Array(view) => self.element(&view, None),
        }
    }

    /// The elements of an operand; none where there are none.
    pub(super) fn view(&mut self, operand: Operand) -> Option<View> {
        match self.known(operand) {
            Known::Array(view) => (view.elements > 0 || self.frame.has_all()).then_some(view),
            Known::Number(number) => {
                let dtype = number.dtype;
                Some(View::whole(Place::One(number), 1, dtype))
            }
        }
    }

    /// The number of a place where lanes may trap.
    pub(super) fn site(&mut self, kind: TrapKind, text: String, extent: Option<(usize, usize)>) -> usize {
        self.sites.push(Site { loc: self.loc.clone(), kind, text, draws: 0, extent });
        self.sites.len() - 1
    }

    /// Takes lanes out where something failed.
    pub(super) fn check(&mut self, bad: &str, kind: TrapKind) {
        let site = self.site(kind, String::new(), None);
        self.line(self.frame.trap_some(bad, site));
    }

    /// Takes all lanes out where a plain condition holds.
    pub(super) fn check_plain(&mut self, failed: &str, kind: TrapKind, text: String) {
        let site = self.site(kind, text, None);
        self.line(self.frame.trap_all(failed, site, None));
    }

    pub(super) fn fresh(&mut self, letter: &str) -> String {
        self.names += 1;
        format!("{letter}{}", self.names)
    }

    /// A line of text.
    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.body, "{:indent$}{}", "", text.as_ref(), indent = self.indent);
    }
    pub(super) fn lines(&mut self, lines: Vec<String>) {
        lines.into_iter().for_each(|line| self.line(line));
    }
    /// A line that opens a block.
    pub(super) fn open(&mut self, text: &str) {
        self.line(text);
        self.indent += 4;
    }
    /// The end of a block.
    pub(super) fn close(&mut self) {
        self.indent -= 4;
        self.line("}");
    }
}

/// The name of a shared value that is a table of the text.
fn table(constant: ConstantId) -> String {
    format!("table{}", constant.index())
}

/// The elements of a constant; none where not all are numbers, of which a text knows no bits.
fn elements(array: &Array) -> Option<Vec<Scalar>> {
    let elements = (0..array.ty().elements()).map(|at| array.get(at));
    elements.map(|element| (!matches!(element, Scalar::Real(x) if x.is_nan())).then_some(element)).collect()
}

/// The declaration of a table.
fn declared_table(constant: ConstantId, dtype: DType, elements: &[Scalar]) -> String {
    let ty = if dtype == DType::Real { "real" } else { "int64_t" };
    let elements: Vec<String> = elements.iter().map(|element| plain_literal(*element)).collect();
    format!("static const {ty} {}[{}] = {{{}}};", table(constant), elements.len(), elements.join(", "))
}

fn zero(dtype: DType) -> String {
    literal(match dtype {
        DType::Bool => Scalar::Bool(false),
        DType::Int => Scalar::Int(0),
        DType::Real => Scalar::Real(0.0),
    })
}
