//! Names of files: one for each.

use std::path::{Component, Path, PathBuf};

/// The path without `.` and, where a folder stands before it, without `..`.
#[must_use]
pub fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

/// The file that a path means in the file of this name.
#[must_use]
pub fn beside(file: &str, path: &str) -> PathBuf {
    normal(&Path::new(file).parent().unwrap_or(Path::new("")).join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_has_one_name() {
        assert_eq!(normal(Path::new("a/./b/../c.ab")), Path::new("a/c.ab"));
        assert_eq!(normal(Path::new("../c.ab")), Path::new("../c.ab"));
        assert_eq!(beside("a/b.stan", "../c.stan"), Path::new("c.stan"));
    }
}
