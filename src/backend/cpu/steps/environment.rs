//! What all shards of a run share.

use std::sync::{Arc, OnceLock};

use crate::backend::cpu::buffer::Buffer;
use crate::backend::cpu::frame::Frame;
use crate::backend::cpu::tracer::TraceClock;
use crate::base::Id as _;
use crate::plan::{Arg, Constant, ConstantId, Globals, Source};
use crate::prim::Prim;
use crate::run::{RunInputs, Settings, Sink};
use crate::types::{Array, DType, Type};
use crate::vmath::Real;

/// What all shards of a run share.
pub(in crate::backend::cpu) struct Environment<'a, R> {
    constants: Arc<Constants<R>>,
    /// By constant, a matrix column after column, if few lanes have asked for it and there is memory: see [`Environment::turned`].
    turned: Vec<OnceLock<Option<Turned<R>>>>,
    pub(in crate::backend::cpu) settings: &'a Settings,
    pub(in crate::backend::cpu) sink: &'a dyn Sink,
    /// What tracers have in common.
    pub(in crate::backend::cpu) clock: TraceClock,
}

/// The constants of a plan. They are made once for all runs with the same shared values: a run for one lane takes less time
/// than the copy of its data.
struct Constants<R> {
    of: Vec<Constant>,
    /// Each of width 1.
    buffers: Vec<Buffer<R>>,
}

/// A matrix column after column, and the bytes that were taken for it.
struct Turned<R> {
    values: Buffer<R>,
    bytes: usize,
}

/// Rows of a matrix that are turned together.
const TURNED_ROWS: usize = 32;

impl<R> Drop for Environment<'_, R> {
    fn drop(&mut self) {
        let turned = self.turned.iter().filter_map(|turned| turned.get()?.as_ref());
        self.settings.get_memory().give_back(turned.map(|turned| turned.bytes).sum());
    }
}

impl<'a, R: Real> Environment<'a, R> {
    pub(in crate::backend::cpu) fn new(
        globals: &Globals,
        inputs: &RunInputs,
        settings: &'a Settings,
        sink: &'a dyn Sink,
    ) -> Self {
        let make = |shared: &[Array]| Constants {
            of: globals.constants.values().copied().collect(),
            buffers: (globals.constants.values())
                .map(|c| match c {
                    Constant::Shared(s) => Buffer::from_array(&shared[s.0 as usize]),
                    Constant::Literal(c) => Buffer::from_array(&Array::scalar(*c)),
                })
                .collect(),
        };
        let serves = |made: &Constants<R>| made.of.iter().eq(globals.constants.values());
        let constants = inputs.shared.made(serves, make);
        let turned = globals.constants.values().map(|_| OnceLock::new()).collect();
        Self { constants, turned, settings, sink, clock: TraceClock::new() }
    }
    /// A matrix of reals `[n, m]` column after column, for products with a vector: of few lanes the rows are the vector
    /// axis, and elements that stand row after row would have to be turned each time. None where it would take more than
    /// a quarter of the memory that is left.
    fn turned(&self, id: ConstantId, [n, m]: [usize; 2]) -> Option<&Buffer<R>> {
        let turn = || {
            let bytes = n.checked_mul(m)?.checked_mul(size_of::<R>())?;
            let memory = self.settings.get_memory();
            memory.take_of_plenty(bytes).ok()?;
            let Ok(mut values) = Buffer::try_zeros(DType::Real, n * m) else {
                memory.give_back(bytes);
                return None;
            };
            let (from, to) = (self.constant(id).reals(), values.reals_mut());
            // Blocks of rows and columns, so that neither goes through the cache once for each element.
            for first in (0..n).step_by(TURNED_ROWS) {
                for column in 0..m {
                    for row in first..n.min(first + TURNED_ROWS) {
                        to[column * n + row] = from[row * m + column];
                    }
                }
            }
            Some(Turned { values, bytes })
        };
        self.turned[id.index()].get_or_init(turn).as_ref().map(|turned| &turned.values)
    }
    /// The same of the left operand of a product, if it is one of a matrix and a vector.
    pub(in crate::backend::cpu) fn turned_in(
        &self,
        prim: Prim,
        matrix: ConstantId,
        types: [&Type; 2],
    ) -> Option<&Buffer<R>> {
        let is_product = matches!(prim, Prim::MatMul | Prim::ChainMatMul);
        match types.map(|ty| &ty.shape[..]) {
            [&[n, m], &[_]] if is_product && m > 1 => self.turned(matrix, [n, m]),
            _ => None,
        }
    }
    /// Where the values of an operand are.
    pub(in crate::backend::cpu) fn buffer<'b>(&'b self, frame: &'b Frame<R>, arg: &Arg) -> &'b Buffer<R> {
        match arg.source {
            Source::Slot(s) => &frame.slots[s.0 as usize],
            Source::Constant(c) => &self.constants.buffers[c.0 as usize],
        }
    }
    /// The value of a constant.
    pub(in crate::backend::cpu) fn constant(&self, id: ConstantId) -> &Buffer<R> {
        &self.constants.buffers[id.0 as usize]
    }
    /// Whether the run was stopped.
    pub(in crate::backend::cpu) fn stopped(&self) -> bool {
        self.settings.is_stopped()
    }
}
