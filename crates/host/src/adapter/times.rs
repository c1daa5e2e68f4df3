//! When bytes were sent and acknowledged and when data arrived, for applications that want to know (SO_TIMESTAMPING).

use super::OsLayer;
use super::completion::unrequested;
use super::control::NotSubmitted;
use super::socket::Phase;
use crate::SocketId;
use baton_bus::descriptor::{Moment, Response, SocketOption, Times};
use baton_bus::link::{Inline, Violation};
use baton_wire::{ArrivalTimes, SeqNr, Stage, Stages, Time};
use std::collections::VecDeque;

/// Reports of one socket that wait to be taken, at most. Those that come after are dropped.
const MOST_REPORTS: usize = 1024;

/// When a byte reached a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitTime {
    /// Which stage.
    pub stage: Stage,
    /// The byte's number, as [`OsLayer::set_times`] has them counted, modulo 2^32.
    pub byte: u32,
    /// When, nanoseconds of CLOCK_MONOTONIC.
    pub at_ns: u64,
}

/// What is asked of the times of a send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendTimes {
    /// The stages of its last byte that are of interest.
    pub stages: Stages,
    /// Where all of the data is taken.
    pub if_whole: bool,
    /// Where there is room for some of it, the last byte that is taken.
    pub if_partial: bool,
}

/// What is told of one socket's times.
#[derive(Clone, Debug, Default)]
pub(super) struct Timing {
    /// Bytes that were held back when the adapter began to count from its next SEND.
    held_before: u32,
    /// For the next send.
    asked: SendTimes,
    /// Bytes of interest among those that are held back: the numbers after theirs.
    marks: VecDeque<(SeqNr, Stages)>,
    reports: VecDeque<TransmitTime>,
    /// Of the data with which the next RECV is answered.
    arrived_ns: Option<u64>,
    /// Nanoseconds, by the bytes received.
    arrivals: ArrivalTimes<u64>,
    last_read_ns: Option<u64>,
}

impl Timing {
    /// The send that goes on took data up to `end`, all of it or only some.
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

    /// Whether the byte before `end` is of interest: what follows it goes in a SEND of its own.
    pub fn ends_at(&self, end: SeqNr) -> bool {
        self.marks.iter().any(|&(mark, _)| mark == end)
    }

    /// What is asked of the last byte of the SEND up to `end`, which goes now.
    pub fn take(&mut self, end: SeqNr) -> Stages {
        let mut stages = Stages::empty();
        while let Some((_, more)) = self.marks.pop_front_if(|(mark, _)| mark.at_or_before(end)) {
            stages |= more;
        }
        stages
    }

    /// Data came, from these bytes on.
    pub fn came(&mut self, start: SeqNr, end: SeqNr) {
        if let Some(at_ns) = self.arrived_ns.take() {
            self.arrivals.note(at_ns, start, end);
        }
    }

    /// All before `next` has been read.
    pub fn read(&mut self, next: SeqNr) {
        self.last_read_ns = self.arrivals.of_byte_before(next);
    }

    /// What was held back is dropped.
    pub fn forget_marks(&mut self) {
        self.marks.clear();
    }
}

impl<P: Inline> OsLayer<P> {
    /// Has the adapter tell times of an open connection from now on: of arrivals, if they are among `times`, and of the sends for which it is
    /// [asked](OsLayer::ask_times). Its clock must be one that the application has, too; otherwise it refuses, as
    /// [`OsLayer::poll_completion`] tells.
    ///
    /// # Errors
    /// There is no such socket, or no room now.
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

    /// What is asked of the sends that follow, on a socket with [times](OsLayer::set_times).
    pub fn ask_times(&mut self, socket: SocketId, asked: SendTimes) {
        if self.known(socket).is_some()
            && let Some(timing) = &mut self.socket_mut(socket.0).timing
        {
            timing.asked = asked;
        }
    }

    /// The next report on a byte of interest. That there is one is told as something to read.
    pub fn poll_transmit_time(&mut self, socket: SocketId) -> Option<TransmitTime> {
        self.known(socket)?;
        let timing = self.socket_mut(socket.0).timing.as_mut()?;
        timing.reports.pop_front()
    }

    /// Whether [`OsLayer::poll_transmit_time`] has one.
    pub fn has_transmit_time(&self, socket: SocketId) -> bool {
        let timing = self.known(socket).and_then(|entry| entry.timing.as_ref());
        timing.is_some_and(|timing| !timing.reports.is_empty())
    }

    /// When the last byte that was read arrived, nanoseconds of CLOCK_MONOTONIC, if the adapter told it.
    pub fn arrival_of_last_read(&self, socket: SocketId) -> Option<u64> {
        self.known(socket)?.timing.as_ref()?.last_read_ns
    }

    /// The adapter tells when something happened.
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
