//! What a NIC has on the interconnect, where that takes time: descriptors on their way to it, data that frames wait for, and
//! what it writes into host memory.
//!
//! The firmware does not know: the machine hands descriptors in only when they have been fetched, keeps a piece of work's
//! frames until what it read of host memory is there, and puts entries into the host's ring when they have been written.
//! A bus that is too slow shows as queues here; those have limits, and the NIC does no more work while they are full.

mod descriptors;
mod outgoing;
mod upward;

pub(super) use descriptors::Descriptors;
pub(super) use outgoing::{Outgoing, Parts, Release};
pub(super) use upward::{Upward, Write};

use super::outbox::{Outbox, Stage};
use crate::config::DmaConfig;
use baton_wire::{Span, Time};

/// A NIC's part of the interconnect's work.
pub(super) struct Dma {
    pub(super) config: DmaConfig,
    pub(super) descriptors: Descriptors,
    pub(super) outgoing: Outgoing,
    pub(super) upward: Upward,
    /// An interrupt is on its way to the host.
    pub(super) interrupting: bool,
    /// Receive buffers that were used and whose successors' descriptors were not yet fetched.
    pub(super) buffers_used: u32,
    /// How long the wire takes for what the transmit buffer holds.
    buffered: Span,
}

impl Dma {
    /// Nothing under way; the wire takes `line_mbps`.
    pub(super) fn new(config: &DmaConfig, events_at_once: u32, line_mbps: u32) -> Self {
        let bits = u64::from(config.transmit_buffer_kib) * 8 * 1024;
        Self {
            config: config.clone(),
            descriptors: Descriptors::default(),
            outgoing: Outgoing::new(config),
            upward: Upward::new(config, events_at_once),
            interrupting: false,
            buffers_used: 0,
            buffered: Span::from_ns(bits * 1000 / u64::from(line_mbps)),
        }
    }

    /// Until when it need not be seen what is done on the interconnect, as far as that makes the NIC use the interconnect, or fills
    /// wire and ring. `delay`: how long entries of the host's ring may wait for others.
    pub(super) fn lookahead(&self, outbox: &Outbox, delay: Span) -> Time {
        // What waits to be read, most often; then there is no need to look at the rest.
        let outgoing = self.outgoing.lookahead();
        if outgoing == Time::ZERO {
            return outgoing;
        }
        let most = self.config.descriptors_per_fetch as usize;
        let leaving = self.makes_room(outbox);
        let descriptors = self.descriptors.lookahead(outbox, most, leaving);
        if descriptors == Time::ZERO {
            return descriptors;
        }
        let upward = self.upward.lookahead(delay, self.outgoing.sent());
        outgoing.min(descriptors).min(upward)
    }

    /// Whether the NIC may fetch descriptors now, and knows of some.
    #[inline]
    pub(super) fn may_fetch(&self, outbox: &Outbox) -> bool {
        let most = self.config.descriptors_per_fetch as usize;
        self.descriptors.may_fetch(outbox, most)
    }

    /// Whether something waits to be read or written.
    #[inline]
    pub(super) fn wants_bus(&self) -> bool {
        self.outgoing.holds_back()
            || self.upward.holds_back()
            || self.buffers_used >= self.config.buffers_per_fetch
    }

    /// Whether something that is under way could let descriptors into the firmware.
    pub(super) fn hands_in(&self, outbox: &Outbox) -> bool {
        self.descriptors.fetching() || self.makes_room(outbox)
    }

    /// Whether descriptors wait on the NIC, perhaps for packets whose data is under way.
    fn makes_room(&self, outbox: &Outbox) -> bool {
        outbox.reached(Stage::OnNic) > 0 && self.outgoing.len() > 0
    }

    /// Whether the NIC may do more work: there is room for what it reads and writes.
    pub(super) fn has_room(&self) -> bool {
        let limit = self.config.packets_in_flight as usize;
        self.outgoing.len() < limit && self.upward.unwritten() < limit
    }

    /// When frames that the wire will have sent by `free_at` leave room in the transmit buffer.
    pub(super) fn room_at(&self, free_at: Time) -> Time {
        Time::ZERO + (free_at - Time::ZERO).saturating_sub(self.buffered)
    }
}
