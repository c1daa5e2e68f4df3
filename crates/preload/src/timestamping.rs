//! SO_TIMESTAMPING and its predecessors on connections of the adapter: which timestamps are reported, and the control messages that carry
//! them (Linux, networking/timestamping).

use crate::controls;
use crate::description::Description;
use crate::sys::{Errno, errno_of};
use baton_abi::control::{Controls, ExtendedError, is_timestamping};
use baton_sockets::{SendTimes, TcpStream, Timestamping};
use libc::{c_int, msghdr};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Numbers of the options for programs with 64-bit seconds (asm-generic/socket.h).
const SO_TIMESTAMP_NEW: c_int = 63;
const SO_TIMESTAMPNS_NEW: c_int = 64;

/// The timestamps that a socket asked for. Connections inherit the request from their listener.
#[derive(Debug, Default)]
pub struct Wishes {
    /// Flags of SO_TIMESTAMPING.
    flags: AtomicU32,
    /// The number of SO_TIMESTAMPING that the program used, which is also the type of its control messages.
    number: AtomicI32,
    /// The number of SO_TIMESTAMP or SO_TIMESTAMPNS while one of them is on.
    elder: AtomicI32,
}

impl Wishes {
    fn flags(&self) -> Timestamping {
        Timestamping::from_bits_retain(self.flags.load(Ordering::Relaxed))
    }

    /// Copies the request of another socket.
    pub fn set_as(&self, other: &Self) {
        self.flags.store(other.flags().bits(), Ordering::Relaxed);
        for (to, from) in [(&self.number, &other.number), (&self.elder, &other.elder)] {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// Returns whether a socket option is SO_TIMESTAMPING or one of its predecessors.
pub fn is_one(level: c_int, name: c_int) -> bool {
    level == libc::SOL_SOCKET && (is_timestamping(name) || is_elder(name))
}

fn is_elder(name: c_int) -> bool {
    let elders = [libc::SO_TIMESTAMP, libc::SO_TIMESTAMPNS];
    elders.contains(&name) || matches!(name, SO_TIMESTAMP_NEW | SO_TIMESTAMPNS_NEW)
}

/// Carries out setsockopt(2) on a connection on the adapter, or on a listener.
pub fn set(socket: &Description, name: c_int, value: c_int) -> Result<usize, Errno> {
    let wishes = &socket.times;
    let (mut flags, mut elder) = (wishes.flags(), wishes.elder.load(Ordering::Relaxed));
    if is_timestamping(name) {
        flags = Timestamping::from_option(value).ok_or(libc::EINVAL)?;
        if flags.contains(Timestamping::BIND_PHC) {
            return Err(libc::EOPNOTSUPP);
        }
        let begins = (flags - wishes.flags()).contains(Timestamping::OPT_ID);
        if begins && socket.stream().is_none() {
            // Bytes are counted per connection.
            return Err(libc::EINVAL);
        }
    } else {
        elder = if value == 0 { 0 } else { name };
    }
    if let Some(stream) = socket.stream() {
        apply(stream, flags, elder)?;
    }
    wishes.flags.store(flags.bits(), Ordering::Relaxed);
    wishes.elder.store(elder, Ordering::Relaxed);
    if is_timestamping(name) {
        wishes.number.store(name, Ordering::Relaxed);
    }
    Ok(0)
}

/// Asks the adapter for the timestamps of SO_TIMESTAMPING and of the predecessor.
fn apply(stream: &TcpStream, flags: Timestamping, elder: c_int) -> Result<(), Errno> {
    let of_elder = match elder {
        0 => Timestamping::empty(),
        _ => Timestamping::OF_ARRIVAL,
    };
    let wanted = flags | of_elder;
    if wanted == stream.timestamping() {
        return Ok(());
    }
    let set = stream.set_timestamping(wanted);
    set.map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => libc::ENOBUFS,
        ErrorKind::Unsupported => libc::EOPNOTSUPP,
        _ => errno_of(&error),
    })
}

/// Copies the listener's request to a connection. If the adapter cannot be asked now, the connection gets no timestamps.
pub fn inherit(socket: &Description, listener: &Description) {
    let wishes = &socket.times;
    wishes.set_as(&listener.times);
    if let Some(stream) = socket.stream() {
        let elder = wishes.elder.load(Ordering::Relaxed);
        // There is nobody to report an error to.
        let _ = apply(stream, wishes.flags(), elder);
    }
}

/// Returns the value for getsockopt(2).
pub fn get(socket: &Description, name: c_int) -> c_int {
    let wishes = &socket.times;
    match is_timestamping(name) {
        true => wishes.flags().bits() as c_int,
        false => (wishes.elder.load(Ordering::Relaxed) == name).into(),
    }
}

/// Returns the timestamps that a call asks for its bytes, if any; `asks` is from its control message. A call that waits continues until all
/// bytes are sent.
pub fn of_call(
    socket: &Description,
    asks: Option<u32>,
    is_last: bool,
    waits: bool,
) -> Option<SendTimes> {
    let flags = socket.times.flags();
    // Without the socket option, nothing is reported.
    if flags.is_empty() {
        return None;
    }
    let asks = asks.map(Timestamping::from_bits_retain);
    Some(SendTimes {
        stages: flags.with_call(asks).stages(),
        if_whole: is_last,
        if_partial: !waits,
    })
}

/// Carries out recvmsg(2) from the error queue: returns the oldest report, without the data that it is about.
///
/// # Safety
/// The control buffer is null or good for its length.
pub unsafe fn receive_report(socket: &Description, message: &mut msghdr) -> Result<usize, Errno> {
    let report = socket.stream().and_then(TcpStream::take_transmit_time);
    let report = report.ok_or(libc::EAGAIN)?;
    let wishes = &socket.times;
    message.msg_flags = libc::MSG_ERRQUEUE;
    // SAFETY: by this function's contract.
    let mut controls = unsafe { controls::of(message) };
    if wishes.flags().contains(Timestamping::SOFTWARE) {
        let number = wishes.number.load(Ordering::Relaxed);
        controls.put_timestamp(number, since_1970(report.at));
    }
    let error = ExtendedError::of_timestamp(report.stage, report.byte.unwrap_or(0));
    controls.put_error(socket.family, &error);
    Ok(0)
}

/// After a read of at least one byte, reports when the last byte read arrived.
pub fn tell_arrival(socket: &Description, controls: &mut Controls<'_>) {
    let wishes = &socket.times;
    let (flags, elder) = (wishes.flags(), wishes.elder.load(Ordering::Relaxed));
    let tells = flags.contains(Timestamping::OF_ARRIVAL);
    if !tells && elder == 0 {
        return;
    }
    let Some(at) = socket.stream().and_then(TcpStream::arrival_of_last_read) else {
        return;
    };
    if elder != 0 {
        let at = since_1970(at);
        let fraction = match elder {
            libc::SO_TIMESTAMP | SO_TIMESTAMP_NEW => at.subsec_micros(),
            _ => at.subsec_nanos(),
        };
        let time = [at.as_secs() as i64, fraction.into()].map(i64::to_ne_bytes);
        controls.put(libc::SOL_SOCKET, elder, time.as_flattened());
    }
    if tells {
        let number = wishes.number.load(Ordering::Relaxed);
        controls.put_timestamp(number, since_1970(at));
    }
}

fn since_1970(at: SystemTime) -> Duration {
    at.duration_since(UNIX_EPOCH).unwrap_or_default()
}
