//! Random statements.

use super::generator::{Generator, Place, Recursion, Var};
use super::program::{Block, Dim, Expr, Stmt, Ty};

impl Generator {
    /// Adds a statement, sometimes several that belong together.
    pub(super) fn statement(&mut self, depth: usize, out: &mut Vec<Stmt>) {
        self.cost += self.times;
        match self.rng.below(44) {
            0..8 => self.let_statement(out),
            8..16 => self.assignment(out),
            16..20 => self.operator_assignment(out),
            20..26 if depth > 0 => self.if_statement(depth, out),
            26..30 if depth > 0 && self.times < 30 => self.while_statement(depth, out),
            30..34 if depth > 0 && self.times < 30 => self.for_statement(depth, out),
            34 => self.destructuring(out),
            35 | 36 => self.leave_loop(out),
            37 => self.early_return(out),
            38 => self.print(out),
            39 => self.emit(out),
            40 => self.assert(out),
            41 => self.let_closure(out),
            42 => self.call_statement(out),
            _ => self.apply(out),
        }
    }

    fn declare(&mut self, name: String, ty: Ty, mutable: bool, shared: bool) {
        self.vars.push(Var { name, ty, mutable, shared, below: None });
    }

    fn let_statement(&mut self, out: &mut Vec<Stmt>) {
        let mutable = self.rng.percent(65);
        let keyword = if mutable { "let mut" } else { "let" };
        self.note(keyword);
        let name = self.name("v");
        if !mutable && self.vars.iter().any(|v| v.shared) && self.rng.percent(30) {
            self.note("shared computation");
            let value = self.shared_expr(&Ty::Real, 2);
            out.push(Stmt::new(&format!("let {name} = $;"), vec![value]));
            return self.declare(name, Ty::Real, false, true);
        }
        let ty = self.any_type(self.signature().named_dim);
        let value = self.expr(&ty, 3);
        let written = if self.rng.percent(15) { format!(": {ty}") } else { String::new() };
        out.push(Stmt::new(&format!("{keyword} {name}{written} = $;"), vec![value]));
        self.declare(name, ty, mutable, false);
    }

    /// A part of a mutable variable that an assignment may change.
    fn target(&mut self) -> Option<(String, Ty)> {
        let mut found = Vec::new();
        for var in self.vars.iter().filter(|v| v.mutable) {
            self.paths(&var.name, &var.ty, &mut |path, ty| found.push((path.to_owned(), ty.clone())));
        }
        (!found.is_empty()).then(|| self.rng.choose(&found).clone())
    }

    fn assignment(&mut self, out: &mut Vec<Stmt>) {
        let Some((place, ty)) = self.target() else { return self.let_statement(out) };
        if place.contains('.') {
            self.note("field assignment");
        }
        if let Ty::Array(element, dims) = &ty
            && self.rng.percent(70)
        {
            return self.part_assignment(&place, element, dims, out);
        }
        if self.rng.percent(35)
            && let Some(call) = self.call_giving(&ty, 2, Some(&Expr::leaf(ty.clone(), place.clone())))
        {
            if call.to_string().contains(&place) {
                self.note("x = g(x)");
            }
            out.push(Stmt::new(&format!("{place} = $;"), vec![call]));
            return;
        }
        self.note("assignment");
        let value = self.expr(&ty, 3);
        out.push(Stmt::new(&format!("{place} = $;"), vec![value]));
    }

    fn part_assignment(&mut self, place: &str, element: &Ty, dims: &[Dim], out: &mut Vec<Stmt>) {
        let index = self.index(dims[0], 2);
        if let [_, columns] = dims {
            if self.rng.percent(50) {
                self.note("row assignment");
                let row = self.expr(&Ty::array(element.clone(), [*columns]), 2);
                return out.push(Stmt::new(&format!("{place}[$] = $;"), vec![index, row]));
            }
            self.note("element assignment");
            let holes = vec![index, self.index(*columns, 1), self.expr(element, 2)];
            return out.push(Stmt::new(&format!("{place}[$, $] = $;"), holes));
        }
        if let (Dim::Known(n), true) = (dims[0], self.rng.percent(30)) {
            self.note("slice assignment");
            let length = 1 + self.rng.below(n);
            let start = self.rng.below(n - length + 1);
            let value = self.expr(&Ty::array(element.clone(), [Dim::Known(length)]), 2);
            let end = start + length;
            return out.push(Stmt::new(&format!("{place}[{start}..{end}] = $;"), vec![value]));
        }
        self.note("element assignment");
        let value = self.expr(element, 3);
        let op = if *element != Ty::Bool && self.rng.percent(40) { "+=" } else { "=" };
        out.push(Stmt::new(&format!("{place}[$] {op} $;"), vec![index, value]));
    }

    fn operator_assignment(&mut self, out: &mut Vec<Stmt>) {
        let Some((place, ty)) = self.target() else { return self.let_statement(out) };
        let (ops, value): (&[&str], Ty) = match &ty {
            Ty::Int => (&["+=", "+=", "-=", "*="], Ty::Int),
            Ty::Real => (&["+=", "-=", "*=", "/="], Ty::Real),
            Ty::Array(element, _) if **element == Ty::Real => {
                (&["+=", "-=", "*="], if self.rng.percent(50) { ty.clone() } else { Ty::Real })
            }
            _ => return self.assignment(out),
        };
        self.note("operator assignment");
        let op = *self.rng.choose(ops);
        let value = self.expr(&value, 2);
        out.push(Stmt::new(&format!("{place} {op} $;"), vec![value]));
    }

    /// Statements with their own scope.
    fn block(&mut self, depth: usize, first: Vec<Stmt>) -> Block {
        let vars = self.vars.len();
        let mut stmts = first;
        for _ in 0..1 + self.rng.below(3) {
            self.statement(depth - 1, &mut stmts);
        }
        self.vars.truncate(vars);
        Block { stmts, tail: None }
    }

    fn if_statement(&mut self, depth: usize, out: &mut Vec<Stmt>) {
        self.note("if");
        let condition = self.expr(&Ty::Bool, 2);
        let mut stmt = Stmt::new("if $ ", vec![condition]).block(self.block(depth, Vec::new()));
        if self.rng.percent(50) {
            self.note("if else");
            stmt = stmt.text(" else ").block(self.block(depth, Vec::new()));
        }
        out.push(stmt);
    }

    fn loop_block(&mut self, depth: usize, first: Vec<Stmt>) -> Block {
        self.loops += 1;
        self.times *= 4;
        let block = self.block(depth, first);
        self.times /= 4;
        self.loops -= 1;
        block
    }

    fn while_statement(&mut self, depth: usize, out: &mut Vec<Stmt>) {
        self.note("while");
        let name = self.name("k");
        let start = self.expr(&Ty::Int, 2);
        out.push(Stmt::new(&format!("let mut {name} = $ % 6;"), vec![start]));
        self.declare(name.clone(), Ty::Int, false, false);
        let (template, holes) = match self.rng.below(3) {
            0 => {
                self.note("and or");
                (format!("while {name} > 0 && $ "), vec![self.expr(&Ty::Bool, 2)])
            }
            _ => (format!("while {name} > 0 "), vec![]),
        };
        let down = Stmt::new(&format!("{name} -= 1;"), vec![]);
        let block = self.loop_block(depth, vec![down]);
        out.push(Stmt::new(&template, holes).block(block));
    }

    fn for_statement(&mut self, depth: usize, out: &mut Vec<Stmt>) {
        self.note("for");
        let name = self.name("i");
        let (range, below, holes) = match self.rng.below(3) {
            0 => {
                let dim = self.dim(self.signature().named_dim);
                (format!("0..{dim}"), Some(dim), vec![])
            }
            1 => ("0..$ % 5".to_owned(), None, vec![self.expr(&Ty::Int, 2)]),
            _ => ("$ % 3..$ % 4".to_owned(), None, vec![self.expr(&Ty::Int, 1), self.expr(&Ty::Int, 1)]),
        };
        let vars = self.vars.len();
        self.vars.push(Var { name: name.clone(), ty: Ty::Int, mutable: false, shared: false, below });
        let block = self.loop_block(depth, Vec::new());
        self.vars.truncate(vars);
        out.push(Stmt::new(&format!("for {name} in {range} "), holes).block(block));
    }

    fn destructuring(&mut self, out: &mut Vec<Stmt>) {
        self.note("destructuring");
        let named = self.signature().named_dim;
        if !self.structs.is_empty() && self.rng.percent(40) {
            let i = self.rng.below(self.structs.len());
            let (field, ty) = self.structs[i].fields[0].clone();
            let (name, value) = (self.name("d"), self.expr(&Ty::Struct(i), 2));
            out.push(Stmt::new(&format!("let S{i} {{ {field}: {name}, .. }} = $;"), vec![value]));
            return self.declare(name, ty, false, false);
        }
        self.note("tuple");
        let parts: Vec<Ty> = (0..2 + self.rng.below(2)).map(|_| self.plain_type(named)).collect();
        let value = self.expr(&Ty::Tuple(parts.clone()), 3);
        let names: Vec<String> = parts.iter().map(|_| self.name("d")).collect();
        let mut pattern: Vec<String> = names.clone();
        pattern[0] = format!("mut {}", names[0]);
        out.push(Stmt::new(&format!("let ({}) = $;", pattern.join(", ")), vec![value]));
        for (i, (name, ty)) in names.into_iter().zip(parts).enumerate() {
            self.declare(name, ty, i == 0, false);
        }
    }

    fn leave_loop(&mut self, out: &mut Vec<Stmt>) {
        if self.loops == 0 {
            return self.assignment(out);
        }
        let word = if self.rng.percent(50) { "break" } else { "continue" };
        self.note(word);
        let condition = self.expr(&Ty::Bool, 2);
        out.push(Stmt::new(&format!("if $ {{ {word}; }}"), vec![condition]));
    }

    fn early_return(&mut self, out: &mut Vec<Stmt>) {
        self.note(if self.loops > 0 { "return in loop" } else { "early return" });
        let condition = self.expr(&Ty::Bool, 2);
        if self.signature().recursion == Recursion::Tail && self.rng.percent(50) {
            let call = self.self_call(2);
            let template = if self.signature().ret == Ty::Unit { "if $ { $; return; }" } else { "if $ { return $; }" };
            return out.push(Stmt::new(template, vec![condition, call]));
        }
        let value = self.result(2);
        out.push(Stmt::new("if $ { return$; }", vec![condition, value]));
    }

    fn print(&mut self, out: &mut Vec<Stmt>) {
        if self.signature().pure || self.place != Place::Function {
            return self.assignment(out);
        }
        self.note("print");
        let ty = self.plain_type(self.signature().named_dim);
        let mut value = self.expr(&ty, 1);
        if value.to_string().contains('\n') {
            // A block does not go into a message.
            let name = self.name("v");
            out.push(Stmt::new(&format!("let {name} = $;"), vec![value]));
            value = Expr::leaf(ty, name);
        }
        let text = self.rng.below(100);
        out.push(Stmt::new(&format!("print(\"p{text} {{$}}\");"), vec![value]));
    }

    fn emit(&mut self, out: &mut Vec<Stmt>) {
        if self.signature().pure || self.streams.is_empty() {
            return self.operator_assignment(out);
        }
        self.note("emit");
        let i = self.rng.below(self.streams.len());
        let fields = self.streams[i].clone();
        let values = fields.iter().map(|(_, ty)| self.expr(ty, 2)).collect();
        let holes: Vec<String> = fields.iter().map(|(name, _)| format!("{name}: $")).collect();
        out.push(Stmt::new(&format!("emit out{i}({});", holes.join(", ")), values));
    }

    fn assert(&mut self, out: &mut Vec<Stmt>) {
        self.note("assert");
        let holes = vec![self.expr(&Ty::Bool, 2), self.expr(&Ty::Int, 1), self.expr(&Ty::Int, 0)];
        out.push(Stmt::new("assert($ || $ % 3 != 1, \"wrong {$}\");", holes));
    }

    fn let_closure(&mut self, out: &mut Vec<Stmt>) {
        let element = if self.rng.percent(70) { Ty::Real } else { Ty::Int };
        let closure = self.closure(&element);
        let name = self.name("h");
        out.push(Stmt::new(&format!("let {name} = $;"), vec![closure]));
        self.declare(name, Ty::Closure(Box::new(element)), false, false);
    }

    fn call_statement(&mut self, out: &mut Vec<Stmt>) {
        match self.call_giving(&Ty::Unit, 2, None) {
            Some(call) => out.push(Stmt::new("$;", vec![call])),
            None => self.assignment(out),
        }
    }

    /// Calls of something that takes a function.
    fn apply(&mut self, out: &mut Vec<Stmt>) {
        let takes_function: Vec<Ty> = self.signatures[..self.current]
            .iter()
            .filter(|f| f.params.iter().any(|p| matches!(p.ty, Ty::Closure(_))) && f.ret != Ty::Unit && !f.named_dim)
            .map(|f| f.ret.clone())
            .collect();
        if takes_function.is_empty() {
            return self.let_statement(out);
        }
        let ty = self.rng.choose(&takes_function).clone();
        let Some(call) = self.call_giving(&ty, 2, None) else { return self.let_statement(out) };
        let name = self.name("v");
        out.push(Stmt::new(&format!("let mut {name} = $;"), vec![call]));
        self.declare(name, ty, true, false);
    }
}
