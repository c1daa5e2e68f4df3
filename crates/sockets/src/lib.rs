//! Sockets for applications whose TCP connections run on an adapter, which is another process such as `baton live adapter`.
//!
//! There are three styles of sockets: those of the standard library, those by readiness for an event loop, and asynchronous ones. All of them
//! use the asynchronous descriptors that the application and the adapter exchange.
//!
//! | to find | look in |
//! |---|---|
//! | sockets in the style of the standard library, from any number of threads | [`Adapter`], [`TcpListener`], [`TcpStream`] |
//! | readiness of many of these sockets | [`Poll`] |
//! | sockets of one thread: the fastest, with a file descriptor that an event loop can watch | [`Driver`] |
//! | sockets for the tasks of any executor | [`AsyncTcpListener`], [`AsyncTcpStream`] |
//! | the state that all threads share | `src/core.rs`, `src/host.rs` |
//! | losing an adapter and finding another | `src/driver/attaching.rs`, `src/driver/retry.rs` |
//! | connections that start in the kernel; the program's own system calls on them | [`kernel`]; `src/direct.rs` |
//! | messages between applications and the broker | [`broker`] |
//!
//! An echo server:
//!
//! ```no_run
//! use baton_sockets::{Adapter, TcpListener};
//! use std::io::copy;
//! use std::thread;
//!
//! let adapter = Adapter::connect("/run/baton/adapter.sock")?;
//! let listener = TcpListener::bind(&adapter, "0.0.0.0:7".parse().unwrap())?;
//! for stream in listener.incoming() {
//!     let stream = stream?;
//!     thread::spawn(move || copy(&mut &stream, &mut &stream));
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! **When the adapter is gone** (it has exited or was killed), every waiting call fails immediately, as does every later call on an
//! existing connection: these connections are lost. The crate looks for another adapter at the same address, at growing intervals, and
//! listeners resume listening on that adapter. Data counts as sent once the adapter has fetched it; the application is not notified of
//! acknowledgments.

mod adapter;
mod asynchronous;
mod beside;
pub mod broker;
mod config;
mod core;
mod direct;
mod driver;
mod error;
mod files;
mod fork;
mod host;
mod instance;
pub mod kernel;
mod link;
mod listener;
mod poll;
mod stream;
mod times;
mod waiter;

pub use adapter::{Adapter, is_inside};
pub use asynchronous::{AsyncTcpListener, AsyncTcpStream};
pub use baton_bus::descriptor::SocketOption;
pub use baton_host::adapter::{ListenOptions, SendTimes};
pub use baton_iolib::AdapterAddress;
pub use baton_tcp::State;
pub use baton_wire::{Span, Stage, Timestamping};
pub use beside::{Readiness, Watched};
pub use config::{DriverConfig, MOST_SOCKETS};
pub use direct::Watch;
pub use driver::{Driver, Trouble};
pub use error::{OpenError, kind_of};
pub use files::FilePart;
pub use fork::Forking;
pub use host::Told;
pub use link::HostEnd;
pub use listener::TcpListener;
pub use poll::{Event, Events, Interest, Look, Poll, Source, Token};
pub use stream::TcpStream;
pub use times::TransmitTime;
