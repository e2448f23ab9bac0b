//! Containers of which lanes compute how many elements they have: ranges whose ends lanes compute, and local variables of
//! such sizes. A value has as many elements as there can be, and a count. What is elementwise is done to all of them, sums
//! and their like take those behind the count for what changes nothing, and any other function of few elements is called
//! for every count that there can be.

use super::call::leaves_out_all;
use super::flow::{Flow, Mixed};
use super::index::At;
use super::{Result, Tracer, unsupported, wrong};
use crate::base::{HashMap, Span};
use crate::stan::graph::{Arg, Op};
use crate::stan::syntax::ast::BinaryOp;
use crate::stan::value::{Base, Counted, Elem, Kind, NodeId, Val, What};

/// Up to so many elements a function is called for every count.
const FEW: usize = 64;

/// Functions of several arguments that are elementwise and are no rows of the table of elementwise functions.
const ELEMENTWISE: &[&str] =
    &["abs", "fabs", "softplus", "pow", "multiply_log", "fmin", "fmax", "fmod", "fma", "lchoose"];

/// So far back an int is looked at for the most that it can be.
const DEEPEST: usize = 1000;

/// The least and the most that an int can be.
type Bounds = Option<(i64, i64)>;

impl Val {
    /// The first elements of a container, as many as lanes compute.
    pub(in crate::stan) fn of_count(whole: Val, count: Val) -> Val {
        if let Some(n) = count.as_int() {
            let n = usize::try_from(n).unwrap_or(0).min(whole.shape[0]);
            return first(&whole, n);
        }
        Val { kind: whole.kind, shape: whole.shape.clone(), what: What::Counted(Counted { whole, count }.into()) }
    }

    /// All elements that there can be and how many there are: of any container.
    fn whole_and_count(&self) -> (Val, Val) {
        match self.counted() {
            Some(Counted { whole, count }) => (Val { kind: self.kind, ..whole.clone() }, count.clone()),
            None => (self.clone(), Val::int(self.shape[0] as i64)),
        }
    }
}

/// The first n elements along the first axis.
fn first(whole: &Val, n: usize) -> Val {
    part(whole, 0, n)
}

/// The elements from a place on along the first axis.
fn part(whole: &Val, from: usize, n: usize) -> Val {
    if from == 0 && n == whole.shape[0] {
        return whole.clone();
    }
    let size: usize = whole.shape[1..].iter().product();
    let shape = std::iter::once(n).chain(whole.shape[1..].iter().copied()).collect();
    whole.pick(whole.kind, shape, from * size..(from + n) * size)
}

/// The elements, then the first of them again until there are n: of none, zeros.
fn padded(whole: &Val, n: usize) -> Val {
    let have = whole.shape[0];
    if n <= have {
        return first(whole, n);
    }
    let size: usize = whole.shape[1..].iter().product();
    let mut elems = whole.elems();
    let zero = if whole.kind.is_int() { Elem::Int(0) } else { Elem::Real(0.0) };
    let again: Vec<Elem> = if have == 0 { vec![zero; size] } else { elems[..size].to_vec() };
    (have..n).for_each(|_| elems.extend(&again));
    let shape = std::iter::once(n).chain(whole.shape[1..].iter().copied()).collect();
    Val::from_elems(whole.kind, shape, elems)
}

/// Whether one of two values can be chosen: they differ in the extent of the first axis at most, and only where they are of
/// numbers.
fn may_be_one(a: &Val, b: &Val) -> bool {
    let alike = a.shape.len() == b.shape.len() && (a.shape.is_empty() || a.shape[1..] == b.shape[1..]);
    alike && (a.shape == b.shape || !(a.is_complex() || a.is_tuple() || b.is_complex() || b.is_tuple()))
}

fn same_count(a: &Val, b: &Val) -> bool {
    matches!((&a.what, &b.what), (What::Scalar(a), What::Scalar(b)) if a == b)
}

impl Tracer<'_> {
    /// The elements before a count, and in the place of the others a number.
    fn filled(&mut self, span: Span, whole: &Val, count: &Val, otherwise: &Val) -> Result<Val> {
        if whole.shape[0] == 0 {
            return Ok(whole.clone());
        }
        if !whole.kind.is_int() && whole.shape.len() == 1 {
            let args = [whole.clone(), count.clone(), otherwise.promoted()];
            return self.call_ab(span, "first_or", &args, whole.kind, whole.shape.clone());
        }
        let size: usize = whole.shape[1..].iter().product();
        let scalar = if whole.kind.is_int() { Kind::INT } else { Kind::REAL };
        let mut elems = whole.elems();
        for (i, row) in elems.chunks_mut(size.max(1)).enumerate() {
            let there = self.compare(span, "<", &Val::int(i as i64), count)?;
            for elem in row {
                let one = Val::from_elems(scalar, vec![], vec![*elem]);
                *elem = self.select(span, &there, &one, otherwise)?.elem(0);
            }
        }
        Ok(Val::from_elems(whole.kind, whole.shape.clone(), elems))
    }

    /// A value of so many elements, of which those behind the count are the first one again, so that what is computed of
    /// them are numbers, and their derivatives.
    fn settled(&mut self, span: Span, whole: Val, count: Val) -> Result<Val> {
        if count.is_known() || whole.shape[0] == 0 {
            return Ok(Val::of_count(whole, count));
        }
        let whole = if whole.shape.len() == 1 {
            let otherwise = whole.pick(if whole.kind.is_int() { Kind::INT } else { Kind::REAL }, vec![], 0..1);
            self.filled(span, &whole, &count, &otherwise)?
        } else {
            let (head, mut elems) = (first(&whole, 1), first(&whole, 1).elems());
            for i in 1..whole.shape[0] {
                let there = self.compare(span, "<", &Val::int(i as i64), &count)?;
                elems.extend(self.select(span, &there, &part(&whole, i, 1), &head)?.elems());
            }
            Val::from_elems(whole.kind, whole.shape.clone(), elems)
        };
        Ok(Val::of_count(whole, count))
    }

    /// The elements of a container, along its first axis, between ends of which lanes compute one at least, or how many
    /// elements there are.
    fn elements_between(&mut self, span: Span, base: &Val, from: Option<&Val>, to: Option<&Val>) -> Result<Val> {
        let (whole, limit) = base.whole_and_count();
        let n = whole.shape[0];
        let from = from.cloned().unwrap_or(Val::int(1));
        let to = to.cloned().unwrap_or(limit.clone());
        let mut count = to.clone();
        if from.as_int() != Some(1) {
            let after = self.infix(span, "-", &to, &from)?;
            count = self.infix(span, "+", &after, &Val::int(1))?;
        }
        if self.bounds(&count).is_none_or(|(least, _)| least < 0) {
            count = self.call_ab(span, "max", &[count, Val::int(0)], Kind::INT, vec![])?;
        }
        // A range from above to below has no elements, wherever it is.
        let empty = self.compare(span, "==", &count, &Val::int(0))?;
        let low = self.compare(span, ">=", &from, &Val::int(1))?;
        let high = self.compare(span, "<=", &to, &limit)?;
        let inside = self.both(span, &low, &high)?;
        let fine = self.either(span, &empty, &inside)?;
        self.check(span, &fine, &format!("a range is out of range: there are {n}"))?;
        let place = |v: &Val| v.as_int().map(|i| usize::try_from(i).unwrap_or(0));
        let can_be = match (place(&from), place(&to)) {
            (Some(from), Some(to)) => (to + 1).saturating_sub(from),
            (Some(from), None) => (n + 1).saturating_sub(from.max(1)),
            (None, Some(to)) => to,
            (None, None) => n,
        };
        let can_be = can_be.min(n);
        if can_be == 0 || n == 0 {
            return Ok(first(&whole, 0));
        }
        let whole = match place(&from) {
            Some(from) => {
                let from = from.max(1) - 1;
                // Whoever comes here is rejected.
                if from >= n {
                    return Ok(first(&whole, 0));
                }
                part(&whole, from, can_be.min(n - from))
            }
            None => {
                let from = self.infix(span, "-", &from, &Val::int(1))?;
                let all = self.elements_from(span, &whole, &from, &count)?;
                return Ok(Val::of_count(first(&all, can_be), count));
            }
        };
        self.settled(span, whole, count)
    }

    /// The elements from a place of lanes on, counted from 0: so many, and then others that there are.
    fn elements_from(&mut self, span: Span, whole: &Val, from: &Val, count: &Val) -> Result<Val> {
        if !whole.kind.is_int() && whole.shape.len() == 1 {
            let args = [whole.clone(), from.clone(), count.clone()];
            return self.call_ab(span, "from_place", &args, whole.kind, whole.shape.clone());
        }
        let last = Val::int(whole.shape[0] as i64 - 1);
        let mut elems = Vec::with_capacity(whole.len());
        for i in 0..whole.shape[0] as i64 {
            let at = self.infix(span, "+", from, &Val::int(i))?;
            let at = self.call_ab(span, "min", &[at, last.clone()], Kind::INT, vec![])?;
            let at = self.call_ab(span, "max", &[at, Val::int(0)], Kind::INT, vec![])?;
            let args = [whole.clone(), at];
            elems.extend(self.node(span, Op::At, &args, whole.kind.element(), whole.shape[1..].to_vec())?.elems());
        }
        Ok(Val::from_elems(whole.kind, whole.shape.clone(), elems))
    }

    /// `base[indices]`, of a value of which lanes compute how many elements it has.
    pub(super) fn indexed_counted(&mut self, span: Span, base: &Val, indices: &[At]) -> Result<Val> {
        let (whole, count) = base.whole_and_count();
        let Some((at, rest)) = indices.split_first() else { return Ok(base.clone()) };
        let is_inside = |t: &mut Self, index: &Val| {
            let (low, high) = (t.compare(span, ">=", index, &Val::int(1))?, t.compare(span, "<=", index, &count)?);
            let inside = t.both(span, &low, &high)?;
            t.check(span, &inside, &format!("an index is out of range: there are no more than {}", whole.shape[0]))
        };
        match at {
            At::One(i, _) => is_inside(self, &Val::int(*i))?,
            At::Lane(i, _) => is_inside(self, i)?,
            At::Many(all, _) => all.iter().try_for_each(|i| is_inside(self, &Val::int(*i)))?,
            At::Lanes(all, _) => {
                (0..all.len()).try_for_each(|i| is_inside(self, &super::index::number_at(all, i)))?;
            }
            At::All => {
                let all = self.indexed(span, &whole, indices)?;
                return Ok(Val::of_count(all, count));
            }
            At::Range(from, to, _) => {
                let [from, to] = [from, to].map(|end| end.map(Val::int));
                let chosen = self.elements_between(span, base, from.as_ref(), to.as_ref())?;
                return self.rest_of(span, &chosen, rest);
            }
            At::Span(from, to, _) => {
                let chosen = self.elements_between(span, base, from.as_ref(), to.as_ref())?;
                return self.rest_of(span, &chosen, rest);
            }
            At::Counted(..) => return self.indexed_span(span, base, indices),
        }
        self.indexed(span, &whole, indices)
    }

    /// What indices after the first one, which chooses all, leave.
    fn rest_of(&mut self, span: Span, value: &Val, rest: &[At]) -> Result<Val> {
        if rest.iter().all(|at| matches!(at, At::All)) {
            return Ok(value.clone());
        }
        let indices: Vec<At> = std::iter::once(At::All).chain(rest.iter().cloned()).collect();
        self.indexed(span, value, &indices)
    }

    /// `base[indices]`, where lanes compute how many one of them chooses: behind axes of which one element each is chosen.
    pub(super) fn indexed_span(&mut self, span: Span, base: &Val, indices: &[At]) -> Result<Val> {
        let axis = indices.iter().position(At::is_counted).expect("there is one");
        let rest = &indices[axis + 1..];
        if !indices[..axis].iter().all(|at| matches!(at, At::One(..) | At::Lane(..))) || rest.iter().any(At::is_counted)
        {
            return unsupported(span, "indices whose number depends on parameters, beside others");
        }
        let row = if axis == 0 { base.clone() } else { self.indexed(span, base, &indices[..axis])? };
        match &indices[axis] {
            At::Span(from, to, at) => {
                let row = self.rest_of(span, &row, rest)?;
                self.elements_between(*at, &row, from.as_ref(), to.as_ref())
            }
            At::Counted(places, at) => {
                let (places, count) = places.whole_and_count();
                let mut found: Vec<Val> = Vec::with_capacity(places.len());
                for i in 0..places.len() {
                    let there = self.compare(*at, "<", &Val::int(i as i64), &count)?;
                    let place = At::Lane(super::index::number_at(&places, i), *at);
                    let one: Vec<At> = std::iter::once(place).chain(rest.iter().cloned()).collect();
                    found.push(self.guarded(&there, |t| t.indexed(span, &row, &one))?);
                }
                // The kind is that of so many known places: none.
                let known = |at: &At| match at {
                    At::Lane(_, at) => At::One(1, *at),
                    At::Lanes(_, at) => At::Many(vec![], *at),
                    at => at.clone(),
                };
                let none: Vec<At> = std::iter::once(At::Many(vec![], *at)).chain(rest.iter().map(known)).collect();
                let none = self.indexed(span, &row, &none)?;
                let Some(head) = found.first() else { return Ok(none) };
                let (kind, shape) =
                    (none.kind, std::iter::once(found.len()).chain(head.shape.iter().copied()).collect());
                let elems = found.iter().flat_map(Val::elems).collect();
                Ok(Val::of_count(Val::from_elems(kind, shape, elems), count))
            }
            _ => unreachable!("it is one of which lanes compute how many it chooses"),
        }
    }

    /// `old[indices] = value`, where lanes compute how many elements one of them has or which a range chooses.
    pub(super) fn assigned_counted(&mut self, span: Span, old: &Val, indices: &[At], value: &Val) -> Result<Val> {
        if old.is_complex() || value.is_complex() {
            return unsupported(span, "complex numbers in a range whose ends depend on parameters");
        }
        if let Some((At::Counted(places, at), [])) = indices.split_first() {
            let ((places, count), (value, of_value)) = (places.whole_and_count(), value.whole_and_count());
            self.check_counts(span, &count, &of_value)?;
            let mut made = old.clone();
            for i in 0..places.len().min(value.shape[0]) {
                let there = self.compare(*at, "<", &Val::int(i as i64), &count)?;
                let place = [At::Lane(super::index::number_at(&places, i), *at)];
                let one = self.indexed(span, &value, &[At::One(i as i64 + 1, *at)])?;
                let with = self.guarded(&there, |t| t.assigned_at(span, &made, &place, &one))?;
                made = self.select(span, &there, &with, &made)?;
            }
            return Ok(made);
        }
        if let Some((at, rest)) = indices.split_first()
            && old.counted().is_some()
            && !matches!(at, At::Span(..) | At::Range(..))
        {
            // The place is looked at as where it is read.
            let one: Vec<At> = std::iter::once(at.clone()).chain(rest.iter().map(|_| At::All)).collect();
            self.indexed_counted(span, old, &one)?;
            let (whole, count) = old.whole_and_count();
            let value = match (at, value.shape.is_empty()) {
                (At::All, false) => {
                    let (value, own) = value.whole_and_count();
                    self.check_counts(span, &count, &own)?;
                    padded(&value, whole.shape[0])
                }
                _ if value.counted().is_some() => {
                    return unsupported(span, "elements whose number depends on parameters, in this place");
                }
                _ => value.clone(),
            };
            let made = self.with_element(span, &whole, indices, &value)?;
            return Ok(Val::of_count(made, count));
        }
        if indices.is_empty() {
            let (value, count) = value.whole_and_count();
            let (_, wanted) = old.whole_and_count();
            self.check_counts(span, &wanted, &count)?;
            let value = padded(&value, old.shape[0]).of_kind(old.kind);
            if value.shape != old.shape {
                return wrong(span, format!("the variable has the size {:?}, the value {:?}", old.shape, value.shape));
            }
            return Ok(Val::of_count(value, wanted));
        }
        let axis = indices.iter().position(|at| matches!(at, At::Span(..) | At::Range(..)));
        let Some(axis) = axis.filter(|axis| indices[axis + 1..].iter().all(|at| matches!(at, At::All))) else {
            return unsupported(span, "elements whose number depends on parameters, in this place");
        };
        if !indices[..axis].iter().all(|at| matches!(at, At::One(..) | At::Lane(..))) {
            return unsupported(span, "a range whose ends depend on parameters, behind other ranges");
        }
        if axis > 0 {
            let row = self.indexed(span, old, &indices[..axis])?;
            let row = self.assigned_counted(span, &row, &indices[axis..], value)?;
            return self.with_element(span, old, &indices[..axis], &row);
        }
        let (from, to, at) = match &indices[0] {
            At::Span(from, to, at) => (from.clone(), to.clone(), *at),
            At::Range(from, to, at) => (from.map(Val::int), to.map(Val::int), *at),
            _ => unreachable!("it is a range"),
        };
        let chosen = self.elements_between(at, old, from.as_ref(), to.as_ref())?;
        let ((_, wanted), (value, count)) = (chosen.whole_and_count(), value.whole_and_count());
        self.check_counts(span, &wanted, &count)?;
        let (whole, limit) = old.whole_and_count();
        let n = whole.shape[0];
        let from = from.unwrap_or(Val::int(1));
        let value = if whole.kind.is_int() { value } else { value.promoted() };
        let value = padded(&Val { kind: whole.kind, ..value }, n);
        let back = self.infix(span, "-", &Val::int(1), &from)?;
        let moved = if back.as_int() == Some(0) { value } else { self.elements_from(span, &value, &back, &limit)? };
        let after = self.infix(span, "+", &from, &wanted)?;
        let mut elems = Vec::with_capacity(whole.len());
        for i in 0..n {
            let place = Val::int(i as i64 + 1);
            let (low, high) = (self.compare(span, ">=", &place, &from)?, self.compare(span, "<", &place, &after)?);
            let here = self.both(span, &low, &high)?;
            elems.extend(self.select(span, &here, &part(&moved, i, 1), &part(&whole, i, 1))?.elems());
        }
        Ok(Val::of_count(Val::from_elems(whole.kind, whole.shape.clone(), elems), limit))
    }

    /// `old[indices] = value` of one element.
    fn assigned_at(&mut self, span: Span, old: &Val, indices: &[At], value: &Val) -> Result<Val> {
        if old.counted().is_some() {
            return self.assigned_counted(span, old, indices, value);
        }
        self.check_indices(&old.shape, indices)?;
        self.with_element(span, old, indices, value)
    }

    fn check_counts(&mut self, span: Span, wanted: &Val, count: &Val) -> Result<()> {
        if same_count(wanted, count) {
            return Ok(());
        }
        let fits = self.compare(span, "==", wanted, count)?;
        self.check(span, &fits, "sizes differ")
    }

    /// As many elements of each container as all of them have at most, and how many lanes take.
    fn agreed(&mut self, span: Span, args: &[Val]) -> Result<(Vec<Val>, Val)> {
        let containers = || args.iter().filter(|arg| !arg.is_scalar());
        let can_be = containers().map(|arg| arg.shape[0]).min().unwrap_or(0);
        let count = containers().find_map(|arg| arg.counted()).map(|c| c.count.clone());
        let count = count.expect("one of them is counted");
        let mut all = Vec::with_capacity(args.len());
        for arg in args {
            if arg.is_scalar() {
                all.push(arg.clone());
                continue;
            }
            let (whole, own) = arg.whole_and_count();
            self.check_counts(span, &count, &own)?;
            all.push(first(&whole, can_be));
        }
        Ok((all, count))
    }

    /// An elementwise operation: of all elements that there can be.
    pub(super) fn each_counted(
        &mut self,
        span: Span,
        args: &[Val],
        run: impl FnOnce(&mut Self, &[Val]) -> Result<Val>,
    ) -> Result<Val> {
        let (args, count) = self.agreed(span, args)?;
        let all = run(self, &args)?;
        Ok(Val::of_count(all, count))
    }

    /// `a + b` and its kin.
    pub(super) fn binary_counted(&mut self, span: Span, op: BinaryOp, a: &Val, b: &Val) -> Result<Val> {
        let scalar = a.is_scalar() || b.is_scalar();
        let args = [a.clone(), b.clone()];
        match op {
            BinaryOp::Add | BinaryOp::Subtract | BinaryOp::EltMultiply | BinaryOp::EltDivide | BinaryOp::EltPower => {
                self.each_counted(span, &args, |t, args| t.binary(span, op, &args[0], &args[1]))
            }
            BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Power if scalar => {
                self.each_counted(span, &args, |t, args| t.binary(span, op, &args[0], &args[1]))
            }
            BinaryOp::Multiply if (a.kind.base, b.kind.base) == (Base::RowVector, Base::Vector) => {
                self.library(span, "dot_product", &args)
            }
            _ => self.for_each_count(span, op.symbol(), &args, |t, args| t.binary(span, op, &args[0], &args[1])),
        }
    }

    /// A function of the library.
    pub(super) fn library_counted(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Val> {
        if args.iter().any(|arg| arg.is_complex() || arg.is_tuple()) {
            return unsupported(span, format!("`{name}` of elements whose number depends on parameters"));
        }
        let filled = |t: &mut Self, with: f64| -> Result<Val> {
            let (all, count) = t.agreed(span, args)?;
            let mut plain = Vec::with_capacity(all.len());
            for arg in all {
                let otherwise = if arg.kind.is_int() { Val::int(with as i64) } else { Val::real(with) };
                plain.push(if arg.is_scalar() { arg } else { t.filled(span, &arg, &count, &otherwise)? });
            }
            t.library(span, name, &plain)
        };
        let numbers = args.iter().all(|arg| arg.shape.len() <= 1);
        match (name, args) {
            ("size", [x]) => return Ok(x.whole_and_count().1),
            ("rows", [x]) if matches!(x.kind.base, Base::Vector | Base::Matrix) && x.kind.arrays == 0 => {
                return Ok(x.whole_and_count().1);
            }
            ("cols", [x]) if x.kind == Kind::ROW_VECTOR => return Ok(x.whole_and_count().1),
            ("num_elements", [x]) => {
                let size: usize = x.shape[1..].iter().product();
                return self.infix(span, "*", &x.whole_and_count().1, &Val::int(size as i64));
            }
            ("sum" | "dot_self" | "dot_product" | "norm1" | "norm2" | "distance" | "squared_distance", _)
                if numbers =>
            {
                return filled(self, 0.0);
            }
            ("prod", _) if numbers => return filled(self, 1.0),
            ("log_sum_exp" | "max", [x]) if numbers && !x.kind.is_int() => return filled(self, f64::NEG_INFINITY),
            ("min", [x]) if numbers && !x.kind.is_int() => return filled(self, f64::INFINITY),
            ("mean", [x]) if numbers => {
                let total = self.library(span, "sum", &[x.promoted()])?;
                let (_, count) = x.whole_and_count();
                return self.infix(span, "/", &total, &count.promoted());
            }
            ("variance" | "sd", [x]) if numbers => {
                let mean = self.library(span, "mean", args)?;
                let centred = self.binary_counted(span, BinaryOp::Subtract, &x.promoted(), &mean)?;
                let squares = self.library(span, "dot_self", &[centred])?;
                let less = self.infix(span, "-", &x.whole_and_count().1, &Val::int(1))?;
                // Of one number it is 0.
                let less = self.call_ab(span, "max", &[less, Val::int(1)], Kind::INT, vec![])?;
                let variance = self.infix(span, "/", &squares, &less.promoted())?;
                return if name == "sd" { self.elementwise(span, "sqrt", &[variance]) } else { Ok(variance) };
            }
            ("softmax" | "log_softmax" | "sort_desc" | "sort_asc", [x]) if numbers && !x.kind.is_int() => {
                let with = if name == "sort_asc" { f64::INFINITY } else { f64::NEG_INFINITY };
                let (all, count) = (filled(self, with)?, x.whole_and_count().1);
                return self.settled(span, all, count);
            }
            ("cumulative_sum", [_]) if numbers => {
                return self.each_counted(span, args, |t, args| t.library(span, name, args));
            }
            ("to_vector" | "to_row_vector" | "to_array_1d", [x]) if numbers => {
                let (whole, count) = x.whole_and_count();
                let whole = self.library(span, name, &[whole])?;
                return Ok(Val::of_count(whole, count));
            }
            ("head", [x, n]) => return self.elements_between(span, x, None, Some(n)),
            ("segment", [x, from, n]) => {
                let to = self.infix(span, "+", from, n)?;
                let to = self.infix(span, "-", &to, &Val::int(1))?;
                return self.elements_between(span, x, Some(from), Some(&to));
            }
            ("tail", [x, n]) => {
                let (_, count) = x.whole_and_count();
                let before = self.infix(span, "-", &count, n)?;
                let from = self.infix(span, "+", &before, &Val::int(1))?;
                return self.elements_between(span, x, Some(&from), None);
            }
            _ if self.is_elementwise(name, args.len()) || ELEMENTWISE.contains(&name) => {
                return self.each_counted(span, args, |t, args| t.library(span, name, args));
            }
            _ if self.is_vectorised(name) || name.ends_with("_lcdf") || name.ends_with("_lccdf") => {
                return self.density_counted(span, args, &mut |t, args| t.library(span, name, args));
            }
            _ => {}
        }
        self.for_each_count(span, name, args, |t, args| t.library(span, name, args))
    }

    /// The sum of a density over as many elements as there are: of each by itself, so that nothing is demanded of others.
    fn density_counted(
        &mut self,
        span: Span,
        args: &[Val],
        run: &mut dyn FnMut(&mut Self, &[Val]) -> Result<Val>,
    ) -> Result<Val> {
        let (args, count) = self.agreed(span, args)?;
        let n = args.iter().find(|arg| !arg.is_scalar()).map_or(0, Val::len);
        let mut terms = Vec::with_capacity(n);
        for i in 0..n {
            let there = self.compare(span, "<", &Val::int(i as i64), &count)?;
            let numbers: Vec<Val> = args.iter().map(|arg| super::broadcast::number(arg, i)).collect();
            let term = self.guarded(&there, |t| run(t, &numbers))?;
            terms.push(self.select(span, &there, &term, &Val::real(0.0))?.elem(0));
        }
        self.library(span, "sum", &[Val::from_elems(Kind::VECTOR, vec![n], terms)])
    }

    /// A density of the library without what `~` leaves out, which depends on the count.
    pub(super) fn density_left_out(
        &mut self,
        span: Span,
        name: &str,
        base: &str,
        args: &[Val],
        data: &[bool],
    ) -> Result<Val> {
        if leaves_out_all(base, data) {
            return Ok(Val::real(0.0));
        }
        let mut run = |t: &mut Self, args: &[Val]| {
            let density = t.library(span, name, args)?;
            match t.constant_of(span, base, args, data, &density)? {
                0.0 => Ok(density),
                constant => t.infix(span, "-", &density, &Val::real(constant)),
            }
        };
        if self.is_vectorised(name) {
            return self.density_counted(span, args, &mut run);
        }
        self.for_each_count(span, name, args, run)
    }

    /// What is done to a container of few elements, for every count that there can be.
    fn for_each_count(
        &mut self,
        span: Span,
        name: &str,
        args: &[Val],
        mut run: impl FnMut(&mut Self, &[Val]) -> Result<Val>,
    ) -> Result<Val> {
        let counted = args.iter().find_map(|arg| Some((arg.shape[..].first().copied()?, arg.counted()?.count.clone())));
        let (n, count) = counted.expect("one of them is counted");
        if n > FEW {
            let message = format!("`{name}` of up to {n} elements, whose number depends on parameters");
            return unsupported(span, message);
        }
        let mut found: Option<Val> = None;
        let mut why = None;
        for i in 0..=n {
            let here = self.compare(span, "==", &count, &Val::int(i as i64))?;
            let of_count = |arg: &Val| match arg.counted() {
                Some(counted) if same_count(&counted.count, &count) => {
                    first(&arg.whole_and_count().0, i.min(arg.shape[0]))
                }
                _ => arg.clone(),
            };
            let args: Vec<Val> = args.iter().map(of_count).collect();
            match self.guarded(&here, |t| run(t, &args)) {
                Ok(value) => {
                    found = Some(match found {
                        None => value,
                        Some(before) if !may_be_one(&value, &before) => {
                            return unsupported(
                                span,
                                format!("`{name}` of elements whose number depends on parameters"),
                            );
                        }
                        Some(before) => self.select(span, &here, &value, &before)?,
                    });
                }
                Err(problem) if problem.unsupported || problem.again.is_some() => return Err(problem),
                // Who has so many is rejected.
                Err(problem) => {
                    self.guarded(&here, |t| t.check(span, &Val::int(0), &problem.message))?;
                    why = Some(problem);
                }
            }
        }
        match (found, why) {
            (Some(value), _) => Ok(value),
            (None, Some(why)) => Err(why),
            (None, None) => unreachable!("no elements are a count"),
        }
    }

    /// `a` where a condition holds, else `b`, where their sizes differ: as many elements as the one that is chosen has.
    pub(super) fn select_counted(&mut self, span: Span, condition: &Val, a: &Val, b: &Val) -> Result<Val> {
        if a.shape.len() != b.shape.len() || a.shape.is_empty() || a.shape[1..] != b.shape[1..] {
            return wrong(span, format!("the arms have sizes {:?} and {:?}", a.shape, b.shape));
        }
        let ((a, of_a), (b, of_b)) = (a.whole_and_count(), b.whole_and_count());
        let n = a.shape[0].max(b.shape[0]);
        let whole = self.select(span, condition, &padded(&a, n), &padded(&b, n))?;
        let count = if same_count(&of_a, &of_b) { of_a } else { self.select(span, condition, &of_a, &of_b)? };
        Ok(Val::of_count(whole, count))
    }

    /// Who comes to turn i of so many as lanes compute, counted from 0.
    pub(super) fn comes_to(&mut self, span: Span, i: usize, count: &Val, left: Option<Mixed>) -> Result<Mixed> {
        let next = self.compare(span, "<", &Val::int(i as i64), count)?;
        let broke = self.negated(span, &next)?;
        let here = Mixed { next, broke, ..Mixed::of(Flow::Next) };
        match left {
            None => Ok(here),
            Some(left) => self.then(span, left, Flow::Mixed(Box::new(here))),
        }
    }

    /// The least and the most that an int of lanes can be, where that is known by what it is made of.
    pub(super) fn bounds(&self, value: &Val) -> Bounds {
        self.bounds_of(value.is_scalar().then(|| value.elem(0))?, 0, &mut HashMap::default())
    }

    fn bounds_of(&self, elem: Elem, depth: usize, found: &mut HashMap<NodeId, Bounds>) -> Bounds {
        match elem {
            Elem::Int(i) => Some((i, i)),
            Elem::Of(node, 0) if depth < DEEPEST => {
                if let Some(bounds) = found.get(&node) {
                    return *bounds;
                }
                let bounds = self.bounds_of_node(node, depth, found);
                found.insert(node, bounds);
                bounds
            }
            _ => None,
        }
    }

    fn bounds_of_node(&self, node: NodeId, depth: usize, found: &mut HashMap<NodeId, Bounds>) -> Bounds {
        let node = &self.graph.nodes[node];
        let mut arg = |i: usize| match node.args.get(i)? {
            Arg::Scalar(elem) => self.bounds_of(*elem, depth + 1, found),
            _ => None,
        };
        match &node.op {
            Op::Compare(_) | Op::CallBool(_) => Some((0, 1)),
            Op::Infix("+") => {
                let ((a, b), (c, d)) = (arg(0)?, arg(1)?);
                Some((a.checked_add(c)?, b.checked_add(d)?))
            }
            Op::Infix("-") => {
                let ((a, b), (c, d)) = (arg(0)?, arg(1)?);
                Some((a.checked_sub(d)?, b.checked_sub(c)?))
            }
            Op::Infix("*") => {
                let ((a, b), (c, d)) = (arg(0)?, arg(1)?);
                let all = [a.checked_mul(c)?, a.checked_mul(d)?, b.checked_mul(c)?, b.checked_mul(d)?];
                Some((*all.iter().min()?, *all.iter().max()?))
            }
            Op::Select => {
                let ((a, b), (c, d)) = (arg(1)?, arg(2)?);
                Some((a.min(c), b.max(d)))
            }
            Op::At if node.args.len() == 2 => match &node.args[0] {
                Arg::Known(array) => array.as_int().and_then(|all| Some((*all.iter().min()?, *all.iter().max()?))),
                _ => None,
            },
            Op::Call(name, _) => match (&**name, arg(0), arg(1)) {
                ("min", Some((a, b)), Some((c, d))) => Some((a.min(c), b.min(d))),
                ("max", Some((a, b)), Some((c, d))) => Some((a.max(c), b.max(d))),
                // What is not bounded below is a size that is rejected there.
                ("min", Some((_, b)), None) | ("min", None, Some((_, b))) => Some((i64::MIN, b)),
                ("bernoulli_rng" | "bernoulli_logit_rng", ..) => Some((0, 1)),
                ("binomial_rng" | "beta_binomial_rng", Some((_, most)), _) => Some((0, most)),
                ("categorical_rng" | "categorical_logit_rng", ..) => {
                    let n: usize = match node.args.first()? {
                        Arg::Known(array) => array.shape.iter().product(),
                        Arg::Whole(node) => self.graph.nodes[*node].shape.iter().product(),
                        Arg::Elements(_, shape) => shape.iter().product(),
                        Arg::Scalar(_) | Arg::Prefix(..) => return None,
                    };
                    Some((0, n as i64 - 1))
                }
                _ => None,
            },
            _ => None,
        }
    }
}
