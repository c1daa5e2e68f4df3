//! Out of the kernel.

use super::sys::{self, Info, Queue, Windows};
use super::{RepairError, choose_queue, set_integer, state_name};
use baton_tcp::{Essentials, State, WindowScaling};
use baton_wire::{Endpoint, Flow, SeqNr, Span};
use bytes::{Bytes, BytesMut};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketAddrAny, getpeername, getsockname, recv};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// The kernel's numbers of states.
const ESTABLISHED: u8 = 1;
const FIN_WAIT_1: u8 = 4;
const FIN_WAIT_2: u8 = 5;
const CLOSE_WAIT: u8 = 8;

/// Bits of options in use (`TCPI_OPT_...`).
const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const SCALING: u8 = 4;

/// How often numbers are read that do not stand still.
const ATTEMPTS: u32 = 64;

const SIOCOUTQNSD: libc::Ioctl = 0x894b;

/// A connection that is in repair mode, and what is known of it.
#[derive(Debug)]
pub struct Taken {
    /// All that another TCP needs to go on.
    pub essentials: Essentials<Bytes>,
    /// Times that numbers moved while they were read.
    pub retries: u32,
}

/// Looks at a connection. It stays in repair mode: [`forget`] or [`cancel`] follow.
///
/// # Errors
/// The kernel refuses, or the connection opens or closes, or does not stand still. It is as it was then.
pub fn take(fd: BorrowedFd<'_>) -> Result<Taken, RepairError> {
    set_integer(fd, "TCP_REPAIR", libc::TCP_REPAIR, 1)?;
    let taken = look(fd);
    if taken.is_err() {
        // The first error says more than one of this.
        let _ = cancel(fd);
    }
    taken
}

/// Leaves a connection to the kernel that was looked at.
///
/// # Errors
/// Those of the call.
pub fn cancel(fd: BorrowedFd<'_>) -> Result<(), RepairError> {
    set_integer(fd, "TCP_REPAIR", libc::TCP_REPAIR, sys::OFF_SILENTLY)
}

/// The kernel forgets a connection that was looked at, and tells nobody. The socket stays.
///
/// # Errors
/// Those of the call.
pub fn forget(fd: BorrowedFd<'_>) -> Result<(), RepairError> {
    sys::disconnect(fd).map_err(RepairError::at("connect to no address"))?;
    cancel(fd)
}

fn look(fd: BorrowedFd<'_>) -> Result<Taken, RepairError> {
    let numbers = Numbers::read(fd)?;
    let Numbers {
        info,
        state,
        windows,
        ..
    } = numbers;
    let integer =
        |step, name| sys::option::<u32>(fd, libc::IPPROTO_TCP, name).map_err(RepairError::at(step));
    let mss = integer("TCP_MAXSEG", libc::TCP_MAXSEG)?;
    let timestamp = match info.options & TIMESTAMPS {
        0 => None,
        _ => Some(integer("TCP_TIMESTAMP", libc::TCP_TIMESTAMP)?),
    };
    let flow = flow_of(fd)?;
    let unacknowledged = numbers.send_buffer.len() as u32 + numbers.fin;
    let send_una = SeqNr(numbers.write_seq) - unacknowledged;
    let (receive_next, sent) = (SeqNr(numbers.receive_next), unacknowledged - numbers.unsent);
    let has = |bit| info.options & bit != 0;
    let us = |value: u32| Span::from_us(value.into());
    let essentials = Essentials {
        flow,
        state,
        send_una,
        send_next: send_una + sent,
        send_buffer: pieces(numbers.send_buffer),
        send_window: windows.send,
        // The kernel may have taken in a segment since that is not acknowledged.
        send_window_seq: SeqNr(windows.send_seq).earliest(receive_next),
        largest_send_window: windows.largest_send.max(windows.send),
        receive_next,
        receive_edge: SeqNr(windows.receive_told_at).earliest(receive_next) + windows.receive,
        receive_buffer: pieces(numbers.receive_buffer),
        mss: u16::try_from(mss).unwrap_or(u16::MAX),
        window_scaling: has(SCALING).then_some(WindowScaling {
            send: info.scaling & 0xf,
            receive: info.scaling >> 4,
        }),
        sack: has(SACK),
        timestamp,
        round_trip: (info.round_trip_us > 0)
            .then(|| (us(info.round_trip_us), us(info.variance_us))),
        congestion_window: info.congestion_window.checked_mul(info.send_mss),
    };
    Ok(Taken {
        essentials,
        retries: numbers.retries,
    })
}

/// Addresses and ports of a socket's connection.
///
/// # Errors
/// It has none.
pub fn flow_of(fd: BorrowedFd<'_>) -> Result<Flow, RepairError> {
    Ok(Flow {
        local: endpoint("getsockname", getsockname(fd).map(Some))?,
        remote: endpoint("getpeername", getpeername(fd))?,
    })
}

fn pieces(data: Bytes) -> Vec<Bytes> {
    if data.is_empty() {
        Vec::new()
    } else {
        vec![data]
    }
}

fn endpoint(
    step: &'static str,
    address: rustix::io::Result<Option<SocketAddrAny>>,
) -> Result<Endpoint, RepairError> {
    let address = address.and_then(|found| found.ok_or(Errno::NOTCONN)?.try_into());
    let address: SocketAddr = address.map_err(|error| RepairError::Step {
        step,
        source: error.into(),
    })?;
    // An IPv6 socket may have a connection of IPv4.
    Ok(Endpoint::new(address.ip().to_canonical(), address.port()))
}

/// Sequence numbers and what lies between them, of one moment.
#[derive(Debug)]
struct Numbers {
    info: Info,
    state: State,
    windows: Windows,
    receive_next: u32,
    receive_buffer: Bytes,
    write_seq: u32,
    send_buffer: Bytes,
    /// 1 if a FIN that is not acknowledged follows the send buffer.
    fin: u32,
    /// Sequence numbers before `write_seq` that were never sent.
    unsent: u32,
    retries: u32,
}

impl Numbers {
    /// Repair mode does not stop the kernel from taking in what is under way to it. That ends, since no packet reaches it any more.
    fn read(fd: BorrowedFd<'_>) -> Result<Self, RepairError> {
        for retries in 0..ATTEMPTS {
            if let Some(numbers) = Self::at_once(fd)? {
                return Ok(Self { retries, ..numbers });
            }
        }
        Err(RepairError::Unstable)
    }

    /// None if they did not stand still.
    fn at_once(fd: BorrowedFd<'_>) -> Result<Option<Self>, RepairError> {
        // The windows first: what comes after them only makes them cautious.
        let windows = sys::option(fd, libc::IPPROTO_TCP, libc::TCP_REPAIR_WINDOW)
            .map_err(RepairError::at("TCP_REPAIR_WINDOW"))?;
        let received = queue(fd, Queue::Receive, libc::FIONREAD as libc::Ioctl)?;
        let written = queue(fd, Queue::Send, libc::TIOCOUTQ as libc::Ioctl)?;
        let unsent = match written.len {
            0 => 0,
            _ => sys::count(fd, SIOCOUTQNSD).map_err(RepairError::at("SIOCOUTQNSD"))?,
        };
        // Between two looks at the number that a FIN of the peer moves, and after those that an answer to one of this side does.
        let info = sys::option(fd, libc::IPPROTO_TCP, libc::TCP_INFO)
            .map_err(RepairError::at("TCP_INFO"))?;
        let state = state_of(&info)?;
        choose_queue(fd, Queue::Receive)?;
        let fin = u32::from(state == State::FinWait1);
        let stood_still = sequence(fd)? == received.next
            && received.data.len() as u32 == received.len
            && written.data.len() as u32 + fin == written.len
            && unsent <= written.len;
        Ok(stood_still.then_some(Self {
            info,
            state,
            windows,
            receive_next: received.next,
            receive_buffer: received.data,
            write_seq: written.next,
            send_buffer: written.data,
            fin,
            unsent,
            retries: 0,
        }))
    }
}

fn state_of(info: &Info) -> Result<State, RepairError> {
    match info.state {
        ESTABLISHED => Ok(State::Established),
        FIN_WAIT_1 => Ok(State::FinWait1),
        FIN_WAIT_2 => Ok(State::FinWait2),
        CLOSE_WAIT => Ok(State::CloseWait),
        other => Err(RepairError::State(state_name(other))),
    }
}

/// A queue, as it was found.
#[derive(Debug)]
struct Found {
    /// The sequence number behind it.
    next: u32,
    /// Sequence numbers that it takes up. The kernel counts a FIN that is sent, and none that was received.
    len: u32,
    data: Bytes,
}

fn queue(fd: BorrowedFd<'_>, which: Queue, counter: libc::Ioctl) -> Result<Found, RepairError> {
    choose_queue(fd, which)?;
    // What is acknowledged meanwhile leaves the queue; what arrives enters it.
    for _ in 0..ATTEMPTS {
        let next = sequence(fd)?;
        let len = sys::count(fd, counter).map_err(RepairError::at("SIOCINQ or SIOCOUTQ"))?;
        let data = peek(fd, len as usize)?;
        // Of an empty queue there is nothing to belong to another moment.
        if len == 0 || sequence(fd)? == next {
            return Ok(Found { next, len, data });
        }
    }
    Err(RepairError::Unstable)
}

fn sequence(fd: BorrowedFd<'_>) -> Result<u32, RepairError> {
    sys::option(fd, libc::IPPROTO_TCP, libc::TCP_QUEUE_SEQ)
        .map_err(RepairError::at("TCP_QUEUE_SEQ"))
}

/// All of the chosen queue.
fn peek(fd: BorrowedFd<'_>, len: usize) -> Result<Bytes, RepairError> {
    if len == 0 {
        return Ok(Bytes::new());
    }
    let mut data = BytesMut::zeroed(len);
    let (found, _) =
        recv(fd, &mut data[..], RecvFlags::PEEK | RecvFlags::DONTWAIT).map_err(|error| {
            RepairError::Step {
                step: "recv of a queue",
                source: error.into(),
            }
        })?;
    data.truncate(found);
    Ok(data.freeze())
}
