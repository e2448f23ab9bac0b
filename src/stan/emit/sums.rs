//! Sums that a loop adds up, term by term, become sums: `s = s + x[i]` of every turn; of products with what is known, such
//! as `s = s + beta[k] * x[i, k]`, dot products.

use std::sync::Arc;

use smallvec::smallvec;

use crate::base::{HashMap, Id as _};
use crate::stan::graph::{Arg, Graph, Node, Op, SiteId};
use crate::stan::value::{Elem, NodeId, Val};
use crate::types::Array;

/// So many terms one of the sums of a place must have.
const MIN_TERMS: u32 = 4;

/// A running sum: the terms so far, from the first one on.
struct Chain {
    init: Elem,
    terms: Vec<Elem>,
}

/// The graph with its running sums as sums; the nodes keep their numbers.
pub(super) fn with_sums(graph: &mut Graph, results: &[Val], summed: &[Elem]) {
    let n = graph.nodes.len();
    let mut uses = vec![0_u32; n];
    for node in graph.nodes.values() {
        for source in node.args.iter().flat_map(Arg::sources) {
            uses[source.index()] += 1;
        }
    }
    for value in results {
        for source in Arg::of(value).sources() {
            uses[source.index()] += 2;
        }
    }
    for elem in summed {
        if let Elem::Of(node, _) = elem {
            uses[node.index()] += 2;
        }
    }
    // How many terms each sum has, and which of them are only a part of a longer one.
    let (mut terms, mut is_part) = (vec![0_u32; n], vec![false; n]);
    for index in 0..n {
        let id = NodeId::new(index);
        let Some((before, _)) = step(graph, id) else { continue };
        terms[index] = 1;
        if let Elem::Of(source, 0) = before
            && uses[source.index()] == 1
            && same_place(graph, source, id)
        {
            terms[index] += terms[source.index()].max(1);
            is_part[source.index()] = true;
        }
    }
    // The sums of one place are written alike, the short ones too.
    let mut longest: HashMap<SiteId, u32> = HashMap::default();
    let ends = (0..n).filter(|index| terms[*index] > 0 && !is_part[*index]);
    for index in ends.clone() {
        let most = longest.entry(graph.nodes[NodeId::new(index)].site).or_default();
        *most = terms[index].max(*most);
    }
    let ends = ends.map(NodeId::new).filter(|id| longest[&graph.nodes[*id].site] >= MIN_TERMS);
    let ends: Vec<(NodeId, Chain)> = ends.map(|id| (id, chain(graph, id, terms[id.index()]))).collect();
    for (id, chain) in ends {
        if let Some(dot) = products(graph, &uses, chain.init, &chain.terms) {
            dot.write(graph, id);
            continue;
        }
        // All of it is one node: the sum of the first value and the terms.
        let mut elems = Vec::with_capacity(chain.terms.len() + 1);
        if !is_zero(chain.init) {
            elems.push(chain.init);
        }
        elems.extend(chain.terms);
        let shape = vec![elems.len()];
        let node = &mut graph.nodes[id];
        node.op = Op::Call(Arc::from("sum"), vec![]);
        node.args = smallvec![Arg::Elements(Arc::new(elems), shape)];
    }
}

/// The running sum of so many terms that ends in a node.
fn chain(graph: &Graph, end: NodeId, count: u32) -> Chain {
    let mut terms = Vec::with_capacity(count as usize);
    let mut at = end;
    loop {
        let (before, term) = step(graph, at).expect("nodes of one place do the same");
        terms.push(term);
        match before {
            Elem::Of(source, 0) if terms.len() < count as usize => at = source,
            init => {
                terms.reverse();
                return Chain { init, terms };
            }
        }
    }
}

/// A sum of products of what lanes know with what is known, in which a factor may be common to all.
struct Dot {
    lanes: Vec<Elem>,
    weights: Vec<f64>,
    common: Option<Elem>,
    /// What comes before them.
    init: Elem,
    /// The nodes of the last product: its inner one, where it has two, and all of it.
    inner: NodeId,
    last: NodeId,
}

impl Dot {
    /// Writes the sum of a first value and the products in the place of nodes that nothing else reads.
    fn write(self, graph: &mut Graph, sum: NodeId) {
        let n = self.lanes.len();
        let known = Arg::Known(Arc::new(Array::real([n], self.weights)));
        let args = smallvec![Arg::Elements(Arc::new(self.lanes), vec![n]), known];
        let is_zero = is_zero(self.init);
        let (dot, product) = match self.common {
            Some(_) => (self.inner, if is_zero { sum } else { self.last }),
            None if is_zero => (sum, sum),
            None => (self.last, self.last),
        };
        (graph.nodes[dot].op, graph.nodes[dot].args) = (Op::Call(Arc::from("dot"), vec![]), args);
        if let Some(common) = self.common {
            let args = smallvec![Arg::Scalar(Elem::Of(dot, 0)), Arg::Scalar(common)];
            (graph.nodes[product].op, graph.nodes[product].args) = (Op::Infix("*"), args);
        }
        if !is_zero {
            graph.nodes[sum].args = smallvec![Arg::Scalar(self.init), Arg::Scalar(Elem::Of(product, 0))];
        }
    }
}

/// Products within products that are looked at: no dot product comes of more factors.
const MOST_FACTORS: u32 = 3;

/// The factors of a product: of lanes, of what is known, and the innermost node. Products within it are looked into if
/// nothing else reads them.
fn factors(graph: &Graph, uses: &[u32], id: NodeId, depth: u32) -> Option<(Vec<Elem>, f64, NodeId)> {
    if depth > MOST_FACTORS || (depth > 0 && uses[id.index()] != 1) {
        return None;
    }
    let node = &graph.nodes[id];
    let (Op::Infix("*"), [Arg::Scalar(a), Arg::Scalar(b)]) = (&node.op, &node.args[..]) else { return None };
    if node.int || !node.shape.is_empty() {
        return None;
    }
    let (mut lanes, mut known, mut innermost) = (Vec::new(), 1.0, id);
    for factor in [*a, *b] {
        match factor.as_real() {
            Elem::Real(x) => known *= x,
            Elem::Of(inner, 0) if innermost == id => match factors(graph, uses, inner, depth + 1) {
                Some((more, weight, node)) => {
                    lanes.extend(more);
                    known *= weight;
                    innermost = node;
                }
                None => lanes.push(factor),
            },
            lane => lanes.push(lane),
        }
    }
    Some((lanes, known, innermost))
}

fn is_zero(elem: Elem) -> bool {
    matches!(elem.as_real(), Elem::Real(x) if x == 0.0)
}

/// Terms after a first value as a dot product, of which the first value may be part.
fn products(graph: &Graph, uses: &[u32], init: Elem, terms: &[Elem]) -> Option<Dot> {
    let with_init = || {
        let all: Vec<Elem> = std::iter::once(init).chain(terms.iter().copied()).collect();
        dot_of(graph, uses, Elem::Real(0.0), &all)
    };
    let whole = if is_zero(init) { None } else { with_init() };
    whole.or_else(|| dot_of(graph, uses, init, terms))
}

/// Terms as a dot product that comes after a first value.
fn dot_of(graph: &Graph, uses: &[u32], init: Elem, terms: &[Elem]) -> Option<Dot> {
    let node = |term: &Elem| if let Elem::Of(id, 0) = term { Some(*id) } else { None };
    let all: Vec<_> = terms.iter().map(|term| factors(graph, uses, node(term)?, 0)).collect::<Option<_>>()?;
    let last = node(terms.last()?)?;
    let inner = all.last()?.2;
    let mut weights = Vec::with_capacity(all.len());
    let mut lanes = Vec::with_capacity(all.len());
    // Of two factors that lanes know one must be common.
    let common = match &all[0].0[..] {
        [_] => None,
        [a, b] => Some(*[a, b].into_iter().find(|c| all.iter().all(|(lanes, ..)| lanes.contains(c)))?),
        _ => return None,
    };
    for (factors, weight, _) in &all {
        weights.push(*weight);
        match (&factors[..], common) {
            ([lane], None) => lanes.push(*lane),
            ([a, b], Some(common)) => lanes.push(if *a == common { *b } else { *a }),
            _ => return None,
        }
    }
    // The nodes that are written anew must be there for the sum alone.
    let is_anew = common.is_some() || !is_zero(init);
    if is_anew && uses[last.index()] != 1 {
        return None;
    }
    // What it reads must be there before it; and a product of lanes alone is none with what is known.
    let first = if common.is_some() { inner } else { last };
    let before = |elem: &Elem| matches!(elem, Elem::Of(id, _) if *id < first);
    let is_new = common.is_none() || inner != last;
    let dot = Dot { lanes, weights, common, init, inner, last };
    (is_new && dot.lanes.iter().chain(&common).all(before)).then_some(dot)
}

/// What a node adds to what: `before + term`, of reals.
fn step(graph: &Graph, id: NodeId) -> Option<(Elem, Elem)> {
    let node: &Node = &graph.nodes[id];
    match (&node.op, &node.args[..]) {
        (Op::Infix("+"), [Arg::Scalar(a), Arg::Scalar(b)]) if !node.int && node.shape.is_empty() => Some((*a, *b)),
        _ => None,
    }
}

/// Whether two nodes are of one place of the program, in two turns of a loop.
fn same_place(graph: &Graph, a: NodeId, b: NodeId) -> bool {
    let (a, b) = (&graph.nodes[a], &graph.nodes[b]);
    a.site == b.site && a.turn != b.turn
}
