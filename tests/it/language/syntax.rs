//! The syntax layer: a corpus of valid programs, errors with their codes, and texts of any kind.

use std::path::PathBuf;

use autobatch::base::{FileId, Id, SourceMap};
use autobatch::report::render;
use autobatch::syntax::{MAX_WIDTH, decode, dump, format, parse, tokens};

use crate::tools::effort;

/// The valid programs of the corpus, sorted by name.
fn corpus() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/syntax");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths
        .into_iter()
        .filter(|p| p.extension().is_some_and(|e| e == "ab"))
        .map(|p| (p.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(p).unwrap()))
        .collect()
}

#[test]
fn the_corpus_parses() {
    for (name, text) in corpus() {
        let (module, diagnostics) = parse(FileId::new(0), &text);
        assert!(diagnostics.is_empty(), "{name}: {diagnostics:#?}");
        assert!(!module.items.is_empty(), "{name}");
    }
}

/// The sections of `grammar/errors.d/syntax.md`: code and bad program.
fn bad_programs() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/grammar/errors.d/syntax.md")).unwrap();
    let sections = text.split("\n## ").map(|s| s.trim_start_matches("## "));
    sections
        .map(|section| {
            let (code, _) = section.split_once(':').unwrap();
            let (_, rest) = section.split_once("```ab\n").unwrap();
            let (program, _) = rest.split_once("\n```").unwrap();
            (code.to_owned(), program.to_owned())
        })
        .collect()
}

#[test]
fn every_syntax_error_has_a_bad_program_that_gives_it() {
    for (code, program) in bad_programs() {
        let (_, diagnostics) = parse(FileId::new(0), &program);
        let codes: Vec<&str> = diagnostics.iter().map(|d| d.code.0).collect();
        assert_eq!(codes, [&*code], "{program}\n{diagnostics:#?}");
    }
}

/// How long a random test runs, in milliseconds: `FUZZ_MS` when that is set; a quarter of it without
/// `AUTOBATCH_TESTS=all`.
fn budget(of_all: u64) -> u64 {
    let set = std::env::var("FUZZ_MS").ok().and_then(|v| v.parse().ok());
    set.unwrap_or(effort::part(of_all / 4, of_all))
}

/// Parses, dumps and renders: none of it may panic, whatever the text.
fn swallow(text: &str) {
    let mut sources = SourceMap::default();
    let file = sources.add("any.ab", text);
    let (module, diagnostics) = parse(file, text);
    dump(&module);
    tokens(file, text);
    render(&diagnostics, &sources, false);
    if diagnostics.is_empty() {
        check_format("any text", text);
    }
}

#[test]
fn nesting_is_limited() {
    let n = 100_000;
    let around = |inside: &str| format!("fn f() -> int {{ {inside} }}");
    let texts = [
        "(".repeat(n),
        "{".repeat(n),
        around(&"(".repeat(n)),
        around(&format!("{}1{}", "(".repeat(n), ")".repeat(n))),
        around(&format!("{}{}", "{".repeat(n), "}".repeat(n))),
        around(&"-".repeat(n)),
        around(&format!("{}1", "- ".repeat(n))),
        around(&format!("1{}", " + 1".repeat(n))),
        around(&format!("1{}", " ^ 1".repeat(n))),
        around(&format!("{}{{ }}", "if a { } else ".repeat(n))),
        around(&format!("{}1", "|x| ".repeat(n))),
        around(&format!("f{}", "(x)".repeat(n))),
        around(&format!("f{}", ".x".repeat(n))),
        around(&format!("let {}x{} = 1;", "(".repeat(n), ")".repeat(n))),
        format!("fn f(g: {}real) {{ }}", "fn() -> ".repeat(n)),
        format!("struct S {{ x: {}real{} }}", "(".repeat(n), ",)".repeat(n)),
        around(&format!("print(\"{{{}1}}\")", "-".repeat(n))),
        around(&format!("if {}x {{ }}", "if ".repeat(n))),
    ];
    for text in texts {
        let (_, diagnostics) = parse(FileId::new(0), &text);
        assert!(
            diagnostics.iter().any(|d| d.code.0 == "E0019" || d.code.0 == "E0009"),
            "{} … {diagnostics:#?}",
            &text[..60]
        );
        tokens(FileId::new(0), &text);
    }
}

#[test]
fn long_programs_are_not_nested() {
    let n = 20_000;
    for statement in ["x;", "if a { }", "while a { }", "{ }", "let x = 1;", "f(1 + 2);", "if a { } else { b }"] {
        let text = format!("fn f() {{ {} }}", statement.repeat(n));
        assert!(parse(FileId::new(0), &text).1.is_empty(), "{statement}");
    }
    let items = "fn f() -> int { 1 + 2 }\nstruct S { x: real }\nconst A: int = -1;\n".repeat(n);
    assert!(parse(FileId::new(0), &items).1.is_empty());
    let array = format!("const A: real[{n}] = [{}];", "-1.0 + 2.0, ".repeat(n));
    assert!(parse(FileId::new(0), &array).1.is_empty());
}

/// Words that a mutation may insert.
const WORDS: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    ":",
    "::",
    ".",
    "..",
    "->",
    "=",
    "==",
    "+=",
    "+",
    "-",
    "*",
    "^",
    "@",
    "<",
    "&&",
    "||",
    "|",
    "!",
    "if",
    "else",
    "while",
    "for",
    "in",
    "let",
    "mut",
    "fn",
    "struct",
    "use",
    "const",
    "pub",
    "return",
    "break",
    "emit",
    "print",
    "assert",
    "x",
    "f(",
    "T {",
    "0",
    "1.5",
    "1.",
    "\"",
    "\"{x}\"",
    "\"{\"",
    "/*",
    "*/",
    "//",
    "///",
    "\n",
    "host",
    "é",
    "#",
    "&",
    "++",
    "_",
    "shared",
    "derivative of f {",
    "derivative",
    "of",
    "reverse(x, dy) {",
    "wrt = ",
    "grad(f)(x)",
    "1..n",
    "t.0.1",
    "0x1",
    "99999999999999999999",
];

/// A valid program with a few random edits.
fn mutated(
    u: &mut arbtest::arbitrary::Unstructured<'_>,
    programs: &[(String, String)],
) -> arbtest::arbitrary::Result<String> {
    let mut text = u.choose(programs)?.1.clone();
    for _ in 0..u.int_in_range(1..=6)? {
        let place = |at: usize, text: &str| (at..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap();
        let at = place(u.choose_index(text.len() + 1)?, &text);
        let end = place((at + u.int_in_range(0..=12)?).min(text.len()), &text);
        match u.int_in_range(0..=3)? {
            0 => text.replace_range(at..end, ""),
            1 => text.insert_str(at, u.choose(WORDS)?),
            2 => text.replace_range(at..end, u.choose(WORDS)?),
            _ => {
                let part = text[at..end].to_owned();
                let to = place(u.choose_index(text.len() + 1)?, &text);
                text.insert_str(to, &part);
            }
        }
    }
    Ok(text)
}

#[test]
fn mutated_programs_never_panic() {
    let programs = corpus();
    arbtest::arbtest(|u| {
        swallow(&mutated(u, &programs)?);
        Ok(())
    })
    .budget_ms(budget(1500));
}

#[test]
fn random_bytes_never_panic() {
    arbtest::arbtest(|u| {
        let bytes: Vec<u8> = u.arbitrary()?;
        match decode(FileId::new(0), &bytes) {
            Ok(text) => swallow(&text),
            Err(diagnostic) => assert_eq!(diagnostic.code.0, "E0001"),
        }
        swallow(&String::from_utf8_lossy(&bytes));
        Ok(())
    })
    .budget_ms(budget(500));
}

#[test]
fn random_words_never_panic() {
    arbtest::arbtest(|u| {
        let mut text = String::new();
        for _ in 0..u.int_in_range(0..=80)? {
            text.push_str(u.choose(WORDS)?);
            text.push(' ');
        }
        swallow(&text);
        Ok(())
    })
    .budget_ms(budget(500));
}

/// The comments of a text, sorted: their words, without the spaces at the ends of lines.
fn comments(text: &str) -> Vec<String> {
    let mut comments: Vec<String> = Vec::new();
    let listed = tokens(FileId::new(0), text);
    let mut in_comment = false;
    for line in listed.lines() {
        // Lines of the listing start with a place; the others continue a block comment.
        let kind = line.split_whitespace().nth(1).unwrap_or_default();
        let starts = line.split_whitespace().next().is_some_and(|p| {
            p.split_once(':').is_some_and(|(l, c)| l.parse::<u32>().is_ok() && c.parse::<u32>().is_ok())
        });
        if starts {
            in_comment = matches!(kind, "LineComment" | "BlockComment" | "Doc");
            if in_comment {
                comments.push(line[9..].trim().to_owned());
            }
        } else if in_comment {
            comments.last_mut().unwrap().push_str(line);
        }
    }
    comments.sort();
    comments
}

/// Fails with the first line that differs and some lines around it.
fn assert_same(name: &str, what: &str, before: &str, after: &str) {
    let differs = before.lines().zip(after.lines()).position(|(a, b)| a != b);
    let at = differs.unwrap_or_else(|| before.lines().count().min(after.lines().count()));
    let around = |t: &str| t.lines().skip(at.saturating_sub(8)).take(16).collect::<Vec<_>>().join("\n");
    assert!(before == after, "{name}: {what}\n{}\n=====\n{}", around(before), around(after));
}

/// Formats a valid text and checks what must hold of the result.
fn check_format(name: &str, text: &str) -> String {
    let file = FileId::new(0);
    let once = format(text).unwrap_or_else(|d| panic!("{name}: {d:#?}\n{text}"));
    let (before, after) = (dump(&parse(file, text).0), dump(&parse(file, &once).0));
    assert_same(name, "the tree changed", &before, &after);
    assert_same(name, "the comments changed", &comments(text).join("\n"), &comments(&once).join("\n"));
    let twice = format(&once).unwrap();
    assert_same(name, "not idempotent", &once, &twice);
    once
}

#[test]
fn formatting_keeps_tree_and_comments_and_is_idempotent() {
    for (name, text) in corpus() {
        let formatted = check_format(&name, &text);
        if std::env::var_os("SHOW").is_some() {
            eprintln!("{formatted}");
        }
        for line in formatted.lines() {
            assert!(line.chars().count() <= MAX_WIDTH, "{name}: {line}");
            assert_eq!(line, line.trim_end(), "{name}");
        }
    }
}

/// A signature that is too long for a line.
#[test]
fn parameters_break_before_the_result() {
    let long = "pub fn parameters[d](q: real[d], shared mean: real[d], shared precision: real[d, d], x: real) -> Parameters[d] { x }";
    let wanted = "\
pub fn parameters[d](
    q: real[d],
    shared mean: real[d],
    shared precision: real[d, d],
    x: real,
) -> Parameters[d] {
    x
}
";
    assert_eq!(check_format("long", long), wanted);
    // where there are no parameters, or the result alone is too long, the result takes lines
    let alone = format!("fn f() -> ({}) {{ x }}", ["real[1000, 1000]"; 8].join(", "));
    let broken = check_format("alone", &alone);
    assert!(broken.starts_with("fn f() -> (\n    real[1000, 1000],\n"), "{broken}");
    let fits = "fn f(x: real) -> real[10] {\n    x\n}\n";
    assert_eq!(check_format("fits", fits), fits);
}

#[test]
fn comments_anywhere_survive_formatting() {
    let programs: Vec<(String, Vec<String>)> = corpus()
        .into_iter()
        .map(|(name, text)| {
            let listed = tokens(FileId::new(0), &format(&text).unwrap());
            let words = listed
                .lines()
                .filter(|l| !l.contains("Comment ") && l.len() > 24 && l.contains(':'))
                .map(|l| l[24..].to_owned())
                .collect();
            (name, words)
        })
        .filter(|(name, _)| name != "comments.ab")
        .collect();
    let gaps = [
        " ",
        "\n",
        "\n\n",
        " // c\n",
        "\n// c\n",
        " /* c */ ",
        "\n/* c */\n",
        " /* c */\n",
        "\n/* c */ ",
        " /* c\n d */ ",
    ];
    arbtest::arbtest(|u| {
        let (name, words) = u.choose(&programs)?;
        let mut text = String::new();
        let often = u.int_in_range(1..=20)?;
        for word in words {
            text.push_str(word);
            let odd = u.ratio(1, often)?;
            text.push_str(if word.starts_with("///") {
                "\n"
            } else if odd {
                u.choose(&gaps)?
            } else {
                " "
            });
        }
        check_format(name, &text);
        Ok(())
    })
    .budget_ms(budget(1500));
}

#[test]
fn syntax_errors_as_the_user_sees_them() {
    let mut shown = String::new();
    for (_, program) in bad_programs().into_iter().filter(|(code, _)| code != "E0019") {
        let mut sources = SourceMap::default();
        let file = sources.add("bad.ab", program);
        let (_, diagnostics) = parse(file, &sources.file(file).text);
        shown.push_str(&render(&diagnostics, &sources, false));
        shown.push('\n');
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn one_run_reports_several_slips() {
    let text = "fn f(x: int) -> int {\n    let a = ;\n    let b = 1\n    let c = (2;\n    a + + c;\n    b\n}\nstruct S { x }\nfn g() { if { } }\n";
    let (module, diagnostics) = parse(FileId::new(0), text);
    let codes: Vec<&str> = diagnostics.iter().map(|d| d.code.0).collect();
    assert_eq!(codes, ["E0007", "E0008", "E0009", "E0007", "E0016", "E0015"], "{diagnostics:#?}");
    assert_eq!(module.items.len(), 2, "{}", dump(&module));
}

#[test]
fn every_program_of_the_project_parses_and_can_be_formatted() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<PathBuf> = ["nuts", "examples", "src/std"].iter().map(|f| root.join(f)).collect();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for path in entries.map(|e| e.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "ab") {
                let text = std::fs::read_to_string(&path).unwrap();
                check_format(&path.display().to_string(), &text);
            }
        }
    }
}
