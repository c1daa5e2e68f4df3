//! A sans-I/O TCP engine.
//!
//! A [`Stack`] holds connections and listeners. It has no clock, no I/O, no threads and no entropy of
//! its own: time and segments are arguments, segments and events are what it gives back.
//! A connection can be taken out of one stack and put into another at any moment ([`Stack::export`],
//! [`Stack::import`]); on the wire nothing shows it.

mod config;
mod payload;
mod portable;
mod segment;
mod stack;

pub use config::{Config, Congestion};
pub use payload::{Payload, Pieces, Symbolic};
pub use portable::Portable;
pub use segment::Segment;
pub use stack::{CloseReason, ConnId, Event, Handled, ListenerId, Refusal, Stack, State, Stats, WriteError};
