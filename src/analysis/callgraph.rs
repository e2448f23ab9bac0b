//! The call graph of a CFG program.

use std::collections::BTreeSet;

use super::components::components;
use crate::base::{Id, IdVec};
use crate::cfg::{FuncId, Program};

/// Who calls whom; tail calls count as calls.
#[derive(Clone, PartialEq, Debug)]
pub struct CallGraph {
    /// The functions that each function calls, each once, in the order of the first call.
    pub callees: IdVec<FuncId, Vec<FuncId>>,
    /// The strongly connected components, callees before callers.
    pub sccs: Vec<Vec<FuncId>>,
    recursive: IdVec<FuncId, bool>,
}

impl CallGraph {
    /// The call graph of a verified program.
    pub fn new(program: &Program) -> Self {
        let mut callees: IdVec<FuncId, Vec<FuncId>> = IdVec::new();
        for func in program.funcs.values() {
            let mut called = vec![];
            let mut seen = BTreeSet::new();
            for callee in func.blocks.values().filter_map(|b| b.term.callee()) {
                if seen.insert(callee) {
                    called.push(callee);
                }
            }
            callees.push(called);
        }
        let successors = |f: usize| callees[FuncId::new(f)].iter().map(|c| c.index()).collect();
        let sccs: Vec<Vec<FuncId>> = components(callees.len(), successors)
            .into_iter()
            .map(|scc| scc.into_iter().map(FuncId::new).collect())
            .collect();
        let mut recursive = IdVec::filled(false, callees.len());
        for scc in &sccs {
            let cycle = scc.len() > 1 || callees[scc[0]].contains(&scc[0]);
            for func in scc {
                recursive[*func] = cycle;
            }
        }
        Self { callees, sccs, recursive }
    }
    /// Whether a function may call itself, directly or through others.
    pub fn is_recursive(&self, func: FuncId) -> bool {
        self.recursive[func]
    }
}
