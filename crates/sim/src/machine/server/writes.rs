//! An adapter's engine for writes to host memory, which takes time to set up each and writes limited pieces.

use crate::config::DmaConfig;
use crate::hardware::Occupancy;
use baton_bus::{BytesByCategory, Fifo};
use baton_wire::{Span, Time};

/// Writes of data whose set-up has begun, in order. Responses are written independently.
#[derive(Debug)]
pub(super) struct Writes {
    /// Most bytes of one write.
    pub(super) limit: u64,
    setup: Span,
    engine: Occupancy,
    /// When each write begins, with the number of its DMA.
    waiting: Fifo<(Time, u64, BytesByCategory)>,
}

impl Writes {
    pub(super) fn new(config: &DmaConfig) -> Self {
        Self {
            limit: config.write_limit_bytes.map_or(u64::MAX, u64::from),
            setup: Span::from_ns(config.write_setup_ns.into()),
            engine: Occupancy::default(),
            waiting: Fifo::new(),
        }
    }

    /// Returns whether writes take no time to set up.
    pub(super) fn begins_at_once(&self) -> bool {
        self.setup == Span::ZERO
    }

    /// Adds a write for the DMA with this number.
    pub(super) fn push(&mut self, now: Time, number: u64, bytes: BytesByCategory) {
        let pieces = bytes.total().div_ceil(self.limit);
        let begins = self.engine.occupy(now, self.setup * pieces);
        self.waiting.push((begins, number, bytes));
    }

    /// Returns when the next write begins.
    #[inline]
    pub(super) fn due(&self) -> Time {
        let next = self.waiting.front();
        next.map_or(Time::NEVER, |&(begins, ..)| begins)
    }

    /// Returns the next write that begins now.
    pub(super) fn begin(&mut self, now: Time) -> Option<(u64, BytesByCategory)> {
        if self.due() > now {
            return None;
        }
        let (_, number, bytes) = self.waiting.pop()?;
        Some((number, bytes))
    }
}
