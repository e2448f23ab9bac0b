//! Random expressions of a type.

use super::generator::{Generator, Place, Var};
use super::program::{Block, Dim, Expr, Piece, Stmt, Ty};

const ELEMENTARY: &[&str] = &[
    "sqrt",
    "exp",
    "expm1",
    "log",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "inv_logit",
    "log1p_exp",
    "erf",
    "erfc",
    "lgamma",
    "digamma",
    "inv_Phi",
    "Phi",
    "floor",
    "ceil",
    "round",
    "trunc",
    "abs",
    "-",
];

impl Generator {
    /// An expression of this type, at most so deep.
    pub(super) fn expr(&mut self, ty: &Ty, depth: usize) -> Expr {
        let from_variable = if depth == 0 { 85 } else { 30 };
        if self.rng.percent(from_variable)
            && let Some(value) = self.variable(ty)
        {
            return value;
        }
        if depth == 0 {
            return self.literal(ty);
        }
        if self.rng.percent(22)
            && let Some(value) = self.any_expr(ty, depth)
        {
            return value;
        }
        match ty {
            Ty::Int => self.int_expr(depth),
            Ty::Real => self.real_expr(depth),
            Ty::Bool => self.bool_expr(depth),
            Ty::Array(element, dims) => self.array_expr(element, dims, depth),
            Ty::Struct(_) | Ty::Sized(_) => self.struct_expr(ty, depth),
            Ty::Tuple(parts) => {
                let values = parts.iter().map(|p| self.expr(p, depth - 1)).collect();
                Expr::new(ty.clone(), &format!("({})", vec!["$"; parts.len()].join(", ")), values)
            }
            Ty::Unit => Expr::leaf(Ty::Unit, "()"),
            Ty::Closure(element) => self.function_value(element),
        }
    }

    /// Everything of this type that a name and fields reach.
    fn variable(&mut self, ty: &Ty) -> Option<Expr> {
        let mut found = Vec::new();
        for var in &self.vars {
            self.paths(&var.name, &var.ty, &mut |path, t| {
                if t == ty {
                    found.push(path.to_owned());
                }
            });
        }
        // Newer variables are more interesting.
        let from = if self.rng.percent(50) { found.len() / 2 } else { 0 };
        let path = (!found.is_empty()).then(|| self.rng.choose(&found[from..]).clone())?;
        Some(Expr::leaf(ty.clone(), path))
    }

    /// The parts of a variable: itself, its fields, their fields.
    pub(super) fn paths(&self, path: &str, ty: &Ty, visit: &mut dyn FnMut(&str, &Ty)) {
        visit(path, ty);
        match ty {
            Ty::Struct(i) => {
                for (name, field) in &self.structs[*i].fields {
                    self.paths(&format!("{path}.{name}"), field, visit);
                }
            }
            Ty::Sized(dim) => {
                visit(&format!("{path}.q"), &Ty::vector(*dim));
                visit(&format!("{path}.w"), &Ty::Real);
                visit(&format!("{path}.k"), &Ty::Int);
            }
            Ty::Tuple(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    self.paths(&format!("{path}.{i}"), part, visit);
                }
            }
            _ => {}
        }
    }

    pub(super) fn literal(&mut self, ty: &Ty) -> Expr {
        let text = match ty {
            Ty::Bool => (*self.rng.choose(&["true", "false"])).to_owned(),
            Ty::Int => match self.rng.below(30) {
                0 => {
                    self.note("int overflow");
                    "9223372036854775807".to_owned()
                }
                1 => "(-1000000007)".to_owned(),
                2..6 => "(-2)".to_owned(),
                _ => self.rng.below(7).to_string(),
            },
            Ty::Real => match self.rng.below(40) {
                0 => {
                    self.note("nan or infinity");
                    (*self.rng.choose(&[
                        "not_a_number()",
                        "positive_infinity()",
                        "negative_infinity()",
                        "1e300",
                        "1e-320",
                    ]))
                    .to_owned()
                }
                1..6 => "(-0.75)".to_owned(),
                6 => "0.0".to_owned(),
                _ => format!("{:?}", self.rng.below(40) as f64 / 8.0),
            },
            _ => ty.simplest(&self.structs),
        };
        Expr::leaf(ty.clone(), text)
    }

    /// What any type can be made of: a condition, a call, a block.
    fn any_expr(&mut self, ty: &Ty, depth: usize) -> Option<Expr> {
        match self.rng.below(10) {
            0..2 => {
                self.note("if expression");
                let holes = vec![self.expr(&Ty::Bool, depth - 1), self.expr(ty, depth - 1), self.expr(ty, depth - 1)];
                Some(Expr::new(ty.clone(), "(if $ { $ } else { $ })", holes))
            }
            2 => {
                self.note("block expression");
                let local = self.plain_type(self.signature().named_dim);
                let value = self.expr(&local, depth - 1);
                let name = self.name("b");
                let vars = self.vars.len();
                self.vars.push(Var { name: name.clone(), ty: local, mutable: false, shared: false, below: None });
                let tail = self.expr(ty, depth - 1);
                self.vars.truncate(vars);
                let stmts = vec![Stmt::new(&format!("let {name} = $;"), vec![value])];
                let block = Block { stmts, tail: Some(tail) };
                let pieces = vec![Piece::Text("(".into()), Piece::Block(block), Piece::Text(")".into())];
                Some(Expr { ty: ty.clone(), pieces })
            }
            3 if matches!(ty, Ty::Int | Ty::Real | Ty::Bool | Ty::Array(..)) => {
                self.note("select");
                let holes = vec![self.expr(&Ty::Bool, depth - 1), self.expr(ty, depth - 1), self.expr(ty, depth - 1)];
                Some(Expr::new(ty.clone(), "select($, $, $)", holes))
            }
            _ => self.call_giving(ty, depth, None),
        }
    }

    fn int_expr(&mut self, depth: usize) -> Expr {
        let d = depth - 1;
        let (int, real, boolean) = (Ty::Int, Ty::Real, Ty::Bool);
        let (template, holes): (&str, Vec<&Ty>) = match self.rng.below(34) {
            0..5 => ("($ + $)", vec![&int, &int]),
            5..8 => ("($ - $)", vec![&int, &int]),
            8..10 => ("($ * 3)", vec![&int]),
            10 => {
                self.note("int overflow");
                ("($ * $)", vec![&int, &int])
            }
            11 => {
                self.note("int division");
                (*self.rng.choose(&["($ / $)", "($ % $)"]), vec![&int, &int])
            }
            12..15 => {
                self.note("int division");
                (*self.rng.choose(&["($ / 2)", "($ % 5)", "($ % 7)", "($ / (-3))"]), vec![&int])
            }
            15 => (*self.rng.choose(&["(-$)", "abs($)"]), vec![&int]),
            16..18 => (*self.rng.choose(&["min($, $)", "max($, $)"]), vec![&int, &int]),
            18 => ("int($)", vec![&boolean]),
            19..21 => {
                self.note("elementary function");
                ("int(10.0 * tanh($))", vec![&real])
            }
            21 => {
                self.note("conversion that may trap");
                ("int($)", vec![&real])
            }
            22 => {
                self.note("int power");
                (*self.rng.choose(&["($ % 10) ^ 2", "2 ^ abs($ % 8)", "3 ^ ($ % 5)"]), vec![&int])
            }
            23 => {
                self.note("other draw");
                ("bernoulli_rng(inv_logit($))", vec![&real])
            }
            24..28 => return self.reduction(&Ty::Int, depth),
            28 => return self.closure_call(&Ty::Int, depth),
            29 if self.signature().named_dim => ("n", vec![]),
            29 => ("($ + 1)", vec![&int]),
            30 => {
                self.note("array reduction");
                let array = Ty::array(Ty::Int, [self.dim(self.signature().named_dim)]);
                let value = self.expr(&array, d);
                let op = *self.rng.choose(&["sum($)", "max($)", "min($)", "len($)"]);
                return Expr::new(Ty::Int, op, vec![value]);
            }
            _ => return self.element(&Ty::Int, depth),
        };
        let holes = holes.into_iter().map(|ty| self.expr(ty, d)).collect();
        Expr::new(Ty::Int, template, holes)
    }

    fn real_expr(&mut self, depth: usize) -> Expr {
        let d = depth - 1;
        let (int, real) = (Ty::Int, Ty::Real);
        let (template, holes): (&str, Vec<&Ty>) = match self.rng.below(40) {
            0..4 => ("($ + $)", vec![&real, &real]),
            4..7 => ("($ - $)", vec![&real, &real]),
            7..10 => ("($ * $)", vec![&real, &real]),
            10 => (
                *self.rng.choose(&["($ / $)", "($ % $)", "($ ^ $)", "atan2($, $)", "log_add_exp($, $)"]),
                vec![&real, &real],
            ),
            11 => ("($ ^ 2)", vec![&real]),
            12..14 => {
                self.note("int meets real");
                (*self.rng.choose(&["($ * $)", "($ + $)", "($ - $)", "($ / $)", "max($, $)"]), vec![&int, &real])
            }
            14 => ("real($)", vec![&int]),
            15..18 => {
                self.note("elementary function");
                let function = *self.rng.choose(ELEMENTARY);
                let value = self.expr(&real, d);
                return Expr::new(Ty::Real, &format!("{function}($)"), vec![value]);
            }
            18 => (*self.rng.choose(&["min($, $)", "max($, $)"]), vec![&real, &real]),
            19..21 => {
                self.note("normal draw");
                (*self.rng.choose(&["normal_rng($, 1.5)", "normal_rng(0.0, $)"]), vec![&real])
            }
            21..23 => {
                self.note("uniform draw");
                ("uniform_rng(-1.0, $)", vec![&real])
            }
            23 => {
                self.note("other draw");
                ("exponential_rng($)", vec![&real])
            }
            24..28 => return self.reduction(&Ty::Real, depth),
            28..31 => return self.closure_call(&Ty::Real, depth),
            31 => {
                self.note("distribution");
                ("normal_lpdf($, $, 2.0)", vec![&real, &real])
            }
            32 => {
                self.note("dot");
                let v = Ty::vector(self.dim(self.signature().named_dim));
                let holes = vec![self.expr(&v, d), self.expr(&v, d)];
                let template = *self.rng.choose(&["dot($, $)", "($ @ $)"]);
                return Expr::new(Ty::Real, template, holes);
            }
            33..35 => {
                self.note("array reduction");
                let array = if self.rng.percent(75) {
                    vec![self.dim(self.signature().named_dim)]
                } else {
                    vec![Dim::Known(2), Dim::Known(3)]
                };
                let ops = if array.len() == 1 {
                    &[
                        "sum($)",
                        "max($)",
                        "min($)",
                        "prod($)",
                        "mean($)",
                        "log_sum_exp($)",
                        "sum_log(abs($) + 0.5)",
                        "sum_log($)",
                        "sum_log1p_exp($)",
                    ][..]
                } else {
                    &["sum($)", "max($)", "sum_log1p_exp($)"]
                };
                let template = *self.rng.choose(ops);
                let value = self.expr(&Ty::array(Ty::Real, array), d);
                return Expr::new(Ty::Real, template, vec![value]);
            }
            35 => return self.shared_or_literal(&Ty::Real),
            _ => return self.element(&Ty::Real, depth),
        };
        let holes = holes.into_iter().map(|ty| self.expr(ty, d)).collect();
        Expr::new(Ty::Real, template, holes)
    }

    fn shared_or_literal(&mut self, ty: &Ty) -> Expr {
        if self.vars.iter().any(|v| v.shared) && self.rng.percent(80) {
            self.note("shared computation");
            return self.shared_expr(ty, 2);
        }
        self.literal(ty)
    }

    fn bool_expr(&mut self, depth: usize) -> Expr {
        let d = depth - 1;
        let (int, real, boolean) = (Ty::Int, Ty::Real, Ty::Bool);
        let comparison = *self.rng.choose(&["($ < $)", "($ <= $)", "($ > $)", "($ >= $)", "($ == $)", "($ != $)"]);
        let (template, holes): (&str, Vec<&Ty>) = match self.rng.below(20) {
            0..6 => (comparison, vec![&int, &int]),
            6..10 => (comparison, vec![&real, &real]),
            10..14 => {
                self.note("and or");
                (*self.rng.choose(&["($ && $)", "($ || $)"]), vec![&boolean, &boolean])
            }
            14 => ("!$", vec![&boolean]),
            15 => ("is_nan($)", vec![&real]),
            16 => ("($ % 2 == 0)", vec![&int]),
            17 => {
                self.note("bool array");
                let array = Ty::array(Ty::Bool, [self.dim(self.signature().named_dim)]);
                let value = self.expr(&array, d);
                return Expr::new(Ty::Bool, self.rng.choose::<&str>(&["any($)", "all($)"]), vec![value]);
            }
            18 => return self.reduction(&Ty::Bool, depth),
            _ => return self.element(&Ty::Bool, depth),
        };
        let holes = holes.into_iter().map(|ty| self.expr(ty, d)).collect();
        Expr::new(Ty::Bool, template, holes)
    }

    /// `sum(e for i in a..b)` and its kin.
    fn reduction(&mut self, ty: &Ty, depth: usize) -> Expr {
        self.note("reduction");
        let ops: &[&str] = match ty {
            Ty::Int => &["sum", "max", "min", "prod"],
            Ty::Real => &["sum", "max", "min", "prod", "mean", "log_sum_exp"],
            _ => &["any", "all"],
        };
        let op = *self.rng.choose(ops);
        let name = self.name("i");
        let varying = self.rng.percent(30);
        let (range, below, mut holes) = if varying {
            self.note("reduction with varying bounds");
            (format!("{}..($ % 5)", self.rng.below(2)), None, vec![self.expr(&Ty::Int, depth - 1)])
        } else {
            let dim = self.dim(self.signature().named_dim);
            (format!("0..{dim}"), Some(dim), vec![])
        };
        let body = self.inside(&name, below, 3, |g| g.expr(ty, depth - 1));
        let outer = self.times * 3 < 100 && !varying && self.rng.percent(20);
        let second = if outer { format!(", {} in 0..2", self.name("k")) } else { String::new() };
        holes.insert(0, body);
        Expr::new(ty.clone(), &format!("{op}($ for {name} in {range}{second})"), holes)
    }

    /// Generates the body of a comprehension with its variable.
    fn inside(&mut self, name: &str, below: Option<Dim>, times: usize, body: impl FnOnce(&mut Self) -> Expr) -> Expr {
        let (place, vars, before) = (self.place, self.vars.len(), self.times);
        if self.place == Place::Function {
            self.place = Place::Comprehension;
        }
        self.times *= times;
        self.vars.push(Var { name: name.to_owned(), ty: Ty::Int, mutable: false, shared: false, below });
        let body = body(self);
        self.vars.truncate(vars);
        (self.place, self.times) = (place, before);
        body
    }

    fn closure_call(&mut self, ty: &Ty, depth: usize) -> Expr {
        let wanted = Ty::Closure(Box::new(ty.clone()));
        let known: Vec<String> = self.vars.iter().filter(|v| v.ty == wanted).map(|v| v.name.clone()).collect();
        if known.is_empty() {
            return self.expr(ty, depth - 1);
        }
        self.note("closure call");
        let name = self.rng.choose(&known).clone();
        let argument = self.expr(ty, depth - 1);
        Expr::new(ty.clone(), &format!("{name}($)"), vec![argument])
    }

    /// An int that indexes an axis.
    pub(super) fn index(&mut self, extent: Dim, depth: usize) -> Expr {
        let fitting: Vec<String> =
            self.vars.iter().filter(|v| v.below == Some(extent)).map(|v| v.name.clone()).collect();
        if !fitting.is_empty() && self.rng.percent(60) {
            return Expr::leaf(Ty::Int, self.rng.choose(&fitting).clone());
        }
        match (self.rng.below(20), extent) {
            (0, _) => {
                self.note("index that may trap");
                self.expr(&Ty::Int, depth)
            }
            (1..8, Dim::Known(n)) => Expr::leaf(Ty::Int, self.rng.below(n).to_string()),
            _ => {
                let value = self.expr(&Ty::Int, depth);
                Expr::new(Ty::Int, &format!("abs($ % {extent})"), vec![value])
            }
        }
    }

    /// An element of some array.
    fn element(&mut self, ty: &Ty, depth: usize) -> Expr {
        let dim = self.dim(self.signature().named_dim);
        if *ty == Ty::Real && self.rng.percent(25) {
            let columns = self.dim(false);
            let matrix = self.array_value(Ty::array(Ty::Real, [dim, columns]), depth - 1);
            let holes = vec![matrix, self.index(dim, depth - 1), self.index(columns, depth - 1)];
            return Expr::new(Ty::Real, "$[$, $]", holes);
        }
        let array = self.array_value(Ty::array(ty.clone(), [dim]), depth - 1);
        let index = self.index(dim, depth - 1);
        Expr::new(ty.clone(), "$[$]", vec![array, index])
    }

    /// An array to be indexed: a variable where there is one.
    fn array_value(&mut self, ty: Ty, depth: usize) -> Expr {
        match self.variable(&ty) {
            Some(value) if self.rng.percent(80) => value,
            _ => self.expr(&ty, depth),
        }
    }

    fn array_expr(&mut self, element: &Ty, dims: &[Dim], depth: usize) -> Expr {
        let ty = Ty::array(element.clone(), dims.iter().copied());
        match element {
            Ty::Int => self.note("int array"),
            Ty::Bool => self.note("bool array"),
            _ => {}
        }
        if dims.len() > 1 {
            return self.matrix_expr(ty, element, dims, depth);
        }
        let (d, dim) = (depth - 1, dims[0]);
        match self.rng.below(20) {
            0..3 => match dim {
                Dim::Known(n) => {
                    self.note("array literal");
                    let values = (0..n).map(|_| self.expr(element, d)).collect();
                    Expr::new(ty, &format!("[{}]", vec!["$"; n].join(", ")), values)
                }
                Dim::Named => self.comprehension(ty, element, dim, depth),
            },
            3..8 => self.comprehension(ty, element, dim, depth),
            8 if *element != Ty::Bool => {
                let value = self.expr(element, d);
                Expr::new(ty, &format!("fill($, {dim})"), vec![value])
            }
            9..11 => {
                self.note("slice");
                let Dim::Known(n) = dim else { return self.comprehension(ty, element, dim, depth) };
                let base = self.array_value(Ty::array(element.clone(), [Dim::Known(n + 1)]), d);
                let start = *self.rng.choose(&["0", "1", "1", "2"]);
                let to = start.parse::<usize>().map_or(n, |s| s + n);
                Expr::new(ty, &format!("$[{start}..{to}]"), vec![base])
            }
            11 => match dim {
                Dim::Known(n) if n > 1 => {
                    self.note("concat");
                    let parts = vec![
                        self.expr(&Ty::array(element.clone(), [Dim::Known(1)]), d),
                        self.expr(&Ty::array(element.clone(), [Dim::Known(n - 1)]), d),
                    ];
                    Expr::new(ty, "concat($, $)", parts)
                }
                _ => self.comprehension(ty, element, dim, depth),
            },
            13..15 if *element == Ty::Real => self.product_vector(dim, d),
            12 => {
                self.note("select");
                let condition = Ty::array(Ty::Bool, [dim]);
                let holes = vec![self.expr(&condition, d), self.expr(&ty, d), self.expr(&ty, d)];
                Expr::new(ty, "select($, $, $)", holes)
            }
            _ => self.elementwise(ty, element, d),
        }
    }

    fn comprehension(&mut self, ty: Ty, element: &Ty, dim: Dim, depth: usize) -> Expr {
        self.note("comprehension");
        let name = self.name("i");
        let body = self.inside(&name, Some(dim), 3, |g| g.expr(element, depth - 1));
        Expr::new(ty, &format!("[$ for {name} in 0..{dim}]"), vec![body])
    }

    fn elementwise(&mut self, ty: Ty, element: &Ty, depth: usize) -> Expr {
        self.note("elementwise");
        let other = if self.rng.percent(60) { ty.clone() } else { element.clone() };
        match element {
            Ty::Bool => {
                let Ty::Array(_, dims) = &ty else { unreachable!("an array") };
                let numbers = if self.rng.percent(50) { Ty::Int } else { Ty::Real };
                let array = Ty::array(numbers.clone(), dims.iter().copied());
                match self.rng.below(4) {
                    0 => {
                        let holes = vec![self.expr(&ty, depth), self.expr(&ty, depth)];
                        Expr::new(ty, self.rng.choose::<&str>(&["($ && $)", "($ || $)"]), holes)
                    }
                    1 => {
                        let value = self.expr(&ty, depth);
                        Expr::new(ty, "!$", vec![value])
                    }
                    _ => {
                        let holes = vec![self.expr(&array, depth), self.expr(&numbers, depth)];
                        Expr::new(ty, self.rng.choose::<&str>(&["($ < $)", "($ >= $)", "($ == $)"]), holes)
                    }
                }
            }
            Ty::Int => {
                let holes = vec![self.expr(&ty, depth), self.expr(&other, depth)];
                Expr::new(ty, self.rng.choose::<&str>(&["($ + $)", "($ - $)", "min($, $)"]), holes)
            }
            _ if self.rng.percent(25) => {
                let value = self.expr(&ty, depth);
                let function = *self.rng.choose(ELEMENTARY);
                Expr::new(ty, &format!("{function}($)"), vec![value])
            }
            _ => {
                let holes = vec![self.expr(&other, depth), self.expr(&ty, depth)];
                Expr::new(
                    ty,
                    self.rng.choose::<&str>(&["($ + $)", "($ - $)", "($ * $)", "($ / $)", "max($, $)"]),
                    holes,
                )
            }
        }
    }

    fn matrix_expr(&mut self, ty: Ty, element: &Ty, dims: &[Dim], depth: usize) -> Expr {
        let (rows, columns, d) = (dims[0], dims[1], depth - 1);
        let matrix = |r, c| Ty::array(Ty::Real, [r, c]);
        match self.rng.below(10) {
            0..3 => {
                self.note("matrix comprehension");
                let (i, j) = (self.name("i"), self.name("j"));
                let body = self.inside(&i, Some(rows), 3, |g| g.inside(&j, Some(columns), 3, |g| g.expr(element, d)));
                Expr::new(ty, &format!("[$ for {i} in 0..{rows}, {j} in 0..{columns}]"), vec![body])
            }
            3 => {
                self.note("transpose");
                let value = self.expr(&Ty::array(element.clone(), [columns, rows]), d);
                Expr::new(ty, "transpose($)", vec![value])
            }
            4..6 => {
                self.note("matrix product");
                let inner = self.dim(self.signature().named_dim);
                let holes = vec![self.expr(&matrix(rows, inner), d), self.expr(&matrix(inner, columns), d)];
                Expr::new(ty, "($ @ $)", holes)
            }
            6 => {
                self.note("row");
                let row = self.inside("r", Some(rows), 3, |g| g.expr(&Ty::array(element.clone(), [columns]), d));
                Expr::new(ty, &format!("[$ for r in 0..{rows}]"), vec![row])
            }
            _ => self.elementwise(ty, element, d),
        }
    }

    /// A vector by a product with a matrix, or a row of one.
    pub(super) fn product_vector(&mut self, dim: Dim, depth: usize) -> Expr {
        let inner = self.dim(self.signature().named_dim);
        let (v, m) = (Ty::vector(inner), |r, c| Ty::array(Ty::Real, [r, c]));
        match self.rng.below(3) {
            0 => {
                self.note("matrix vector");
                let holes = vec![self.expr(&m(dim, inner), depth), self.expr(&v, depth)];
                Expr::new(Ty::vector(dim), "($ @ $)", holes)
            }
            1 => {
                self.note("matrix vector");
                let holes = vec![self.expr(&v, depth), self.expr(&m(inner, dim), depth)];
                Expr::new(Ty::vector(dim), "($ @ $)", holes)
            }
            _ => {
                self.note("row");
                let base = self.array_value(m(inner, dim), depth);
                let holes = vec![base, self.index(inner, depth)];
                Expr::new(Ty::vector(dim), "$[$]", holes)
            }
        }
    }

    fn struct_expr(&mut self, ty: &Ty, depth: usize) -> Expr {
        let (name, fields) = match ty {
            Ty::Struct(i) => (format!("S{i}"), self.structs[*i].fields.clone()),
            Ty::Sized(dim) => {
                self.note("sized struct");
                ("P".to_owned(), vec![("q".into(), Ty::vector(*dim)), ("w".into(), Ty::Real), ("k".into(), Ty::Int)])
            }
            _ => unreachable!("a struct"),
        };
        if self.rng.percent(40)
            && let Some(base) = self.variable(ty)
            && fields.len() > 1
        {
            self.note("struct update");
            let (field, field_type) = self.rng.choose(&fields).clone();
            let value = self.expr(&field_type, depth - 1);
            return Expr::new(ty.clone(), &format!("({name} {{ {field}: $, ..$ }})"), vec![value, base]);
        }
        self.note("struct literal");
        let values = fields.iter().map(|(_, t)| self.expr(t, depth - 1)).collect();
        let holes: Vec<String> = fields.iter().map(|(f, _)| format!("{f}: $")).collect();
        Expr::new(ty.clone(), &format!("({name} {{ {} }})", holes.join(", ")), values)
    }

    /// A value that is the same for all lanes, made of shared parameters and numbers by operations that cannot trap.
    pub(super) fn shared_expr(&mut self, ty: &Ty, depth: usize) -> Expr {
        let known: Vec<String> = self.vars.iter().filter(|v| v.shared && v.ty == *ty).map(|v| v.name.clone()).collect();
        if !known.is_empty() && self.rng.percent(60) {
            return Expr::leaf(ty.clone(), self.rng.choose(&known).clone());
        }
        if depth == 0 {
            return match ty {
                Ty::Array(e, dims) if **e == Ty::Real => {
                    let dims: Vec<String> = dims.iter().map(Dim::to_string).collect();
                    Expr::leaf(ty.clone(), format!("ones({})", dims.join(", ")))
                }
                _ => Expr::leaf(ty.clone(), ty.simplest(&self.structs)),
            };
        }
        let d = depth - 1;
        match ty {
            Ty::Real => match self.rng.below(4) {
                0 => {
                    let sums: Vec<String> = self
                        .vars
                        .iter()
                        .filter(|v| v.shared && matches!(v.ty, Ty::Array(..)))
                        .map(|v| v.name.clone())
                        .collect();
                    if sums.is_empty() {
                        self.literal_shared()
                    } else {
                        Expr::leaf(Ty::Real, format!("sum({})", self.rng.choose(&sums)))
                    }
                }
                1 => {
                    let value = self.shared_expr(ty, d);
                    Expr::new(Ty::Real, "exp(-$)", vec![value])
                }
                _ => {
                    let holes = vec![self.shared_expr(ty, d), self.shared_expr(ty, d)];
                    Expr::new(Ty::Real, self.rng.choose::<&str>(&["($ + $)", "($ * $)", "($ - $)"]), holes)
                }
            },
            Ty::Array(e, _) if **e == Ty::Real => {
                let holes = vec![self.shared_expr(ty, d), self.shared_expr(&Ty::Real, d)];
                Expr::new(ty.clone(), self.rng.choose::<&str>(&["($ + $)", "($ * $)"]), holes)
            }
            _ => self.shared_expr(ty, 0),
        }
    }

    fn literal_shared(&mut self) -> Expr {
        Expr::leaf(Ty::Real, format!("{:?}", self.rng.below(9) as f64 / 4.0))
    }
}
