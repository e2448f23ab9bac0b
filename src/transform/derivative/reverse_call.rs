//! The reverse of a call: of its reverse sweep, or of the function again with a rule of its own.

use super::care::{Care, Cares};
use super::code::{Code, real};
use super::cotangent::Cotangents;
use super::differentiation::CallRule;
use super::reverse::{Layout, Reversed};
use super::sweeps::Sweeps;
use crate::base::IdSet;
use crate::cfg::{BlockId, Operand, Terminator, VarId};
use crate::prim::Prim;
use crate::types::DType;

impl Sweeps<'_> {
    /// The reverse of the call that ends a block.
    pub(super) fn reverse_call(
        &self,
        code: &mut Code<'_>,
        layout: &Layout,
        id: BlockId,
        done: &mut IdSet<VarId>,
        (reversed, cares): (&mut Reversed, &Cares),
    ) {
        let block = &self.func.blocks[id];
        let Terminator::Call { args, dsts, loc, attempt, .. } = &block.term else { return };
        let place = (id, block.insts.len());
        let mut cotangents = Cotangents { code, of: &self.of, known: &mut reversed.known };
        let taken: Vec<Option<Operand>> = dsts.iter().map(|d| cotangents.take_whole(*d)).collect();
        let rule = &self.calls[&id];
        // what was saved before the call lies below what a forward sweep that is called left on the same tapes
        let restored_after = matches!(rule, CallRule::Pair { .. });
        if !restored_after {
            self.restore(code, place, done);
        }
        let (func, mut passed, skip, mask) = match rule {
            CallRule::Inactive => {
                let insts = std::mem::take(&mut code.insts);
                reversed.call = Some((insts, Terminator::Jump(layout.after[&id])));
                return;
            }
            CallRule::Pair { pair, key, results } => {
                let mut passed = self.cotangents_of(code, dsts, &taken, |k| results[k]);
                let values = args.iter().zip(&self.given[&id].values).filter(|(_, taken)| **taken).map(|(arg, _)| *arg);
                values.clone().filter_map(|arg| arg.var()).for_each(|v| self.again(code, id, v, done));
                passed.extend(values);
                (pair.reverse, passed, 0, &key.1)
            }
            CallRule::Again { func, skip, mask } => {
                args.iter().filter_map(|a| a.var()).for_each(|v| self.again(code, id, v, done));
                let real = |k: usize| self.func.vars[dsts[k]].ty.dtype == DType::Real;
                let mut passed = args.clone();
                passed.extend(self.cotangents_of(code, dsts, &taken, real));
                (*func, passed, *skip, mask)
            }
        };
        // the user's rule may multiply a zero by what is no number; of a value that is not wanted, one that could not
        // be computed has no say
        let by_hand = skip == 0 && matches!(rule, CallRule::Again { .. });
        let careful = *attempt || by_hand && dsts.iter().any(|d| cares[*d] != Care::Plain);
        let some: Vec<Operand> = taken.iter().flatten().filter(|_| careful).map(|g| code.is_some(*g)).collect();
        let some = some.into_iter().reduce(|a, b| code.prim(Prim::Or, &[a, b]));
        let mut results: Vec<VarId> = Vec::new();
        for dst in &dsts[..skip] {
            let ty = self.func.vars[*dst].ty.clone();
            results.push(code.fresh(ty));
        }
        let mut parts: Vec<(Operand, VarId)> = Vec::new();
        let mut cotangents = Cotangents { code, of: &self.of, known: &mut reversed.known };
        for (k, arg) in args.iter().enumerate().filter(|(k, _)| mask[*k]) {
            let sum = self.given.get(&id).map(|given| given.sums[k]);
            results.push(self.cotangent_of_arg(&mut cotangents, *arg, (sum, &results), (&mut passed, &mut parts)));
        }
        let insts = std::mem::take(&mut code.insts);
        let (next, loc) = (layout.after[&id], loc.clone());
        reversed.call =
            Some((insts, Terminator::Call { func, args: passed, dsts: results, next, loc, attempt: *attempt }));
        if restored_after {
            self.restore(code, place, done);
        }
        let mut cotangents = Cotangents { code, of: &self.of, known: &mut reversed.known };
        for (arg, part) in parts {
            let part = Operand::Var(part);
            let part = match some {
                Some(some) => cotangents.code.prim(Prim::Select, &[some, part, real(0.0)]),
                None if *attempt => continue,
                None => part,
            };
            cotangents.add(arg, part);
        }
    }

    /// What the reverse of a call sets for an argument. `sum`: whether it takes the cotangent and adds to it, where the
    /// callee has sweeps of its own; `results` are those before. What it takes goes to `passed`, and what is to be
    /// added afterwards to `parts`.
    fn cotangent_of_arg(
        &self,
        cotangents: &mut Cotangents<'_, '_>,
        arg: Operand,
        (sum, results): (Option<bool>, &[VarId]),
        (passed, parts): (&mut Vec<Operand>, &mut Vec<(Operand, VarId)>),
    ) -> VarId {
        // an argument that stands twice in a call has one cotangent
        let holder = arg.var().and_then(|v| Some((v, self.of[v]?))).filter(|(_, holder)| !results.contains(holder));
        match (holder, sum) {
            (Some((v, holder)), Some(true)) => {
                cotangents.materialise(v);
                passed.push(Operand::Var(holder));
                return holder;
            }
            (Some((v, holder)), Some(false)) if cotangents.known.zero.contains(v) => {
                cotangents.known.zero.remove(v);
                return holder;
            }
            _ => {}
        }
        let ty = cotangents.code.ty(arg);
        if sum == Some(true) {
            let zero = cotangents.code.zero(&ty);
            passed.push(zero);
        }
        let part = cotangents.code.fresh(ty);
        parts.push((arg, part));
        part
    }

    /// The cotangents of some of the results of a call, zeros where they are known to be.
    fn cotangents_of(
        &self,
        code: &mut Code<'_>,
        dsts: &[VarId],
        taken: &[Option<Operand>],
        wanted: impl Fn(usize) -> bool,
    ) -> Vec<Operand> {
        let mut found = Vec::new();
        for (k, dst) in dsts.iter().enumerate().filter(|(k, _)| wanted(*k)) {
            found.push(match taken[k] {
                Some(cotangent) => cotangent,
                None => {
                    let ty = self.func.vars[*dst].ty.clone();
                    code.zero(&ty)
                }
            });
        }
        found
    }
}
