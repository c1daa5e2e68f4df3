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
}

/// A range of sequence numbers, which wrap around.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Span {
    /// The first sequence number, and the one after the last.
    range: Option<(u32, u32)>,
    /// Number of sequence numbers in the range.
    len: u64,
}

impl Span {
    /// Extends the range to include `start` up to `end`.
    fn add(&mut self, start: u32, end: u32) {
        let (first, next) = self.range.get_or_insert((start, start));
        // Retransmitted numbers are less than half of the sequence number space behind.
        let more = end.wrapping_sub(*next).cast_signed();
        if more > 0 {
            self.len += u64::from(more.unsigned_abs());
            *next = end;
        }
        let earlier = first.wrapping_sub(start).cast_signed();
        if earlier > 0 {
            self.len += u64::from(earlier.unsigned_abs());
            *first = start;
        }
    }

    const fn first(&self) -> Option<u32> {
        match self.range {
            Some((first, _)) => Some(first),
            None => None,
        }
    }
}

impl End {
    fn take(&mut self, segment: &Segment) {
        self.packets += 1;
        self.syn |= segment.syn;
        self.fin |= segment.fin;
        let numbers = segment.bytes + u32::from(segment.syn) + u32::from(segment.fin);
        // A reset may have any sequence number.
        if !segment.reset {
            self.sent
                .add(segment.seq, segment.seq.wrapping_add(numbers));
            if let Some(ack) = segment.ack {
                self.acknowledged.add(ack, ack);
            }
        }
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
        connection.ends[sender].take(segment);
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

    /// Returns whether the end was seen: a reset, or a FIN of each end of which any segment was seen.
    pub(super) fn ended(&self) -> bool {
        self.reset || self.ends.iter().all(|end| end.fin || !end.seen())
    }

    /// Returns the number of segments of both ends.
    pub(super) const fn packets(&self) -> u64 {
        self.ends[0].packets + self.ends[1].packets
    }

    /// Returns the number of different bytes that an end sent: by its own sequence numbers if the end was seen, otherwise by the other
    /// end's acknowledgments, which may count one more for the FIN.
    pub(super) fn bytes(&self, end: usize) -> u64 {
        let own = &self.ends[end];
        if own.seen() {
            let controls = u64::from(own.syn) + u64::from(own.fin);
            own.sent.len.saturating_sub(controls)
        } else {
            self.ends[1 - end].acknowledged.len
        }
    }

    /// Returns whether only one end was seen.
    pub(super) const fn is_one_way(&self) -> bool {
        !(self.ends[0].seen() && self.ends[1].seen())
    }
}
