//! Takes connections out of the kernel.

use super::sys::{self, Info};
use super::{RepairError, state_name};
use crate::xdp::{Sequence, SequenceReader};
use baton_tcp::{Essentials, State, WindowScaling};
use baton_wire::{Endpoint, Flow, Span};
use bytes::{Bytes, BytesMut};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketAddrAny, bind, getpeername, getsockname, recv};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// The kernel's numbers of states.
const ESTABLISHED: u32 = 1;
const FIN_WAIT_2: u32 = 5;
const CLOSE_WAIT: u32 = 8;

/// Bits of the options in use (`TCPI_OPT_...`).
const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const SCALING: u8 = 4;
/// Bytes of a segment that the timestamps option takes.
const TIMESTAMP_BYTES: u32 = 12;

/// Maximum number of times that changing sequence numbers are read.
const ATTEMPTS: u32 = 64;

/// Takes a connection out of the kernel, which forgets it without sending anything to the peer. The socket remains with its owner and is
/// never in repair mode. Also returns whether the socket alone keeps the local port from being given to another connection.
///
/// Before the call, packets for the connection must be kept from the kernel, and those that it sends on `interface`, like its reset, dropped.
///
/// # Errors
/// The connection is being opened or closed, has more than `most_unread` bytes of unread data, or has sent something that is not
/// acknowledged. It then continues in the kernel.
pub fn take(
    fd: BorrowedFd<'_>,
    flow: &Flow,
    interface: &str,
    reader: &SequenceReader,
    most_unread: usize,
) -> Result<(Essentials<Bytes>, bool), RepairError> {
    let essentials = look(fd, flow, reader, most_unread)?;
    let keeps_port = forget(fd, interface)?;
    Ok((essentials, keeps_port))
}

/// Reads the state of a connection that is at rest.
fn look(
    fd: BorrowedFd<'_>,
    flow: &Flow,
    reader: &SequenceReader,
    most_unread: usize,
) -> Result<Essentials<Bytes>, RepairError> {
    for _ in 0..ATTEMPTS {
        let before = sequence(flow, reader)?;
        let unacknowledged = count(fd, "SIOCOUTQ", libc::TIOCOUTQ as libc::Ioctl)?;
        if unacknowledged > 0 || before.send_una != before.send_next {
            return Err(RepairError::UnderWay);
        }
        let state = state_of(&before)?;
        let unread = count(fd, "SIOCINQ", libc::FIONREAD as libc::Ioctl)? as usize;
        if unread > most_unread {
            return Err(RepairError::TooLong(unread));
        }
        let data = peek(fd, unread)?;
        let info = sys::Info::of(fd)?;
        // Packets that had passed before the redirection began may still arrive, but only for a short time.
        if sequence(flow, reader)? == before && data.len() == unread {
            return essentials(fd, *flow, state, &before, data, &info);
        }
    }
    Err(RepairError::Unstable)
}

fn essentials(
    fd: BorrowedFd<'_>,
    flow: Flow,
    state: State,
    numbers: &Sequence,
    data: Bytes,
    info: &Info,
) -> Result<Essentials<Bytes>, RepairError> {
    let integer =
        |step, name| sys::option::<u32>(fd, libc::IPPROTO_TCP, name).map_err(RepairError::at(step));
    let has = |bit| info.options & bit != 0;
    // The kernel uses the lowest bit itself, and may have sent the value with that bit set.
    let timestamp = match has(TIMESTAMPS) {
        false => None,
        true => Some(integer("TCP_TIMESTAMP", libc::TCP_TIMESTAMP)? | 1),
    };
    // Outside repair mode the kernel returns the size of a segment's data instead of the peer's option.
    let options = timestamp.map_or(0, |_| TIMESTAMP_BYTES);
    let mss = integer("TCP_MAXSEG", libc::TCP_MAXSEG)? + options;
    let us = |value: u32| Span::from_us(value.into());
    Ok(Essentials {
        flow,
        state,
        send_una: numbers.send_una,
        send_next: numbers.send_next,
        send_buffer: Vec::new(),
        send_window: info.send_window,
        send_window_seq: numbers.receive_next,
        largest_send_window: info.send_window,
        receive_next: numbers.receive_next,
        receive_edge: numbers.receive_next + info.receive_window,
        receive_buffer: (!data.is_empty()).then_some(data).into_iter().collect(),
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
        slow_start_threshold: info.slow_start_threshold.checked_mul(info.send_mss),
    })
}

/// Makes the kernel forget the connection. The kernel sends a reset, which must leave by `interface` to be dropped there. Returns whether the
/// socket keeps the local port.
fn forget(fd: BorrowedFd<'_>, interface: &str) -> Result<bool, RepairError> {
    let own = getsockname(fd);
    let before = sys::bound_device(fd)?;
    sys::bind_to_device(fd, interface.as_bytes())?;
    let forgotten = sys::disconnect(fd).map_err(RepairError::at("connect(AF_UNSPEC)"));
    sys::bind_to_device(fd, &before)?;
    forgotten?;
    // The local port of a connection that was opened actively is free now, so that another connection to the same peer could get it. A
    // listener keeps its own port, and the kernel refuses the call here.
    Ok(own.and_then(|own| bind(fd, &own)).is_ok())
}

/// Returns the addresses and ports of a socket's connection.
///
/// # Errors
/// The socket is not connected.
pub fn flow_of(fd: BorrowedFd<'_>) -> Result<Flow, RepairError> {
    Ok(Flow {
        local: endpoint("getsockname", getsockname(fd).map(Some))?,
        remote: endpoint("getpeername", getpeername(fd))?,
    })
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
    // An IPv6 socket may have an IPv4 connection.
    Ok(Endpoint::new(address.ip().to_canonical(), address.port()))
}

fn sequence(flow: &Flow, reader: &SequenceReader) -> Result<Sequence, RepairError> {
    let found = reader.read(flow);
    let found = found.map_err(RepairError::at("look up the connection"))?;
    found.ok_or(RepairError::State(state_name(0)))
}

fn count(fd: BorrowedFd<'_>, step: &'static str, which: libc::Ioctl) -> Result<u32, RepairError> {
    sys::count(fd, which).map_err(RepairError::at(step))
}

fn state_of(numbers: &Sequence) -> Result<State, RepairError> {
    match numbers.state {
        ESTABLISHED => Ok(State::Established),
        FIN_WAIT_2 => Ok(State::FinWait2),
        CLOSE_WAIT => Ok(State::CloseWait),
        other => Err(RepairError::State(state_name(other))),
    }
}

/// Returns all data that was received and not read.
fn peek(fd: BorrowedFd<'_>, len: usize) -> Result<Bytes, RepairError> {
    if len == 0 {
        return Ok(Bytes::new());
    }
    let mut data = BytesMut::zeroed(len);
    let (found, _) =
        recv(fd, &mut data[..], RecvFlags::PEEK | RecvFlags::DONTWAIT).map_err(|error| {
            RepairError::Step {
                step: "recv from the receive queue",
                source: error.into(),
            }
        })?;
    data.truncate(found);
    Ok(data.freeze())
}
