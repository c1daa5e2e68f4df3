//! A sans-I/O TCP engine.
//!
//! A [`Stack`] holds connections and listeners. It has no clock, no I/O, no threads and no entropy of
//! its own: time and segments are arguments, segments and events are what it gives back.
//! A connection can be taken out of one stack and put into another at any moment ([`Stack::export`],
//! [`Stack::import`]); on the wire nothing shows it.

mod clock;
mod config;
mod congestion;
mod connection;
mod flow_table;
mod isn;
mod listener;
mod payload;
mod portable;
mod receive_buffer;
mod rtt;
mod sack;
mod segment;
mod send_buffer;
mod stack;
mod time_wait;
mod types;
mod wheel;

pub use config::{Config, Congestion};
pub use payload::{Payload, Pieces, Symbolic};
pub use portable::Portable;
pub use segment::Segment;
pub use stack::Stack;
pub use time_wait::PortableTimeWait;
pub use types::{
    CloseReason, ConnId, Event, Handled, ListenerId, Refusal, Refused, State, Stats, WriteError,
};
