//! Helpers shared by the tests of several crates and by the fuzz targets. Production code does not depend on this crate.
//!
//! | to find | look in |
//! |---|---|
//! | a random test that prints how to replay a failure; its randomness | [`for_each_seed`], [`Random`] |
//! | a network that loses, delays, reorders and duplicates frames; two ends on virtual time | [`Network`]; [`Pair`] |
//! | bytes that are known at each offset, and a check of those that arrive | [`Pattern`] |
//! | an allocator that counts | [`Counting`] |
//! | short constructors; lists of tests by name | [`endpoint`], [`symbolic`]; [`tests`] |
//! | tests in text: files with dialogues | [`dialogue`] |
//! | TCP segments as text, for packet scripts; timeline files, parsed | [`SegmentText`], [`Timeline`] |
//! | random configurations of TCP, two stacks | `src/tcp.rs`, with the feature `tcp` |
//! | excerpts of public logs | [`excerpts`] |
//! | other processes, and waits for what must happen | [`process`] |
//! | tests that not every machine can run | `src/needs.rs`, with the feature `needs` |

mod counting;
pub mod dialogue;
pub mod excerpts;
mod names;
#[cfg(feature = "needs")]
pub mod needs;
mod network;
mod pattern;
pub mod process;
mod random;
mod seeds;
mod segment;
#[cfg(feature = "tcp")]
mod tcp;
mod timeline;

pub use counting::{Counting, allocations_of, in_use};
pub use names::{endpoint, symbolic};
pub use network::{End, Network, Pair, Way};
pub use pattern::Pattern;
pub use random::Random;
pub use seeds::for_each_seed;
pub use segment::{Numbers, OptionsText, SegmentText, number, relative};
#[cfg(feature = "tcp")]
pub use tcp::{Stacks, any_config, patient_config};
pub use timeline::{Timeline, Told};
