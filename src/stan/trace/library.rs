//! Functions of Stan's library, by what they are made of here.

use super::index::At;
use super::{Result, Tracer, tails, unsupported, wrong};
use crate::base::Span;
use crate::stan::graph::Op;
use crate::stan::value::{Base, Elem, Kind, Val};

/// Functions that give tuples, and those that give the parts.
const OF_PARTS: &[(&str, &[&str])] = &[
    ("eigendecompose_sym", &["eigenvectors_sym", "eigenvalues_sym"]),
    ("qr", &["qr_Q", "qr_R"]),
    ("qr_thin", &["qr_thin_Q", "qr_thin_R"]),
    ("svd", &["svd_U", "singular_values", "svd_V"]),
    ("csr_extract", &["csr_extract_w", "csr_extract_v", "csr_extract_u"]),
];

impl Tracer<'_> {
    /// A function of Stan's library.
    pub(super) fn library(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Val> {
        if args.iter().any(Val::is_tuple) {
            return unsupported(span, format!("`{name}` of tuples"));
        }
        if args.iter().any(|arg| arg.counted().is_some()) {
            return self.library_counted(span, name, args);
        }
        self.check_sizes(span, name, args)?;
        if let Some(value) = self.operator(span, name, args)? {
            return Ok(value);
        }
        if let Some(value) = self.of_complex(span, name, args)? {
            return Ok(value);
        }
        if let Some((_, parts)) = OF_PARTS.iter().find(|(whole, _)| *whole == name) {
            let parts = parts.iter().map(|part| self.library(span, part, args)).collect::<Result<_>>()?;
            return Ok(Val::tuple(vec![], parts));
        }
        if let ("generate_laplace_options", [start]) = (name, args) {
            return self.laplace_options(span, start);
        }
        if let Some(value) = self.moved(span, name, args)? {
            return Ok(value);
        }
        if let Some(value) = self.constant(name, args) {
            return Ok(value);
        }
        if let Some(value) = self.of_elements(span, name, args)? {
            return Ok(value);
        }
        if let Some(value) = self.composed(span, name, args)? {
            return Ok(value);
        }
        if let Some(value) = self.reduced(span, name, args)? {
            return Ok(value);
        }
        if let Some(value) = self.of_matrices(span, name, args)? {
            return Ok(value);
        }
        if let Some(value) = self.of_sparse(span, name, args)? {
            return Ok(value);
        }
        if let Some(value) = self.transform_called(span, name, args)? {
            return Ok(value);
        }
        if tails::distribution_of(name).is_some() {
            return self.distribution_function(span, name, args);
        }
        if let Some(value) = self.first_passage(span, name, args)? {
            return Ok(value);
        }
        self.check_support(span, name, args)?;
        if self.is_vectorised(name) {
            return self.vectorised_density(span, name, args);
        }
        if let Some(value) = self.density(span, name, args)? {
            return Ok(value);
        }
        if let Some(base) = name.strip_suffix("_rng") {
            return self.draw(span, base, args);
        }
        unsupported(span, format!("`{name}`"))
    }

    fn constant(&self, name: &str, args: &[Val]) -> Option<Val> {
        let value = match (name, args) {
            ("pi", []) => std::f64::consts::PI,
            ("e", []) => std::f64::consts::E,
            ("sqrt2", []) => std::f64::consts::SQRT_2,
            ("log2", []) => std::f64::consts::LN_2,
            ("log10", []) => std::f64::consts::LN_10,
            ("not_a_number", []) => f64::NAN,
            ("positive_infinity", []) => f64::INFINITY,
            ("negative_infinity", []) => f64::NEG_INFINITY,
            ("machine_precision", []) => f64::EPSILON,
            _ => return None,
        };
        Some(Val::real(value))
    }

    /// Elementwise functions that are made of others.
    fn composed(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        Ok(Some(match (name, args) {
            ("abs" | "fabs", [x]) if x.kind.is_int() && name == "abs" => {
                self.call_ab(span, "abs", args, x.kind, x.shape.clone())?
            }
            ("abs" | "fabs", [_]) => self.elementwise(span, "abs", args)?,
            ("softplus", [_]) => self.elementwise(span, "log1p_exp", args)?,
            ("pow", [a, b]) => self.binary(span, crate::stan::syntax::ast::BinaryOp::EltPower, a, b)?,
            ("multiply_log", [_, _]) => self.elementwise(span, "lmultiply", args)?,
            ("fmin", [_, _]) => self.elementwise(span, "min", args)?,
            ("fmax", [_, _]) => self.elementwise(span, "max", args)?,
            ("min" | "max", [a, b]) if a.kind.is_int() && b.kind.is_int() => {
                self.call_ab(span, name, args, Kind::INT, vec![])?
            }
            ("fmod", [a, b]) => self.infix(span, "%", &a.promoted(), &b.promoted())?,
            ("fma", [a, b, c]) => {
                let product = self.infix(span, "*", &a.promoted(), b)?;
                self.add(span, &product, c)?
            }
            ("inc_beta" | "inv_inc_beta" | "hypergeometric_2F1", _) => self.elementwise(span, name, args)?,
            ("hypergeometric_3F2" | "hypergeometric_pFq", [a, b, z]) => {
                let list = |v: &Val| Val { kind: Kind::VECTOR, ..v.clone() };
                self.call_ab(span, "hypergeometric_pFq", &[list(a), list(b), z.promoted()], Kind::REAL, vec![])?
            }
            ("quantile", [x, p]) => {
                let x = Val { kind: Kind::VECTOR, ..x.promoted() };
                let one =
                    |t: &mut Self, p: &[Val]| t.call_ab(span, name, &[x.clone(), p[0].clone()], Kind::REAL, vec![]);
                self.each_element(&[p.promoted()], p.promoted().kind, p.shape.clone(), one)?
            }
            ("lchoose" | "binomial_coefficient_log", [_, _]) => self.elementwise(span, "log_choose", args)?,
            ("int_step" | "step", [x]) => {
                let sign = if name == "step" { ">=" } else { ">" };
                let holds = self.compare(span, sign, x, &Val::int(0))?;
                if name == "step" { holds.promoted() } else { holds }
            }
            ("is_nan", [x]) => {
                self.apply(span, Op::CallBool("is_nan".into()), std::slice::from_ref(x), Kind::INT, vec![])?
            }
            ("is_inf", [x]) => {
                let size = self.elementwise(span, "abs", std::slice::from_ref(x))?;
                self.compare(span, "==", &size, &Val::real(f64::INFINITY))?
            }
            ("to_int", [x]) => self.elementwise(span, "int", std::slice::from_ref(x))?,
            ("log_sum_exp", [_, _]) => self.elementwise(span, "log_add_exp", args)?,
            ("log_mix", [p, a, b]) => {
                let (first, rest) = (
                    self.elementwise(span, "log", std::slice::from_ref(p))?,
                    self.elementwise(span, "log1m", std::slice::from_ref(p))?,
                );
                let (a, b) = (self.add(span, &first, a)?, self.add(span, &rest, b)?);
                self.elementwise(span, "log_add_exp", &[a, b])?
            }
            ("log_mix", [p, a]) => {
                let logs = self.elementwise(span, "log", &[Val { kind: Kind::VECTOR, ..p.promoted() }])?;
                let mut mixed = Vec::new();
                // The densities of an observation, or of several, whose logarithms are summed.
                for row in if a.shape.len() == 2 { Self::rows_of(a) } else { vec![a.clone()] } {
                    let terms = self.add(span, &logs, &Val { kind: Kind::VECTOR, ..row.promoted() })?;
                    mixed.extend(self.call_ab(span, "log_sum_exp", &[terms], Kind::REAL, vec![])?.elems());
                }
                match mixed[..] {
                    [one] => Val::from_elems(Kind::REAL, vec![], vec![one]),
                    _ => self.library(span, "sum", &[Val::from_elems(Kind::VECTOR, vec![mixed.len()], mixed)])?,
                }
            }
            _ => return Ok(None),
        }))
    }

    /// Functions of whole arrays that give a number, and a few that keep the shape.
    fn reduced(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        let flat = |v: &Val| {
            v.reshaped(if v.kind.is_int() { Kind { base: Base::Int, arrays: 1 } } else { Kind::VECTOR }, vec![v.len()])
        };
        Ok(Some(match (name, args) {
            ("sum" | "prod", [x]) => {
                let kind = if x.kind.is_int() { Kind::INT } else { Kind::REAL };
                if let Some(ints) = x.ints() {
                    let total = if name == "sum" { ints.iter().sum() } else { ints.iter().product() };
                    return Ok(Some(Val::int(total)));
                }
                if x.len() == 0 {
                    return Ok(Some(Val::real(if name == "sum" { 0.0 } else { 1.0 })));
                }
                self.call_ab(span, name, &[flat(x)], kind, vec![])?
            }
            ("min" | "max", [x]) => {
                if let Some(ints) = x.ints() {
                    let found = if name == "min" { ints.iter().min() } else { ints.iter().max() };
                    return match found {
                        Some(i) => Ok(Some(Val::int(*i))),
                        None => wrong(span, format!("{name} of no ints")),
                    };
                }
                if x.len() == 0 {
                    return Ok(Some(Val::real(if name == "min" { f64::INFINITY } else { f64::NEG_INFINITY })));
                }
                if x.kind.is_int() {
                    let one = |i: usize| x.pick(Kind::INT, vec![], std::iter::once(i));
                    let mut found = one(0);
                    for i in 1..x.len() {
                        found = self.call_ab(span, name, &[found, one(i)], Kind::INT, vec![])?;
                    }
                    return Ok(Some(found));
                }
                self.call_ab(span, name, &[flat(x)], Kind::REAL, vec![])?
            }
            // In a loop over states, as of hidden Markov models, two numbers need no array.
            ("log_sum_exp", [x]) if x.len() == 2 => {
                let part = |i: usize| x.promoted().pick(Kind::REAL, vec![], std::iter::once(i));
                self.elementwise(span, "log_add_exp", &[part(0), part(1)])?
            }
            ("variance" | "sd", [x]) if x.len() == 1 => Val::real(0.0),
            ("mean" | "variance" | "log_sum_exp", [x]) if !x.is_scalar() => {
                self.call_ab(span, name, &[flat(&x.promoted())], Kind::REAL, vec![])?
            }
            ("sd", [x]) => {
                let variance = self.call_ab(span, "variance", &[flat(&x.promoted())], Kind::REAL, vec![])?;
                self.elementwise(span, "sqrt", &[variance])?
            }
            ("dot_product", [x, y]) => {
                self.call_ab(span, "dot", &[flat(&x.promoted()), flat(&y.promoted())], Kind::REAL, vec![])?
            }
            ("dot_self", [x]) => self.call_ab(span, "dot", &[x.clone(), x.clone()], Kind::REAL, vec![])?,
            ("norm2", [x]) => {
                let square = self.call_ab(span, "dot", &[x.clone(), x.clone()], Kind::REAL, vec![])?;
                self.elementwise(span, "sqrt", &[square])?
            }
            ("norm1", [x]) => {
                let sizes = self.elementwise(span, "abs", std::slice::from_ref(x))?;
                self.call_ab(span, "sum", &[sizes], Kind::REAL, vec![])?
            }
            ("distance" | "squared_distance", [x, y]) => {
                let y = Val { kind: x.kind, ..y.clone() };
                let difference = self.infix(span, "-", &x.promoted(), &y)?;
                let square = if difference.is_scalar() {
                    self.elementwise(span, "square", &[difference])?
                } else {
                    self.call_ab(span, "dot", &[difference.clone(), difference], Kind::REAL, vec![])?
                };
                if name == "distance" { self.elementwise(span, "sqrt", &[square])? } else { square }
            }
            ("softmax" | "cumulative_sum" | "log_softmax", [x]) if name != "log_softmax" => {
                if let (Some(ints), "cumulative_sum") = (x.ints(), name) {
                    let sums = ints
                        .iter()
                        .scan(0_i64, |sum, i| {
                            *sum += i;
                            Some(Elem::Int(*sum))
                        })
                        .collect();
                    return Ok(Some(Val::from_elems(x.kind, x.shape.clone(), sums)));
                }
                self.call_ab(span, name, std::slice::from_ref(x), x.kind, x.shape.clone())?
            }
            ("log_softmax", [x]) => {
                let total = self.call_ab(span, "log_sum_exp", std::slice::from_ref(x), Kind::REAL, vec![])?;
                self.infix(span, "-", x, &total)?
            }
            ("sort_asc" | "sort_desc" | "sort_indices_asc" | "sort_indices_desc" | "rank", _) => {
                return self.sorted(span, name, args).map(Some);
            }
            _ => return Ok(None),
        }))
    }

    /// Sorting: of what is known here, of what lanes compute by the library, whose places count from 0.
    fn sorted(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Val> {
        if let ("rank", [x, at]) = (name, args) {
            return self.rank(span, x, at);
        }
        let [x] = args else { return wrong(span, format!("{name} wants an array")) };
        let places = Kind { base: Base::Int, arrays: 1 };
        let indices = name.starts_with("sort_indices");
        let Some(values) = x.reals() else {
            if indices {
                let sorted = self.call_ab(span, name, args, places, x.shape.clone())?;
                return self.infix(span, "+", &sorted, &Val::int(1));
            }
            if !x.kind.is_int() {
                return self.call_ab(span, name, args, x.kind, x.shape.clone());
            }
            let reals = Kind { base: Base::Real, ..x.kind };
            let sorted = self.call_ab(span, name, &[x.promoted()], reals, x.shape.clone())?;
            return self.elementwise(span, "int", &[sorted]);
        };
        let mut order: Vec<usize> = (0..values.len()).collect();
        // Equal ones keep their order, both ways.
        let descends = name.ends_with("_desc");
        order.sort_by(|a, b| {
            let (a, b) = if descends { (b, a) } else { (a, b) };
            (values[*a] + 0.0).total_cmp(&(values[*b] + 0.0))
        });
        if indices {
            let elems = order.iter().map(|i| Elem::Int(*i as i64 + 1)).collect();
            return Ok(Val::from_elems(places, vec![order.len()], elems));
        }
        Ok(x.pick(x.kind, x.shape.clone(), order.into_iter()))
    }

    /// How many elements are below the one at a place.
    fn rank(&mut self, span: Span, x: &Val, at: &Val) -> Result<Val> {
        let Some(place) = at.as_int() else {
            self.check_indices(&x.shape, &[At::Lane(at.clone(), span)])?;
            let index = self.infix(span, "-", at, &Val::int(1))?;
            // Who does not come here, or is rejected, takes the first place.
            let high = self.call_ab(span, "min", &[index, Val::int(x.len() as i64 - 1)], Kind::INT, vec![])?;
            let index = self.call_ab(span, "max", &[high, Val::int(0)], Kind::INT, vec![])?;
            return self.call_ab(span, "rank", &[x.promoted(), index], Kind::INT, vec![]);
        };
        let Some(index) = usize::try_from(place - 1).ok().filter(|i| *i < x.len()) else {
            return wrong(span, format!("rank: index {place} is out of range: there are {}", x.len()));
        };
        match x.reals() {
            Some(values) => Ok(Val::int(values.iter().filter(|v| **v < values[index]).count() as i64)),
            None => self.call_ab(span, "rank", &[x.clone(), Val::int(index as i64)], Kind::INT, vec![]),
        }
    }
}
