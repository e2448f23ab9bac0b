//! The names of the two real arrays that a complex variable is outside of Stan programs.

const REAL: &str = ".real";
const IMAGINARY: &str = ".imag";

/// Of a complex number which real one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ComplexPart {
    /// The real part.
    Real,
    /// The imaginary part.
    Imaginary,
}

impl ComplexPart {
    /// What stands behind the name of a variable and its indices: `.real` or `.imag`.
    pub fn suffix(self) -> &'static str {
        match self {
            ComplexPart::Real => REAL,
            ComplexPart::Imaginary => IMAGINARY,
        }
    }

    /// The name of this part of a variable, `z.real`.
    pub fn of(self, variable: &str) -> String {
        format!("{variable}{}", self.suffix())
    }

    /// The variable, and which part of it a name names; `None` where it names none.
    pub fn named(name: &str) -> Option<(&str, Self)> {
        [ComplexPart::Real, ComplexPart::Imaginary]
            .into_iter()
            .find_map(|part| Some((name.strip_suffix(part.suffix())?, part)))
    }
}
