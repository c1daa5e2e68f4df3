//! When bytes were sent and acknowledged, for who asked (SO_TIMESTAMPING; Linux, networking/timestamping).
//!
//! A request is for the last byte of a call: it is fulfilled when all bytes up to that one have left, or were acknowledged,
//! however they lie in segments. Bytes are numbered from the first of the connection. Who asks for nothing has empty queues.

use baton_wire::Time;
use bytes::Bytes;
use libc::c_int;
use std::collections::VecDeque;

bitflags::bitflags! {
    /// What a socket asked for (SOF_TIMESTAMPING_*).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct Asked: u32 {
        /// When bytes are handed to the interface.
        const TX_SOFTWARE = 1 << 1;
        /// When they arrived.
        const RX_SOFTWARE = 1 << 3;
        /// Software's times are told.
        const SOFTWARE = 1 << 4;
        /// Reports have the number of the byte.
        const OPT_ID = 1 << 7;
        /// When bytes go to the packet scheduler.
        const TX_SCHED = 1 << 8;
        /// When they are acknowledged.
        const TX_ACK = 1 << 9;
        /// Reports come without data.
        const OPT_TSONLY = 1 << 11;
        /// Bytes are numbered from the next one written, not from the first that is not acknowledged.
        const OPT_ID_TCP = 1 << 16;
        /// What is accepted and means nothing here: hardware's times, control messages.
        const OTHERS = 1 | 1 << 2 | 1 << 5 | 1 << 6 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 15 | 1 << 17;
    }
}

impl Asked {
    /// What a call may ask for its own bytes, whatever the socket asked for.
    pub(crate) const OF_CALL: Self = Self::TX_SOFTWARE.union(Self::TX_SCHED).union(Self::TX_ACK);

    /// The value of the option; none when it means nothing.
    pub(crate) fn from_option(value: c_int) -> Option<Self> {
        let asked = Self::from_bits(value as u32)?;
        let numbered = asked.contains(Self::OPT_ID) || !asked.contains(Self::OPT_ID_TCP);
        numbered.then_some(asked)
    }
}

/// What happened to a byte (SCM_TSTAMP_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Stage {
    /// It was handed to the interface.
    Sent = 0,
    /// It went to the packet scheduler.
    Scheduled = 1,
    /// It was acknowledged, and all before it.
    Acknowledged = 2,
}

/// One timestamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// What happened.
    pub stage: Stage,
    /// When.
    pub at: Time,
    /// The number of the byte, as far as that was asked for.
    pub id: u32,
    /// The data of the segment that it was in, as far as that was asked for.
    pub data: Bytes,
    /// The reader wants to be told the time.
    pub tells_time: bool,
}

/// A byte whose fate is of interest.
#[derive(Clone, Debug)]
struct Request {
    /// The number after the byte's.
    end: u64,
    asked: Asked,
    id: u32,
    data: Bytes,
}

/// Requests of one socket and the reports about them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timestamps {
    /// The byte that counts as number 0.
    first: u64,
    unsent: VecDeque<Request>,
    unacknowledged: VecDeque<Request>,
    reports: VecDeque<Stamp>,
}

impl Timestamps {
    /// Bytes are numbered from this one on.
    pub(crate) fn number_from(&mut self, first: u64) {
        self.first = first;
    }

    /// A call wrote bytes up to `end`.
    pub(crate) fn written(&mut self, end: u64, asked: Asked) {
        let id = match asked.contains(Asked::OPT_ID) {
            true => (end - 1).wrapping_sub(self.first) as u32,
            false => 0,
        };
        self.unsent.push_back(Request {
            end,
            asked,
            id,
            data: Bytes::new(),
        });
    }

    /// Somebody waits for bytes to leave.
    pub(crate) fn awaits_sending(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Somebody waits for bytes to be acknowledged.
    pub(crate) fn awaits_acknowledgment(&self) -> bool {
        !self.unacknowledged.is_empty()
    }

    /// All bytes up to `end` have left, the last ones as `data`. True when there is something to report.
    pub(crate) fn sent(&mut self, now: Time, end: u64, data: &[u8]) -> bool {
        let before = self.reports.len();
        while let Some(mut request) = self.unsent.pop_front_if(|request| request.end <= end) {
            if !request.asked.contains(Asked::OPT_TSONLY) {
                request.data = Bytes::copy_from_slice(data);
            }
            self.report(now, &request, Asked::TX_SCHED, Stage::Scheduled);
            self.report(now, &request, Asked::TX_SOFTWARE, Stage::Sent);
            if request.asked.contains(Asked::TX_ACK) {
                self.unacknowledged.push_back(request);
            }
        }
        self.reports.len() > before
    }

    /// All bytes up to `end` are acknowledged. True when there is something to report.
    pub(crate) fn acknowledged(&mut self, now: Time, end: u64) -> bool {
        let before = self.reports.len();
        let done = |request: &mut Request| request.end <= end;
        while let Some(request) = self.unacknowledged.pop_front_if(done) {
            self.report(now, &request, Asked::TX_ACK, Stage::Acknowledged);
        }
        self.reports.len() > before
    }

    fn report(&mut self, at: Time, request: &Request, asks: Asked, stage: Stage) {
        if request.asked.contains(asks) {
            self.reports.push_back(Stamp {
                stage,
                at,
                id: request.id,
                data: request.data.clone(),
                tells_time: request.asked.contains(Asked::SOFTWARE),
            });
        }
    }

    /// Nothing more will be sent or acknowledged.
    pub(crate) fn ended(&mut self) {
        self.unsent.clear();
        self.unacknowledged.clear();
    }

    /// A report waits to be read.
    pub(crate) fn has_report(&self) -> bool {
        !self.reports.is_empty()
    }

    /// Takes the oldest report.
    pub(crate) fn take_report(&mut self) -> Option<Stamp> {
        self.reports.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_reported_when_all_before_it_are() {
        let mut stamps = Timestamps::default();
        stamps.number_from(100);
        let asked = Asked::OF_CALL | Asked::OPT_ID;
        stamps.written(1100, asked);
        assert!(!stamps.sent(Time::ZERO, 1099, b""));
        assert!(stamps.sent(Time::ZERO, 1200, b""));
        assert!(!stamps.acknowledged(Time::ZERO, 1099));
        assert!(stamps.acknowledged(Time::ZERO, 1100));
        let told: Vec<_> = std::iter::from_fn(|| stamps.take_report())
            .map(|stamp| (stamp.stage, stamp.id))
            .collect();
        let stages = [Stage::Scheduled, Stage::Sent, Stage::Acknowledged];
        assert_eq!(told, stages.map(|stage| (stage, 999)));
    }

    #[test]
    fn the_counter_of_bytes_without_numbers_means_nothing() {
        assert_eq!(Asked::from_option(1 << 16), None);
        assert_eq!(Asked::from_option(1 << 30), None);
        assert!(Asked::from_option(1 << 16 | 1 << 7).is_some());
    }
}
