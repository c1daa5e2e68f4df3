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
    /// The adapter's addresses. Sockets may be bound to them, and outgoing connections use one of them.
    pub addresses: Vec<IpAddr>,
    /// First port of the range from which outgoing connections without a port get one (RFC 6056 3.2).
    #[schemars(range(min = 1))]
    pub first_port: u16,
    /// Last port of the range from which outgoing connections without a port get one.
    #[schemars(range(min = 1))]
    pub last_port: u16,
    /// Seed that makes the choice of ports hard to guess (RFC 6056 3.3.3).
    pub port_seed: u64,
    /// Depth of each application's queue of responses, descriptors.
    #[schemars(range(min = 1), extend("x-unit" = "descriptors"))]
    pub ring_depth: u32,
    /// SENDs of a socket that are found to have been fetched together are answered by one response (batching 4).
    pub cumulative_sends: bool,
    /// Maximum number of bytes of received data that travel inside the response (batching 2.3); 0: never.
    #[schemars(range(max = MOST_INLINE_BYTES), extend("x-unit" = "bytes"))]
    pub most_inline: u32,
    /// Responses that report received data do not wait for others.
    pub data_at_once: bool,
    /// Data that arrives while the host has posted no buffer, and the end of the connection behind such data, are reported by
    /// [`Outcome::Unread`](baton_bus::descriptor::Outcome). Live hosts need these reports for applications that poll sockets.
    #[serde(skip)]
    pub reports_unread: bool,
    /// Maximum number of applications.
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    pub most_sessions: u32,
    /// Maximum number of sockets of one application, including those reserved by its ACCEPTs.
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    pub most_sockets: u32,
    /// Maximum number of SENDs of one socket that wait to be fetched.
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    pub most_sends: u32,
    /// Maximum number of RECVs of one socket that wait for data.
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    pub most_receives: u32,
    /// Maximum number of ACCEPTs of one listener that wait for connections.
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    pub most_accepts: u32,
    /// Maximum number of connections that wait for ACCEPTs at one listener. A LISTEN that asks for more gets this many.
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    pub most_backlog: u32,
    /// Largest send or receive buffer that an option may ask for, bytes.
    pub most_buffer_bytes: u32,
    /// Connections that an application left behind are reset if they have not ended after this time, milliseconds.
    pub drain_ms: u32,
    /// Maximum number of connections that applications left behind and that may still end in order; others are reset.
    pub most_drained: u32,
    /// Hard_Limit: maximum number of imported connections at a time. Not read from files: a simulated NIC takes this field, the next two
    /// and `cache_bytes` from [`crate::Config`].
    #[serde(skip)]
    pub hard_limit: u32,
    /// Load control, which keeps Soft_Limit.
    #[serde(skip)]
    pub load_control: LoadControl,
    /// On-board memory; none: without a limit.
    #[serde(skip)]
    pub memory: Option<OnBoardMemory>,
    /// Maximum time that an EXPORT waits for its connection to settle. Meanwhile the connection sends nothing new, until all sent data is
    /// acknowledged and the received data has no hole. None: the connection leaves as it is.
    #[serde(skip)]
    pub settle: Option<Span>,
    /// Largest state of an imported connection, including its data, bytes.
    pub most_state_bytes: u32,
    /// Maximum number of RECVs of one packet socket that wait for packets, and of its SENDs in progress.
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    pub most_packets: u32,
    /// Data cache of each application that asks for one, bytes; 0: there is none.
    #[serde(skip)]
    pub cache_bytes: u32,
    /// Maximum number of INSERTs of one application that wait to be fetched.
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    pub most_inserts: u32,
    /// Batching of responses. Its `max_transfer_bytes` is also the longest buffer of a SEND or RECV.
    pub batching: Batching,
}

impl Default for AdapterConfig {
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            // The default range of Linux.
            first_port: 32_768,
            last_port: 60_999,
            port_seed: 0,
            ring_depth: 128,
            cumulative_sends: false,
            most_inline: 0,
            data_at_once: true,
            reports_unread: false,
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

/// Invalid parameters of an adapter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdapterConfigError {
    /// The batching parameters are invalid.
    #[error(transparent)]
    Batching(#[from] BatchingError),
    /// A limit is zero but must not be.
    #[error("{0} = 0: expected 1 or more")]
    Zero(&'static str),
    /// The port range is empty.
    #[error("first_port = {first}, last_port = {last}: expected 1 <= first_port <= last_port")]
    Ports {
        /// First port of the range.
        first: u16,
        /// Last port of the range.
        last: u16,
    },
    /// Descriptors cannot hold this many bytes of inline data.
    #[error("most_inline = {0}: expected at most {max}", max = MOST_INLINE_BYTES)]
    Inline(u32),
    /// A limit is too large.
    #[error("{field} = {value}: expected at most {limit}")]
    TooMany {
        /// Name of the limit.
        field: &'static str,
        /// The requested value.
        value: u32,
        /// The largest accepted value.
        limit: u32,
    },
}

impl AdapterConfigError {
    /// Returns the name of the parameter with its table, its value, and the accepted values.
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

/// Maximum of any limit that is counted in slots.
const MOST_SLOTS: u32 = 1 << 24;

impl AdapterConfig {
    /// Checks that an adapter can work with these parameters.
    ///
    /// # Errors
    /// Names the invalid parameter and the accepted values.
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
    fn impossible_parameters_are_named() {
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
            "first_port = 61000, last_port = 60999: expected 1 <= first_port <= last_port"
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
