//! The `autobatch` command.

fn main() {}
