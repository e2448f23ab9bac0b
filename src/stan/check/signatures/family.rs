//! A family of signatures: what each argument may be, and what comes out.

use crate::stan::check::types::{Parameter, Type, dimensions, real_part, unwound, with_complex, with_real, wound};
use crate::stan::syntax::ast::UnsizedType;

/// A line of the table.
pub(super) struct Family {
    pub(super) arguments: Vec<Argument>,
    pub(super) outcome: Outcome,
}

/// What an argument may be.
pub(super) enum Argument {
    /// Any of these.
    OneOf(Vec<Parameter>),
    /// What the argument at the position makes it.
    Like(Over, usize),
}

/// A type that is made of that of an argument.
pub(super) enum Over {
    Same,
    WithReal,
    WithComplex,
    RealPart,
    /// An array of ints with as many axes.
    Ints,
    /// An array of it, of so many axes.
    ArrayOf(usize),
    /// The same levels of array around another element.
    Around(UnsizedType),
}

/// What a function gives.
pub(super) enum Outcome {
    Fixed(UnsizedType),
    Like(Over, usize),
    /// One where all arguments are scalars, else an array.
    Draws(UnsizedType),
}

impl Over {
    fn apply(&self, ty: &UnsizedType) -> UnsizedType {
        match self {
            Over::Same => ty.clone(),
            Over::WithReal => with_real(ty),
            Over::WithComplex => with_complex(ty),
            Over::RealPart => real_part(ty),
            Over::Ints => wound(UnsizedType::Int, dimensions(ty)),
            Over::ArrayOf(axes) => wound(ty.clone(), *axes),
            Over::Around(element) => wound(element.clone(), unwound(ty).1),
        }
    }
}

/// What is done with the parameters and the result of a member.
type Visit<'v> = &'v mut dyn FnMut(Vec<Parameter>, UnsizedType);

impl Family {
    /// Visits the members of which each parameter (by its position) is accepted.
    pub(super) fn members(&self, accepts: &dyn Fn(usize, &Parameter) -> bool, visit: Visit<'_>) {
        self.choose(0, &mut Vec::new(), accepts, visit);
    }

    /// Chooses among the free arguments from position `at` on; those that follow from others come last.
    fn choose<'f>(
        &'f self,
        at: usize,
        chosen: &mut Vec<Option<&'f Parameter>>,
        accepts: &dyn Fn(usize, &Parameter) -> bool,
        visit: Visit<'_>,
    ) {
        let Some(argument) = self.arguments.get(at) else {
            if let Some(params) = self.complete(chosen, accepts) {
                let result = self.result(&params);
                visit(params, result);
            }
            return;
        };
        let Argument::OneOf(options) = argument else {
            chosen.push(None);
            self.choose(at + 1, chosen, accepts, visit);
            chosen.pop();
            return;
        };
        for option in options.iter().filter(|option| accepts(at, option)) {
            chosen.push(Some(option));
            self.choose(at + 1, chosen, accepts, visit);
            chosen.pop();
        }
    }

    fn complete(
        &self,
        chosen: &[Option<&Parameter>],
        accepts: &dyn Fn(usize, &Parameter) -> bool,
    ) -> Option<Vec<Parameter>> {
        let complete = |(at, argument): (usize, &Argument)| match argument {
            Argument::OneOf(_) => chosen[at].cloned(),
            Argument::Like(over, of) => {
                let ty = Type::Value(over.apply(chosen[*of]?.ty.value()?));
                Some(Parameter { data_only: false, ty }).filter(|param| accepts(at, param))
            }
        };
        self.arguments.iter().enumerate().map(complete).collect()
    }

    fn result(&self, params: &[Parameter]) -> UnsizedType {
        let ty = |at: usize| params[at].ty.value().expect("results are made of values");
        let is_scalar = |param: &Parameter| matches!(param.ty, Type::Value(UnsizedType::Int | UnsizedType::Real));
        match &self.outcome {
            Outcome::Fixed(ty) => ty.clone(),
            Outcome::Like(over, of) => over.apply(ty(*of)),
            Outcome::Draws(ty) if params.iter().all(is_scalar) => ty.clone(),
            Outcome::Draws(ty) => wound(ty.clone(), 1),
        }
    }
}
