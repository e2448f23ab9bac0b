//! The constants of a plan, each once.

use indexmap::IndexSet;

use crate::base::{Id, IdVec};
use crate::parts::{Operand, Shared, SharedId, SharedSource};
use crate::plan::{Constant, ConstantId, Globals};
use crate::prim::Prim;
use crate::types::{Scalar, Type};
use crate::unit;

/// The constants met so far.
pub(super) struct Constants {
    seen: IndexSet<Constant>,
    shared: IdVec<SharedId, Shared>,
}

impl Constants {
    pub(super) fn new(shared: IdVec<SharedId, Shared>) -> Self {
        Self { seen: IndexSet::new(), shared }
    }
    pub(super) fn literal(&mut self, value: Scalar) -> ConstantId {
        ConstantId::new(self.seen.insert_full(Constant::Literal(value)).0)
    }
    pub(super) fn shared(&mut self, id: SharedId) -> (ConstantId, Type) {
        let index = self.seen.insert_full(Constant::Shared(id)).0;
        (ConstantId::new(index), self.shared[id].ty.clone())
    }
    /// What a shared value is the transpose of.
    pub(super) fn transposed(&self, id: SharedId) -> Option<SharedId> {
        match &self.shared[id].source {
            SharedSource::Prim(Prim::Transpose, args) => match args[0] {
                Operand::Shared(of) if self.shared[of].ty.shape.len() == 2 => Some(of),
                _ => None,
            },
            _ => None,
        }
    }
    pub(super) fn ty(&self, id: SharedId) -> &Type {
        &self.shared[id].ty
    }
    pub(super) fn finish(self, globals: &unit::Globals) -> Globals {
        let (streams, tapes) = (globals.streams.clone(), globals.tapes.clone());
        Globals { constants: self.seen.into_iter().collect(), shared: self.shared, streams, tapes }
    }
}
