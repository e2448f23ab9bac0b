//! The checker of Stan: every documented finding, whole programs with what is said about them, what names mean.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use autobatch::base::{Diagnostic, SourceMap, Span};
use autobatch::report::render;
use autobatch::stan::check::{BlockName, Called, CalledFunction, Checked, Level, check, spelled};
use autobatch::stan::syntax::{IncludeFolders, Includes, NoIncludes, parse};

use super::{read, root};
use crate::tools::effort;

/// Parses, and checks where the syntax has no errors.
fn checked(name: &str, text: &str, includes: &mut dyn Includes) -> (Checked, Vec<Diagnostic>, SourceMap) {
    let mut sources = SourceMap::default();
    let main = sources.add(name, text);
    let (program, mut diagnostics) = parse(main, &mut sources, includes);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return (Checked::default(), diagnostics, sources);
    }
    let (checked, found) = check(&program, &sources);
    diagnostics.extend(found);
    (checked, diagnostics, sources)
}

/// The Stan programs below a folder, in the order of their paths.
fn programs(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).expect("the folder can be read").map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "stan") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The sections of `grammar/errors.d/stan_check.md`: code and program.
fn documented() -> Vec<(String, String)> {
    let text = read(&root().join("grammar/errors.d/stan_check.md"));
    let sections = text.split("\n## ").map(|section| section.trim_start_matches("## "));
    let parts = |section: &str| {
        let (code, rest) = section.split_once(':').expect("a heading is `CODE: title`");
        let (_, rest) = rest.split_once("```stan\n").unwrap_or_else(|| panic!("{code} has a program"));
        let (program, _) = rest.split_once("```").expect("the program ends");
        (code.to_owned(), program.to_owned())
    };
    sections.map(parts).collect()
}

#[test]
fn every_code_of_the_checker_of_stan_has_a_program_that_gives_it() {
    let documented = documented();
    for (code, program) in &documented {
        let (_, diagnostics, sources) = checked("main.stan", program, &mut NoIncludes);
        // What is wrong with calls of functions that are not there yet is told, too.
        let codes: Vec<&str> =
            diagnostics.iter().map(|d| d.code.0).filter(|c| *c != "W2110" || code == "W2110").collect();
        assert_eq!(codes, [code], "{}", render(&diagnostics, &sources, false));
    }
    let mut used = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("src/stan/check")).expect("the folder can be read") {
        let path = entry.unwrap().path();
        if path.is_file() {
            let is_code = |word: &&str| word.len() == 5 && (word.starts_with("E2") || word.starts_with("W2"));
            used.extend(read(&path).split('"').filter(is_code).map(str::to_owned));
        }
    }
    assert_eq!(documented.into_iter().map(|d| d.0).collect::<BTreeSet<_>>(), used);
}

#[test]
fn good_programs_of_stan_have_no_findings_but_functions_that_are_old_or_not_there_yet() {
    let all = programs(&root().join("tests/filetests/stan/check/good"));
    assert!(all.len() >= 3);
    for path in all {
        let (_, mut diagnostics, sources) = checked("main.stan", &read(&path), &mut NoIncludes);
        diagnostics.retain(|d| !["W2008", "W2110"].contains(&d.code.0));
        assert!(diagnostics.is_empty(), "{}\n{}", path.display(), render(&diagnostics, &sources, false));
    }
}

/// Everything that is wrong is said in one run, in these words.
#[test]
fn bad_programs_of_stan() {
    for path in programs(&root().join("tests/filetests/stan/check/bad")) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let (_, diagnostics, sources) = checked(&format!("{name}.stan"), &read(&path), &mut NoIncludes);
        insta::assert_snapshot!(name.clone(), render(&diagnostics, &sources, false));
    }
}

/// The span of the `nth` place where a text stands.
fn at(sources: &SourceMap, text: &str, nth: usize) -> Span {
    let (file, source) = sources.files().next().expect("there is one");
    let start = source.text.match_indices(text).nth(nth).expect("it stands there").0;
    Span::new(file, start, start + text.len())
}

#[test]
fn names_mean_functions_and_variables() {
    let text = "functions {
  real size_of(real x) { return x; }
  real size_of(vector x) { return sum(x); }
  real hat_lpdf(real y, real mu) { return -abs(y - mu); }
}
data { real y; vector[3] v; }
parameters { real mu; }
model {
  y ~ hat(mu);
  y ~ normal(mu, 1);
  target += hat_lupdf(y | mu) + normal_lupdf(v | mu, 2) + size_of(v);
}";
    let (checked, diagnostics, sources) = checked("main.stan", text, &mut NoIncludes);
    assert!(diagnostics.is_empty(), "{}", render(&diagnostics, &sources, false));
    let meant = |text: &str, nth: usize| checked.calls[&at(&sources, text, nth)].clone();
    let user = |index: usize, unnormalized: bool| Called { function: CalledFunction::User(index), unnormalized };
    let library = |params: &[&str]| (params.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>(), true);
    let shown = |called: Called| match called.function {
        CalledFunction::Library { name, params } => {
            assert_eq!(&*name, "normal_lpdf");
            (params.iter().map(spelled).collect::<Vec<_>>(), called.unnormalized)
        }
        CalledFunction::User(index) => panic!("it is function {index} of the program"),
    };
    assert_eq!(meant("hat", 1), user(2, true));
    assert_eq!(meant("hat_lupdf", 0), user(2, true));
    assert_eq!(meant("size_of", 2), user(1, false));
    assert_eq!(shown(meant("normal", 0)), library(&["real", "real", "real"]));
    assert_eq!(shown(meant("normal_lupdf", 0)), library(&["vector", "real", "real"]));
}

#[test]
fn expressions_have_types_and_levels() {
    let text = "data { int n; vector[n] x; }
parameters { real mu; }
model {
  real a = x[1] + mu;
  real b = x[2] / n;
  int c = n %/% 2;
}";
    let (checked, diagnostics, sources) = checked("main.stan", text, &mut NoIncludes);
    assert!(diagnostics.is_empty(), "{}", render(&diagnostics, &sources, false));
    let typed = |text: &str| {
        let typed = &checked.types[&at(&sources, text, 0)];
        (spelled(&typed.ty), typed.level.clone())
    };
    assert_eq!(typed("x[1] + mu"), ("real".to_owned(), Level::Parameter));
    assert_eq!(typed("x[2] / n"), ("real".to_owned(), Level::Data));
    assert_eq!(typed("n %/% 2"), ("int".to_owned(), Level::Data));
    let x = &checked.variables[&at(&sources, "x", 1)];
    assert_eq!((x.at, x.block, x.global), (at(&sources, "x", 0), BlockName::Data, true));
}

/// Programs with a line, or a word, taken away or put in the place of another: something is said, and nothing panics.
#[test]
fn mutated_programs_of_stan_are_checked() {
    let mut texts: Vec<String> = documented().into_iter().map(|d| d.1).collect();
    texts.extend(programs(&root().join("tests/filetests/stan/check")).iter().map(|path| read(path)));
    let every = effort::part(7, 1);
    let mut tried = 0;
    for text in &texts {
        let lines: Vec<&str> = text.lines().collect();
        for line in 0..lines.len() {
            let kept = lines.iter().enumerate().filter(|(at, _)| *at != line).map(|(_, line)| *line);
            checked("main.stan", &kept.collect::<Vec<_>>().join("\n"), &mut NoIncludes);
        }
        let words: Vec<&str> = text.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_').collect();
        for at in (0..words.len()).step_by(every) {
            let mut mutant = words.clone();
            mutant[at] = words[(at * 7 + 3) % words.len()];
            checked("main.stan", &mutant.concat(), &mut NoIncludes);
            tried += 1;
        }
    }
    assert!(tried > 300, "{tried}");
}

fn is_accepted(path: &Path) -> bool {
    let folder = path.parent().expect("a file is in a folder");
    let mut includes = IncludeFolders { folders: vec![folder.join("included"), folder.to_owned()] };
    let (_, diagnostics, _) = checked(&path.display().to_string(), &read(path), &mut includes);
    !diagnostics.iter().any(Diagnostic::is_error)
}

/// For a checkout of stanc3, named by `STANC3`: what it accepts we accept, but for functions that are newer than Stan 2.39,
/// and what it refuses we refuse, but for old syntax.
#[test]
fn stanc3_check() {
    let Some(checkout) = std::env::var_os("STANC3").map(PathBuf::from) else {
        eprintln!("skipped: STANC3 names no checkout of stanc3");
        return;
    };
    let tests = checkout.join("test/integration");
    let (good, bad) = (programs(&tests.join("good")), programs(&tests.join("bad")));
    let refused: Vec<&PathBuf> = good.iter().filter(|path| !is_accepted(path)).collect();
    let accepted: Vec<&PathBuf> = bad.iter().filter(|path| is_accepted(path)).collect();
    println!(
        "of {} good programs {} are refused: {refused:#?}\nof {} bad programs {} are accepted: {accepted:#?}",
        good.len(),
        refused.len(),
        bad.len(),
        accepted.len()
    );
    assert!(good.len() > 1000 && refused.len() * 100 <= good.len());
    assert!(bad.len() > 1000 && accepted.len() * 100 <= bad.len());
}

/// For a checkout of posteriordb, named by `POSTERIORDB`: all its programs are accepted.
#[test]
fn posteriordb_check() {
    let Some(checkout) = std::env::var_os("POSTERIORDB").map(PathBuf::from) else {
        eprintln!("skipped: POSTERIORDB names no checkout of posteriordb");
        return;
    };
    let all = programs(&checkout.join("models/stan"));
    let refused: Vec<&PathBuf> = all.iter().filter(|path| !is_accepted(path)).collect();
    assert!(all.len() >= 120 && refused.is_empty(), "of {} programs are refused {refused:#?}", all.len());
}
