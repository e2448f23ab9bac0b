//! Which comprehensions become whole-array code, and why the others do not. What they compute is tested by the programs in
//! `tests/filetests`, which run with and without `vectorize`.

use autobatch::pipeline::Passes;
use autobatch::prim::Prim;
use autobatch::program::{Inputs, Options, Program};
use autobatch::types::{Array, ArrayData};

/// What the compilation of a function for these inputs warns of.
fn warnings(program: &Program, entry: &str, inputs: &Inputs) -> Vec<String> {
    let function = program.function(entry).expect("it is there");
    let bound = function.bind(inputs, &Options::default()).expect("the inputs fit");
    bound.compiled().warnings.iter().map(|w| format!("{} {}", w.code, w.message)).collect()
}

fn compile(source: &str) -> Program {
    Program::compile(source).unwrap_or_else(|e| panic!("{source}: {e}"))
}

#[test]
fn a_comprehension_that_cannot_be_whole_array_code_says_why() {
    let x = || Inputs::new().lane("x", Array::new([1, 3], ArrayData::Real(vec![1.0, 2.0, 3.0])));
    for (source, reason) in [
        (
            "fn root(x: real) -> real { let mut y = x; while y * y > 2.0 { y = 0.5 * y; } y }
             pub fn main(x: real[3]) -> real[3] { [root(x[i]) for i in 0..3] }",
            "it branches on a value that differs between elements",
        ),
        (
            "pub fn main(x: real[3]) -> real[3] { [if x[i] > 2.0 || log(x[2 - i]) > 0.5 { 1.0 } else { 0.0 } for i in 0..3] }",
            "the right operand of `||` is not computed for all of them",
        ),
        (
            "pub fn main(x: real[3]) -> real[3] { [if x[i] > 2.0 && log(x[2 - i]) > 0.5 { 1.0 } else { 0.0 } for i in 0..3] }",
            "the right operand of `&&` is not computed for all of them",
        ),
        (
            "fn f(x: real) -> real { let mut y = x; if x > 1.0 { if x > 2.0 { while y * y > 2.0 { y = 0.5 * y; } } } y }
             pub fn main(x: real[3]) -> real[3] { [f(x[i]) for i in 0..3] }",
            "and what is in the arms cannot be computed for all of them, or costs too much",
        ),
        (
            "fn f(x: real, y: real) -> real {
                 let mut z = x; if x > 1.0 { if x > 2.0 || log(y) > 0.5 { z = 0.0; } } z
             }
             pub fn main(x: real[3]) -> real[3] { [f(x[i], x[2 - i]) for i in 0..3] }",
            "the right operand of `||` is not computed for all of them",
        ),
        (
            "fn fact(x: real) -> real { if x < 1.0 { 1.0 } else { x * fact(x - 1.0) } }
             pub fn main(x: real[3]) -> real[3] { [fact(x[i]) for i in 0..3] }",
            "an element calls a function that is recursive",
        ),
        (
            "pub fn main(x: real[3]) -> real[3] { [uniform_rng(0.0, 1.0) - uniform_rng(0.0, x[i]) for i in 0..3] }",
            "its random draws are numbered element by element",
        ),
        (
            "fn tree(x: real[3], depth: int) -> real { if depth == 0 { 1.0 } else { sum(x[i] * tree(x, depth - 1) for i in 0..3) } }
             pub fn main(x: real[3]) -> real { tree(x, 2) }",
            "an element calls the function that it stands in",
        ),
        (
            "fn square(x: real) -> real { x * x }
             derivative of square { reverse(x, dy) { 2.0 * x * dy } }
             fn total(x: real[3]) -> real { sum(square(x[i]) for i in 0..3) }
             pub fn main(x: real[3]) -> real[3] { grad(total)(x) }",
            "an element calls a function that has a `derivative of`",
        ),
    ] {
        let found = warnings(&compile(source), "main", &x());
        let [warning] = &found[..] else { panic!("{source}: {found:?}") };
        assert!(warning.starts_with("W0102 this comprehension runs as a loop: "), "{warning}");
        assert!(warning.contains(reason), "{warning}");
    }
}

#[test]
fn nothing_else_warns() {
    let x = || Inputs::new().lane("x", Array::new([1, 3], ArrayData::Real(vec![1.0, 2.0, 3.0])));
    for source in [
        // Branches, calls, inner comprehensions, derivatives inside and outside.
        "pub fn main(x: real[3]) -> real[3] { [if x[i] > 0.0 { log(x[i]) } else { 0.0 } for i in 0..3] }",
        "pub fn main(x: real[3]) -> real { sum(normal_lpdf(x[i], x[j], 1.0) for i in 0..3, j in 0..3) }",
        "fn f(x: real) -> real { x * x } pub fn main(x: real[3]) -> real[3] { [grad(f)(x[i]) for i in 0..3] }",
        "fn f(x: real[3]) -> real { sum(exp(x[i]) for i in 0..3) } pub fn main(x: real[3]) -> real[3, 3] { hessian(f)(x) }",
        "fn f(x: real[3]) -> real { let mut s = 0.0; for i in 0..3 { s = s * x[i] + 1.0; } s }
         pub fn main(x: real[3]) -> real[3, 3] { hessian(f)(x) }",
        // As many elements as there is room for.
        "pub fn main(x: real[3]) -> real { sum(square(x[i % 3] - real(i)) for i in 0..300000) }",
        // Without an element there is nothing to vectorise.
        "pub fn main(x: real[3]) -> real { sum(x[i] for i in 2..2) }",
        // A number of elements that is not known is a loop by its nature.
        "pub fn main(x: real[3]) -> real { let k = int(x[0]); sum(x[i] for i in 0..k) }",
    ] {
        assert_eq!(warnings(&compile(source), "main", &x()), [""; 0], "{source}");
    }
}

/// The primitives of the program that the engines run.
fn primitives(source: &str, passes: &Passes) -> Vec<Prim> {
    let program = compile(source);
    let inputs = Inputs::new()
        .lane("w", Array::new([1, 2], ArrayData::Real(vec![1.0, 2.0])))
        .shared("x", Array::new([3, 2], ArrayData::Real(vec![1.0; 6])));
    let options = Options::default().passes(passes.clone());
    let function = program.function("main").expect("it is there");
    let bound = function.bind(&inputs, &options).expect("the inputs fit");
    let cfg = bound.compiled().cfg.as_ref().expect("it has a CFG program");
    let blocks = cfg.funcs.values().flat_map(|f| f.blocks.values());
    let insts = blocks.flat_map(|b| &b.insts);
    insts
        .filter_map(|i| match &i.kind {
            autobatch::cfg::InstKind::Prim { prim, .. } => Some(*prim),
            _ => None,
        })
        .collect()
}

#[test]
fn a_product_with_every_row_is_one_matrix_product_and_so_is_its_derivative() {
    let value = "pub fn main(w: real[2], shared x: real[3, 2]) -> real[3] { [dot(x[i], w) for i in 0..3] }";
    assert_eq!(primitives(value, &Passes::default()), [Prim::MatMul]);
    let gradient = "pub fn f(w: real[2], shared x: real[3, 2]) -> real { sum(exp(dot(x[i], w)) for i in 0..3) }
                    pub fn main(w: real[2], shared x: real[3, 2]) -> real[2] { grad(f)(w, x) }";
    assert_eq!(primitives(gradient, &Passes::default()), [Prim::MatMul, Prim::Exp, Prim::ChainMatMul]);
    let mut off = Passes::default();
    off.switch_off("vectorize");
    assert!(primitives(value, &off).contains(&Prim::SetIndex));
}

/// Where whole arrays cannot run tile by tile they would take megabytes in every lane.
#[test]
fn long_comprehensions_that_would_take_too_much_memory_are_loops() {
    let program = compile(
        "pub fn main(x: real[3], p: int) -> real {
             let y = [x[i % 3] * real(i) for i in 0..1000000];
             y[p]
         }
         pub fn total(x: real[3], p: int) -> real { prod(x[(i * i + p) % 3] for i in 0..1000000) + max(x[(i + p) % 3] for i in 0..1000000) }",
    );
    let inputs =
        Inputs::new().lane("x", Array::new([1, 3], ArrayData::Real(vec![1.0, 1.0, 1.0]))).lane("p", vec![1_i64]);
    let bytes = |entry: &str| {
        let function = program.function(entry).expect("it is there");
        let bound = function.bind(&inputs, &Options::default()).expect("the inputs fit");
        bound.compiled().plan.body.bytes_per_lane(8)
    };
    // The array is the user's own.
    assert!(bytes("main") >= 8_000_000);
    assert!(bytes("total") < 4 << 20, "{}", bytes("total"));
}

/// Bytes of a running lane for the gradient of `f`, as compiled for vectors of `n` elements, and what the compiler warns of.
fn gradient_bytes(source: &str, n: usize) -> (usize, Vec<String>) {
    let program = compile(&format!("{source}\npub fn main[n](x: real[n], p: int[n]) -> real[n] {{ grad(f)(x, p) }}"));
    let x = Array::new([1, n], ArrayData::Real((0..n).map(|i| 0.3 + i as f64 / n as f64).collect()));
    let p = Array::new([1, n], ArrayData::Int((0..n as i64).collect()));
    let inputs = Inputs::new().lane("x", x).lane("p", p);
    let function = program.function("main").expect("it is there");
    let bound = function.bind(&inputs, &Options::default()).expect("the inputs fit");
    let compiled = bound.compiled();
    let warnings = compiled.warnings.iter().map(|w| format!("{} {}", w.code, w.message)).collect();
    let estimate = autobatch::plan::estimate(&compiled.plan, 64, &autobatch::run::Settings::default());
    (estimate.state_bytes_per_lane, warnings)
}

/// Arrays that arms read by an index, or as a whole, are there once and not once for each element.
#[test]
fn gradients_with_branches_take_memory_in_proportion_to_the_elements() {
    for (body, elements_of) in [
        ("sum(if i > 0 { x[i] * x[i - 1] } else { x[i] } for i in 0..n)", 1),
        ("sum(if p[i] > 3 { normal_lpdf(0.5, x[p[i]], 1.0) } else { 0.0 } for i in 0..n)", 1),
        ("sum(if p[i] > 3 { x[p[i]] * x[i] } else { log(x[n - 1 - p[i]]) } for i in 0..n)", 1),
        ("sum(if p[i] > 3 { sin(x[i]) * sum(x) } else { cos(x[i]) } for i in 0..n)", 1),
        ("sum(if p[i] > 3 { sin(x[i]) * dot(x, x) } else { cos(x[i]) } for i in 0..n)", 1),
        ("sum(h(x, i) for i in 0..n)", 1),
        (
            "let a = [if i > 0 { log_add_exp(x[i], x[i - 1]) } else { x[i] } for i in 0..n];
          let b = [if i > 0 { log_add_exp(a[i], a[i - 1]) } else { a[i] } for i in 0..n]; sum(b)",
            1,
        ),
        ("sum(if j < i { tanh(x[i] * x[j]) } else { 0.0 } for i in 0..n, j in 0..n)", 2),
    ] {
        let source = format!(
            "fn h[n](x: real[n], i: int) -> real {{ if x[i] < 0.0 {{ return x[n - 1 - i]; }} x[i] * x[i] }}
             fn f[n](x: real[n], p: int[n]) -> real {{ {body} }}"
        );
        let n = if elements_of == 1 { 64 } else { 12 };
        let [(few, no_warning), (many, _)] = [n, 2 * n].map(|n| gradient_bytes(&source, n));
        assert!(no_warning.is_empty(), "{body}: {no_warning:?}");
        let most = few * (1 << elements_of) * 11 / 10;
        assert!(many <= most, "{body}: {few} bytes a lane for {n} elements, {many} for {}", 2 * n);
    }
}
