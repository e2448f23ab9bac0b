//! The generator of random programs: what it makes is valid and covers the language.

use autobatch::base::Severity;
use autobatch::program::Program;

use crate::random_programs::{CONSTRUCTS, generate};

#[test]
fn random_programs_are_valid_and_cover_the_language() {
    let mut missing: std::collections::BTreeSet<&str> = CONSTRUCTS.iter().copied().collect();
    let mut invalid = Vec::new();
    for seed in 0..300 {
        let (program, constructs) = generate(seed);
        let text = program.to_string();
        if let Err(error) = Program::compile_named("random.ab", &text) {
            let errors = error.diagnostics().iter().filter(|d| d.severity == Severity::Error);
            let lines = errors.filter_map(|d| {
                let (line, _) = error.sources().line_column(d.labels.first()?.span);
                text.lines().nth(line as usize - 1)
            });
            let lines: Vec<&str> = lines.collect();
            invalid.push(format!("seed {seed}: {error}\n{}", lines.join("\n")));
        }
        missing.retain(|construct| !constructs.contains(construct));
    }
    assert!(invalid.is_empty(), "{} programs are invalid:\n{}", invalid.len(), invalid.join("\n"));
    assert!(missing.is_empty(), "no program has {missing:?}");
}
