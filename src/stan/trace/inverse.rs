//! Parameters by their constrained values, as users and files of draws have them: read as they are, and turned into the
//! unconstrained numbers that they come from.

use super::parameters::transform;
use super::shapes::by_columns;
use super::tuple::has_tuples;
use super::{Result, Tracer, wrong};
use crate::base::Span;
use crate::stan::syntax::ast::{Constraint, Expr, SizedKind, SizedType, Stmt, StmtKind};
use crate::stan::value::{Base, Elem, Kind, Val};
use crate::types::ComplexPart;

/// What a function takes of one parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taken {
    /// As the program names it; the parts of a complex `z` are `z.real` and `z.imag`.
    pub name: String,
    /// Extents of all axes of its value, those of arrays first.
    pub shape: Vec<usize>,
    /// How many of them are those of `array[…]`.
    pub arrays: usize,
    /// Whether it is taken by its value; else by its unconstrained numbers.
    pub by_value: bool,
    /// How many numbers are taken.
    pub numbers: usize,
}

/// The elements in the order of unconstrained numbers: inside a matrix column by column, of complex numbers the two parts
/// of each.
fn in_stans_order(value: &Val) -> Vec<Elem> {
    if value.is_complex() {
        let (re, im) = value.re_im();
        return in_stans_order(&re).into_iter().zip(in_stans_order(&im)).flat_map(|(re, im)| [re, im]).collect();
    }
    by_columns(value)
}

impl Tracer<'_> {
    /// `parameters { … }`, each variable by its value: one after the other, inside of matrices column by column.
    pub(in crate::stan) fn take_parameters(&mut self, stmts: &[Stmt]) -> Result<Vec<Taken>> {
        self.take(stmts, &|_| true, |_, _, _, _, _, _| Ok(()))
    }

    /// `parameters { … }`, those that are named by their values, which must be what their constraints say, the others by
    /// unconstrained numbers. Gives the unconstrained numbers of all.
    pub(in crate::stan) fn free_parameters(
        &mut self,
        stmts: &[Stmt],
        named: &dyn Fn(&str) -> bool,
    ) -> Result<(Vec<Taken>, Vec<Elem>)> {
        let mut free = Vec::new();
        let taken = self.take(stmts, named, |tracer, span, ty, taken, first, value| {
            if taken.by_value {
                tracer.check_constraint(span, &taken.name, ty, value)?;
                free.extend(tracer.inverse(span, ty, value)?);
            } else {
                let mut first = first;
                free.extend(tracer.unconstrained(span, &mut first, Kind::VECTOR, vec![taken.numbers])?.elems());
            }
            Ok(())
        })?;
        Ok((taken, free))
    }

    /// Binds every parameter, and does something with each, or with each of its leaves, at its first number.
    fn take<F>(&mut self, stmts: &[Stmt], named: &dyn Fn(&str) -> bool, mut then: F) -> Result<Vec<Taken>>
    where
        F: FnMut(&mut Self, Span, &SizedType, &Taken, usize, &Val) -> Result<()>,
    {
        let (mut first, mut all) = (0, Vec::new());
        for stmt in stmts {
            let StmtKind::Declare { ty, variables } = &stmt.kind else { continue };
            for variable in variables {
                let (mut leaves, span) = (Vec::new(), variable.name.span);
                for leaf in self.leaves(variable, ty)? {
                    let old_dims: &[Expr] = if has_tuples(ty) { &[] } else { &variable.old_dims };
                    let (kind, shape) = self.sized(leaf.ty, old_dims)?;
                    let at = first;
                    let name = if kind.is_complex() { ComplexPart::Real.of(&leaf.name) } else { leaf.name.to_string() };
                    let by_value = named(&name);
                    let (value, imaginary) = if !by_value {
                        (self.parameter(span, leaf.ty, kind, &shape, &mut first, &mut Vec::new())?, None)
                    } else if kind.is_complex() {
                        // Both parts by their own values, one after the other.
                        let re = self.unconstrained(span, &mut first, kind.real(), shape.clone())?;
                        let im = self.unconstrained(span, &mut first, kind.real(), shape.clone())?;
                        (Val::complex(re, im), Some(ComplexPart::Imaginary.of(&leaf.name)))
                    } else {
                        (self.unconstrained(span, &mut first, kind, shape.clone())?, None)
                    };
                    let numbers = if imaginary.is_some() { value.len() } else { first - at };
                    let taken = Taken { name, shape, arrays: kind.arrays, by_value, numbers };
                    then(self, span, leaf.ty, &taken, at, &value)?;
                    leaves.push(value);
                    let imaginary = imaginary.map(|name| Taken { name, ..taken.clone() });
                    all.push(taken);
                    all.extend(imaginary);
                }
                let value = self.assembled(variable, ty, leaves)?;
                self.graph.call(&variable.name.text, &value);
                self.bind(&variable.name.text, value);
            }
        }
        Ok(all)
    }

    /// The unconstrained numbers of a value.
    fn inverse(&mut self, span: Span, ty: &SizedType, x: &Val) -> Result<Vec<Elem>> {
        let mut leaf = ty;
        while let SizedKind::Array { element, .. } = &leaf.kind {
            leaf = element;
        }
        if x.len() == 0 {
            return Ok(Vec::new());
        }
        let known = |t: &mut Self, e: &Expr| t.eval(e).map(|v| v.promoted());
        let (zero, one) = (Val::real(0.0), Val::real(1.0));
        let free = match &leaf.constraint {
            Constraint::None => x.clone(),
            Constraint::Lower(a) => {
                let a = known(self, a)?;
                self.elementwise(span, "lower_bound_unconstrain", &[x.clone(), a])?
            }
            Constraint::Upper(b) => {
                let b = known(self, b)?;
                self.elementwise(span, "upper_bound_unconstrain", &[x.clone(), b])?
            }
            Constraint::LowerUpper(a, b) => {
                let (a, b) = (known(self, a)?, known(self, b)?);
                self.elementwise(span, "lower_upper_bound_unconstrain", &[x.clone(), a, b])?
            }
            Constraint::Offset(m) => {
                let m = known(self, m)?;
                self.elementwise(span, "offset_multiplier_unconstrain", &[x.clone(), m, one])?
            }
            Constraint::Multiplier(s) => {
                let s = known(self, s)?;
                self.elementwise(span, "offset_multiplier_unconstrain", &[x.clone(), zero, s])?
            }
            Constraint::OffsetMultiplier(m, s) => {
                let (m, s) = (known(self, m)?, known(self, s)?);
                self.elementwise(span, "offset_multiplier_unconstrain", &[x.clone(), m, s])?
            }
            constraint => return self.free_of_transform(span, constraint, x),
        };
        // The kind of a bound may be another; that of the value tells the order.
        Ok(in_stans_order(&Val { kind: x.kind, ..free }))
    }

    /// Those of vectors or matrices with a transform of the library, one after the other of an array of them.
    fn free_of_transform(&mut self, span: Span, constraint: &Constraint, x: &Val) -> Result<Vec<Elem>> {
        let own = x.shape[x.kind.arrays..].to_vec();
        let Some(transform) = transform(constraint, &own) else {
            return wrong(span, format!("there is no such matrix of {} × {}", own[0], own[own.len() - 1]));
        };
        let width: usize = own.iter().product();
        let mut free = Vec::new();
        if transform.free.contains(&0) {
            return Ok(free);
        }
        let each = Kind::of(if transform.free.len() == 2 { Base::Matrix } else { Base::Vector });
        for i in 0..x.len() / width.max(1) {
            let one = if x.kind.arrays == 0 {
                x.clone()
            } else {
                x.pick(Kind::of(x.kind.base), own.clone(), i * width..(i + 1) * width)
            };
            let name = format!("{}_unconstrain", transform.stem);
            let value = self.call_ab(span, &name, &[one], each, transform.free.clone())?;
            free.extend(in_stans_order(&value));
        }
        Ok(free)
    }
}
