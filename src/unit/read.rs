//! Reads the text form of a unit program, which `Display` writes. The result is only as sound as the text:
//! [`verify`](super::verify()) says whether it is a program.

use super::{
    Argument, Attempt, Block, BlockId, Body, CallProgram, CallTerminator, Func, FuncId, Globals, Op, OpKind, Operand,
    Passing, Port, Program, SideEffect, Terminator, Unit, Value, ValueId, Var, VarId,
};
use crate::base::text::{ReadError, Reader, Token};
use crate::base::{Id as _, IdVec};
use crate::parts::StorageClass;
use crate::parts::text::{
    GlobalsReader, NameTable, PortText, Scope, read_block_id, read_loc, read_ports, read_type, read_typed_name,
};

/// Reads the units of a stack program.
///
/// # Errors
/// The line, and what was expected there.
pub fn read(text: &str) -> Result<Program, ReadError> {
    let mut reader = Reader::new(text)?;
    let r = &mut reader;
    r.expect_word("program")?;
    let name = r.name("the name of the program")?;
    r.expect_word("entry")?;
    let entry = read_block_id(r)?;
    r.end_line()?;
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    let mut globals = GlobalsReader::default();
    loop {
        if r.eat_word("inputs") {
            inputs.extend(read_ports(r)?);
        } else if r.eat_word("outputs") {
            outputs.extend(read_ports(r)?);
        } else if !globals.line(r)? {
            break;
        }
    }
    let mut body = BodyReader::new(&globals);
    let read_body = body.body(r, &|body, r, scope| body.terminator(r, scope))?;
    if !r.at_end() {
        return Err(r.expected("a block"));
    }
    let ports = |texts: Vec<PortText>| -> Result<Vec<Port>, ReadError> {
        let port = |(name, var, line): PortText| match body.vars.get(&var) {
            Some(var) => Ok(Port { name, var }),
            None => Err(ReadError::new(line, format!("there is no variable `{var}`"))),
        };
        texts.into_iter().map(port).collect()
    };
    let (inputs, outputs) = (ports(inputs)?, ports(outputs)?);
    Ok(Program { name, body: read_body, entry, inputs, outputs, globals: finish(globals) })
}

/// Reads the units of a CFG program.
///
/// # Errors
/// The line, and what was expected there.
pub fn read_calls(text: &str) -> Result<CallProgram, ReadError> {
    let mut reader = Reader::new(text)?;
    let names = func_names(&mut reader.clone())?;
    let r = &mut reader;
    r.expect_word("calls")?;
    r.expect_word("entry")?;
    let entry = names.read(r)?;
    r.end_line()?;
    let mut outputs = Vec::new();
    let mut globals = GlobalsReader::default();
    loop {
        if r.eat_word("outputs") {
            outputs.extend(r.list(|r| r.at_line_end(), |r| r.name("the name of an output"))?);
            r.end_line()?;
        } else if !globals.line(r)? {
            break;
        }
    }
    let mut funcs = IdVec::new();
    while !r.at_end() {
        let _: FuncId = funcs.push(func(r, &globals, &names)?);
    }
    Ok(CallProgram { funcs, entry, outputs, globals: finish(globals) })
}

/// Names of the functions, which calls before them may have.
fn func_names(reader: &mut Reader) -> Result<NameTable<FuncId>, ReadError> {
    let mut names = NameTable::new("function");
    let mut next = 0;
    while !reader.at_end() {
        if reader.eat_word("func") {
            let name = reader.name("the name of a function")?;
            names.add(reader, &name, FuncId::new(next))?;
            next += 1;
        }
        reader.skip_line();
    }
    Ok(names)
}

fn func(r: &mut Reader, globals: &GlobalsReader, names: &NameTable<FuncId>) -> Result<Func, ReadError> {
    r.expect_word("func")?;
    let name = r.name("the name of a function")?;
    let params = r.parenthesized(|r| Ok((r.name("the name of a parameter")?, r.line())))?;
    let results = if r.eat_arrow() { r.list(|_| false, read_type)? } else { Vec::new() };
    let loc = read_loc(r)?;
    r.end_line()?;
    let mut reader = BodyReader::new(globals);
    let body = reader.body(r, &|body, r, scope| body.call_terminator(r, scope, names))?;
    let param = |(name, line): (String, u32)| {
        reader.vars.get(&name).ok_or_else(|| ReadError::new(line, format!("there is no variable `{name}`")))
    };
    let params = params.into_iter().map(param).collect::<Result<_, _>>()?;
    Ok(Func { name, params, results, body, loc })
}

fn finish(globals: GlobalsReader) -> Globals {
    let GlobalsReader { shared, streams, tapes } = globals;
    Globals { shared: shared.values, streams: streams.values, tapes: tapes.values }
}

struct BodyReader<'a> {
    globals: &'a GlobalsReader,
    vars: NameTable<VarId>,
}

/// The values of a block that were read so far.
struct BlockScope {
    values: IdVec<ValueId, Value>,
    names: NameTable<ValueId>,
}

/// Reads what ends a block.
type ReadEnding<'a, T> = &'a dyn Fn(&BodyReader<'_>, &mut Reader, &BlockScope) -> Result<T, ReadError>;

impl<'a> BodyReader<'a> {
    fn new(globals: &'a GlobalsReader) -> Self {
        Self { globals, vars: NameTable::new("variable") }
    }

    /// Variables, units and blocks, up to the next function or the end.
    fn body<T>(&mut self, r: &mut Reader, ending: ReadEnding<'_, T>) -> Result<Body<T>, ReadError> {
        let mut body = Body { vars: IdVec::new(), blocks: IdVec::new(), units: IdVec::new() };
        loop {
            if r.eat_word("var") {
                let var = self.var(r, body.vars.next_id())?;
                body.vars.push(var);
            } else if r.at_word("unit") || r.at_word("region") {
                let region = r.eat_word("region");
                if !region {
                    r.next_token();
                }
                let blocks = r.list(|_| false, read_block_id)?;
                r.end_line()?;
                body.units.push(Unit { blocks, region });
            } else {
                break;
            }
        }
        while !r.at_end() && !r.at_word("func") {
            let block = self.block(r, body.blocks.next_id(), ending)?;
            body.blocks.push(block);
        }
        Ok(body)
    }

    fn var(&mut self, r: &mut Reader, id: VarId) -> Result<Var, ReadError> {
        let (name, ty) = read_typed_name(r, "the name of a variable")?;
        let class = if r.eat_word("temporary") {
            StorageClass::Temporary
        } else if r.eat_word("register") {
            StorageClass::Register
        } else if r.eat_word("stack") {
            StorageClass::Stack
        } else {
            return Err(r.expected("`temporary`, `register` or `stack`"));
        };
        let uniform = r.eat_word("uniform");
        self.vars.add(r, &name, id)?;
        r.end_line()?;
        Ok(Var { name, ty, class, uniform })
    }

    fn block<T>(&self, r: &mut Reader, id: BlockId, ending: ReadEnding<'_, T>) -> Result<Block<T>, ReadError> {
        if !r.at_word(&id.to_string()) {
            return Err(r.expected(&format!("block `{id}`")));
        }
        r.next_token();
        r.expect(':')?;
        let loc = read_loc(r)?;
        r.end_line()?;
        let mut scope = BlockScope { values: IdVec::new(), names: NameTable::new("value") };
        let mut ops = Vec::new();
        while let Some(kind) = self.op(r, &mut scope)? {
            let loc = read_loc(r)?;
            r.end_line()?;
            ops.push(Op { kind, loc });
        }
        let term = ending(self, r, &scope)?;
        r.end_line()?;
        Ok(Block { values: scope.values, ops, term, loc })
    }

    fn scope<'s>(&'s self, block: &'s BlockScope) -> Scope<'s, ValueId> {
        Scope { vars: &block.names, shared: &self.globals.shared.names }
    }

    /// An operation without its location, or nothing where something else stands.
    fn op(&self, r: &mut Reader, block: &mut BlockScope) -> Result<Option<OpKind>, ReadError> {
        if matches!(r.peek(), Token::Word(word) if word.starts_with('%')) {
            return self.computed(r, block).map(Some);
        }
        let scope = self.scope(block);
        let pair = |r: &mut Reader| -> Result<(VarId, Operand), ReadError> {
            let var = self.vars.read(r)?;
            r.expect(',')?;
            Ok((var, scope.operand(r)?))
        };
        Ok(Some(if r.eat_word("store") {
            let (var, value) = pair(r)?;
            OpKind::Store { var, value }
        } else if r.eat_word("push") {
            let (stack, value) = pair(r)?;
            OpKind::Push { stack, value }
        } else {
            let globals = self.globals;
            let effect = SideEffect::read(r, &scope, &globals.streams.names, &globals.tapes.names)?;
            return Ok(effect.map(OpKind::Effect));
        }))
    }

    /// `%0: int uniform = load x`
    fn computed(&self, r: &mut Reader, block: &mut BlockScope) -> Result<OpKind, ReadError> {
        let dst = block.values.next_id();
        let (name, ty) = read_typed_name(r, "a value")?;
        if name != dst.to_string() {
            return Err(r.error(format!("the values of a block are numbered: the next one is `{dst}`")));
        }
        let uniform = r.eat_word("uniform");
        r.expect('=')?;
        let kind = if r.eat_word("load") {
            OpKind::Load { dst, var: self.vars.read(r)? }
        } else if r.eat_word("pop") {
            OpKind::Pop { dst, stack: self.vars.read(r)? }
        } else if r.eat_word("tape_pop") {
            OpKind::Effect(SideEffect::TapePop { dst, tape: self.globals.tapes.names.read(r)? })
        } else {
            let (prim, args) = self.scope(block).prim(r)?;
            OpKind::Compute { dst, prim, args }
        };
        block.names.add(r, &name, dst)?;
        block.values.push(Value { ty, uniform, name: name.into() });
        Ok(kind)
    }

    /// A jump or a branch, as they end the blocks of both kinds.
    fn way(
        &self,
        r: &mut Reader,
        block: &BlockScope,
    ) -> Result<Option<(Option<Operand>, BlockId, BlockId)>, ReadError> {
        if r.eat_word("jump") {
            let to = read_block_id(r)?;
            return Ok(Some((None, to, to)));
        }
        if !r.eat_word("branch") {
            return Ok(None);
        }
        let cond = self.scope(block).operand(r)?;
        r.expect(',')?;
        let yes = read_block_id(r)?;
        r.expect(',')?;
        Ok(Some((Some(cond), yes, read_block_id(r)?)))
    }

    fn terminator(&self, r: &mut Reader, block: &BlockScope) -> Result<Terminator, ReadError> {
        match self.way(r, block)? {
            Some((Some(cond), yes, no)) => return Ok(Terminator::Branch(cond, yes, no)),
            Some((None, to, _)) => return Ok(Terminator::Jump(to)),
            None => {}
        }
        let attempt = r.at_word("attempt");
        if attempt || r.at_word("pushjump") {
            r.next_token();
            let target = read_block_id(r)?;
            r.expect(',')?;
            let ret = read_block_id(r)?;
            let attempt = if attempt { Some(self.attempt(r)?) } else { None };
            return Ok(Terminator::PushJump { target, ret, loc: read_loc(r)?, attempt });
        }
        if r.eat_word("return") {
            Ok(Terminator::Return)
        } else if r.eat_word("halt") {
            Ok(Terminator::Halt)
        } else {
            Err(r.expected("an operation or the end of the block"))
        }
    }

    fn attempt(&self, r: &mut Reader) -> Result<Attempt, ReadError> {
        let results = r.parenthesized(|r| self.vars.read(r))?;
        r.expect_word("stacks")?;
        let stacks = r.parenthesized(|r| self.vars.read(r))?;
        r.expect_word("tapes")?;
        let tapes = r.parenthesized(|r| self.globals.tapes.names.read(r))?;
        Ok(Attempt { results, stacks, tapes })
    }

    fn call_terminator(
        &self,
        r: &mut Reader,
        block: &BlockScope,
        funcs: &NameTable<FuncId>,
    ) -> Result<CallTerminator, ReadError> {
        match self.way(r, block)? {
            Some((Some(cond), yes, no)) => return Ok(CallTerminator::Branch(cond, yes, no)),
            Some((None, to, _)) => return Ok(CallTerminator::Jump(to)),
            None => {}
        }
        let attempt = r.at_word("attempt");
        if attempt || r.at_word("call") {
            r.next_token();
            let func = funcs.read(r)?;
            let args = self.arguments(r)?;
            if !r.eat_arrow() {
                return Err(r.expected("`->`"));
            }
            let dsts = r.parenthesized(|r| self.vars.read(r))?;
            r.expect_word("then")?;
            let next = read_block_id(r)?;
            return Ok(CallTerminator::Call { func, args, dsts, next, loc: read_loc(r)?, attempt });
        }
        if r.eat_word("tailcall") {
            let func = funcs.read(r)?;
            Ok(CallTerminator::TailCall { func, args: self.arguments(r)? })
        } else if r.eat_word("return") {
            Ok(CallTerminator::Return(self.arguments(r)?))
        } else {
            Err(r.expected("an operation or the end of the block"))
        }
    }

    fn arguments(&self, r: &mut Reader) -> Result<Vec<(Argument, Passing)>, ReadError> {
        let scope = Scope { vars: &self.vars, shared: &self.globals.shared.names };
        r.parenthesized(|r| {
            let argument = scope.operand(r)?;
            let passing = if r.eat_word("lent") {
                Passing::Lent
            } else if r.eat_word("given") {
                Passing::Given
            } else {
                Passing::Copy
            };
            Ok((argument, passing))
        })
    }
}
