//! What the host has posted for the NIC and the NIC has not taken yet.

use baton_bus::Fifo;
use baton_bus::handoff::ToNic;
use baton_wire::{Symbolic, Time};

/// Two rings, as the firmware has two queues (handoff-policies 3.1): where the NIC has no room for a command, packets must
/// not wait behind it, or no scheduler could serve them first.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    packets: Ring,
    commands: Ring,
}

/// How far an entry has come where the interconnect takes time. Entries come forward in order, so those of a ring that have
/// reached a stage are the first of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Stage {
    /// The driver has rung the doorbell for it.
    Rung,
    /// The doorbell has arrived: the NIC knows of it.
    Known,
    /// The NIC fetches it, or has done so.
    Fetched,
    /// It is on the NIC, whose firmware may have no room for it.
    OnNic,
}

const STAGES: usize = Stage::OnNic as usize + 1;

#[derive(Debug, Default)]
struct Ring {
    /// When the driver posts each entry: apart, for whoever asks only for that.
    posted: Fifo<Time>,
    entries: Fifo<ToNic<Symbolic>>,
    /// The NIC had no room for the oldest entry; all wait until it has done some work.
    stalled: bool,
    /// How many entries have reached each stage.
    reached: [usize; STAGES],
    /// Commands of those that have been fetched.
    commands_fetched: usize,
}

impl Ring {
    /// When its oldest entry is posted, if the NIC may have room for it.
    fn next(&self) -> Option<Time> {
        let posted = self.posted.front()?;
        (!self.stalled).then_some(*posted)
    }

    /// The same for its oldest entry that is on the NIC.
    fn next_on_nic(&self) -> Option<Time> {
        (self.reached(Stage::OnNic) > 0)
            .then(|| self.next())
            .flatten()
    }

    #[inline]
    fn reached(&self, stage: Stage) -> usize {
        self.reached[stage as usize]
    }

    /// Whether the NIC `accepts` the oldest entry. If not, it and those behind it wait for [`Outbox::retry`].
    #[inline]
    fn offer(&mut self, accepts: impl FnOnce(&ToNic<Symbolic>) -> bool) -> bool {
        self.stalled = !self.entries.front().is_some_and(accepts);
        !self.stalled
    }

    #[inline]
    fn pop(&mut self) -> Option<ToNic<Symbolic>> {
        self.posted.pop();
        self.entries.pop()
    }

    /// When the first entry that has not reached `stage` is posted.
    fn first_before(&self, stage: Stage) -> Option<Time> {
        self.posted.get(self.reached(stage)).copied()
    }

    /// When the oldest entry was posted that the NIC knows of and has not fetched.
    fn next_to_fetch(&self) -> Option<Time> {
        (self.reached(Stage::Fetched) < self.reached(Stage::Known))
            .then(|| self.first_before(Stage::Fetched))
            .flatten()
    }
}

/// The earlier of two times, if there is one.
fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl Outbox {
    fn rings(&mut self) -> [&mut Ring; 2] {
        [&mut self.packets, &mut self.commands]
    }

    /// The driver posts `descriptor` at `posted`, no earlier than those before it.
    pub(super) fn post(&mut self, posted: Time, descriptor: ToNic<Symbolic>) {
        let ring = if descriptor.is_in_packet_order() {
            &mut self.packets
        } else {
            &mut self.commands
        };
        debug_assert!(
            ring.posted.back().is_none_or(|last| *last <= posted),
            "descriptors are posted in order"
        );
        ring.posted.push(posted);
        ring.entries.push(descriptor);
    }

    /// When there is something to take.
    pub(super) fn next(&self) -> Option<Time> {
        earlier(self.packets.next(), self.commands.next())
    }

    /// Takes the oldest entry that is posted by `now` and that the NIC `accepts`; of a packet and a command of the same moment, the
    /// packet. What it does not accept waits for [`Outbox::retry`], and so do those behind it.
    #[inline]
    pub(super) fn take(
        &mut self,
        now: Time,
        mut accepts: impl FnMut(&ToNic<Symbolic>) -> bool,
    ) -> Option<ToNic<Symbolic>> {
        loop {
            let next = self.next().filter(|posted| *posted <= now)?;
            let ring = if self.packets.next() == Some(next) {
                &mut self.packets
            } else {
                &mut self.commands
            };
            if ring.offer(&mut accepts) {
                return ring.pop();
            }
        }
    }

    /// The NIC may have room again. Returns whether anything waited for that.
    pub(super) fn retry(&mut self) -> bool {
        let packets = std::mem::take(&mut self.packets.stalled);
        let commands = std::mem::take(&mut self.commands.stalled);
        packets || commands
    }
}

/// Stages, where the interconnect takes time.
impl Outbox {
    /// When the first of the entries that have not reached `stage` is posted.
    pub(super) fn first_before(&self, stage: Stage) -> Option<Time> {
        earlier(
            self.packets.first_before(stage),
            self.commands.first_before(stage),
        )
    }

    /// Entries that have reached `stage`.
    #[inline]
    pub(super) fn reached(&self, stage: Stage) -> usize {
        self.packets.reached(stage) + self.commands.reached(stage)
    }

    /// Commands that have been fetched, those of packets in parts among them, and are not with the firmware.
    #[inline]
    pub(super) fn commands_fetched(&self) -> usize {
        self.packets.commands_fetched + self.commands.commands_fetched
    }

    /// The driver rings for all that is posted by `now`.
    pub(super) fn ring_for_posted(&mut self, now: Time) {
        for ring in self.rings() {
            while ring.first_before(Stage::Rung).is_some_and(|at| at <= now) {
                ring.reached[Stage::Rung as usize] += 1;
            }
        }
    }

    /// All that was rung for is known.
    pub(super) fn learn(&mut self) {
        for ring in self.rings() {
            ring.reached[Stage::Known as usize] = ring.reached(Stage::Rung);
        }
    }

    /// Whether the NIC knows of entries that it does not fetch.
    #[inline]
    pub(super) fn is_to_fetch(&self) -> bool {
        self.reached(Stage::Known) > self.reached(Stage::Fetched)
    }

    /// Begins to fetch about `most` ring entries of what is known, all that was posted at one moment together. Gives how many.
    pub(super) fn fetch(&mut self, most: u32, entries_of: impl Fn(&ToNic<Symbolic>) -> u32) -> u32 {
        let (mut entries, mut last) = (0, None);
        loop {
            let (packet, command) = (self.packets.next_to_fetch(), self.commands.next_to_fetch());
            let next = earlier(packet, command);
            if next.is_none() || (entries >= most && last != next) {
                return entries;
            }
            let ring = if packet == next {
                &mut self.packets
            } else {
                &mut self.commands
            };
            let descriptor = &ring.entries[ring.reached(Stage::Fetched)];
            entries += entries_of(descriptor);
            ring.reached[Stage::Fetched as usize] += 1;
            ring.commands_fetched += descriptor.commands();
            last = next;
        }
    }

    /// All that was being fetched is on the NIC.
    pub(super) fn arrive(&mut self) {
        for ring in self.rings() {
            ring.reached[Stage::OnNic as usize] = ring.reached(Stage::Fetched);
        }
    }

    /// Takes the oldest entry that is on the NIC and that its firmware `accepts`; otherwise as [`Outbox::take`].
    #[inline]
    pub(super) fn take_on_nic(
        &mut self,
        mut accepts: impl FnMut(&ToNic<Symbolic>) -> bool,
    ) -> Option<ToNic<Symbolic>> {
        loop {
            let (packet, command) = (self.packets.next_on_nic(), self.commands.next_on_nic());
            let next = earlier(packet, command)?;
            let ring = if packet == Some(next) {
                &mut self.packets
            } else {
                &mut self.commands
            };
            if ring.offer(&mut accepts) {
                ring.reached.iter_mut().for_each(|reached| *reached -= 1);
                ring.commands_fetched -= ring.entries[0].commands();
                return ring.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_bus::handoff::{Command, Handle, PacketInParts, Part};
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

    fn segment() -> Segment<Symbolic> {
        let endpoint = Endpoint::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 80);
        Segment {
            src: endpoint,
            dst: endpoint,
            ecn: Default::default(),
            header: Default::default(),
            payload: Default::default(),
        }
    }

    fn packet() -> ToNic<Symbolic> {
        ToNic::Packet(segment())
    }

    /// Of three commands.
    fn packet_in_parts() -> ToNic<Symbolic> {
        let mut packet = PacketInParts::new(segment());
        for offset in [0, 4096] {
            packet.push(Part::Cache { offset, len: 10 });
        }
        ToNic::Parts(packet)
    }

    fn all(_: &ToNic<Symbolic>) -> bool {
        true
    }

    fn only_packets(descriptor: &ToNic<Symbolic>) -> bool {
        descriptor.is_in_packet_order()
    }

    #[test]
    fn entries_are_taken_in_order_once_they_are_posted() {
        let mut outbox = Outbox::default();
        outbox.post(at(1), command(1));
        outbox.post(at(2), packet());
        outbox.post(at(3), command(2));
        assert_eq!(outbox.next(), Some(at(1)));
        assert_eq!(outbox.take(at(0), all), None);
        let taken: Vec<_> = std::iter::from_fn(|| outbox.take(at(2), all)).collect();
        assert_eq!(taken, [command(1), packet()]);
        assert_eq!(outbox.next(), Some(at(3)));
    }

    #[test]
    fn packets_do_not_wait_behind_a_command_that_finds_no_room() {
        let mut outbox = Outbox::default();
        outbox.post(at(1), command(1));
        outbox.post(at(2), packet());
        assert_eq!(outbox.take(at(9), only_packets), Some(packet()));
        assert_eq!(outbox.take(at(9), all), None);
        assert_eq!(outbox.next(), None, "the command waits for room");
        assert!(outbox.retry());
        assert!(!outbox.retry());
        assert_eq!(outbox.take(at(9), all), Some(command(1)));
    }

    #[test]
    fn entries_go_to_the_nic_in_stages_and_are_rung_for_once() {
        let mut outbox = Outbox::default();
        outbox.post(at(1), command(1));
        outbox.post(at(1), packet());
        outbox.post(at(2), packet());
        outbox.post(at(3), command(2));
        outbox.ring_for_posted(at(2));
        assert_eq!(outbox.first_before(Stage::Rung), Some(at(3)));
        assert_eq!(outbox.fetch(8, |_| 1), 0, "the doorbell has not arrived");
        outbox.learn();
        assert_eq!(outbox.fetch(1, |_| 1), 2, "posted at one moment");
        assert_eq!(outbox.take_on_nic(all), None);
        outbox.arrive();
        assert_eq!(outbox.take_on_nic(only_packets), Some(packet()));
        assert_eq!(outbox.take_on_nic(only_packets), None);
        assert_eq!(outbox.reached(Stage::OnNic), 1);
        assert_eq!(outbox.take_on_nic(all), None, "it waits for room");
        assert_eq!(outbox.fetch(8, |_| 1), 1);
        outbox.arrive();
        assert_eq!(outbox.take_on_nic(all), Some(packet()));
        outbox.retry();
        assert_eq!(outbox.take_on_nic(all), Some(command(1)));
        assert_eq!(outbox.take_on_nic(all), None);
        assert_eq!(outbox.reached(Stage::Rung), 0);
    }

    #[test]
    fn a_packet_in_parts_is_fetched_as_its_commands() {
        let mut outbox = Outbox::default();
        outbox.post(at(1), packet_in_parts());
        outbox.post(at(2), command(1));
        outbox.ring_for_posted(at(2));
        outbox.learn();
        assert_eq!(outbox.fetch(2, |entry| entry.commands() as u32), 3);
        assert_eq!(outbox.commands_fetched(), 3);
        outbox.arrive();
        assert_eq!(outbox.take_on_nic(all), Some(packet_in_parts()));
        assert_eq!(outbox.commands_fetched(), 0);
        assert_eq!(outbox.fetch(2, |entry| entry.commands() as u32), 1);
        assert_eq!(outbox.commands_fetched(), 1);
    }
}
