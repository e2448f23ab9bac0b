//! The text form of a stack program, as [`read`](super::read()) takes it.
//!
//! ```text
//! program fib entry b0
//! inputs n: fib.n
//! outputs result: fib.result
//! var fib.n: int stack
//! var fib.c: bool temporary
//! region b3, b4
//!
//! b0: @fib:2
//!   prim fib.c = lt fib.n, 3 @fib:2
//!   branch fib.c, b1, b2
//! ```

use std::fmt::{self, Write as _};

use super::{Block, BlockId, Inst, InstKind, Port, Program, SideEffect, Terminator, VarId, Write};
use crate::base::text::QuotedName;
use crate::parts::text::{LocText, OperandNames, tape_name, write_globals};

impl fmt::Display for Program {
    /// The text form. What [`super::Var::why`] says is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        write_program(&mut text, self, false)?;
        f.write_str(&text)
    }
}

/// The text form with a comment for every variable: why it has its storage class.
pub fn print_explained(program: &Program) -> String {
    let mut text = String::new();
    write_program(&mut text, program, true).expect("writing to a string does not fail");
    text
}

fn write_program(f: &mut String, program: &Program, explained: bool) -> fmt::Result {
    let name = |v: VarId| program.vars.get(v).map(|var| var.name.as_str());
    let names = OperandNames { var: &name, shared: &program.shared };
    writeln!(f, "program {} entry {}", QuotedName(&program.name), program.entry)?;
    write_ports(f, "inputs", &program.inputs, &names)?;
    write_ports(f, "outputs", &program.outputs, &names)?;
    write_globals(f, &program.shared, &program.streams, &program.tapes)?;
    for var in program.vars.values() {
        let uniform = if var.uniform { " uniform" } else { "" };
        write!(f, "var {}: {} {}{uniform}", QuotedName(&var.name), var.ty, var.class)?;
        if explained && !var.why.is_empty() {
            write!(f, " ; {}", var.why)?;
        }
        writeln!(f)?;
    }
    for region in &program.regions {
        let blocks: Vec<String> = region.blocks.iter().map(BlockId::to_string).collect();
        writeln!(f, "region {}", blocks.join(", "))?;
    }
    for (id, block) in program.blocks.iter() {
        writeln!(f)?;
        write_block(f, program, &names, id, block)?;
    }
    Ok(())
}

fn write_ports(f: &mut String, word: &str, ports: &[Port], names: &OperandNames<'_, VarId>) -> fmt::Result {
    if ports.is_empty() {
        return Ok(());
    }
    let ports: Vec<String> =
        ports.iter().map(|port| format!("{}: {}", QuotedName(&port.name), names.var(port.var))).collect();
    writeln!(f, "{word} {}", ports.join(", "))
}

fn write_block(
    f: &mut String,
    program: &Program,
    names: &OperandNames<'_, VarId>,
    id: BlockId,
    block: &Block,
) -> fmt::Result {
    writeln!(f, "{id}:{}", LocText(&block.loc))?;
    for inst in &block.insts {
        writeln!(f, "  {}{}", inst_text(program, names, inst), LocText(&inst.loc))?;
    }
    match &block.term {
        Terminator::Jump(to) => writeln!(f, "  jump {to}"),
        Terminator::Branch(cond, yes, no) => {
            writeln!(f, "  branch {}, {yes}, {no}", names.operand(*cond))
        }
        Terminator::PushJump { target, ret, loc, attempt: None } => {
            writeln!(f, "  pushjump {target}, {ret}{}", LocText(loc))
        }
        Terminator::PushJump { target, ret, loc, attempt: Some(results) } => {
            let results: Vec<String> = results.iter().map(|v| names.var(*v)).collect();
            writeln!(f, "  attempt {target}, {ret} ({}){}", results.join(", "), LocText(loc))
        }
        Terminator::Return => writeln!(f, "  return"),
        Terminator::Halt => writeln!(f, "  halt"),
    }
}

fn inst_text(program: &Program, names: &OperandNames<'_, VarId>, inst: &Inst) -> String {
    match &inst.kind {
        InstKind::Compute { write, dst, prim, args } => {
            format!("{write} {} = {}", names.var(*dst), names.prim(*prim, args))
        }
        InstKind::Pop(v) => format!("pop {}", names.var(*v)),
        InstKind::Save { stack, value } => format!("save {}, {}", names.var(*stack), names.var(*value)),
        InstKind::Effect(SideEffect::TapePop { dst, tape }) => {
            format!("tape_pop {} = {}", names.var(*dst), tape_name(&program.tapes, *tape))
        }
        InstKind::Effect(effect) => effect.text(names, &program.streams, &program.tapes),
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Write::Set => "prim",
            Write::Push => "push",
            Write::Update => "update",
        })
    }
}
