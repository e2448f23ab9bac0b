//! The frame of straight code: a function has the lane of a shard of one until that comes to a block without a text, or
//! has come to a unit so often.

use crate::backend::generator::{
    Access, Limits, Mapped, Pile, RegionFrame, RegionFunction, Stored, StraightFrame, memory_type, prefix,
};
use crate::base::Id as _;
use crate::plan::{ConstantId, SlotId};
use crate::prim::Draw;
use crate::types::DType;
use crate::unit::BlockId;

/// Eight bytes each, the local variables take 512 KiB of the stack of a worker, which has 2 MiB. The scratch of 8 MiB is a
/// share of the last cache, and far less than steps take for arrays that do not run tile by tile.
const LIMITS: Limits = Limits::new(256, 1 << 14, 64 << 10, 1 << 20);

/// How straight C meets the machine on a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Straight;

impl Access for Straight {
    fn limits(&self) -> Limits {
        LIMITS
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

impl RegionFrame for Straight {
    fn begin_region(&self, function: &RegionFunction<'_>, out: &mut String) {
        let (signature, storage) = (function.signature, function.storage);
        let (tapes, stacks) = (signature.tapes.len(), signature.stacks.len());
        let mut w = |text: String| {
            out.push_str(&text);
            out.push('\n');
        };
        w(format!("_Static_assert(LANES == 1, \"it has one lane\");\nvoid {}(struct ab_call *c) {{", function.name));
        w(format!("    enum {{ TAPES = {tapes}, STACKS = {stacks}, width = 1, at = 0 }};"));
        w("    const B m = b_splat(1);".to_owned());
        for (i, constant) in signature.constants.iter().enumerate() {
            let ty = memory_type(storage.constant_type(*constant));
            w(format!("    const {ty} *c{} = c->constants[{i}];", constant.index()));
        }
        for (i, slot) in signature.slots.iter().enumerate() {
            let (ty, slot) = (memory_type(storage.slots()[*slot].dtype), slot.index());
            w(format!("    {ty} *restrict p{slot} = ({ty} *)c->slots[{i}] + at;"));
        }
        for (i, pile) in piles(function).iter().enumerate() {
            w(format!("    struct ab_stack *k{pile} = &c->stacks[{i}];"));
            w(format!("    uint32_t h{pile} = k{pile}->heights[at], top{pile} = h{pile};"));
        }
        w("    uint32_t looks = AB_LOOKS;".to_owned());
        w("    const I lane = c->numbers[at];".to_owned());
        w("    I draw = c->draws[at];".to_owned());
    }

    fn end_region(&self, function: &RegionFunction<'_>, out: &mut String) {
        for pile in piles(function) {
            *out += &format!("    k{pile}->heights[at] = h{pile};\n");
            *out += &format!("    if (top{pile} > k{pile}->highest) k{pile}->highest = top{pile};\n");
        }
        *out += "    c->draws[at] = draw;\n    (void)lane, (void)m, (void)looks;\n}\n\n";
    }

    fn count(&self, _: usize) -> Option<String> {
        None
    }

    fn trap_some(&self, bad: &str, site: usize) -> String {
        self.trap_all(&format!("b_any({bad})"), site, None)
    }

    fn trap_indices(&self, bad: &str, site: usize, index: &str) -> String {
        self.trap_all(&format!("b_any({bad})"), site, Some(index))
    }

    fn gather(&self, slot: SlotId, elements: &str, dtype: DType) -> String {
        format!("{}_load(p{} + ({elements}) * width)", prefix(dtype), slot.index())
    }

    fn scatter(&self, slot: SlotId, elements: &str, dtype: DType, value: &str) -> String {
        self.store_at(slot, elements, dtype, value)
    }

    fn trap_all(&self, condition: &str, site: usize, index: Option<&str>) -> String {
        let index = index.unwrap_or("0");
        format!("if (AB_RARE({condition})) {{ ab_trap_at(c, at, m, m, {site}, {index}); goto leave; }}")
    }

    fn holds(&self, condition: &str) -> String {
        format!("b_any({condition})")
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
        format!("{ty} *restrict const {name} = ({ty} *)((I *)c->scratch + {first});")
    }

    fn stop(&self) -> String {
        "AB_LOOK_AT_STOP".to_owned()
    }

    fn raise(&self, pile: Pile, high: Option<usize>, full: usize) -> Vec<String> {
        let name = name(pile);
        let at = match pile {
            Pile::Tape(tape) => tape.to_string(),
            Pile::Stack(stack) => format!("TAPES + {stack}"),
        };
        let full = self.trap_all(&format!("h{name} >= k{name}->levels && !c->grow(c, {at})"), full, None);
        let high = high.map(|site| self.trap_all(&format!("h{name} >= c->tape_limit"), site, None));
        high.into_iter().chain([full]).collect()
    }

    fn put(&self, pile: Pile, elements: usize, dtype: DType, at: &str, value: &str) -> String {
        format!("{}_store({}, {value});", prefix(dtype), place(pile, elements, dtype, at))
    }

    fn pushed(&self, pile: Pile) -> String {
        let pile = name(pile);
        format!("if (++h{pile} > top{pile}) top{pile} = h{pile};")
    }

    fn lower(&self, pile: Pile, empty: Option<usize>) -> Vec<String> {
        let pile = name(pile);
        let empty = empty.map(|site| self.trap_all(&format!("h{pile} == 0"), site, None));
        empty.into_iter().chain([format!("h{pile}--;")]).collect()
    }

    fn take(&self, pile: Pile, elements: usize, dtype: DType, at: &str) -> String {
        format!("{}_load({})", prefix(dtype), place(pile, elements, dtype, at))
    }

    fn leave(&self, exit: usize, _: Option<&str>) -> Vec<String> {
        vec![format!("c->left = {exit};"), "goto leave;".to_owned()]
    }
}

impl StraightFrame for Straight {
    fn entry(&self) -> String {
        "c->entry".to_owned()
    }

    fn visit(&self, exit: usize) -> Vec<String> {
        let leave = self.leave(exit, None).join(" ");
        vec![format!("if (AB_RARE(c->visits <= 0)) {{ {leave} }}"), "c->visits--;".to_owned()]
    }

    fn call(&self, ret: BlockId, deep: usize, full: usize) -> Vec<String> {
        vec![
            self.trap_all("hr >= c->deepest", deep, None),
            self.trap_all("hr >= kr->levels && !c->grow(c, TAPES + STACKS)", full, None),
            format!("((uint32_t *)kr->memory)[hr * width + at] = {};", ret.index()),
            "if (++hr > topr) topr = hr;".to_owned(),
        ]
    }

    fn note(&self, ret: BlockId, piles: &[Pile]) -> String {
        let heights: Vec<String> = piles.iter().map(|pile| format!("h{}", name(*pile))).collect();
        let heights = heights.join(", ");
        format!("c->note(c, {}, hr, (const uint32_t[]){{{heights}}});", ret.index())
    }

    fn height(&self, pile: Pile) -> String {
        format!("h{}", name(pile))
    }

    fn is_outermost(&self) -> String {
        "hr == 0".to_owned()
    }

    fn returned(&self) -> String {
        "((const uint32_t *)kr->memory)[--hr * width + at]".to_owned()
    }

    fn drew(&self, draws: usize) -> String {
        format!("draw = i_add(draw, {draws});")
    }

    fn map(&self, function: Mapped, operands: &[String], to: &str, elements: usize) -> String {
        let (map, number) = match function {
            Mapped::Unary(f) => ("map1", f as usize),
            Mapped::Binary(f) => ("map2", f as usize),
        };
        format!("c->{map}({number}, {}, {to}, {elements});", operands.join(", "))
    }

    fn map_twins(&self, operand: &str, log1p_exp: &str, inv_logit: &str, elements: usize) -> String {
        format!("c->twins({operand}, {log1p_exp}, {inv_logit}, {elements});")
    }

    fn sum_and_map(&self, operand: &str, sum: &str, inv_logit: &str, elements: usize) -> String {
        format!("c->sum_and_map({operand}, {sum}, {inv_logit}, {elements});")
    }

    fn random(&self, draw: Draw, to: &str, elements: usize) -> String {
        format!("c->random({}, c->seed, lane, draw, {to}, {elements});", draw as i64)
    }

    fn ahead(&self, draw: Draw, name: &str, one: &str) -> [String; 2] {
        let is_ahead = format!("ab_is_ahead(c, &{name}, {}, lane, draw)", draw as i64);
        let next = format!("{is_ahead} ? {name}.draws[(uint64_t)draw - {name}.first] : {one}");
        [format!("struct ab_ahead {name} = {{0}};"), next]
    }

    fn tell(&self, number: usize, values: &[String]) -> String {
        format!("c->tell(c, {number}, (const void *const[]){{{}}});", values.join(", "))
    }

    fn kernel(&self, number: usize, operands: &[String], to: &str) -> String {
        format!("c->kernel(c, {number}, (const void *const[]){{{}}}, {to});", operands.join(", "))
    }
}

/// The names of all that a function pushes on, in the order in which it is called with them: tapes, the memory of stack
/// variables, and the return addresses.
fn piles(function: &RegionFunction<'_>) -> Vec<String> {
    let tapes = (0..function.signature.tapes.len()).map(Pile::Tape);
    let stacks = (0..function.signature.stacks.len()).map(Pile::Stack);
    tapes.chain(stacks).map(name).chain(["r".to_owned()]).collect()
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
    let first =
        if elements == 1 { format!("(int64_t)h{name}") } else { format!("((int64_t)h{name} * {elements} + {at})") };
    format!("({} *)k{name}->memory + {first} * width + at", memory_type(dtype))
}
