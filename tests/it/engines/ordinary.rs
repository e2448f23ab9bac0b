//! The programs of `benches/ordinary` give what their twins in C give.

use std::path::Path;
use std::process::Command;

use autobatch::bench::model::MODELS;
use autobatch::program::{Codegen, Inputs, Options, Program};
use autobatch::run::NoSink;
use autobatch::types::ArrayData;

use crate::tools::observed;

/// Seeds.
const LANES: i64 = 100;

#[test]
fn programs_give_what_their_twins_give() {
    if observed::codegen() == Codegen::Off {
        return;
    }
    let names: Vec<&str> = MODELS.iter().filter(|model| model.is_ordinary()).map(|model| &*model.name).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/ordinary");
    for (name, wanted) in names.iter().zip(of_twins(&folder, &names)) {
        let program = Program::load(folder.join(format!("{name}.ab"))).unwrap_or_else(|e| panic!("{name}: {e}"));
        let inputs = Inputs::new().lane("n", (0..LANES).collect::<Vec<i64>>());
        let options = Options::default().codegen(Codegen::Off);
        let bound = program.function(name).unwrap().bind(&inputs, &options).expect("it binds");
        let results = bound.run(&options, &NoSink).expect("it runs");
        let ArrayData::Int(found) = &results.outputs()["result"].data else { panic!("{name} gives no ints") };
        assert_eq!(*found, wanted, "{name}");
    }
    let files = std::fs::read_dir(&folder).expect("the folder").flatten();
    let programs = files.filter(|file| file.path().extension().is_some_and(|e| e == "ab"));
    assert_eq!(programs.count(), names.len(), "every program is a model");
}

/// What the twins give for all seeds.
fn of_twins(folder: &Path, names: &[&str]) -> Vec<Vec<i64>> {
    let own = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (own.join("twins.c"), own.join("twins"));
    let declared: String = names.iter().map(|name| format!("int64_t {name}_c(int64_t);\n")).collect();
    let line = |name: &&str| {
        format!("for (int64_t n = 0; n < {LANES}; n++) printf(\"%lld \", (long long){name}_c(n)); puts(\"\");\n")
    };
    let calls: String = names.iter().map(line).collect();
    let text = format!("#include <stdint.h>\n#include <stdio.h>\n{declared}int main(void) {{\n{calls}return 0; }}\n");
    std::fs::write(&source, text).expect("the folder of tests");
    let compile = |compiler: &&str| {
        let mut command = Command::new(compiler);
        command.args(["-O1", "-ffp-contract=off", "-o"]).arg(&program).arg(&source).arg(folder.join("ordinary.c"));
        command.arg("-lm").output().ok()
    };
    let said = ["cc", "gcc", "clang"].iter().find_map(compile).expect("there is a C compiler");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let said = Command::new(&program).output().expect("the twins run");
    let text = String::from_utf8(said.stdout).expect("numbers");
    text.lines().map(|line| line.split_whitespace().map(|n| n.parse().expect("a number")).collect()).collect()
}
