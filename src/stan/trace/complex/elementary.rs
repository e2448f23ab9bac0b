//! Elementary functions of complex numbers, element by element, by functions of the parts: principal values, as those of
//! C++. The inverse ones are Kahan's (Branch Cuts for Complex Elementary Functions, 1987): made of roots that are smooth
//! off the cuts, so that derivatives are right beside the real axis and on it.

use super::super::{Result, Tracer};
use crate::base::Span;
use crate::stan::value::Val;

type Parts = (Val, Val);

impl Tracer<'_> {
    /// A function of one complex number; `None` for any other.
    pub(super) fn complex_elementary(&mut self, span: Span, name: &str, z: &Val) -> Result<Option<Val>> {
        let rotated = |t: &mut Self, name: &str| -> Result<Val> {
            // −i f(i z)
            let turned = t.times_i(span, z)?;
            let value = t.complex_elementary(span, name, &turned)?.expect("there is this function");
            let (re, im) = value.re_im();
            Ok(Val::complex(im, t.minus(span, &re)?))
        };
        Ok(Some(match name {
            "exp" => self.complex_exp(span, z)?,
            "log" => self.complex_log(span, z)?,
            "log10" => {
                let log = self.complex_log(span, z)?;
                self.each_part(&log, |t, part| t.infix(span, "/", part, &Val::real(std::f64::consts::LN_10)))?
            }
            "sqrt" => self.complex_sqrt(span, z)?,
            "sin" => self.by_angle(span, z, ("sin", "cosh"), ("cos", "sinh"))?,
            "cos" => {
                let (re, im) = self.by_angle(span, z, ("cos", "cosh"), ("sin", "sinh"))?.re_im();
                Val::complex(re, self.minus(span, &im)?)
            }
            "sinh" => self.by_angle(span, z, ("sinh", "cos"), ("cosh", "sin"))?,
            "cosh" => self.by_angle(span, z, ("cosh", "cos"), ("sinh", "sin"))?,
            "tan" => self.complex_tan(span, z)?,
            "tanh" => rotated(self, "tan")?,
            "asin" => self.complex_asin(span, z)?,
            "acos" => self.complex_acos(span, z)?,
            "acosh" => self.complex_acosh(span, z)?,
            "atanh" => self.complex_atanh(span, z)?,
            "asinh" => rotated(self, "asin")?,
            "atan" => rotated(self, "atanh")?,
            _ => return Ok(None),
        }))
    }

    fn of_one(&mut self, span: Span, name: &str, x: &Val) -> Result<Val> {
        self.elementwise(span, name, std::slice::from_ref(x))
    }

    fn of_two(&mut self, span: Span, name: &str, x: &Val, y: &Val) -> Result<Val> {
        self.elementwise(span, name, &[x.clone(), y.clone()])
    }

    /// i z
    fn times_i(&mut self, span: Span, z: &Val) -> Result<Val> {
        let (re, im) = z.re_im();
        Ok(Val::complex(self.minus(span, &im)?, re))
    }

    /// f(x) g(y) + p(x) q(y) i
    fn by_angle(&mut self, span: Span, z: &Val, (f, g): (&str, &str), (p, q): (&str, &str)) -> Result<Val> {
        let (x, y) = z.re_im();
        let (f, g) = (self.of_one(span, f, &x)?, self.of_one(span, g, &y)?);
        let (p, q) = (self.of_one(span, p, &x)?, self.of_one(span, q, &y)?);
        let re = self.infix(span, "*", &f, &g)?;
        Ok(Val::complex(re, self.infix(span, "*", &p, &q)?))
    }

    /// A modulus and an angle.
    pub(super) fn polar(&mut self, span: Span, r: &Val, theta: &Val) -> Result<Val> {
        let (cos, sin) = (self.of_one(span, "cos", theta)?, self.of_one(span, "sin", theta)?);
        let re = self.infix(span, "*", r, &cos)?;
        Ok(Val::complex(re, self.infix(span, "*", r, &sin)?))
    }

    pub(super) fn modulus(&mut self, span: Span, z: &Val) -> Result<Val> {
        let (x, y) = z.re_im();
        self.of_two(span, "hypot", &x, &y)
    }

    pub(super) fn angle(&mut self, span: Span, z: &Val) -> Result<Val> {
        let (x, y) = z.re_im();
        self.of_two(span, "atan2", &y, &x)
    }

    pub(super) fn complex_exp(&mut self, span: Span, z: &Val) -> Result<Val> {
        let (x, y) = z.re_im();
        let r = self.of_one(span, "exp", &x)?;
        self.polar(span, &r, &y)
    }

    pub(super) fn complex_log(&mut self, span: Span, z: &Val) -> Result<Val> {
        let r = self.modulus(span, z)?;
        let log = self.of_one(span, "log", &r)?;
        Ok(Val::complex(log, self.angle(span, z)?))
    }

    fn complex_sqrt(&mut self, span: Span, z: &Val) -> Result<Val> {
        if let Some(root) = known_sqrt(z) {
            return Ok(root);
        }
        let r = self.modulus(span, z)?;
        let root = self.of_one(span, "sqrt", &r)?;
        let angle = self.angle(span, z)?;
        let half = self.infix(span, "*", &Val::real(0.5), &angle)?;
        self.polar(span, &root, &half)
    }

    /// With t = tan x and h = tanh y: (t / cosh² y + h (1 + t²) i) / (1 + t² h²).
    fn complex_tan(&mut self, span: Span, z: &Val) -> Result<Val> {
        let (x, y) = z.re_im();
        let (t, h, c) = (self.of_one(span, "tan", &x)?, self.of_one(span, "tanh", &y)?, self.of_one(span, "cosh", &y)?);
        let (t2, c2) = (self.of_one(span, "square", &t)?, self.of_one(span, "square", &c)?);
        let product = self.infix(span, "*", &t, &h)?;
        let square = self.of_one(span, "square", &product)?;
        let below = self.add(span, &Val::real(1.0), &square)?;
        let re = self.infix(span, "/", &t, &c2)?;
        let secant = self.add(span, &Val::real(1.0), &t2)?;
        let im = self.infix(span, "*", &h, &secant)?;
        self.each_part(&Val::complex(re, im), |t, part| t.infix(span, "/", part, &below))
    }

    /// The roots of 1 − z and 1 + z.
    fn roots_beside_one(&mut self, span: Span, z: &Val) -> Result<(Parts, Parts)> {
        let (x, y) = z.re_im();
        let one = Val::real(1.0);
        let less = Val::complex(self.infix(span, "-", &one, &x)?, self.minus(span, &y)?);
        let more = Val::complex(self.infix(span, "+", &one, &x)?, y);
        Ok((self.complex_sqrt(span, &less)?.re_im(), self.complex_sqrt(span, &more)?.re_im()))
    }

    /// a d − b c
    fn determinant_of(&mut self, span: Span, (a, b): (&Val, &Val), (c, d): (&Val, &Val)) -> Result<Val> {
        let (ad, bc) = (self.infix(span, "*", a, d)?, self.infix(span, "*", b, c)?);
        self.infix(span, "-", &ad, &bc)
    }

    fn complex_asin(&mut self, span: Span, z: &Val) -> Result<Val> {
        let ((a, ai), (b, bi)) = self.roots_beside_one(span, z)?;
        // The real part of the product, and the imaginary part of that of the conjugate of the first.
        let below = self.determinant_of(span, (&a, &ai), (&bi, &b))?;
        let over = self.determinant_of(span, (&a, &ai), (&b, &bi))?;
        let re = self.of_two(span, "atan2", &z.re_im().0, &below)?;
        Ok(Val::complex(re, self.of_one(span, "asinh", &over)?))
    }

    fn complex_acos(&mut self, span: Span, z: &Val) -> Result<Val> {
        let ((a, ai), (b, bi)) = self.roots_beside_one(span, z)?;
        let half = self.of_two(span, "atan2", &a, &b)?;
        let re = self.infix(span, "*", &Val::real(2.0), &half)?;
        let over = self.determinant_of(span, (&b, &bi), (&a, &ai))?;
        Ok(Val::complex(re, self.of_one(span, "asinh", &over)?))
    }

    fn complex_acosh(&mut self, span: Span, z: &Val) -> Result<Val> {
        let (x, y) = z.re_im();
        let one = Val::real(1.0);
        let less = Val::complex(self.infix(span, "-", &x, &one)?, y.clone());
        let more = Val::complex(self.infix(span, "+", &x, &one)?, y);
        let ((a, ai), (b, bi)) = (self.complex_sqrt(span, &less)?.re_im(), self.complex_sqrt(span, &more)?.re_im());
        let (products, others) = (self.infix(span, "*", &a, &b)?, self.infix(span, "*", &ai, &bi)?);
        let sum = self.add(span, &products, &others)?;
        let half = self.of_two(span, "atan2", &ai, &b)?;
        let im = self.infix(span, "*", &Val::real(2.0), &half)?;
        Ok(Val::complex(self.of_one(span, "asinh", &sum)?, im))
    }

    /// ½ asinh(2 x / (|1 − z| |1 + z|)) + ½ atan2(2 y, (1 − x)(1 + x) − y²) i
    fn complex_atanh(&mut self, span: Span, z: &Val) -> Result<Val> {
        let (x, y) = z.re_im();
        let number = Val::real;
        let (less, more) = (self.infix(span, "-", &number(1.0), &x)?, self.infix(span, "+", &number(1.0), &x)?);
        let (below, above) = (self.of_two(span, "hypot", &less, &y)?, self.of_two(span, "hypot", &more, &y)?);
        let twice = self.infix(span, "*", &number(2.0), &x)?;
        let part = self.infix(span, "/", &twice, &below)?;
        let sinh = self.infix(span, "/", &part, &above)?;
        let double = self.of_one(span, "asinh", &sinh)?;
        let re = self.infix(span, "*", &number(0.5), &double)?;
        let y2 = self.of_one(span, "square", &y)?;
        let product = self.infix(span, "*", &less, &more)?;
        let (double, rest) = (self.infix(span, "*", &number(2.0), &y)?, self.infix(span, "-", &product, &y2)?);
        let angle = self.of_two(span, "atan2", &double, &rest)?;
        Ok(Val::complex(re, self.infix(span, "*", &number(0.5), &angle)?))
    }
}

/// The roots of known numbers, of which those of negative reals have no real part.
fn known_sqrt(z: &Val) -> Option<Val> {
    let (re, im) = z.re_im();
    let roots = re.reals()?.into_iter().zip(im.reals()?).map(|(x, y)| {
        let size = x.hypot(y);
        if !size.is_finite() || size == 0.0 {
            let (r, angle) = (size.sqrt(), 0.5 * y.atan2(x));
            return if size == 0.0 { (0.0, y) } else { (r * angle.cos(), r * angle.sin()) };
        }
        let larger = (0.5 * (size + x.abs())).sqrt();
        let smaller = 0.5 * y.abs() / larger;
        if x >= 0.0 { (larger, smaller.copysign(y)) } else { (smaller, larger.copysign(y)) }
    });
    let (re_of, im_of): (Vec<f64>, Vec<f64>) = roots.unzip();
    let part = |v: Vec<f64>| Val::known(re.kind, crate::types::Array::real(re.shape.iter().copied(), v));
    Some(Val::complex(part(re_of), part(im_of)))
}
