//! Draws of a store, read a chunk at a time.

use std::ops::Range;

use super::array::LOST;
use super::{BLOCK, RunStore, StoredArray};
use crate::program::{Error, ErrorKind};
use crate::types::{Array, ArrayData, Type};

/// Rows of a chain, as they stand in a chunk.
pub(crate) struct StoredRows<'a> {
    /// Where the chain stands among those that are read.
    pub(crate) position: usize,
    /// The first of its draws.
    pub(crate) first: usize,
    /// How many there are.
    pub(crate) draws: usize,
    /// The elements of its draws, one draw after the other.
    pub(crate) data: &'a ArrayData,
}

impl RunStore {
    /// Reads an array along chains and draws: so many draws of these chains, chain × draw × event shape.
    ///
    /// # Errors
    /// Where a chunk is missing or damaged.
    pub fn read(&self, of: &StoredArray, chains: &[usize], draws: usize) -> Result<Array, Error> {
        let mut all = self.read_elements(of, (chains, draws), &(0..of.event()))?;
        all.shape.truncate(2);
        all.shape.extend_from_slice(&of.shape[2..]);
        Ok(all)
    }

    /// Reads of every event these elements, in row-major order: chain × draw × element.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn read_elements(
        &self,
        of: &StoredArray,
        (chains, draws): (&[usize], usize),
        elements: &Range<usize>,
    ) -> Result<Array, Error> {
        let width = elements.len();
        let mut all = Array::zeros(&Type::new(of.element.dtype(), [chains.len(), draws, width]));
        self.each_rows(of, (chains, draws), elements, |rows| {
            let at = (rows.position * draws + rows.first) * width;
            match (&mut all.data, rows.data) {
                (ArrayData::Bool(all), ArrayData::Bool(own)) => all[at..at + own.len()].copy_from_slice(own),
                (ArrayData::Int(all), ArrayData::Int(own)) => all[at..at + own.len()].copy_from_slice(own),
                (ArrayData::Real(all), ArrayData::Real(own)) => all[at..at + own.len()].copy_from_slice(own),
                _ => unreachable!("both are of the element type of the array"),
            }
        })?;
        // What is lost of draws whose parameters failed: no int is NaN.
        if all.as_int().is_some_and(|values| values.contains(&LOST)) {
            let values = all.as_int().unwrap_or_default().iter();
            all.data = ArrayData::Real(values.map(|x| if *x == LOST { f64::NAN } else { *x as f64 }).collect());
        }
        Ok(all)
    }

    /// Goes through these elements of so many draws of these chains, with no more than a chunk in memory.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn each_rows(
        &self,
        of: &StoredArray,
        (chains, draws): (&[usize], usize),
        elements: &Range<usize>,
        mut see: impl FnMut(StoredRows<'_>),
    ) -> Result<(), Error> {
        let mut position = 0;
        for in_block in chains.chunk_by(|a, b| a / BLOCK == b / BLOCK) {
            let number = in_block[0] / BLOCK;
            for at in 0..draws.div_ceil(of.rows()) {
                let file = of.chunk_file(number, at);
                let Some(chunk) = of.read_chunk(self.root(), &file)? else {
                    let message = format!("{} is missing", self.root().join(&file).display());
                    return Err(Error::new(ErrorKind::Io, message));
                };
                let first = at * of.rows();
                let count = of.rows().min(draws - first);
                for (i, chain) in in_block.iter().enumerate() {
                    let data = &of.rows_of(&chunk, chain % BLOCK, 0..count, elements);
                    see(StoredRows { position: position + i, first, draws: count, data });
                }
            }
            position += in_block.len();
        }
        Ok(())
    }
}
