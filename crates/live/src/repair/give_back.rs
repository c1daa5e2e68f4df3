//! Puts connections back into the kernel.

use super::sys::{self, NegotiatedOption, Queue, Windows};
use super::{RepairError, choose_queue, set_integer};
use baton_tcp::{Essentials, State};
use baton_wire::{Endpoint, SeqNr};
use bytes::Bytes;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, Shutdown, SocketFlags, SocketType, bind, connect, send, shutdown,
    socket_with, sockopt,
};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// TCP's numbers of options.
const MSS: u32 = 2;
const WINDOW_SCALE: u32 = 3;
const SACK_PERMITTED: u32 = 4;
const TIMESTAMPS: u32 = 8;

/// Maximum number of bytes given to the kernel at once, because the kernel allocates one buffer for them.
const CHUNK: usize = 32 << 10;

/// The kernel measures the path only by acknowledgments of data. Before the first one, its retransmission timeout is three seconds. So if no
/// data is in flight, the byte before all data is sent again: the peer already has this byte, and acknowledges it immediately, whatever its
/// value is.
const OLD_BYTE: [u8; 1] = [0];

/// Factor by which the kernel's bookkeeping increases the required buffer size.
const OVERHEAD: usize = 2;

/// Makes the kernel take over a connection. Returns the connection's socket, which is no longer in repair mode, and is an IPv6 socket if
/// `is_wide`. Calls `let_go` when the kernel has the state, before it sends anything: from then on, packets of the connection may reach the
/// kernel.
///
/// # Errors
/// The kernel refuses a step, cannot be brought into the state, or does not accept all data. The socket is closed, without sending anything
/// to the peer.
pub fn give_back(
    essentials: &Essentials<Bytes>,
    is_wide: bool,
    let_go: impl FnOnce(),
) -> Result<OwnedFd, RepairError> {
    let family = match is_wide {
        true => AddressFamily::INET6,
        false => AddressFamily::INET,
    };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|error| failed("socket", error))?;
    bring_into(socket.as_fd(), essentials, is_wide, let_go)?;
    Ok(socket)
}

fn bring_into(
    fd: BorrowedFd<'_>,
    essentials: &Essentials<Bytes>,
    is_wide: bool,
    let_go: impl FnOnce(),
) -> Result<(), RepairError> {
    let half_closed = match essentials.state {
        State::Established => false,
        State::FinWait1 | State::FinWait2 => true,
        other => return Err(RepairError::CannotRestore(other)),
    };
    set_integer(fd, "TCP_REPAIR", libc::TCP_REPAIR, 1)?;
    // Until the socket has an owner, closing it must not look like the end of the stream. The new owner sets the option as needed.
    sockopt::set_socket_linger(fd, Some(Duration::ZERO))
        .map_err(|error| failed("SO_LINGER", error))?;
    let sent = essentials.send_next - essentials.send_una;
    let is_at_rest = sent == 0 && !half_closed;
    let before = u32::from(is_at_rest);
    let (first, unread) = (
        before_fin(essentials) - before,
        len(&essentials.receive_buffer),
    );
    make_room(fd, essentials)?;
    number(fd, Queue::Send, first)?;
    number(fd, Queue::Receive, essentials.receive_next - unread as u32)?;
    join(fd, essentials, is_wide)?;
    settle(fd, essentials)?;
    let (mut flight, rest) = split(&essentials.send_buffer, sent as usize);
    if is_at_rest {
        flight.push(Bytes::from_static(&OLD_BYTE));
    }
    fill(fd, Queue::Receive, "receive", &essentials.receive_buffer)?;
    fill(fd, Queue::Send, "send", &flight)?;
    let windows = Windows {
        send_seq: essentials.send_window_seq.0,
        send: essentials.send_window,
        largest_send: essentials.largest_send_window,
        receive: essentials
            .receive_edge
            .saturating_since(essentials.receive_next),
        receive_told_at: essentials.receive_next.0,
    };
    sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_REPAIR_WINDOW, &[windows])
        .map_err(RepairError::at("TCP_REPAIR_WINDOW"))?;
    let_go();
    // The kernel asks the peer for its window; the answer acknowledges data whose acknowledgment was lost meanwhile.
    set_integer(fd, "TCP_REPAIR", libc::TCP_REPAIR, 0)?;
    write(fd, "send", &rest)?;
    if half_closed {
        shutdown(fd, Shutdown::Write).map_err(|error| failed("shutdown", as_reset(error)))?;
    }
    // Repair mode clears the option, and a restarted listener could not bind its port.
    sockopt::set_socket_reuseaddr(fd, true).map_err(|error| failed("SO_REUSEADDR", error))
}

fn failed(step: &'static str, error: Errno) -> RepairError {
    RepairError::Step {
        step,
        source: error.into(),
    }
}

/// Converts an error that means that the peer has reset the connection: the kernel reports a reset after a FIN as EPIPE, and the shutdown of
/// a connection that has ended as ENOTCONN.
fn as_reset(error: Errno) -> Errno {
    match error {
        Errno::PIPE | Errno::NOTCONN => Errno::CONNRESET,
        _ => error,
    }
}

/// Returns SND.UNA, or the sequence number of an acknowledged FIN, which the kernel sends once more.
fn before_fin(essentials: &Essentials<Bytes>) -> SeqNr {
    match essentials.state {
        State::FinWait2 => essentials.send_una - 1,
        _ => essentials.send_una,
    }
}

fn len(data: &[Bytes]) -> usize {
    data.iter().map(Bytes::len).sum()
}

/// Splits data into the first `at` bytes and the rest.
fn split(data: &[Bytes], mut at: usize) -> (Vec<Bytes>, Vec<Bytes>) {
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for piece in data {
        let here = at.min(piece.len());
        first.extend((here > 0).then(|| piece.slice(..here)));
        rest.extend((here < piece.len()).then(|| piece.slice(here..)));
        at -= here;
    }
    (first, rest)
}

/// Enlarges buffers that are too small for their queues. Other buffers keep the kernel's default size, which the kernel adapts.
fn make_room(fd: BorrowedFd<'_>, essentials: &Essentials<Bytes>) -> Result<(), RepairError> {
    let offered = essentials
        .receive_edge
        .saturating_since(essentials.receive_next) as usize;
    for (step, size, force, needed) in [
        (
            "SO_SNDBUFFORCE",
            libc::SO_SNDBUF,
            libc::SO_SNDBUFFORCE,
            len(&essentials.send_buffer),
        ),
        (
            "SO_RCVBUFFORCE",
            libc::SO_RCVBUF,
            libc::SO_RCVBUFFORCE,
            len(&essentials.receive_buffer) + offered,
        ),
    ] {
        if needed == 0 {
            continue;
        }
        let now: libc::c_int =
            sys::option(fd, libc::SOL_SOCKET, size).map_err(RepairError::at(step))?;
        if needed * OVERHEAD > now as usize {
            // The kernel doubles the given size.
            let wanted = i32::try_from(needed).unwrap_or(i32::MAX / 2);
            sys::set_option(fd, libc::SOL_SOCKET, force, &[wanted])
                .map_err(RepairError::at(step))?;
        }
    }
    Ok(())
}

/// Sets the sequence number at which a queue begins.
fn number(fd: BorrowedFd<'_>, queue: Queue, first: SeqNr) -> Result<(), RepairError> {
    choose_queue(fd, queue)?;
    sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_QUEUE_SEQ, &[first.0])
        .map_err(RepairError::at("TCP_QUEUE_SEQ"))
}

/// Sets the four-tuple. In repair mode this establishes the connection without sending anything.
fn join(
    fd: BorrowedFd<'_>,
    essentials: &Essentials<Bytes>,
    is_wide: bool,
) -> Result<(), RepairError> {
    let address = |end: Endpoint| -> SocketAddr {
        match end.addr {
            IpAddr::V4(narrow) if is_wide => (narrow.to_ipv6_mapped(), end.port).into(),
            addr => (addr, end.port).into(),
        }
    };
    bind(fd, &address(essentials.flow.local)).map_err(|error| failed("bind", error))?;
    connect(fd, &address(essentials.flow.remote)).map_err(|error| failed("connect", error))
}

/// Sets what was negotiated in the handshake.
fn settle(fd: BorrowedFd<'_>, essentials: &Essentials<Bytes>) -> Result<(), RepairError> {
    let mut options = vec![NegotiatedOption {
        kind: MSS,
        value: essentials.mss.into(),
    }];
    if let Some(scaling) = essentials.window_scaling {
        options.push(NegotiatedOption {
            kind: WINDOW_SCALE,
            value: u32::from(scaling.send) | u32::from(scaling.receive) << 16,
        });
    }
    for (kind, agreed) in [
        (SACK_PERMITTED, essentials.sack),
        (TIMESTAMPS, essentials.timestamp.is_some()),
    ] {
        options.extend(agreed.then_some(NegotiatedOption { kind, value: 0 }));
    }
    sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_REPAIR_OPTIONS, &options)
        .map_err(RepairError::at("TCP_REPAIR_OPTIONS"))?;
    if let Some(timestamp) = essentials.timestamp {
        let even = even_timestamp(timestamp);
        sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_TIMESTAMP, &[even])
            .map_err(RepairError::at("TCP_TIMESTAMP"))?;
    }
    // Removing IP options makes the kernel compute the size of its segments: otherwise it sends the smallest size allowed. IPv6 sockets
    // have these options, too; removing IPv6 options has no such effect.
    sys::set_option::<u8>(fd, libc::IPPROTO_IP, libc::IP_OPTIONS, &[])
        .map_err(RepairError::at("IP_OPTIONS"))
}

/// Returns the next timestamp from which the kernel can continue: an odd one would switch its clock to microseconds (Linux 6.7 and later).
pub fn even_timestamp(timestamp: u32) -> u32 {
    timestamp.wrapping_add(timestamp & 1)
}

/// Writes data into a queue.
fn fill(
    fd: BorrowedFd<'_>,
    queue: Queue,
    name: &'static str,
    data: &[Bytes],
) -> Result<(), RepairError> {
    if data.is_empty() {
        return Ok(());
    }
    choose_queue(fd, queue)?;
    write(fd, name, data)
}

fn write(fd: BorrowedFd<'_>, queue: &'static str, data: &[Bytes]) -> Result<(), RepairError> {
    let mut taken = 0;
    for chunk in data.iter().flat_map(|piece| piece.chunks(CHUNK)) {
        let mut left = chunk;
        while !left.is_empty() {
            match send(fd, left, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => {
                    taken += count;
                    left = &left[count..];
                }
                Err(Errno::AGAIN) => {
                    return Err(RepairError::Full {
                        queue,
                        taken,
                        offered: len(data),
                    });
                }
                Err(error) => return Err(failed("send into a queue", as_reset(error))),
            }
        }
    }
    Ok(())
}
