//! Parameters of an adapter with sockets.

use super::on_board::OnBoardMemory;
use crate::config::LoadControl;
use baton_bus::descriptor::MOST_INLINE_BYTES;
use baton_bus::{Batching, BatchingError, Descriptor};
use baton_wire::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Parameters of an [`Adapter`](super::Adapter).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdapterConfig {
    /// The adapter's addresses. Sockets may be bound to them, and connections that are opened have one of them.
    pub addresses: Vec<IpAddr>,
    /// The first of the ports that are given to connections that are opened without one (RFC 6056 3.2).
    #[schemars(range(min = 1))]
    pub first_port: u16,
    /// The last of them.
    #[schemars(range(min = 1))]
    pub last_port: u16,
    /// Makes the choice of ports hard to guess (RFC 6056 3.3.3).
    pub port_seed: u64,
    /// Depth of each application's queue of responses, descriptors.
    #[schemars(range(min = 1), extend("x-unit" = "descriptors"))]
    pub ring_depth: u32,
    /// Sends of a socket that are found fetched together are answered by one response (batching 4).
    pub cumulative_sends: bool,
    /// Received data of at most so many bytes travels inside its response (batching 2.3); 0: never.
    #[schemars(range(max = MOST_INLINE_BYTES), extend("x-unit" = "bytes"))]
    pub most_inline: u32,
    /// Responses that tell of data do not wait for others.
    pub data_at_once: bool,
    /// Applications at most.
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    pub most_sessions: u32,
    /// Sockets of one application at most, those reserved by its ACCEPTs among them.
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    pub most_sockets: u32,
    /// SENDs of one socket that wait to be fetched, at most.
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    pub most_sends: u32,
    /// RECVs of one socket that wait for data, at most.
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    pub most_receives: u32,
    /// ACCEPTs of one listener that wait for connections, at most.
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    pub most_accepts: u32,
    /// Connections that may wait for ACCEPTs at one listener, at most; what LISTEN asks for beyond it is cut.
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    pub most_backlog: u32,
    /// Largest send or receive buffer that an option may ask for, bytes.
    pub most_buffer_bytes: u32,
    /// Connections that an application left behind are reset if they are not over after so long, milliseconds.
    pub drain_ms: u32,
    /// Connections that are left to come to their end in this way, at most.
    pub most_drained: u32,
    /// Hard_Limit: the most connections that may be imported at a time. Not in files: a simulated NIC has it in [`crate::Config`], and
    /// the next ones.
    #[serde(skip)]
    pub hard_limit: u32,
    /// Load control, which keeps Soft_Limit.
    #[serde(skip)]
    pub load_control: LoadControl,
    /// On-board memory; none: without a limit.
    #[serde(skip)]
    pub memory: Option<OnBoardMemory>,
    /// An EXPORT waits at most so long for its connection to come to rest: nothing new is sent until all is acknowledged and nothing
    /// that was received has a hole. None: the connection leaves as it is.
    #[serde(skip)]
    pub settle: Option<Span>,
    /// Largest state of a connection that is imported, its data included, bytes.
    pub most_state_bytes: u32,
    /// RECVs of one packet socket that wait for packets, and SENDs under way, at most.
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    pub most_packets: u32,
    /// Data cache of each application that asks for one, bytes; 0: there is none.
    #[serde(skip)]
    pub cache_bytes: u32,
    /// INSERTs of one application that wait to be fetched, at most.
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    pub most_inserts: u32,
    /// Batching of responses. Its `max_transfer_bytes` is also the longest buffer of a SEND or RECV.
    pub batching: Batching,
}

impl Default for AdapterConfig {
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            // The range of Linux.
            first_port: 32_768,
            last_port: 60_999,
            port_seed: 0,
            ring_depth: 128,
            cumulative_sends: false,
            most_inline: 0,
            data_at_once: true,
            most_sessions: 64,
            most_sockets: 1 << 16,
            most_sends: 128,
            most_receives: 128,
            most_accepts: 1024,
            most_backlog: 4096,
            most_buffer_bytes: 4 << 20,
            drain_ms: 60_000,
            most_drained: 1 << 16,
            hard_limit: 1 << 16,
            load_control: LoadControl::default(),
            memory: None,
            settle: None,
            most_state_bytes: 16 << 20,
            most_packets: 4096,
            cache_bytes: 0,
            most_inserts: 256,
            batching: Batching::default(),
        }
    }
}

/// Parameters of an adapter that could not work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdapterConfigError {
    /// The batching cannot work.
    #[error(transparent)]
    Batching(#[from] BatchingError),
    /// A limit is zero that must not be.
    #[error("{0} = 0: expected 1 or more")]
    Zero(&'static str),
    /// There is no port to choose from.
    #[error("first_port = {first}, last_port = {last}: expected 1 or more, in this order")]
    Ports {
        /// The first.
        first: u16,
        /// The last.
        last: u16,
    },
    /// So much does not fit into descriptors.
    #[error("most_inline = {0}: expected at most {max}", max = MOST_INLINE_BYTES)]
    Inline(u32),
    /// A limit is larger than anything can be counted.
    #[error("{field} = {value}: expected at most {limit}")]
    TooMany {
        /// The limit's name.
        field: &'static str,
        /// What was asked for.
        value: u32,
        /// What can be.
        limit: u32,
    },
}

impl AdapterConfigError {
    /// The parameter, with the table that it is in, what it is, and what was expected of it.
    pub fn parts(&self) -> (String, u32, String) {
        match *self {
            Self::Batching(ref error) => {
                let (field, value, expected) = error.parts();
                (format!("batching.{field}"), value, expected)
            }
            Self::Zero(field) => (field.to_owned(), 0, "1 or more".to_owned()),
            Self::Ports { first, last } => (
                "first_port".to_owned(),
                first.into(),
                format!("1 to last_port = {last}"),
            ),
            Self::Inline(bytes) => (
                "most_inline".to_owned(),
                bytes,
                format!("at most {MOST_INLINE_BYTES}"),
            ),
            Self::TooMany {
                field,
                value,
                limit,
            } => (field.to_owned(), value, format!("at most {limit}")),
        }
    }
}

/// Most of anything that is counted in slots.
const MOST_SLOTS: u32 = 1 << 24;

impl AdapterConfig {
    /// Whether an adapter can work with these parameters.
    ///
    /// # Errors
    /// Names the parameter that it cannot work with, and what was expected.
    pub fn validate(&self) -> Result<(), AdapterConfigError> {
        self.batching.validate(self.ring_depth, Descriptor::BYTES)?;
        for (field, value) in [
            ("most_sessions", self.most_sessions),
            ("most_sockets", self.most_sockets),
            ("most_sends", self.most_sends),
            ("most_receives", self.most_receives),
            ("most_accepts", self.most_accepts),
            ("most_backlog", self.most_backlog),
            ("most_packets", self.most_packets),
            ("most_inserts", self.most_inserts),
        ] {
            if value == 0 {
                return Err(AdapterConfigError::Zero(field));
            }
            if value > MOST_SLOTS {
                let limit = MOST_SLOTS;
                return Err(AdapterConfigError::TooMany {
                    field,
                    value,
                    limit,
                });
            }
        }
        let (first, last) = (self.first_port, self.last_port);
        if first == 0 || first > last {
            return Err(AdapterConfigError::Ports { first, last });
        }
        if self.most_inline as usize > MOST_INLINE_BYTES {
            return Err(AdapterConfigError::Inline(self.most_inline));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_cannot_work_are_named() {
        let refused = |change: fn(&mut AdapterConfig)| {
            let mut config = AdapterConfig::default();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        assert_eq!(AdapterConfig::default().validate(), Ok(()));
        assert_eq!(
            refused(|config| config.most_sends = 0),
            "most_sends = 0: expected 1 or more"
        );
        assert_eq!(
            refused(|config| config.most_sockets = u32::MAX),
            "most_sockets = 4294967295: expected at most 16777216"
        );
        assert_eq!(
            refused(|config| config.first_port = 61_000),
            "first_port = 61000, last_port = 60999: expected 1 or more, in this order"
        );
        assert_eq!(
            refused(|config| config.most_inline = 241),
            "most_inline = 241: expected at most 240"
        );
        assert_eq!(
            refused(|config| config.batching.level = 0),
            "level = 0: expected 1 or more"
        );
        assert_eq!(
            refused(|config| config.ring_depth = 0),
            "level = 1: expected 1 to 0, the depth of the ring"
        );
    }

    #[test]
    fn unknown_keys_are_refused() {
        assert!(serde_json::from_str::<AdapterConfig>(r#"{"data_at_once": false}"#).is_ok());
        assert!(serde_json::from_str::<AdapterConfig>(r#"{"hurry": false}"#).is_err());
    }
}
