//! Where lanes meet: a product with a large shared matrix, and what goes row by row with it, is a block of its own, which
//! the threads of a block of the GPU run together for all of their lanes that wait there. The matrix is read once for all
//! of them, and threads without a lane help.
//!
//! A block that has such a product is parted: what stands before, what is done together, and what follows. What one part
//! makes and another one reads goes through new variables. All that is done together neither traps nor says anything, so
//! nobody sees that it is done at another time.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::backend::generator::{Rows, SharedProduct};
use crate::base::{Id as _, IdVec};
use crate::parts::StorageClass;
use crate::prim::{BLOCK, Class, Traps};
use crate::types::{DType, Type};
use crate::unit::{
    Block, BlockEnd as _, BlockId, Op, OpKind, Operand, Program, Terminator, Unit, Value, ValueId, Var, VarId,
};

/// Multiply-adds in one lane from which on a product is worth a meeting: one of fewer takes about as long as it takes a
/// block to meet.
const FEWEST: usize = 1 << 10;

/// Rows from which on they are taken some at a time, with all that goes row by row.
const FEWEST_ROWS: usize = 2 * BLOCK;

/// A program whose lanes meet.
pub(super) struct Meetings {
    pub(super) program: Program,
    /// The blocks where they do, and what goes row by row there, if anything does.
    pub(super) at: HashMap<BlockId, Option<usize>>,
    /// Blocks that go on with another one, and are not counted.
    pub(super) continued: HashSet<BlockId>,
    /// Of the blocks that parts are, those that they are parts of.
    pub(super) origins: HashMap<BlockId, BlockId>,
}

impl Meetings {
    /// The same program, with blocks where lanes meet, for products by themselves or also `by_rows`; none where they have no
    /// reason to.
    pub(super) fn of(program: &Program, by_rows: bool) -> Option<Self> {
        let mut made = Self::none(program);
        let units = program.body.units.values().filter(|unit| !unit.region);
        let mut left: Vec<BlockId> = units.flat_map(|unit| unit.blocks.iter().copied()).collect();
        while let Some(block) = left.pop() {
            if let Some(together) = Together::in_block(&made.program, block, by_rows) {
                left.extend(made.part(block, together));
            }
        }
        (!made.at.is_empty()).then_some(made)
    }

    /// A program whose lanes do not meet.
    pub(super) fn none(program: &Program) -> Self {
        Self { program: program.clone(), at: HashMap::new(), continued: HashSet::new(), origins: HashMap::new() }
    }

    /// By block that was parted the first where its lanes meet.
    pub(super) fn firsts(&self) -> HashMap<usize, usize> {
        let mut firsts = HashMap::new();
        for block in self.at.keys().map(|block| block.index()) {
            let first = firsts.entry(self.origins[&BlockId::new(block)].index()).or_insert(block);
            *first = block.min(*first);
        }
        firsts
    }

    /// Parts a block; gives the parts that may have other products.
    fn part(&mut self, block: BlockId, together: Together) -> [BlockId; 2] {
        let body = &mut self.program.body;
        let whole = body.blocks[block].clone();
        let (middle, last) = (body.blocks.next_id(), BlockId::new(body.blocks.next_id().index() + 1));
        let mut parting = Parting::new(&whole, &mut body.vars, together.parts);
        let parts = [0, 1, 2].map(|part| parting.ops(part));
        let [before, met, after] =
            parts.map(|(values, ops)| Block { values, ops, term: Terminator::Jump(middle), loc: whole.loc.clone() });
        body.blocks[block] = before;
        body.blocks.push(Block { term: Terminator::Jump(last), ..met });
        body.blocks.push(Block { term: parting.term(), ..after });
        for id in [middle, last] {
            body.units.push(Unit { blocks: vec![id], region: false });
        }
        self.at.insert(middle, together.rows);
        self.continued.insert(last);
        let origin = self.origins.get(&block).copied().unwrap_or(block);
        self.origins.extend([(middle, origin), (last, origin)]);
        [block, last]
    }
}

/// What lanes of a block do together.
struct Together {
    /// The extent of what goes row by row; a product by itself has none.
    rows: Option<usize>,
    /// By operation the part that has it: 0 stands before, 1 is done together, 2 follows.
    parts: Vec<usize>,
}

impl Together {
    /// That of the first product of a block that is worth it.
    fn in_block(program: &Program, id: BlockId, by_rows: bool) -> Option<Self> {
        let block = &program.body.blocks[id];
        if block.values.values().any(|value| value.uniform) {
            return None;
        }
        let is_read = |value: ValueId| {
            let mut read = block.term.condition().and_then(Operand::var) == Some(value);
            let mut see = |operand: Operand| read |= operand.var() == Some(value);
            block.ops.iter().for_each(|op| op.kind.for_each_operand(&mut see));
            read
        };
        let (at, first) = block.ops.iter().enumerate().find_map(|(at, op)| {
            let product = SharedProduct::of(&op.kind, block, &program.globals)?;
            let is_worth = product.rows * product.inner >= FEWEST && op.kind.dst().is_some_and(is_read);
            is_worth.then_some((at, product))
        })?;
        let rows = [first.rows, first.inner].into_iter().find(|extent| by_rows && *extent >= FEWEST_ROWS);
        let together = rows.map(|rows| {
            let mut row_by_row = Rows::new(rows);
            let takes =
                |_, kind: &OpKind, later: &mut HashSet<ValueId>| row_by_row.takes(kind, later, block, &program.globals);
            let parts = parts(block, takes);
            Self { rows: Some(rows), parts }
        });
        // Not a product of rows that must all be known before, nor rows of bools that are kept.
        let together = together.filter(|together| together.parts[at] == 1 && together.keeps_reals(block));
        Some(together.unwrap_or_else(|| Self { rows: None, parts: parts(block, |of, _, _| of == at) }))
    }

    /// Whether all that others read of it is of reals.
    fn keeps_reals(&self, block: &Block<Terminator>) -> bool {
        let ops = || block.ops.iter().zip(&self.parts);
        let made = ops().filter(|(_, part)| **part == 1).filter_map(|(op, _)| op.kind.dst());
        let others: HashSet<ValueId> = made.filter(|value| block.values[*value].ty.dtype != DType::Real).collect();
        let mut all = true;
        for (op, _) in ops().filter(|(_, part)| **part != 1) {
            op.kind.for_each_operand(|operand| all &= operand.var().is_none_or(|value| !others.contains(&value)));
        }
        all
    }
}

/// By operation the part that has it. `takes` says of an operation whether it is done together, which needs nothing that is
/// known after that only, and adds to these. What needs those follows, and what has an effect, or may trap, once such a
/// thing follows: what lanes say, and where they trap, keeps its order.
fn parts(
    block: &Block<Terminator>,
    mut takes: impl FnMut(usize, &OpKind, &mut HashSet<ValueId>) -> bool,
) -> Vec<usize> {
    let (mut together, mut later) = (HashSet::new(), HashSet::new());
    let mut follows = false;
    let part = |(at, op): (usize, &Op)| {
        if takes(at, &op.kind, &mut later) {
            together.extend(op.kind.dst());
            return 1;
        }
        let mut needs = false;
        op.kind.for_each_operand(|operand| {
            needs |= operand.var().is_some_and(|value| together.contains(&value) || later.contains(&value));
        });
        let has_order = match &op.kind {
            OpKind::Load { .. } => false,
            OpKind::Compute { prim, .. } => prim.row().traps != Traps::Never || matches!(prim.class(), Class::Draw(_)),
            OpKind::Store { .. } | OpKind::Push { .. } | OpKind::Pop { .. } | OpKind::Effect(_) => true,
        };
        if !(needs || follows && has_order) {
            return 0;
        }
        follows |= has_order;
        later.extend(op.kind.dst());
        2
    };
    block.ops.iter().enumerate().map(part).collect()
}

/// The parts of a block while they are made.
struct Parting<'a> {
    whole: &'a Block<Terminator>,
    vars: &'a mut IdVec<VarId, Var>,
    /// By operation the part that has it.
    parts: Vec<usize>,
    /// By value the operation that makes it.
    maker: HashMap<ValueId, usize>,
    /// The variables that values go through which one part makes and another one reads.
    crossing: HashMap<ValueId, VarId>,
    /// Of the part at hand, the new numbers of the values.
    values: HashMap<ValueId, ValueId>,
}

impl<'a> Parting<'a> {
    fn new(whole: &'a Block<Terminator>, vars: &'a mut IdVec<VarId, Var>, mut parts: Vec<usize>) -> Self {
        let maker = whole.ops.iter().enumerate().filter_map(|(at, op)| Some((op.kind.dst()?, at))).collect();
        // A variable that is read again later is stored after that.
        for (op, part) in whole.ops.iter().zip(&mut parts) {
            if matches!(op.kind, OpKind::Store { .. }) {
                *part = 2;
            }
        }
        let mut parting = Self { whole, vars, parts, maker, crossing: HashMap::new(), values: HashMap::new() };
        for value in parting.read_elsewhere() {
            let Value { ty, name, .. } = &whole.values[value];
            let var = parting.variable(ty.clone(), name);
            parting.crossing.insert(value, var);
        }
        parting
    }

    /// The values that another part reads than the one that makes them, but for those that are loaded.
    fn read_elsewhere(&self) -> BTreeSet<ValueId> {
        let mut read = BTreeSet::new();
        let mut see = |operand: Operand, part: usize| {
            let Some(value) = operand.var() else { return };
            let maker = self.maker[&value];
            if self.parts[maker] != part && self.loaded(value).is_none() {
                assert!(self.parts[maker] < part, "a part reads what an earlier one has made");
                read.insert(value);
            }
        };
        for (op, part) in self.whole.ops.iter().zip(&self.parts) {
            op.kind.for_each_operand(|operand| see(operand, *part));
        }
        if let Terminator::Branch(condition, ..) = &self.whole.term {
            see(*condition, 2);
        }
        read
    }

    /// The variable that a value can be loaded from in any part: it is stored at the end, and what is popped off a stack is
    /// gone.
    fn loaded(&self, value: ValueId) -> Option<VarId> {
        let OpKind::Load { var, .. } = &self.whole.ops[self.maker[&value]].kind else { return None };
        let pops = |op: &Op| matches!(&op.kind, OpKind::Pop { stack, .. } if stack == var);
        (!self.whole.ops.iter().any(pops)).then_some(*var)
    }

    fn variable(&mut self, ty: Type, name: &str) -> VarId {
        let taken = |name: &str| self.vars.values().any(|var| var.name == name);
        let mut names = (0..).map(|n| format!("{name}.met{n}"));
        let name = names.find(|name| !taken(name)).expect("there are enough names");
        self.vars.push(Var { name, ty, class: StorageClass::Register, uniform: false })
    }

    /// The operations of a part, with the values that they make.
    fn ops(&mut self, part: usize) -> (IdVec<ValueId, Value>, Vec<Op>) {
        let (mut values, mut made) = (IdVec::new(), Vec::new());
        self.values.clear();
        let mut wanted: Vec<ValueId> = Vec::new();
        let mut see = |operand: Operand| {
            if let Some(value) = operand.var().filter(|value| !wanted.contains(value)) {
                wanted.push(value);
            }
        };
        let own = || self.whole.ops.iter().zip(&self.parts).filter(|(_, of)| **of == part).map(|(op, _)| op);
        own().for_each(|op| op.kind.for_each_operand(&mut see));
        if let (2, Terminator::Branch(condition, ..)) = (part, &self.whole.term) {
            see(*condition);
        }
        // What comes from elsewhere is loaded first.
        for value in wanted {
            let at = self.maker[&value];
            let var = match self.loaded(value) {
                Some(var) => var,
                None if self.parts[at] != part => self.crossing[&value],
                None => continue,
            };
            let dst = values.push(self.whole.values[value].clone());
            self.values.insert(value, dst);
            made.push(Op { kind: OpKind::Load { dst, var }, loc: self.whole.ops[at].loc.clone() });
        }
        let is_loaded = |op: &Op| op.kind.dst().is_some_and(|value| self.loaded(value).is_some());
        for op in own().filter(|op| !is_loaded(op)).cloned().collect::<Vec<_>>() {
            let dst = op.kind.dst().map(|value| {
                let dst = values.push(self.whole.values[value].clone());
                self.values.insert(value, dst);
                (value, dst)
            });
            made.push(Op { kind: self.renamed(op.kind), loc: op.loc.clone() });
            if let Some((value, dst)) = dst
                && let Some(var) = self.crossing.get(&value)
            {
                made.push(Op { kind: OpKind::Store { var: *var, value: Operand::Var(dst) }, loc: op.loc });
            }
        }
        (values, made)
    }

    /// The end of the last part, whose values are at hand.
    fn term(&self) -> Terminator {
        match self.whole.term.clone() {
            Terminator::Branch(condition, yes, no) => Terminator::Branch(self.operand(condition), yes, no),
            term => term,
        }
    }

    fn operand(&self, operand: Operand) -> Operand {
        operand.var().map_or(operand, |value| Operand::Var(self.values[&value]))
    }

    fn renamed(&self, kind: OpKind) -> OpKind {
        match kind {
            OpKind::Load { dst, var } => OpKind::Load { dst: self.values[&dst], var },
            OpKind::Compute { dst, prim, args } => {
                let args = args.iter().map(|arg| self.operand(*arg)).collect();
                OpKind::Compute { dst: self.values[&dst], prim, args }
            }
            OpKind::Store { var, value } => OpKind::Store { var, value: self.operand(value) },
            OpKind::Push { stack, value } => OpKind::Push { stack, value: self.operand(value) },
            OpKind::Pop { dst, stack } => OpKind::Pop { dst: self.values[&dst], stack },
            OpKind::Effect(effect) => {
                let effect = effect.map_reads(|operand| self.operand(*operand));
                OpKind::Effect(effect.map_dst(|dst| self.values[&dst]))
            }
        }
    }
}
