//! Reading of operands: where the values are that nodes over some counters read.

use std::sync::Arc;

use super::group::Found;
use super::pattern::Axes;
use super::{Code, Emitter, Irregular, Level, Written};
use crate::stan::graph::Arg;
use crate::stan::value::{Elem, NodeId};
use crate::types::{Array, ArrayData};

impl Emitter<'_> {
    /// An operand over some counters.
    pub(super) fn read(&mut self, args: &[&Arg], axes: &Axes) -> Written<Code> {
        match args[0] {
            Arg::Scalar(_) => {
                let elems = args.iter().map(|arg| if let Arg::Scalar(e) = arg { Ok(*e) } else { Err(Irregular) });
                let elems = elems.collect::<Written<Vec<_>>>()?;
                self.read_scalars(&elems, axes)
            }
            Arg::Known(_) => {
                let arrays =
                    args.iter().map(|arg| if let Arg::Known(a) = arg { Ok(a.clone()) } else { Err(Irregular) });
                let arrays = arrays.collect::<Written<Vec<_>>>()?;
                self.read_known(&arrays, axes)
            }
            Arg::Whole(_) => {
                let nodes = args.iter().map(|arg| if let Arg::Whole(n) = arg { Ok(*n) } else { Err(Irregular) });
                let nodes = nodes.collect::<Written<Vec<_>>>()?;
                self.read_whole(&nodes, axes)
            }
            Arg::Elements(_, shape) => {
                let lists = args.iter().map(|arg| match arg {
                    Arg::Elements(elems, s) if s == shape => Ok(elems.clone()),
                    _ => Err(Irregular),
                });
                let lists = lists.collect::<Written<Vec<_>>>()?;
                let runs = self.runs(&lists[0]);
                self.read_elements(&lists, &runs, shape, axes)
            }
            Arg::Prefix(elems, _) => {
                let lists = args.iter().map(|arg| match arg {
                    Arg::Prefix(elems, _) => Ok(Arc::new(self.stored(elems))),
                    _ => Err(Irregular),
                });
                let lists = lists.collect::<Written<Vec<_>>>()?;
                let runs = self.stored_runs(elems);
                self.read_elements(&lists, &runs, &[elems.len()], axes)
            }
        }
    }

    /// A row that grows: zeros stand for what has no place yet.
    fn stored(&self, elems: &[Elem]) -> Vec<Elem> {
        let placed = |elem: &Elem| match elem {
            Elem::Of(node, _) if !self.places.has(*node) => Elem::Real(0.0),
            elem => elem.as_real(),
        };
        elems.iter().map(placed).collect()
    }

    /// Numbers over some counters.
    fn read_scalars(&mut self, elems: &[Elem], axes: &Axes) -> Written<Code> {
        if elems.iter().all(|e| e.is_known()) {
            if elems.iter().all(|e| matches!(e, Elem::Int(_))) {
                let ints: Vec<i64> = elems.iter().map(|e| if let Elem::Int(i) = e { *i } else { 0 }).collect();
                return Ok(self.ints(&ints, axes));
            }
            let reals = elems.iter().map(|e| if let Elem::Real(x) = e.as_real() { x } else { 0.0 });
            let reals: Vec<f64> = reals.collect();
            return Ok(self.reals(&reals, axes));
        }
        let mut of = Vec::with_capacity(elems.len());
        for elem in elems {
            match elem {
                Elem::Of(node, at) => of.push((*node, *at)),
                _ => return Err(Irregular),
            }
        }
        if self.is_deferred(of[0].0) {
            let nodes: Vec<NodeId> = of.iter().map(|(node, _)| *node).collect();
            if nodes.iter().any(|n| !self.is_deferred(*n)) {
                return Err(Irregular);
            }
            return Ok(self.code(&nodes, axes)?.of(self.span(nodes[0])));
        }
        let (container, flat) = self.places_of(&of, axes.len(), true)?;
        let rank = self.rank(container);
        Ok(self.element(container, &flat, rank, axes))
    }

    fn is_deferred(&self, node: NodeId) -> bool {
        use crate::base::Id as _;
        self.deferred[node.index()]
    }

    /// The one array in which elements are, and where; so many of them go with all counters. `turn`: what the current turn
    /// made is read from there.
    fn places_of(&self, of: &[(NodeId, u32)], all: usize, turn: bool) -> Written<(usize, Vec<i64>)> {
        let each = all / self.points().max(1);
        let mut container = None;
        let mut flat = Vec::with_capacity(of.len());
        for (i, (node, at)) in of.iter().enumerate() {
            let point = i / each.max(1);
            let local = if turn { self.local(*node, point) } else { None };
            let found = local.or_else(|| self.places.get(*node));
            let (here, index) = found.ok_or(Irregular)?;
            if *container.get_or_insert(here) != here {
                return Err(Irregular);
            }
            let size: usize = self.containers[here].shape.iter().product();
            flat.push((index * size) as i64 + i64::from(*at));
        }
        Ok((container.ok_or(Irregular)?, flat))
    }

    fn rank(&self, container: usize) -> usize {
        let c = &self.containers[container];
        c.lead.len() + c.shape.len()
    }

    fn extents(&self, container: usize) -> Vec<usize> {
        let c = &self.containers[container];
        c.lead.iter().chain(&c.shape).copied().collect()
    }

    /// `name[i, j]` with the first `axes_of` indices of these places.
    pub(super) fn element(&mut self, container: usize, flat: &[i64], indices: usize, axes: &Axes) -> Code {
        let name = self.containers[container].name.clone();
        if indices == 0 {
            return Code::atom(name);
        }
        let coordinates = self.coordinates(container, flat, indices, axes);
        Code::atom(format!("{name}[{}]", coordinates.join(", ")))
    }

    pub(super) fn coordinates(&mut self, container: usize, flat: &[i64], indices: usize, axes: &Axes) -> Vec<String> {
        let extents = self.extents(container);
        let mut texts = Vec::with_capacity(indices);
        for axis in 0..indices {
            let below: i64 = extents[axis + 1..].iter().product::<usize>() as i64;
            let column: Vec<i64> = flat.iter().map(|f| f / below.max(1) % (extents[axis].max(1) as i64)).collect();
            texts.push(self.ints(&column, axes).text);
        }
        texts
    }

    /// Whole values of nodes over some counters.
    fn read_whole(&mut self, nodes: &[NodeId], axes: &Axes) -> Written<Code> {
        if self.is_deferred(nodes[0]) {
            if nodes.iter().any(|n| !self.is_deferred(*n)) {
                return Err(Irregular);
            }
            return Ok(self.code(nodes, axes)?.of(self.span(nodes[0])));
        }
        let of: Vec<(NodeId, u32)> = nodes.iter().map(|n| (*n, 0)).collect();
        let (container, flat) = self.places_of(&of, axes.len(), true)?;
        let lead = self.containers[container].lead.len();
        Ok(self.element(container, &flat, lead, axes))
    }

    /// Known arrays over some counters.
    fn read_known(&mut self, arrays: &[Arc<Array>], axes: &Axes) -> Written<Code> {
        let first = &arrays[0];
        if arrays.iter().all(|a| Arc::ptr_eq(a, first) || a == first) {
            return Ok(self.known_array(first));
        }
        let numbers: Vec<usize> = {
            // Arrays that are the same count as one.
            let mut seen: Vec<&Arc<Array>> = Vec::new();
            let mut numbers = Vec::with_capacity(arrays.len());
            let mut at: std::collections::HashMap<*const Array, usize> = std::collections::HashMap::new();
            for array in arrays {
                let number = *at.entry(Arc::as_ptr(array)).or_insert_with(|| {
                    seen.push(array);
                    seen.len() - 1
                });
                numbers.push(number);
            }
            numbers
        };
        let (kept, vars, extents) = axes.reduced(&numbers);
        let pick = |number: usize| &arrays[numbers.iter().position(|n| *n == number).expect("it is one of them")];
        let shape: Vec<usize> = extents.iter().copied().chain(first.shape.iter().copied()).collect();
        let array = match &first.data {
            ArrayData::Int(_) => {
                let all = kept.iter().flat_map(|n| pick(*n).as_int().unwrap_or_default().to_vec());
                Array::int(shape, all.collect())
            }
            _ => {
                let all = kept.iter().flat_map(|n| pick(*n).as_real().unwrap_or_default().to_vec());
                Array::real(shape, all.collect())
            }
        };
        let table = self.table(array);
        if vars.is_empty() { Ok(Code::atom(table)) } else { Ok(Code::atom(format!("{table}[{}]", vars.join(", ")))) }
    }

    /// A known array: `fill` where all elements are the same number.
    fn known_array(&mut self, array: &Arc<Array>) -> Code {
        let extents = || array.shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        match &array.data {
            _ if self.graph.of_many && !array.is_empty() => Code::atom(self.table((**array).clone())),
            ArrayData::Real(v) if v.first().is_none_or(|x| v.iter().all(|y| x.to_bits() == y.to_bits())) => {
                let value = super::real_literal(v.first().copied().unwrap_or(0.0));
                Code::atom(format!("fill({}, {})", value.text, extents()))
            }
            ArrayData::Int(v) if v.first().is_none_or(|x| v.iter().all(|y| x == y)) => {
                Code::atom(format!("fill({}, {})", v.first().copied().unwrap_or(0), extents()))
            }
            _ => Code::atom(self.table((**array).clone())),
        }
    }

    /// Arrays that are put together of elements, over some counters.
    pub(super) fn read_elements(
        &mut self,
        lists: &[Arc<Vec<Elem>>],
        runs: &[(Found, usize)],
        shape: &[usize],
        axes: &Axes,
    ) -> Written<Code> {
        let n = lists[0].len();
        if n == 0 {
            let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
            return Ok(Code::atom(format!("fill(0.0, {})", extents.join(", "))));
        }
        if let Some(code) = self.repeated(lists, runs, shape, axes)? {
            return Ok(code);
        }
        if let Some(code) = self.gathered(lists, runs, axes)? {
            return Ok(reshaped(&code, &[n], shape));
        }
        let mut parts = Vec::with_capacity(runs.len());
        let mut from = 0;
        for (found, len) in runs {
            parts.push(self.stretch(lists, from, *len, found, axes)?);
            from += len;
        }
        if let [(code, extents)] = &parts[..] {
            return Ok(reshaped(code, extents, shape));
        }
        let flat: Vec<String> =
            parts.iter().map(|(code, extents)| reshaped(code, extents, &[extents.iter().product()]).text).collect();
        let joined = Code::atom(format!("concat({})", flat.join(", ")));
        Ok(reshaped(&joined, &[n], shape))
    }

    /// Stretches of elements that are in one array.
    fn runs(&self, elems: &[Elem]) -> Vec<(Found, usize)> {
        match self.found(&Arg::Elements(Arc::new(elems.to_vec()), vec![elems.len()]), 0) {
            Found::Many(runs) => runs,
            _ => unreachable!("several elements are found as such"),
        }
    }

    /// Some elements that are in one array: the text, and its extents.
    fn stretch(
        &mut self,
        lists: &[Arc<Vec<Elem>>],
        from: usize,
        len: usize,
        found: &Found,
        axes: &Axes,
    ) -> Written<(Code, Vec<usize>)> {
        if *found == Found::Known {
            return self.known_stretch(lists, from, len, axes);
        }
        let mut of = Vec::with_capacity(lists.len() * len);
        for list in lists {
            for elem in &list[from..from + len] {
                match elem {
                    Elem::Of(node, at) if !self.is_deferred(*node) => of.push((*node, *at)),
                    _ => return Err(Irregular),
                }
            }
        }
        let (container, flat) = self.places_of(&of, axes.len() * len, !matches!(found, Found::Stored(_)))?;
        self.stretch_of(container, &flat, len, axes)
    }

    /// So many elements of an array in a row, which are in these places: the text, and its extents.
    pub(super) fn stretch_of(
        &mut self,
        container: usize,
        flat: &[i64],
        len: usize,
        axes: &Axes,
    ) -> Written<(Code, Vec<usize>)> {
        let extents = self.extents(container);
        let firsts: Vec<i64> = flat.iter().step_by(len).copied().collect();
        let contiguous = flat.chunks(len).all(|c| c.windows(2).all(|w| w[1] == w[0] + 1));
        if contiguous {
            for axis in 0..=extents.len() {
                let inner: usize = extents[axis..].iter().product();
                // All of the axes from here on.
                if inner == len && firsts.iter().all(|f| f % inner as i64 == 0) {
                    let code = self.element(container, &firsts, axis, axes);
                    return Ok((code, extents[axis..].to_vec()));
                }
            }
            for axis in 0..extents.len() {
                let inner: usize = extents[axis + 1..].iter().product();
                let within = |f: &i64| {
                    let at = *f as usize;
                    at.is_multiple_of(inner) && (at / inner) % extents[axis] + len / inner <= extents[axis]
                };
                if inner > 0 && len.is_multiple_of(inner) && firsts.iter().all(within) {
                    let start: Vec<i64> = firsts.iter().map(|f| f / inner as i64 % extents[axis] as i64).collect();
                    let start = self.ints(&start, axes);
                    // The language wants to see how long a slice is.
                    if start.text.contains('[') {
                        break;
                    }
                    let name = self.containers[container].name.clone();
                    let mut coordinates = self.coordinates(container, &firsts, axis, axes);
                    let rows = len / inner;
                    coordinates.push(match start.text.parse::<usize>() {
                        Ok(a) => format!("{a}..{}", a + rows),
                        Err(_) => {
                            let a = start.at(Level::Add);
                            format!("{a}..{a} + {rows}")
                        }
                    });
                    let mut kept = vec![rows];
                    kept.extend(&extents[axis + 1..]);
                    return Ok((Code::atom(format!("{name}[{}]", coordinates.join(", "))), kept));
                }
            }
        }
        let var = format!("{}k{}", self.prefix, axes.vars.len());
        let inner = axes.with(&var, len);
        let rank = self.rank(container);
        let element = self.element(container, flat, rank, &inner);
        Ok((Code::atom(format!("[{} for {var} in 0..{len}]", element.text)), vec![len]))
    }

    pub(super) fn known_stretch(
        &mut self,
        lists: &[Arc<Vec<Elem>>],
        from: usize,
        len: usize,
        axes: &Axes,
    ) -> Written<(Code, Vec<usize>)> {
        let int = lists.iter().all(|l| l[from..from + len].iter().all(|e| matches!(e, Elem::Int(_))));
        let arrays = lists.iter().map(|list| {
            let part = &list[from..from + len];
            if int {
                let ints = part.iter().map(|e| if let Elem::Int(i) = e { Ok(*i) } else { Err(Irregular) });
                return Ok(Arc::new(Array::int([len], ints.collect::<Written<_>>()?)));
            }
            let reals = part.iter().map(|e| if let Elem::Real(x) = e.as_real() { Ok(x) } else { Err(Irregular) });
            Ok(Arc::new(Array::real([len], reals.collect::<Written<_>>()?)))
        });
        let arrays = arrays.collect::<Written<Vec<_>>>()?;
        Ok((self.read_known(&arrays, axes)?, vec![len]))
    }
}

pub(super) fn reshaped(code: &Code, from: &[usize], to: &[usize]) -> Code {
    if from == to {
        return code.clone();
    }
    if from.is_empty() {
        let one = Code::atom(format!("[{}]", code.text));
        return if to == [1] { one } else { reshaped(&one, &[1], to) };
    }
    if to.is_empty() && from == [1] && code.text.starts_with("fill(") {
        let value = code.text.trim_start_matches("fill(").trim_end_matches(", 1)");
        return Code::atom(value);
    }
    if to.is_empty() {
        return Code::atom(format!("{}[{}]", code.at(Level::Atom), vec!["0"; from.len()].join(", ")));
    }
    let extents: Vec<String> = to.iter().map(usize::to_string).collect();
    Code::atom(format!("reshape({}, {})", code.text, extents.join(", ")))
}
