//! A library for `LD_PRELOAD` that runs the TCP connections of unmodified, dynamically linked programs on an adapter (`baton live run`).
//!
//! Each socket of the program remains a kernel socket with the same descriptor number. If its connection is on the adapter, `table` has a
//! description of it, and this library answers the program's calls. All other calls go to the kernel as plain system calls, so that no work
//! inside this library or the C library calls back into this library.
//!
//! Where to look: `calls` only has the C library's functions; `table`: which descriptors the library handles; `description`: what a
//! descriptor refers to; `listener`: listeners, which exist on the adapter and in the kernel; `transfer`: reading and writing;
//! `timestamping`: timestamps of both; `epoll` and `polling`: waiting for kernel and adapter at once; `leaving`: connections that go back
//! to the kernel for good; `signals`: when the program's signal handlers run; `threads`: which threads are the program's; `memory`:
//! allocation; `pointers`: invalid pointers; `tcp_info`: TCP_INFO; `session`: the link to the adapter, through fork(2) and until exit;
//! `reason`: why something stays in the kernel.
#![allow(unsafe_code)]

mod address;
mod calls;
mod controls;
mod description;
mod epoll;
mod handoff;
mod leaving;
mod listener;
mod memory;
mod options;
mod pointers;
mod polling;
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
