//! `DEPENDENCIES.md` has what is there: the crates of `Cargo.lock`, the packages of `python/check` and those of the package
//! for VS Code. `tests/scripts/dependencies.py` prints the table of crates.

use std::collections::{BTreeMap, BTreeSet};

/// The crates of the workspace.
const OWN: &[&str] = &["autobatch", "autobatch-python", "autobatch-vmath"];

fn text(path: &str) -> String {
    std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR")))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The cells of the rows of a section of the page, without those of the head.
fn rows<'a>(page: &'a str, section: &str) -> Vec<Vec<&'a str>> {
    let (_, rest) = page.split_once(&format!("\n## {section}\n")).expect("the section is there");
    let section = rest.split("\n## ").next().unwrap_or(rest);
    let rows = section.lines().filter(|line| line.starts_with('|'));
    rows.map(|row| row.split('|').skip(1).map(str::trim).collect::<Vec<_>>()).skip(2).collect()
}

/// Name and version of each row of the first table of a section, whose rows have so many cells.
fn listed(page: &str, section: &str, cells: usize) -> BTreeSet<(String, String)> {
    let rows = rows(page, section);
    // The end of a row is a cell, too.
    let of_table = rows.iter().take_while(|row| row.len() == cells + 1);
    of_table.map(|row| (row[0].to_owned(), row[1].to_owned())).collect()
}

/// What stands behind a key of a package in `Cargo.lock`, without its quotes.
fn value<'a>(package: &'a str, key: &str) -> Option<&'a str> {
    package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
}

/// The crates that those of the workspace name, with their versions, and how many there are in all.
fn locked() -> (BTreeSet<(String, String)>, usize) {
    let lock = text("Cargo.lock");
    let packages: Vec<&str> = lock.split("[[package]]\n").skip(1).collect();
    let mut versions: BTreeMap<&str, &str> = BTreeMap::new();
    for package in &packages {
        versions.insert(value(package, "name").expect("a name"), value(package, "version").expect("a version"));
    }
    let mut direct = BTreeSet::new();
    for package in packages.iter().filter(|package| value(package, "name").is_some_and(|name| OWN.contains(&name))) {
        let named = package.lines().filter_map(|line| line.strip_prefix(" \"")?.strip_suffix("\","));
        for name in named.filter(|name| !OWN.contains(name)) {
            // A version stands there where there are several.
            let (name, version) = name.split_once(' ').unwrap_or_else(|| (name, versions[name]));
            direct.insert((name.to_owned(), version.to_owned()));
        }
    }
    (direct, packages.len() - OWN.len())
}

#[test]
fn the_page_lists_the_crates_that_are_used() {
    let page = text("DEPENDENCIES.md");
    let (direct, all) = locked();
    assert_eq!(listed(&page, "Crates", 7), direct, "tests/scripts/dependencies.py prints the table");
    assert!(page.contains(&format!("there are {all} crates")), "there are {all} crates in Cargo.lock");
    let licences = rows(&page, "Crates").into_iter().filter(|row| row.len() == 3);
    let counted: usize = licences.filter_map(|row| row[1].parse::<usize>().ok()).sum();
    assert_eq!(counted, all, "the crates of all licences");
}

#[test]
fn the_page_lists_the_packages_of_python() {
    let check = text("python/check");
    let installed = check.split('\'').filter(|word| word.contains(">=") && !word.contains(' '));
    let wanted: BTreeSet<String> = installed.filter_map(|word| Some(word.split_once(">=")?.0.to_owned())).collect();
    let listed = listed(&text("DEPENDENCIES.md"), "Python", 4);
    assert_eq!(listed.into_iter().map(|(name, _)| name).collect::<BTreeSet<_>>(), wanted);
}

#[test]
fn the_page_lists_the_packages_for_vs_code() {
    let manifest: serde_json::Value = serde_json::from_str(&text("grammar/vscode/package.json")).expect("JSON");
    let packages = manifest["devDependencies"].as_object().expect("packages");
    let version = |value: &serde_json::Value| value.as_str().expect("a version").to_owned();
    let wanted: BTreeSet<_> = packages.iter().map(|(name, value)| (name.clone(), version(value))).collect();
    assert_eq!(listed(&text("DEPENDENCIES.md"), "VS Code", 4), wanted);
    let lock: serde_json::Value = serde_json::from_str(&text("grammar/vscode/package-lock.json")).expect("JSON");
    // The package itself stands there, too.
    let all = lock["packages"].as_object().expect("packages").len() - 1;
    assert!(text("DEPENDENCIES.md").contains(&format!("{all} packages in all")), "there are {all} packages");
}
