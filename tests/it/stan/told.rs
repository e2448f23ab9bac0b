//! What the command line says of programs in `tests/filetests/stan/told`, in the words and at the places of the program.
//!
//! ```text
//! // run: log-prob $MODEL --points '[[1]]'     the command; `$MODEL` is this file, and words stand in quotes as in a shell
//! // data: {"N": 1}                            its data, as `--data`
//! // says: TEXT                                a line of what it writes that has this in it, each after the one before
//! // silent: TEXT                              no line has this in it
//! // status: 1                                 the exit status; 0 where none is said
//! ```

use std::path::{Path, PathBuf};

use super::{read, root};
use crate::project::cli::{Folder, output};

/// The words of a command line; quotes hold several together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (i, part) in line.split('\'').enumerate() {
        if i % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// What is wrong with what a run says.
fn problem(run: &str, data: Option<&str>, expected: &[(&str, &str)], path: &Path, folder: &Folder) -> Option<String> {
    let name = path.file_name().expect("a file").to_string_lossy().into_owned();
    let model = folder.file(&name, read(path));
    let mut arguments: Vec<String> = words(run).iter().map(|word| word.replace("$MODEL", &model)).collect();
    if let Some(data) = data {
        arguments.extend(["--data".to_owned(), folder.file("data.json", data)]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = output(&arguments);
    let said = [&done.stdout[..], &done.stderr].map(String::from_utf8_lossy).concat();
    // The folder is another one in every run.
    let said = said.replace(&model, &name);
    let mut lines = said.lines();
    let mut status = 0;
    for (word, text) in expected {
        match *word {
            "says" if !lines.any(|line| line.contains(text)) => return Some(format!("{run}: no `{text}` in\n{said}")),
            "silent" if said.contains(text) => return Some(format!("{run}: `{text}` in\n{said}")),
            "status" => status = text.parse().expect("a status is a number"),
            _ => {}
        }
    }
    (done.status.code() != Some(status)).then(|| format!("{run}: status {:?}\n{said}", done.status.code()))
}

fn problems(path: &Path) -> Vec<String> {
    let text = read(path);
    let directives: Vec<(&str, &str)> =
        text.lines().filter_map(|line| line.strip_prefix("// ")?.split_once(": ")).collect();
    let data = directives.iter().find(|(word, _)| *word == "data").map(|(_, data)| *data);
    let starts: Vec<usize> = (0..directives.len()).filter(|i| directives[*i].0 == "run").collect();
    assert!(!starts.is_empty(), "{} runs nothing", path.display());
    let folder = Folder::new(&format!("told-{}", path.file_stem().expect("a file").to_string_lossy()));
    let mut found = Vec::new();
    for (k, start) in starts.iter().enumerate() {
        let end = starts.get(k + 1).copied().unwrap_or(directives.len());
        let expected = &directives[start + 1..end];
        assert!(expected.iter().any(|(word, _)| *word != "data"), "{}: a run that expects nothing", path.display());
        found.extend(problem(directives[*start].1, data, expected, path, &folder));
    }
    found.iter().map(|problem| format!("{}: {problem}", path.display())).collect()
}

#[test]
fn programs_are_told_of_in_their_own_words_and_at_their_own_places() {
    let mut programs: Vec<PathBuf> = std::fs::read_dir(root().join("tests/filetests/stan/told"))
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    programs.sort();
    let found: Vec<String> = programs.iter().flat_map(|path| problems(path)).collect();
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}
