//! The samplers and models in `nuts/`.

use std::path::{Path, PathBuf};

use autobatch::base::SourceMap;
use autobatch::syntax;

fn nuts(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("nuts").join(path)
}

fn programs() -> Vec<PathBuf> {
    let folders = [nuts(""), nuts("models")];
    let files = folders.iter().flat_map(|folder| folder.read_dir().expect("the folder is there"));
    let paths = files.map(|file| file.expect("a readable folder").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "ab")).collect()
}

#[test]
fn programs_parse() {
    assert!(programs().len() >= 12);
    for path in programs() {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut sources = SourceMap::default();
        let file = sources.add(path.display().to_string(), text.as_str());
        let (_, diagnostics) = syntax::parse(file, &text);
        assert!(diagnostics.is_empty(), "{}: {diagnostics:?}", path.display());
    }
}

/// Rows of `nuts/README.md` such as ``| leapfrog | `hamiltonian.ab:44` | `let p_half = …` |``.
#[test]
fn lines_that_the_readme_names_are_where_it_says() {
    let readme = std::fs::read_to_string(nuts("README.md")).unwrap();
    let rows = readme.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split(" | ").collect();
        let place = cells.get(1)?.trim().strip_prefix('`')?.strip_suffix('`')?;
        let (file, number) = place.split_once(':')?;
        let text = cells.get(2)?.strip_prefix('`')?.strip_suffix("` |")?;
        Some((file, number.parse::<usize>().ok()?, text))
    });
    let mut checked = 0;
    for (file, number, text) in rows {
        let source = std::fs::read_to_string(nuts(file)).unwrap();
        let line = source.lines().nth(number - 1).unwrap_or_default();
        assert!(line.contains(text), "{file}:{number} is not `{text}` but `{line}`");
        checked += 1;
    }
    assert!(checked > 30, "only {checked} rows were found");
}
