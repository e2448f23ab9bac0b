//! Storage classes: which variables of a stack program need a stack, which a register, and which no storage at all
//! between supersteps.

use crate::analysis::stack_liveness::Liveness;
use crate::base::IdSet;
use crate::stack::{InstKind, Program, StorageClass, VarId, Write};

/// Which of the classes below [`StorageClass::Stack`] may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StorageClasses {
    /// Whether what never lives across the edge of a block has no storage. Uniform variables, the counters of regions,
    /// have none in any case.
    pub temporaries: bool,
    /// Whether what no call saves is in a register.
    pub registers: bool,
}

impl StorageClasses {
    /// All classes.
    pub const LEAST: StorageClasses = StorageClasses { temporaries: true, registers: true };
}

/// Gives every variable the least class that will do, of those that may be used.
pub fn assign_of(program: &mut Program, classes: StorageClasses) {
    assign(program);
    for var in program.vars.values_mut().filter(|v| !v.uniform) {
        let more = match var.class {
            StorageClass::Temporary if !classes.temporaries => StorageClass::Register,
            class => class,
        };
        let more = if more == StorageClass::Register && !classes.registers { StorageClass::Stack } else { more };
        if more != var.class {
            let need = if var.class == StorageClass::Temporary { "a temporary" } else { "a register" };
            (var.class, var.why) = (more, format!("could be {need}, which is switched off"));
        }
    }
    let mut stacks = IdSet::new(program.vars.len());
    let of_class = program.vars.iter().filter(|(_, var)| var.class == StorageClass::Stack);
    of_class.for_each(|(id, _)| _ = stacks.insert(id));
    write_to(program, &stacks);
}

/// Gives every variable the least class that will do and says why. Variables that are pushed or popped are stacks, others
/// that are live where a superstep starts are registers. Reasons that are there already stay as long as the class does.
pub fn assign(program: &mut Program) {
    let stacks = pushed(program);
    let crossing = live_between_supersteps(program);
    for (id, var) in program.vars.iter_mut() {
        let (class, why) = if stacks.contains(id) {
            (StorageClass::Stack, "is pushed")
        } else if crossing.contains(id) {
            (StorageClass::Register, "crosses block edges, but no call that it lives across may write it")
        } else {
            (StorageClass::Temporary, "never lives across a block edge")
        };
        if class != var.class || var.why.is_empty() {
            var.class = class;
            var.why = why.to_owned();
        }
        var.uniform &= class == StorageClass::Temporary;
    }
    write_to(program, &stacks);
}

/// What is no push sets a variable, or the top of one of these.
fn write_to(program: &mut Program, stacks: &IdSet<VarId>) {
    for block in program.blocks.values_mut() {
        for inst in &mut block.insts {
            if let InstKind::Compute { write, dst, .. } = &mut inst.kind
                && *write != Write::Push
            {
                *write = if stacks.contains(*dst) { Write::Update } else { Write::Set };
            }
        }
    }
}

fn pushed(program: &Program) -> IdSet<VarId> {
    let mut stacks = IdSet::new(program.vars.len());
    for inst in program.blocks.values().flat_map(|b| &b.insts) {
        if let Some((v, _)) = inst.kind.moved() {
            stacks.insert(v);
        }
    }
    stacks
}

/// The variables that are live where a superstep starts, and the inputs and outputs.
fn live_between_supersteps(program: &Program) -> IdSet<VarId> {
    let liveness = Liveness::of(program);
    let mut inside = IdSet::new(program.blocks.len());
    for region in &program.regions {
        for block in region.blocks.iter().skip(1) {
            inside.insert(*block);
        }
    }
    let mut crossing = IdSet::new(program.vars.len());
    for block in program.blocks.ids().filter(|b| !inside.contains(*b)) {
        crossing.union_with(liveness.live_in(block));
    }
    for port in program.inputs.iter().chain(&program.outputs) {
        crossing.insert(port.var);
    }
    crossing
}
