//! What the documents keep to: the length of the page and of lines, links that lead somewhere, paths that are there,
//! tables of files that are whole, and the form of the results.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The documents whose prose is wrapped.
const WRAPPED: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "DEPENDENCIES.md",
    "README.md",
    "benches/HISTORY.md",
    "benches/RESULTS.md",
    "benches/compare/README.md",
    "grammar/OUTPUT.md",
    "grammar/REFERENCE.md",
    "grammar/STAN.md",
    "nuts/README.md",
    "nuts/TUTORIAL.md",
    "nuts/data/README.md",
    "tests/filetests/conformance/README.md",
];

/// The page whose rows of tables are as short as its prose.
const PAGE: &str = "ARCHITECTURE.md";

/// Columns of a line of prose.
const COLUMNS: usize = 120;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The documents of a folder and of those in it.
fn documents_in(folder: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                walk(&path, into);
            } else if path.extension().is_some_and(|e| e == "md") {
                into.push(path.strip_prefix(root()).expect("a file of the project").to_owned());
            }
        }
    }
    let mut documents = Vec::new();
    walk(&root().join(folder), &mut documents);
    documents.sort();
    documents
}

/// The guides that stand beside their code: each `README.md` in `src`, and the glossary.
fn guides() -> Vec<PathBuf> {
    documents_in("src")
}

fn documents() -> Vec<PathBuf> {
    WRAPPED.iter().map(PathBuf::from).chain(guides()).chain(documents_in("book/src")).collect()
}

/// The lines of a document with their numbers, without those of blocks of code.
fn lines(text: &str) -> Vec<(usize, &str)> {
    let mut code = false;
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            code = !code;
        } else if !code && !line.starts_with("    ") {
            lines.push((at + 1, line));
        }
    }
    lines
}

/// The pieces of a line that stand in backquotes.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Whether a line could be broken: whether it has a space that is in no backquotes and no link, behind its start.
fn can_be_broken(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches(['-', '*', ' ']);
    let outside: String = line.split('`').step_by(2).collect::<Vec<_>>().join("x");
    let mut depth = 0;
    outside.chars().any(|c| {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            _ => {}
        }
        c == ' ' && depth <= 0
    })
}

#[test]
fn the_architecture_page_is_short() {
    let count = text(Path::new(PAGE)).lines().count();
    assert!(count <= 250, "{PAGE} has {count} lines: what is long stands beside its code");
}

#[test]
fn prose_is_wrapped() {
    let mut wrong = Vec::new();
    for path in documents() {
        for (number, line) in lines(&text(&path)) {
            let columns = line.chars().count();
            let may_be_long = line.starts_with('|') && path != Path::new(PAGE);
            if columns > COLUMNS && !may_be_long && can_be_broken(line) {
                wrong.push(format!("{}:{number}: {columns} columns", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "more than {COLUMNS} columns:\n{}", wrong.join("\n"));
}

/// The anchors of the headings of a document.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = lines(text).into_iter().filter_map(|(_, line)| line.strip_prefix('#'));
    let slug = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    };
    headings.map(|h| h.trim_start_matches('#').trim().to_lowercase().chars().filter_map(slug).collect()).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut wrong = Vec::new();
    for path in documents() {
        let folder = path.parent().expect("a file has a folder");
        let page = text(&path);
        for (number, line) in lines(&page) {
            let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
            for target in prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                if target.contains("://") || target.is_empty() {
                    continue;
                }
                let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
                let file = if file.is_empty() { path.clone() } else { folder.join(file) };
                let there = root().join(&file).exists();
                if !there || !anchor.is_empty() && !anchors(&text(&file)).contains(anchor) {
                    wrong.push(format!("{}:{number}: {target}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
}

/// The paths that a text in backquotes stands for: `a/{b,c}.rs` for two; of `a/*.rs` the folder.
fn paths(name: &str) -> Vec<String> {
    if let Some((before, (among, after))) = name.split_once('{').and_then(|(b, rest)| Some((b, rest.split_once('}')?)))
    {
        return among.split(',').map(|one| format!("{before}{one}{after}")).collect();
    }
    match name.split_once('*') {
        Some((before, _)) => vec![before.trim_end_matches('/').to_owned()],
        None => vec![name.to_owned()],
    }
}

/// Whether a text in backquotes names a file or folder of the project, or, in a guide, of its folder.
fn is_path(name: &str, in_guide: bool) -> bool {
    let characters = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./{},*".contains(c));
    let rooted = ["src/", "tests/", "grammar/", "nuts/", "benches/", "examples/"].iter().any(|r| name.starts_with(r));
    characters && (rooted || in_guide && [".rs", ".h"].iter().any(|end| name.ends_with(end)))
}

#[test]
fn named_paths_are_there() {
    let mut wrong = Vec::new();
    for path in [PathBuf::from(PAGE), PathBuf::from("CONTRIBUTING.md")].into_iter().chain(guides()) {
        let folder = root().join(path.parent().expect("a file has a folder"));
        let in_guide = path.starts_with("src");
        for (number, line) in lines(&text(&path)) {
            for name in quoted(line).filter(|name| is_path(name, in_guide)).flat_map(paths) {
                if !root().join(&name).exists() && !folder.join(&name).exists() {
                    wrong.push(format!("{}:{number}: {name}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "paths that are not there:\n{}", wrong.join("\n"));
}

/// What the first columns of a page's tables of files name: files and folders of its own folder.
fn listed_files(page: &str) -> BTreeSet<&str> {
    let mut listed = BTreeSet::new();
    let mut inside = false;
    for (_, line) in lines(page) {
        let Some(cell) = line.strip_prefix('|').and_then(|row| row.split('|').next()) else {
            inside = false;
            continue;
        };
        if inside {
            listed.extend(quoted(cell).filter_map(|name| name.split('/').next()));
        }
        inside |= cell.split_whitespace().any(|word| word == "file");
    }
    listed
}

#[test]
fn tables_of_files_are_whole() {
    const APART: &[&str] = &["README.md", "Cargo.toml", "mod.rs", "tests", "tests.rs"];
    let mut wrong = Vec::new();
    for path in guides().into_iter().chain(["nuts/README.md", "nuts/data/README.md"].map(PathBuf::from)) {
        let page = text(&path);
        let listed = listed_files(&page);
        let folder = root().join(path.parent().expect("a file has a folder"));
        for entry in std::fs::read_dir(folder).expect("the folder can be read").filter(|_| !listed.is_empty()) {
            let name = entry.expect("the folder can be read").file_name().to_string_lossy().into_owned();
            if !listed.contains(name.as_str()) && !APART.contains(&name.as_str()) {
                wrong.push(format!("{}: no row for {name}", path.display()));
            }
        }
    }
    wrong.sort();
    assert!(wrong.is_empty(), "files that a table of their folder lacks:\n{}", wrong.join("\n"));
}

/// A question, what was found, the command; what was wanted and tried is history.
#[test]
fn results_answer_questions() {
    let page = text(Path::new("benches/RESULTS.md"));
    let headings: Vec<&str> = page.lines().filter_map(|l| l.strip_prefix("## ")).collect();
    let wrong: Vec<&&str> = headings.iter().filter(|h| **h != "Method" && !h.ends_with('?')).collect();
    assert!(wrong.is_empty(), "headings of benches/RESULTS.md that are no questions: {wrong:?}");
    let distinct: BTreeSet<&str> = headings.iter().copied().collect();
    assert_eq!(distinct.len(), headings.len(), "a question of benches/RESULTS.md stands twice");
    assert!(!page.contains("Wanted"), "what was wanted stands in benches/HISTORY.md");
}

#[test]
fn results_have_one_table_two_sentences_and_the_command() {
    let page = text(Path::new("benches/RESULTS.md"));
    let mut wrong = Vec::new();
    for section in page.split("\n## ").skip(1).filter(|section| !section.starts_with("Method\n")) {
        let body = lines(section).into_iter().skip(1).map(|(_, line)| line);
        let (rows, prose): (Vec<&str>, Vec<&str>) = body.partition(|line| line.starts_with('|'));
        let tables = rows.iter().filter(|row| row.starts_with("|---")).count();
        let words = prose.iter().flat_map(|line| line.split_whitespace());
        let sentences = words.filter(|word| word.ends_with('.')).count();
        let commands = section.matches("```console").count();
        if tables != 1 || sentences > 2 || commands != 1 {
            let title = section.lines().next().unwrap_or_default();
            wrong.push(format!("{title} {tables} tables, {sentences} sentences, {commands} blocks of commands"));
        }
    }
    assert!(wrong.is_empty(), "sections of benches/RESULTS.md:\n{}", wrong.join("\n"));
}
