//! The printed form of plans, for `dump --stage plan`. It is not read back.

use std::fmt;

use super::width::STATE_OF_UNIT;
use super::*;
use crate::base::Id;
use crate::run::Costs;

/// A plan does not say what reals are in a run: it is printed for `f64`.
const REAL_BYTES: usize = 8;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan {} entry {} shard {} lanes", self.name, self.entry, self.shard_lanes(REAL_BYTES))?;
        if f.alternate() {
            let TargetMachine { cache_bytes, least_lanes, least_code_lanes, most_lanes, .. } = self.body.machine;
            let (lane, worked) = (self.bytes_per_lane(REAL_BYTES), self.working_set(REAL_BYTES));
            let why = match self.chief_unit() {
                Some(unit) => format!("those of {unit}, which outweighs all other units, or of a tile of it"),
                None => format!("a part in {STATE_OF_UNIT}"),
            };
            writeln!(
                f,
                "# a lane takes {lane} bytes, of which {worked} are worked on at a time ({why}): a shard has as many lanes as then take {cache_bytes} bytes of cache, but {least_lanes} to {most_lanes}"
            )?;
            writeln!(
                f,
                "# where all that computes is generated code: {} lanes, as many as take {cache_bytes} bytes in all ({least_code_lanes} at least)",
                self.shard_lanes_of_code(REAL_BYTES)
            )?;
            writeln!(f, "costs: {} (nanoseconds; heavy: times the median unit)", Costs::default())?;
        }
        if !self.cached_tops {
            writeln!(f, "tops of stacks in memory")?;
        }
        for (what, ports) in [("input", &self.inputs), ("output", &self.outputs)] {
            for port in ports {
                writeln!(f, "{what} {}: {} in {}", port.name, port.ty, port.slot)?;
            }
        }
        write!(f, "{}", self.globals)?;
        print_body(f, &self.body, self.shard_lanes(REAL_BYTES))
    }
}

impl fmt::Display for CallPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "call plan entry {}", self.funcs[self.entry].name)?;
        write!(f, "{}", self.globals)?;
        for func in self.funcs.values() {
            let params: Vec<String> = func.params.iter().map(ToString::to_string).collect();
            let results: Vec<String> = func.results.iter().map(ToString::to_string).collect();
            writeln!(f, "\nfunc {}({}) -> ({})", func.name, params.join(", "), results.join(", "))?;
            print_body(f, &func.body, self.shard_lanes(REAL_BYTES))?;
        }
        Ok(())
    }
}

impl fmt::Display for Globals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, constant) in self.constants.iter() {
            match constant {
                Constant::Literal(s) => writeln!(f, "constant {id} = {s}")?,
                Constant::Shared(s) => {
                    let shared = &self.units.shared[*s];
                    writeln!(f, "constant {id} = shared {}: {}", shared.name, shared.ty)?;
                }
            }
        }
        for (id, tape) in self.units.tapes.iter() {
            writeln!(f, "tape {id} = {}: {}", tape.name, tape.ty)?;
        }
        Ok(())
    }
}

fn print_body<T: fmt::Display>(f: &mut fmt::Formatter<'_>, body: &Body<T>, lanes: usize) -> fmt::Result {
    for (id, var) in body.vars.iter() {
        let uniform = if var.uniform { " uniform" } else { "" };
        write!(f, "var {id} {}: {} {}{uniform}", var.name, var.ty, var.class)?;
        match var.slot {
            Some(slot) => writeln!(f, " in {slot}")?,
            None => writeln!(f)?,
        }
    }
    let pool = body.slots.values().filter(|s| s.role == Role::Pool).count();
    writeln!(f, "slots {} ({pool} in the pool), {} bytes a lane", body.slots.len(), body.bytes_per_lane(8))?;
    let heavy = cost::heavy_weight(&body.units, &Costs::default());
    for (id, unit) in body.units.iter() {
        print_unit(f, id, unit, heavy)?;
        for block in &unit.blocks {
            print_block(f, *block, &body.blocks[*block], (body.tile_rows(lanes), lanes))?;
        }
    }
    Ok(())
}

fn print_unit(f: &mut fmt::Formatter<'_>, id: UnitId, unit: &Unit, heavy: u64) -> fmt::Result {
    let kind = if unit.region { "region" } else { "block" };
    let heavy = if unit.cost.weight >= heavy { " heavy" } else { "" };
    write!(f, "\n{id}: {kind} weight {}{heavy}", unit.cost.weight)?;
    for stage in &unit.stages {
        let how = match (stage.gather, stage.scatter) {
            (true, false) => "reads",
            (false, _) => "writes",
            (true, true) => "changes",
        };
        write!(f, "; {how} {} as {}", stage.slot, stage.dense)?;
    }
    writeln!(f)
}

/// `tile`: rows of a tile, and the lanes of the shard.
fn print_block<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    id: BlockId,
    block: &Block<T>,
    tile: (usize, usize),
) -> fmt::Result {
    writeln!(f, "  {id}: # {}", block.loc)?;
    for step in &block.steps {
        match &step.kind {
            StepKind::Tiled(group) => print_tiled(f, group, tile)?,
            StepKind::Compute(c) if f.alternate() => writeln!(f, "    {step} # {}", c.kernel())?,
            _ => writeln!(f, "    {step}")?,
        }
    }
    writeln!(f, "    {}", block.term)
}

/// With the flag `#` it says why, too.
fn print_tiled(f: &mut fmt::Formatter<'_>, group: &Tiled, (tile, lanes): (usize, usize)) -> fmt::Result {
    writeln!(f, "    {group} in tiles of {tile}")?;
    if f.alternate() {
        let RowLoad { lane, shared } = group.load;
        let taken = (lane * lanes + shared) * tile;
        writeln!(
            f,
            "      # a row moves {lane} bytes a lane and {shared} shared bytes through the cache: {tile} rows in {lanes} lanes take {taken} bytes"
        )?;
        writeln!(f, "      # spares {} bytes a lane of values that live for a tile only", group.spared)?;
    }
    for (i, step) in group.steps.iter().enumerate() {
        let twin = i > 0 && step.twin_of(&group.steps[i - 1]);
        let with = if twin { ", with the step before" } else { "" };
        match f.alternate() {
            true => writeln!(f, "      {step} # {}{with}", step.compute.kernel())?,
            false => writeln!(f, "      {step}")?,
        }
    }
    Ok(())
}

impl fmt::Display for Tiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows", self.rows)
    }
}

impl fmt::Display for TiledStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.compute;
        let what = match self.result {
            TileResult::Tile => "",
            TileResult::Rows => "rows of ",
            TileResult::Total => "total ",
        };
        write!(f, "{}{what}{} = {}", how(c.write), c.slot, c.prim)?;
        for (i, (arg, part)) in c.args.iter().zip(&self.parts).enumerate() {
            let part = match part {
                Part::Whole | Part::Tile => "",
                Part::Rows => "[rows]",
                Part::Columns => "[columns]",
                Part::Transposed => "[rows]'",
            };
            write!(f, "{}{arg}{part}", if i == 0 { " " } else { ", " })?;
        }
        match c.scratch {
            Some(scratch) => write!(f, " via {scratch}"),
            None => Ok(()),
        }
    }
}

fn how(write: Write) -> String {
    match write {
        Write::Temporary => String::new(),
        Write::State => "set ".into(),
        Write::Push(k) => format!("push {} ", k.index()),
    }
}

struct List<'a>(&'a [Arg]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, arg) in self.0.iter().enumerate() {
            write!(f, "{}{arg}", if i == 0 { " " } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            Source::Slot(s) => write!(f, "{s}"),
            Source::Constant(c) => write!(f, "{c}"),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{}", self.texts.join("{}"), List(&self.args))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            StepKind::Compute(c) => {
                write!(f, "{}{} = {}{}", how(c.write), c.slot, c.prim, List(&c.args))?;
                if c.in_place {
                    f.write_str(" in place")?;
                }
                if let Some(scratch) = c.scratch {
                    write!(f, " via {scratch}")?;
                }
                Ok(())
            }
            StepKind::Tiled(group) => write!(f, "{group}"),
            StepKind::Pop { stack, slot } => write!(f, "pop {} {slot}", stack.index()),
            StepKind::Effect(effect) => match effect {
                SideEffect::Assert { cond, message } => write!(f, "assert {cond} {message}"),
                SideEffect::Print(message) => write!(f, "print {message}"),
                SideEffect::Emit { stream, args } => write!(f, "emit {stream}{}", List(args)),
                SideEffect::TapePush { tape, value } => write!(f, "tape_push {tape} {value}"),
                SideEffect::TapePop { dst, tape } => write!(f, "tape_pop {dst} = {tape}"),
            },
        }
    }
}

impl fmt::Display for Terminator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Terminator::Jump(b) => write!(f, "jump {b}"),
            Terminator::Branch(c, a, b) => write!(f, "branch {c}, {a}, {b}"),
            Terminator::PushJump { target, ret, attempt, .. } => {
                let word = if attempt.is_some() { "attempt" } else { "pushjump" };
                write!(f, "{word} {target} {ret}")
            }
            Terminator::Return => f.write_str("return"),
            Terminator::Halt => f.write_str("halt"),
        }
    }
}

impl fmt::Display for CallTerminator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallTerminator::Jump(b) => write!(f, "jump {b}"),
            CallTerminator::Branch(c, a, b) => write!(f, "branch {c}, {a}, {b}"),
            CallTerminator::Call { func, args, dsts, next, attempt, .. } => {
                let dsts: Vec<String> = dsts.iter().map(ToString::to_string).collect();
                let word = if *attempt { "attempt" } else { "call" };
                write!(f, "{} = {word} {func}{} then {next}", dsts.join(", "), List(args))
            }
            CallTerminator::TailCall { func, args, .. } => write!(f, "tailcall {func}{}", List(args)),
            CallTerminator::Return(args, _) => write!(f, "return{}", List(args)),
        }
    }
}
