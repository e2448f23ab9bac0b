//! Any text as a CFG program and as a stack program: read and verified. What is accepted prints as it is read again.
#![no_main]

use autobatch::{cfg, stack};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(program) = cfg::read(text)
        && cfg::verify(&program).is_empty()
    {
        let printed = program.to_string();
        assert_eq!(cfg::read(&printed).expect("what is printed is read").to_string(), printed);
    }
    if let Ok(program) = stack::read(text)
        && stack::verify(&program).is_empty()
    {
        let printed = program.to_string();
        assert_eq!(stack::read(&printed).expect("what is printed is read").to_string(), printed);
    }
});
