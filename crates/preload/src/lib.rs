//! A library for `LD_PRELOAD` that runs the TCP connections of unmodified, dynamically linked programs on an adapter (`baton live run`).
//!
//! Each socket of the program remains a kernel socket with the same descriptor number. If its connection is on the adapter, `table` has a
//! description of it, and this library answers the program's calls. All other calls go to the kernel as plain system calls, so that no work
//! inside this library or the C library calls back into this library.
//!
//! | to find | look in |
//! |---|---|
//! | the C library's functions that are replaced, and nothing else | `src/calls/` |
//! | which descriptors the library handles, and what they refer to | `src/table.rs`, `src/description.rs`, `src/listener.rs` |
//! | reading and writing; timestamps of both | `src/transfer.rs`, `src/timestamping.rs` |
//! | waiting for kernel and adapter at the same time | `src/epoll.rs`, `src/polling.rs` |
//! | connections that move; that go back to the kernel for good | `src/handoff.rs`, `src/leaving.rs` |
//! | the link to the adapter, through fork(2) and until exit | `src/session.rs` |
//! | signal handlers, threads, allocation, invalid pointers | `src/signals.rs`, `src/threads.rs`, `src/memory.rs`, `src/pointers.rs`, `src/probing.rs` |
//! | socket options, `TCP_INFO`; why something stays in the kernel | `src/options.rs`, `src/tcp_info.rs`, `src/reason.rs` |
#![allow(unsafe_code)]

mod address;
mod calls;
mod controls;
mod description;
mod epoll;
mod handoff;
mod leaving;
mod limit;
mod listener;
mod memory;
mod options;
mod pointers;
mod polling;
mod probing;
mod reason;
mod session;
mod signals;
mod sys;
mod table;
mod tcp_info;
mod threads;
mod timestamping;
mod transfer;
mod unconnected;
