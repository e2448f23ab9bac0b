//! Reads the text form of a stack program, which `Display` writes. The result is only as sound as the
//! text: [`verify`](super::verify()) says whether it is a program.

use super::{
    Block, BlockId, Inst, InstKind, Port, Position, Program, Region, SideEffect, StorageClass, Terminator, Var, VarId,
    Write,
};
use crate::base::text::{ReadError, Reader};
use crate::base::{Id, IdVec};
use crate::parts::text::{
    GlobalsReader, NameTable, PortText, Scope, read_block_id, read_loc, read_ports, read_typed_name,
};

/// Lines of a text at which the blocks of a program and their instructions stand, counted from 1.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lines {
    /// For each block its label, its instructions and its terminator.
    blocks: Vec<Vec<u32>>,
}

impl Lines {
    /// The line of a place; 1 for the program itself.
    pub fn line(&self, place: Position) -> u32 {
        let block = place.block.and_then(|b| self.blocks.get(b.index()));
        let at = place.inst.map_or(0, |i| i + 1);
        block.and_then(|b| b.get(at)).copied().unwrap_or(1)
    }
}

/// Reads a program. An error names the line and what was expected there.
pub fn read(text: &str) -> Result<Program, ReadError> {
    read_with_lines(text).map(|(program, _)| program)
}

/// Reads a program and remembers at which lines its parts stand.
pub fn read_with_lines(text: &str) -> Result<(Program, Lines), ReadError> {
    let mut reader = Reader::new(text)?;
    reader.expect_word("program")?;
    let name = reader.name("the name of the program")?;
    reader.expect_word("entry")?;
    let entry = read_block_id(&mut reader)?;
    reader.end_line()?;
    let mut program = ProgramReader::default();
    program.header(&mut reader)?;
    let inputs = program.ports(&program.inputs)?;
    let outputs = program.ports(&program.outputs)?;
    let mut blocks = IdVec::new();
    while !reader.at_end() {
        let block = program.block(&mut reader, blocks.next_id())?;
        blocks.push(block);
    }
    let lines = program.lines;
    let program = Program {
        name,
        vars: program.vars,
        blocks,
        entry,
        inputs,
        outputs,
        shared: program.globals.shared.values,
        streams: program.globals.streams.values,
        tapes: program.globals.tapes.values,
        regions: program.regions,
    };
    Ok((program, lines))
}

struct ProgramReader {
    vars: IdVec<VarId, Var>,
    names: NameTable<VarId>,
    inputs: Vec<PortText>,
    outputs: Vec<PortText>,
    globals: GlobalsReader,
    regions: Vec<Region>,
    lines: Lines,
}

impl Default for ProgramReader {
    fn default() -> Self {
        Self {
            vars: IdVec::new(),
            names: NameTable::new("variable"),
            inputs: Vec::new(),
            outputs: Vec::new(),
            globals: GlobalsReader::default(),
            regions: Vec::new(),
            lines: Lines::default(),
        }
    }
}

impl ProgramReader {
    fn header(&mut self, reader: &mut Reader) -> Result<(), ReadError> {
        loop {
            if reader.eat_word("inputs") {
                self.inputs.extend(read_ports(reader)?);
            } else if reader.eat_word("outputs") {
                self.outputs.extend(read_ports(reader)?);
            } else if reader.eat_word("var") {
                self.var(reader)?;
            } else if reader.eat_word("region") {
                let blocks = reader.list(|_| false, read_block_id)?;
                self.regions.push(Region { blocks });
                reader.end_line()?;
            } else if !self.globals.line(reader)? {
                return Ok(());
            }
        }
    }

    fn var(&mut self, reader: &mut Reader) -> Result<(), ReadError> {
        let (name, ty) = read_typed_name(reader, "the name of a variable")?;
        let class = if reader.eat_word("temporary") {
            StorageClass::Temporary
        } else if reader.eat_word("register") {
            StorageClass::Register
        } else if reader.eat_word("stack") {
            StorageClass::Stack
        } else {
            return Err(reader.expected("`temporary`, `register` or `stack`"));
        };
        let uniform = reader.eat_word("uniform");
        self.names.add(reader, &name, self.vars.next_id())?;
        self.vars.push(Var { name, ty, class, uniform, why: String::new() });
        reader.end_line()
    }

    fn ports(&self, texts: &[PortText]) -> Result<Vec<Port>, ReadError> {
        (texts.iter())
            .map(|(name, var, line)| match self.names.get(var) {
                Some(var) => Ok(Port { name: name.clone(), var }),
                None => Err(ReadError::new(*line, format!("there is no variable `{var}`"))),
            })
            .collect()
    }

    fn block(&mut self, reader: &mut Reader, id: BlockId) -> Result<Block, ReadError> {
        if !reader.at_word(&id.to_string()) {
            return Err(reader.expected(&format!("block `{id}`")));
        }
        let mut lines = vec![reader.line()];
        reader.next_token();
        reader.expect(':')?;
        let loc = read_loc(reader)?;
        reader.end_line()?;
        let mut insts = Vec::new();
        loop {
            lines.push(reader.line());
            if let Some(kind) = self.inst(reader)? {
                let loc = read_loc(reader)?;
                reader.end_line()?;
                insts.push(Inst { kind, loc });
            } else {
                let term = self.terminator(reader)?;
                reader.end_line()?;
                self.lines.blocks.push(lines);
                return Ok(Block { insts, term, loc });
            }
        }
    }

    fn scope(&self) -> Scope<'_, VarId> {
        Scope { vars: &self.names, shared: &self.globals.shared.names }
    }

    /// An instruction without its location, or nothing where something else stands.
    fn inst(&self, reader: &mut Reader) -> Result<Option<InstKind>, ReadError> {
        let kind = if reader.eat_word("prim") {
            self.compute(reader, Write::Set)?
        } else if reader.eat_word("push") {
            self.compute(reader, Write::Push)?
        } else if reader.eat_word("update") {
            self.compute(reader, Write::Update)?
        } else if reader.eat_word("pop") {
            InstKind::Pop(self.names.read(reader)?)
        } else if reader.eat_word("save") {
            let stack = self.names.read(reader)?;
            reader.expect(',')?;
            InstKind::Save { stack, value: self.names.read(reader)? }
        } else if reader.eat_word("tape_pop") {
            let dst = self.names.read(reader)?;
            reader.expect('=')?;
            InstKind::Effect(SideEffect::TapePop { dst, tape: self.globals.tapes.names.read(reader)? })
        } else {
            let effect =
                SideEffect::read(reader, &self.scope(), &self.globals.streams.names, &self.globals.tapes.names)?;
            return Ok(effect.map(InstKind::Effect));
        };
        Ok(Some(kind))
    }

    fn compute(&self, reader: &mut Reader, write: Write) -> Result<InstKind, ReadError> {
        let dst = self.names.read(reader)?;
        reader.expect('=')?;
        let (prim, args) = self.scope().prim(reader)?;
        Ok(InstKind::Compute { write, dst, prim, args })
    }

    fn terminator(&self, reader: &mut Reader) -> Result<Terminator, ReadError> {
        if reader.eat_word("jump") {
            Ok(Terminator::Jump(read_block_id(reader)?))
        } else if reader.eat_word("branch") {
            let cond = self.scope().operand(reader)?;
            reader.expect(',')?;
            let yes = read_block_id(reader)?;
            reader.expect(',')?;
            Ok(Terminator::Branch(cond, yes, read_block_id(reader)?))
        } else if reader.eat_word("pushjump") {
            let target = read_block_id(reader)?;
            reader.expect(',')?;
            let ret = read_block_id(reader)?;
            Ok(Terminator::PushJump { target, ret, loc: read_loc(reader)?, attempt: None })
        } else if reader.eat_word("attempt") {
            let target = read_block_id(reader)?;
            reader.expect(',')?;
            let ret = read_block_id(reader)?;
            let results = reader.parenthesized(|r| self.names.read(r))?;
            Ok(Terminator::PushJump { target, ret, loc: read_loc(reader)?, attempt: Some(results) })
        } else if reader.eat_word("return") {
            Ok(Terminator::Return)
        } else if reader.eat_word("halt") {
            Ok(Terminator::Halt)
        } else {
            Err(reader.expected("an instruction or the end of the block"))
        }
    }
}
