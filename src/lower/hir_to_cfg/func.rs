//! One function while it is made: its variables and blocks, the environment, and the emission of instructions.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use indexmap::IndexMap;

use super::derivative::Facts;
use super::instance::Specialiser;
use super::names::Names;
use super::ragged::Axes;
use super::signature::layout_at;
use super::value::{Dims, Layout, Value};
use crate::base::{ArrayName, Diagnostic, Id as _, IdVec, LazyOp, Loc, Span};
use crate::cfg::build::Builder;
use crate::cfg::trim::{drop_unreachable_blocks, drop_unused_variables};
use crate::cfg::{Block, BlockId, Func, Inst, InstKind, Operand, Terminator, VarId};
use crate::hir::{self, DimId, FnId, LocalId, Ty};
use crate::prim::Prim;
use crate::types::{Scalar, Shape, Type};

/// What a step of the lowering gives, or the diagnostic that stops its function.
pub(super) type Lowered<T> = Result<T, Box<Diagnostic>>;

/// Who may change a variable, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    /// The result of an expression, read once, by whatever the expression stands in.
    Temporary,
    /// Bound to a local that is not assigned; set again only when that is bound again.
    Bound,
    /// Of a local that is assigned.
    Mutable,
}

/// A block that is being made; while it is the current one its instructions are those of the builder.
struct Draft {
    insts: Vec<Inst>,
    term: Option<Terminator>,
    loc: Loc,
}

/// Where `break` and `continue` go.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoopTargets {
    pub(super) exit: BlockId,
    pub(super) next: BlockId,
}

/// The lowering of one function.
pub(super) struct Lowering<'s, 'a> {
    pub(super) spec: &'s mut Specialiser<'a>,
    /// The function of the source that the code stands in.
    pub(super) home: &'a hir::Fn,
    pub(super) home_id: FnId,
    pub(super) dims: Dims,
    /// The lengths of its bounded dimensions.
    pub(super) lengths: BTreeMap<DimId, Operand>,
    /// Loop variables that stay below the length of a bounded dimension.
    pub(super) ranges: HashMap<LocalId, DimId>,
    /// What `inside` made in a block for a shape and the lengths of its axes.
    pub(super) masks: HashMap<(BlockId, Shape, Axes), Operand>,
    /// What is bound so far.
    pub(super) env: IndexMap<LocalId, Value>,
    pub(super) loops: Vec<LoopTargets>,
    pub(super) results: Vec<Type>,
    /// What the function does that a derivative must know.
    pub(super) facts: Facts,
    /// How many `stop_gradient` stand around.
    pub(super) stopped: usize,
    /// The comprehension that the function is the loop of.
    pub(super) looped: Option<&'a hir::Expr>,
    params: Vec<VarId>,
    /// All variables, and the instructions of the current block.
    code: Builder<()>,
    roles: IdVec<VarId, Role>,
    blocks: IdVec<BlockId, Draft>,
    /// Blocks in the order of the source.
    order: Vec<BlockId>,
    current: BlockId,
    span: Span,
    /// Where the code of the function begins.
    begin: Span,
    /// The array that is indexed here, for the messages of traps.
    pub(super) array: Option<Arc<ArrayName>>,
    /// Variables that would be shared but for an index out of range, with the place of the index.
    out_of_range: HashMap<VarId, Span>,
}

impl<'s, 'a> Lowering<'s, 'a> {
    /// A function that is made of code of another one, which begins at `begin`: of its body, or of a closure or comprehension in it.
    pub(super) fn new(spec: &'s mut Specialiser<'a>, home_id: FnId, begin: Span, dims: &Dims) -> Self {
        let program = spec.program;
        let home = program.function(home_id);
        let loc = spec.sources.loc(home.name.as_str(), begin);
        let mut lowering = Self {
            spec,
            home,
            home_id,
            dims: dims.clone(),
            lengths: BTreeMap::new(),
            ranges: HashMap::new(),
            masks: HashMap::new(),
            env: IndexMap::new(),
            loops: Vec::new(),
            results: Vec::new(),
            facts: Facts::default(),
            stopped: 0,
            looped: None,
            params: Vec::new(),
            code: Builder::new((), IdVec::new(), loc),
            roles: IdVec::new(),
            blocks: IdVec::new(),
            order: Vec::new(),
            current: BlockId::new(0),
            span: begin,
            begin,
            array: None,
            out_of_range: HashMap::new(),
        };
        let entry = lowering.new_block();
        lowering.start(entry);
        lowering
    }

    /// Makes the parameters for the lengths of bounded dimensions.
    pub(super) fn enter_lengths(&mut self) {
        for id in self.dims.bounded.clone() {
            let length = self.parameter(&self.home.dims[id], Type::int());
            self.lengths.insert(id, Operand::Var(length));
        }
    }

    // Locations

    /// Moves to a place in the source; returns the place to go back to.
    pub(super) fn enter(&mut self, span: Span) -> Span {
        let before = self.span;
        if span != before {
            self.span = span;
            self.code.loc = self.spec.sources.loc(self.code.loc.function.clone(), span);
        }
        before
    }
    pub(super) fn span(&self) -> Span {
        self.span
    }
    pub(super) fn loc(&self) -> Loc {
        self.code.loc.clone()
    }

    // Types

    /// The layout of a type here.
    pub(super) fn layout(&self, ty: &Ty) -> Lowered<Layout> {
        layout_at(self.spec.program, ty, &self.home.dims, &self.dims, self.span)
    }
    /// The type of an operand.
    pub(super) fn type_of(&self, operand: Operand) -> Type {
        operand.ty(|v| self.code.vars[v].ty.clone(), |s| self.spec.shared.ty(s).clone())
    }

    // Variables

    /// A new variable for the result of an expression.
    pub(super) fn temporary(&mut self, ty: Type) -> VarId {
        self.var("", ty, Role::Temporary)
    }
    /// A new variable for a local that is not assigned.
    pub(super) fn bound(&mut self, name: &str, ty: Type) -> VarId {
        self.var(name, ty, Role::Bound)
    }
    /// A new parameter of the function.
    pub(super) fn parameter(&mut self, name: &str, ty: Type) -> VarId {
        let var = self.bound(name, ty);
        self.params.push(var);
        var
    }
    fn var(&mut self, name: &str, ty: Type, role: Role) -> VarId {
        self.roles.push(role);
        self.code.named(name, ty)
    }
    /// Temporaries for all leaves of a layout, and the value that they are.
    pub(super) fn temporaries(&mut self, layout: &Layout) -> (Vec<VarId>, Value) {
        let mut vars = Vec::new();
        let value = self.fill_layout(layout, &mut vars);
        (vars, value)
    }
    fn fill_layout(&mut self, layout: &Layout, vars: &mut Vec<VarId>) -> Value {
        match layout {
            Layout::Leaf(ty) => {
                let var = self.temporary(ty.clone());
                vars.push(var);
                Value::Leaf(Operand::Var(var))
            }
            Layout::Fields(fields) => {
                let fields = fields.iter().map(|(_, l)| self.fill_layout(l, vars));
                Value::Fields(fields.collect())
            }
            Layout::Function | Layout::Never => Value::Never,
        }
    }
    /// Whether an operand is a variable that an assignment may change.
    pub(super) fn is_mutable(&self, operand: Operand) -> bool {
        operand.var().is_some_and(|v| self.roles[v] == Role::Mutable)
    }
    /// The operand as it is now, whatever is assigned later.
    pub(super) fn keep(&mut self, operand: Operand) -> Operand {
        if !self.is_mutable(operand) {
            return operand;
        }
        let copy = self.temporary(self.type_of(operand));
        self.copy(copy, operand);
        Operand::Var(copy)
    }
    /// The value as it is now, whatever is assigned later.
    pub(super) fn keep_value(&mut self, value: &Value) -> Value {
        value.map(&mut |operand| self.keep(operand))
    }

    /// Binds a local to a value: assigned locals get variables of their own, others share what the value has.
    pub(super) fn bind(&mut self, local: LocalId, value: &Value) -> Lowered<()> {
        let decl = &self.home.locals[local];
        let value = match value {
            Value::Never | Value::Function(_) => value.clone(),
            _ => {
                let names = self.layout(&decl.ty)?.leaves(&decl.name);
                let mut names = names.iter().map(|(name, _)| name.as_str());
                value.map(&mut |operand| {
                    let name = names.next().unwrap_or(&decl.name);
                    self.bind_leaf(operand, name, decl.mutable)
                })
            }
        };
        self.env.insert(local, value);
        Ok(())
    }
    fn bind_leaf(&mut self, operand: Operand, name: &str, mutable: bool) -> Operand {
        let role = if mutable { Role::Mutable } else { Role::Bound };
        match operand {
            Operand::Var(v) if self.roles[v] == Role::Temporary => {
                self.code.vars[v].name = name.to_owned();
                self.roles[v] = role;
                operand
            }
            Operand::Var(v) if self.roles[v] == Role::Bound && !mutable => operand,
            Operand::Const(_) if !mutable => operand,
            Operand::Shared(id) if !mutable => {
                self.spec.shared.suggest_name(id, name);
                operand
            }
            _ => {
                let var = self.var(name, self.type_of(operand), role);
                self.copy(var, operand);
                Operand::Var(var)
            }
        }
    }

    // Blocks

    /// A block that is not yet anywhere.
    pub(super) fn new_block(&mut self) -> BlockId {
        let loc = self.loc();
        self.blocks.push(Draft { insts: Vec::new(), term: None, loc })
    }
    /// Goes on in a block, which comes next in the program.
    pub(super) fn start(&mut self, block: BlockId) {
        self.order.push(block);
        self.blocks[self.current].insts = std::mem::take(&mut self.code.insts);
        self.go_on(block);
        self.blocks[block].loc = self.loc();
    }
    fn go_on(&mut self, block: BlockId) {
        self.current = block;
        self.code.insts = std::mem::take(&mut self.blocks[block].insts);
    }
    /// A block computes the right operand of this operator.
    pub(super) fn is_right_of(&mut self, block: BlockId, op: LazyOp) {
        self.blocks[block].loc.right_of = Some(op);
    }
    /// Goes on in a block that nothing reaches.
    pub(super) fn start_unreachable(&mut self) {
        let block = self.new_block();
        self.start(block);
    }
    pub(super) fn current(&self) -> BlockId {
        self.current
    }
    /// Ends the current block.
    pub(super) fn terminate(&mut self, term: Terminator) {
        self.terminate_block(self.current, term);
    }
    /// Ends a block.
    pub(super) fn terminate_block(&mut self, block: BlockId, term: Terminator) {
        let term = match term {
            Terminator::Branch(Operand::Const(Scalar::Bool(c)), a, b) => Terminator::Jump(if c { a } else { b }),
            term => term,
        };
        let old = self.blocks[block].term.replace(term);
        debug_assert!(old.is_none(), "a block ends once");
    }
    /// Takes back the block that was started last, and goes on in the one before. Returns its instructions.
    pub(super) fn merge_back(&mut self, before: BlockId) -> Vec<Inst> {
        self.order.pop();
        let insts = std::mem::take(&mut self.code.insts);
        self.go_on(before);
        insts
    }
    /// The instructions of the current block.
    pub(super) fn insts(&mut self) -> &mut Vec<Inst> {
        &mut self.code.insts
    }

    // Instructions

    pub(super) fn push(&mut self, kind: InstKind) {
        self.note(&kind);
        if let InstKind::Prim { prim: Prim::Index | Prim::Slice | Prim::SetIndex | Prim::SetSlice, .. } = kind {
            self.code.loc.array.clone_from(&self.array);
        }
        self.code.push(kind);
        self.code.loc.array = None;
    }
    /// `dst = prim args`
    pub(super) fn set(&mut self, dst: VarId, prim: Prim, args: &[Operand]) {
        let args = args.iter().copied().collect();
        self.push(InstKind::Prim { dst, prim, args });
    }
    /// The result of a primitive: an instruction, or where every operand is the same for all lanes, a shared value.
    pub(super) fn prim(&mut self, prim: Prim, args: &[Operand], ty: &Type) -> Operand {
        let (prim, args) = match reduce_strength(prim, args) {
            Reduced::Itself => return args[0],
            Reduced::To(prim, args) => (prim, args),
        };
        if let Some(shared) = self.spec.shared.compute(prim, &args, ty) {
            return shared;
        }
        let dst = self.temporary(ty.clone());
        if let Some(span) = self.why_not_shared(prim, &args) {
            self.out_of_range.insert(dst, span);
        }
        self.set(dst, prim, &args);
        Operand::Var(dst)
    }
    /// The index out of range that keeps a primitive from being shared, if that is what does.
    fn why_not_shared(&self, prim: Prim, args: &[Operand]) -> Option<Span> {
        if matches!(prim, Prim::Index | Prim::Slice) && args.iter().all(|a| a.var().is_none()) {
            return Some(self.span);
        }
        args.iter().find_map(|a| self.index_out_of_range(*a))
    }
    /// The index out of range without which the operand would be shared.
    pub(super) fn index_out_of_range(&self, operand: Operand) -> Option<Span> {
        self.out_of_range.get(&operand.var()?).copied()
    }

    /// `dst = operand`. The instruction that made the operand sets `dst` itself where that changes nothing.
    pub(super) fn copy(&mut self, dst: VarId, operand: Operand) {
        if operand == Operand::Var(dst) {
            return;
        }
        match operand.var() {
            Some(v) if self.roles[v] == Role::Temporary && self.code.retarget(v, dst) => {}
            _ => self.set(dst, Prim::Copy, &[operand]),
        }
    }
    /// `dsts = sources`, all sources read before any is set.
    pub(super) fn copy_all(&mut self, dsts: &[VarId], sources: &[Operand]) {
        let mut sources = sources.to_vec();
        for (i, dst) in dsts.iter().enumerate() {
            for source in sources.iter_mut().skip(i + 1) {
                if *source == Operand::Var(*dst) {
                    let kept = self.temporary(self.code.vars[*dst].ty.clone());
                    self.set(kept, Prim::Copy, &[*source]);
                    *source = Operand::Var(kept);
                }
            }
        }
        for (dst, source) in dsts.iter().zip(sources) {
            self.copy(*dst, source);
        }
    }

    /// The finished function: without blocks that are not reached and variables that are not used, names made unique.
    pub(super) fn finish(mut self, name: String) -> Func {
        self.blocks[self.current].insts = std::mem::take(&mut self.code.insts);
        let loc = self.spec.sources.loc(self.code.loc.function.clone(), self.begin);
        let ended: Vec<bool> = self.order.iter().map(|id| self.blocks[*id].term.is_some()).collect();
        let mut func = Func {
            name,
            blocks: self.blocks_in_order(),
            params: self.params,
            results: self.results,
            vars: self.code.vars,
            loc,
        };
        debug_assert!(func.reverse_postorder().iter().all(|b| ended[b.index()]), "a reached block ends");
        drop_unreachable_blocks(&mut func);
        drop_unused_variables(&mut func);
        let mut names = Names::default();
        for var in func.vars.values_mut() {
            var.name = if var.name.is_empty() { names.numbered("t") } else { names.unique(&var.name) };
        }
        func
    }

    /// The blocks that were started, in this order. Those that nothing reaches may have no end yet.
    fn blocks_in_order(&mut self) -> IdVec<BlockId, Block> {
        let mut ids = IdVec::filled(BlockId::new(0), self.blocks.len());
        for (place, id) in self.order.iter().enumerate() {
            ids[*id] = BlockId::new(place);
        }
        let block = |id: &BlockId| {
            let draft = &mut self.blocks[*id];
            let mut term = draft.term.take().unwrap_or(Terminator::Jump(*id));
            term.for_each_successor_mut(|b| *b = ids[*b]);
            Block { insts: std::mem::take(&mut draft.insts), term, loc: draft.loc.clone() }
        };
        self.order.iter().map(block).collect()
    }
}

/// What a cheaper primitive can do.
enum Reduced {
    /// The result is the first operand.
    Itself,
    /// This primitive of these operands.
    To(Prim, crate::cfg::Args),
}

/// Powers by 1 and 2 without a power; a copy is the operand itself.
fn reduce_strength(prim: Prim, args: &[Operand]) -> Reduced {
    let exponent = match (prim, args) {
        (Prim::Pow, [_, Operand::Const(Scalar::Real(r))]) if *r == 1.0 || *r == 2.0 => *r as i64,
        (Prim::IntPow, [_, Operand::Const(Scalar::Int(i))]) => *i,
        (Prim::Copy, _) => 1,
        _ => 0,
    };
    match exponent {
        1 => Reduced::Itself,
        2 => Reduced::To(Prim::Mul, [args[0], args[0]].into_iter().collect()),
        _ => Reduced::To(prim, args.iter().copied().collect()),
    }
}
