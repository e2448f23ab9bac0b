//! The order in which nodes are written: groups of one place each, and where groups depend on one another in a circle, the
//! loop that turns them (Allen and Kennedy 1987, with the dependences of the data instead of a test).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use indexmap::IndexMap;
use smallvec::SmallVec;

use super::pattern::Axes;
use super::{Container, Emitter, Irregular, Line, Local, Loop, Places, Written};
use crate::base::{HashMap, HashSet, Id as _};
use crate::stan::graph::{Arg, Op, SiteId, TurnId};
use crate::stan::value::{Elem, NodeId};

/// What nodes of one group have in common.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    site: SiteId,
    op: Op,
    shape: Vec<usize>,
    int: bool,
    args: Vec<ArgKind>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum ArgKind {
    Known(bool),
    Scalar,
    Table(Vec<usize>),
    Whole,
    Elements(Vec<usize>),
    Prefix(usize),
}

pub(super) fn kind(arg: &Arg) -> ArgKind {
    match arg {
        Arg::Scalar(Elem::Of(..)) => ArgKind::Scalar,
        Arg::Scalar(elem) => ArgKind::Known(matches!(elem, Elem::Int(_))),
        Arg::Known(array) => ArgKind::Table(array.shape.to_vec()),
        Arg::Whole(_) => ArgKind::Whole,
        Arg::Elements(_, shape) => ArgKind::Elements(shape.clone()),
        Arg::Prefix(elems, _) => ArgKind::Prefix(elems.len()),
    }
}

/// Of so many turns the ends of the runs of those that are like their first, each at its beginning; 0 elsewhere.
fn runs_of(turns: usize, is_like: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut ends = vec![0; turns];
    let mut from = 0;
    while from < turns {
        let end = (from + 1..turns).find(|t| !is_like(from, *t)).unwrap_or(turns);
        ends[from] = end;
        from = end;
    }
    ends
}

/// A node whose place changed for a loop: where it was.
type Moved = (NodeId, Option<(usize, usize)>, Option<Local>);

/// What the first turns of a loop read that was written before it: for a node of the first turn what stands for it so many
/// turns before.
#[derive(Default)]
struct Earlier {
    /// The most turns.
    lag: usize,
    nodes: IndexMap<NodeId, BTreeMap<usize, NodeId>>,
}

/// `t + 1`
pub(super) fn shifted(var: &str, by: usize) -> String {
    if by == 0 { var.to_owned() } else { format!("{var} + {by}") }
}

/// Where a source stands, seen from a turn: what must be the same in all turns of a loop.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Source {
    /// In the same turn: its position there, and the element.
    Here(usize, u32),
    /// In another turn of this loop: its group.
    Other(usize),
    /// Written before: its container.
    Before(usize),
    /// Written where it is read.
    Deferred(Vec<Source>),
    Known,
}

/// What loops around keep of what a loop keeps.
#[derive(Default)]
struct Around {
    /// Where they keep what they keep of all turns: it is kept there and here.
    all: HashMap<NodeId, (usize, usize)>,
    /// What they keep of some turns only, such as the last one, is copied there after the loop: the element of the loop's
    /// array, and the places, one for each point of the loops around.
    copied: Vec<(String, Vec<(usize, usize)>)>,
    /// From then on it is read where all turns are; should the loop not be written, it stays where it was.
    overwritten: Vec<(NodeId, (usize, usize))>,
}

impl Around {
    /// Notes of which turns loops around keep a node; `at` is the element of a turn.
    fn note_some(
        &mut self,
        family: &[NodeId],
        turns: usize,
        places: &Places,
        at: impl Fn(usize) -> String,
    ) -> Written<()> {
        for turn in 0..turns {
            let of_turn: Vec<NodeId> = family.iter().skip(turn).step_by(turns).copied().collect();
            let kept: Vec<_> = of_turn.iter().filter_map(|id| Some((*id, places.get(*id)?))).collect();
            if kept.is_empty() {
                continue;
            }
            let same = kept.iter().all(|(_, place)| place.0 == kept[0].1.0);
            if kept.len() < of_turn.len() || !same {
                return Err(Irregular);
            }
            self.copied.push((at(turn), kept.iter().map(|(_, place)| *place).collect()));
            self.overwritten.extend(kept);
        }
        Ok(())
    }
}

impl Emitter<'_> {
    fn key(&self, id: NodeId) -> Key {
        let node = self.node(id);
        let args = node.args.iter().map(kind).collect();
        Key { site: node.site, op: node.op.clone(), shape: node.shape.clone(), int: node.int, args }
    }

    /// Whether two nodes of one place do the same with operands of the same kinds.
    fn are_alike(&self, a: NodeId, b: NodeId) -> bool {
        let (a, b) = (self.node(a), self.node(b));
        a.op == b.op
            && a.shape == b.shape
            && a.int == b.int
            && a.args.len() == b.args.len()
            && a.args.iter().zip(&b.args).all(|(a, b)| match (a, b) {
                (Arg::Scalar(Elem::Of(..)), Arg::Scalar(Elem::Of(..))) => true,
                (a, b) => kind(a) == kind(b),
            })
    }

    /// The nodes that are written separately and that this one reads, through those that are written where they are read.
    fn sources(&self, id: NodeId, found: &mut Vec<NodeId>) {
        for source in self.node(id).args.iter().flat_map(Arg::sources) {
            if self.deferred[source.index()] { self.sources(source, found) } else { found.push(source) }
        }
    }

    /// The same, but for rows that grow: those that are one and the same operand in every turn.
    fn aligned_sources(&self, id: NodeId, found: &mut Vec<NodeId>) {
        let args = self.node(id).args.iter().filter(|arg| !matches!(arg, Arg::Prefix(..)));
        for source in args.flat_map(Arg::sources) {
            if self.deferred[source.index()] { self.aligned_sources(source, found) } else { found.push(source) }
        }
    }

    /// Writes nodes, which come in the order in which they were made.
    pub(super) fn region(&mut self, nodes: &[NodeId]) -> Written<()> {
        let mut group_of: HashMap<NodeId, usize> = HashMap::default();
        group_of.reserve(nodes.len());
        let mut groups: Vec<Vec<NodeId>> = Vec::new();
        // A place makes nodes of few groups: they are told apart without a key of each node.
        let mut of_site: HashMap<SiteId, SmallVec<[usize; 2]>> = HashMap::default();
        for id in nodes {
            let candidates = of_site.entry(self.node(*id).site).or_default();
            let group = candidates.iter().copied().find(|group| self.are_alike(groups[*group][0], *id));
            let group = group.unwrap_or_else(|| {
                candidates.push(groups.len());
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[group].push(*id);
            group_of.insert(*id, group);
        }
        let mut edges: Vec<Vec<usize>> = vec![Vec::new(); groups.len()];
        let mut found = Vec::new();
        // The last group that was seen to read one.
        let mut read_by = vec![usize::MAX; groups.len()];
        for (group, members) in groups.iter().enumerate() {
            for id in members {
                found.clear();
                self.sources(*id, &mut found);
                for source in found.iter().filter_map(|s| group_of.get(s)) {
                    if std::mem::replace(&mut read_by[*source], group) != group {
                        edges[group].push(*source);
                    }
                }
            }
            edges[group].sort_unstable();
        }
        for circle in in_order(&edges) {
            if let [group] = circle[..]
                && !edges[group].contains(&group)
            {
                self.group(&groups[group])?;
                continue;
            }
            let mut members: Vec<NodeId> = circle.iter().flat_map(|g| groups[*g].iter().copied()).collect();
            members.sort_unstable();
            self.circle(&members)?;
        }
        Ok(())
    }

    /// The turn of a node at a depth of loops; its own where it is not so deep.
    pub(super) fn turn_at(&self, id: NodeId, depth: u32) -> TurnId {
        let mut turn = self.node(id).turn;
        while self.graph.turns[turn].depth > depth {
            turn = self.graph.turns[turn].outer;
        }
        turn
    }

    /// Nodes that depend on one another in a circle of groups: turn after turn of the outermost loop that tells them apart.
    fn circle(&mut self, nodes: &[NodeId]) -> Written<()> {
        let deepest = nodes.iter().map(|id| self.graph.turns[self.node(*id).turn].depth).max().unwrap_or(0);
        let apart = (0..=deepest).find(|depth| {
            let first = self.turn_at(nodes[0], *depth);
            nodes.iter().any(|id| self.turn_at(*id, *depth) != first)
        });
        let Some(depth) = apart else {
            return nodes.iter().try_for_each(|id| self.group(&[*id]));
        };
        let mut turns: Vec<Vec<NodeId>> = Vec::new();
        let mut at: HashMap<TurnId, usize> = HashMap::default();
        for id in nodes {
            let turn = self.turn_at(*id, depth);
            let index = *at.entry(turn).or_insert_with(|| {
                turns.push(Vec::new());
                turns.len() - 1
            });
            turns[index].push(*id);
        }
        let mut at: HashMap<NodeId, (usize, usize)> = HashMap::default();
        for (t, turn) in turns.iter().enumerate() {
            at.extend(turn.iter().enumerate().map(|(position, id)| (*id, (t, position))));
        }
        let sources: Vec<Vec<Source>> = (0..turns.len()).map(|t| self.sources_seen(&turns[t], t, &at)).collect();
        let is_like = |a: usize, b: usize| {
            let does_the_same =
                |(a, b): (&NodeId, &NodeId)| self.node(*a).site == self.node(*b).site && self.are_alike(*a, *b);
            let (x, y) = (&turns[a], &turns[b]);
            x.len() == y.len() && x.iter().zip(y).all(does_the_same) && sources[a] == sources[b]
        };
        let ends = runs_of(turns.len(), is_like);
        let mut from = 0;
        while from < turns.len() {
            let to = ends[from];
            if to - from < 2 || self.turned(&turns, from..to, depth).is_err() {
                for turn in &turns[from..to] {
                    self.region(turn)?;
                }
            }
            from = to;
        }
        Ok(())
    }

    /// Where the operands of the nodes of a turn come from.
    fn sources_seen(&self, turn: &[NodeId], t: usize, at: &HashMap<NodeId, (usize, usize)>) -> Vec<Source> {
        let mut seen = Vec::new();
        turn.iter().flat_map(|id| &self.node(*id).args).for_each(|arg| self.see(arg, t, at, &mut seen));
        seen
    }

    fn see(&self, arg: &Arg, t: usize, at: &HashMap<NodeId, (usize, usize)>, seen: &mut Vec<Source>) {
        let of = |elem: &Elem| match elem {
            Elem::Of(node, offset) => {
                if self.deferred[node.index()] {
                    let mut within = Vec::new();
                    self.node(*node).args.iter().for_each(|arg| self.see(arg, t, at, &mut within));
                    return Source::Deferred(within);
                }
                match (at.get(node), self.places.get(*node)) {
                    (Some((turn, position)), _) if *turn == t => Source::Here(*position, *offset),
                    (Some(_), _) => Source::Other(self.node(*node).site.index()),
                    (None, Some((container, _))) => Source::Before(container),
                    (None, None) => Source::Other(usize::MAX),
                }
            }
            _ => Source::Known,
        };
        match arg {
            Arg::Scalar(elem) => seen.push(of(elem)),
            Arg::Known(_) => seen.push(Source::Known),
            Arg::Whole(node) => seen.push(of(&Elem::Of(*node, 0))),
            Arg::Elements(elems, _) => seen.extend(elems.iter().map(of)),
            // Of all elements, whatever their turns: how many of them are read goes with the turn.
            Arg::Prefix(elems, _) => {
                let mut row: Vec<Source> = elems.iter().map(|elem| self.seen_in_row(*elem, at)).collect();
                row.dedup();
                seen.append(&mut row);
            }
        }
    }

    fn seen_in_row(&self, elem: Elem, at: &HashMap<NodeId, (usize, usize)>) -> Source {
        let Elem::Of(node, _) = elem else { return Source::Known };
        match (at.contains_key(&node), self.places.get(node)) {
            (true, _) => Source::Other(self.node(node).site.index()),
            (false, Some((container, _))) => Source::Before(container),
            (false, None) => Source::Known,
        }
    }

    /// Writes a loop over turns that do the same, at a depth of the loops of the program. Those before them are written.
    fn turned(&mut self, all: &[Vec<NodeId>], range: Range<usize>, depth: u32) -> Written<()> {
        let turns = &all[range.clone()];
        let saved = (self.lines.len(), self.containers.len(), self.written.len(), self.kept.len());
        let mut moved = Vec::new();
        let align = self.aligned(turns);
        let members: HashSet<NodeId> = align.values().flat_map(|family| family.iter().copied()).collect();
        let var = format!("{}t{}", self.prefix, self.loops.len());
        // What is read outside of its turn is kept for all turns, with what the first turns read of those before.
        let outside = |first: &&NodeId| align[*first].iter().any(|id| self.read_outside(*id, depth, &members));
        let kept: Vec<NodeId> = turns[0].iter().filter(outside).copied().collect();
        let earlier = self.earlier(all, &range);
        let mut around = Around::default();
        let mut done = self.keep(&kept, &align, turns.len(), &earlier, &mut moved, &mut around);
        let mut outer = std::mem::take(&mut around.all);
        if done.is_ok() {
            self.line(format!("for {var} in 0..{} {{", turns.len()), Some(self.span(turns[0][0])));
            let lag = earlier.lag;
            self.loops.push(Loop { var, extent: turns.len(), lag, align, locals: Vec::new(), outer });
            done = self.region(&turns[0]);
            let ended = self.loops.pop().expect("pushed above");
            for id in ended.locals {
                self.locals.remove(&id);
            }
            outer = ended.outer;
        }
        if done.is_err() {
            self.lines.truncate(saved.0);
            self.containers.truncate(saved.1);
            for id in self.written.drain(saved.2..) {
                self.places.remove(id);
            }
            self.kept.truncate(saved.3);
            for (id, place) in around.overwritten {
                self.places.insert(id, place);
            }
            for (id, place, local) in moved.into_iter().rev() {
                if let Some(place) = place {
                    self.places.insert(id, place);
                }
                local.map(|local| self.locals.insert(id, local));
            }
            return Err(Irregular);
        }
        self.line("}", None);
        for (value, places) in around.copied {
            self.keep_at(&places, &value).expect("its places were looked at before");
        }
        if self.loops.is_empty() {
            self.declare_kept(saved.0);
            return Ok(());
        }
        // From here on values are where the loops around keep them.
        outer.into_iter().for_each(|(id, place)| self.places.insert(id, place));
        for (id, place, local) in moved {
            if let Some(place) = place {
                self.places.insert(id, place);
            }
            local.map(|local| self.locals.insert(id, local));
        }
        Ok(())
    }

    /// What the first turns of a loop read of the turns before it, in the place of what later turns read of this loop.
    fn earlier(&self, all: &[Vec<NodeId>], range: &Range<usize>) -> Earlier {
        let mut at: HashMap<NodeId, (usize, usize)> = HashMap::default();
        for (t, turn) in all.iter().enumerate() {
            at.extend(turn.iter().enumerate().map(|(position, id)| (*id, (t, position))));
        }
        let mut earlier = Earlier::default();
        for position in 0..all[range.start].len() {
            let mut read: Vec<Vec<NodeId>> = Vec::new();
            for turn in &all[range.clone()] {
                let mut sources = Vec::new();
                self.aligned_sources(turn[position], &mut sources);
                read.push(sources);
            }
            for operand in 0..read[0].len() {
                // A later turn tells which node of a turn is meant, and how many turns before.
                let known = read.iter().enumerate().find_map(|(i, sources)| {
                    let t = range.start + i;
                    let (turn, place) = at.get(sources.get(operand)?)?;
                    (*turn >= range.start && *turn < t).then_some((t - turn, *place))
                });
                let Some((lag, place)) = known else { continue };
                for (i, sources) in read.iter().enumerate().take(lag) {
                    let Some(source) = sources.get(operand) else { continue };
                    let from_start = at.get(source).map(|(turn, _)| *turn);
                    if from_start.is_some_and(|turn| turn < range.start && turn + lag == range.start + i) {
                        earlier.lag = earlier.lag.max(lag);
                        earlier.nodes.entry(all[range.start][place]).or_default().insert(lag - i, *source);
                    }
                }
            }
        }
        earlier
    }

    /// For each node of the first turn those of all turns, of this loop and of the ones around.
    fn aligned(&self, turns: &[Vec<NodeId>]) -> HashMap<NodeId, Arc<Vec<NodeId>>> {
        let outer = self.loops.last().map(|l| &l.align);
        let points = self.points();
        let family = |position: usize| {
            let mut family = Vec::with_capacity(points * turns.len());
            for p in 0..points {
                family.extend(turns.iter().map(|turn| {
                    let id = turn[position];
                    outer.map_or(id, |map| map.get(&id).map_or(id, |f| f[p]))
                }));
            }
            Arc::new(family)
        };
        turns[0].iter().enumerate().map(|(position, first)| (*first, family(position))).collect()
    }

    /// Whether somebody reads a node who is not in its turn of a loop with these members.
    fn read_outside(&self, id: NodeId, depth: u32, members: &HashSet<NodeId>) -> bool {
        let turn = self.turn_at(id, depth);
        self.is_result[id.index()]
            || self.readers[id.index()].iter().any(|r| !members.contains(r) || self.turn_at(*r, depth) != turn)
    }

    /// Arrays for what is read outside of its turn: one for the nodes of one place. They begin with what was written before
    /// the loop and is read as if it were of an earlier turn. `around` tells what loops around keep of it, too.
    fn keep(
        &mut self,
        nodes: &[NodeId],
        align: &HashMap<NodeId, Arc<Vec<NodeId>>>,
        turns: usize,
        earlier: &Earlier,
        moved: &mut Vec<Moved>,
        around: &mut Around,
    ) -> Written<()> {
        let mut groups: IndexMap<Key, Vec<NodeId>> = IndexMap::new();
        for id in nodes {
            groups.entry(self.key(*id)).or_default().push(*id);
        }
        groups.retain(|_, members| members.iter().any(|id| !self.places.has(*id) || earlier.nodes.contains_key(id)));
        let lag = earlier.lag;
        let rows = turns + lag;
        let axes = self.axes();
        for (key, members) in groups {
            let name = match self.graph.name(members[0]).cloned() {
                Some(name) => self.free(&name),
                None => self.fresh("v"),
            };
            let m = members.len();
            let many = (m > 1).then_some(m);
            let extents = self.loops.iter().map(|l| l.extent + l.lag);
            let lead: Vec<usize> = extents.chain([rows]).chain(many).collect();
            self.containers.push(Container { name: name.clone(), lead, shape: key.shape });
            let container = self.containers.len() - 1;
            self.kept.push((container, key.int));
            for (j, first) in members.iter().enumerate() {
                let all_outside = align[first].iter().all(|id| self.places.has(*id));
                if !all_outside {
                    let at = |turn: usize| {
                        let counters = self.loops.iter().map(|l| shifted(&l.var, l.lag));
                        let at = counters.chain([(turn + lag).to_string()]).chain(many.map(|_| j.to_string()));
                        format!("{name}[{}]", at.collect::<Vec<_>>().join(", "))
                    };
                    around.note_some(&align[first], turns, &self.places, at)?;
                }
                for (point, id) in align[first].iter().enumerate() {
                    let row = self.row(point / turns) * rows + lag + point % turns;
                    if all_outside && let Some(place) = self.places.remove(*id) {
                        moved.push((*id, Some(place), None));
                        around.all.insert(*id, place);
                    }
                    self.place(*id, container, row * m + j);
                }
                for (back, source) in earlier.nodes.get(first).into_iter().flatten() {
                    let counters: Vec<String> =
                        axes.vars.iter().zip(&self.loops).map(|(v, l)| shifted(v, l.lag)).collect();
                    let slot = (lag - back).to_string();
                    let at: Vec<String> =
                        counters.into_iter().chain([slot]).chain(many.map(|_| j.to_string())).collect();
                    let family = self.family_or_same(*source);
                    let node = self.node(*source);
                    let args: Vec<Arg> = family
                        .iter()
                        .map(|id| if node.shape.is_empty() { Arg::Scalar(Elem::Of(*id, 0)) } else { Arg::Whole(*id) })
                        .collect();
                    let code = self.read(&args.iter().collect::<Vec<_>>(), &axes)?;
                    self.line(format!("{name}[{}] = {};", at.join(", "), code.text), None);
                    for (point, id) in family.iter().enumerate() {
                        moved.push((*id, self.places.remove(*id), self.locals.remove(id)));
                        let row = self.row(point) * rows + lag - back;
                        self.place(*id, container, row * m + j);
                    }
                }
            }
        }
        Ok(())
    }

    /// The row of a point of the loops around in arrays that are kept: each loop has rows for what was before it.
    fn row(&self, point: usize) -> usize {
        let (mut rest, mut row, mut stride) = (point, 0, 1);
        for l in self.loops.iter().rev() {
            row += (rest % l.extent + l.lag) * stride;
            rest /= l.extent;
            stride *= l.extent + l.lag;
        }
        row
    }

    fn family_or_same(&self, id: NodeId) -> Arc<Vec<NodeId>> {
        match self.loops.last() {
            Some(l) => l.align.get(&id).cloned().unwrap_or_else(|| Arc::new(vec![id; self.points()])),
            None => Arc::new(vec![id]),
        }
    }

    pub(super) fn place(&mut self, id: NodeId, container: usize, at: usize) {
        self.places.insert(id, (container, at));
        self.written.push(id);
    }

    /// Declares, before the outermost loop, the arrays that it fills.
    fn declare_kept(&mut self, line: usize) {
        let declared: Vec<Line> = std::mem::take(&mut self.kept)
            .into_iter()
            .map(|(container, int)| {
                let Container { name, lead, shape } = &self.containers[container];
                let extents: Vec<String> = lead.iter().chain(shape).map(usize::to_string).collect();
                let zero = if int { "0" } else { "0.0" };
                let text = format!("let mut {name} = fill({zero}, {});", extents.join(", "));
                Line { text, indent: 1, span: None }
            })
            .collect();
        self.lines.splice(line..line, declared);
    }

    /// The nodes of all turns around that do what a node of the first turns does.
    pub(super) fn family(&self, id: NodeId) -> Arc<Vec<NodeId>> {
        match self.loops.last() {
            None => Arc::new(vec![id]),
            Some(innermost) => innermost.align.get(&id).cloned().expect("what is written in a loop is of its turns"),
        }
    }

    /// The counters of the loops around.
    pub(super) fn axes(&self) -> Axes {
        Axes {
            vars: self.loops.iter().map(|l| l.var.clone()).collect(),
            extents: self.loops.iter().map(|l| l.extent).collect(),
        }
    }

    pub(super) fn points(&self) -> usize {
        self.loops.iter().map(|l| l.extent).product()
    }
}

/// The strongly connected parts of a graph (Tarjan 1972), each after those that it has edges to; parts that do not depend on
/// one another in the order of their first group.
fn in_order(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let n = edges.len();
    let (mut index, mut low) = (vec![usize::MAX; n], vec![0; n]);
    let (mut on_stack, mut stack, mut parts, mut next) = (vec![false; n], Vec::new(), Vec::new(), 0);
    for root in 0..n {
        if index[root] != usize::MAX {
            continue;
        }
        let mut work = vec![(root, 0)];
        while let Some((v, edge)) = work.pop() {
            if edge == 0 {
                index[v] = next;
                low[v] = next;
                next += 1;
                stack.push(v);
                on_stack[v] = true;
            }
            if let Some(&w) = edges[v].get(edge) {
                work.push((v, edge + 1));
                if index[w] == usize::MAX {
                    work.push((w, 0));
                } else if on_stack[w] {
                    low[v] = low[v].min(index[w]);
                }
                continue;
            }
            if low[v] == index[v] {
                let mut part = Vec::new();
                while let Some(w) = stack.pop() {
                    on_stack[w] = false;
                    part.push(w);
                    if w == v {
                        break;
                    }
                }
                part.sort_unstable();
                parts.push(part);
            }
            if let Some((parent, _)) = work.last() {
                low[*parent] = low[*parent].min(low[v]);
            }
        }
    }
    parts
}
