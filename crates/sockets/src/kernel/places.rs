//! Where each connection of a host with an adapter is, and why, as shown to people.

use baton_host::layer::{Place, SocketState};
use baton_wire::{Endpoint, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An application's answer to the broker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplicationAnswer {
    /// One row for each connection.
    pub places: Vec<PlaceRow>,
    /// How often the application left something to the kernel for good, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<String, u64>,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceRow {
    /// Local endpoint.
    pub local: Endpoint,
    /// Remote endpoint.
    pub remote: Endpoint,
    /// `host`, `adapter`, `handing_off`, `restoring` or `ended`.
    pub place: String,
    /// For how long the connection has been there, in ms.
    pub since_ms: u64,
    /// Why the connection is not on the adapter; `None` if it is, or if the policy has not considered it.
    pub why: Option<String>,
    /// How often the connection was handed off to the adapter.
    pub handoffs: u32,
}

impl PlaceRow {
    /// Describes a connection for a tool to show.
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
