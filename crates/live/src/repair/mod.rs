//! Connections of the kernel, taken out of it and put back by `TCP_REPAIR`.
//!
//! The socket stays the application's: its descriptor, its options and its place in sets of `epoll` are kept. Packets of the connection
//! must not reach the kernel while it is out, nor may what the kernel sends meanwhile leave: [`crate::xdp`] sees to that, and a connection's
//! flow is to be there before [`take`] begins. The order of steps is that which loses nothing:
//!
//! - out: repair mode, what it says of itself, windows before sequence numbers, data looked at without taking it, until the numbers stand
//!   still; then the connection is forgotten, with [`forget`];
//! - back, with [`give_back`]: numbers, addresses, options, data, windows; the flow is let go; then the kernel goes on.

mod give_back;
mod sys;
mod take;

pub use give_back::give_back;
pub(crate) use sys::option;
pub use take::{Taken, cancel, flow_of, forget, take};

use baton_tcp::State;
use std::io;
use std::os::fd::BorrowedFd;

/// Why a connection cannot leave the kernel, or come back.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// The kernel refused a step. Repair mode needs CAP_NET_ADMIN.
    #[error("{step}: {source}")]
    Step {
        /// What was asked for, by the kernel's name.
        step: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// It opens or closes.
    #[error("the connection is in {0}; expected ESTABLISHED, CLOSE-WAIT, FIN-WAIT-1 or FIN-WAIT-2")]
    State(&'static str),
    /// Its numbers did not stand still.
    #[error("the connection went on while it was looked at: its packets still reach the kernel")]
    Unstable,
    /// Not as much data fitted into the kernel's buffer as came out of one.
    #[error("the kernel took {taken} of {offered} bytes into its {queue} queue")]
    Full {
        /// Which.
        queue: &'static str,
        /// Bytes that fitted.
        taken: usize,
        /// Bytes that there were.
        offered: usize,
    },
    /// A state that the kernel cannot be brought into.
    #[error("the connection is in {0:?}; expected ESTABLISHED, FIN-WAIT-1 or FIN-WAIT-2")]
    CannotRestore(State),
}

impl RepairError {
    fn at(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Step { step, source }
    }
}

fn set_integer(
    fd: BorrowedFd<'_>,
    step: &'static str,
    name: libc::c_int,
    value: libc::c_int,
) -> Result<(), RepairError> {
    sys::set_option(fd, libc::IPPROTO_TCP, name, &[value]).map_err(RepairError::at(step))
}

/// The queue that what follows is about.
fn choose_queue(fd: BorrowedFd<'_>, queue: sys::Queue) -> Result<(), RepairError> {
    set_integer(fd, "TCP_REPAIR_QUEUE", libc::TCP_REPAIR_QUEUE, queue as i32)
}

/// Names of TCP's states by the kernel's numbers.
fn state_name(number: u8) -> &'static str {
    const NAMES: [&str; 12] = [
        "an unknown state",
        "ESTABLISHED",
        "SYN-SENT",
        "SYN-RECEIVED",
        "FIN-WAIT-1",
        "FIN-WAIT-2",
        "TIME-WAIT",
        "CLOSED",
        "CLOSE-WAIT",
        "LAST-ACK",
        "LISTEN",
        "CLOSING",
    ];
    NAMES.get(usize::from(number)).unwrap_or(&NAMES[0])
}
