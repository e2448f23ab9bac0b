//! The values that are the same for all lanes: collected while functions are lowered, each computed once. Equal
//! computations get one number.

use indexmap::{IndexMap, IndexSet};

use super::fold;
use super::names::Names;
use crate::base::IdVec;
use crate::cfg::trim::drop_unread_shared;
use crate::cfg::{Operand, Program, Shared, SharedId, SharedSource};
use crate::parts;
use crate::prim::{Effect, Prim};
use crate::types::{Array, ArrayData, DType, Scalar, Shape, Type};

type SharedArgs = parts::Args<SharedId>;

/// More elements than a constant that is in the program; larger ones are computed when the run begins.
const MOST_CONSTANT: usize = 1 << 16;

/// The shared values of the program that is made.
#[derive(Default)]
pub(super) struct SharedPool {
    values: IdVec<SharedId, Shared>,
    computed: IndexMap<(Prim, SharedArgs, Type), SharedId>,
    /// Arrays of the positions along an axis, by shape and axis.
    positions: IndexMap<(Shape, usize), SharedId>,
    names: Names,
    /// Those that still have a made-up name.
    unnamed: IndexSet<SharedId>,
    /// Whether lanes compute what a NaN may be born in, so that one that comes there traps.
    nans_are_looked_for: bool,
}

impl SharedPool {
    /// No values. With `nans_are_looked_for` those in which a NaN may be born are left to the lanes.
    pub(super) fn new(nans_are_looked_for: bool) -> Self {
        Self { nans_are_looked_for, ..Self::default() }
    }

    /// Adds a value that is given to the run under this name.
    pub(super) fn input(&mut self, name: &str, ty: Type) -> SharedId {
        let name = self.names.unique(name);
        self.values.push(Shared { name, ty, source: SharedSource::Input })
    }

    /// The array of ints of this shape whose elements are their positions along an axis.
    pub(super) fn positions(&mut self, shape: &Shape, axis: usize) -> SharedId {
        let key = (shape.clone(), axis);
        if let Some(id) = self.positions.get(&key) {
            return *id;
        }
        let inner: usize = shape[axis + 1..].iter().product();
        let count = shape.iter().fold(1, |n: usize, extent| n.saturating_mul(*extent));
        if count > MOST_CONSTANT {
            let id = self.positions_by_prims(shape, axis, count);
            self.positions.insert(key, id);
            return id;
        }
        let elements = (0..count).map(|place| (place / inner % shape[axis]) as i64).collect();
        let array = Array::int(shape.iter().copied(), elements);
        let name = self.names.numbered("%");
        let id = self.values.push(Shared { name, ty: array.ty(), source: SharedSource::Constant(array) });
        self.positions.insert(key, id);
        id
    }

    /// The same of a large array, which is made only when the memory of the run is known to be there.
    fn positions_by_prims(&mut self, shape: &Shape, axis: usize, count: usize) -> SharedId {
        let inner: usize = shape[axis + 1..].iter().product();
        let int = |n: usize| parts::Operand::Const(Scalar::Int(i64::try_from(n).unwrap_or(i64::MAX)));
        let flat = Type::new(DType::Int, [count]);
        let mut made = |prim, args: SharedArgs, ty: &Type| {
            let name = self.names.numbered("%");
            self.values.push(Shared { name, ty: ty.clone(), source: SharedSource::Prim(prim, args) })
        };
        let mut id = made(Prim::Iota, SharedArgs::new(), &flat);
        for (prim, by) in [(Prim::IntDiv, inner), (Prim::IntRem, shape[axis])] {
            // The outermost axis is as long as it is, and the innermost has a step of 1.
            if by != 1 && (prim == Prim::IntDiv || axis > 0) {
                id = made(prim, [parts::Operand::Shared(id), int(by)].into_iter().collect(), &flat);
            }
        }
        if shape.len() > 1 {
            let ty = Type { dtype: DType::Int, shape: shape.clone() };
            id = made(Prim::Reshape, [parts::Operand::Shared(id)].into_iter().collect(), &ty);
        }
        id
    }

    pub(super) fn ty(&self, id: SharedId) -> &Type {
        &self.values[id].ty
    }

    /// The result of a primitive whose operands are all the same for all lanes, if it can be computed before lanes start:
    /// a constant, or a shared value. `None` when an operand is a variable, and when it may trap or draws.
    pub(super) fn compute(&mut self, prim: Prim, args: &[Operand], ty: &Type) -> Option<Operand> {
        let shared: SharedArgs = args.iter().map(|a| a.shared()).collect::<Option<_>>()?;
        if let Some(constant) = fold::fold(prim, args) {
            return Some(Operand::Const(constant));
        }
        let types: Vec<Type> = args.iter().map(|a| self.operand_type(*a)).collect();
        let total = match prim.effect(&types) {
            Effect::Pure => true,
            Effect::Traps => in_range(prim, args, &types, ty),
            Effect::Random => false,
        };
        if !total || (self.nans_are_looked_for && ty.dtype == DType::Real && prim.bears_nans()) {
            return None;
        }
        let key = (prim, shared, ty.clone());
        if let Some(id) = self.computed.get(&key) {
            return Some(Operand::Shared(*id));
        }
        let source = match self.constant(prim, &key.1, ty) {
            Some(array) => SharedSource::Constant(array),
            None => SharedSource::Prim(prim, key.1.clone()),
        };
        let name = self.names.numbered("%");
        let id = self.values.push(Shared { name, ty: ty.clone(), source });
        self.unnamed.insert(id);
        self.computed.insert(key, id);
        Some(Operand::Shared(id))
    }

    fn operand_type(&self, operand: Operand) -> Type {
        operand.ty(|_| unreachable!("a shared value reads no variables"), |s| self.values[s].ty.clone())
    }

    /// An array literal whose elements are constants.
    fn constant(&self, prim: Prim, args: &SharedArgs, ty: &Type) -> Option<Array> {
        if prim != Prim::MakeArray {
            return None;
        }
        let mut elements = Vec::with_capacity(ty.elements());
        for arg in args {
            match arg {
                parts::Operand::Const(c) => elements.push(*c),
                parts::Operand::Shared(id) => match &self.values[*id].source {
                    SharedSource::Constant(a) => elements.extend((0..a.len()).map(|i| a.get(i))),
                    _ => return None,
                },
                parts::Operand::Var(_) => return None,
            }
        }
        let data = array_data(ty.dtype, &elements);
        Some(Array::new(ty.shape.iter().copied(), data))
    }

    /// Gives a value the name of the local that it is bound to, unless it has a name.
    pub(super) fn suggest_name(&mut self, id: SharedId, name: &str) {
        if self.unnamed.swap_remove(&id) {
            let name = self.names.unique(name);
            self.values[id].name = name;
        }
    }

    /// Puts the values into the program, without those that nothing reads; inputs stay.
    pub(super) fn finish(self, program: &mut Program) {
        program.shared = self.values;
        drop_unread_shared(program);
    }
}

/// Whether an index or slice with constant indices stays inside its array.
fn in_range(prim: Prim, args: &[Operand], types: &[Type], ty: &Type) -> bool {
    let constant = |operand: &Operand| match operand {
        Operand::Const(Scalar::Int(i)) => usize::try_from(*i).ok(),
        _ => None,
    };
    match prim {
        Prim::Index => {
            args[1..].iter().zip(&types[0].shape).all(|(index, extent)| constant(index).is_some_and(|i| i < *extent))
        }
        Prim::Slice => constant(&args[1])
            .and_then(|start| start.checked_add(ty.shape[0]))
            .is_some_and(|end| end <= types[0].shape[0]),
        _ => false,
    }
}

fn array_data(dtype: DType, elements: &[Scalar]) -> ArrayData {
    let real = |s: &Scalar| if let Scalar::Real(r) = s { *r } else { 0.0 };
    let int = |s: &Scalar| if let Scalar::Int(i) = s { *i } else { 0 };
    match dtype {
        DType::Bool => ArrayData::Bool(elements.iter().map(|s| *s == Scalar::Bool(true)).collect()),
        DType::Int => ArrayData::Int(elements.iter().map(int).collect()),
        DType::Real => ArrayData::Real(elements.iter().map(real).collect()),
    }
}
