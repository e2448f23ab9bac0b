//! The text form of a unit program, as [`read`](super::read()) and [`read_calls`](super::read_calls) take it.
//!
//! ```text
//! program fib entry b0
//! inputs n: fib.n
//! outputs result: fib.result
//! var fib.n: int stack
//! var fib.result: int register
//! unit b0
//! region b1, b2
//!
//! b0: @fib:2
//!   %0: int = load fib.n @fib:2
//!   %1: bool = lt %0, 3 @fib:2
//!   branch %1, b1, b2
//! ```
//!
//! That of a [`CallProgram`] begins with `calls entry fib`; its variables, units and blocks stand under the functions
//! that they belong to: `func fib(n) -> int`.

use std::fmt::{self, Write as _};

use super::{
    Argument, Block, BlockId, Body, CallProgram, CallTerminator, Globals, Op, OpKind, Operand, Passing, Port, Program,
    Terminator, ValueId, VarId,
};
use crate::base::text::QuotedName;
use crate::base::{Id as _, IdVec};
use crate::parts::text::{LocText, OperandNames, tape_name, write_globals};

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vars = VarNames { vars: &self.body.vars, globals: &self.globals };
        let ports = |ports: &[Port]| {
            let ports = ports.iter().map(|port| format!("{}: {}", QuotedName(&port.name), vars.var(port.var)));
            ports.collect::<Vec<_>>().join(", ")
        };
        let mut out = format!("program {} entry {}\n", QuotedName(&self.name), self.entry);
        for (word, list) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            if !list.is_empty() {
                writeln!(out, "{word} {}", ports(list))?;
            }
        }
        let Globals { shared, streams, tapes } = &self.globals;
        write_globals(&mut out, shared, streams, tapes)?;
        write_body(&mut out, &self.body, &self.globals, |names, term| terminator(&vars, names, term))?;
        f.write_str(&out)
    }
}

impl fmt::Display for CallProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |func| self.funcs.get(func).map_or_else(|| format!("?{func}"), |f| QuotedName(&f.name).to_string());
        let mut out = format!("calls entry {}\n", name(self.entry));
        if !self.outputs.is_empty() {
            let outputs: Vec<String> = self.outputs.iter().map(|o| QuotedName(o).to_string()).collect();
            writeln!(out, "outputs {}", outputs.join(", "))?;
        }
        let Globals { shared, streams, tapes } = &self.globals;
        write_globals(&mut out, shared, streams, tapes)?;
        for func in self.funcs.values() {
            let vars = VarNames { vars: &func.body.vars, globals: &self.globals };
            let params: Vec<String> = func.params.iter().map(|p| vars.var(*p)).collect();
            let results: Vec<String> = func.results.iter().map(ToString::to_string).collect();
            let arrow = if results.is_empty() { "" } else { " -> " };
            let (name_of, results) = (QuotedName(&func.name), results.join(", "));
            writeln!(out, "\nfunc {name_of}({}){arrow}{results}{}", params.join(", "), LocText(&func.loc))?;
            write_body(&mut out, &func.body, &self.globals, |names, term| call_terminator(&vars, names, &name, term))?;
        }
        f.write_str(&out)
    }
}

/// Names of variables.
struct VarNames<'a> {
    vars: &'a IdVec<VarId, super::Var>,
    globals: &'a Globals,
}

impl VarNames<'_> {
    fn var(&self, var: VarId) -> String {
        self.vars.get(var).map_or_else(|| format!("?{var}"), |v| QuotedName(&v.name).to_string())
    }
    fn list(&self, vars: &[VarId]) -> String {
        vars.iter().map(|v| self.var(*v)).collect::<Vec<_>>().join(", ")
    }
    fn argument(&self, (argument, passing): &(Argument, Passing)) -> String {
        let name = |v: VarId| self.vars.get(v).map(|v| v.name.as_str());
        let text = OperandNames { var: &name, shared: &self.globals.shared }.operand(*argument);
        match passing {
            Passing::Copy => text,
            Passing::Lent => format!("{text} lent"),
            Passing::Given => format!("{text} given"),
        }
    }
    fn arguments(&self, arguments: &[(Argument, Passing)]) -> String {
        arguments.iter().map(|a| self.argument(a)).collect::<Vec<_>>().join(", ")
    }
}

/// Names of the values of a block.
struct ValueNames<'a> {
    texts: &'a [String],
    globals: &'a Globals,
}

impl ValueNames<'_> {
    fn with<R>(&self, see: impl FnOnce(&OperandNames<'_, ValueId>) -> R) -> R {
        let name = |v: ValueId| self.texts.get(v.index()).map(String::as_str);
        see(&OperandNames { var: &name, shared: &self.globals.shared })
    }
    fn operand(&self, operand: Operand) -> String {
        self.with(|names| names.operand(operand))
    }
}

fn write_body<T>(
    out: &mut String,
    body: &Body<T>,
    globals: &Globals,
    ending: impl Fn(&ValueNames<'_>, &T) -> String,
) -> fmt::Result {
    let vars = VarNames { vars: &body.vars, globals };
    for var in body.vars.values() {
        let uniform = if var.uniform { " uniform" } else { "" };
        writeln!(out, "var {}: {} {}{uniform}", QuotedName(&var.name), var.ty, var.class)?;
    }
    for unit in body.units.values() {
        let blocks: Vec<String> = unit.blocks.iter().map(BlockId::to_string).collect();
        writeln!(out, "{} {}", if unit.region { "region" } else { "unit" }, blocks.join(", "))?;
    }
    let most = body.blocks.values().map(|b| b.values.len()).max().unwrap_or(0);
    let texts: Vec<String> = (0..most).map(|i| ValueId::new(i).to_string()).collect();
    for (id, block) in body.blocks.iter() {
        let names = ValueNames { texts: &texts[..block.values.len()], globals };
        writeln!(out, "\n{id}:{}", LocText(&block.loc))?;
        for op in &block.ops {
            writeln!(out, "  {}{}", operation(&vars, &names, block, op), LocText(&op.loc))?;
        }
        writeln!(out, "  {}", ending(&names, &block.term))?;
    }
    Ok(())
}

fn operation<T>(vars: &VarNames<'_>, names: &ValueNames<'_>, block: &Block<T>, op: &Op) -> String {
    let globals = names.globals;
    let text = match &op.kind {
        OpKind::Load { var, .. } => format!("load {}", vars.var(*var)),
        OpKind::Compute { prim, args, .. } => names.with(|n| n.prim(*prim, args)),
        OpKind::Store { var, value } => format!("store {}, {}", vars.var(*var), names.operand(*value)),
        OpKind::Push { stack, value } => format!("push {}, {}", vars.var(*stack), names.operand(*value)),
        OpKind::Pop { stack, .. } => format!("pop {}", vars.var(*stack)),
        OpKind::Effect(effect) => names.with(|n| effect.text(n, &globals.streams, &globals.tapes)),
    };
    let Some(dst) = op.kind.dst() else { return text };
    match block.values.get(dst) {
        Some(value) => format!("{dst}: {}{} = {text}", value.ty, if value.uniform { " uniform" } else { "" }),
        None => format!("?{dst} = {text}"),
    }
}

fn terminator(vars: &VarNames<'_>, names: &ValueNames<'_>, term: &Terminator) -> String {
    match term {
        Terminator::Jump(to) => format!("jump {to}"),
        Terminator::Branch(cond, yes, no) => format!("branch {}, {yes}, {no}", names.operand(*cond)),
        Terminator::PushJump { target, ret, loc, attempt: None } => format!("pushjump {target}, {ret}{}", LocText(loc)),
        Terminator::PushJump { target, ret, loc, attempt: Some(attempt) } => {
            let tapes: Vec<String> = attempt.tapes.iter().map(|t| tape_name(&names.globals.tapes, *t)).collect();
            let (results, stacks) = (vars.list(&attempt.results), vars.list(&attempt.stacks));
            format!(
                "attempt {target}, {ret} ({results}) stacks ({stacks}) tapes ({}){}",
                tapes.join(", "),
                LocText(loc)
            )
        }
        Terminator::Return => "return".to_owned(),
        Terminator::Halt => "halt".to_owned(),
    }
}

fn call_terminator(
    vars: &VarNames<'_>,
    names: &ValueNames<'_>,
    callee: &dyn Fn(super::FuncId) -> String,
    term: &CallTerminator,
) -> String {
    match term {
        CallTerminator::Jump(to) => format!("jump {to}"),
        CallTerminator::Branch(cond, yes, no) => format!("branch {}, {yes}, {no}", names.operand(*cond)),
        CallTerminator::Call { func, args, dsts, next, loc, attempt } => {
            let word = if *attempt { "attempt" } else { "call" };
            let (callee, args, dsts) = (callee(*func), vars.arguments(args), vars.list(dsts));
            format!("{word} {callee}({args}) -> ({dsts}) then {next}{}", LocText(loc))
        }
        CallTerminator::TailCall { func, args } => {
            format!("tailcall {}({})", callee(*func), vars.arguments(args))
        }
        CallTerminator::Return(args) => format!("return ({})", vars.arguments(args)),
    }
}
