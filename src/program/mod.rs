//! Layer 7: what a host meets: programs, and the files their inputs come from and their outputs go to.

pub mod io;
