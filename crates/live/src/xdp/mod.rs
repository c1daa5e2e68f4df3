//! XDP programs in the kernel that decide for each frame, before the kernel's stack sees it, whether it belongs to the adapter.
//!
//! [`Lookup`] takes the flows in a map, [`Steering::of_everything`] takes all frames. Frames that are taken are redirected to AF_XDP
//! sockets ([`AfXdp`](crate::port::AfXdp)), one for each receive queue. Programs are attached by links, which the kernel removes when the
//! process ends; only the guard on an old kernel remains, and passes all packets.
//!
//! The programs are short and have no loops. A small assembler generates their instructions, and a few commands of bpf(2) load them.
//! Loaders (`aya`, `libbpf-rs`) would need an object file from a compiler: clang, or a nightly Rust with a linker of its own, wherever
//! Baton is built; or unreadable bytes in the repository.
//!
//! ```no_run
//! # use baton_live::port::{AfXdp, AfXdpConfig};
//! # use baton_live::xdp::{Lookup, LookupConfig, XdpError};
//! # fn capture(flow: baton_wire::Flow) -> Result<(), XdpError> {
//! let lookup = Lookup::attach("eth1", LookupConfig::default())?;
//! let mut port = AfXdp::with_lookup("eth1", &AfXdpConfig::default(), &lookup)?;
//! lookup.insert(&flow)?; // from here on its segments come to the port
//! lookup.remove(&flow)?; // and from here on to the kernel again
//! # Ok(())
//! # }
//! ```

mod assembler;
mod bpf;
mod clsact;
mod error;
mod guard;
mod ingress;
mod injector;
mod key;
mod lookup;
mod programs;
mod sequence;
mod steering;
mod withhold;

pub use error::XdpError;
pub use guard::GuardKind;
pub use injector::Injector;
pub use lookup::{Lookup, LookupConfig, LookupCounters, Verdict};
pub use sequence::{Sequence, SequenceReader};
pub use steering::{Mode, Steering};
pub use withhold::Withheld;
