//! Which primitives work row by row, and which add up over rows.

use smallvec::{SmallVec, smallvec};

use crate::plan::Part;
use crate::prim::{BatchRule, Prim};
use crate::types::{DType, Type};

/// Rows from which on an axis is worth tiles.
const LEAST_ROWS: usize = 512;

/// An operand, as far as the rules go.
pub(super) struct Operand {
    pub(super) ty: Type,
    /// Whether there is one value for all lanes.
    pub(super) broadcast: bool,
}

/// A way to run a primitive for some rows at a time.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// Which part of each operand it reads: `Whole`, `Rows` or `Columns`.
    pub(super) parts: SmallVec<[Part; 4]>,
    /// Whether it adds up over the rows; otherwise its result has a row for each.
    pub(super) total: bool,
}

/// The extent of the row axis of a primitive that could start a group.
pub(super) fn row_axis(prim: Prim, operands: &[Operand], result: &Type) -> Option<usize> {
    let rows = *result.shape.first()?;
    let starts = rows >= LEAST_ROWS && rules(prim, operands, result, rows).iter().any(|r| !r.total);
    starts.then_some(rows)
}

/// The ways to run a primitive for some of `rows` rows; none where it must have them all.
pub(super) fn rules(prim: Prim, operands: &[Operand], result: &Type, rows: usize) -> SmallVec<[Rule; 2]> {
    let mut found = SmallVec::new();
    found.extend(by_rows(prim, operands, result, rows).map(|parts| Rule { parts, total: false }));
    found.extend(over_rows(prim, operands, result, rows).map(|parts| Rule { parts, total: true }));
    found
}

fn leads(ty: &Type, rows: usize) -> bool {
    ty.shape.first() == Some(&rows)
}

/// Row r of the result depends on row r of operands and on what is the same for all rows.
fn by_rows(prim: Prim, operands: &[Operand], result: &Type, rows: usize) -> Option<SmallVec<[Part; 4]>> {
    if !leads(result, rows) {
        return None;
    }
    let spread = |o: &Operand| spread(o, rows);
    match prim.row().batch {
        BatchRule::Elementwise => operands.iter().map(spread).collect(),
        BatchRule::Movement => match prim {
            Prim::Fill => operands.iter().map(spread).collect(),
            Prim::Reshape | Prim::TransposeEach if leads(&operands[0].ty, rows) => Some(smallvec![Part::Rows]),
            // The array at hand, then scalars and arrays of a place for each row.
            Prim::Gather => [Some(Part::Whole)].into_iter().chain(operands[1..].iter().map(spread)).collect(),
            _ => None,
        },
        BatchRule::Contraction => match prim.ordinary() {
            Prim::MatMul if operands[0].ty.shape.len() == 2 => Some(smallvec![Part::Rows, Part::Whole]),
            Prim::BatchMatMul => Some(smallvec![Part::Rows, Part::Rows]),
            _ => None,
        },
        // A matrix, and a right-hand side, for each row.
        BatchRule::Triangular => {
            let all = operands.iter().all(|o| o.ty.shape.len() == 3 && leads(&o.ty, rows));
            all.then(|| operands.iter().map(|_| Part::Rows).collect())
        }
        // Along other axes.
        BatchRule::Reduction => leads(&operands[0].ty, rows).then(|| smallvec![Part::Rows]),
        BatchRule::Random => None,
    }
}

/// The part of an operand whose scalars and extents of 1 stand for all rows.
fn spread(operand: &Operand, rows: usize) -> Option<Part> {
    if leads(&operand.ty, rows) {
        return Some(Part::Rows);
    }
    (operand.ty.is_scalar() || operand.ty.shape[0] == 1).then_some(Part::Whole)
}

/// The result is a sum, product, least or largest element over the rows.
fn over_rows(prim: Prim, operands: &[Operand], result: &Type, rows: usize) -> Option<SmallVec<[Part; 4]>> {
    let row_operands = |parts: SmallVec<[Part; 4]>| {
        let mut both = parts.iter().zip(operands);
        both.all(|(part, o)| *part == Part::Columns || leads(&o.ty, rows)).then_some(parts)
    };
    match prim.row().batch {
        BatchRule::Reduction if leads(result, rows) => None,
        BatchRule::Reduction => row_operands(smallvec![Part::Rows]),
        // What is added to, what is added, and the places: scalars, or one for each row. Which of an overflow and a wrong
        // place counts is known only when all places are: ints are left out.
        BatchRule::Movement
            if prim == Prim::ScatterAdd && result.dtype == DType::Real && leads(&operands[1].ty, rows) =>
        {
            let places: Option<SmallVec<[Part; 4]>> = operands[2..].iter().map(|o| spread(o, rows)).collect();
            let parts = |places| [Part::Whole, Part::Rows].into_iter().chain(places).collect();
            places.filter(|p| p.contains(&Part::Rows)).map(parts)
        }
        BatchRule::Contraction => {
            let (a, b) = (operands.first()?, operands.get(1)?);
            if a.broadcast && b.broadcast {
                return None;
            }
            match (prim.ordinary(), a.ty.shape.len()) {
                (Prim::Dot, _) | (Prim::MatMul, 1) => row_operands(smallvec![Part::Rows, Part::Rows]),
                (Prim::MatMul, _) if a.broadcast => row_operands(smallvec![Part::Columns, Part::Rows]),
                _ => None,
            }
        }
        _ => None,
    }
}
