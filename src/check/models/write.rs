//! The functions that a model is below: what `log_density`, `parameters` and the others are made of.

use std::collections::HashSet;
use std::sync::Arc;

use crate::base::Span;
use crate::syntax::ast::{
    BinaryOp, Block, Expr, ExprKind, Field, FnDecl, Index, Item, ItemKind, Message, MessagePart, ModelDecl, Name,
    Param, Stmt, StmtKind, TypeExpr, UnaryOp,
};

use super::dims::Carriers;
use super::entries::{AllCarriers, Computed, Entry, Parameter, Signature};
use super::make::{At, HERE, param, product, sum};
use super::reads::reads;
use super::transforms::Transform;
use super::{CONSTRAINED, DENSITY, PARAMETERS, PARAMETERS_TYPE, QUANTITIES, QUANTITIES_TYPE, Role, TRANSFORMED};
use super::{UNCONSTRAIN, UNCONSTRAIN_GIVEN, WITHOUT_GENERATED, WITHOUT_JACOBIAN};

/// How far a value may be from what its constraint makes of it again, summed over its elements, relative to their sizes.
const CLOSE: f64 = 1e-8;

/// Writes the functions of a model.
pub(super) struct Writer<'a> {
    pub(super) decl: &'a ModelDecl,
    pub(super) doc: &'a str,
    /// All of the model.
    pub(super) span: Span,
    pub(super) signature: &'a Signature<'a>,
    pub(super) carriers: &'a AllCarriers,
    /// The name of the unconstrained numbers: no word of the model.
    pub(super) state: &'a str,
    /// The text of a place.
    pub(super) text: &'a dyn Fn(Span) -> String,
}

/// A parameter with the unconstrained numbers that it comes from.
struct Placed<'a> {
    parameter: Parameter<'a>,
    /// The local that has them, under their shape.
    local: String,
}

impl<'a> Writer<'a> {
    fn at(&self) -> At {
        At(self.decl.name.span)
    }

    fn parameters(&self) -> impl Iterator<Item = Parameter<'a>> {
        self.signature.entries.iter().filter_map(|entry| match entry {
            Entry::Parameter(parameter) => Some(*parameter),
            Entry::Computed(_) => None,
        })
    }

    fn computed(&self) -> impl Iterator<Item = Computed<'a>> {
        self.signature.entries.iter().filter_map(|entry| match entry {
            Entry::Computed(computed) => Some(*computed),
            Entry::Parameter(_) => None,
        })
    }

    /// What is computed of each draw besides its parameters.
    fn quantities(&self) -> Vec<&'a Name> {
        self.computed().map(|computed| computed.name).chain(self.signature.generated.iter().copied()).collect()
    }

    // Functions

    /// The log density over the constrained values: the body.
    pub(super) fn body(&self) -> (Item, Role) {
        let tail = Expr { kind: ExprKind::Block(self.decl.body.clone()), span: self.decl.body.span };
        let stmts = self.computed().map(compute).collect();
        let body = Block { stmts, tail: Some(Box::new(tail)), span: self.decl.body.span };
        let ret = Some(self.at().real_type(vec![]));
        let item = self.function(&self.decl.name.text, self.by_value(), ret, body, false);
        (item, Role::Body)
    }

    /// The functions that give what is computed of parameters, with what is generated and without, and their results; none
    /// where nothing is.
    pub(super) fn generated(&self) -> Vec<(Item, Role)> {
        let computed: Vec<&Name> = self.computed().map(|computed| computed.name).collect();
        let mut items = self.of_values((QUANTITIES, QUANTITIES_TYPE), &self.quantities(), true);
        if !self.signature.generated.is_empty() {
            items.extend(self.of_values(TRANSFORMED, &computed, false));
        }
        items
    }

    /// A function of the parameters by value, and what it gives.
    fn of_values(&self, (name, result): (&str, &str), names: &[&'a Name], generated: bool) -> Vec<(Item, Role)> {
        if names.is_empty() {
            return vec![];
        }
        let at = self.at();
        let mut stmts: Vec<Stmt> = self.computed().map(compute).collect();
        let block = self.decl.generated.iter().filter(|_| generated);
        stmts.extend(block.flat_map(|block| block.stmts.iter().cloned()));
        let fields = names.iter().map(|name| ((*name).clone(), at.var(&name.text))).collect();
        let body = at.block(stmts, self.literal(result, fields));
        let ret = Some(at.struct_type(result, &self.decl.dims));
        vec![
            (self.structure(result, names), Role::Inferred),
            (self.function(name, self.by_value(), ret, body, true), Role::Made),
        ]
    }

    /// All functions of the unconstrained numbers, and their inverse.
    pub(super) fn of_state(&self) -> Vec<(Item, Role)> {
        let mut items = self.draw((PARAMETERS, PARAMETERS_TYPE), (QUANTITIES, &self.quantities()));
        let computed: Vec<&Name> = self.computed().map(|computed| computed.name).collect();
        if !self.signature.generated.is_empty() {
            items.extend(self.draw(WITHOUT_GENERATED, (TRANSFORMED.0, &computed)));
        }
        if !computed.is_empty() {
            items.extend(self.draw(CONSTRAINED, (QUANTITIES, &[])));
        }
        items.extend([
            (self.density(DENSITY, true), Role::Made),
            (self.density(WITHOUT_JACOBIAN, false), Role::Made),
            (self.unconstrain(), Role::Made),
            (self.unconstrain_given(), Role::Made),
        ]);
        items
    }

    /// `parameters`, with quantities that a function of the parameters by value gives; and its result.
    fn draw(&self, (name, result): (&str, &str), (of_values, quantities): (&str, &[&'a Name])) -> Vec<(Item, Role)> {
        let at = self.at();
        let (mut stmts, _) = self.constrained();
        let held = "%quantities";
        if !quantities.is_empty() {
            let value = at.call(HERE, of_values, self.arguments());
            stmts.push(at.bind(at.name(held), None, value));
        }
        let of_quantities = |name: &&Name| {
            let base = Box::new(at.var(held));
            ((*name).clone(), at.expr(ExprKind::Field { base, name: (*name).clone() }))
        };
        let parameters = self.parameters().map(|p| (p.name.clone(), at.var(&p.name.text)));
        let fields = parameters.chain(quantities.iter().map(of_quantities)).collect();
        let body = at.block(stmts, self.literal(result, fields));
        let ret = Some(at.struct_type(result, &self.decl.dims));
        let outputs: Vec<&Name> = self.parameters().map(|p| p.name).chain(quantities.iter().copied()).collect();
        vec![
            (self.structure(result, &outputs), Role::Inferred),
            (self.function(name, self.of_numbers(), ret, body, true), Role::Made),
        ]
    }

    /// `log_density`, with the log Jacobian or without
    fn density(&self, name: &str, jacobian: bool) -> Item {
        let at = self.at();
        let (stmts, placed) = self.constrained();
        let mut terms = vec![at.call(HERE, &self.decl.name.text, self.arguments())];
        for Placed { parameter, local } in placed.iter().filter(|_| jacobian) {
            let u = At(parameter.span).var(local);
            terms.extend(parameter.transform.log_jacobian(parameter.span, u, parameter.extents));
        }
        let body = at.block(stmts, sum(at, terms));
        self.function(name, self.of_numbers(), Some(at.real_type(vec![])), body, true)
    }

    /// `unconstrain`
    fn unconstrain(&self) -> Item {
        let at = self.at();
        let needed = self.needed();
        let (mut stmts, mut parts) = (Vec::new(), Vec::new());
        for entry in &self.signature.entries {
            match entry {
                Entry::Computed(computed) if needed.contains(&computed.name.text) => stmts.push(compute(*computed)),
                Entry::Computed(_) => {}
                Entry::Parameter(parameter) => {
                    let at = At(parameter.span);
                    let local = format!("%u{}", parts.len());
                    let x = at.var(&parameter.name.text);
                    let u = parameter.transform.unconstrain(parameter.span, x, parameter.extents);
                    stmts.push(at.bind(at.name(&local), None, u));
                    parts.push(flat(*parameter, &local));
                    self.check(*parameter, &local, &at.expr(ExprKind::Bool(true)), &mut stmts);
                }
            }
        }
        let all = joined(at, parts);
        let ret = at.real_type(vec![self.dimension()]);
        self.function(UNCONSTRAIN, self.by_value(), Some(ret), at.block(stmts, all), true)
    }

    /// `unconstrain_given`: what a start has of some parameters replaces the unconstrained numbers of these; bounds are those
    /// that follow.
    fn unconstrain_given(&self) -> Item {
        let at = self.at();
        let needed = self.needed();
        let (mut stmts, mut parts) = (Vec::new(), Vec::new());
        let mut start = at.int(0);
        let given = format!("{}_given", self.state);
        for entry in &self.signature.entries {
            let parameter = match entry {
                Entry::Computed(computed) if needed.contains(&computed.name.text) => {
                    stmts.push(compute(*computed));
                    continue;
                }
                Entry::Computed(_) => continue,
                Entry::Parameter(parameter) => *parameter,
            };
            let at = At(parameter.span);
            let number = parts.len();
            let (numbers, next) = self.numbers(parameter, number, start, &mut stmts);
            start = next;
            let x = at.var(&parameter.name.text);
            let own = parameter.transform.unconstrain(parameter.span, x.clone(), parameter.extents);
            let is_given = at.index(at.var(&given), vec![Index::At(at.int(number as i64))]);
            let local = format!("%u{number}");
            stmts.push(at.bind(at.name(&local), None, at.choose(is_given.clone(), own, numbers)));
            self.check(parameter, &local, &is_given, &mut stmts);
            let again = parameter.transform.constrain(parameter.span, at.var(&local), parameter.extents);
            let value = at.choose(is_given, x, again);
            stmts.push(at.bind(parameter.name.clone(), Some(parameter.ty.clone()), value));
            parts.push(flat(parameter, &local));
        }
        let all = joined(at, parts);
        let flags =
            param(&at.name(&given), &at.array_type("bool", vec![at.int(self.parameters().count() as i64)]), true);
        let state = param(&at.name(self.state), &at.real_type(vec![self.dimension()]), false);
        let values = self.parameters().map(|p| param(p.name, p.ty, false));
        let params = [state, flags].into_iter().chain(values).chain(self.data(&self.carriers.of_numbers)).collect();
        let ret = at.real_type(vec![self.dimension()]);
        self.function(UNCONSTRAIN_GIVEN, params, Some(ret), at.block(stmts, all), true)
    }

    // Parts of them

    /// The unconstrained numbers of a parameter under their shape, which begin at `start`; and where the next ones do.
    fn numbers(&self, parameter: Parameter<'a>, number: usize, start: Expr, stmts: &mut Vec<Stmt>) -> (Expr, Expr) {
        let at = At(parameter.span);
        let (free, _) = parameter.transform.free(parameter.span, parameter.extents);
        let next = format!("%at{number}");
        let end = at.binary(BinaryOp::Add, start.clone(), product(at, &free));
        stmts.push(at.bind(at.name(&next), None, end));
        let numbers = match free.len() {
            0 => at.index(at.var(self.state), vec![Index::At(start)]),
            _ => at.slice(at.var(self.state), start, at.var(&next)),
        };
        let numbers = match free.len() {
            0 | 1 => numbers,
            _ => at.library("reshape", [vec![numbers], free].concat()),
        };
        (numbers, at.var(&next))
    }

    /// Asserts that a value, where it is given, is what its constraint makes of its unconstrained numbers again.
    fn check(&self, parameter: Parameter<'a>, local: &str, is_given: &Expr, stmts: &mut Vec<Stmt>) {
        let Parameter { name, extents, transform, span, .. } = parameter;
        if matches!(transform, Transform::Free) {
            return;
        }
        let at = At(span);
        let again = transform.constrain(span, at.var(local), extents);
        let x = || at.var(&name.text);
        let size = |e: Expr| at.library("abs", vec![e]);
        let off = size(at.binary(BinaryOp::Sub, again, x()));
        let scale = at.binary(BinaryOp::Add, at.real(1.0), size(x()));
        let off = at.binary(BinaryOp::Div, off, scale);
        let off = match extents.len() {
            0 => off,
            1 => at.library("sum", vec![off]),
            _ => at.library("sum", vec![at.library("reshape", vec![off, product(at, extents)])]),
        };
        let close = at.binary(BinaryOp::Le, off, at.real(CLOSE));
        let condition = match &is_given.kind {
            ExprKind::Bool(true) => close,
            _ => {
                let left_out = at.expr(ExprKind::Unary(UnaryOp::Not, Box::new(is_given.clone())));
                at.binary(BinaryOp::Or, left_out, close)
            }
        };
        let condition = Box::new(condition);
        let said = format!("`{}` is not {}", name.text, (self.text)(span));
        let message = Some(Message { parts: vec![MessagePart::Text(said)], span });
        let kind = ExprKind::Assert { condition, message };
        stmts.push(Stmt { kind: StmtKind::Expr(at.expr(kind)), span });
    }

    /// Binds all parameters, and what their bounds read of what is computed.
    fn constrained(&self) -> (Vec<Stmt>, Vec<Placed<'a>>) {
        let needed = self.needed();
        let (mut stmts, mut placed) = (Vec::new(), Vec::new());
        // Where the next numbers begin: an int, as an expression that stays small.
        let mut start = self.at().int(0);
        for entry in &self.signature.entries {
            match entry {
                Entry::Computed(computed) if needed.contains(&computed.name.text) => stmts.push(compute(*computed)),
                Entry::Computed(_) => {}
                Entry::Parameter(parameter) => {
                    let at = At(parameter.span);
                    let number = placed.len();
                    let (numbers, next) = self.numbers(*parameter, number, start, &mut stmts);
                    let local = format!("%u{number}");
                    stmts.push(at.bind(at.name(&local), None, numbers));
                    let u = at.var(&local);
                    let value = parameter.transform.constrain(parameter.span, u, parameter.extents);
                    stmts.push(at.bind(parameter.name.clone(), Some(parameter.ty.clone()), value));
                    placed.push(Placed { parameter: *parameter, local });
                    start = next;
                }
            }
        }
        (stmts, placed)
    }

    /// Names of what is computed that bounds read.
    fn needed(&self) -> HashSet<Arc<str>> {
        let mut needed: HashSet<Arc<str>> = HashSet::new();
        for entry in self.signature.entries.iter().rev() {
            let read: Vec<&Name> = match entry {
                Entry::Parameter(parameter) => parameter.transform.bounds().into_iter().flat_map(reads).collect(),
                Entry::Computed(computed) if needed.contains(&computed.name.text) => {
                    computed.value.into_iter().flat_map(reads).collect()
                }
                Entry::Computed(_) => vec![],
            };
            needed.extend(read.into_iter().map(|name| name.text.clone()));
        }
        needed
    }

    /// How many unconstrained numbers there are.
    fn dimension(&self) -> Expr {
        let sizes = self.parameters().map(|p| product(At(p.span), &p.transform.free(p.span, p.extents).0));
        sum(self.at(), sizes)
    }

    fn data(&self, carriers: &'a Carriers) -> impl Iterator<Item = Param> {
        let data = self.signature.data.iter().map(|(name, ty)| param(name, ty, true));
        data.chain(carriers.iter().map(|(name, ty)| param(name, ty, true)))
    }

    /// The parameters of functions of constrained values.
    fn by_value(&self) -> Vec<Param> {
        self.parameters().map(|p| param(p.name, p.ty, false)).chain(self.data(&self.carriers.by_value)).collect()
    }

    /// The parameters of functions of unconstrained numbers.
    fn of_numbers(&self) -> Vec<Param> {
        let at = self.at();
        let state = param(&at.name(self.state), &at.real_type(vec![self.dimension()]), false);
        std::iter::once(state).chain(self.data(&self.carriers.of_numbers)).collect()
    }

    /// What a function of constrained values is called with where all of them are bound.
    fn arguments(&self) -> Vec<Expr> {
        let data = self.signature.data.iter().map(|(name, _)| *name);
        let carriers = self.carriers.by_value.iter().map(|(name, _)| name);
        let names = self.parameters().map(|p| p.name).chain(data).chain(carriers);
        names.map(|name| self.at().var(&name.text)).collect()
    }

    fn literal(&self, name: &str, fields: Vec<(Name, Expr)>) -> Expr {
        let at = self.at();
        at.expr(ExprKind::Struct { path: at.path(HERE, name), fields, base: None })
    }

    fn function(&self, name: &str, params: Vec<Param>, ret: Option<TypeExpr>, body: Block, public: bool) -> Item {
        let dims = self.decl.dims.clone();
        let decl = FnDecl { name: self.at().name(name), dims, params, ret, body };
        self.item(ItemKind::Fn(decl), public)
    }

    /// A struct with these fields, whose types are those of the first value that is made.
    fn structure(&self, name: &str, fields: &[&'a Name]) -> Item {
        let at = self.at();
        let field = |name: &&Name| Field { name: (*name).clone(), ty: at.real_type(vec![]) };
        let fields = fields.iter().map(field).collect();
        self.item(ItemKind::Struct { name: at.name(name), dims: self.decl.dims.clone(), fields }, true)
    }

    fn item(&self, kind: ItemKind, public: bool) -> Item {
        Item { doc: self.doc.to_owned(), attributes: Vec::new(), public, kind, span: self.span }
    }
}

/// The unconstrained numbers of a parameter, a local, as a vector.
fn flat(parameter: Parameter<'_>, local: &str) -> Expr {
    let at = At(parameter.span);
    let (free, _) = parameter.transform.free(parameter.span, parameter.extents);
    match free.len() {
        0 => at.expr(ExprKind::Array(vec![at.var(local)])),
        1 => at.var(local),
        _ => at.library("reshape", vec![at.var(local), product(at, &free)]),
    }
}

/// Vectors one after the other.
fn joined(at: At, mut parts: Vec<Expr>) -> Expr {
    match parts.len() {
        0 => at.library("zeros", vec![at.int(0)]),
        1 => parts.remove(0),
        _ => at.library("concat", parts),
    }
}

/// `let name: type = value;`
fn compute(computed: Computed<'_>) -> Stmt {
    let at = At(computed.name.span);
    let value = computed.value.cloned().unwrap_or_else(|| at.expr(ExprKind::Error));
    at.bind(computed.name.clone(), computed.ty.cloned(), value)
}
