//! What Stan's grammar says and ours does not: statements and values have no place in `data` and `parameters`, and
//! constraints none in a local variable. The grammar takes them, so that the message can name them.

use crate::base::Diagnostic;
use crate::stan::syntax::ast::*;
use crate::stan::syntax::report_once;

/// Reports what stands where it may not.
pub(crate) fn check(program: &Program, diagnostics: &mut Vec<Diagnostic>) {
    let mut rules = Rules { diagnostics };
    for function in program.functions.iter().flat_map(|f| &f.items) {
        rules.local_all(function.body.iter().flatten());
    }
    for (name, block) in [("data", &program.data), ("parameters", &program.parameters)] {
        for stmt in block.iter().flat_map(|b| &b.stmts) {
            rules.declaration_only(name, stmt);
        }
    }
    for block in [&program.transformed_data, &program.transformed_parameters, &program.generated_quantities] {
        for stmt in block.iter().flat_map(|b| &b.stmts) {
            match stmt.kind {
                StmtKind::Declare { .. } => {}
                _ => rules.local(stmt),
            }
        }
    }
    rules.local_all(program.model.iter().flat_map(|b| &b.stmts));
}

struct Rules<'a> {
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Rules<'_> {
    fn report(&mut self, diagnostic: Diagnostic) {
        report_once(self.diagnostics, diagnostic);
    }

    /// A statement of `data` or `parameters`.
    fn declaration_only(&mut self, block: &str, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Declare { variables, .. } => {
                for variable in variables {
                    if let Some(value) = &variable.value {
                        let message = format!("`{}` gets a value in the block `{block}`", variable.name.text);
                        let help = match block {
                            "data" => "its value comes with the data; what is computed stands in `transformed data`",
                            _ => "its value is sampled; what is computed stands in `transformed parameters`",
                        };
                        let diagnostic = Diagnostic::error("E2016", message, value.span, "no value is given here");
                        self.report(diagnostic.with_help(help));
                    }
                }
            }
            StmtKind::Skip | StmtKind::Error => {}
            _ => {
                let message = format!("a statement stands in the block `{block}`");
                let diagnostic = Diagnostic::error("E2015", message, stmt.span, "declarations only");
                let of = if block == "data" { "transformed data" } else { "transformed parameters" };
                self.report(diagnostic.with_help(format!("move it to `{of}` or to `model`")));
            }
        }
    }

    fn local_all<'s>(&mut self, stmts: impl IntoIterator<Item = &'s Stmt>) {
        for stmt in stmts {
            self.local(stmt);
        }
    }

    /// A statement in which declared variables are local.
    fn local(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Declare { ty, variables } => {
                let name = variables.first().map_or("", |v| &v.name.text);
                self.unconstrained(name, ty);
            }
            StmtKind::If { then, otherwise, .. } => {
                self.local(then);
                if let Some(otherwise) = otherwise {
                    self.local(otherwise);
                }
            }
            StmtKind::While { body, .. } | StmtKind::For { body, .. } | StmtKind::ForEach { body, .. } => {
                self.local(body);
            }
            StmtKind::Profile { body, .. } | StmtKind::Block(body) => self.local_all(body),
            _ => {}
        }
    }

    /// A type of a local variable.
    fn unconstrained(&mut self, name: &str, ty: &SizedType) {
        match &ty.kind {
            SizedKind::Array { element, .. } => self.unconstrained(name, element),
            SizedKind::Tuple(parts) => parts.iter().for_each(|part| self.unconstrained(name, part)),
            _ => {}
        }
        if let Some(help) = instead(&ty.constraint) {
            let message = format!("the local variable `{name}` has a constraint");
            let label = "local variables have no constraints";
            let diagnostic = Diagnostic::error("E2017", message, ty.span, label);
            self.report(diagnostic.with_help(help));
        }
    }
}

/// What to write instead of a constraint.
fn instead(constraint: &Constraint) -> Option<&'static str> {
    Some(match constraint {
        Constraint::None => return None,
        Constraint::Lower(_)
        | Constraint::Upper(_)
        | Constraint::LowerUpper(..)
        | Constraint::Offset(_)
        | Constraint::Multiplier(_)
        | Constraint::OffsetMultiplier(..) => {
            "leave out what stands between `<` and `>`, or declare the variable at the top of its block"
        }
        Constraint::Ordered | Constraint::PositiveOrdered | Constraint::Simplex | Constraint::UnitVector => {
            "declare it as `vector[n]`"
        }
        Constraint::SumToZero => "declare it as `vector[n]` or `matrix[m, n]`",
        _ => "declare it as `matrix[m, n]`",
    })
}
