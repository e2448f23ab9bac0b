//! Elementwise functions of Stan's library: numbers go with every element of containers, which have one shape.

use std::sync::LazyLock;

use super::{Result, Tracer, wrong};
use crate::base::{HashMap, Span};
use crate::stan::value::{Base, Kind, Val};

use Of::{Arrays, Numbers};
use Param::{Int, Real};

/// What an argument is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Param {
    Int,
    Real,
}

/// What the language has a function of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Numbers and arrays: it is called once.
    Arrays,
    /// Numbers only: it is called for each element.
    Numbers,
}

/// The name of a function, its arguments, and what the language has it of.
type Row = (&'static str, &'static [Param], Of);

/// Elementwise functions that have the same name and meaning in the language, and what they take. The last two are the
/// language's own.
const FUNCTIONS: &[Row] = &[
    ("sqrt", &[Real], Arrays),
    ("cbrt", &[Real], Arrays),
    ("exp", &[Real], Arrays),
    ("exp2", &[Real], Arrays),
    ("expm1", &[Real], Arrays),
    ("log", &[Real], Arrays),
    ("log2", &[Real], Arrays),
    ("log10", &[Real], Arrays),
    ("log1p", &[Real], Arrays),
    ("log1m", &[Real], Arrays),
    ("log1m_exp", &[Real], Arrays),
    ("sin", &[Real], Arrays),
    ("cos", &[Real], Arrays),
    ("tan", &[Real], Arrays),
    ("asin", &[Real], Arrays),
    ("acos", &[Real], Arrays),
    ("atan", &[Real], Arrays),
    ("sinh", &[Real], Arrays),
    ("cosh", &[Real], Arrays),
    ("tanh", &[Real], Arrays),
    ("inv_logit", &[Real], Arrays),
    ("log_inv_logit", &[Real], Arrays),
    ("log1p_exp", &[Real], Arrays),
    ("inv_cloglog", &[Real], Arrays),
    ("erf", &[Real], Arrays),
    ("erfc", &[Real], Arrays),
    ("Phi", &[Real], Arrays),
    ("inv_Phi", &[Real], Arrays),
    ("lgamma", &[Real], Arrays),
    ("digamma", &[Real], Arrays),
    ("trigamma", &[Real], Arrays),
    ("floor", &[Real], Arrays),
    ("ceil", &[Real], Arrays),
    ("round", &[Real], Arrays),
    ("trunc", &[Real], Arrays),
    ("square", &[Real], Arrays),
    ("logit", &[Real], Arrays),
    ("Phi_approx", &[Real], Arrays),
    ("tgamma", &[Real], Arrays),
    ("inv_erfc", &[Real], Arrays),
    ("lambert_w0", &[Real], Numbers),
    ("lambert_wm1", &[Real], Numbers),
    ("asinh", &[Real], Arrays),
    ("acosh", &[Real], Arrays),
    ("atanh", &[Real], Arrays),
    ("inv", &[Real], Arrays),
    ("inv_sqrt", &[Real], Arrays),
    ("inv_square", &[Real], Arrays),
    ("log1m_inv_logit", &[Real], Arrays),
    ("std_normal_qf", &[Real], Arrays),
    ("std_normal_log_qf", &[Real], Numbers),
    ("atan2", &[Real, Real], Arrays),
    ("lbeta", &[Real, Real], Arrays),
    ("lmultiply", &[Real, Real], Arrays),
    ("log_diff_exp", &[Real, Real], Arrays),
    ("fdim", &[Real, Real], Arrays),
    ("hypot", &[Real, Real], Arrays),
    ("owens_t", &[Real, Real], Numbers),
    ("gamma_p", &[Real, Real], Numbers),
    ("gamma_q", &[Real, Real], Numbers),
    ("beta", &[Real, Real], Arrays),
    ("binary_log_loss", &[Int, Real], Arrays),
    ("lmgamma", &[Int, Real], Numbers),
    ("falling_factorial", &[Real, Int], Numbers),
    ("rising_factorial", &[Real, Int], Numbers),
    ("log_falling_factorial", &[Real, Real], Arrays),
    ("log_rising_factorial", &[Real, Real], Arrays),
    ("log_inv_logit_diff", &[Real, Real], Arrays),
    ("bessel_first_kind", &[Int, Real], Numbers),
    ("bessel_second_kind", &[Int, Real], Numbers),
    ("modified_bessel_first_kind", &[Int, Real], Numbers),
    ("modified_bessel_second_kind", &[Int, Real], Numbers),
    ("log_modified_bessel_first_kind", &[Real, Real], Numbers),
    ("choose", &[Int, Int], Numbers),
    ("ldexp", &[Real, Int], Arrays),
    ("hypergeometric_1F0", &[Real, Real], Arrays),
    ("int", &[Real], Numbers),
    ("smooth_trigamma", &[Real], Numbers),
];

fn row(name: &str) -> Option<&'static Row> {
    static ROWS: LazyLock<HashMap<&str, &Row>> = LazyLock::new(|| FUNCTIONS.iter().map(|row| (row.0, row)).collect());
    ROWS.get(name).copied()
}

/// A number, or the one at a place of a container.
pub(super) fn number(v: &Val, at: usize) -> Val {
    if v.is_scalar() {
        return v.clone();
    }
    v.pick(if v.kind.is_int() { Kind::INT } else { Kind::REAL }, vec![], std::iter::once(at))
}

impl Tracer<'_> {
    /// Whether a function of Stan's of so many arguments is elementwise.
    pub(super) fn is_elementwise(&self, name: &str, args: usize) -> bool {
        row(name).is_some_and(|(_, params, _)| params.len() == args)
    }

    /// A function of Stan's that is elementwise under its own name; `None` for any other.
    pub(super) fn of_elements(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        if !self.is_elementwise(name, args.len()) {
            return Ok(None);
        }
        // The primitive has no derivative.
        let called = if name == "trigamma" && !args[0].is_known() { "smooth_trigamma" } else { name };
        let value = self.elementwise(span, called, args)?;
        if matches!(name, "falling_factorial" | "rising_factorial") && args.iter().all(|arg| arg.kind.is_int()) {
            return self.elementwise(span, "int", &[value]).map(Some);
        }
        Ok(Some(value))
    }

    /// A function of numbers, element by element; scalars go with every element.
    pub(super) fn elementwise(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Val> {
        let (container, shape) = self.spread(span, name, args)?;
        let base = match (name, container.base) {
            ("choose" | "int", _) => Base::Int,
            (_, Base::Int) => Base::Real,
            (_, base) => base,
        };
        let kind = Kind { base, ..container };
        // Any other function is one of reals, and of arrays.
        let (params, of) = row(name).map_or((&[][..], Arrays), |(_, params, of)| (params, *of));
        let is_int = |i: usize| params.get(i) == Some(&Int);
        let numbers = args.iter().enumerate();
        let args: Vec<Val> = numbers.map(|(i, v)| if is_int(i) { v.clone() } else { v.promoted() }).collect();
        if of == Arrays || shape.is_empty() {
            return self.call_ab(span, name, &args, kind, shape);
        }
        let each = if kind.is_int() { Kind::INT } else { Kind::REAL };
        self.each_element(&args, kind, shape, |t, numbers| t.call_ab(span, name, numbers, each, vec![]))
    }

    /// The kind and the shape of what is made of numbers and containers element by element.
    fn spread(&self, span: Span, name: &str, args: &[Val]) -> Result<(Kind, Vec<usize>)> {
        let largest = args.iter().max_by_key(|arg| (arg.shape.len(), !arg.kind.is_int(), arg.kind.base.rank()));
        let Some(largest) = largest else { return wrong(span, format!("{name} wants an argument")) };
        if let Some(other) = args.iter().find(|arg| !arg.is_scalar() && arg.shape != largest.shape) {
            return wrong(span, format!("{name}: sizes differ: {:?} and {:?}", largest.shape, other.shape));
        }
        Ok((largest.kind, largest.shape.clone()))
    }

    /// What a function gives of the numbers at each place of containers that have as many elements; numbers go with each.
    pub(super) fn each_element(
        &mut self,
        args: &[Val],
        kind: Kind,
        shape: Vec<usize>,
        mut of: impl FnMut(&mut Self, &[Val]) -> Result<Val>,
    ) -> Result<Val> {
        let n: usize = shape.iter().product();
        let mut elems = Vec::with_capacity(n);
        for at in 0..n {
            let numbers: Vec<Val> = args.iter().map(|v| number(v, at)).collect();
            elems.push(of(self, &numbers)?.elem(0));
        }
        Ok(Val::from_elems(kind, shape, elems))
    }

    /// The arguments as numbers and arrays of one length, and this length; no length where all are numbers.
    pub(super) fn aligned(&self, span: Span, name: &str, args: &[Val]) -> Result<(Option<usize>, Vec<Val>)> {
        let Some(n) = args.iter().find(|arg| !arg.is_scalar()).map(Val::len) else { return Ok((None, args.to_vec())) };
        if let Some(other) = args.iter().find(|arg| !arg.is_scalar() && arg.len() != n) {
            return wrong(span, format!("{name}: arguments of {n} and {} elements", other.len()));
        }
        let flat = |v: &Val| {
            let kind = if v.kind.is_int() { Kind { base: Base::Int, arrays: 1 } } else { Kind::VECTOR };
            if v.is_scalar() { v.clone() } else { v.reshaped(kind, vec![n]) }
        };
        Ok((Some(n), args.iter().map(flat).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_one_row() {
        let mut names: Vec<&str> = FUNCTIONS.iter().map(|(name, ..)| *name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
    }
}
