//! Baton's TCP engine as a shared object for packet-script tools: sockets and raw packets on virtual time.
//!
//! A tool that runs packet scripts loads `libbaton_packetdrill.so`, calls `packetdrill_interface_init` and gets a
//! table of functions: the socket calls of a C library, and functions that inject a raw IP packet, fetch the next
//! one that leaves, and let time pass. `include/baton_packetdrill.h` describes the table, [`flags`] the settings.
//!
//! Modules: `abi` is the C interface; `instance` has the lock, the threads and the passing of time; `world` has all state;
//! `sockets`, `options`, `epoll`, `pipe` and `splice` implement what an application sees; `arrival` and `network` implement
//! what the wire sees, with `gso`, `deferral` and `send_queue` for super-segments as in Linux.
//!
//! The engine is deterministic: the same script results in the same packets at the same virtual times.

mod abi;
mod address;
mod arrival;
mod changes;
mod counters;
mod deferral;
mod descriptors;
mod epoll;
pub mod errno;
pub mod flags;
mod gso;
mod icmp;
mod instance;
mod io;
mod limits;
mod network;
mod options;
mod pipe;
mod poll;
mod receive_queue;
mod receive_window;
mod send_queue;
mod sockets;
mod splice;
mod tcp_info;
mod timestamping;
mod urgent;
mod world;
mod zero_copy;

pub use abi::{Interface, packetdrill_interface_init};
