//! The generator of random programs: what it makes is valid and covers the language.

use std::time::{Duration, Instant};

use autobatch::base::Severity;
use autobatch::program::{Inputs, Options, Program};
use autobatch::types::{Array, Type};

use crate::tools::observed::{Configuration, difference};
use crate::tools::random_programs::{self, CONSTRUCTS, generate, minimise};

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

#[test]
fn the_comparison_sees_a_difference_and_the_minimiser_keeps_it() {
    // A program fails here when it draws: another seed gives another result.
    let draws = |program: &random_programs::Program| {
        let Ok(program) = Program::compile(&program.to_string()) else { return false };
        let function = program.function("entry").expect("an entry");
        let inputs = function.signature().ports.iter().fold(Inputs::new(), |inputs, port| {
            let extents = port.extents.iter().map(|d| if d.terms.is_empty() { d.constant as usize } else { 3 });
            let shape: Vec<usize> = (!port.shared).then_some(2).into_iter().chain(extents).collect();
            let zeros = Array::zeros(&Type::new(port.dtype, shape));
            if port.shared { inputs.shared(&port.name, zeros) } else { inputs.lane(&port.name, zeros) }
        });
        let observed = [1, 2].map(|seed| {
            let options = Options::default().seed(seed).max_supersteps(5000);
            Configuration::scalar(&options).observe(&function, &inputs).expect("runs")
        });
        difference(&observed[0], &observed[1]).is_some()
    };
    let (program, _) = (0..).map(generate).find(|(program, _)| draws(program)).expect("many programs draw");
    let before = program.to_string().len();
    let small = minimise(program, Instant::now() + Duration::from_secs(5), &mut |p| draws(p));
    assert!(draws(&small));
    assert!(small.to_string().len() < before, "{small}");
}
