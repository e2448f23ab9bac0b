//! A function that is a region: each group of lanes goes through its loops by itself, with its tapes at heights that all of
//! its active lanes have in common.

use super::{Groups, lines};
use crate::backend::generator::{Frame as _, Pile, RegionFrame, RegionFunction, memory_type, prefix};
use crate::base::Id as _;
use crate::plan::{Slot, SlotId};
use crate::types::DType;

impl RegionFrame for Groups {
    fn begin_region(&self, function: &RegionFunction<'_>, out: &mut String) {
        let (signature, storage) = (function.signature, function.storage);
        let mut w = |text: String| lines(out, [text]);
        w(self.head(function.name, function.block));
        w("    const int64_t width = c->width;".to_owned());
        for (i, constant) in signature.constants.iter().enumerate() {
            let ty = memory_type(storage.constant_type(*constant));
            w(format!("    const {ty} *c{} = c->constants[{i}];", constant.index()));
        }
        for tape in 0..signature.tapes.len() {
            w(format!("    struct ab_stack *k{tape} = &c->stacks[{tape}];"));
        }
        let (plain, others): (Vec<_>, Vec<_>) = (signature.slots.iter().enumerate())
            .map(|(i, slot)| (i, *slot, storage.slots()[*slot]))
            .partition(|(_, _, Slot { uniform, .. })| *uniform);
        // All groups begin with what there was before the first of them.
        for (i, slot, Slot { dtype, .. }) in plain {
            let (ty, slot) = (memory_type(dtype), slot.index());
            w(format!("    {ty} *const p{slot} = c->slots[{i}]; const {ty} u{slot} = *p{slot};"));
        }
        w("    uint64_t *ran = c->ran;".to_owned());
        w("    for (int64_t at = 0; at < width; at += LANES) {".to_owned());
        w("        const unsigned bits = ab_bits(c->mask, at);".to_owned());
        w("        if (!bits) continue;".to_owned());
        w("        B m = b_from_bits(bits);".to_owned());
        let blocks = function.blocks;
        w(format!("        if (AB_RARE(ran != 0)) for (int b = 0; b < {blocks}; b++) ran[b] = 0;"));
        for (i, slot, Slot { dtype, .. }) in others {
            let ty = memory_type(dtype);
            w(format!("        {ty} *restrict p{} = ({ty} *)c->slots[{i}] + at;", slot.index()));
        }
        for tape in 0..signature.tapes.len() {
            w(format!("        uint32_t h{tape} = k{tape}->heights[at + lanes_lowest(bits)], top{tape} = h{tape};"));
            w(format!("        uint64_t put{tape} = 0;"));
        }
    }

    fn end_region(&self, function: &RegionFunction<'_>, out: &mut String) {
        let mut w = |text: String| lines(out, [text]);
        // The first group that does not trap has been everywhere: its counts are those of the region.
        w("        ran = 0;".to_owned());
        w("    next:;".to_owned());
        for tape in 0..function.signature.tapes.len() {
            w(format!("        h_store_masked(k{tape}->heights + at, b_from_bits(bits), h_splat(h{tape}));"));
            w(format!("        if (top{tape} > k{tape}->highest) k{tape}->highest = top{tape};"));
            w(format!("        k{tape}->pushes += put{tape};"));
        }
        w("        if (AB_RARE(c->stopped)) return;".to_owned());
        w("    }".to_owned());
        w("}\n".to_owned());
    }

    fn count(&self, block: usize) -> Option<String> {
        Some(format!("if (AB_RARE(ran != 0)) ran[{block}]++;"))
    }

    fn trap_some(&self, bad: &str, site: usize) -> String {
        format!(
            "if (AB_RARE(b_any(b_and(m, {bad})))) {{ m = ab_trap(c, at, m, {bad}, {site}); if (b_none(m)) goto next; }}"
        )
    }

    fn trap_indices(&self, bad: &str, site: usize, index: &str) -> String {
        format!(
            "if (AB_RARE(b_any(b_and(m, {bad})))) {{ m = ab_trap_indices(c, at, m, {bad}, {site}, {index}); \
             if (b_none(m)) goto next; }}"
        )
    }

    fn gather(&self, slot: SlotId, elements: &str, dtype: DType) -> String {
        format!("{}_gather(p{}, {}, m)", prefix(dtype), slot.index(), in_lanes(elements))
    }

    fn scatter(&self, slot: SlotId, elements: &str, dtype: DType, value: &str) -> String {
        format!("{}_scatter(p{}, {}, m, {value});", prefix(dtype), slot.index(), in_lanes(elements))
    }

    fn trap_all(&self, condition: &str, site: usize, index: Option<&str>) -> String {
        let index = index.unwrap_or("0");
        format!("if (AB_RARE({condition})) {{ ab_trap_at(c, at, m, m, {site}, {index}); goto next; }}")
    }

    fn holds(&self, condition: &str) -> String {
        format!("(b_bits({condition}) >> lanes_lowest(b_bits(m)) & 1)")
    }

    fn first(&self, value: &str) -> String {
        format!("ab_first({value}, m)")
    }

    fn load_plain(&self, slot: SlotId) -> String {
        format!("u{}", slot.index())
    }

    fn store_plain(&self, slot: SlotId, value: &str) -> String {
        format!("*p{} = {value};", slot.index())
    }

    fn store_at(&self, slot: SlotId, at: &str, dtype: DType, value: &str) -> String {
        format!("{}_store_masked(p{} + ({at}) * width, m, {value});", prefix(dtype), slot.index())
    }

    fn scratch(&self, name: &str, ty: &str, first: usize) -> String {
        format!("{ty} *restrict const {name} = ({ty} *)((I *)c->scratch + {first});")
    }

    fn stop(&self) -> String {
        "if (AB_RARE(ab_is_stopped(c))) { c->stopped = 1; goto next; }".to_owned()
    }

    fn raise(&self, pile: Pile, high: Option<usize>, full: usize) -> Vec<String> {
        let tape = number(pile);
        let full = self.trap_all(&format!("h{tape} >= k{tape}->levels && !c->grow(c, {tape})"), full, None);
        let high = high.map(|site| self.trap_all(&format!("h{tape} >= c->tape_limit"), site, None));
        high.into_iter().chain([full]).collect()
    }

    fn put(&self, pile: Pile, elements: usize, dtype: DType, at: &str, value: &str) -> String {
        let place = place(number(pile), elements, dtype, at);
        format!("{}_store_masked({place}, m, {value});", prefix(dtype))
    }

    fn pushed(&self, pile: Pile) -> String {
        let tape = number(pile);
        format!(
            "h{tape}++, put{tape} += (unsigned)__builtin_popcount(b_bits(m)); \
             if (h{tape} > top{tape}) top{tape} = h{tape};"
        )
    }

    fn lower(&self, pile: Pile, empty: Option<usize>) -> Vec<String> {
        let tape = number(pile);
        let empty = empty.map(|site| self.trap_all(&format!("h{tape} == 0"), site, None));
        empty.into_iter().chain([format!("h{tape}--;")]).collect()
    }

    fn take(&self, pile: Pile, elements: usize, dtype: DType, at: &str) -> String {
        format!("{}_load({})", prefix(dtype), place(number(pile), elements, dtype, at))
    }

    fn leave(&self, exit: usize, condition: Option<&str>) -> Vec<String> {
        let taken = condition.map(|condition| self.decide(condition, false));
        taken.into_iter().chain([format!("c->left = {exit};"), "goto leave;".to_owned()]).collect()
    }
}

/// The number of a tape: the machine pushes on stacks, whose heights may differ between lanes.
fn number(pile: Pile) -> usize {
    match pile {
        Pile::Tape(tape) => tape,
        Pile::Stack(_) => unreachable!("a region has no stacks"),
    }
}

/// Places of elements of the lanes of a group in a lane buffer.
fn in_lanes(elements: &str) -> String {
    format!("i_add(i_mul({elements}, i_splat(width)), i_iota())")
}

/// The address of an element of the value at the height of a tape.
fn place(tape: usize, elements: usize, dtype: DType, at: &str) -> String {
    let first = if elements == 1 { format!("h{tape}") } else { format!("((int64_t)h{tape} * {elements} + {at})") };
    format!("({} *)k{tape}->memory + (int64_t){first} * width + at", memory_type(dtype))
}
