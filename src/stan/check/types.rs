//! Types of Stan's expressions: what they are, how they are written, and what is promoted to what.

use std::fmt;
use std::sync::Arc;

use crate::stan::syntax::ast::UnsizedType;

/// Whether a value may depend on parameters. A tuple has a level for each part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Level {
    /// It depends on data alone.
    Data,
    /// It may depend on parameters.
    Parameter,
    /// The levels of the parts of a tuple, or of each tuple of an array.
    Tuple(Vec<Level>),
}

impl Level {
    /// Whether no part depends on parameters.
    pub fn is_data(&self) -> bool {
        match self {
            Level::Data => true,
            Level::Parameter => false,
            Level::Tuple(parts) => parts.iter().all(Level::is_data),
        }
    }

    /// The level of what depends on both; `None` when they are of tuples of different lengths.
    pub(super) fn join(&self, other: &Level) -> Option<Level> {
        Some(match (self, other) {
            (Level::Data, level) | (level, Level::Data) => level.clone(),
            (Level::Parameter, Level::Parameter) => Level::Parameter,
            (Level::Tuple(a), Level::Tuple(b)) if a.len() == b.len() => {
                Level::Tuple(a.iter().zip(b).map(|(a, b)| a.join(b)).collect::<Option<_>>()?)
            }
            (Level::Tuple(_), Level::Tuple(_)) => return None,
            (Level::Tuple(parts), Level::Parameter) | (Level::Parameter, Level::Tuple(parts)) => {
                Level::Tuple(parts.iter().map(|p| p.join(&Level::Parameter)).collect::<Option<_>>()?)
            }
        })
    }

    /// This level for every part of a value of the type.
    pub(super) fn for_type(self, ty: &UnsizedType) -> Level {
        match (self, ty) {
            (level, UnsizedType::Array(element)) => level.for_type(element),
            (Level::Tuple(levels), UnsizedType::Tuple(parts)) if levels.len() == parts.len() => {
                Level::Tuple(levels.into_iter().zip(parts).map(|(level, part)| level.for_type(part)).collect())
            }
            (level, UnsizedType::Tuple(parts)) => {
                let level = if level.is_data() { Level::Data } else { Level::Parameter };
                Level::Tuple(parts.iter().map(|part| level.clone().for_type(part)).collect())
            }
            (Level::Tuple(levels), _) if levels.iter().all(Level::is_data) => Level::Data,
            (Level::Tuple(_), _) => Level::Parameter,
            (level, _) => level,
        }
    }

    /// Whether a value of level `found` may be given where this level is wanted.
    pub(super) fn takes(&self, found: &Level) -> bool {
        match (self, found) {
            (Level::Data, Level::Parameter) => false,
            (Level::Tuple(wanted), Level::Tuple(found)) => {
                wanted.len() == found.len() && wanted.iter().zip(found).all(|(w, f)| w.takes(f))
            }
            (Level::Data, Level::Tuple(found)) => found.iter().all(|f| Level::Data.takes(f)),
            _ => true,
        }
    }
}

/// What a function's name says about it by its ending.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Suffix {
    /// None that means something.
    Plain,
    /// `_rng`
    Rng,
    /// `_lpdf`, `_lupdf`
    Density,
    /// `_lpmf`, `_lupmf`
    Mass,
    /// `_lp`
    Lp,
    /// `_jacobian`
    Jacobian,
}

impl Suffix {
    /// That of a name.
    pub fn of(name: &str) -> Suffix {
        let rules: [(&[&str], Suffix); 5] = [
            (&["_rng"], Suffix::Rng),
            (&["_lp"], Suffix::Lp),
            (&["_jacobian"], Suffix::Jacobian),
            (&["_lpdf", "_lupdf"], Suffix::Density),
            (&["_lpmf", "_lupmf"], Suffix::Mass),
        ];
        let ends = |endings: &&[&str]| endings.iter().any(|e| name.ends_with(e));
        rules.into_iter().find(|(endings, _)| ends(endings)).map_or(Suffix::Plain, |(_, suffix)| suffix)
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            Suffix::Plain => "a function without a special suffix",
            Suffix::Rng => "an `_rng` function",
            Suffix::Density => "an `_lpdf` function",
            Suffix::Mass => "an `_lpmf` function",
            Suffix::Lp => "an `_lp` function",
            Suffix::Jacobian => "a `_jacobian` function",
        }
    }
}

/// A parameter of a function as calls see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Parameter {
    pub(super) data_only: bool,
    pub(super) ty: Type,
}

/// The type of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FunctionType {
    pub(super) params: Vec<Parameter>,
    /// `None` is `void`.
    pub(super) result: Option<UnsizedType>,
    pub(super) suffix: Suffix,
}

/// What an expression is: a value, or a function that is given to a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Type {
    Value(UnsizedType),
    /// A function of the program, or a parameter of a function of the library.
    Function(Arc<FunctionType>),
    /// A function of the library by its name alone.
    LibraryFunction,
}

impl Type {
    pub(super) fn value(&self) -> Option<&UnsizedType> {
        match self {
            Type::Value(ty) => Some(ty),
            Type::Function(_) | Type::LibraryFunction => None,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Value(ty) => f.write_str(&spelled(ty)),
            Type::Function(function) => function.fmt(f),
            Type::LibraryFunction => f.write_str("a function of Stan's library"),
        }
    }
}

impl fmt::Display for FunctionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (i, param) in self.params.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            let data = if param.data_only && param.ty.value().is_some() { "data " } else { "" };
            write!(f, "{comma}{data}{}", param.ty)?;
        }
        write!(f, ") => {}", self.result.as_ref().map_or_else(|| "void".to_owned(), spelled))
    }
}

/// A type as it is written in Stan.
pub fn spelled(ty: &UnsizedType) -> String {
    match ty {
        UnsizedType::Int => "int".into(),
        UnsizedType::Real => "real".into(),
        UnsizedType::Complex => "complex".into(),
        UnsizedType::Vector => "vector".into(),
        UnsizedType::RowVector => "row_vector".into(),
        UnsizedType::Matrix => "matrix".into(),
        UnsizedType::ComplexVector => "complex_vector".into(),
        UnsizedType::ComplexRowVector => "complex_row_vector".into(),
        UnsizedType::ComplexMatrix => "complex_matrix".into(),
        UnsizedType::Array(_) => {
            let (element, axes) = unwound(ty);
            format!("array[{}] {}", ",".repeat(axes - 1), spelled(element))
        }
        UnsizedType::Tuple(parts) => {
            let parts: Vec<String> = parts.iter().map(spelled).collect();
            let comma = if parts.len() == 1 { "," } else { "" };
            format!("tuple({}{comma})", parts.join(", "))
        }
    }
}

/// The elements of an array and its axes; the type itself and 0 when it is none.
pub(super) fn unwound(ty: &UnsizedType) -> (&UnsizedType, usize) {
    let (mut element, mut axes) = (ty, 0);
    while let UnsizedType::Array(inner) = element {
        (element, axes) = (inner, axes + 1);
    }
    (element, axes)
}

/// An array of so many axes.
pub(super) fn wound(element: UnsizedType, axes: usize) -> UnsizedType {
    (0..axes).fold(element, |ty, _| UnsizedType::Array(Box::new(ty)))
}

/// Axes, those of vectors and matrices included.
pub(super) fn dimensions(ty: &UnsizedType) -> usize {
    let (element, axes) = unwound(ty);
    axes + match element {
        UnsizedType::Matrix | UnsizedType::ComplexMatrix => 2,
        UnsizedType::Vector | UnsizedType::RowVector => 1,
        UnsizedType::ComplexVector | UnsizedType::ComplexRowVector => 1,
        _ => 0,
    }
}

/// Whether all scalars in it are ints: no parameter can be in it.
pub(super) fn is_discrete(ty: &UnsizedType) -> bool {
    match unwound(ty).0 {
        UnsizedType::Int => true,
        UnsizedType::Tuple(parts) => parts.iter().all(is_discrete),
        _ => false,
    }
}

/// Whether an int is in it.
pub(super) fn has_int(ty: &UnsizedType) -> bool {
    match unwound(ty).0 {
        UnsizedType::Int => true,
        UnsizedType::Tuple(parts) => parts.iter().any(has_int),
        _ => false,
    }
}

/// Whether its scalars are complex numbers.
pub(super) fn is_complex(ty: &UnsizedType) -> bool {
    use UnsizedType::{Complex, ComplexMatrix, ComplexRowVector, ComplexVector};
    matches!(unwound(ty).0, Complex | ComplexVector | ComplexRowVector | ComplexMatrix)
}

/// The same with complex numbers in the place of reals; ints stay.
pub(super) fn with_complex(ty: &UnsizedType) -> UnsizedType {
    match ty {
        UnsizedType::Real => UnsizedType::Complex,
        UnsizedType::Vector => UnsizedType::ComplexVector,
        UnsizedType::RowVector => UnsizedType::ComplexRowVector,
        UnsizedType::Matrix => UnsizedType::ComplexMatrix,
        UnsizedType::Array(element) => UnsizedType::Array(Box::new(with_complex(element))),
        other => other.clone(),
    }
}

/// The same with reals in the place of ints.
pub(super) fn with_real(ty: &UnsizedType) -> UnsizedType {
    match ty {
        UnsizedType::Int => UnsizedType::Real,
        UnsizedType::Array(element) => UnsizedType::Array(Box::new(with_real(element))),
        other => other.clone(),
    }
}

/// The real parts of it: the same with reals in the place of complex numbers.
pub(super) fn real_part(ty: &UnsizedType) -> UnsizedType {
    match ty {
        UnsizedType::Complex => UnsizedType::Real,
        UnsizedType::ComplexVector => UnsizedType::Vector,
        UnsizedType::ComplexRowVector => UnsizedType::RowVector,
        UnsizedType::ComplexMatrix => UnsizedType::Matrix,
        UnsizedType::Array(element) => UnsizedType::Array(Box::new(real_part(element))),
        other => other.clone(),
    }
}

/// What it costs to take a value of type `found` for one of type `wanted`: an int as a real or a real as a complex number
/// costs 1, an int as a complex number 2; `None` when it is not possible.
pub(super) fn promotion(wanted: &UnsizedType, found: &UnsizedType) -> Option<usize> {
    use UnsizedType::{Array, Complex, Int, Real, Tuple};
    match (wanted, found) {
        _ if wanted == found => Some(0),
        (Real, Int) => Some(1),
        (Complex, Int) => Some(2),
        (Array(wanted), Array(found)) => promotion(wanted, found),
        (Tuple(wanted), Tuple(found)) if wanted.len() == found.len() => {
            wanted.iter().zip(found).map(|(wanted, found)| promotion(wanted, found)).sum()
        }
        (Array(_) | Tuple(_), _) | (_, Array(_) | Tuple(_)) => None,
        _ => (with_complex(found) == *wanted).then_some(1),
    }
}

/// The least type that both are promoted to.
pub(super) fn common(a: &UnsizedType, b: &UnsizedType) -> Option<UnsizedType> {
    use UnsizedType::{Array, Tuple};
    match (a, b) {
        (Array(a), Array(b)) => Some(Array(Box::new(common(a, b)?))),
        (Tuple(a), Tuple(b)) if a.len() == b.len() => {
            Some(Tuple(a.iter().zip(b).map(|(a, b)| common(a, b)).collect::<Option<_>>()?))
        }
        _ if promotion(a, b).is_some() => Some(a.clone()),
        _ if promotion(b, a).is_some() => Some(b.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use UnsizedType::{Complex, ComplexVector, Int, Matrix, Real, Tuple, Vector};

    #[test]
    fn types_are_written_as_in_stan() {
        assert_eq!(spelled(&wound(Vector, 3)), "array[,,] vector");
        assert_eq!(spelled(&Tuple(vec![Int, wound(Real, 1)])), "tuple(int, array[] real)");
    }

    #[test]
    fn ints_become_reals_and_reals_complex_inside_containers_too() {
        assert_eq!(promotion(&wound(Complex, 2), &wound(Int, 2)), Some(2));
        assert_eq!(promotion(&ComplexVector, &Vector), Some(1));
        assert_eq!(promotion(&Vector, &wound(Real, 1)), None);
        assert_eq!(promotion(&Int, &Real), None);
        assert_eq!(promotion(&Tuple(vec![Real, Matrix]), &Tuple(vec![Int, Matrix])), Some(1));
        assert_eq!(common(&Tuple(vec![Real, Int]), &Tuple(vec![Int, Real])), Some(Tuple(vec![Real, Real])));
    }

    #[test]
    fn a_tuple_has_a_level_for_each_part() {
        let mixed = Level::Tuple(vec![Level::Data, Level::Parameter]);
        assert!(!Level::Data.takes(&mixed) && Level::Parameter.takes(&mixed));
        assert_eq!(Level::Data.join(&mixed), Some(mixed));
        assert_eq!(Suffix::of("normal_lupdf"), Suffix::Density);
    }
}
