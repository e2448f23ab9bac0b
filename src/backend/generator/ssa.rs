//! The operations of a part of a block for a group of lanes: what is a view of another value (a copy, a slice, an element
//! at a known place) takes none at all, and values are stored where something else reads them.

use indexmap::IndexMap;

use crate::backend::generator::scope::Scope;
use crate::backend::generator::takes::place;
use crate::base::IdVec;
use crate::plan::{ConstantId, Origin, SlotId, StackId};
use crate::prim::{Class, Contraction, Draw, Movement, Prim, Reduction, computed_elementwise};
use crate::types::{DType, Scalar};
use crate::unit::{OpKind, Operand, SideEffect, ValueId};

/// Where elements stand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::backend) enum Base {
    /// In a lane buffer, as the segment found it.
    Slot(SlotId),
    /// In a buffer of one value for all lanes.
    Uniform(SlotId),
    /// In a shared value.
    Constant(ConstantId),
    /// In the program text.
    Literal(Scalar),
    /// In a local variable of the C function.
    Local(LocalId),
}

crate::define_id!(
    /// A local variable.
    (pub(in crate::backend)) LocalId, "v"
);
crate::define_id!(
    /// An operation.
    (pub(super)) OpId, "o"
);

/// Some elements: element `e` is element `offset + e` of the base, or element `offset` for each `e` where it is spread.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::backend) struct Value {
    pub(in crate::backend) base: Base,
    pub(in crate::backend) offset: usize,
    pub(in crate::backend) spread: bool,
    pub(in crate::backend) dtype: DType,
}

/// A local variable: for each lane of a group `elements` values.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pub(super) dtype: DType,
    pub(super) elements: usize,
    /// The operations that make it: one, or one for each part.
    pub(super) made_by: Vec<OpId>,
}

/// The arithmetic of a sum of products.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::backend) enum Products {
    /// Fused multiply-adds.
    Ordinary,
    /// Those of the chain rule, in which a zero wins.
    ChainRule,
}

/// How elements become one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::backend) enum Fold {
    /// The elements of an array.
    All(Reduction),
    /// The sum of the products of the elements of two arrays.
    Products(Products),
}

impl Fold {
    /// How a primitive adds up reals, as one chain within each block; none for one that does not.
    pub(super) fn of_reals(prim: Prim, dtype: DType) -> Option<Self> {
        match prim.class() {
            Class::Reduction(Reduction::Sum) if dtype == DType::Real => Some(Fold::All(Reduction::Sum)),
            Class::Contraction(Contraction::Dot) => Some(Fold::Products(Products::Ordinary)),
            Class::Contraction(Contraction::ChainDot) => Some(Fold::Products(Products::ChainRule)),
            _ => None,
        }
    }
    /// Of a sum of logarithms the C name: it has two variables, and an end.
    pub(super) fn log_sum(self) -> Option<&'static str> {
        match self {
            Fold::All(reduction @ (Reduction::SumLog | Reduction::SumLog1pExp)) => Some(Prim::from(reduction).row().c),
            _ => None,
        }
    }
}

/// What an operation does for each of its `turns`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::backend) enum Kind {
    /// An elementwise primitive; [`Prim::Copy`] for parts of arrays.
    Map(Prim),
    /// All elements become one.
    Reduce(Fold),
    /// Rows of a shared matrix times a vector of the lanes: element `i` of the result adds up `matrix[i * row + k * column]`
    /// times element `k`, for `inner` elements. The operands are the matrix and the vector.
    Product { products: Products, row: usize, column: usize, inner: usize },
    /// A random draw for each element; the first has this number, counted from the draws that the lane has made.
    Draw { draw: Draw, first: usize },
    /// The last value of a stack is taken off.
    Pop(StackId),
    /// The operand goes on a stack.
    Spill(StackId),
    /// The operand goes to a lane buffer, in the active lanes.
    Store(SlotId),
    /// The operand tells where the active lanes go.
    Decide,
    /// The lanes trap in which the operand does not hold.
    Assert,
}

/// An operation.
#[derive(Clone, Debug)]
pub(in crate::backend) struct Op {
    pub(in crate::backend) kind: Kind,
    /// Elements that it goes through.
    pub(in crate::backend) turns: usize,
    pub(in crate::backend) args: Vec<Value>,
    /// The local variable that it makes, and the element at which its own begin.
    pub(in crate::backend) out: Option<(LocalId, usize)>,
    /// The operation of the block of the units that it belongs to: where traps say they are.
    pub(in crate::backend) origin: usize,
}

/// A part of a block in the making.
pub(in crate::backend) struct Ssa<'a> {
    pub(super) scope: &'a Scope<'a>,
    /// The step before which it begins.
    first: usize,
    pub(super) locals: IdVec<LocalId, Local>,
    pub(super) ops: IdVec<OpId, Op>,
    /// The values that it has made.
    known: IdVec<ValueId, Option<Value>>,
    /// What the slots hold that were written.
    held: IndexMap<SlotId, Operand>,
    /// Draws of a lane so far; nothing where the random stream is not looked at.
    pub(super) draws: Option<usize>,
    /// The operation of the block that is added.
    origin: usize,
}

impl<'a> Ssa<'a> {
    /// Begins before a step.
    pub(super) fn new(scope: &'a Scope<'a>, first: usize) -> Self {
        let known = IdVec::filled(None, scope.values.len());
        let (locals, ops, held) = (IdVec::new(), IdVec::new(), IndexMap::new());
        Self { scope, first, locals, ops, known, held, draws: None, origin: 0 }
    }

    /// Adds what a step does, all of which a function takes.
    pub(super) fn add(&mut self, step: usize) {
        let scope = self.scope;
        match &scope.homes.steps[step] {
            Origin::Copy(operand) => {
                let slot = operand.var().and_then(|value| scope.homes.copied_to(value, step));
                slot.into_iter().for_each(|slot| self.hold(slot, *operand));
            }
            Origin::Ops(ops) => {
                for at in ops {
                    self.origin = *at;
                    self.op(&scope.ops[*at].kind);
                    if let Some(value) = scope.ops[*at].kind.dst() {
                        let home = scope.homes.values[value].iter().find(|home| home.step == step);
                        home.into_iter().for_each(|home| self.hold(home.slot, Operand::Var(value)));
                    }
                }
            }
        }
    }

    fn op(&mut self, kind: &OpKind) {
        match kind {
            OpKind::Load { .. } => {}
            OpKind::Compute { dst, prim, args } => self.known[*dst] = Some(self.result(*dst, *prim, args)),
            OpKind::Store { var, value } => self.hold(self.scope.storage.home(*var), *value),
            OpKind::Push { stack, value } => {
                let (stack, elements) = (self.scope.storage.stack(*stack), self.scope.elements(*value));
                let value = self.value(*value);
                self.push(Kind::Spill(stack), elements, vec![value], None);
            }
            OpKind::Pop { dst, stack } => {
                let (dtype, elements) = self.extent(*dst);
                let stack = self.scope.storage.stack(*stack);
                self.known[*dst] = Some(self.made(Kind::Pop(stack), dtype, elements, elements, Vec::new()));
            }
            OpKind::Effect(SideEffect::Assert { cond, .. }) => {
                let value = self.value(*cond);
                self.push(Kind::Assert, 1, vec![value], None);
            }
            OpKind::Effect(_) => unreachable!("only operations are added that a function takes"),
        }
    }

    /// A slot holds something from now on.
    fn hold(&mut self, slot: SlotId, operand: Operand) {
        let Value { base, offset, spread, .. } = self.value(operand);
        let whole = offset == 0 && (!spread || self.scope.storage.slots[slot].elements == 1);
        // What was there before need not be written.
        if self.held.contains_key(&slot) || !whole || base != Base::Slot(slot) {
            self.held.insert(slot, operand);
        }
    }

    fn extent(&self, value: ValueId) -> (DType, usize) {
        let ty = &self.scope.values[value].ty;
        (ty.dtype, ty.elements())
    }

    /// The value of an operand.
    pub(super) fn value(&self, operand: Operand) -> Value {
        let scope = self.scope;
        if let Some(value) = operand.var().and_then(|v| self.known[v]) {
            return value;
        }
        let base = match scope.root(operand) {
            Operand::Const(scalar) => Base::Literal(scalar),
            Operand::Shared(shared) => {
                Base::Constant(scope.storage.constants[shared].expect("what a step reads is a constant"))
            }
            Operand::Var(value) => {
                if let Some(value) = self.known[value] {
                    return value;
                }
                let slot = scope.home(value, self.first).expect("what steps make has a slot");
                if scope.values[value].uniform { Base::Uniform(slot) } else { Base::Slot(slot) }
            }
        };
        Value { base, offset: 0, spread: scope.elements(operand) == 1, dtype: scope.ty(operand).dtype }
    }

    /// What the slots that were written hold in the end.
    pub(super) fn written(&self) -> Vec<(SlotId, Operand)> {
        self.held.iter().map(|(slot, operand)| (*slot, *operand)).collect()
    }

    /// A value that the slot gets in the active lanes.
    pub(super) fn store(&mut self, slot: SlotId, value: Value) {
        let elements = self.scope.storage.slots[slot].elements;
        let whole = |l: LocalId, s: &Self| s.locals[l].elements == elements && value.offset == 0 && !value.spread;
        // Stores read local variables only, so that none of them changes what another one reads.
        let value = match value.base {
            Base::Local(l) if elements == 1 || whole(l, self) => value,
            _ => self.made(Kind::Map(Prim::Copy), value.dtype, elements, elements, vec![value]),
        };
        self.push(Kind::Store(slot), elements, vec![value], None);
    }

    /// The value tells where the active lanes go.
    pub(super) fn decide(&mut self, value: Value) {
        self.push(Kind::Decide, 1, vec![value], None);
    }

    fn push(&mut self, kind: Kind, turns: usize, args: Vec<Value>, out: Option<(LocalId, usize)>) -> OpId {
        self.ops.push(Op { kind, turns, args, out, origin: self.origin })
    }

    /// The result of one operation.
    fn made(&mut self, kind: Kind, dtype: DType, elements: usize, turns: usize, args: Vec<Value>) -> Value {
        let local = self.locals.next_id();
        let op = self.push(kind, turns, args, Some((local, 0)));
        self.locals.push(Local { dtype, elements, made_by: vec![op] });
        Value { base: Base::Local(local), offset: 0, spread: elements == 1, dtype }
    }

    /// An array of parts, one after the other: values with their numbers of elements.
    fn joined(&mut self, dtype: DType, parts: &[(Value, usize)]) -> Value {
        let elements = parts.iter().map(|(_, n)| n).sum();
        let local = self.locals.push(Local { dtype, elements, made_by: Vec::new() });
        let mut at = 0;
        for (value, n) in parts.iter().filter(|(_, n)| *n > 0) {
            let op = self.push(Kind::Map(Prim::Copy), *n, vec![*value], Some((local, at)));
            self.locals[local].made_by.push(op);
            at += n;
        }
        Value { base: Base::Local(local), offset: 0, spread: elements == 1, dtype }
    }

    fn result(&mut self, dst: ValueId, prim: Prim, operands: &[Operand]) -> Value {
        let (dtype, n) = self.extent(dst);
        let scope = self.scope;
        let args: Vec<Value> = operands.iter().map(|a| self.value(*a)).collect();
        let view =
            |value: Value, at: usize| Value { offset: value.offset + if value.spread { 0 } else { at }, ..value };
        match prim.class() {
            Class::Identity(_) => args[0],
            computed_elementwise!() => self.made(Kind::Map(prim), dtype, n, n, args),
            Class::Movement(movement) => match movement {
                Movement::Reshape => args[0],
                Movement::Fill => Value { spread: true, ..args[0] },
                Movement::Index | Movement::Slice => {
                    let at = place(prim, dst, operands, scope).expect("a function takes what is in range only");
                    let value = view(args[0], at);
                    Value { spread: value.spread || n == 1, ..value }
                }
                Movement::MakeArray | Movement::Concat => {
                    let parts: Vec<(Value, usize)> =
                        args.iter().zip(operands).map(|(v, a)| (*v, scope.elements(*a))).collect();
                    self.joined(dtype, &parts)
                }
                Movement::SetIndex | Movement::SetSlice => {
                    let at = place(prim, dst, operands, scope).expect("a function takes what is in range only");
                    let len = scope.elements(operands[1]);
                    let after = view(args[0], at + len);
                    self.joined(dtype, &[(args[0], at), (args[1], len), (after, n - at - len)])
                }
                _ => unreachable!("a function does not take `{prim}`"),
            },
            Class::Contraction(contraction) => {
                let turns = scope.elements(operands[0]);
                match contraction {
                    Contraction::Dot => {
                        self.made(Kind::Reduce(Fold::Products(Products::Ordinary)), dtype, 1, turns, args)
                    }
                    Contraction::ChainDot => {
                        self.made(Kind::Reduce(Fold::Products(Products::ChainRule)), dtype, 1, turns, args)
                    }
                    Contraction::MatMul => self.product(Products::Ordinary, dst, operands, args),
                    Contraction::ChainMatMul => self.product(Products::ChainRule, dst, operands, args),
                    Contraction::BatchMatMul | Contraction::ChainBatchMatMul => {
                        unreachable!("a function does not take `{prim}`")
                    }
                }
            }
            Class::Triangular(_) => unreachable!("a function does not take `{prim}`"),
            Class::Reduction(reduction) => {
                let turns = scope.elements(operands[0]);
                self.made(Kind::Reduce(Fold::All(reduction)), dtype, 1, turns, args)
            }
            Class::Draw(draw) => {
                let first = self.draws.unwrap_or(0);
                self.draws = Some(first + prim.draws(n));
                self.made(Kind::Draw { draw, first }, dtype, n, n, Vec::new())
            }
        }
    }

    fn product(&mut self, products: Products, dst: ValueId, operands: &[Operand], args: Vec<Value>) -> Value {
        let (dtype, n) = self.extent(dst);
        let left = self.scope.is_common(operands[0]);
        let matrix = self.scope.ty(operands[usize::from(!left)]);
        let (rows, columns) = (matrix.shape[0], matrix.shape[1]);
        let mut args = if left { args } else { vec![args[1], args[0]] };
        if args[1].spread {
            // A product takes its vector element by element.
            let inner = if left { columns } else { rows };
            args[1] = self.made(Kind::Map(Prim::Copy), dtype, inner, inner, vec![args[1]]);
        }
        let kind = match left {
            true => Kind::Product { products, row: columns, column: 1, inner: columns },
            false => Kind::Product { products, row: 1, column: columns, inner: rows },
        };
        self.made(kind, dtype, n, n, args)
    }
}
