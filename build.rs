//! Builds the parsers from the grammars in `grammar`: `autobatch.lalrpop` and `stan.lalrpop`.

use std::path::PathBuf;

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let built = lalrpop::Configuration::new().set_in_dir(root.join("grammar")).emit_rerun_directives(true).process();
    if let Err(error) = built {
        println!("cargo:error=grammar: {error}");
        std::process::exit(1);
    }
}
