//! Sums that a loop adds up, term by term, become sums: `s = s + x[i]` of every turn.

use std::collections::HashMap;
use std::sync::Arc;

use crate::base::Id as _;
use crate::stan::graph::{Arg, Graph, Node, Op};
use crate::stan::value::{Elem, NodeId, Val};

/// The fewest terms that are worth it.
const MIN_TERMS: usize = 4;

/// A running sum: the terms so far, from the first one on.
struct Chain {
    init: Elem,
    terms: Vec<Elem>,
}

/// The graph with its running sums as sums; the nodes keep their numbers.
pub(in crate::stan) fn with_sums(graph: &mut Graph, results: &[Val], summed: &[Elem]) {
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
    let mut chains: HashMap<NodeId, Chain> = HashMap::new();
    for index in 0..n {
        let id = NodeId::new(index);
        let Some((before, term)) = step(graph, id) else { continue };
        let chain = match before {
            Elem::Of(source, 0) if uses[source.index()] == 1 && same_place(graph, source, id) => {
                let mut chain = chains.remove(&source).unwrap_or_else(|| {
                    let (init, first) = step(graph, source).expect("nodes of one place do the same");
                    Chain { init, terms: vec![first] }
                });
                chain.terms.push(term);
                chain
            }
            _ => Chain { init: before, terms: vec![term] },
        };
        chains.insert(id, chain);
    }
    let mut ends: Vec<(NodeId, Chain)> = chains.into_iter().filter(|(_, c)| c.terms.len() >= MIN_TERMS).collect();
    ends.sort_by_key(|(id, _)| *id);
    for (id, chain) in ends {
        // All of it is one node: the sum of the first value and the terms.
        let mut elems = Vec::with_capacity(chain.terms.len() + 1);
        if !matches!(chain.init, Elem::Real(x) if x == 0.0) {
            elems.push(chain.init);
        }
        elems.extend(chain.terms);
        let shape = vec![elems.len()];
        let node = &mut graph.nodes[id];
        node.op = Op::Call(Arc::from("sum"), vec![]);
        node.args = vec![Arg::Elements(Arc::new(elems), shape)];
    }
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
