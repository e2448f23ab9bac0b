//! Dot products whose vectors grow from turn to turn, such as convolutions with all that came before, become rows of one
//! length: known factors are followed by zeros, or tell how many they are. Turns that differ in a length would be written
//! one by one.

use std::sync::Arc;

use smallvec::smallvec;

use crate::base::{HashMap, HashSet};
use crate::stan::graph::{Arg, Graph, Op, SiteId};
use crate::stan::value::{Elem, NodeId};
use crate::types::Array;

/// The fewest turns that are worth it.
const MIN_TURNS: usize = 4;

/// Where a vector grows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Front,
    Back,
}

/// Dot products, each of which has the elements of the one before and more.
struct Chain {
    end: Option<End>,
    members: Vec<Dot>,
}

struct Dot {
    id: NodeId,
    lanes: Vec<Elem>,
    weights: Vec<f64>,
}

/// The graph with rows of one length in the place of what grows; the nodes keep their numbers.
pub(super) fn with_prefixes(graph: &mut Graph) {
    let mut chains: HashMap<SiteId, Vec<Chain>> = HashMap::default();
    for (id, node) in graph.nodes.iter() {
        let Op::Call(name, _) = &node.op else { continue };
        if &**name != "dot" {
            continue;
        }
        let Some(dot) = dot(id, &node.args) else { continue };
        let chains = chains.entry(node.site).or_default();
        let goes_on = chains.iter_mut().rev().find_map(|chain| {
            let last = chain.members.last().expect("a chain has members");
            let end = grown(&last.lanes, &dot.lanes).filter(|end| chain.end.is_none_or(|e| e == *end))?;
            Some((chain, end))
        });
        match goes_on {
            Some((chain, end)) => {
                chain.end = Some(end);
                chain.members.push(dot);
            }
            None => chains.push(Chain { end: None, members: vec![dot] }),
        }
    }
    for mut chains in chains.into_values() {
        chains.retain(|chain| chain.members.len() >= MIN_TURNS);
        let (zeros, rest): (Vec<Chain>, Vec<Chain>) = chains.into_iter().partition(|chain| meets_zeros(graph, chain));
        let counted: Vec<Chain> = rest.into_iter().filter(is_there_before).collect();
        for (chains, is_counted) in [(zeros, false), (counted, true)] {
            let longest = |chain: &Chain| chain.members.last().map_or(0, |dot| dot.lanes.len());
            let length = chains.iter().map(longest).max().unwrap_or(0);
            for chain in chains {
                write(graph, chain, length, is_counted);
            }
        }
    }
}

/// A dot product of what lanes know with what is known.
fn dot(id: NodeId, args: &[Arg]) -> Option<Dot> {
    let (lanes, known) = match args {
        [Arg::Elements(lanes, _), Arg::Known(known)] | [Arg::Known(known), Arg::Elements(lanes, _)] => (lanes, known),
        _ => return None,
    };
    Some(Dot { id, lanes: lanes.to_vec(), weights: known.as_real()?.to_vec() })
}

/// Whether the zeros that follow the known factors of a dot product meet no infinity: what a longer one adds is not there yet,
/// since it depends on the shorter one, and until then is 0; or it is a number, or an unconstrained parameter.
fn meets_zeros(graph: &Graph, chain: &Chain) -> bool {
    chain.members.windows(2).all(|pair| {
        let (short, long) = (&pair[0], &pair[1]);
        let more = long.lanes.len() - short.lanes.len();
        let added = match chain.end {
            Some(End::Front) => &long.lanes[..more],
            _ => &long.lanes[short.lanes.len()..],
        };
        added.iter().all(|elem| match elem {
            Elem::Of(node, _) => {
                matches!(graph.nodes[*node].op, Op::Parameters { .. }) || depends(graph, *node, short.id)
            }
            known => matches!(known.as_real(), Elem::Real(x) if x.is_finite()),
        })
    })
}

/// Whether all elements are there before the first of the dot products.
fn is_there_before(chain: &Chain) -> bool {
    let (first, last) = (&chain.members[0], &chain.members[chain.members.len() - 1]);
    last.lanes.iter().all(|elem| if let Elem::Of(node, _) = elem { *node < first.id } else { true })
}

/// Whether a node reads another one, or what reads it.
fn depends(graph: &Graph, node: NodeId, on: NodeId) -> bool {
    let mut seen = HashSet::from_iter([node]);
    let mut open = vec![node];
    while let Some(id) = open.pop() {
        if id == on {
            return true;
        }
        let sources = graph.nodes[id].args.iter().flat_map(Arg::sources);
        open.extend(sources.filter(|source| *source >= on && seen.insert(*source)));
    }
    false
}

/// At which end a list has more elements than another one, if all others are the same.
fn grown(short: &[Elem], long: &[Elem]) -> Option<End> {
    let more = long.len().checked_sub(short.len()).filter(|n| *n > 0)?;
    if long[..short.len()] == *short {
        return Some(End::Back);
    }
    (long[more..] == *short).then_some(End::Front)
}

/// Writes dot products of so many elements each; what is counted takes the first ones of a row, whatever the others are.
fn write(graph: &mut Graph, chain: Chain, length: usize, is_counted: bool) {
    let is_front = chain.end == Some(End::Front);
    let mut row = chain.members.last().map_or(Vec::new(), |dot| dot.lanes.clone());
    if is_front {
        row.reverse();
    }
    row.resize(length, Elem::Real(0.0));
    let row = Arc::new(row);
    for Dot { id, lanes, mut weights } in chain.members {
        if is_front {
            weights.reverse();
        }
        weights.resize(length, 0.0);
        let known = Arg::Known(Arc::new(Array::real([length], weights)));
        let node = &mut graph.nodes[id];
        if is_counted {
            node.op = Op::Call(Arc::from("dot_first"), vec![]);
            let count = Arg::Scalar(Elem::Int(lanes.len() as i64));
            node.args = smallvec![Arg::Elements(row.clone(), vec![length]), known, count];
        } else {
            node.args = smallvec![Arg::Prefix(row.clone(), lanes.len()), known];
        }
    }
}
