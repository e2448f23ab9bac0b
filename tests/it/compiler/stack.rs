//! The stack program: lowering and passes on small CFG programs, and what the verifier and the reader say of texts.
//!
//! A `.cfg` file is lowered; its comments say what must hold afterwards: `; stack: fib.n` (and `register`, `temporary`,
//! `uniform`) lists the variables of a class (`only` in front: all of them), `; count: pushjump 0` how often an
//! instruction stands in the program, and `; run:` and `; expect:` lines what lanes compute (see
//! [`crate::tools::cases`]), with all passes and with each one left out. The optimised program is a snapshot beside it.
//! A `.stack` file has `; error: …` on each guilty line, or is valid.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use autobatch::backend::cpu::MACHINE;
use autobatch::pipeline::{self, PAPER, Passes};
use autobatch::program::Engine;
use autobatch::run::{Execution, Schedule};
use autobatch::stack::{self, StorageClass};
use autobatch::transform::stack::STACK_PASSES;
use autobatch::{cfg, stack::Program};

use crate::tools::cases::{self, cases};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/stack")
}

/// Name and text of the files with this extension, sorted.
fn files(extension: &str) -> Vec<(String, String)> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == extension))
        .collect();
    paths.sort();
    (paths.iter())
        .map(|p| {
            let name = p.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(p).unwrap())
        })
        .collect()
}

/// The values of a directive such as `; run: …`.
fn directives<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    text.lines().filter_map(|l| l.strip_prefix("; ")?.strip_prefix(word)?.strip_prefix(": ")).collect()
}

fn lowered(name: &str, text: &str, passes: &Passes) -> Program {
    let program = cfg::read(text).unwrap_or_else(|e| panic!("{name}.cfg: {e}"));
    assert_eq!(cfg::verify(&program), [], "{name}");
    pipeline::to_stack(&program, passes)
}

/// All passes but these.
fn without(names: &[&str]) -> Passes {
    let mut passes = Passes::default();
    names.iter().for_each(|name| assert!(passes.switch_off(name), "{name}"));
    passes
}

/// Nothing switched off, each pass, the optimisations of the paper, all passes.
fn choices() -> Vec<Passes> {
    let names: BTreeSet<&str> = STACK_PASSES.iter().map(|p| p.name).chain(PAPER.iter().copied()).collect();
    let alone = names.into_iter().map(|name| without(&[name]));
    let all = [without(&["save-live", "temporaries"]), without(PAPER), Passes::none()];
    std::iter::once(Passes::default()).chain(alone).chain(all).collect()
}

#[test]
fn cfg_files_lower_as_they_say() {
    for (name, text) in files("cfg") {
        let program = lowered(&name, &text, &Passes::default());
        check_classes(&name, &text, &program);
        check_counts(&name, &text, &program);
        insta::with_settings!({
            snapshot_path => folder(), prepend_module_to_snapshot => false, omit_expression => true,
        }, {
            insta::assert_snapshot!(name.as_str(), stack::print_explained(&program));
        });
    }
}

fn check_classes(name: &str, text: &str, program: &Program) {
    for (word, class) in
        [("temporary", StorageClass::Temporary), ("register", StorageClass::Register), ("stack", StorageClass::Stack)]
    {
        for expected in directives(text, word) {
            let expected: BTreeSet<&str> = expected.split_whitespace().collect();
            let found: BTreeSet<&str> =
                (program.vars.values()).filter(|v| v.class == class).map(|v| v.name.as_str()).collect();
            if expected.contains("only") {
                let mut expected = expected.clone();
                expected.remove("only");
                assert_eq!(found, expected, "{name}: {class}\n{program}");
            } else {
                assert!(found.is_superset(&expected), "{name}: {class} are {found:?}\n{program}");
            }
        }
    }
}

fn check_counts(name: &str, text: &str, program: &Program) {
    let printed = program.to_string();
    for expected in directives(text, "count") {
        let (word, count) = expected.rsplit_once(' ').unwrap();
        let found = printed.lines().filter(|l| l.trim_start().starts_with(word)).count();
        assert_eq!(found.to_string(), count, "{name}: {word}\n{program}");
    }
}

/// The names of the variables of a class; uniform ones, which are stored once, left out.
fn of_class(program: &Program, class: StorageClass) -> BTreeSet<&str> {
    let vars = program.vars.values().filter(|v| v.class == class && !v.uniform);
    vars.map(|v| v.name.as_str()).collect()
}

#[test]
fn without_storage_everything_that_crosses_a_block_is_on_a_stack() {
    for (name, text) in files("cfg") {
        let program = lowered(&name, &text, &without(&["storage"]));
        assert!(of_class(&program, StorageClass::Register).is_empty(), "{name}\n{program}");
        let least = lowered(&name, &text, &Passes::default());
        let temporaries = |program| of_class(program, StorageClass::Temporary).len();
        assert_eq!(temporaries(&program), temporaries(&least), "{name}: what does not cross has no storage\n{program}");
    }
}

#[test]
fn without_temporaries_every_variable_has_storage() {
    for (name, text) in files("cfg") {
        let program = lowered(&name, &text, &without(&["temporaries"]));
        assert!(of_class(&program, StorageClass::Temporary).is_empty(), "{name}\n{program}");
        let least = lowered(&name, &text, &Passes::default());
        assert_eq!(of_class(&program, StorageClass::Stack), of_class(&least, StorageClass::Stack), "{name}");
        let program = lowered(&name, &text, &without(&["temporaries", "storage"]));
        assert!(program.vars.values().all(|v| v.class == StorageClass::Stack || v.uniform), "{name}\n{program}");
    }
}

/// `fib` wants its argument after the first call and the first result after the second. Told to save everything, each
/// of its calls pushes what ever crosses a block, or all that there is.
#[test]
fn calls_that_do_not_ask_what_is_live_save_everything() {
    let fib = std::fs::read_to_string(folder().join("fib.cfg")).unwrap();
    let pushed = |off: &[&str]| -> Vec<String> {
        let program = lowered("fib", &fib, &without(off));
        let calls = program.blocks.values().filter(|b| matches!(b.term, stack::Terminator::PushJump { .. }));
        let names = |block: &stack::Block| {
            let moved = block.insts.iter().filter_map(|i| i.kind.moved()).filter(|(_, step)| *step > 0);
            moved.map(|(v, _)| program.vars[v].name.as_str()).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
        };
        calls.map(|block| names(block).join(" ")).collect()
    };
    assert_eq!(pushed(&["partial-inline"]), ["fib.n", "fib.l"]);
    let off = ["partial-inline", "save-live", "pop-push-fusion", "coalesce"];
    assert_eq!(pushed(&off), ["fib.l fib.n fib.r", "fib.l fib.n fib.r"]);
    let off = [&off[..], &["temporaries"]].concat();
    assert_eq!(pushed(&off), ["fib.c fib.l fib.n fib.r fib.t", "fib.c fib.l fib.n fib.r fib.t"]);
}

#[test]
fn programs_compute_the_same_with_and_without_passes() {
    let settings = [(Schedule::Earliest, Execution::Mask), (Schedule::default(), Execution::Gather)];
    for (name, text) in files("cfg") {
        let cases = cases(&text).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        assert!(!cases.is_empty(), "{name} has no run");
        for off in choices() {
            let compiled = pipeline::from_stack(lowered(&name, &text, &off), &off, MACHINE);
            for (case, (schedule, execution)) in cases.iter().flat_map(|case| settings.map(|s| (case, s))) {
                let options =
                    case.run().options.clone().engine(Engine::Pc).schedule(schedule).execution(execution).threads(1);
                let bound = case.run().bind_ir(compiled.clone(), &options);
                let bound = bound.unwrap_or_else(|error| panic!("{name}: {error}"));
                if let Err(why) = cases::check(case, &bound, &options, false) {
                    panic!("{name} without {off:?}, {schedule:?} {execution:?}: {why}\n{}", compiled.units);
                }
            }
        }
    }
}

#[test]
fn printed_programs_read_back() {
    for (name, text) in files("cfg") {
        for off in choices() {
            let mut program = lowered(&name, &text, &off);
            for var in program.vars.values_mut() {
                var.why.clear();
            }
            let explained = stack::print_explained(&program);
            assert_eq!(stack::read(&explained).as_ref(), Ok(&program), "{name}");
        }
    }
}

#[test]
fn passes_keep_valid_stack_files_valid() {
    for (name, text) in files("stack").into_iter().filter(|(_, text)| !text.contains("; error:")) {
        for pass in STACK_PASSES {
            let program = (pass.run)(stack::read(&text).unwrap_or_else(|e| panic!("{name}: {e}")));
            assert_eq!(stack::verify(&program), [], "{name} after {}\n{program}", pass.name);
        }
    }
}

#[test]
fn stack_files_have_the_errors_they_say() {
    for (name, text) in files("stack") {
        let expected: Vec<(u32, &str)> = (text.lines().enumerate())
            .filter_map(|(i, l)| Some((i as u32 + 1, l.split_once("; error: ")?.1)))
            .collect();
        let found: Vec<(u32, String)> = match stack::read_with_lines(&text) {
            Err(error) => vec![(error.line, error.message)],
            Ok((program, lines)) => {
                (stack::verify(&program).into_iter()).map(|e| (lines.line(e.place), e.message)).collect()
            }
        };
        let found: Vec<(u32, &str)> = found.iter().map(|(l, m)| (*l, m.as_str())).collect();
        assert_eq!(found, expected, "{name}");
    }
}
