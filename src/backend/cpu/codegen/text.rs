//! The C text of a segment.

use std::collections::HashMap;
use std::fmt::Write as _;

use indexmap::IndexSet;

use crate::backend::cpu::codegen::functions::{self, Function, group_type, memory_type, prefix};
use crate::backend::cpu::codegen::schedule::{Group, Schedule, schedule};
use crate::backend::cpu::codegen::segment::{Exit, Lockstep, Route};
use crate::backend::cpu::codegen::ssa::{Base, Fold, Kind, Local, LocalId, Op, Products, Ssa, Value};
use crate::base::{Id as _, IdVec};
use crate::plan::{Constant, ConstantId, Globals, Slot, SlotId, StackId, UnitId};
use crate::prim::{Draw, Prim, Reduction};
use crate::run::TrapKind;
use crate::types::{DType, Scalar};

/// What a function is called with, beside its text.
#[derive(Clone, Debug, Default)]
pub(super) struct Signature {
    /// The lane buffers, in the order in which the call hands them over.
    pub(super) slots: IndexSet<SlotId>,
    /// The shared values.
    pub(super) constants: IndexSet<ConstantId>,
    /// The stacks.
    pub(super) stacks: IndexSet<StackId>,
    /// What traps are: the step, counted from the first of the segment, and the kind.
    pub(super) sites: Vec<(usize, TrapKind)>,
}

/// Appends the function to `out`.
pub(super) fn function(
    name: &str,
    ssa: &Ssa<'_>,
    (lockstep, globals, slots): (&Lockstep, &Globals, &IdVec<SlotId, Slot>),
    route: Option<&Route<'_>>,
    out: &mut String,
) -> Signature {
    let schedule = schedule(ssa, lockstep);
    let mut w = Writer {
        route,
        ssa,
        globals,
        slots,
        schedule: &schedule,
        borrowed: borrowed(ssa),
        signature: Signature::default(),
        body: String::new(),
        loaded: HashMap::new(),
        turns: 1,
        indent: 8,
        names: 0,
        pushed: IndexSet::new(),
    };
    for group in &schedule.groups {
        w.group(group);
    }
    let exits = w.send_on();
    w.finish(name, &exits, out)
}

/// The arrays that are popped, and read where they stand: `q` points to the first element and `step` is the distance of the next.
/// They stand in the memory of their stack if all lanes pop from one level, and nothing is pushed there as long as they are
/// read; else they are put together in an array of their own.
fn borrowed(ssa: &Ssa<'_>) -> IdVec<LocalId, bool> {
    let spilled = |stack: StackId| ssa.ops.values().any(|op| matches!(op.kind, Kind::Spill(s) if s == stack));
    let popped = |local: &Local| match &local.made_by[..] {
        [made] => matches!(ssa.ops[*made].kind, Kind::Pop(stack) if !spilled(stack)),
        _ => false,
    };
    ssa.locals.values().map(|l| l.elements > MOST_GATHERED && l.dtype != DType::Bool && popped(l)).collect()
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

struct Writer<'a> {
    route: Option<&'a Route<'a>>,
    ssa: &'a Ssa<'a>,
    globals: &'a Globals,
    slots: &'a IdVec<SlotId, Slot>,
    schedule: &'a Schedule,
    /// By local: see [`borrowed`].
    borrowed: IdVec<LocalId, bool>,
    signature: Signature,
    body: String,
    /// What the loop at hand has loaded: the variable of each operand that stands in memory.
    loaded: HashMap<(u8, u32, usize, bool), String>,
    /// Elements that the loop at hand goes through.
    turns: usize,
    indent: usize,
    names: usize,
    /// The stacks that are pushed.
    pushed: IndexSet<StackId>,
}

impl Products {
    /// The function that adds a product to a sum.
    fn step(self) -> &'static str {
        match self {
            Products::Ordinary => "r_fma",
            Products::ChainRule => "r_chain_fma",
        }
    }
}

impl Writer<'_> {
    fn line(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.body, "{:indent$}{}", "", text.as_ref(), indent = self.indent);
    }

    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("x{}", self.names)
    }

    fn finish(self, name: &str, exits: &Exits, out: &mut String) -> Signature {
        let Signature { slots, constants, stacks, sites } = &self.signature;
        let mut w = |text: String| {
            out.push_str(&text);
            out.push('\n');
        };
        w(format!("void {name}(struct ab_call *c) {{"));
        w("    const int64_t width = c->width;".to_owned());
        for (i, constant) in constants.iter().enumerate() {
            let ty = memory_type(self.constant_type(*constant));
            w(format!("    const {ty} *c{} = c->constants[{i}];", constant.index()));
        }
        for (i, stack) in stacks.iter().enumerate() {
            w(format!("    struct ab_stack *k{} = &c->stacks[{i}];", stack.index()));
        }
        for stack in &self.pushed {
            w(format!("    H top{0} = h_none(); uint64_t pushed{0} = 0;", stack.index()));
        }
        match self.route {
            Some(route) => exits.begin(route, &mut w),
            None => {
                w("    for (int64_t at = 0; at < width; at += LANES) {".to_owned());
                w("        unsigned bits = ab_bits(c->mask, at);".to_owned());
            }
        }
        w("        if (!bits) continue;".to_owned());
        w("        B m = b_from_bits(bits);".to_owned());
        for (i, slot) in slots.iter().enumerate() {
            let Slot { dtype, uniform, .. } = self.slots[*slot];
            let ty = memory_type(dtype);
            let at = if uniform { "" } else { " + at" };
            w(format!("        {ty} *restrict p{} = ({ty} *)c->slots[{i}]{at};", slot.index()));
        }
        if self.ssa.draws > 0 {
            w("        I lane = i_load(c->numbers + at), draw = i_load(c->draws + at);".to_owned());
        }
        for (id, local) in self.ssa.locals.iter() {
            if self.schedule.kept[id] {
                let ty = group_type(local.dtype);
                let array =
                    if Schedule::is_array(self.ssa, id) { format!("[{}]", local.elements) } else { String::new() };
                w(format!("        {ty} v{}{array};", id.index()));
                if self.borrowed[id] {
                    let ty = memory_type(local.dtype);
                    w(format!("        const {ty} *q{i}; int64_t step{i};", i = id.index()));
                }
            }
        }
        out.push_str(&self.body);
        let mut w = |text: String| {
            out.push_str(&text);
            out.push('\n');
        };
        if self.ssa.draws > 0 {
            w(format!("        i_store_masked(c->draws + at, m, i_add(draw, i_splat({})));", self.ssa.draws));
        }
        w("        (void)m;".to_owned());
        w("    }".to_owned());
        if self.route.is_some() {
            exits.end(&mut w);
        }
        for stack in &self.pushed {
            w(format!("    ab_pushed(k{0}, top{0}, pushed{0});", stack.index()));
        }
        w("}\n".to_owned());
        debug_assert!(sites.len() < u32::MAX as usize, "sites are numbered with 32 bits");
        self.signature
    }

    fn constant_type(&self, constant: ConstantId) -> DType {
        match self.globals.constants[constant] {
            Constant::Shared(s) => self.globals.units.shared[s].ty.dtype,
            Constant::Literal(scalar) => scalar.dtype(),
        }
    }

    /// The statements of a group.
    fn group(&mut self, group: &Group) {
        self.loaded.clear();
        let Some(turns) = group.turns else {
            let ops: Vec<&Op> = group.ops.iter().map(|o| &self.ssa.ops[*o]).collect();
            return self.alone(&ops);
        };
        for op in &group.ops {
            let op = &self.ssa.ops[*op];
            if let (Kind::Reduce(fold), Some((local, _))) = (op.kind, op.out) {
                self.start_of(fold, local, op);
            }
        }
        self.turns = turns;
        if turns > 1 {
            self.line(format!("for (int e = 0; e < {turns}; e++) {{"));
            self.indent += 4;
        }
        let (stores, others): (Vec<&Op>, Vec<&Op>) =
            group.ops.iter().map(|o| &self.ssa.ops[*o]).partition(|op| matches!(op.kind, Kind::Store(_)));
        for op in others.into_iter().chain(stores) {
            self.in_loop(op);
        }
        if turns > 1 {
            self.indent -= 4;
            self.line("}");
        }
        self.turns = 1;
        self.loaded.clear();
    }

    /// The element of a value at which the loop is, as an expression.
    fn element(&mut self, value: &Value) -> String {
        let at = if value.spread || self.turns == 1 {
            value.offset.to_string()
        } else if value.offset == 0 {
            "e".to_owned()
        } else {
            format!("e + {}", value.offset)
        };
        self.element_at(value, &at)
    }

    /// The element of a value at a place, as an expression.
    fn element_at(&mut self, value: &Value, at: &str) -> String {
        let p = prefix(value.dtype);
        let key = match value.base {
            Base::Literal(scalar) => return literal(scalar),
            Base::Local(l) if self.borrowed[l] => (3, l.0, value.offset, value.spread),
            Base::Local(l) => return self.local(l, at),
            Base::Slot(s) => (0, s.0, value.offset, value.spread),
            Base::Uniform(s) => (1, s.0, value.offset, value.spread),
            Base::Constant(c) => (2, c.0, value.offset, value.spread),
        };
        // Loops of their own take each element once.
        let in_loop = at.starts_with('e') || at.bytes().all(|b| b.is_ascii_digit());
        if let Some(name) = self.loaded.get(&key).filter(|_| in_loop) {
            return name.clone();
        }
        let text = match value.base {
            Base::Slot(s) => {
                self.signature.slots.insert(s);
                let at = if at == "0" { String::new() } else { format!(" + ({at}) * width") };
                format!("{p}_load(p{}{at})", s.index())
            }
            Base::Uniform(s) => {
                self.signature.slots.insert(s);
                format!("{p}_splat(p{}[{at}])", s.index())
            }
            Base::Constant(c) => {
                self.signature.constants.insert(c);
                format!("{p}_splat(c{}[{at}])", c.index())
            }
            Base::Local(l) => format!("{p}_load(q{i} + ({at}) * step{i})", i = l.index()),
            Base::Literal(_) => unreachable!("it is not in memory"),
        };
        if !in_loop {
            return text;
        }
        let name = self.fresh();
        self.line(format!("{} {name} = {text};", group_type(value.dtype)));
        self.loaded.insert(key, name.clone());
        name
    }

    fn local(&self, local: LocalId, at: &str) -> String {
        match self.schedule.kept[local] && Schedule::is_array(self.ssa, local) {
            true => format!("v{}[{at}]", local.index()),
            false => format!("v{}", local.index()),
        }
    }

    /// Sets the element of a local at which the loop is.
    fn set(&mut self, (local, offset): (LocalId, usize), text: &str) {
        let dtype = self.ssa.locals[local].dtype;
        if !self.schedule.kept[local] {
            return self.line(format!("{} v{} = {text};", group_type(dtype), local.index()));
        }
        let value = Value { base: Base::Local(local), offset, spread: false, dtype };
        let place = self.element(&value);
        self.line(format!("{place} = {text};"));
    }

    fn start_of(&mut self, fold: Fold, local: LocalId, op: &Op) {
        let dtype = op.args[0].dtype;
        let start = match fold {
            Fold::All(Reduction::Any) => "b_splat(0)".to_owned(),
            Fold::All(Reduction::All) => "b_splat(1)".to_owned(),
            Fold::All(Reduction::Prod) if dtype == DType::Int => literal(Scalar::Int(1)),
            Fold::All(Reduction::Prod) => literal(Scalar::Real(1.0)),
            Fold::All(Reduction::MinOf | Reduction::MaxOf) => {
                self.turns = 1;
                self.element(&op.args[0])
            }
            Fold::All(Reduction::Sum) if dtype == DType::Int => literal(Scalar::Int(0)),
            Fold::All(Reduction::Sum) | Fold::Products(_) => literal(Scalar::Real(0.0)),
        };
        let declared = if self.schedule.kept[local] { String::new() } else { format!("{} ", group_type(dtype)) };
        self.line(format!("{declared}v{} = {start};", local.index()));
        self.loaded.clear();
    }

    fn in_loop(&mut self, op: &Op) {
        match op.kind {
            Kind::Map(prim) => self.map(prim, op),
            Kind::Reduce(fold) => self.reduce(fold, op),
            Kind::Draw { draw, first } => {
                let function = match draw {
                    Draw::RandomUniform => "r_uniform",
                    Draw::RandomNormal => "r_normal",
                };
                let number = if self.turns > 1 { format!("e + {first}") } else { first.to_string() };
                let text = format!("{function}(c->seed, lane, i_add(draw, i_splat({number})))");
                self.set(op.out.expect("a draw has a result"), &text);
            }
            Kind::Store(slot) => {
                self.signature.slots.insert(slot);
                let text = self.element(&op.args[0]);
                let p = prefix(self.slots[slot].dtype);
                let i = slot.index();
                self.line(match self.turns {
                    1 => format!("{p}_store_whole(p{i}, m, {text});"),
                    _ => format!("{p}_store_masked(p{i} + e * width, m, {text});"),
                });
            }
            Kind::Decide => {
                let text = self.element(&op.args[0]);
                match self.route {
                    Some(_) => self.line(format!("const B went = {text};")),
                    None => self.line(format!("c->taken[at / 8] |= (uint8_t)(b_bits(b_and(m, {text})) << (at & 7));")),
                }
            }
            Kind::Assert => {
                let text = self.element(&op.args[0]);
                self.check(&format!("b_not({text})"), op.step, TrapKind::AssertFailed);
            }
            Kind::Product { .. } | Kind::Pop(_) | Kind::Spill(_) => unreachable!("a loop of its own"),
        }
    }

    fn map(&mut self, prim: Prim, op: &Op) {
        let out = op.out.expect("a primitive has a result");
        let args: Vec<String> = op.args.iter().map(|a| self.element(a)).collect();
        if prim == Prim::Copy {
            return self.set(out, &args[0]);
        }
        let dtypes: Vec<DType> = op.args.iter().map(|a| a.dtype).collect();
        let list = args.join(", ");
        let function = functions::of(prim, &dtypes);
        match &function {
            Function::Total(name) => self.set(out, &format!("{name}({list})")),
            Function::Fails(name, kind) => {
                let bad = self.bad();
                self.set(out, &format!("{name}({list}, &{bad})"));
                self.check(&bad, op.step, *kind);
            }
            Function::Quotient(name) | Function::Remainder(name) => {
                let remainder = matches!(function, Function::Remainder(_));
                let divisor = match op.args[1].base {
                    Base::Literal(Scalar::Int(d)) => d,
                    _ => 0,
                };
                if divisor > 0 && divisor & (divisor - 1) == 0 && divisor < 1 << 62 {
                    let text = format!("{name}_pow2({}, {})", args[0], divisor.trailing_zeros());
                    return self.set(out, &text);
                }
                let bad = self.bad();
                self.set(out, &format!("{name}({list}, &{bad})"));
                if divisor != 0 && (divisor != -1 || remainder) {
                    return self.line(format!("(void){bad};"));
                }
                if remainder {
                    return self.check(&bad, op.step, TrapKind::DivisionByZero);
                }
                let zero = format!("b_and({bad}, i_eq({}, i_splat(0)))", args[1]);
                self.check(&zero, op.step, TrapKind::DivisionByZero);
                self.check(&bad, op.step, TrapKind::IntegerOverflow);
            }
        }
    }

    fn bad(&mut self) -> String {
        let name = self.fresh();
        self.line(format!("B {name};"));
        name
    }

    /// Takes the lanes out where something failed.
    fn check(&mut self, bad: &str, step: usize, kind: TrapKind) {
        let site = self.signature.sites.len();
        self.signature.sites.push((step, kind));
        self.line(format!("if (AB_RARE(b_any(b_and(m, {bad})))) m = ab_trap(c, at, m, {bad}, {site});"));
    }

    fn reduce(&mut self, fold: Fold, op: &Op) {
        let (local, _) = op.out.expect("a reduction has a result");
        let name = format!("v{}", local.index());
        let dtype = op.args[0].dtype;
        let args: Vec<String> = op.args.iter().map(|a| self.element(a)).collect();
        let p = prefix(dtype);
        let text = match fold {
            Fold::Products(products) => format!("{}({}, {}, {name})", products.step(), args[0], args[1]),
            Fold::All(Reduction::Sum | Reduction::Prod) if dtype == DType::Int => {
                let function = if fold == Fold::All(Reduction::Sum) { "i_add_over" } else { "i_mul_over" };
                let bad = self.bad();
                self.line(format!("{name} = {function}({name}, {}, &{bad});", args[0]));
                return self.check(&bad, op.step, TrapKind::IntegerOverflow);
            }
            Fold::All(Reduction::Sum) => format!("r_add({name}, {})", args[0]),
            Fold::All(Reduction::Prod) => format!("r_mul({name}, {})", args[0]),
            Fold::All(Reduction::MinOf) => format!("{p}_min({name}, {})", args[0]),
            Fold::All(Reduction::MaxOf) => format!("{p}_max({name}, {})", args[0]),
            Fold::All(Reduction::Any) => format!("b_or({name}, {})", args[0]),
            Fold::All(Reduction::All) => format!("b_and({name}, {})", args[0]),
        };
        self.line(format!("{name} = {text};"));
    }

    /// Operations that are loops of their own; more than one only of stacks that go in lockstep.
    fn alone(&mut self, ops: &[&Op]) {
        match ops[0].kind {
            Kind::Product { products, row, column, inner } => self.product(products, ops[0], (row, column, inner)),
            Kind::Pop(_) => self.pop(ops),
            Kind::Spill(_) => self.spill(ops),
            _ => unreachable!("it shares loops"),
        }
    }

    /// Rows are taken eight at a time: two multiply-adds begin in a cycle, and a chain of them waits four cycles for each.
    fn product(&mut self, products: Products, op: &Op, (row, column, inner): (usize, usize, usize)) {
        let (local, _) = op.out.expect("a product has a result");
        let Base::Constant(matrix) = op.args[0].base else {
            unreachable!("a segment takes products with a shared matrix")
        };
        self.signature.constants.insert(matrix);
        let first = op.args[0].offset;
        let at = match op.args[1].offset {
            0 => "k".to_owned(),
            offset => format!("k + {offset}"),
        };
        let x = self.element_at(&op.args[1], &at);
        let step = products.step();
        let (rows, id) = (op.turns, matrix.index());
        let (eights, fours) = (rows / 8 * 8, rows / 4 * 4);
        for (rows_at_once, start, end) in [(8, 0, eights), (4, eights, fours), (1, fours, rows)] {
            if start == end {
                continue;
            }
            self.line(format!("for (int i = {start}; i < {end}; i += {rows_at_once}) {{"));
            self.indent += 4;
            let sums: Vec<String> = (0..rows_at_once).map(|r| format!("s{r} = r_splat(0.0)")).collect();
            self.line(format!("R {};", sums.join(", ")));
            self.line(format!("const real *a = c{id} + {first} + (int64_t)i * {row};"));
            self.line(format!("for (int k = 0; k < {inner}; k++, a += {column}) {{"));
            self.indent += 4;
            self.line(format!("R x = {x};"));
            for r in 0..rows_at_once {
                self.line(format!("s{r} = {step}(r_splat(a[{}]), x, s{r});", r * row));
            }
            self.indent -= 4;
            self.line("}");
            for r in 0..rows_at_once {
                let place = self.local(local, &format!("i + {r}"));
                self.line(format!("{place} = s{r};"));
            }
            self.indent -= 4;
            self.line("}");
        }
    }

    fn stack(&mut self, op: &Op) -> StackId {
        let (Kind::Pop(stack) | Kind::Spill(stack)) = op.kind else { unreachable!("an operation of a stack") };
        self.signature.stacks.insert(stack);
        stack
    }

    fn open(&mut self, text: &str) {
        self.line(text);
        self.indent += 4;
    }
    fn close(&mut self) {
        self.indent -= 4;
        self.line("}");
    }

    fn pop(&mut self, ops: &[&Op]) {
        let stacks: Vec<StackId> = ops.iter().map(|op| self.stack(op)).collect();
        self.open_stacks(&stacks);
        self.line("H h = h_lower(before, m);");
        let popped: Vec<Popped> = ops.iter().zip(&stacks).map(|(op, stack)| self.popped(op, *stack)).collect();
        let (small, large): (Vec<_>, Vec<_>) = popped.iter().partition(|p| p.elements <= MOST_GATHERED);
        for Popped { elements: n, p, memory, place, .. } in small {
            let text = format!("{place} = {p}_take({memory} + e * width, {n} * width, h, m, alike, level - 1);");
            self.line(format!("for (int e = 0; e < {n}; e++) {text}"));
        }
        let (borrowed, own): (Vec<&Popped>, Vec<&Popped>) = large.iter().partition(|p| p.borrowed);
        for Popped { local, level, .. } in &borrowed {
            self.line(format!("q{i} = {level}; step{i} = width;", i = local.index()));
        }
        // The first lanes need no select: what the others get is junk until it is their turn.
        for Popped { elements, p, level, place, .. } in own {
            self.line(format!("for (int e = 0; e < {elements}; e++) {place} = {p}_load({level} + e * width);"));
        }
        if !large.is_empty() {
            self.open("if (!alike) {");
            for Popped { local, elements, p, ty, place, .. } in borrowed {
                let i = local.index();
                self.line(format!("for (int e = 0; e < {elements}; e++) {place} = {p}_load(q{i} + e * step{i});"));
                self.line(format!("q{i} = (const {ty} *)v{i}; step{i} = LANES;"));
            }
            self.open("while (rest &= ~same) {");
            self.line("same = ab_level(before, heights, rest, &level);");
            self.line("B w = b_from_bits(same);");
            for Popped { elements, p, level, place, .. } in large {
                let value = format!("{p}_select(w, {p}_load({level} + e * width), {place})");
                self.line(format!("for (int e = 0; e < {elements}; e++) {place} = {value};"));
            }
            self.close();
            self.close();
        }
        for stack in &stacks {
            self.line(format!("h_store(k{}->heights + at, h);", stack.index()));
        }
        self.close();
    }

    fn spill(&mut self, ops: &[&Op]) {
        let stacks: Vec<StackId> = ops.iter().map(|op| self.stack(op)).collect();
        self.open_stacks(&stacks);
        for (op, stack) in ops.iter().zip(&stacks).filter(|(op, _)| is_small(op)) {
            let value = op.args[0];
            let (memory, n, p) = (first_level(*stack, value.dtype), op.turns, prefix(value.dtype));
            let put = |element: &str| {
                format!("{p}_put({memory} + e * width, {n} * width, before, m, alike, level, {n} == 1, {element});")
            };
            self.each_element(op, put);
        }
        let large: Vec<_> = ops.iter().zip(&stacks).filter(|(op, _)| !is_small(op)).collect();
        if !large.is_empty() {
            self.open("for (;;) {");
            self.line("B w = b_from_bits(same);");
            for (op, stack) in large {
                let value = op.args[0];
                let (memory, n, p) = (first_level(*stack, value.dtype), op.turns, prefix(value.dtype));
                let place = format!("{memory} + (int64_t)level * ({n} * width) + e * width");
                self.each_element(op, |element| format!("{p}_store_masked({place}, w, {element});"));
            }
            self.line("if (!(rest &= ~same)) break;");
            self.line("same = ab_level(before, heights, rest, &level);");
            self.close();
        }
        self.line("H h = h_raise(before, m);");
        for stack in &stacks {
            let k = stack.index();
            self.pushed.insert(*stack);
            self.line(format!("h_store(k{k}->heights + at, h);"));
            self.line(format!("top{k} = h_max(top{k}, h), pushed{k} += (unsigned)__builtin_popcount(b_bits(m));"));
        }
        self.close();
    }

    /// Opens a block in which the heights of stacks that go in lockstep are known. Where all lanes of the group have trapped,
    /// nothing is pushed or popped, and nothing may be computed of what is.
    fn open_stacks(&mut self, stacks: &[StackId]) {
        self.line("if (AB_RARE(b_none(m))) continue;");
        self.open("{");
        self.line(format!("const uint32_t *heights = k{}->heights + at;", stacks[0].index()));
        self.line("H before = h_load(heights);");
        self.line("uint32_t level;");
        self.line("unsigned rest = b_bits(m), same = ab_level(before, heights, rest, &level);");
        self.line("const int alike = same == rest; (void)alike;");
    }

    /// Does something with each element of what is pushed.
    fn each_element(&mut self, op: &Op, text: impl FnOnce(&str) -> String) {
        self.open(&format!("for (int e = 0; e < {}; e++) {{", op.turns));
        self.turns = op.turns;
        let element = self.element(&op.args[0]);
        self.turns = 1;
        self.line(text(&element));
        self.loaded.clear();
        self.close();
    }

    fn popped(&self, op: &Op, stack: StackId) -> Popped {
        let (local, _) = op.out.expect("what is popped has a place");
        let (elements, dtype) = (op.turns, self.ssa.locals[local].dtype);
        let memory = first_level(stack, dtype);
        Popped {
            local,
            elements,
            p: prefix(dtype),
            ty: memory_type(dtype),
            level: format!("{memory} + (int64_t)(level - 1) * ({elements} * width)"),
            memory,
            place: self.local(local, "e"),
            borrowed: self.borrowed[local],
        }
    }
}

/// Elements of a value up to which lanes of different heights are gathered and scattered; those of a larger one go level by
/// level. A gather takes about as long as finding the lanes of one more level, and is paid for each element.
const MOST_GATHERED: usize = 3;

/// The first level of a stack, from the lanes of the group on.
fn first_level(stack: StackId, dtype: DType) -> String {
    format!("({} *)k{}->memory + at", memory_type(dtype), stack.index())
}

fn is_small(op: &Op) -> bool {
    op.turns <= MOST_GATHERED
}

/// Return blocks up to which each address is compared with all of them; beyond, lanes go one address after the other.
const MOST_COMPARED: usize = 8;

/// The units that a function sends lanes to. The lanes of a word are collected in `to0`, `to1`, …, and counted in `n0`, ….
#[derive(Default)]
struct Exits {
    units: Vec<UnitId>,
    /// Whether lanes may be done.
    ends: bool,
    /// Whether it calls a function.
    calls: bool,
}

impl Exits {
    /// The loop over the groups of the lanes that wait.
    fn begin(&self, route: &Route<'_>, w: &mut impl FnMut(String)) {
        w("    const int64_t words = (width + 63) / 64;".to_owned());
        w("    uint64_t *const waiting = c->waiting;".to_owned());
        let unit = route.unit.0;
        w(format!("    uint64_t *const mine = waiting + {unit} * words;"));
        w(format!("    ab_leave(c, {unit});"));
        for to in 0..self.units.len() {
            w(format!("    uint32_t n{to} = 0;"));
        }
        if self.calls {
            w("    H top = h_none(); uint64_t called = 0;".to_owned());
        }
        w("    for (int64_t word = 0; word < words; word++) {".to_owned());
        w("    uint64_t left = mine[word];".to_owned());
        w("    if (!left) continue;".to_owned());
        w("    mine[word] = 0;".to_owned());
        for to in 0..self.units.len() {
            w(format!("    uint64_t to{to} = 0;"));
        }
        if self.ends {
            w("    uint64_t gone = 0;".to_owned());
        }
        w("    for (int64_t at = word * 64; left; at += LANES, left >>= LANES) {".to_owned());
        w("        unsigned bits = (unsigned)left & ((1u << LANES) - 1);".to_owned());
    }

    fn end(&self, w: &mut impl FnMut(String)) {
        for (to, unit) in self.units.iter().enumerate() {
            w(format!("    waiting[{} * words + word] |= to{to};", unit.0));
            w(format!("    n{to} += (uint32_t)__builtin_popcountll(to{to});"));
        }
        if self.ends {
            w("    c->done[word] |= gone;".to_owned());
            w("    c->finished += __builtin_popcountll(gone);".to_owned());
        }
        w("    }".to_owned());
        for (to, unit) in self.units.iter().enumerate() {
            w(format!("    ab_arrive(c, {}, n{to});", unit.0));
        }
        if self.calls {
            w("    ab_pushed(c->returns, top, called);".to_owned());
        }
    }
}

impl Writer<'_> {
    /// The lanes of the group that did not trap go where the end of the block says.
    fn send_on(&mut self) -> Exits {
        let Some(route) = self.route else { return Exits::default() };
        let unit = |block| route.units[block];
        let mut exits = Exits::default();
        match route.exit {
            Exit::Jump(block) => {
                exits.units = vec![unit(block)];
                self.line("to0 |= ab_word(b_bits(m), at);");
            }
            Exit::Branch(a, b) => {
                exits.units = vec![unit(a), unit(b)];
                self.line("to0 |= ab_word(b_bits(b_and(m, went)), at);");
                self.line("to1 |= ab_word(b_bits(b_andnot(m, went)), at);");
            }
            Exit::Call(target, ret, _) => {
                exits.units = vec![unit(target)];
                exits.calls = true;
                let site = self.signature.sites.len();
                self.line(
                    "const unsigned deep = h_at_least(h_load(c->returns->heights + at), c->deepest) & b_bits(m);",
                );
                self.line(format!("if (AB_RARE(deep)) m = ab_trap(c, at, m, b_from_bits(deep), {site});"));
                self.line("if (AB_RARE(b_none(m))) continue;");
                self.line(format!("top = h_max(top, ab_put_address(c, at, m, {}));", ret.0));
                self.line("called += (unsigned)__builtin_popcount(b_bits(m));");
                self.line("to0 |= ab_word(b_bits(m), at);");
            }
            Exit::Return => {
                exits.ends = true;
                self.line("H addresses;");
                self.line("m = ab_return(c, at, m, &addresses, &gone);");
                if route.returns.len() <= MOST_COMPARED {
                    exits.units = route.returns.iter().map(|block| unit(*block)).collect();
                    for (to, block) in route.returns.iter().enumerate() {
                        let text = format!("h_equal(addresses, {}) & b_bits(m)", block.0);
                        self.line(format!("to{to} |= ab_word({text}, at);"));
                    }
                } else {
                    self.return_one_by_one(route);
                }
            }
            Exit::Halt => {
                exits.ends = true;
                self.line("gone |= ab_word(b_bits(m), at);");
            }
        }
        exits
    }

    /// As many turns as there are addresses in the group.
    fn return_one_by_one(&mut self, route: &Route<'_>) {
        let most = route.returns.iter().map(|b| b.0 as usize + 1).max().unwrap_or(0);
        let mut units = vec![0; most];
        route.returns.iter().for_each(|b| units[b.0 as usize] = route.units[*b].0);
        let units: Vec<String> = units.iter().map(u32::to_string).collect();
        self.line(format!("static const uint32_t units[] = {{{}}};", units.join(", ")));
        self.line("uint32_t blocks[LANES];");
        self.line("h_store(blocks, addresses);");
        self.open("for (unsigned rest = b_bits(m); rest;) {");
        self.line("const uint32_t block = blocks[lanes_lowest(rest)];");
        self.line("const unsigned same = h_equal(addresses, block) & rest;");
        self.line("rest &= ~same;");
        self.line("waiting[units[block] * words + word] |= ab_word(same, at);");
        self.line("ab_arrive(c, units[block], (uint32_t)__builtin_popcount(same));");
        self.close();
    }
}

/// A constant of the program text in all lanes.
fn literal(scalar: Scalar) -> String {
    match scalar {
        Scalar::Bool(b) => format!("b_splat({})", u8::from(b)),
        Scalar::Int(i64::MIN) => "i_splat(INT64_MIN)".to_owned(),
        Scalar::Int(i) => format!("i_splat({i}LL)"),
        Scalar::Real(x) if x.is_nan() => "r_splat((real)__builtin_nan(\"\"))".to_owned(),
        Scalar::Real(x) if x.is_infinite() => {
            format!("r_splat((real){}__builtin_inf())", if x < 0.0 { "-" } else { "" })
        }
        // As many digits as name one number only.
        Scalar::Real(x) => format!("r_splat((real){x:e})"),
    }
}
