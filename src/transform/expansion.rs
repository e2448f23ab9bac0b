//! Fills in what the lowering from HIR leaves open: derivatives, which are functions without blocks, and comprehensions,
//! which are functions that whole-array code may take the place of. Each waits for those that it goes through: the
//! derivative of a comprehension is that of its whole-array code, and a comprehension of derivatives is made of theirs.

use indexmap::IndexMap;

use super::cfg::blocks::{FreshNames, drop_uncalled_functions, drop_unread_shared};
use super::cfg::inline::inline;
use super::derivative::{self, DerivativeError};
use super::vectorize::{self, Refusal, VectorizeOptions};
use crate::base::{Id as _, IdSet};
use crate::cfg::{BlockId, FuncId, Program};

/// Everything about a program from the lowering that it does not say itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Requests {
    /// Derivatives.
    pub derivatives: derivative::DerivativeRequests,
    /// Comprehensions.
    pub comprehensions: Vec<vectorize::ComprehensionRequest>,
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Item {
    Derivative(usize),
    Comprehension(usize),
}

/// Fills the placeholders of derivatives, puts whole-array code in the place of comprehensions where that is possible
/// (nowhere without `options`), and all comprehensions in the place of their calls. Says which of them stay loops.
///
/// # Errors
/// A derivative that cannot be made: a primitive on the way has none, a rule lacks the part that is needed, or a function
/// contains its own derivative.
pub fn expand(
    program: &mut Program,
    requests: &Requests,
    options: Option<VectorizeOptions>,
) -> Result<Vec<Refusal>, DerivativeError> {
    let graph = Graph::new(program, requests);
    let mut refusals = Vec::new();
    for (at, item) in graph.order(program, requests)? {
        match (item, options) {
            (Item::Derivative(index), _) => {
                derivative::fill(program, &requests.derivatives, &requests.derivatives.requests[index])?;
            }
            (Item::Comprehension(index), Some(options)) => {
                let way = graph.way(requests, at, options);
                if let Err(refusal) = vectorize::fill(program, index, &requests.comprehensions[index], way) {
                    refusals.push(refusal);
                }
            }
            (Item::Comprehension(_), None) => {}
        }
    }
    if !requests.comprehensions.is_empty() {
        inline_comprehensions(program, requests);
    }
    refusals.sort_by_key(|r| r.request);
    Ok(refusals)
}

/// Which items each one goes through.
struct Graph {
    items: Vec<Item>,
    /// Places in `items`, itself perhaps among them.
    through: Vec<Vec<usize>>,
    /// Whether each runs a function whose derivative the user wrote.
    rules: Vec<bool>,
}

impl Graph {
    fn new(program: &Program, requests: &Requests) -> Self {
        let derivatives = &requests.derivatives.requests;
        let items = (0..derivatives.len()).map(Item::Derivative);
        let items: Vec<Item> = items.chain((0..requests.comprehensions.len()).map(Item::Comprehension)).collect();
        let ends = |item: Item| match item {
            Item::Derivative(i) => (derivatives[i].target, derivatives[i].of),
            Item::Comprehension(i) => (requests.comprehensions[i].target, requests.comprehensions[i].element),
        };
        let by_target: IndexMap<FuncId, usize> = items.iter().enumerate().map(|(at, i)| (ends(*i).0, at)).collect();
        let (mut through, mut rules) = (Vec::new(), Vec::new());
        for item in &items {
            let mut seen = IdSet::new(program.funcs.len());
            let (mut found, mut has_rule) = (Vec::new(), false);
            let mut work = vec![ends(*item).1];
            while let Some(func) = work.pop() {
                if !seen.insert(func) {
                    continue;
                }
                if let Some(inner) = by_target.get(&func) {
                    found.push(*inner);
                    work.push(ends(items[*inner]).1);
                }
                // the user's rule is called where the derivative of the function was
                if let Some(rule) = requests.derivatives.rules.get(&func) {
                    has_rule = true;
                    work.extend(rule.forward.into_iter().chain(rule.reverse));
                }
                work.extend(program.funcs[func].blocks.values().filter_map(|b| b.term.callee()));
            }
            through.push(found);
            rules.push(has_rule);
        }
        Self { items, through, rules }
    }

    /// The items with their places, those first that others go through.
    fn order(&self, program: &Program, requests: &Requests) -> Result<Vec<(usize, Item)>, DerivativeError> {
        for (at, item) in self.items.iter().enumerate() {
            if let Item::Derivative(index) = item
                && self.through[at].contains(&at)
            {
                return Err(derivative::endless(program, &requests.derivatives.requests[*index]));
            }
        }
        let mut order: Vec<(usize, Item)> = self.items.iter().copied().enumerate().collect();
        order.sort_by_key(|(at, _)| self.through[*at].len());
        Ok(order)
    }

    fn way(&self, requests: &Requests, at: usize, options: VectorizeOptions) -> vectorize::Way {
        let derivatives = requests.derivatives.requests.len();
        let differentiated = self.through[..derivatives].iter().any(|t| t.contains(&at));
        vectorize::Way { options, rule: differentiated && self.rules[at], recursive: self.through[at].contains(&at) }
    }
}

/// A comprehension is no call that a user wrote: it counts for no limit and stands in no trap.
fn inline_comprehensions(program: &mut Program, requests: &Requests) {
    let mut is_comprehension = IdSet::new(program.funcs.len());
    for request in &requests.comprehensions {
        is_comprehension.insert(request.target);
    }
    for id in program.funcs.ids().filter(|id| !is_comprehension.contains(*id)).collect::<Vec<_>>() {
        let mut func = program.funcs[id].clone();
        let mut names = FreshNames::new(&func);
        let mut at = 0;
        while at < func.blocks.len() {
            let block = BlockId::new(at);
            at += 1;
            match func.blocks[block].term.callee() {
                Some(callee) if is_comprehension.contains(callee) => {
                    inline(&mut func, block, &program.funcs[callee], &mut names);
                }
                _ => {}
            }
        }
        program.funcs[id] = func;
    }
    drop_uncalled_functions(program);
    drop_unread_shared(program);
}
