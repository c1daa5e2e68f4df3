//! Baton's TCP engine as a shared object for packet-script tools: sockets and raw packets on virtual time.
//!
//! A tool that runs packet scripts loads `libbaton_packetdrill.so`, calls `packetdrill_interface_init` and gets a
//! table of functions: the socket calls of a C library, and functions that inject a raw IP packet, fetch the next
//! one that leaves, and let time pass. `include/baton_packetdrill.h` describes the table.
//!
//! The engine is deterministic: the same script results in the same packets at the same virtual times.
//!
//! | to find | look in |
//! |---|---|
//! | the C interface | [`Interface`], `src/abi.rs`, `src/abi/` |
//! | settings of an instance | [`flags`] |
//! | lock, threads, passing of time; all state | `src/instance.rs`, `src/world.rs` |
//! | sockets as an application sees them | `src/sockets.rs`, `src/sockets/`, `src/options.rs`, `src/options/` |
//! | other calls of an application | `src/epoll.rs`, `src/poll.rs`, `src/pipe.rs`, `src/splice.rs`, `src/io.rs` |
//! | packets that a script injects | `src/arrival.rs`, `src/icmp.rs` |
//! | packets that leave, and super-segments as in Linux | `src/network.rs`, `src/gso.rs`, `src/deferral.rs`, `src/send_queue.rs` |
//! | what Linux reports: counters, timestamps | `src/counters.rs`, `src/timestamping.rs` |

mod abi;
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
mod timestamping;
mod urgent;
mod world;
mod zero_copy;

pub use abi::{Interface, packetdrill_interface_init};
