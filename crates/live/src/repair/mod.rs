//! Connections of the kernel, taken out of it and put back by `TCP_REPAIR`.
//!
//! Repair mode lets whoever has a socket bind it anywhere and make up connections. So no socket that an application holds is ever in it: a
//! connection leaves by [`take`] when nothing that it sent is unacknowledged, which needs no repair mode, and comes back by [`give_back`] in
//! a new socket, which the application gets once it is a usual one. Packets of the connection must not reach the kernel while it is out, nor may
//! what the kernel sends meanwhile leave: [`crate::xdp`] sees to that, and a connection's flow is to be there before [`take`] begins.

mod give_back;
mod sys;
mod take;

pub(crate) use give_back::even_timestamp;
pub use give_back::give_back;
pub use sys::option;
pub use take::{flow_of, take};

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
    #[error("the connection is in {0}; expected ESTABLISHED, CLOSE-WAIT or FIN-WAIT-2")]
    State(&'static str),
    /// It has more data that was not read than may come along.
    #[error("{0} bytes of the connection were not read; expected fewer")]
    TooLong(usize),
    /// It is not at rest.
    #[error("not all that the connection has sent is acknowledged")]
    UnderWay,
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
fn state_name(number: u32) -> &'static str {
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
    NAMES.get(number as usize).unwrap_or(&NAMES[0])
}
