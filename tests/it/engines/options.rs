//! Options and inputs that make no sense are refused with an error that names them; nothing panics, and no run starts.

use autobatch::types::ArrayData;
use autobatch::{Array, Engine, Error, ErrorKind, Inputs, NoSink, Options, Program, Schedule};

const SOURCE: &str = "pub fn double(x: real) -> real { 2.0 * x }
pub fn sum_of[n](x: real[n]) -> real { sum(x) }";

fn run(entry: &str, inputs: &Inputs, options: &Options) -> Result<(), Error> {
    let program = Program::compile(SOURCE).expect("it is right");
    let found = program.function(entry)?.run(inputs, options);
    found.map(drop)
}

fn refused(found: Result<(), Error>, wanted: ErrorKind, why: &str) {
    let error = found.expect_err(why);
    assert!(error.kind() == wanted && error.to_string().contains(why), "{:?} {error}", error.kind());
}

#[test]
fn a_fraction_of_lanes_is_one() {
    let one = Inputs::new().lane("x", vec![1.0]);
    for theta in [f64::NAN, -0.5, 1.5, f64::INFINITY] {
        for engine in [Engine::Scalar, Engine::Local, Engine::Pc] {
            let options = Options::default().engine(engine).schedule(Schedule::CostAware { theta });
            let why = format!("waits for must be in 0..=1, not {theta}");
            refused(run("double", &one, &options), ErrorKind::Option, &why);
            // Also where the function was bound with others.
            let program = Program::compile(SOURCE).expect("it is right");
            let bound = program.function("double").and_then(|f| f.bind(&one, &Options::default()));
            let bound = bound.expect("it fits");
            refused(bound.run(&options, &NoSink).map(drop), ErrorKind::Option, &why);
        }
    }
}

#[test]
fn numbers_that_no_machine_has_are_taken_as_what_there_is() {
    let inputs = Inputs::new().lane("x", vec![1.0; 3]);
    for options in [
        Options::default().threads(usize::MAX),
        Options::default().shard_lanes(usize::MAX),
        Options::default().max_stack_depth(usize::MAX).max_tape_depth(usize::MAX).max_supersteps(u64::MAX),
        Options::default().first_lane(u64::MAX),
        Options::default().memory_limit(u64::MAX),
    ] {
        for engine in [Engine::Scalar, Engine::Local, Engine::Pc] {
            run("double", &inputs, &options.clone().engine(engine)).expect("it runs");
        }
    }
    let none = Options::default().memory_limit(0);
    refused(run("double", &inputs, &none), ErrorKind::Memory, "not even one lane fits");
    let many = Inputs::new().lanes(usize::MAX).shared("x", 1.0);
    refused(run("double", &many, &Options::default()), ErrorKind::Memory, "the largest batch that fits");
}

#[test]
fn there_must_be_a_pass_of_the_name() {
    let error = Options::default().without_pass("no-such").expect_err("there is none");
    assert!(error.kind() == ErrorKind::Option && error.to_string().contains("no compiler pass `no-such`: there is "));
    assert!(Options::default().with_pass("no-such").is_err());
    let options = Options::default().without_pass("inline").expect("there is one");
    assert!(!options.get_passes().is_on("inline"));
    assert!(options.with_pass("inline").expect("there is one").get_passes().is_on("inline"));
}

#[test]
fn an_array_has_as_many_elements_as_its_shape_says() {
    let wrong = Array { shape: [2, 3].into_iter().collect(), data: ArrayData::Real(vec![0.0; 5]) };
    let found = run("sum_of", &Inputs::new().lane("x", wrong.clone()), &Options::default());
    refused(found, ErrorKind::Input, "`x` has 5 elements, and its shape");
    let found = run("sum_of", &Inputs::new().lanes(1).shared("x", wrong), &Options::default());
    refused(found, ErrorKind::Input, "`x` has 5 elements, and its shape");
    let found = run("sum_of", &Inputs::new().lanes(1).dimension("n", -3), &Options::default());
    refused(found, ErrorKind::Input, "");
    refused(run("double", &Inputs::new().lane("x", 1.0), &Options::default()), ErrorKind::Input, "");
}
