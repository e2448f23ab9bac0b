//! The frame of machines: a function has the lane of a thread, and its lane buffers stand side by side with those of the other
//! threads of its warp.

use std::fmt::Write as _;

use crate::backend::generator::{
    Access, Limits, Mapped, Pile, RegionFrame, RegionFunction, Stored, StraightFrame, memory_type, prefix,
};
use crate::base::{Id as _, IdVec};
use crate::plan::{ConstantId, Slot, SlotId};
use crate::prim::Draw;
use crate::types::{DType, Precision};
use crate::unit::BlockId;

/// Local variables take 128 KiB of a thread; what is larger stands in memory of 8 MiB a thread.
const LIMITS: Limits = Limits::new(256, 1 << 14, 1 << 14, 1 << 20);

/// How a machine meets the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads {
    pub(super) precision: Precision,
    /// Threads of a warp.
    pub(super) warp: usize,
}

impl Threads {
    /// Bytes of an element of this type.
    fn size(&self, dtype: DType) -> usize {
        match (dtype, self.precision) {
            (DType::Bool, _) => 1,
            (DType::Real, Precision::F32) => 4,
            (DType::Int | DType::Real, _) => 8,
        }
    }

    /// Where the lane buffers of a warp begin in its arena, and what it takes.
    pub(super) fn arena(&self, used: impl Iterator<Item = SlotId>, slots: &IdVec<SlotId, Slot>) -> (Vec<usize>, usize) {
        let mut end = 0;
        let offsets = used.map(|slot| {
            let Slot { dtype, elements, .. } = slots[slot];
            let first = end;
            end += (elements.max(1) * self.size(dtype) * self.warp).next_multiple_of(128.max(8 * self.warp));
            first
        });
        (offsets.collect(), end)
    }

    /// Bytes of a value of so many elements in one lane.
    pub(super) fn bytes(&self, dtype: DType, elements: usize) -> usize {
        elements.max(1) * self.size(dtype)
    }
}

impl Access for Threads {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn has_all(&self) -> bool {
        true
    }

    fn unrolled(&self, turns: usize) -> String {
        format!("AB_UNROLL({turns})")
    }

    fn rolled(&self) -> String {
        "AB_LONG".to_owned()
    }

    fn load(&self, from: Stored, at: &str, dtype: DType) -> String {
        let p = prefix(dtype);
        match from {
            Stored::Slot(s) => format!("{p}_load(p{} + ({at}) * width)", s.index()),
            Stored::Constant(c) => format!("{p}_splat(c{}[{at}])", c.index()),
            Stored::Uniform(_) | Stored::Stack(_) => {
                unreachable!("uniform variables are those of the function, and what is popped is copied")
            }
        }
    }

    fn store(&self, slot: SlotId, looped: bool, dtype: DType, value: &str) -> String {
        self.store_at(slot, if looped { "e" } else { "0" }, dtype, value)
    }

    fn constant(&self, constant: ConstantId) -> String {
        format!("c{}", constant.index())
    }

    fn draw(&self, function: &str, number: &str) -> String {
        format!("{function}(c->seed, lane, i_add(draw, {number}))")
    }
}

impl RegionFrame for Threads {
    fn begin_region(&self, function: &RegionFunction<'_>, out: &mut String) {
        let (signature, storage) = (function.signature, function.storage);
        let mut w = |text: String| {
            out.push_str(&text);
            out.push('\n');
        };
        w("#ifdef __CUDACC__".to_owned());
        w(format!(
            "extern \"C\" __global__ void __launch_bounds__(AB_THREADS, 1) {}(const __grid_constant__ struct ab_run run) {{",
            function.name
        ));
        w("    const struct ab_run *const c = &run;".to_owned());
        w("    AB_FIND_THREAD();".to_owned());
        w("    ab_counts_begin(c);".to_owned());
        w("    ab_scope_begin();".to_owned());
        w("    AB_LEAVE_EARLY();".to_owned());
        w("#else".to_owned());
        w(format!("void {}(const struct ab_run *const c, const uint32_t thread) {{", function.name));
        w("#endif".to_owned());
        w("    enum { width = AB_WIDTH };".to_owned());
        w("    const B m = b_splat(1); (void)m;".to_owned());
        w("    const uint32_t warp_number = thread / AB_WIDTH, in_warp = thread % AB_WIDTH;".to_owned());
        w("    const uint64_t threads = c->threads;".to_owned());
        let (offsets, bytes) = self.arena(signature.slots.iter().copied(), storage.slots());
        w(format!("    char *const arena = c->arena + (uint64_t)warp_number * {bytes}; (void)arena, (void)in_warp;"));
        w(format!("    AB_FIND_COLUMN({bytes});"));
        for (i, constant) in signature.constants.iter().enumerate() {
            let ty = memory_type(storage.constant_type(*constant));
            let c = constant.index();
            w(format!("    const {ty} *const c{c} = (const {ty} *)c->constants[{i}]; AB_GLOBAL(c{c});"));
        }
        for (slot, offset) in signature.slots.iter().zip(offsets) {
            let (ty, slot) = (memory_type(storage.slots()[*slot].dtype), slot.index());
            w(format!("    {ty} *const p{slot} = ({ty} *)(arena + {offset}) + in_warp; AB_GLOBAL(p{slot});"));
        }
        let piles = piles(function);
        for (i, pile) in piles.iter().enumerate() {
            w(format!("    void *const k{pile} = c->piles[{i}]; (void)k{pile}; AB_GLOBAL(k{pile});"));
            w(format!("    const uint32_t levels{pile} = c->levels[{i}]; (void)levels{pile};"));
            w(format!("    uint32_t h{pile} = c->heights[{i} * threads + thread];"));
        }
        w("    uint32_t *const notes = c->notes + thread; (void)notes;".to_owned());
        w("    uint32_t pc = AB_IS_HELPER ? AB_NONE : c->pcs[thread], blocked = AB_NONE, site = c->sites[thread];"
            .to_owned());
        w("    uint64_t position = c->positions[thread];".to_owned());
        w("    int64_t index = c->indices[thread];".to_owned());
        w("    I draw = c->draws[thread];".to_owned());
        w("    I lane = position == AB_NOBODY ? 0 : (I)c->numbers[position]; (void)lane, (void)draw;".to_owned());
        w("    uint64_t *const told = c->told + (uint64_t)warp_number * AB_TOLD * AB_WIDTH + in_warp;".to_owned());
        w("    uint64_t steps = c->steps[thread];".to_owned());
        w("    I *const scratch = (I *)c->scratch + (uint64_t)thread * AB_SCRATCH; (void)scratch;".to_owned());
        w("    struct ab_warp warp = {0};".to_owned());
        let mut reset = String::new();
        piles.iter().for_each(|pile| _ = write!(reset, "h{pile} = 0, "));
        w(format!(
            "#define AB_BEGIN() {reset}draw = c->drawn ? (I)c->drawn[position] : 0, steps = 0, lane = (I)c->numbers[position]"
        ));
        w("#define ab_returns(level) (((const uint32_t *)kr)[(uint64_t)(level) * threads + thread])".to_owned());
        w("#define ab_kept(at) (c->kept[(uint64_t)(at) * threads + thread])".to_owned());
        w("#define ab_notes(level, at) (notes[((uint64_t)(level) * AB_NOTES + (at)) * threads])".to_owned());
    }

    fn end_region(&self, function: &RegionFunction<'_>, out: &mut String) {
        *out += "    c->pcs[thread] = pc == AB_BLOCKED ? blocked : pc;\n";
        *out += "    c->positions[thread] = position;\n    c->draws[thread] = draw;\n";
        *out += "    c->sites[thread] = site;\n    c->indices[thread] = index;\n    c->steps[thread] = steps;\n";
        for (i, pile) in piles(function).iter().enumerate() {
            *out += &format!("    c->heights[{i} * threads + thread] = h{pile};\n");
        }
        *out += "}\n\n";
    }

    fn count(&self, _: usize) -> Option<String> {
        None
    }

    fn trap_some(&self, bad: &str, site: usize) -> String {
        self.trap_all(bad, site, None)
    }

    fn trap_indices(&self, bad: &str, site: usize, index: &str) -> String {
        self.trap_all(bad, site, Some(index))
    }

    fn gather(&self, slot: SlotId, elements: &str, dtype: DType) -> String {
        format!("{}_load(p{} + ({elements}) * width)", prefix(dtype), slot.index())
    }

    fn scatter(&self, slot: SlotId, elements: &str, dtype: DType, value: &str) -> String {
        self.store_at(slot, elements, dtype, value)
    }

    fn trap_all(&self, condition: &str, site: usize, index: Option<&str>) -> String {
        format!("if (AB_RARE({condition})) AB_TRAPS({site}, {})", index.unwrap_or("0"))
    }

    fn holds(&self, condition: &str) -> String {
        condition.to_owned()
    }

    fn first(&self, value: &str) -> String {
        value.to_owned()
    }

    fn load_plain(&self, _: SlotId) -> String {
        unreachable!("uniform variables do not outlive the function")
    }

    fn store_plain(&self, _: SlotId, _: &str) -> String {
        unreachable!("uniform variables do not outlive the function")
    }

    fn store_at(&self, slot: SlotId, at: &str, dtype: DType, value: &str) -> String {
        format!("{}_store(p{} + ({at}) * width, {value});", prefix(dtype), slot.index())
    }

    fn scratch(&self, name: &str, ty: &str, first: usize) -> String {
        format!("{ty} *const {name} = ({ty} *)(scratch + {first});")
    }

    fn stop(&self) -> String {
        "AB_LOOK".to_owned()
    }

    fn raise(&self, pile: Pile, high: Option<usize>, full: usize) -> Vec<String> {
        let pile = name(pile);
        let high = high.map(|site| self.trap_all(&format!("h{pile} >= c->tape_limit"), site, None));
        high.into_iter()
            .chain([format!("if (AB_RARE(h{pile} >= levels{pile})) AB_OVERFLOWS(AB_PILE_{pile}, {full})")])
            .collect()
    }

    fn put(&self, pile: Pile, elements: usize, dtype: DType, at: &str, value: &str) -> String {
        format!("{}_store({}, {value});", prefix(dtype), place(pile, elements, dtype, at))
    }

    fn pushed(&self, pile: Pile) -> String {
        format!("h{}++;", name(pile))
    }

    fn lower(&self, pile: Pile, empty: Option<usize>) -> Vec<String> {
        let pile = name(pile);
        let empty = empty.map(|site| self.trap_all(&format!("h{pile} == 0"), site, None));
        empty.into_iter().chain([format!("h{pile}--;")]).collect()
    }

    fn take(&self, pile: Pile, elements: usize, dtype: DType, at: &str) -> String {
        format!("{}_load({})", prefix(dtype), place(pile, elements, dtype, at))
    }

    fn leave(&self, _: usize, _: Option<&str>) -> Vec<String> {
        unreachable!("a machine has all blocks")
    }
}

impl StraightFrame for Threads {
    fn entry(&self) -> String {
        unreachable!("lanes are scheduled")
    }

    fn visit(&self, _: usize) -> Vec<String> {
        unreachable!("lanes are scheduled")
    }

    fn call(&self, ret: BlockId, deep: usize, full: usize) -> Vec<String> {
        vec![
            self.trap_all("hr >= c->deepest", deep, None),
            format!("if (AB_RARE(hr >= levelsr)) AB_OVERFLOWS(AB_PILE_r, {full})"),
            format!("((uint32_t *)kr)[(uint64_t)hr * threads + thread] = {};", ret.index()),
            "hr++;".to_owned(),
        ]
    }

    fn note(&self, _: BlockId, piles: &[Pile]) -> String {
        let note = |(at, pile): (usize, &Pile)| format!("ab_notes(hr, {at}) = h{};", name(*pile));
        let notes: Vec<String> = piles.iter().enumerate().map(note).collect();
        // There is room for the notes of a call where there is room for its address.
        format!("if (hr < levelsr) {{ {} }}", notes.join(" "))
    }

    fn height(&self, pile: Pile) -> String {
        format!("h{}", name(pile))
    }

    fn is_outermost(&self) -> String {
        "hr == 0".to_owned()
    }

    fn returned(&self) -> String {
        "ab_returns(--hr)".to_owned()
    }

    fn drew(&self, draws: usize) -> String {
        format!("draw = i_add(draw, {draws});")
    }

    fn map(&self, _: Mapped, _: &[String], _: &str, _: usize) -> String {
        unreachable!("functions of elements are text")
    }

    fn map_twins(&self, _: &str, _: &str, _: &str, _: usize) -> String {
        unreachable!("functions of elements are text")
    }

    fn sum_and_map(&self, _: &str, _: &str, _: &str, _: usize) -> String {
        unreachable!("functions of elements are text")
    }

    fn random(&self, _: Draw, _: &str, _: usize) -> String {
        unreachable!("draws are text")
    }

    fn ahead(&self, _: Draw, _: &str, _: &str) -> [String; 2] {
        unreachable!("draws are text")
    }

    fn kernel(&self, _: usize, _: &[String], _: &str) -> String {
        unreachable!("there are no kernels")
    }

    fn tell(&self, _: usize, _: &[String]) -> String {
        unreachable!("messages are told in records")
    }
}

/// The names of all that a function pushes on, in the order in which it is called with them: tapes, the memory of stack
/// variables, and the return addresses.
fn piles(function: &RegionFunction<'_>) -> Vec<String> {
    let tapes = (0..function.signature.tapes.len()).map(Pile::Tape);
    let stacks = (0..function.signature.stacks.len()).map(Pile::Stack);
    tapes.chain(stacks).map(name).chain(["r".to_owned()]).collect()
}

/// The definitions of the numbers of these piles.
pub(super) fn pile_numbers(tapes: usize, stacks: usize) -> String {
    let names = (0..tapes).map(Pile::Tape).chain((0..stacks).map(Pile::Stack)).map(name).chain(["r".to_owned()]);
    names.enumerate().fold(String::new(), |text, (number, name)| text + &format!("#define AB_PILE_{name} {number}\n"))
}

fn name(pile: Pile) -> String {
    match pile {
        Pile::Tape(tape) => tape.to_string(),
        Pile::Stack(stack) => format!("s{stack}"),
    }
}

/// The address of an element of the value on top, or of that which is put there.
fn place(pile: Pile, elements: usize, dtype: DType, at: &str) -> String {
    let name = name(pile);
    let element =
        if elements == 1 { format!("(uint64_t)h{name}") } else { format!("((uint64_t)h{name} * {elements} + {at})") };
    format!("({} *)k{name} + {element} * threads + thread", memory_type(dtype))
}
