//! Times at which bytes were sent and acknowledged and data arrived, for applications that ask for them (SO_TIMESTAMPING).

use super::OsLayer;
use super::completion::unrequested;
use super::control::NotSubmitted;
use super::socket::Phase;
use crate::SocketId;
use baton_bus::descriptor::{Moment, Response, SocketOption, Times};
use baton_bus::link::{Inline, Violation};
use baton_wire::{ArrivalTimes, SeqNr, Stage, Stages, Time};
use std::collections::VecDeque;

/// Maximum number of reports of one socket that wait to be taken. Further ones are dropped.
const MOST_REPORTS: usize = 1024;

/// When a byte reached a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitTime {
    /// The stage.
    pub stage: Stage,
    /// Number of the byte, counted as [`OsLayer::set_times`] says, modulo 2^32.
    pub byte: u32,
    /// The time, in nanoseconds of CLOCK_MONOTONIC.
    pub at_ns: u64,
}

/// Which times of a send are requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendTimes {
    /// The stages of its last byte to report.
    pub stages: Stages,
    /// Whether to report if all of the data is taken.
    pub if_whole: bool,
    /// Whether to report if only some of the data is taken: then the times of the last byte taken.
    pub if_partial: bool,
}

/// The requested and reported times of one socket.
#[derive(Clone, Debug, Default)]
pub(super) struct Timing {
    /// Number of bytes that were held back when the adapter began to count from its next SEND.
    held_before: u32,
    /// Times requested for the next send.
    asked: SendTimes,
    /// The held bytes whose times were requested, by the sequence numbers after them.
    marks: VecDeque<(SeqNr, Stages)>,
    reports: VecDeque<TransmitTime>,
    /// Arrival time of the data of the next answer to a RECV.
    arrived_ns: Option<u64>,
    /// Arrival times in nanoseconds, by received bytes.
    arrivals: ArrivalTimes<u64>,
    last_read_ns: Option<u64>,
}

impl Timing {
    /// Records that the current send took data up to `end`, and whether that was all of its data.
    pub fn mark(&mut self, end: SeqNr, is_whole: bool) {
        let SendTimes {
            stages,
            if_whole,
            if_partial,
        } = self.asked;
        let is_asked = if is_whole { if_whole } else { if_partial };
        if is_asked && !stages.is_empty() {
            self.marks.push_back((end, stages));
        }
    }

    /// Returns whether times of the byte before `end` were requested: the data after it goes in a separate SEND.
    pub fn ends_at(&self, end: SeqNr) -> bool {
        self.marks.iter().any(|&(mark, _)| mark == end)
    }

    /// Takes the requested stages of the last byte of a SEND up to `end`, which is submitted now.
    pub fn take(&mut self, end: SeqNr) -> Stages {
        let mut stages = Stages::empty();
        while let Some((_, more)) = self.marks.pop_front_if(|(mark, _)| mark.at_or_before(end)) {
            stages |= more;
        }
        stages
    }

    /// Records the arrival time of data with these sequence numbers.
    pub fn came(&mut self, start: SeqNr, end: SeqNr) {
        if let Some(at_ns) = self.arrived_ns.take() {
            self.arrivals.note(at_ns, start, end);
        }
    }

    /// Records that all data before `next` was read.
    pub fn read(&mut self, next: SeqNr) {
        self.last_read_ns = self.arrivals.of_byte_before(next);
    }

    /// Discards the requests for held data that is dropped.
    pub fn forget_marks(&mut self) {
        self.marks.clear();
    }
}

impl<P: Inline> OsLayer<P> {
    /// Makes the adapter report times of an established connection from now on: of arrivals, if they are among `times`, and of the sends
    /// for which they are [requested](OsLayer::ask_times). The adapter's clock must be one that the application can read, too; otherwise
    /// the adapter refuses, which [`OsLayer::poll_completion`] reports.
    ///
    /// # Errors
    /// There is no such connection, or no space for the request now.
    pub fn set_times(
        &mut self,
        now: Time,
        socket: SocketId,
        times: Times,
    ) -> Result<(), NotSubmitted> {
        if !self.is_open(socket) {
            return Err(NotSubmitted::NoSuchSocket);
        }
        self.set_option(now, socket, SocketOption::Times, times.bits())?;
        let entry = self.socket_mut(socket.0);
        let is_new = entry.timing.is_none();
        let held = entry.held_len;
        let timing = entry.timing.get_or_insert_default();
        if times.contains(Times::FROM_UNACKNOWLEDGED) {
            timing.held_before = 0;
        } else if is_new || times.contains(Times::FROM_NEXT) {
            timing.held_before = held;
        }
        Ok(())
    }

    /// Sets which times to report of the sends that follow, on a socket with [times](OsLayer::set_times).
    pub fn ask_times(&mut self, socket: SocketId, asked: SendTimes) {
        if self.known(socket).is_some()
            && let Some(timing) = &mut self.socket_mut(socket.0).timing
        {
            timing.asked = asked;
        }
    }

    /// Returns the next report of a sent byte. The socket becomes readable when there is a report.
    pub fn poll_transmit_time(&mut self, socket: SocketId) -> Option<TransmitTime> {
        self.known(socket)?;
        let timing = self.socket_mut(socket.0).timing.as_mut()?;
        timing.reports.pop_front()
    }

    /// Returns whether [`OsLayer::poll_transmit_time`] has a report.
    pub fn has_transmit_time(&self, socket: SocketId) -> bool {
        let timing = self.known(socket).and_then(|entry| entry.timing.as_ref());
        timing.is_some_and(|timing| !timing.reports.is_empty())
    }

    /// Returns when the last byte read arrived, in nanoseconds of CLOCK_MONOTONIC, if the adapter has reported that.
    pub fn arrival_of_last_read(&self, socket: SocketId) -> Option<u64> {
        self.known(socket)?.timing.as_ref()?.last_read_ns
    }

    /// Handles a time that the adapter reports.
    pub(super) fn handle_time(
        &mut self,
        response: &Response,
        what: Moment,
        at_ns: u64,
    ) -> Result<(), Violation> {
        let number = response.socket;
        let entry = self.sockets.get_mut(number as usize);
        let is_open = entry.as_ref().is_some_and(|entry| match what {
            Moment::Arrived => !entry.receives.is_empty(),
            Moment::Reached { .. } => {
                matches!(entry.phase, Phase::Open | Phase::Closing) && !entry.unknown
            }
        });
        let timing = entry.filter(|_| is_open).and_then(|it| it.timing.as_mut());
        let timing = timing.ok_or_else(|| unrequested(response))?;
        let (stage, byte) = match what {
            Moment::Reached { stage, byte } => (stage, byte.wrapping_sub(timing.held_before)),
            Moment::Arrived => {
                timing.arrived_ns = Some(at_ns);
                return Ok(());
            }
        };
        if timing.reports.len() < MOST_REPORTS {
            let time = TransmitTime { stage, byte, at_ns };
            timing.reports.push_back(time);
            self.stats.times_told += 1;
            self.wake_reader(number);
        } else {
            self.stats.times_dropped += 1;
        }
        Ok(())
    }
}
