//! Datagrams, or packets of a trace, at a rate.

use super::super::frame::{Body, CHECK_SEQUENCE, Frame, Packets};
use super::Outgoing;
use crate::port::Latency;
use baton_wire::{Span, Time};
use std::sync::Arc;

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
    /// Frames in a second.
    pub(in crate::simulated) rate: f64,
    /// How many, if not for ever.
    pub(in crate::simulated) most: u64,
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
struct LatencySum {
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
        Time::from_ps((number as f64 * (1e12 / sending.rate)) as u64)
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
        self.tried += 1;
        Some(Outgoing {
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
            let due = (now.as_ps() as f64 / (1e12 / sending.rate)).ceil() as u64;
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

    pub(in crate::simulated) fn latency(&self) -> Option<Latency> {
        let LatencySum {
            frames,
            sum_ps,
            least,
            most,
        } = self.latency;
        Some(Latency {
            least_us: least?.as_us_f64(),
            mean_us: sum_ps as f64 / frames as f64 / 1e6,
            most_us: most.as_us_f64(),
        })
    }
}
