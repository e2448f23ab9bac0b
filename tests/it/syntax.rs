//! The syntax layer: a corpus of valid programs, errors with their codes, and texts of any kind.

use std::path::PathBuf;

use autobatch::base::{FileId, Id};
use autobatch::syntax::{dump, parse};

/// The valid programs of the corpus, sorted by name.
fn corpus() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/syntax");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    paths.sort();
    paths
        .into_iter()
        .filter(|p| p.extension().is_some_and(|e| e == "ab"))
        .map(|p| {
            (
                p.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read_to_string(p).unwrap(),
            )
        })
        .collect()
}

#[test]
fn the_corpus_parses() {
    for (name, text) in corpus() {
        let (module, diagnostics) = parse(FileId::new(0), &text);
        if std::env::var_os("SHOW").is_some() {
            println!("{}", dump(&module));
        }
        assert!(diagnostics.is_empty(), "{name}: {diagnostics:#?}");
        assert!(!module.items.is_empty(), "{name}");
    }
}
