//! IOLib (batching 2.1) between processes: links that join a host and an adapter by put, get and data transfers.
//!
//! All links implement the traits of [`baton_bus::link`], so host and adapter run the same code as in the simulator, and [`LiveLink`], for
//! waiting: by spinning while that pays off, and by sleeping after that.
//!
//! | to find | look in |
//! |---|---|
//! | links through shared memory, on one machine | [`ShmHost`], [`ShmAdapter`], `src/shm/` |
//! | links over TCP, also between two machines | [`TcpHost`], [`TcpAdapter`], `src/stream/` |
//! | a link of either kind | [`AnyHostLink`], [`AnyAdapterLink`] |
//! | applications that attach: listeners, handshake | [`AdapterListener`], [`TcpAdapterListener`], `src/handshake.rs` |
//! | waiting for a link | [`LiveLink`], [`Spin`], [`wait`] |
//! | memory for received frames | [`Arena`] |
//! | Unix sockets, programs to preload a library into | [`unix_socket`], [`program`] |
//! | log lines | [`log`], [`Lines`] |

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
