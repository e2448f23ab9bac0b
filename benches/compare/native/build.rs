//! The C programs, those of control flow with calls that stay calls, and the versions of the compilers.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=src/control.c");
    let mut build = cc::Build::new();
    build.file("src/control.c").opt_level(2);
    for flag in ["-fno-inline", "-fno-optimize-sibling-calls"] {
        build.flag_if_supported(flag);
    }
    build.compile("control");
    println!("cargo:rerun-if-changed=../../ordinary/ordinary.c");
    let mut ordinary = cc::Build::new();
    ordinary.file("../../ordinary/ordinary.c").opt_level(2);
    for flag in ["-march=native", "-ffp-contract=off"] {
        ordinary.flag_if_supported(flag);
    }
    ordinary.compile("ordinary");
    let first_line = |mut command: Command| {
        let said = command.arg("--version").output().map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
        said.ok().and_then(|text| text.lines().next().map(str::to_owned)).unwrap_or_default()
    };
    let rustc = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()));
    println!("cargo:rustc-env=RUST_COMPILER={}", first_line(rustc));
    println!("cargo:rustc-env=C_COMPILER={}", first_line(build.get_compiler().to_command()));
}
