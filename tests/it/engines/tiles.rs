//! Groups of steps that run tile by tile: the bits, traps and effects of the run without tiles, and memory for tiles only.

use autobatch::backend::cpu::codegen::Code;
use autobatch::pipeline::Passes;
use autobatch::plan::{Plan, StepKind, TileResult, Tiled};
use autobatch::program::{Codegen, Engine, Function, Inputs, Options, Program};
use autobatch::run::{Costs, Execution, Settings};
use autobatch::types::{Array, Precision, Type};

use crate::engines::machine;
use crate::tools::observed::{self, Configuration, difference};

const LOGISTIC: &str = "
fn density[n, d](q: real[d], shared x: real[n, d], shared y: real[n]) -> real {
    let eta = x @ q;
    dot(y, eta) - sum(log1p_exp(eta)) - 0.5 * dot(q, q)
}
pub fn main[n, d](q: real[d], shared x: real[n, d], shared y: real[n]) -> (real, real[d]) {
    value_and_grad(density)(q, x, y)
}";

/// The same with one logarithm for a block of observations.
fn logistic_by_blocks() -> String {
    LOGISTIC.replace("sum(log1p_exp(eta))", "sum_log1p_exp(eta)")
}

/// Numbers without a pattern, from -1 to 1.
fn reals<const RANK: usize>(shape: [usize; RANK], seed: u64) -> Array {
    let len: usize = shape.iter().product();
    let mixed = |i: u64| (i ^ seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d);
    let value = |i: u64| (mixed(i) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
    Array::real(shape, (0..len as u64).map(value).collect())
}

fn plan(function: &Function<'_>, inputs: &Inputs) -> Plan {
    function.bind(inputs, &Options::default()).expect("the inputs fit").compiled().plan.as_ref().clone()
}

fn groups(plan: &Plan) -> Vec<&Tiled> {
    let steps = plan.body.blocks.values().flat_map(|b| &b.steps);
    let tiled = steps.filter_map(|s| if let StepKind::Tiled(group) = &s.kind { Some(group) } else { None });
    tiled.collect()
}

/// Runs on both engines, with tiles and without, masked and gathered, in shards of several widths; all do what the reference does.
fn agree(source: &str, inputs: &Inputs, groups_wanted: usize) {
    let program = Program::compile(source).unwrap_or_else(|e| panic!("{e}"));
    let function = program.function("main").expect("it is there");
    let found = groups(&plan(&function, inputs)).len();
    assert_eq!(found, groups_wanted, "{}", plan(&function, inputs));
    for precision in [Precision::F64, Precision::F32] {
        let base = Options::default().precision(precision).max_supersteps(100_000);
        let wanted = Configuration::scalar(&base).observe(&function, inputs).expect("it runs");
        for (engine, tiles, execution, shard_lanes, codegen) in [
            (Engine::Pc, true, Execution::Mask, 64, Codegen::Off),
            (Engine::Pc, true, Execution::Gather, 5, Codegen::Off),
            (Engine::Pc, true, Execution::Auto, 1, Codegen::Off),
            (Engine::Pc, false, Execution::Mask, 64, Codegen::Off),
            (Engine::Pc, true, Execution::Mask, 64, observed::codegen()),
            (Engine::Pc, true, Execution::Gather, 64, observed::codegen()),
            (Engine::Local, true, Execution::Gather, 64, observed::codegen()),
            (Engine::Local, true, Execution::Mask, 64, Codegen::Off),
            (Engine::Local, true, Execution::Gather, 5, Codegen::Off),
            (Engine::Local, false, Execution::Auto, 64, Codegen::Off),
            (Engine::Local, true, Execution::Auto, 5, observed::codegen()),
        ] {
            let options = base.clone().engine(engine).execution(execution).shard_lanes(shard_lanes).threads(1);
            let mut options = options.codegen(codegen);
            if !tiles {
                options = options.without_pass("tile-rows").expect("there is such a pass");
            }
            let configuration = Configuration { options, batch: 0, order: None };
            let found = configuration.observe(&function, inputs).expect("it runs");
            if let Some(why) = difference(&wanted, &found) {
                panic!("{configuration}\n{why}\n{source}");
            }
        }
    }
}

/// Elementwise steps between products, gathers and what may trap are functions over a tile, of whole groups of lanes and of
/// parts of one, in tiles of several blocks and of a part of one.
#[test]
fn functions_of_tiles_have_the_bits_of_the_reference_at_every_width() {
    let source = "
        fn density[n, d, m](q: real[d], a: real[m], mu: real, s: real, shared x: real[n, d], shared g: int[n], shared y: real[n]) -> real {
            let eta = [mu + dot(x[i], q) + a[g[i]] for i in 0..n];
            let z = (y - eta) / exp(s);
            let far = select(z > 1.5, -0.25 * z, z * z);
            -0.5 * sum(z * z) - n * s + 0.125 * sum(far) + sum(log1p_exp(eta) * y) - 0.5 * dot(q, q)
        }
        pub fn main[n, d, m](q: real[d], a: real[m], mu: real, s: real, shared x: real[n, d], shared g: int[n], shared y: real[n]) -> (real, real[d], real[m], real, real, int) {
            let (value, (by_q, by_a, by_mu, by_s)) = value_and_grad(density, wrt = (q, a, mu, s))(q, a, mu, s, x, g, y);
            let near = sum(select(abs(y - mu) < exp(s) && y > 0.0, 1, 0));
            (value, by_q, by_a, by_mu, by_s, near)
        }";
    let program = Program::compile(source).unwrap_or_else(|e| panic!("{e}"));
    let function = program.function("main").expect("it is there");
    for n in [512, 700, 1300] {
        let places = Array::int([n], (0..n as i64).map(|i| i * i % 4).collect());
        let inputs = Inputs::new()
            .lane("q", reals([131, 3], 1))
            .lane("a", reals([131, 4], 2))
            .lane("mu", reals([131], 3))
            .lane("s", reals([131], 4))
            .shared("x", reals([n, 3], 5))
            .shared("g", places)
            .shared("y", reals([n], 6));
        let bound = function.bind(&inputs, &Options::default()).expect("the inputs fit");
        let code = Code::of_units(&bound.compiled().units, &bound.compiled().plan);
        assert!(code.text.matches("_tile_").count() > 1, "{}", code.text);
        for precision in [Precision::F64, Precision::F32] {
            let base = Options::default().precision(precision);
            let wanted = Configuration::scalar(&base).observe(&function, &inputs).expect("it runs");
            for shard_lanes in [1, 4, 6, 8, 9, 15, 64, 100, 131] {
                let options = base.clone().shard_lanes(shard_lanes).threads(2).codegen(observed::codegen());
                let configuration = Configuration { options, batch: 0, order: None };
                let found = configuration.observe(&function, &inputs).expect("it runs");
                if let Some(why) = difference(&wanted, &found) {
                    panic!("{configuration}, {n} rows\n{why}");
                }
            }
        }
    }
}

/// With fewer lanes than threads, those without lanes have a part of the rows.
#[test]
fn threads_that_share_rows_give_the_bits_of_the_reference() {
    let program = Program::compile(LOGISTIC).unwrap_or_else(|e| panic!("{e}"));
    let function = program.function("main").expect("it is there");
    let costs = Costs::parse("addition=100,share=0.0001").expect("it is a cost");
    for (lanes, rows, columns) in [(1, 3001, 19), (1, 40, 2000), (3, 1500, 6)] {
        let inputs = Inputs::new()
            .lane("q", reals([lanes, columns], 1))
            .shared("x", reals([rows, columns], 2))
            .shared("y", reals([rows], 3));
        for precision in [Precision::F64, Precision::F32] {
            let base = Options::default().precision(precision);
            let wanted = Configuration::scalar(&base).observe(&function, &inputs).expect("it runs");
            for (engine, codegen, threads) in [
                (Engine::Pc, Codegen::Off, 2),
                (Engine::Pc, Codegen::Off, 5),
                (Engine::Pc, observed::codegen(), 2),
                (Engine::Local, Codegen::Off, 2),
                (Engine::Scalar, observed::codegen(), 2),
            ] {
                let settings = base.get_settings().clone().costs(costs).threads(threads);
                let options = base.clone().settings(settings).engine(engine).codegen(codegen);
                let configuration = Configuration { options, batch: 0, order: None };
                let found = configuration.observe(&function, &inputs).expect("it runs");
                if let Some(why) = difference(&wanted, &found) {
                    panic!("{configuration}, {rows} x {columns}\n{why}");
                }
            }
        }
    }
}

#[test]
fn functions_with_a_common_part_run_together() {
    for source in [LOGISTIC, &logistic_by_blocks()] {
        let program = Program::compile(source).unwrap_or_else(|e| panic!("{e}"));
        let inputs =
            Inputs::new().lane("q", reals([6, 3], 1)).shared("x", reals([700, 3], 2)).shared("y", reals([700], 3));
        let plan = plan(&program.function("main").expect("it is there"), &inputs);
        let steps = &groups(&plan)[0].steps;
        let together = steps.windows(2).filter(|pair| pair[1].twin_of(&pair[0])).count();
        assert_eq!(together, 1, "{plan}");
    }
}

#[test]
fn products_have_the_bits_of_the_reference_at_every_width() {
    let program = Program::compile(LOGISTIC).unwrap_or_else(|e| panic!("{e}"));
    let function = program.function("main").expect("it is there");
    for (rows, columns) in [(600, 19), (40, 300)] {
        let inputs = Inputs::new()
            .lane("q", reals([257, columns], 1))
            .shared("x", reals([rows, columns], 2))
            .shared("y", reals([rows], 3));
        for precision in [Precision::F64, Precision::F32] {
            let base = Options::default().precision(precision);
            let wanted = Configuration::scalar(&base).observe(&function, &inputs).expect("it runs");
            for shard_lanes in [1, 2, 7, 8, 9, 31, 64, 100, 257] {
                let options = base.clone().shard_lanes(shard_lanes).threads(2);
                let configuration = Configuration { options, batch: 0, order: None };
                let found = configuration.observe(&function, &inputs).expect("it runs");
                if let Some(why) = difference(&wanted, &found) {
                    panic!("{configuration}, {rows} x {columns}\n{why}");
                }
            }
        }
    }
}

#[test]
fn the_gradient_of_logistic_regression_is_one_group() {
    for n in [0, 1, 2, 511, 512, 513, 700, 1024, 1300] {
        let inputs = Inputs::new().lane("q", reals([6, 3], 1)).shared("x", reals([n, 3], 2)).shared("y", reals([n], 3));
        agree(LOGISTIC, &inputs, usize::from(n >= 512));
        agree(&logistic_by_blocks(), &inputs, usize::from(n >= 512));
    }
    let inputs =
        Inputs::new().lane("q", reals([2, 3], 1)).shared("x", reals([10_000, 3], 2)).shared("y", reals([10_000], 3));
    agree(LOGISTIC, &inputs, 1);
    agree(&logistic_by_blocks(), &inputs, 1);
}

#[test]
fn sums_of_logarithms_are_of_the_rows_of_all_tiles() {
    let source = "
        fn density[n, d](q: real[d], shared x: real[n, d], shared y: real[n]) -> real {
            let eta = x @ q;
            let z = y - eta;
            let scale = exp(eta);
            sum(z * z) - sum_log(scale * scale + 1.0) - sum_log1p_exp(-eta)
                + sum_log1p_exp(eta) * sum_log([abs(z[i]) + 0.5 for i in 0..n])
        }
        pub fn main[n, d](q: real[d], shared x: real[n, d], shared y: real[n]) -> (real, real[d]) {
            value_and_grad(density)(q, x, y)
        }";
    for n in [512, 700, 1300] {
        let inputs = Inputs::new().lane("q", reals([6, 3], 1)).shared("x", reals([n, 3], 2)).shared("y", reals([n], 3));
        agree(source, &inputs, 2);
    }
}

#[test]
fn matrices_of_lanes_are_cut_by_rows() {
    let source = "
        fn density[n, d](q: real[d], x: real[n, d], y: real[n]) -> real {
            let eta = x @ q;
            dot(y, eta) - sum(log1p_exp(eta)) + dot(y @ x, q)
        }
        pub fn main[n, d](q: real[d], x: real[n, d], y: real[n]) -> (real, real[d], real[n, d]) {
            let (value, (by_q, by_x)) = value_and_grad(density, wrt = (q, x))(q, x, y);
            (value, by_q, by_x)
        }";
    for n in [512, 700] {
        let inputs =
            Inputs::new().lane("q", reals([5, 3], 1)).lane("x", reals([5, n, 3], 2)).lane("y", reals([5, n], 3));
        agree(source, &inputs, 1);
    }
}

#[test]
fn values_that_are_needed_after_a_group_are_kept() {
    // The largest element is known only when all rows are: the exponentials begin a second group, of which `e` is kept.
    let source = "
        pub fn main[n](x: real[n], shared y: real[n], s: real) -> (real[n], real, real, int) {
            let z = s * x + y;
            let top = max(z);
            let e = exp(z - top);
            let total = sum(e);
            (e / total, total, min(y * z), sum(int(100.0 * sin(z))))
        }";
    for n in [512, 1100] {
        let inputs = Inputs::new()
            .lane("x", reals([7, n], 1))
            .shared("y", reals([n], 2))
            .lane("s", Array::real([7], vec![0.1, 1.0, -2.0, 3.0, 0.0, 1e3, -1e-3]));
        agree(source, &inputs, 2);
    }
}

#[test]
fn traps_in_a_group_are_those_of_the_whole() {
    // In lane 1 the sum overflows in the first rows, in lane 2 the product does in the last row, in lane 3 the division
    // goes wrong in the first row, after what goes wrong in the last, in lane 4 the assertion between them fails.
    let source = "
        pub fn main[n](x: int[n], y: int[n], k: int) -> (int, int, bool) {
            let a = x * 3;
            assert(k != 4, \"k is {k}\");
            let b = (a + 1) / y;
            let c = b - a;
            (sum(c), max(b), any(c == 5))
        }";
    let (n, lanes) = (1100, 6);
    let mut x = vec![1_i64; n * lanes];
    let mut y = vec![2_i64; n * lanes];
    (x[n + 3], x[n + 4]) = (i64::MAX / 3, i64::MAX / 3 - 5);
    (y[n + 3], y[n + 4]) = (-1, -1);
    x[3 * n - 1] = i64::MAX / 2;
    (x[4 * n - 1], y[3 * n]) = (i64::MIN / 2, 0);
    (x[4 * n], y[5 * n - 1]) = (7, 0);
    y[6 * n - 1] = 0;
    let inputs = Inputs::new()
        .lane("x", Array::int([lanes, n], x))
        .lane("y", Array::int([lanes, n], y))
        .lane("k", Array::int([lanes], (0..lanes as i64).collect()));
    agree(source, &inputs, 1);
}

#[test]
fn lanes_that_are_not_active_keep_their_values() {
    // Lanes leave the loop at different times, and recurse to different depths.
    let source = "
        fn walk[n, d](q: real[d], depth: int, shared x: real[n, d]) -> real[n] {
            let z = tanh(x @ q);
            if depth == 0 { return z; }
            let below = walk(0.5 * q, depth - 1, x);
            z + below
        }
        pub fn main[n, d](q: real[d], k: int, shared x: real[n, d]) -> (real[d], real[n], real) {
            let mut p = q;
            let mut rest = cos(x @ q);
            let mut i = 0;
            while i < k {
                let eta = x @ p;
                rest = rest * inv_logit(eta);
                p = p - 0.001 * (rest @ x);
                if sum(eta) > 0.0 { p = 0.5 * p; }
                i += 1;
            }
            (p, walk(p, k, x), sum(rest))
        }";
    // Gathered lanes are whole groups of generated code, and parts of one.
    let k = Array::int([22], (0..22).map(|lane| [3, 0, 5, 1, 2, 3][lane % 6]).collect());
    for n in [512, 900] {
        let inputs = Inputs::new().lane("q", reals([22, 2], 1)).lane("k", k.clone()).shared("x", reals([n, 2], 2));
        agree_with_groups(source, &inputs);
    }
}

/// Whole-array code of comprehensions: parts at a place for each row and sums into such places, sums along other axes,
/// extents of 1, a matrix for each row.
#[test]
fn comprehensions_over_rows_are_one_group() {
    let mixed = "
        fn density[n, m, d](a: real[m], q: real[d], s: real, shared x: real[n, d], shared g: int[n], shared y: real[n]) -> real {
            sum(normal_lpdf(y[i], a[g[i]] + dot(x[i], q), exp(s)) for i in 0..n) - 0.5 * dot(a, a)
        }
        pub fn main[n, m, d](a: real[m], q: real[d], s: real, shared x: real[n, d], shared g: int[n], shared y: real[n]) -> (real, real[m], real[d], real) {
            let (value, (by_a, by_q, by_s)) = value_and_grad(density, wrt = (a, q, s))(a, q, s, x, g, y);
            (value, by_a, by_q, by_s)
        }";
    let classes = "
        fn density[n, d, c](w: real[c, d], shared x: real[n, d], shared y: int[n]) -> real {
            sum({
                let scores = [dot(w[k], x[i]) for k in 0..c];
                let top = max(scores);
                scores[y[i]] - top - log(sum(exp(scores[k] - top) for k in 0..c))
            } for i in 0..n)
        }
        pub fn main[n, d, c](w: real[c, d], shared x: real[n, d], shared y: int[n]) -> (real, real[c, d]) {
            value_and_grad(density)(w, x, y)
        }";
    let layers = "
        fn loss[n, d, h](w: real[h, d], v: real[h], x: real[n, d], shared y: real[n]) -> real {
            sum({ let z = [tanh(dot(w[k], x[i])) for k in 0..h]; let r = y[i] - dot(v, z); r * r } for i in 0..n)
        }
        pub fn main[n, d, h](w: real[h, d], v: real[h], x: real[n, d], shared y: real[n]) -> (real, real[h, d], real[h], real[n, d]) {
            let (value, (by_w, by_v, by_x)) = value_and_grad(loss, wrt = (w, v, x))(w, v, x, y);
            (value, by_w, by_v, by_x)
        }";
    let columns = "
        pub fn main[n, d](q: real[d], shared x: real[n, d], k: int) -> (real[d], real[d], int, int) {
            let rows = [[exp(q[j] * x[i, j]) / (1 + i % 7) for j in 0..d] for i in 0..n];
            let sums = [sum(rows[i, j] for i in 0..n) for j in 0..d];
            let most = [max(rows[i, j] * x[i, 0] for i in 0..n) for j in 0..d];
            (sums, most, sum(i * k for i in 0..n), max(i * k % 101 for i in 0..n))
        }";
    for n in [513, 700] {
        let (x, y) = (reals([n, 3], 2), reals([n], 3));
        let places = Array::int([n], (0..n as i64).map(|i| i * i % 4).collect());
        let inputs = Inputs::new().lane("a", reals([5, 4], 4)).lane("q", reals([5, 3], 5)).lane("s", reals([5], 6));
        agree_with_groups(mixed, &inputs.shared("x", x.clone()).shared("g", places.clone()).shared("y", y.clone()));
        let inputs = Inputs::new().lane("w", reals([5, 4, 3], 7)).shared("x", x.clone()).shared("y", places);
        agree_with_groups(classes, &inputs);
        let inputs = Inputs::new().lane("w", reals([5, 4, 3], 7)).lane("v", reals([5, 4], 8));
        agree_with_groups(layers, &inputs.lane("x", reals([5, n, 3], 9)).shared("y", y));
        let k = Array::int([5], vec![1, -3, 0, i64::MAX / 600, i64::MAX / 100_000]);
        agree_with_groups(columns, &Inputs::new().lane("q", reals([5, 3], 5)).lane("k", k).shared("x", x));
    }
}

/// A place out of range in one lane, in a row of the last tile.
#[test]
fn a_place_out_of_range_traps_in_its_lane() {
    let source = "
        pub fn main[n, m](a: real[m], at: int[n], shared y: real[n]) -> (real, real[m]) {
            let f = |a: real[m]| sum(exp(y[i] * a[at[i]]) for i in 0..n);
            value_and_grad(f)(a)
        }";
    let (lanes, n) = (4, 1000);
    let mut at: Vec<i64> = (0..lanes * n).map(|i| (i % 5) as i64).collect();
    at[2 * n - 1] = 5;
    at[2 * n + 3] = -1;
    let inputs = Inputs::new().lane("a", reals([lanes, 5], 1)).lane("at", Array::int([lanes, n], at));
    agree_with_groups(source, &inputs.shared("y", reals([n], 2)));
}

/// The same where it is out of range in all lanes, in the last row, or none is.
#[test]
fn a_place_that_lanes_share_is_looked_at_before_a_function_runs() {
    let source = "
        pub fn main[n, m](a: real[m], shared at: int[n], shared y: real[n]) -> (real, real[m]) {
            let f = |a: real[m]| sum({ let e = y[i] - 0.5 * a[at[i]]; e * e - 1.0 } for i in 0..n);
            value_and_grad(f)(a)
        }";
    let n = 1000;
    for last in [4, 5, -1, i64::MIN] {
        let mut at: Vec<i64> = (0..n as i64).map(|i| i % 5).collect();
        at[n - 1] = last;
        let inputs = Inputs::new().lane("a", reals([6, 5], 1)).shared("at", Array::int([n], at));
        agree_with_groups(source, &inputs.shared("y", reals([n], 2)));
    }
}

/// [`agree`], for whatever number of groups above 0.
fn agree_with_groups(source: &str, inputs: &Inputs) {
    let program = Program::compile(source).unwrap_or_else(|e| panic!("{e}"));
    let plan = plan(&program.function("main").expect("it is there"), inputs);
    let count = groups(&plan).len();
    assert!(count > 0, "{plan}");
    agree(source, inputs, count);
}

/// What the slots of a plan take in a shard of this width: what an engine allocates for it.
fn allocated(plan: &Plan, width: usize) -> usize {
    let tiles = plan.body.tile_rows(width) / autobatch::plan::TILE_BLOCK;
    let slots = plan.body.slots.values().map(|s| {
        let elements = if s.tile { s.elements * tiles } else { s.elements };
        8 * elements * if s.uniform { 1 } else { width }
    });
    slots.sum()
}

/// The changed copy could stand where `a` is stored, but would have to make room for that.
#[test]
fn a_changed_copy_leaves_tiles_alone() {
    let source = "
pub fn main(x: real[2000], n: int) -> real {
    let mut a = x;
    let mut b = x * 0.5;
    for i in 0..n {
        let mut c = a;
        c[i % 6] = x[0] + real(i);
        a = sin(b * 2.0 - c) * exp(b) + cos(b);
        b = c;
    }
    sum(a) + 3.0 * sum(b)
}";
    let program = Program::compile(source).expect("the program is right");
    let function = program.function("main").expect("it is there");
    let inputs = Inputs::new().lane("x", reals([2, 2000], 1)).lane("n", Array::int([2], vec![2, 3]));
    let plan = plan(&function, &inputs);
    assert!(groups(&plan).iter().any(|group| group.steps.len() >= 7), "{plan}");
}

#[test]
fn memory_for_tiles_only() {
    let program = Program::compile(LOGISTIC).expect("the program is right");
    let function = program.function("main").expect("it is there");
    let types = vec![
        Type::new(autobatch::types::DType::Real, [100]),
        Type::new(autobatch::types::DType::Real, [10_000, 100]),
        Type::new(autobatch::types::DType::Real, [10_000]),
    ];
    let mut without = Passes::default();
    let tiled = function.compile(types.clone(), &without).expect("it compiles");
    without.switch_off("tile-rows");
    let whole = function.compile(types, &without).expect("it compiles");
    // Two arrays of 10,000 rows; with tiles, of some thousand values in all lanes together.
    assert!(allocated(&whole.plan, 256) > 2 * 256 * 10_000 * 8);
    for width in [1, 10, 64, 256] {
        let bytes = allocated(&tiled.plan, width);
        assert!(bytes < 4 << 20, "{bytes} bytes for {width} lanes\n{}", tiled.plan);
    }
    let estimate = |plan, threads| {
        let settings = Settings::default().threads(threads);
        let estimate = autobatch::plan::estimate(plan, 256, &settings);
        estimate.running_lanes * estimate.state_bytes_per_lane
    };
    assert!(estimate(&tiled.plan, 4) < 8 << 20);
    assert!(estimate(&tiled.plan, 4) > 256 * 2 * 256 * 8 / 2);
    // No result of the group is kept, and the matrix itself stands for its transpose.
    let group = groups(&tiled.plan)[0];
    assert!(group.steps.iter().all(|s| s.result != TileResult::Rows));
    assert!(tiled.plan.to_string().contains("[rows]'"), "{}", tiled.plan);
    assert_eq!(
        tiled.plan.globals.constants.values().filter(|c| matches!(c, autobatch::plan::Constant::Shared(_))).count(),
        3
    );
}

#[test]
fn a_group_stands_together_in_the_plan() {
    let (plan, calls) = machine::plans("tiles.cfg");
    insta::assert_snapshot!("a_group", format!("{plan:#}"));
    assert!(calls.to_string().contains("700 rows in tiles of"), "{calls}");
}

#[test]
fn a_group_of_the_text_form_gives_the_bits_of_the_reference() {
    let program = autobatch::cfg::read(&machine::text("tiles.cfg")).expect("it reads");
    let given = [("x".to_owned(), reals([700, 3], 1)), ("y".to_owned(), reals([700], 2))];
    let shared = autobatch::interp::shared_values(&program.shared, &given.into_iter().collect(), Precision::F64);
    let inputs = autobatch::run::RunInputs::new(
        (0..5).collect(),
        vec![reals([5, 3], 3), Array::real([5], vec![0.1, 200.0, -3.0, 1.0, 0.0])],
        shared.expect("shared values"),
    );
    let (outcome, _) = machine::agree("tiles.cfg", &inputs, |s| s);
    assert_eq!(outcome.traps.len(), 1, "the second lane fails the assertion");
}
