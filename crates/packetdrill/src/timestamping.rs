//! Timestamps of the engine that go to a socket's error queue (SO_TIMESTAMPING; Linux, networking/timestamping).
//!
//! A request is for the last byte of a call. Bytes are numbered from the first of the connection. Without requests the queues are empty.

use baton_tcp::TransmitTime;
use baton_wire::{Stage, Stages, Time, Timestamping};
use bytes::Bytes;
use std::collections::VecDeque;

/// One timestamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The stage that the byte reached.
    pub stage: Stage,
    /// The time.
    pub at: Time,
    /// The number of the byte, if requested.
    pub id: u32,
    /// The data of the byte's segment, if requested.
    pub data: Bytes,
    /// The reader requests the time.
    pub tells_time: bool,
}

/// The reports of one socket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timestamps {
    /// The byte that counts as number 0.
    first: u64,
    /// Data of sent segments whose acknowledgment is to be reported, too.
    unacknowledged: VecDeque<Bytes>,
    reports: VecDeque<Stamp>,
}

impl Timestamps {
    /// Numbers bytes from this one on.
    pub(crate) fn number_from(&mut self, first: u64) {
        self.first = first;
    }

    /// Key and stages of the request to the engine for a call that wrote bytes up to `end`. The stage "sent" is always included, because it
    /// identifies the byte's segment.
    pub(crate) fn request(&self, end: u64, asked: Timestamping) -> (u64, Stages) {
        let id = match asked.contains(Timestamping::OPT_ID) {
            true => (end - 1).wrapping_sub(self.first) as u32,
            false => 0,
        };
        let key = u64::from(id) | u64::from(asked.bits()) << 32;
        (key, asked.stages() | Stages::SENT)
    }

    /// Takes a time from the engine; `data` is the data of the segment that was sent, if any. Returns true if there is a new report.
    pub(crate) fn take(&mut self, time: TransmitTime, data: &[u8]) -> bool {
        let asked = Timestamping::from_bits_retain((time.key >> 32) as u32);
        let data = match time.stage {
            Stage::Acknowledged => self.unacknowledged.pop_front().unwrap_or_default(),
            _ if asked.contains(Timestamping::OPT_TSONLY) => Bytes::new(),
            _ => Bytes::copy_from_slice(data),
        };
        if time.stage == Stage::Sent && asked.contains(Timestamping::TX_ACK) {
            self.unacknowledged.push_back(data.clone());
        }
        let is_asked = asked.stages().contains(time.stage.into());
        if is_asked {
            self.reports.push_back(Stamp {
                stage: time.stage,
                at: time.at,
                id: time.key as u32,
                data,
                tells_time: asked.contains(Timestamping::SOFTWARE),
            });
        }
        is_asked
    }

    /// Drops pending data, as nothing more will be sent or acknowledged.
    pub(crate) fn ended(&mut self) {
        self.unacknowledged.clear();
    }

    /// Reports whether a report waits to be read.
    pub(crate) fn has_report(&self) -> bool {
        !self.reports.is_empty()
    }

    /// Takes the oldest report.
    pub(crate) fn take_report(&mut self) -> Option<Stamp> {
        self.reports.pop_front()
    }
}
