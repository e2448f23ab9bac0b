//! File tests of the CFG program: `tests/filetests/cfg/*.cfg`.
//!
//! Every file whose text can be read must come back the same from its printed form. Comments say what else is expected:
//!
//! - `; error: text` at the end of a line: that line is rejected, by the reader or the verifier, with this text.
//! - `; run: --input n=[5]` with `; expect:`, `; trap:` and `; print:` lines: what lanes do (see [`crate::tools::cases`]).
//! - `; pass: inline, simplify`: the text that these passes give is the file's snapshot.
//! - `; explain`: the snapshot has the variance of every variable, and why.
//!
//! A run must give the same after each of the passes, and after all of them on every engine.

use std::path::{Path, PathBuf};

use autobatch::analysis::variance;
use autobatch::backend::cpu::MACHINE;
use autobatch::cfg::{self, Program};
use autobatch::pipeline::{self, Compiled, Passes};
use autobatch::program::Engine;
use autobatch::transform::cfg::{BATCH_PASSES, CFG_PASSES, LANE_PASSES};

use crate::tools::cases::{self, Case, cases};
use crate::tools::effort;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/cfg");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of the file tests")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "cfg"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// The directives of a file: the comments that start with one of the words.
fn directives<'t>(text: &'t str, word: &str) -> Vec<(usize, &'t str)> {
    let marker = format!("; {word}:");
    text.lines()
        .enumerate()
        .filter_map(|(i, line)| line.split_once(&marker).map(|(_, rest)| (i + 1, rest.trim())))
        .collect()
}

/// Errors of the reader or the verifier with their lines.
fn errors_of(text: &str) -> Result<Program, Vec<(usize, String)>> {
    match cfg::read_with_lines(text) {
        Err(e) => Err(vec![(e.line as usize, e.message)]),
        Ok((program, lines)) => {
            let errors = cfg::verify(&program);
            if errors.is_empty() {
                return Ok(program);
            }
            let at_line = |e: cfg::VerifyError| (lines.line(e.place) as usize, e.message);
            Err(errors.into_iter().map(at_line).collect())
        }
    }
}

fn check_errors(text: &str) -> Option<Program> {
    let mut expected = directives(text, "error");
    match errors_of(text) {
        Ok(program) => {
            assert!(expected.is_empty(), "expected {expected:?}, found no error");
            Some(program)
        }
        Err(found) => {
            for (line, message) in &found {
                let at = expected.iter().position(|(l, wanted)| l == line && message.contains(wanted));
                let Some(at) = at else {
                    panic!("unexpected error at line {line}: {message}");
                };
                expected.remove(at);
            }
            assert!(expected.is_empty(), "missing {expected:?}, found {found:?}");
            None
        }
    }
}

/// Every run gives what is wanted: the program as it stands, after each of the passes, and after all of them on every
/// engine.
fn check_runs(text: &str, program: &Program) {
    let all = cases(text).unwrap_or_else(|wrong| panic!("{wrong}"));
    if all.is_empty() {
        return;
    }
    let without = Passes::none();
    check_all(&all, Engine::Scalar, true, "without passes", || pipeline::from_cfg(program.clone(), &without, MACHINE));
    if all.iter().any(|case| case.run().options.get_settings().get_check_nan()) {
        return;
    }
    for pass in CFG_PASSES.iter().chain(LANE_PASSES).chain(BATCH_PASSES) {
        let passed = run_pass(pass.name, program.clone());
        check_all(&all, Engine::Scalar, false, pass.name, || pipeline::from_cfg(passed.clone(), &without, MACHINE));
    }
    for engine in [Engine::Scalar, Engine::Local, Engine::Pc] {
        let compile = || pipeline::from_cfg(program.clone(), &Passes::default(), MACHINE);
        check_all(&all, engine, false, "with all passes", compile);
    }
}

fn check_all(all: &[Case], engine: Engine, depths: bool, what: &str, compile: impl Fn() -> Compiled) {
    let compiled = compile();
    for case in all {
        let options = case.run().options.clone().engine(engine);
        let bound = case.run().bind_ir(compiled.clone(), &options);
        let bound = bound.unwrap_or_else(|error| panic!("line {}: {error}", case.line));
        if let Err(why) = cases::check(case, &bound, &options, depths) {
            panic!("line {}, {engine:?}, {what}: {why}\n{}", case.line, compiled.units);
        }
    }
}

/// Runs one pass and verifies what it makes.
fn run_pass(name: &str, program: Program) -> Program {
    let pass =
        CFG_PASSES.iter().chain(LANE_PASSES).chain(BATCH_PASSES).find(|p| p.name == name).expect("the name of a pass");
    let program = (pass.run)(program);
    assert_eq!(cfg::verify(&program), [], "{name}\n{program}");
    program
}

fn check_passes(text: &str, path: &Path, mut program: Program) {
    let names = directives(text, "pass").pop().map(|(_, names)| names);
    let explained = text.lines().any(|line| line == "; explain");
    if names.is_none() && !explained {
        return;
    }
    for name in names.iter().flat_map(|names| names.split(", ")) {
        program = run_pass(name, program);
    }
    let text = if explained { variance::print_explained(&program) } else { program.to_string() };
    let name = path.file_stem().expect("a file").to_string_lossy();
    insta::with_settings!({
        snapshot_path => "../../filetests/cfg/snapshots",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name.into_owned(), text);
    });
}

#[test]
fn file_tests() {
    for path in files() {
        let text = std::fs::read_to_string(&path).expect("a text");
        println!("{}", path.display());
        let Some(program) = check_errors(&text) else {
            continue;
        };
        let printed = program.to_string();
        let again = cfg::read(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
        assert_eq!(again.to_string(), printed);
        check_runs(&text, &program);
        check_passes(&text, &path, program);
    }
}

#[test]
fn broken_texts_give_errors_not_panics() {
    let texts: Vec<String> = files().iter().map(|path| std::fs::read_to_string(path).expect("a text")).collect();
    arbtest::arbtest(|u| {
        let mut text = u.choose(&texts)?.clone().into_bytes();
        for _ in 0..u.int_in_range(1..=8)? {
            let at = u.choose_index(text.len())?;
            let to = (at + u.int_in_range(0..=20)?).min(text.len());
            match u.int_in_range(0..=3)? {
                0 => text[at] = *u.choose(b"(){}[]:,=@$`\"\\-; \nabcfunv0159.x")?,
                1 => drop(text.drain(at..to)),
                2 => {
                    let from = u.choose_index(text.len())?;
                    let part = text[from..(from + 30).min(text.len())].to_vec();
                    text.splice(at..to, part);
                }
                _ => text[at] = u.arbitrary()?,
            }
            if text.is_empty() {
                return Ok(());
            }
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        if let Ok(program) = errors_of(&text) {
            let again = cfg::read(&program.to_string()).expect("what is printed can be read");
            assert_eq!(again.to_string(), program.to_string());
        }
        Ok(())
    })
    .budget_ms(effort::part(375, 1500));
    arbtest::arbtest(|u| {
        let bytes: Vec<u8> = u.arbitrary()?;
        let _ = cfg::read(&String::from_utf8_lossy(&bytes));
        Ok(())
    })
    .budget_ms(effort::part(75, 300));
}
