//! What the axes of a program's variables are called: by the data that are their extents, `J` of `vector[J] theta`.

use std::collections::HashSet;

use indexmap::IndexMap;

use super::syntax::ast::{Block, Expr, ExprKind, Program, SizedKind, SizedType, Stmt, StmtKind};

/// The axes of a variable, one after the other: a name, or none where the extent is something else than a datum.
type Named = Vec<Option<String>>;

/// The axes of all variables of data, parameters, transformed parameters and generated quantities that have names for some;
/// of tuples and complex variables none is known.
pub(super) fn of(program: &Program) -> IndexMap<String, Vec<Option<String>>> {
    let sizes: HashSet<&str> = (stmts(&program.data).iter().chain(stmts(&program.transformed_data)))
        .filter_map(|stmt| match &stmt.kind {
            StmtKind::Declare { ty: SizedType { kind: SizedKind::Int, .. }, variables } => Some(variables),
            _ => None,
        })
        .flatten()
        .map(|variable| &*variable.name.text)
        .collect();
    let named = |extent: &Expr| match &extent.kind {
        ExprKind::Variable(name) if sizes.contains(&*name.text) => Some(name.text.to_string()),
        _ => None,
    };
    let blocks = [&program.data, &program.parameters, &program.transformed_parameters, &program.generated_quantities];
    let mut all = IndexMap::new();
    for stmt in blocks.into_iter().flat_map(stmts) {
        let StmtKind::Declare { ty, variables } = &stmt.kind else { continue };
        let mut own = Vec::new();
        if !extents(ty, &mut own) {
            continue;
        }
        for variable in variables {
            let axes: Named = variable.old_dims.iter().chain(own.iter().copied()).map(named).collect();
            if axes.iter().any(Option::is_some) {
                all.insert(variable.name.text.to_string(), axes);
            }
        }
    }
    all
}

fn stmts(block: &Option<Block>) -> &[Stmt] {
    block.as_ref().map_or(&[], |block| &block.stmts)
}

/// The extents of a type, outermost first; `false` for one that is in several arrays.
fn extents<'p>(ty: &'p SizedType, into: &mut Vec<&'p Expr>) -> bool {
    match &ty.kind {
        SizedKind::Int | SizedKind::Real => true,
        SizedKind::Vector(n) | SizedKind::RowVector(n) => {
            into.push(n);
            true
        }
        SizedKind::Matrix(m, n) => {
            into.extend([&**m, &**n]);
            true
        }
        SizedKind::Array { dims, element } => {
            into.extend(dims);
            extents(element, into)
        }
        SizedKind::Complex
        | SizedKind::ComplexVector(_)
        | SizedKind::ComplexRowVector(_)
        | SizedKind::ComplexMatrix(..)
        | SizedKind::Tuple(_) => false,
    }
}
