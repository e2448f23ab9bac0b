//! Valid texts with random edits: the compiler and the readers and verifiers of the IRs may refuse them, and must neither
//! panic nor hang. The fuzz targets of `tests/fuzz` do the same without an end.

use std::path::{Path, PathBuf};

use arbtest::arbitrary::{Result, Unstructured};
use autobatch::program::Program;
use autobatch::{cfg, stack};

use crate::tools::effort;

fn texts(folders: &[&str], extension: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(root.join(folder)).expect("the folder is there");
        paths.extend(entries.map(|e| e.expect("an entry").path()));
    }
    paths.retain(|p| p.extension().is_some_and(|e| e == extension));
    paths.sort();
    assert!(!paths.is_empty());
    paths.iter().map(|p| std::fs::read_to_string(p).expect("a text")).collect()
}

/// The end of a character at or after `at`.
fn boundary(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|i| text.is_char_boundary(*i)).expect("the end is one")
}

/// A word of the text: edits that exchange words make more programs that get past the parser than edits of bytes.
fn word<'t>(u: &mut Unstructured<'_>, text: &'t str) -> Result<&'t str> {
    let start = boundary(text, u.choose_index(text.len().max(1))?.min(text.len()));
    let rest = &text[start..];
    let skip = rest.find(|c: char| c.is_alphanumeric()).unwrap_or(0);
    let rest = &rest[skip..];
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len());
    Ok(&rest[..end])
}

fn mutated(u: &mut Unstructured<'_>, texts: &[String]) -> Result<String> {
    let mut text = u.choose(texts)?.clone();
    for _ in 0..u.int_in_range(1..=4)? {
        let other = u.choose(texts)?;
        let old = word(u, &text)?.to_owned();
        let from_other: bool = u.arbitrary()?;
        let new = word(u, if from_other { other } else { &text })?.to_owned();
        let from = boundary(&text, u.choose_index(text.len().max(1))?.min(text.len()));
        match u.int_in_range(0..=3)? {
            0 if !old.is_empty() => {
                if let Some(at) = text[from..].find(&old) {
                    text.replace_range(from + at..from + at + old.len(), &new);
                }
            }
            1 => {
                let to = boundary(&text, (from + u.int_in_range(0..=30)?).min(text.len()));
                text.replace_range(from..to, "");
            }
            2 => text.insert_str(from, &new),
            _ => {
                let mut lines: Vec<&str> = text.lines().collect();
                if lines.len() > 1 {
                    let (a, b) = (u.choose_index(lines.len())?, u.choose_index(lines.len())?);
                    lines.swap(a, b);
                }
                text = lines.join("\n");
            }
        }
    }
    Ok(text)
}

#[test]
fn mutated_programs_are_compiled_or_refused() {
    let folders = ["examples", "tests/filetests/conformance", "tests/filetests/syntax", "nuts"];
    let programs = texts(&folders, "ab");
    arbtest::arbtest(|u| {
        let text = mutated(u, &programs)?;
        if let Ok(program) = Program::compile(&text) {
            for name in program.functions() {
                let _ = program.function(name).map(|f| f.signature().ports.len());
            }
        }
        Ok(())
    })
    .budget_ms(effort::part(625, 2500));
}

#[test]
fn mutated_cfg_programs_are_read_or_refused() {
    let programs = texts(&["tests/filetests/cfg", "tests/filetests/stack"], "cfg");
    arbtest::arbtest(|u| {
        let text = mutated(u, &programs)?;
        if let Ok(program) = cfg::read(&text)
            && cfg::verify(&program).is_empty()
        {
            let printed = program.to_string();
            assert_eq!(cfg::read(&printed).expect("what is printed is read").to_string(), printed);
        }
        Ok(())
    })
    .budget_ms(effort::part(375, 1500));
}

#[test]
fn mutated_stack_programs_are_read_or_refused() {
    let programs = texts(&["tests/filetests/machine", "tests/filetests/stack"], "stack");
    arbtest::arbtest(|u| {
        let text = mutated(u, &programs)?;
        if let Ok(program) = stack::read(&text)
            && stack::verify(&program).is_empty()
        {
            let printed = program.to_string();
            assert_eq!(stack::read(&printed).expect("what is printed is read").to_string(), printed);
        }
        Ok(())
    })
    .budget_ms(effort::part(375, 1500));
}
