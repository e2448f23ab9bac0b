//! A function of generated C takes the lanes of a shard, one group after another, as many as fill a vector register, and
//! skips the groups in which no lane is active. It is called with the structs of [`abi`](super::abi).

mod exits;
mod regions;
mod stacks;

use std::collections::HashSet;

use crate::backend::cpu::codegen::RARELY;
use crate::backend::generator::{
    Access, Frame, Function, Limits, LocalId, Op, Route, Stored, Writer, memory_type, prefix,
};
use crate::base::Id as _;
use crate::plan::{ConstantId, Slot, SlotId};
use crate::types::DType;
use crate::unit::BlockId;
use exits::Exits;

/// The values of a function stay in the L1 cache for a group of lanes, and larger products are better off as one product
/// over the lanes. A group of eight doubles each, the local variables take 768 KiB of the stack of a worker, which has 2
/// MiB, and scratch 2 MiB, which stay in the second cache.
const LIMITS: Limits = Limits::new(256, 1 << 14, 12 << 10, 1 << 15);

/// How generated C meets the machine on a CPU.
#[derive(Clone, Default, Debug)]
pub(super) struct Groups {
    /// The blocks that lanes come to rarely.
    pub(super) rarely: HashSet<BlockId>,
}

impl Groups {
    /// The first line of a function of a block.
    fn head(&self, name: &str, block: BlockId) -> String {
        let rarely = if self.rarely.contains(&block) { RARELY } else { "" };
        format!("{rarely}void {name}(struct ab_call *c) {{")
    }
}

/// Adds lines to a text.
fn lines(out: &mut String, lines: impl IntoIterator<Item = String>) {
    for line in lines {
        out.push_str(&line);
        out.push('\n');
    }
}

impl Access for Groups {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn load(&self, from: Stored, at: &str, dtype: DType) -> String {
        let p = prefix(dtype);
        match from {
            Stored::Slot(s) if at == "0" => format!("{p}_load(p{})", s.index()),
            Stored::Slot(s) => format!("{p}_load(p{} + ({at}) * width)", s.index()),
            Stored::Uniform(s) => format!("{p}_splat(p{}[{at}])", s.index()),
            Stored::Constant(c) => format!("{p}_splat(c{}[{at}])", c.index()),
            Stored::Stack(l) => format!("{p}_load(q{i} + ({at}) * step{i})", i = l.index()),
        }
    }

    fn store(&self, slot: SlotId, looped: bool, dtype: DType, value: &str) -> String {
        let (p, i) = (prefix(dtype), slot.index());
        match looped {
            false => format!("{p}_store_whole(p{i}, m, {value});"),
            true => format!("{p}_store_masked(p{i} + e * width, m, {value});"),
        }
    }

    fn constant(&self, constant: ConstantId) -> String {
        format!("c{}", constant.index())
    }

    fn draw(&self, function: &str, number: &str) -> String {
        format!("{function}(c->seed, lane, i_add(draw, i_splat({number})))")
    }
}

impl Frame for Groups {
    fn begin(&self, function: &Function<'_>, out: &mut String) {
        let signature = function.signature;
        let mut w = |text: String| lines(out, [text]);
        w(self.head(function.name, function.block));
        w("    const int64_t width = c->width;".to_owned());
        for (i, constant) in signature.constants.iter().enumerate() {
            let ty = memory_type(function.constant_type(*constant));
            w(format!("    const {ty} *c{} = c->constants[{i}];", constant.index()));
        }
        for (i, stack) in signature.stacks.iter().enumerate() {
            w(format!("    struct ab_stack *k{} = &c->stacks[{i}];", stack.index()));
        }
        for stack in &signature.pushed {
            w(format!("    H top{0} = h_none(); uint64_t pushed{0} = 0;", stack.index()));
        }
        match function.route {
            Some(route) => Exits::of(route).begin(route, &mut w),
            None => {
                w("    for (int64_t at = 0; at < width; at += LANES) {".to_owned());
                w("        unsigned bits = ab_bits(c->mask, at);".to_owned());
            }
        }
        w("        if (!bits) continue;".to_owned());
        w("        B m = b_from_bits(bits);".to_owned());
        for (i, slot) in signature.slots.iter().enumerate() {
            let Slot { dtype, uniform, .. } = function.slot(*slot);
            let ty = memory_type(dtype);
            let at = if uniform { "" } else { " + at" };
            w(format!("        {ty} *restrict p{} = ({ty} *)c->slots[{i}]{at};", slot.index()));
        }
        if function.draws().is_some() {
            w("        I lane = i_load(c->numbers + at), draw = i_load(c->draws + at);".to_owned());
        }
    }

    fn end(&self, function: &Function<'_>, out: &mut String) {
        let mut w = |text: String| lines(out, [text]);
        if let Some(draws) = function.draws() {
            w(format!("        i_store_masked(c->draws + at, m, i_add(draw, i_splat({draws})));"));
        }
        w("        (void)m;".to_owned());
        w("    }".to_owned());
        if let Some(route) = function.route {
            Exits::of(route).end(&mut w);
        }
        for stack in &function.signature.pushed {
            w(format!("    ab_pushed(k{0}, top{0}, pushed{0});", stack.index()));
        }
        w("}\n".to_owned());
    }

    fn trap(&self, bad: &str, site: usize) -> String {
        format!("if (AB_RARE(b_any(b_and(m, {bad})))) m = ab_trap(c, at, m, {bad}, {site});")
    }

    fn decide(&self, condition: &str, routes: bool) -> String {
        match routes {
            true => format!("const B went = {condition};"),
            false => format!("c->taken[at / 8] |= (uint8_t)(b_bits(b_and(m, {condition})) << (at & 7));"),
        }
    }

    fn borrow(&self, local: LocalId, elements: usize, dtype: DType) -> Option<String> {
        stacks::borrow(local, elements, dtype)
    }

    fn pop(&self, ops: &[&Op], text: &mut Writer<'_>) {
        stacks::pop(ops, text);
    }

    fn push(&self, ops: &[&Op], text: &mut Writer<'_>) {
        stacks::push(ops, text);
    }

    fn send(&self, route: &Route<'_>, text: &mut Writer<'_>) {
        exits::send(route, text);
    }
}
