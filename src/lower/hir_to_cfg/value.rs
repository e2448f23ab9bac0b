//! What an expression is while its function is lowered: a tree of operands, one for each field; and the two views of such
//! trees that outlive the function, their types ([`Layout`]) and the part of them that specialisation sees ([`Form`]).

use crate::base::{Id as _, IdVec};
use crate::cfg::Operand;
use crate::hir::{Dim, DimId, LocalId, Program, Ty};
use crate::types::{DType, Type};

crate::define_id!(
    /// A function value without the variables that its captures are in: code, dimensions, and what is static of the rest.
    #[allow(unreachable_pub, reason = "the macro makes public ids")]
    ClosureId, "closure"
);

/// The value of an expression.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A scalar or an array.
    Leaf(Operand),
    /// A tuple or struct.
    Fields(Vec<Value>),
    /// A function.
    Function(FunctionValue),
    /// Of an expression that never ends normally: code behind it is not reached.
    Never,
}

/// A function value: what is known of it when programs are specialised, and the operands of the captured values that
/// vary, in the order of [`Form::Varying`] in its captures.
#[derive(Clone, Debug)]
pub(super) struct FunctionValue {
    pub(super) closure: ClosureId,
    /// The lengths of its bounded dimensions, ascending.
    pub(super) lengths: Vec<Operand>,
    pub(super) captured: Vec<Operand>,
}

impl FunctionValue {
    /// All operands that it carries: they become parameters of every instance that gets it.
    pub(super) fn operands(&self) -> impl Iterator<Item = Operand> {
        self.lengths.iter().chain(&self.captured).copied()
    }
}

/// What is known of the dimensions of a function when it is specialised.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Dims {
    /// Their numbers; of a bounded one the bound, which arrays have room for.
    pub(super) numbers: IdVec<DimId, i64>,
    /// Those that are bounded, ascending: their lengths are parameters of the function.
    pub(super) bounded: Vec<DimId>,
}

impl Dims {
    /// Whether the number differs from lane to lane.
    pub(super) fn varies(&self, dim: &Dim) -> bool {
        dim.ids().any(|id| self.bounded.contains(&id))
    }

    /// The number of an extent, and the dimension if it is a bounded one.
    pub(super) fn extent(&self, dim: &Dim) -> Result<(i64, Option<DimId>), ExtentError> {
        let number = dim.eval(&self.numbers).ok_or(ExtentError::TooLarge)?;
        match dim.alone().filter(|id| self.bounded.contains(id)) {
            None if self.varies(dim) => Err(ExtentError::Computed(dim.clone())),
            id => Ok((number, id)),
        }
    }

    /// The dimensions of something that has these arguments, and what each bounded one is here.
    pub(super) fn apply(&self, args: &[Dim]) -> Result<(Dims, Vec<DimId>), ExtentError> {
        let mut dims = Dims::default();
        let mut sources = Vec::new();
        for arg in args {
            let (number, bounded) = self.extent(arg)?;
            let id = dims.numbers.push(number);
            if let Some(source) = bounded {
                dims.bounded.push(id);
                sources.push(source);
            }
        }
        Ok((dims, sources))
    }
}

impl Value {
    pub(super) fn unit() -> Self {
        Value::Fields(Vec::new())
    }
    pub(super) fn is_never(&self) -> bool {
        matches!(self, Value::Never)
    }
    /// The operands of all leaves in order. Functions have none; `None` when it is never reached.
    pub(super) fn leaves(&self) -> Option<Vec<Operand>> {
        let mut leaves = Vec::new();
        self.collect(&mut leaves).then_some(leaves)
    }
    fn collect(&self, into: &mut Vec<Operand>) -> bool {
        match self {
            Value::Leaf(operand) => into.push(*operand),
            Value::Fields(fields) => return fields.iter().all(|f| f.collect(into)),
            Value::Function(_) => {}
            Value::Never => return false,
        }
        true
    }
    /// The tree with every operand replaced, those that functions captured included.
    pub(super) fn map(&self, replace: &mut impl FnMut(Operand) -> Operand) -> Value {
        match self {
            Value::Leaf(operand) => Value::Leaf(replace(*operand)),
            Value::Fields(fields) => Value::Fields(fields.iter().map(|f| f.map(replace)).collect()),
            Value::Function(f) => Value::Function(FunctionValue {
                closure: f.closure,
                lengths: f.lengths.iter().map(|l| replace(*l)).collect(),
                captured: f.captured.iter().map(|c| replace(*c)).collect(),
            }),
            Value::Never => Value::Never,
        }
    }
}

/// What specialisation sees of an argument or a captured value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Form {
    /// The same for all lanes: the callee is made for this operand, never a variable.
    Static(Operand),
    /// Comes as a parameter of this type.
    Varying(Type),
    /// A tuple or struct.
    Fields(Vec<Form>),
    /// A function; what it captured and varies comes as parameters.
    Function(ClosureId),
}

/// What is captured by a closure: locals of the function around it and the forms of their values.
pub(super) type Captures = Vec<(LocalId, Form)>;

/// A type with numbers for its dimensions, structs and tuples taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Layout {
    /// A scalar or an array.
    Leaf(Type),
    /// Names (`0`, `1`, … for tuples) and layouts of fields.
    Fields(Vec<(String, Layout)>),
    /// A function.
    Function,
    /// Never.
    Never,
}

impl Layout {
    /// Names and types of all leaves; the name of a field follows a dot.
    pub(super) fn leaves(&self, name: &str) -> Vec<(String, Type)> {
        let mut leaves = Vec::new();
        self.collect(name.to_owned(), &mut leaves);
        leaves
    }
    fn collect(&self, name: String, into: &mut Vec<(String, Type)>) {
        match self {
            Layout::Leaf(ty) => into.push((name, ty.clone())),
            Layout::Fields(fields) => {
                for (field, layout) in fields {
                    layout.collect(join(&name, field), into);
                }
            }
            Layout::Function | Layout::Never => {}
        }
    }
}

/// `name.field`, or the field alone when there is no name.
pub(super) fn join(name: &str, field: &str) -> String {
    if name.is_empty() { field.to_owned() } else { format!("{name}.{field}") }
}

/// Why a type has no layout for these dimensions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ExtentError {
    /// An extent below zero.
    Negative(i64),
    /// More elements than a lane can have.
    TooLarge,
    /// An extent that is computed from a bounded dimension.
    Computed(Dim),
}

/// Elements that one array of one lane may have: far above what fits into memory, far below what overflows.
pub(super) const MAX_ELEMENTS: i64 = 1 << 40;

/// The layout of a type for numbers of dimensions.
pub(super) fn layout(program: &Program, ty: &Ty, dims: &Dims) -> Result<Layout, ExtentError> {
    Ok(match ty {
        Ty::Scalar(dtype) => Layout::Leaf(Type::scalar(*dtype)),
        Ty::Array(dtype, extents) => Layout::Leaf(array_type(*dtype, extents, dims)?),
        Ty::Tuple(parts) => {
            let part = |(i, part)| Ok((usize::to_string(&i), layout(program, part, dims)?));
            Layout::Fields(parts.iter().enumerate().map(part).collect::<Result<_, _>>()?)
        }
        Ty::Struct(id, args) => {
            let (inner, _) = dims.apply(args)?;
            let field = |(name, ty): &(String, Ty)| {
                let layout = layout(program, ty, &inner).map_err(|problem| outside(problem, args))?;
                Ok((name.clone(), layout))
            };
            let fields = program.structs[*id].fields.iter().map(field);
            Layout::Fields(fields.collect::<Result<_, _>>()?)
        }
        Ty::Fn(..) => Layout::Function,
        Ty::Never => Layout::Never,
    })
}

/// A problem with the dimensions of a struct in those that it has as arguments.
fn outside(problem: ExtentError, args: &[Dim]) -> ExtentError {
    match problem {
        ExtentError::Computed(dim) => dim.substitute(args).map_or(ExtentError::TooLarge, ExtentError::Computed),
        problem => problem,
    }
}

fn array_type(dtype: DType, extents: &[Dim], dims: &Dims) -> Result<Type, ExtentError> {
    let mut elements = 1i64;
    let mut shape = crate::types::Shape::new();
    for extent in extents {
        let (n, _) = dims.extent(extent)?;
        if n < 0 {
            return Err(ExtentError::Negative(n));
        }
        elements = elements.checked_mul(n.max(1)).filter(|e| *e <= MAX_ELEMENTS).ok_or(ExtentError::TooLarge)?;
        shape.push(usize::try_from(n).map_err(|_| ExtentError::TooLarge)?);
    }
    Ok(Type { dtype, shape })
}

/// Names of dimensions with their numbers: `n = 3, t <= 100`.
pub(super) fn describe_dims(names: &IdVec<DimId, String>, dims: &Dims) -> String {
    let named: Vec<String> = names
        .iter()
        .filter_map(|(id, name)| {
            let value = dims.numbers.as_slice().get(id.index())?;
            let relation = if dims.bounded.contains(&id) { "<=" } else { "=" };
            Some(format!("{name} {relation} {value}"))
        })
        .collect();
    named.join(", ")
}
