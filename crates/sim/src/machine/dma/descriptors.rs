//! Descriptors from the driver's ring to the firmware: doorbell, fetch in batches, room in the firmware.

use super::super::outbox::Outbox;
use baton_nic::ToNic;
use baton_tcp::Symbolic;
use baton_wire::Time;

/// Descriptors on their way to a NIC.
#[derive(Debug, Default)]
pub(in super::super) struct Descriptors {
    /// A doorbell is on its way: it tells of all that was posted by then. More posts do not ring again before it has arrived,
    /// as the register holds only the latest.
    ringing: Option<Time>,
    /// The NIC knows of all that was posted by then.
    announced: Option<Time>,
    /// A fetch is under way: of what was posted by then.
    fetching: Option<Time>,
    /// All that was posted by then is on the NIC.
    arrived: Option<Time>,
    /// On the NIC, or being fetched. The firmware may have no room for the oldest.
    fetched: Outbox,
}

impl Descriptors {
    /// When the driver next posts what the NIC does not know of; none while a doorbell is on its way, after which to ask again.
    /// What was posted at the very moment of the last doorbell may have come after it, and counts as unknown.
    pub(in super::super) fn unknown(&self, posted: &Outbox) -> Option<Time> {
        match self.ringing {
            Some(_) => None,
            None => posted.next_from(self.announced),
        }
    }

    /// The driver rings: the NIC will know of all that is posted by `now`.
    pub(in super::super) fn ring(&mut self, now: Time) {
        debug_assert!(self.ringing.is_none(), "one doorbell at a time");
        self.ringing = Some(now);
    }

    /// The doorbell has arrived.
    pub(in super::super) fn rung(&mut self) {
        self.announced = self.ringing.take();
    }

    /// Takes what is fetched next: about `most` ring entries, all that was posted at one moment together. Gives how many entries
    /// there are to fetch; none while others are being fetched or enough wait on the NIC.
    pub(in super::super) fn fetch(
        &mut self,
        posted: &mut Outbox,
        most: u32,
        entries_of: impl Fn(&ToNic<Symbolic>) -> u32,
    ) -> Option<u32> {
        let known = self.announced?;
        if self.fetching.is_some() || self.fetched.len() >= most as usize {
            return None;
        }
        let mut entries = 0;
        while let Some(next) = posted.next()
            && (entries < most || self.fetching == Some(next))
            && let Some((at, descriptor)) = posted.take(known)
        {
            entries += entries_of(&descriptor);
            self.fetching = Some(at);
            self.fetched.post(at, descriptor);
        }
        (entries > 0).then_some(entries)
    }

    /// What was being fetched is on the NIC.
    pub(in super::super) fn arrived(&mut self) {
        self.arrived = self.fetching.take();
    }

    /// The next that is on the NIC.
    pub(in super::super) fn take(&mut self) -> Option<(Time, ToNic<Symbolic>)> {
        self.fetched.take(self.arrived?)
    }

    /// Puts back what the firmware had no room for; it waits for [`Descriptors::retry`].
    pub(in super::super) fn give_back(&mut self, posted: Time, descriptor: ToNic<Symbolic>) {
        self.fetched.give_back(posted, descriptor);
    }

    /// The firmware may have room again.
    pub(in super::super) fn retry(&mut self) {
        self.fetched.retry();
    }

    /// Whether any wait on the NIC, or will.
    pub(in super::super) fn any(&self) -> bool {
        self.fetched.len() > 0
    }
}
