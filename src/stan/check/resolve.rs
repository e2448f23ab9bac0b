//! Overload resolution: of all functions of a name the one whose parameters take the arguments with the fewest promotions.

use std::sync::Arc;

use crate::base::Span;
use crate::stan::syntax::ast::UnsizedType;

use super::signatures::library;
use super::types::{FunctionType, Level, Parameter, Suffix, Type, dimensions, promotion, unwound};

/// An expression as resolution sees it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Value {
    pub(super) ty: Type,
    pub(super) level: Level,
}

impl Value {
    pub(super) fn new(ty: UnsizedType, level: Level) -> Self {
        Self { level: level.for_type(&ty), ty: Type::Value(ty) }
    }
}

/// A function that a name stands for.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) function: Arc<FunctionType>,
    /// A function of the program by its position and the place of its name; `None` is one of the library.
    pub(super) user: Option<(usize, Span)>,
}

/// Why arguments do not fit a function.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Mismatch {
    /// There are too many or too few.
    Count { wanted: usize, found: usize },
    /// One does not fit, counted from 0.
    Argument { at: usize, why: Why },
}

/// Why an argument does not fit.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Why {
    /// It may depend on parameters, but must not.
    NotData,
    /// It has another type.
    Type { wanted: Type, found: Type },
    /// It is a function with another suffix.
    Suffix { wanted: Suffix, found: Suffix },
    /// It is a function with another result.
    Result { wanted: Option<UnsizedType>, found: Option<UnsizedType> },
    /// It is a function with other parameters.
    Inputs { wanted: Type, found: Type, mismatch: Box<Mismatch> },
}

/// What a call means.
pub(super) enum Resolution {
    /// One function fits best.
    Unique(Candidate),
    /// Several fit equally well.
    Ambiguous(Vec<Candidate>),
    /// None fits: the nearest with what is wrong, and whether there are more.
    None { nearest: Vec<(Candidate, Mismatch)>, more: bool },
}

/// Candidates that a message lists.
const LISTED: usize = 5;

/// How deep in the types of functions one looks: only at the outside are values promoted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// The arguments of a call: everything is promoted.
    Call,
    /// The parameters of a function that is an argument: types are equal, data may be given for anything.
    Function,
    /// Further inside: all is equal.
    Inner,
}

impl Depth {
    fn deeper(self) -> Depth {
        match self {
            Depth::Call => Depth::Function,
            Depth::Function | Depth::Inner => Depth::Inner,
        }
    }
}

/// What it costs to give a value of type `found` for one of type `wanted`.
pub(super) fn type_fits(depth: Depth, wanted: &Type, found: &Type) -> Result<usize, Why> {
    let mismatch = || Why::Type { wanted: wanted.clone(), found: found.clone() };
    match (wanted, found) {
        (Type::Value(a), Type::Value(b)) if depth == Depth::Call => promotion(a, b).ok_or_else(mismatch),
        (Type::Function(a), Type::Function(b)) if a != b => functions_fit(depth, a, b),
        _ if wanted == found => Ok(0),
        _ => Err(mismatch()),
    }
}

fn functions_fit(depth: Depth, wanted: &Arc<FunctionType>, found: &Arc<FunctionType>) -> Result<usize, Why> {
    if wanted.suffix != found.suffix {
        return Err(Why::Suffix { wanted: wanted.suffix, found: found.suffix });
    }
    if wanted.result != found.result {
        return Err(Why::Result { wanted: wanted.result.clone(), found: found.result.clone() });
    }
    let given: Vec<Value> = wanted.params.iter().map(given).collect();
    arguments_fit(depth.deeper(), &found.params, &given).map(|_| 0).map_err(|mismatch| Why::Inputs {
        wanted: Type::Function(wanted.clone()),
        found: Type::Function(found.clone()),
        mismatch: Box::new(mismatch),
    })
}

/// What a caller gives for a parameter.
pub(super) fn given(param: &Parameter) -> Value {
    let level = if param.data_only { Level::Data } else { Level::Parameter };
    Value { ty: param.ty.clone(), level }
}

/// What it costs to give this argument for that parameter.
fn argument_fits(depth: Depth, param: &Parameter, arg: &Value) -> Result<usize, Why> {
    let cost = type_fits(depth, &param.ty, &arg.ty)?;
    let level = given(param).level;
    let fits = level == arg.level || (depth != Depth::Inner && level.takes(&arg.level));
    if fits { Ok(cost) } else { Err(Why::NotData) }
}

/// Whether the argument can be given for the parameter, quickly: most signatures of a family do not fit.
fn can_be_given(param: &Parameter, arg: &Value) -> bool {
    match (&param.ty, &arg.ty) {
        (Type::Value(wanted), Type::Value(found)) => {
            promotion(wanted, found).is_some() && given(param).level.takes(&arg.level)
        }
        _ => argument_fits(Depth::Call, param, arg).is_ok(),
    }
}

/// The sum of what it costs to give these arguments for those parameters.
pub(super) fn arguments_fit(depth: Depth, params: &[Parameter], args: &[Value]) -> Result<usize, Mismatch> {
    if params.len() != args.len() {
        return Err(Mismatch::Count { wanted: params.len(), found: args.len() });
    }
    let fit = |(at, (param, arg))| argument_fits(depth, param, arg).map_err(|why| Mismatch::Argument { at, why });
    params.iter().zip(args).enumerate().map(fit).sum()
}

/// The function among those of the library of this name and the `user`'s that takes the arguments best.
pub(super) fn resolve(name: &str, user: &[Candidate], args: &[Value]) -> Resolution {
    let accepts = |at: usize, param: &Parameter| can_be_given(param, &args[at]);
    let fitting = library().fitting(name, args.len(), &accepts).into_iter().map(of_library);
    let all = fitting.chain(user.iter().cloned());
    let costs = all.filter_map(|c| Some((arguments_fit(Depth::Call, &c.function.params, args).ok()?, c)));
    let mut best = cheapest(costs.collect());
    match best.len() {
        1 => Resolution::Unique(best.remove(0)),
        0 => {
            let all = library().all(name).into_iter().map(of_library).chain(user.iter().cloned());
            nearest(
                all.filter_map(|c| Some((arguments_fit(Depth::Call, &c.function.params, args).err()?, c))).collect(),
            )
        }
        _ => Resolution::Ambiguous(best),
    }
}

fn of_library(function: FunctionType) -> Candidate {
    Candidate { function: Arc::new(function), user: None }
}

/// Those with the least cost.
pub(super) fn cheapest<T>(costs: Vec<(usize, T)>) -> Vec<T> {
    let least = costs.iter().map(|(cost, _)| *cost).min();
    costs.into_iter().filter(|(cost, _)| Some(*cost) == least).map(|(_, item)| item).collect()
}

fn nearest(mut wrong: Vec<(Mismatch, Candidate)>) -> Resolution {
    wrong.sort_by_key(|(mismatch, _)| distance(mismatch));
    let more = wrong.len() > LISTED;
    let nearest = wrong.into_iter().take(LISTED).map(|(mismatch, candidate)| (candidate, mismatch)).collect();
    Resolution::None { nearest, more }
}

/// Less where the arguments fit further: more arguments that fit, then a data-only parameter, then fewer axes that differ.
fn distance(mismatch: &Mismatch) -> (bool, std::cmp::Reverse<usize>, usize) {
    match mismatch {
        Mismatch::Count { wanted, found } => (true, std::cmp::Reverse(0), wanted.abs_diff(*found)),
        Mismatch::Argument { at, why } => (false, std::cmp::Reverse(*at), unlike(why)),
    }
}

fn unlike(why: &Why) -> usize {
    match why {
        Why::NotData => 0,
        Why::Type { wanted: Type::Value(wanted), found: Type::Value(found) } => {
            let axes = dimensions(wanted).abs_diff(dimensions(found));
            let nesting = unwound(wanted).1.abs_diff(unwound(found).1);
            1 + 2 * axes + nesting
        }
        Why::Type { .. } => 20,
        Why::Suffix { .. } | Why::Result { .. } | Why::Inputs { .. } => 10,
    }
}

impl Mismatch {
    /// In words; `skip` arguments at the front are not counted.
    pub(super) fn describe(&self, skip: usize) -> String {
        match self {
            Mismatch::Count { wanted, found } => {
                let (wanted, found) = (wanted.saturating_sub(skip), found.saturating_sub(skip));
                let plural = if wanted == 1 { "" } else { "s" };
                format!("it takes {wanted} argument{plural}, but there are {found}")
            }
            Mismatch::Argument { at, why } => why.describe(at + 1 - skip.min(*at)),
        }
    }
}

impl Why {
    fn describe(&self, position: usize) -> String {
        let result = |ty: &Option<UnsizedType>| ty.as_ref().map_or("void".to_owned(), super::types::spelled);
        match self {
            Why::NotData => format!("argument {position} must be data only, but may depend on parameters"),
            Why::Type { wanted, found } => format!("argument {position} must be {wanted}, but is {found}"),
            Why::Suffix { wanted, found } => {
                format!("argument {position} must be {}, but is {}", wanted.describe(), found.describe())
            }
            Why::Result { wanted, found } => {
                let (wanted, found) = (result(wanted), result(found));
                format!("argument {position} must be a function that gives {wanted}, but gives {found}")
            }
            Why::Inputs { wanted, found, mismatch } => {
                let detail = match &**mismatch {
                    Mismatch::Count { wanted: takes, found: given } => {
                        format!("it takes {takes} arguments where {given} are given")
                    }
                    Mismatch::Argument { at, why: Why::NotData } => {
                        format!("its parameter {} is `data`, but what it is given is not", at + 1)
                    }
                    Mismatch::Argument { at, why: Why::Type { wanted, found } } => {
                        format!("its parameter {} is {wanted} where {found} is given", at + 1)
                    }
                    Mismatch::Argument { at, .. } => format!("its parameter {} is another function", at + 1),
                };
                format!("argument {position} must be {wanted}, but is {found}: {detail}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use UnsizedType::{Complex, Int, Real, Vector};

    fn values(types: &[UnsizedType]) -> Vec<Value> {
        types.iter().map(|ty| Value::new(ty.clone(), Level::Parameter)).collect()
    }

    fn user(at: usize, params: &[UnsizedType]) -> Candidate {
        let param = |ty: &UnsizedType| Parameter { data_only: false, ty: Type::Value(ty.clone()) };
        let params = params.iter().map(param).collect();
        let function = FunctionType { params, result: Some(Real), suffix: Suffix::Plain };
        Candidate { function: Arc::new(function), user: Some((at, Span::new(crate::base::FileId(0), 0, 0))) }
    }

    fn position(resolution: Resolution) -> Option<usize> {
        match resolution {
            Resolution::Unique(candidate) => candidate.user.map(|(at, _)| at),
            Resolution::Ambiguous(all) => panic!("{} fit", all.len()),
            Resolution::None { .. } => None,
        }
    }

    #[test]
    fn the_fewest_promotions_win() {
        let both = [user(0, &[Real, Real]), user(1, &[Int, Real]), user(2, &[Complex, Complex])];
        assert_eq!(position(resolve("foo", &both, &values(&[Int, Int]))), Some(1));
        assert_eq!(position(resolve("foo", &both, &values(&[Real, Int]))), Some(0));
        assert_eq!(position(resolve("foo", &both, &values(&[Real, Complex]))), Some(2));
        assert_eq!(position(resolve("foo", &both, &values(&[Vector, Int]))), None);
    }

    #[test]
    fn equal_promotions_are_ambiguous() {
        let both = [user(0, &[Real, Int]), user(1, &[Int, Real])];
        assert!(matches!(resolve("foo", &both, &values(&[Int, Int])), Resolution::Ambiguous(all) if all.len() == 2));
    }

    #[test]
    fn a_program_adds_to_the_functions_of_the_library() {
        let own = [user(0, &[Vector, Vector])];
        assert_eq!(position(resolve("exp", &own, &values(&[Vector, Vector]))), Some(0));
        assert!(matches!(resolve("exp", &own, &values(&[Int])), Resolution::Unique(c) if c.user.is_none()));
    }

    #[test]
    fn the_nearest_signature_comes_first() {
        let Resolution::None { nearest, more } = resolve("normal_lpdf", &[], &values(&[Real, Real, Complex])) else {
            panic!("nothing fits");
        };
        assert!(more);
        assert_eq!(nearest[0].1.describe(0), "argument 3 must be real, but is complex");
    }
}
