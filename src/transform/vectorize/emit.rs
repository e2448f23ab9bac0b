//! Emission of whole-array code.

use indexmap::{IndexMap, IndexSet};

use super::tiling::{Numbers, Tiling};
use crate::base::Names;
use crate::cfg::build::Builder;
use crate::cfg::{Func, Inst, InstKind, Operand, Program, Shared, SharedId, SharedSource, VarId};
use crate::parts::{Args, Tape, TapeId};
use crate::prim::Prim;
use crate::types::{Array, ArrayData, DType, Scalar, Type};

/// An operand as the rules see it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Value {
    pub(super) operand: Operand,
    /// The type for one element.
    pub(super) ty: Type,
    /// Whether it depends on the index: then the operand has one axis more, in front.
    pub(super) tiled: bool,
}

impl Value {
    pub(super) fn is_tiled(&self) -> bool {
        self.tiled
    }
}

/// The instructions that are made of a function, and their variables: those of the function keep their numbers.
#[derive(Debug)]
pub(super) struct Emitter<'p> {
    pub(super) code: Builder<&'p mut Program>,
    /// The function for one value of the index.
    pub(super) func: &'p Func,
    pub(super) tiling: &'p Tiling,
    pub(super) numbers: Numbers,
    /// How many values the index has.
    pub(super) n: usize,
    tapes: IndexMap<TapeId, TapeId>,
    /// Of shared values, once one is made.
    names: Option<Names>,
    computed: IndexMap<(Prim, Args<SharedId>, Type), SharedId>,
}

/// Most elements of a shared value that is made of copies of one.
const MOST_COPIED: usize = 1 << 16;

/// The type with an axis more in front.
pub(super) fn with_axis(n: usize, ty: &Type) -> Type {
    let mut shape = ty.shape.clone();
    shape.insert(0, n);
    Type { dtype: ty.dtype, shape }
}

impl<'p> Emitter<'p> {
    pub(super) fn new(
        program: &'p mut Program,
        func: &'p Func,
        tiling: &'p Tiling,
        numbers: Numbers,
        n: usize,
    ) -> Self {
        Self {
            code: Builder::new(program, func.vars.clone(), func.loc.clone()).naming("t"),
            func,
            tiling,
            numbers,
            n,
            tapes: IndexMap::new(),
            names: None,
            computed: IndexMap::new(),
        }
    }

    /// Makes tapes of its own for the code: those of the loop stay what they are.
    pub(super) fn take_tapes(&mut self, tapes: &IndexSet<TapeId>) {
        let mut names = Names::of(self.code.program.tapes.values().map(|t| &t.name));
        for tape in tapes {
            let Tape { name, ty } = self.code.program.tapes[*tape].clone();
            let ty = if self.tiling.is_tiled_tape(*tape) { with_axis(self.n, &ty) } else { ty };
            let name = names.numbered(&format!("{name}#"), 2);
            let own = self.code.program.tapes.push(Tape { name, ty });
            self.tapes.insert(*tape, own);
        }
    }
    /// The tape that stands for a tape of the function.
    pub(super) fn tape(&self, tape: TapeId) -> TapeId {
        self.tapes[&tape]
    }

    /// An operand of the function.
    pub(super) fn value(&mut self, operand: Operand) -> Value {
        let ty = self.code.program.operand_type(self.func, operand);
        if let Some(numbers) = self.numbers.get(operand) {
            let array = array(numbers);
            return Value { operand: self.constant(array), ty, tiled: true };
        }
        Value { operand, ty, tiled: self.tiling.is_tiled(operand) }
    }

    /// An operand of the function with the axis of the index.
    pub(super) fn whole(&mut self, operand: Operand) -> Operand {
        let value = self.value(operand);
        self.whole_of(value)
    }
    /// A value with the axis of the index.
    pub(super) fn whole_of(&mut self, value: Value) -> Operand {
        if value.tiled {
            return value.operand;
        }
        let mut part = value.operand;
        if !value.ty.is_scalar() {
            part = self.reshape(part, with_axis(1, &value.ty));
        }
        self.emit(Prim::Fill, &[part], with_axis(self.n, &value.ty))
    }

    /// 0, 1, …: the places of the elements.
    pub(super) fn places(&mut self) -> Operand {
        let places: Vec<Scalar> = (0..self.n as i64).map(Scalar::Int).collect();
        self.constant(array(&places))
    }

    /// An array that is known.
    pub(super) fn constant(&mut self, array: Array) -> Operand {
        let shared = self.code.program.shared.iter();
        let known = shared.filter(|(_, s)| matches!(&s.source, SharedSource::Constant(a) if *a == array));
        if let Some(id) = known.map(|(id, _)| id).next() {
            return Operand::Shared(id);
        }
        let ty = Type { dtype: array.dtype(), shape: array.shape.clone() };
        Operand::Shared(self.share(ty, SharedSource::Constant(array)))
    }

    fn share(&mut self, ty: Type, source: SharedSource) -> SharedId {
        let program = &self.code.program;
        let names = self.names.get_or_insert_with(|| Names::of(program.shared.values().map(|s| &s.name)));
        let name = names.numbered("%v", program.shared.len());
        self.code.program.shared.push(Shared { name, ty, source })
    }

    /// The result of a primitive. What only moves parts of shared values is a shared value.
    pub(super) fn emit(&mut self, prim: Prim, args: &[Operand], ty: Type) -> Operand {
        if let Some(shared) = self.shared_args(prim, args, &ty) {
            let key = (prim, shared, ty);
            if let Some(known) = self.computed.get(&key) {
                return Operand::Shared(*known);
            }
            let id = self.share(key.2.clone(), SharedSource::Prim(prim, key.1.clone()));
            self.computed.insert(key, id);
            return Operand::Shared(id);
        }
        self.code.prim_as(prim, args, ty)
    }

    /// The operands of a primitive that moves parts of shared values and cannot trap.
    fn shared_args(&self, prim: Prim, args: &[Operand], ty: &Type) -> Option<Args<SharedId>> {
        let total = match prim {
            Prim::Reshape | Prim::Transpose | Prim::TransposeEach | Prim::Concat | Prim::MakeArray => true,
            // Copies of a large value would be stored for ever.
            Prim::Fill => matches!(args, [Operand::Shared(_)]) && ty.elements() <= MOST_COPIED,
            Prim::Slice => {
                let rows = self.code.ty(args[0]).shape[0];
                let fits = |start: i64| usize::try_from(start).is_ok_and(|s| s + ty.shape[0] <= rows);
                matches!(args[1], Operand::Const(Scalar::Int(start)) if fits(start))
            }
            Prim::Index | Prim::Gather => {
                let shape = self.code.ty(args[0]).shape;
                args[1..].iter().zip(&shape).all(|(index, extent)| self.in_range(*index, *extent))
            }
            _ => false,
        };
        if !total {
            return None;
        }
        args.iter().map(|a| a.shared()).collect()
    }

    /// Whether an index, or each of an array of them, is known and in range.
    fn in_range(&self, index: Operand, extent: usize) -> bool {
        let fits = |i: &i64| usize::try_from(*i).is_ok_and(|i| i < extent);
        match index {
            Operand::Const(Scalar::Int(i)) => fits(&i),
            operand => match self.known(operand) {
                Some(Array { data: ArrayData::Int(values), .. }) => values.iter().all(fits),
                _ => false,
            },
        }
    }

    /// The same elements under another shape.
    pub(super) fn reshape(&mut self, operand: Operand, ty: Type) -> Operand {
        if self.code.ty(operand) == ty {
            return operand;
        }
        match self.known(operand).cloned() {
            Some(array) => self.constant(Array { shape: ty.shape, ..array }),
            None => self.emit(Prim::Reshape, &[operand], ty),
        }
    }

    /// Ints of this shape: those of an operand whose extents are that of the shape or 1.
    pub(super) fn spread(&mut self, operand: Operand, ty: Type) -> Operand {
        if self.code.ty(operand) == ty {
            return operand;
        }
        match self.known(operand) {
            Some(Array { shape, data: ArrayData::Int(values) }) if ty.elements() <= MOST_COPIED => {
                let place = |e: usize| {
                    let (mut rest, mut stride, mut at) = (e, 1, 0);
                    for (extent, own) in ty.shape.iter().zip(shape).rev() {
                        at += if *own == 1 { 0 } else { rest % extent * stride };
                        (rest, stride) = (rest / extent, stride * own);
                    }
                    at
                };
                let spread = (0..ty.elements()).map(|e| values[place(e)]).collect();
                self.constant(Array { shape: ty.shape, data: ArrayData::Int(spread) })
            }
            _ => self.emit(Prim::Fill, &[operand], ty),
        }
    }

    /// The array that an operand is, if that is known.
    pub(super) fn known(&self, operand: Operand) -> Option<&Array> {
        match operand {
            Operand::Shared(s) => match &self.code.program.shared[s].source {
                SharedSource::Constant(array) => Some(array),
                _ => None,
            },
            _ => None,
        }
    }

    /// `dst = operand`; what made the operand sets `dst` itself.
    pub(super) fn assign(&mut self, dst: VarId, operand: Operand) {
        if let Some(Inst { kind: InstKind::Prim { dst: made, .. }, .. }) = self.code.insts.last_mut()
            && Operand::Var(*made) == operand
            && usize::try_from(made.0).is_ok_and(|v| v >= self.func.vars.len())
        {
            *made = dst;
            return;
        }
        self.code.set(dst, Prim::Copy, &[operand]);
    }
}

fn array(numbers: &[Scalar]) -> Array {
    let ints = |s: &Scalar| if let Scalar::Int(i) = s { *i } else { 0 };
    let data = match numbers.first().map(|s| s.dtype()) {
        Some(DType::Bool) => ArrayData::Bool(numbers.iter().map(|s| *s == Scalar::Bool(true)).collect()),
        _ => ArrayData::Int(numbers.iter().map(ints).collect()),
    };
    Array::new([numbers.len()], data)
}
