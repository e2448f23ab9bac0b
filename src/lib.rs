//! autobatch runs a program that is written for one example for many examples at once, however differently they branch,
//! loop and recurse: each *lane* of a batch has its own program counter and its own stacks, and a machine runs, again
//! and again, one basic block for all lanes that wait at it.
//!
//! # A program for one, a batch of many
//!
//! ```
//! use autobatch::{Inputs, Options, Program};
//! use ndarray::array;
//!
//! let program = Program::compile(
//!     "pub fn fib(n: int) -> int {
//!          if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
//!      }",
//! )?;
//! let fib = program.function("fib")?;
//! let results = fib.run(&Inputs::new().lane("n", array![0_i64, 1, 10, 20]), &Options::default())?;
//! assert_eq!(results.int("result")?, array![0_i64, 1, 55, 6765].into_dyn());
//! # Ok::<(), autobatch::Error>(())
//! ```
//!
//! Inputs are given for each lane ([`Inputs::lane`]) or once for all ([`Inputs::shared`]); outputs come back as views
//! by name and type, with the lanes along the first axis. The language is in `grammar/REFERENCE.md`.
//!
//! # How it runs
//!
//! Every [`Engine`], precision aside, gives every lane the same bits; [`Options`] choose, and are built up from
//! `Options::default()`.
//!
//! ```
//! use autobatch::{Engine, Inputs, Options, Program};
//! use ndarray::array;
//!
//! let program = Program::compile("pub fn noisy(x: real) -> real { x + random_normal() }")?;
//! let noisy = program.function("noisy")?;
//! let inputs = Inputs::new().lane("x", array![0.5, 1.5]);
//! let options = Options::default().seed(7).threads(1);
//! let machine = noisy.run(&inputs, &options)?;
//! let reference = noisy.run(&inputs, &options.clone().engine(Engine::Scalar))?;
//! assert_eq!(machine.real("result")?, reference.real("result")?);
//! # Ok::<(), autobatch::Error>(())
//! ```
//!
//! # A lane that fails
//!
//! A lane that traps stops by itself; the others go on, and its row means nothing.
//!
//! ```
//! use autobatch::{Inputs, Options, Program, TrapKind};
//! use ndarray::array;
//!
//! let program = Program::compile("pub fn share(of: int, among: int) -> int { of / among }")?;
//! let inputs = Inputs::new().lane("of", array![6_i64, 6]).lane("among", array![3_i64, 0]);
//! let results = program.function("share")?.run(&inputs, &Options::default())?;
//! assert_eq!(results.int("result")?[[0]], 2);
//! assert_eq!((results.traps()[0].position, results.traps()[0].kind), (1, TrapKind::DivisionByZero));
//! # Ok::<(), autobatch::Error>(())
//! ```
//!
//! What makes no sense is an [`Error`] before lanes run, with its [`ErrorKind`]: a program with mistakes, an input of a
//! wrong shape, an option that there is not.
//!
//! ```
//! use autobatch::{ErrorKind, Options};
//!
//! let error = Options::default().without_pass("inlining").unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::Option);
//! assert!(error.to_string().starts_with("no compiler pass `inlining`: there is "));
//! ```
//!
//! # Gradients
//!
//! ```
//! use autobatch::{Inputs, Options, Program};
//! use ndarray::array;
//!
//! let program = Program::compile("pub fn energy(x: real[3]) -> real { 0.5 * dot(x, x) }")?;
//! let gradient = program.gradient("energy", &[])?;
//! let inputs = Inputs::new().lane("x", array![[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]]);
//! let results = gradient.function()?.run(&inputs, &Options::default())?;
//! assert_eq!(results.real("result.0")?, array![7.0, 0.5].into_dyn());
//! assert_eq!(results.real("result.1")?, array![[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]].into_dyn());
//! # Ok::<(), autobatch::Error>(())
//! ```
//!
//! # Sampling
//!
//! [`Sampler`] draws from a posterior by the NUTS that ships, written in the language itself: chains are lanes.
//!
//! ```
//! use autobatch::Sampler;
//!
//! let normal = "pub fn log_density(q: real[2]) -> real { -0.5 * dot(q, q) }";
//! let samples = Sampler::of_source(normal).chains(8).warmup(200).draws(100).seed(1).run()?;
//! // Chain × draw × coordinate.
//! assert_eq!(samples.real("q")?.shape(), [8, 100, 2]);
//! assert!(samples.row("q[1]").is_some_and(|row| row.mean.abs() < 0.2 && row.rhat < 1.05));
//! # Ok::<(), autobatch::Error>(())
//! ```
//!
//! Data, settings of the sampler, progress and cancellation are on the page of [`Sampler`], and
//! `examples/eight_schools.rs` has them in use.
//!
//! # Inside
//!
//! The other modules are the rooms of the compiler and the machine, which `ARCHITECTURE.md` shows. They are public for
//! the tests and benchmarks of the crate, are not in this documentation, and may change with every version.

#![cfg_attr(
    not(all(feature = "bench", feature = "cli", feature = "codegen")),
    allow(dead_code, unused_imports, reason = "what only the parts use that are left out stays where it belongs")
)]

#[doc(hidden)]
pub mod analysis;
pub mod backend;
#[doc(hidden)]
pub mod base;
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench;
#[doc(hidden)]
pub mod cfg;
#[doc(hidden)]
pub mod check;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
#[doc(hidden)]
pub mod exec;
#[doc(hidden)]
pub mod hir;
#[doc(hidden)]
pub mod interp;
#[doc(hidden)]
pub mod lower;
#[doc(hidden)]
pub mod lsp;
#[doc(hidden)]
pub mod mcmc;
#[doc(hidden)]
pub mod parts;
mod picture;
#[doc(hidden)]
pub mod pipeline;
#[doc(hidden)]
pub mod plan;
#[doc(hidden)]
pub mod prim;
pub mod program;
#[doc(hidden)]
pub mod report;
pub mod run;
pub mod sampler;
#[doc(hidden)]
pub mod stack;
#[doc(hidden)]
pub mod stan;
#[doc(hidden)]
pub mod store;
#[doc(hidden)]
pub mod syntax;
#[doc(hidden)]
pub mod transform;
pub mod types;
#[doc(hidden)]
pub mod unit;

/// Elementary functions, sums and random bits that every engine shares.
#[doc(hidden)]
pub use autobatch_vmath as vmath;

pub use program::{
    Arrays, Bound, Codegen, Engine, Error, ErrorKind, Function, Gradient, Inputs, Options, Program, Results, stoppable,
};
pub use run::{Execution, NoSink, Record, Schedule, Settings, Sink, Stats, Trap, TrapKind};
pub use sampler::{Sampler, Samples};
pub use types::{Array, Precision};
