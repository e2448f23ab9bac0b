//! How numbers go with the counters of loops: as one of them, or by a table.

use super::{Code, Emitter, Level};
use crate::types::Array;

/// The counters around a place, outermost first.
#[derive(Clone, Debug, Default)]
pub(super) struct Axes {
    pub(super) vars: Vec<String>,
    pub(super) extents: Vec<usize>,
}

impl Axes {
    pub(super) fn len(&self) -> usize {
        self.extents.iter().product()
    }
    pub(super) fn with(&self, var: &str, extent: usize) -> Axes {
        let mut axes = self.clone();
        axes.vars.push(var.to_owned());
        axes.extents.push(extent);
        axes
    }
    /// How far apart neighbours along each axis are.
    fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.extents.len()];
        for axis in (1..self.extents.len()).rev() {
            strides[axis - 1] = strides[axis] * self.extents[axis];
        }
        strides
    }
    /// Which axes values depend on.
    pub(super) fn depends<T: PartialEq>(&self, values: &[T]) -> Vec<bool> {
        let strides = self.strides();
        let mut found = vec![false; self.extents.len()];
        for (axis, extent) in self.extents.iter().enumerate() {
            let stride = strides[axis];
            found[axis] = (0..values.len()).any(|at| {
                let here = at / stride % extent;
                here > 0 && values[at] != values[at - stride]
            });
        }
        found
    }
    /// The values over the axes that they depend on, and the counters of these.
    pub(super) fn reduced<T: Clone + PartialEq>(&self, values: &[T]) -> (Vec<T>, Vec<String>, Vec<usize>) {
        let depends = self.depends(values);
        let strides = self.strides();
        let kept: Vec<usize> = (0..depends.len()).filter(|axis| depends[*axis]).collect();
        let extents: Vec<usize> = kept.iter().map(|axis| self.extents[*axis]).collect();
        let n: usize = extents.iter().product();
        let picked = (0..n).map(|flat| {
            let (mut rest, mut at) = (flat, 0);
            for axis in kept.iter().rev() {
                at += rest % self.extents[*axis] * strides[*axis];
                rest /= self.extents[*axis];
            }
            values[at].clone()
        });
        (picked.collect(), kept.iter().map(|axis| self.vars[*axis].clone()).collect(), extents)
    }
}

impl Emitter<'_> {
    /// Ints that go with the counters.
    pub(super) fn ints(&mut self, values: &[i64], axes: &Axes) -> Code {
        let (values, vars, extents) = axes.reduced(values);
        if vars.is_empty() {
            return super::int_literal(values[0]);
        }
        if let [var] = &vars[..]
            && values.windows(2).all(|w| w[1] == w[0] + 1)
        {
            return match values[0] {
                0 => Code::atom(var.clone()),
                first @ 1.. => Code { text: format!("{var} + {first}"), level: Level::Add },
                first => Code { text: format!("{var} - {}", -first), level: Level::Add },
            };
        }
        let table = self.table(Array::int(extents, values));
        Code::atom(format!("{table}[{}]", vars.join(", ")))
    }

    /// Reals that go with the counters.
    pub(super) fn reals(&mut self, values: &[f64], axes: &Axes) -> Code {
        let bits: Vec<u64> = values.iter().map(|x| x.to_bits()).collect();
        let (bits, vars, extents) = axes.reduced(&bits);
        if vars.is_empty() {
            return super::real_literal(values[0]);
        }
        let table = self.table(Array::real(extents, bits.into_iter().map(f64::from_bits).collect()));
        Code::atom(format!("{table}[{}]", vars.join(", ")))
    }
}
