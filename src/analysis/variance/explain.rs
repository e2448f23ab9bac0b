//! The variance of variables in words: what it is, and the chain of what made it so.

use super::{FuncVar, Reason, Variances};
use crate::base::Loc;
use crate::cfg::{FuncId, Program, SharedSource, VarId};

/// Links of a chain that are told.
const LINKS: usize = 8;

impl Variances {
    /// One line for a variable: `varying: computed from `u` at line 3; `u` is drawn by `random_normal` at line 2`.
    pub fn explain(&self, program: &Program, func: FuncId, var: VarId) -> String {
        let found = self.get(func, var);
        let mut links = Vec::new();
        let mut at = FuncVar { func, var };
        while links.len() < LINKS {
            let subject = match links.is_empty() {
                true => String::new(),
                false => format!("{} ", name(program, func, at)),
            };
            let (text, next) = link(program, func, at, &self.get(at.func, at.var).reason, links.is_empty());
            links.push(format!("{subject}{text}"));
            match next {
                Some(next) if next != at => at = next,
                _ => break,
            }
        }
        format!("{}: {}", found.variance, links.join("; "))
    }
}

/// The name of a variable, with its function if that is not the one that is explained.
fn name(program: &Program, home: FuncId, place: FuncVar) -> String {
    let func = &program.funcs[place.func];
    let var = &func.vars[place.var].name;
    if place.func == home { format!("`{var}`") } else { format!("`{var}` of `{}`", func.name) }
}

fn line(loc: &Loc, home: &Loc) -> String {
    match (loc.line, loc.function == home.function) {
        (0, _) => "a place that the compiler made".to_owned(),
        (line, true) => format!("line {line}"),
        (line, false) => format!("line {line} of `{}`", loc.function),
    }
}

/// What a reason says, and the variable that the chain goes on with. `first`: no name stands before it.
fn link(program: &Program, home: FuncId, at: FuncVar, reason: &Reason, first: bool) -> (String, Option<FuncVar>) {
    let is = if first { "" } else { "is " };
    let line = |loc: &Loc| line(loc, &program.funcs[home].loc);
    let named = |place: &Option<FuncVar>, other: &str| match place {
        Some(place) => name(program, home, *place),
        None => other.to_owned(),
    };
    match reason {
        Reason::None => (format!("{is}made of constants only"), None),
        Reason::Shared(loc) => (format!("{is}computed from shared values only, first at {}", line(loc)), None),
        Reason::LaneInput => (format!("{is}an input of each lane"), None),
        Reason::Draw(prim, loc) => (format!("{is}drawn by `{prim}` at {}", line(loc)), None),
        Reason::Tape(loc) => (format!("{}off a tape at {}", if first { "" } else { "comes " }, line(loc)), None),
        Reason::Attempt(loc) => {
            (format!("{is}what the attempt at {} gives, which may trap in some lanes", line(loc)), None)
        }
        Reason::Operand(from, loc) if *from == at => (format!("{is}computed from itself at {}", line(loc)), None),
        Reason::Operand(from, loc) => {
            (format!("{is}computed from {} at {}", name(program, home, *from), line(loc)), Some(*from))
        }
        Reason::Branch(cond, loc) => {
            let cond_name = named(cond, "a shared condition");
            (format!("{is}decided by the branch on {cond_name} at {}", line(loc)), *cond)
        }
        Reason::Turns(loc) => {
            let text = format!("from turn to turn of the loop at {}, whose lanes go together", line(loc));
            (format!("changes {text}"), None)
        }
        Reason::Call(loc, call) => {
            let text = format!("changes from turn to turn of the loop at {}", line(loc));
            (format!("{text}, in which the call at {} parts the lanes", line(call)), None)
        }
        Reason::Cycle(loc) => (format!("changes in a cycle with several entries, at {}", line(loc)), None),
        Reason::Calls(a, b) => {
            (format!("{is}passed with different values by the calls at {} and {}", line(a), line(b)), None)
        }
        Reason::Argument(from, loc) => {
            (format!("{is}passed {} by the call at {}", named(from, "a shared value"), line(loc)), *from)
        }
        Reason::Result(from, loc) => {
            (format!("{is}given by the call at {}, where it is {}", line(loc), named(from, "a shared value")), *from)
        }
    }
}

/// The text form of a program with a comment for every variable: its variance and why.
pub fn print_explained(program: &Program) -> String {
    let variances = Variances::of(program);
    let text = crate::cfg::print_annotated(program, &|func, var| variances.explain(program, func, var));
    let computed =
        program.shared.values().filter(|s| !matches!(s.source, SharedSource::Input | SharedSource::Constant(_)));
    match computed.count() {
        0 => text,
        n => {
            format!("; {n} shared value{} computed once, before the lanes start\n{text}", if n == 1 { "" } else { "s" })
        }
    }
}
