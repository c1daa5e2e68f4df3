//! Datagrams, or packets of a trace, at a rate.

use super::super::frame::{Body, CHECK_SEQUENCE, Frame, Packets};
use super::super::rss;
use super::{Application, Outgoing};
use crate::port::Latency;
use baton_wire::{Endpoint, Span, Time};
use std::sync::Arc;

/// Ports that flows come from, from this one on, and that which they go to.
const FIRST_PORT: u16 = 1_024;
const DISCARD: u16 = 9;

/// What is sent.
#[derive(Clone, Debug)]
pub(in crate::simulated) enum What {
    /// Frames of so many bytes, check sequence included, with nothing to be seen in them.
    Alike(u16),
    /// These frames without check sequences, one after the other and then again.
    Frames(Arc<[Vec<u8>]>),
}

/// What a sender of datagrams does.
#[derive(Clone, Debug)]
pub(in crate::simulated) struct Sending {
    pub(in crate::simulated) what: What,
    /// Whom they are for.
    pub(in crate::simulated) to: u8,
    /// What receive-side scaling makes of the flows, which take turns.
    pub(in crate::simulated) hashes: Arc<[u32]>,
    /// Frames in a second.
    pub(in crate::simulated) rate: f64,
    /// Frames that are given to the driver one behind the other: all of them are due when the first is.
    pub(in crate::simulated) burst: u32,
    /// When the first is due, in parts of the time between two bursts.
    pub(in crate::simulated) phase: f64,
    /// How many, if not for ever.
    pub(in crate::simulated) most: u64,
}

impl Sending {
    fn between_bursts_ps(&self) -> f64 {
        1e12 / self.rate * f64::from(self.burst)
    }
}

/// What receive-side scaling makes of so many flows of datagrams from one machine to another.
pub(in crate::simulated) fn hashes([from, to]: [u8; 2], flows: u16) -> Arc<[u32]> {
    let end = |machine: u8, port| Endpoint::new([10, 0, 0, machine + 1].into(), port);
    let hash = |flow| rss::hash(end(from, FIRST_PORT + flow), end(to, DISCARD));
    (0..flows).map(hash).collect()
}

/// Sends datagrams, or only takes them.
#[derive(Clone, Debug, Default)]
pub(in crate::simulated) struct Datagrams {
    sending: Option<Sending>,
    /// Frames that were given to the driver, or refused by it.
    tried: u64,
    latency: LatencySum,
    /// Frames that came, where something is to be seen in them.
    #[cfg(test)]
    pub(in crate::simulated) taken: Vec<Vec<u8>>,
}

/// Times from driver to host memory.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::simulated) struct LatencySum {
    frames: u64,
    sum_ps: u128,
    least: Option<Span>,
    most: Span,
}

impl Datagrams {
    /// One that sends.
    pub(in crate::simulated) fn sending(sending: Sending) -> Self {
        Self {
            sending: Some(sending),
            ..Self::default()
        }
    }

    /// When the frame of this number is due.
    fn due(sending: &Sending, number: u64) -> Time {
        if number >= sending.most {
            return Time::NEVER;
        }
        let burst = (number / u64::from(sending.burst)) as f64;
        Time::from_ps(((burst + sending.phase) * sending.between_bursts_ps()) as u64)
    }

    pub(super) fn wants_to_send(&self, now: Time) -> bool {
        self.next_due() <= now
    }

    pub(super) fn next_due(&self) -> Time {
        let due = |sending: &Sending| Self::due(sending, self.tried);
        self.sending.as_ref().map_or(Time::NEVER, due)
    }

    pub(super) fn poll_send(&mut self, now: Time, packets: &mut Packets) -> Option<Outgoing> {
        let sending = self.sending.as_ref();
        let sending = sending.filter(|sending| Self::due(sending, self.tried) <= now)?;
        let (len, body) = match &sending.what {
            What::Alike(len) => (*len, Body::Datagram),
            What::Frames(frames) => {
                let frame = &frames[(self.tried % frames.len() as u64) as usize];
                let len = frame.len() as u16 + CHECK_SEQUENCE;
                (len, Body::Packet(packets.insert(frame)))
            }
        };
        let hash = sending.hashes[(self.tried % sending.hashes.len() as u64) as usize];
        self.tried += 1;
        Some(Outgoing {
            hash,
            len,
            to: sending.to,
            body,
            lies_at: None,
        })
    }

    pub(super) fn deliver(&mut self, now: Time, frame: &Frame) {
        let span = now - frame.born;
        let latency = &mut self.latency;
        latency.frames += 1;
        latency.sum_ps += u128::from(span.as_ps());
        latency.least = Some(latency.least.map_or(span, |least| least.min(span)));
        latency.most = latency.most.max(span);
    }

    /// A frame came.
    #[cfg(test)]
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.taken.push(bytes.to_vec());
    }

    /// Frames that were due by `now`.
    pub(in crate::simulated) fn offered(&self, now: Time) -> u64 {
        let of = |sending: &Sending| {
            let bursts = now.as_ps() as f64 / sending.between_bursts_ps() - sending.phase;
            let due = bursts.ceil() as u64 * u64::from(sending.burst);
            due.min(sending.most)
        };
        self.sending.as_ref().map_or(0, of)
    }

    /// Frames that were given to the driver, or refused by it.
    pub(in crate::simulated) fn tried(&self) -> u64 {
        self.tried
    }

    pub(in crate::simulated) fn restart_latency(&mut self) {
        self.latency = LatencySum::default();
    }
}

impl LatencySum {
    /// Latency of all datagrams that came to any of these; `None` if none came.
    pub(in crate::simulated) fn of<'a>(
        applications: impl Iterator<Item = &'a Application>,
    ) -> Option<Latency> {
        let mut all = Self::default();
        for application in applications {
            if let Application::Datagrams(datagrams) = application {
                let one = &datagrams.latency;
                all.frames += one.frames;
                all.sum_ps += one.sum_ps;
                all.least = all.least.into_iter().chain(one.least).min();
                all.most = all.most.max(one.most);
            }
        }
        Some(Latency {
            least_us: all.least?.as_us_f64(),
            mean_us: all.sum_ps as f64 / all.frames as f64 / 1e6,
            most_us: all.most.as_us_f64(),
        })
    }
}
