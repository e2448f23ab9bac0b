//! What the editor is told of the libraries: what the reference says of a function, and the texts of the modules that ship.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::check::StdLibrary;

/// What the reference says of functions, by their names: the row of its table.
pub(super) fn reference(name: &str) -> Option<&'static str> {
    static ROWS: LazyLock<HashMap<&str, String>> = LazyLock::new(|| rows(include_str!("../../grammar/REFERENCE.md")));
    let other = || OTHERS.iter().find(|(known, _)| *known == name).map(|(_, told)| *told);
    ROWS.get(name).map(String::as_str).or_else(other)
}

/// What is said of functions that the reference tells of in sentences.
const OTHERS: &[(&str, &str)] = &[
    ("random_uniform", "`random_uniform(n, ...)`: a draw between 0 and 1, or an array of draws"),
    ("random_normal", "`random_normal(n, ...)`: a draw from the standard normal distribution, or an array of draws"),
    ("random_position", "`random_position()`: how many random numbers the lane has drawn; it draws none"),
    ("attempt", "`attempt(f)(x)`: calls `f`; where that traps, the lane goes on with NaN, 0 or `false` as the result"),
];

/// The rows of tables of functions: those whose first column has names between backquotes.
fn rows(reference: &str) -> HashMap<&str, String> {
    let mut found: HashMap<&str, String> = HashMap::new();
    for line in reference.lines() {
        let Some((first, second)) = line.strip_prefix("| `").and_then(|line| line.split_once(" | ")) else { continue };
        let second = second.trim_end_matches('|').trim();
        let first = format!("`{}", first.trim());
        let quoted = line.split('`').skip(1).step_by(2);
        let columns = first.matches('`').count() / 2;
        for part in quoted.take(columns) {
            let head = part.split('(').next().unwrap_or(part);
            let is_name = |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && word.len() > 1;
            for name in head.split(' ').filter(is_name) {
                found.entry(name).or_insert_with(|| format!("{first}: {second}"));
            }
        }
    }
    found
}

/// The folder of copies of the modules that ship where a client names none: one for each version, whose texts differ.
pub(super) fn folder() -> Option<PathBuf> {
    let named = |variable: &str| std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    let caches = named("AUTOBATCH_CACHE").or_else(|| {
        let user = named("XDG_CACHE_HOME").or_else(|| named("LOCALAPPDATA"));
        user.or_else(|| named("HOME").map(|home| home.join(".cache"))).map(|caches| caches.join("autobatch"))
    })?;
    Some(caches.join(concat!("library-", env!("CARGO_PKG_VERSION"))).join("std"))
}

/// The path of a copy in this folder of a module that ships, `std/name.ab`, to be read; `None` where it cannot be written.
pub(super) fn copy(folder: &Path, name: &str) -> Option<String> {
    let text = StdLibrary::text(name)?;
    let path = folder.join(name.strip_prefix("std/").unwrap_or(name));
    let same = || std::fs::read(&path).is_ok_and(|found| found == text.as_bytes());
    if !same() {
        std::fs::create_dir_all(folder).ok()?;
        let new = folder.join(format!(".{}.new", std::process::id()));
        let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path));
        if written.is_err() {
            let _ = std::fs::remove_file(&new);
            return None;
        }
    }
    Some(path.display().to_string())
}

/// The name of the module that a path is a copy of in this folder.
pub(super) fn name_of(folder: &Path, path: &str) -> Option<String> {
    let file = Path::new(path);
    let name = format!("std/{}", file.file_name()?.to_str()?);
    (file.parent()? == folder && StdLibrary::text(&name).is_some()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_says_something_of_every_builtin_function() {
        let silent: Vec<&str> = crate::check::builtin_names().filter(|name| reference(name).is_none()).collect();
        assert!(silent.is_empty(), "{silent:?}");
    }

    #[test]
    fn a_row_is_that_of_the_function() {
        assert_eq!(reference("select"), Some("`select(c, x, y)`: `x` where `c` holds, else `y`; all are evaluated"));
        assert!(reference("sqrt").is_some_and(|row| row.contains("cube root")));
    }
}
