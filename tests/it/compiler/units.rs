//! Units: what the verifier and the reader say of texts, what stack programs become, and texts that no stack program
//! becomes. All file tests, and the random programs, run on the toy executor of units besides.
//!
//! A `.unit` file in `tests/filetests/unit` has `; error: …` on each guilty line (in front of the program where no
//! line is to blame), or is valid and has cases, which run on the toy and on `pc`.

use std::path::{Path, PathBuf};

use autobatch::backend::cpu::MACHINE;
use autobatch::lower::to_unit::{Stores, cfg_to_units, stack_to_units};
use autobatch::pipeline::{self, Passes};
use autobatch::program::Engine;
use autobatch::run::Execution;
use autobatch::{cfg, unit};

use crate::tools::cases::{self, cases};
use crate::tools::observed::{Configuration, difference, observe_toy};

fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests").join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == extension))
        .collect();
    paths.sort();
    let text =
        |p: &PathBuf| (p.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(p).unwrap());
    paths.iter().map(text).collect()
}

#[test]
fn unit_files_have_the_errors_they_say() {
    for (name, text) in files("unit", "unit") {
        let head = text.lines().position(|l| l.starts_with("program")).expect("it is a program");
        let place = |line: usize| if line < head { 0 } else { line + 1 };
        let lines = text.lines().enumerate();
        let expected: Vec<(usize, String)> =
            lines.filter_map(|(i, l)| Some((place(i), l.split_once("; error: ")?.1.to_owned()))).collect();
        let found: Vec<(usize, String)> = match unit::read(&text) {
            Err(error) => vec![(error.line as usize, error.message)],
            Ok(program) => unit::verify(&program).into_iter().map(|e| (line_of(&text, &e), e.message)).collect(),
        };
        assert_eq!(found, expected, "{name}");
    }
}

/// The line of an operation, counted from 1; 0 for what is wrong with the whole program.
fn line_of(text: &str, error: &unit::UnitError) -> usize {
    let Some(block) = error.block else { return 0 };
    let label = text.lines().position(|l| l.starts_with(&format!("{block}:"))).expect("the block stands there");
    label + 2 + error.op.expect("operations are to blame")
}

#[test]
fn unit_files_compute_what_they_say() {
    let mut ran = 0;
    for (name, text) in files("unit", "unit") {
        let cases = cases(&text).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        if cases.is_empty() {
            continue;
        }
        let program = unit::read(&text).unwrap();
        assert_eq!(program.to_string(), unit::read(&program.to_string()).unwrap().to_string(), "{name}");
        let compiled = pipeline::from_units(program, &Passes::default(), MACHINE);
        for (case, execution) in cases.iter().flat_map(|case| [Execution::Mask, Execution::Gather].map(|e| (case, e))) {
            let options = case.run().options.clone().engine(Engine::Pc).execution(execution).threads(1);
            let bound = case.run().bind_ir(compiled.clone(), &options);
            let bound = bound.unwrap_or_else(|error| panic!("{name}: {error}"));
            if let Err(why) = cases::check(case, &bound, &options, false) {
                panic!("{name} on pc, {execution:?}: {why}\n{}", compiled.plan);
            }
            let machine = Configuration::observe_bound(&bound, &options).unwrap();
            assert_eq!(difference(&machine, &observe_toy(&bound, &options)), None, "{name} on the toy");
            ran += 1;
        }
    }
    assert!(ran > 0, "no file has a run");
}

/// Every stack program of the tests has units that read back, and so has every CFG program.
#[test]
fn printed_units_read_back() {
    let none = Passes::none();
    for (name, text) in files("stack", "cfg") {
        for passes in [&Passes::default(), &none] {
            let program = cfg::read(&text).unwrap();
            let calls = cfg_to_units(&program);
            assert_eq!(unit::verify_calls(&calls), [], "{name}\n{calls}");
            assert_eq!(unit::read_calls(&calls.to_string()).unwrap().to_string(), calls.to_string(), "{name}");
            let units = stack_to_units(&pipeline::to_stack(&program, passes), Stores::Live);
            assert_eq!(unit::verify(&units), [], "{name}\n{units}");
            assert_eq!(unit::read(&units.to_string()).unwrap().to_string(), units.to_string(), "{name}");
        }
    }
}

/// What becomes of a recursion, and of attempts with stacks and regions.
#[test]
fn units_are_what_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/unit");
    for (name, text) in files("stack", "cfg") {
        if !["fib", "attempts"].contains(&name.as_str()) {
            continue;
        }
        let program = cfg::read(&text).unwrap();
        let units = stack_to_units(&pipeline::to_stack(&program, &Passes::default()), Stores::Live);
        insta::with_settings!({
            snapshot_path => &folder, prepend_module_to_snapshot => false, omit_expression => true,
        }, {
            insta::assert_snapshot!(name.as_str(), units);
        });
    }
}
