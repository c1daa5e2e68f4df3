//! Differential tests of socket calls. A [`Sequence`] of calls runs on the kernel's TCP, with the preloaded library and no moves, and with
//! the preloaded library and moves. Its peer, in the kernel, does what the sequence says. The results of the calls must be equal.
//!
//! | to find | look in |
//! |---|---|
//! | sequences, as data and as text | [`sequence`] |
//! | the calls, made one after another | [`play`] |
//! | the other end of the connections | [`peer`] |
//! | runs, differences, and those that are documented | [`compare`], [`compare::DOCUMENTED`] |
//! | sequences that once found a difference | `tests/corpus` |

pub mod compare;
pub mod peer;
#[allow(unsafe_code)]
pub mod play;
pub mod sequence;

pub use sequence::{Call, Sequence};
