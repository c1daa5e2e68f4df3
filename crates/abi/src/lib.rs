//! The structures of Linux's socket interface as bytes, for libraries that answer socket calls in the kernel's place.
//!
//! | to find | look in |
//! |---|---|
//! | socket addresses | [`address`] |
//! | `TCP_INFO` | [`tcp_info`] |
//! | control messages of recvmsg(2) and sendmsg(2): timestamps, errors | [`control`] |
//! | which calls of epoll_ctl(2) are allowed | [`epoll`] |

pub mod address;
pub mod control;
pub mod epoll;
pub mod tcp_info;

/// An error number of errno(3).
pub type Errno = libc::c_int;
