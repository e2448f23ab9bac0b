//! The checker: every documented error is found, correct programs have none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use autobatch::base::{Diagnostic, SourceMap};
use autobatch::check::{FileLoader, StdLibrary, check_program};
use autobatch::hir;

fn check(name: &str, text: &str) -> (Option<hir::Program>, Vec<Diagnostic>, SourceMap) {
    let mut sources = SourceMap::default();
    let main = sources.add(name, text);
    let (program, diagnostics) = check_program(main, &mut sources, &mut FileLoader);
    (program, diagnostics, sources)
}

fn rendered(text: &str) -> String {
    let (_, diagnostics, sources) = check("main.ab", text);
    let shown = autobatch::report::render(&diagnostics, &sources, false);
    format!("{text}\n\n{shown}")
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the folder exists")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    files.sort();
    files
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("the file can be read")
}

/// Asserts that the program checks without findings.
fn assert_clean(name: &str, text: &str) {
    let (program, diagnostics, sources) = check(name, text);
    let shown = autobatch::report::render(&diagnostics, &sources, false);
    assert!(program.is_some() && diagnostics.is_empty(), "{name}\n{shown}");
}

#[test]
fn correct_programs_have_no_findings() {
    for path in files("tests/filetests/check", "ab") {
        assert_clean(&path.display().to_string(), &read(&path));
    }
}

#[test]
fn the_library_has_no_findings() {
    for path in StdLibrary::paths() {
        let text = StdLibrary::text(path).expect("a module that ships");
        assert_clean(&format!("std/{path}"), text);
    }
}

#[test]
fn samplers_and_models_have_no_findings() {
    for folder in ["nuts", "nuts/models"] {
        for path in files(folder, "ab") {
            assert_clean(&path.display().to_string(), &read(&path));
        }
    }
}

/// A section of the index of codes: the code, whether its program must be run, and the program. Those of Stan's programs
/// are left out: `tests/it/stan` tries them.
fn sections(text: &str) -> Vec<(String, bool, String)> {
    text.split("\n## ")
        .map(|section| section.strip_prefix("## ").unwrap_or(section))
        .filter(|section| section.starts_with('E') || section.starts_with('W'))
        .filter(|section| !section.contains("```stan\n"))
        .map(|section| {
            let code = section.split(':').next().expect("a first part").to_string();
            let runs = section.lines().any(|line| line.starts_with("run:"));
            let program = section
                .split_once("```ab\n")
                .and_then(|(_, rest)| rest.split_once("```"))
                .map(|(program, _)| program.to_string())
                .unwrap_or_else(|| panic!("{code} has a program"));
            (code, runs, program)
        })
        .collect()
}

#[test]
fn every_documented_program_has_its_error() {
    let mut codes = BTreeSet::new();
    let mut wrong = Vec::new();
    for path in files("grammar/errors.d", "md") {
        for (code, runs, program) in sections(&read(&path)) {
            assert!(codes.insert(code.clone()), "{code} has two sections");
            if runs {
                continue;
            }
            let (checked, diagnostics, _) = check("main.ab", &program);
            let found: Vec<&str> = diagnostics.iter().map(|d| d.code.0).collect();
            let compiles = code.starts_with('W');
            if !found.contains(&code.as_str()) || checked.is_some() != compiles {
                wrong.push((code, found.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(codes.len() >= 60, "{} codes", codes.len());
}

#[test]
fn every_code_of_the_checker_is_documented() {
    let index = |name: &str| read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("grammar/errors.d").join(name));
    let indices = ["check.md", "models.md"].map(index);
    let documented: BTreeSet<String> = indices.iter().flat_map(|text| sections(text)).map(|s| s.0).collect();
    let mut used = BTreeSet::new();
    for path in ["src/check", "src/check/derivative", "src/check/models"].into_iter().flat_map(|f| files(f, "rs")) {
        for word in read(&path).split('"') {
            let digits = word.get(1..).unwrap_or_default();
            let code = word.len() == 5 && digits.bytes().all(|b| b.is_ascii_digit());
            if code && (word.starts_with('E') || word.starts_with('W')) {
                used.insert(word.to_string());
            }
        }
    }
    assert_eq!(documented, used);
}

macro_rules! rendered {
    ($($name:ident: $program:literal;)*) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(rendered($program));
        })*
    };
}

rendered! {
    unknown_name_suggests: "pub fn main(sigma: real) -> real { 2.0 * sgima }";
    shapes_are_named: "pub fn main[n, m](x: real[n], y: real[m]) -> real { sum(x + y) }";
    dimensions_of_a_call: "fn weighted[n](x: real[n], w: real[n]) -> real { dot(x, w) }
pub fn main[k](x: real[k + 1], w: real[k]) -> real { weighted(x, w) }";
    shared_chain: "fn scaled[d](w: real[d], shared x: real[d]) -> real { dot(w, x) }
fn inner[d](w: real[d], shared x: real[d]) -> real {
    let m = 2.0 * w;
    let (a, b) = (m, x);
    scaled(b, a)
}
pub fn main[d](w: real[d], shared x: real[d]) -> real { inner(w, x) }";
    shared_from_a_call: "fn g(x: real) -> real { 2.0 * x }
fn scaled(shared x: real) -> real { x }
pub fn main(shared x: real) -> real { let y = g(x); scaled(y + 1.0) }";
    slice_length: "pub fn main[n](x: real[n], a: int, b: int) -> real { sum(x[a..b]) }";
    falls_through: "pub fn main(n: int) -> int {
    if n > 0 {
        return 1;
    }
}";
    several_at_once: "fn f(x: real) -> real { y }
fn g(x: int) -> bool { x + 1 }
pub fn main(x: real[3]) -> real { let mut z = f(x); g(1.5); }";
    escaping_closure: "struct Model { density: fn(real) -> real }
pub fn main(x: real) -> real { let f = |y| y * x; f(1.0) }";
    two_kinds_of_records: "pub fn main(x: real, n: int) {
    emit draw(x, n);
    emit draw(x, n: 1.5);
}";
    elementwise_branch: "@elementwise
fn relu(x: real) -> real { if x > 0.0 { x } else { 0.0 } }
pub fn main(x: real[3]) -> real { sum(relu(x)) }";
}

#[test]
fn hir_is_shown_with_types() {
    let (program, ..) = check(
        "main.ab",
        "struct P[d] { q: real[d], n: int }
pub fn main[d](mut p: P[d], shared s: real) -> real {
    p.q[0] += 1;
    let f = |x: real| x * s;
    for i in 0..d { if p.q[i] < 0.0 { break; } p.n = i; }
    f(sum(p.q[i] for i in 0..d)) + normal_lpdf(p.q, 0, 1)
}",
    );
    let shown = hir::dump::dump(&program.expect("a correct program"));
    // How many functions the library has is no matter of this.
    let number = shown.rsplit_once("// fn").expect("the instance").1.lines().next().expect("its number").to_owned();
    insta::assert_snapshot!(shown.replace(&format!("fn{number}"), "fnN"));
}

/// The usual slips of who comes from Stan.
#[test]
fn what_is_written_as_in_stan_is_said_in_words_of_this_language() {
    let help = |body: &str| {
        let (_, diagnostics, _) = check("main.ab", &format!("pub fn main(y: real, m: real) -> real {{ {body} }}"));
        diagnostics.iter().flat_map(|d| d.help.clone()).collect::<Vec<_>>().join("\n")
    };
    let cases = [
        ("fmod(y, m)", "`x % y`"),
        ("fabs(y)", "`abs(x)`"),
        ("normal(y, m, 1.0)", "the log density is `normal_lpdf`, a draw `normal_rng`"),
        ("target + y", "add up the log density in a variable"),
        ("normal_lpdf(y | m, 1.0)", "arguments are separated by commas: `normal_lpdf(y, mu, sigma)`"),
        ("2.0 * normal_lpdf((y + [m][0]) | m, 1.0)", "arguments are separated by commas"),
        ("select(y > m | y < 0.0, y, m)", "or is `||`"),
        ("y ~ normal(m, 1.0); y", "add `normal_lpdf(y, mu, sigma)` to the log density"),
    ];
    for (body, wanted) in cases {
        let found = help(body);
        assert!(found.contains(wanted), "{body}: {found:?}, not {wanted:?}");
    }
}

/// Programs with one word left out, doubled or replaced by another of the same file.
fn mutants(text: &str, seed: &mut u64, count: usize) -> Vec<String> {
    let mut next = || {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*seed >> 33) as usize
    };
    let mut words: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let end = if word(first) { rest.find(|c| !word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        words.push(&rest[..end]);
        rest = &rest[end..];
    }
    (0..count)
        .map(|_| {
            let mut mutant = words.clone();
            for _ in 0..1 + next() % 3 {
                let (at, other) = (next() % mutant.len(), next() % words.len());
                match next() % 3 {
                    0 => drop(mutant.remove(at)),
                    1 => mutant.insert(at, words[other]),
                    _ => mutant[at] = words[other],
                }
            }
            mutant.concat()
        })
        .collect()
}

#[test]
fn mutated_programs_never_panic() {
    let mut seed = 1;
    for folder in ["tests/filetests/check", "nuts"] {
        for path in files(folder, "ab") {
            for mutant in mutants(&read(&path), &mut seed, 15) {
                let (program, diagnostics, _) = check(&path.display().to_string(), &mutant);
                let errors = diagnostics.iter().any(Diagnostic::is_error);
                assert_eq!(program.is_none(), errors, "{mutant}");
            }
        }
    }
}
