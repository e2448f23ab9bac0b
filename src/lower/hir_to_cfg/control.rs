//! Branches and loops.

use super::func::{LoopTargets, Lowered, Lowering};
use super::value::Value;
use super::walk;
use crate::base::LazyOp;
use crate::cfg::{BlockId, InstKind, Operand, Terminator, VarId};
use crate::hir::{Expr, ExprKind, LocalId, Ty};
use crate::prim::{Effect, Prim};
use crate::types::{DType, Scalar, Type};

/// `a && b` or `a || b` after both sides were lowered.
enum ShortCircuit {
    /// The right side does nothing but compute: both were evaluated.
    Joined(Operand),
    /// The block at the end of the left side, not ended; its value; the block of the right side, and its value at the
    /// end of the current block.
    Split(BlockId, Operand, BlockId, Option<Operand>),
    /// The left side never ends normally.
    Never,
}

/// Instructions of a right side that are cheaper to run than to jump over.
const MAX_JOINED: usize = 8;

impl<'a> Lowering<'_, 'a> {
    fn short_circuit(&mut self, and: bool, a: &'a Expr, b: &'a Expr) -> Lowered<ShortCircuit> {
        let Some(left) = self.operand(a)? else {
            self.expr(b)?;
            return Ok(ShortCircuit::Never);
        };
        if let Operand::Const(Scalar::Bool(known)) = left {
            if known != and {
                return Ok(ShortCircuit::Joined(left));
            }
            let right = self.operand(b)?;
            return Ok(right.map_or(ShortCircuit::Never, ShortCircuit::Joined));
        }
        let left = if walk::assigns(b) { self.keep(left) } else { left };
        let before = self.current();
        let block = self.new_block();
        self.start(block);
        self.is_right_of(block, if and { LazyOp::And } else { LazyOp::Or });
        let right = self.operand(b)?;
        if let (Some(right), true) = (right, self.current() == block && self.only_tests()) {
            let insts = self.merge_back(before);
            self.insts().extend(insts);
            let prim = if and { Prim::And } else { Prim::Or };
            let joined = self.prim(prim, &[left, right], &Type::bool());
            return Ok(ShortCircuit::Joined(joined));
        }
        Ok(ShortCircuit::Split(before, left, block, right))
    }

    /// Whether the current block is a few total instructions that make no reals, which could be NaN where they are not
    /// wanted.
    fn only_tests(&mut self) -> bool {
        let insts = std::mem::take(self.insts());
        let test = |kind: &InstKind| match kind {
            InstKind::Prim { dst, prim, args } => {
                let types: Vec<Type> = args.iter().map(|a| self.type_of(*a)).collect();
                let result = self.type_of(Operand::Var(*dst));
                prim.effect(&types) == Effect::Pure && result.dtype != DType::Real
            }
            _ => false,
        };
        let tests = insts.len() <= MAX_JOINED && insts.iter().all(|i| test(&i.kind));
        *self.insts() = insts;
        tests
    }

    /// The value of `a && b` or `a || b`.
    pub(super) fn and_or(&mut self, and: bool, a: &'a Expr, b: &'a Expr) -> Lowered<Value> {
        let (before, left, block, right) = match self.short_circuit(and, a, b)? {
            ShortCircuit::Joined(operand) => return Ok(Value::Leaf(operand)),
            ShortCircuit::Never => return Ok(Value::Never),
            ShortCircuit::Split(before, left, block, right) => (before, left, block, right),
        };
        let (short, join) = (self.new_block(), self.new_block());
        let result = self.temporary(Type::bool());
        if let Some(right) = right {
            self.copy(result, right);
        }
        self.terminate(Terminator::Jump(join));
        self.terminate_block(before, branch(and, left, block, short));
        self.start(short);
        self.set(result, Prim::Copy, &[Operand::Const(Scalar::Bool(!and))]);
        self.terminate(Terminator::Jump(join));
        self.start(join);
        Ok(Value::Leaf(Operand::Var(result)))
    }

    /// Ends the current block by going to `then` where the condition holds, else to `otherwise`.
    fn branch_on(&mut self, condition: &'a Expr, then: BlockId, otherwise: BlockId) -> Lowered<()> {
        let before = self.enter(condition.span);
        let (and, a, b) = match &condition.kind {
            ExprKind::And(a, b) => (true, a, b),
            ExprKind::Or(a, b) => (false, a, b),
            _ => {
                // A condition that never ends normally has left already; where to does not matter.
                let cond = self.operand(condition)?;
                self.branch_to(cond, then, otherwise);
                self.enter(before);
                return Ok(());
            }
        };
        match self.short_circuit(and, a, b)? {
            ShortCircuit::Joined(cond) => self.branch_to(Some(cond), then, otherwise),
            ShortCircuit::Never => self.branch_to(None, then, otherwise),
            ShortCircuit::Split(from, left, block, right) => {
                self.branch_to(right, then, otherwise);
                let short = if and { otherwise } else { then };
                self.terminate_block(from, branch(and, left, block, short));
            }
        }
        self.enter(before);
        Ok(())
    }
    fn branch_to(&mut self, cond: Option<Operand>, then: BlockId, otherwise: BlockId) {
        let cond = cond.unwrap_or(Operand::Const(Scalar::Bool(true)));
        self.terminate(Terminator::Branch(cond, then, otherwise));
    }

    /// Whether the condition is known when the program is specialised.
    fn known(&mut self, condition: &'a Expr) -> Option<bool> {
        match self.constant(condition)? {
            Scalar::Bool(known) => Some(known),
            _ => None,
        }
    }

    /// Lowers the arms of an `if` by `arm`, which says whether its arm goes on to what comes after. Only the arm that is
    /// taken is lowered when the condition is known. Goes on after the `if`.
    pub(super) fn if_arms(
        &mut self,
        condition: &'a Expr,
        then: &'a Expr,
        otherwise: Option<&'a Expr>,
        arm: &mut dyn FnMut(&mut Self, Option<&'a Expr>) -> Lowered<bool>,
    ) -> Lowered<()> {
        if let Some(known) = self.known(condition) {
            if !arm(self, if known { Some(then) } else { otherwise })? {
                self.start_unreachable();
            }
            return Ok(());
        }
        let (yes, join) = (self.new_block(), self.new_block());
        let no = self.new_block();
        self.branch_on(condition, yes, no)?;
        for (block, expr) in [(yes, Some(then)), (no, otherwise)] {
            self.start(block);
            if arm(self, expr)? {
                self.terminate(Terminator::Jump(join));
            }
        }
        self.start(join);
        Ok(())
    }

    /// The value of an `if`.
    pub(super) fn if_value(
        &mut self,
        condition: &'a Expr,
        then: &'a Expr,
        otherwise: Option<&'a Expr>,
        ty: &'a Ty,
    ) -> Lowered<Value> {
        if let Some(known) = self.known(condition) {
            return match if known { Some(then) } else { otherwise } {
                Some(arm) => self.expr(arm),
                None => Ok(Value::unit()),
            };
        }
        let layout = self.layout(ty)?;
        let (dsts, value) = self.temporaries(&layout);
        self.if_arms(condition, then, otherwise, &mut |this, arm| {
            if let Some(arm) = arm {
                this.expr_to(&dsts, arm)?;
            }
            Ok(true)
        })?;
        Ok(value)
    }

    /// `while`: the condition stands at the end of the loop too when it is short, so that a turn is one jump.
    pub(super) fn while_loop(&mut self, condition: &'a Expr, body: &'a Expr) -> Lowered<Value> {
        let known = self.known(condition);
        if known == Some(false) {
            return Ok(Value::unit());
        }
        let (inside, next, exit) = (self.new_block(), self.new_block(), self.new_block());
        let twice = walk::is_short(condition);
        if twice {
            self.branch_on(condition, inside, exit)?;
        } else {
            self.terminate(Terminator::Jump(next));
            self.start(next);
            self.branch_on(condition, inside, exit)?;
        }
        self.start(inside);
        self.loops.push(LoopTargets { exit, next });
        self.expr(body)?;
        self.loops.pop();
        self.terminate(Terminator::Jump(next));
        if twice {
            self.start(next);
            self.branch_on(condition, inside, exit)?;
        }
        self.start(exit);
        Ok(Value::unit())
    }

    /// `for`: both bounds are evaluated once.
    pub(super) fn for_loop(
        &mut self,
        local: LocalId,
        start: &'a Expr,
        end: &'a Expr,
        body: &'a Expr,
    ) -> Lowered<Value> {
        self.note_range(local, start, end);
        let Some((start, end)) = self.bounds(start, end)? else {
            return Ok(Value::Never);
        };
        self.local_loop(local, start, end, |this, targets| {
            this.loops.push(targets);
            this.expr(body)?;
            this.loops.pop();
            Ok(())
        })?;
        Ok(Value::unit())
    }

    /// The bounds of a loop, as they are before it.
    pub(super) fn bounds(&mut self, start: &'a Expr, end: &'a Expr) -> Lowered<Option<(Operand, Operand)>> {
        let start = self.operand(start)?.map(|o| self.keep(o));
        let end = self.operand(end)?.map(|o| self.keep(o));
        Ok(start.zip(end))
    }

    /// Runs `body` with a local from `start` to `end`, exclusive.
    pub(super) fn local_loop(
        &mut self,
        local: LocalId,
        start: Operand,
        end: Operand,
        body: impl FnOnce(&mut Self, LoopTargets) -> Lowered<()>,
    ) -> Lowered<()> {
        let decl = &self.home.locals[local];
        if !decl.mutable {
            let counter = self.bound(&decl.name, Type::int());
            self.env.insert(local, Value::Leaf(Operand::Var(counter)));
            return self.counted_loop(counter, start, end, body);
        }
        let counter = self.bound("%i", Type::int());
        self.counted_loop(counter, start, end, |this, targets| {
            this.bind(local, &Value::Leaf(Operand::Var(counter)))?;
            body(this, targets)
        })
    }

    /// Runs `body` with a variable from `start` to `end`, exclusive. The comparison comes before the step, which so never
    /// goes past the largest int; and at the end of the loop, so that a turn is one jump. What is known not to run is not
    /// lowered.
    pub(super) fn counted_loop(
        &mut self,
        counter: VarId,
        start: Operand,
        end: Operand,
        body: impl FnOnce(&mut Self, LoopTargets) -> Lowered<()>,
    ) -> Lowered<()> {
        let enters = self.prim(Prim::Lt, &[start, end], &Type::bool());
        if enters == Operand::Const(Scalar::Bool(false)) {
            return Ok(());
        }
        let (inside, next, exit) = (self.new_block(), self.new_block(), self.new_block());
        let counting = Operand::Var(counter);
        self.set(counter, Prim::Copy, &[start]);
        self.terminate(Terminator::Branch(enters, inside, exit));
        self.start(inside);
        body(self, LoopTargets { exit, next })?;
        self.terminate(Terminator::Jump(next));
        self.start(next);
        let one = Operand::Const(Scalar::Int(1));
        self.set(counter, Prim::Add, &[counting, one]);
        let again = self.prim(Prim::Lt, &[counting, end], &Type::bool());
        self.terminate(Terminator::Branch(again, inside, exit));
        self.start(exit);
        Ok(())
    }

    /// The value of an expression that is known when the program is specialised, without lowering it.
    pub(super) fn constant(&self, expr: &'a Expr) -> Option<Scalar> {
        match &expr.kind {
            ExprKind::Literal(scalar) => Some(*scalar),
            ExprKind::Dim(dim) if self.dims.varies(dim) => None,
            ExprKind::Dim(dim) => dim.eval(&self.dims.numbers).map(Scalar::Int),
            ExprKind::Local(local) => match self.env.get(local)? {
                Value::Leaf(Operand::Const(scalar)) => Some(*scalar),
                _ => None,
            },
            ExprKind::Prim(prim, args) => {
                let args = args.iter().map(|a| self.constant(a).map(Operand::Const)).collect::<Option<Vec<_>>>()?;
                super::fold::fold(*prim, &args)
            }
            ExprKind::And(a, b) => self.constant_and_or(true, a, b),
            ExprKind::Or(a, b) => self.constant_and_or(false, a, b),
            _ => None,
        }
    }
    fn constant_and_or(&self, and: bool, a: &'a Expr, b: &'a Expr) -> Option<Scalar> {
        match self.constant(a)? {
            Scalar::Bool(known) if known != and => Some(Scalar::Bool(known)),
            _ => self.constant(b),
        }
    }
}

/// Where the left side of `&&` or `||` goes: on to the right side, or past it.
fn branch(and: bool, left: Operand, right: BlockId, short: BlockId) -> Terminator {
    if and { Terminator::Branch(left, right, short) } else { Terminator::Branch(left, short, right) }
}
