//! The text form of a CFG program, as [`read`](super::read()) reads it back. Total: a program that the verifier would reject
//! prints too, with question marks where ids are out of range.

use std::fmt::{self, Write};

use super::{Block, Func, FuncId, Inst, InstKind, Program, Terminator, VarId};
use crate::base::Id;
use crate::base::text::QuotedName;
use crate::parts::text::{LocText, OperandNames, typed_names, write_globals};

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_program(f, self, None)
    }
}

/// What is to be said of a variable.
type Annotate<'a> = &'a dyn Fn(FuncId, VarId) -> String;

/// The text form with a comment for every variable.
pub fn print_annotated(program: &Program, say: &dyn Fn(FuncId, VarId) -> String) -> String {
    let mut text = String::new();
    write_program(&mut text, program, Some(say)).expect("writing to a string does not fail");
    text
}

fn write_program(f: &mut impl Write, program: &Program, say: Option<Annotate<'_>>) -> fmt::Result {
    writeln!(f, "cfg entry {}", func_name(program, program.entry))?;
    write_globals(f, &program.shared, &program.streams, &program.tapes)?;
    if !program.outputs.is_empty() {
        let names: Vec<String> = program.outputs.iter().map(|o| QuotedName(o).to_string()).collect();
        writeln!(f, "outputs {}", names.join(", "))?;
    }
    for (id, func) in program.funcs.iter() {
        f.write_str(&annotated(program, func, say.map(|say| (id, say)))?)?;
    }
    Ok(())
}

fn func_name(program: &Program, id: FuncId) -> String {
    match program.funcs.get(id) {
        Some(func) => QuotedName(&func.name).to_string(),
        None => format!("?{id}"),
    }
}

/// The text of one function, from `func` to the closing brace.
pub fn func_text(program: &Program, func: &Func) -> Result<String, fmt::Error> {
    annotated(program, func, None)
}

fn annotated(program: &Program, func: &Func, say: Option<(FuncId, Annotate<'_>)>) -> Result<String, fmt::Error> {
    let mut out = String::new();
    let var_name = |v: VarId| func.vars.get(v).map(|var| var.name.as_str());
    let printer = Printer { program, names: OperandNames { var: &var_name, shared: &program.shared } };
    printer.func(&mut out, func, say)?;
    Ok(out)
}

struct Printer<'a> {
    program: &'a Program,
    names: OperandNames<'a, VarId>,
}

impl Printer<'_> {
    fn func(&self, out: &mut String, func: &Func, say: Option<(FuncId, Annotate<'_>)>) -> fmt::Result {
        let params: Vec<String> = func
            .params
            .iter()
            .map(|p| match func.vars.get(*p) {
                Some(var) => format!("{}: {}", QuotedName(&var.name), var.ty),
                None => format!("?{p}"),
            })
            .collect();
        let results: Vec<String> = func.results.iter().map(ToString::to_string).collect();
        let arrow = if results.is_empty() { "" } else { " -> " };
        write!(out, "func {}({})", QuotedName(&func.name), params.join(", "))?;
        write!(out, "{arrow}{} {{", results.join(", "))?;
        writeln!(out, "{}", LocText(&func.loc))?;
        if let Some((id, say)) = say {
            for (var, v) in func.vars.iter() {
                writeln!(out, "  ; {}: {}", v.name, say(id, var))?;
            }
        }
        // parameters that are the first variables, in order, need not be listed again
        let leading = func.params.iter().enumerate().all(|(i, p)| p.index() == i);
        let listed = func.vars.values().skip(if leading { func.params.len() } else { 0 });
        let vars = typed_names(listed.map(|v| (v.name.as_str(), &v.ty)));
        if !vars.is_empty() {
            writeln!(out, "  var {vars}")?;
        }
        for (id, block) in func.blocks.iter() {
            writeln!(out, "{id}:{}", LocText(&block.loc))?;
            self.block(out, block)?;
        }
        writeln!(out, "}}")
    }

    fn block(&self, out: &mut String, block: &Block) -> fmt::Result {
        for inst in &block.insts {
            writeln!(out, "  {}{}", self.inst(inst), LocText(&inst.loc))?;
        }
        self.terminator(out, &block.term)
    }

    fn inst(&self, inst: &Inst) -> String {
        match &inst.kind {
            InstKind::Prim { dst, prim, args } => {
                format!("{} = {}", self.names.var(*dst), self.names.prim(*prim, args))
            }
            InstKind::Effect(effect) => {
                let text = effect.text(&self.names, &self.program.streams, &self.program.tapes);
                match effect.dst() {
                    Some(dst) => format!("{} = {text}", self.names.var(*dst)),
                    None => text,
                }
            }
        }
    }

    fn terminator(&self, out: &mut String, term: &Terminator) -> fmt::Result {
        match term {
            Terminator::Jump(b) => writeln!(out, "  jump {b}"),
            Terminator::Branch(cond, a, b) => {
                writeln!(out, "  branch {}, {a}, {b}", self.names.operand(*cond))
            }
            Terminator::Call { func, args, dsts, next, loc, attempt } => {
                let dsts: Vec<String> = dsts.iter().map(|d| self.names.var(*d)).collect();
                let equals = if dsts.is_empty() { "" } else { " = " };
                let callee = func_name(self.program, *func);
                let word = if *attempt { "attempt" } else { "call" };
                write!(out, "  {}{equals}{word} {callee}", dsts.join(", "))?;
                write!(out, "({}) then {next}", self.names.operands(args))?;
                writeln!(out, "{}", LocText(loc))
            }
            Terminator::TailCall { func, args, loc } => {
                let callee = func_name(self.program, *func);
                write!(out, "  tailcall {callee}({})", self.names.operands(args))?;
                writeln!(out, "{}", LocText(loc))
            }
            Terminator::Return(values) if values.is_empty() => writeln!(out, "  return"),
            Terminator::Return(values) => {
                writeln!(out, "  return {}", self.names.operands(values))
            }
        }
    }
}
