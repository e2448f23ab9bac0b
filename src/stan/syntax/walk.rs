//! Every statement and every expression of a program, to be changed where they stand.

use crate::stan::syntax::ast::*;

/// What is done at each node. Who wants the parts of a node, too, calls the function of the same name.
pub(crate) trait Walk {
    /// At a statement.
    fn stmt(&mut self, stmt: &mut Stmt) {
        stmt_parts(self, stmt);
    }
    /// At an expression.
    fn expr(&mut self, expr: &mut Expr) {
        expr_parts(self, expr);
    }
}

/// All of a program, in the order of its text. The caller has [room](crate::base::stack::with_room) for its depth.
pub(crate) fn program(walk: &mut (impl Walk + ?Sized), program: &mut Program) {
    for function in program.functions.iter_mut().flat_map(|f| &mut f.items) {
        function.body.iter_mut().flatten().for_each(|s| walk.stmt(s));
    }
    let blocks = [
        &mut program.data,
        &mut program.transformed_data,
        &mut program.parameters,
        &mut program.transformed_parameters,
        &mut program.model,
        &mut program.generated_quantities,
    ];
    for block in blocks.into_iter().flatten() {
        block.stmts.iter_mut().for_each(|s| walk.stmt(s));
    }
}

/// The parts of a statement.
pub(crate) fn stmt_parts(walk: &mut (impl Walk + ?Sized), stmt: &mut Stmt) {
    match &mut stmt.kind {
        StmtKind::Declare { ty, variables } => {
            sized_type(walk, ty);
            for variable in variables {
                variable.old_dims.iter_mut().for_each(|e| walk.expr(e));
                variable.value.iter_mut().for_each(|e| walk.expr(e));
            }
        }
        StmtKind::Assign { place, value, .. } => {
            walk.expr(place);
            walk.expr(value);
        }
        StmtKind::Call { args, .. } => args.iter_mut().for_each(|e| walk.expr(e)),
        StmtKind::Target(value) | StmtKind::Jacobian(value) => walk.expr(value),
        StmtKind::Tilde { value, args, truncation, .. } => {
            walk.expr(value);
            args.iter_mut().for_each(|e| walk.expr(e));
            for bound in truncation.iter_mut().flat_map(|t| [&mut t.lower, &mut t.upper]).flatten() {
                walk.expr(bound);
            }
        }
        StmtKind::Return(value) => value.iter_mut().for_each(|e| walk.expr(e)),
        StmtKind::Print(parts) | StmtKind::Reject(parts) | StmtKind::FatalError(parts) => {
            for part in parts {
                if let Printable::Value(value) = part {
                    walk.expr(value);
                }
            }
        }
        StmtKind::If { condition, then, otherwise } => {
            walk.expr(condition);
            walk.stmt(then);
            otherwise.iter_mut().for_each(|s| walk.stmt(s));
        }
        StmtKind::While { condition, body } => {
            walk.expr(condition);
            walk.stmt(body);
        }
        StmtKind::For { from, to, body, .. } => {
            walk.expr(from);
            walk.expr(to);
            walk.stmt(body);
        }
        StmtKind::ForEach { over, body, .. } => {
            walk.expr(over);
            walk.stmt(body);
        }
        StmtKind::Profile { body, .. } | StmtKind::Block(body) => body.iter_mut().for_each(|s| walk.stmt(s)),
        StmtKind::Break | StmtKind::Continue | StmtKind::Skip | StmtKind::Error => {}
    }
}

fn sized_type(walk: &mut (impl Walk + ?Sized), ty: &mut SizedType) {
    match &mut ty.constraint {
        Constraint::Lower(e) | Constraint::Upper(e) | Constraint::Offset(e) | Constraint::Multiplier(e) => walk.expr(e),
        Constraint::LowerUpper(a, b) | Constraint::OffsetMultiplier(a, b) => {
            walk.expr(a);
            walk.expr(b);
        }
        _ => {}
    }
    match &mut ty.kind {
        SizedKind::Int | SizedKind::Real | SizedKind::Complex => {}
        SizedKind::Vector(n)
        | SizedKind::RowVector(n)
        | SizedKind::ComplexVector(n)
        | SizedKind::ComplexRowVector(n) => walk.expr(n),
        SizedKind::Matrix(m, n) | SizedKind::ComplexMatrix(m, n) => {
            walk.expr(m);
            walk.expr(n);
        }
        SizedKind::Array { dims, element } => {
            dims.iter_mut().for_each(|e| walk.expr(e));
            sized_type(walk, element);
        }
        SizedKind::Tuple(parts) => parts.iter_mut().for_each(|part| sized_type(walk, part)),
    }
}

/// The parts of an expression.
pub(crate) fn expr_parts(walk: &mut (impl Walk + ?Sized), expr: &mut Expr) {
    match &mut expr.kind {
        ExprKind::Int(_)
        | ExprKind::Real(_)
        | ExprKind::Imaginary(_)
        | ExprKind::Variable(_)
        | ExprKind::Target
        | ExprKind::Error => {}
        ExprKind::Unary(_, e) | ExprKind::Transpose(e) | ExprKind::Paren(e) => walk.expr(e),
        ExprKind::TupleField { base, .. } => walk.expr(base),
        ExprKind::Binary(_, a, b) => {
            walk.expr(a);
            walk.expr(b);
        }
        ExprKind::Conditional(c, a, b) => {
            walk.expr(c);
            walk.expr(a);
            walk.expr(b);
        }
        ExprKind::Call { args, .. } => args.iter_mut().for_each(|e| walk.expr(e)),
        ExprKind::Array(parts) | ExprKind::RowVector(parts) | ExprKind::Tuple(parts) => {
            parts.iter_mut().for_each(|e| walk.expr(e));
        }
        ExprKind::Index { base, indices } => {
            walk.expr(base);
            for index in indices {
                match index {
                    Index::All(_) => {}
                    Index::Single(e) | Index::From(e) | Index::To(e) => walk.expr(e),
                    Index::Between(a, b) => {
                        walk.expr(a);
                        walk.expr(b);
                    }
                }
            }
        }
    }
}
