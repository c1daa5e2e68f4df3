//! A library to be preloaded (`LD_PRELOAD`), through which unmodified, dynamically linked programs have their TCP on an adapter:
//! `baton live run`.
//!
//! A socket of the program stays a socket of the kernel, under the same number; for one that is on the adapter this library answers
//! instead: its `table` has a description for it. All else goes to the kernel by the system call itself, so that nothing that this
//! library or the C library does inside comes back here.
//!
//! Where to look: `calls` has the C library's functions and nothing else; `table` which descriptors are ours; `description` what is
//! behind one; `listener` listeners, which are the adapter's and the kernel's at once; `transfer` reading and writing, `timestamping`
//! when that happened; `epoll` and `polling` waiting for both; `signals` when the program's handlers run; `threads` which threads are
//! the program's; `memory` what is allocated; `session` the link to the adapter, over fork(2) and to the end; `reason` why something is the kernel's all the same.
#![allow(unsafe_code)]

mod address;
mod calls;
mod controls;
mod description;
mod epoll;
mod handoff;
mod listener;
mod memory;
mod options;
mod polling;
mod reason;
mod session;
mod signals;
mod sys;
mod table;
mod threads;
mod timestamping;
mod transfer;
mod unconnected;
