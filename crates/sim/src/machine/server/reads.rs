//! An adapter's engine for reads of host memory: it can have a limited number of reads in progress, and takes time to set up the next.

use crate::config::DmaConfig;
use baton_bus::Fifo;
use baton_bus::interconnect::Piece;
use baton_wire::{Span, Time};
use smallvec::SmallVec;

/// The memory pieces of a packet or a buffer.
pub(super) type Pieces = SmallVec<[Piece; 4]>;

/// A read for one DMA, or for all DMAs of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Read {
    /// The number of the first DMA, or `None` if a later read is for the same packet.
    pub(super) number: Option<u64>,
    pub(super) pieces: Pieces,
}

/// Data reads in order. Descriptors are fetched independently.
#[derive(Debug)]
pub(super) struct Reads {
    limit: u32,
    /// Time between the end of a read and the next.
    setup: Span,
    /// Most bytes of a piece.
    most_bytes: u32,
    waiting: Fifo<Read>,
    /// Number of pieces that are being read.
    under_way: u32,
    /// Time at which the engine is set up for the next read.
    ready_at: Time,
}

impl Reads {
    pub(super) fn new(config: &DmaConfig) -> Self {
        Self {
            limit: config.reads_in_flight,
            setup: Span::from_ns(config.read_setup_ns.into()),
            most_bytes: config.read_limit_bytes.unwrap_or(u32::MAX),
            waiting: Fifo::new(),
            under_way: 0,
            ready_at: Time::ZERO,
        }
    }

    /// Adds a read of all `pieces`: a single read, unless the engine takes the pieces one by one.
    pub(super) fn push(&mut self, number: u64, pieces: &[Piece]) {
        if pieces.iter().any(|piece| piece.bytes > self.most_bytes) {
            let limited: Pieces = pieces.iter().flat_map(|one| self.limited(*one)).collect();
            return self.push_limited(number, &limited);
        }
        self.push_limited(number, pieces);
    }

    /// Splits a piece into pieces that are short enough for one read.
    fn limited(&self, Piece { category, bytes }: Piece) -> impl Iterator<Item = Piece> {
        let most = self.most_bytes;
        (0..bytes.div_ceil(most)).map(move |nth| Piece {
            category,
            bytes: most.min(bytes - nth * most),
        })
    }

    fn push_limited(&mut self, number: u64, pieces: &[Piece]) {
        let one_by_one = self.limit == 1 || self.setup > Span::ZERO;
        let together = if one_by_one { 1 } else { pieces.len() };
        let mut reads = pieces.chunks(together).peekable();
        while let Some(pieces) = reads.next() {
            self.waiting.push(Read {
                number: reads.peek().is_none().then_some(number),
                pieces: pieces.into(),
            });
        }
    }

    /// Handles the completion of a read with this number of pieces.
    pub(super) fn handle_done(&mut self, now: Time, pieces: u32) {
        self.under_way -= pieces;
        self.ready_at = now + self.setup;
    }

    /// Returns when the next read can begin, or [`Time::NEVER`] if none waits or another must complete first.
    #[inline]
    pub(super) fn due(&self) -> Time {
        match self.under_way < self.limit && !self.waiting.is_empty() {
            true => self.ready_at,
            false => Time::NEVER,
        }
    }

    /// Returns the next read that starts now.
    pub(super) fn begin(&mut self, now: Time) -> Option<Read> {
        if self.due() > now {
            return None;
        }
        let read = self.waiting.pop()?;
        self.under_way += read.pieces.len() as u32;
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_bus::Category;

    fn piece(bytes: u32) -> Piece {
        let category = Category::Content;
        Piece { category, bytes }
    }

    fn reads(reads_in_flight: u32, read_setup_ns: u32) -> Reads {
        Reads::new(&DmaConfig {
            reads_in_flight,
            read_setup_ns,
            ..DmaConfig::default()
        })
    }

    /// Returns the sizes of the pieces of the read that starts at this time, and whether it completes the DMA.
    fn begin(reads: &mut Reads, now: Time) -> Option<(Vec<u32>, bool)> {
        let Read { number, pieces } = reads.begin(now)?;
        Some((
            pieces.iter().map(|piece| piece.bytes).collect(),
            number.is_some(),
        ))
    }

    #[test]
    fn an_engine_reads_in_order_and_is_set_up_after_each() {
        let mut reads = reads(2, 100);
        let at = |ns| Time::ZERO + Span::from_ns(ns);
        reads.push(0, &[piece(1), piece(2), piece(3)]);
        reads.push(3, &[piece(4)]);
        assert_eq!(begin(&mut reads, at(0)), Some((vec![1], false)));
        assert_eq!(begin(&mut reads, at(0)), Some((vec![2], false)));
        assert_eq!((reads.begin(at(10)), reads.due()), (None, Time::NEVER));
        reads.handle_done(at(20), 1);
        assert_eq!((reads.begin(at(119)), reads.due()), (None, at(120)));
        assert_eq!(begin(&mut reads, at(120)), Some((vec![3], true)));
        reads.handle_done(at(130), 1);
        assert_eq!(begin(&mut reads, at(230)), Some((vec![4], true)));
        assert_eq!(reads.due(), Time::NEVER);
    }

    #[test]
    fn without_setup_time_the_parts_of_a_packet_are_read_together() {
        let mut reads = reads(2, 0);
        let now = Time::ZERO;
        reads.push(0, &[piece(1), piece(2), piece(3)]);
        reads.push(3, &[piece(4)]);
        assert_eq!(begin(&mut reads, now), Some((vec![1, 2, 3], true)));
        assert_eq!((reads.begin(now), reads.due()), (None, Time::NEVER));
        reads.handle_done(now, 3);
        assert_eq!(begin(&mut reads, now), Some((vec![4], true)));
    }
}
