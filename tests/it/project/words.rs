//! Words: the name of a public type stands once, and `src/GLOSSARY.md` has the words that one meets first.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The representations, whose types are written with the module: a name may stand in several of them.
const REPRESENTATIONS: &[&str] = &["syntax/ast.rs", "hir/", "cfg/", "stack/", "parts/", "unit/", "plan/", "stan/"];

/// A name that may stand elsewhere, too, and where.
const EXCEPTIONS: &[(&str, &str)] = &[("Program", "program/mod.rs"), ("Function", "program/mod.rs")];

/// So many rooms that take a type of one word from another one make it a word of the glossary.
const ROOMS: usize = 3;

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The files of the crate and what they hold, without comments and without tests, by their paths in `src`.
fn files() -> BTreeMap<String, String> {
    fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            // What stands in the place of others where a feature is left out has their names.
            let stands_in = |stem: &std::ffi::OsStr| stem.to_string_lossy().starts_with("no_");
            if path.file_stem().is_some_and(|stem| stem == "tests" || stands_in(stem)) {
                continue;
            } else if path.is_dir() {
                walk(&path, into);
            } else if path.extension().is_some_and(|e| e == "rs") {
                into.push(path);
            }
        }
    }
    let mut paths = Vec::new();
    walk(&source(), &mut paths);
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        let code = crate::project::layers::code(&text);
        let name = path.strip_prefix(source()).expect("a file of the folder").to_string_lossy().replace('\\', "/");
        (name, code)
    };
    paths.into_iter().map(read).collect()
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The public types of a file.
fn public_types(code: &str) -> impl Iterator<Item = &str> {
    code.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix("pub ")?;
        let (keyword, rest) = rest.split_once(' ')?;
        let name = rest.split(|c| !is_word(c)).next()?;
        (["struct", "enum", "trait", "type", "union"].contains(&keyword) && name.starts_with(char::is_uppercase))
            .then_some(name)
    })
}

/// The files that have a public type, by its name.
fn definitions(files: &BTreeMap<String, String>) -> BTreeMap<&str, Vec<&str>> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, code) in files {
        for name in public_types(code) {
            found.entry(name).or_default().push(path);
        }
    }
    found
}

#[test]
fn the_name_of_a_public_type_stands_once() {
    let files = files();
    let in_representation = |path: &str| REPRESENTATIONS.iter().any(|folder| path.starts_with(folder));
    let mut wrong = Vec::new();
    for (name, places) in definitions(&files) {
        let elsewhere = places.iter().filter(|path| !in_representation(path) && !EXCEPTIONS.contains(&(name, path)));
        if places.len() > 1 && elsewhere.count() > 0 {
            wrong.push(format!("{name}: {}", places.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "names of several public types (see src/GLOSSARY.md):\n{}", wrong.join("\n"));
}

/// The paths of a tree of a `use` declaration.
fn paths(tree: &str, before: &[String], into: &mut Vec<Vec<String>>) {
    let (mut depth, mut start) = (0, 0);
    for (i, c) in tree.char_indices().chain([(tree.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = tree[start..i].trim();
                start = i + 1;
                let (way, inner) = part.split_once('{').unwrap_or((part, ""));
                let way = way.split(" as ").next().unwrap_or("");
                let names = way.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
                let path: Vec<String> = before.iter().cloned().chain(names).collect();
                match inner.trim_end().strip_suffix('}') {
                    Some(inner) => paths(inner, &path, into),
                    None => into.push(path),
                }
            }
            _ => {}
        }
    }
}

fn room(path: &str) -> &str {
    path.split('/').next().unwrap_or(path).trim_end_matches(".rs")
}

/// For each type that is taken from a room, the rooms that take it: `(room, name)` to rooms.
fn taken(files: &BTreeMap<String, String>) -> BTreeMap<(String, String), BTreeSet<&str>> {
    let mut taken: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
    for (path, code) in files {
        for rest in code.split("use crate::").skip(1) {
            let mut found = Vec::new();
            paths(rest.split(';').next().unwrap_or(""), &[], &mut found);
            for way in found {
                if let (Some(first), Some(last)) = (way.first(), way.last()) {
                    taken.entry((first.clone(), last.clone())).or_default().insert(room(path));
                }
            }
        }
    }
    taken
}

/// The words of the glossary: what stands in the first column of its tables.
fn glossary() -> BTreeSet<String> {
    let page = std::fs::read_to_string(source().join("GLOSSARY.md")).expect("the glossary can be read");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    rows.flat_map(|words| words.split(", ")).map(|word| word.trim_matches('`').to_owned()).collect()
}

#[test]
fn the_glossary_has_the_types_that_many_rooms_use() {
    let (files, glossary) = (files(), glossary());
    let taken = taken(&files);
    let mut missing = Vec::new();
    for (name, places) in definitions(&files) {
        let one_word = name.chars().skip(1).all(|c| !c.is_uppercase());
        let homes: BTreeSet<&str> = places.iter().map(|path| room(path)).collect();
        let users = homes.iter().filter_map(|home| {
            let users = taken.get(&((*home).to_owned(), name.to_owned()))?;
            Some(users.iter().copied().filter(move |user| user != home))
        });
        let users: BTreeSet<&str> = users.flatten().collect();
        if one_word && users.len() >= ROOMS && !glossary.contains(name) {
            missing.push(format!("{name} of {homes:?}"));
        }
    }
    assert!(missing.is_empty(), "src/GLOSSARY.md lacks the types\n{}", missing.join("\n"));
}

#[test]
fn the_glossary_has_every_module_that_is_a_folder() {
    let (files, glossary) = (files(), glossary());
    let mut modules = BTreeSet::new();
    for path in files.keys() {
        let mut folders: Vec<&str> = path.split('/').collect();
        folders.pop();
        modules.extend(folders.into_iter().take(2));
    }
    let missing: Vec<&&str> = modules.iter().filter(|module| !glossary.contains(**module)).collect();
    assert!(missing.is_empty(), "src/GLOSSARY.md lacks the modules {missing:?}");
}

#[test]
fn trees_of_use_declarations_are_read() {
    let mut found = Vec::new();
    paths("a::{b, c::{D, E as F}}", &[], &mut found);
    let found: Vec<String> = found.iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["a::b", "a::c::D", "a::c::E"]);
}
