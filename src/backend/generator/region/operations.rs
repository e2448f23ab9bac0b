//! The text of each kind of operation of a region.

use super::Pile;
use super::loops::MOST_UNROLLED;
use super::place::{Known, Number, Place, View};
use super::shapes;
use super::straight::mapped;
use super::text::Writer;
use super::varying::First;
use crate::backend::generator::ending::Ending;
use crate::backend::generator::functions::{flat, group_type};
use crate::backend::generator::operations::{called, start, step};
use crate::backend::generator::ssa::{Fold, Products};
use crate::parts::TapeId;
use crate::prim::{
    Arithmetic, BLOCK, Class, Comparison, Contraction, Conversion, Logic, Movement, Prim, Reduction,
    computed_elementwise,
};
use crate::run::TrapKind;
use crate::types::{DType, Scalar, Type};
use crate::unit::{Block, OpKind, Operand, SideEffect, ValueId};

/// Multiply-adds of a matrix product.
const MOST_PRODUCTS: usize = 1 << 12;

/// Places of an array.
struct Places {
    /// Of each axis the indices, its extent, and the elements between one and the next.
    axes: Vec<(View, usize, usize)>,
    count: usize,
}

impl Places {
    /// The indices.
    fn views(&self) -> impl Iterator<Item = &View> {
        self.axes.iter().map(|(view, ..)| view)
    }
}

impl<T: Ending> Writer<'_, T> {
    /// The statements of an operation; none for what no function of a region does.
    pub(super) fn operation(&mut self, block: &Block<T>, kind: &OpKind) -> Option<()> {
        match kind {
            OpKind::Load { dst, var } => {
                self.load(*dst, *var);
                Some(())
            }
            // It was computed together with its twin.
            OpKind::Compute { dst, .. } if self.known[*dst].is_some() => Some(()),
            OpKind::Compute { dst, prim, args } => {
                let known = self.computed(block, *dst, *prim, args)?;
                self.know(*dst, known);
                Some(())
            }
            OpKind::Store { var, value } => self.store(*var, *value),
            OpKind::Effect(effect) => self.effect(block, effect),
            OpKind::Push { stack, value } => self.stack_push(*stack, *value),
            OpKind::Pop { dst, stack } => self.stack_pop(*dst, *stack, &block.values[*dst].ty),
        }
    }

    fn effect(&mut self, block: &Block<T>, effect: &SideEffect) -> Option<()> {
        match effect {
            SideEffect::Assert { cond, message } if message.args.is_empty() => {
                let (cond, text) = (self.number(*cond), message.texts.concat());
                if cond.plain {
                    self.check_plain(&format!("!{}", cond.text), TrapKind::AssertFailed, text);
                } else {
                    let site = self.site(TrapKind::AssertFailed, text, None);
                    self.line(self.frame.trap_some(&format!("b_not({})", cond.text), site));
                }
                Some(())
            }
            SideEffect::TapePush { tape, value } => self.tape_push(*tape, *value),
            SideEffect::TapePop { dst, tape } => self.tape_pop(*dst, *tape, &block.values[*dst].ty),
            SideEffect::Assert { cond, message } => self.assert_telling(block, *cond, message),
            SideEffect::Print(message) => self.printed(block, message),
            SideEffect::Emit { stream, args } => self.emitted(*stream, args),
        }
    }

    fn tape_push(&mut self, tape: TapeId, value: Operand) -> Option<()> {
        let high = self.site(TrapKind::TapeLimit, String::new(), None);
        let tape = self.tape(tape);
        self.push(tape, Some(high), value)
    }

    /// Puts a value on top; `high`: the place where it may be too high.
    pub(super) fn push(&mut self, pile: Pile, high: Option<usize>, value: Operand) -> Option<()> {
        let view = self.view(value)?;
        let full = self.site(TrapKind::MemoryLimit, String::new(), None);
        self.lines(self.frame.raise(pile, high, full));
        self.each(view.elements, |w, e| {
            let element = w.element(&view, e).in_lanes();
            w.line(w.frame.put(pile, view.elements, view.dtype, e.unwrap_or("0"), &element));
        });
        self.line(self.frame.pushed(pile));
        Some(())
    }

    fn tape_pop(&mut self, dst: ValueId, tape: TapeId, ty: &Type) -> Option<()> {
        let empty = self.site(TrapKind::EmptyTape, String::new(), None);
        let tape = self.tape(tape);
        self.pop(dst, (tape, Some(empty)), ty)
    }

    /// Takes the value on top off; `empty`: the place where there may be none.
    pub(super) fn pop(&mut self, dst: ValueId, (pile, empty): (Pile, Option<usize>), ty: &Type) -> Option<()> {
        let (dtype, elements) = (ty.dtype, ty.elements());
        self.lines(self.frame.lower(pile, empty));
        let load =
            |w: &Self, e: Option<&str>| Number::group(w.frame.take(pile, elements, dtype, e.unwrap_or("0")), dtype);
        let known = if elements == 1 {
            let number = load(self, None);
            Known::Number(self.named(number))
        } else {
            let to = self.array(elements, dtype, false)?;
            self.each(elements, |w, e| {
                let element = load(w, e);
                w.set(&to, e, &element);
            });
            Known::Array(to)
        };
        self.know(dst, known);
        Some(())
    }

    /// The number of a tape among those of the function.
    pub(super) fn tape(&mut self, tape: TapeId) -> Pile {
        Pile::Tape(self.signature.tapes.insert_full(tape).0)
    }

    /// What a primitive gives.
    fn computed(&mut self, block: &Block<T>, dst: ValueId, prim: Prim, args: &[Operand]) -> Option<Known> {
        let value = &block.values[dst];
        let (ty, plain) = (&value.ty, value.uniform && value.ty.dtype != DType::Real);
        let n = ty.elements();
        if let Some(fold) = self.added_later(block, dst, prim, args) {
            return self.add_later(fold, dst, args);
        }
        match prim.class() {
            _ if n == 0 => self.frame.has_all().then(|| Known::Array(View::nothing(ty.dtype))),
            Class::Identity(_) => Some(self.known(args[0])),
            Class::IntArithmetic(_) if prim == Prim::IntPow && !self.is_scheduled() => None,
            computed_elementwise!() => self.elementwise(block, dst, prim, args),
            Class::Movement(movement) => self.moved(movement, block, dst, prim, args),
            Class::Contraction(contraction) => self.contracted(contraction, block, (dst, prim), args),
            Class::Reduction(Reduction::SumLog | Reduction::SumLog1pExp) => self.log_sum(block, (dst, prim), args),
            Class::Reduction(reduction) if n == 1 => {
                let view = self.view(args[0])?;
                if view.elements == 0 {
                    return self.of_nothing(Fold::All(reduction), ty.dtype);
                }
                if let Some(n) = self.shares(block, dst, prim, args) {
                    let fold = Fold::All(reduction);
                    let sum = Number::group(self.fresh("s"), ty.dtype);
                    self.line(format!("R {} = {};", sum.text, start(fold, ty.dtype)?));
                    let made = Known::Number(sum.clone());
                    let read = [view];
                    self.in_loop((n, None), &made, &read, |w| w.fold(fold, ty.dtype, &sum.text, (&read, Some("e"))));
                    return Some(made);
                }
                let sum = self.folded(Fold::All(reduction), ty.dtype, &[&view]);
                Some(Known::Number(if plain { self.plain_of(sum) } else { sum }))
            }
            Class::Reduction(reduction) if !plain => self.folded_axes(Fold::All(reduction), block, ty, args[0]),
            Class::Draw(draw) => self.drawn(block, draw, ty),
            Class::Triangular(_) => self.by_kernel(prim, block, dst, args),
            Class::Reduction(_) => None,
        }
    }

    /// A reduction of no elements.
    fn of_nothing(&mut self, fold: Fold, dtype: DType) -> Option<Known> {
        let made = match start(fold, dtype) {
            Some(start) => start,
            None => {
                self.check_plain("1", TrapKind::EmptyReduction, String::new());
                start(Fold::All(Reduction::Sum), dtype)?
            }
        };
        Some(Known::Number(self.named(Number::group(made, dtype))))
    }

    /// An int or bool that is the same in all active lanes.
    fn plain_of(&mut self, number: Number) -> Number {
        let text = self.made_plain(&number);
        self.named(Number::plain(text, number.dtype))
    }

    fn elementwise(&mut self, block: &Block<T>, dst: ValueId, prim: Prim, args: &[Operand]) -> Option<Known> {
        let value = &block.values[dst];
        let (dtype, n, plain) = (value.ty.dtype, value.ty.elements(), value.uniform && value.ty.dtype != DType::Real);
        let views: Vec<View> = args.iter().map(|a| self.view(*a)).collect::<Option<_>>()?;
        if n == 1 {
            let numbers: Vec<Number> = views.iter().map(|view| self.element(view, None)).collect();
            if plain
                && numbers.iter().all(|number| number.plain)
                && let Some(number) = self.plainly(prim, dtype, &numbers)
            {
                return Some(Known::Number(number));
            }
            let number = self.in_lanes(prim, dtype, args, &numbers);
            return Some(Known::Number(if plain { self.plain_of(number) } else { number }));
        }
        if plain {
            return self.plain_elements(block, (dst, prim), args, &views);
        }
        if let Some(function) = self.mapped(prim, n) {
            return self.map_by_machine(function, block, dst, args, &views);
        }
        let to = self.array_of(dst, (n, dtype, false), &views)?;
        let made = Known::Array(to.clone());
        let places: Vec<Option<String>> =
            views.iter().zip(args).map(|(view, arg)| self.place_of(block, view, *arg, &value.ty)).collect();
        let dtypes: Vec<DType> = views.iter().map(|view| view.dtype).collect();
        let without_branch = self.may_be_vectors(n).then(|| flat(prim, &dtypes)).flatten();
        let body = |w: &mut Self, e: Option<&str>| {
            let elements = views.iter().zip(&places).map(|(view, place)| w.element(view, place.as_deref()));
            let numbers: Vec<Number> = elements.collect();
            let number = match &without_branch {
                Some(function) => w.called_by_name(function, dtype, &numbers),
                None => w.in_lanes(prim, dtype, args, &numbers),
            };
            w.set(&to, e, &number);
        };
        match self.shares(block, dst, prim, args) {
            Some(n) => {
                let columns = self.columns(block, dst, args);
                self.in_loop((n, columns), &made, &views, |w| body(w, Some("e")));
            }
            None if mapped(prim).is_some() && self.is_scheduled() && value.ty.shape.len() == 1 => {
                self.each_at_length(n, body);
            }
            None => self.each_of(&value.ty.shape, body),
        }
        Some(made)
    }

    /// An array of plain ints or bools by a primitive, of such ones.
    fn plain_elements(
        &mut self,
        block: &Block<T>,
        (dst, prim): (ValueId, Prim),
        args: &[Operand],
        views: &[View],
    ) -> Option<Known> {
        let ty = &block.values[dst].ty;
        if !views.iter().all(|view| self.is_plain(view)) {
            return None;
        }
        let places: Vec<Option<String>> =
            views.iter().zip(args).map(|(view, arg)| self.place_of(block, view, *arg, ty)).collect();
        let to = self.array_of(dst, (ty.elements(), ty.dtype, true), views)?;
        self.each_of(&ty.shape, |w, e| {
            let elements = views.iter().zip(&places).map(|(view, place)| w.element(view, place.as_deref()));
            let numbers: Vec<Number> = elements.collect();
            let number = match w.plainly(prim, ty.dtype, &numbers) {
                Some(number) => number,
                None => w.in_lanes(prim, ty.dtype, args, &numbers),
            };
            w.set(&to, e, &number);
        });
        Some(Known::Array(to))
    }

    /// The element of an operand that serves element `e` of a result of this type: of one that has 1 where the result has
    /// more, the same elements serve again.
    pub(super) fn place_of(&self, block: &Block<T>, view: &View, operand: Operand, ty: &Type) -> Option<String> {
        match view.elements {
            1 => None,
            elements if elements == ty.elements() => Some("e".to_owned()),
            _ => {
                let shape = block.operand_type(operand, self.storage.globals).shape;
                Some(shapes::element(&shapes::indices_of_element(&ty.shape), &shape))
            }
        }
    }

    /// A group of lanes by a function of groups.
    fn in_lanes(&mut self, prim: Prim, dtype: DType, args: &[Operand], numbers: &[Number]) -> Number {
        let dtypes: Vec<DType> = numbers.iter().map(|number| number.dtype).collect();
        let texts: Vec<String> = numbers.iter().map(Number::in_lanes).collect();
        let divisor = match args.get(1) {
            Some(Operand::Const(Scalar::Int(d))) => *d,
            _ => 0,
        };
        let fresh = self.fresh("x");
        let called = called(prim, &dtypes, &texts, divisor, || fresh);
        called.declared().into_iter().for_each(|line| self.line(line));
        let number = self.named(Number::group(called.text.clone(), dtype));
        called.unused().into_iter().for_each(|line| self.line(line));
        for (bad, kind) in &called.checks {
            self.check(bad, *kind);
        }
        number
    }

    /// Whether a compiler may make vectors of a loop over so many elements: of one lane.
    fn may_be_vectors(&self, elements: usize) -> bool {
        elements > MOST_UNROLLED && self.straight.is_some() && !self.is_scheduled()
    }

    /// A group of lanes by the function of groups that has this name.
    fn called_by_name(&mut self, function: &str, dtype: DType, numbers: &[Number]) -> Number {
        let texts: Vec<String> = numbers.iter().map(Number::in_lanes).collect();
        self.named(Number::group(format!("{function}({})", texts.join(", ")), dtype))
    }

    /// A primitive of plain ints and bools; none for what is rare.
    fn plainly(&mut self, prim: Prim, dtype: DType, numbers: &[Number]) -> Option<Number> {
        let texts: Vec<&str> = numbers.iter().map(|number| number.text.as_str()).collect();
        let of_reals = numbers.iter().any(|number| number.dtype == DType::Real);
        let [a, b, c] = [0, 1, 2].map(|at| texts.get(at).copied().unwrap_or_default());
        let overflows = |w: &mut Self, function: &str, a: &str, b: &str| {
            let name = w.fresh("t");
            w.line(format!("int64_t {name};"));
            w.check_plain(
                &format!("__builtin_{function}_overflow({a}, {b}, &{name})"),
                TrapKind::IntegerOverflow,
                String::new(),
            );
            Number::plain(name, DType::Int)
        };
        let text = match prim.class() {
            _ if of_reals => return None,
            Class::Arithmetic(Arithmetic::Add) => return Some(overflows(self, "add", a, b)),
            Class::Arithmetic(Arithmetic::Sub) => return Some(overflows(self, "sub", a, b)),
            Class::Arithmetic(Arithmetic::Mul) => return Some(overflows(self, "mul", a, b)),
            Class::Arithmetic(Arithmetic::Neg) => return Some(overflows(self, "sub", "0LL", a)),
            Class::Arithmetic(Arithmetic::Min) => format!("{a} < {b} ? {a} : {b}"),
            Class::Arithmetic(Arithmetic::Max) => format!("{a} > {b} ? {a} : {b}"),
            Class::Comparison(comparison) => {
                let sign = match comparison {
                    Comparison::Eq => "==",
                    Comparison::Ne => "!=",
                    Comparison::Lt => "<",
                    Comparison::Le => "<=",
                    Comparison::Gt => ">",
                    Comparison::Ge => ">=",
                };
                format!("{a} {sign} {b}")
            }
            Class::Logic(Logic::And) => format!("{a} & {b}"),
            Class::Logic(Logic::Or) => format!("{a} | {b}"),
            Class::Logic(Logic::Not) => format!("!{a}"),
            Class::Selection(_) => format!("{a} ? {b} : {c}"),
            Class::Conversion(Conversion::BoolToInt) => a.to_owned(),
            _ => return None,
        };
        Some(self.named(Number::plain(text, dtype)))
    }

    /// All elements of a view, or the products of those of two, as one number: sums of reals of one block, at most.
    fn folded(&mut self, fold: Fold, dtype: DType, views: &[&View]) -> Number {
        let (n, of) = (views[0].elements, views[0].dtype);
        let views: Vec<View> = views.iter().map(|view| (*view).clone()).collect();
        let (name, ty) = (self.fresh("s"), group_type(of));
        let start = start(fold, of).unwrap_or_else(|| self.element(&views[0], Some("0")).in_lanes());
        self.line(format!("{ty} {name} = {start};"));
        self.each(n, |w, e| w.fold(fold, of, &name, (&views, e)));
        Number::group(name, dtype)
    }

    /// Over the axes where the result has 1.
    fn folded_axes(&mut self, fold: Fold, block: &Block<T>, ty: &Type, of: Operand) -> Option<Known> {
        let shape = block.operand_type(of, self.storage.globals).shape;
        let (view, n) = (self.view(of)?, ty.elements());
        let terms = view.elements / n;
        if terms > BLOCK || shape.len() != ty.shape.len() {
            return None;
        }
        let over: Vec<usize> =
            shape.iter().zip(&ty.shape).map(|(from, to)| if from == to { 1 } else { *from }).collect();
        let indices = shapes::indices("i", &ty.shape).into_iter().zip(shapes::indices("k", &over));
        let indices: Vec<String> = indices.map(|(kept, over)| if over == "0" { kept } else { over }).collect();
        let at = shapes::element(&indices, &shape);
        let to = self.array(n.max(2), ty.dtype, false)?;
        let (name, dtype) = (self.fresh("s"), view.dtype);
        self.open_loop_over("i", n);
        let start = start(fold, dtype).unwrap_or_else(|| {
            let first = at.replace("(k)", "(0)");
            self.element(&view, Some(&first)).in_lanes()
        });
        self.line(format!("{} {name} = {start};", group_type(dtype)));
        self.open_loop_over("k", terms);
        self.fold(fold, dtype, &name, (&[view], Some(&at)));
        self.close();
        self.set(&to, Some("i"), &Number::group(name, ty.dtype));
        self.close();
        Some(Known::Array(View { elements: n, ..to }))
    }

    /// One more element of each view.
    pub(super) fn fold(&mut self, fold: Fold, of: DType, name: &str, (views, e): (&[View], Option<&str>)) {
        let elements: Vec<String> = views.iter().map(|view| self.element(view, e).in_lanes()).collect();
        let fresh = self.fresh("x");
        let called = step(fold, of, name, &elements, || fresh);
        called.declared().into_iter().for_each(|line| self.line(line));
        self.line(format!("{name} = {};", called.text));
        for (bad, kind) in &called.checks {
            self.check(bad, *kind);
        }
    }

    fn contracted(
        &mut self,
        contraction: Contraction,
        block: &Block<T>,
        (dst, prim): (ValueId, Prim),
        args: &[Operand],
    ) -> Option<Known> {
        let ty = &block.values[dst].ty;
        let products = match contraction {
            Contraction::Dot | Contraction::MatMul | Contraction::BatchMatMul => Products::Ordinary,
            Contraction::ChainDot | Contraction::ChainMatMul | Contraction::ChainBatchMatMul => Products::ChainRule,
        };
        let fold = Fold::Products(products);
        if self.transposed(args[0]).is_some() {
            return self.by_kernel(prim, block, dst, args);
        }
        let (a, b) = (self.view(args[0])?, self.view(args[1])?);
        let shapes = [args[0], args[1]].map(|arg| block.operand_type(arg, self.storage.globals).shape);
        let batch = match contraction {
            Contraction::Dot | Contraction::ChainDot => {
                return Some(Known::Number(self.folded(fold, ty.dtype, &[&a, &b])));
            }
            Contraction::MatMul | Contraction::ChainMatMul => 1,
            Contraction::BatchMatMul | Contraction::ChainBatchMatMul => *shapes[0].first()?,
        };
        let inner = *shapes[0].last()?;
        if self.multiplies_by_machine(ty.elements() * inner) {
            return self.by_kernel(prim, block, dst, args);
        }
        // Larger products are better off as one product over the lanes.
        if inner == 0 || batch == 0 || inner > BLOCK || ty.elements() * inner > MOST_PRODUCTS {
            return None;
        }
        let (rows, columns) = (a.elements / inner / batch, b.elements / inner / batch);
        let (n, name) = (ty.elements(), self.fresh("s"));
        let to = self.array(n.max(2), ty.dtype, false)?;
        let of_batch = |stride: usize| if batch == 1 { String::new() } else { format!("n * {stride} + ") };
        for (counter, turns) in [("n", batch), ("i", rows), ("j", columns)] {
            self.open_loop_over(counter, turns);
        }
        self.line(format!("R {name} = r_splat(0.0);"));
        self.open_loop_over("k", inner);
        let left = format!("{}i * {inner} + k", of_batch(rows * inner));
        let right = format!("{}k * {columns} + j", of_batch(inner * columns));
        let factors = [self.element(&a, Some(&left)).in_lanes(), self.element(&b, Some(&right)).in_lanes()];
        let called = step(fold, DType::Real, &name, &factors, String::new);
        self.line(format!("{name} = {};", called.text));
        self.close();
        let at = format!("{}i * {columns} + j", of_batch(rows * columns));
        self.set(&to, Some(&at), &Number::group(name, DType::Real));
        (0..3).for_each(|_| self.close());
        let to = View { elements: n, ..to };
        if n > 1 {
            return Some(Known::Array(to));
        }
        let number = self.element(&to, None);
        Some(Known::Number(self.named(number)))
    }

    fn moved(
        &mut self,
        movement: Movement,
        block: &Block<T>,
        dst: ValueId,
        prim: Prim,
        args: &[Operand],
    ) -> Option<Known> {
        let value = &block.values[dst];
        let (ty, n) = (&value.ty, value.ty.elements());
        let plain = value.uniform && ty.dtype != DType::Real;
        let seen = |w: &mut Self, view: View| {
            if n > 1 {
                return Known::Array(view);
            }
            let number = w.element(&view, None);
            Known::Number(w.named(number))
        };
        match movement {
            Movement::Reshape => Some(self.known(args[0])),
            Movement::Fill => {
                let from = self.view(args[0])?;
                if from.elements == 1 {
                    let number = self.element(&from, None);
                    let view = View::whole(Place::One(number.clone()), n, ty.dtype);
                    return Some(if n == 1 { Known::Number(number) } else { Known::Array(view) });
                }
                let shape = block.operand_type(args[0], self.storage.globals).shape;
                let at = shapes::element(&shapes::indices_of_element(&ty.shape), &shape);
                let to = self.array(n, ty.dtype, plain && self.is_plain(&from))?;
                self.each_of(&ty.shape, |w, e| {
                    let element = w.element(&from, Some(&at));
                    w.set(&to, e, &element);
                });
                Some(Known::Array(to))
            }
            Movement::Index | Movement::Slice => {
                let first = self.place(block, prim, args[0], ty, &args[1..])?;
                let part = self.view(args[0])?.part(&first.plain, n);
                let Some(varying) = first.varying else { return Some(seen(self, part)) };
                let varying = self.named(Number::group(varying, DType::Int)).text;
                if n == 1 {
                    let number = self.gathered(&part, &varying, None)?;
                    return Some(Known::Number(self.named(number)));
                }
                // Any element may be read after others are written.
                let to = self.array_of(dst, (n, ty.dtype, false), &[part.nowhere_else()])?;
                self.try_each(n, |w, e| {
                    let element = w.gathered(&part, &varying, e)?;
                    w.set(&to, e, &element);
                    Some(())
                })?;
                Some(Known::Array(to))
            }
            Movement::SetIndex | Movement::SetSlice => {
                let part = block.operand_type(args[1], self.storage.globals);
                let first = self.place(block, prim, args[0], &part, &args[2..])?;
                let new = self.view(args[1])?;
                if n == 1 {
                    return Some(seen(self, new));
                }
                // What is read of the array that changes is read before.
                let is_there = new.elements > 1 && new.place == self.view(args[0])?.place;
                let new = if is_there { self.copied(&new)? } else { new };
                let to = self.replaced(dst, args[0], std::slice::from_ref(&new), plain && first.varying.is_none())?;
                let place = to.part(&first.plain, new.elements);
                match first.varying {
                    None => self.copy(&place, &new),
                    Some(varying) => {
                        let varying = self.named(Number::group(varying, DType::Int)).text;
                        self.try_each(new.elements, |w, e| {
                            let element = w.element(&new, e);
                            w.scattered(&place, &varying, e, &element)
                        })?;
                    }
                }
                Some(Known::Array(to))
            }
            Movement::MakeArray | Movement::Concat => {
                let parts: Vec<View> = args.iter().map(|a| self.view(*a)).collect::<Option<_>>()?;
                if n == 1 {
                    return Some(seen(self, parts[0].clone()));
                }
                let own = plain && parts.iter().all(|part| self.is_plain(part));
                let to = self.array_of(dst, (n, ty.dtype, own), &parts)?;
                let mut at = 0;
                for part in parts {
                    self.copy(&to.part(&(None, at), part.elements), &part);
                    at += part.elements;
                }
                Some(Known::Array(to))
            }
            Movement::Transpose | Movement::TransposeEach => {
                let from = self.view(args[0])?;
                let axis = usize::from(movement == Movement::TransposeEach);
                if n == 1 {
                    return Some(seen(self, from));
                }
                let (mut indices, mut shape) = (shapes::indices_of_element(&ty.shape), ty.shape.clone());
                indices.swap(axis, axis + 1);
                shape.swap(axis, axis + 1);
                let at = shapes::element(&indices, &shape);
                let to = self.array(n, ty.dtype, plain && self.is_plain(&from))?;
                self.each_of(&ty.shape, |w, e| {
                    let element = w.element(&from, Some(&at));
                    w.set(&to, e, &element);
                });
                Some(Known::Array(to))
            }
            Movement::Gather => {
                let (from, places) = (self.view(args[0])?, self.places(block, args[0], &args[1..])?);
                let rest = n / places.count;
                let own = plain && self.is_plain(&from);
                // Any element may be read, and so may indices, after others are written.
                let read: Vec<View> = places.views().chain([&from]).map(View::nowhere_else).collect();
                let to = self.array_of(dst, (n.max(2), ty.dtype, own), &read)?;
                let at = self.open_places(&places);
                self.copy(&to.part(&(Some(format!("r * {rest}")), 0), rest), &from.part(&(Some(at), 0), rest));
                self.close();
                Some(seen(self, View { elements: n, ..to }))
            }
            Movement::Scatter | Movement::ScatterAdd => {
                let adds = movement == Movement::ScatterAdd;
                if ty.dtype != DType::Real && (n == 1 || adds) {
                    return None;
                }
                let (new, mut places) = (self.view(args[1])?, self.places(block, args[0], &args[2..])?);
                let rest = new.elements / places.count;
                let old = self.view(args[0])?;
                // What is read of the array that changes is read before.
                let new = if n > 1 && new.place == old.place { self.copied(&new)? } else { new };
                for (view, ..) in &mut places.axes {
                    if view.place == old.place {
                        *view = self.copied(view)?;
                    }
                }
                let read: Vec<View> = places.views().chain([&new]).cloned().collect();
                let to = if n == 1 {
                    // One number stands in no array, and the places are all the same.
                    let to = View { elements: 1, ..self.array(2, ty.dtype, false)? };
                    self.copy(&to, &old);
                    to
                } else {
                    self.replaced(dst, args[0], &read, plain)?
                };
                let at = self.open_places(&places);
                let (to_part, from) =
                    (to.part(&(Some(at), 0), rest), new.part(&(Some(format!("r * {rest}")), 0), rest));
                self.each(rest, |w, e| {
                    let element = w.element(&from, e);
                    if !adds {
                        return w.set(&to_part, e, &element);
                    }
                    let sum = format!("r_add({}, {})", w.element(&to_part, e).text, element.in_lanes());
                    w.set(&to_part, e, &Number::group(sum, DType::Real));
                });
                self.close();
                Some(seen(self, to))
            }
            Movement::Iota if plain && n > 1 => {
                let to = self.array(n, ty.dtype, true)?;
                self.each(n, |w, e| w.set(&to, e, &Number::plain(e.unwrap_or("0"), DType::Int)));
                Some(Known::Array(to))
            }
            Movement::Iota => None,
        }
    }

    /// The places that indices name, some of which are arrays; none for indices that may differ between the lanes of a
    /// group, and of nothing.
    fn places(&mut self, block: &Block<T>, array: Operand, indices: &[Operand]) -> Option<Places> {
        let shape = block.operand_type(array, self.storage.globals).shape;
        let axes = indices.iter().enumerate().map(|(axis, index)| {
            // All ints of one lane are plain ones.
            let view = self.view(*index).filter(|view| self.straight.is_some() || self.is_plain(view))?;
            Some((view, shape[axis], shape[axis + 1..].iter().product()))
        });
        let axes: Vec<(View, usize, usize)> = axes.collect::<Option<_>>()?;
        let count = axes.iter().map(|(view, ..)| view.elements).max().filter(|count| *count > 0)?;
        Some(Places { axes, count })
    }

    /// Opens a loop over places, with the place `r` at hand. Returns where its elements begin.
    fn open_places(&mut self, places: &Places) -> String {
        // Whether any is out of range is known sooner than which is the first: of that all are looked at together.
        let is_long = places.count > MOST_UNROLLED;
        let bad = is_long.then(|| self.fresh("x"));
        if let Some(bad) = &bad {
            self.line(format!("int64_t {bad} = 0;"));
            self.open_loop_over("r", places.count);
            for (view, extent, _) in &places.axes {
                let index = self.index_of_place(view);
                self.line(format!("{bad} |= (uint64_t){index} >= {extent};"));
            }
            self.close();
            self.open(&format!("if (AB_RARE({bad})) {{"));
        }
        self.open_loop_over("r", places.count);
        for (view, extent, _) in &places.axes {
            let index = self.index_of_place(view);
            let site = self.site(TrapKind::IndexOutOfRange, String::new(), Some((*extent, 1)));
            let outside = format!("(uint64_t){index} >= {extent}");
            self.line(self.frame.trap_all(&outside, site, Some(&index)));
        }
        if bad.is_some() {
            self.close();
            self.close();
            self.open_loop_over("r", places.count);
        }
        let term = |(view, _, stride): &(View, usize, usize)| {
            let index = self.index_of_place(view);
            if *stride == 1 { index } else { format!("{index} * {stride}") }
        };
        places.axes.iter().map(term).collect::<Vec<_>>().join(" + ")
    }

    /// The index of the place `r`, under a name.
    fn index_of_place(&mut self, view: &View) -> String {
        let index = self.element(view, (view.elements > 1).then_some("r"));
        let plain = self.made_plain(&index);
        self.named(Number::plain(plain, DType::Int)).text
    }

    /// The array that gets new parts: where the old one is, if nobody reads that any more. These are read when it is there
    /// already, and stand elsewhere than the old one.
    fn replaced(&mut self, dst: ValueId, old: Operand, read: &[View], plain: bool) -> Option<View> {
        let from = self.view(old)?;
        let old = old.var();
        // What differs between lanes does not fit into plain ints and bools.
        let fits = plain || !self.is_plain(&from);
        if fits && self.updates.of_variable[dst].is_some() {
            self.spare(&from, None)?;
            return Some(from);
        }
        let own = matches!(&from.place, Place::Local { name, .. } if name.starts_with('a'));
        let whole = from.first == (None, 0);
        if fits && own && whole && old.is_some_and(|old| self.updates.last_read[old] == self.at()) {
            self.spare(&from, old)?;
            return Some(from);
        }
        let to = (from.elements, from.dtype, plain && self.is_plain(&from));
        let read: Vec<View> = read.iter().map(View::nowhere_else).chain([from.clone()]).collect();
        let to = self.array_of(dst, to, &read)?;
        if from != to {
            self.copy(&to, &from);
        }
        Some(to)
    }

    /// Where the part begins that indices name, which trap the lanes where they are out of range; none where some always
    /// are.
    fn place(
        &mut self,
        block: &Block<T>,
        prim: Prim,
        array: Operand,
        part: &Type,
        indices: &[Operand],
    ) -> Option<First> {
        let shape = block.operand_type(array, self.storage.globals).shape;
        let entries = match prim {
            Prim::Slice | Prim::SetSlice => Some(*part.shape.first()?),
            _ => None,
        };
        let mut first = First::default();
        for (axis, index) in indices.iter().enumerate() {
            let stride: usize = shape[axis + 1..].iter().product();
            // Indices that are in range are fewer than these.
            let ways = match (shape[axis] + 1).checked_sub(entries.unwrap_or(1)) {
                Some(ways) => ways,
                None if self.frame.has_all() => 0,
                None => return None,
            };
            if let Operand::Const(Scalar::Int(i)) = index {
                match usize::try_from(*i).ok().filter(|i| *i < ways) {
                    Some(i) => first.plain.1 += i * stride,
                    // There are no steps that would trap.
                    None if self.frame.has_all() => {
                        let extent = Some((shape[axis], entries.unwrap_or(1)));
                        let site = self.site(TrapKind::IndexOutOfRange, String::new(), extent);
                        self.line(self.frame.trap_all("1", site, Some(&format!("{i}LL"))));
                    }
                    None => return None,
                }
                continue;
            }
            let index = self.number(*index);
            let index =
                if index.text.contains(|c: char| !c.is_ascii_alphanumeric()) { self.named(index) } else { index };
            let site = self.site(TrapKind::IndexOutOfRange, String::new(), Some((shape[axis], entries.unwrap_or(1))));
            let line = match index.plain {
                true => {
                    let outside = format!("(uint64_t){} >= {ways}", index.text);
                    self.frame.trap_all(&outside, site, Some(&index.text))
                }
                false => {
                    let [i, zero] = [&index.text, "i_splat(0)"];
                    let outside = format!("b_or(i_lt({i}, {zero}), i_ge({i}, i_splat({ways})))");
                    self.frame.trap_indices(&outside, site, i)
                }
            };
            self.line(line);
            first.add(&index, stride);
        }
        Some(first)
    }
}
