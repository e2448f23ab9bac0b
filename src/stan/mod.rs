//! Layer 3: programs of Stan, as Stan 2.39 has them, become programs of our own language.
//!
//! ```text
//! model.stan --syntax--> tree --check--> the same tree, known to be a Stan program      once a model, without data
//! data.json  --data----> values of the host
//! both       --trace---> a graph of what lanes compute --emit--> text of our language + tables that all lanes share
//! ```
//!
//! What depends on data alone is computed while the program is translated; what is left is straight code, comprehensions
//! and loops over numbers that are known. So everything below the syntax is shared with the language.

mod axes;
pub mod check;
mod data;
mod elems;
mod emit;
mod graph;
mod lacking;
mod origin;
pub mod place;
pub mod syntax;
mod trace;
mod translate;
mod value;

pub use data::StanData;
pub use origin::placed;
pub use trace::{HostFunctions, Taken};
pub use translate::{
    Explained, OfValues, Output, Terms, Translation, explain, quantities, standing, translate, unconstrain, united,
    until,
};
