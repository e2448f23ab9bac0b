//! Operations: computed where all operands are known, else a node.

use std::borrow::Cow;
use std::sync::Arc;

use super::stmt::{filled, same};
use super::{MAX_NODES, Result, Tracer, unsupported, wrong};
use crate::base::Span;
use crate::prim::eval::{int_div, int_rem};
use crate::stan::emit::expression;
use crate::stan::graph::{Arg, Args, Node, Op};
use crate::stan::value::{Base, Elem, Kind, Val, What};
use crate::types::Array;
use crate::vmath::{BinaryFn, UnaryFn};

/// The elementwise functions of one real that the language computes.
fn unary(name: &str) -> Option<UnaryFn> {
    let name = match name {
        "Phi" => "phi",
        "inv_Phi" => "inv_phi",
        name => name,
    };
    UnaryFn::ALL.iter().copied().find(|f| f.name() == name)
}

fn binary(name: &str) -> Option<BinaryFn> {
    let name = match name {
        "min" => "min2",
        "max" => "max2",
        name => name,
    };
    BinaryFn::ALL.iter().copied().find(|f| f.name() == name)
}

/// An operation of two reals by its sign.
fn real_infix(sign: &str, a: f64, b: f64) -> Option<f64> {
    Some(match sign {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "%" => a % b,
        "^" => BinaryFn::ALL.iter().find(|f| f.name() == "pow")?.apply(a, b),
        _ => return None,
    })
}

fn int_infix(sign: &str, a: i64, b: i64) -> Option<i64> {
    match sign {
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "/" => int_div(a, b).ok(),
        "%" => int_rem(a, b).ok(),
        _ => None,
    }
}

fn compare<T: PartialOrd>(sign: &str, a: T, b: T) -> bool {
    match sign {
        "==" => a == b,
        "!=" => a != b,
        "<" => a < b,
        "<=" => a <= b,
        ">" => a > b,
        _ => a >= b,
    }
}

/// A value of two operands, element by element; a scalar goes with every element.
fn zip<T: Copy, U>(a: &[T], b: &[T], n: usize, f: impl Fn(T, T) -> U) -> Vec<U> {
    let at = |v: &[T], i: usize| if v.len() == 1 { v[0] } else { v[i] };
    (0..n).map(|i| f(at(a, i), at(b, i))).collect()
}

/// What the host computes by itself.
fn native(op: &Op, args: &[Val], kind: Kind, shape: &[usize]) -> Option<Val> {
    let n: usize = shape.iter().product();
    let made = |array: Array| Some(Val::known(kind, array));
    let real = |data: Vec<f64>| made(Array::real(shape.iter().copied(), data));
    match (op, args) {
        (Op::Infix(sign), [a, b]) if a.is_scalar() && b.is_scalar() => Some(Val::scalar(
            kind,
            match kind.is_int() {
                true => Elem::Int(int_infix(sign, a.as_int()?, b.as_int()?)?),
                false => Elem::Real(real_infix(sign, a.as_real()?, b.as_real()?)?),
            },
        )),
        (Op::Infix(sign), [a, b]) if *sign != "@" => {
            if kind.is_int() {
                let (a, b) = (a.ints()?, b.ints()?);
                let found = zip(&a, &b, n, |a, b| int_infix(sign, a, b)).into_iter().collect::<Option<Vec<_>>>()?;
                return made(Array::int(shape.iter().copied(), found));
            }
            let (a, b) = (a.reals()?, b.reals()?);
            real(zip(&a, &b, n, |a, b| real_infix(sign, a, b)).into_iter().collect::<Option<Vec<_>>>()?)
        }
        (Op::Infix(_), [a, b]) => real(product(a, b)?),
        (Op::Compare(sign), [a, b]) => {
            let holds = match (a.as_int(), b.as_int()) {
                (Some(a), Some(b)) => compare(sign, a, b),
                _ => compare(sign, a.as_real()?, b.as_real()?),
            };
            Some(Val::bool(holds))
        }
        (Op::Negate, [a]) => match a.ints() {
            Some(v) => made(Array::int(shape.iter().copied(), v.iter().map(|i| -i).collect())),
            None => real(a.reals()?.iter().map(|x| -x).collect()),
        },
        (Op::Select, [c, a, b]) => Some(if c.as_int()? != 0 { a.clone() } else { b.clone() }),
        (Op::Call(name, _), [a]) if &**name == "abs" => match a.ints() {
            Some(v) if kind.is_int() => made(Array::int(shape.iter().copied(), v.iter().map(|i| i.abs()).collect())),
            _ => real(a.reals()?.iter().map(|x| x.abs()).collect()),
        },
        (Op::Call(name, _), [a]) if &**name == "square" => real(a.reals()?.iter().map(|x| x * x).collect()),
        (Op::Call(name, extents), [a]) if extents.is_empty() => {
            let f = unary(name)?;
            real(a.reals()?.iter().map(|x| f.apply(*x)).collect())
        }
        (Op::Call(name, extents), [a, b]) if extents.is_empty() && kind.is_int() => {
            let f: fn(i64, i64) -> i64 = match &**name {
                "min" => i64::min,
                "max" => i64::max,
                _ => return None,
            };
            made(Array::int(shape.iter().copied(), zip(&a.ints()?, &b.ints()?, n, f)))
        }
        (Op::Call(name, extents), [a, b]) if extents.is_empty() => {
            let (f, a, b) = (binary(name)?, a.reals()?, b.reals()?);
            real(zip(&a, &b, n, |a, b| f.apply(a, b)))
        }
        _ => None,
    }
}

/// The product of matrices and vectors.
fn product(a: &Val, b: &Val) -> Option<Vec<f64>> {
    let (x, y) = (a.reals()?, b.reals()?);
    let (rows, inner) = if a.shape.len() == 2 { (a.shape[0], a.shape[1]) } else { (1, a.shape[0]) };
    let cols = if b.shape.len() == 2 { b.shape[1] } else { 1 };
    let mut out = Vec::with_capacity(rows * cols);
    for i in 0..rows {
        for j in 0..cols {
            out.push(crate::vmath::dot_iter((0..inner).map(|k| (x[i * inner + k], y[k * cols + j]))));
        }
    }
    Some(out)
}

/// Functions of the library, beside generators, that stop a lane where an argument is not what it must be.
const STOPPING: &[&str] = &[
    "cholesky_decompose",
    "eigendecompose_sym_rows",
    "inverse_spd",
    "log_determinant_spd",
    "matrix_power",
    "mdivide_left_spd",
    "mdivide_left_spd_matrix",
    "mdivide_right_spd",
    "mdivide_right_spd_matrix",
    "quad_form_sym",
];

/// What no function stops at, in the form of an argument: the unit matrix, numbers that sum to 1, a half, an int of 1.
fn harmless(arg: &Val) -> Option<Val> {
    if arg.is_complex() || arg.is_tuple() || arg.counted().is_some() {
        return None;
    }
    let last = arg.shape.last().copied().unwrap_or(2).max(1);
    let number = |at: usize| match arg.shape[..] {
        _ if arg.kind.is_int() => Elem::Int(1),
        [.., rows, cols] if arg.kind.base == Base::Matrix && rows == cols => {
            Elem::Real(f64::from(u8::from(at / cols % rows == at % cols)))
        }
        _ => Elem::Real(1.0 / last as f64),
    };
    let elems: Vec<Elem> = (0..arg.len()).map(number).collect();
    Some(Val::from_elems(arg.kind, arg.shape.clone(), elems))
}

impl Tracer<'_> {
    /// Does an operation.
    pub(super) fn apply(&mut self, span: Span, op: Op, args: &[Val], kind: Kind, shape: Vec<usize>) -> Result<Val> {
        if args.iter().all(Val::is_known) && !op.draws() {
            if let Some(value) = native(&op, args, kind, &shape) {
                return Ok(value);
            }
            return self.on_host(span, &op, args, kind, shape);
        }
        self.node(span, op, args, kind, shape)
    }

    /// Adds a node.
    pub(super) fn node(&mut self, span: Span, op: Op, args: &[Val], kind: Kind, shape: Vec<usize>) -> Result<Val> {
        if self.graph.nodes.len() >= MAX_NODES {
            return unsupported(span, format!("more than {MAX_NODES} operations of lanes in one evaluation"));
        }
        if kind.base == Base::Tuple || args.iter().any(Val::is_tuple) {
            return unsupported(span, "a tuple in what only lanes decide about");
        }
        if kind.is_complex() || args.iter().any(Val::is_complex) {
            return unsupported(span, "complex numbers here");
        }
        // Ints that are known are reals where the result is one: `2 * x` of an int 2 is written `2.0 * x`.
        let arithmetic = matches!(op, Op::Infix(_) | Op::Negate | Op::Select) && !kind.is_int();
        let operand = |arg: &Val| match &arg.what {
            What::Scalar(elem) if arithmetic => Arg::Scalar(elem.as_real()),
            What::Known(_) if arithmetic => Arg::of(&arg.promoted()),
            _ => Arg::of(arg),
        };
        let mut operands = Args::new();
        args.iter().for_each(|arg| operands.push(operand(arg)));
        let site = self.graph.site(span, self.calls);
        let node = Node { op, args: operands, shape: shape.clone(), int: kind.is_int(), site, turn: self.turn };
        let id = self.graph.add(node);
        let what = if shape.is_empty() { What::Scalar(Elem::Of(id, 0)) } else { What::Whole(id) };
        Ok(Val { kind, shape, what })
    }

    /// Computes by the library of the language what is known.
    fn on_host(&mut self, span: Span, op: &Op, args: &[Val], kind: Kind, shape: Vec<usize>) -> Result<Val> {
        if args.iter().any(|arg| !arg.is_scalar() && arg.len() == 0) && !shape.is_empty() && shape.contains(&0) {
            return Ok(Tracer::unset(kind, shape));
        }
        let text = expression(op, args.len());
        let arrays: Vec<Array> = args.iter().filter_map(Val::to_array).collect();
        match self.host.evaluate(&text, &arrays, &kind.host_type(&shape), None) {
            Ok(array) => Ok(Val::known(kind, array)),
            Err(why) => match why.strip_prefix("there is no function ").and_then(|w| w.strip_suffix(" here")) {
                Some(name) => unsupported(span, name),
                None => wrong(span, why),
            },
        }
    }

    /// A function of the language of the same name and operands.
    pub(super) fn call_ab(
        &mut self,
        span: Span,
        name: &str,
        args: &[Val],
        kind: Kind,
        shape: Vec<usize>,
    ) -> Result<Val> {
        let args = &self.spared(span, name, args)?;
        let name = self.word(name);
        self.apply(span, Op::Call(name, vec![]), args, kind, shape)
    }

    /// The arguments of a call, but harmless ones where the conditions do not hold under which the program comes to it: a
    /// function that stops a lane must stop none of those.
    pub(super) fn spared<'v>(&mut self, span: Span, name: &str, args: &'v [Val]) -> Result<Cow<'v, [Val]>> {
        if self.guards.is_empty() || !(name.ends_with("_rng") || STOPPING.contains(&name)) {
            return Ok(Cow::Borrowed(args));
        }
        let Some(on) = self.on(span)? else { return Ok(Cow::Borrowed(args)) };
        let spared = args.iter().map(|arg| match harmless(arg) {
            Some(instead) => self.select(span, &on, arg, &instead),
            None => Ok(arg.clone()),
        });
        spared.collect::<Result<Vec<Val>>>().map(Cow::Owned)
    }

    /// `a + b` and its kin, element by element.
    pub(super) fn infix(&mut self, span: Span, sign: &'static str, a: &Val, b: &Val) -> Result<Val> {
        if !a.is_scalar() && !b.is_scalar() && a.shape != b.shape {
            return wrong(span, format!("`{sign}` of sizes {:?} and {:?}", a.shape, b.shape));
        }
        let (big, other) = if a.shape.len() >= b.shape.len() { (a, b) } else { (b, a) };
        let base = match (big.kind.base, other.kind.is_int()) {
            (super::super::value::Base::Int, false) => super::super::value::Base::Real,
            (base, _) => base,
        };
        let kind = Kind { base, arrays: big.kind.arrays };
        if kind.is_int() && matches!(sign, "/" | "%") && b.as_int() == Some(0) {
            return wrong(span, "division of an int by zero");
        }
        let mut b = b.clone();
        if kind.is_int()
            && matches!(sign, "/" | "%")
            && !b.is_known()
            && b.is_scalar()
            && let Some(on) = self.on(span)?
        {
            // Who does not come here divides by one.
            b = self.select(span, &on, &b, &Val::int(1))?;
        }
        self.apply(span, Op::Infix(sign), &[a.clone(), b], kind, big.shape.clone())
    }

    /// The sum of values of one shape.
    pub(super) fn add(&mut self, span: Span, a: &Val, b: &Val) -> Result<Val> {
        self.infix(span, "+", a, b)
    }

    /// Whether a number is not 0.
    pub(super) fn truth(&mut self, span: Span, value: &Val) -> Result<Val> {
        if let Some(x) = value.as_real() {
            return Ok(Val::bool(x != 0.0));
        }
        if let What::Scalar(Elem::Of(node, _)) = value.what
            && matches!(self.graph.nodes[node].op, Op::Compare(_) | Op::CallBool(_))
        {
            return Ok(value.clone());
        }
        self.apply(span, Op::Compare("!="), &[value.clone(), Val::int(0)], Kind::INT, vec![])
    }

    /// `a` where a condition holds, else `b`, element by element.
    pub(super) fn select(&mut self, span: Span, condition: &Val, a: &Val, b: &Val) -> Result<Val> {
        if let Some(c) = condition.as_int() {
            return Ok(if c != 0 { a.clone() } else { b.clone() });
        }
        if (a.is_complex() || b.is_complex() || a.is_tuple()) && a.shape != b.shape {
            return unsupported(span, "complex numbers or tuples whose number depends on parameters");
        }
        if a.is_complex() || b.is_complex() {
            let kind = a.kind.complex();
            let arms = [a.of_kind(kind), b.of_kind(kind)];
            return self.both_parts(&arms, |t, arms| t.select(span, condition, &arms[0], &arms[1]));
        }
        let counted = a.counted().is_some() || b.counted().is_some();
        if counted || a.shape != b.shape && !a.is_tuple() && !b.is_tuple() {
            return self.select_counted(span, condition, a, b);
        }
        if let (Some(of_a), Some(of_b)) = (a.parts(), b.parts()) {
            if of_a.iter().zip(of_b).any(|(a, b)| a.shape != b.shape) {
                return unsupported(span, "a tuple whose size depends on parameters");
            }
            // What neither changes is no state of a loop.
            let parts = of_a.iter().zip(of_b).map(|(a, b)| match a.kind == b.kind && same(a, b) {
                true => Ok(a.clone()),
                false => self.select(span, condition, a, b),
            });
            return Ok(Val::tuple(a.shape.clone(), parts.collect::<Result<_>>()?));
        }
        let kind = if a.kind.is_int() { b.kind } else { a.kind };
        if a.is_scalar() || matches!((&a.what, &b.what), (What::Whole(_), What::Whole(_))) {
            let args = [condition.clone(), a.clone(), b.clone()];
            return self.node(span, Op::Select, &args, kind, a.shape.clone());
        }
        // Where few elements differ, few are chosen.
        let scalar = if kind.is_int() { Kind::INT } else { Kind::REAL };
        if let (What::Elements(x), What::Elements(y)) = (&a.what, &b.what) {
            let mut chosen = x.clone();
            for at in x.differing(y) {
                chosen.set(at, self.select_elem(span, condition, scalar, [x.get(at), y.get(at)])?);
            }
            return Ok(Val { kind, shape: a.shape.clone(), what: What::Elements(chosen) });
        }
        let (mut elems, others) = (a.elem_list().into_owned(), b.elem_list());
        for (elem, y) in elems.iter_mut().zip(others.iter().copied()) {
            let x = *elem;
            if x == y {
                continue;
            }
            *elem = self.select_elem(span, condition, scalar, [x, y])?;
        }
        Ok(Val::from_elems(kind, a.shape.clone(), elems))
    }

    fn select_elem(&mut self, span: Span, condition: &Val, scalar: Kind, arms: [Elem; 2]) -> Result<Elem> {
        let [a, b] = arms.map(|elem| Val::from_elems(scalar, vec![], vec![elem]));
        Ok(self.node(span, Op::Select, &[condition.clone(), a, b], scalar, vec![])?.elem(0))
    }

    /// Rejects where a condition does not hold.
    pub(super) fn check(&mut self, span: Span, condition: &Val, message: &str) -> Result<()> {
        self.check_telling(span, condition, vec![Arc::from(message)], vec![])
    }

    /// The same, with values between the texts of the message.
    pub(super) fn check_telling(
        &mut self,
        span: Span,
        condition: &Val,
        mut texts: Vec<Arc<str>>,
        mut values: Vec<Val>,
    ) -> Result<()> {
        // What is known stands in the text, so that the message takes nothing that it need not.
        if let Some(known) = values.iter().map(Val::known_text).collect::<Option<Vec<_>>>() {
            (texts, values) = (vec![filled(&texts, &known).into()], vec![]);
        }
        if self.guards.is_empty()
            && let Some(holds) = condition.as_int()
        {
            if holds != 0 {
                return Ok(());
            }
            if values.is_empty() {
                return wrong(span, &*texts[0]);
            }
        }
        if condition.as_int().is_some_and(|holds| holds != 0) {
            return Ok(());
        }
        let mut holds = condition.clone();
        for guard in self.guards.clone() {
            let off = self.apply(span, Op::Compare("=="), &[guard, Val::int(0)], Kind::INT, vec![])?;
            holds = self.call_ab(span, "max", &[off, holds], Kind::INT, vec![])?;
        }
        values.insert(0, holds);
        self.node(span, Op::Assert(texts.into()), &values, Kind::INT, vec![])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use super::STOPPING;
    use crate::check::StdLibrary;

    /// The names that a text calls.
    fn called(text: &str) -> BTreeSet<&str> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        text.match_indices('(').filter_map(|(at, _)| text[..at].rsplit(|c| !is_name(c)).next()).collect()
    }

    #[test]
    fn all_of_the_library_that_stops_lanes_is_known() {
        // Not of the samplers, which ship beside it.
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/std");
        let is_of_library = |path: &&str| folder.join(path).is_file();
        let mut functions: BTreeMap<&str, (bool, BTreeSet<&str>)> = BTreeMap::new();
        for path in StdLibrary::paths().filter(is_of_library) {
            let text = StdLibrary::text(path).expect("a module of the library");
            for item in text.split("\n}\n") {
                let Some(head) = item.lines().find(|line| line.starts_with("fn ") || line.starts_with("pub fn "))
                else {
                    continue;
                };
                let name = head.trim_start_matches("pub ").trim_start_matches("fn ");
                let name = name.split(['[', '(']).next().expect("there is one");
                let (public, calls) = functions.entry(name).or_default();
                *public |= head.starts_with("pub ");
                calls.extend(called(item));
            }
        }
        let mut stopping = BTreeSet::from(["assert"]);
        loop {
            let calls = |(name, (_, calls)): (&&'static str, &(bool, BTreeSet<&str>))| {
                (!stopping.contains(name) && !calls.is_disjoint(&stopping)).then_some(*name)
            };
            let more: Vec<&str> = functions.iter().filter_map(calls).collect();
            if more.is_empty() {
                break;
            }
            stopping.extend(more);
        }
        // Generators are told by their names. Some of the others give starting points, which stand under no condition.
        // Programs of Stan have some by other names.
        let others = [
            "corr_matrix_unconstrain",
            "cov_matrix_unconstrain",
            "eigendecompose_sym",
            "eigenvalues_sym",
            "eigenvectors_sym",
        ];
        let public = |name: &&str| functions.get(name).is_some_and(|(public, _)| *public) && !name.ends_with("_rng");
        let found: Vec<&str> = stopping.iter().copied().filter(public).filter(|name| !others.contains(name)).collect();
        assert_eq!(found, STOPPING);
    }
}
