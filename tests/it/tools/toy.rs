//! A toy executor of units: a plain loop over lanes, units and operations, with host arrays for all that a lane has. It
//! knows nothing of plans, kernels, masks or schedules, so that a program which it runs as the others do is told whole
//! by its units. Statistics, `--check nan` and the limits of memory are not its business.

use std::sync::Arc;

use autobatch::backend::cpu::MACHINE;
use autobatch::backend::{Backend, BackendError, Executable, How, Units};
use autobatch::base::{Id as _, Loc};
use autobatch::parts::{Operand, render};
use autobatch::plan::TargetMachine;
use autobatch::prim::Prim;
use autobatch::run::{Access, AllCaught, Outcome, RunInputs, Settings, Sink, Trap, TrapKind};
use autobatch::types::{Array, ArrayData, Scalar, Type};
use autobatch::unit::{self, Attempt, Block, BlockId, OpKind, Operand as Read, SideEffect, Terminator};
use autobatch::vmath::{Real, philox};
use autobatch::{interp, types::Precision};

/// The toy as a back end. It runs the units of stack programs.
#[derive(Debug)]
pub(crate) struct Toy;

impl Backend for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }
    fn machine(&self) -> TargetMachine {
        MACHINE
    }
    fn compile(&self, program: Units, _: &How) -> Result<Arc<dyn Executable>, BackendError> {
        match program {
            Units::Machine(units, _) => Ok(Arc::new(Program(units))),
            Units::Calls(..) => Err(BackendError::Unsupported("the toy runs the engine `pc` only".to_owned())),
        }
    }
}

#[derive(Debug)]
struct Program(Arc<unit::Program>);

impl Executable for Program {
    fn run(&self, inputs: &RunInputs, settings: &Settings, sink: &dyn Sink) -> Result<Outcome, BackendError> {
        Ok(run(&self.0, inputs, settings, sink))
    }
}

/// Runs every lane to its end, one after the other.
fn run(program: &unit::Program, inputs: &RunInputs, settings: &Settings, sink: &dyn Sink) -> Outcome {
    let vars = &program.body.vars;
    let rows = |ty: &Type| Array::zeros(&Type::new(ty.dtype, [inputs.lanes.len()].into_iter().chain(ty.shape.clone())));
    let outputs = program.outputs.iter().map(|port| rows(&vars[port.var].ty)).collect();
    let mut outcome = Outcome::default();
    outcome.outputs = outputs;
    let mut caught = AllCaught::default();
    for (position, number) in inputs.lanes.iter().enumerate() {
        let mut lane = Lane {
            program,
            inputs,
            settings,
            sink,
            position,
            number: *number,
            draws: 0,
            steps: 0,
            vars: vars.values().map(|v| Array::zeros(&v.ty)).collect(),
            stacks: vec![Vec::new(); vars.len()],
            tapes: vec![Vec::new(); program.globals.tapes.len()],
            returns: Vec::new(),
            handlers: Vec::new(),
        };
        for (port, given) in program.inputs.iter().zip(&inputs.values) {
            lane.vars[port.var.index()] = rounded(row(given, position, &vars[port.var].ty), settings.get_precision());
        }
        match lane.run(&mut caught) {
            None => {
                for (output, port) in outcome.outputs.iter_mut().zip(&program.outputs) {
                    set_row(output, position, &lane.vars[port.var.index()]);
                }
            }
            Some(trap) => outcome.traps.push(trap),
        }
    }
    outcome.caught = caught.into_vec();
    outcome
}

/// Why an operation traps, and what says its message at a place.
type Fault = (TrapKind, Box<dyn Fn(&Loc) -> String>);

/// Why a lane stops.
type Stop = (TrapKind, Loc, String);

struct Lane<'a> {
    program: &'a unit::Program,
    inputs: &'a RunInputs,
    settings: &'a Settings,
    sink: &'a dyn Sink,
    position: usize,
    number: u64,
    draws: u64,
    steps: u64,
    /// Registers, tops of stacks, and what crosses the blocks of a region.
    vars: Vec<Array>,
    stacks: Vec<Vec<Array>>,
    tapes: Vec<Vec<Array>>,
    returns: Vec<BlockId>,
    handlers: Vec<Handler<'a>>,
}

/// An attempt that is active: how many calls there are with it, and how high all was.
struct Handler<'a> {
    calls: usize,
    attempt: &'a Attempt,
    stacks: Vec<usize>,
    tapes: Vec<usize>,
}

impl<'a> Lane<'a> {
    /// The trap of the lane, or none where it comes to its end.
    fn run(&mut self, caught: &mut AllCaught) -> Option<Trap> {
        let mut at = self.program.entry;
        loop {
            match self.block(&self.program.body.blocks[at]) {
                Ok(Some(next)) => at = next,
                Ok(None) => return None,
                Err((kind, loc, message)) => {
                    let mut trap = Trap::new(self.position, kind, loc);
                    (trap.call_depth, trap.message) = (self.returns.len(), message);
                    if !kind.is_caught() || self.handlers.is_empty() {
                        return Some(trap);
                    }
                    self.sink.caught(&trap);
                    caught.note(trap);
                    at = self.unwind();
                }
            }
        }
    }

    /// Back to the last attempt.
    fn unwind(&mut self) -> BlockId {
        let handler = self.handlers.pop().expect("there is one");
        self.returns.truncate(handler.calls);
        for (stack, height) in handler.attempt.stacks.iter().zip(handler.stacks) {
            self.stacks[stack.index()].truncate(height);
        }
        for (tape, height) in handler.attempt.tapes.iter().zip(handler.tapes) {
            self.tapes[tape.index()].truncate(height);
        }
        for result in &handler.attempt.results {
            let mut spoilt = Array::zeros(&self.program.body.vars[*result].ty);
            if let ArrayData::Real(values) = &mut spoilt.data {
                values.fill(f64::NAN);
            }
            self.vars[result.index()] = spoilt;
        }
        self.returns.pop().expect("an attempt has called")
    }

    /// Runs a block; where it goes, or nowhere.
    fn block(&mut self, block: &'a Block<Terminator>) -> Result<Option<BlockId>, Stop> {
        if self.settings.get_max_supersteps() > 0 && self.steps >= self.settings.get_max_supersteps() {
            return Err((TrapKind::StepLimit, block.loc.clone(), String::new()));
        }
        self.steps += 1;
        let mut values: Vec<Array> = Vec::with_capacity(block.values.len());
        for op in &block.ops {
            let made = self.op(block, &op.kind, &values);
            values.extend(made.map_err(|(kind, message)| (kind, op.loc.clone(), message(&op.loc)))?);
        }
        Ok(Some(match &block.term {
            Terminator::Jump(to) => *to,
            Terminator::Branch(cond, yes, no) => match self.read(cond, &values).get(0) {
                Scalar::Bool(true) => *yes,
                _ => *no,
            },
            Terminator::PushJump { target, ret, loc, attempt } => {
                if self.returns.len() >= self.settings.get_max_stack_depth() {
                    return Err((TrapKind::StackLimit, loc.clone(), String::new()));
                }
                self.returns.push(*ret);
                self.handlers.extend(attempt.as_ref().map(|attempt| Handler {
                    calls: self.returns.len(),
                    attempt,
                    stacks: attempt.stacks.iter().map(|s| self.stacks[s.index()].len()).collect(),
                    tapes: attempt.tapes.iter().map(|t| self.tapes[t.index()].len()).collect(),
                }));
                *target
            }
            Terminator::Return => {
                self.handlers.pop_if(|h| h.calls == self.returns.len());
                return Ok(self.returns.pop());
            }
            Terminator::Halt => return Ok(None),
        }))
    }

    fn read(&self, operand: &Read, values: &[Array]) -> Array {
        match operand {
            Operand::Var(v) => values[v.index()].clone(),
            Operand::Shared(s) => self.inputs.shared[s.index()].clone(),
            Operand::Const(c) => rounded(Array::scalar(*c), self.settings.get_precision()),
        }
    }

    fn reads(&self, operands: &[Read], values: &[Array]) -> Vec<Array> {
        operands.iter().map(|o| self.read(o, values)).collect()
    }

    /// Runs an operation: what it computes, or the trap, with what says its message at a place.
    fn op(&mut self, block: &Block<Terminator>, op: &OpKind, values: &[Array]) -> Result<Option<Array>, Fault> {
        match op {
            OpKind::Load { var, .. } => return Ok(Some(self.vars[var.index()].clone())),
            OpKind::Compute { dst, prim, .. } if prim.is_draw() => {
                return Ok(Some(self.draw(*prim, &block.values[*dst].ty)));
            }
            OpKind::Compute { dst, prim, args } => {
                let args = self.reads(args, values);
                let ty = &block.values[*dst].ty;
                let made = interp::apply(*prim, &args, ty, self.settings.get_precision());
                return made.map(Some).map_err(|kind| match kind {
                    TrapKind::IndexOutOfRange => {
                        let (prim, ty) = (*prim, ty.clone());
                        (kind, Box::new(move |loc: &Loc| out_of_range(prim, &args, &ty, loc)) as Box<_>)
                    }
                    kind => silent(kind),
                });
            }
            OpKind::Store { var, value } => self.vars[var.index()] = self.read(value, values),
            OpKind::Push { stack, value } => {
                let value = self.read(value, values);
                self.stacks[stack.index()].push(value);
            }
            OpKind::Pop { stack, .. } => return Ok(Some(self.stacks[stack.index()].pop().expect("it was pushed"))),
            OpKind::Effect(effect) => return self.effect(effect, values),
        }
        Ok(None)
    }

    fn effect(&mut self, effect: &SideEffect, values: &[Array]) -> Result<Option<Array>, Fault> {
        match effect {
            SideEffect::Assert { cond, message } => {
                if self.read(cond, values).get(0) != Scalar::Bool(true) {
                    let (texts, args) = (message.texts.clone(), self.reads(&message.args, values));
                    let text = render(&texts, args, self.settings.get_precision());
                    return Err((TrapKind::AssertFailed, Box::new(move |_| text.clone())));
                }
            }
            SideEffect::Print(message) => {
                let args = self.reads(&message.args, values);
                self.sink.print(self.position, render(&message.texts, args, self.settings.get_precision()));
            }
            SideEffect::Emit { stream, args } => {
                let record = self.reads(args, values);
                let kept = self.sink.emit(self.position, *stream, &record);
                kept.map_err(|_| silent(TrapKind::MemoryLimit))?;
            }
            SideEffect::TapePush { tape, value } => {
                if self.tapes[tape.index()].len() >= self.settings.get_max_tape_depth() {
                    return Err(silent(TrapKind::TapeLimit));
                }
                let value = self.read(value, values);
                self.tapes[tape.index()].push(value);
            }
            SideEffect::TapePop { tape, .. } => {
                let value = self.tapes[tape.index()].pop();
                return value.map(Some).ok_or_else(|| silent(TrapKind::EmptyTape));
            }
        }
        Ok(None)
    }

    fn draw(&mut self, prim: Prim, ty: &Type) -> Array {
        if prim == Prim::RandomPosition {
            return Array::int([], vec![self.draws as i64]);
        }
        let n = ty.elements();
        let (lanes, draws) = (vec![self.number; n], (self.draws..).take(n).collect::<Vec<u64>>());
        self.draws += n as u64;
        let seed = self.settings.get_seed();
        fn drawn<R: Real>(prim: Prim, seed: u64, lanes: &[u64], draws: &[u64]) -> Vec<f64> {
            let mut out = vec![R::ZERO; lanes.len()];
            match prim {
                Prim::RandomUniform => philox::uniform_slice(seed, lanes, draws, &mut out),
                _ => philox::normal_slice(seed, lanes, draws, &mut out),
            }
            out.into_iter().map(Real::to_f64).collect()
        }
        let drawn = match self.settings.get_precision() {
            Precision::F32 => drawn::<f32>(prim, seed, &lanes, &draws),
            Precision::F64 => drawn::<f64>(prim, seed, &lanes, &draws),
        };
        Array::real(ty.shape.clone(), drawn)
    }
}

/// A trap without a message.
fn silent(kind: TrapKind) -> Fault {
    (kind, Box::new(|_| String::new()))
}

fn out_of_range(prim: Prim, args: &[Array], ty: &Type, loc: &Loc) -> String {
    let Some(first) = Access::first_index(prim) else { return String::new() };
    let indices = &args[first..];
    let places = indices.iter().map(|i| &i.shape).find(|shape| !shape.is_empty());
    let entries = match prim {
        Prim::Slice => Some(ty.shape[0]),
        Prim::SetSlice => Some(args[1].shape[0]),
        _ => None,
    };
    let index = |axis: usize, place: usize| match &indices[axis].data {
        ArrayData::Int(v) => v[if v.len() == 1 { 0 } else { place }],
        _ => 0,
    };
    let places = places.map_or(1, |shape| shape.iter().product());
    Access { shape: &args[0].shape, axes: indices.len(), places, entries, index: &index }.message(loc)
}

/// As a run of this precision has it.
fn rounded(mut array: Array, precision: Precision) -> Array {
    if let (ArrayData::Real(values), Precision::F32) = (&mut array.data, precision) {
        values.iter_mut().for_each(|x| *x = f64::from(*x as f32));
    }
    array
}

/// One lane of an array with the lanes along its leading axis.
fn row(array: &Array, position: usize, ty: &Type) -> Array {
    let n = ty.elements();
    let range = position * n..(position + 1) * n;
    let data = match &array.data {
        ArrayData::Bool(v) => ArrayData::Bool(v[range].to_vec()),
        ArrayData::Int(v) => ArrayData::Int(v[range].to_vec()),
        ArrayData::Real(v) => ArrayData::Real(v[range].to_vec()),
    };
    Array::new(ty.shape.clone(), data)
}

fn set_row(array: &mut Array, position: usize, value: &Array) {
    let n = value.len();
    let range = position * n..(position + 1) * n;
    match (&mut array.data, &value.data) {
        (ArrayData::Bool(into), ArrayData::Bool(from)) => into[range].copy_from_slice(from),
        (ArrayData::Int(into), ArrayData::Int(from)) => into[range].copy_from_slice(from),
        (ArrayData::Real(into), ArrayData::Real(from)) => into[range].copy_from_slice(from),
        _ => unreachable!("an output has the type of its variable"),
    }
}
