//! Takes connections out of the kernel, and puts them back with `TCP_REPAIR`.
//!
//! Repair mode lets the holder of a socket bind it anywhere and fabricate connections. So no socket that an application holds is ever in
//! repair mode: a connection leaves through [`take`] when everything it has sent is acknowledged, which needs no repair mode, and comes
//! back through [`give_back`] in a new socket, which the application gets once it is an ordinary socket. Packets of the connection must not
//! reach the kernel while the connection is out, nor may packets that the kernel sends meanwhile leave: [`crate::xdp`] ensures both, and
//! must know the connection's flow before [`take`] begins.

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

/// Reason why a connection cannot leave the kernel or come back.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// The kernel refused a step. Repair mode needs CAP_NET_ADMIN.
    #[error("{step}: {source}")]
    Step {
        /// The kernel's name of the step.
        step: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The connection is being opened or closed.
    #[error("the connection is in {0}; expected ESTABLISHED, CLOSE-WAIT or FIN-WAIT-2")]
    State(&'static str),
    /// The connection has more unread data than may move with it.
    #[error("the connection has {0} unread bytes, more than may move with it")]
    TooLong(usize),
    /// The connection has unacknowledged data.
    #[error("the connection has sent data that is not acknowledged yet")]
    UnderWay,
    /// The connection's sequence numbers kept changing.
    #[error("the connection's sequence numbers kept changing: its packets still reach the kernel")]
    Unstable,
    /// The kernel's buffer had less space than the data needs.
    #[error("the kernel accepted only {taken} of {offered} bytes into its {queue} queue")]
    Full {
        /// Name of the queue.
        queue: &'static str,
        /// Number of bytes that fitted.
        taken: usize,
        /// Number of bytes to be stored.
        offered: usize,
    },
    /// The kernel cannot be brought into this state.
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

/// Selects the queue that the following calls refer to.
fn choose_queue(fd: BorrowedFd<'_>, queue: sys::Queue) -> Result<(), RepairError> {
    set_integer(fd, "TCP_REPAIR_QUEUE", libc::TCP_REPAIR_QUEUE, queue as i32)
}

/// Returns the name of a TCP state, given the kernel's number.
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
