//! The constants of a plan, each once.

use indexmap::IndexSet;

use crate::base::Id;
use crate::parts::{Operand, SharedId, SharedSource};
use crate::plan::{Constant, ConstantId, Globals};
use crate::prim::Prim;
use crate::types::{Scalar, Type};
use crate::unit;

/// The constants met so far.
pub(super) struct Constants {
    seen: IndexSet<Constant>,
    globals: unit::Globals,
}

impl Constants {
    pub(super) fn new(globals: &unit::Globals) -> Self {
        Self { seen: IndexSet::new(), globals: globals.clone() }
    }
    pub(super) fn literal(&mut self, value: Scalar) -> ConstantId {
        ConstantId::new(self.seen.insert_full(Constant::Literal(value)).0)
    }
    pub(super) fn shared(&mut self, id: SharedId) -> (ConstantId, Type) {
        let index = self.seen.insert_full(Constant::Shared(id)).0;
        (ConstantId::new(index), self.globals.shared[id].ty.clone())
    }
    /// What a shared value is the transpose of.
    pub(super) fn transposed(&self, id: SharedId) -> Option<SharedId> {
        match &self.globals.shared[id].source {
            SharedSource::Prim(Prim::Transpose, args) => match args[0] {
                Operand::Shared(of) if self.globals.shared[of].ty.shape.len() == 2 => Some(of),
                _ => None,
            },
            _ => None,
        }
    }
    pub(super) fn ty(&self, id: SharedId) -> &Type {
        &self.globals.shared[id].ty
    }
    pub(super) fn finish(self) -> Globals {
        Globals { constants: self.seen.into_iter().collect(), units: self.globals }
    }
}
