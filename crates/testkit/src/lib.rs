//! Helpers shared by the tests of several crates and by the fuzz targets. Production code does not depend on this crate.
//!
//! - [`for_each_seed`] runs a random test and prints how to replay a failure; [`Random`] provides its randomness.
//! - [`Network`] loses, delays, reorders and duplicates frames.
//! - [`Pattern`] generates bytes that are known at each offset, and checks the bytes that arrive.
//! - [`Counting`] is an allocator that counts.
//! - [`endpoint`] and [`symbolic`] are short constructors.
//! - [`SegmentText`] is a TCP segment in text, for packet scripts.
//! - [`Timeline`] is a parsed timeline file.
//! - [`excerpts`] finds excerpts of public logs.
//! - `needs`, a feature, runs tests that not every machine can run.

mod counting;
pub mod excerpts;
mod names;
#[cfg(feature = "needs")]
pub mod needs;
mod network;
mod pattern;
mod random;
mod seeds;
mod segment;
mod timeline;

pub use counting::{Counting, allocations_of, in_use};
pub use names::{endpoint, symbolic};
pub use network::Network;
pub use pattern::Pattern;
pub use random::Random;
pub use seeds::for_each_seed;
pub use segment::{Numbers, OptionsText, SegmentText, number, relative};
pub use timeline::{Timeline, Told};
