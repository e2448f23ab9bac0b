//! Pages that do what they say. A block with a name (```` ```stan schools.stan ````) is a file; the commands of a block
//! ```` ```console ```` are run in the folder of these files, one after the other, and what stands below a command is what
//! it prints, on both streams. A line `…` stands for any lines, `…` within one for any text.
//!
//! | block | |
//! |---|---|
//! | `console,fails` | its commands end with an error |
//! | `console,cc` | left out where there is no C compiler |
//! | `console,gpu` | left out where `AUTOBATCH_TEST_DEVICE` is not `cuda` |

use std::process::Command;

use autobatch::program::Codegen;

use super::cli::Folder;
use crate::tools::observed::codegen;

/// A fenced block: what stands after its fence, and its lines.
fn blocks(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut blocks: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut is_open = false;
    for line in page.lines() {
        match (line.strip_prefix("```"), is_open) {
            (Some(_), true) => is_open = false,
            (Some(info), false) => {
                blocks.push((info, Vec::new()));
                is_open = true;
            }
            (None, true) => blocks.last_mut().expect("a block is open").1.push(line),
            (None, false) => {}
        }
    }
    assert!(!is_open, "the last fence is not closed");
    blocks
}

/// Whether a line is what is shown of it, in which `…` is any text.
fn is_shown(line: &str, shown: &str) -> bool {
    let parts: Vec<&str> = shown.split('…').collect();
    let [first, middle @ .., last] = parts.as_slice() else { return line == shown };
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    for part in middle {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

/// Whether lines are what is shown of them, in which a line `…` is any lines.
fn are_shown(lines: &[&str], shown: &[&str]) -> bool {
    match (shown, lines) {
        ([], lines) => lines.is_empty(),
        (["…", shown @ ..], lines) => (0..=lines.len()).any(|skipped| are_shown(&lines[skipped..], shown)),
        ([first, shown @ ..], [line, lines @ ..]) => is_shown(line, first) && are_shown(lines, shown),
        (_, []) => false,
    }
}

/// Whether the commands of a block succeed; `None` where this machine cannot run them.
fn succeeds(info: &str) -> Option<bool> {
    match info {
        "console" => Some(true),
        "console,fails" => Some(false),
        "console,cc" => (codegen() == Codegen::Cc).then_some(true),
        "console,gpu" => std::env::var("AUTOBATCH_TEST_DEVICE").is_ok_and(|device| device == "cuda").then_some(true),
        _ => panic!("a block is a file, or commands: {info}"),
    }
}

/// Runs the commands of a block, and says how many there are.
fn run(lines: &[&str], succeeds: bool, folder: &Folder) -> usize {
    let text = lines.join("\n").replace("\\\n", " ");
    let commands: Vec<&str> = text.strip_prefix("$ ").expect("a command comes first").split("\n$ ").collect();
    for part in &commands {
        let (command, shown) = part.split_once('\n').unwrap_or((part, ""));
        let words = shell_words::split(command).expect("it is as a shell has it");
        assert_eq!(words[0], "autobatch");
        let mut run = Command::new(env!("CARGO_BIN_EXE_autobatch"));
        let output = run.args(&words[1..]).current_dir(&folder.0).output().expect("it starts");
        let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat();
        assert_eq!(output.status.success(), succeeds, "{command}\n{said}");
        let (said, shown): (Vec<&str>, Vec<&str>) = (said.lines().collect(), shown.lines().collect());
        assert!(are_shown(&said, &shown), "{command}\n{}", said.join("\n"));
    }
    commands.len()
}

/// Writes the files of a page into a folder and runs its commands there; blocks of the kinds that are looked at elsewhere
/// are left out. Says how many commands it ran.
pub(super) fn does_what_it_says(page: &str, folder: &Folder, elsewhere: &[&str]) -> usize {
    let mut commands = 0;
    for (info, lines) in blocks(page) {
        if let Some((_, name)) = info.split_once(' ') {
            folder.file(name, lines.join("\n") + "\n");
        } else if !elsewhere.contains(&info) {
            commands += succeeds(info).map_or(0, |succeeds| run(&lines, succeeds, folder));
        }
    }
    commands
}

#[test]
fn what_is_left_out_is_left_out() {
    assert!(is_shown("4 chains, 12 draws", "4 chains, … draws") && !is_shown("4 chains, 12 draws", "3 chains, …"));
    assert!(are_shown(&["a", "b", "c"], &["…", "c"]) && are_shown(&["a"], &["a", "…"]));
    assert!(!are_shown(&["a", "b"], &["a"]) && !are_shown(&["a"], &["…", "b"]) && !are_shown(&[], &["a"]));
}
