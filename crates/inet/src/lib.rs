//! A host's IP layer below TCP, without I/O: it converts frames to segments and segments to frames.
//!
//! An [`Interface`] is between a link and a [`Stack`](baton_tcp::Stack): it finds neighbours (ARP, RFC 826; neighbour
//! discovery, RFC 4861), chooses routes, applies the header rules for hosts (RFC 1122 3.2, RFC 8200), answers echo requests,
//! sends the ICMP errors that a host must send and converts arriving ones to [`PathError`](baton_tcp::PathError)s. A
//! [`Host`] combines an interface and a stack. Time is an argument everywhere; no input causes a panic, and each refused frame is
//! counted by its [`Refusal`].
//!
//! | to find | look in |
//! |---|---|
//! | a host: frames in, connections out, and back | [`Host`], [`Interface`] |
//! | arriving IPv4 and IPv6 packets | `src/interface/v4.rs`, `src/interface/v6.rs` |
//! | leaving packets and their next hops | `src/interface/output.rs`, `src/routes.rs` |
//! | address resolution: messages, and states of neighbours | `src/interface/discovery.rs`, [`Neighbour`] |
//! | what messages look like | `src/arp.rs`, `src/ndp.rs`, `src/icmp.rs` |
//! | merging of consecutive segments | `src/interface/merging.rs` |
//! | forwarding from one interface to another (RFC 1812) | [`Router`], `src/router/` |
//! | parameters, counters, reasons for refusals | [`InterfaceConfig`], [`Stats`], [`Refusal`] |
//!
//! Frames are best processed in batches ([`Host::handle_frames`], [`Host::poll_frames`]): consecutive segments of one connection are
//! sent and received as one, as with Linux's segmentation and receive offload. This is not visible on the wire. Independently of
//! merging, and as in Linux, acknowledgments are sent when frames are polled, so that all segments that arrived before are
//! acknowledged together. An owner that polls after every second full segment acknowledges every second one (RFC 9293 3.8.6.3, RFC
//! 5681 4.2).
//!
//! Deliberately not supported: fragments (a host refuses them explicitly; TCP never creates any), multicast groups (no MLD reports:
//! on a link whose switches snoop for them, neighbour discovery needs flooding), address autoconfiguration, redirects.

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
pub use host::{Arrivals, Arrived, Host, LookedUp, PacketDrops, Passing, Unclaimed, UnclaimedKind};
pub use interface::{Input, Interface, Sent};
/// An address and the length of its network's prefix.
pub use ipnet::IpNet as Cidr;
pub use neighbours::{Neighbour, NeighbourState};
pub use router::{ForwardRefusal, ForwardRefused, Router, RouterStats, Verdict};
pub use stats::{Refusal, Refused, SendRefusal, SendRefused, Stats};
