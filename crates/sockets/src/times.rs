//! When bytes were sent, acknowledged and received (SO_TIMESTAMPING).

use crate::host::Host;
use crate::stream::{TcpStream, outgoing};
use baton_bus::descriptor::Times;
use baton_host::SocketId;
use baton_host::adapter::{NotSubmitted, SendTimes};
use baton_wire::{Stage, Timestamping};
use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};
use std::io::{Error, ErrorKind, Result};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// When a sent byte reached a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitTime {
    /// The stage.
    pub stage: Stage,
    /// Number of the byte, modulo 2^32, if numbers were requested ([`Timestamping::OPT_ID`]).
    pub byte: Option<u32>,
    /// Time at which the byte reached the stage.
    pub at: SystemTime,
}

impl TcpStream {
    /// Sets which times of sending, acknowledgment and arrival of bytes are reported from now on. As with SO_TIMESTAMPING of Linux, each
    /// write asks for the times of its last byte, and bytes are numbered from when numbers are first requested. The adapter's process takes
    /// the times in software.
    ///
    /// # Errors
    /// `Unsupported` if connections start in the kernel, whose sockets have this option themselves, or if the adapter is reached over TCP
    /// and so shares no clock with this process; `NotConnected`; `WouldBlock` if the adapter's request queue is full.
    pub fn set_timestamping(&self, asked: Timestamping) -> Result<()> {
        let (socket, before) = (self.socket_id(), self.timestamping());
        let begins_to_count = (asked - before).contains(Timestamping::OPT_ID);
        let mut times = Times::empty();
        times.set(Times::RECEIVED, asked.contains(Timestamping::OF_ARRIVAL));
        if begins_to_count {
            times |= match asked.contains(Timestamping::OPT_ID_TCP) {
                true => Times::FROM_NEXT,
                false => Times::FROM_UNACKNOWLEDGED,
            };
        }
        let asks = SendTimes {
            stages: asked.stages(),
            if_whole: true,
            if_partial: true,
        };
        let set = |host: &mut Host| host.set_times(socket, times, asks);
        self.handle().call(|core| set(&mut core.host))?;
        self.asked_times().store(asked.bits(), Ordering::Relaxed);
        Ok(())
    }

    /// Returns what [`TcpStream::set_timestamping`] has set.
    pub fn timestamping(&self) -> Timestamping {
        Timestamping::from_bits_retain(self.asked_times().load(Ordering::Relaxed))
    }

    /// Sends like [`TcpStream::send`], and sets which times to report of the last byte, for this call and later ones.
    ///
    /// # Errors
    /// The errors of [`TcpStream::send`].
    pub fn send_timed(&self, data: &Bytes, asks: SendTimes) -> Result<usize> {
        let socket = self.socket_id();
        self.send_after(data, |host| host.ask_times(socket, asks))
    }

    /// Works like [`TcpStream::send_timed`] with the beginning of a slice, as [`Write::write`](std::io::Write::write) does.
    ///
    /// # Errors
    /// The errors of [`TcpStream::send`].
    pub fn write_timed(&self, data: &[u8], asks: SendTimes) -> Result<usize> {
        let first = outgoing(data);
        let is_whole = first.len() == data.len();
        let if_whole = asks.if_whole && is_whole;
        self.send_timed(&first, SendTimes { if_whole, ..asks })
    }

    /// Takes the oldest report of when a byte was sent or acknowledged. A poll reports waiting ones as readable.
    pub fn take_transmit_time(&self) -> Option<TransmitTime> {
        let socket = self.socket_id();
        let time = self.handle().call(|core| {
            core.turn();
            core.host.take_transmit_time(socket)
        })?;
        let is_numbered = self.timestamping().contains(Timestamping::OPT_ID);
        Some(TransmitTime {
            stage: time.stage,
            byte: is_numbered.then_some(time.byte),
            at: wall_time(time.at_ns),
        })
    }

    /// Returns when the last byte read arrived at the adapter, if that was [requested](TcpStream::set_timestamping) before it arrived.
    pub fn arrival_of_last_read(&self) -> Option<SystemTime> {
        let socket = self.socket_id();
        let at_ns = self
            .handle()
            .call(|core| core.host.arrival_of_last_read(socket));
        at_ns.map(wall_time)
    }
}

impl Host {
    /// Makes the adapter report times of a connection, and sets which times each send asks for.
    fn set_times(&mut self, socket: SocketId, times: Times, asks: SendTimes) -> Result<()> {
        let unsupported = |text| Err(Error::new(ErrorKind::Unsupported, text));
        if self.is_on_kernel() {
            return unsupported("only the kernel reports times of connections that begin there");
        }
        if !self.driver.link().shares_clock() {
            return unsupported("an adapter reached over TCP shares no clock with this process");
        }
        let now = self.driver.now();
        let os = self.driver.os_mut();
        // Nobody waits for the adapter's confirmation.
        while os.poll_completion().is_some() {}
        os.set_times(now, socket, times)
            .map_err(|error| match error {
                NotSubmitted::NoRoom => Error::new(ErrorKind::WouldBlock, error),
                _ => Error::new(ErrorKind::NotConnected, error),
            })?;
        os.ask_times(socket, asks);
        Ok(())
    }

    fn ask_times(&mut self, socket: SocketId, asks: SendTimes) {
        self.driver.os_mut().ask_times(socket, asks);
    }

    fn take_transmit_time(
        &mut self,
        socket: SocketId,
    ) -> Option<baton_host::adapter::TransmitTime> {
        match self.is_on_kernel() {
            true => None,
            false => self.driver.os_mut().poll_transmit_time(socket),
        }
    }

    /// Returns whether there is a report about a sent byte.
    pub(crate) fn has_transmit_time(&self, socket: SocketId) -> bool {
        !self.is_on_kernel() && self.driver.os().has_transmit_time(socket)
    }

    fn arrival_of_last_read(&self, socket: SocketId) -> Option<u64> {
        match self.is_on_kernel() {
            true => None,
            false => self.driver.os().arrival_of_last_read(socket),
        }
    }
}

/// Difference between the two clocks from which on a change counts as a step, in nanoseconds.
const STEP_NS: i128 = 1_000_000;

/// Converts a CLOCK_MONOTONIC time to the wall clock. Times keep their order and distances unless the wall clock is set.
fn wall_time(at_ns: u64) -> SystemTime {
    static OFFSET_NS: Mutex<Option<i128>> = Mutex::new(None);
    let ns = |clock| {
        let time = clock_gettime(clock);
        i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
    };
    let offset = ns(ClockId::Realtime) - ns(ClockId::Monotonic);
    let mut known = OFFSET_NS.lock().unwrap_or_else(PoisonError::into_inner);
    let offset = match *known {
        Some(known) if (known - offset).abs() < STEP_NS => known,
        _ => *known.insert(offset),
    };
    let since_epoch = u64::try_from(i128::from(at_ns) + offset).unwrap_or_default();
    UNIX_EPOCH + Duration::from_nanos(since_epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_times_match_the_clock_and_keep_distances() {
        let time = clock_gettime(ClockId::Monotonic);
        let at_ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        let before = wall_time(at_ns);
        let after = SystemTime::now() + Duration::from_millis(2);
        assert!(before <= after && after < before + Duration::from_secs(60));
        let later = wall_time(at_ns + 12_345);
        assert_eq!(
            later.duration_since(before).ok(),
            Some(Duration::from_nanos(12_345))
        );
    }
}
