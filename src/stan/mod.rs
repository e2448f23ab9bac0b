//! Layer 3: programs of Stan, as Stan 2.39 has them, become programs of our own language.
//!
//! ```text
//! model.stan --syntax--> tree --check--> the same tree, known to be a Stan program      once a model, without data
//! data.json  --data----> values of the host
//! both       --translate--> a module of our syntax tree + shared tables --> check, lower, … as for any program
//! ```
//!
//! What depends on data alone is computed while the program is translated; what is left is straight code, comprehensions
//! and loops over numbers that are known. So everything below the syntax is shared with the language.

pub mod check;
pub mod place;
pub mod syntax;
