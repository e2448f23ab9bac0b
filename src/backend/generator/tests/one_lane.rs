//! A frame for one lane: a function is called for one lane, has its own scalars, and says where the lane goes.
//!
//! The text of the statements is the same as that of generated C for a CPU: over the groups of `lanes.h`, which have one
//! lane here.

use crate::backend::generator::{
    Access, Exit, Frame, Function, Kind, Limits, LocalId, Op, Route, Stored, Writer, memory_type, prefix,
};
use crate::base::Id as _;
use crate::plan::{ConstantId, SlotId, StackId};
use crate::types::DType;

/// What every text begins with: what a lane has. All is found by the numbers of the plan.
pub(super) const PRELUDE: &str = r#"#include "lanes.h"
#include "vmath.h"
_Static_assert(LANES == 1, "a function is called for one lane");
struct stack {
    void *memory;
    int64_t height;
};
struct lane {
    void *const *slots;
    const void *const *constants;
    struct stack *stacks;
    uint64_t seed;
    int64_t number, draws;
    int64_t *returns;
    int64_t depth, deepest;
    int64_t site;
};
"#;

/// Where a lane goes that is done, and one that trapped.
pub(super) const DONE: i64 = -1;
pub(super) const TRAPPED: i64 = -2;

/// The frame.
pub(super) struct OneLane;

impl Access for OneLane {
    fn limits(&self) -> Limits {
        Limits::new(256, 1 << 14, 1 << 12, 0)
    }

    fn load(&self, from: Stored, at: &str, dtype: DType) -> String {
        let p = prefix(dtype);
        match from {
            Stored::Slot(s) | Stored::Uniform(s) => format!("{p}_load(p{} + {at})", s.index()),
            Stored::Constant(c) => format!("{p}_load(c{} + {at})", c.index()),
            Stored::Stack(l) => format!("{p}_load(q{} + {at})", l.index()),
        }
    }

    fn store(&self, slot: SlotId, looped: bool, dtype: DType, value: &str) -> String {
        let at = if looped { "e" } else { "0" };
        format!("{}_store(p{} + {at}, {value});", prefix(dtype), slot.index())
    }

    fn constant(&self, constant: ConstantId) -> String {
        format!("c{}", constant.index())
    }

    fn draw(&self, function: &str, number: &str) -> String {
        format!("{function}(c->seed, lane, i_add(draw, {number}))")
    }
}

impl Frame for OneLane {
    fn begin(&self, function: &Function<'_>, out: &mut String) {
        *out += &format!("int64_t {}(struct lane *c) {{\n", function.name);
        for slot in &function.signature.slots {
            let ty = memory_type(function.slot(*slot).dtype);
            *out += &format!("        {ty} *p{0} = c->slots[{0}];\n", slot.index());
        }
        for constant in &function.signature.constants {
            let ty = memory_type(function.constant_type(*constant));
            *out += &format!("        const {ty} *c{0} = c->constants[{0}];\n", constant.index());
        }
        for stack in &function.signature.stacks {
            *out += &format!("        struct stack *k{0} = &c->stacks[{0}];\n", stack.index());
        }
        if let Some(draws) = function.draws() {
            *out += "        const I lane = c->number, draw = c->draws;\n";
            *out += &format!("        c->draws += {draws};\n");
        }
    }

    fn end(&self, _: &Function<'_>, out: &mut String) {
        *out += "}\n\n";
    }

    fn trap(&self, bad: &str, site: usize) -> String {
        format!("if ({bad}) {{ c->site = {site}; return {TRAPPED}; }}")
    }

    fn decide(&self, condition: &str, routes: bool) -> String {
        assert!(routes, "a function is all of its block");
        format!("const B went = {condition};")
    }

    fn borrow(&self, local: LocalId, elements: usize, dtype: DType) -> Option<String> {
        (elements > 1).then(|| format!("const {} *q{};", memory_type(dtype), local.index()))
    }

    fn pop(&self, ops: &[&Op], text: &mut Writer<'_>) {
        for op in ops {
            let (stack, n) = (stack(op), op.turns);
            let (local, _) = op.out.expect("what is popped has a place");
            let (ty, p) = (memory_type(text.local_type(local)), prefix(text.local_type(local)));
            let k = stack.index();
            text.line(format!("k{k}->height--;"));
            let first = format!("(const {ty} *)k{k}->memory + k{k}->height * {n}");
            if text.is_borrowed(local) {
                text.line(format!("q{} = {first};", local.index()));
            } else {
                let place = text.local(local, "e");
                text.line(format!("for (int e = 0; e < {n}; e++) {place} = {p}_load({first} + e);"));
            }
        }
    }

    fn push(&self, ops: &[&Op], text: &mut Writer<'_>) {
        for op in ops {
            let (k, n, dtype) = (stack(op).index(), op.turns, op.args[0].dtype);
            let place = format!("({} *)k{k}->memory + k{k}->height * {n} + e", memory_type(dtype));
            text.each_element(op, |element| format!("{}_store({place}, {element});", prefix(dtype)));
            text.line(format!("k{k}->height++;"));
        }
    }

    fn send(&self, route: &Route<'_>, text: &mut Writer<'_>) {
        let unit = |block| route.units[block].0;
        match route.exit {
            Exit::Jump(to) => text.line(format!("return {};", unit(to))),
            Exit::Branch(yes, no) => text.line(format!("return went ? {} : {};", unit(yes), unit(no))),
            Exit::Call(target, ret, _) => {
                let site = text.signature.sites.len();
                text.line(format!("if (c->depth >= c->deepest) {{ c->site = {site}; return {TRAPPED}; }}"));
                text.line(format!("c->returns[c->depth++] = {};", unit(ret)));
                text.line(format!("return {};", unit(target)));
            }
            Exit::Return => text.line(format!("return c->depth ? c->returns[--c->depth] : {DONE};")),
            Exit::Halt => text.line(format!("return {DONE};")),
        }
    }
}

fn stack(op: &Op) -> StackId {
    let (Kind::Pop(stack) | Kind::Spill(stack)) = op.kind else { unreachable!("an operation of a stack") };
    stack
}
