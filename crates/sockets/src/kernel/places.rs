//! Where each connection of a host with an adapter lives, and why, for people.

use baton_host::layer::{Place, SocketState};
use baton_wire::{Endpoint, Time};
use serde::{Deserialize, Serialize};

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceRow {
    /// This end.
    pub local: Endpoint,
    /// The other end.
    pub remote: Endpoint,
    /// `host`, `adapter`, `handing_off`, `restoring` or `ended`.
    pub place: String,
    /// For how long it has been there, ms.
    pub since_ms: u64,
    /// Why it is not on the adapter; none if it is, or if it has not been considered.
    pub why: Option<String>,
    /// How often it went to the adapter.
    pub handoffs: u32,
}

impl PlaceRow {
    /// What a tool shows of a connection.
    pub fn new(now: Time, state: &SocketState) -> Self {
        let place = match state.place {
            Place::Host(_) => "host",
            Place::HandingOff(_) => "handing_off",
            Place::Adapter(_) => "adapter",
            Place::Restoring(_) => "restoring",
            Place::Ended(_) => "ended",
        };
        Self {
            local: state.flow.local,
            remote: state.flow.remote,
            place: place.to_owned(),
            since_ms: now.saturating_since(state.since).as_us() / 1000,
            why: state.why.map(|why| why.name().to_owned()),
            handoffs: state.handoffs,
        }
    }
}
