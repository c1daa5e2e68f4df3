//! What the tests of several crates share, and the fuzz targets. Nothing that is built for use depends on it.
//!
//! - [`for_each_seed`] runs a random test and says how to replay what fails; [`Random`] is where its randomness comes from.
//! - [`Network`] loses, delays, reorders and duplicates frames.
//! - [`Pattern`] makes bytes that are known at each offset, and checks those that arrive.
//! - [`Counting`] is an allocator that counts.
//! - [`endpoint`] and [`symbolic`] are short words.
//! - [`SegmentText`] is a TCP segment in text, for packet scripts.
//! - [`Timeline`] is one that was written, read again.

mod counting;
mod names;
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
