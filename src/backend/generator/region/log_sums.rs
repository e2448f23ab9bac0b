//! Sums of logarithms: products of blocks of [`LOG_BLOCK`] elements, and a logarithm for each.

use super::place::{Known, Number, View};
use super::shapes;
use super::straight::FEWEST_MAPPED;
use super::text::Writer;
use crate::backend::generator::ending::Ending;
use crate::prim::{LOG_BLOCK, Prim};
use crate::types::DType;
use crate::unit::{Block, OpKind, Operand, ValueId};

impl<T: Ending> Writer<'_, T> {
    /// A sum of logarithms of all elements, or over the axes where the result has 1.
    pub(super) fn log_sum(
        &mut self,
        block: &Block<T>,
        (dst, prim): (ValueId, Prim),
        args: &[Operand],
    ) -> Option<Known> {
        let (view, ty) = (self.view(args[0])?, &block.values[dst].ty);
        let (n, shape) = (ty.elements(), block.operand_type(args[0], self.storage.globals).shape);
        if view.elements == 0 {
            return (n == 1).then(|| Known::Number(Number::group("r_splat(0)".to_owned(), DType::Real)));
        }
        // One lane is no vector for the text.
        if self.straight.is_some() && !self.is_scheduled() && view.elements >= FEWEST_MAPPED {
            return match self.inv_logit_of(block, prim, args).filter(|_| n == 1) {
                Some(twin) => self.log_sum_with(twin, &view),
                None => self.by_kernel(prim, block, dst, args),
            };
        }
        let name = self.fresh("s");
        if n == 1 {
            let elements = view.elements;
            self.log_sum_of(prim, &name, elements, |w, k| {
                let at = (elements > 1).then_some(k);
                w.element(&view, at).in_lanes()
            });
            return Some(Known::Number(Number::group(name, DType::Real)));
        }
        if shape.len() != ty.shape.len() {
            return None;
        }
        let over: Vec<usize> =
            shape.iter().zip(&ty.shape).map(|(from, to)| if from == to { 1 } else { *from }).collect();
        let to = self.array(n, DType::Real, false)?;
        self.open_loop_over("i", n);
        self.log_sum_of(prim, &name, view.elements / n, |w, k| {
            let indices = shapes::indices("i", &ty.shape).into_iter().zip(shapes::indices(k, &over));
            let indices: Vec<String> = indices.map(|(kept, over)| if over == "0" { kept } else { over }).collect();
            w.element(&view, Some(&shapes::element(&indices, &shape))).in_lanes()
        });
        self.set(&to, Some("i"), &Number::group(name, DType::Real));
        self.close();
        Some(Known::Array(View { elements: n, ..to }))
    }

    /// The sum of so many elements, as the number of this name. `element`: one of them, by its number.
    fn log_sum_of(
        &mut self,
        prim: Prim,
        name: &str,
        elements: usize,
        mut element: impl FnMut(&mut Self, &str) -> String,
    ) {
        let c = prim.row().c;
        self.line(format!("R {name} = r_splat(0);"));
        self.open(&format!("for (int first = 0; first < {elements}; first += {LOG_BLOCK}) {{"));
        self.line(format!("const int end = first + {LOG_BLOCK} < {elements} ? first + {LOG_BLOCK} : {elements};"));
        self.line(format!("R product = r_{c}_start(), addends = r_splat(0);"));
        self.open("for (int k = first; k < end; k++) {");
        let x = element(self, "k");
        self.line(format!("r_{c}_step(&product, &addends, {x});"));
        self.close();
        self.line(format!("const R of_block = r_{c}_end(product, addends);"));
        self.line(format!("{name} = first > 0 ? r_add({name}, of_block) : of_block;"));
        self.close();
    }

    /// `inv_logit` of the operand of a sum of `log1p_exp`, if it is computed later in the block: both have an exponential
    /// in common.
    fn inv_logit_of(&self, block: &Block<T>, prim: Prim, of: &[Operand]) -> Option<ValueId> {
        let later = block.ops[self.at() + 1..].iter().filter(|_| prim == Prim::SumLog1pExp);
        later.into_iter().find_map(|op| match &op.kind {
            OpKind::Compute { dst, prim: Prim::InvLogit, args } if args[..] == *of => Some(*dst),
            _ => None,
        })
    }

    /// The sum of `log1p_exp` together with `inv_logit`, by the machine.
    fn log_sum_with(&mut self, inv_logit: ValueId, view: &View) -> Option<Known> {
        let frame = self.straight.as_ref()?.frame;
        self.close_loop();
        let n = view.elements;
        let operand = self.side_by_side(view)?;
        let (others, to) = (self.array(n, DType::Real, false)?, self.array(2, DType::Real, false)?);
        let to = View { elements: 1, ..to };
        let [other, sum] = [self.address(&others)?, self.address(&to)?];
        self.know(inv_logit, Known::Array(others));
        self.line(frame.sum_and_map(&operand, &sum, &other, n));
        Some(Known::Number(self.element(&to, None)))
    }
}
