//! A connection's portable state: everything needed to go on elsewhere.

use crate::payload::Payload;
use crate::stack::State;
use baton_wire::Flow;
use serde::{Deserialize, Serialize};

/// Versioned state of one connection, buffers included. Times are *remaining* times, so it holds on any clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Portable<P> {
    /// Format version.
    pub version: u16,
    /// The connection, as its owner names it.
    pub flow: Flow,
    /// State of RFC 9293 3.3.2.
    pub state: State,
    /// What was written and is not yet acknowledged, in order.
    pub send_buffer: Vec<P>,
    /// What was received in order and not yet read, in order.
    pub receive_buffer: Vec<P>,
}

impl<P: Payload> Portable<P> {
    /// Bytes of NIC or host memory that holding this connection takes, data not counted.
    pub fn memory_len(&self) -> usize {
        todo!()
    }
}
