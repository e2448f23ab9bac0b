//! Making a failing program small: whatever can go without the failure going too, goes.

use std::time::Instant;

use super::program::{Block, Expr, Piece, Program, Stmt};

/// The smallest program that was found for which `fails` still holds, until `until`.
pub(crate) fn minimise(mut program: Program, until: Instant, fails: &mut dyn FnMut(&Program) -> bool) -> Program {
    loop {
        let before = program.to_string().len();
        for cut in [drop_function, drop_statements, drop_statement, unwrap_statement, simplify, replace_by_part] {
            shrink(&mut program, until, cut, fails);
        }
        if program.to_string().len() == before || Instant::now() >= until {
            return program;
        }
    }
}

/// A way to make a program smaller: the `i`-th of them. `None` when there is no `i`-th; `Some(false)` when it changes
/// nothing.
type Cut = fn(&mut Program, usize) -> Option<bool>;

fn shrink(program: &mut Program, until: Instant, cut: Cut, fails: &mut dyn FnMut(&Program) -> bool) {
    let mut i = 0;
    while Instant::now() < until {
        let mut candidate = program.clone();
        match cut(&mut candidate, i) {
            None => return,
            Some(true) if fails(&candidate) => *program = candidate,
            Some(_) => i += 1,
        }
    }
}

fn drop_function(program: &mut Program, i: usize) -> Option<bool> {
    if i + 1 >= program.functions.len() {
        return None;
    }
    program.functions.remove(i);
    Some(true)
}

/// The second half of the statements of the `i`-th block.
fn drop_statements(program: &mut Program, i: usize) -> Option<bool> {
    nth_block(program, i, |block| {
        let n = block.stmts.len();
        block.stmts.truncate(n / 2);
        n > 1
    })
}

fn drop_statement(program: &mut Program, i: usize) -> Option<bool> {
    nth_stmt(program, i, |block, at| {
        block.stmts.remove(at);
        true
    })
}

/// The statements inside of a statement in its place.
fn unwrap_statement(program: &mut Program, i: usize) -> Option<bool> {
    nth_stmt(program, i, |block, at| {
        let inner = block.stmts[at].pieces.iter().find_map(|piece| match piece {
            Piece::Block(inner) => Some(inner.stmts.clone()),
            _ => None,
        });
        match inner {
            Some(stmts) => {
                block.stmts.splice(at..=at, stmts);
                true
            }
            None => false,
        }
    })
}

/// The simplest value of its type for the `i`-th expression.
fn simplify(program: &mut Program, i: usize) -> Option<bool> {
    let structs = program.structs.clone();
    nth_expr(program, i, |expr| {
        let simple = Expr::leaf(expr.ty.clone(), expr.ty.simplest(&structs));
        let shorter = simple.to_string().len() < expr.to_string().len();
        if shorter {
            *expr = simple;
        }
        shorter
    })
}

/// A part of its own type for the `i`-th expression.
fn replace_by_part(program: &mut Program, i: usize) -> Option<bool> {
    nth_expr(program, i, |expr| {
        let part = part_of_type(expr, expr);
        let found = part.is_some();
        if let Some(part) = part {
            *expr = part;
        }
        found
    })
}

fn part_of_type(whole: &Expr, expr: &Expr) -> Option<Expr> {
    let exprs = expr.pieces.iter().filter_map(|piece| match piece {
        Piece::Expr(e) => Some(e),
        Piece::Block(block) => block.tail.as_ref(),
        Piece::Text(_) => None,
    });
    let exprs: Vec<&Expr> = exprs.collect();
    let direct = exprs.iter().find(|e| e.ty == whole.ty).map(|e| (*e).clone());
    direct.or_else(|| exprs.iter().find_map(|e| part_of_type(whole, e)))
}

fn nth_block(program: &mut Program, n: usize, change: impl Fn(&mut Block) -> bool) -> Option<bool> {
    let mut left = n;
    let mut result = None;
    walk(
        program,
        &mut |block| {
            if result.is_none() && left == 0 {
                result = Some(change(block));
            } else {
                left = left.saturating_sub(1);
            }
        },
        &mut |_| {},
    );
    result
}

fn nth_stmt(program: &mut Program, n: usize, change: impl Fn(&mut Block, usize) -> bool) -> Option<bool> {
    let mut before = 0;
    let mut result = None;
    walk(
        program,
        &mut |block| {
            let here = block.stmts.len();
            if result.is_none() && n >= before && n < before + here {
                result = Some(change(block, n - before));
            }
            before += here;
        },
        &mut |_| {},
    );
    result
}

fn nth_expr(program: &mut Program, n: usize, change: impl Fn(&mut Expr) -> bool) -> Option<bool> {
    let mut at = 0;
    let mut result = None;
    walk(program, &mut |_| {}, &mut |expr| {
        if result.is_none() && at == n {
            result = Some(change(expr));
        }
        at += 1;
    });
    result
}

/// All blocks and expressions, outer ones first.
fn walk(program: &mut Program, block: &mut dyn FnMut(&mut Block), expr: &mut dyn FnMut(&mut Expr)) {
    for function in &mut program.functions {
        walk_block(&mut function.body, block, expr);
    }
}

fn walk_block(b: &mut Block, block: &mut dyn FnMut(&mut Block), expr: &mut dyn FnMut(&mut Expr)) {
    block(b);
    for Stmt { pieces } in &mut b.stmts {
        walk_pieces(pieces, block, expr);
    }
    if let Some(tail) = &mut b.tail {
        walk_expr(tail, block, expr);
    }
}

fn walk_expr(e: &mut Expr, block: &mut dyn FnMut(&mut Block), expr: &mut dyn FnMut(&mut Expr)) {
    expr(e);
    walk_pieces(&mut e.pieces, block, expr);
}

fn walk_pieces(pieces: &mut [Piece], block: &mut dyn FnMut(&mut Block), expr: &mut dyn FnMut(&mut Expr)) {
    for piece in pieces {
        match piece {
            Piece::Text(_) => {}
            Piece::Expr(e) => walk_expr(e, block, expr),
            Piece::Block(b) => walk_block(b, block, expr),
        }
    }
}
