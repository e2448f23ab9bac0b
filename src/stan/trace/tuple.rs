//! Tuples. A tuple is its parts, and an array of tuples is a tuple of arrays: every part is a value with the axes of the
//! array before its own. Where a program's variable is a list of plain ones (parameters, data, outputs), its *leaves* are
//! taken one after the other, element by element, as Stan has them, and called as in Stan's files: `t:1`, `a.2:1`.

use std::sync::Arc;

use super::index::At;
use super::{Result, Tracer, unsupported, wrong};
use crate::base::Span;
use crate::stan::data::{self, StanData};
use crate::stan::syntax::ast::{BinaryOp, Expr, ExprKind, Name, SizedKind, SizedType, UnsizedType, Variable};
use crate::stan::value::{Base, Elem, Kind, Val, What};
use crate::types::Datum;

/// What a declared type is, with its extents.
#[derive(Clone, Debug)]
pub(super) enum Layout {
    Plain(Kind, Vec<usize>),
    /// The extents of the array, and the parts of each element.
    Tuple(Vec<usize>, Vec<Layout>),
}

impl Layout {
    /// A value of this layout that nobody has assigned to, with axes around it.
    fn unset(&self, outer: &[usize]) -> Val {
        match self {
            Layout::Plain(kind, shape) => {
                let kind = Kind { arrays: outer.len() + kind.arrays, ..*kind };
                Tracer::unset(kind, [outer, shape].concat())
            }
            Layout::Tuple(dims, parts) => {
                let shape = [outer, dims].concat();
                let parts = parts.iter().map(|part| part.unset(&shape)).collect();
                Val::tuple(shape, parts)
            }
        }
    }

    /// The value whose leaves are these.
    fn assembled(&self, leaves: &mut impl Iterator<Item = Val>) -> Val {
        match self {
            Layout::Plain(..) => leaves.next().expect("there is a value for each leaf"),
            Layout::Tuple(dims, parts) => {
                let n: usize = dims.iter().product();
                let mut one = || Val::tuple(vec![], parts.iter().map(|part| part.assembled(leaves)).collect());
                if dims.is_empty() {
                    return one();
                }
                let all: Vec<Val> = (0..n).map(|_| one()).collect();
                if all.is_empty() { self.unset(&[]) } else { wound(&all, dims) }
            }
        }
    }
}

/// What a value is, without its elements. Its *plain parts* are what it has of no tuples: itself, or the parts of its parts
/// in order, each with the axes of the arrays around it.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Form {
    Plain(Kind, Vec<usize>),
    Tuple(Vec<usize>, Vec<Form>),
}

impl Form {
    pub(super) fn of(value: &Val) -> Form {
        match value.parts() {
            Some(parts) if value.is_tuple() => Form::Tuple(value.shape.clone(), parts.iter().map(Form::of).collect()),
            _ => Form::Plain(value.kind, value.shape.clone()),
        }
    }

    /// That of the values of a type, where it has no extents.
    pub(super) fn of_scalars(ty: &UnsizedType) -> Option<Form> {
        if let UnsizedType::Tuple(parts) = ty {
            return Some(Form::Tuple(vec![], parts.iter().map(Form::of_scalars).collect::<Option<_>>()?));
        }
        let kind = Kind::of_type(ty).filter(|kind| kind.rank() == 0)?;
        Some(Form::Plain(kind, vec![]))
    }

    /// For each plain part whether it is of ints, and its shape, as routines are given it.
    pub(super) fn packed(&self) -> Vec<(bool, Vec<usize>)> {
        match self {
            Form::Plain(kind, shape) => vec![kind.given(shape)],
            Form::Tuple(_, parts) => parts.iter().flat_map(Form::packed).collect(),
        }
    }

    /// The value whose plain parts are these, as routines give them.
    pub(super) fn unpacked(&self, parts: &mut impl Iterator<Item = Val>) -> Val {
        match self {
            Form::Plain(kind, _) => parts.next().expect("there is a value for each part").unpacked(*kind),
            Form::Tuple(shape, forms) => {
                Val::tuple(shape.clone(), forms.iter().map(|form| form.unpacked(parts)).collect())
            }
        }
    }
}

/// Values as an array of them: at least one.
fn wound(items: &[Val], dims: &[usize]) -> Val {
    let first = &items[0];
    let shape = [dims, &first.shape[..]].concat();
    if let Some(complex) = items.iter().find(|item| item.is_complex()) {
        let items: Vec<Val> = items.iter().map(|item| item.of_kind(complex.kind)).collect();
        let part = |k: usize| -> Vec<Val> { items.iter().map(|item| item.part(k).clone()).collect() };
        return Val::complex(wound(&part(0), dims), wound(&part(1), dims));
    }
    if let Some(parts) = first.parts() {
        let part = |k: usize| -> Vec<Val> { items.iter().map(|item| item.part(k).clone()).collect() };
        return Val::tuple(shape, (0..parts.len()).map(|k| wound(&part(k), dims)).collect());
    }
    let int = items.iter().all(|item| item.kind.is_int());
    let of = |item: &Val| if int { item.elems() } else { item.promoted().elems() };
    let elems: Vec<Elem> = items.iter().flat_map(of).collect();
    let kind = if int { first.kind } else { first.promoted().kind };
    Val::from_elems(Kind { arrays: kind.arrays + dims.len(), ..kind }, shape, elems)
}

/// A plain variable in one that has tuples.
pub(super) struct Leaf<'t> {
    /// As Stan's files have it.
    pub(super) name: Arc<str>,
    pub(super) ty: &'t SizedType,
    path: Vec<Step>,
}

#[derive(Clone)]
enum Step {
    /// An element of an array: its indices, and its place in row-major order.
    Element(Vec<usize>, usize),
    Part(usize),
}

impl Leaf<'_> {
    /// Its value in that of the variable.
    pub(super) fn of(&self, value: &Val) -> Val {
        self.path.iter().fold(value.clone(), |value, step| match step {
            Step::Part(k) => value.part(*k).clone(),
            Step::Element(_, at) => value.element(*at),
        })
    }

    /// What it is in the JSON of a variable: tuples are objects with the keys "1", "2", ….
    pub(super) fn of_json<'v>(&self, mut value: &'v serde_json::Value) -> Option<&'v serde_json::Value> {
        for step in &self.path {
            value = match step {
                Step::Part(k) => value.get((k + 1).to_string())?,
                Step::Element(place, _) => place.iter().try_fold(value, |value, i| value.get(i))?,
            };
        }
        Some(value)
    }
}

impl Val {
    /// A tuple, or an array of tuples of this shape.
    pub(super) fn tuple(shape: Vec<usize>, parts: Vec<Val>) -> Val {
        Val { kind: Kind { base: Base::Tuple, arrays: shape.len() }, shape, what: What::Parts(Arc::new(parts)) }
    }
    pub(super) fn is_tuple(&self) -> bool {
        self.kind.base == Base::Tuple
    }
    /// The parts of a tuple, or of a complex value.
    pub(super) fn parts(&self) -> Option<&[Val]> {
        if let What::Parts(parts) = &self.what { Some(parts) } else { None }
    }
    /// Its plain parts (see [`Form`]).
    pub(super) fn plain_parts(&self) -> Vec<&Val> {
        match self.parts() {
            Some(parts) if self.is_tuple() => parts.iter().flat_map(Val::plain_parts).collect(),
            _ => vec![self],
        }
    }
    /// The same, each with what a routine calls it where this is the value of a variable of this name.
    pub(super) fn named_parts(&self, name: &Arc<str>) -> Vec<(Arc<str>, &Val)> {
        let named = |(k, part)| {
            // No name of Stan ends with two underscores.
            let name = if self.is_tuple() { format!("{name}_{}__", k + 1).into() } else { name.clone() };
            (name, part)
        };
        self.plain_parts().into_iter().enumerate().map(named).collect()
    }
    /// The value that has these plain parts in the place of its own.
    pub(super) fn with_plain_parts(&self, new: &mut impl Iterator<Item = Val>) -> Val {
        match self.parts() {
            Some(parts) if self.is_tuple() => {
                Val::tuple(self.shape.clone(), parts.iter().map(|part| part.with_plain_parts(new)).collect())
            }
            _ => new.next().expect("there is a value for each part"),
        }
    }
    fn part(&self, k: usize) -> &Val {
        &self.parts().expect("a tuple has parts")[k]
    }
    /// One element of an array over all of its axes.
    fn element(&self, at: usize) -> Val {
        self.sliced(self.shape.len(), at)
    }
    /// What is at a place of the first so many axes.
    fn sliced(&self, axes: usize, at: usize) -> Val {
        let shape = self.shape[axes..].to_vec();
        if let (Some(parts), true) = (self.parts(), self.is_tuple()) {
            return Val::tuple(shape, parts.iter().map(|part| part.sliced(axes, at)).collect());
        }
        let width: usize = shape.iter().product();
        let kind = Kind { arrays: self.kind.arrays - axes, ..self.kind };
        self.pick(kind, shape, at * width..(at + 1) * width)
    }
}

/// Whether a type has tuples.
pub(super) fn has_tuples(ty: &SizedType) -> bool {
    match &ty.kind {
        SizedKind::Array { element, .. } => has_tuples(element),
        kind => matches!(kind, SizedKind::Tuple(_)),
    }
}

impl Tracer<'_> {
    /// The layout of a declared type.
    pub(super) fn layout(&mut self, ty: &SizedType, old_dims: &[Expr]) -> Result<Layout> {
        if !has_tuples(ty) {
            let (kind, shape) = self.sized(ty, old_dims)?;
            return Ok(Layout::Plain(kind, shape));
        }
        let mut dims = old_dims.iter().map(|e| self.size(e)).collect::<Result<Vec<_>>>()?;
        let mut ty = ty;
        while let SizedKind::Array { dims: more, element } = &ty.kind {
            for dim in more {
                dims.push(self.size(dim)?);
            }
            ty = element;
        }
        let SizedKind::Tuple(parts) = &ty.kind else { unreachable!("it has tuples") };
        let parts = parts.iter().map(|part| self.layout(part, &[])).collect::<Result<_>>()?;
        Ok(Layout::Tuple(dims, parts))
    }

    /// What a variable holds before it is assigned.
    pub(super) fn unset_layout(&self, layout: &Layout) -> Val {
        layout.unset(&[])
    }

    /// A variable with tuples of the data.
    pub(super) fn tuple_of_data(&mut self, variable: &Variable, ty: &SizedType, given: &StanData) -> Result<Val> {
        let name = &variable.name;
        let layout = self.layout(ty, &variable.old_dims)?;
        let value = given.get(&name.text).map(Datum::as_value);
        let mut values = Vec::new();
        for leaf in self.leaves(variable, ty)? {
            let (kind, shape) = self.sized(leaf.ty, &[])?;
            let found = value.as_deref().and_then(|value| leaf.of_json(value));
            let one = StanData::from_iter(found.map(|found| (leaf.name.to_string(), found.into())));
            match data::read(&one, &leaf.name, kind, &shape) {
                Ok(array) => values.push(Val::of_data(kind, array)),
                Err(why) => return wrong(name.span, why),
            }
        }
        Ok(layout.assembled(&mut values.into_iter()))
    }

    /// The leaves of a declared variable, in the order of unconstrained numbers: the last index of an array is the quickest.
    pub(super) fn leaves<'t>(&mut self, variable: &'t Variable, ty: &'t SizedType) -> Result<Vec<Leaf<'t>>> {
        self.ordered_leaves(variable, ty, false)
    }

    /// The same in the order of Stan's files, in which the first index is.
    pub(super) fn leaves_of_files<'t>(&mut self, variable: &'t Variable, ty: &'t SizedType) -> Result<Vec<Leaf<'t>>> {
        self.ordered_leaves(variable, ty, true)
    }

    fn ordered_leaves<'t>(
        &mut self,
        variable: &'t Variable,
        ty: &'t SizedType,
        first_is_quickest: bool,
    ) -> Result<Vec<Leaf<'t>>> {
        let layout = self.layout(ty, &variable.old_dims)?;
        let mut leaves = Leaves { first_is_quickest, path: Vec::new(), all: Vec::new() };
        leaves.add(&variable.name.text, ty, &layout);
        Ok(leaves.all)
    }

    /// The variable whose leaves have these values.
    pub(super) fn assembled(&mut self, variable: &Variable, ty: &SizedType, leaves: Vec<Val>) -> Result<Val> {
        let layout = self.layout(ty, &variable.old_dims)?;
        Ok(layout.assembled(&mut leaves.into_iter()))
    }

    /// A value for a variable that holds another one now: ints are promoted where it holds reals, and so on.
    pub(super) fn fitted(&self, span: Span, old: &Val, value: Val) -> Result<Val> {
        if let (Some(olds), Some(news), true) = (old.parts(), value.parts(), old.is_tuple()) {
            if old.shape != value.shape {
                return wrong(span, format!("the variable has the size {:?}, the value {:?}", old.shape, value.shape));
            }
            let parts = olds.iter().zip(news).map(|(old, new)| self.fitted(span, old, new.clone()));
            return Ok(Val::tuple(value.shape.clone(), parts.collect::<Result<_>>()?));
        }
        // A variable of size 0 may be declared before its size is known in old programs.
        if value.shape != old.shape {
            return wrong(span, format!("the variable has the size {:?}, the value {:?}", old.shape, value.shape));
        }
        Ok(value.of_kind(old.kind))
    }

    /// A value as one of a type: ints are promoted where the type has reals, both where it has complex numbers.
    pub(super) fn as_type(&self, span: Span, value: Val, ty: &UnsizedType) -> Result<Val> {
        if let Some(kind) = Kind::of_type(ty) {
            return Ok(value.of_kind(kind));
        }
        let mut ty = ty;
        let mut arrays = 0;
        while let UnsizedType::Array(element) = ty {
            (ty, arrays) = (element, arrays + 1);
        }
        let (UnsizedType::Tuple(types), Some(parts)) = (ty, value.parts()) else {
            return wrong(span, format!("{} where a tuple is wanted", value.kind.shown()));
        };
        let wound = |ty: &UnsizedType| (0..arrays).fold(ty.clone(), |ty, _| UnsizedType::Array(Box::new(ty)));
        let parts = types.iter().zip(parts).map(|(ty, part)| self.as_type(span, part.clone(), &wound(ty)));
        Ok(Val::tuple(value.shape.clone(), parts.collect::<Result<_>>()?))
    }

    /// `t.1`
    pub(super) fn tuple_field(&mut self, span: Span, base: &Expr, index: u32) -> Result<Val> {
        let base = self.eval(base)?;
        let part = base.parts().and_then(|parts| parts.get((index as usize).checked_sub(1)?));
        match part {
            Some(part) => Ok(part.clone()),
            None => wrong(span, format!("there is no part {index}")),
        }
    }

    /// `{a, b}` of tuples.
    pub(super) fn stacked_tuples(&self, items: &[Val]) -> Val {
        wound(items, &[items.len()])
    }

    /// `base[indices]` of an array of tuples.
    pub(super) fn indexed_tuples(&mut self, span: Span, base: &Val, indices: &[At]) -> Result<Val> {
        if indices.len() > base.shape.len() {
            return wrong(span, format!("{} indices of an array with {} axes", indices.len(), base.shape.len()));
        }
        let parts = base.parts().expect("a tuple has parts");
        let parts = parts.iter().map(|part| self.indexed(span, part, indices)).collect::<Result<Vec<_>>>()?;
        // What is left of the axes of the array: the first axes of each part.
        let taken = indices.iter().filter(|at| matches!(at, At::One(..) | At::Lane(..))).count();
        let axes = base.shape.len() - taken;
        let shape = parts[0].shape[..axes].to_vec();
        Ok(Val::tuple(shape, parts))
    }

    /// The variable, the parts and the indices of a place: `x[i].2[j]` is the part 2 of `x` at `[i, j]`.
    pub(super) fn place_in_tuple<'e>(&mut self, place: &'e Expr) -> Result<(&'e Name, Vec<usize>, Vec<At>)> {
        match &place.kind {
            ExprKind::Paren(inner) => self.place_in_tuple(inner),
            ExprKind::TupleField { base, index, .. } => {
                let (name, mut parts, indices) = self.place_in_tuple(base)?;
                if indices.iter().any(|at| !matches!(at, At::One(..) | At::Lane(..))) {
                    return unsupported(place.span, "a part of several tuples on the left of an assignment");
                }
                parts.push((*index as usize).saturating_sub(1));
                Ok((name, parts, indices))
            }
            ExprKind::Index { base, indices } if has_field(base) => {
                let (name, parts, mut all) = self.place_in_tuple(base)?;
                if all.iter().any(|at| !matches!(at, At::One(..) | At::Lane(..))) {
                    return unsupported(place.span, "an index of a range on the left of an assignment");
                }
                for index in indices {
                    all.push(self.index(index)?);
                }
                Ok((name, parts, all))
            }
            _ => {
                let (name, indices) = self.place(place)?;
                Ok((name, Vec::new(), indices))
            }
        }
    }

    /// `x[i].2[j] = value`, `x[i] = value` of an array of tuples, and their kin with an operator.
    pub(super) fn assign_in_tuple(&mut self, span: Span, place: &Expr, op: Option<BinaryOp>, value: Val) -> Result<()> {
        let (name, parts, indices) = self.place_in_tuple(place)?;
        let Some(old) = self.value(&name.text).cloned() else {
            return wrong(name.span, format!("there is no variable `{}` here", name.text));
        };
        let made = self.with_part(span, place.span, &old, &parts, &indices, op, value)?;
        self.lookup_mut(&name.text).expect("found above").value = made;
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "a place is that many things")]
    fn with_part(
        &mut self,
        span: Span,
        place: Span,
        old: &Val,
        path: &[usize],
        indices: &[At],
        op: Option<BinaryOp>,
        value: Val,
    ) -> Result<Val> {
        let Some((k, rest)) = path.split_first() else {
            let value = match op {
                None => value,
                Some(op) => {
                    let now = if indices.is_empty() { old.clone() } else { self.indexed(place, old, indices)? };
                    self.binary(span, op, &now, &value)?
                }
            };
            return self.with_value(span, old, indices, value);
        };
        let mut parts = old.parts().expect("a place with a part is of a tuple").to_vec();
        let Some(part) = parts.get(*k).cloned() else { return wrong(place, format!("there is no part {}", k + 1)) };
        parts[*k] = self.with_part(span, place, &part, rest, indices, op, value)?;
        Ok(Val::tuple(old.shape.clone(), parts))
    }

    /// The old value with a new one at a place.
    fn with_value(&mut self, span: Span, old: &Val, indices: &[At], value: Val) -> Result<Val> {
        if indices.is_empty() {
            return self.fitted(span, old, value);
        }
        let (Some(olds), Some(news), true) = (old.parts(), value.parts(), old.is_tuple()) else {
            return self.with_element(span, old, indices, &value);
        };
        let parts = olds.iter().zip(news);
        let parts = parts.map(|(old, new)| self.with_value(span, old, indices, new.clone())).collect::<Result<_>>()?;
        Ok(Val::tuple(old.shape.clone(), parts))
    }
}

/// Whether a place has a part of a tuple in it.
pub(super) fn has_field(place: &Expr) -> bool {
    match &place.kind {
        ExprKind::TupleField { .. } => true,
        ExprKind::Paren(inner) => has_field(inner),
        ExprKind::Index { base, .. } => has_field(base),
        _ => false,
    }
}

struct Leaves<'t> {
    first_is_quickest: bool,
    path: Vec<Step>,
    all: Vec<Leaf<'t>>,
}

impl<'t> Leaves<'t> {
    fn add(&mut self, name: &str, ty: &'t SizedType, layout: &Layout) {
        let Layout::Tuple(dims, layouts) = layout else {
            self.all.push(Leaf { name: name.into(), ty, path: self.path.clone() });
            return;
        };
        let mut ty = ty;
        while let SizedKind::Array { element, .. } = &ty.kind {
            ty = element;
        }
        let SizedKind::Tuple(types) = &ty.kind else { unreachable!("the layout is that of a tuple") };
        let n: usize = dims.iter().product();
        for number in 0..n {
            let place = if self.first_is_quickest { place_by_first(number, dims) } else { place_by_last(number, dims) };
            let indices: Vec<String> = place.iter().map(|i| format!(".{}", i + 1)).collect();
            if !dims.is_empty() {
                let at = place.iter().zip(dims).fold(0, |at, (i, extent)| at * extent + i);
                self.path.push(Step::Element(place, at));
            }
            for (k, (ty, layout)) in types.iter().zip(layouts).enumerate() {
                self.path.push(Step::Part(k));
                self.add(&format!("{name}{}:{}", indices.concat(), k + 1), ty, layout);
                self.path.pop();
            }
            if !dims.is_empty() {
                self.path.pop();
            }
        }
    }
}

/// The place of an element by its number, where the last index is the quickest.
fn place_by_last(number: usize, dims: &[usize]) -> Vec<usize> {
    let backwards: Vec<usize> = dims.iter().rev().copied().collect();
    let mut place = place_by_first(number, &backwards);
    place.reverse();
    place
}

/// The same where the first index is.
fn place_by_first(mut number: usize, dims: &[usize]) -> Vec<usize> {
    let mut next = |extent: &usize| {
        let i = number % extent;
        number /= extent;
        i
    };
    dims.iter().map(&mut next).collect()
}
