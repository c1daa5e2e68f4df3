//! Senders of datagrams, or of the packets of a trace, at a rate.

use super::super::frame::{Body, Frame};
use super::{Application, Counts};
use crate::port::Latency;
use baton_sim::hardware::CHECK_SEQUENCE;
use baton_sim::hardware::nic::rss;
use baton_wire::{Endpoint, Span, Time};
use std::sync::Arc;

/// First source port of the flows, and their destination port.
const FIRST_PORT: u16 = 1_024;
const DISCARD: u16 = 9;

/// The frames to send.
#[derive(Clone, Debug)]
pub(in crate::simulated) enum What {
    /// Frames of this length, including the check sequence, whose contents are not modelled.
    Alike(u16),
    /// These frames without check sequences, repeated from the start when all were sent.
    Frames(Arc<[Vec<u8>]>),
}

/// Parameters of a sender of datagrams.
#[derive(Clone, Debug)]
pub(in crate::simulated) struct Sending {
    pub(in crate::simulated) what: What,
    /// The machine that receives the frames.
    pub(in crate::simulated) to: u8,
    /// RSS hashes of the flows, which take turns.
    pub(in crate::simulated) hashes: Arc<[u32]>,
    /// Frames per second.
    pub(in crate::simulated) rate: f64,
    /// Frames given to the driver back to back: all of them are due when the first one is.
    pub(in crate::simulated) burst: u32,
    /// When the first burst is due, as a fraction of the time between two bursts.
    pub(in crate::simulated) phase: f64,
    /// Maximum number of frames.
    pub(in crate::simulated) most: u64,
}

impl Sending {
    fn between_bursts_ps(&self) -> f64 {
        1e12 / self.rate * f64::from(self.burst)
    }
}

/// Returns the RSS hashes of this many flows of datagrams from one machine to another.
pub(in crate::simulated) fn hashes([from, to]: [u8; 2], flows: u16) -> Arc<[u32]> {
    let end = |machine: u8, port| Endpoint::new([10, 0, 0, machine + 1].into(), port);
    let hash = |flow| rss::hash(end(from, FIRST_PORT + flow), end(to, DISCARD));
    (0..flows).map(hash).collect()
}

/// Sends datagrams, or only receives them.
#[derive(Clone, Debug, Default)]
pub(in crate::simulated) struct Datagrams {
    sending: Option<Sending>,
    /// Number of frames given to the driver, including those that it refused.
    tried: u64,
    latency: LatencySum,
    /// Received frames whose contents are modelled.
    #[cfg(test)]
    pub(in crate::simulated) taken: Vec<Vec<u8>>,
}

/// Sum of the times from driver to host memory.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::simulated) struct LatencySum {
    frames: u64,
    sum_ps: u128,
    least: Option<Span>,
    most: Span,
}

impl Datagrams {
    /// Creates an application that sends.
    pub(in crate::simulated) fn sending(sending: Sending) -> Self {
        Self {
            sending: Some(sending),
            ..Self::default()
        }
    }

    /// Returns when the frame of this number is due.
    fn due(sending: &Sending, number: u64) -> Time {
        if number >= sending.most {
            return Time::NEVER;
        }
        let burst = (number / u64::from(sending.burst)) as f64;
        Time::from_ps(((burst + sending.phase) * sending.between_bursts_ps()) as u64)
    }

    pub(super) fn next_due(&self) -> Time {
        let due = |sending: &Sending| Self::due(sending, self.tried);
        self.sending.as_ref().map_or(Time::NEVER, due)
    }

    pub(super) fn poll_send(&mut self, now: Time) -> Option<Frame> {
        let sending = self.sending.as_ref();
        let sending = sending.filter(|sending| Self::due(sending, self.tried) <= now)?;
        let (len, body) = match &sending.what {
            What::Alike(len) => (*len, Body::Datagram),
            What::Frames(frames) => {
                let frame = &frames[(self.tried % frames.len() as u64) as usize];
                let len = frame.len() as u16 + CHECK_SEQUENCE;
                (len, Body::Packet(frame.clone()))
            }
        };
        let hash = sending.hashes[(self.tried % sending.hashes.len() as u64) as usize];
        self.tried += 1;
        Some(Frame::new(len, sending.to, hash, body))
    }

    pub(super) fn deliver(&mut self, now: Time, frame: &Frame) {
        let span = now - frame.born;
        let latency = &mut self.latency;
        latency.frames += 1;
        latency.sum_ps += u128::from(span.as_ps());
        latency.least = Some(latency.least.map_or(span, |least| least.min(span)));
        latency.most = latency.most.max(span);
    }

    /// Takes a received frame.
    pub(super) fn receive(&mut self, frame: Frame) {
        #[cfg(test)]
        if let Body::Packet(bytes) = frame.body {
            self.taken.push(bytes);
        }
        #[cfg(not(test))]
        drop(frame);
    }

    /// Returns the number of frames due by `now`, and of those given to the driver.
    pub(super) fn counts(&self, now: Time) -> Counts {
        let of = |sending: &Sending| {
            let bursts = now.as_ps() as f64 / sending.between_bursts_ps() - sending.phase;
            let due = bursts.ceil() as u64 * u64::from(sending.burst);
            due.min(sending.most)
        };
        Counts {
            offered: self.sending.as_ref().map_or(0, of),
            tried: self.tried,
            ..Counts::default()
        }
    }

    pub(in crate::simulated) fn restart_latency(&mut self) {
        self.latency = LatencySum::default();
    }
}

impl LatencySum {
    /// Returns the latency of all datagrams that these applications received, or `None` if they received none.
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
