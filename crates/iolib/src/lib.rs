//! IOLib (batching 2.1) between processes: links that join a host and an adapter by put, get and data transfers.
//!
//! [`ShmHost`] and [`ShmAdapter`] share memory on one machine; applications attach at an [`AdapterListener`]. A TCP connection joins
//! [`TcpHost`] and [`TcpAdapter`], which may run on two machines. [`AnyHostLink`] and [`AnyAdapterLink`] are either kind. All implement the
//! traits of [`baton_bus::link`], so host and adapter run the same code as in the simulator, and [`LiveLink`], for waiting: by spinning
//! while that pays off ([`Spin`]), and by sleeping after that ([`wait`]).

mod any;
mod application;
mod arena;
mod connect;
mod counters;
mod handshake;
mod lines;
mod live_link;
pub mod log;
mod pending;
mod pool;
pub mod program;
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
pub use lines::Lines;
pub use live_link::LiveLink;
pub use shm::{AdapterListener, ShmAdapter, ShmHost, pair, read_words, write_words};
pub use stream::{StreamAdapter, StreamHost, TcpAdapter, TcpAdapterListener, TcpHost};
pub use waiting::{Spin, SpinStats, sleep, wait};
