//! The examples of `grammar/REFERENCE.md` are tests, and `grammar/errors.md` lists every code.
//!
//! A block ```` ```ab ```` must check without a finding; where it has `//
//! run:` lines (see [`crate::tools::cases`]) it runs on every engine. A block ```` ```ab,fail E0304 ```` must give that
//! code.

use std::path::Path;

use autobatch::check::StdLibrary;
use autobatch::pipeline::Passes;
use autobatch::program::{Error, Program};
use autobatch::types::Type;

use crate::tools::cases;

/// A fenced block of a page.
struct Block {
    /// Line of the page at which its text starts, counted from 1.
    line: usize,
    /// What stands after the fence.
    info: String,
    text: String,
}

fn page(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (i, line) in page.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(info) => {
                blocks.push(Block { line: i + 2, info: info.trim().to_owned(), text: String::new() });
                open = true;
            }
            None if open => {
                let block = blocks.last_mut().expect("a block is open");
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    assert!(!open, "the last fence is not closed");
    blocks
}

/// Codes of the findings, warnings included.
fn codes(found: &Result<Program, Error>) -> Vec<String> {
    let diagnostics = match found {
        Ok(program) => program.warnings(),
        Err(error) => error.diagnostics(),
    };
    diagnostics.iter().map(|d| format!("{}: {}", d.code, d.message)).collect()
}

fn examples(path: &str) {
    let mut failures = Vec::new();
    let mut checked = 0;
    for block in blocks(&page(path)) {
        let Some(kind) = block.info.strip_prefix("ab").filter(|k| k.is_empty() || k.starts_with(',')) else {
            continue;
        };
        checked += 1;
        let program = Program::compile_named(&format!("{path}:{}", block.line), &block.text);
        let found = codes(&program);
        if let Some(code) = kind.strip_prefix(",fail ") {
            if !found.iter().any(|f| f.starts_with(code)) {
                failures.push(format!("line {}: expected {code}, found {found:?}", block.line));
            }
            continue;
        }
        let (true, true, Ok(program)) = (kind.is_empty(), found.is_empty(), program) else {
            failures.push(format!("line {}: {} has findings: {found:?}", block.line, block.info));
            continue;
        };
        match cases::cases(&block.text) {
            Ok(cases) => failures.extend(cases.iter().filter_map(|case| {
                let context = format!("{path} line {}", block.line + case.line - 1);
                let error = cases::run(&program, case, &context).err()?;
                Some(format!("{context}: {error}"))
            })),
            Err(error) => failures.push(format!("block at line {}: {error}", block.line)),
        }
    }
    assert!(failures.is_empty(), "{path}\n{}", failures.join("\n"));
    assert!(checked > 0, "{path} has no examples");
}

#[test]
fn the_examples_of_the_reference_hold() {
    examples("grammar/REFERENCE.md");
}

#[test]
fn the_examples_of_the_readme_hold() {
    examples("README.md");
}

#[test]
fn the_index_lists_every_code() {
    let index = page("grammar/errors.md");
    let mut wanted = Vec::new();
    for file in ["syntax", "check", "models", "lower", "stan_syntax", "stan_check", "stan_translate"] {
        for heading in page(&format!("grammar/errors.d/{file}.md")).lines().filter_map(|l| l.strip_prefix("## ")) {
            let (code, title) = heading.split_once(": ").expect("a heading is `CODE: title`");
            let slug: String = heading.to_lowercase().chars().filter_map(slug_char).collect();
            wanted.push(format!("| [{code}](errors.d/{file}.md#{slug}) | {title} |"));
        }
    }
    wanted.sort();
    let found: Vec<&str> = index.lines().filter(|l| l.starts_with("| [")).collect();
    let missing: Vec<&String> = wanted.iter().filter(|w| !found.contains(&w.as_str())).collect();
    assert!(missing.is_empty(), "grammar/errors.md lacks\n{}", wanted.join("\n"));
    assert_eq!(found.len(), wanted.len(), "grammar/errors.md lists codes that have no section");
}

/// A character of a heading in the anchor that it gets.
fn slug_char(c: char) -> Option<char> {
    match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    }
}

/// The stack program that `src/stack/README.md` shows is the one that the compiler makes of the first example without
/// the pass that it names.
#[test]
fn the_guide_to_the_stack_program_shows_the_real_one() {
    let first = blocks(&page("grammar/REFERENCE.md")).into_iter().find(|b| b.info == "ab").expect("an example");
    let program = Program::compile(&first.text).expect("it checks");
    let function = program.function("fib").expect("it is there");
    let mut passes = Passes::default();
    assert!(passes.switch_off("partial-inline"), "a pass");
    let compiled = function.compile(vec![Type::int()], &passes).expect("it compiles");
    let shown = blocks(&page("src/stack/README.md")).into_iter().find(|b| b.info == "stack").expect("the program");
    assert_eq!(
        without_places(&shown.text),
        without_places(&compiled.stack.as_ref().expect("it was lowered").to_string())
    );
}

/// So is the stack program of the derivative that `src/transform/derivative/README.md` shows.
#[test]
fn the_guide_to_derivatives_shows_the_real_one() {
    let page = blocks(&page("src/transform/derivative/README.md"));
    let source = page.iter().find(|b| b.info == "ab" && b.text.contains("grad(power)")).expect("the program");
    let program = Program::compile(&source.text).expect("it checks");
    let function = program.function("slope").expect("it is there");
    let compiled = function.compile(vec![Type::real(), Type::int()], &Passes::default()).expect("it compiles");
    let shown = page.iter().find(|b| b.info == "stack slope").expect("the stack program");
    assert_eq!(
        without_places(&shown.text),
        without_places(&compiled.stack.as_ref().expect("it was lowered").to_string())
    );
}

/// The lines of a text form without locations.
fn without_places(text: &str) -> Vec<String> {
    let lines = text.lines().map(|l| l.split(" @").next().unwrap_or(l).trim_end().to_owned());
    lines.filter(|l| !l.is_empty()).collect()
}

/// What the library in `src/std` exports stands in the reference. (The samplers ship too: `nuts/README.md` is about them.)
#[test]
fn the_reference_names_the_whole_library() {
    let reference = page("grammar/REFERENCE.md");
    let words: std::collections::BTreeSet<&str> =
        reference.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let prelude = StdLibrary::text("prelude.ab").expect("the prelude");
    let used = prelude.lines().filter_map(|l| l.strip_prefix("use \"")?.strip_suffix("\";"));
    // `jacobian(f)` and `hessian(f)` stand for what is in here.
    let used = used.filter(|path| *path != "derivatives.ab");
    for path in used.chain(["prelude.ab"]) {
        let text = StdLibrary::text(path).expect("a module of the library");
        let names = text.lines().filter_map(|l| l.strip_prefix("pub fn "));
        let names = names.map(|l| l.split(['(', '[']).next().unwrap_or(l));
        let missing: Vec<&str> = names.filter(|name| !words.contains(name)).collect();
        assert!(missing.is_empty(), "grammar/REFERENCE.md does not name {missing:?} of {path}");
    }
}
