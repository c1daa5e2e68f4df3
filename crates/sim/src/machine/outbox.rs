//! What the host has posted for the NIC and the NIC has not taken yet.

use baton_nic::ToNic;
use baton_tcp::Symbolic;
use baton_wire::Time;
use std::collections::VecDeque;

/// Two rings, as the firmware has two queues (handoff-policies 3.1): where the NIC has no room for a command, packets must
/// not wait behind it, or no scheduler could serve them first.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    packets: Ring,
    commands: Ring,
}

#[derive(Debug, Default)]
struct Ring {
    /// Each with the moment at which the driver posts it.
    entries: VecDeque<(Time, ToNic<Symbolic>)>,
    /// The NIC had no room for the oldest entry; all wait until it has done some work.
    stalled: bool,
}

impl Ring {
    /// When its oldest entry is posted, if the NIC may have room for it.
    fn next(&self) -> Option<Time> {
        let (posted, _) = self.entries.front()?;
        (!self.stalled).then_some(*posted)
    }
}

impl Outbox {
    fn ring(&mut self, descriptor: &ToNic<Symbolic>) -> &mut Ring {
        if descriptor.is_in_packet_order() {
            &mut self.packets
        } else {
            &mut self.commands
        }
    }

    /// The driver posts `descriptor` at `posted`, no earlier than those before it.
    pub(super) fn post(&mut self, posted: Time, descriptor: ToNic<Symbolic>) {
        let entries = &mut self.ring(&descriptor).entries;
        debug_assert!(
            entries.back().is_none_or(|(last, _)| *last <= posted),
            "descriptors are posted in order"
        );
        entries.push_back((posted, descriptor));
    }

    /// Entries in both rings.
    pub(super) fn len(&self) -> usize {
        self.packets.entries.len() + self.commands.entries.len()
    }

    /// When the first of those entries is posted that are posted at `time` or later; of all entries without it.
    pub(super) fn next_from(&self, time: Option<Time>) -> Option<Time> {
        let first_from = |ring: &Ring| {
            let earlier = |(posted, _): &(Time, _)| time.is_some_and(|time| *posted < time);
            let index = ring.entries.partition_point(earlier);
            ring.entries.get(index).map(|(posted, _)| *posted)
        };
        match (first_from(&self.packets), first_from(&self.commands)) {
            (Some(packet), Some(command)) => Some(packet.min(command)),
            (packet, command) => packet.or(command),
        }
    }

    /// When there is something to take.
    pub(super) fn next(&self) -> Option<Time> {
        let (packet, command) = (self.packets.next(), self.commands.next());
        match (packet, command) {
            (Some(packet), Some(command)) => Some(packet.min(command)),
            (packet, command) => packet.or(command),
        }
    }

    /// Takes the oldest entry that is posted by `now`; of a packet and a command of the same moment, the packet.
    pub(super) fn take(&mut self, now: Time) -> Option<(Time, ToNic<Symbolic>)> {
        let next = self.next().filter(|posted| *posted <= now)?;
        let ring = if self.packets.next() == Some(next) {
            &mut self.packets
        } else {
            &mut self.commands
        };
        ring.entries.pop_front()
    }

    /// Puts back what the NIC had no room for. It and those behind it wait for [`Outbox::retry`].
    pub(super) fn give_back(&mut self, posted: Time, descriptor: ToNic<Symbolic>) {
        let ring = self.ring(&descriptor);
        ring.entries.push_front((posted, descriptor));
        ring.stalled = true;
    }

    /// The NIC may have room again. Returns whether anything waited for that.
    pub(super) fn retry(&mut self) -> bool {
        let packets = std::mem::take(&mut self.packets.stalled);
        let commands = std::mem::take(&mut self.commands.stalled);
        packets || commands
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_nic::{Command, Handle};
    use baton_tcp::Segment;
    use baton_wire::{Endpoint, Span};
    use std::net::{IpAddr, Ipv4Addr};

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn command(handle: u32) -> ToNic<Symbolic> {
        ToNic::Command(Command::Release {
            handle: Handle(handle),
        })
    }

    fn packet() -> ToNic<Symbolic> {
        let endpoint = Endpoint::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 80);
        ToNic::Packet(Segment {
            src: endpoint,
            dst: endpoint,
            ecn: Default::default(),
            header: Default::default(),
            payload: Default::default(),
        })
    }

    #[test]
    fn entries_are_taken_in_order_once_they_are_posted() {
        let mut outbox = Outbox::default();
        outbox.post(at(1), command(1));
        outbox.post(at(2), packet());
        outbox.post(at(3), command(2));
        assert_eq!(outbox.next(), Some(at(1)));
        assert_eq!(outbox.take(at(0)), None);
        let taken: Vec<_> = std::iter::from_fn(|| outbox.take(at(2))).collect();
        assert_eq!(taken, [(at(1), command(1)), (at(2), packet())]);
        assert_eq!(outbox.next(), Some(at(3)));
    }

    #[test]
    fn packets_do_not_wait_behind_a_command_that_finds_no_room() {
        let mut outbox = Outbox::default();
        outbox.post(at(1), command(1));
        outbox.post(at(2), packet());
        let (posted, refused) = outbox.take(at(9)).expect("the command");
        outbox.give_back(posted, refused);
        assert_eq!(outbox.take(at(9)), Some((at(2), packet())));
        assert_eq!(outbox.take(at(9)), None);
        assert_eq!(outbox.next(), None, "the command waits for room");
        assert!(outbox.retry());
        assert!(!outbox.retry());
        assert_eq!(outbox.take(at(9)), Some((at(1), command(1))));
    }
}
