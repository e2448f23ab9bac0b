//! Any bytes as a program, of our language and of Stan: decoded, parsed, checked, formatted. It may be refused; nothing
//! panics or hangs.
#![no_main]

use autobatch::base::{FileId, Id, SourceMap};
use autobatch::program::Program;
use autobatch::stan::syntax::{NoIncludes, format};
use autobatch::syntax::decode;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = decode(FileId::new(0), bytes) else { return };
    let mut sources = SourceMap::default();
    let main = sources.add("main.stan", text.as_str());
    if let Err(diagnostics) = format(main, &mut sources, &mut NoIncludes) {
        drop(autobatch::report::render(&diagnostics, &sources, false));
    }
    match Program::compile(&text) {
        Ok(program) => program.functions().for_each(|name| drop(program.function(name))),
        Err(error) => drop(autobatch::report::render(error.diagnostics(), error.sources(), false)),
    }
});
