//! The steps of a segment as operations on values, each of which is computed once: what is a view of another value (a
//! copy, a slice, an element at a known place) takes no operation at all.

use indexmap::IndexMap;

use crate::base::IdVec;
use crate::plan::{
    Arg, Compute, Constant, ConstantId, Globals, SideEffect, Slot, SlotId, Source, StackId, Step, StepKind, Write,
};
use crate::prim::{BLOCK, Class, Contraction, Draw, IntArithmetic, Movement, Prim, Reduction, computed_elementwise};
use crate::types::{DType, Scalar, Type};

/// Elements that a value of a segment may have: its values stay in the L1 cache for a group of lanes.
pub(super) const MOST_ELEMENTS: usize = 256;
// Sums and dot products of generated code are one chain: of more than a block it would be another sum than the
// kernels'.
const _: () = assert!(MOST_ELEMENTS <= BLOCK);
/// Elements that a shared matrix of a product may have; larger products are better off as one product over the lanes.
pub(super) const MOST_MATRIX_ELEMENTS: usize = 1 << 14;

/// Where elements stand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Base {
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
    (pub(super)) LocalId, "v"
);
crate::define_id!(
    /// An operation.
    (pub(super)) OpId, "o"
);

/// Some elements: element `e` is element `offset + e` of the base, or element `offset` for each `e` where it is spread.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Value {
    pub(super) base: Base,
    pub(super) offset: usize,
    pub(super) spread: bool,
    pub(super) dtype: DType,
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
pub(super) enum Products {
    /// Fused multiply-adds.
    Ordinary,
    /// Those of the chain rule, in which a zero wins.
    ChainRule,
}

/// How elements become one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Fold {
    /// The elements of an array.
    All(Reduction),
    /// The sum of the products of the elements of two arrays.
    Products(Products),
}

/// What an operation does for each of its `turns`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Kind {
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
pub(super) struct Op {
    pub(super) kind: Kind,
    /// Elements that it goes through.
    pub(super) turns: usize,
    pub(super) args: Vec<Value>,
    /// The local variable that it makes, and the element at which its own begin.
    pub(super) out: Option<(LocalId, usize)>,
    /// The step that it belongs to, counted from the first of the segment: where traps say they are.
    pub(super) step: usize,
}

/// A segment in the making.
pub(super) struct Ssa<'a> {
    globals: &'a Globals,
    slots: &'a IdVec<SlotId, Slot>,
    pub(super) locals: IdVec<LocalId, Local>,
    pub(super) ops: IdVec<OpId, Op>,
    /// What the slots hold that were written.
    current: IndexMap<SlotId, Value>,
    /// Draws of a lane so far.
    pub(super) draws: usize,
    step: usize,
}

/// Whether a step can be part of a segment.
pub(super) fn takes(step: &Step, globals: &Globals, slots: &IdVec<SlotId, Slot>) -> bool {
    match &step.kind {
        StepKind::Pop { slot, .. } => slots[*slot].elements > 0 && slots[*slot].elements <= MOST_ELEMENTS,
        StepKind::Compute(c) => takes_compute(c, globals),
        // A message with values is made where the values are: such asserts stay steps.
        StepKind::Effect(SideEffect::Assert { message, .. }) => message.args.is_empty(),
        _ => false,
    }
}

fn takes_compute(c: &Compute, globals: &Globals) -> bool {
    let n = c.ty.elements();
    let small = |ty: &Type| (1..=MOST_ELEMENTS).contains(&ty.elements());
    if c.uniform || !small(&c.ty) || matches!(c.write, Write::Push(_)) && c.in_place {
        return false;
    }
    let literal = |a: &Arg| literal_int(a, globals).is_some();
    let args_small = || c.args.iter().all(|a| small(&a.ty));
    let whole = |a: &Arg| a.ty.elements() == 1 || a.ty.elements() == n;
    match c.prim.class() {
        Class::Identity(_) => args_small(),
        Class::IntArithmetic(IntArithmetic::IntPow) => false,
        Class::Arithmetic(_)
        | Class::RealArithmetic(_)
        | Class::IntArithmetic(IntArithmetic::IntDiv | IntArithmetic::IntRem)
        | Class::Unary(_)
        | Class::Binary(_)
        | Class::Comparison(_)
        | Class::Logic(_)
        | Class::Selection(_)
        | Class::Conversion(_) => c.args.iter().all(whole),
        Class::Movement(movement) => match movement {
            Movement::Reshape | Movement::MakeArray | Movement::Concat => args_small(),
            Movement::Fill => c.args[0].ty.elements() == 1,
            Movement::Index | Movement::Slice => {
                small(&c.args[0].ty) && c.args[1..].iter().all(literal) && place(c, globals).is_some()
            }
            Movement::SetIndex | Movement::SetSlice => {
                args_small() && c.args[2..].iter().all(literal) && place(c, globals).is_some()
            }
            Movement::Iota
            | Movement::Gather
            | Movement::Scatter
            | Movement::ScatterAdd
            | Movement::Transpose
            | Movement::TransposeEach => false,
        },
        Class::Contraction(Contraction::Dot | Contraction::ChainDot) => args_small(),
        Class::Contraction(Contraction::MatMul | Contraction::ChainMatMul) => {
            let [a, b] = &c.args[..] else { return false };
            let (matrix, vector) = if a.broadcast { (a, b) } else { (b, a) };
            is_shared(matrix, globals)
                && matrix.ty.shape.len() == 2
                && vector.ty.shape.len() == 1
                && !vector.broadcast
                && small(&vector.ty)
                && matrix.ty.elements() <= MOST_MATRIX_ELEMENTS
        }
        Class::Contraction(Contraction::BatchMatMul | Contraction::ChainBatchMatMul) | Class::Triangular(_) => false,
        Class::Reduction(_) => n == 1 && args_small(),
        Class::Draw(_) => true,
    }
}

/// Whether an operand is a shared value.
fn is_shared(arg: &Arg, globals: &Globals) -> bool {
    matches!(arg.source, Source::Constant(c) if matches!(globals.constants[c], Constant::Shared(_)))
}

/// The value of an operand that stands in the program text.
fn literal_int(arg: &Arg, globals: &Globals) -> Option<i64> {
    match arg.source {
        Source::Constant(c) => match globals.constants[c] {
            Constant::Literal(Scalar::Int(i)) => Some(i),
            _ => None,
        },
        Source::Slot(_) => None,
    }
}

/// Where the part begins that an index or slice of known places names; none where it is out of range.
fn place(c: &Compute, globals: &Globals) -> Option<usize> {
    let (indices, part) = match c.prim {
        Prim::Index | Prim::Slice => (&c.args[1..], &c.ty),
        _ => (&c.args[2..], &c.args[1].ty),
    };
    let shape = &c.args[0].ty.shape;
    let mut at = 0;
    for (axis, index) in indices.iter().enumerate() {
        let index = usize::try_from(literal_int(index, globals)?).ok()?;
        let most = match c.prim {
            Prim::Slice | Prim::SetSlice => shape[0].checked_sub(part.shape[0])?,
            _ => shape[axis].checked_sub(1)?,
        };
        if index > most {
            return None;
        }
        at += index * shape[axis + 1..].iter().product::<usize>();
    }
    Some(at)
}

impl<'a> Ssa<'a> {
    pub(super) fn new(globals: &'a Globals, slots: &'a IdVec<SlotId, Slot>) -> Self {
        let (locals, ops) = (IdVec::new(), IdVec::new());
        Self { globals, slots, locals, ops, current: IndexMap::new(), draws: 0, step: 0 }
    }

    /// Adds a step that the segment [takes].
    pub(super) fn add(&mut self, step: &Step) {
        match &step.kind {
            StepKind::Compute(c) => self.compute(c),
            StepKind::Pop { stack, slot } => {
                let Slot { dtype, elements, .. } = self.slots[*slot];
                let value = self.made(Kind::Pop(*stack), dtype, elements, elements, Vec::new());
                self.current.insert(*slot, value);
            }
            StepKind::Effect(SideEffect::Assert { cond, .. }) => {
                let value = self.value(cond);
                self.push(Kind::Assert, 1, vec![value], None);
            }
            _ => unreachable!("only steps are added that a segment takes"),
        }
        self.step += 1;
    }

    /// The value of an operand.
    pub(super) fn value(&self, arg: &Arg) -> Value {
        let dtype = arg.ty.dtype;
        let base = match arg.source {
            Source::Slot(s) => match self.current.get(&s) {
                Some(value) => return *value,
                None if arg.broadcast => Base::Uniform(s),
                None => Base::Slot(s),
            },
            Source::Constant(c) => match self.globals.constants[c] {
                Constant::Literal(scalar) => Base::Literal(scalar),
                Constant::Shared(_) => Base::Constant(c),
            },
        };
        Value { base, offset: 0, spread: arg.ty.elements() == 1, dtype }
    }

    /// What the slots hold in the end that were written.
    pub(super) fn written(&self) -> impl Iterator<Item = (SlotId, Value)> + '_ {
        self.current.iter().map(|(slot, value)| (*slot, *value))
    }

    /// A value that the slot gets in the active lanes.
    pub(super) fn store(&mut self, slot: SlotId, value: Value) {
        let elements = self.slots[slot].elements;
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
        self.ops.push(Op { kind, turns, args, out, step: self.step })
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

    fn compute(&mut self, c: &Compute) {
        let value = self.result(c);
        if let Write::Push(stack) = c.write {
            let elements = self.slots[c.slot].elements;
            let dtype = c.ty.dtype;
            let before = self.current.get(&c.slot).copied();
            let before = before.unwrap_or(Value { base: Base::Slot(c.slot), offset: 0, spread: elements == 1, dtype });
            self.push(Kind::Spill(stack), elements, vec![before], None);
            if c.prim == Prim::Copy && c.reads_slot {
                // What is only saved keeps its value.
                return;
            }
        }
        self.current.insert(c.slot, value);
    }

    fn result(&mut self, c: &Compute) -> Value {
        let (n, dtype) = (c.ty.elements(), c.ty.dtype);
        let args: Vec<Value> = c.args.iter().map(|a| self.value(a)).collect();
        let view =
            |value: Value, at: usize| Value { offset: value.offset + if value.spread { 0 } else { at }, ..value };
        match c.prim.class() {
            Class::Identity(_) => args[0],
            computed_elementwise!() => self.made(Kind::Map(c.prim), dtype, n, n, args),
            Class::Movement(movement) => match movement {
                Movement::Reshape => args[0],
                Movement::Fill => Value { spread: true, ..args[0] },
                Movement::Index | Movement::Slice => {
                    let at = place(c, self.globals).expect("a segment takes what is in range only");
                    let value = view(args[0], at);
                    Value { spread: value.spread || n == 1, ..value }
                }
                Movement::MakeArray | Movement::Concat => {
                    let parts: Vec<(Value, usize)> =
                        args.iter().zip(&c.args).map(|(v, a)| (*v, a.ty.elements())).collect();
                    self.joined(dtype, &parts)
                }
                Movement::SetIndex | Movement::SetSlice => {
                    let at = place(c, self.globals).expect("a segment takes what is in range only");
                    let len = c.args[1].ty.elements();
                    let after = view(args[0], at + len);
                    self.joined(dtype, &[(args[0], at), (args[1], len), (after, n - at - len)])
                }
                Movement::Iota
                | Movement::Gather
                | Movement::Scatter
                | Movement::ScatterAdd
                | Movement::Transpose
                | Movement::TransposeEach => unreachable!("a segment does not take `{}`", c.prim),
            },
            Class::Contraction(contraction) => {
                let turns = c.args[0].ty.elements();
                match contraction {
                    Contraction::Dot => {
                        self.made(Kind::Reduce(Fold::Products(Products::Ordinary)), dtype, 1, turns, args)
                    }
                    Contraction::ChainDot => {
                        self.made(Kind::Reduce(Fold::Products(Products::ChainRule)), dtype, 1, turns, args)
                    }
                    Contraction::MatMul => self.product(Products::Ordinary, c, args),
                    Contraction::ChainMatMul => self.product(Products::ChainRule, c, args),
                    Contraction::BatchMatMul | Contraction::ChainBatchMatMul => {
                        unreachable!("a segment does not take `{}`", c.prim)
                    }
                }
            }
            Class::Triangular(_) => unreachable!("a segment does not take `{}`", c.prim),
            Class::Reduction(reduction) => {
                let turns = c.args[0].ty.elements();
                self.made(Kind::Reduce(Fold::All(reduction)), dtype, 1, turns, args)
            }
            Class::Draw(draw) => {
                let first = self.draws;
                self.draws += n;
                self.made(Kind::Draw { draw, first }, dtype, n, n, Vec::new())
            }
        }
    }

    fn product(&mut self, products: Products, c: &Compute, args: Vec<Value>) -> Value {
        let (n, dtype) = (c.ty.elements(), c.ty.dtype);
        let (left, mut args) = match c.args[0].broadcast {
            true => (true, args),
            false => (false, vec![args[1], args[0]]),
        };
        let shape = if left { &c.args[0].ty.shape } else { &c.args[1].ty.shape };
        let (rows, columns) = (shape[0], shape[1]);
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
