//! Functions of Stan's library that take or give complex numbers. Those that move elements, and those that are linear, are
//! applied to both parts.

use super::super::{Result, Tracer, unsupported, wrong};
use super::filled;
use crate::base::Span;
use crate::stan::syntax::ast::BinaryOp;
use crate::stan::value::{Elem, Kind, Val};

/// Functions that are the same of both parts.
const LINEAR: &[&str] = &["sum", "cumulative_sum", "add_diag", "trace"];
/// Functions of two values that are linear in each.
const BILINEAR: &[&str] = &["columns_dot_product", "rows_dot_product", "diag_pre_multiply", "diag_post_multiply"];
/// What an array is asked for that has nothing to do with its elements.
const SIZES: &[&str] = &["rows", "cols", "size", "num_elements", "dims"];

impl Tracer<'_> {
    /// A function that takes or gives complex numbers; `None` for any other.
    pub(in super::super) fn of_complex(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        match (name, args) {
            ("to_complex", _) => return self.made_of_parts(span, args).map(Some),
            ("polar", [r, theta]) => {
                // Stan has no number of a negative modulus.
                let there = self.compare(span, ">=", r, &Val::real(0.0))?;
                let r = self.select(span, &there, &r.promoted(), &Val::real(f64::NAN))?;
                return self.polar(span, &r, &theta.promoted()).map(Some);
            }
            _ if !args.iter().any(Val::is_complex) => return Ok(None),
            _ => {}
        }
        if SIZES.contains(&name) {
            return self.moved(span, name, &[args[0].re_im().0]);
        }
        if LINEAR.contains(&name) {
            return self.both_parts(args, |t, args| t.library(span, name, args)).map(Some);
        }
        if let (true, [a, b]) = (BILINEAR.contains(&name), args) {
            return self.bilinear(a, b, |t, a, b| t.library(span, name, &[a.clone(), b.clone()]), span).map(Some);
        }
        if let [z] = args
            && let Some(value) = self.complex_elementary(span, name, z)?
        {
            return Ok(Some(value));
        }
        if let Some(value) = self.of_numbers(span, name, args)? {
            return Ok(Some(value));
        }
        if let Some(value) = self.of_complex_matrices(span, name, args)? {
            return Ok(Some(value));
        }
        let moved = self.both_parts(args, |t, args| match t.moved(span, name, args)? {
            Some(value) => Ok(value),
            None => unsupported(span, format!("`{name}` of complex numbers")),
        });
        moved.map(Some)
    }

    /// `to_complex()`, `to_complex(re)`, `to_complex(re, im)`, element by element.
    fn made_of_parts(&mut self, span: Span, args: &[Val]) -> Result<Val> {
        let zero = Val::real(0.0);
        let (re, im) = match args {
            [] => (zero.clone(), zero),
            [re] => (re.clone(), filled(&re.promoted(), 0.0)),
            [re, im, ..] => (re.clone(), im.clone()),
        };
        let spread = |one: &Val, like: &Val| {
            let kind = like.promoted().kind;
            Val::from_elems(kind, like.shape.clone(), vec![one.elem(0).as_real(); like.len()])
        };
        if !re.is_scalar() && !im.is_scalar() && re.shape != im.shape {
            return wrong(span, format!("`to_complex` of sizes {:?} and {:?}", re.shape, im.shape));
        }
        Ok(match (re.is_scalar(), im.is_scalar()) {
            (true, false) => Val::complex(spread(&re, &im), im),
            (false, true) => {
                let im = spread(&im, &re);
                Val::complex(re, im)
            }
            _ => Val::complex(re, im),
        })
    }

    /// Functions of numbers, or of all the numbers of a value.
    fn of_numbers(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        Ok(Some(match (name, args) {
            ("get_real", [z]) => z.re_im().0,
            ("get_imag", [z]) => z.re_im().1,
            ("abs", [z]) => self.modulus(span, z)?,
            ("arg", [z]) => self.angle(span, z)?,
            ("norm", [z]) => self.squares(span, z)?,
            ("conj", [z]) => self.conjugate(span, z)?,
            ("proj", [z]) => self.projection(span, z)?,
            ("pow", [a, b]) => self.complex_power(span, a, b)?,
            ("prod", [z]) => {
                let mut product = Val::complex(Val::real(1.0), Val::real(0.0));
                for i in 0..z.len() {
                    let one = z.pick(Kind::REAL.complex(), vec![], std::iter::once(i));
                    product = if i == 0 { one } else { self.times(span, &product, &one)? };
                }
                product
            }
            // As Stan has it, of the conjugate of the first.
            ("dot_product", [a, b]) => {
                let a = self.conjugate(span, a)?;
                self.bilinear(&a, b, |t, a, b| t.library(span, "dot_product", &[a.clone(), b.clone()]), span)?
            }
            ("dot_self" | "columns_dot_self" | "rows_dot_self", [z]) => {
                let (re, im) = z.re_im();
                let (a, b) = (self.library(span, name, &[re])?, self.library(span, name, &[im])?);
                let sum = self.add(span, &a, &b)?;
                Val::complex(sum.clone(), filled(&sum, 0.0))
            }
            _ => return Ok(None),
        }))
    }

    /// |z|²
    fn squares(&mut self, span: Span, z: &Val) -> Result<Val> {
        let (re, im) = z.re_im();
        let (a, b) = (self.elementwise(span, "square", &[re])?, self.elementwise(span, "square", &[im])?);
        self.add(span, &a, &b)
    }

    pub(super) fn conjugate(&mut self, span: Span, z: &Val) -> Result<Val> {
        let (re, im) = z.re_im();
        Ok(Val::complex(re, self.minus(span, &im)?))
    }

    /// A number on the Riemann sphere: every infinite one is the same.
    fn projection(&mut self, span: Span, z: &Val) -> Result<Val> {
        let (re, im) = z.re_im();
        let (a, b) = (
            self.library(span, "is_inf", std::slice::from_ref(&re))?,
            self.library(span, "is_inf", std::slice::from_ref(&im))?,
        );
        let infinite = self.either(span, &a, &b)?;
        let there = Val::complex(Val::real(f64::INFINITY), Val::real(0.0));
        self.select(span, &infinite, &there, z)
    }

    fn of_complex_matrices(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        Ok(Some(match (name, args) {
            ("fft" | "inv_fft", [z]) => self.fourier(span, z, name == "inv_fft")?,
            ("fft2" | "inv_fft2", [z]) => self.fourier_of_matrix(span, z, name == "inv_fft2")?,
            ("mdivide_right", [b, a]) => self.complex_mdivide_right(span, b, a)?,
            ("symmetrize_from_lower_tri", [z]) => {
                let (re, im) = z.re_im();
                let re = self.library(span, name, &[re])?;
                // Above the diagonal are the conjugates of what is below.
                let (n, minus) = (im.shape[0], self.minus(span, &im)?);
                let elem = |at: usize| {
                    let (i, j) = (at / n, at % n);
                    if i < j { minus.elem(j * n + i) } else { im.elem(at) }
                };
                let elems: Vec<Elem> = (0..n * n).map(elem).collect();
                Val::complex(re, Val::from_elems(Kind::MATRIX, vec![n, n], elems))
            }
            _ => return Ok(None),
        }))
    }

    /// `b / a`: (x + x′i)(a + a′i) = b + b′i is [x x′] [a a′; −a′ a] = [b b′], of reals.
    fn complex_mdivide_right(&mut self, span: Span, b: &Val, a: &Val) -> Result<Val> {
        let [n, columns] = a.shape[..] else { return wrong(span, "`/` wants a matrix") };
        if n != columns || b.shape.last() != Some(&n) {
            return wrong(span, format!("`/` of sizes {:?} and {:?}", b.shape, a.shape));
        }
        let ((a, ai), (b, bi)) = (a.re_im(), b.re_im());
        let minus = self.minus(span, &ai)?;
        let mut joined = |name: &str, a: &Val, b: &Val| self.library(span, name, &[a.clone(), b.clone()]);
        let (above, below) = (joined("append_col", &a, &ai)?, joined("append_col", &minus, &a)?);
        let (all, given) = (joined("append_row", &above, &below)?, joined("append_col", &b, &bi)?);
        let solved = self.binary(span, BinaryOp::Divide, &given, &all)?;
        let rows = b.len() / n.max(1);
        let part = |from: usize| {
            let places = (0..rows).flat_map(move |i| (0..n).map(move |j| 2 * n * i + from + j));
            solved.pick(b.kind, b.shape.clone(), places)
        };
        Ok(Val::complex(part(0), part(n)))
    }
}
