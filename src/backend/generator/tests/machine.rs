//! A machine of one lane: it calls the function of the unit at which the lane stands until the lane is done.

use std::ffi::c_void;
use std::ptr;

use super::one_lane::{DONE, OneLane, PRELUDE, TRAPPED};
use crate::backend::cpu::codegen::compiler::{Compiler, CompilerOptions, Target};
use crate::backend::generator::{BlockPart, Segment, Storage, parts};
use crate::base::{Id as _, IdVec};
use crate::plan::{Constant, Plan, Port};
use crate::run::{Outcome, RunInputs, Settings, Trap};
use crate::types::{Array, ArrayData, Type};
use crate::unit::{self, UnitId};

#[repr(C)]
struct Stack {
    memory: *mut c_void,
    height: i64,
}

/// `struct lane` of the text.
#[repr(C)]
struct Lane {
    slots: *const *mut c_void,
    constants: *const *const c_void,
    stacks: *mut Stack,
    seed: u64,
    number: i64,
    draws: i64,
    returns: *mut i64,
    depth: i64,
    deepest: i64,
    site: i64,
}

type UnitFunction = unsafe extern "C" fn(*mut Lane) -> i64;

/// A program all of whose blocks are functions for one lane.
pub(super) struct Machine<'a> {
    plan: &'a Plan,
    text: String,
    units: IdVec<UnitId, Segment>,
}

impl<'a> Machine<'a> {
    pub(super) fn new(units: &unit::Program, plan: &'a Plan) -> Self {
        let mut text = PRELUDE.to_owned();
        let storage = Storage::of(&plan.body, &plan.globals);
        let parts = parts(&OneLane, (&units.body, &storage), |_| false, "unit_", &mut text);
        let whole = |unit: &unit::Unit| match &parts[unit.blocks[0]][..] {
            [BlockPart::Native(segment)] if segment.routes => segment.clone(),
            other => panic!("{} is not one function: {other:?}\n{units}", unit.blocks[0]),
        };
        let units = units.body.units.values().map(whole).collect();
        Self { plan, text, units }
    }

    /// Runs all lanes, one after the other.
    pub(super) fn run(&self, compiler: &Compiler, inputs: &RunInputs, settings: &Settings) -> Outcome {
        let options = CompilerOptions { real_f32: false, target: Target::Scalar };
        let library = compiler.load(&self.text, &options).unwrap_or_else(|e| panic!("{e}\n{}", self.text));
        // SAFETY: the text defines functions of these names and this type, and the library outlives them.
        let function = |s: &Segment| unsafe { library.symbol::<UnitFunction>(&s.name) }.expect("the text defines it");
        let functions: IdVec<UnitId, UnitFunction> = self.units.values().map(function).collect();
        let lanes = inputs.lanes.len();
        let empty = |port: &Port| {
            let shape: Vec<usize> = [lanes].into_iter().chain(port.ty.shape.iter().copied()).collect();
            Array::zeros(&Type::new(port.ty.dtype, shape))
        };
        let mut outcome = Outcome { outputs: self.plan.outputs.iter().map(empty).collect(), ..Outcome::default() };
        let constants: Vec<Vec<u64>> = self.plan.globals.constants.values().map(|c| constant(*c, inputs)).collect();
        for position in 0..lanes {
            match self.lane(&functions, position, (inputs, &constants), settings) {
                Ok(slots) => {
                    for (output, port) in outcome.outputs.iter_mut().zip(&self.plan.outputs) {
                        set_row(output, position, &slots[port.slot.index()], port.ty.elements());
                    }
                }
                Err(trap) => outcome.traps.push(trap),
            }
        }
        outcome
    }

    /// Runs a lane; its slots, or its trap.
    fn lane(
        &self,
        functions: &IdVec<UnitId, UnitFunction>,
        position: usize,
        (inputs, constants): (&RunInputs, &[Vec<u64>]),
        settings: &Settings,
    ) -> Result<Vec<Vec<u64>>, Trap> {
        let body = &self.plan.body;
        let mut slots: Vec<Vec<u64>> = body.slots.values().map(|s| vec![0; s.elements.max(1)]).collect();
        for (port, values) in self.plan.inputs.iter().zip(&inputs.values) {
            slots[port.slot.index()] = words(values, position * port.ty.elements(), port.ty.elements());
        }
        let addresses: Vec<*mut c_void> = slots.iter_mut().map(|s| s.as_mut_ptr().cast()).collect();
        let constants: Vec<*const c_void> = constants.iter().map(|c| c.as_ptr().cast()).collect();
        let mut memory: Vec<Vec<u64>> = vec![Vec::new(); body.stacks.len()];
        let mut stacks: Vec<Stack> = memory.iter().map(|_| Stack { memory: ptr::null_mut(), height: 0 }).collect();
        let mut returns = vec![0; settings.max_stack_depth];
        let mut lane = Lane {
            slots: addresses.as_ptr(),
            constants: constants.as_ptr(),
            stacks: stacks.as_mut_ptr(),
            seed: settings.seed,
            number: inputs.lanes[position] as i64,
            draws: 0,
            returns: returns.as_mut_ptr(),
            depth: 0,
            deepest: returns.len() as i64,
            site: 0,
        };
        let mut at = UnitId::new(body.blocks[self.plan.entry].unit.index());
        loop {
            let segment = &self.units[at];
            for (stack, pushes) in &segment.stacks {
                let elements = body.vars[body.stacks[*stack]].ty.elements();
                // SAFETY: the array of stacks has one for each of the plan, and nothing else refers to it now.
                let raw = unsafe { &mut *lane.stacks.add(stack.index()) };
                let needed = (raw.height as usize + pushes) * elements;
                let memory = &mut memory[stack.index()];
                if memory.len() < needed {
                    memory.resize(needed.next_power_of_two(), 0);
                }
                raw.memory = memory.as_mut_ptr().cast();
            }
            // SAFETY: the function was generated from this plan. It reads and writes elements of its slots, constants and
            // stacks, which all have as many words of eight bytes as the plan says, with room for what it pushes, and no
            // more return addresses than `deepest`.
            let next = unsafe { functions[at](&raw mut lane) };
            match next {
                DONE => return Ok(slots),
                TRAPPED => {
                    let site = &segment.sites[lane.site as usize];
                    let (loc, call_depth) = (site.loc.clone(), lane.depth as usize);
                    return Err(Trap { position, kind: site.kind, loc, call_depth, message: site.text.clone() });
                }
                unit => at = UnitId::new(unit as usize),
            }
        }
    }
}

fn constant(constant: Constant, inputs: &RunInputs) -> Vec<u64> {
    match constant {
        Constant::Shared(shared) => {
            let array = &inputs.shared[shared.index()];
            words(array, 0, array.len())
        }
        // It stands in the text.
        Constant::Literal(_) => Vec::new(),
    }
}

/// Elements of an array as they stand in memory. An array of one row is that of every lane.
fn words(array: &Array, first: usize, n: usize) -> Vec<u64> {
    let range = if array.len() < first + n { 0..n } else { first..first + n };
    match &array.data {
        ArrayData::Int(v) => v[range].iter().map(|i| *i as u64).collect(),
        ArrayData::Real(v) => v[range].iter().map(|x| x.to_bits()).collect(),
        ArrayData::Bool(v) => {
            let mut bytes: Vec<u8> = v[range].iter().map(|b| u8::from(*b)).collect();
            bytes.resize(bytes.len().next_multiple_of(8).max(8), 0);
            bytes.chunks(8).map(|c| u64::from_ne_bytes(c.try_into().expect("eight bytes"))).collect()
        }
    }
}

fn set_row(array: &mut Array, position: usize, words: &[u64], n: usize) {
    let at = position * n;
    for e in 0..n {
        match &mut array.data {
            ArrayData::Int(v) => v[at + e] = words[e] as i64,
            ArrayData::Real(v) => v[at + e] = f64::from_bits(words[e]),
            ArrayData::Bool(v) => v[at + e] = words[e / 8].to_ne_bytes()[e % 8] != 0,
        }
    }
}
