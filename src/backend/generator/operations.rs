//! The text of each kind of operation.

use crate::backend::generator::functions::{self, Call, group_type, prefix};
use crate::backend::generator::ssa::{Base, Fold, Kind, LocalId, Op, Products};
use crate::backend::generator::text::Writer;
use crate::base::Id as _;
use crate::prim::{Draw, Prim, Reduction};
use crate::run::TrapKind;
use crate::types::{DType, Scalar};

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
    /// What a reduction begins with.
    pub(super) fn start_of(&mut self, fold: Fold, local: LocalId, op: &Op) {
        let dtype = op.args[0].dtype;
        if let Some(name) = fold.log_sum() {
            self.line(format!("R v{}_addends = r_splat(0);", local.index()));
            let declared = if self.schedule.kept[local] { "" } else { "R " };
            return self.line(format!("{declared}v{} = r_{name}_start();", local.index()));
        }
        let start = start(fold, dtype).unwrap_or_else(|| {
            self.turns = 1;
            self.element(&op.args[0])
        });
        let declared = if self.schedule.kept[local] { String::new() } else { format!("{} ", group_type(dtype)) };
        self.line(format!("{declared}v{} = {start};", local.index()));
        self.loaded.clear();
    }

    /// An operation that takes part in a loop over elements.
    pub(super) fn in_loop(&mut self, op: &Op) {
        match op.kind {
            Kind::Map(prim) => self.map(prim, op),
            Kind::Reduce(fold) => self.reduce(fold, op),
            Kind::Draw { draw, first } => {
                let function = drawing(draw);
                let number = if self.turns > 1 { format!("e + {first}") } else { first.to_string() };
                let text = self.frame.draw(function, &number);
                self.set(op.out.expect("a draw has a result"), &text);
            }
            Kind::Store(slot) => {
                self.signature.slots.insert(slot);
                let text = self.element(&op.args[0]);
                let dtype = self.ssa.scope.storage.slots[slot].dtype;
                self.line(self.frame.store(slot, self.turns > 1, dtype, &text));
            }
            Kind::Decide => {
                let text = self.element(&op.args[0]);
                self.line(self.frame.decide(&text, self.routes));
            }
            Kind::Assert => {
                let text = self.element(&op.args[0]);
                self.check(&format!("b_not({text})"), op.origin, TrapKind::AssertFailed);
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
        let divisor = match op.args.get(1).map(|divisor| divisor.base) {
            Some(Base::Literal(Scalar::Int(d))) => d,
            _ => 0,
        };
        let called = called(prim, &dtypes, &args, divisor, || self.fresh());
        called.declared().into_iter().for_each(|line| self.line(line));
        self.set(out, &called.text);
        called.unused().into_iter().for_each(|line| self.line(line));
        for (bad, kind) in &called.checks {
            self.check(bad, op.origin, *kind);
        }
    }

    /// Takes the lanes out where something failed.
    fn check(&mut self, bad: &str, origin: usize, kind: TrapKind) {
        let site = self.signature.sites.len();
        self.signature.sites.push((origin, kind));
        self.line(self.frame.trap(bad, site));
    }

    fn reduce(&mut self, fold: Fold, op: &Op) {
        let (local, _) = op.out.expect("a reduction has a result");
        let name = format!("v{}", local.index());
        let dtype = op.args[0].dtype;
        let args: Vec<String> = op.args.iter().map(|a| self.element(a)).collect();
        if let Some(function) = fold.log_sum() {
            return self.line(format!("r_{function}_step(&{name}, &{name}_addends, {});", args[0]));
        }
        let called = step(fold, dtype, &name, &args, || self.fresh());
        called.declared().into_iter().for_each(|line| self.line(line));
        self.line(format!("{name} = {};", called.text));
        for (bad, kind) in &called.checks {
            self.check(bad, op.origin, *kind);
        }
    }

    /// What a reduction ends with.
    pub(super) fn end_of(&mut self, op: &Op) {
        if let (Kind::Reduce(fold), Some((local, _))) = (op.kind, op.out)
            && let Some(function) = fold.log_sum()
        {
            let local = local.index();
            self.line(format!("v{local} = r_{function}_end(v{local}, v{local}_addends);"));
        }
    }

    /// Operations that are loops of their own; more than one only of stacks that go in lockstep.
    pub(super) fn alone(&mut self, ops: &[&Op]) {
        match ops[0].kind {
            Kind::Product { products, row, column, inner } => self.product(products, ops[0], (row, column, inner)),
            Kind::Pop(_) | Kind::Spill(_) => self.stacks(ops),
            _ => unreachable!("it shares loops"),
        }
    }

    /// Operations of stacks.
    fn stacks(&mut self, ops: &[&Op]) {
        let frame = self.frame;
        for op in ops {
            match op.kind {
                Kind::Pop(stack) => _ = self.signature.stacks.insert(stack),
                Kind::Spill(stack) => {
                    self.signature.stacks.insert(stack);
                    self.signature.pushed.insert(stack);
                }
                _ => unreachable!("an operation of a stack"),
            }
        }
        match ops[0].kind {
            Kind::Pop(_) => frame.pop(ops, self),
            _ => frame.push(ops, self),
        }
    }

    /// Rows are taken eight at a time: two multiply-adds begin in a cycle, and a chain of them waits four cycles for each.
    fn product(&mut self, products: Products, op: &Op, (row, column, inner): (usize, usize, usize)) {
        let (local, _) = op.out.expect("a product has a result");
        let Base::Constant(matrix) = op.args[0].base else {
            unreachable!("a function takes products with a shared matrix")
        };
        self.signature.constants.insert(matrix);
        let first = op.args[0].offset;
        let at = match op.args[1].offset {
            0 => "k".to_owned(),
            offset => format!("k + {offset}"),
        };
        let x = self.element_at(&op.args[1], &at);
        let step = products.step();
        let (rows, matrix) = (op.turns, self.frame.constant(matrix));
        let (eights, fours) = (rows / 8 * 8, rows / 4 * 4);
        for (rows_at_once, start, end) in [(8, 0, eights), (4, eights, fours), (1, fours, rows)] {
            if start == end {
                continue;
            }
            self.open(&format!("for (int i = {start}; i < {end}; i += {rows_at_once}) {{"));
            let sums: Vec<String> = (0..rows_at_once).map(|r| format!("s{r} = r_splat(0.0)")).collect();
            self.line(format!("R {};", sums.join(", ")));
            self.line(format!("const real *a = {matrix} + {first} + (int64_t)i * {row};"));
            self.open(&format!("for (int k = 0; k < {inner}; k++, a += {column}) {{"));
            self.line(format!("R x = {x};"));
            for r in 0..rows_at_once {
                self.line(format!("s{r} = {step}(r_splat(a[{}]), x, s{r});", r * row));
            }
            self.close();
            for r in 0..rows_at_once {
                let place = self.local(local, &format!("i + {r}"));
                self.line(format!("{place} = s{r};"));
            }
            self.close();
        }
    }
}

/// How the element of an elementwise primitive is computed.
pub(super) struct Called {
    /// Gets the lanes in which it fails.
    bad: Option<String>,
    /// The element, as an expression.
    pub(super) text: String,
    /// The lanes that trap, each time as an expression.
    pub(super) checks: Vec<(String, TrapKind)>,
}

impl Called {
    /// What stands before the expression.
    pub(super) fn declared(&self) -> Option<String> {
        self.bad.as_ref().map(|bad| format!("B {bad};"))
    }
    /// What stands behind it, where it cannot fail.
    pub(super) fn unused(&self) -> Option<String> {
        self.bad.as_ref().filter(|_| self.checks.is_empty()).map(|bad| format!("(void){bad};"))
    }
}

/// An elementwise primitive of these operands. `divisor`: the second one, where it is in the program text; else 0.
pub(super) fn called(
    prim: Prim,
    dtypes: &[DType],
    args: &[String],
    divisor: i64,
    fresh: impl FnOnce() -> String,
) -> Called {
    let list = args.join(", ");
    let function = functions::of(prim, dtypes);
    let remainder = matches!(function, Call::Remainder(_));
    match function {
        Call::Total(name) => Called { bad: None, text: format!("{name}({list})"), checks: vec![] },
        Call::Fails(name, kind) => {
            let bad = fresh();
            Called { text: format!("{name}({list}, &{bad})"), checks: vec![(bad.clone(), kind)], bad: Some(bad) }
        }
        Call::Power(name) => {
            let bad = fresh();
            let negative = format!("b_and({bad}, i_lt({}, i_splat(0)))", args[1]);
            let checks = vec![(negative, TrapKind::NegativeExponent), (bad.clone(), TrapKind::IntegerOverflow)];
            Called { text: format!("{name}({list}, &{bad})"), checks, bad: Some(bad) }
        }
        Call::Quotient(name) | Call::Remainder(name) => {
            if divisor > 0 && divisor & (divisor - 1) == 0 && divisor < 1 << 62 {
                let text = format!("{name}_pow2({}, {})", args[0], divisor.trailing_zeros());
                return Called { bad: None, text, checks: vec![] };
            }
            let bad = fresh();
            let text = format!("{name}({list}, &{bad})");
            let zero = format!("b_and({bad}, i_eq({}, i_splat(0)))", args[1]);
            let checks = match (divisor, remainder) {
                (0, true) => vec![(bad.clone(), TrapKind::DivisionByZero)],
                (0 | -1, false) => {
                    vec![(zero, TrapKind::DivisionByZero), (bad.clone(), TrapKind::IntegerOverflow)]
                }
                _ => vec![],
            };
            Called { bad: Some(bad), text, checks }
        }
    }
}

/// What a reduction of such elements begins with; none where that is the first of them.
pub(super) fn start(fold: Fold, dtype: DType) -> Option<String> {
    Some(match fold {
        Fold::All(Reduction::Any) => "b_splat(0)".to_owned(),
        Fold::All(Reduction::All) => "b_splat(1)".to_owned(),
        Fold::All(Reduction::Prod) if dtype == DType::Int => literal(Scalar::Int(1)),
        Fold::All(Reduction::Prod) => literal(Scalar::Real(1.0)),
        Fold::All(Reduction::MinOf | Reduction::MaxOf) => return None,
        Fold::All(Reduction::Sum) if dtype == DType::Int => literal(Scalar::Int(0)),
        Fold::All(Reduction::Sum | Reduction::SumLog | Reduction::SumLog1pExp) | Fold::Products(_) => {
            literal(Scalar::Real(0.0))
        }
    })
}

/// What it is after one more element; of products, an element of each array.
pub(super) fn step(fold: Fold, dtype: DType, sum: &str, args: &[String], fresh: impl FnOnce() -> String) -> Called {
    let p = prefix(dtype);
    let text = match fold {
        Fold::Products(products) => format!("{}({}, {}, {sum})", products.step(), args[0], args[1]),
        Fold::All(Reduction::Sum | Reduction::Prod) if dtype == DType::Int => {
            let function = if fold == Fold::All(Reduction::Sum) { "i_add_over" } else { "i_mul_over" };
            let bad = fresh();
            let text = format!("{function}({sum}, {}, &{bad})", args[0]);
            return Called { text, checks: vec![(bad.clone(), TrapKind::IntegerOverflow)], bad: Some(bad) };
        }
        Fold::All(Reduction::Sum) => format!("r_add({sum}, {})", args[0]),
        Fold::All(Reduction::Prod) => format!("r_mul({sum}, {})", args[0]),
        Fold::All(Reduction::SumLog | Reduction::SumLog1pExp) => unreachable!("it has loops of its own"),
        Fold::All(Reduction::MinOf) => format!("{p}_min({sum}, {})", args[0]),
        Fold::All(Reduction::MaxOf) => format!("{p}_max({sum}, {})", args[0]),
        Fold::All(Reduction::Any) => format!("b_or({sum}, {})", args[0]),
        Fold::All(Reduction::All) => format!("b_and({sum}, {})", args[0]),
    };
    Called { bad: None, text, checks: vec![] }
}

/// A constant of the program text in all lanes.
pub(super) fn literal(scalar: Scalar) -> String {
    match scalar {
        Scalar::Bool(_) => format!("b_splat({})", plain_literal(scalar)),
        Scalar::Int(_) => format!("i_splat({})", plain_literal(scalar)),
        Scalar::Real(_) => format!("r_splat({})", plain_literal(scalar)),
    }
}

/// A constant as one number.
pub(super) fn plain_literal(scalar: Scalar) -> String {
    match scalar {
        Scalar::Bool(b) => u8::from(b).to_string(),
        Scalar::Int(i64::MIN) => "INT64_MIN".to_owned(),
        Scalar::Int(i) => format!("{i}LL"),
        Scalar::Real(x) if x.is_nan() => "(real)__builtin_nan(\"\")".to_owned(),
        Scalar::Real(x) if x.is_infinite() => format!("(real){}__builtin_inf()", if x < 0.0 { "-" } else { "" }),
        // As many digits as name one number only.
        Scalar::Real(x) => format!("(real){x:e}"),
    }
}

/// The function that draws.
pub(super) fn drawing(draw: Draw) -> &'static str {
    match draw {
        Draw::RandomUniform => "r_uniform",
        Draw::RandomNormal => "r_normal",
        Draw::RandomPosition => "i_drawn",
    }
}
