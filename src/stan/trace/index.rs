//! Indices: of known ints they only choose elements; an int that lanes compute is looked up by the lanes.

use smallvec::SmallVec;

use super::{Result, Tracer, unsupported, wrong};
use crate::base::Span;
use crate::stan::graph::Op;
use crate::stan::syntax::ast::{Expr, ExprKind, Index};
use crate::stan::value::{Base, Kind, Val, What};

/// An index, evaluated; counted from 1 as in Stan.
#[derive(Clone)]
pub(super) enum At {
    All,
    /// One element, known.
    One(i64, Span),
    /// One element that lanes choose.
    Lane(Val, Span),
    /// Several elements.
    Many(Vec<i64>, Span),
    /// Several elements that lanes choose.
    Lanes(Val, Span),
    /// As many as lanes compute that lanes choose.
    Counted(Val, Span),
    /// From a to b or to the end.
    Range(Option<i64>, Option<i64>, Span),
    /// The same, where lanes choose an end.
    Span(Option<Val>, Option<Val>, Span),
}

impl At {
    /// Whether lanes choose.
    pub(super) fn is_of_lanes(&self) -> bool {
        matches!(self, At::Lane(..) | At::Lanes(..)) || self.is_counted()
    }

    /// Whether lanes choose how many.
    pub(super) fn is_counted(&self) -> bool {
        matches!(self, At::Counted(..) | At::Span(..))
    }
}

/// What indices choose along the axes of a value.
pub(super) struct Chosen {
    /// Places along each axis, from 0; those of axes that are not indexed, too.
    pub(super) axes: Vec<Vec<usize>>,
    /// Whether the axis stays.
    pub(super) kept: Vec<bool>,
    pub(super) kind: Kind,
}

impl Chosen {
    pub(super) fn shape(&self) -> Vec<usize> {
        self.axes.iter().zip(&self.kept).filter(|(_, kept)| **kept).map(|(axis, _)| axis.len()).collect()
    }

    /// The places of the elements in the whole value, row-major.
    pub(super) fn places(&self, shape: &[usize]) -> Vec<usize> {
        let mut places = vec![0];
        for (axis, extent) in self.axes.iter().zip(shape) {
            places = places.iter().flat_map(|p| axis.iter().map(move |i| p * extent + i)).collect();
        }
        places
    }
}

/// The kind of what indices leave of a value: which axes stay.
fn kind_of(kind: Kind, kept: &[bool]) -> Kind {
    let arrays = kept[..kind.arrays].iter().filter(|k| **k).count();
    let own: Vec<bool> = kept[kind.arrays..].to_vec();
    let base = match (kind.base, &own[..]) {
        (Base::Vector | Base::RowVector, [false]) | (Base::Matrix, [false, false]) => Base::Real,
        (Base::Matrix, [false, true]) => Base::RowVector,
        (Base::Matrix, [true, false]) => Base::Vector,
        (base, _) => base,
    };
    Kind { base, arrays }
}

/// The place of the one element that known numbers choose, in a container that is no tuple and not complex; `None` also
/// where they choose none.
pub(super) fn one_place(base: &Val, indices: &[At]) -> Option<usize> {
    if matches!(base.what, What::Parts(_) | What::Counted(_)) || indices.is_empty() || indices.len() != base.shape.len()
    {
        return None;
    }
    let mut place = 0;
    for (at, extent) in indices.iter().zip(&base.shape) {
        let At::One(i, _) = at else { return None };
        let i = usize::try_from(i - 1).ok().filter(|i| i < extent)?;
        place = place * extent + i;
    }
    Some(place)
}

/// The number at a place.
pub(super) fn number_at(base: &Val, place: usize) -> Val {
    Val::scalar(if base.kind.is_int() { Kind::INT } else { Kind::REAL }, base.elem(place))
}

impl Tracer<'_> {
    /// `name[indices]`
    pub(super) fn element(&mut self, span: Span, name: &str, indices: &[Index]) -> Result<Val> {
        let mut found: SmallVec<[At; 2]> = SmallVec::new();
        for index in indices {
            found.push(self.index(index)?);
        }
        let base = self.value(name).expect("whoever asks has looked");
        if let Some(place) = one_place(base, &found) {
            return Ok(number_at(base, place));
        }
        let base = base.clone();
        self.indexed(span, &base, &found)
    }

    /// Evaluates an index.
    pub(super) fn index(&mut self, index: &Index) -> Result<At> {
        let range = |from: Option<Val>, to: Option<Val>, span| {
            let known = |end: &Option<Val>| end.as_ref().is_none_or(|end| end.as_int().is_some());
            if known(&from) && known(&to) {
                let int = |end: Option<Val>| end.and_then(|end| end.as_int());
                At::Range(int(from), int(to), span)
            } else {
                At::Span(from, to, span)
            }
        };
        Ok(match index {
            Index::All(_) => At::All,
            Index::From(a) => range(Some(self.eval(a)?), None, a.span),
            Index::To(b) => range(None, Some(self.eval(b)?), b.span),
            Index::Between(a, b) => range(Some(self.eval(a)?), Some(self.eval(b)?), a.span.to(b.span)),
            Index::Single(e) => {
                let value = self.eval_counted(e)?;
                if value.counted().is_some() {
                    return Ok(At::Counted(value, e.span));
                }
                let ints = if value.is_scalar() { None } else { value.ints() };
                match (value.as_int(), ints) {
                    (Some(i), _) => At::One(i, e.span),
                    (None, Some(ints)) => At::Many(ints, e.span),
                    (None, None) if value.is_scalar() => At::Lane(value, e.span),
                    (None, None) => At::Lanes(value, e.span),
                }
            }
        })
    }

    /// What known indices choose of a value of this kind and shape.
    pub(super) fn choose(&self, kind: Kind, shape: &[usize], indices: &[At], span: Span) -> Result<Chosen> {
        if indices.len() > shape.len() {
            return wrong(
                span,
                format!("{} indices of {}, which has {} axes", indices.len(), kind.shown(), shape.len()),
            );
        }
        let (mut axes, mut kept) = (Vec::new(), Vec::new());
        for (axis, extent) in shape.iter().copied().enumerate() {
            let inside = |i: i64, at: Span| match usize::try_from(i) {
                Ok(i @ 1..) if i <= extent => Ok(i - 1),
                _ => wrong(at, format!("index {i} is out of range: there are {extent}")),
            };
            let (places, stays) = match indices.get(axis) {
                None | Some(At::All) => ((0..extent).collect(), true),
                Some(At::One(i, at)) => (vec![inside(*i, *at)?], false),
                Some(At::Many(many, at)) => (many.iter().map(|i| inside(*i, *at)).collect::<Result<_>>()?, true),
                Some(At::Range(from, to, at)) => {
                    let (from, to) = (from.unwrap_or(1), to.unwrap_or(extent as i64));
                    let places = (from..=to).map(|i| inside(i, *at)).collect::<Result<Vec<_>>>()?;
                    (places, true)
                }
                Some(At::Lane(_, at) | At::Lanes(_, at)) => {
                    return unsupported(*at, "an index that depends on parameters, here");
                }
                Some(At::Counted(_, at) | At::Span(_, _, at)) => {
                    return unsupported(*at, "indices whose number depends on parameters, here");
                }
            };
            axes.push(places);
            kept.push(stays);
        }
        let kind = kind_of(kind, &kept);
        Ok(Chosen { axes, kept, kind })
    }

    /// `base[indices]`
    pub(super) fn indexed(&mut self, span: Span, base: &Val, indices: &[At]) -> Result<Val> {
        if base.is_tuple() {
            return self.indexed_tuples(span, base, indices);
        }
        if base.is_complex() {
            if indices.iter().any(At::is_counted) {
                return unsupported(span, "complex numbers whose number depends on parameters");
            }
            return self.each_part(base, |t, part| t.indexed(span, part, indices));
        }
        if base.counted().is_some() {
            return self.indexed_counted(span, base, indices);
        }
        if indices.iter().any(At::is_counted) {
            return self.indexed_span(span, base, indices);
        }
        if indices.iter().all(|at| matches!(at, At::One(..) | At::Lane(..))) && indices.iter().any(At::is_of_lanes) {
            return self.looked_up(span, base, indices);
        }
        if indices.iter().any(At::is_of_lanes) {
            return self.looked_up_one_by_one(span, base, indices);
        }
        let chosen = self.choose(base.kind, &base.shape, indices, span)?;
        Ok(base.pick(chosen.kind, chosen.shape(), chosen.places(&base.shape).into_iter()))
    }

    /// The same of ranges and several indices beside ints of lanes: each of what they choose by itself.
    fn looked_up_one_by_one(&mut self, span: Span, base: &Val, indices: &[At]) -> Result<Val> {
        // Axes behind the last index that is one stay whole.
        let n = indices.iter().rposition(|at| !matches!(at, At::All)).map_or(0, |last| last + 1);
        let mut places: Vec<Vec<At>> = vec![Vec::new()];
        let (mut kept, mut shape) = (Vec::new(), Vec::new());
        for (axis, at) in indices[..n].iter().enumerate() {
            let along: Vec<At> = match at {
                At::One(..) | At::Lane(..) => vec![at.clone()],
                At::Lanes(all, at) => (0..all.len()).map(|i| At::Lane(number_at(all, i), *at)).collect(),
                At::All | At::Many(..) | At::Range(..) | At::Counted(..) | At::Span(..) => {
                    let chosen = self.choose(Kind::INT, &base.shape[axis..=axis], std::slice::from_ref(at), span)?;
                    chosen.axes[0].iter().map(|i| At::One(*i as i64 + 1, span)).collect()
                }
            };
            kept.push(!matches!(at, At::One(..) | At::Lane(..)));
            shape.extend(kept[axis].then_some(along.len()));
            let with = |place: &Vec<At>, at: &At| place.iter().chain([at]).cloned().collect::<Vec<At>>();
            places = places.iter().flat_map(|place| along.iter().map(move |at| with(place, at))).collect();
        }
        kept.extend(base.shape[n..].iter().map(|_| true));
        shape.extend(&base.shape[n..]);
        let mut elems = Vec::with_capacity(shape.iter().product());
        for place in &places {
            elems.extend(self.indexed(span, base, place)?.elems());
        }
        Ok(Val::from_elems(kind_of(base.kind, &kept), shape, elems))
    }

    /// `base[i]` where lanes choose: leading indices that are single numbers or ints of lanes.
    fn looked_up(&mut self, span: Span, base: &Val, indices: &[At]) -> Result<Val> {
        let mut args = vec![base.clone()];
        for (axis, at) in indices.iter().enumerate() {
            let index = match at {
                At::One(i, at) => {
                    if *i < 1 || *i > base.shape[axis] as i64 {
                        return wrong(*at, format!("index {i} is out of range: there are {}", base.shape[axis]));
                    }
                    Val::int(i - 1)
                }
                At::Lane(i, at) => {
                    let i = self.infix(*at, "-", i, &Val::int(1))?;
                    // Who does not come here reads the first element.
                    match self.on(*at)? {
                        Some(on) => self.select(*at, &on, &i, &Val::int(0))?,
                        None => i,
                    }
                }
                _ => return unsupported(span, "a range beside an index that depends on parameters"),
            };
            args.push(index);
        }
        let n = indices.len();
        let kept: Vec<bool> = (0..base.shape.len()).map(|axis| axis >= n).collect();
        let shape = base.shape[n..].to_vec();
        self.node(span, Op::At, &args, kind_of(base.kind, &kept), shape)
    }

    /// `base[indices] = value`, of a value or, where lanes choose the place, of one number at a time.
    pub(super) fn with_element(&mut self, span: Span, base: &Val, indices: &[At], value: &Val) -> Result<Val> {
        if base.is_complex() {
            let ((re, im), (new_re, new_im)) = (base.re_im(), value.re_im());
            let re = self.with_element(span, &re, indices, &new_re)?;
            return Ok(Val::complex(re, self.with_element(span, &im, indices, &new_im)?));
        }
        if let Some(axis) = indices.iter().position(|at| matches!(at, At::Lanes(..))) {
            return self.with_lanes_elements(span, base, indices, axis, value);
        }
        if let Some(lane) = indices.iter().position(|at| matches!(at, At::Lane(..))) {
            return self.with_lane_element(span, base, indices, lane, value);
        }
        let chosen = self.choose(base.kind, &base.shape, indices, span)?;
        let shape = chosen.shape();
        if shape != value.shape {
            return wrong(span, format!("the place has the size {shape:?}, the value {:?}", value.shape));
        }
        let value = if base.kind.is_int() { value.clone() } else { value.promoted() };
        let places = chosen.places(&base.shape);
        let mut made = base.clone();
        made.set(&places, &value);
        Ok(made)
    }

    /// Demands that indices that lanes choose are inside.
    pub(super) fn check_indices(&mut self, shape: &[usize], indices: &[At]) -> Result<()> {
        for (at, extent) in indices.iter().zip(shape) {
            if let At::Lanes(all, at) = at {
                for i in 0..all.len() {
                    self.check_indices(&[*extent], &[At::Lane(number_at(all, i), *at)])?;
                }
            }
            let At::Lane(index, at) = at else { continue };
            let low = self.compare(*at, ">=", index, &Val::int(1))?;
            let high = self.compare(*at, "<=", index, &Val::int(*extent as i64))?;
            let inside = self.both(*at, &low, &high)?;
            self.check(*at, &inside, &format!("an index is out of range: there are {extent}"))?;
        }
        Ok(())
    }

    /// The same where one index is an int of lanes: every element that may be meant chooses.
    fn with_lane_element(&mut self, span: Span, base: &Val, indices: &[At], lane: usize, value: &Val) -> Result<Val> {
        let At::Lane(index, at) = &indices[lane] else { unreachable!("it is one of lanes") };
        let mut made = base.clone();
        for i in 1..=base.shape[lane] as i64 {
            let mut here = indices.to_vec();
            here[lane] = At::One(i, *at);
            let hit = self.compare(span, "==", index, &Val::int(i))?;
            let with = self.with_element(span, &made, &here, value)?;
            made = self.select(span, &hit, &with, &made)?;
        }
        Ok(made)
    }

    /// The same of several indices of lanes along an axis: one after the other, so that of equal ones the last stays.
    fn with_lanes_elements(&mut self, span: Span, base: &Val, indices: &[At], axis: usize, value: &Val) -> Result<Val> {
        let At::Lanes(all, at) = &indices[axis] else { unreachable!("it is several of lanes") };
        // The axis of the value that goes with it.
        let along = indices[..axis].iter().filter(|at| !matches!(at, At::One(..) | At::Lane(..))).count();
        if value.shape.get(along) != Some(&all.len()) {
            return wrong(span, format!("{} indices for a value of size {:?}", all.len(), value.shape));
        }
        let mut made = base.clone();
        for i in 0..all.len() {
            let mut here = indices.to_vec();
            here[axis] = At::Lane(number_at(all, i), *at);
            let part: Vec<At> = (0..along).map(|_| At::All).chain([At::One(i as i64 + 1, *at)]).collect();
            let part = self.indexed(span, value, &part)?;
            made = self.with_element(span, &made, &here, &part)?;
        }
        Ok(made)
    }

    /// The parts of a place: its variable and its indices, in order.
    pub(super) fn place<'e>(&mut self, place: &'e Expr) -> Result<(&'e crate::stan::syntax::ast::Name, Vec<At>)> {
        match &place.kind {
            ExprKind::Variable(name) => Ok((name, Vec::new())),
            ExprKind::Paren(inner) => self.place(inner),
            ExprKind::Index { base, indices } => {
                let (name, mut all) = self.place(base)?;
                // `x[2:3][1]` counts in what is chosen; only single indices go on with the next axis.
                if all.iter().any(|at| !matches!(at, At::One(..) | At::Lane(..))) {
                    return unsupported(place.span, "an index of a range on the left of an assignment");
                }
                for index in indices {
                    all.push(self.index(index)?);
                }
                Ok((name, all))
            }
            _ => unsupported(place.span, "an assignment to this"),
        }
    }
}
