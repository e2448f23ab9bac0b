//! Bodies of functions, and calls.

use super::generator::{Generator, Place, Recursion, Var};
use super::program::{Block, Dim, Expr, Function, Param, Stmt, Ty};

/// Work of one call beyond which nobody calls a function again and again.
const MOST_WORK: usize = 400;

impl Generator {
    /// Writes the function whose signature stands at `index`.
    pub(super) fn function(&mut self, index: usize) -> Function {
        self.current = index;
        let signature = self.signatures[index].clone();
        self.vars = signature.params.iter().map(param_var).collect();
        (self.loops, self.times, self.cost, self.self_calls) = (0, 1, 0, 0);
        self.place = Place::Function;
        let mut stmts = Vec::new();
        if signature.recursion != Recursion::None {
            let base = self.result(1);
            stmts.push(Stmt::new("if fuel <= 0 { return$; }", vec![base]));
        }
        for _ in 0..1 + self.rng.below(5) {
            self.statement(2, &mut stmts);
        }
        let tail = self.tail(&signature.ret);
        self.signatures[index].cost = match signature.recursion {
            Recursion::None => self.cost + 1,
            Recursion::Tail => (self.cost + 1) * 10,
            Recursion::Tree => (self.cost + 1) * (1 + self.self_calls).pow(2).max(3),
        };
        Function {
            name: signature.name,
            named_dim: signature.named_dim,
            params: signature.params,
            ret: signature.ret,
            body: Block { stmts, tail },
        }
    }

    /// What `return` gives, with the blank before it.
    pub(super) fn result(&mut self, depth: usize) -> Expr {
        let ret = self.signature().ret.clone();
        if ret == Ty::Unit {
            return Expr::leaf(Ty::Unit, "");
        }
        let value = self.expr(&ret, depth);
        Expr::new(ret, " $", vec![value])
    }

    fn tail(&mut self, ret: &Ty) -> Option<Expr> {
        let recursion = self.signature().recursion;
        if recursion == Recursion::Tail {
            self.note("tail recursion");
            let call = self.self_call(2);
            if *ret == Ty::Unit {
                return Some(call);
            }
            if self.rng.percent(40) {
                let (c, other) = (self.expr(&Ty::Bool, 2), self.expr(ret, 1));
                return Some(Expr::new(ret.clone(), "if $ { $ } else { $ }", vec![c, other, call]));
            }
            return Some(call);
        }
        if *ret == Ty::Unit {
            return (recursion == Recursion::Tree && self.self_calls < 2).then(|| self.self_call(2));
        }
        if recursion == Recursion::Tree && self.self_calls < 2 && self.rng.percent(70) {
            let call = self.self_call(2);
            if let Ty::Int | Ty::Real = ret {
                let other = if self.rng.percent(50) { self.self_call(1) } else { self.expr(ret, 2) };
                let op = *self.rng.choose(&["($ + $)", "($ - $)", "max($, $)", "($ * $)"]);
                return Some(Expr::new(ret.clone(), op, vec![call, other]));
            }
            return Some(call);
        }
        Some(self.expr(ret, 3))
    }

    /// A call of the current function, or of its partner, with less fuel.
    pub(super) fn self_call(&mut self, depth: usize) -> Expr {
        self.note("recursion");
        if self.loops > 0 {
            self.note("recursion in loop");
        }
        self.self_calls += self.times;
        let elsewhere = self.rng.percent(70);
        let partner = self.signature().partner.filter(|_| elsewhere);
        let callee = partner.unwrap_or(self.current);
        self.call(callee, Dim::Named, depth, None)
    }

    /// A call of some function that gives `ty`, if there is one.
    pub(super) fn call_giving(&mut self, ty: &Ty, depth: usize, argument: Option<&Expr>) -> Option<Expr> {
        let mine = self.signature().clone();
        if mine.recursion == Recursion::Tree
            && mine.ret == *ty
            && self.place != Place::Closure
            && (self.place == Place::Function || mine.pure)
            && self.self_calls + self.times <= 3
            && self.rng.percent(50)
        {
            return Some(self.self_call(depth.saturating_sub(1)));
        }
        let mut dims = vec![Dim::Known(2), Dim::Known(3)];
        dims.extend(mine.named_dim.then_some(Dim::Named));
        let mut candidates = Vec::new();
        let callable = self.current.min(mine.partner.unwrap_or(usize::MAX));
        for (index, f) in self.signatures[..callable].iter().enumerate() {
            let most = if self.place == Place::Closure { MOST_WORK / 20 } else { MOST_WORK };
            let pure = f.pure || self.place == Place::Function && !mine.pure;
            if !pure || self.times * f.cost > most {
                continue;
            }
            for dim in if f.named_dim { &dims[..] } else { &dims[..1] } {
                let takes = |wanted: &Expr| f.params.iter().any(|p| p.ty.with_named(*dim) == wanted.ty && !p.shared);
                if f.ret.with_named(*dim) == *ty && argument.is_none_or(takes) {
                    candidates.push((index, *dim));
                }
            }
        }
        if candidates.is_empty() {
            return None;
        }
        self.note("call");
        let (index, dim) = *self.rng.choose(&candidates);
        self.cost += self.times * self.signatures[index].cost;
        Some(self.call(index, dim, depth.saturating_sub(1), argument))
    }

    /// A call in which `argument` goes where its type is wanted first.
    fn call(&mut self, index: usize, dim: Dim, depth: usize, argument: Option<&Expr>) -> Expr {
        let callee = self.signatures[index].clone();
        let recursive = index == self.current || self.signature().partner == Some(index);
        let rotate = recursive && self.rng.percent(45);
        let mut argument = argument.cloned();
        let args: Vec<Expr> = callee
            .params
            .iter()
            .map(|p| {
                let ty = p.ty.with_named(dim);
                if p.name == "fuel" {
                    return if recursive { Expr::leaf(Ty::Int, "fuel - 1") } else { self.fuel(callee.recursion) };
                }
                if p.shared {
                    return self.shared_argument(&ty, recursive);
                }
                if let Ty::Closure(element) = &ty {
                    return if recursive { Expr::leaf(ty.clone(), "g") } else { self.function_value(element) };
                }
                if let Some(value) = argument.take_if(|a| a.ty == ty) {
                    return value;
                }
                self.value_argument(&ty, rotate, depth)
            })
            .collect();
        let ret = callee.ret.with_named(dim);
        let takes_function = callee.params.iter().any(|p| matches!(p.ty, Ty::Closure(_)));
        let attempted = !takes_function && has_real(&ret) && self.rng.percent(15);
        let name = if attempted {
            self.note("attempt");
            format!("attempt({})", callee.name)
        } else {
            callee.name
        };
        let template = format!("{name}({})", vec!["$"; args.len()].join(", "));
        Expr::new(ret, &template, args)
    }

    fn fuel(&mut self, recursion: Recursion) -> Expr {
        let most = if recursion == Recursion::Tail { 20 } else { 4 };
        if self.rng.percent(25) {
            return Expr::leaf(Ty::Int, self.rng.below(most).to_string());
        }
        let value = self.expr(&Ty::Int, 1);
        Expr::new(Ty::Int, &format!("$ % {most}"), vec![value])
    }

    fn shared_argument(&mut self, ty: &Ty, recursive: bool) -> Expr {
        self.note("shared argument");
        // A shared value that recursion changes would be another function at every level.
        if recursive { Expr::leaf(ty.clone(), "s") } else { self.shared_expr(ty, 1) }
    }

    fn value_argument(&mut self, ty: &Ty, rotate: bool, depth: usize) -> Expr {
        let params: Vec<String> = self
            .signature()
            .params
            .iter()
            .filter(|p| p.ty == *ty && p.name != "fuel")
            .map(|p| p.name.clone())
            .collect();
        let in_scope: Vec<String> = params.into_iter().filter(|p| self.vars.iter().any(|v| v.name == *p)).collect();
        if rotate && in_scope.len() > 1 {
            self.note("rotation");
            let name = self.rng.choose(&in_scope).clone();
            return Expr::leaf(ty.clone(), name);
        }
        self.expr(ty, depth)
    }

    /// A closure or the name of a function.
    pub(super) fn function_value(&mut self, element: &Ty) -> Expr {
        let ty = Ty::Closure(Box::new(element.clone()));
        let known: Vec<String> = self.vars.iter().filter(|v| v.ty == ty).map(|v| v.name.clone()).collect();
        if !known.is_empty() && self.rng.percent(30) {
            let name = self.rng.choose(&known).clone();
            return Expr::leaf(ty, name);
        }
        if *element == Ty::Real && self.rng.percent(15) {
            self.note("function as value");
            let name = *self.rng.choose(&["square", "tanh", "sqrt", "abs", "log1p_exp"]);
            return Expr::leaf(ty, name);
        }
        self.closure(element)
    }

    pub(super) fn closure(&mut self, element: &Ty) -> Expr {
        self.note("closure");
        let name = self.name("c");
        let (place, vars) = (self.place, self.vars.len());
        self.place = Place::Closure;
        self.vars.push(Var { name: name.clone(), ty: element.clone(), mutable: false, shared: false, below: None });
        let body = self.expr(element, 2);
        let text = body.to_string();
        let captures = self.vars[..vars].iter().any(|v| text.contains(&v.name));
        self.vars.truncate(vars);
        self.place = place;
        if captures {
            self.note("closure capturing");
        }
        Expr::new(Ty::Closure(Box::new(element.clone())), &format!("|{name}: {element}| $"), vec![body])
    }
}

fn param_var(p: &Param) -> Var {
    let mutable = p.mutable;
    Var { name: p.name.clone(), ty: p.ty.clone(), mutable, shared: p.shared, below: None }
}

/// Whether a value of the type surely holds a real.
fn has_real(ty: &Ty) -> bool {
    match ty {
        Ty::Real => true,
        Ty::Array(element, _) => has_real(element),
        Ty::Tuple(parts) => parts.iter().any(has_real),
        _ => false,
    }
}
