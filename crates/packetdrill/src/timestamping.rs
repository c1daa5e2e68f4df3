//! What of the engine's times goes to the error queue of a socket (SO_TIMESTAMPING; Linux, networking/timestamping).
//!
//! A request is for the last byte of a call. Bytes are numbered from the first of the connection. Who asks for nothing has empty queues.

use baton_tcp::TransmitTime;
use baton_wire::{Stage, Stages, Time, Timestamping};
use bytes::Bytes;
use std::collections::VecDeque;

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

/// The reports of one socket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timestamps {
    /// The byte that counts as number 0.
    first: u64,
    /// Data of segments whose acknowledgment is of interest, too.
    unacknowledged: VecDeque<Bytes>,
    reports: VecDeque<Stamp>,
}

impl Timestamps {
    /// Bytes are numbered from this one on.
    pub(crate) fn number_from(&mut self, first: u64) {
        self.first = first;
    }

    /// What the engine is to be asked for when a call wrote bytes up to `end`: a key, and stages. That the byte was sent tells which
    /// segment it was in.
    pub(crate) fn request(&self, end: u64, asked: Timestamping) -> (u64, Stages) {
        let id = match asked.contains(Timestamping::OPT_ID) {
            true => (end - 1).wrapping_sub(self.first) as u32,
            false => 0,
        };
        let key = u64::from(id) | u64::from(asked.bits()) << 32;
        (key, asked.stages() | Stages::SENT)
    }

    /// The engine tells a time; `data` left with it, if anything did. True when there is something to report.
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

    /// Nothing more will be sent or acknowledged.
    pub(crate) fn ended(&mut self) {
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
