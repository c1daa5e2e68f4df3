//! An adapter's engine for reads of host memory: it has only so many under way, and takes time to set up the next.

use crate::config::DmaConfig;
use baton_bus::{BytesByCategory, Fifo};
use baton_wire::{Span, Time};

/// A read of the data of a DMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read {
    /// The number of the DMA.
    pub(super) number: u64,
    pub(super) bytes: BytesByCategory,
}

/// Reads of data in order. Descriptors are fetched besides.
#[derive(Debug)]
pub(super) struct Reads {
    limit: u32,
    /// From the end of a read to the next.
    setup: Span,
    waiting: Fifo<Read>,
    under_way: u32,
    /// When the engine is set up for the next read.
    ready_at: Time,
}

impl Reads {
    pub(super) fn new(config: &DmaConfig) -> Self {
        Self {
            limit: config.reads_in_flight,
            setup: Span::from_ns(config.read_setup_ns.into()),
            waiting: Fifo::new(),
            under_way: 0,
            ready_at: Time::ZERO,
        }
    }

    /// A read is asked for.
    pub(super) fn push(&mut self, read: Read) {
        self.waiting.push(read);
    }

    /// One of the reads is done.
    pub(super) fn handle_done(&mut self, now: Time) {
        self.under_way -= 1;
        self.ready_at = now + self.setup;
    }

    /// When [`Reads::begin`] gives another, if only time is missing; [`Time::NEVER`] if not.
    #[inline]
    pub(super) fn due(&self) -> Time {
        match self.under_way < self.limit && !self.waiting.is_empty() {
            true => self.ready_at,
            false => Time::NEVER,
        }
    }

    /// The next read that begins now.
    pub(super) fn begin(&mut self, now: Time) -> Option<Read> {
        if self.due() > now {
            return None;
        }
        self.under_way += 1;
        self.waiting.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(number: u64) -> Read {
        let bytes = BytesByCategory::default();
        Read { number, bytes }
    }

    #[test]
    fn an_engine_reads_in_order_and_is_set_up_after_each() {
        let mut reads = Reads::new(&DmaConfig {
            reads_in_flight: 2,
            read_setup_ns: 100,
            ..DmaConfig::default()
        });
        let at = |ns| Time::ZERO + Span::from_ns(ns);
        for number in 0..4 {
            reads.push(read(number));
        }
        assert_eq!(reads.begin(at(0)), Some(read(0)));
        assert_eq!(reads.begin(at(0)), Some(read(1)));
        assert_eq!((reads.begin(at(10)), reads.due()), (None, Time::NEVER));
        reads.handle_done(at(20));
        assert_eq!((reads.begin(at(119)), reads.due()), (None, at(120)));
        assert_eq!(reads.begin(at(120)), Some(read(2)));
        reads.handle_done(at(130));
        assert_eq!(reads.begin(at(230)), Some(read(3)));
        assert_eq!(reads.due(), Time::NEVER);
    }
}
