//! Programs in the kernel that decide for each frame, before the kernel's stack sees it, whether it is the adapter's (XDP).
//!
//! [`Lookup`] has a map of flows, [`Steering::of_everything`] takes all there is. What is taken goes to AF_XDP sockets
//! ([`AfXdp`](crate::port::AfXdp)), one for each receive queue. A [`FastPath`] forwards for a router, and leaves the rest to it. Programs are attached by links, which the kernel takes back when the
//! process is gone, but for an old kernel's guard, which stays and lets all pass.
//!
//! The programs are short and have no loops. They are instructions that a small assembler puts together, and are loaded by the few
//! commands of bpf(2) that it takes. Loaders (`aya`, `libbpf-rs`) want an object file, which a compiler has made: clang, or a nightly Rust
//! with a linker of its own, wherever Baton is built; or bytes in the repository that nobody can read.
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
mod fast_path;
mod features;
mod forward;
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
pub use fast_path::{FastPath, FastPathConfig, FastPathKind};
pub use guard::GuardKind;
pub use injector::Injector;
pub use lookup::{Lookup, LookupConfig, LookupCounters, Verdict};
pub use sequence::{Sequence, SequenceReader};
pub use steering::{Mode, Steering};
pub use withhold::Withheld;
