//! Any bytes as a program: decoded, parsed, checked. It may be refused; nothing panics or hangs.
#![no_main]

use autobatch::base::{FileId, Id};
use autobatch::program::Program;
use autobatch::syntax::decode;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = decode(FileId::new(0), bytes) else { return };
    match Program::compile(&text) {
        Ok(program) => program.functions().for_each(|name| drop(program.function(name))),
        Err(error) => drop(autobatch::report::render(error.diagnostics(), error.sources(), false)),
    }
});
