//! Reads the text form of a CFG program. Blocks and functions may be named before they are defined; blocks are numbered in
//! the order of the text, whatever they are called. For any text there is a program or an error, never a panic; whether the
//! program makes sense is for [`verify`](super::verify()).

use super::{Block, BlockId, Func, FuncId, Inst, InstKind, Position, Program, SideEffect, Terminator, Var, VarId};
use crate::base::text::{ReadError, Reader, Token};
use crate::base::{Id, IdVec, Loc};
use crate::parts::text::{GlobalsReader, NameTable, Scope, read_loc, read_type, read_typed_name};
use crate::types::Type;

/// Lines of a text at which the parts of a program stand, counted from 1.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lines {
    funcs: Vec<FuncLines>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct FuncLines {
    line: u32,
    /// For each block its label, its instructions and its terminator.
    blocks: Vec<Vec<u32>>,
}

impl Lines {
    /// The line of a place; 1 for the program itself.
    pub fn line(&self, place: Position) -> u32 {
        let Some(func) = place.func.and_then(|f| self.funcs.get(f.index())) else {
            return 1;
        };
        let Some(block) = place.block.and_then(|b| func.blocks.get(b.index())) else {
            return func.line;
        };
        let at = place.inst.map_or(0, |i| i + 1);
        block.get(at).copied().unwrap_or(func.line)
    }
}

/// Reads a program.
pub fn read(text: &str) -> Result<Program, ReadError> {
    read_with_lines(text).map(|(program, _)| program)
}

/// Reads a program and remembers at which lines its parts stand.
pub fn read_with_lines(text: &str) -> Result<(Program, Lines), ReadError> {
    let mut reader = Reader::new(text)?;
    let funcs = func_names(&mut reader)?;
    let mut parser = Parser { funcs, globals: GlobalsReader::default(), lines: Lines::default() };
    let program = parser.program(&mut reader)?;
    Ok((program, parser.lines))
}

/// The names of all functions of a text, so that they can be called before they are defined.
fn func_names(reader: &mut Reader) -> Result<NameTable<FuncId>, ReadError> {
    let start = reader.position();
    let mut names = NameTable::new("function");
    let mut count = 0;
    while !reader.at_end() {
        if reader.eat_word("func") {
            let name = reader.name("the name of a function")?;
            names.add(reader, &name, FuncId::new(count))?;
            count += 1;
        }
        reader.skip_line();
    }
    reader.back_to(start);
    Ok(names)
}

/// The labels of the function whose body starts here.
fn labels(reader: &mut Reader) -> Result<NameTable<BlockId>, ReadError> {
    let start = reader.position();
    let mut names = NameTable::new("block");
    let mut count = 0;
    while !reader.at_end() && !reader.at('}') {
        if at_label(reader) {
            let name = reader.name("a label")?;
            names.add(reader, &name, BlockId::new(count))?;
            count += 1;
        }
        reader.skip_line();
    }
    reader.back_to(start);
    Ok(names)
}

fn at_label(reader: &Reader) -> bool {
    matches!(reader.peek(), Token::Word(_) | Token::Quoted(_)) && *reader.peek_at(1) == Token::Punct(':')
}

struct Parser {
    funcs: NameTable<FuncId>,
    globals: GlobalsReader,
    lines: Lines,
}

impl Parser {
    fn program(&mut self, r: &mut Reader) -> Result<Program, ReadError> {
        r.expect_word("cfg")?;
        r.expect_word("entry")?;
        let entry = self.funcs.read(r)?;
        r.end_line()?;
        let mut outputs = vec![];
        let mut funcs = IdVec::new();
        while !r.at_end() {
            if self.globals.line(r)? {
                continue;
            }
            if r.eat_word("outputs") {
                outputs.extend(r.list(Reader::at_line_end, |r| r.name("the name of an output"))?);
                r.end_line()?;
            } else if r.at_word("func") {
                funcs.push(self.func(r)?);
            } else {
                return Err(r.expected("`shared`, `stream`, `tape`, `outputs` or `func`"));
            }
        }
        Ok(Program {
            funcs,
            entry,
            shared: std::mem::take(&mut self.globals.shared.values),
            streams: std::mem::take(&mut self.globals.streams.values),
            tapes: std::mem::take(&mut self.globals.tapes.values),
            outputs,
        })
    }

    fn func(&mut self, r: &mut Reader) -> Result<Func, ReadError> {
        let line = r.line();
        r.expect_word("func")?;
        let name = r.name("the name of a function")?;
        let params = r.parenthesized(|r| read_typed_name(r, "the name of a parameter"))?;
        let results = if r.eat_arrow() { r.list(|_| false, read_type)? } else { vec![] };
        r.expect('{')?;
        let loc = read_loc(r)?;
        r.end_line()?;
        let mut listed = vec![];
        while r.eat_word("var") {
            listed.extend(r.list(|_| false, |r| read_typed_name(r, "the name of a variable"))?);
            r.end_line()?;
        }
        let (vars, params, names) = variables(r, params, listed)?;
        let body = Body { parser: self, vars: &names, labels: &labels(r)? };
        let mut blocks = IdVec::new();
        let mut lines = FuncLines { line, blocks: vec![] };
        while !r.eat('}') {
            let (block, block_lines) = body.block(r)?;
            blocks.push(block);
            lines.blocks.push(block_lines);
        }
        r.end_line()?;
        self.lines.funcs.push(lines);
        Ok(Func { name, params, results, vars, blocks, loc })
    }
}

type Variables = (IdVec<VarId, Var>, Vec<VarId>, NameTable<VarId>);

/// The variables of a function. Parameters come first, or, where the list of variables names them too, at their place there.
fn variables(r: &Reader, params: Vec<(String, Type)>, listed: Vec<(String, Type)>) -> Result<Variables, ReadError> {
    let again = params.first().is_some_and(|(name, _)| listed.iter().any(|(other, _)| other == name));
    let mut vars = IdVec::new();
    let mut names = NameTable::new("variable");
    let leading = if again { &[][..] } else { &params[..] };
    for (name, ty) in leading.iter().chain(&listed) {
        names.add(r, name, vars.next_id())?;
        vars.push(Var { name: name.clone(), ty: ty.clone() });
    }
    let mut ids = vec![];
    for (name, ty) in &params {
        match names.get(name) {
            Some(id) if vars[id].ty == *ty => ids.push(id),
            Some(_) => return Err(r.error(format!("parameter `{name}` has two types"))),
            None => return Err(r.error(format!("parameter `{name}` is not listed after `var`"))),
        }
    }
    Ok((vars, ids, names))
}

/// What is known while the blocks of a function are read.
struct Body<'a> {
    parser: &'a Parser,
    vars: &'a NameTable<VarId>,
    labels: &'a NameTable<BlockId>,
}

impl Body<'_> {
    fn scope(&self) -> Scope<'_, VarId> {
        Scope { vars: self.vars, shared: &self.parser.globals.shared.names }
    }

    /// A block, and the lines of its label, its instructions and its terminator.
    fn block(&self, r: &mut Reader) -> Result<(Block, Vec<u32>), ReadError> {
        if !at_label(r) {
            return Err(r.expected("a label `b0:` or `}`"));
        }
        let mut lines = vec![r.line()];
        self.labels.read(r)?;
        r.expect(':')?;
        let loc = read_loc(r)?;
        r.end_line()?;
        let mut insts = vec![];
        loop {
            lines.push(r.line());
            if r.at('}') || r.at_end() || at_label(r) {
                return Err(
                    r.expected("`jump`, `branch`, `call`, `attempt`, `tailcall` or `return` at the end of the block")
                );
            }
            match self.statement(r)? {
                Statement::Inst(kind) => {
                    let loc = read_loc(r)?;
                    r.end_line()?;
                    insts.push(Inst { kind, loc });
                }
                Statement::Term(mut term) => {
                    let found = read_loc(r)?;
                    match &mut term {
                        Terminator::Call { loc, .. } | Terminator::TailCall { loc, .. } => {
                            *loc = found;
                        }
                        _ if found != Loc::none() => {
                            return Err(r.error("only instructions and calls have a location"));
                        }
                        _ => {}
                    }
                    r.end_line()?;
                    return Ok((Block { insts, term, loc }, lines));
                }
            }
        }
    }

    fn statement(&self, r: &mut Reader) -> Result<Statement, ReadError> {
        let scope = self.scope();
        if let Some(effect) =
            SideEffect::read(r, &scope, &self.parser.globals.streams.names, &self.parser.globals.tapes.names)?
        {
            return Ok(Statement::Inst(InstKind::Effect(effect)));
        }
        let word = match r.peek() {
            Token::Word(w) => w.clone(),
            _ => String::new(),
        };
        if !["jump", "branch", "call", "attempt", "tailcall", "return"].contains(&word.as_str()) {
            return self.assignment(r);
        }
        r.next_token();
        Ok(match word.as_str() {
            "jump" => Statement::Term(Terminator::Jump(self.labels.read(r)?)),
            "branch" => {
                let cond = scope.operand(r)?;
                r.expect(',')?;
                let holds = self.labels.read(r)?;
                r.expect(',')?;
                Statement::Term(Terminator::Branch(cond, holds, self.labels.read(r)?))
            }
            "call" => Statement::Term(self.call(r, vec![], false)?),
            "attempt" => Statement::Term(self.call(r, vec![], true)?),
            "tailcall" => Statement::Term(Terminator::TailCall {
                func: self.parser.funcs.read(r)?,
                args: r.parenthesized(|r| scope.operand(r))?,
                loc: Loc::none(),
            }),
            _ => Statement::Term(Terminator::Return(scope.operands(r)?.into_vec())),
        })
    }

    /// `x = prim args`, `x = tape_pop tape` or `x, y = call f(args) then b1`
    fn assignment(&self, r: &mut Reader) -> Result<Statement, ReadError> {
        if !matches!(r.peek(), Token::Word(_) | Token::Quoted(_)) {
            return Err(r.expected("an instruction"));
        }
        let line = r.line();
        let dsts = r.list(|_| false, |r| self.vars.read(r))?;
        r.expect('=')?;
        if r.eat_word("call") {
            return self.call(r, dsts, false).map(Statement::Term);
        }
        if r.eat_word("attempt") {
            return self.call(r, dsts, true).map(Statement::Term);
        }
        let &[dst] = &dsts[..] else {
            return Err(ReadError::new(line, "a primitive has one result"));
        };
        if r.eat_word("tape_pop") {
            let tape = self.parser.globals.tapes.names.read(r)?;
            return Ok(Statement::Inst(InstKind::Effect(SideEffect::TapePop { dst, tape })));
        }
        let (prim, args) = self.scope().prim(r)?;
        Ok(Statement::Inst(InstKind::Prim { dst, prim, args }))
    }

    /// What follows the word `call` or `attempt`.
    fn call(&self, r: &mut Reader, dsts: Vec<VarId>, attempt: bool) -> Result<Terminator, ReadError> {
        let func = self.parser.funcs.read(r)?;
        let args = r.parenthesized(|r| self.scope().operand(r))?;
        r.expect_word("then")?;
        Ok(Terminator::Call { func, args, dsts, next: self.labels.read(r)?, loc: Loc::none(), attempt })
    }
}

enum Statement {
    Inst(InstKind),
    Term(Terminator),
}
