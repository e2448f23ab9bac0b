//! Runs the lanes.

use std::time::Instant;

use smallvec::SmallVec;

use super::arrays;
use super::code::{Code, Op, Source, Term};
use super::scalars;
use super::value::{Data, Elem, Value};
use crate::base::{Id, IdVec, Loc};
use crate::cfg::{BlockId, FuncId, InstKind, Operand, Program};
use crate::parts::{Message, SideEffect, TapeId, render};
use crate::prim::{Prim, TABLE};
use crate::run::{
    Access, AllCaught, BlockStats, NoMemory, Outcome, Reservation, RunInputs, Settings, Sink, Stats, Trap, TrapKind,
};
use crate::types::{Array, ArrayData, Scalar, Shape, Type};
use crate::vmath::{Real, philox};

/// Blocks between two looks at the stop flag.
const BLOCKS_PER_POLL: u64 = 1024;

pub(super) fn run<R: Real>(program: &Program, inputs: &RunInputs, settings: &Settings, sink: &dyn Sink) -> Outcome {
    let start = Instant::now();
    let code = Code::<R>::new(program, inputs);
    let lanes = inputs.lanes.len();
    let entry = &program.funcs[program.entry];
    let mut outcome =
        Outcome { outputs: entry.results.iter().map(|ty| rows_of(ty, lanes)).collect(), ..Outcome::default() };
    let mut counts =
        Counts { blocks: vec![0; code.funcs.iter().map(|f| f.blocks.len()).sum()], skipped: vec![0; TABLE.len()] };
    let mut total = 0;
    for (position, number) in inputs.lanes.iter().enumerate() {
        let args = entry.params.iter().zip(&inputs.values).map(|(p, array)| {
            let ty = &entry.vars[*p].ty;
            Value::from_array(array, position * ty.elements(), ty)
        });
        let mut lane = Lane {
            code: &code,
            settings,
            sink,
            position,
            number: *number,
            draws: inputs.drawn_by(position),
            blocks: 0,
            frames: vec![],
            values: vec![],
            tapes: IdVec::filled(vec![], program.tapes.len()),
            memory: Held { reserved: Reservation::of(&settings.memory), used: 0 },
            handlers: vec![],
            caught: AllCaught::default(),
        };
        match lane.run(program, args.collect(), &mut counts) {
            Ok(results) => {
                for (output, result) in outcome.outputs.iter_mut().zip(&results) {
                    store_row(output, position, result);
                }
            }
            Err(stop) => {
                counts.skip_after(program, &lane, stop.op);
                let trap = lane.trap(program, stop);
                sink.trapped(&trap);
                outcome.traps.push(trap);
            }
        }
        total += lane.blocks;
        outcome.caught.extend(lane.caught.into_vec());
    }
    if settings.stats {
        outcome.stats = counts.stats(program);
    }
    outcome.stats.supersteps = total;
    outcome.stats.seconds = start.elapsed().as_secs_f64();
    outcome
}

/// Zeros for all lanes.
fn rows_of(ty: &Type, lanes: usize) -> Array {
    let extents = std::iter::once(lanes).chain(ty.shape.iter().copied());
    Array::zeros(&Type::new(ty.dtype, extents))
}

fn store_row<R: Real>(output: &mut Array, position: usize, value: &Value<R>) {
    let row: usize = output.shape[1..].iter().product();
    for i in 0..row {
        let at = position * row + i;
        match (&mut output.data, value.elem(i).to_scalar()) {
            (ArrayData::Bool(v), Scalar::Bool(x)) => v[at] = x,
            (ArrayData::Int(v), Scalar::Int(x)) => v[at] = x,
            (ArrayData::Real(v), Scalar::Real(x)) => v[at] = x,
            _ => unreachable!("results have the types of the entry"),
        }
    }
}

/// Why a lane stopped early.
struct Stop {
    kind: TrapKind,
    message: String,
    /// The instruction that trapped, none at the end or the start of the block.
    op: At,
}

/// Where in a block.
#[derive(Clone, Copy)]
enum At {
    Start,
    Op(usize),
    Term,
}

/// An activation of a function.
struct Frame {
    func: u32,
    /// The block that runs, or that made the call.
    block: u32,
    /// Where its variables start.
    base: usize,
    /// Memory of the arrays of the callers that it and those it has taken the place of wait for.
    arrays: usize,
}

struct Lane<'a, R> {
    code: &'a Code<R>,
    settings: &'a Settings,
    sink: &'a dyn Sink,
    position: usize,
    number: u64,
    draws: u64,
    blocks: u64,
    frames: Vec<Frame>,
    values: Vec<Value<R>>,
    tapes: IdVec<TapeId, Vec<Value<R>>>,
    memory: Held,
    /// The attempts that are active.
    handlers: Vec<Handler>,
    caught: AllCaught,
}

/// How to come back to a call that is an attempt.
struct Handler {
    /// How many activations there were.
    frames: usize,
    /// How many values there were on each tape.
    tapes: SmallVec<[usize; 4]>,
}

/// What the activations and the tapes of a lane hold of the memory of the run.
struct Held {
    reserved: Reservation,
    used: usize,
}

impl Held {
    /// Taken at one time, so that a call is an addition.
    const PIECE: usize = 1 << 16;

    #[inline]
    fn take(&mut self, bytes: usize) -> Result<(), TrapKind> {
        let used = self.used.saturating_add(bytes);
        if used > self.reserved.bytes() {
            self.reserve(used).map_err(|_| TrapKind::MemoryLimit)?;
        }
        self.used = used;
        Ok(())
    }
    #[cold]
    fn reserve(&mut self, used: usize) -> Result<(), NoMemory> {
        self.reserved.resize(used.saturating_add(Self::PIECE)).or_else(|_| self.reserved.resize(used))
    }
    #[inline]
    fn give_back(&mut self, bytes: usize) {
        self.used -= bytes;
    }
}

/// The results of the entry, or operands of a call on their way.
type Values<R> = SmallVec<[Value<R>; 4]>;

impl<'a, R: Real> Lane<'a, R> {
    fn run(&mut self, program: &Program, args: Values<R>, counts: &mut Counts) -> Result<Values<R>, Stop> {
        let taken = self.take(program.entry.0, 0);
        self.enter(program.entry.0, args, 0);
        taken.map_err(|kind| stop(kind, At::Start))?;
        loop {
            match self.go_on(&mut counts.blocks) {
                Err(stop) if stop.kind.is_caught() && !self.handlers.is_empty() => {
                    counts.skip_after(program, self, stop.op);
                    let trap = self.trap(program, stop);
                    self.sink.caught(&trap);
                    self.caught.note(trap);
                    self.unwind(program);
                }
                done => return done,
            }
        }
    }

    /// Back to the last attempt, which gives NaN, 0 or `false`.
    fn unwind(&mut self, program: &Program) {
        let frames = self.handlers.last().expect("an attempt is active").frames;
        while self.frames.len() > frames {
            let _ = self.leave();
        }
        let handler = self.handlers.last().expect("an attempt is active");
        for (values, height) in self.tapes.values_mut().zip(&handler.tapes) {
            let gone = values.drain((*height).min(values.len())..);
            gone.for_each(|value| self.memory.give_back(value.bytes()));
        }
        let frame = self.frames.last().expect("there is a caller");
        let func = &program.funcs[FuncId(frame.func)];
        let dsts = func.blocks[BlockId(frame.block)].term.dsts();
        let results = dsts.iter().map(|dst| {
            let ty = &func.vars[*dst].ty;
            let mut array = Array::zeros(ty);
            if let ArrayData::Real(values) = &mut array.data {
                values.fill(f64::NAN);
            }
            Value::from_array(&array, 0, ty)
        });
        self.resume(results.collect());
    }

    /// Until the entry returns, or something stops the lane.
    fn go_on(&mut self, counts: &mut [u64]) -> Result<Values<R>, Stop> {
        loop {
            let frame = self.frames.last().expect("the entry's frame stays");
            let base = frame.base;
            let code = self.code;
            let running = &code.funcs[frame.func as usize];
            let block = &running.blocks[frame.block as usize];
            self.start_block().map_err(|kind| stop(kind, At::Start))?;
            counts[block.number] += 1;
            for (i, op) in block.ops.iter().enumerate() {
                if let Err(kind) = self.step(op, base) {
                    let mut stop = stop(kind, At::Op(i));
                    if let (TrapKind::AssertFailed, Op::Effect(SideEffect::Assert { message, .. })) = (kind, op) {
                        stop.message = self.render(message, base);
                    }
                    return Err(stop);
                }
            }
            match &block.term {
                Term::Jump(next) => self.go(*next),
                Term::Branch(cond, yes, no) => {
                    let next = if self.read(*cond, base).bool() { yes } else { no };
                    self.go(*next);
                }
                Term::Call { func, args, attempt, .. } => {
                    if self.frames.len() > self.settings.max_stack_depth {
                        return Err(stop(TrapKind::StackLimit, At::Term));
                    }
                    // What is handed over does not wait for the return.
                    let mut given: Values<R> = args.iter().map(|s| self.hand_over(*s, base)).collect();
                    let arrays = self.arrays_held(&running.arrays, base);
                    self.take(*func, arrays).map_err(|kind| stop(kind, At::Term))?;
                    for (value, source) in given.iter_mut().zip(args) {
                        if !matches!(source, Source::Last(_)) {
                            *value = self.read(*source, base).clone();
                        }
                    }
                    if *attempt {
                        let tapes = self.tapes.values().map(Vec::len).collect();
                        self.handlers.push(Handler { frames: self.frames.len(), tapes });
                    }
                    self.enter(*func, given, arrays);
                }
                Term::TailCall { func, args } => {
                    let args = self.read_all(args, base);
                    let arrays = self.leave();
                    let taken = self.take(*func, arrays);
                    // The lane stops in a function.
                    self.enter(*func, args, arrays);
                    taken.map_err(|kind| stop(kind, At::Start))?;
                }
                Term::Return(values) => {
                    let values = self.read_all(values, base);
                    let _ = self.leave();
                    if self.frames.is_empty() {
                        return Ok(values);
                    }
                    self.resume(values);
                }
            }
        }
    }

    fn start_block(&mut self) -> Result<(), TrapKind> {
        let limit = self.settings.max_supersteps;
        if limit > 0 && self.blocks >= limit {
            return Err(TrapKind::StepLimit);
        }
        if self.blocks.is_multiple_of(BLOCKS_PER_POLL) && self.settings.is_stopped() {
            return Err(TrapKind::Interrupted);
        }
        self.blocks += 1;
        Ok(())
    }

    fn go(&mut self, block: u32) {
        self.frames.last_mut().expect("a function runs").block = block;
    }

    /// Takes the memory of an activation and of the arrays that wait for its return.
    #[inline]
    fn take(&mut self, func: u32, arrays: usize) -> Result<(), TrapKind> {
        self.memory.take(arrays + Self::bytes_of_frame(self.code.funcs[func as usize].vars))
    }

    /// Enters a function. The memory is taken: of the frame, and of these bytes of arrays that wait for its return.
    fn enter(&mut self, func: u32, args: Values<R>, arrays: usize) {
        let base = self.values.len();
        let callee = &self.code.funcs[func as usize];
        self.values.resize_with(base + callee.vars, Value::default);
        for (param, arg) in callee.params.iter().zip(args) {
            self.values[base + *param as usize] = arg;
        }
        self.frames.push(Frame { func, block: 0, base, arrays });
    }

    /// Leaves a function; gives the memory of arrays that waited for it.
    fn leave(&mut self) -> usize {
        let frame = self.frames.pop().expect("a function runs");
        let vars = self.values.len() - frame.base;
        self.values.truncate(frame.base);
        self.memory.give_back(frame.arrays + Self::bytes_of_frame(vars));
        frame.arrays
    }

    fn bytes_of_frame(vars: usize) -> usize {
        vars * size_of::<Value<R>>() + size_of::<Frame>()
    }

    /// The memory of these variables, in arrays.
    #[inline]
    fn arrays_held(&self, vars: &[u32], base: usize) -> usize {
        vars.iter().fold(0, |sum, v| sum + self.values[base + *v as usize].share())
    }

    /// Goes on in the caller after its call.
    fn resume(&mut self, results: Values<R>) {
        let frame = self.frames.last_mut().expect("there is a caller");
        let block = &self.code.funcs[frame.func as usize].blocks[frame.block as usize];
        let Term::Call { dsts, next, attempt, .. } = &block.term else {
            unreachable!("a caller stands at a call");
        };
        if *attempt {
            self.handlers.pop();
        }
        for (dst, result) in dsts.iter().zip(results) {
            self.values[frame.base + *dst as usize] = result;
        }
        frame.block = *next;
    }

    #[inline]
    fn read(&self, source: Source, base: usize) -> &Value<R> {
        match source {
            Source::Var(v) | Source::Last(v) => &self.values[base + v as usize],
            Source::Pool(c) => &self.code.pool[c as usize],
        }
    }

    /// Takes a value out of the frame that is not read there again; nothing of others.
    fn hand_over(&mut self, source: Source, base: usize) -> Value<R> {
        match source {
            Source::Last(v) => std::mem::take(&mut self.values[base + v as usize]),
            Source::Var(_) | Source::Pool(_) => Value::default(),
        }
    }

    fn read_all(&self, sources: &[Source], base: usize) -> Values<R> {
        sources.iter().map(|s| self.read(*s, base).clone()).collect()
    }

    fn arrays(&self, sources: &[Source], base: usize) -> Vec<Array> {
        sources.iter().map(|s| self.read(*s, base).to_array()).collect()
    }

    fn render(&self, message: &Message<Source>, base: usize) -> String {
        render(&message.texts, self.arrays(&message.args, base), self.settings.precision)
    }

    /// What is told of an index that is out of range.
    fn out_of_range(&self, op: &Op, base: usize, loc: &Loc) -> String {
        let (Op::General { prim, args, .. } | Op::SetInPlace { prim, args, .. }) = op else {
            return String::new();
        };
        let Some(first) = Access::first_index(*prim) else { return String::new() };
        let shape = |source: Source| match self.read(source, base) {
            Value::Array(array) => array.shape.clone(),
            Value::Scalar(_) => Shape::new(),
        };
        let entries = match (prim, op) {
            (Prim::Slice, Op::General { ty, .. }) => Some(ty.shape[0]),
            (Prim::SetSlice, _) => Some(shape(args[1])[0]),
            _ => None,
        };
        let indices = &args[first..];
        let places = indices.iter().map(|i| shape(*i)).find(|shape| !shape.is_empty());
        let access = Access {
            shape: &shape(args[0]),
            axes: indices.len(),
            places: places.map_or(1, |shape| shape.iter().product()),
            entries,
            index: &|axis, place| match self.read(indices[axis], base).elem(place) {
                Elem::Int(index) => index,
                _ => 0,
            },
        };
        access.message(loc)
    }

    fn step(&mut self, op: &Op, base: usize) -> Result<(), TrapKind> {
        let told = matches!(op, Op::General { prim, .. } if prim.tells_by_nan());
        let nan_before = self.settings.check_nan && (told || self.reads_nan(op, base));
        let dst = match op {
            Op::Unary { prim, dst, x } => {
                let x = self.read(*x, base).scalar();
                self.values[base + *dst as usize] = Value::Scalar(scalars::unary(*prim, x)?);
                *dst
            }
            Op::Binary { prim, dst, x, y } => {
                let (x, y) = (self.read(*x, base).scalar(), self.read(*y, base).scalar());
                self.values[base + *dst as usize] = Value::Scalar(scalars::binary(*prim, x, y)?);
                *dst
            }
            Op::Select { dst, args: [c, x, y] } => {
                let chosen = if self.read(*c, base).bool() { x } else { y };
                self.values[base + *dst as usize] = self.read(*chosen, base).clone();
                *dst
            }
            Op::Move { dst, from } => {
                self.values[base + *dst as usize] = std::mem::take(&mut self.values[base + *from as usize]);
                *dst
            }
            Op::SetInPlace { prim, dst, args } => {
                self.set_in_place(*prim, base + *dst as usize, args, base)?;
                *dst
            }
            Op::Draw { prim, dst, ty } => {
                self.values[base + *dst as usize] = self.draw(*prim, ty);
                *dst
            }
            Op::General { prim, dst, args, ty } => {
                let result = {
                    let args: SmallVec<[&Value<R>; 4]> = args.iter().map(|a| self.read(*a, base)).collect();
                    arrays::apply(*prim, &args, ty)?
                };
                self.values[base + *dst as usize] = result;
                *dst
            }
            Op::Effect(effect) => return self.effect(effect, base),
        };
        if self.settings.check_nan && !nan_before && self.values[base + dst as usize].has_nan() {
            return Err(TrapKind::Nan);
        }
        Ok(())
    }

    fn effect(&mut self, effect: &SideEffect<Source, u32>, base: usize) -> Result<(), TrapKind> {
        match effect {
            SideEffect::Assert { cond, .. } if !self.read(*cond, base).bool() => return Err(TrapKind::AssertFailed),
            SideEffect::Assert { .. } => {}
            SideEffect::Print(message) => {
                let line = self.render(message, base);
                self.sink.print(self.position, line);
            }
            SideEffect::Emit { stream, args } => {
                let record = self.arrays(args, base);
                return self.sink.emit(self.position, *stream, &record).map_err(|_| TrapKind::MemoryLimit);
            }
            SideEffect::TapePush { tape, value } => {
                let value = self.read(*value, base).clone();
                let values = &mut self.tapes[*tape];
                if values.len() >= self.settings.max_tape_depth {
                    return Err(TrapKind::TapeLimit);
                }
                self.memory.take(value.bytes())?;
                values.try_reserve(1).map_err(|_| TrapKind::MemoryLimit)?;
                values.push(value);
            }
            SideEffect::TapePop { dst, tape } => {
                let value = self.tapes[*tape].pop().ok_or(TrapKind::EmptyTape)?;
                self.memory.give_back(value.bytes());
                self.values[base + *dst as usize] = value;
            }
        }
        Ok(())
    }

    fn reads_nan(&self, op: &Op, base: usize) -> bool {
        let nan = |s: &Source| self.read(*s, base).has_nan();
        match op {
            Op::Unary { x, .. } => nan(x),
            Op::Binary { x, y, .. } => nan(x) || nan(y),
            Op::Select { args, .. } => args.iter().any(nan),
            Op::SetInPlace { args, .. } | Op::General { args, .. } => args.iter().any(nan),
            Op::Move { from, .. } => nan(&Source::Var(*from)),
            Op::Draw { .. } | Op::Effect(_) => false,
        }
    }

    /// `values[slot] = prim values[slot], …` without a copy where nothing else holds the array.
    fn set_in_place(&mut self, prim: Prim, slot: usize, args: &[Source], base: usize) -> Result<(), TrapKind> {
        // A new part that is the array itself is held by its copy here, so that it is not written through.
        let operands: SmallVec<[Value<R>; 4]> = args[1..].iter().map(|a| self.read(*a, base).clone()).collect();
        let operands: SmallVec<[&Value<R>; 4]> = operands.iter().collect();
        arrays::change_part(prim, &mut self.values[slot], &operands)
    }

    /// One draw for each element, ascending.
    fn draw(&mut self, prim: Prim, ty: &Type) -> Value<R> {
        if prim == Prim::RandomPosition {
            return Value::Scalar(Elem::Int(self.draws as i64));
        }
        let n = ty.elements();
        let lanes = vec![self.number; n];
        let draws: Vec<u64> = (self.draws..).take(n).collect();
        self.draws = self.draws.wrapping_add(prim.draws(n) as u64);
        let mut out = vec![R::ZERO; n];
        match prim {
            Prim::RandomUniform => {
                philox::uniform_slice(self.settings.seed, &lanes, &draws, &mut out);
            }
            _ => philox::normal_slice(self.settings.seed, &lanes, &draws, &mut out),
        }
        if ty.is_scalar() {
            return Value::Scalar(Elem::Real(out[0]));
        }
        Data::Real(out).into_value(&ty.shape)
    }

    fn trap(&self, program: &Program, stop: Stop) -> Trap {
        let frame = self.frames.last().expect("a lane stops in a function");
        let block = &program.funcs[FuncId(frame.func)].blocks[BlockId(frame.block)];
        let loc = match stop.op {
            At::Start => &block.loc,
            At::Op(i) => &block.insts[i].loc,
            At::Term => self.call_loc(frame),
        };
        let message = match (stop.kind, stop.op) {
            (TrapKind::IndexOutOfRange, At::Op(i)) => {
                let code = &self.code.funcs[frame.func as usize].blocks[frame.block as usize];
                self.out_of_range(&code.ops[i], frame.base, loc)
            }
            _ => stop.message,
        };
        let (mut loc, call_depth) = (loc.clone(), self.frames.len() - 1);
        loc.take_place(self.frames[..call_depth].iter().rev().map(|caller| self.call_loc(caller)));
        Trap { position: self.position, kind: stop.kind, loc, call_depth, message }
    }

    fn call_loc(&self, frame: &Frame) -> &'a Loc {
        match &self.code.funcs[frame.func as usize].blocks[frame.block as usize].term {
            Term::Call { loc, .. } => loc,
            _ => unreachable!("of the terminators only a call traps"),
        }
    }
}

fn stop(kind: TrapKind, op: At) -> Stop {
    Stop { kind, message: String::new(), op }
}

/// What ran how often.
struct Counts {
    blocks: Vec<u64>,
    /// By primitive: instructions that stand in blocks that ran, but after a trap.
    skipped: Vec<u64>,
}

impl Counts {
    fn skip_after<R: Real>(&mut self, program: &Program, lane: &Lane<'_, R>, op: At) {
        let At::Op(op) = op else {
            return;
        };
        let frame = lane.frames.last().expect("a lane stops in a function");
        let block = &program.funcs[FuncId(frame.func)].blocks[BlockId(frame.block)];
        for inst in &block.insts[op + 1..] {
            if let InstKind::Prim { prim, .. } = inst.kind {
                self.skipped[prim as usize] += 1;
            }
        }
    }

    fn stats(&self, program: &Program) -> Stats {
        let mut stats = Stats::default();
        let mut prims = vec![0; TABLE.len()];
        let mut executions = self.blocks.iter().copied();
        for func in program.funcs.values() {
            for (id, block) in func.blocks.iter() {
                let executions = executions.next().expect("each block is counted");
                let mut weight = 0;
                for inst in &block.insts {
                    let InstKind::Prim { dst, prim, args } = &inst.kind else {
                        continue;
                    };
                    prims[*prim as usize] += executions;
                    let types: Vec<Type> = args.iter().map(|o: &Operand| program.operand_type(func, *o)).collect();
                    weight += prim.cost(&types, &func.vars[*dst].ty);
                }
                stats.blocks.push(BlockStats {
                    block: format!("{}.b{}", func.name, id.index()),
                    loc: block.loc.clone(),
                    weight,
                    executions,
                    lanes_useful: executions,
                    lanes_issued: executions,
                });
            }
        }
        for (row, (ran, skipped)) in TABLE.iter().zip(prims.iter().zip(&self.skipped)) {
            if ran > skipped {
                stats.prims.insert(row.name.to_string(), ran - skipped);
            }
        }
        stats
    }
}
