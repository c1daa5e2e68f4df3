//! Super-segments: a burst of segments in one packet, of the size that Linux's segmentation offload would have.

use baton_tcp::{Info, Segment};
use baton_wire::{Flags, SeqNr, Span};
use bytes::Bytes;

/// Maximum number of bytes of data in a super-segment: 64 KiB minus space for headers (sk_gso_max_size).
pub(crate) const LARGEST: u32 = 65_536 - 321;

/// A super-segment holds the data sent in 2^-10 s at the pacing rate (sk_pacing_shift).
const PACING_SHIFT: u32 = 10;

/// Short round trips add data: up to a whole super-segment, and half as much for every 2^9 us of round-trip time (tcp_tso_rtt_log).
const ROUND_TRIP_SHIFT: u32 = 9;

/// Consecutive segments that leave at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Burst {
    segment: Segment<Bytes>,
    unit: usize,
    count: u32,
    most: u32,
    closed: bool,
}

impl Burst {
    /// Creates a burst of one segment, which may grow to `most` segments.
    pub(crate) fn new(segment: Segment<Bytes>, most: u32) -> Self {
        let unit = segment.payload_len();
        let alone = Flags::SYN | Flags::FIN | Flags::RST | Flags::URG;
        Self {
            closed: unit == 0 || segment.header.flags.intersects(alone),
            segment,
            unit,
            count: 1,
            most,
        }
    }

    /// Number of segments in the burst.
    pub(crate) fn count(&self) -> usize {
        self.count as usize
    }

    /// Ends the burst.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Reports whether the burst may grow.
    pub(crate) fn is_open(&self) -> bool {
        !self.closed && self.count < self.most
    }

    /// Reports whether `next` continues the burst.
    pub(crate) fn takes(&self, next: &Segment<Bytes>) -> bool {
        let (first, len) = (&self.segment, next.payload_len());
        let last_only = Flags::PSH | Flags::FIN;
        let first_only = Flags::CWR;
        let same_flags = (first.header.flags - last_only - first_only)
            == (next.header.flags - last_only)
            && !next.header.flags.contains(Flags::SYN);
        self.is_open()
            && len > 0
            && len <= self.unit
            && first.payload_len() + len <= LARGEST as usize
            && end_of(first) == next.header.seq
            && same_flags
            && first.ecn == next.ecn
            && first.header.ack == next.header.ack
            && first.header.window == next.header.window
            && first.header.options == next.header.options
    }

    /// Adds a segment that continues the burst.
    pub(crate) fn join(&mut self, next: Segment<Bytes>) {
        let short = next.payload_len() < self.unit;
        let ends = next.header.flags & (Flags::PSH | Flags::FIN);
        self.segment.header.flags -= Flags::PSH;
        self.segment.header.flags |= ends;
        self.segment.payload.extend(next.payload);
        self.count += 1;
        self.closed = short || ends.contains(Flags::FIN);
    }

    /// Sets PSH if the burst holds more than one segment.
    pub(crate) fn push_several(&mut self) {
        if self.count > 1 {
            self.segment.header.flags |= Flags::PSH;
        }
    }

    /// Returns the packet, and the length of each segment's data.
    pub(crate) fn into_segment(self) -> (Segment<Bytes>, usize) {
        (self.segment, self.unit)
    }
}

fn end_of(segment: &Segment<Bytes>) -> SeqNr {
    segment.header.seq + segment.payload_len() as u32
}

/// Segments in the congestion window.
pub(crate) fn window_segments(info: &Info) -> u32 {
    (info.congestion_window / info.send_mss.max(1)).max(1)
}

/// Half of the congestion window, so that at least two packets are in flight.
pub(crate) fn half_window(info: &Info) -> u32 {
    (window_segments(info) / 2).max(1)
}

/// Reports whether the data in flight fills the congestion window, or half of it in slow start (tcp_is_cwnd_limited).
pub(crate) fn fills_window(info: &Info) -> bool {
    let in_flight = match info.congestion_window < info.slow_start_threshold {
        true => 2 * info.unacked_segments,
        false => info.unacked_segments + 1,
    };
    window_segments(info) < in_flight
}

/// Expected sending rate of a connection, which determines the size of super-segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pacing {
    /// Bytes a second; `None` before the first round trip after the handshake.
    rate: Option<u64>,
    /// The application's limit.
    most: Option<u64>,
}

impl Pacing {
    /// Computes the rate as the window divided by the round-trip time, times 2 in slow start and 1.2 later.
    pub(crate) fn update(&mut self, info: &Info) {
        let Some(srtt) = info.srtt.filter(|&srtt| srtt >= Span::from_us(1)) else {
            return;
        };
        let segments = window_segments(info);
        let slow_start = info.congestion_window < info.slow_start_threshold / 2;
        let percent = if slow_start { 200 } else { 120 };
        let bytes = u64::from(info.send_mss) * u64::from(segments.max(info.unacked_segments));
        self.rate = Some(bytes * percent * 10_000 / srtt.as_us());
    }

    /// Limits the rate, bytes a second.
    pub(crate) fn limit(&mut self, most: Option<u64>) {
        self.most = most;
    }

    /// The rate, bytes a second, if it is known.
    pub(crate) fn rate(&self) -> Option<u64> {
        let known = self.rate.into_iter().chain(self.most);
        known.min()
    }

    /// Number of segments of one super-segment, at least `least`.
    pub(crate) fn segments(&self, info: &Info, least: u32) -> u32 {
        let mut bytes = match self.rate() {
            Some(rate) => rate >> PACING_SHIFT,
            None => LARGEST.into(),
        };
        let min_rtt_us = info.min_rtt.map_or(u64::MAX, Span::as_us);
        let halvings = min_rtt_us >> ROUND_TRIP_SHIFT;
        if halvings < 32 {
            bytes += u64::from(LARGEST) >> halvings;
        }
        let bytes = bytes.min(LARGEST.into()) as u32;
        (bytes / info.send_mss.max(1)).max(least)
    }
}

#[cfg(test)]
mod tests;
