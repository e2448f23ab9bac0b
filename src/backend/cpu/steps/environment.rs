//! What all shards of a run share.

use crate::backend::cpu::buffer::Buffer;
use crate::backend::cpu::frame::Frame;
use crate::plan::{Arg, Constant, ConstantId, Globals, Source};
use crate::run::{RunInputs, Settings, Sink};
use crate::types::Array;
use crate::vmath::Real;

/// What all shards of a run share.
pub(in crate::backend::cpu) struct Environment<'a, R> {
    /// By constant, each of width 1.
    constants: Vec<Buffer<R>>,
    pub(in crate::backend::cpu) settings: &'a Settings,
    pub(in crate::backend::cpu) sink: &'a dyn Sink,
}

impl<'a, R: Real> Environment<'a, R> {
    pub(in crate::backend::cpu) fn new(
        globals: &Globals,
        inputs: &RunInputs,
        settings: &'a Settings,
        sink: &'a dyn Sink,
    ) -> Self {
        let constants = globals.constants.values().map(|c| match c {
            Constant::Shared(s) => Buffer::from_array(&inputs.shared[s.0 as usize]),
            Constant::Literal(c) => Buffer::from_array(&Array::scalar(*c)),
        });
        Self { constants: constants.collect(), settings, sink }
    }
    /// Where the values of an operand are.
    pub(in crate::backend::cpu) fn buffer<'b>(&'b self, frame: &'b Frame<R>, arg: &Arg) -> &'b Buffer<R> {
        match arg.source {
            Source::Slot(s) => &frame.slots[s.0 as usize],
            Source::Constant(c) => &self.constants[c.0 as usize],
        }
    }
    /// The value of a constant.
    pub(in crate::backend::cpu) fn constant(&self, id: ConstantId) -> &Buffer<R> {
        &self.constants[id.0 as usize]
    }
    /// Whether the run was stopped.
    pub(in crate::backend::cpu) fn stopped(&self) -> bool {
        self.settings.is_stopped()
    }
}
