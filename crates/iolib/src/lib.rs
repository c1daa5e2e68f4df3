//! IOLib (batching 2.1) between processes: links that join a host and an adapter through put, get and transfers of data.
//!
//! [`ShmHost`] and [`ShmAdapter`] share memory on one machine; applications come to an [`AdapterListener`]. [`TcpHost`] and
//! [`TcpAdapter`] are joined by a TCP connection, so that they can be on two machines. [`AnyHostLink`] and [`AnyAdapterLink`] are
//! either of them. All implement the traits of [`baton_bus::link`], so host and adapter are the same code as in the simulator, and
//! [`LiveLink`], by which they can be waited for: spinning first as long as that pays off ([`Spin`]), sleeping then ([`wait`]).

mod any;
mod application;
mod arena;
mod connect;
mod counters;
mod handshake;
mod live_link;
mod pending;
mod pool;
mod shm;
mod stream;
pub mod unix_socket;
mod waiting;

pub use any::{AdapterAddress, AddressError, AnyAdapterLink, AnyHostLink};
pub use application::Application;
pub use arena::Arena;
pub use connect::ConnectError;
pub use counters::LinkCounters;
pub use handshake::{Geometry, Limits, Refusal, VERSION};
pub use live_link::LiveLink;
pub use shm::{AdapterListener, ShmAdapter, ShmHost, pair, read_words, write_words};
pub use stream::{StreamAdapter, StreamHost, TcpAdapter, TcpAdapterListener, TcpHost};
pub use waiting::{Spin, SpinStats, sleep, wait};
