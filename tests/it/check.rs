//! The checker: every documented error is found, correct programs have none.

use std::path::{Path, PathBuf};

use autobatch::base::{Diagnostic, SourceMap};
use autobatch::check::{FileLoader, check_program};
use autobatch::hir;

fn check(name: &str, text: &str) -> (Option<hir::Program>, Vec<Diagnostic>, SourceMap) {
    let mut sources = SourceMap::default();
    let main = sources.add(name, text);
    let (program, diagnostics) = check_program(main, &mut sources, &mut FileLoader);
    (program, diagnostics, sources)
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

#[test]
fn correct_programs_have_no_findings() {
    for path in files("tests/filetests/check", "ab") {
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        let (program, diagnostics, sources) = check(&path.display().to_string(), &text);
        let shown: Vec<_> = diagnostics
            .iter()
            .map(|d| {
                let at = d.labels[0].span;
                let line = sources.line_column(at).0;
                (sources.file(at.file).name.clone(), line, d.code, &d.message)
            })
            .collect();
        assert!(program.is_some() && shown.is_empty(), "{shown:#?}");
    }
}
