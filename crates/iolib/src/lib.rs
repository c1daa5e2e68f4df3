//! IOLib (batching 2.1) between processes: links that join a host and an adapter through put, get and transfers of data.
//!
//! [`ShmHost`] and [`ShmAdapter`] share memory on one machine; applications come to an [`AdapterListener`].
//! Both implement the traits of [`baton_bus::link`], so host and adapter are the same code as in the simulator, and
//! [`LiveLink`], by which they can be waited for: spinning first as long as that pays off ([`Spin`]), sleeping then.

#![warn(missing_docs)]

mod application;
mod arena;
mod counters;
mod handshake;
mod live_link;
mod pool;
mod shm;
mod spin;
pub mod unix_socket;
mod visitors;

pub use application::Application;
pub use arena::{Arena, Filled};
pub use counters::LinkCounters;
pub use handshake::{Geometry, Limits, Refusal, VERSION};
pub use live_link::{LiveLink, wait};
pub use shm::{AdapterListener, ConnectError, ShmAdapter, ShmHost};
pub use spin::Spin;
