//! The adapter: the engine serves applications of other processes.

mod rows;

pub use rows::{ApplicationRow, BusRow, RingRow};
