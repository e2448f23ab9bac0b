//! Extents: polynomials over dimension parameters.

use std::collections::BTreeMap;
use std::fmt;

use smallvec::SmallVec;

use super::DimId;
use crate::base::{Id as _, IdVec};

/// Dimension parameters that are multiplied, ascending, at least one; one that stands twice is squared.
pub type Product = SmallVec<[DimId; 2]>;

/// Most terms of an extent, and most factors of one.
const MOST_TERMS: usize = 1000;
/// Most combinations of rests that are tried to show that a quotient is whole.
const MOST_RESTS: u64 = 1 << 12;

/// An extent: `(constant + Σ coefficient · product of parameters) / divisor`, a whole number whatever the parameters
/// are. Equal extents are equal values: the coefficients and the divisor have no common factor.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Dim {
    /// The constant.
    pub constant: i64,
    /// Coefficients, none of them 0.
    pub terms: BTreeMap<Product, i64>,
    /// What all is divided by, at least 1: 2 in `n * (n - 1) / 2`.
    pub divisor: i64,
}

impl Default for Dim {
    fn default() -> Self {
        Self::constant(0)
    }
}

impl Dim {
    /// A number.
    pub fn constant(constant: i64) -> Self {
        Self { constant, terms: BTreeMap::new(), divisor: 1 }
    }
    /// A parameter.
    pub fn param(id: DimId) -> Self {
        Self { constant: 0, terms: BTreeMap::from([(Product::from_slice(&[id]), 1)]), divisor: 1 }
    }
    /// The parameters in it, ascending, each once.
    pub fn ids(&self) -> impl Iterator<Item = DimId> {
        let mut ids: Vec<DimId> = self.terms.keys().flatten().copied().collect();
        ids.sort_unstable();
        ids.dedup();
        ids.into_iter()
    }
    /// `self + factor · other`; `None` on overflow.
    pub fn add_scaled(&self, other: &Dim, factor: i64) -> Option<Dim> {
        let shared = gcd(self.divisor, other.divisor);
        let (mine, theirs) = (other.divisor / shared, self.divisor / shared);
        let mut sum = self.scaled(mine)?;
        sum.divisor = self.divisor.checked_mul(mine)?;
        sum.add(&[], other.constant, factor.checked_mul(theirs)?)?;
        for (product, c) in &other.terms {
            sum.add(product, *c, factor.checked_mul(theirs)?)?;
        }
        Some(sum.reduced())
    }
    /// `self · other`; `None` on overflow, or when it has too many terms.
    pub fn product(&self, other: &Dim) -> Option<Dim> {
        let mut product = Dim { divisor: self.divisor.checked_mul(other.divisor)?, ..Dim::default() };
        for (left, c) in self.all_terms() {
            for (right, d) in other.all_terms() {
                let mut both: Product = left.iter().chain(right).copied().collect();
                both.sort_unstable();
                if both.len() > MOST_TERMS {
                    return None;
                }
                product.add(&both, c, d)?;
            }
        }
        (product.terms.len() <= MOST_TERMS).then(|| product.reduced())
    }
    /// `self / divisor`, if that is whole whatever the parameters are.
    pub fn quotient(&self, divisor: i64) -> Option<Dim> {
        let sign = divisor.signum();
        let mut quotient = self.scaled(sign)?;
        quotient.divisor = self.divisor.checked_mul(divisor.checked_abs().filter(|d| *d > 0)?)?;
        let quotient = quotient.reduced();
        quotient.is_whole().then_some(quotient)
    }
    /// Whether the divisor divides every value: what a polynomial leaves depends on what its parameters leave.
    fn is_whole(&self) -> bool {
        if self.divisor == 1 {
            return true;
        }
        let ids: Vec<DimId> = self.ids().collect();
        let rests = u32::try_from(ids.len()).ok().and_then(|n| (self.divisor as u64).checked_pow(n));
        if rests.is_none_or(|rests| rests > MOST_RESTS) {
            return false;
        }
        let divisor = i128::from(self.divisor);
        (0..rests.unwrap_or(0) as i128).all(|mut rest| {
            let mut values = BTreeMap::new();
            for id in &ids {
                values.insert(*id, rest % divisor);
                rest /= divisor;
            }
            let value = |product: &[DimId]| product.iter().fold(1, |x, id| x * values[id] % divisor);
            let sum: i128 = self.all_terms().map(|(product, c)| i128::from(c) % divisor * value(product)).sum();
            sum % divisor == 0
        })
    }
    /// All terms, the constant as the product of nothing; some may be 0. Without the divisor.
    pub fn all_terms(&self) -> impl Iterator<Item = (&[DimId], i64)> {
        std::iter::once((&[][..], self.constant)).chain(self.terms.iter().map(|(product, c)| (&product[..], *c)))
    }
    /// Without the divisor.
    pub fn numerator(&self) -> Dim {
        Dim { divisor: 1, ..self.clone() }
    }
    fn scaled(&self, factor: i64) -> Option<Dim> {
        let mut scaled = Dim { divisor: self.divisor, ..Dim::default() };
        for (product, c) in self.all_terms() {
            scaled.add(product, c, factor)?;
        }
        Some(scaled)
    }
    /// Adds `c · factor · product`.
    fn add(&mut self, product: &[DimId], c: i64, factor: i64) -> Option<()> {
        let more = c.checked_mul(factor)?;
        if product.is_empty() {
            self.constant = self.constant.checked_add(more)?;
            return Some(());
        }
        let key = Product::from_slice(product);
        let sum = self.terms.get(&key).copied().unwrap_or(0).checked_add(more)?;
        if sum == 0 {
            self.terms.remove(&key);
        } else {
            self.terms.insert(key, sum);
        }
        Some(())
    }
    /// Without common factors of coefficients and divisor.
    fn reduced(mut self) -> Dim {
        let common = self.all_terms().fold(self.divisor, |common, (_, c)| gcd(common, c));
        if common > 1 {
            self.constant /= common;
            self.terms.values_mut().for_each(|c| *c /= common);
            self.divisor /= common;
        }
        self
    }
    /// The number, if it has no parameters.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }
    /// The parameter, if it stands alone.
    pub fn alone(&self) -> Option<DimId> {
        let mut terms = self.terms.iter();
        match (self.constant, self.divisor, terms.next(), terms.next()) {
            (0, 1, Some((product, 1)), None) if product.len() == 1 => product.first().copied(),
            _ => None,
        }
    }
    /// Its value; `None` on overflow. Every parameter must have one.
    pub fn eval(&self, dims: &IdVec<DimId, i64>) -> Option<i64> {
        self.eval_with(|id| dims[id])
    }
    /// Its value where the parameters have these; `None` on overflow.
    pub fn eval_with(&self, value: impl Fn(DimId) -> i64) -> Option<i64> {
        let mut sum: i128 = 0;
        for (product, c) in self.all_terms() {
            let factors = product.iter().map(|id| i128::from(value(*id)));
            let term = factors.into_iter().try_fold(i128::from(c), i128::checked_mul)?;
            sum = sum.checked_add(term)?;
        }
        let divisor = i128::from(self.divisor);
        if sum % divisor == 0 { i64::try_from(sum / divisor).ok() } else { None }
    }
    /// With each parameter replaced; `None` on overflow.
    pub fn substitute(&self, args: &[Dim]) -> Option<Dim> {
        let mut sum = Dim::default();
        for (product, c) in self.all_terms() {
            let term = product.iter().try_fold(Dim::constant(1), |term, id| term.product(&args[id.index()]))?;
            sum = sum.add_scaled(&term, c)?;
        }
        sum.divisor = sum.divisor.checked_mul(self.divisor)?;
        Some(sum.reduced())
    }
    /// The numbers from 0 on that give a form over one parameter this value; no more than two of them, ascending.
    /// `None` where they are not looked for, because they could be larger than any extent has a root.
    pub fn roots(&self, value: i64) -> Option<SmallVec<[i64; 2]>> {
        /// Larger numbers have squares that are larger than any extent.
        const MOST: f64 = (1_u64 << 22) as f64;
        let degree = self.terms.keys().map(|product| product.len()).max()?;
        let mut coefficients = vec![0.0; degree + 1];
        self.all_terms().for_each(|(product, c)| coefficients[product.len()] = c as f64);
        coefficients[0] -= value as f64 * self.divisor as f64;
        // Lagrange's bound of the roots.
        let bound = (1..=degree).map(|i| (coefficients[degree - i] / coefficients[degree]).abs().powf(1.0 / i as f64));
        let most = 2.0 * bound.fold(0.0, f64::max) + 1.0;
        if most > MOST {
            return None;
        }
        let roots = (0..=most as i64).filter(|candidate| self.eval_with(|_| *candidate) == Some(value));
        Some(roots.take(2).collect())
    }
    /// The one number from 0 on that gives a form over one parameter this value; none where there is none, or more than
    /// one.
    pub fn root(&self, value: i64) -> Option<i64> {
        let roots = self.roots(value)?;
        roots.first().copied().filter(|_| roots.len() == 1)
    }
    /// `self / factor` for a coefficient times parameters, when it goes without a remainder.
    pub fn divided(&self, coefficient: i64, factor: &[DimId]) -> Option<Dim> {
        let mut quotient = Dim { divisor: self.divisor.checked_mul(coefficient.checked_abs()?)?, ..Dim::default() };
        for (product, c) in self.all_terms().filter(|(_, c)| *c != 0) {
            let mut rest = Product::from_slice(product);
            for id in factor {
                let at = rest.iter().position(|other| other == id)?;
                rest.remove(at);
            }
            quotient.add(&rest, c, coefficient.signum())?;
        }
        let quotient = quotient.reduced();
        (coefficient != 0 && quotient.is_whole()).then_some(quotient)
    }
    /// In the user's words: `n`, `2 * d + 1`, `(n * n - n) / 2`.
    pub fn display(&self, names: &IdVec<DimId, String>) -> String {
        let mut text = String::new();
        let mut terms: Vec<(&Product, &i64)> = self.terms.iter().collect();
        terms.sort_by_key(|(product, _)| std::cmp::Reverse(product.len()));
        for (product, c) in terms {
            let sign = if *c < 0 { "-" } else { "+" };
            if !text.is_empty() {
                text += &format!(" {sign} ");
            } else if *c < 0 {
                text += "-";
            }
            let factors: Vec<&str> = product.iter().map(|id| names[*id].as_str()).collect();
            match c.unsigned_abs() {
                1 => text += &factors.join(" * "),
                n => text += &format!("{n} * {}", factors.join(" * ")),
            }
        }
        let text = match (text.is_empty(), self.constant) {
            (true, c) => c.to_string(),
            (false, 0) => text,
            (false, c) if c < 0 => format!("{text} - {}", c.unsigned_abs()),
            (false, c) => format!("{text} + {c}"),
        };
        match self.divisor {
            1 => text,
            divisor if self.terms.len() + usize::from(self.constant != 0) > 1 => format!("({text}) / {divisor}"),
            divisor => format!("{text} / {divisor}"),
        }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.constant)?;
        for (product, c) in &self.terms {
            write!(f, " + {c}")?;
            product.iter().try_for_each(|id| write!(f, " {id}"))?;
        }
        if self.divisor == 1 { Ok(()) } else { write!(f, " / {}", self.divisor) }
    }
}

/// The greatest common divisor, not negative.
fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n() -> Dim {
        Dim::param(DimId(0))
    }
    fn m() -> Dim {
        Dim::param(DimId(1))
    }
    fn plus(a: &Dim, c: i64) -> Dim {
        a.add_scaled(&Dim::constant(c), 1).expect("small")
    }

    #[test]
    fn products_are_multiplied_out() {
        let names: IdVec<DimId, String> = ["n", "m"].into_iter().map(str::to_owned).collect();
        let left = plus(&n(), 1).product(&plus(&m(), -1)).expect("small");
        assert_eq!(left.display(&names), "n * m - n + m - 1");
        assert_eq!(left.substitute(&[Dim::constant(3), Dim::constant(5)]), Some(Dim::constant(16)));
        assert_eq!(n().product(&m()), m().product(&n()));
    }

    #[test]
    fn quotients_are_whole_whatever_the_dimensions() {
        let names: IdVec<DimId, String> = ["n", "m"].into_iter().map(str::to_owned).collect();
        let pairs = n().product(&plus(&n(), -1)).and_then(|p| p.quotient(2)).expect("n or n - 1 is even");
        assert_eq!(pairs.display(&names), "(n * n - n) / 2");
        assert_eq!(pairs.substitute(&[plus(&n(), 1)]), n().product(&plus(&n(), 1)).and_then(|p| p.quotient(2)));
        assert_eq!(pairs.add_scaled(&pairs, 1), n().product(&plus(&n(), -1)));
        assert_eq!(n().quotient(2), None);
        assert_eq!(n().product(&m()).and_then(|p| p.quotient(2)), None);
        assert_eq!(pairs.eval_with(|_| 5), Some(10));
    }

    #[test]
    fn a_factor_is_divided_out() {
        let product = n().product(&m()).expect("small");
        assert_eq!(product.divided(1, &[DimId(1)]), Some(n()));
        assert_eq!(plus(&product, 1).divided(1, &[DimId(1)]), None);
        assert_eq!(
            product.add_scaled(&product, 1).and_then(|p| p.divided(-2, &[DimId(0)])),
            m().product(&Dim::constant(-1))
        );
    }
}
