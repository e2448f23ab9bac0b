//! Groups of steps that run tile by tile: some rows of their operands at a time, so that what is made and used inside
//! the group needs memory for a tile only, which stays in the cache.
//!
//! Sums and products over rows are defined by blocks of [`TILE_BLOCK`] rows added in order, so tiles of whole blocks
//! give the bits of the whole.

use crate::base::Loc;
use crate::plan::{Body, Compute, Source};
use crate::prim::Prim;

/// Rows of the smallest tile: a tile is a multiple of it, the last one aside. The block of sums and products.
pub const TILE_BLOCK: usize = crate::prim::BLOCK;

/// Where threads share the rows of tiles, each has as many as make up so many tiles of one thread. A tile of one is
/// read from the third cache in about 20 microseconds, and sharing each of its operations takes one or more.
const SHARED_TILES: usize = 4;

/// Steps of a block that share a long row axis and run for some rows at a time.
#[derive(Clone, PartialEq, Debug)]
pub struct Tiled {
    /// Extent of the row axis.
    pub rows: usize,
    /// The steps, in their order.
    pub steps: Vec<TiledStep>,
    /// What a tile moves through the cache.
    pub load: RowLoad,
    /// Bytes a lane of the values that live for a tile only, if they were kept whole; a real has 8.
    pub spared: usize,
}

/// What one row of a tile takes in the cache, in bytes; a real has 8.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RowLoad {
    /// In each lane.
    pub lane: usize,
    /// Of operands that are the same for all lanes.
    pub shared: usize,
}

impl RowLoad {
    /// Rows of a tile in a shard of this width: as many, in blocks of [`TILE_BLOCK`], as keep what moves through the
    /// cache within so many bytes of it; one block at least.
    fn tile_rows(self, width: usize, cache_bytes: usize) -> usize {
        let row = self.lane.saturating_mul(width).saturating_add(self.shared).max(1);
        (cache_bytes / row / TILE_BLOCK).max(1) * TILE_BLOCK
    }
}

/// A step of a group.
#[derive(Clone, PartialEq, Debug)]
pub struct TiledStep {
    /// What is computed; types are those of all rows. The result of a tile goes to `scratch`, or, where there is none, to
    /// `slot`; what is done with it after that is `result`.
    pub compute: Compute,
    /// Which part of each operand a tile reads.
    pub parts: Vec<Part>,
    /// What the result of a tile is.
    pub result: TileResult,
    /// Where it stands in the source.
    pub loc: Loc,
}

/// Which part of an operand a tile reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// All of it.
    Whole,
    /// What an earlier step of the group made for the same tile.
    Tile,
    /// Its own rows.
    Rows,
    /// A matrix `[k, rows]`, the same for all lanes: the columns that are its own rows.
    Columns,
    /// The same, of a matrix that is the transpose of what stands in memory: `[rows, k]`.
    Transposed,
}

/// What the result of a tile is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TileResult {
    /// Rows that nobody needs after the tile.
    Tile,
    /// Rows of a value that is kept.
    Rows,
    /// The result for all rows so far, complete after the last tile.
    Total,
}

impl TiledStep {
    /// Whether there is a function that costs less together with this one.
    pub fn has_twin(prim: Prim) -> bool {
        matches!(prim, Prim::Log1pExp | Prim::SumLog1pExp | Prim::InvLogit)
    }

    /// Whether two functions of the same values cost less together.
    pub fn are_twins(first: Prim, second: Prim) -> bool {
        matches!(
            (first, second),
            (Prim::Log1pExp | Prim::SumLog1pExp, Prim::InvLogit) | (Prim::InvLogit, Prim::Log1pExp | Prim::SumLog1pExp)
        )
    }

    /// Whether this step can run together with the one before it: both are functions of the same rows, and nobody needs
    /// their results after the tile, or one is a sum over all of them.
    pub fn twin_of(&self, before: &TiledStep) -> bool {
        let (a, b) = (&before.compute, &self.compute);
        let is_for_the_tile = |step: &TiledStep| match step.compute.prim {
            Prim::SumLog1pExp => step.result == TileResult::Total && step.compute.ty.elements() == 1,
            _ => step.result == TileResult::Tile,
        };
        TiledStep::are_twins(a.prim, b.prim)
            && [before, self].into_iter().all(is_for_the_tile)
            && a.args == b.args
            && before.parts == self.parts
            && !a.args[0].broadcast
            && a.slot != b.slot
            && [a.slot, b.slot].iter().all(|s| a.args[0].source != Source::Slot(*s))
            && a.scratch.unwrap_or(a.slot) != b.scratch.unwrap_or(b.slot)
    }
}

impl<T> Body<T> {
    /// Rows of a tile in a shard of this width: the same for all groups of the body. 0 without groups.
    pub fn tile_rows(&self, width: usize) -> usize {
        self.tile_rows_among(1, width)
    }
    /// The same, where so many threads share the rows of a tile: larger, since sharing takes its time.
    pub fn tile_rows_among(&self, threads: usize, width: usize) -> usize {
        match self.tiles {
            Some((load, rows)) => {
                let one = load.tile_rows(width, self.machine.cache_bytes);
                let tiles = if threads > 1 { SHARED_TILES.saturating_mul(threads) } else { 1 };
                one.saturating_mul(tiles).min(rows.next_multiple_of(TILE_BLOCK))
            }
            None => 0,
        }
    }
}
