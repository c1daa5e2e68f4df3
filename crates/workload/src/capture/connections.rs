//! Connections put together from their segments.

use super::segment::Segment;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::net::SocketAddr;

/// All connections of a capture.
#[derive(Default)]
pub(super) struct Connections {
    /// In the order in which they were first seen.
    all: Vec<Connection>,
    /// The latest between two ends, the lesser of which comes first.
    latest: HashMap<[SocketAddr; 2], usize, FxBuildHasher>,
}

/// A connection as far as it was seen.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Connection {
    pub first_us: u64,
    pub last_us: u64,
    /// What each of its ends sent.
    pub ends: [End; 2],
    /// Which end is the server: the one that did not begin, or the one with the lesser port.
    pub server: usize,
    /// Its first segment was seen.
    pub begun: bool,
    reset: bool,
}

/// What one end sent.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct End {
    /// Segments, those without content too.
    pub packets: u64,
    /// The sequence numbers that it used.
    sent: Span,
    /// The sequence numbers of the other end that it acknowledged.
    acknowledged: Span,
    /// It sent a SYN, and a FIN: each takes a sequence number.
    syn: bool,
    fin: bool,
}

/// A range of sequence numbers, which wrap around.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Span {
    /// The first number, and the one after the last.
    range: Option<(u32, u32)>,
    /// From the first to the last.
    len: u64,
}

impl Span {
    /// Numbers from `start` up to `end` were used.
    fn add(&mut self, start: u32, end: u32) {
        let (first, next) = self.range.get_or_insert((start, start));
        // Old numbers come again: they are not more than half of all behind.
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
        // A reset may have any number.
        if !segment.reset {
            self.sent
                .add(segment.seq, segment.seq.wrapping_add(numbers));
            if let Some(ack) = segment.ack {
                self.acknowledged.add(ack, ack);
            }
        }
    }

    /// Whether anything of it was seen.
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
    /// Whether a segment begins another connection between the same ends: a SYN that is not this one's, sent again.
    fn is_over_for(&self, sender: usize, segment: &Segment) -> bool {
        let end = &self.ends[sender];
        let again = end.syn && end.sent.first() == Some(segment.seq);
        segment.syn && end.seen() && !again
    }

    /// Its last segment was seen: a reset, or a FIN of each end of which anything was.
    pub(super) fn ended(&self) -> bool {
        self.reset || self.ends.iter().all(|end| end.fin || !end.seen())
    }

    /// Segments of both ends.
    pub(super) const fn packets(&self) -> u64 {
        self.ends[0].packets + self.ends[1].packets
    }

    /// Bytes that an end sent, none twice: by its own sequence numbers if it was seen, else by what the other acknowledged, which may be
    /// one more, for its FIN.
    pub(super) fn bytes(&self, end: usize) -> u64 {
        let own = &self.ends[end];
        if own.seen() {
            let controls = u64::from(own.syn) + u64::from(own.fin);
            own.sent.len.saturating_sub(controls)
        } else {
            self.ends[1 - end].acknowledged.len
        }
    }

    /// Whether only one end was seen.
    pub(super) const fn is_one_way(&self) -> bool {
        !(self.ends[0].seen() && self.ends[1].seen())
    }
}
