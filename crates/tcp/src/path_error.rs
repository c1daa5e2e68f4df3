//! ICMP errors about the path to a peer.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An ICMP error that names a connection (RFC 792, RFC 4443).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Error)]
pub enum PathError {
    /// A packet was too large for a link ("fragmentation needed", "packet too big"; RFC 1191, RFC 8201).
    #[error("a packet was too big for a link of {mtu} bytes")]
    FragmentationNeeded {
        /// The link's MTU in bytes, IP header included; 0 if the router did not report it (RFC 1191 5).
        mtu: u16,
    },
    /// The host cannot be reached.
    #[error("the host is unreachable")]
    HostUnreachable,
    /// The network cannot be reached.
    #[error("the network is unreachable")]
    NetUnreachable,
    /// No process listens on the port.
    #[error("the port is unreachable")]
    PortUnreachable,
    /// The host does not speak TCP.
    #[error("the protocol is unreachable")]
    ProtocolUnreachable,
    /// A router does not let the packet pass.
    #[error("communication is prohibited")]
    AdminProhibited,
    /// Too many hops.
    #[error("the time to live was exceeded")]
    TimeExceeded,
    /// A header field was not understood.
    #[error("a header field was not understood")]
    ParameterProblem,
}

/// MTUs to try in turn if a router does not report the MTU (RFC 1191 7.1).
const PLATEAUS: [u16; 11] = [
    65_535, 32_000, 17_914, 8166, 4352, 2002, 1492, 1006, 508, 296, 68,
];

/// The probable MTU of a router that does not report it: the next plateau below `packet_len`.
pub(crate) fn plateau_below(packet_len: u32) -> u16 {
    let smaller = |&&mtu: &&u16| u32::from(mtu) < packet_len;
    PLATEAUS.iter().find(smaller).copied().unwrap_or(68)
}
