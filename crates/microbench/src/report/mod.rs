//! The experiments of the report on simulated NICs: Figures 5 to 11, and what the report says of them.

mod figures;
mod laboratory;
mod partners;
mod statements;
#[cfg(test)]
mod tests;

pub use figures::{Bar, Series, bars};
pub use laboratory::{Laboratory, Pairing, Point, Results};
pub use partners::{Partners, pairs};
pub use statements::{Part, Statement, Verdict, statements};
