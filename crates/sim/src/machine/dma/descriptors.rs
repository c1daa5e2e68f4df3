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
    /// Being fetched.
    fetching: Vec<(Time, ToNic<Symbolic>)>,
    /// On the NIC; the firmware may have no room for them.
    pub(in super::super) fetched: Outbox,
}

impl Descriptors {
    /// When the driver next posts what the NIC does not know of; none while a doorbell is on its way, after which to ask again.
    pub(in super::super) fn unknown(&self, posted: &Outbox) -> Option<Time> {
        match self.ringing {
            Some(_) => None,
            None => posted.next_after(self.announced),
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

    /// Takes what is fetched next: up to `most` ring entries, or one descriptor that has more. Gives how many entries there
    /// are to fetch; none while others are being fetched or enough wait on the NIC.
    pub(in super::super) fn fetch(
        &mut self,
        posted: &mut Outbox,
        most: u32,
        entries_of: impl Fn(&ToNic<Symbolic>) -> u32,
    ) -> Option<u32> {
        let known = self.announced?;
        if !self.fetching.is_empty() || self.fetched.len() >= most as usize {
            return None;
        }
        let mut entries = 0;
        while entries < most
            && let Some((at, descriptor)) = posted.take(known)
        {
            entries += entries_of(&descriptor);
            self.fetching.push((at, descriptor));
        }
        (entries > 0).then_some(entries)
    }

    /// What was being fetched is on the NIC.
    pub(in super::super) fn arrived(&mut self) {
        for (posted, descriptor) in self.fetching.drain(..) {
            self.fetched.post(posted, descriptor);
        }
    }
}
