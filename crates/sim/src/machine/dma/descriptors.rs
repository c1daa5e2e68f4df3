//! Descriptors from the driver's ring to the firmware: doorbell, fetch in batches, room in the firmware.

use super::super::outbox::{Outbox, Stage};
use baton_bus::handoff::ToNic;
use baton_wire::{Symbolic, Time};

/// What is under way between the driver's rings and a NIC. How far each descriptor has come is in the [`Outbox`].
#[derive(Debug, Default)]
pub(in super::super) struct Descriptors {
    /// A doorbell is on its way. More posts do not ring again before it has arrived, as the register holds only the latest.
    ringing: bool,
    /// A fetch is under way.
    fetching: bool,
}

impl Descriptors {
    /// When the driver next posts what it has not rung for; none while a doorbell is on its way, after which to ask again.
    pub(in super::super) fn unknown(&self, posted: &Outbox) -> Option<Time> {
        if self.ringing {
            return None;
        }
        posted.first_before(Stage::Rung)
    }

    /// The driver rings: the NIC will know of all that is posted by `now`.
    pub(in super::super) fn ring(&mut self, posted: &mut Outbox, now: Time) {
        debug_assert!(!self.ringing, "one doorbell at a time");
        self.ringing = true;
        posted.ring_for_posted(now);
    }

    /// The doorbell has arrived.
    pub(in super::super) fn rung(&mut self, posted: &mut Outbox) {
        self.ringing = false;
        posted.learn();
    }

    /// Whether the NIC knows of descriptors and may [fetch](Self::fetch) them: not while others are being fetched or `most` commands wait
    /// on it.
    #[inline]
    pub(super) fn may_fetch(&self, posted: &Outbox, most: usize) -> bool {
        !self.fetching && posted.is_to_fetch() && posted.commands_fetched() < most
    }

    /// Begins to fetch about `most` ring entries, all that was posted at one moment together. Gives how many entries there are to
    /// fetch.
    pub(in super::super) fn fetch(
        &mut self,
        posted: &mut Outbox,
        most: u32,
        entries_of: impl Fn(&ToNic<Symbolic>) -> u32,
    ) -> u32 {
        debug_assert!(self.may_fetch(posted, most as usize));
        self.fetching = true;
        posted.fetch(most, entries_of)
    }

    /// A fetch is under way.
    pub(super) fn fetching(&self) -> bool {
        self.fetching
    }

    /// Until when it need not be seen that something has arrived, or that descriptors have left the NIC if they are `leaving`: at
    /// once if that makes it fetch others. `most` commands may wait on it.
    pub(super) fn lookahead(&self, posted: &Outbox, most: usize, leaving: bool) -> Time {
        let more = posted.reached(Stage::Rung) > posted.reached(Stage::Fetched);
        let rings = self.ringing && posted.commands_fetched() < most;
        if more && (self.fetching || rings || leaving) {
            return Time::ZERO;
        }
        if !self.ringing {
            return Time::NEVER;
        }
        // The driver rings again when the doorbell has arrived.
        posted.first_before(Stage::Rung).unwrap_or(Time::NEVER)
    }

    /// What was being fetched is on the NIC.
    pub(in super::super) fn arrived(&mut self, posted: &mut Outbox) {
        self.fetching = false;
        posted.arrive();
    }
}
