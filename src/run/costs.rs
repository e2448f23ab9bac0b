//! What the cost model takes elementary things to cost.

use std::fmt;

/// Times in nanoseconds of one core, by which the cost model of a plan compares ways of running a block: only their ratios
/// matter, and they never change a result. The defaults are what `autobatch calibrate` measured on a core with AVX-512
/// (`benches/HISTORY.md` has the figures), rounded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs {
    /// To dispatch one step: to resolve its operands and call its kernel.
    pub(crate) step: f64,
    /// One addition of one element in one lane, operands in L1 or L2. Costs of primitives are in these.
    pub(crate) addition: f64,
    /// What it takes more to store one element of one lane under the mask.
    pub(crate) blend: f64,
    /// To compact one element of one lane, or to scatter it back.
    pub(crate) gather: f64,
    /// A unit is heavy when it costs at least this many times the median of all units. Waiting for more lanes at a unit
    /// saves a part of its arithmetic and costs some executions of cheaper units with fewer lanes. A lane runs a handful of
    /// cheap units for each heavy one (down and up a recursion), so the saving is sure to exceed the cost from about this
    /// ratio on.
    pub(crate) heavy: f64,
    /// To share an operation with threads that have nothing to do: to hand it out, and to wait for the last part.
    pub(crate) share: f64,
}

impl Default for Costs {
    fn default() -> Self {
        Self { step: 35.0, addition: 0.22, blend: 0.09, gather: 0.36, heavy: 8.0, share: 800.0 }
    }
}

impl Costs {
    fn fields(&mut self) -> [(&'static str, &mut f64); 6] {
        [
            ("step", &mut self.step),
            ("addition", &mut self.addition),
            ("blend", &mut self.blend),
            ("gather", &mut self.gather),
            ("heavy", &mut self.heavy),
            ("share", &mut self.share),
        ]
    }
    /// The defaults with some changed, as in `blend=0.2,gather=0.8`.
    ///
    /// # Errors
    /// For a name that there is not, and for what is no positive number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut costs = Self::default();
        for part in text.split(',') {
            let wrong =
                || format!("`{part}`: expected NAME=NUMBER, with one of step, addition, blend, gather, heavy, share");
            let (name, value) = part.split_once('=').ok_or_else(wrong)?;
            let value: f64 = value.trim().parse().map_err(|_| wrong())?;
            let mut fields = costs.fields();
            let field = fields.iter_mut().find(|(n, _)| *n == name.trim()).ok_or_else(wrong)?;
            if !value.is_finite() || value <= 0.0 {
                return Err(wrong());
            }
            *field.1 = value;
        }
        Ok(costs)
    }
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut costs = *self;
        let number = |value: f64| format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_owned();
        let parts: Vec<String> =
            costs.fields().into_iter().map(|(name, value)| format!("{name}={}", number(*value))).collect();
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read() {
        let costs = Costs { blend: 0.125, heavy: 3.0, ..Costs::default() };
        assert_eq!(Costs::parse(&costs.to_string()), Ok(costs));
        for wrong in ["", "blend", "blend=x", "blend=-1", "blend=inf", "colour=1"] {
            assert!(Costs::parse(wrong).is_err(), "{wrong}");
        }
    }
}
