//! Reconstruction of connections from their segments.

use super::segment::Segment;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::net::SocketAddr;

/// All connections of a capture.
#[derive(Default)]
pub(super) struct Connections {
    /// Connections in the order in which they were first seen.
    all: Vec<Connection>,
    /// Index of the latest connection between two ends, with the smaller address first.
    latest: HashMap<[SocketAddr; 2], usize, FxBuildHasher>,
}

/// What was seen of a connection.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Connection {
    pub first_us: u64,
    pub last_us: u64,
    /// Data that each end sent.
    pub ends: [End; 2],
    /// Index of the end that is the server: the one that did not open the connection, or the one with the smaller port.
    pub server: usize,
    /// Whether the first segment was seen.
    pub begun: bool,
    reset: bool,
}

/// Segments that one end sent.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct End {
    /// Number of segments, including those without data.
    pub packets: u64,
    /// Sequence numbers that this end used.
    sent: Span,
    /// Sequence numbers of the other end that this end acknowledged.
    acknowledged: Span,
    /// Whether this end sent a SYN or a FIN; each takes a sequence number.
    syn: bool,
    fin: bool,
    /// The largest window that this end advertised, not scaled, and the power of two that scales it, if it is known.
    window: u16,
    scale: Option<u8>,
}

/// Sequence numbers in use, which wrap around.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Span {
    /// The first sequence number, and the one after the last.
    range: Option<(u32, u32)>,
    /// Number of sequence numbers in use.
    len: u64,
    /// Numbers of a segment too far from the range to extend it. If another segment continues them, those in between were not captured.
    far: Option<(u32, u32)>,
    /// Number of segments that were too far away and that no other segment continued.
    strays: u64,
}

impl Span {
    /// Extends the range by the numbers from `start` up to `end`, if they are at most `window` after its end or before its start.
    fn add(&mut self, start: u32, end: u32, window: u32) {
        let bytes = u64::from(end.wrapping_sub(start));
        let Some((first, next)) = &mut self.range else {
            self.range = Some((start, end));
            self.len = bytes;
            return;
        };
        let ahead = start.wrapping_sub(*next).cast_signed();
        let behind = first.wrapping_sub(start).cast_signed();
        let is_near = ahead <= window.cast_signed() && behind <= window.cast_signed();
        if is_near {
            // Retransmitted numbers precede the end by less than half of the sequence number space.
            let more = end.wrapping_sub(*next).cast_signed();
            if more > 0 {
                self.len += u64::from(more.unsigned_abs());
                *next = end;
            }
            if behind > 0 {
                self.len += u64::from(behind.unsigned_abs());
                *first = start;
            }
            return;
        }
        match self.far {
            // The numbers between were not seen, and are not counted.
            Some((far, after)) if far != start && start.wrapping_sub(after) <= window => {
                self.len += u64::from(end.wrapping_sub(far));
                (*first, *next) = (far, end);
                self.far = None;
            }
            Some((far, _)) if far == start => {}
            other => {
                self.strays += u64::from(other.is_some());
                self.far = Some((start, end));
            }
        }
    }

    const fn first(&self) -> Option<u32> {
        match self.range {
            Some((first, _)) => Some(first),
            None => None,
        }
    }

    /// Returns the number of segments that were out of place.
    const fn strays(&self) -> u64 {
        self.strays + self.far.is_some() as u64
    }
}

/// Window of an end whose scale is unknown, bytes.
const UNKNOWN_WINDOW: u32 = 1 << 20;
/// Minimum window that is assumed of any end, bytes: windows may shrink while data is in flight.
const LEAST_WINDOW: u32 = 1 << 16;

impl End {
    /// Records a segment that this end sent to an end whose window is `window`.
    fn take(&mut self, segment: &Segment, window: u32) {
        self.packets += 1;
        self.window = self.window.max(segment.window);
        self.scale = self.scale.or(segment.scale);
        self.syn |= segment.syn;
        self.fin |= segment.fin;
        let numbers = segment.bytes + u32::from(segment.syn) + u32::from(segment.fin);
        // A reset may have any sequence number.
        if !segment.reset {
            let end = segment.seq.wrapping_add(numbers);
            self.sent.add(segment.seq, end, window);
            if let Some(ack) = segment.ack {
                let own = self.window();
                self.acknowledged.add(ack, ack, own);
            }
        }
    }

    /// Returns how many bytes the other end may send without an acknowledgment.
    fn window(&self) -> u32 {
        let scaled = |scale: u8| (u32::from(self.window) << scale).max(LEAST_WINDOW);
        self.scale.map_or(UNKNOWN_WINDOW, scaled)
    }

    /// Returns whether any segment of this end was seen.
    pub(super) const fn seen(&self) -> bool {
        self.packets > 0
    }
}

impl Connections {
    pub(super) fn take(&mut self, time_us: u64, segment: &Segment) {
        let Segment { from, to, .. } = *segment;
        let (ends, sender) = if from <= to {
            ([from, to], 0)
        } else {
            ([to, from], 1)
        };
        let latest = self.latest.get(&ends).copied();
        let number = latest.filter(|&number| !self.all[number].is_over_for(sender, segment));
        let number = number.unwrap_or_else(|| {
            let server = match (segment.syn, segment.ack) {
                (true, None) => 1 - sender,
                (true, Some(_)) => sender,
                _ => usize::from(ends[1].port() < ends[0].port()),
            };
            self.all.push(Connection {
                first_us: time_us,
                server,
                begun: segment.syn,
                ..Connection::default()
            });
            self.latest.insert(ends, self.all.len() - 1);
            self.all.len() - 1
        });
        let connection = &mut self.all[number];
        connection.last_us = connection.last_us.max(time_us);
        connection.first_us = connection.first_us.min(time_us);
        connection.reset |= segment.reset;
        let window = connection.ends[1 - sender].window();
        connection.ends[sender].take(segment, window);
    }

    pub(super) fn all(&self) -> &[Connection] {
        &self.all
    }
}

impl Connection {
    /// Returns whether a segment starts another connection between the same ends: a SYN that is not a retransmission of this connection's.
    fn is_over_for(&self, sender: usize, segment: &Segment) -> bool {
        let end = &self.ends[sender];
        let again = end.syn && end.sent.first() == Some(segment.seq);
        segment.syn && end.seen() && !again
    }

    /// Returns whether the connection's end was captured: a reset, or a FIN of each end of which any segment was captured.
    pub(super) fn ended(&self) -> bool {
        self.reset || self.ends.iter().all(|end| end.fin || !end.seen())
    }

    /// Returns the number of segments of both ends.
    pub(super) const fn packets(&self) -> u64 {
        self.ends[0].packets + self.ends[1].packets
    }

    /// Returns the number of different bytes that an end sent: by its own sequence numbers if its segments were captured, otherwise by the
    /// other end's acknowledgments, which may count one more for the FIN.
    pub(super) fn bytes(&self, end: usize) -> u64 {
        let own = &self.ends[end];
        if own.seen() {
            let controls = u64::from(own.syn) + u64::from(own.fin);
            own.sent.len.saturating_sub(controls)
        } else {
            self.ends[1 - end].acknowledged.len
        }
    }

    /// Returns the number of segments and acknowledgments that were too far from all others, whose bytes are not counted.
    pub(super) fn strays(&self) -> u64 {
        let ends = self.ends.iter();
        ends.map(|end| end.sent.strays() + end.acknowledged.strays())
            .sum()
    }

    /// Returns whether the segments of only one end were captured.
    pub(super) const fn is_one_way(&self) -> bool {
        !(self.ends[0].seen() && self.ends[1].seen())
    }
}
