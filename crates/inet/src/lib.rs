//! A host's IP layer below TCP, without I/O: frames go in, segments come out, and the other way round.
//!
//! An [`Interface`] stands between a link and a [`Stack`](baton_tcp::Stack): it finds neighbours (ARP, RFC 826; neighbour
//! discovery, RFC 4861), chooses routes, applies the header rules for hosts (RFC 1122 3.2, RFC 8200), answers echo requests,
//! sends the ICMP errors that a host must send and turns those that arrive into [`PathError`](baton_tcp::PathError)s. A
//! [`Host`] is an interface and a stack joined. Time is an argument everywhere; whatever bytes come in, nothing panics, and
//! everything that is refused has a [`Refusal`] that is counted.
//!
//! Frames go best in batches ([`Host::handle_frames`], [`Host::poll_frames`]): segments of one connection that follow each other
//! are cut as one and taken in as one, as by Linux's segmentation and receive offload. On the wire nothing shows it but, as with
//! Linux, one thing that is so without merging too: acknowledgments are sent when frames are polled, so that what arrived before
//! is acknowledged together, however many segments it was. Who polls after every second full segment acknowledges every second
//! one (RFC 9293 3.8.6.3, RFC 5681 4.2).
//!
//! A [`Router`] is several interfaces and a table: it forwards from one to another (RFC 1812).
//!
//! Not there, on purpose: fragments (a host refuses them by name; TCP never makes any), multicast groups (no MLD reports:
//! on a link whose switches snoop for them, neighbour discovery needs a flood), address autoconfiguration, redirects.
//!
//! Where to look: `interface` holds the parts together, with a file each for what arrives by IPv4 and by IPv6, for ICMP, for
//! neighbours and for what is sent; `neighbours` is the state machine of address resolution; `arp`, `ndp` and `icmp`
//! read and write messages.

mod addresses;
mod arp;
mod config;
mod host;
mod icmp;
mod interface;
mod ndp;
mod neighbours;
mod rate_limit;
mod router;
mod routes;
mod stats;

pub use config::{ConfigError, InterfaceConfig, Medium, Route};
pub use host::{Arrivals, Arrived, Host, LookedUp, PacketDrops, Unclaimed};
pub use interface::{Input, Interface, Sent};
/// An address and the length of its network's prefix.
pub use ipnet::IpNet as Cidr;
pub use neighbours::{Neighbour, NeighbourState};
pub use router::{FibEntry, ForwardRefusal, ForwardRefused, NextHop, Router, RouterStats, Verdict};
pub use stats::{Refusal, Refused, SendRefusal, SendRefused, Stats};
