//! The types of expressions.

use crate::base::{Diagnostic, Span, work};
use crate::stan::syntax::ast::{Expr, ExprKind, Index, Name, UnsizedType};

use super::context::{Checker, is_unnormalized, normalized};
use super::resolve::Value;
use super::scope::BlockName;
use super::types::{Level, Suffix, Type, common, dimensions, is_complex, spelled};

impl Checker {
    /// The type of an expression; `None` when an error was reported.
    pub(super) fn expr(&mut self, expr: &Expr) -> Option<Value> {
        work::add(1);
        let value = self.expr_kind(expr)?;
        self.typed(expr.span, &value);
        Some(value)
    }

    fn expr_kind(&mut self, expr: &Expr) -> Option<Value> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Int(text) => self.int_literal(text, span),
            ExprKind::Real(_) => Some(Value::new(UnsizedType::Real, Level::Data)),
            ExprKind::Imaginary(_) => Some(Value::new(UnsizedType::Complex, Level::Data)),
            ExprKind::Variable(name) => self.name(name),
            ExprKind::Unary(op, operand) => self.unary(*op, operand, span),
            ExprKind::Transpose(operand) => self.transpose(operand, span),
            ExprKind::Binary(op, left, right) => self.binary(*op, left, right, span),
            ExprKind::Conditional(condition, then, otherwise) => self.conditional(condition, then, otherwise, span),
            ExprKind::Call { name, args, bar } => self.call(name, args, *bar, span),
            ExprKind::Target => self.target(span),
            ExprKind::Array(elements) => self.array(elements, span),
            ExprKind::RowVector(elements) => self.row_vector(elements, span),
            ExprKind::Paren(inner) => self.expr(inner),
            ExprKind::Index { base, indices } => {
                let checked = self.indices(indices);
                let base = self.expr(base)?;
                self.indexed(&base, &checked?, span)
            }
            ExprKind::TupleField { base, index, index_span } => {
                let base = self.expr(base)?;
                self.field(&base, *index, *index_span, span)
            }
            ExprKind::Tuple(parts) => self.tuple(parts),
            ExprKind::Error => None,
        }
    }

    /// A value, not a function.
    pub(super) fn value(&mut self, expr: &Expr) -> Option<(UnsizedType, Level)> {
        let value = self.expr(expr)?;
        match value.ty {
            Type::Value(ty) => Some((ty, value.level)),
            Type::Function(_) | Type::LibraryFunction => {
                let label = "functions are given to functions that take them, and nothing else";
                self.error("E2108", "a function is no value here", expr.span, label)
            }
        }
    }

    /// All of them, when none has an error.
    pub(super) fn exprs(&mut self, exprs: &[Expr]) -> Option<Vec<Value>> {
        let values: Vec<Option<Value>> = exprs.iter().map(|expr| self.expr(expr)).collect();
        values.into_iter().collect()
    }

    fn values(&mut self, exprs: &[Expr]) -> Option<Vec<(UnsizedType, Level)>> {
        let values: Vec<Option<(UnsizedType, Level)>> = exprs.iter().map(|expr| self.value(expr)).collect();
        values.into_iter().collect()
    }

    /// An expression that must be an int. `what` is what it is of: "the condition of `if`".
    pub(super) fn int(&mut self, expr: &Expr, what: &str) -> Option<Level> {
        match self.value(expr)? {
            (UnsizedType::Int, level) => Some(level),
            (ty, _) => {
                let message = format!("{what} must be int, but is {}", spelled(&ty));
                self.error("E2205", message, expr.span, format!("{} here", spelled(&ty)))
            }
        }
    }

    fn int_literal(&mut self, text: &str, span: Span) -> Option<Value> {
        if text.replace('_', "").parse::<i32>().is_err() {
            let error = Diagnostic::error("E2211", "int too large", span, "the largest int is 2147483647");
            self.report(error.with_help("write a real: with `.0` at its end"));
        }
        Some(Value::new(UnsizedType::Int, Level::Data))
    }

    /// A name alone: a variable, or a function that is an argument.
    fn name(&mut self, name: &Name) -> Option<Value> {
        self.check_name(name);
        if let Some(local) = self.scope.variable(&normalized(&name.text)).cloned() {
            self.means(name);
            self.size_reads(name, local.block, local.at);
            let ty = local.ty?;
            return Some(Value { level: self.level_of(local.block, &ty), ty: Type::Value(ty) });
        }
        let level = if self.at.block == BlockName::GeneratedQuantities { Level::Data } else { Level::Parameter };
        let stem = normalized(&name.text);
        if let Some(candidate) = self.scope.functions(&stem).first() {
            let ty = Type::Function(candidate.function.clone());
            self.check_unnormalized(name);
            return Some(Value { ty, level });
        }
        if self.is_library(&stem) {
            self.check_unnormalized(name);
            return Some(Value { ty: Type::LibraryFunction, level });
        }
        let error = Diagnostic::error("E2101", format!("unknown name `{}`", name.text), name.span, "nothing has it");
        self.report(match self.did_you_mean(&name.text, false) {
            Some(help) => error.with_help(help),
            None => error,
        });
        None
    }

    /// Sizes at the top of a block are of data.
    fn size_reads(&mut self, name: &Name, block: BlockName, at: Span) {
        use BlockName::{GeneratedQuantities, Parameters, TransformedParameters};
        if self.at.in_size && matches!(block, Parameters | TransformedParameters | GeneratedQuantities) {
            let message = format!("the size depends on `{}`, which is no data", name.text);
            let error = Diagnostic::error("E2109", message, name.span, "sizes are known before the parameters are");
            let error = error.with_label(at, format!("it is declared in `{}`", block.text()));
            self.report(error.with_help("compute the size in `data` or `transformed data`"));
        }
    }

    /// Names that Stan keeps for itself.
    pub(super) fn check_name(&mut self, name: &Name) {
        const RESERVED: [&str; 15] = [
            "generated",
            "quantities",
            "transformed",
            "repeat",
            "until",
            "then",
            "true",
            "false",
            "typedef",
            "struct",
            "var",
            "export",
            "extern",
            "static",
            "auto",
        ];
        let label = if name.text.ends_with("__") {
            "names that end in two underscores are Stan's own"
        } else if RESERVED.contains(&&*name.text) {
            "the word is reserved"
        } else {
            return;
        };
        self.error::<()>("E2104", format!("`{}` cannot be a name", name.text), name.span, label);
    }

    /// `_lupdf` stands only where constants may be dropped.
    pub(super) fn check_unnormalized(&mut self, name: &Name) {
        let in_density = self.at.in_function(Suffix::Density) || self.at.in_function(Suffix::Mass);
        if !is_unnormalized(&name.text) || in_density || self.at.block == BlockName::Model {
            return;
        }
        let message = format!("`{}` outside `model` and functions that end in `_lpdf` or `_lpmf`", name.text);
        let error = Diagnostic::error("E2404", message, name.span, "constants cannot be dropped here");
        self.report(error.with_help(format!("use `{}`", normalized(&name.text))));
    }

    fn conditional(&mut self, condition: &Expr, then: &Expr, otherwise: &Expr, span: Span) -> Option<Value> {
        let condition = self.int(condition, "the condition of `? :`");
        let (then_value, otherwise_value) = (self.value(then), self.value(otherwise));
        let (condition, (a, a_level), (b, b_level)) = (condition?, then_value?, otherwise_value?);
        let level = a_level.join(&b_level).and_then(|level| level.join(&condition));
        match (common(&a, &b), level) {
            (Some(ty), Some(level)) => Some(Value::new(ty, level)),
            _ => {
                let message = format!("the two sides of `:` are {} and {}", spelled(&a), spelled(&b));
                let error = Diagnostic::error("E2206", message, then.span, spelled(&a));
                self.report_in(error.with_label(otherwise.span, spelled(&b)), span);
                None
            }
        }
    }

    fn target(&mut self, span: Span) -> Option<Value> {
        if !self.at.has_target() && self.at.block != BlockName::TransformedParameters {
            let label = "here is no log density";
            let message = "`target()` outside `model` and functions that end in `_lp`";
            self.error::<()>("E2401", message, span, label);
        }
        Some(Value::new(UnsizedType::Real, self.level_of(self.at.block, &UnsizedType::Real)))
    }

    fn array(&mut self, elements: &[Expr], span: Span) -> Option<Value> {
        let values = self.values(elements)?;
        let Some((first, _)) = values.first() else {
            return self.error("E2207", "an array without elements has no type", span, "write at least one");
        };
        let mut element = first.clone();
        let mut level = Level::Data;
        for ((ty, of), expr) in values.iter().zip(elements) {
            let Some((joined, together)) = common(&element, ty).zip(level.join(of)) else {
                let message = format!("elements are {} and {}", spelled(&element), spelled(ty));
                let error = Diagnostic::error("E2207", message, expr.span, format!("{} here", spelled(ty)));
                self.report(error.with_label(elements[0].span, spelled(first)));
                return None;
            };
            (element, level) = (joined, together);
        }
        Some(Value::new(UnsizedType::Array(Box::new(element)), level))
    }

    fn row_vector(&mut self, elements: &[Expr], span: Span) -> Option<Value> {
        let values = self.values(elements)?;
        let _ = span;
        let of_rows = matches!(values.first(), Some((UnsizedType::RowVector | UnsizedType::ComplexRowVector, _)));
        let mut element = if of_rows { UnsizedType::RowVector } else { UnsizedType::Real };
        let mut level = Level::Data;
        for ((ty, of), expr) in values.iter().zip(elements) {
            let Some((joined, together)) = common(&element, ty).zip(level.join(of)) else {
                let (whole, part) = if of_rows { ("a matrix", "row vectors") } else { ("a row vector", "numbers") };
                let message = format!("{whole} is made of {part}, but this is {}", spelled(ty));
                let error = Diagnostic::error("E2207", message, expr.span, format!("{} here", spelled(ty)));
                self.report(error.with_help("`{…}` makes arrays, `[…]` row vectors and matrices"));
                return None;
            };
            (element, level) = (joined, together);
        }
        let ty = match (of_rows, is_complex(&element)) {
            (false, false) => UnsizedType::RowVector,
            (false, true) => UnsizedType::ComplexRowVector,
            (true, false) => UnsizedType::Matrix,
            (true, true) => UnsizedType::ComplexMatrix,
        };
        Some(Value::new(ty, level))
    }

    fn tuple(&mut self, parts: &[Expr]) -> Option<Value> {
        let (types, levels) = self.values(parts)?.into_iter().unzip();
        Some(Value { ty: Type::Value(UnsizedType::Tuple(types)), level: Level::Tuple(levels) })
    }

    /// A part of a tuple.
    pub(super) fn field(&mut self, base: &Value, index: u32, at: Span, span: Span) -> Option<Value> {
        let Type::Value(UnsizedType::Tuple(parts)) = &base.ty else {
            let message = format!("only tuples have parts, but this is {}", base.ty);
            return self.error("E2210", message, span, format!("{} before the dot", base.ty));
        };
        let position = (index as usize).checked_sub(1);
        let Some((position, ty)) = position.and_then(|at| Some((at, parts.get(at)?))) else {
            let message = format!("the tuple has {} parts, but part {index} is taken", parts.len());
            return self.error("E2210", message, at, "parts are counted from 1");
        };
        let level = match &base.level {
            Level::Tuple(levels) => levels.get(position).cloned().unwrap_or(Level::Data),
            other => other.clone(),
        };
        Some(Value::new(ty.clone(), level))
    }

    /// Checks indices: whether each keeps its axis, and their levels.
    pub(super) fn indices(&mut self, indices: &[Index]) -> Option<Vec<Taken>> {
        let taken: Vec<Option<Taken>> = indices.iter().map(|index| self.index(index)).collect();
        taken.into_iter().collect()
    }

    fn index(&mut self, index: &Index) -> Option<Taken> {
        let bound = "the bound of a range";
        Some(match index {
            Index::All(_) => Taken { keeps: true, level: Level::Data },
            Index::Single(expr) => {
                let (ty, level) = self.value(expr)?;
                let keeps = match ty {
                    UnsizedType::Int => false,
                    UnsizedType::Array(element) if *element == UnsizedType::Int => true,
                    ty => {
                        let message = format!("an index must be int or array[] int, but is {}", spelled(&ty));
                        return self.error("E2209", message, expr.span, format!("{} here", spelled(&ty)));
                    }
                };
                Taken { keeps, level }
            }
            Index::From(expr) | Index::To(expr) => Taken { keeps: true, level: self.int(expr, bound)? },
            Index::Between(from, to) => {
                let (from, to) = (self.int(from, bound), self.int(to, bound));
                Taken { keeps: true, level: from?.join(&to?)? }
            }
        })
    }

    /// What indices take of a value.
    pub(super) fn indexed(&mut self, base: &Value, indices: &[Taken], span: Span) -> Option<Value> {
        let Type::Value(whole) = &base.ty else {
            return self.error("E2208", "functions have no elements", span, "it is indexed here");
        };
        let Some(ty) = element(whole, indices) else {
            let axes = dimensions(whole);
            let message = if axes == 0 {
                format!("{} has no elements to index", spelled(whole))
            } else {
                let plural = if axes == 1 { "index" } else { "indices" };
                format!("{} takes at most {axes} {plural}, but there are {}", spelled(whole), indices.len())
            };
            return self.error("E2208", message, span, "it is indexed here");
        };
        let level = indices.iter().try_fold(base.level.clone(), |level, taken| level.join(&taken.level))?;
        Some(Value::new(ty, level))
    }
}

/// What an index does.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    /// Whether the axis stays: a range, all, or several positions.
    pub(super) keeps: bool,
    level: Level,
}

/// The type of what indices take; `None` where there are too many.
fn element(ty: &UnsizedType, indices: &[Taken]) -> Option<UnsizedType> {
    use UnsizedType::{
        Array, Complex, ComplexMatrix, ComplexRowVector, ComplexVector, Matrix, Real, RowVector, Vector,
    };
    let complex = is_complex(ty);
    let [first, rest @ ..] = indices else { return Some(ty.clone()) };
    if let Array(inner) = ty {
        let inner = element(inner, rest)?;
        return Some(if first.keeps { Array(Box::new(inner)) } else { inner });
    }
    let keeps: Vec<bool> = indices.iter().map(|taken| taken.keeps).collect();
    let pick = |real: UnsizedType, other: UnsizedType| Some(if complex { other } else { real });
    match (ty, &keeps[..]) {
        (Vector | RowVector | ComplexVector | ComplexRowVector, [false]) => pick(Real, Complex),
        (Matrix | ComplexMatrix, [false, false]) => pick(Real, Complex),
        (Vector | RowVector | ComplexVector | ComplexRowVector, [true]) => Some(ty.clone()),
        (Matrix | ComplexMatrix, [true] | [true, true]) => Some(ty.clone()),
        (Matrix | ComplexMatrix, [false] | [false, true]) => pick(RowVector, ComplexRowVector),
        (Matrix | ComplexMatrix, [true, false]) => pick(Vector, ComplexVector),
        _ => None,
    }
}
