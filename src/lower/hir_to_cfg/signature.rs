//! What an entry wants from outside: its parameters split into fields, and the dimensions that the shapes of the inputs
//! determine.

use std::collections::BTreeMap;

use super::value::{self, Dims, ExtentError, Layout, join};
use crate::base::{Diagnostic, Id as _, IdVec, Span};
use crate::hir::{Dim, DimId, FnId, Program, Ty};
use crate::types::{DType, Type};

/// The numbers of dimensions that ints of their names tell: `"J": 85` in the data.
pub type Told = BTreeMap<DimId, i64>;

/// What an entry is specialised to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Shapes {
    /// The event types of the inputs, one for each port, lanes not among the axes.
    pub types: Vec<Type>,
    /// Dimensions that these types leave open: see [`Signature::open`].
    pub told: Told,
}

impl From<Vec<Type>> for Shapes {
    fn from(types: Vec<Type>) -> Self {
        Shapes { types, told: Told::new() }
    }
}

/// What an entry wants, before shapes are known.
#[derive(Clone, Debug)]
pub struct Signature {
    /// One port for the length of each bounded dimension; then one for each scalar or array among the parameters, structs and
    /// tuples split into fields, in order.
    pub ports: Vec<SignaturePort>,
    /// Names of the dimension parameters.
    pub dims: IdVec<DimId, String>,
    /// The bounded dimensions and the largest number that each may be.
    pub bounds: BTreeMap<DimId, Dim>,
    /// Where the entry is declared: its name.
    pub span: Span,
}

/// A scalar or an array that an entry takes.
#[derive(Clone, Debug)]
pub struct SignaturePort {
    /// The parameter's name; a field follows a dot: `z.q`, `pair.0`.
    pub name: String,
    /// Whether all lanes have the same value.
    pub shared: bool,
    /// Element type.
    pub dtype: DType,
    /// Extents over the dimension parameters; empty for a scalar. Lanes are not among them.
    pub extents: Vec<Dim>,
    /// For the length of a bounded dimension, an int under its name: the dimension. It is no parameter of the function, and need
    /// not be given where arrays tell it.
    pub length_of: Option<DimId>,
    /// Where the parameter is declared.
    pub span: Span,
}

impl SignaturePort {
    /// The type in the user's words: `real[J + 2]`.
    pub fn describe(&self, dims: &IdVec<DimId, String>) -> String {
        if self.extents.is_empty() {
            return self.dtype.to_string();
        }
        let extents: Vec<String> = self.extents.iter().map(|d| d.display(dims)).collect();
        format!("{}[{}]", self.dtype, extents.join(", "))
    }

    /// Whether it is shared and has no elements whatever its dimensions are: all that it tells are those.
    pub fn carries_dims(&self) -> bool {
        self.shared && self.extents.iter().any(|extent| extent.as_constant() == Some(0))
    }
}

/// What an entry wants, before shapes are known: for messages and for binding inputs.
///
/// # Errors
/// When the function cannot be an entry because a parameter is a function; no function among the program's exports is one.
pub fn entry_signature(program: &Program, entry: FnId) -> Result<Signature, Diagnostic> {
    let f = program.function(entry);
    let mut ports = Vec::new();
    ports.extend(f.bounds.keys().map(|id| SignaturePort {
        name: f.dims[*id].clone(),
        shared: false,
        dtype: DType::Int,
        extents: Vec::new(),
        length_of: Some(*id),
        span: f.span,
    }));
    let identity: Vec<Dim> = f.dims.ids().map(Dim::param).collect();
    for param in &f.params {
        let local = &f.locals[param.local];
        let mut found = Vec::new();
        split(program, &local.ty, &identity, &local.name, &mut found).map_err(|problem| {
            let message = format!("`{}` cannot be run from outside", f.name);
            let label = format!("`{}` {problem}", local.name);
            Diagnostic::error("E0801", message, local.span, label)
                .with_help("call it from a `pub fn` whose parameters are numbers, arrays, tuples and structs")
        })?;
        ports.extend(found.into_iter().map(|(name, dtype, extents)| SignaturePort {
            name,
            shared: param.shared,
            dtype,
            extents,
            length_of: None,
            span: local.span,
        }));
    }
    Ok(Signature { ports, dims: f.dims.clone(), bounds: f.bounds.clone(), span: f.span })
}

/// For each output of an entry, in order, its name and for each of its axes the bounded dimension that it has, if any.
pub fn output_dims(program: &Program, entry: FnId) -> Vec<(String, Vec<Option<DimId>>)> {
    let bounds = &program.function(entry).bounds;
    of_outputs(program, entry, |id| bounds.contains_key(&id).then_some(id))
}

/// For each output of an entry, in order, its name and what its axes are called: dimensions of the function, where an extent is
/// one.
pub fn output_axes(program: &Program, entry: FnId) -> Vec<(String, Vec<Option<String>>)> {
    let dims = &program.function(entry).dims;
    of_outputs(program, entry, |id| Some(dims[id].clone()))
}

/// For each output of an entry, in order, its name and something of each of its axes whose extent is a dimension of the function.
fn of_outputs<T>(program: &Program, entry: FnId, of: impl Fn(DimId) -> Option<T>) -> Vec<(String, Vec<Option<T>>)> {
    let f = program.function(entry);
    let identity: Vec<Dim> = f.dims.ids().map(Dim::param).collect();
    let name = if matches!(f.ret, Ty::Struct(..)) { "" } else { "result" };
    let mut found = Vec::new();
    if split(program, &f.ret, &identity, name, &mut found).is_err() {
        return Vec::new();
    }
    let of = |d: &Dim| d.alone().and_then(&of);
    found.into_iter().map(|(name, _, extents)| (name, extents.iter().map(of).collect())).collect()
}

type Split = Vec<(String, DType, Vec<Dim>)>;

/// Splits a type into its leaves; `args` are the values of the dimension parameters that it is written over.
fn split(program: &Program, ty: &Ty, args: &[Dim], name: &str, into: &mut Split) -> Result<(), &'static str> {
    let substitute = |dims: &[Dim]| -> Result<Vec<Dim>, &'static str> {
        let substituted = dims.iter().map(|d| d.substitute(args));
        substituted.collect::<Option<_>>().ok_or("has an extent that is too large")
    };
    match ty {
        Ty::Scalar(dtype) => into.push((name.to_owned(), *dtype, Vec::new())),
        Ty::Array(dtype, extents) => into.push((name.to_owned(), *dtype, substitute(extents)?)),
        Ty::Tuple(parts) => {
            for (i, part) in parts.iter().enumerate() {
                split(program, part, args, &join(name, &i.to_string()), into)?;
            }
        }
        Ty::Struct(id, dims) => {
            let inner = substitute(dims)?;
            for (field, ty) in &program.structs[*id].fields {
                split(program, ty, &inner, &join(name, field), into)?;
            }
        }
        Ty::Fn(..) => return Err("is a function, which cannot come from outside"),
        Ty::Never => return Err("has no type"),
    }
    Ok(())
}

impl Signature {
    /// The dimensions for inputs of these shapes. An axis of a bounded dimension has the extent of its bound.
    ///
    /// # Errors
    /// Every port whose type does not fit, every dimension that the inputs do not determine.
    pub(super) fn bind(&self, Shapes { types: found, told }: &Shapes) -> Result<Dims, Vec<Diagnostic>> {
        let mut problems: Vec<Diagnostic> = Vec::new();
        for (port, ty) in self.ports.iter().zip(found) {
            if port.dtype != ty.dtype || port.extents.len() != ty.shape.len() {
                problems.push(self.mismatch(port, ty, Vec::new()));
            }
        }
        if found.len() != self.ports.len() {
            let (wanted, given) = (self.ports.len(), found.len());
            let message = format!("{wanted} inputs are wanted, there are {given}");
            problems.push(Diagnostic::error("E0801", message, self.span, "of this function"));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut solver = Solver::with_told(self, found, told);
        solver.solve();
        let bounded = self.bounds.keys().copied().collect();
        solver.finish().map(|numbers| Dims { numbers, bounded })
    }

    /// Gives the extents that inputs do not tell: of port `i` all but the first `known[i]` axes. They are what constants and
    /// the other inputs make them, and where nothing tells, 0. Those of bounded dimensions become their bounds. Ports whose
    /// types do not fit are left as they are. `told` has dimensions that are known besides.
    pub fn complete(&self, found: &mut [Type], known: &[usize], told: &Told) {
        if (self.ports.iter().zip(&*found)).any(|(port, ty)| port.extents.len() != ty.shape.len()) {
            return;
        }
        let mut solver = Solver::with_told(self, found, told);
        solver.known = known.to_vec();
        solver.solve();
        let dims: IdVec<DimId, i64> = solver.bound.iter().map(|b| b.map_or(0, |(value, _)| value)).collect();
        for ((port, ty), known) in self.ports.iter().zip(found).zip(known) {
            for (axis, (extent, d)) in ty.shape.iter_mut().zip(&port.extents).enumerate() {
                if axis < *known && self.bounded(d).is_none() {
                    continue;
                }
                *extent = d.eval(&dims).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
            }
        }
    }

    /// Of the dimensions that are told, those that inputs of these types, one for each port, leave open: what is
    /// compiled depends on these besides the types.
    pub fn open(&self, found: &[Type], told: Told) -> Told {
        if told.is_empty() || (self.ports.iter().zip(found)).any(|(port, ty)| port.extents.len() != ty.shape.len()) {
            return Told::new();
        }
        let mut solver = Solver::new(self, found);
        solver.solve();
        told.into_iter().filter(|(id, _)| solver.bound[id.index()].is_none()).collect()
    }

    /// The dimensions that inputs of these types tell, one for each port; `None` for one that has no value.
    pub fn told_by(&self, found: &[Option<Type>]) -> Told {
        let unknown = |port: &SignaturePort| Type::new(port.dtype, port.extents.iter().map(|_| 0));
        let types: Vec<Type> =
            (self.ports.iter().zip(found)).map(|(port, ty)| ty.clone().unwrap_or_else(|| unknown(port))).collect();
        let mut solver = Solver::new(self, &types);
        solver.known = found.iter().map(|ty| ty.as_ref().map_or(0, |ty| ty.shape.len())).collect();
        solver.solve();
        let bound = self.dims.ids().zip(&solver.bound);
        bound.filter_map(|(id, bound)| bound.map(|(value, _)| (id, value))).collect()
    }

    /// The extents of a port where the dimensions have these numbers; `None` where these are not all, or an extent would be
    /// negative.
    pub fn extents_at(&self, port: usize, dims: &Told) -> Option<Vec<usize>> {
        let extent = |d: &Dim| {
            let known = d.ids().all(|id| dims.contains_key(&id));
            let number = if known { d.eval_with(|id| dims[&id]) } else { None };
            number.and_then(|n| usize::try_from(n).ok())
        };
        self.ports[port].extents.iter().map(extent).collect()
    }

    /// The first dimension that is told to be another number than inputs of these types make it: the dimension, the number that
    /// was told, the port, and the number by that.
    pub fn contradicted(&self, found: &[Type], known: &[usize], told: &Told) -> Option<(DimId, i64, usize, i64)> {
        let mut solver = Solver::new(self, found);
        solver.known = known.to_vec();
        solver.solve();
        told.iter().find_map(|(id, said)| match solver.bound[id.index()] {
            Some((value, By::Port(port))) if value != *said => Some((*id, *said, port, value)),
            _ => None,
        })
    }

    /// The bounded dimension that an extent is.
    pub fn bounded(&self, extent: &Dim) -> Option<DimId> {
        extent.alone().filter(|id| self.bounds.contains_key(id))
    }

    fn mismatch(&self, port: &SignaturePort, found: &Type, notes: Vec<String>) -> Diagnostic {
        let wanted = port.describe(&self.dims);
        let message = format!("`{}` is {found} where {wanted} is expected", port.name);
        let label = format!("expects {wanted}");
        let mut diagnostic = Diagnostic::error("E0801", message, port.span, label);
        diagnostic.notes = notes;
        diagnostic
    }
}

/// Solves `extent = number` for the dimension parameters, one unknown at a time.
struct Solver<'a> {
    signature: &'a Signature,
    found: &'a [Type],
    /// For each port how many of its extents are known.
    known: Vec<usize>,
    /// The number of each dimension and what gave it.
    bound: Vec<Option<(i64, By)>>,
}

/// What gives a dimension its number.
#[derive(Clone, Copy)]
enum By {
    /// An extent of the input of a port.
    Port(usize),
    /// An int of its name.
    Told,
}

impl<'a> Solver<'a> {
    fn new(signature: &'a Signature, found: &'a [Type]) -> Self {
        let known = found.iter().map(|ty| ty.shape.len()).collect();
        Self { signature, found, known, bound: vec![None; signature.dims.len()] }
    }

    /// With dimensions that are told.
    fn with_told(signature: &'a Signature, found: &'a [Type], told: &Told) -> Self {
        let mut solver = Self::new(signature, found);
        for (id, value) in told {
            solver.bound[id.index()] = Some((*value, By::Told));
        }
        solver
    }

    /// All extents with the numbers that they should be: port, extent, number.
    fn equations(&self) -> Vec<(usize, &'a Dim, i64)> {
        let ports = self.signature.ports.iter().zip(self.found).zip(&self.known).enumerate();
        let equations = ports.flat_map(|(i, ((port, ty), known))| {
            let extents = port.extents.iter().zip(&ty.shape).take(*known);
            let extents = extents.filter(|(d, _)| self.signature.bounded(d).is_none());
            extents.map(move |(d, n)| (i, d, *n as i64))
        });
        equations.collect()
    }

    /// Bare names first, so that messages blame the odd one out; then whatever has one unknown left.
    fn solve(&mut self) {
        for (port, extent, number) in self.equations() {
            if let Some(id) = extent.alone().filter(|id| self.bound[id.index()].is_none()) {
                self.bound[id.index()] = Some((number, By::Port(port)));
            }
        }
        let mut progress = true;
        while progress {
            progress = false;
            for (port, extent, number) in self.equations() {
                progress |= self.solve_one(port, extent, number);
            }
        }
        let numbers: IdVec<DimId, i64> = self.bound.iter().map(|b| b.map_or(0, |(value, _)| value)).collect();
        for (id, bound) in &self.signature.bounds {
            let known = bound.ids().all(|id| self.bound[id.index()].is_some());
            let port = self.signature.ports.iter().position(|p| p.length_of == Some(*id));
            if let (true, Some(number), Some(port)) = (known, bound.eval(&numbers), port) {
                self.bound[id.index()] = Some((number, By::Port(port)));
            }
        }
    }

    /// The one unknown dimension of an extent, if there is one, and the extent over it alone.
    fn one_unknown(&self, extent: &Dim) -> Option<(DimId, Dim)> {
        let mut unknown = extent.ids().filter(|id| self.bound[id.index()].is_none());
        let (Some(id), None) = (unknown.next(), unknown.next()) else {
            return None;
        };
        let numbers = (self.bound.iter().zip(self.signature.dims.ids()))
            .map(|(bound, id)| bound.map_or_else(|| Dim::param(id), |(value, _)| Dim::constant(value)));
        Some((id, extent.substitute(&numbers.collect::<Vec<_>>())?))
    }

    /// Finds the one unknown dimension of an extent.
    fn solve_one(&mut self, port: usize, extent: &Dim, number: i64) -> bool {
        let Some((id, form)) = self.one_unknown(extent) else {
            return false;
        };
        let value = match (form.terms.iter().next(), form.terms.len()) {
            (Some((product, c)), 1) if product.len() == 1 => {
                let right = number.checked_mul(form.divisor).and_then(|n| n.checked_sub(form.constant));
                // What does not divide is found when the extents are checked; the dimension counts as known all the same.
                Some(right.and_then(|right| right.checked_div_euclid(*c)).unwrap_or(0))
            }
            // 0 times the unknown one.
            (None, _) => None,
            _ => form.root(number),
        };
        self.bound[id.index()] = value.map(|value| (value, By::Port(port)));
        value.is_some()
    }

    /// What is wrong with a dimension that has no number: no number fits, or several do, or nothing tells.
    fn open(&self, id: DimId) -> Diagnostic {
        let signature = self.signature;
        let name = &signature.dims[id];
        let of_id = |(port, extent, number): (usize, &'a Dim, i64)| {
            let (unknown, form) = self.one_unknown(extent)?;
            Some((port, extent, number, form.roots(number)?)).filter(|_| unknown == id)
        };
        let found: Vec<_> = self.equations().into_iter().filter_map(of_id).collect();
        if let Some((port, extent, number, _)) = found.iter().find(|(.., roots)| roots.is_empty()) {
            let note = format!("no `{name}` makes `{}` {number}", extent.display(&signature.dims));
            let notes = [self.blame(*port), vec![note]].concat();
            return signature.mismatch(&signature.ports[*port], &self.found[*port], notes);
        }
        let several = found.iter().find(|(.., roots)| roots.len() > 1);
        let either = several.map(|(port, _, _, roots)| {
            let port = &signature.ports[*port];
            format!(": by `{}: {}` it is {} or {}", port.name, port.describe(&signature.dims), roots[0], roots[1])
        });
        let message = format!("the inputs do not determine the dimension `{name}`{}", either.unwrap_or_default());
        let help = format!(
            "say what `{name}` is by --shared {name}=… or in the data, or give `{name}` alone as an extent of a parameter: `x: real[{name}]`"
        );
        Diagnostic::error("E0801", message, signature.span, "of this function").with_help(help)
    }

    fn finish(self) -> Result<IdVec<DimId, i64>, Vec<Diagnostic>> {
        let signature = self.signature;
        let open = signature.dims.ids().filter(|id| self.bound[id.index()].is_none());
        let mut problems: Vec<Diagnostic> = open.map(|id| self.open(id)).collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let values = self.bound.iter();
        let dims: IdVec<DimId, i64> = values.map(|b| b.map_or(0, |(value, _)| value)).collect();
        for (id, value) in dims.iter().filter(|(_, value)| **value < 0) {
            problems.push(self.negative(id, *value));
        }
        for (i, port) in signature.ports.iter().enumerate() {
            let mut extents = port.extents.iter().zip(&self.found[i].shape);
            let fits = extents.all(|(d, n)| d.eval(&dims) == Some(*n as i64));
            if !fits && problems.is_empty() {
                problems.push(signature.mismatch(port, &self.found[i], self.blame(i)));
            }
        }
        if problems.is_empty() { Ok(dims) } else { Err(problems) }
    }

    fn negative(&self, id: DimId, value: i64) -> Diagnostic {
        let port = match self.bound[id.index()] {
            Some((_, By::Port(port))) => port,
            _ => 0,
        };
        let name = &self.signature.dims[id];
        let note = format!("`{name}` would have to be {value}");
        let signature = self.signature;
        signature.mismatch(&signature.ports[port], &self.found[port], vec![note])
    }

    /// What bound the dimensions of a port: `J` is 8 by `y`.
    fn blame(&self, port: usize) -> Vec<String> {
        let signature = self.signature;
        let extents = signature.ports[port].extents.iter();
        let mut ids: Vec<DimId> = extents.flat_map(Dim::ids).collect();
        ids.sort_unstable();
        ids.dedup();
        let note = |id: &DimId| {
            let (value, by) = self.bound[id.index()]?;
            let name = &signature.dims[*id];
            let By::Port(by) = by else {
                return Some(format!("`{name}` is {value} by its name"));
            };
            let by = &signature.ports[by];
            let wanted = by.describe(&signature.dims);
            Some(format!("`{name}` is {value} by `{}`, which expects {wanted}", by.name))
        };
        ids.iter().filter_map(note).collect()
    }
}

/// Names of the outputs of an entry and their types.
pub(super) fn outputs(layout: &Layout) -> Vec<(String, Type)> {
    match layout {
        Layout::Leaf(ty) => vec![("result".to_owned(), ty.clone())],
        Layout::Fields(fields) if fields.iter().any(|(name, _)| name == "0") => layout.leaves("result"),
        _ => layout.leaves(""),
    }
}

/// The layout of a type, or the diagnostic that says why there is none.
pub(super) fn layout_at(
    program: &Program,
    ty: &Ty,
    names: &IdVec<DimId, String>,
    dims: &Dims,
    span: Span,
) -> Result<Layout, Box<Diagnostic>> {
    value::layout(program, ty, dims).map_err(|problem| extent_error(problem, names, dims, span))
}

/// The diagnostic for an extent that cannot be.
pub(super) fn extent_error(
    problem: ExtentError,
    names: &IdVec<DimId, String>,
    dims: &Dims,
    span: Span,
) -> Box<Diagnostic> {
    let diagnostic = match problem {
        ExtentError::Negative(n) => Diagnostic::error(
            "E0802",
            format!("an array would have {n} entries here"),
            span,
            "an extent cannot be below 0",
        )
        .with_help("an `if` on dimensions leaves out the arm not taken: `if n > 0 { … }`"),
        ExtentError::TooLarge => Diagnostic::error(
            "E0803",
            "an array would have more than 2^40 elements in each lane",
            span,
            "this is too large",
        ),
        ExtentError::Computed(dim) => {
            let shown = dim.display(names);
            let name = dim.ids().find(|id| dims.bounded.contains(id)).map_or("", |id| names[id].as_str());
            Diagnostic::error(
                "E0807",
                format!("`{shown}` cannot be an extent here: `{name}` is bounded, it differs from lane to lane"),
                span,
                format!("an extent `{shown}` is needed here"),
            )
            .with_help("call this with arrays of an ordinary dimension, or write it as a loop over the elements")
        }
    };
    let named = value::describe_dims(names, dims);
    Box::new(if named.is_empty() { diagnostic } else { diagnostic.with_note(format!("for {named}")) })
}
