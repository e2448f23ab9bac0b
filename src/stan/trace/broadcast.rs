//! Elementwise functions of Stan's library: numbers go with every element of containers, which have one shape.

use super::{Result, Tracer, wrong};
use crate::base::Span;
use crate::stan::value::{Base, Kind, Val};

/// Elementwise functions of one real that have the same name and meaning in the language.
const UNARY: &[&str] = &[
    "sqrt",
    "cbrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "log1m",
    "log1m_exp",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "inv_logit",
    "log_inv_logit",
    "log1p_exp",
    "inv_cloglog",
    "erf",
    "erfc",
    "Phi",
    "inv_Phi",
    "lgamma",
    "digamma",
    "trigamma",
    "floor",
    "ceil",
    "round",
    "trunc",
    "square",
    "logit",
    "Phi_approx",
    "tgamma",
    "inv_erfc",
    "lambert_w0",
    "lambert_wm1",
    "asinh",
    "acosh",
    "atanh",
    "inv",
    "inv_sqrt",
    "inv_square",
    "log1m_inv_logit",
    "std_normal_qf",
    "std_normal_log_qf",
];

/// The same of two numbers.
const BINARY: &[&str] = &[
    "atan2",
    "lbeta",
    "lmultiply",
    "log_diff_exp",
    "fdim",
    "hypot",
    "owens_t",
    "gamma_p",
    "gamma_q",
    "beta",
    "binary_log_loss",
    "lmgamma",
    "falling_factorial",
    "rising_factorial",
    "log_falling_factorial",
    "log_rising_factorial",
    "log_inv_logit_diff",
    "bessel_first_kind",
    "bessel_second_kind",
    "modified_bessel_first_kind",
    "modified_bessel_second_kind",
    "log_modified_bessel_first_kind",
    "choose",
    "ldexp",
    "hypergeometric_1F0",
];

/// Elementwise functions that the language has of numbers only: they are called for each element.
const OF_NUMBERS: &[&str] = &[
    "int",
    "smooth_trigamma",
    "lambert_w0",
    "lambert_wm1",
    "std_normal_log_qf",
    "owens_t",
    "gamma_p",
    "gamma_q",
    "lmgamma",
    "falling_factorial",
    "rising_factorial",
    "bessel_first_kind",
    "bessel_second_kind",
    "modified_bessel_first_kind",
    "modified_bessel_second_kind",
    "log_modified_bessel_first_kind",
    "choose",
];

/// The arguments of an elementwise function that are ints; the others are reals.
fn takes_int(name: &str, argument: usize) -> bool {
    match name {
        "lmgamma" | "bessel_first_kind" | "bessel_second_kind" | "binary_log_loss" => argument == 0,
        "modified_bessel_first_kind" | "modified_bessel_second_kind" => argument == 0,
        "falling_factorial" | "rising_factorial" | "ldexp" => argument == 1,
        "choose" => true,
        _ => false,
    }
}

/// A number, or the one at a place of a container.
pub(super) fn number(v: &Val, at: usize) -> Val {
    if v.is_scalar() {
        return v.clone();
    }
    v.pick(if v.kind.is_int() { Kind::INT } else { Kind::REAL }, vec![], std::iter::once(at))
}

impl Tracer<'_> {
    /// A function of Stan's that is elementwise under its own name; `None` for any other.
    pub(super) fn of_elements(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        let known = match args {
            [_] => UNARY.contains(&name),
            [_, _] => BINARY.contains(&name),
            _ => false,
        };
        if !known {
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
        let numbers = args.iter().enumerate();
        let args: Vec<Val> = numbers.map(|(i, v)| if takes_int(name, i) { v.clone() } else { v.promoted() }).collect();
        if !OF_NUMBERS.contains(&name) || shape.is_empty() {
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
