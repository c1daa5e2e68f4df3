//! Sockets for applications whose TCP is on an adapter: another process, such as `baton live adapter`.
//!
//! Three ways to use them, each on top of the asynchronous descriptors that travel between the application and the adapter:
//!
//! - in the style of the standard library, from any number of threads: [`Adapter`], [`TcpListener`], [`TcpStream`];
//! - by readiness, for an event loop: [`Poll`] over many of these sockets, or [`Driver`], which is all that one thread needs and
//!   the fastest, and has a file descriptor for whoever has an event loop already;
//! - asynchronous: [`AsyncTcpListener`], [`AsyncTcpStream`].
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
//! **When the adapter is gone** (it was ended, or killed), every call that waits fails at once, and so does every later call on the
//! connections there were: they are lost with it. Another adapter at the same place is looked for, ever more rarely; listeners
//! go on listening on it. What the application sends has been taken over by the adapter once it has fetched it; it is not
//! told of acknowledgments.

mod adapter;
mod asynchronous;
mod beside;
pub mod broker;
mod config;
mod core;
mod direct;
mod driver;
mod error;
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
pub use baton_host::adapter::SendTimes;
pub use baton_iolib::AdapterAddress;
pub use baton_wire::{Stage, Timestamping};
pub use beside::{Readiness, Watched};
pub use config::DriverConfig;
pub use direct::Watch;
pub use driver::{Driver, Trouble};
pub use error::{OpenError, kind_of};
pub use fork::Forking;
pub use link::HostEnd;
pub use listener::TcpListener;
pub use poll::{Event, Events, Interest, Poll, Source, Token};
pub use stream::TcpStream;
pub use times::TransmitTime;
