//! Checks that the host gets the times that it requests of an adapter.

use super::adapter::EPOCH_NS;
use baton_bus::descriptor::Times as Requested;
use baton_host::SocketId;
use baton_host::adapter::{OsLayer, SendTimes};
use baton_testkit::Random;
use baton_wire::{Stages, Time};
use bytes::Bytes;
use std::collections::VecDeque;

/// Timestamps of one connection.
#[derive(Debug)]
pub struct Times {
    since_ns: u64,
    /// Number of bytes that were written before timestamps were requested.
    first: usize,
    /// Bytes whose timestamps were requested, by stage, and the times at which they were written.
    asked: [VecDeque<(u32, u64)>; 3],
    stages: Stages,
}

fn ns(now: Time) -> u64 {
    EPOCH_NS + now.as_ps() / 1000
}

impl Times {
    /// Requests timestamps of an open connection; returns `None` if there is currently no space for the request.
    pub fn begin(
        now: Time,
        os: &mut OsLayer<Bytes>,
        socket: SocketId,
        written: usize,
    ) -> Option<Self> {
        let times = Requested::RECEIVED | Requested::FROM_NEXT;
        os.set_times(now, socket, times).ok()?;
        Some(Self {
            since_ns: ns(now),
            first: written,
            asked: Default::default(),
            stages: Stages::empty(),
        })
    }

    /// Draws the stages whose timestamps the next send requests.
    pub fn ask(&mut self, os: &mut OsLayer<Bytes>, socket: SocketId, random: &mut Random) {
        self.stages = Stages::from_bits_truncate(random.below(8) as u8);
        let asked = SendTimes {
            stages: self.stages,
            if_whole: true,
            if_partial: true,
        };
        os.ask_times(socket, asked);
    }

    /// Records a send that accepted `taken` bytes; `written` is the total number of bytes so far.
    pub fn wrote(
        &mut self,
        now: Time,
        os: &mut OsLayer<Bytes>,
        socket: SocketId,
        (written, taken): (usize, usize),
    ) {
        os.ask_times(socket, SendTimes::default());
        for stage in baton_wire::Stage::ALL {
            if taken > 0 && self.stages.contains(stage.into()) {
                let byte = (written - self.first - 1) as u32;
                self.asked[stage as usize].push_back((byte, ns(now)));
            }
        }
    }

    /// Checks that reported times were requested, are in order and not before the writes, and that arrival times are plausible.
    pub fn check(&mut self, now: Time, os: &mut OsLayer<Bytes>, socket: SocketId) {
        while let Some(time) = os.poll_transmit_time(socket) {
            let asked = self.asked[time.stage as usize].pop_front();
            let (byte, at_ns) = asked.expect("the timestamp was requested");
            assert_eq!(time.byte, byte, "{time:?}");
            assert!((at_ns..=ns(now)).contains(&time.at_ns), "{time:?}");
        }
        if let Some(at_ns) = os.arrival_of_last_read(socket) {
            assert!((self.since_ns..=ns(now)).contains(&at_ns));
        }
    }
}
