//! The C programs, with calls that stay calls.

fn main() {
    println!("cargo:rerun-if-changed=src/control.c");
    let mut build = cc::Build::new();
    build.file("src/control.c").opt_level(2);
    for flag in ["-fno-inline", "-fno-optimize-sibling-calls"] {
        build.flag_if_supported(flag);
    }
    build.compile("control");
}
