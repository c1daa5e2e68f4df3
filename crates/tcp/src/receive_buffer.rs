//! Received data: in order for the reader, and out of order behind holes (RFC 9293 3.10.7.4, RFC 2018).

use crate::config::apart;
use crate::memory::PIECE;
use crate::payload::{cut_front, join_short, push_joined, push_short, truncate};
use baton_wire::{Payload, Pieces, SackBlock, SackBlocks, SeqNr};
use std::collections::VecDeque;

/// Maximum number of out-of-order ranges. Data behind further holes is dropped, and the peer sends it again.
const MOST_RANGES: usize = 1024;

/// Number of unread pieces that are kept as they arrived. Further short ones are copied together, because each piece takes memory of its
/// own. A burst has fewer pieces.
const MOST_UNREAD_PIECES: usize = 64;

/// Number of pieces of an out-of-order range that are kept as they arrived.
const MOST_PIECES_OF_RANGE: usize = 8;

/// Received data. The window limits its size: the connection trims segments before they get here.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveBuffer<P> {
    ready: VecDeque<P>,
    ready_len: u32,
    /// In-order bytes whose space is not freed yet: readable ones and those read but not consumed.
    unconsumed: u32,
    behind: Option<Box<OutOfOrder<P>>>,
}

/// Data behind holes.
#[derive(Clone, Debug)]
struct OutOfOrder<P> {
    /// Ranges beyond RCV.NXT in sequence order, neither overlapping nor adjacent.
    ranges: Vec<Range<P>>,
    /// Arrival count, to report the most recent ranges first.
    arrivals: u32,
    /// Sequence number of a FIN that arrived early; it ends the last range.
    fin: Option<SeqNr>,
    /// Sequence number of the byte announced as urgent, which may not have arrived.
    urgent: SeqNr,
    /// Memory of the ranges, bytes.
    memory: u32,
}

/// A run of sequence numbers without holes.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Range<P> {
    start: SeqNr,
    end: SeqNr,
    last_arrival: u32,
    pieces: Vec<P>,
}

/// Result of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// RCV.NXT now.
    pub(crate) next: SeqNr,
    /// The peer's FIN was delivered.
    pub(crate) fin: bool,
}

/// Portable state, without the readable data.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct PortableReceive<P> {
    pub(crate) unconsumed: u32,
    ranges: Vec<Range<P>>,
    arrivals: u32,
    fin: Option<SeqNr>,
    #[serde(with = "apart")]
    pub(crate) urgent: Option<SeqNr>,
}

impl<P: Payload> ReceiveBuffer<P> {
    pub(crate) fn new() -> Self {
        Self {
            ready: VecDeque::new(),
            ready_len: 0,
            unconsumed: 0,
            behind: None,
        }
    }

    /// Bytes that can be read now.
    pub(crate) fn ready_len(&self) -> u32 {
        self.ready_len
    }

    /// Bytes that take up space of the window.
    pub(crate) fn unconsumed(&self) -> u32 {
        self.unconsumed
    }

    /// Memory of in-order data, bytes.
    pub(crate) fn unread_memory(&self) -> u32 {
        self.unconsumed + self.ready.len() as u32 * PIECE
    }

    /// Memory of all data, bytes.
    #[inline]
    pub(crate) fn memory(&self) -> u32 {
        let behind = self.behind.as_ref().map_or(0, |behind| behind.memory);
        self.unread_memory() + behind
    }

    /// Reports whether there are holes.
    pub(crate) fn has_holes(&self) -> bool {
        self.behind
            .as_ref()
            .is_some_and(|behind| !behind.ranges.is_empty())
    }

    /// Appends a segment's data, which is the next in sequence, and returns its length.
    #[inline(always)]
    pub(crate) fn append(&mut self, payload: &mut Pieces<P>) -> u32 {
        if payload.len() > 1 {
            return payload.drain(..).map(|piece| self.push_ready(piece)).sum();
        }
        // What arrives is mostly one piece, and popping costs less than draining.
        payload.pop().map_or(0, |only| self.push_ready(only))
    }

    /// Appends a segment's data, which starts at RCV.NXT, while there may be holes, and a FIN after the data.
    pub(crate) fn deliver(&mut self, next: SeqNr, payload: &mut Pieces<P>, fin: bool) -> Delivered {
        let end = next + self.append(payload);
        if fin {
            if let Some(behind) = &mut self.behind {
                behind.ranges.clear();
                behind.memory = 0;
            }
            return Delivered {
                next: end + 1,
                fin: true,
            };
        }
        if self.has_holes() {
            self.drain(end)
        } else {
            Delivered {
                next: end,
                fin: false,
            }
        }
    }

    fn push_ready(&mut self, piece: P) -> u32 {
        let len = piece.len() as u32;
        if len > 0 {
            self.ready_len += len;
            self.unconsumed += len;
            match self.ready.len() < MOST_UNREAD_PIECES {
                true => push_joined(&mut self.ready, piece),
                false => push_short(&mut self.ready, piece),
            }
        }
        len
    }

    /// Makes the data behind a filled hole readable; `next` is RCV.NXT.
    fn drain(&mut self, mut next: SeqNr) -> Delivered {
        let Some(mut behind) = self.behind.take() else {
            return Delivered { next, fin: false };
        };
        let reached = behind
            .ranges
            .iter()
            .take_while(|range| range.start.at_or_before(next))
            .count();
        let mut fin = false;
        for range in behind.ranges.drain(..reached) {
            let mut skip = next - range.start;
            if next.after(range.end) {
                continue;
            }
            for piece in range.pieces {
                let len = piece.len() as u32;
                if skip >= len {
                    skip -= len;
                    continue;
                }
                next += self.push_ready(piece.slice(skip as usize, (len - skip) as usize));
                skip = 0;
            }
            if behind.fin == Some(next) {
                fin = true;
                next += 1;
            }
        }
        behind.measure();
        self.behind = Some(behind);
        Delivered { next, fin }
    }

    /// Keeps a segment that arrived beyond a hole. Returns false if the segment had to be dropped.
    pub(crate) fn keep(&mut self, seq: SeqNr, mut payload: Pieces<P>, fin: bool) -> bool {
        let behind = self.behind.get_or_insert_with(OutOfOrder::empty);
        let mut len: u32 = payload.iter().map(|piece| piece.len() as u32).sum();
        let mut fin = fin;
        if let Some(fin_at) = behind.fin {
            // Nothing follows a FIN (RFC 9293 3.10.7.4, eighth).
            if seq.at_or_after(fin_at) {
                return false;
            }
            let room = fin_at - seq;
            if len >= room {
                truncate(&mut payload, room as usize);
                len = room;
                fin = true;
            } else {
                fin = false;
            }
        } else if fin
            && behind
                .ranges
                .last()
                .is_some_and(|last| last.end.after(seq + len))
        {
            fin = false;
        }
        // A FIN that contradicts data beyond it does not count.
        let kept = (len > 0 || fin) && behind.insert(seq, payload, len, fin);
        behind.measure();
        kept
    }

    /// The number of the byte announced as urgent last; meaningless if none was.
    pub(crate) fn urgent(&self) -> SeqNr {
        self.behind
            .as_ref()
            .map_or(SeqNr(0), |behind| behind.urgent)
    }

    /// Marks the byte with this number as urgent.
    pub(crate) fn set_urgent(&mut self, seq: SeqNr) {
        self.behind.get_or_insert_with(OutOfOrder::empty).urgent = seq;
    }

    /// The first run of numbers between `seq` and `end` that was received out of order before.
    pub(crate) fn known_part(&self, seq: SeqNr, end: SeqNr) -> Option<SackBlock> {
        let ranges = &self.behind.as_ref()?.ranges;
        let first = ranges.partition_point(|range| range.end.at_or_before(seq));
        let range = ranges.get(first)?;
        let known = SackBlock {
            start: range.start.latest(seq),
            end: range.end.earliest(end),
        };
        known.start.before(known.end).then_some(known)
    }

    /// Blocks to report, most recently changed first (RFC 2018 4).
    pub(crate) fn sack_blocks(&self, most: usize) -> SackBlocks {
        let mut blocks = SackBlocks::new();
        let Some(behind) = &self.behind else {
            return blocks;
        };
        let mut newer_than = u32::MAX;
        while blocks.len() < most {
            let next = behind
                .ranges
                .iter()
                .filter(|range| range.last_arrival < newer_than)
                .max_by_key(|range| range.last_arrival);
            let Some(range) = next else { break };
            newer_than = range.last_arrival;
            blocks.push(SackBlock {
                start: range.start,
                end: range.end,
            });
        }
        blocks
    }

    /// Takes at most `max` readable bytes, from a single piece.
    pub(crate) fn read(&mut self, max: usize) -> Option<P> {
        let first = self.ready.front_mut()?;
        let len = first.len();
        let piece = if len <= max {
            self.ready.pop_front()?
        } else {
            if max == 0 {
                return None;
            }
            let piece = first.slice(0, max);
            *first = first.slice(max, len - max);
            piece
        };
        self.ready_len -= piece.len() as u32;
        Some(piece)
    }

    /// At most `max` readable bytes from the `skip`-th on, from a single piece.
    pub(crate) fn peek(&self, mut skip: usize, max: usize) -> Option<P> {
        for piece in &self.ready {
            if skip < piece.len() {
                let len = (piece.len() - skip).min(max);
                return (len > 0).then(|| piece.slice(skip, len));
            }
            skip -= piece.len();
        }
        None
    }

    /// Frees the space of `len` bytes that were read.
    pub(crate) fn consume(&mut self, len: u32) {
        assert!(
            len <= self.unconsumed - self.ready_len,
            "only what was read is consumed"
        );
        self.unconsumed -= len;
    }

    /// Drops the readable data and frees its space; returns its length.
    pub(crate) fn discard_ready(&mut self) -> u32 {
        self.ready.clear();
        self.unconsumed -= self.ready_len;
        std::mem::take(&mut self.ready_len)
    }

    /// Drops everything; data that was read counts as consumed too.
    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    /// Splits into readable pieces and the rest.
    pub(crate) fn into_portable(self) -> (Vec<P>, PortableReceive<P>) {
        let rest = match self.behind {
            Some(behind) => PortableReceive {
                unconsumed: self.unconsumed,
                ranges: behind.ranges,
                arrivals: behind.arrivals,
                fin: behind.fin,
                urgent: Some(behind.urgent),
            },
            None => PortableReceive {
                unconsumed: self.unconsumed,
                ranges: Vec::new(),
                arrivals: 0,
                fin: None,
                urgent: None,
            },
        };
        (self.ready.into(), rest)
    }

    pub(crate) fn from_portable(ready: Vec<P>, rest: PortableReceive<P>) -> Self {
        let PortableReceive {
            unconsumed,
            ranges,
            arrivals,
            fin,
            urgent,
        } = rest;
        let used = !ranges.is_empty() || arrivals > 0 || fin.is_some() || urgent.is_some();
        Self {
            ready_len: ready.iter().map(|piece| piece.len() as u32).sum(),
            ready: ready.into(),
            unconsumed,
            behind: used.then(|| {
                let mut behind = Box::new(OutOfOrder {
                    ranges,
                    arrivals,
                    fin,
                    urgent: urgent.unwrap_or_default(),
                    memory: 0,
                });
                behind.measure();
                behind
            }),
        }
    }

    /// Reports whether the buffer is empty and holds no out-of-order state.
    pub(crate) fn is_unused(&self) -> bool {
        self.ready.is_empty() && self.unconsumed == 0 && self.behind.is_none()
    }

    /// Returns the invariant that is violated, if any. `next` is RCV.NXT, `edge` the right edge of the window.
    pub(crate) fn verify(&self, next: SeqNr, edge: SeqNr) -> Result<(), &'static str> {
        let ready: usize = self.ready.iter().map(Payload::len).sum();
        if ready != self.ready_len as usize {
            return Err("the receive buffer holds as many bytes as it says");
        }
        if self.unconsumed < self.ready_len {
            return Err("readable bytes are unconsumed");
        }
        let Some(behind) = &self.behind else {
            return Ok(());
        };
        let mut previous = next;
        for range in &behind.ranges {
            if range.start.at_or_before(previous) || range.end.at_or_before(range.start) {
                return Err("out-of-order ranges are sorted and disjoint beyond RCV.NXT");
            }
            let data: usize = range.pieces.iter().map(Payload::len).sum();
            let fin = behind.fin.is_some_and(|fin| fin + 1 == range.end);
            if data + usize::from(fin) != (range.end - range.start) as usize {
                return Err("an out-of-order range holds the bytes it covers");
            }
            previous = range.end;
        }
        if !behind.ranges.is_empty() && previous.after(edge + 1) {
            return Err("out-of-order data lies within the window");
        }
        Ok(())
    }
}

impl<P: Payload> OutOfOrder<P> {
    fn empty() -> Box<Self> {
        Box::new(Self {
            ranges: Vec::new(),
            arrivals: 0,
            fin: None,
            urgent: SeqNr(0),
            memory: 0,
        })
    }

    /// Updates the memory of the ranges.
    fn measure(&mut self) {
        let of_range = |range: &Range<P>| {
            let pieces = range.pieces.len() as u32 + 1;
            range.end - range.start + pieces * PIECE
        };
        self.memory = self.ranges.iter().map(of_range).sum();
    }

    /// Merges one segment with the ranges it touches.
    fn insert(&mut self, seq: SeqNr, payload: Pieces<P>, len: u32, fin: bool) -> bool {
        let end = seq + len + u32::from(fin);
        let first = self
            .ranges
            .iter()
            .take_while(|range| range.end.before(seq))
            .count();
        let touched = self.ranges[first..]
            .iter()
            .take_while(|range| range.start.at_or_before(end))
            .count();
        if touched == 0 && self.ranges.len() >= MOST_RANGES {
            return false;
        }
        if fin {
            self.fin = Some(seq + len);
        }
        self.arrivals += 1;
        if touched == 0 {
            let range = Range {
                start: seq,
                end,
                last_arrival: self.arrivals,
                pieces: payload.into_vec(),
            };
            self.ranges.insert(first, range);
            return true;
        }
        let mut merged = Range {
            start: seq,
            end: seq,
            last_arrival: self.arrivals,
            pieces: Vec::new(),
        };
        for range in self.ranges.drain(first..first + touched) {
            if range.start.after(merged.end) {
                copy_between(&payload, seq, merged.end, range.start, &mut merged.pieces);
                extend_short(&mut merged.pieces, range.pieces);
            } else if merged.pieces.is_empty() {
                merged.start = merged.start.earliest(range.start);
                merged.pieces = range.pieces;
            } else {
                extend_short(&mut merged.pieces, range.pieces);
            }
            merged.end = range.end;
        }
        if end.after(merged.end) {
            copy_between(&payload, seq, merged.end, seq + len, &mut merged.pieces);
            merged.end = end;
        }
        self.ranges.insert(first, merged);
        true
    }
}

/// Appends the part of `payload` (which starts at `seq`) from `from` up to `to`.
fn copy_between<P: Payload>(
    payload: &Pieces<P>,
    seq: SeqNr,
    from: SeqNr,
    to: SeqNr,
    out: &mut Vec<P>,
) {
    let mut part = payload.clone();
    truncate(&mut part, (to - seq) as usize);
    cut_front(&mut part, (from - seq) as usize);
    extend_short(out, part);
}

/// Appends pieces, and joins short ones by a copy once there are many.
fn extend_short<P: Payload>(pieces: &mut Vec<P>, next: impl IntoIterator<Item = P>) {
    for piece in next {
        let many = pieces.len() >= MOST_PIECES_OF_RANGE;
        if !many
            || !pieces
                .last_mut()
                .is_some_and(|last| join_short(last, &piece))
        {
            pieces.push(piece);
        }
    }
}

#[cfg(test)]
mod tests;
