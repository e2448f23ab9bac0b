//! Warning W0101: operations whose operands no kernel takes for many lanes together.

use crate::base::{DiagnosticCode, Finding};
use crate::parts::Operand;
use crate::plan::BatchKernel;
use crate::prim::Prim;
use crate::stack::{InstKind, Program};
use crate::types::Type;

/// One finding for each operation that goes lane by lane.
pub fn fallbacks(program: &Program) -> Vec<Finding> {
    let mut findings = Vec::new();
    for inst in program.blocks.values().flat_map(|b| &b.insts) {
        let InstKind::Compute { dst, prim, args, .. } = &inst.kind else { continue };
        if program.vars[*dst].uniform {
            continue;
        }
        let types: Vec<Type> = args.iter().map(|a| program.operand_type(*a)).collect();
        let shared = args.iter().map(|a| a.var().is_none_or(|v| program.vars[v].uniform));
        if BatchKernel::of(*prim, types.iter().zip(shared)) != BatchKernel::LaneByLane {
            continue;
        }
        let (operation, operand, help) = words(*prim);
        let named = match args.get(1) {
            Some(Operand::Var(v)) => user_name(&program.vars[*v].name).map(|name| format!(" `{name}`")),
            _ => None,
        };
        findings.push(Finding {
            code: DiagnosticCode("W0101"),
            loc: inst.loc.clone(),
            message: format!(
                "{operation} goes lane by lane: {operand}{} differs between lanes, and there is no kernel for that",
                named.unwrap_or_default()
            ),
            label: "one lane after another".to_owned(),
            notes: Vec::new(),
            help: help.map(str::to_owned),
        });
    }
    findings
}

/// The operation, its operand that no kernel takes, and what to do.
fn words(prim: Prim) -> (String, &'static str, Option<&'static str>) {
    match prim {
        Prim::IntPow => (
            "`^` of ints".to_owned(),
            "the exponent",
            Some("an exponent that is shared, or a power of reals, is computed for all lanes together"),
        ),
        other => (format!("`{other}`"), "an operand", None),
    }
}

/// The name that the user gave a variable, without its function; `None` for one that the compiler made.
fn user_name(name: &str) -> Option<&str> {
    let name = name.rsplit('.').next().unwrap_or(name);
    let name = name.split('#').next().unwrap_or(name);
    let made = name.strip_prefix('t').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    (!made && !name.starts_with('%') && !name.bytes().all(|b| b.is_ascii_digit())).then_some(name)
}
