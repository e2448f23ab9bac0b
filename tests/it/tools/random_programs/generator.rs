//! What a random program is made of, and what the generator knows while it writes one.
//!
//! Programs terminate: recursion has a parameter `fuel` that falls, `while` loops count down a variable that nothing else
//! assigns, and an estimate of the work keeps nested loops and calls small.

use std::collections::BTreeSet;

use super::program::{Dim, Expr, Function, Param, Program, Struct, Ty};
use super::rng::Rng;

/// The constructs that the generator reports; the test of its coverage wants all of them.
pub(crate) const CONSTRUCTS: &[&str] = &[
    "let",
    "let mut",
    "destructuring",
    "assignment",
    "operator assignment",
    "element assignment",
    "row assignment",
    "slice assignment",
    "field assignment",
    "x = g(x)",
    "if",
    "if else",
    "if expression",
    "while",
    "for",
    "break",
    "continue",
    "early return",
    "return in loop",
    "print",
    "emit",
    "assert",
    "and or",
    "select",
    "call",
    "recursion",
    "mutual recursion",
    "tail recursion",
    "rotation",
    "recursion in loop",
    "attempt",
    "comprehension",
    "matrix comprehension",
    "reduction",
    "reduction with varying bounds",
    "closure",
    "closure capturing",
    "function as value",
    "closure call",
    "dimension",
    "shared argument",
    "shared computation",
    "uniform draw",
    "normal draw",
    "other draw",
    "int overflow",
    "int division",
    "index that may trap",
    "conversion that may trap",
    "int meets real",
    "nan or infinity",
    "slice",
    "row",
    "concat",
    "transpose",
    "matrix product",
    "matrix vector",
    "dot",
    "elementwise",
    "elementary function",
    "array literal",
    "array reduction",
    "bool array",
    "int array",
    "struct literal",
    "struct update",
    "sized struct",
    "tuple",
    "block expression",
    "distribution",
    "int power",
];

/// A variable in scope.
#[derive(Clone, Debug)]
pub(super) struct Var {
    pub(super) name: String,
    pub(super) ty: Ty,
    pub(super) mutable: bool,
    pub(super) shared: bool,
    /// An int in `0..below`.
    pub(super) below: Option<Dim>,
}

/// How a function calls itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Recursion {
    None,
    /// Anywhere, with little fuel.
    Tree,
    /// At the end only, with much fuel.
    Tail,
}

/// What callers know of a function.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    pub(super) name: String,
    pub(super) params: Vec<Param>,
    pub(super) ret: Ty,
    pub(super) named_dim: bool,
    pub(super) recursion: Recursion,
    /// The other function of a mutual recursion.
    pub(super) partner: Option<usize>,
    /// Neither prints nor emits.
    pub(super) pure: bool,
    /// Statements of one call, roughly.
    pub(super) cost: usize,
}

/// Where an expression stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Function,
    Comprehension,
    Closure,
}

/// The state of the generator.
pub(super) struct Generator {
    pub(super) rng: Rng,
    pub(super) structs: Vec<Struct>,
    pub(super) streams: Vec<Vec<(String, Ty)>>,
    pub(super) signatures: Vec<Signature>,
    pub(super) current: usize,
    pub(super) vars: Vec<Var>,
    pub(super) place: Place,
    /// Loops around the statement, and how often it may run in one call.
    pub(super) loops: usize,
    pub(super) times: usize,
    /// Work of the current function so far, and how often it may call itself.
    pub(super) cost: usize,
    pub(super) self_calls: usize,
    names: usize,
    constructs: BTreeSet<&'static str>,
}

/// A random program, and the constructs that occur in it.
pub(crate) fn generate(seed: u64) -> (Program, BTreeSet<&'static str>) {
    let mut generator = Generator::new(seed);
    let program = generator.program();
    (program, generator.constructs)
}

impl Generator {
    fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            structs: Vec::new(),
            streams: Vec::new(),
            signatures: Vec::new(),
            current: 0,
            vars: Vec::new(),
            place: Place::Function,
            loops: 0,
            times: 1,
            cost: 0,
            self_calls: 0,
            names: 0,
            constructs: BTreeSet::new(),
        }
    }

    /// Reports a construct.
    pub(super) fn note(&mut self, construct: &'static str) {
        debug_assert!(CONSTRUCTS.contains(&construct), "{construct} is not in the list");
        self.constructs.insert(construct);
    }

    /// A new name.
    pub(super) fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    pub(super) fn signature(&self) -> &Signature {
        &self.signatures[self.current]
    }

    fn program(&mut self) -> Program {
        for i in 0..self.rng.below(3) {
            let fields = (0..1 + self.rng.below(3)).map(|k| (format!("a{k}"), self.field_type(i))).collect();
            self.structs.push(Struct { fields });
        }
        for _ in 0..self.rng.below(3) {
            let fields = (0..1 + self.rng.below(2)).map(|k| (format!("e{k}"), self.plain_type(false))).collect();
            self.streams.push(fields);
        }
        let count = 1 + self.rng.below(5);
        let mut functions = Vec::new();
        while functions.len() < count {
            functions.extend(self.group());
        }
        functions.push(self.entry());
        Program { structs: self.structs.clone(), functions }
    }

    /// A type of a field of struct `i`: other structs come before it.
    fn field_type(&mut self, i: usize) -> Ty {
        if i > 0 && self.rng.percent(30) { Ty::Struct(self.rng.below(i)) } else { self.plain_type(false) }
    }

    pub(super) fn dim(&mut self, named: bool) -> Dim {
        if named && self.rng.percent(60) { Dim::Named } else { Dim::Known(2 + self.rng.below(2)) }
    }

    /// A scalar or an array.
    pub(super) fn plain_type(&mut self, named: bool) -> Ty {
        match self.rng.below(20) {
            0..6 => Ty::Int,
            6..12 => Ty::Real,
            12..14 => Ty::Bool,
            14..17 => Ty::vector(self.dim(named)),
            17 => Ty::array(Ty::Int, [self.dim(named)]),
            18 => Ty::array(Ty::Bool, [self.dim(named)]),
            _ => Ty::array(Ty::Real, [self.dim(named), self.dim(named)]),
        }
    }

    /// Any type of a variable.
    pub(super) fn any_type(&mut self, named: bool) -> Ty {
        match self.rng.below(10) {
            0 if !self.structs.is_empty() => Ty::Struct(self.rng.below(self.structs.len())),
            1 => {
                self.note("tuple");
                Ty::Tuple((0..2 + self.rng.below(2)).map(|_| self.plain_type(named)).collect())
            }
            2 if self.rng.percent(50) => {
                self.note("sized struct");
                Ty::Sized(self.dim(named))
            }
            _ => self.plain_type(named),
        }
    }

    /// A function, or two that call each other.
    fn group(&mut self) -> Vec<Function> {
        let recursion = match self.rng.below(10) {
            0..4 => Recursion::None,
            4..8 => Recursion::Tree,
            _ => Recursion::Tail,
        };
        let first = self.new_signature(recursion);
        let at = self.signatures.len();
        if recursion == Recursion::None || self.rng.percent(65) {
            self.signatures.push(first);
            return vec![self.function(at)];
        }
        self.note("mutual recursion");
        let mut second = Signature { name: format!("f{}", at + 1), partner: Some(at), ..first.clone() };
        if self.rng.percent(30) && first.params.len() > 2 {
            // The same parameters in another order, after the fuel.
            let mut order = second.params.split_off(1);
            self.rng.shuffle(&mut order);
            second.params.extend(order);
        }
        self.signatures.push(Signature { partner: Some(at + 1), ..first });
        self.signatures.push(second);
        let functions = vec![self.function(at), self.function(at + 1)];
        let cost = self.signatures[at].cost.max(self.signatures[at + 1].cost);
        self.signatures[at].cost = cost;
        self.signatures[at + 1].cost = cost;
        functions
    }

    fn new_signature(&mut self, recursion: Recursion) -> Signature {
        let named_dim = self.rng.percent(25);
        let mut params = Vec::new();
        if recursion != Recursion::None {
            params.push(Param { name: "fuel".into(), ty: Ty::Int, shared: false, mutable: false });
        }
        // Two of one type are common, so that recursion can exchange them.
        let again = self.rng.percent(50);
        for i in 0..1 + self.rng.below(4) {
            let ty = if again && i > 0 {
                params.last().map_or(Ty::Int, |p: &Param| p.ty.clone())
            } else {
                self.any_type(named_dim)
            };
            let mutable = self.rng.percent(25);
            params.push(Param { name: format!("x{i}"), ty, shared: false, mutable });
        }
        if named_dim {
            self.note("dimension");
            if !params.iter().any(|p| p.ty.is_named()) {
                params.push(Param { name: "v".into(), ty: Ty::vector(Dim::Named), shared: false, mutable: false });
            }
        }
        if self.rng.percent(20) {
            let ty = self.shared_type();
            params.push(Param { name: "s".into(), ty, shared: true, mutable: false });
        }
        if self.rng.percent(20) {
            let ty = if self.rng.percent(70) { Ty::Real } else { Ty::Int };
            params.push(Param { name: "g".into(), ty: Ty::Closure(Box::new(ty)), shared: false, mutable: false });
        }
        let ret = match self.rng.below(20) {
            0..5 => Ty::Int,
            5..10 => Ty::Real,
            10 => Ty::Bool,
            11 => Ty::Unit,
            _ => self.any_type(named_dim),
        };
        Signature {
            name: format!("f{}", self.signatures.len()),
            params,
            ret,
            named_dim,
            recursion,
            partner: None,
            pure: self.rng.percent(60),
            cost: 1,
        }
    }

    fn shared_type(&mut self) -> Ty {
        match self.rng.below(5) {
            0 => Ty::Int,
            1 | 2 => Ty::Real,
            3 => Ty::vector(Dim::Known(2 + self.rng.below(2))),
            _ => Ty::array(Ty::Real, [Dim::Known(2 + self.rng.below(2)), Dim::Known(2 + self.rng.below(2))]),
        }
    }

    fn entry(&mut self) -> Function {
        let mut signature = self.new_signature(Recursion::None);
        signature.params.retain(|p| !matches!(p.ty, Ty::Closure(_)));
        for i in 0..2 {
            let ty = if i == 0 { Ty::Int } else { Ty::Real };
            signature.params.push(Param { name: format!("y{i}"), ty, shared: false, mutable: false });
        }
        if self.rng.percent(40) {
            let ty = self.shared_type();
            signature.params.push(Param { name: "t".into(), ty, shared: true, mutable: false });
        }
        if signature.ret == Ty::Unit {
            signature.ret = Ty::Real;
        }
        signature.name = "entry".into();
        signature.pure = false;
        self.signatures.push(signature);
        let mut function = self.function(self.signatures.len() - 1);
        // The result tells of everything: the values of the variables that are still in scope go with it.
        self.add_witnesses(&mut function);
        function
    }

    fn add_witnesses(&mut self, function: &mut Function) {
        let plain =
            |ty: &Ty| matches!(ty, Ty::Int | Ty::Real | Ty::Bool | Ty::Array(..) | Ty::Struct(_) | Ty::Sized(_));
        let vars: Vec<Var> = self.vars.iter().filter(|v| v.mutable && plain(&v.ty)).take(3).cloned().collect();
        let Some(tail) = function.body.tail.take() else { return };
        if vars.is_empty() || !plain(&tail.ty) && !matches!(tail.ty, Ty::Tuple(_)) {
            function.body.tail = Some(tail);
            return;
        }
        // Only early returns know the old type; the whole body goes into a function of its own then.
        let has_return = function.body.stmts.iter().any(contains_return);
        if has_return {
            function.body.tail = Some(tail);
            return;
        }
        let mut parts = vec![tail];
        parts.extend(vars.iter().map(|v| Expr::leaf(v.ty.clone(), v.name.clone())));
        let ty = Ty::Tuple(parts.iter().map(|p| p.ty.clone()).collect());
        let template = format!("({})", vec!["$"; parts.len()].join(", "));
        function.ret = ty.clone();
        function.body.tail = Some(Expr::new(ty, &template, parts));
    }
}

fn contains_return(stmt: &super::program::Stmt) -> bool {
    use super::program::Piece;
    fn in_pieces(pieces: &[Piece]) -> bool {
        pieces.iter().any(|piece| match piece {
            Piece::Text(text) => text.contains("return"),
            Piece::Expr(expr) => in_pieces(&expr.pieces),
            Piece::Block(block) => block.stmts.iter().any(|s| in_pieces(&s.pieces)),
        })
    }
    in_pieces(&stmt.pieces)
}
