//! What is surely true of values that lanes compute, by what they are made of: such values are not looked at again.

use crate::base::HashMap;
use crate::stan::graph::{Arg, Graph, Op};
use crate::stan::value::{Elem, NodeId};
use crate::types::ArrayData;

/// Functions that give symmetric matrices, besides covariances of Gaussian processes.
const SYMMETRIC: &[&str] = &[
    "corr_matrix_constrain",
    "cov_matrix_constrain",
    "crossprod",
    "inverse_spd",
    "multiply_lower_tri_self_transpose",
    "quad_form_sym_matrix",
    "tcrossprod",
];

/// Functions that do the same with every element.
const ELEMENTWISE: &[&str] = &["abs", "cos", "exp", "inv", "log", "log1p", "sin", "sqrt", "square", "tanh"];

/// How many operations within one another are looked through.
pub(super) const DEEPEST: usize = 100;

/// Which matrices with n rows are surely symmetric, by what they are made of.
pub(super) struct Symmetry<'g> {
    graph: &'g Graph,
    n: usize,
    /// Each node is looked at once.
    known: HashMap<NodeId, bool>,
    depth: usize,
}

impl Symmetry<'_> {
    pub(super) fn new(graph: &Graph, n: usize) -> Symmetry<'_> {
        Symmetry { graph, n, known: HashMap::default(), depth: 0 }
    }

    pub(super) fn of(&mut self, m: &Arg) -> bool {
        let n = self.n;
        let mut pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i * n + j, j * n + i)));
        match m {
            Arg::Scalar(_) => true,
            Arg::Known(array) => match &array.data {
                ArrayData::Real(x) => x.len() == n * n && pairs.all(|(a, b)| x[a] == x[b]),
                _ => false,
            },
            Arg::Elements(elems, _) => {
                elems.len() == n * n && pairs.all(|(a, b)| self.pair(elems[a], elems[b], (a, b)))
            }
            Arg::Prefix(..) => false,
            Arg::Whole(node) => self.node(*node),
        }
    }

    /// Whether the elements at mirrored places are the same: one node's, or mirrored ones of a symmetric matrix.
    fn pair(&mut self, a: Elem, b: Elem, places: (usize, usize)) -> bool {
        match (a, b) {
            (Elem::Of(node, at), Elem::Of(other, mirrored)) if node == other && at != mirrored => {
                (at as usize, mirrored as usize) == places && self.node(node)
            }
            (a, b) => a == b,
        }
    }

    fn node(&mut self, id: NodeId) -> bool {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let node = &self.graph.nodes[id];
        let is = node.shape == [self.n, self.n]
            && match &node.op {
                Op::Infix("@") => matches!(&node.args[..], [a, b] if self.are_transposed(a, b)),
                Op::Infix(sign) => self.all(&node.args) || *sign == "*" && self.is_scaled(&node.args),
                Op::Negate => self.all(&node.args),
                Op::Call(name, _) if ELEMENTWISE.contains(&&**name) => self.all(&node.args),
                Op::Call(name, _) => {
                    let of_process = name.starts_with("gp_") && name.ends_with("_cov") && !name.ends_with("_cross_cov");
                    of_process || SYMMETRIC.contains(&&**name)
                }
                _ => false,
            };
        self.known.insert(id, is);
        is
    }

    /// Whether one matrix is the other, transposed.
    fn are_transposed(&self, a: &Arg, b: &Arg) -> bool {
        let turned = |a: &Arg, b: &Arg| {
            let Arg::Whole(id) = a else { return false };
            let node = &self.graph.nodes[*id];
            matches!(&node.op, Op::Call(name, _) if &**name == "transpose") && node.args.first() == Some(b)
        };
        if turned(a, b) || turned(b, a) {
            return true;
        }
        let (Some(&[rows, cols]), Some(&[_, width])) = (self.shape(a), self.shape(b)) else { return false };
        let mut places = (0..rows).flat_map(|i| (0..cols).map(move |j| (i * cols + j, j * rows + i)));
        width == rows && places.all(|(p, q)| self.element(a, p).is_some_and(|elem| self.element(b, q) == Some(elem)))
    }

    /// Whether a matrix is a symmetric one whose rows and columns are multiplied by the same numbers, as `quad_form_diag` does
    /// it: but for rounding it is symmetric then.
    fn is_scaled(&mut self, args: &[Arg]) -> bool {
        let [Arg::Whole(inner), columns] = args else { return false };
        let graph = self.graph;
        let inner = &graph.nodes[*inner];
        match (&inner.op, &inner.args[..]) {
            (Op::Infix("*"), [rows, matrix]) => self.are_transposed(rows, columns) && self.of(matrix),
            _ => false,
        }
    }

    fn shape<'a>(&'a self, arg: &'a Arg) -> Option<&'a [usize]> {
        match arg {
            Arg::Whole(node) => Some(&self.graph.nodes[*node].shape),
            Arg::Known(array) => Some(&array.shape),
            Arg::Elements(_, shape) => Some(shape),
            Arg::Scalar(_) | Arg::Prefix(..) => None,
        }
    }

    fn element(&self, arg: &Arg, at: usize) -> Option<Elem> {
        match arg {
            Arg::Whole(node) => Some(Elem::Of(*node, at as u32)),
            Arg::Elements(elems, _) => elems.get(at).copied(),
            Arg::Known(array) => match &array.data {
                ArrayData::Real(x) => x.get(at).map(|x| Elem::Real(*x)),
                _ => None,
            },
            Arg::Scalar(_) | Arg::Prefix(..) => None,
        }
    }

    fn all(&mut self, args: &[Arg]) -> bool {
        if self.depth == DEEPEST {
            return false;
        }
        self.depth += 1;
        let all = args.iter().all(|arg| self.of(arg));
        self.depth -= 1;
        all
    }
}

/// Functions that give numbers from 0 to 1.
const SHARES: &[&str] =
    &["inv_logit", "Phi", "simplex_constrain", "softmax", "stochastic_column_constrain", "stochastic_row_constrain"];

/// Whether elements are a row or a column of a stochastic matrix: they sum to 1.
pub(super) fn is_of_stochastic_matrix(graph: &Graph, elems: &[Elem]) -> bool {
    let Some(Elem::Of(id, first)) = elems.first().copied() else { return false };
    let node = &graph.nodes[id];
    let (&[rows, columns], Op::Call(name, _)) = (&node.shape[..], &node.op) else { return false };
    let first = first as usize;
    let (length, step, begins) = match &**name {
        "stochastic_row_constrain" => (columns, 1, first.is_multiple_of(columns.max(1))),
        "stochastic_column_constrain" => (rows, columns, first < columns),
        _ => return false,
    };
    let goes = |(at, elem): (usize, &Elem)| *elem == Elem::Of(id, (first + at * step) as u32);
    begins && elems.len() == length && elems.iter().enumerate().all(goes)
}

/// Which numbers are surely positive, or shares from 0 to 1, by what they are made of: rounding apart.
pub(super) struct Signs<'g> {
    graph: &'g Graph,
    /// Each node is looked at once.
    known: HashMap<NodeId, bool>,
    depth: usize,
}

impl Signs<'_> {
    pub(super) fn new(graph: &Graph) -> Signs<'_> {
        Signs { graph, known: HashMap::default(), depth: 0 }
    }

    pub(super) fn positive(&mut self, arg: &Arg) -> bool {
        match arg {
            Arg::Scalar(elem) => self.positive_elem(*elem),
            Arg::Known(array) => matches!(&array.data, ArrayData::Real(x) if x.iter().all(|x| *x > 0.0)),
            Arg::Elements(elems, _) => elems.iter().all(|elem| self.positive_elem(*elem)),
            Arg::Prefix(..) => false,
            Arg::Whole(node) => self.positive_node(*node),
        }
    }

    fn positive_elem(&mut self, elem: Elem) -> bool {
        match elem {
            Elem::Of(node, _) => self.positive_node(node),
            elem => matches!(elem.as_real(), Elem::Real(x) if x > 0.0),
        }
    }

    fn positive_node(&mut self, id: NodeId) -> bool {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        if self.depth == DEEPEST {
            return false;
        }
        self.depth += 1;
        let graph = self.graph;
        let node = &graph.nodes[id];
        let is = match &node.op {
            Op::Infix("+" | "*" | "/") => node.args.iter().all(|arg| self.positive(arg)),
            Op::Infix("^") => node.args.first().is_some_and(|arg| self.positive(arg)),
            Op::Call(name, _) => match &**name {
                "exp" | "inv_logit" | "positive_ordered_constrain" => true,
                "simplex_constrain" | "stochastic_row_constrain" | "stochastic_column_constrain" | "softmax" => true,
                "sqrt" | "square" | "inv" | "sum" => self.positive(&node.args[0]),
                _ => false,
            },
            _ => false,
        };
        self.depth -= 1;
        self.known.insert(id, is);
        is
    }

    /// Whether all are between 0 and 1.
    pub(super) fn shares(&self, arg: &Arg) -> bool {
        match arg {
            Arg::Scalar(elem) => self.share(*elem),
            Arg::Whole(node) => self.share(Elem::Of(*node, 0)),
            Arg::Elements(elems, _) => elems.iter().all(|elem| self.share(*elem)),
            Arg::Known(_) | Arg::Prefix(..) => false,
        }
    }

    fn share(&self, elem: Elem) -> bool {
        match elem {
            Elem::Of(node, _) => {
                let gives = |name: &str| SHARES.contains(&name);
                matches!(&self.graph.nodes[node].op, Op::Call(name, _) if gives(name))
            }
            elem => matches!(elem.as_real(), Elem::Real(x) if (0.0..=1.0).contains(&x)),
        }
    }
}
