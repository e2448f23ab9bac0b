//! The table of layers in ARCHITECTURE.md is the truth: no module uses another that its row does not name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names in backquotes of a cell.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// For every module its layer and the modules that it may use. A row without a layer and a module goes on with the modules
/// that the one before it may use.
fn table() -> BTreeMap<String, (u32, Vec<String>)> {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page can be read");
    let mut table: BTreeMap<String, (u32, Vec<String>)> = BTreeMap::new();
    let mut last = String::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [layer, module, _, uses] = cells[..] else { continue };
        if let (Ok(layer), [module]) = (layer.parse(), &quoted(module)[..]) {
            table.insert(module.clone(), (layer, quoted(uses)));
            last.clone_from(module);
        } else if layer.is_empty() && module.is_empty() {
            let (_, before) = table.get_mut(&last).expect("a row goes on with the one before it");
            before.extend(quoted(uses));
        }
    }
    table
}

fn rust_files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        let is_test = path.file_stem().is_some_and(|s| s == "tests");
        if is_test {
            continue;
        }
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

/// A file that no module names is not compiled, and a test in it not run.
#[test]
fn every_file_is_a_module() {
    let mut files = Vec::new();
    ["src", "tests/it"].iter().for_each(|folder| rust_files(&root().join(folder), &mut files));
    let forgotten: Vec<&PathBuf> = files.iter().filter(|file| !is_module(file)).collect();
    assert!(forgotten.is_empty(), "no module names {forgotten:?}");
}

/// Whether a file is the root of a crate, or the module above it names it.
fn is_module(file: &Path) -> bool {
    // `a/mod.rs` is named where `a.rs` would be.
    let place = if file.ends_with("mod.rs") { file.parent().expect("a folder") } else { &file.with_extension("") };
    let (folder, name) = (place.parent().expect("a folder"), place.file_name().expect("a name").to_string_lossy());
    let above = ["mod.rs", "lib.rs", "main.rs"].map(|module| folder.join(module));
    let names = |module: &PathBuf| {
        let text = std::fs::read_to_string(module).unwrap_or_default();
        let by_path = format!("path = \"{name}.rs\"");
        text.lines().any(|line| {
            line.contains(&by_path) || line.split("mod ").nth(1).is_some_and(|rest| first_word(rest) == name)
        })
    };
    matches!(&*name, "lib" | "main")
        || place.join("Cargo.toml").exists()
        || above.iter().chain([&folder.with_extension("rs")]).any(names)
}

/// The text without comments, and without a module of tests at its end.
pub(crate) fn code(text: &str) -> String {
    let text = text.split("mod tests {").next().unwrap_or("");
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

fn first_word(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}

/// The modules of the crate that the code names: `crate::a::b`, `crate::{a, b::{c, d}}`.
fn used(code: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut start = 0;
            for (i, c) in list.char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' if depth > 0 => depth -= 1,
                    ',' | '}' if depth == 0 => {
                        used.insert(first_word(&list[start..i]));
                        start = i + 1;
                        if c == '}' {
                            break;
                        }
                    }
                    _ => {}
                }
            }
        } else {
            used.insert(first_word(rest));
        }
    }
    // A macro of `base`, which macros put at the root.
    if used.remove("define_id") {
        used.insert("base".to_owned());
    }
    used.remove("");
    used
}

#[test]
fn paths_are_found() {
    let code = code(
        "use crate::{a::{b, c},\n  d, e as f}; // crate::g\ncrate::h::i();\n#[cfg(test)]\nmod tests {\nuse crate::j;",
    );
    assert_eq!(used(&code).into_iter().collect::<Vec<_>>(), ["a", "d", "e", "h"]);
}

#[test]
fn modules_use_only_what_their_row_names() {
    let table = table();
    let source = root().join("src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    files.sort();
    let mut wrong = Vec::new();
    let mut modules = BTreeSet::new();
    for path in &files {
        let relative = path.strip_prefix(&source).expect("a file of the folder");
        let first = relative.components().next().expect("a file has a name").as_os_str().to_string_lossy();
        let module = first.trim_end_matches(".rs").to_owned();
        if ["lib", "main"].contains(&module.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(path).expect("the file can be read");
        match table.get(&module) {
            None => wrong.push(format!("{}: ARCHITECTURE.md has no row for `{module}`", relative.display())),
            Some((_, allowed)) => wrong.extend(
                (used(&code(&text)).into_iter().filter(|other| *other != module && !allowed.contains(other)))
                    .map(|other| format!("{}: `{module}` may not use `{other}`", relative.display())),
            ),
        }
        modules.insert(module);
    }
    let missing = table.keys().filter(|module| !modules.contains(*module));
    wrong.extend(missing.map(|module| format!("ARCHITECTURE.md: there is no module `{module}`")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_points_downward() {
    let table = table();
    assert!(table.len() > 20, "the table was found");
    for (module, (layer, uses)) in &table {
        for other in uses {
            let (lower, back) = table.get(other).unwrap_or_else(|| panic!("`{module}` uses `{other}`: no such row"));
            assert!(lower <= layer, "`{module}` of layer {layer} uses `{other}` of layer {lower}");
            assert!(!back.contains(module), "`{module}` and `{other}` use each other");
        }
    }
}
