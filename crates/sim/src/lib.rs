//! Virtual time, processors, caches, DRAM, wires, and the machine that joins them.

mod event_queue;
pub mod hardware;

pub use event_queue::EventQueue;
