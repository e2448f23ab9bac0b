//! What a step does besides computing: asserts, prints and records, lane by lane.

use smallvec::SmallVec;

use super::Stepper;
use crate::backend::cpu::buffer::Buffer;
use crate::backend::cpu::frame::Frame;
use crate::base::Loc;
use crate::parts::{StreamId, render};
use crate::plan::{Arg, Message, SideEffect};
use crate::run::{Record, TrapKind};
use crate::types::Array;
use crate::vmath::Real;

impl<R: Real> Stepper<'_, R> {
    pub(super) fn effect(&mut self, frame: &mut Frame<R>, effect: &SideEffect, loc: &Loc) {
        match effect {
            SideEffect::Assert { cond, message } => self.assert(frame, cond, message, loc),
            SideEffect::Print(message) => self.print(frame, message),
            SideEffect::Emit { stream, args } => self.emit(frame, *stream, args, loc),
            SideEffect::TapePush { tape, value } => self.tape_push(frame, *tape, value, loc),
            SideEffect::TapePop { dst, tape } => self.tape_pop(frame, *dst, *tape, loc),
        }
    }

    fn assert(&mut self, frame: &Frame<R>, cond: &Arg, message: &Message, loc: &Loc) {
        let holds = self.env.buffer(frame, cond).bools();
        if cond.broadcast && holds[0] {
            return;
        }
        let failed = |column: &usize| cond.broadcast || !holds[*column];
        let failed: SmallVec<[usize; 8]> = self.active.mask.iter().filter(failed).collect();
        for column in failed {
            let text = self.text(frame, message, column);
            self.trap(column, TrapKind::AssertFailed, loc, text);
        }
    }

    /// The active lanes hand a record over; those whose records nobody can keep trap.
    fn emit(&mut self, frame: &Frame<R>, stream: StreamId, args: &[Arg], loc: &Loc) {
        let fields = args.iter().map(|arg| Field { buffer: self.env.buffer(frame, arg), arg }).collect();
        let mut record = LaneRecord { fields, width: self.active.columns(), column: 0 };
        let mut lost = Vec::new();
        for column in self.active.mask.iter() {
            record.column = column;
            let position = self.lanes.positions[self.active.lane(column)];
            if self.env.sink.emit(position, stream, &record).is_err() {
                lost.push(column);
            }
        }
        self.trap_columns(&lost, TrapKind::MemoryLimit, loc);
    }

    fn print(&self, frame: &Frame<R>, message: &Message) {
        for column in self.active.mask.iter() {
            let text = self.text(frame, message, column);
            let position = self.lanes.positions[self.active.lane(column)];
            self.env.sink.print(position, text);
        }
    }

    fn text(&self, frame: &Frame<R>, message: &Message, column: usize) -> String {
        let values = message.args.iter().map(|a| self.value(frame, a, column));
        render(&message.texts, values, self.env.settings.precision)
    }

    /// The value of an operand in a column.
    pub(in crate::backend::cpu) fn value(&self, frame: &Frame<R>, arg: &Arg, column: usize) -> Array {
        let field = Field { buffer: self.env.buffer(frame, arg), arg };
        field.value(self.active.columns(), column)
    }
}

/// An operand of a record, and where it stands.
struct Field<'a, R> {
    buffer: &'a Buffer<R>,
    arg: &'a Arg,
}

impl<R: Real> Field<'_, R> {
    /// The width of the buffer and the column in it, in a shard of this many columns.
    fn place(&self, columns: usize, column: usize) -> (usize, usize) {
        if self.arg.broadcast { (1, 0) } else { (columns, column) }
    }
    fn value(&self, columns: usize, column: usize) -> Array {
        let (width, column) = self.place(columns, column);
        self.buffer.lane(&self.arg.ty.shape, width, column)
    }
}

/// The record of the lane in a column.
struct LaneRecord<'a, R> {
    fields: SmallVec<[Field<'a, R>; 8]>,
    width: usize,
    column: usize,
}

impl<R: Real> Record for LaneRecord<'_, R> {
    fn arrays(&self) -> Vec<Array> {
        self.fields.iter().map(|f| f.value(self.width, self.column)).collect()
    }
    fn append_words(&self, words: &mut Vec<u64>) {
        for field in &self.fields {
            let (width, column) = field.place(self.width, self.column);
            field.buffer.append_words(field.arg.ty.elements(), width, column, words);
        }
    }
}
