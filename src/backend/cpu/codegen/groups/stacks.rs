//! Pushes and pops of a group of lanes. Stacks that go in lockstep share the heights, and the lanes that are equally high
//! move together.

use crate::backend::generator::{Kind, LocalId, Op, Writer, memory_type, prefix};
use crate::base::Id as _;
use crate::plan::StackId;
use crate::types::DType;

/// Elements of a value up to which lanes of different heights are gathered and scattered; those of a larger one go level by
/// level. A gather takes about as long as finding the lanes of one more level, and is paid for each element.
const MOST_GATHERED: usize = 3;

/// How an array that is popped is read: `q` points to the first element and `step` is the distance of the next. It stands in
/// the memory of its stack if all lanes pop from one level; else it is put together in an array of its own.
pub(super) fn borrow(local: LocalId, elements: usize, dtype: DType) -> Option<String> {
    let ty = memory_type(dtype);
    let large = elements > MOST_GATHERED && dtype != DType::Bool;
    large.then(|| format!("const {ty} *q{i}; int64_t step{i};", i = local.index()))
}

/// What a pop takes off a stack.
struct Popped {
    local: LocalId,
    elements: usize,
    /// The prefix of the functions, and the type in memory.
    p: char,
    ty: &'static str,
    /// Where the first level of the stack begins, from the lanes of the group on.
    memory: String,
    /// Where the one begins that lanes of the height `level` pop from.
    level: String,
    /// The element at which a loop is.
    place: String,
    borrowed: bool,
}

impl Popped {
    fn of(op: &Op, text: &Writer<'_>) -> Self {
        let (local, _) = op.out.expect("what is popped has a place");
        let (elements, dtype) = (op.turns, text.local_type(local));
        let memory = first_level(stack(op), dtype);
        Popped {
            local,
            elements,
            p: prefix(dtype),
            ty: memory_type(dtype),
            level: format!("{memory} + (int64_t)(level - 1) * ({elements} * width)"),
            memory,
            place: text.local(local, "e"),
            borrowed: text.is_borrowed(local),
        }
    }
}

pub(super) fn pop(ops: &[&Op], text: &mut Writer<'_>) {
    open(stack(ops[0]), text);
    text.line("H h = h_lower(before, m);");
    let popped: Vec<Popped> = ops.iter().map(|op| Popped::of(op, text)).collect();
    let (small, large): (Vec<_>, Vec<_>) = popped.iter().partition(|p| p.elements <= MOST_GATHERED);
    for Popped { elements: n, p, memory, place, .. } in small {
        let taken = format!("{place} = {p}_take({memory} + e * width, {n} * width, h, m, alike, level - 1);");
        text.line(format!("for (int e = 0; e < {n}; e++) {taken}"));
    }
    let (borrowed, own): (Vec<&Popped>, Vec<&Popped>) = large.iter().partition(|p| p.borrowed);
    for Popped { local, level, .. } in &borrowed {
        text.line(format!("q{i} = {level}; step{i} = width;", i = local.index()));
    }
    // The first lanes need no select: what the others get is junk until it is their turn.
    for Popped { elements, p, level, place, .. } in own {
        text.line(format!("for (int e = 0; e < {elements}; e++) {place} = {p}_load({level} + e * width);"));
    }
    if !large.is_empty() {
        text.open("if (!alike) {");
        for Popped { local, elements, p, ty, place, .. } in borrowed {
            let i = local.index();
            text.line(format!("for (int e = 0; e < {elements}; e++) {place} = {p}_load(q{i} + e * step{i});"));
            text.line(format!("q{i} = (const {ty} *)v{i}; step{i} = LANES;"));
        }
        text.open("while (rest &= ~same) {");
        text.line("same = ab_level(before, heights, rest, &level);");
        text.line("B w = b_from_bits(same);");
        for Popped { elements, p, level, place, .. } in large {
            let value = format!("{p}_select(w, {p}_load({level} + e * width), {place})");
            text.line(format!("for (int e = 0; e < {elements}; e++) {place} = {value};"));
        }
        text.close();
        text.close();
    }
    for op in ops {
        text.line(format!("h_store(k{}->heights + at, h);", stack(op).index()));
    }
    text.close();
}

pub(super) fn push(ops: &[&Op], text: &mut Writer<'_>) {
    open(stack(ops[0]), text);
    let (small, large): (Vec<&Op>, Vec<&Op>) = ops.iter().partition(|op| op.turns <= MOST_GATHERED);
    for op in small {
        let (memory, n, p) = pushed(op);
        let put = |element: &str| {
            format!("{p}_put({memory} + e * width, {n} * width, before, m, alike, level, {n} == 1, {element});")
        };
        text.each_element(op, put);
    }
    if !large.is_empty() {
        text.open("for (;;) {");
        text.line("B w = b_from_bits(same);");
        for op in large {
            let (memory, n, p) = pushed(op);
            let place = format!("{memory} + (int64_t)level * ({n} * width) + e * width");
            text.each_element(op, |element| format!("{p}_store_masked({place}, w, {element});"));
        }
        text.line("if (!(rest &= ~same)) break;");
        text.line("same = ab_level(before, heights, rest, &level);");
        text.close();
    }
    text.line("H h = h_raise(before, m);");
    for op in ops {
        let k = stack(op).index();
        text.line(format!("h_store(k{k}->heights + at, h);"));
        text.line(format!("top{k} = h_max(top{k}, h), pushed{k} += (unsigned)__builtin_popcount(b_bits(m));"));
    }
    text.close();
}

/// Opens a block in which the heights of stacks that go in lockstep are known. Where all lanes of the group have trapped,
/// nothing is pushed or popped, and nothing may be computed of what is.
fn open(first: StackId, text: &mut Writer<'_>) {
    text.line("if (AB_RARE(b_none(m))) continue;");
    text.open("{");
    text.line(format!("const uint32_t *heights = k{}->heights + at;", first.index()));
    text.line("H before = h_load(heights);");
    text.line("uint32_t level;");
    text.line("unsigned rest = b_bits(m), same = ab_level(before, heights, rest, &level);");
    text.line("const int alike = same == rest; (void)alike;");
}

fn stack(op: &Op) -> StackId {
    let (Kind::Pop(stack) | Kind::Spill(stack)) = op.kind else { unreachable!("an operation of a stack") };
    stack
}

/// The first level of the stack that is pushed, the elements of the value, and the prefix of its functions.
fn pushed(op: &Op) -> (String, usize, char) {
    let dtype = op.args[0].dtype;
    (first_level(stack(op), dtype), op.turns, prefix(dtype))
}

/// The first level of a stack, from the lanes of the group on.
fn first_level(stack: StackId, dtype: DType) -> String {
    format!("({} *)k{}->memory + at", memory_type(dtype), stack.index())
}
