//! Complex numbers. A complex value is its real and its imaginary part, two values of its own shape, and nodes of the
//! graph know nothing of them: operators and functions are made of those of the parts. A real has an imaginary part of
//! known zeros, and what is multiplied by these, or to which they are added, is left out.
//!
//! Where one array is wanted, for routines and data, the parts of each number stand side by side on an axis of two behind
//! the others: the value is *packed*.

mod elementary;
mod fourier;
mod functions;

use std::sync::Arc;

use super::{Result, Tracer, wrong};
use crate::base::Span;
use crate::stan::graph::Op;
use crate::stan::syntax::ast::BinaryOp;
use crate::stan::value::{Base, Elem, Kind, Val, What};
use crate::types::{Array, ArrayData, column_major};

/// The largest power that is made by products.
const MOST_PRODUCTS: i64 = 64;

impl Kind {
    /// The kind and the shape of a value as one array: those of a complex one have an axis of two behind the others.
    pub(super) fn packed(self, mut shape: Vec<usize>) -> (Kind, Vec<usize>) {
        if !self.is_complex() {
            return (self, shape);
        }
        shape.push(2);
        (Kind { base: Base::Real, arrays: shape.len() }, shape)
    }

    /// How routines are given it: whether as ints, and of which shape.
    pub(super) fn given(self, shape: &[usize]) -> (bool, Vec<usize>) {
        (self.is_int(), self.packed(shape.to_vec()).1)
    }
}

impl Val {
    /// A complex value of its parts.
    pub(super) fn complex(re: Val, im: Val) -> Val {
        let (re, im) = (re.promoted(), im.promoted());
        debug_assert_eq!(re.shape, im.shape);
        let (kind, shape) = (re.kind.complex(), re.shape.clone());
        Val { kind, shape, what: What::Parts(Arc::new(vec![re, Val { kind: kind.real(), ..im }])) }
    }

    pub(in crate::stan) fn is_complex(&self) -> bool {
        self.kind.is_complex()
    }

    /// The real and the imaginary part.
    pub(super) fn re_im(&self) -> (Val, Val) {
        self.clone().into_re_im()
    }

    /// The same where nobody else has them, so that they can be changed without a copy.
    pub(super) fn into_re_im(self) -> (Val, Val) {
        let What::Parts(parts) = self.what else {
            let re = self.promoted();
            let im = Val::known(re.kind, Array::real(re.shape.iter().copied(), vec![0.0; re.len()]));
            return (re, im);
        };
        let parts = Arc::try_unwrap(parts).unwrap_or_else(|parts| (*parts).clone());
        let [re, im] = <[Val; 2]>::try_from(parts).expect("a complex value has two parts");
        (re, im)
    }

    /// The value as one of this kind, to which it can be promoted.
    pub(super) fn of_kind(&self, kind: Kind) -> Val {
        if kind.is_complex() {
            let (re, im) = self.re_im();
            let part = kind.real();
            return Val::complex(Val { kind: part, ..re }, Val { kind: part, ..im });
        }
        let value = if kind.is_int() { self.clone() } else { self.promoted() };
        Val { kind, ..value }
    }

    /// Data as they were read: packed.
    pub(super) fn of_data(kind: Kind, array: Array) -> Val {
        let all = Kind { base: if kind.is_int() { Base::Int } else { Base::Real }, arrays: array.shape.len() };
        Val::known(all, array).unpacked(kind)
    }

    /// The value as one array.
    pub(super) fn packed(&self) -> Val {
        if !self.is_complex() {
            return self.clone();
        }
        let (re, im) = self.re_im();
        let elems: Vec<Elem> = re.elems().into_iter().zip(im.elems()).flat_map(|(re, im)| [re, im]).collect();
        let (kind, shape) = self.kind.packed(self.shape.clone());
        Val::from_elems(kind, shape, elems)
    }

    /// The value of this kind that was packed.
    pub(super) fn unpacked(self, kind: Kind) -> Val {
        if !kind.is_complex() {
            return Val { kind, ..self };
        }
        let shape = self.shape[..self.shape.len() - 1].to_vec();
        let n: usize = shape.iter().product();
        let part = |at: usize| self.pick(kind.real(), shape.clone(), (0..n).map(|i| 2 * i + at));
        Val::complex(part(0), part(1))
    }

    /// Whether it is known to be nothing but zeros.
    fn is_zero(&self) -> bool {
        if let Some(x) = self.as_real() {
            return x == 0.0;
        }
        match self.array().map(|array| &array.data) {
            Some(ArrayData::Real(v)) => v.iter().all(|x| *x == 0.0),
            Some(ArrayData::Int(v)) => v.iter().all(|i| *i == 0),
            _ => false,
        }
    }
}

impl Tracer<'_> {
    /// A function of both parts.
    pub(super) fn each_part(
        &mut self,
        z: &Val,
        mut function: impl FnMut(&mut Self, &Val) -> Result<Val>,
    ) -> Result<Val> {
        self.both_parts(std::slice::from_ref(z), |t, parts| function(t, &parts[0]))
    }

    /// A function of the real, and of the imaginary parts of values; those that are not complex are given to both.
    pub(super) fn both_parts(
        &mut self,
        values: &[Val],
        mut function: impl FnMut(&mut Self, &[Val]) -> Result<Val>,
    ) -> Result<Val> {
        let parts = |v: &Val| if v.is_complex() { v.re_im() } else { (v.clone(), v.clone()) };
        let (re, im): (Vec<Val>, Vec<Val>) = values.iter().map(parts).unzip();
        let re = function(self, &re)?;
        Ok(Val::complex(re, function(self, &im)?))
    }

    /// Parameters: for each number two of the unconstrained ones, inside of matrices column by column.
    pub(super) fn unconstrained_complex(
        &mut self,
        span: Span,
        first: &mut usize,
        kind: Kind,
        shape: Vec<usize>,
    ) -> Result<Val> {
        let n: usize = shape.iter().product();
        if n == 0 {
            return Ok(Tracer::unset(kind, shape));
        }
        // As they lie in memory: inside a matrix Stan's order is column-major.
        let mut lies = shape.clone();
        if kind.real().base == Base::Matrix {
            let rank = lies.len();
            lies.swap(rank - 2, rank - 1);
        }
        let places: Vec<usize> = column_major(&lies, kind.arrays).collect();
        lies.push(2);
        let own = Kind { base: Base::Real, arrays: lies.len() };
        let all = self.coordinates(span, *first, own, lies)?;
        *first += 2 * n;
        let part = |of: usize| all.pick(kind.real(), shape.clone(), places.iter().map(|at| 2 * at + of));
        Ok(Val::complex(part(0), part(1)))
    }

    /// An infix operator of which an operand is complex.
    pub(super) fn complex_binary(&mut self, span: Span, op: BinaryOp, a: &Val, b: &Val) -> Result<Val> {
        match op {
            BinaryOp::Add => self.complex_sum(span, "+", a, b),
            BinaryOp::Subtract => self.complex_sum(span, "-", a, b),
            BinaryOp::EltMultiply => self.times(span, a, b),
            // As Stan has it, of the conjugate of the row.
            BinaryOp::Multiply if (a.kind.real(), b.kind.real()) == (Kind::ROW_VECTOR, Kind::VECTOR) => {
                self.library(span, "dot_product", &[a.of_kind(a.kind.complex()), b.clone()])
            }
            BinaryOp::Multiply => self.complex_product(span, BinaryOp::Multiply, a, b),
            BinaryOp::EltDivide => self.over(span, a, b),
            BinaryOp::Divide if a.is_scalar() || b.is_scalar() => self.over(span, a, b),
            BinaryOp::Divide => self.library(span, "mdivide_right", &[a.clone(), b.clone()]),
            BinaryOp::Power | BinaryOp::EltPower => self.complex_power(span, a, b),
            BinaryOp::Equal | BinaryOp::NotEqual => {
                let ((a, ai), (b, bi)) = (a.re_im(), b.re_im());
                let (re, im) = (self.compare(span, "==", &a, &b)?, self.compare(span, "==", &ai, &bi)?);
                let same = self.both(span, &re, &im)?;
                if op == BinaryOp::Equal { Ok(same) } else { self.negated(span, &same) }
            }
            _ => wrong(span, format!("`{}` of complex numbers", op.symbol())),
        }
    }

    /// `a + b` or `a - b` of parts; what is known to be zero, and of no other shape than the other, is left out.
    fn part_sum(&mut self, span: Span, sign: &'static str, a: &Val, b: &Val) -> Result<Val> {
        let larger = |one: &Val, other: &Val| one.shape == other.shape || other.is_scalar();
        if b.is_zero() && larger(a, b) {
            return Ok(a.clone());
        }
        if a.is_zero() && larger(b, a) {
            return if sign == "+" { Ok(b.clone()) } else { self.minus(span, b) };
        }
        self.infix(span, sign, a, b)
    }

    fn complex_sum(&mut self, span: Span, sign: &'static str, a: &Val, b: &Val) -> Result<Val> {
        let ((a, ai), (b, bi)) = (a.re_im(), b.re_im());
        let re = self.infix(span, sign, &a, &b)?;
        Ok(Val::complex(re, self.part_sum(span, sign, &ai, &bi)?))
    }

    /// `-a` of a part.
    fn minus(&mut self, span: Span, a: &Val) -> Result<Val> {
        self.apply(span, Op::Negate, std::slice::from_ref(a), a.kind, a.shape.clone())
    }

    /// A product element by element, where scalars go with every element.
    fn times(&mut self, span: Span, a: &Val, b: &Val) -> Result<Val> {
        self.complex_product(span, BinaryOp::EltMultiply, a, b)
    }

    /// A product of this kind.
    fn complex_product(&mut self, span: Span, op: BinaryOp, a: &Val, b: &Val) -> Result<Val> {
        self.bilinear(a, b, |t, a, b| t.binary(span, op, a, b), span)
    }

    /// A function that is linear in both arguments: (a + a′i) (b + b′i) is a b − a′b′ + (a b′ + a′b) i.
    fn bilinear(
        &mut self,
        a: &Val,
        b: &Val,
        mut function: impl FnMut(&mut Self, &Val, &Val) -> Result<Val>,
        span: Span,
    ) -> Result<Val> {
        let ((a, ai), (b, bi)) = (a.re_im(), b.re_im());
        let main = function(self, &a, &b)?.promoted();
        let mut product = |t: &mut Self, x: &Val, y: &Val| -> Result<Val> {
            if x.is_zero() || y.is_zero() { Ok(filled(&main, 0.0)) } else { function(t, x, y) }
        };
        let (square, left, right) = (product(self, &ai, &bi)?, product(self, &a, &bi)?, product(self, &ai, &b)?);
        let re = self.part_sum(span, "-", &main, &square)?;
        Ok(Val::complex(re, self.part_sum(span, "+", &left, &right)?))
    }

    /// A quotient element by element: a times the conjugate of b / |b|, over |b|, which neither overflows nor vanishes
    /// where the quotient does not.
    fn over(&mut self, span: Span, a: &Val, b: &Val) -> Result<Val> {
        let (a, (b, bi)) = (&a.of_kind(a.kind.complex()), b.re_im());
        if bi.is_zero() {
            return self.each_part(a, |t, part| t.infix(span, "/", part, &b));
        }
        let size = self.elementwise(span, "hypot", &[b.clone(), bi.clone()])?;
        let direction = self.infix(span, "/", &b, &size)?;
        let opposite = self.infix(span, "/", &bi, &size)?;
        let conjugate = Val::complex(direction, self.minus(span, &opposite)?);
        let product = self.times(span, a, &conjugate)?;
        self.each_part(&product, |t, part| t.infix(span, "/", part, &size))
    }

    /// `a ^ b`, element by element: of a known whole number b by products, which are right at 0, too.
    fn complex_power(&mut self, span: Span, a: &Val, b: &Val) -> Result<Val> {
        let (exponent, imaginary) = b.re_im();
        let whole = exponent.as_real().filter(|x| x.fract() == 0.0 && x.abs() <= MOST_PRODUCTS as f64);
        if let (Some(n), true) = (whole, imaginary.is_zero()) {
            return self.whole_power(span, a, n as i64);
        }
        // The logarithm of 0 is a number here, so that 0 to a power is 0, and not an infinity's cosine.
        let (log, angle) = self.complex_log(span, a)?.re_im();
        let log = self.elementwise(span, "max", &[log, Val::real(-1e200)])?;
        let product = self.times(span, b, &Val::complex(log, angle))?;
        self.complex_exp(span, &product)
    }

    fn whole_power(&mut self, span: Span, a: &Val, n: i64) -> Result<Val> {
        let one = Val::complex(Val::real(1.0), Val::real(0.0));
        if n < 0 {
            let power = self.whole_power(span, a, -n)?;
            return self.over(span, &one, &power);
        }
        let (mut square, mut power, mut left) = (a.of_kind(a.kind.complex()), None, n);
        while left > 0 {
            if left % 2 == 1 {
                power = Some(match power {
                    None => square.clone(),
                    Some(power) => self.times(span, &power, &square)?,
                });
            }
            left /= 2;
            if left > 0 {
                square = self.times(span, &square, &square)?;
            }
        }
        let ones = || Val::complex(filled(&a.re_im().0, 1.0), filled(&a.re_im().0, 0.0));
        Ok(power.unwrap_or_else(ones))
    }
}

/// A number in the places of all elements.
fn filled(like: &Val, x: f64) -> Val {
    Val::known(like.kind, Array::real(like.shape.iter().copied(), vec![x; like.len()]))
}
