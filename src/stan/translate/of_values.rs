//! What becomes of a program whose parameters are given by their constrained values: the unconstrained numbers of a start,
//! and the quantities of draws that are there.

use indexmap::IndexMap;

use super::{Checked, HostFunctions, Output, Program, StanData, Traced, Tracer};
use super::{PARAMETERS, QUANTITIES, TRANSFORMED};
use super::{joined, known, outputs, plain, ports, prepare, stmts, told, used};
use crate::base::{Diagnostic, Span, stack};
use crate::stan::emit::{Emitter, simplified};
use crate::stan::trace::Taken;
use crate::stan::value::{Kind, Val};
use crate::types::Array;

/// A program of our language with one function of values of parameters.
#[derive(Clone, Debug)]
pub struct OfValues {
    /// The function takes `q: real[n]`, the numbers of all parameters one after the other, inside of matrices column by
    /// column, and shared tables. Empty where it would give nothing. With marks, as that of a
    /// [`Translation`](super::Translation).
    pub text: String,
    /// For each line of the text the place of the Stan program that it comes from.
    pub lines: Vec<Option<Span>>,
    /// The values of the shared parameters.
    pub tables: IndexMap<String, Array>,
    /// What is taken, in the order of the numbers.
    pub taken: Vec<Taken>,
    /// The fields of the struct that it gives, if it gives one.
    pub outputs: Vec<Output>,
}

/// `pub fn unconstrain(q: real[n], shared …) -> real[d]`: of parameters that are `named`, which are taken by their values,
/// and unconstrained numbers of the others. It traps where a value is not what its constraint says.
///
/// # Errors
/// As [`translate`](super::translate).
pub fn unconstrain(
    program: &Program,
    checked: &Checked,
    data: &StanData,
    named: &(dyn Fn(&str) -> bool + Sync),
    host: &mut (dyn HostFunctions + Send),
) -> Result<OfValues, Box<Diagnostic>> {
    stack::on_large_stack(4 * program.depth + 20_000, || inverse(program, checked, data, named, host))
        .map_err(|problem| Box::new(told(&problem)))
}

/// `pub fn generated_quantities(q: real[n], shared …)`, a struct of the transformed parameters and generated quantities.
///
/// # Errors
/// As [`translate`](super::translate).
pub fn quantities(
    program: &Program,
    checked: &Checked,
    data: &StanData,
    host: &mut (dyn HostFunctions + Send),
) -> Result<OfValues, Box<Diagnostic>> {
    let made = || -> Traced<OfValues> {
        let mut tracer = Tracer::new(program, checked, host);
        known(&mut tracer, program, data)?;
        let taken = tracer.take_parameters(stmts(&program.parameters))?;
        let numbers = taken.iter().map(|t| t.numbers).sum();
        let blocks = TRANSFORMED..=QUANTITIES;
        let ((lines, tables), outputs) = outputs(tracer, program, "generated_quantities", numbers, blocks)?;
        let (text, lines) = joined(&lines);
        Ok(OfValues { text, lines, tables, taken, outputs })
    };
    stack::on_large_stack(4 * program.depth + 20_000, made).map_err(|problem| Box::new(told(&problem)))
}

/// What is left of [`translate`](super::translate)'s `parameters`, or of [`quantities`] where parameters are given
/// `by_value`, without the blocks after `last`: what a draw keeps for which these fail.
///
/// # Errors
/// As [`translate`](super::translate).
pub fn until(
    program: &Program,
    checked: &Checked,
    data: &StanData,
    (last, by_value): (u8, bool),
    host: &mut (dyn HostFunctions + Send),
) -> Result<OfValues, Box<Diagnostic>> {
    let made = || -> Traced<OfValues> {
        let mut tracer = Tracer::new(program, checked, host);
        let (function, numbers, taken, first) = if by_value {
            known(&mut tracer, program, data)?;
            let taken = tracer.take_parameters(stmts(&program.parameters))?;
            ("generated_quantities", taken.iter().map(|t| t.numbers).sum(), taken, TRANSFORMED)
        } else {
            ("parameters", prepare(&mut tracer, program, data)?.0, Vec::new(), PARAMETERS)
        };
        let ((lines, tables), outputs) = outputs(tracer, program, function, numbers, first..=last)?;
        let (text, lines) = joined(&lines);
        Ok(OfValues { text, lines, tables, taken, outputs })
    };
    stack::on_large_stack(4 * program.depth + 20_000, made).map_err(|problem| Box::new(told(&problem)))
}

fn inverse(
    program: &Program,
    checked: &Checked,
    data: &StanData,
    named: &dyn Fn(&str) -> bool,
    host: &mut (dyn HostFunctions + Send),
) -> Traced<OfValues> {
    let mut tracer = Tracer::new(program, checked, host);
    known(&mut tracer, program, data)?;
    let (taken, free) = tracer.free_parameters(stmts(&program.parameters), named)?;
    let (numbers, d) = (taken.iter().map(|t| t.numbers).sum::<usize>(), free.len());
    let free = [Val::from_elems(Kind::VECTOR, vec![d], free)];
    let (mut graph, mut lines) = (tracer.graph, tracer.routines.lines);
    simplified(&mut graph, &free, &[]);
    let mut emitter = Emitter::new(&graph, &free, &[], "");
    emitter.write();
    let result = emitter.result(&free[0]);
    let (body, tables) = emitter.into_parts();
    let tables = used(tables, &body, &result);
    lines.push(plain(format!("pub fn unconstrain(q: real[{numbers}]{}) -> real[{d}] {{", ports(&tables)), 0));
    lines.extend(body);
    lines.push(plain(result, 1));
    lines.push(plain("}", 0));
    let (text, lines) = joined(&lines);
    Ok(OfValues { text, lines, tables, taken, outputs: Vec::new() })
}
